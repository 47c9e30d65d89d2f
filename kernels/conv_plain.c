/* Convolution by its definition: the reference implementation for conv_fast.c, and the implementation of all cases that
 * conv_fast.c does not support. */
#include "kernels/conv.h"
#include <string.h>

typedef struct plain_job {
    const mr_conv *conv;
    const void *a, *b;
    void *target;
} plain_job;

constexpr int64_t SUMS = 64; /* output channels that are computed together */

/* The index of element (n, y, x, c) in a tensor of this height, width and number of channels. */
static int64_t at(const mr_conv *conv, int64_t height, int64_t width, int64_t channels, int64_t n, int64_t y, int64_t x,
                  int64_t c)
{
    return conv->nchw ? ((n * channels + c) * height + y) * width + x : ((n * height + y) * width + x) * channels + c;
}

#define INPUT(n, y, x, c) at(v, v->in_height, v->in_width, v->in_channels, n, y, x, c)
#define OUTPUT(n, y, x, c) at(v, v->out_height, v->out_width, v->out_channels, n, y, x, c)
#define FILTER(fy, fx, i, o) (((fy) * v->filter_width + (fx)) * v->in_channels + (i)) * v->out_channels + (o)

/* Executes body with iy, ix, fy, fx for each tap of the window of output (oy, ox) that is inside the input. */
#define EACH_TAP(body)                                                                                                 \
    for (int64_t fy = 0; fy < v->filter_height; fy++)                                                                  \
        for (int64_t fx = 0; fx < v->filter_width; fx++) {                                                             \
            int64_t iy = oy * v->stride_y - v->pad_top + fy * v->dilation_y;                                           \
            int64_t ix = ox * v->stride_x - v->pad_left + fx * v->dilation_x;                                          \
            if (iy < 0 || iy >= v->in_height || ix < 0 || ix >= v->in_width) continue;                                 \
            body                                                                                                       \
        }

#define PLAIN(type, sum_type, suffix)                                                                                  \
    static void forward_##suffix(void *context, int64_t begin, int64_t end)                                            \
    {                                                                                                                  \
        const plain_job *job = context;                                                                                \
        const mr_conv *v = job->conv;                                                                                  \
        const type *input = job->a, *filter = job->b;                                                                  \
        for (int64_t row = begin; row < end; row++) {                                                                  \
            int64_t n = row / v->out_height, oy = row % v->out_height;                                                 \
            for (int64_t ox = 0; ox < v->out_width; ox++)                                                              \
                for (int64_t first = 0; first < v->out_channels; first += SUMS) {                                      \
                    const int64_t count = MR_MIN(SUMS, v->out_channels - first);                                       \
                    sum_type sums[SUMS] = {0};                                                                         \
                    EACH_TAP(for (int64_t i = 0; i < v->in_channels; i++) {                                            \
                        const sum_type x = (sum_type)input[INPUT(n, iy, ix, i)];                                       \
                        const type *weights = filter + FILTER(fy, fx, i, first);                                       \
                        for (int64_t o = 0; o < count; o++) sums[o] += x * (sum_type)weights[o];                       \
                    })                                                                                                 \
                    for (int64_t o = 0; o < count; o++)                                                                \
                        ((type *)job->target)[OUTPUT(n, oy, ox, first + o)] = (type)sums[o];                           \
                }                                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void backward_input_##suffix(void *context, int64_t begin, int64_t end)                                     \
    {                                                                                                                  \
        const plain_job *job = context;                                                                                \
        const mr_conv *v = job->conv;                                                                                  \
        const type *gradient = job->b, *filter = job->a;                                                               \
        type *target = job->target;                                                                                    \
        for (int64_t n = begin; n < end; n++) {                                                                        \
            memset(target + n * v->in_height * v->in_width * v->in_channels, 0,                                        \
                   (size_t)(v->in_height * v->in_width * v->in_channels) * sizeof(type));                              \
            for (int64_t oy = 0; oy < v->out_height; oy++)                                                             \
                for (int64_t ox = 0; ox < v->out_width; ox++)                                                          \
                    EACH_TAP(for (int64_t i = 0; i < v->in_channels; i++) {                                            \
                        sum_type sum = 0;                                                                              \
                        for (int64_t o = 0; o < v->out_channels; o++)                                                  \
                            sum += (sum_type)gradient[OUTPUT(n, oy, ox, o)] * (sum_type)filter[FILTER(fy, fx, i, o)];  \
                        target[INPUT(n, iy, ix, i)] += (type)sum;                                                      \
                    })                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void backward_filter_##suffix(void *context, int64_t begin, int64_t end)                                    \
    {                                                                                                                  \
        const plain_job *job = context;                                                                                \
        const mr_conv *v = job->conv;                                                                                  \
        const type *input = job->a, *gradient = job->b;                                                                \
        for (int64_t position = begin; position < end; position++) {                                                   \
            int64_t i = position % v->in_channels, tap = position / v->in_channels;                                    \
            int64_t fy = tap / v->filter_width, fx = tap % v->filter_width;                                            \
            for (int64_t first = 0; first < v->out_channels; first += SUMS) {                                          \
                const int64_t count = MR_MIN(SUMS, v->out_channels - first);                                           \
                sum_type sums[SUMS] = {0};                                                                             \
                for (int64_t n = 0; n < v->batch; n++)                                                                 \
                    for (int64_t oy = 0; oy < v->out_height; oy++) {                                                   \
                        int64_t iy = oy * v->stride_y - v->pad_top + fy * v->dilation_y;                               \
                        if (iy < 0 || iy >= v->in_height) continue;                                                    \
                        for (int64_t ox = 0; ox < v->out_width; ox++) {                                                \
                            int64_t ix = ox * v->stride_x - v->pad_left + fx * v->dilation_x;                          \
                            if (ix < 0 || ix >= v->in_width) continue;                                                 \
                            const sum_type x = (sum_type)input[INPUT(n, iy, ix, i)];                                   \
                            const type *gradients = gradient + OUTPUT(n, oy, ox, first);                               \
                            const int64_t step = v->nchw ? v->out_height * v->out_width : 1;                           \
                            if (step == 1)                                                                             \
                                for (int64_t o = 0; o < count; o++) sums[o] += x * (sum_type)gradients[o];             \
                            else                                                                                       \
                                for (int64_t o = 0; o < count; o++) sums[o] += x * (sum_type)gradients[o * step];      \
                        }                                                                                              \
                    }                                                                                                  \
                for (int64_t o = 0; o < count; o++)                                                                    \
                    ((type *)job->target)[position * v->out_channels + first + o] = (type)sums[o];                     \
            }                                                                                                          \
        }                                                                                                              \
    }
PLAIN(float, double, float)
PLAIN(double, double, double)
PLAIN(uint32_t, uint32_t, int32)

#define CHOOSE(dtype, loop) ((dtype) == MR_FLOAT ? loop##_float : (dtype) == MR_DOUBLE ? loop##_double : loop##_int32)

void mr_conv_forward_plain(const mr_conv *conv, mr_dtype dtype, const void *input, const void *filter, void *output,
                           mr_pool *pool)
{
    plain_job job = {conv, input, filter, output};
    mr_pool_for(pool, conv->batch * conv->out_height, 1, CHOOSE(dtype, forward), &job);
}

void mr_conv_backward_input_plain(const mr_conv *conv, mr_dtype dtype, const void *filter, const void *gradient,
                                  void *input_gradient, mr_pool *pool)
{
    plain_job job = {conv, filter, gradient, input_gradient};
    mr_pool_for(pool, conv->batch, 1, CHOOSE(dtype, backward_input), &job);
}

void mr_conv_backward_filter_plain(const mr_conv *conv, mr_dtype dtype, const void *input, const void *gradient,
                                   void *filter_gradient, mr_pool *pool)
{
    plain_job job = {conv, input, gradient, filter_gradient};
    mr_pool_for(pool, conv->filter_height * conv->filter_width * conv->in_channels, 1, CHOOSE(dtype, backward_filter),
                &job);
}
