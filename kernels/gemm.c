/* The loops around the tiles of gemm_tile.c. B is packed once, in parallel. Then blocks of rows are distributed over
 * threads, each of which processes blocks of the inner dimension that are small enough to keep a panel of B in the
 * first cache levels. */
#include "kernels/gemm.h"
#include <assert.h>
#include <string.h>

constexpr int64_t INNER_BLOCK = 512;
constexpr int64_t PIECE_WORK = 1 << 20; /* multiplications that are worth another thread: about 10 us */

typedef float quad __attribute__((vector_size(16), aligned(4)));

/* Transposes 4 x 4 elements into a panel. */
static void transpose_4(float *target, const float *from, int64_t stride)
{
    quad a = *(const quad *)from, b = *(const quad *)(from + stride);
    quad c = *(const quad *)(from + 2 * stride), d = *(const quad *)(from + 3 * stride);
    quad low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    quad low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad *)target = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
    *(quad *)(target + 16) = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);
    *(quad *)(target + 32) = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
    *(quad *)(target + 48) = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
}

/* One panel of a source with contiguous columns. */
static void pack_columns(float *target, const float *from, int64_t rows, int64_t width, int64_t column_stride)
{
    int64_t whole = width == 16 ? rows / 4 * 4 : 0;
    for (int64_t r = 0; r < whole; r += 4)
        for (int64_t c = 0; c < 16; c += 4)
            transpose_4(target + r * 16 + c, from + c * column_stride + r, column_stride);
    for (int64_t r = whole; r < rows; r++)
        for (int64_t c = 0; c < 16; c++) target[r * 16 + c] = c < width ? from[c * column_stride + r] : 0;
}

/* One panel of a source with contiguous rows. */
static void pack_rows(float *target, const float *from, int64_t rows, int64_t width, int64_t row_stride)
{
    for (int64_t r = 0; r < rows; r++, from += row_stride, target += 16) {
        if (width == 16) {
            memcpy(target, from, 16 * sizeof *target);
            continue;
        }
        memcpy(target, from, (size_t)width * sizeof *target);
        memset(target + width, 0, (size_t)(16 - width) * sizeof *target);
    }
}

void mr_panels_pack(float *target, const float *source, int64_t rows, int64_t columns, int64_t row_stride,
                    int64_t column_stride)
{
    assert(rows >= 0 && columns >= 0 && (row_stride == 1 || column_stride == 1));
    for (int64_t first = 0; first < columns; first += 16, target += rows * 16) {
        int64_t width = MR_MIN(16, columns - first);
        if (column_stride == 1)
            pack_rows(target, source + first, rows, width, row_stride);
        else
            pack_columns(target, source + first * column_stride, rows, width, column_stride);
    }
}

void mr_gemm_plain(const mr_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < g->k; k++)
                sum += (double)g->a[g->a_transposed ? k * g->m + i : i * g->k + k] *
                       (double)g->b[g->b_transposed ? j * g->k + k : k * g->n + j];
            g->c[i * g->n + j] = (float)sum;
        }
}

/* Whether B is packed. A row-major B of complete panels is used in place if A has too few rows to repay the packing. */
static bool packs(const mr_gemm *g)
{
    return g->b_transposed || g->n % 16 != 0 || g->m > 24;
}

int64_t mr_gemm_scratch(const mr_gemm *g)
{
    return packs(g) ? mr_panels_size(g->k, g->n) : 0;
}

typedef struct gemm_job {
    const mr_gemm *gemm;
    float *panels;
    const float *b;
    int64_t panel_stride, b_step; /* distance between panels of 16 columns, and between the rows of one */
    int64_t row_block, column_block, column_blocks;
} gemm_job;

static void pack_panels(void *context, int64_t begin, int64_t end)
{
    const gemm_job *job = context;
    const mr_gemm *g = job->gemm;
    int64_t first = begin * 16, width = MR_MIN(end * 16, g->n) - first;
    assert(job->panels != nullptr && width > 0);
    float *target = job->panels + first * g->k;
    if (g->b_transposed)
        mr_panels_pack(target, g->b + first * g->k, g->k, width, 1, g->k);
    else
        mr_panels_pack(target, g->b + first, g->k, width, g->n, 1);
}

static void gemm_block(const gemm_job *job, int64_t row0, int64_t row1, int64_t column0, int64_t column1)
{
    const mr_gemm *g = job->gemm;
    int vectors_max = mr_tile_vectors_max();
    for (int64_t k0 = 0; k0 < g->k; k0 += INNER_BLOCK) {
        mr_tile tile = {.segments = 1, .length = MR_MIN(INNER_BLOCK, g->k - k0), .c_row = g->n, .accumulate = k0 > 0};
        tile.a_row = g->a_transposed ? 1 : g->k;
        tile.a_step = g->a_transposed ? g->m : 1;
        tile.b_step = job->b_step;
        tile.b_next = job->panel_stride;
        for (int64_t column = column0; column < column1; column += tile.vectors * 16) {
            tile.vectors = column1 - column > 16 ? vectors_max : 1;
            tile.columns = (int)MR_MIN(tile.vectors * 16, column1 - column);
            tile.b = job->b + column / 16 * job->panel_stride + k0 * job->b_step;
            int rows_max = mr_tile_rows_max(tile.vectors);
            int64_t tiles = (row1 - row0 + rows_max - 1) / rows_max;
            for (int64_t i = 0; i < tiles; i++) { /* rows are distributed evenly, so that the last tile is not small */
                int64_t from = row0 + (row1 - row0) * i / tiles, to = row0 + (row1 - row0) * (i + 1) / tiles;
                tile.rows = (int)(to - from);
                assert(tile.rows >= 1 && tile.rows <= rows_max && tile.length >= 1);
                tile.a = g->a_transposed ? g->a + k0 * g->m + from : g->a + from * g->k + k0;
                tile.c = g->c + from * g->n + column;
                mr_tile_run(&tile);
            }
        }
    }
}

static void gemm_units(void *context, int64_t begin, int64_t end)
{
    const gemm_job *job = context;
    const mr_gemm *g = job->gemm;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit / job->column_blocks * job->row_block;
        int64_t column = unit % job->column_blocks * job->column_block;
        gemm_block(job, row, MR_MIN(row + job->row_block, g->m), column, MR_MIN(column + job->column_block, g->n));
    }
}

void mr_gemm_run(const mr_gemm *g, float *scratch, mr_pool *pool)
{
    if (g->m == 0 || g->n == 0) return;
    if (g->k == 0) {
        memset(g->c, 0, (size_t)(g->m * g->n) * sizeof *g->c);
        return;
    }
    assert(scratch != nullptr || mr_gemm_scratch(g) == 0);
    /* With m = 1 a transposed A is a single row as well. A row stride of 1 would be treated as columns. */
    gemm_job job = {.gemm = g, .panels = scratch, .b = g->b, .panel_stride = 16, .b_step = g->n};
    if (packs(g)) {
        int64_t panels = (g->n + 15) / 16;
        job.b = scratch;
        job.panel_stride = 16 * g->k;
        job.b_step = 16;
        mr_pool_for(pool, panels, MR_MAX(1, MR_GRAIN / (16 * g->k)), pack_panels, &job);
    }
    job.row_block = g->m <= 168 ? MR_MIN(g->m, 84) : 168;
    job.column_block = MR_MAX(64, MR_MIN(512, 65536 / MR_MAX(1, MR_MIN(g->k, INNER_BLOCK)) / 16 * 16));
    job.column_blocks = (g->n + job.column_block - 1) / job.column_block;
    int64_t row_blocks = (g->m + job.row_block - 1) / job.row_block;
    int64_t work = MR_MIN(job.row_block, g->m) * MR_MIN(job.column_block, g->n) * g->k;
    mr_pool_for(pool, row_blocks * job.column_blocks, (PIECE_WORK + work - 1) / work, gemm_units, &job);
}

mr_status mr_scratch_new(mr_kernel_call *call, int64_t count, mr_buffer **buffer, float **floats, mr_error *error)
{
    *buffer = nullptr;
    *floats = nullptr;
    if (count <= 0) return MR_OK;
    size_t size_bytes;
    if (__builtin_mul_overflow((size_t)count, sizeof(float), &size_bytes))
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the scratch memory is too large");
    MR_TRY(call->device->functions->allocate(call->device, size_bytes, buffer, error));
    *floats = mr_buffer_data(*buffer);
    return MR_OK;
}
