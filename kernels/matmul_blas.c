/* Products of complex numbers, and of thin matrices of doubles, on BLAS, in this thread, a block of the
 * result at a time: calls of other threads wait for a block only.
 *
 * BLAS is column-major, and a row-major matrix is the transposed column-major one: c = a · b is computed as
 * cᵀ = bᵀ · aᵀ. */
#include "kernels/blas.h"
#include "kernels/matmul.h"
#include <assert.h>
#include <limits.h>

constexpr int64_t SMALL_WORK = 1 << 10; /* multiplications that plain loops do faster */
constexpr int64_t BLOCK = 128, LARGE_BLOCK = 256, LARGE_SIZE = 1024;

#define GEMM(name, type)                                                                                               \
    void name(const char *, const char *, const int *, const int *, const int *, const type *, const void *,           \
              const int *, const void *, const int *, const type *, void *, const int *, size_t, size_t);
typedef struct single {
    float re, im;
} single;
typedef struct twice {
    double re, im;
} twice;
GEMM(dgemm_, double)
GEMM(cgemm_, single)
GEMM(zgemm_, twice)

typedef struct blas_job {
    const mr_product *product;
    mr_dtype dtype;
    size_t size;
    int64_t block;
} blas_job;

static const char *form(bool is_transposed, bool is_conjugated)
{
    return !is_transposed ? "N" : is_conjugated ? "C" : "T";
}

static void block_product(const blas_job *job, int64_t row, int64_t column)
{
    const mr_product *p = job->product;
    const int rows = (int)MR_MIN(job->block, p->m - row), columns = (int)MR_MIN(job->block, p->n - column);
    const int inner = (int)p->k, a_step = (int)(p->a_transposed ? p->m : p->k);
    const int b_step = (int)(p->b_transposed ? p->k : p->n), c_step = (int)p->n;
    const char *a = (const char *)p->a + (size_t)(p->a_transposed ? row : row * p->k) * job->size;
    const char *b = (const char *)p->b + (size_t)(p->b_transposed ? column * p->k : column) * job->size;
    char *c = (char *)p->c + (size_t)(row * p->n + column) * job->size;
    const char *a_form = form(p->a_transposed, p->a_conjugated), *b_form = form(p->b_transposed, p->b_conjugated);
    assert(rows > 0 && columns > 0);
    mr_blas_lock();
    if (job->dtype == MR_DOUBLE)
        dgemm_(b_form, a_form, &columns, &rows, &inner, &(double){1}, b, &b_step, a, &a_step, &(double){0}, c, &c_step,
               1, 1);
    else if (job->dtype == MR_COMPLEX64)
        cgemm_(b_form, a_form, &columns, &rows, &inner, &(single){1, 0}, b, &b_step, a, &a_step, &(single){0, 0}, c,
               &c_step, 1, 1);
    else
        zgemm_(b_form, a_form, &columns, &rows, &inner, &(twice){1, 0}, b, &b_step, a, &a_step, &(twice){0, 0}, c,
               &c_step, 1, 1);
    mr_blas_unlock();
}

bool mr_product_is_blas(mr_dtype dtype, const mr_product *p)
{
    if (dtype != MR_DOUBLE && dtype != MR_COMPLEX64 && dtype != MR_COMPLEX128) return false;
    if (dtype == MR_DOUBLE && p->k == 1) return false; /* as fast as memory in plain loops */
    if (p->accumulate || MR_MAX(p->m, MR_MAX(p->n, p->k)) > INT_MAX) return false;
    if ((p->a_conjugated && !p->a_transposed) || (p->b_conjugated && !p->b_transposed)) return false;
    return (double)p->m * (double)p->n * (double)p->k >= (double)SMALL_WORK;
}

void mr_product_blas(mr_dtype dtype, const mr_product *p)
{
    assert(mr_product_is_blas(dtype, p));
    blas_job job = {.product = p, .dtype = dtype, .size = mr_dtype_size(dtype)};
    job.block = MR_MAX(p->m, p->n) >= LARGE_SIZE && MR_MIN(p->m, p->n) >= LARGE_BLOCK ? LARGE_BLOCK : BLOCK;
    for (int64_t row = 0; row < p->m; row += job.block)
        for (int64_t column = 0; column < p->n; column += job.block) block_product(&job, row, column);
}
