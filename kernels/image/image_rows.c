/* The row loops. Interpolating rows first keeps the vectors full in the first pass, over the complete width of the
 * source. The second pass then moves each pixel of three floats as one vector of four, since gathering single floats is
 * slower than the arithmetic. Products are rounded before they are added, at every CPU level, so that pixels are the
 * same on every machine. */
#include "kernels/image/image_rows.h"

#include <millrace/tensor.h>

#include <math.h>
#include <string.h>

#if MR_CPU_X86
#include <immintrin.h>
#endif

static void blend_plain(float *target, const unsigned char *above, const unsigned char *below, float weight,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) target[i] = (float)above[i] + weight * (float)(below[i] - above[i]);
}

static void weigh_plain(float *target, const unsigned char *source, float weight, bool accumulate, size_t count)
{
    for (size_t i = 0; i < count; i++) target[i] = (accumulate ? target[i] : 0.0f) + weight * (float)source[i];
}

static void lerp3_plain(float *target, const float *source, const int32_t *first, const float *weights,
                        const float scale[3], const float shift[3], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float *pixel = source + 3 * (size_t)first[i];
        for (int c = 0; c < 3; c++)
            target[3 * i + (size_t)c] = (pixel[c] + weights[i] * (pixel[c + 3] - pixel[c])) * scale[c] + shift[c];
    }
}

static void lerp1_plain(float *target, const float *source, const int32_t *first, const float *weights, float scale,
                        float shift, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float *pixel = source + first[i];
        target[i] = (pixel[0] + weights[i] * (pixel[1] - pixel[0])) * scale + shift;
    }
}

static void to_uint8_plain(uint8_t *target, const float *source, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value = source[i] > 0.0f ? source[i] : 0.0f;
        target[i] = (uint8_t)rintf(value < 255.0f ? value : 255.0f);
    }
}

static const mr_rows_table plain = {blend_plain, weigh_plain, lerp3_plain, lerp1_plain, to_uint8_plain};

#if MR_CPU_X86

MR_TARGET_AVX2 static __m256 load8(const unsigned char *bytes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes)));
}

MR_TARGET_AVX2 static void blend_avx2(float *target, const unsigned char *above, const unsigned char *below,
                                      float weight, size_t count)
{
    __m256 w = _mm256_set1_ps(weight);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 a = load8(above + i), b = load8(below + i);
        _mm256_storeu_ps(target + i, _mm256_add_ps(a, _mm256_mul_ps(w, _mm256_sub_ps(b, a))));
    }
    blend_plain(target + i, above + i, below + i, weight, count - i);
}

MR_TARGET_AVX2 static void weigh_avx2(float *target, const unsigned char *source, float weight, bool accumulate,
                                      size_t count)
{
    __m256 w = _mm256_set1_ps(weight);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 sum = accumulate ? _mm256_loadu_ps(target + i) : _mm256_setzero_ps();
        _mm256_storeu_ps(target + i, _mm256_add_ps(sum, _mm256_mul_ps(w, load8(source + i))));
    }
    weigh_plain(target + i, source + i, weight, accumulate, count - i);
}

/* Each store writes one float past its pixel, which the store of the next pixel overwrites; the last pixel is stored
 * separately. */
MR_TARGET_AVX2 static void lerp3_avx2(float *target, const float *source, const int32_t *first, const float *weights,
                                      const float scale[3], const float shift[3], size_t count)
{
    __m128 scales = _mm_setr_ps(scale[0], scale[1], scale[2], 0), shifts = _mm_setr_ps(shift[0], shift[1], shift[2], 0);
    for (size_t i = 0; i + 1 < count; i++) {
        const float *pixel = source + 3 * (size_t)first[i];
        __m128 a = _mm_loadu_ps(pixel), b = _mm_loadu_ps(pixel + 3);
        __m128 value = _mm_add_ps(a, _mm_mul_ps(_mm_broadcast_ss(weights + i), _mm_sub_ps(b, a)));
        _mm_storeu_ps(target + 3 * i, _mm_add_ps(_mm_mul_ps(value, scales), shifts));
    }
    if (count > 0)
        lerp3_plain(target + 3 * (count - 1), source, first + count - 1, weights + count - 1, scale, shift, 1);
}

MR_TARGET_AVX2 static void lerp1_avx2(float *target, const float *source, const int32_t *first, const float *weights,
                                      float scale, float shift, size_t count)
{
    __m256 scales = _mm256_set1_ps(scale), shifts = _mm256_set1_ps(shift);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256i at = _mm256_loadu_si256((const __m256i *)(first + i));
        __m256 a = _mm256_i32gather_ps(source, at, 4), b = _mm256_i32gather_ps(source + 1, at, 4);
        __m256 value = _mm256_add_ps(a, _mm256_mul_ps(_mm256_loadu_ps(weights + i), _mm256_sub_ps(b, a)));
        _mm256_storeu_ps(target + i, _mm256_add_ps(_mm256_mul_ps(value, scales), shifts));
    }
    lerp1_plain(target + i, source, first + i, weights + i, scale, shift, count - i);
}

MR_TARGET_AVX2 static void to_uint8_avx2(uint8_t *target, const float *source, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 value = _mm256_max_ps(_mm256_loadu_ps(source + i), _mm256_setzero_ps());
        __m256i rounded = _mm256_cvtps_epi32(_mm256_min_ps(value, _mm256_set1_ps(255.0f)));
        __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
        _mm_storel_epi64((__m128i *)(target + i), _mm_packus_epi16(words, words));
    }
    to_uint8_plain(target + i, source + i, count - i);
}

static const mr_rows_table avx2 = {blend_avx2, weigh_avx2, lerp3_avx2, lerp1_avx2, to_uint8_avx2};

MR_TARGET_AVX512 static __m512 load16(const unsigned char *bytes)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes)));
}

MR_TARGET_AVX512 static void blend_avx512(float *target, const unsigned char *above, const unsigned char *below,
                                          float weight, size_t count)
{
    __m512 w = _mm512_set1_ps(weight);
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        __m512 a = load16(above + i), b = load16(below + i);
        _mm512_storeu_ps(target + i, _mm512_add_ps(a, _mm512_mul_ps(w, _mm512_sub_ps(b, a))));
    }
    blend_plain(target + i, above + i, below + i, weight, count - i);
}

MR_TARGET_AVX512 static void weigh_avx512(float *target, const unsigned char *source, float weight, bool accumulate,
                                          size_t count)
{
    __m512 w = _mm512_set1_ps(weight);
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        __m512 sum = accumulate ? _mm512_loadu_ps(target + i) : _mm512_setzero_ps();
        _mm512_storeu_ps(target + i, _mm512_add_ps(sum, _mm512_mul_ps(w, load16(source + i))));
    }
    weigh_plain(target + i, source + i, weight, accumulate, count - i);
}

MR_TARGET_AVX512 static __m512 load_pixels(const float *source, const int32_t *first)
{
    __m512 pixels = _mm512_castps128_ps512(_mm_loadu_ps(source + 3 * (size_t)first[0]));
    pixels = _mm512_insertf32x4(pixels, _mm_loadu_ps(source + 3 * (size_t)first[1]), 1);
    pixels = _mm512_insertf32x4(pixels, _mm_loadu_ps(source + 3 * (size_t)first[2]), 2);
    return _mm512_insertf32x4(pixels, _mm_loadu_ps(source + 3 * (size_t)first[3]), 3);
}

/* Four pixels for each vector; the twelve significant floats are made contiguous before the store. */
MR_TARGET_AVX512 static void lerp3_avx512(float *target, const float *source, const int32_t *first,
                                          const float *weights, const float scale[3], const float shift[3],
                                          size_t count)
{
    __m512 scales = _mm512_broadcast_f32x4(_mm_setr_ps(scale[0], scale[1], scale[2], 0));
    __m512 shifts = _mm512_broadcast_f32x4(_mm_setr_ps(shift[0], shift[1], shift[2], 0));
    __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    __m512i together = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        __m512 a = load_pixels(source, first + i), b = load_pixels(source + 3, first + i);
        __m512 w = _mm512_permutexvar_ps(spread, _mm512_castps128_ps512(_mm_loadu_ps(weights + i)));
        __m512 value = _mm512_add_ps(a, _mm512_mul_ps(w, _mm512_sub_ps(b, a)));
        value = _mm512_add_ps(_mm512_mul_ps(value, scales), shifts);
        _mm512_mask_storeu_ps(target + 3 * i, 0x0fff, _mm512_permutexvar_ps(together, value));
    }
    lerp3_plain(target + 3 * i, source, first + i, weights + i, scale, shift, count - i);
}

static const mr_rows_table avx512 = {blend_avx512, weigh_avx512, lerp3_avx512, lerp1_avx2, to_uint8_avx2};

const mr_rows_table *mr_rows(mr_cpu_level level)
{
    return level >= MR_CPU_AVX512 ? &avx512 : level >= MR_CPU_AVX2 ? &avx2 : &plain;
}

#else

const mr_rows_table *mr_rows(mr_cpu_level level)
{
    (void)level;
    return &plain;
}

#endif
