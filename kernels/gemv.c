/* Products of a matrix and a vector. Each number of the matrix is used once, so the time is that of reading it: it is
 * read in the order of memory, several rows at a time. Sums do not depend on how the result is split. */
#include "kernels/gemm.h"
#include "kernels/vector.h"
#include <assert.h>

constexpr int64_t PIECE = 1 << 17; /* numbers of the matrix that are worth another thread */
constexpr int64_t BLOCK = 256;     /* columns whose sums are kept in registers and the first cache */

typedef struct gemv_job {
    const mr_gemm *gemm;
    const float *matrix, *vector; /* [rows, columns]; the sums are over columns or over rows */
    int64_t rows, columns;
    float *out;
    int64_t bias_step; /* 0: one number for all */
} gemv_job;

static void store_sum(const gemv_job *job, int64_t index, float sum)
{
    const mr_gemm *g = job->gemm;
    if (g->accumulate) sum += job->out[index];
    job->out[index] = g->bias != nullptr ? sum + g->bias[index * job->bias_step] : sum;
}

/* ---- A vector for each row: out[r] = matrix[r] . vector ---- */

MR_INLINE void dot_rows(const gemv_job *job, int64_t first, const int rows, bool fused)
{
    const float *m = job->matrix + first * job->columns, *x = job->vector;
    const int64_t count = job->columns;
    mr_vector sums[4][2];
    MR_UNROLL
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = (mr_vector){};
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const mr_vector x0 = mr_vector_load(x + i), x1 = mr_vector_load(x + i + 16);
        MR_UNROLL
        for (int r = 0; r < rows; r++) {
            sums[r][0] = mr_vector_multiply_add(mr_vector_load(m + r * count + i), x0, sums[r][0], fused);
            sums[r][1] = mr_vector_multiply_add(mr_vector_load(m + r * count + i + 16), x1, sums[r][1], fused);
        }
    }
    for (; i < count; i += 16) {
        const int64_t rest = MR_MIN(16, count - i);
        const mr_vector x0 = mr_vector_load_some(x + i, rest, 0);
        MR_UNROLL
        for (int r = 0; r < rows; r++)
            sums[r][0] = mr_vector_multiply_add(mr_vector_load_some(m + r * count + i, rest, 0), x0, sums[r][0], fused);
    }
    for (int r = 0; r < rows; r++) store_sum(job, first + r, mr_vector_sum(sums[r][0] + sums[r][1]));
}

MR_INLINE void dots_body(const gemv_job *job, int64_t begin, int64_t end, bool fused)
{
    int64_t row = begin;
    for (; row + 4 <= end; row += 4) dot_rows(job, row, 4, fused);
    for (; row < end; row++) dot_rows(job, row, 1, fused);
}

/* ---- A number for each row: out = sum of vector[r] * matrix[r] ---- */

/* Columns [first, first + 16 * vectors). */
MR_INLINE void sum_columns(const gemv_job *job, int64_t first, const int vectors, bool fused)
{
    const float *m = job->matrix + first;
    mr_vector sums[8];
    MR_UNROLL
    for (int v = 0; v < vectors; v++) sums[v] = (mr_vector){};
    for (int64_t r = 0; r < job->rows; r++, m += job->columns) {
        const mr_vector x = mr_vector_of(job->vector[r]);
        MR_UNROLL
        for (int v = 0; v < vectors; v++)
            sums[v] = mr_vector_multiply_add(x, mr_vector_load(m + 16 * v), sums[v], fused);
    }
    float lanes[8 * 16];
    memcpy(lanes, sums, (size_t)vectors * sizeof *sums);
    for (int i = 0; i < 16 * vectors; i++) store_sum(job, first + i, lanes[i]);
}

MR_INLINE void sum_last_columns(const gemv_job *job, int64_t first, int64_t count, bool fused)
{
    const float *m = job->matrix + first;
    mr_vector sum = {};
    for (int64_t r = 0; r < job->rows; r++, m += job->columns)
        sum = mr_vector_multiply_add(mr_vector_of(job->vector[r]), mr_vector_load_some(m, count, 0), sum, fused);
    float lanes[16];
    memcpy(lanes, &sum, sizeof lanes);
    for (int64_t i = 0; i < count; i++) store_sum(job, first + i, lanes[i]);
}

/* Blocks [begin, end) of columns. */
MR_INLINE void sums_body(const gemv_job *job, int64_t begin, int64_t end, bool fused)
{
    int64_t column = begin * BLOCK;
    const int64_t stop = MR_MIN(end * BLOCK, job->columns);
    for (; column + 128 <= stop; column += 128) sum_columns(job, column, 8, fused);
    for (; column + 16 <= stop; column += 16) sum_columns(job, column, 1, fused);
    if (column < stop) sum_last_columns(job, column, stop - column, fused);
}

/* ---- CPU levels ---- */

#define LEVEL(name, target, fused)                                                                                     \
    target static void dots_##name(void *context, int64_t begin, int64_t end)                                          \
    {                                                                                                                  \
        dots_body(context, begin, end, fused);                                                                         \
    }                                                                                                                  \
    target static void sums_##name(void *context, int64_t begin, int64_t end)                                          \
    {                                                                                                                  \
        sums_body(context, begin, end, fused);                                                                         \
    }
LEVEL(plain, , false)
LEVEL(avx2, MR_TARGET_AVX2, true)
LEVEL(avx512, MR_TARGET_AVX512, true)

static const mr_pool_body dots[3] = {dots_plain, dots_avx2, dots_avx512};
static const mr_pool_body sums[3] = {sums_plain, sums_avx2, sums_avx512};

bool mr_gemm_is_gemv(const mr_gemm *g)
{
    return !g->pairs && (g->m == 1 || g->n == 1);
}

void mr_gemv_run(const mr_gemm *g, mr_pool *pool)
{
    assert(mr_gemm_is_gemv(g) && g->k > 0);
    const bool is_row = g->m == 1; /* a vector times a matrix */
    const bool is_transposed = is_row ? g->b_transposed : g->a_transposed;
    const bool is_dot = is_row == is_transposed;
    const int64_t length = is_row ? g->n : g->m; /* of the result */
    const gemv_job job = {.gemm = g,
                          .matrix = is_row ? g->b : g->a,
                          .vector = is_row ? g->a : g->b,
                          .rows = is_dot ? length : g->k,
                          .columns = is_dot ? g->k : length,
                          .out = g->c,
                          .bias_step = is_row};
    if (is_dot)
        mr_pool_for(pool, length, MR_MAX(1, PIECE / g->k), dots[mr_cpu()], (void *)&job);
    else
        mr_pool_for(pool, (length + BLOCK - 1) / BLOCK, MR_MAX(1, PIECE / (g->k * BLOCK)), sums[mr_cpu()],
                    (void *)&job);
}
