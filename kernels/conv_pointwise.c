/* Convolutions with a filter of 1 x 1: products of matrices with a row for each pixel. With a stride, the pixels that
 * the filter sees are first copied, and a gradient with respect to the input is distributed among zeros. */
#include "kernels/conv.h"
#include "kernels/gemm.h"
#include <assert.h>
#include <string.h>

constexpr int64_t GROUPS_MAX = 8;

static int64_t round_up(int64_t value)
{
    return (value + 15) / 16 * 16;
}

bool mr_conv_is_pointwise(const mr_conv *v)
{
    constexpr int64_t SIZE_MIN = 64 * 64; /* the tiles of a smaller product do little for each number they move */
    return v->in_channels * v->out_channels >= SIZE_MIN && v->filter_height == 1 && v->filter_width == 1 &&
           v->pad_top == 0 && v->pad_left == 0 && (v->out_height - 1) * v->stride_y < v->in_height &&
           (v->out_width - 1) * v->stride_x < v->in_width;
}

/* The pixels are used in place. */
static bool is_dense(const mr_conv *v)
{
    return v->out_height == v->in_height && v->out_width == v->in_width;
}

static int64_t pixel_count(const mr_conv *v)
{
    return v->batch * v->out_height * v->out_width;
}

static int64_t copied_size(const mr_conv *v)
{
    return is_dense(v) ? 0 : round_up(pixel_count(v) * v->in_channels);
}

typedef struct rows_job {
    const mr_conv *conv;
    const float *from;
    float *to;
} rows_job;

/* Rows of output pixels. */
static void gather_rows(void *context, int64_t begin, int64_t end)
{
    const rows_job *job = context;
    const mr_conv *v = job->conv;
    for (int64_t row = begin; row < end; row++) {
        const int64_t n = row / v->out_height, y = row % v->out_height * v->stride_y;
        const float *from = job->from + (n * v->in_height + y) * v->in_width * v->in_channels;
        float *to = job->to + row * v->out_width * v->in_channels;
        for (int64_t x = 0; x < v->out_width; x++)
            memcpy(to + x * v->in_channels, from + x * v->stride_x * v->in_channels,
                   (size_t)v->in_channels * sizeof *to);
    }
}

/* Rows of input pixels. */
static void scatter_rows(void *context, int64_t begin, int64_t end)
{
    const rows_job *job = context;
    const mr_conv *v = job->conv;
    for (int64_t row = begin; row < end; row++) {
        const int64_t n = row / v->in_height, y = row % v->in_height;
        float *to = job->to + row * v->in_width * v->in_channels;
        memset(to, 0, (size_t)(v->in_width * v->in_channels) * sizeof *to);
        if (y % v->stride_y != 0 || y / v->stride_y >= v->out_height) continue;
        const float *from = job->from + (n * v->out_height + y / v->stride_y) * v->out_width * v->in_channels;
        for (int64_t x = 0; x < v->out_width; x++)
            memcpy(to + x * v->stride_x * v->in_channels, from + x * v->in_channels,
                   (size_t)v->in_channels * sizeof *to);
    }
}

static int64_t row_grain(int64_t columns, int64_t channels)
{
    return MR_MAX(1, MR_GRAIN / (columns * channels));
}

/* The matrix of the pixels that the filter sees, in scratch memory if it is not the input. */
static const float *pixels_of(const mr_conv *v, const float *input, float *copied, mr_pool *pool)
{
    if (is_dense(v)) return input;
    rows_job job = {v, input, copied};
    mr_pool_for(pool, v->batch * v->out_height, row_grain(v->out_width, v->in_channels), gather_rows, &job);
    return copied;
}

static void run(const mr_gemm *gemm, float *floats, int threads, mr_pool *pool)
{
    mr_slots slots;
    mr_slots_init(&slots, floats, round_up(mr_gemm_scratch(gemm)), threads + 1);
    mr_gemm_run(gemm, &slots, pool);
}

/* ---- Forward and the gradient with respect to the input ---- */

static mr_gemm forward_product(const mr_conv *v)
{
    return (mr_gemm){.m = pixel_count(v), .n = v->out_channels, .k = v->in_channels};
}

int64_t mr_conv_pointwise_forward_scratch(const mr_conv *v, int threads)
{
    const mr_gemm gemm = forward_product(v);
    return copied_size(v) + (threads + 1) * round_up(mr_gemm_scratch(&gemm));
}

void mr_conv_pointwise_forward(const mr_conv *v, const float *input, const float *filter, float *output,
                               mr_conv_scratch scratch, mr_pool *pool)
{
    assert(mr_conv_is_pointwise(v));
    mr_gemm gemm = forward_product(v);
    gemm.a = pixels_of(v, input, scratch.floats, pool);
    gemm.b = filter;
    gemm.c = output;
    run(&gemm, scratch.floats + copied_size(v), scratch.threads, pool);
}

static mr_gemm input_product(const mr_conv *v)
{
    return (mr_gemm){.m = pixel_count(v), .n = v->in_channels, .k = v->out_channels, .b_transposed = true};
}

int64_t mr_conv_pointwise_input_scratch(const mr_conv *v, int threads)
{
    const mr_gemm gemm = input_product(v);
    return copied_size(v) + (threads + 1) * round_up(mr_gemm_scratch(&gemm));
}

void mr_conv_pointwise_input(const mr_conv *v, const float *filter, const float *gradient, float *input_gradient,
                             mr_conv_scratch scratch, mr_pool *pool)
{
    assert(mr_conv_is_pointwise(v));
    mr_gemm gemm = input_product(v);
    gemm.a = gradient;
    gemm.b = filter;
    gemm.c = is_dense(v) ? input_gradient : scratch.floats;
    run(&gemm, scratch.floats + copied_size(v), scratch.threads, pool);
    if (is_dense(v)) return;
    rows_job job = {v, scratch.floats, input_gradient};
    mr_pool_for(pool, v->batch * v->in_height, row_grain(v->in_width, v->in_channels), scatter_rows, &job);
}

/* ---- The gradient with respect to the filter ---- */

bool mr_conv_pointwise_has_filter(const mr_conv *v)
{
    constexpr int64_t ROWS_MIN = 64; /* fewer do not repay the packing of the gradient */
    return mr_conv_is_pointwise(v) && v->in_channels >= ROWS_MIN;
}

/* The product of `pixels` pixels. */
static mr_gemm filter_product(const mr_conv *v, int64_t pixels)
{
    return (mr_gemm){.m = v->in_channels, .n = v->out_channels, .k = pixels, .a_transposed = true};
}

/* A small filter has too few blocks for several threads: groups of pixels produce partial sums, which are added in
 * order. */
static int64_t group_count(const mr_conv *v)
{
    constexpr int64_t SMALL = 256 * 256, PIXELS = 512;
    if (v->in_channels * v->out_channels > SMALL) return 1;
    return MR_MAX(1, MR_MIN(GROUPS_MAX, pixel_count(v) / PIXELS));
}

static int64_t partials_size(const mr_conv *v)
{
    return group_count(v) > 1 ? group_count(v) * round_up(v->in_channels * v->out_channels) : 0;
}

static int64_t filter_slot(const mr_conv *v)
{
    const int64_t groups = group_count(v);
    const mr_gemm gemm = filter_product(v, (pixel_count(v) + groups - 1) / groups);
    return round_up(mr_gemm_scratch(&gemm));
}

int64_t mr_conv_pointwise_filter_scratch(const mr_conv *v, int threads)
{
    return copied_size(v) + partials_size(v) + (threads + 1) * filter_slot(v);
}

typedef struct groups_job {
    const mr_conv *conv;
    const float *pixels, *gradient;
    float *partials;
    mr_slots *slots;
} groups_job;

static void multiply_groups(void *context, int64_t begin, int64_t end)
{
    const groups_job *job = context;
    const mr_conv *v = job->conv;
    const int64_t groups = group_count(v), size = round_up(v->in_channels * v->out_channels), pixels = pixel_count(v);
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = pixels * group / groups, last = pixels * (group + 1) / groups;
        mr_gemm gemm = filter_product(v, last - first);
        gemm.a = job->pixels + first * v->in_channels;
        gemm.b = job->gradient + first * v->out_channels;
        gemm.c = job->partials + group * size;
        mr_gemm_run(&gemm, job->slots, nullptr);
    }
}

typedef struct sum_job {
    const float *partials;
    float *target;
    int64_t size, groups;
} sum_job;

static void add_partials(void *context, int64_t begin, int64_t end)
{
    const sum_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        float sum = job->partials[i];
        for (int64_t group = 1; group < job->groups; group++) sum += job->partials[group * job->size + i];
        job->target[i] = sum;
    }
}

void mr_conv_pointwise_filter(const mr_conv *v, const float *input, const float *gradient, float *filter_gradient,
                              mr_conv_scratch scratch, mr_pool *pool)
{
    assert(mr_conv_pointwise_has_filter(v));
    float *partials = scratch.floats + copied_size(v), *floats = partials + partials_size(v);
    const float *pixels = pixels_of(v, input, scratch.floats, pool);
    const int64_t groups = group_count(v), size = v->in_channels * v->out_channels;
    if (groups == 1) {
        mr_gemm gemm = filter_product(v, pixel_count(v));
        gemm.a = pixels;
        gemm.b = gradient;
        gemm.c = filter_gradient;
        run(&gemm, floats, scratch.threads, pool);
        return;
    }
    mr_slots slots;
    mr_slots_init(&slots, floats, filter_slot(v), scratch.threads + 1);
    groups_job job = {v, pixels, gradient, partials, &slots};
    mr_pool_for(pool, groups, 1, multiply_groups, &job);
    sum_job sum = {partials, filter_gradient, round_up(size), groups};
    mr_pool_for(pool, size, 4096, add_partials, &sum);
}
