/* Products of a matrix and a vector of bfloat16 numbers, as sums of floats: each row of the matrix times the vector.
 * The numbers are converted in registers: a copy of the matrix would take most of the time. */
#include "base/halves.h"
#include "kernels/matmul.h"
#include "kernels/vector.h"

constexpr int ROWS = 4;
constexpr int64_t PIECE = 1 << 18; /* numbers of the matrix that are worth another thread */

typedef uint16_t sixteen __attribute__((vector_size(32)));
typedef uint16_t sixteen_at __attribute__((vector_size(32), aligned(2), may_alias));

typedef struct dots_job {
    const uint16_t *matrix, *vector;
    uint16_t *out;
    int64_t columns;
} dots_job;

MR_INLINE mr_vector floats_of(sixteen x)
{
    return (mr_vector)(__builtin_convertvector(x, mr_vector_bits) << 16);
}

/* The first `count` numbers; the others are 0. */
MR_INLINE sixteen load_some(const uint16_t *from, int64_t count)
{
    sixteen x = {};
    memcpy(&x, from, (size_t)count * sizeof *from);
    return x;
}

MR_INLINE void dot_rows(const dots_job *job, int64_t first, const int rows, bool fused)
{
    const uint16_t *m = job->matrix + first * job->columns;
    mr_vector sums[ROWS];
    MR_UNROLL
    for (int r = 0; r < rows; r++) sums[r] = (mr_vector){};
    int64_t i = 0;
    for (; i + 16 <= job->columns; i += 16) {
        const mr_vector x = floats_of(*(const sixteen_at *)(job->vector + i));
        MR_UNROLL
        for (int r = 0; r < rows; r++) {
            const sixteen row = *(const sixteen_at *)(m + r * job->columns + i);
            sums[r] = mr_vector_multiply_add(floats_of(row), x, sums[r], fused);
        }
    }
    const int64_t rest = job->columns - i;
    const mr_vector x = floats_of(load_some(job->vector + i, rest));
    float results[ROWS];
    for (int r = 0; r < rows; r++) {
        if (rest > 0)
            sums[r] = mr_vector_multiply_add(floats_of(load_some(m + r * job->columns + i, rest)), x, sums[r], fused);
        results[r] = mr_vector_sum(sums[r]);
    }
    mr_floats_to_halves(job->out + first, results, rows, MR_BFLOAT16);
}

MR_INLINE void dots_body(const dots_job *job, int64_t begin, int64_t end, bool fused)
{
    int64_t row = begin;
    for (; row + ROWS <= end; row += ROWS) dot_rows(job, row, ROWS, fused);
    for (; row < end; row++) dot_rows(job, row, 1, fused);
}

#define LEVEL(name, target, fused)                                                                                     \
    target static void dots_##name(void *context, int64_t begin, int64_t end)                                          \
    {                                                                                                                  \
        dots_body(context, begin, end, fused);                                                                         \
    }
LEVEL(plain, , false)
LEVEL(avx2, MR_TARGET_AVX2, true)
LEVEL(avx512, MR_TARGET_AVX512, true)

bool mr_product_is_bfloat16_dots(const mr_product *p)
{
    return (p->n == 1 && !p->a_transposed) || (p->m == 1 && p->b_transposed);
}

void mr_product_bfloat16_dots(const mr_product *p, mr_pool *pool)
{
    static const mr_pool_body dots[3] = {dots_plain, dots_avx2, dots_avx512};
    const bool is_row = p->n != 1 || p->a_transposed; /* a vector times a matrix */
    const dots_job job = {is_row ? p->b : p->a, is_row ? p->a : p->b, p->c, p->k};
    mr_pool_for(pool, is_row ? p->n : p->m, MR_MAX(1, PIECE / MR_MAX(1, p->k)), dots[mr_cpu()], (void *)&job);
}
