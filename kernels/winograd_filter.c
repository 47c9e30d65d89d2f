/* Winograd's method for the gradient with respect to the filter: the transformed inputs of a tile times the transformed
 * gradient of its outputs, summed over the tiles at each of the 36 points, are the transformed gradient.
 *
 * Tiles are processed in blocks. A small filter's gradient is computed by several groups of blocks at once, whose
 * partial sums are added in order. For a large one there is one block at a time: the threads multiply at different
 * points, so that what a point has of the block stays in a second cache, and transform the products afterwards. Many
 * products are computed and transformed for some of the input's channels after the other. All of this depends on the
 * sizes alone. */
#include "kernels/gemm.h"
#include "kernels/winograd.h"
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

constexpr int POINTS = MR_WINOGRAD_POINTS;
constexpr int64_t ROWS = 28, COLUMNS = 64; /* of a group's part: channels of the input and the output */
constexpr int64_t POINT_COLUMNS = 128;     /* channels of the output that a thread multiplies at a point */
constexpr int64_t GROUPS_MAX = 8;
constexpr int64_t SUM = 48; /* tiles: longer sums are added up from parts, which has smaller rounding errors */

typedef struct plan {
    const mr_conv *conv;
    int taps, size;             /* of a tile, along one dimension */
    int64_t phase_depth, depth; /* channels of a phase in complete vectors; of all phases */
    int64_t columns;            /* channels of the output in complete vectors */
    int64_t tile_rows, tile_columns, tiles;
    int64_t block, blocks; /* tiles in a block */
    int64_t groups;        /* 0: one block at a time, of all threads */
    int64_t slices;        /* of the input's channels, of such a block */
} plan;

/* Transformed products of some channels: [point][row][column], points `point_stride` apart. */
typedef struct products {
    float *numbers;
    int64_t row_stride, point_stride;
    int64_t row, rows, column, columns; /* the channels */
} products;

static int64_t round_up(int64_t value)
{
    return (value + 15) / 16 * 16;
}

static int64_t ceiling(int64_t count, int64_t of)
{
    return (count + of - 1) / of;
}

/* Distances of the transformed inputs and gradients of two tiles, as in winograd.c. */
static int64_t input_stride(const plan *p)
{
    return p->depth + 16;
}

static int64_t gradient_stride(const plan *p)
{
    return p->columns + 16;
}

static plan make_plan(const mr_conv *v)
{
    constexpr int64_t SMALL = 96 * 96;      /* numbers at a point */
    constexpr int64_t BLOCK_SIZE = 1 << 18; /* numbers of a block */
    constexpr int64_t SHARED_SIZE = 1 << 20;
    constexpr int64_t SLICE_SIZE = 1 << 20; /* products */
    plan p = {.conv = v, .taps = (int)ceiling(v->filter_height, v->stride_y)};
    p.size = 7 - p.taps;
    p.phase_depth = round_up(v->in_channels);
    p.depth = v->stride_y * v->stride_x * p.phase_depth;
    p.columns = round_up(v->out_channels);
    p.tile_rows = ceiling(v->out_height, p.size);
    p.tile_columns = ceiling(v->out_width, p.size);
    p.tiles = v->batch * p.tile_rows * p.tile_columns;
    const bool is_small = p.depth * p.columns <= SMALL;
    const int64_t tile = POINTS * (input_stride(&p) + gradient_stride(&p));
    p.block = MR_MAX(48, (is_small ? BLOCK_SIZE : SHARED_SIZE) / tile);
    p.blocks = ceiling(p.tiles, p.block);
    p.block = ceiling(p.tiles, p.blocks);
    p.blocks = ceiling(p.tiles, p.block);
    p.groups = is_small ? MR_MIN(GROUPS_MAX, p.blocks) : 0;
    p.slices = MR_MIN(p.depth, ceiling(POINTS * p.depth * p.columns, SLICE_SIZE));
    return p;
}

typedef struct filter_job {
    const plan *plan;
    mr_winograd_tiles input;
    const float *gradient, *zeros;
    float *target; /* of a group, size numbers each; or the result */
    int64_t size;
    float *inputs, *gradients; /* of a shared block */
    int64_t begin, end;        /* the tiles of a shared block */
    products products;         /* of a slice of a shared block */
    mr_slots *slots;
    atomic_bool is_infinite; /* or NaN */
} filter_job;

static int64_t inputs_size(const plan *p)
{
    return POINTS * p->block * input_stride(p);
}

static int64_t gradients_size(const plan *p)
{
    return POINTS * p->block * gradient_stride(p);
}

/* Of a shared block. Points are not a power of two apart. */
static int64_t products_size(const plan *p)
{
    return POINTS * (ceiling(p->depth, p->slices) * p->columns + 16);
}

static void transform_gradient(const filter_job *job, int64_t tile, float *to, int64_t point_stride)
{
    const plan *p = job->plan;
    const mr_conv *v = p->conv;
    const float *pixels[16];
    const int64_t n = tile / (p->tile_rows * p->tile_columns);
    const int64_t top = tile / p->tile_columns % p->tile_rows * p->size, left = tile % p->tile_columns * p->size;
    for (int64_t i = 0; i < p->size * p->size; i++) {
        const int64_t y = top + i / p->size, x = left + i % p->size;
        pixels[i] = y < v->out_height && x < v->out_width
                        ? job->gradient + ((n * v->out_height + y) * v->out_width + x) * v->out_channels
                        : job->zeros;
    }
    mr_winograd_gradient(p->size, pixels, v->out_channels, to, point_stride);
}

/* The product of `count` tiles at a point. The tiles of a sum stay in the first cache. */
static void multiply(const plan *p, const float *inputs, const float *gradients, int64_t count, int64_t point,
                     const products *to)
{
    const int vectors_max = mr_tile_vectors_max(false);
    const int64_t sums = ceiling(count, SUM);
    mr_tile tile = {.a_row = 1, .a_step = input_stride(p), .b_step = gradient_stride(p), .b_next = 16, .segments = 1};
    tile.c_row = to->row_stride;
    for (int64_t k = 0; k < sums; k++) {
        const int64_t first = point * p->block + count * k / sums;
        tile.length = count * (k + 1) / sums - count * k / sums;
        tile.accumulate = k > 0;
        for (int64_t c = 0; c < to->columns; c += tile.columns) {
            tile.vectors = mr_tile_vectors(to->columns - c, vectors_max);
            tile.columns = tile.vectors * 16;
            tile.b = gradients + first * gradient_stride(p) + to->column + c;
            const int64_t rows_max = mr_tile_rows_max(tile.vectors), parts = ceiling(to->rows, rows_max);
            for (int64_t i = 0; i < parts; i++) {
                const int64_t from = to->rows * i / parts;
                tile.rows = (int)(to->rows * (i + 1) / parts - from);
                assert(tile.rows >= 1 && tile.rows <= rows_max);
                tile.c = to->numbers + point * to->point_stride + from * to->row_stride + c;
                tile.a = inputs + first * input_stride(p) + to->row + from;
                mr_tile_run(&tile);
            }
        }
    }
}

/* Transforms rows [begin, end) of the products, and stores them or adds them to the filter's gradient. */
static bool transform_products(const plan *p, const products *from, int64_t begin, int64_t end, float *target,
                               bool accumulate)
{
    const mr_conv *v = p->conv;
    float zeros[16] = {0}, sum = 0;
    const int64_t step = v->stride_y, size = v->in_channels * v->out_channels; /* of a tap */
    mr_winograd_square s = {.size = p->taps, .point_stride = from->point_stride, .accumulate = accumulate};
    s.row_stride = step * v->filter_width * size;
    s.column_stride = step * size;
    for (int64_t r = begin; r < end; r++) {
        const int64_t phase = (from->row + r) / p->phase_depth, channel = (from->row + r) % p->phase_depth;
        const int64_t y = phase / step, x = phase % step;
        if (channel >= v->in_channels) continue;
        s.rows = ceiling(v->filter_height - y, step);
        s.columns = ceiling(v->filter_width - x, step);
        for (int64_t c = 0; c < from->columns; c += 16) {
            s.from = from->numbers + r * from->row_stride + c;
            s.to = target + (y * v->filter_width + x) * size + channel * v->out_channels + from->column + c;
            s.channels = v->out_channels - from->column - c;
            mr_winograd_output(&s, zeros);
        }
    }
    for (int i = 0; i < 16; i++) sum += zeros[i];
    return sum == 0;
}

/* Part `part` of the gradient, from a block of `count` transformed tiles. */
static void compute_part(filter_job *job, const float *inputs, const float *gradients, int64_t count, int64_t part,
                         float *numbers, float *target, bool accumulate)
{
    const plan *p = job->plan;
    const int64_t row_parts = ceiling(p->depth, ROWS), column_parts = ceiling(p->columns, COLUMNS);
    const int64_t i = part % row_parts, j = part / row_parts;
    products to = {.numbers = numbers, .row_stride = COLUMNS, .point_stride = ROWS * COLUMNS};
    to.row = p->depth * i / row_parts;
    to.rows = p->depth * (i + 1) / row_parts - to.row;
    to.column = p->columns / 16 * j / column_parts * 16;
    to.columns = p->columns / 16 * (j + 1) / column_parts * 16 - to.column;
    for (int64_t point = 0; point < POINTS; point++) multiply(p, inputs, gradients, count, point, &to);
    if (!transform_products(p, &to, 0, to.rows, target, accumulate))
        atomic_store_explicit(&job->is_infinite, true, memory_order_relaxed);
}

static int64_t part_count(const plan *p)
{
    return ceiling(p->depth, ROWS) * ceiling(p->columns, COLUMNS);
}

static void compute_groups(void *context, int64_t begin, int64_t end)
{
    filter_job *job = context;
    const plan *p = job->plan;
    int slot;
    float *products = mr_slot_acquire(job->slots, &slot), *inputs = products + POINTS * ROWS * COLUMNS;
    float *gradients = inputs + inputs_size(p);
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = p->blocks * group / p->groups, last = p->blocks * (group + 1) / p->groups;
        for (int64_t block = first; block < last; block++) {
            const int64_t tile = block * p->block, count = MR_MIN(p->block, p->tiles - tile);
            for (int64_t i = 0; i < count; i++) {
                mr_winograd_tile(&job->input, tile + i, inputs + i * input_stride(p), p->block * input_stride(p));
                transform_gradient(job, tile + i, gradients + i * gradient_stride(p), p->block * gradient_stride(p));
            }
            for (int64_t part = 0; part < part_count(p); part++)
                compute_part(job, inputs, gradients, count, part, products, job->target + group * job->size,
                             block > first);
        }
    }
    mr_slot_release(job->slots, slot);
}

static void transform_shared(void *context, int64_t begin, int64_t end)
{
    const filter_job *job = context;
    const plan *p = job->plan;
    for (int64_t i = begin; i < end; i++) {
        mr_winograd_tile(&job->input, job->begin + i, job->inputs + i * input_stride(p), p->block * input_stride(p));
        transform_gradient(job, job->begin + i, job->gradients + i * gradient_stride(p), p->block * gradient_stride(p));
    }
}

/* Each unit is a part of the columns at a point. */
static void multiply_shared(void *context, int64_t begin, int64_t end)
{
    const filter_job *job = context;
    const plan *p = job->plan;
    const int64_t parts = ceiling(p->columns, POINT_COLUMNS);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t from = p->columns / 16 * (unit % parts) / parts * 16;
        products to = job->products;
        to.column = from;
        to.columns = p->columns / 16 * (unit % parts + 1) / parts * 16 - from;
        to.numbers += from;
        multiply(p, job->inputs, job->gradients, job->end - job->begin, unit / parts, &to);
    }
}

static void transform_slice(void *context, int64_t begin, int64_t end)
{
    filter_job *job = context;
    if (!transform_products(job->plan, &job->products, begin, end, job->target, job->begin > 0))
        atomic_store_explicit(&job->is_infinite, true, memory_order_relaxed);
}

static int64_t slice_begin(const plan *p, int64_t slice)
{
    return p->depth * slice / p->slices;
}

static void compute_shared(filter_job *job, mr_pool *pool)
{
    const plan *p = job->plan;
    for (int64_t slice = 0; slice < p->slices; slice++) {
        products *to = &job->products;
        to->row = slice_begin(p, slice);
        to->rows = slice_begin(p, slice + 1) - to->row;
        to->columns = to->row_stride = p->columns;
        to->point_stride = to->rows * p->columns + 16;
        assert(to->rows >= 1 && POINTS * to->point_stride <= products_size(p));
        mr_pool_for(pool, POINTS * ceiling(p->columns, POINT_COLUMNS), 1, multiply_shared, job);
        mr_pool_for(pool, to->rows, MR_MAX(1, 256 / p->columns), transform_slice, job);
    }
}

typedef struct merge_job {
    const float *partials;
    float *target;
    int64_t size, groups;
} merge_job;

static void merge(void *context, int64_t begin, int64_t end)
{
    const merge_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        float sum = job->partials[i];
        for (int64_t group = 1; group < job->groups; group++) sum += job->partials[group * job->size + i];
        job->target[i] = sum;
    }
}

static int64_t filter_size(const mr_conv *v)
{
    return v->filter_height * v->filter_width * v->in_channels * v->out_channels;
}

static int64_t zeros_size(const plan *p)
{
    return MR_MAX(p->phase_depth, p->columns);
}

static int64_t slot_size(const plan *p)
{
    return POINTS * ROWS * COLUMNS + inputs_size(p) + gradients_size(p);
}

int64_t mr_winograd_filter_scratch(const mr_conv *v, int threads)
{
    const plan p = make_plan(v);
    if (p.groups == 0) return zeros_size(&p) + inputs_size(&p) + gradients_size(&p) + products_size(&p);
    return zeros_size(&p) + p.groups * round_up(filter_size(v)) + (threads + 1) * slot_size(&p);
}

bool mr_winograd_backward_filter(const mr_conv *v, const float *input, const float *gradient, float *filter_gradient,
                                 mr_conv_scratch scratch, mr_pool *pool)
{
    const plan p = make_plan(v);
    float *zeros = scratch.floats, *shared = zeros + zeros_size(&p);
    mr_slots slots;
    memset(zeros, 0, (size_t)zeros_size(&p) * sizeof *zeros);
    filter_job job = {.plan = &p,
                      .input = {input, zeros, v->in_height, v->in_width, v->in_channels, v->stride_y, -v->pad_top,
                                -v->pad_left, p.size, p.tile_rows, p.tile_columns},
                      .gradient = gradient,
                      .zeros = zeros,
                      .size = filter_size(v),
                      .slots = &slots};
    if (p.groups > 0) {
        job.target = p.groups > 1 ? shared : filter_gradient;
        mr_slots_init(&slots, shared + p.groups * round_up(job.size), slot_size(&p), scratch.threads + 1);
        mr_pool_for(pool, p.groups, 1, compute_groups, &job);
        merge_job to_merge = {shared, filter_gradient, job.size, p.groups};
        if (p.groups > 1) mr_pool_for(pool, job.size, 4096, merge, &to_merge);
        return !atomic_load_explicit(&job.is_infinite, memory_order_relaxed);
    }
    job.target = filter_gradient;
    job.inputs = shared;
    job.gradients = shared + inputs_size(&p);
    job.products.numbers = job.gradients + gradients_size(&p);
    for (; job.begin < p.tiles; job.begin = job.end) {
        job.end = MR_MIN(p.tiles, job.begin + p.block);
        mr_pool_for(pool, job.end - job.begin, MR_MAX(1, 1024 / (p.depth + p.columns)), transform_shared, &job);
        compute_shared(&job, pool);
    }
    return !atomic_load_explicit(&job.is_infinite, memory_order_relaxed);
}

/* Estimates of the time, in steps of 16 multiplications. The direct sum of few pixels is much more accurate. */
bool mr_winograd_has_filter(const mr_conv *v)
{
    constexpr int64_t PIXELS_MIN = 768;
    constexpr double INPUT = 220, GRADIENT = 180, OUTPUT = 200, DIRECT = 1.1, GAIN = 0.9;
    if (!mr_winograd_is_possible(v) || v->in_channels < 16) return false;
    if (v->batch * v->out_height * v->out_width < PIXELS_MIN) return false;
    const plan p = make_plan(v);
    const double depth = (double)p.depth, vectors = (double)p.columns / 16, tiles = (double)p.tiles;
    const double work = tiles * (POINTS * depth * vectors + INPUT * depth / 16 + GRADIENT * vectors) +
                        (double)p.blocks * OUTPUT * depth * vectors;
    const double pixels = (double)v->batch * (double)v->out_height * (double)v->out_width;
    const double window = (double)v->filter_height * (double)v->filter_width * (double)v->in_channels;
    return work < GAIN * DIRECT * pixels * window * vectors;
}
