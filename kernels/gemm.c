/* The loops around the tiles of gemm_tile.c. B is packed once, in parallel. Then blocks of rows are distributed over
 * threads, each of which processes blocks of the inner dimension that are small enough to keep a panel of B in the
 * first cache levels. */
#include "kernels/gemm.h"
#include <assert.h>
#include <string.h>

constexpr int64_t INNER_BLOCK = 512;

void mr_panels_pack(float *target, const float *source, int64_t rows, int64_t columns, int64_t row_stride,
                    int64_t column_stride)
{
    assert(rows >= 0 && columns >= 0);
    for (int64_t first = 0; first < columns; first += 16) {
        int64_t width = MR_MIN(16, columns - first);
        const float *from = source + first * column_stride;
        if (column_stride == 1) {
            for (int64_t r = 0; r < rows; r++, target += 16) {
                if (width == 16) {
                    memcpy(target, from + r * row_stride, 16 * sizeof *target);
                    continue;
                }
                memcpy(target, from + r * row_stride, (size_t)width * sizeof *target);
                memset(target + width, 0, (size_t)(16 - width) * sizeof *target);
            }
            continue;
        }
        for (int64_t r0 = 0; r0 < rows;
             r0 += 16) { /* tiles of 16 x 16, so that each cache line of the source is read once */
            int64_t height = MR_MIN(16, rows - r0);
            for (int64_t c = 0; c < 16; c++)
                for (int64_t r = 0; r < height; r++)
                    target[r * 16 + c] = c < width ? from[c * column_stride + (r0 + r) * row_stride] : 0;
            target += height * 16;
        }
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
    int64_t work = job.row_block * job.column_block * g->k;
    mr_pool_for(pool, row_blocks * job.column_blocks, MR_MAX(1, 262144 / MR_MAX(1, work)), gemm_units, &job);
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
