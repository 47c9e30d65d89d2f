/* Convolutions of a large filter over small images, as matrix products. conv_fast.c would read, and for the filter's
 * gradient also write, the whole filter for the few pixels of each image. Here the patches of many images are the rows
 * of a matrix, and a product keeps each block of the filter in a cache:
 *
 *   output = patches · filter,  filter's gradient = patchesᵀ · gradient,  patches' gradient = gradient · filterᵀ
 *
 * An input's gradient is the sum of those of the patches that contain it. */
#include "kernels/conv.h"
#include "kernels/gemm.h"
#include <assert.h>
#include <string.h>

constexpr int64_t PIXELS = 128;          /* images of fewer outputs are small */
constexpr int64_t FILTER = 1 << 17;      /* numbers of a large filter: more than half of a second cache */
constexpr int64_t PATCHES_MAX = 1 << 22; /* numbers of all patches that are in memory at a time */

typedef struct patches_job {
    const mr_conv *conv;
    const float *input; /* the first image */
    float *patches;     /* [images][out_height][out_width][depth] */
    int64_t depth;
} patches_job;

static int64_t patch_depth(const mr_conv *v)
{
    return v->filter_height * v->filter_width * v->in_channels;
}

bool mr_conv_has_patches(const mr_conv *v, mr_conv_result result)
{
    static const int64_t least[] = {
        [MR_CONV_OUTPUT] = 4 * FILTER, [MR_CONV_INPUT] = 16 * FILTER, [MR_CONV_FILTER] = 8 * FILTER};
    const int64_t pixels = v->out_height * v->out_width;
    return patch_depth(v) * v->out_channels >= (pixels < PIXELS ? FILTER : least[result]) &&
           pixels * patch_depth(v) <= PATCHES_MAX && v->batch * pixels >= 64;
}

/* Images whose patches are in memory at a time. */
static int64_t images_of(const mr_conv *v)
{
    return MR_MAX(1, MR_MIN(v->batch, PATCHES_MAX / (v->out_height * v->out_width * patch_depth(v))));
}

/* The input is its own matrix of patches. */
static bool is_pointwise(const mr_conv *v)
{
    return v->filter_height == 1 && v->filter_width == 1 && v->stride_y == 1 && v->stride_x == 1 && v->pad_top == 0 &&
           v->pad_left == 0 && v->in_height == v->out_height && v->in_width == v->out_width;
}

static void patch_rows(void *context, int64_t begin, int64_t end)
{
    const patches_job *job = context;
    const mr_conv *v = job->conv;
    const int64_t channels = v->in_channels, run = v->filter_width * channels;
    for (int64_t row = begin; row < end; row++) {
        const float *image = job->input + row / v->out_height * v->in_height * v->in_width * channels;
        const int64_t top = row % v->out_height * v->stride_y - v->pad_top;
        for (int64_t column = 0; column < v->out_width; column++) {
            const int64_t left = column * v->stride_x - v->pad_left;
            const int64_t from = MR_MIN(MR_MAX(0, -left), v->filter_width);
            const int64_t to = MR_MAX(from, MR_MIN(v->filter_width, v->in_width - left));
            float *patch = job->patches + (row * v->out_width + column) * job->depth;
            for (int64_t fy = 0; fy < v->filter_height; fy++, patch += run) {
                const int64_t y = top + fy;
                if (y < 0 || y >= v->in_height || from == to) {
                    memset(patch, 0, (size_t)run * sizeof *patch);
                    continue;
                }
                memset(patch, 0, (size_t)(from * channels) * sizeof *patch);
                memcpy(patch + from * channels, image + (y * v->in_width + left + from) * channels,
                       (size_t)((to - from) * channels) * sizeof *patch);
                memset(patch + to * channels, 0, (size_t)(run - to * channels) * sizeof *patch);
            }
        }
    }
}

/* The matrix of the patches of `count` images. */
static const float *patches_of(const mr_conv *v, const float *input, int64_t count, float *floats, mr_pool *pool)
{
    if (is_pointwise(v)) return input;
    patches_job job = {v, input, floats, patch_depth(v)};
    mr_pool_for(pool, count * v->out_height, MR_MAX(1, 16384 / (v->out_width * job.depth)), patch_rows, &job);
    return floats;
}

/* The products for `images` images. */
static mr_gemm product_of(const mr_conv *v, mr_conv_result result, int64_t images)
{
    const int64_t pixels = images * v->out_height * v->out_width, depth = patch_depth(v);
    switch (result) {
    case MR_CONV_OUTPUT:
        return (mr_gemm){.m = pixels, .n = v->out_channels, .k = depth};
    case MR_CONV_INPUT:
        return (mr_gemm){.m = pixels, .n = depth, .k = v->out_channels, .b_transposed = true};
    default:
        return (mr_gemm){.m = depth, .n = v->out_channels, .k = pixels, .a_transposed = true};
    }
}

static int64_t patches_size(const mr_conv *v)
{
    return is_pointwise(v) ? 0 : (images_of(v) * v->out_height * v->out_width * patch_depth(v) + 15) / 16 * 16;
}

static int64_t slot_size(const mr_conv *v, mr_conv_result result)
{
    const mr_gemm gemm = product_of(v, result, images_of(v));
    return (mr_gemm_scratch(&gemm) + 15) / 16 * 16;
}

int64_t mr_conv_patches_scratch(const mr_conv *v, mr_conv_result result, int threads)
{
    return patches_size(v) + (threads + 1) * slot_size(v, result);
}

typedef struct sum_job {
    const mr_conv *conv;
    const float *patches;
    float *input; /* the first image's gradient */
} sum_job;

/* Output positions [first, last) whose window contains the input position `at`. */
static void windows_of(int64_t at, int64_t filter, int64_t stride, int64_t outputs, int64_t *first, int64_t *last)
{
    *first = at < filter ? 0 : (at - filter) / stride + 1;
    *last = MR_MIN(outputs, at / stride + 1);
}

/* Rows of input pixels. */
static void sum_rows(void *context, int64_t begin, int64_t end)
{
    const sum_job *job = context;
    const mr_conv *v = job->conv;
    const int64_t channels = v->in_channels, depth = patch_depth(v);
    for (int64_t row = begin; row < end; row++) {
        const int64_t n = row / v->in_height, y = row % v->in_height + v->pad_top;
        int64_t top, bottom, left, right;
        windows_of(y, v->filter_height, v->stride_y, v->out_height, &top, &bottom);
        for (int64_t column = 0; column < v->in_width; column++) {
            const int64_t x = column + v->pad_left;
            float *to = job->input + (row * v->in_width + column) * channels;
            bool is_first = true;
            windows_of(x, v->filter_width, v->stride_x, v->out_width, &left, &right);
            for (int64_t i = top; i < bottom; i++)
                for (int64_t j = left; j < right; j++) {
                    const int64_t fy = y - i * v->stride_y, fx = x - j * v->stride_x;
                    const float *from = job->patches + ((n * v->out_height + i) * v->out_width + j) * depth +
                                        (fy * v->filter_width + fx) * channels;
                    assert(fy >= 0 && fy < v->filter_height && fx >= 0 && fx < v->filter_width);
                    for (int64_t c = 0; c < channels; c++) to[c] = is_first ? from[c] : to[c] + from[c];
                    is_first = false;
                }
            if (is_first) memset(to, 0, (size_t)channels * sizeof *to);
        }
    }
}

void mr_conv_patches(const mr_conv *v, mr_conv_result result, const float *input, const float *filter,
                     const float *gradient, float *to, mr_conv_scratch scratch, mr_pool *pool)
{
    const int64_t images = images_of(v), image = v->in_height * v->in_width * v->in_channels;
    const int64_t output = v->out_height * v->out_width * v->out_channels;
    float *patches = scratch.floats;
    mr_slots slots;
    assert(mr_conv_has_patches(v, result));
    mr_slots_init(&slots, patches + patches_size(v), slot_size(v, result), scratch.threads + 1);
    for (int64_t n = 0; n < v->batch; n += images) {
        const int64_t count = MR_MIN(images, v->batch - n);
        mr_gemm gemm = product_of(v, result, count);
        if (result != MR_CONV_INPUT) gemm.a = patches_of(v, input + n * image, count, patches, pool);
        switch (result) {
        case MR_CONV_OUTPUT:
            gemm.b = filter;
            gemm.c = to + n * output;
            break;
        case MR_CONV_INPUT:
            gemm.a = gradient + n * output;
            gemm.b = filter;
            gemm.c = is_pointwise(v) ? to + n * image : patches;
            break;
        case MR_CONV_FILTER:
            gemm.b = gradient + n * output;
            gemm.c = to;
            gemm.accumulate = n > 0;
            break;
        }
        mr_gemm_run(&gemm, &slots, pool);
        if (result != MR_CONV_INPUT || is_pointwise(v)) continue;
        sum_job job = {v, patches, to + n * image};
        mr_pool_for(pool, count * v->in_height, MR_MAX(1, MR_GRAIN / (v->in_width * v->in_channels)), sum_rows, &job);
    }
}
