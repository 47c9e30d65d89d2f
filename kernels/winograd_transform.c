/* The transforms of winograd.h, in vectors of 16 channels. Each is applied to the columns of a tile, then to its
 * rows. */
#include "kernels/vector.h"
#include "kernels/winograd.h"
#include <assert.h>

constexpr int SIDE = MR_WINOGRAD_SIDE, POINTS = MR_WINOGRAD_POINTS;
/* The points are 0, A, -A, B, -B and infinity. All coefficients of the inputs are exact. */
constexpr float A = 0.6875f, B = 1.5f, A2 = A * A, B2 = B * B;

#define EACH(i, count) MR_UNROLL for (int i = 0; i < (count); i++)

MR_INLINE mr_vector multiply_add(float a, mr_vector b, mr_vector c, bool fused)
{
    return mr_vector_multiply_add(mr_vector_of(a), b, c, fused);
}

MR_INLINE float power(float x, int exponent)
{
    float y = 1;
    EACH(i, exponent) y *= x;
    return y;
}

/* The transposed interpolation: of 6 inputs. */
MR_INLINE void transform_inputs(mr_vector *t, int step, bool fused)
{
    const mr_vector d0 = t[0], d1 = t[step], d2 = t[2 * step], d3 = t[3 * step], d4 = t[4 * step], d5 = t[5 * step];
    const mr_vector even_a = multiply_add(-B2, d2, d4, fused), odd_a = multiply_add(-B2, d1, d3, fused);
    const mr_vector even_b = multiply_add(-A2, d2, d4, fused), odd_b = multiply_add(-A2, d1, d3, fused);
    t[0] = multiply_add(A2 * B2, d0, multiply_add(-(A2 + B2), d2, d4, fused), fused);
    t[step] = multiply_add(A, odd_a, even_a, fused);
    t[2 * step] = multiply_add(-A, odd_a, even_a, fused);
    t[3 * step] = multiply_add(B, odd_b, even_b, fused);
    t[4 * step] = multiply_add(-B, odd_b, even_b, fused);
    t[5 * step] = multiply_add(A2 * B2, d1, multiply_add(-(A2 + B2), d3, d5, fused), fused);
}

/* The values of a polynomial of `count` coefficients. */
MR_INLINE void transform_taps(mr_vector *t, int step, int count, bool fused)
{
    const mr_vector first = t[0], last = t[(count - 1) * step];
    mr_vector even_a = first, odd_a = t[step], even_b = first, odd_b = t[step];
    EACH(i, count)
    {
        if (i < 2) continue;
        const mr_vector x = t[i * step];
        if (i % 2 == 0) {
            even_a = multiply_add(power(A, i), x, even_a, fused);
            even_b = multiply_add(power(B, i), x, even_b, fused);
        } else {
            odd_a = multiply_add(power(A, i - 1), x, odd_a, fused);
            odd_b = multiply_add(power(B, i - 1), x, odd_b, fused);
        }
    }
    t[step] = multiply_add(A, odd_a, even_a, fused);
    t[2 * step] = multiply_add(-A, odd_a, even_a, fused);
    t[3 * step] = multiply_add(B, odd_b, even_b, fused);
    t[4 * step] = multiply_add(-B, odd_b, even_b, fused);
    t[5 * step] = last;
}

/* `count` results. The products of the differences between a point and the others, by which interpolation divides, are
 * here. */
MR_INLINE void transform_values(mr_vector *t, int step, int count, bool fused)
{
    constexpr float SCALE_0 = 1 / (A2 * B2), SCALE_A = 1 / (2 * A2 * (A2 - B2)), SCALE_B = 1 / (2 * B2 * (B2 - A2));
    const mr_vector zero = t[0], infinity = t[5 * step];
    const mr_vector even_a = t[step] + t[2 * step], odd_a = t[step] - t[2 * step];
    const mr_vector even_b = t[3 * step] + t[4 * step], odd_b = t[3 * step] - t[4 * step];
    EACH(i, count)
    {
        mr_vector sum = (SCALE_B * power(B, i)) * (i % 2 ? odd_b : even_b);
        sum = multiply_add(SCALE_A * power(A, i), i % 2 ? odd_a : even_a, sum, fused);
        if (i == 0) sum = multiply_add(SCALE_0, zero, sum, fused);
        t[i * step] = i == count - 1 ? sum + infinity : sum;
    }
}

MR_INLINE mr_vector load(const float *from, int64_t count)
{
    return count >= 16 ? mr_vector_load(from) : mr_vector_load_some(from, count, 0);
}

MR_INLINE void input_body(const float *const *pixels, int64_t channels, float *to, int64_t point_stride, bool fused)
{
    for (int64_t c = 0; c < channels; c += 16) {
        mr_vector t[POINTS];
        if (channels - c >= 16) {
            EACH(i, POINTS) t[i] = mr_vector_load(pixels[i] + c);
        } else {
            EACH(i, POINTS) t[i] = load(pixels[i] + c, channels - c);
        }
        EACH(j, SIDE) transform_inputs(t + j, SIDE, fused);
        EACH(i, SIDE)
        {
            transform_inputs(t + i * SIDE, 1, fused);
            EACH(j, SIDE) mr_vector_store(to + (i * SIDE + j) * point_stride + c, t[i * SIDE + j]);
        }
    }
}

/* size is a constant in every instance. */
MR_INLINE void gradient_body(const int size, const float *const *pixels, int64_t channels, float *to,
                             int64_t point_stride, bool fused)
{
    for (int64_t c = 0; c < channels; c += 16) {
        mr_vector t[POINTS];
        EACH(i, size) EACH(j, size) t[i * SIDE + j] = load(pixels[i * size + j] + c, channels - c);
        EACH(j, size) transform_taps(t + j, SIDE, size, fused);
        EACH(i, SIDE)
        {
            transform_taps(t + i * SIDE, 1, size, fused);
            EACH(j, SIDE) mr_vector_store(to + (i * SIDE + j) * point_stride + c, t[i * SIDE + j]);
        }
    }
}

MR_INLINE void filter_body(const int taps, const float *from, int64_t depth, float *to, bool fused)
{
    for (int64_t d = 0; d < depth; d++) {
        mr_vector t[POINTS];
        EACH(i, taps) EACH(j, taps) t[i * SIDE + j] = mr_vector_load(from + ((i * taps + j) * depth + d) * 16);
        EACH(j, taps) transform_taps(t + j, SIDE, taps, fused);
        EACH(i, SIDE)
        {
            transform_taps(t + i * SIDE, 1, taps, fused);
            EACH(j, SIDE) mr_vector_store(to + ((i * SIDE + j) * depth + d) * 16, t[i * SIDE + j]);
        }
    }
}

MR_INLINE void output_body(const int size, const mr_winograd_square *s, float *zeros, bool fused)
{
    mr_vector t[POINTS], finite = mr_vector_load(zeros);
    EACH(i, POINTS) t[i] = mr_vector_load(s->from + i * s->point_stride);
    EACH(j, SIDE) transform_values(t + j, SIDE, size, fused);
    EACH(i, size) transform_values(t + i * SIDE, 1, size, fused);
    if (s->rows >= size && s->columns >= size && s->channels >= 16 && !s->accumulate) {
        EACH(i, size) EACH(j, size)
        {
            mr_vector_store(s->to + i * s->row_stride + j * s->column_stride, t[i * SIDE + j]);
            finite = multiply_add(0, t[i * SIDE + j], finite, fused);
        }
    } else {
        EACH(i, size) EACH(j, size)
        {
            if (i >= s->rows || j >= s->columns) continue;
            float *to = s->to + i * s->row_stride + j * s->column_stride;
            mr_vector value = t[i * SIDE + j];
            if (s->accumulate) value += load(to, s->channels);
            finite = multiply_add(0, value, finite, fused);
            if (s->channels >= 16)
                mr_vector_store(to, value);
            else
                memcpy(to, &value, (size_t)s->channels * sizeof *to);
        }
    }
    mr_vector_store(zeros, finite);
}

/* The functions of one CPU level. */
#define TRANSFORMS(level, target, fused)                                                                               \
    target static void input_##level(const float *const *pixels, int64_t channels, float *to, int64_t point_stride)    \
    {                                                                                                                  \
        input_body(pixels, channels, to, point_stride, fused);                                                         \
    }                                                                                                                  \
    target static void gradient_##level(int size, const float *const *pixels, int64_t channels, float *to,             \
                                        int64_t point_stride)                                                          \
    {                                                                                                                  \
        if (size == 2)                                                                                                 \
            gradient_body(2, pixels, channels, to, point_stride, fused);                                               \
        else                                                                                                           \
            gradient_body(4, pixels, channels, to, point_stride, fused);                                               \
    }                                                                                                                  \
    target static void filter_##level(int taps, const float *from, int64_t depth, float *to)                           \
    {                                                                                                                  \
        if (taps == 3)                                                                                                 \
            filter_body(3, from, depth, to, fused);                                                                    \
        else                                                                                                           \
            filter_body(5, from, depth, to, fused);                                                                    \
    }                                                                                                                  \
    target static void output_2_##level(const mr_winograd_square *s, float *zeros)                                     \
    {                                                                                                                  \
        output_body(2, s, zeros, fused);                                                                               \
    }                                                                                                                  \
    target static void output_3_##level(const mr_winograd_square *s, float *zeros)                                     \
    {                                                                                                                  \
        output_body(3, s, zeros, fused);                                                                               \
    }                                                                                                                  \
    target static void output_4_##level(const mr_winograd_square *s, float *zeros)                                     \
    {                                                                                                                  \
        output_body(4, s, zeros, fused);                                                                               \
    }                                                                                                                  \
    target static void output_5_##level(const mr_winograd_square *s, float *zeros)                                     \
    {                                                                                                                  \
        output_body(5, s, zeros, fused);                                                                               \
    }
TRANSFORMS(plain, , false)
TRANSFORMS(avx2, MR_TARGET_AVX2, true)
TRANSFORMS(avx512, MR_TARGET_AVX512, true)

#define EACH_LEVEL(name) {name##_plain, name##_avx2, name##_avx512}

void mr_winograd_input(const float *const pixels[MR_WINOGRAD_POINTS], int64_t channels, float *to, int64_t point_stride)
{
    static void (*const functions[])(const float *const *, int64_t, float *, int64_t) = EACH_LEVEL(input);
    functions[mr_cpu()](pixels, channels, to, point_stride);
}

void mr_winograd_gradient(int size, const float *const *pixels, int64_t channels, float *to, int64_t point_stride)
{
    static void (*const functions[])(int, const float *const *, int64_t, float *, int64_t) = EACH_LEVEL(gradient);
    assert(size == 2 || size == 4);
    functions[mr_cpu()](size, pixels, channels, to, point_stride);
}

void mr_winograd_filter(int taps, const float *from, int64_t depth, float *to)
{
    static void (*const functions[])(int, const float *, int64_t, float *) = EACH_LEVEL(filter);
    assert(taps == 3 || taps == 5);
    functions[mr_cpu()](taps, from, depth, to);
}

void mr_winograd_output(const mr_winograd_square *square, float zeros[16])
{
    static void (*const functions[][3])(const mr_winograd_square *, float *) = {
        EACH_LEVEL(output_2), EACH_LEVEL(output_3), EACH_LEVEL(output_4), EACH_LEVEL(output_5)};
    assert(square->size >= 2 && square->size <= 5);
    functions[square->size - 2][mr_cpu()](square, zeros);
}

void mr_winograd_tile(const mr_winograd_tiles *t, int64_t tile, float *to, int64_t point_stride)
{
    const int64_t n = tile / (t->rows * t->columns), ty = tile / t->columns % t->rows, tx = tile % t->columns;
    const float *image = t->images + n * t->height * t->width * t->channels;
    for (int64_t phase = 0; phase < t->step * t->step; phase++, to += (t->channels + 15) / 16 * 16) {
        const float *pixels[POINTS];
        const int64_t top = ty * t->size * t->step + t->top + phase / t->step;
        const int64_t left = tx * t->size * t->step + t->left + phase % t->step;
        for (int64_t i = 0; i < SIDE; i++) {
            const int64_t y = top + i * t->step;
            const float *row = image + y * t->width * t->channels;
            const bool is_inside = y >= 0 && y < t->height;
            for (int64_t j = 0; j < SIDE; j++) {
                const int64_t x = left + j * t->step;
                pixels[i * SIDE + j] = is_inside && x >= 0 && x < t->width ? row + x * t->channels : t->zeros;
            }
        }
        mr_winograd_input(pixels, t->channels, to, point_stride);
    }
}
