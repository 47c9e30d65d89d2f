/* Products of a matrix and a vector of doubles, in the order in which the matrix is in memory. Each number is used
 * once, so the time is that of reading it. Sums do not depend on how the result is split. */
#include "kernels/gemm_double.h"
#include <assert.h>
#include <string.h>

#pragma clang diagnostic ignored "-Wpsabi"

typedef double eight __attribute__((vector_size(64)));
typedef double eight_at __attribute__((vector_size(64), aligned(8), may_alias));

constexpr int LANES = 8, ROWS = 4;
constexpr int64_t PIECE = 1 << 16; /* numbers of the matrix that are worth another thread */
constexpr int64_t BLOCK = 1024;    /* columns whose sums are kept in the first cache */

typedef struct gemv_job {
    const double *matrix, *vector; /* [rows, columns]; the sums are over columns or over rows */
    double *out;
    int64_t rows, columns;
} gemv_job;

MR_INLINE eight multiply_add(eight a, eight b, eight sum, bool fused)
{
    return fused ? __builtin_elementwise_fma(a, b, sum) : sum + a * b;
}

MR_INLINE double scalar_multiply_add(double a, double b, double sum, bool fused)
{
    return fused ? __builtin_elementwise_fma(a, b, sum) : sum + a * b;
}

/* ---- A vector for each row: out[r] = matrix[r] . vector ---- */

MR_INLINE void dot_rows(const gemv_job *job, int64_t first, const int rows, bool fused)
{
    const double *m = job->matrix + first * job->columns, *x = job->vector;
    const int64_t count = job->columns;
    eight sums[ROWS][2];
    MR_UNROLL
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = (eight){};
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        MR_UNROLL
        for (int half = 0; half < 2; half++) {
            const int64_t at = i + half * LANES;
            const eight factors = *(const eight_at *)(x + at);
            MR_UNROLL
            for (int r = 0; r < rows; r++)
                sums[r][half] = multiply_add(*(const eight_at *)(m + r * count + at), factors, sums[r][half], fused);
        }
    }
    for (int r = 0; r < rows; r++) {
        double lanes[LANES], sum = 0;
        *(eight_at *)lanes = sums[r][0] + sums[r][1];
        for (int width = LANES / 2; width > 0; width /= 2)
            for (int l = 0; l < width; l++) lanes[l] += lanes[l + width];
        for (int64_t k = i; k < count; k++) sum = scalar_multiply_add(m[r * count + k], x[k], sum, fused);
        job->out[first + r] = lanes[0] + sum;
    }
}

MR_INLINE void dots_body(const gemv_job *job, int64_t begin, int64_t end, bool fused)
{
    int64_t row = begin;
    for (; row + ROWS <= end; row += ROWS) dot_rows(job, row, ROWS, fused);
    for (; row < end; row++) dot_rows(job, row, 1, fused);
}

/* ---- A number for each row: out = sum of vector[r] * matrix[r] ---- */

MR_INLINE void add_rows(const gemv_job *job, const double *m, const double *x, const int rows, double *sums,
                        int64_t count, bool fused)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        eight sum = *(const eight_at *)(sums + i);
        MR_UNROLL
        for (int r = 0; r < rows; r++)
            sum = multiply_add(x[r] - (eight){}, *(const eight_at *)(m + r * job->columns + i), sum, fused);
        *(eight_at *)(sums + i) = sum;
    }
    for (; i < count; i++)
        for (int r = 0; r < rows; r++) sums[i] = scalar_multiply_add(x[r], m[r * job->columns + i], sums[i], fused);
}

MR_INLINE void sums_body(const gemv_job *job, int64_t begin, int64_t end, bool fused)
{
    for (int64_t column = begin; column < end; column += BLOCK) {
        const int64_t count = MR_MIN(BLOCK, end - column);
        const double *m = job->matrix + column;
        double sums[BLOCK] = {};
        int64_t r = 0;
        for (; r + ROWS <= job->rows; r += ROWS)
            add_rows(job, m + r * job->columns, job->vector + r, ROWS, sums, count, fused);
        for (; r < job->rows; r++) add_rows(job, m + r * job->columns, job->vector + r, 1, sums, count, fused);
        memcpy(job->out + column, sums, (size_t)count * sizeof *sums);
    }
}

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

bool mr_gemv_double_fits(const mr_product *p)
{
    return MR_MIN(p->m, p->n) == 1 && p->k > 1;
}

void mr_gemv_double_run(const mr_product *p, mr_pool *pool)
{
    static const mr_pool_body dots[3] = {dots_plain, dots_avx2, dots_avx512};
    static const mr_pool_body sums[3] = {sums_plain, sums_avx2, sums_avx512};
    const bool is_row = p->m == 1; /* a vector times a matrix */
    const bool is_dot = is_row == (is_row ? p->b_transposed : p->a_transposed);
    const int64_t length = is_row ? p->n : p->m; /* of the result */
    const gemv_job job = {.matrix = is_row ? p->b : p->a,
                          .vector = is_row ? p->a : p->b,
                          .out = p->c,
                          .rows = is_dot ? length : p->k,
                          .columns = is_dot ? p->k : length};
    assert(mr_gemv_double_fits(p));
    mr_pool_for(pool, length, MR_MAX(1, PIECE / p->k), is_dot ? dots[mr_cpu()] : sums[mr_cpu()], (void *)&job);
}
