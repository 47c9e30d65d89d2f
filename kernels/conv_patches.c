/* The gradient of a large filter over small images, as a matrix product. conv_fast.c would read and write the whole
 * filter for the few pixels of each image. Here the patches of many images become the rows of a matrix, and the product
 * of its transpose with the gradient keeps each block of the filter in a cache. */
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

bool mr_conv_filter_has_patches(const mr_conv *v)
{
    const int64_t pixels = v->out_height * v->out_width;
    const int64_t filter = patch_depth(v) * v->out_channels;
    return filter >= (pixels < PIXELS ? FILTER : 8 * FILTER) && pixels * patch_depth(v) <= PATCHES_MAX &&
           v->batch * pixels >= 64;
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

/* The product for `images` images. */
static mr_gemm product_of(const mr_conv *v, int64_t images)
{
    return (mr_gemm){
        .m = patch_depth(v), .n = v->out_channels, .k = images * v->out_height * v->out_width, .a_transposed = true};
}

static int64_t patches_size(const mr_conv *v)
{
    return is_pointwise(v) ? 0 : images_of(v) * v->out_height * v->out_width * patch_depth(v);
}

static int64_t slot_size(const mr_conv *v)
{
    const mr_gemm gemm = product_of(v, images_of(v));
    return mr_gemm_scratch(&gemm);
}

int64_t mr_conv_filter_patches_scratch(const mr_conv *v, int threads)
{
    return (patches_size(v) + 15) / 16 * 16 + (threads + 1) * slot_size(v);
}

void mr_conv_filter_patches(const mr_conv *v, const float *input, const float *gradient, float *filter_gradient,
                            mr_conv_scratch scratch, mr_pool *pool)
{
    const int64_t images = images_of(v), pixels = v->out_height * v->out_width, depth = patch_depth(v);
    const int64_t image_size = v->in_height * v->in_width * v->in_channels;
    mr_slots slots;
    assert(mr_conv_filter_has_patches(v));
    mr_slots_init(&slots, scratch.floats + (patches_size(v) + 15) / 16 * 16, slot_size(v), scratch.threads + 1);
    for (int64_t n = 0; n < v->batch; n += images) {
        const int64_t count = MR_MIN(images, v->batch - n);
        mr_gemm gemm = product_of(v, count);
        gemm.a = input + n * image_size;
        if (!is_pointwise(v)) {
            patches_job job = {v, input + n * image_size, scratch.floats, depth};
            mr_pool_for(pool, count * v->out_height, MR_MAX(1, 16384 / (v->out_width * depth)), patch_rows, &job);
            gemm.a = scratch.floats;
        }
        gemm.b = gradient + n * pixels * v->out_channels;
        gemm.c = filter_gradient;
        gemm.accumulate = n > 0;
        mr_gemm_run(&gemm, &slots, pool);
    }
}
