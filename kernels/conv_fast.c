/* Convolution of floats in NHWC as tile products (gemm.h), without an im2col buffer.
 *
 * One row of a window (filter_width · channels numbers) is contiguous in an NHWC image, and the windows of adjacent
 * outputs start a fixed distance apart. So a row of outputs is a tile: A is the image itself, B is a panel of the
 * filter, and the rows of the filter are the segments of the inner dimension. Only the zeros around an image are not in
 * memory: each piece of work first copies its few input rows into a frame of zeros, in a slot of scratch memory.
 *
 * The gradient with respect to the input is the same, with gradient and input exchanged and the filter rotated by 180
 * degrees. With a stride, the input positions of one remainder (phase) use only every stride-th tap: each phase is a
 * convolution with those taps. The gradient with respect to the filter is a tile with the pixels as its inner
 * dimension; groups of image rows produce partial sums, which are added in order. */
#include "kernels/conv.h"
#include "kernels/gemm.h"
#include "kernels/vector.h"
#include "kernels/winograd.h"
#include <assert.h>
#include <string.h>

static int64_t round_up(int64_t value)
{
    return (value + 15) / 16 * 16;
}

/* Copies an image's rows [top, top + rows) and columns [left, left + columns), with zeros outside the image. */
static void frame_copy(float *frame, const float *image, int64_t height, int64_t width, int64_t channels, int64_t top,
                       int64_t rows, int64_t left, int64_t columns)
{
    int64_t from = MR_MIN(MR_MAX(0, -left), columns), to = MR_MAX(from, MR_MIN(columns, width - left));
    assert(rows > 0 && columns > 0 && 0 <= from && from <= to && to <= columns);
    for (int64_t r = 0; r < rows; r++, frame += columns * channels) {
        int64_t y = top + r;
        if (y < 0 || y >= height) {
            memset(frame, 0, (size_t)(columns * channels) * sizeof *frame);
            continue;
        }
        memset(frame, 0, (size_t)(from * channels) * sizeof *frame);
        if (to > from)
            memcpy(frame + from * channels, image + (y * width + left + from) * channels,
                   (size_t)((to - from) * channels) * sizeof *frame);
        memset(frame + to * channels, 0, (size_t)((columns - to) * channels) * sizeof *frame);
    }
}

/* ---- Windows over an image: the forward convolution, and each phase of the gradient with respect to the input ---- */

typedef struct window_job {
    /* the source image */
    const float *image;
    int64_t height, width, channels;
    int64_t top, left; /* position of the first window; may be negative */
    int64_t stride_y, stride_x, window_y, window_x;
    /* the target image; every step-th pixel is written */
    float *target;
    int64_t batch, rows, columns, out_channels;
    int64_t image_size, row_stride, column_stride;
    /* panels [out_channels / 16][window_y * window_x * channels][16] */
    const float *panels;
    bool framed;       /* false: every window is inside the image, which is read in place */
    int64_t row_block; /* rows of the target in one piece of work */
    int64_t row_blocks;
    mr_slots *slots;
} window_job;

static void window_tiles(const window_job *job, const float *source, int64_t source_columns, float *target,
                         int64_t rows)
{
    const int vectors_max = mr_tile_vectors_max(false);
    int64_t depth = job->window_y * job->window_x * job->channels;
    mr_tile tile = {.a_step = 1, .b_step = 16, .b_next = depth * 16};
    tile.a_row = job->stride_x * job->channels;
    tile.a_segment = source_columns * job->channels;
    tile.length = job->window_x * job->channels;
    tile.c_row = job->column_stride;
    /* The panels of a tile of a deep filter are processed in passes of several filter rows, so that they stay in the
     * second-level cache. */
    int64_t pass = MR_MAX(1, MR_MIN(job->window_y, 2048 / MR_MAX(1, tile.length)));
    for (int64_t fy = 0; fy < job->window_y; fy += pass) {
        tile.segments = MR_MIN(pass, job->window_y - fy);
        tile.accumulate = fy > 0;
        for (int64_t o = 0; o < job->out_channels; o += tile.vectors * 16) {
            tile.vectors = mr_tile_vectors(job->out_channels - o, vectors_max);
            tile.columns = (int)MR_MIN(tile.vectors * 16, job->out_channels - o);
            tile.b = job->panels + o / 16 * tile.b_next + fy * tile.length * 16;
            int rows_max = mr_tile_rows_max(tile.vectors);
            int64_t tiles = (job->columns + rows_max - 1) / rows_max;
            for (int64_t y = 0; y < rows; y++)
                for (int64_t t = 0; t < tiles; t++) {
                    int64_t from = job->columns * t / tiles, to = job->columns * (t + 1) / tiles;
                    tile.rows = (int)(to - from);
                    assert(tile.rows >= 1 && tile.rows <= rows_max);
                    tile.a = source + (y * job->stride_y + fy) * tile.a_segment + from * tile.a_row;
                    tile.c = target + y * job->row_stride + from * job->column_stride + o;
                    mr_tile_run(&tile);
                }
        }
    }
}

static int64_t window_frame_rows(const window_job *job, int64_t rows)
{
    return (rows - 1) * job->stride_y + job->window_y;
}

static int64_t window_frame_columns(const window_job *job)
{
    return (job->columns - 1) * job->stride_x + job->window_x;
}

static void window_pieces(void *context, int64_t begin, int64_t end)
{
    const window_job *job = context;
    int slot = 0;
    float *frame = job->framed ? mr_slot_acquire(job->slots, &slot) : nullptr;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t n = piece / job->row_blocks, row = piece % job->row_blocks * job->row_block;
        int64_t rows = MR_MIN(job->row_block, job->rows - row), top = job->top + row * job->stride_y;
        assert(n < job->batch && rows > 0);
        const float *image = job->image + n * job->height * job->width * job->channels;
        float *target = job->target + n * job->image_size + row * job->row_stride;
        if (job->framed) {
            int64_t columns = window_frame_columns(job);
            frame_copy(frame, image, job->height, job->width, job->channels, top, window_frame_rows(job, rows),
                       job->left, columns);
            window_tiles(job, frame, columns, target, rows);
        } else {
            window_tiles(job, image + (top * job->width + job->left) * job->channels, job->width, target, rows);
        }
    }
    if (job->framed) mr_slot_release(job->slots, slot);
}

/* Sets the derived fields: whether a frame is needed, and how rows are divided. */
static void window_plan(window_job *job)
{
    int64_t bottom = job->top + window_frame_rows(job, job->rows), right = job->left + window_frame_columns(job);
    job->framed = job->top < 0 || job->left < 0 || bottom > job->height || right > job->width;
    constexpr int64_t WORK = 2000000; /* minimum number of multiplications of a piece */
    int64_t row_work = job->columns * job->out_channels * job->window_y * job->window_x * job->channels;
    job->row_block = MR_MAX(1, MR_MIN(job->rows, (WORK + row_work - 1) / MR_MAX(1, row_work)));
    if (job->row_block * 2 > job->rows) job->row_block = job->rows;
    job->row_blocks = (job->rows + job->row_block - 1) / job->row_block;
}

static int64_t window_slot_size(const window_job *job)
{
    if (!job->framed) return 0;
    return round_up(window_frame_rows(job, job->row_block) * window_frame_columns(job) * job->channels);
}

static void window_run(window_job *job, mr_pool *pool)
{
    mr_pool_for(pool, job->batch * job->row_blocks, 1, window_pieces, job);
}

/* ---- Forward ---- */

static window_job forward_job(const mr_conv *v)
{
    window_job job = {.height = v->in_height,
                      .width = v->in_width,
                      .channels = v->in_channels,
                      .top = -v->pad_top,
                      .left = -v->pad_left,
                      .stride_y = v->stride_y,
                      .stride_x = v->stride_x,
                      .window_y = v->filter_height,
                      .window_x = v->filter_width,
                      .batch = v->batch,
                      .rows = v->out_height,
                      .columns = v->out_width,
                      .out_channels = v->out_channels};
    job.column_stride = v->out_channels;
    job.row_stride = job.columns * v->out_channels;
    job.image_size = v->out_height * v->out_width * v->out_channels;
    window_plan(&job);
    return job;
}

static int64_t filter_depth(const mr_conv *v)
{
    return v->filter_height * v->filter_width * v->in_channels;
}

int64_t mr_conv_forward_scratch(const mr_conv *v, int threads)
{
    if (mr_conv_is_pointwise(v)) return mr_conv_pointwise_forward_scratch(v, threads);
    window_job job = forward_job(v);
    int64_t direct = mr_panels_size(filter_depth(v), v->out_channels) + (threads + 1) * window_slot_size(&job);
    if (mr_conv_has_patches(v, MR_CONV_OUTPUT)) direct = mr_conv_patches_scratch(v, MR_CONV_OUTPUT, threads);
    return mr_winograd_has_forward(v) ? MR_MAX(direct, mr_winograd_forward_scratch(v, threads)) : direct;
}

void mr_conv_forward(const mr_conv *v, const float *input, const float *filter, float *output, mr_conv_scratch scratch,
                     mr_pool *pool)
{
    if (mr_conv_is_pointwise(v)) {
        mr_conv_pointwise_forward(v, input, filter, output, scratch, pool);
        return;
    }
    if (mr_winograd_has_forward(v) && mr_winograd_forward(v, input, filter, output, scratch, pool)) return;
    if (mr_conv_has_patches(v, MR_CONV_OUTPUT)) {
        mr_conv_patches(v, MR_CONV_OUTPUT, input, filter, nullptr, output, scratch, pool);
        return;
    }
    window_job job = forward_job(v);
    mr_slots slots;
    mr_panels_pack(scratch.floats, filter, filter_depth(v), v->out_channels, v->out_channels, 1);
    mr_slots_init(&slots, scratch.floats + mr_panels_size(filter_depth(v), v->out_channels), window_slot_size(&job),
                  scratch.threads + 1);
    job.image = input;
    job.target = output;
    job.panels = scratch.floats;
    job.slots = &slots;
    window_run(&job, pool);
}

/* ---- The gradient with respect to the input ---- */

/* One dimension of a phase. The input positions phase, phase + stride, … use the taps first, first + stride, …. For the
 * first position, the window of the rotated taps over the gradient starts at `start`. */
typedef struct phase {
    int64_t count, first, taps, start;
} phase;

static phase phase_of(int64_t index, int64_t stride, int64_t pad, int64_t input, int64_t filter)
{
    phase p = {.count = index < input ? (input - index + stride - 1) / stride : 0, .first = (index + pad) % stride};
    p.taps = p.first < filter ? (filter - p.first + stride - 1) / stride : 0;
    p.start = (index + pad - p.first) / stride - (p.taps - 1);
    return p;
}

static window_job phase_job(const mr_conv *v, phase y, phase x)
{
    window_job job = {.height = v->out_height,
                      .width = v->out_width,
                      .channels = v->out_channels,
                      .top = y.start,
                      .left = x.start,
                      .stride_y = 1,
                      .stride_x = 1,
                      .window_y = y.taps,
                      .window_x = x.taps,
                      .batch = v->batch,
                      .rows = y.count,
                      .columns = x.count,
                      .out_channels = v->in_channels};
    job.image_size = v->in_height * v->in_width * v->in_channels;
    job.row_stride = v->stride_y * v->in_width * v->in_channels;
    job.column_stride = v->stride_x * v->in_channels;
    window_plan(&job);
    return job;
}

/* Number of phases that contain a position of the input; the stride can be much larger. */
static int64_t phase_count(int64_t stride, int64_t input)
{
    return MR_MIN(stride, input);
}

static bool is_empty(phase y, phase x)
{
    return y.count == 0 || x.count == 0 || y.taps == 0 || x.taps == 0;
}

int64_t mr_conv_backward_input_scratch(const mr_conv *v, int threads)
{
    if (mr_conv_is_pointwise(v)) return mr_conv_pointwise_input_scratch(v, threads);
    int64_t slot = 0;
    for (int64_t py = 0; py < phase_count(v->stride_y, v->in_height); py++)
        for (int64_t px = 0; px < phase_count(v->stride_x, v->in_width); px++) {
            phase y = phase_of(py, v->stride_y, v->pad_top, v->in_height, v->filter_height);
            phase x = phase_of(px, v->stride_x, v->pad_left, v->in_width, v->filter_width);
            if (is_empty(y, x)) continue;
            window_job job = phase_job(v, y, x);
            slot = MR_MAX(slot, window_slot_size(&job));
        }
    int64_t depth = v->filter_height * v->filter_width * v->out_channels;
    int64_t direct = mr_panels_size(depth, v->in_channels) + (threads + 1) * slot;
    if (mr_conv_has_patches(v, MR_CONV_INPUT)) direct = mr_conv_patches_scratch(v, MR_CONV_INPUT, threads);
    return mr_winograd_has_input(v) ? MR_MAX(direct, mr_winograd_input_scratch(v, threads)) : direct;
}

/* The taps of a phase, rotated by 180 degrees, with in and out channels exchanged. */
static void rotate_filter(const mr_conv *v, phase y, phase x, const float *filter, float *panels)
{
    for (int64_t i = 0; i < v->in_channels; i += 16)
        for (int64_t ty = y.taps - 1; ty >= 0; ty--)
            for (int64_t tx = x.taps - 1; tx >= 0; tx--) {
                int64_t fy = y.first + ty * v->stride_y, fx = x.first + tx * v->stride_x;
                const float *tap = filter + ((fy * v->filter_width + fx) * v->in_channels + i) * v->out_channels;
                mr_panels_pack(panels, tap, v->out_channels, MR_MIN(16, v->in_channels - i), 1, v->out_channels);
                panels += v->out_channels * 16;
            }
}

void mr_conv_backward_input(const mr_conv *v, const float *filter, const float *gradient, float *input_gradient,
                            mr_conv_scratch scratch, mr_pool *pool)
{
    if (mr_conv_is_pointwise(v)) {
        mr_conv_pointwise_input(v, filter, gradient, input_gradient, scratch, pool);
        return;
    }
    if (mr_winograd_has_input(v) && mr_winograd_backward_input(v, filter, gradient, input_gradient, scratch, pool))
        return;
    if (mr_conv_has_patches(v, MR_CONV_INPUT)) {
        mr_conv_patches(v, MR_CONV_INPUT, nullptr, filter, gradient, input_gradient, scratch, pool);
        return;
    }
    bool covers_input = v->stride_y <= v->filter_height && v->stride_x <= v->filter_width;
    int64_t depth = v->filter_height * v->filter_width * v->out_channels;
    float *frames = scratch.floats + mr_panels_size(depth, v->in_channels);
    if (!covers_input) /* some positions have no tap */
        memset(input_gradient, 0,
               (size_t)(v->batch * v->in_height * v->in_width * v->in_channels) * sizeof *input_gradient);
    for (int64_t py = 0; py < phase_count(v->stride_y, v->in_height); py++)
        for (int64_t px = 0; px < phase_count(v->stride_x, v->in_width); px++) {
            phase y = phase_of(py, v->stride_y, v->pad_top, v->in_height, v->filter_height);
            phase x = phase_of(px, v->stride_x, v->pad_left, v->in_width, v->filter_width);
            if (is_empty(y, x)) continue;
            window_job job = phase_job(v, y, x);
            mr_slots slots;
            rotate_filter(v, y, x, filter, scratch.floats);
            mr_slots_init(&slots, frames, window_slot_size(&job), scratch.threads + 1);
            job.image = gradient;
            job.target = input_gradient + (py * v->in_width + px) * v->in_channels;
            job.panels = scratch.floats;
            job.slots = &slots;
            window_run(&job, pool);
        }
}

/* ---- The gradient with respect to the filter ---- */

typedef struct filter_job {
    const mr_conv *conv;
    const float *input, *gradient;
    float *partials; /* [groups][depth * out_channels] */
    int64_t groups, row_block, row_blocks;
    bool framed;
    int64_t frame_size, gradient_size; /* floats in a slot */
    mr_slots *slots;
} filter_job;

static filter_job filter_plan(const mr_conv *v)
{
    filter_job job = {.conv = v};
    constexpr int64_t PIXELS = 128, GROUPS_MAX = 8;
    job.row_block = MR_MAX(1, MR_MIN(v->out_height, (PIXELS + v->out_width - 1) / v->out_width));
    job.row_blocks = (v->out_height + job.row_block - 1) / job.row_block;
    job.groups = MR_MIN(GROUPS_MAX, v->batch * job.row_blocks);
    int64_t bottom = (v->out_height - 1) * v->stride_y + v->filter_height - v->pad_top;
    int64_t right = (v->out_width - 1) * v->stride_x + v->filter_width - v->pad_left;
    job.framed = v->pad_top > 0 || v->pad_left > 0 || bottom > v->in_height || right > v->in_width;
    int64_t rows = (job.row_block - 1) * v->stride_y + v->filter_height;
    int64_t columns = (v->out_width - 1) * v->stride_x + v->filter_width;
    job.frame_size = job.framed ? round_up(rows * columns * v->in_channels) : 0;
    job.gradient_size = v->out_channels % 16 ? job.row_block * v->out_width * round_up(v->out_channels) : 0;
    return job;
}

/* Adds one block of output rows to a partial sum. source is the input under the block's first window. */
static void filter_tiles(const filter_job *job, const float *source, int64_t source_columns, const float *gradient,
                         int64_t gradient_step, int64_t rows, float *partial, bool accumulate)
{
    const mr_conv *v = job->conv;
    const int vectors_max = mr_tile_vectors_max(false);
    int64_t run = v->filter_width * v->in_channels; /* contiguous in the input and in the filter */
    mr_tile tile = {.a_row = 1, .a_step = v->stride_x * v->in_channels, .b_step = gradient_step, .b_next = 16};
    tile.a_segment = v->stride_y * source_columns * v->in_channels;
    tile.length = v->out_width;
    tile.segments = rows;
    tile.c_row = v->out_channels;
    tile.accumulate = accumulate;
    for (int64_t o = 0; o < v->out_channels; o += tile.vectors * 16) {
        tile.vectors = mr_tile_vectors(v->out_channels - o, vectors_max);
        tile.columns = (int)MR_MIN(tile.vectors * 16, v->out_channels - o);
        tile.b = gradient + o;
        int rows_max = mr_tile_rows_max(tile.vectors);
        int64_t tiles = (run + rows_max - 1) / rows_max;
        for (int64_t fy = 0; fy < v->filter_height; fy++)
            for (int64_t t = 0; t < tiles; t++) {
                int64_t from = run * t / tiles, to = run * (t + 1) / tiles;
                tile.rows = (int)(to - from);
                assert(tile.rows >= 1 && tile.rows <= rows_max);
                tile.a = source + fy * source_columns * v->in_channels + from;
                tile.c = partial + (fy * run + from) * v->out_channels + o;
                mr_tile_run(&tile);
            }
    }
}

static void filter_groups(void *context, int64_t begin, int64_t end)
{
    const filter_job *job = context;
    const mr_conv *v = job->conv;
    int64_t blocks = v->batch * job->row_blocks, columns = (v->out_width - 1) * v->stride_x + v->filter_width;
    int slot;
    float *frame = mr_slot_acquire(job->slots, &slot), *spread = frame + job->frame_size;
    for (int64_t group = begin; group < end; group++) {
        float *partial = job->partials + group * filter_depth(v) * v->out_channels;
        int64_t first = blocks * group / job->groups, last = blocks * (group + 1) / job->groups;
        for (int64_t block = first; block < last; block++) {
            int64_t n = block / job->row_blocks, row = block % job->row_blocks * job->row_block;
            int64_t rows = MR_MIN(job->row_block, v->out_height - row), top = row * v->stride_y - v->pad_top;
            const float *image = job->input + n * v->in_height * v->in_width * v->in_channels;
            const float *gradient = job->gradient + (n * v->out_height + row) * v->out_width * v->out_channels;
            int64_t gradient_step = v->out_channels;
            if (job->gradient_size > 0) { /* channels padded to complete vectors */
                gradient_step = round_up(v->out_channels);
                for (int64_t p = 0; p < rows * v->out_width; p++) {
                    float *to = spread + p * gradient_step;
                    memcpy(to, gradient + p * v->out_channels, (size_t)v->out_channels * sizeof *to);
                    memset(to + v->out_channels, 0, (size_t)(gradient_step - v->out_channels) * sizeof *to);
                }
                gradient = spread;
            }
            if (job->framed) {
                frame_copy(frame, image, v->in_height, v->in_width, v->in_channels, top,
                           (rows - 1) * v->stride_y + v->filter_height, -v->pad_left, columns);
                filter_tiles(job, frame, columns, gradient, gradient_step, rows, partial, block > first);
            } else {
                filter_tiles(job, image + top * v->in_width * v->in_channels, v->in_width, gradient, gradient_step,
                             rows, partial, block > first);
            }
        }
    }
    mr_slot_release(job->slots, slot);
}

typedef struct merge_job {
    const float *partials;
    float *target;
    int64_t size, groups;
} merge_job;

static void merge_pieces(void *context, int64_t begin, int64_t end)
{
    const merge_job *job = context;
    constexpr int64_t BLOCK = 256;
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t count = MR_MIN(BLOCK, end - at);
        float *target = job->target + at;
        memcpy(target, job->partials + at, (size_t)count * sizeof *target);
        for (int64_t g = 1; g < job->groups; g++) {
            const float *partial = job->partials + g * job->size + at;
            for (int64_t i = 0; i < count; i++) target[i] += partial[i];
        }
    }
}

int64_t mr_conv_backward_filter_scratch(const mr_conv *v, int threads)
{
    if (mr_conv_pointwise_has_filter(v)) return mr_conv_pointwise_filter_scratch(v, threads);
    filter_job job = filter_plan(v);
    int64_t partials = job.groups > 1 ? job.groups * filter_depth(v) * v->out_channels : 0;
    int64_t direct = round_up(partials) + (threads + 1) * (job.frame_size + job.gradient_size);
    if (mr_conv_has_patches(v, MR_CONV_FILTER)) direct = mr_conv_patches_scratch(v, MR_CONV_FILTER, threads);
    return mr_winograd_has_filter(v) ? MR_MAX(direct, mr_winograd_filter_scratch(v, threads)) : direct;
}

void mr_conv_backward_filter(const mr_conv *v, const float *input, const float *gradient, float *filter_gradient,
                             mr_conv_scratch scratch, mr_pool *pool)
{
    if (mr_conv_pointwise_has_filter(v)) {
        mr_conv_pointwise_filter(v, input, gradient, filter_gradient, scratch, pool);
        return;
    }
    if (mr_winograd_has_filter(v) && mr_winograd_backward_filter(v, input, gradient, filter_gradient, scratch, pool))
        return;
    if (mr_conv_has_patches(v, MR_CONV_FILTER)) {
        mr_conv_patches(v, MR_CONV_FILTER, input, nullptr, gradient, filter_gradient, scratch, pool);
        return;
    }
    filter_job job = filter_plan(v);
    int64_t size = filter_depth(v) * v->out_channels, partials = job.groups > 1 ? job.groups * size : 0;
    mr_slots slots;
    mr_slots_init(&slots, scratch.floats + round_up(partials), job.frame_size + job.gradient_size, scratch.threads + 1);
    job.input = input;
    job.gradient = gradient;
    job.partials = partials > 0 ? scratch.floats : filter_gradient;
    job.slots = &slots;
    mr_pool_for(pool, job.groups, 1, filter_groups, &job);
    if (partials == 0) return;
    merge_job merge = {scratch.floats, filter_gradient, size, job.groups};
    mr_pool_for(pool, size, 4096, merge_pieces, &merge);
}
