/* MatrixSolveLs: linear least squares with an L2 regularizer, by the normal equations, or without one by singular
 * values. Everything is computed in complex double. */
#include "kernels/blas.h"
#include "kernels/lapack.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct number {
    double re, im;
} number;

typedef struct least_squares {
    int m, n, k, inner;
    number *a, *b, *gram, *x, *workspace; /* column-major: a [m, n]; b [max(m, n), k], gram [inner, inner] */
    double *values, *real;
    int lwork;
} least_squares;

static number times_adjoint(number x, number y) /* conj(x) · y */
{
    return (number){x.re * y.re + x.im * y.im, x.re * y.im - x.im * y.re};
}

/* gram = adjoint(a) · a, or a · adjoint(a) if a has fewer rows, plus the regularizer. */
static void set_gram(const least_squares *l, double regularizer)
{
    bool tall = l->m >= l->n;
    int64_t m = l->m;
    for (int64_t c = 0; c < l->inner; c++)
        for (int64_t r = 0; r < l->inner; r++) {
            number sum = {r == c ? regularizer : 0, 0};
            for (int64_t i = 0; i < (tall ? l->m : l->n); i++) {
                number part = tall ? times_adjoint(l->a[r * m + i], l->a[c * m + i])
                                   : times_adjoint(l->a[i * m + c], l->a[i * m + r]);
                sum.re += part.re;
                sum.im += part.im;
            }
            l->gram[c * l->inner + r] = sum;
        }
}

/* target [n, k] = adjoint(a) · source, whose columns have m elements. */
static void multiply_adjoint(const least_squares *l, const number *source, number *target)
{
    for (int64_t c = 0; c < l->k; c++)
        for (int64_t r = 0; r < l->n; r++) {
            number sum = {0};
            for (int64_t i = 0; i < l->m; i++) {
                number part = times_adjoint(l->a[r * l->m + i], source[c * l->m + i]);
                sum.re += part.re;
                sum.im += part.im;
            }
            target[c * l->n + r] = sum;
        }
}

/* Solves for b [m, k], with the solution in x [n, k]; false if the Gram matrix is not positive definite. */
static bool solve_fast(const least_squares *l, double regularizer)
{
    const mr_lapack *lapack = mr_lapack_of(MR_COMPLEX128);
    int info;
    set_gram(l, regularizer);
    MR_BLAS(lapack->potrf("L", &l->inner, l->gram, &l->inner, &info, 1));
    if (info != 0) return false;
    if (l->m >= l->n) {
        multiply_adjoint(l, l->b, l->x);
        MR_BLAS(lapack->potrs("L", &l->inner, &l->k, l->gram, &l->inner, l->x, &l->inner, &info, 1));
    } else {
        MR_BLAS(lapack->potrs("L", &l->inner, &l->k, l->gram, &l->inner, l->b, &l->inner, &info, 1));
        multiply_adjoint(l, l->b, l->x);
    }
    return info == 0;
}

/* The minimum-norm solution. */
static bool solve_slow(const least_squares *l)
{
    int info, rank, lead = MR_MAX(l->m, l->n);
    for (int64_t c = l->k - 1; c >= 0 && lead > l->m; c--)
        memmove(l->b + c * lead, l->b + c * l->m, (size_t)l->m * sizeof(number));
    MR_BLAS(mr_lapack_of(MR_COMPLEX128)
                ->gelss(l->m, l->n, l->k, l->a, l->b, lead, l->values, l->workspace, l->lwork, l->real, &rank, &info));
    for (int64_t c = 0; c < l->k; c++) memcpy(l->x + c * l->n, l->b + c * lead, (size_t)l->n * sizeof(number));
    return info == 0;
}

static mr_status allocate(const mr_kernel_call *call, least_squares *l, mr_error *error)
{
    int64_t most = MR_MAX(l->m, l->n) + (int64_t)l->k + 1;
    l->lwork = (int)MR_MIN(most * 64 + 1024, (int64_t)1 << 30);
    int64_t counts[] = {(int64_t)l->m * l->n, MR_MAX(l->m, l->n) * (int64_t)l->k, (int64_t)l->inner * l->inner,
                        (int64_t)l->n * l->k, l->lwork};
    number **targets[] = {&l->a, &l->b, &l->gram, &l->x, &l->workspace};
    mr_status status = MR_OK;
    for (int i = 0; i < 5 && status == MR_OK; i++)
        status = mr_lapack_memory(call, counts[i], sizeof(number), (void **)targets[i], error);
    if (status == MR_OK) status = mr_lapack_memory(call, most, sizeof(double), (void **)&l->values, error);
    if (status == MR_OK) status = mr_lapack_memory(call, 8 * most, sizeof(double), (void **)&l->real, error);
    return status;
}

static mr_status solve_each(mr_kernel_call *call, const least_squares *l, int64_t count, double regularizer,
                            mr_error *error)
{
    mr_dtype dtype = call->inputs[0].dtype;
    bool fast = mr_attr_bool_or(call->node->attrs, "fast", true);
    int64_t a_count = (int64_t)l->m * l->n, b_count = (int64_t)l->m * l->k, x_count = (int64_t)l->n * l->k;
    for (int64_t i = 0; i < count; i++) {
        const void *a = mr_matrix_at(&call->inputs[0], i, a_count), *b = mr_matrix_at(&call->inputs[1], i, b_count);
        bool finite = mr_lapack_is_finite(dtype, a, a_count) && mr_lapack_is_finite(dtype, b, b_count);
        mr_lapack_load(dtype, a, l->m, l->n, true, l->a);
        mr_lapack_load(dtype, b, l->m, l->k, true, l->b);
        if (!finite || !(fast ? solve_fast(l, regularizer) : solve_slow(l)))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or "
                                  "provide a larger l2_regularizer > 0.");
        mr_lapack_store(dtype, mr_matrix_at(&call->outputs[0], i, x_count), l->n, l->k, true, l->x, l->n);
    }
    return MR_OK;
}

static mr_status matrix_solve_ls(mr_kernel_call *call, mr_error *error)
{
    mr_matrices a, b;
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(mr_matrices_of(call, 0, &a, error));
    MR_TRY(mr_matrices_of(call, 1, &b, error));
    if (call->inputs[2].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "l2_regularizer must be scalar, got shape %s",
                              mr_shape_text(call->inputs[2].shape, text, sizeof text));
    double regularizer = *(const double *)call->inputs[2].data;
    if (!(regularizer >= 0))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "l2_regularizer must be >= 0.");
    if (a.batch.rank != b.batch.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "All input tensors must have the same rank.");
    if (!mr_shape_equal(a.batch, b.batch))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "All input tensors must have the same outer dimensions.");
    if (a.rows != b.rows)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input matrix and rhs are incompatible.");
    MR_TRY(mr_kernel_output(call, 0, mr_matrices_shape(a.batch, a.columns, b.columns), error));
    mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) == 0) return MR_OK;
    memset(output->data, 0, mr_tensor_size_bytes(output));
    if (a.rows == 0) return MR_OK;
    least_squares l = {.m = a.rows, .n = a.columns, .k = b.columns, .inner = MR_MIN(a.rows, a.columns)};
    mr_status status = allocate(call, &l, error);
    if (status == MR_OK) status = solve_each(call, &l, a.count, regularizer, error);
    void *memory[] = {l.a, l.b, l.gram, l.x, l.workspace, l.values, l.real};
    for (int i = 0; i < 7; i++) free(memory[i]);
    return status;
}

#define ROW(name, served) {.op = name, .types = served, .run = matrix_solve_ls, .host_inputs = 1 << 2}
static const mr_kernel kernels[] = {
    ROW("MatrixSolveLs", "T: float, double, complex64, complex128"),
    ROW("BatchMatrixSolveLs", "T: float, double"),
};
MR_KERNEL_FAMILY(least_squares);
