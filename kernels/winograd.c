/* Winograd's method for the forward convolution and the gradient with respect to the input.
 *
 * Both are described as a convolution with stride 1. With a stride of 2, the pixels of each of the four parities
 * (phases) are the pixels of an image of half the size. A forward convolution sums over the phases of its input as if
 * they were channels, and the gradient produces the phases of its target as if they were channels. In each phase a
 * filter has every second tap.
 *
 * There are three orders, which depend on the sizes alone:
 * - A block of tiles is transformed, multiplied and transformed back while it is in a cache. Blocks are divided among
 *   the threads.
 * - If the transformed filter is larger than a cache, there is one block at a time, and its steps are divided among the
 *   threads.
 * - If it is also larger than all transformed inputs, these are kept instead. Each thread transforms some columns of
 *   the filter and multiplies all tiles with them. */
#include "kernels/winograd.h"
#include "kernels/gemm.h"
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

constexpr int POINTS = MR_WINOGRAD_POINTS;
constexpr int64_t LANES = 32; /* columns of the product that are multiplied at a time */

/* A convolution as this file computes it. */
typedef struct window {
    int64_t batch;
    int64_t height, width, channels;             /* of the source */
    int64_t in_step;                             /* 1, or 2: the source has phases */
    int64_t top, left;                           /* position of the first window in the source; may be negative */
    int64_t out_height, out_width, out_channels; /* of the target */
    int64_t out_step;                            /* 1, or 2: the target has phases */
    int64_t rows, columns;                       /* number of windows */
    int taps, size;                              /* of a tile, along one dimension: taps + size = 7 */
    int64_t phase_depth, depth;                  /* channels of a phase in complete vectors; of all phases */
    int64_t lanes, panels;                       /* channels of all phases of the target; vectors */
    int64_t tile_rows, tile_columns, tiles;
    int64_t block;     /* tiles that are transformed at a time */
    bool is_shared;    /* one block at a time, of all threads */
    bool keeps_inputs; /* the only block */
    bool is_input;
} window;

static int64_t round_up(int64_t value)
{
    return (value + 15) / 16 * 16;
}

static int64_t ceiling(int64_t count, int64_t of)
{
    return (count + of - 1) / of;
}

/* Distance of the transformed inputs of two tiles: not a multiple of 4 KiB, so that rows are in different sets of a
 * cache. */
static int64_t tile_stride(const window *w)
{
    return w->depth + 16;
}

static void plan(window *w)
{
    constexpr int64_t BLOCK_SIZE = 1 << 17; /* numbers */
    constexpr int64_t FILTER_MAX = 1 << 22;
    w->size = 7 - w->taps;
    w->phase_depth = round_up(w->channels);
    w->depth = w->in_step * w->in_step * w->phase_depth;
    w->lanes = w->out_step * w->out_step * w->out_channels;
    w->panels = ceiling(w->lanes, 16);
    w->tile_rows = ceiling(w->rows, w->size);
    w->tile_columns = ceiling(w->columns, w->size);
    w->tiles = w->batch * w->tile_rows * w->tile_columns;
    w->is_shared = POINTS * w->depth * w->panels * 16 > FILTER_MAX;
    const int64_t step = w->lanes > 16 ? 14 : 28; /* rows of a tile of the product */
    const int64_t most = w->is_shared ? 16 * BLOCK_SIZE : BLOCK_SIZE;
    w->block = MR_MAX(1, MR_MIN(most / (POINTS * tile_stride(w)) / step, 64)) * step;
    if (w->is_shared) w->block = MR_MAX(8 * step, w->block);
    w->keeps_inputs = w->is_shared && w->tiles <= w->lanes;
    const int64_t blocks = w->keeps_inputs ? 1 : ceiling(w->tiles, w->block);
    w->block = ceiling(w->tiles, blocks);
}

static window forward_window(const mr_conv *v)
{
    window w = {.batch = v->batch,
                .height = v->in_height,
                .width = v->in_width,
                .channels = v->in_channels,
                .in_step = v->stride_y,
                .top = -v->pad_top,
                .left = -v->pad_left,
                .out_height = v->out_height,
                .out_width = v->out_width,
                .out_channels = v->out_channels,
                .out_step = 1,
                .rows = v->out_height,
                .columns = v->out_width,
                .taps = (int)ceiling(v->filter_height, v->stride_y)};
    plan(&w);
    return w;
}

/* The first output that a window of the gradient uses, of those for the first pixels. Pixel 2 q + p of the input uses
 * output i through tap 2 (q - i) + p + pad. */
static int64_t first_output(int64_t stride, int64_t pad, int64_t filter)
{
    return stride == 1 ? pad - (filter - 1) : -((filter - 1 - pad) / 2);
}

static window input_window(const mr_conv *v)
{
    window w = {.batch = v->batch,
                .height = v->out_height,
                .width = v->out_width,
                .channels = v->out_channels,
                .in_step = 1,
                .top = first_output(v->stride_y, v->pad_top, v->filter_height),
                .left = first_output(v->stride_x, v->pad_left, v->filter_width),
                .out_height = v->in_height,
                .out_width = v->in_width,
                .out_channels = v->in_channels,
                .out_step = v->stride_y,
                .rows = ceiling(v->in_height, v->stride_y),
                .columns = ceiling(v->in_width, v->stride_x),
                .taps = (int)ceiling(v->filter_height, v->stride_y),
                .is_input = true};
    plan(&w);
    return w;
}

/* ---- The filter ---- */

typedef struct filter_job {
    const mr_conv *conv;
    const window *window;
    const float *filter;
    float *panels; /* [panel][point][depth][16]; or null */
    mr_slots *slots;
} filter_job;

/* Numbers of a transformed panel. */
static int64_t panel_size(const window *w)
{
    return POINTS * w->depth * 16;
}

/* The tap of the filter along one dimension that is tap `tap` of a phase; -1: none. */
static int64_t tap_of(int64_t tap, int64_t phase, int64_t step, int64_t pad, int64_t first, int64_t filter,
                      bool is_input)
{
    const int64_t found = is_input ? phase + pad - step * (first + tap) : step * tap + phase;
    return found >= 0 && found < filter ? found : -1;
}

/* Where a tap's weights begin; null: the phase has no such tap. */
static const float *tap_weights(const filter_job *job, int64_t y, int64_t x, int64_t phase)
{
    const mr_conv *v = job->conv;
    const window *w = job->window;
    const int64_t step = v->stride_y;
    const int64_t fy = tap_of(y, phase / step, step, v->pad_top, w->top, v->filter_height, w->is_input);
    const int64_t fx = tap_of(x, phase % step, step, v->pad_left, w->left, v->filter_width, w->is_input);
    return fy < 0 || fx < 0 ? nullptr : job->filter + (fy * v->filter_width + fx) * v->in_channels * v->out_channels;
}

/* One tap of 16 lanes: to[depth][16]. */
static void pack_forward(const filter_job *job, int64_t y, int64_t x, int64_t lane, float *to)
{
    const window *w = job->window;
    const int64_t outs = w->out_channels;
    for (int64_t phase = 0; phase < w->in_step * w->in_step; phase++, to += w->phase_depth * 16) {
        const float *weights = tap_weights(job, y, x, phase);
        const int64_t rows = weights ? w->channels : 0;
        if (weights) mr_panels_pack(to, weights + lane, rows, MR_MIN(16, outs - lane), outs, 1);
        memset(to + rows * 16, 0, (size_t)((w->phase_depth - rows) * 16) * sizeof *to);
    }
}

static void pack_input(const filter_job *job, int64_t y, int64_t x, int64_t lane, float *to)
{
    const window *w = job->window;
    const int64_t ins = w->out_channels, depth = w->channels;
    memset(to + depth * 16, 0, (size_t)((w->depth - depth) * 16) * sizeof *to);
    if (ins % 16 == 0 || w->out_step == 1) {
        const float *weights = tap_weights(job, y, x, lane / ins);
        if (weights)
            mr_panels_pack(to, weights + lane % ins * depth, depth, MR_MIN(16, ins - lane % ins), 1, depth);
        else
            memset(to, 0, (size_t)(depth * 16) * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < 16; i++) {
        const float *weights = lane + i < w->lanes ? tap_weights(job, y, x, (lane + i) / ins) : nullptr;
        for (int64_t d = 0; d < depth; d++) to[d * 16 + i] = weights ? weights[(lane + i) % ins * depth + d] : 0;
    }
}

static int64_t filter_slot(const window *w)
{
    return w->taps * w->taps * w->depth * 16;
}

/* taps: filter_slot() numbers of scratch memory. */
static void transform_panel(const filter_job *job, int64_t panel, float *taps, float *to)
{
    const window *w = job->window;
    float *tap = taps;
    for (int64_t y = 0; y < w->taps; y++)
        for (int64_t x = 0; x < w->taps; x++, tap += w->depth * 16)
            (w->is_input ? pack_input : pack_forward)(job, y, x, panel * 16, tap);
    mr_winograd_filter(w->taps, taps, w->depth, to);
}

static void filter_panels(void *context, int64_t begin, int64_t end)
{
    const filter_job *job = context;
    int slot;
    float *taps = mr_slot_acquire(job->slots, &slot);
    for (int64_t panel = begin; panel < end; panel++)
        transform_panel(job, panel, taps, job->panels + panel * panel_size(job->window));
    mr_slot_release(job->slots, slot);
}

/* ---- Tiles ---- */

typedef struct tiles_job {
    const window *window;
    const filter_job *filter;
    mr_winograd_tiles source;
    float *target;
    float *inputs;      /* is_shared: of the block; otherwise each slot begins with those of a block */
    int64_t begin, end; /* is_shared: the tiles of the block */
    mr_slots *slots;
    atomic_bool is_infinite; /* or NaN */
} tiles_job;

/* Numbers of the transformed inputs of a block, and of the products for LANES columns. */
static int64_t inputs_size(const window *w)
{
    return POINTS * w->block * tile_stride(w);
}

/* Tiles that are multiplied at a time. */
static int64_t product_tiles(const window *w)
{
    return w->is_shared ? MR_MIN(w->keeps_inputs ? 56 : 28, w->block) : w->block;
}

static int64_t products_size(const window *w)
{
    return POINTS * product_tiles(w) * LANES;
}

static int64_t tiles_slot(const window *w)
{
    if (w->keeps_inputs) return products_size(w) + LANES / 16 * panel_size(w) + round_up(filter_slot(w));
    return products_size(w) + (w->is_shared ? 0 : inputs_size(w));
}

/* Multiplies `count` tiles by `panels` panels. */
static void multiply(const window *w, const float *inputs, int64_t count, const float *filter, int64_t panels,
                     float *products)
{
    mr_tile tile = {.a_row = tile_stride(w), .a_step = 1, .b_step = 16, .b_next = panel_size(w)};
    tile.c_row = LANES;
    tile.length = w->depth;
    tile.segments = 1;
    const int vectors_max = mr_tile_vectors_max(false);
    for (int64_t point = 0; point < POINTS; point++)
        for (int64_t p = 0; p < panels; p += tile.vectors) {
            tile.vectors = mr_tile_vectors((panels - p) * 16, vectors_max);
            tile.columns = tile.vectors * 16;
            const int64_t rows_max = mr_tile_rows_max(tile.vectors), parts = ceiling(count, rows_max);
            tile.b = filter + p * panel_size(w) + point * w->depth * 16;
            for (int64_t i = 0; i < parts; i++) {
                const int64_t from = count * i / parts, to = count * (i + 1) / parts;
                tile.rows = (int)(to - from);
                assert(tile.rows >= 1 && tile.rows <= rows_max);
                tile.a = inputs + (point * w->block + from) * tile_stride(w);
                tile.c = products + (point * count + from) * LANES + p * 16;
                mr_tile_run(&tile);
            }
        }
}

/* Stores 16 channels of several phases, of which no phase has complete vectors. */
static void store_phases(const window *w, const float *square, float *image, int64_t ty, int64_t tx, int64_t lane)
{
    const int64_t side = w->size;
    for (int64_t l = lane; l < MR_MIN(lane + 16, w->lanes); l++) {
        const int64_t phase = l / w->out_channels, channel = l % w->out_channels;
        for (int64_t i = 0; i < side * side; i++) {
            const int64_t y = (ty * side + i / side) * w->out_step + phase / w->out_step;
            const int64_t x = (tx * side + i % side) * w->out_step + phase % w->out_step;
            if (y < w->out_height && x < w->out_width)
                image[(y * w->out_width + x) * w->out_channels + channel] = square[i * 16 + l - lane];
        }
    }
}

/* Transforms 16 columns of a tile's products into outputs. */
static void transform_output(const tiles_job *job, int64_t tile, const float *products, int64_t point_stride,
                             int64_t lane, float zeros[16])
{
    const window *w = job->window;
    const int64_t n = tile / (w->tile_rows * w->tile_columns), ty = tile / w->tile_columns % w->tile_rows;
    const int64_t tx = tile % w->tile_columns, step = w->out_step;
    float *image = job->target + n * w->out_height * w->out_width * w->out_channels;
    mr_winograd_square s = {.size = w->size, .from = products, .point_stride = point_stride};
    if (step > 1 && w->out_channels % 16 != 0) {
        float square[16 * 16];
        s.to = square;
        s.row_stride = w->size * 16;
        s.column_stride = 16;
        s.rows = s.columns = w->size;
        s.channels = 16;
        mr_winograd_output(&s, zeros);
        store_phases(w, square, image, ty, tx, lane);
        return;
    }
    const int64_t phase = lane / w->out_channels, channel = lane % w->out_channels;
    const int64_t y = ty * w->size * step + phase / step, x = tx * w->size * step + phase % step;
    s.to = image + (y * w->out_width + x) * w->out_channels + channel;
    s.row_stride = step * w->out_width * w->out_channels;
    s.column_stride = step * w->out_channels;
    s.rows = ceiling(w->out_height - y, step);
    s.columns = ceiling(w->out_width - x, step);
    s.channels = w->out_channels - channel;
    mr_winograd_output(&s, zeros);
}

/* Panels that are multiplied with `panel`, the first of them. */
static int64_t panels_from(const window *w, int64_t panel)
{
    return MR_MIN(LANES / 16, w->panels - panel);
}

/* Computes the outputs of tiles [begin, end), whose inputs are transformed, for panels from `panel` on, which begin at
 * `filter`. */
static void compute_columns(tiles_job *job, const float *inputs, int64_t begin, int64_t end, int64_t panel,
                            const float *filter, float *products)
{
    const window *w = job->window;
    const int64_t count = end - begin;
    float zeros[16] = {0}, sum = 0;
    assert(count >= 1 && count <= product_tiles(w));
    multiply(w, inputs, count, filter, panels_from(w, panel), products);
    for (int64_t tile = begin; tile < end; tile++)
        for (int64_t p = panel; p < panel + panels_from(w, panel); p++)
            transform_output(job, tile, products + (tile - begin) * LANES + (p - panel) * 16, count * LANES, p * 16,
                             zeros);
    for (int i = 0; i < 16; i++) sum += zeros[i];
    if (sum != 0) atomic_store_explicit(&job->is_infinite, true, memory_order_relaxed);
}

static void compute_blocks(void *context, int64_t begin, int64_t end)
{
    tiles_job *job = context;
    const window *w = job->window;
    int slot;
    float *inputs = mr_slot_acquire(job->slots, &slot), *products = inputs + inputs_size(w);
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block * w->block, last = MR_MIN(w->tiles, first + w->block);
        for (int64_t tile = first; tile < last; tile++)
            mr_winograd_tile(&job->source, tile, inputs + (tile - first) * tile_stride(w), w->block * tile_stride(w));
        for (int64_t panel = 0; panel < w->panels; panel += LANES / 16)
            compute_columns(job, inputs, first, last, panel, job->filter->panels + panel * panel_size(w), products);
    }
    mr_slot_release(job->slots, slot);
}

static void transform_shared(void *context, int64_t begin, int64_t end)
{
    const tiles_job *job = context;
    const window *w = job->window;
    for (int64_t i = begin; i < end; i++)
        mr_winograd_tile(&job->source, job->begin + i, job->inputs + i * tile_stride(w), w->block * tile_stride(w));
}

/* Parts of a shared block that are multiplied at a time. */
static int64_t part_count(const tiles_job *job)
{
    return ceiling(job->end - job->begin, product_tiles(job->window));
}

static void compute_part(tiles_job *job, int64_t part, int64_t panel, const float *filter, float *products)
{
    const int64_t parts = part_count(job), count = job->end - job->begin;
    const int64_t first = count * part / parts, last = count * (part + 1) / parts;
    compute_columns(job, job->inputs + first * tile_stride(job->window), job->begin + first, job->begin + last, panel,
                    filter, products);
}

static void compute_shared(void *context, int64_t begin, int64_t end)
{
    tiles_job *job = context;
    const int64_t parts = part_count(job);
    int slot;
    float *products = mr_slot_acquire(job->slots, &slot);
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t panel = piece / parts * (LANES / 16);
        compute_part(job, piece % parts, panel, job->filter->panels + panel * panel_size(job->window), products);
    }
    mr_slot_release(job->slots, slot);
}

/* All tiles, with the panels of pieces [begin, end). */
static void compute_kept(void *context, int64_t begin, int64_t end)
{
    tiles_job *job = context;
    const window *w = job->window;
    int slot;
    float *products = mr_slot_acquire(job->slots, &slot);
    float *filter = products + products_size(w), *taps = filter + LANES / 16 * panel_size(w);
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t panel = piece * (LANES / 16);
        for (int64_t p = 0; p < panels_from(w, panel); p++)
            transform_panel(job->filter, panel + p, taps, filter + p * panel_size(w));
        for (int64_t part = 0; part < part_count(job); part++) compute_part(job, part, panel, filter, products);
    }
    mr_slot_release(job->slots, slot);
}

/* Threads that work at the same time, at most, and one more. */
static int slot_count(const window *w, int threads)
{
    return w->keeps_inputs ? (int)MR_MIN(threads + 1, ceiling(w->panels, LANES / 16) + 1) : threads + 1;
}

static int64_t panels_size(const window *w)
{
    return w->keeps_inputs ? 0 : w->panels * panel_size(w);
}

static int64_t scratch_size(const window *w, int threads)
{
    const int64_t slot = MR_MAX(round_up(filter_slot(w)), tiles_slot(w));
    return panels_size(w) + w->phase_depth + (w->is_shared ? inputs_size(w) : 0) + slot_count(w, threads) * slot;
}

static void run_shared(tiles_job *job, mr_pool *pool)
{
    const window *w = job->window;
    const int64_t pieces = ceiling(w->panels, LANES / 16);
    for (job->begin = 0; job->begin < w->tiles; job->begin = job->end) {
        job->end = MR_MIN(w->tiles, job->begin + w->block);
        mr_pool_for(pool, job->end - job->begin, MR_MAX(1, 2048 / w->depth), transform_shared, job);
        if (w->keeps_inputs)
            mr_pool_for(pool, pieces, 1, compute_kept, job);
        else
            mr_pool_for(pool, part_count(job) * pieces, 1, compute_shared, job);
    }
}

static bool run(const mr_conv *v, const window *w, const float *source, const float *filter, float *target,
                mr_conv_scratch scratch, mr_pool *pool)
{
    float *panels = scratch.floats, *zeros = panels + panels_size(w);
    float *inputs = zeros + w->phase_depth, *slots_floats = inputs + (w->is_shared ? inputs_size(w) : 0);
    const int slot_limit = slot_count(w, scratch.threads);
    mr_slots slots;
    memset(zeros, 0, (size_t)w->phase_depth * sizeof *zeros);
    filter_job to_transform = {v, w, filter, panels, &slots};
    if (!w->keeps_inputs) {
        mr_slots_init(&slots, slots_floats, round_up(filter_slot(w)), slot_limit);
        mr_pool_for(pool, w->panels, MR_MAX(1, 2048 / w->depth), filter_panels, &to_transform);
    }
    mr_slots_init(&slots, slots_floats, tiles_slot(w), slot_limit);
    tiles_job job = {.window = w,
                     .filter = &to_transform,
                     .source = {source, zeros, w->height, w->width, w->channels, w->in_step, w->top, w->left, w->size,
                                w->tile_rows, w->tile_columns},
                     .target = target,
                     .inputs = inputs,
                     .slots = &slots};
    if (w->is_shared)
        run_shared(&job, pool);
    else
        mr_pool_for(pool, ceiling(w->tiles, w->block), 1, compute_blocks, &job);
    return !atomic_load_explicit(&job.is_infinite, memory_order_relaxed);
}

/* ---- Where the method is used ---- */

bool mr_winograd_is_possible(const mr_conv *v)
{
    if (v->filter_height != v->filter_width || v->stride_y != v->stride_x || v->stride_y > 2) return false;
    const int64_t taps = ceiling(v->filter_height, v->stride_y);
    return v->stride_y == 1 ? taps == 3 || taps == 5 : taps == 3;
}

/* Estimates of the time, in steps of 16 multiplications. */
static bool is_faster(const mr_conv *v, const window *w)
{
    constexpr double INPUT = 220, OUTPUT = 180, FILTER = 120, DIRECT = 1.1, GAIN = 0.9;
    const double depth = (double)w->depth, panels = (double)w->panels, tiles = (double)w->tiles;
    const double work =
        tiles * (POINTS * depth * panels + INPUT * depth / 16 + OUTPUT * panels) + FILTER * depth * panels;
    const double window = (double)v->filter_height * (double)v->filter_width;
    const double pixels = (double)v->batch * (double)v->out_height * (double)v->out_width;
    const int64_t columns = w->is_input ? v->in_channels : v->out_channels;
    const double channels = (double)(w->is_input ? v->out_channels : v->in_channels);
    return work < GAIN * DIRECT * pixels * window * channels * (double)ceiling(columns, 16);
}

static bool is_used(const mr_conv *v, const window *w)
{
    constexpr double MEMORY_MAX = 1 << 26; /* numbers of the transformed filter */
    return w->channels >= 16 && POINTS * (double)w->depth * (double)w->panels * 16 <= MEMORY_MAX && is_faster(v, w);
}

bool mr_winograd_has_forward(const mr_conv *v)
{
    if (!mr_winograd_is_possible(v)) return false;
    const window w = forward_window(v);
    return is_used(v, &w);
}

bool mr_winograd_has_input(const mr_conv *v)
{
    if (!mr_winograd_is_possible(v)) return false;
    const window w = input_window(v);
    return is_used(v, &w);
}

int64_t mr_winograd_forward_scratch(const mr_conv *v, int threads)
{
    const window w = forward_window(v);
    return scratch_size(&w, threads);
}

bool mr_winograd_forward(const mr_conv *v, const float *input, const float *filter, float *output,
                         mr_conv_scratch scratch, mr_pool *pool)
{
    const window w = forward_window(v);
    return run(v, &w, input, filter, output, scratch, pool);
}

int64_t mr_winograd_input_scratch(const mr_conv *v, int threads)
{
    const window w = input_window(v);
    return scratch_size(&w, threads);
}

bool mr_winograd_backward_input(const mr_conv *v, const float *filter, const float *gradient, float *input_gradient,
                                mr_conv_scratch scratch, mr_pool *pool)
{
    const window w = input_window(v);
    return run(v, &w, gradient, filter, input_gradient, scratch, pool);
}
