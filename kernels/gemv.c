/* Products of a matrix and a vector, and of two vectors. Each number of the matrix is used once, so the time is that of
 * reading or of writing it: in the order of memory, several rows at a time. Sums do not depend on how the result is
 * split. */
#include "kernels/gemm.h"
#include "kernels/vector.h"
#include <assert.h>

constexpr int64_t PIECE = 1 << 17; /* numbers of the matrix that are worth another thread */
constexpr int64_t BLOCK = 2048;    /* columns whose sums are kept in the first cache */
constexpr int64_t UNIT = 64;       /* columns of the smallest part that a thread computes */
constexpr int64_t PART = 1 << 19;  /* numbers of the matrix that are worth sums of their own */
constexpr int PARTS_MAX = 8;
constexpr int ROWS = 8; /* added to the sums at a time */

typedef struct gemv_job {
    const mr_gemm *gemm;
    const float *matrix, *vector; /* [rows, columns]; the sums are over columns or over rows */
    int64_t rows, columns;
    float *out;
    int64_t bias_step; /* 0: one number for all */
    int64_t parts;     /* of the rows, if the sums are over rows */
    float *partial;    /* [parts, columns]: their sums, if there are several */
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

/* Adds `rows` rows to the sums of a block of whole vectors. */
MR_INLINE void add_rows(const gemv_job *job, const float *m, const float *x, const int rows, float *sums, int64_t count,
                        bool fused)
{
    mr_vector factors[ROWS];
    MR_UNROLL
    for (int r = 0; r < rows; r++) factors[r] = mr_vector_of(x[r]);
    for (int64_t i = 0; i < count; i += 16) {
        mr_vector sum = mr_vector_load(sums + i);
        MR_UNROLL
        for (int r = 0; r < rows; r++)
            sum = mr_vector_multiply_add(factors[r], mr_vector_load(m + r * job->columns + i), sum, fused);
        mr_vector_store(sums + i, sum);
    }
}

/* Part of the rows, or all. */
typedef struct row_range {
    int64_t begin, end, part;
} row_range;

static row_range rows_of(const gemv_job *job, int64_t part)
{
    assert(part >= 0 && part < job->parts);
    return (row_range){job->rows * part / job->parts, job->rows * (part + 1) / job->parts, part};
}

MR_INLINE void store_sums(const gemv_job *job, row_range rows, int64_t first, int64_t count, const float *values)
{
    if (job->parts > 1)
        memcpy(job->partial + rows.part * job->columns + first, values, (size_t)count * sizeof *values);
    else
        for (int64_t i = 0; i < count; i++) store_sum(job, first + i, values[i]);
}

/* Columns [first, first + count), at most BLOCK, in whole vectors. */
MR_INLINE void sum_columns(const gemv_job *job, row_range rows, int64_t first, int64_t count, bool fused)
{
    const float *m = job->matrix + first;
    float sums[BLOCK] = {};
    int64_t r = rows.begin;
    assert(count > 0 && count <= BLOCK && count % 16 == 0);
    for (; r + ROWS <= rows.end; r += ROWS)
        add_rows(job, m + r * job->columns, job->vector + r, ROWS, sums, count, fused);
    for (; r < rows.end; r++) add_rows(job, m + r * job->columns, job->vector + r, 1, sums, count, fused);
    store_sums(job, rows, first, count, sums);
}

/* The last columns, fewer than a vector: with those before them if there are as many. */
MR_INLINE void sum_last_columns(const gemv_job *job, row_range rows, int64_t count, bool fused)
{
    const int64_t width = MR_MIN(16, job->columns), first = job->columns - width;
    const float *m = job->matrix + rows.begin * job->columns + first;
    mr_vector sum = {};
    for (int64_t r = rows.begin; r < rows.end; r++, m += job->columns) {
        const mr_vector row = width == 16 ? mr_vector_load(m) : mr_vector_load_some(m, width, 0);
        sum = mr_vector_multiply_add(mr_vector_of(job->vector[r]), row, sum, fused);
    }
    float lanes[16];
    memcpy(lanes, &sum, sizeof lanes);
    store_sums(job, rows, first + width - count, count, lanes + width - count);
}

/* Units [begin, end) of columns, of each part one after the other. */
MR_INLINE void sums_body(const gemv_job *job, int64_t begin, int64_t end, bool fused)
{
    const int64_t units = (job->columns + UNIT - 1) / UNIT;
    while (begin < end) {
        const row_range rows = rows_of(job, begin / units);
        const int64_t before = rows.part * units, last = MR_MIN(end, before + units);
        const int64_t to = MR_MIN((last - before) * UNIT, job->columns);
        int64_t column = (begin - before) * UNIT;
        const int64_t whole = column + (to - column) / 16 * 16;
        for (; column < whole; column = MR_MIN(column + BLOCK, whole))
            sum_columns(job, rows, column, MR_MIN(BLOCK, whole - column), fused);
        if (column < to) sum_last_columns(job, rows, to - column, fused);
        begin = last;
    }
}

/* ---- Two vectors: out[r] = a[r] * b ---- */

MR_INLINE void outer_body(const gemv_job *job, int64_t begin, int64_t end, bool fused)
{
    const mr_gemm *g = job->gemm;
    for (int64_t row = begin; row < end; row++) {
        const mr_vector x = mr_vector_of(g->a[row]);
        float *c = g->c + row * g->n;
        int64_t i = 0;
        for (; i + 16 <= g->n; i += 16) {
            mr_vector sum = mr_vector_multiply_add(x, mr_vector_load(g->b + i), (mr_vector){}, fused);
            if (g->accumulate) sum = mr_vector_load(c + i) + sum;
            mr_vector_store(c + i, g->bias ? sum + mr_vector_load(g->bias + i) : sum);
        }
        for (; i < g->n; i++) {
            float sum = g->a[row] * g->b[i] + 0.0F; /* not -0 */
            if (g->accumulate) sum = c[i] + sum;
            c[i] = g->bias ? sum + g->bias[i] : sum;
        }
    }
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
    }                                                                                                                  \
    target static void outer_##name(void *context, int64_t begin, int64_t end)                                         \
    {                                                                                                                  \
        outer_body(context, begin, end, fused);                                                                        \
    }
LEVEL(plain, , false)
LEVEL(avx2, MR_TARGET_AVX2, true)
LEVEL(avx512, MR_TARGET_AVX512, true)

static const mr_pool_body dots[3] = {dots_plain, dots_avx2, dots_avx512};
static const mr_pool_body sums[3] = {sums_plain, sums_avx2, sums_avx512};
static const mr_pool_body outer[3] = {outer_plain, outer_avx2, outer_avx512};

bool mr_gemm_is_gemv(const mr_gemm *g)
{
    const bool is_dense = g->a_row == 0 && g->b_row == 0 && g->c_row == 0;
    return !g->pairs && is_dense && (g->m == 1 || g->n == 1 || g->k == 1);
}

/* A vector times a matrix, as sums over rows, which are read in long parts: four for each thread, enough that threads
 * that sleep are woken. The rows of a small matrix are divided, too: a part of each row fills only a part of a
 * cache's sets if the rows' size is a power of two. */
static void run_sums(gemv_job *job, mr_pool *pool)
{
    float partial[PARTS_MAX * BLOCK];
    const int64_t size = job->rows * job->columns, units = (job->columns + UNIT - 1) / UNIT;
    job->parts = job->columns <= BLOCK ? MR_MAX(1, MR_MIN(PARTS_MAX, size / PART)) : 1;
    job->partial = partial;
    const int64_t count = units * job->parts, threads = mr_pool_thread_count(pool);
    const int64_t least = PIECE / (job->rows / job->parts * UNIT), each = (count + 4 * threads - 1) / (4 * threads);
    mr_pool_for(pool, count, MR_MAX(1, MR_MAX(least, each)), sums[mr_cpu()], job);
    for (int64_t i = 0; job->parts > 1 && i < job->columns; i++) {
        float sum = partial[i];
        for (int64_t part = 1; part < job->parts; part++) sum += partial[part * job->columns + i];
        store_sum(job, i, sum);
    }
}

void mr_gemv_run(const mr_gemm *g, mr_pool *pool)
{
    assert(mr_gemm_is_gemv(g) && g->k > 0);
    if (g->k == 1) {
        const gemv_job job = {.gemm = g};
        mr_pool_for(pool, g->m, MR_MAX(1, PIECE / g->n), outer[mr_cpu()], (void *)&job);
        return;
    }
    const bool is_row = g->m == 1; /* a vector times a matrix */
    const bool is_transposed = is_row ? g->b_transposed : g->a_transposed;
    const bool is_dot = is_row == is_transposed;
    const int64_t length = is_row ? g->n : g->m; /* of the result */
    gemv_job job = {.gemm = g,
                    .matrix = is_row ? g->b : g->a,
                    .vector = is_row ? g->a : g->b,
                    .rows = is_dot ? length : g->k,
                    .columns = is_dot ? g->k : length,
                    .out = g->c,
                    .bias_step = is_row};
    if (is_dot) {
        mr_pool_for(pool, length, MR_MAX(1, PIECE / g->k), dots[mr_cpu()], &job);
        return;
    }
    run_sums(&job, pool);
}
