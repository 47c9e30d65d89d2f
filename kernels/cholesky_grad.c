/* CholeskyGrad: the gradient of a factor l with respect to the matrix, s + transpose(s) over 2 for
 * s = inverse(transpose(l)) · p · inverse(l), where p is the lower triangle of transpose(l) · grad with half of its
 * diagonal (Murray, "Differentiation of the Cholesky decomposition", 2016). Only lower triangles are read. */
#include "kernels/blas.h"
#include "kernels/lapack.h"
#include <stdlib.h>
#include <string.h>

typedef struct work {
    int n;
    double *l, *grad, *p; /* column-major */
} work;

static void load_lower(const mr_tensor *tensor, int64_t i, int n, double *target)
{
    mr_lapack_load(tensor->dtype, mr_matrix_at(tensor, i, (int64_t)n * n), n, n, false, target);
    for (int64_t c = 1; c < n; c++) memset(target + c * n, 0, (size_t)c * sizeof *target);
}

static void transpose(int64_t n, double *a)
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r < c; r++) {
            double swapped = a[c * n + r];
            a[c * n + r] = a[r * n + c];
            a[r * n + c] = swapped;
        }
}

static void compute(const work *w)
{
    const int64_t n = w->n;
    int info;
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r < n; r++) {
            double sum = 0;
            for (int64_t k = r; k < n && r >= c; k++) sum += w->l[r * n + k] * w->grad[c * n + k];
            w->p[c * n + r] = r == c ? sum / 2 : sum;
        }
    const mr_lapack *lapack = mr_lapack_of(MR_DOUBLE);
    for (int side = 0; side < 2; side++) { /* the second time for the transposed equation */
        MR_BLAS(lapack->trtrs("L", "T", "N", &w->n, &w->n, w->l, &w->n, w->p, &w->n, &info, 1, 1, 1));
        transpose(n, w->p);
    }
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r <= c; r++) w->p[c * n + r] = w->p[r * n + c] = (w->p[c * n + r] + w->p[r * n + c]) / 2;
}

static mr_status cholesky_grad(mr_kernel_call *call, mr_error *error)
{
    mr_matrices matrices, grads;
    work w = {0};
    MR_TRY(mr_matrices_of(call, 0, &matrices, error));
    MR_TRY(mr_matrices_of(call, 1, &grads, error));
    if (matrices.rows != matrices.columns)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Inputs must be a square matrices.");
    if (!mr_shape_equal(call->inputs[0].shape, call->inputs[1].shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Inputs (L and grad) must have the same shape.");
    w.n = matrices.rows;
    int64_t count = (int64_t)w.n * w.n;
    mr_status status = mr_kernel_output(call, 0, call->inputs[0].shape, error);
    if (status == MR_OK) status = mr_lapack_memory(call, count, sizeof(double), (void **)&w.l, error);
    if (status == MR_OK) status = mr_lapack_memory(call, count, sizeof(double), (void **)&w.grad, error);
    if (status == MR_OK) status = mr_lapack_memory(call, count, sizeof(double), (void **)&w.p, error);
    for (int64_t i = 0; i < matrices.count && count > 0 && status == MR_OK; i++) {
        load_lower(&call->inputs[0], i, w.n, w.l);
        load_lower(&call->inputs[1], i, w.n, w.grad);
        compute(&w);
        mr_lapack_store(call->outputs[0].dtype, mr_matrix_at(&call->outputs[0], i, count), w.n, w.n, false, w.p, w.n);
    }
    free(w.l);
    free(w.grad);
    free(w.p);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "CholeskyGrad", .types = "T: float, double", .run = cholesky_grad},
    {.op = "BatchCholeskyGrad", .run = cholesky_grad},
};
MR_KERNEL_FAMILY(cholesky_grad);
