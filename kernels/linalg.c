/* Linear algebra by LU and Cholesky factors: Cholesky, inverses, determinants, systems of equations. */
#include "kernels/blas.h"
#include "kernels/elementwise.h"
#include "kernels/lapack.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A batch of square matrices, and memory for one of them and its pivots. */
typedef struct work {
    const mr_lapack *lapack;
    mr_dtype dtype;
    mr_matrices matrices;
    int n;
    void *a;
    int *pivots;
} work;

static mr_status start(const mr_kernel_call *call, work *w, mr_error *error)
{
    *w = (work){.lapack = mr_lapack_of(call->inputs[0].dtype), .dtype = call->inputs[0].dtype};
    MR_TRY(mr_matrices_square(call, 0, &w->matrices, error));
    w->n = w->matrices.rows;
    MR_TRY(mr_lapack_memory(call, (int64_t)w->n * w->n, w->lapack->size, &w->a, error));
    mr_status status = mr_lapack_memory(call, w->n, sizeof(int), (void **)&w->pivots, error);
    if (status != MR_OK) free(w->a);
    return status;
}

static void finish(work *w)
{
    free(w->a);
    free(w->pivots);
}

/* Element i of the diagonal of column-major a. */
static void diagonal_at(const work *w, int i, double *re, double *im)
{
    const double *d = (const double *)w->a + ((int64_t)i * w->n + i) * (w->lapack->is_complex ? 2 : 1);
    *re = d[0];
    *im = w->lapack->is_complex ? d[1] : 0;
}

/* Factors matrix i of input 0; false if a pivot is 0 or not a number. */
static bool factor(const mr_kernel_call *call, const work *w, int64_t i)
{
    int info = 0;
    mr_lapack_load(w->dtype, mr_matrix_at(&call->inputs[0], i, (int64_t)w->n * w->n), w->n, w->n, w->lapack->is_complex,
                   w->a);
    if (w->n > 0) MR_BLAS(w->lapack->getrf(&w->n, &w->n, w->a, &w->n, w->pivots, &info));
    bool invertible = info == 0;
    for (int d = 0; d < w->n && invertible; d++) {
        double re, im;
        diagonal_at(w, d, &re, &im);
        invertible = hypot(re, im) > 0;
    }
    return invertible;
}

/* Only the lower triangle is read. */
static mr_status cholesky(mr_kernel_call *call, mr_error *error)
{
    work w;
    MR_TRY(start(call, &w, error));
    mr_status status = mr_kernel_output(call, 0, call->inputs[0].shape, error);
    int64_t count = (int64_t)w.n * w.n;
    for (int64_t i = 0; i < w.matrices.count && count > 0 && status == MR_OK; i++) {
        int info;
        mr_lapack_load(w.dtype, mr_matrix_at(&call->inputs[0], i, count), w.n, w.n, w.lapack->is_complex, w.a);
        MR_BLAS(w.lapack->potrf("L", &w.n, w.a, &w.n, &info, 1));
        if (info != 0) {
            status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                    "Cholesky decomposition was not successful. The input might not be valid.");
            break;
        }
        for (int c = 1; c < w.n; c++)
            memset((char *)w.a + (size_t)c * (size_t)w.n * w.lapack->size, 0, (size_t)c * w.lapack->size);
        mr_lapack_store(w.dtype, mr_matrix_at(&call->outputs[0], i, count), w.n, w.n, w.lapack->is_complex, w.a, w.n);
    }
    finish(&w);
    return status;
}

static void set_identity(const work *w, void *target)
{
    memset(target, 0, (size_t)w->n * (size_t)w->n * w->lapack->size);
    for (int d = 0; d < w->n; d++)
        *(double *)((char *)target + ((size_t)d * (size_t)w->n + (size_t)d) * w->lapack->size) = 1;
}

static const char *transposition(const mr_kernel_call *call)
{
    return mr_attr_bool_or(call->node->attrs, "adjoint", false) ? "C" : "N";
}

/* Solves for the columns of b. uplo: null: w->a has the factors of a matrix; otherwise which triangle it is. */
static void solve(const mr_kernel_call *call, const work *w, const char *uplo, int columns, void *b)
{
    const char *with = transposition(call);
    int info;
    if (uplo)
        MR_BLAS(w->lapack->trtrs(uplo, with, "N", &w->n, &columns, w->a, &w->n, b, &w->n, &info, 1, 1, 1));
    else
        MR_BLAS(w->lapack->getrs(with, &w->n, &columns, w->a, &w->n, w->pivots, b, &w->n, &info, 1));
}

static mr_status matrix_inverse(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(matrix_inverse);
    work w;
    void *b = nullptr;
    MR_TRY(start(call, &w, error));
    int64_t count = (int64_t)w.n * w.n;
    mr_status status = mr_kernel_output(call, 0, call->inputs[0].shape, error);
    if (status == MR_OK) status = mr_lapack_memory(call, count, w.lapack->size, &b, error);
    for (int64_t i = 0; i < w.matrices.count && count > 0 && status == MR_OK; i++) {
        if (!factor(call, &w, i)) {
            status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input is not invertible.");
            break;
        }
        set_identity(&w, b);
        solve(call, &w, nullptr, w.n, b);
        mr_lapack_store(w.dtype, mr_matrix_at(&call->outputs[0], i, count), w.n, w.n, w.lapack->is_complex, b, w.n);
    }
    finish(&w);
    free(b);
    return status;
}

/* Checks that rhs has the batch of the matrices and as many rows. */
static mr_status check_rhs(const mr_kernel_call *call, const mr_matrices *matrices, const mr_matrices *rhs,
                           mr_error *error)
{
    if (!mr_shape_equal(matrices->batch, rhs->batch))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "All input tensors must have the same outer dimensions.");
    if (matrices->rows == rhs->rows) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input matrix and rhs are incompatible.");
}

static mr_status solve_each(mr_kernel_call *call, work *w, const mr_matrices *rhs, void *b, mr_error *error)
{
    int64_t elements = (int64_t)rhs->rows * rhs->columns;
    for (int64_t i = 0; i < w->matrices.count && elements > 0; i++) {
        if (!factor(call, w, i))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input matrix is not invertible.");
        mr_lapack_load(w->dtype, mr_matrix_at(&call->inputs[1], i, elements), rhs->rows, rhs->columns,
                       w->lapack->is_complex, b);
        solve(call, w, nullptr, rhs->columns, b);
        mr_lapack_store(w->dtype, mr_matrix_at(&call->outputs[0], i, elements), w->n, rhs->columns,
                        w->lapack->is_complex, b, w->n);
    }
    return MR_OK;
}

static mr_status matrix_solve(mr_kernel_call *call, mr_error *error)
{
    work w;
    mr_matrices rhs;
    void *b = nullptr;
    if (call->inputs[0].shape.rank >= 2 && call->inputs[0].shape.rank != call->inputs[1].shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "All input tensors must have the same rank.");
    MR_TRY(mr_matrices_of(call, 1, &rhs, error));
    MR_TRY(start(call, &w, error));
    mr_status status = check_rhs(call, &w.matrices, &rhs, error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, call->inputs[1].shape, error);
    if (status == MR_OK) status = mr_lapack_memory(call, (int64_t)rhs.rows * rhs.columns, w.lapack->size, &b, error);
    if (status == MR_OK) status = solve_each(call, &w, &rhs, b, error);
    finish(&w);
    free(b);
    return status;
}

/* The index of a matrix in a tensor whose batch is broadcast to `batch`. */
static int64_t matrix_index(mr_shape batch, const int64_t strides[MR_RANK_MAX], int64_t i)
{
    int64_t at = 0;
    for (int d = batch.rank - 1; d >= 0; d--) {
        at += i % batch.dims[d] * strides[d];
        i /= batch.dims[d];
    }
    return at;
}

static mr_status triangular_each(mr_kernel_call *call, work *w, const mr_matrices *rhs, mr_shape batch, void *b,
                                 mr_error *error)
{
    int64_t strides[2][MR_RANK_MAX], count = (int64_t)w->n * w->n, elements = (int64_t)rhs->rows * rhs->columns;
    const char *uplo = mr_attr_bool_or(call->node->attrs, "lower", true) ? "L" : "U";
    mr_broadcast_strides(w->matrices.batch, batch, strides[0]);
    mr_broadcast_strides(rhs->batch, batch, strides[1]);
    for (int64_t i = 0, total = mr_shape_count(batch); i < total && elements > 0; i++) {
        mr_lapack_load(w->dtype, mr_matrix_at(&call->inputs[0], matrix_index(batch, strides[0], i), count), w->n, w->n,
                       w->lapack->is_complex, w->a);
        for (int d = 0; d < w->n; d++) {
            double re, im;
            diagonal_at(w, d, &re, &im);
            if (!(hypot(re, im) > 0))
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input matrix is not invertible.");
        }
        mr_lapack_load(w->dtype, mr_matrix_at(&call->inputs[1], matrix_index(batch, strides[1], i), elements),
                       rhs->rows, rhs->columns, w->lapack->is_complex, b);
        solve(call, w, uplo, rhs->columns, b);
        mr_lapack_store(w->dtype, mr_matrix_at(&call->outputs[0], i, elements), w->n, rhs->columns,
                        w->lapack->is_complex, b, w->n);
    }
    return MR_OK;
}

/* Checks the shapes, and stores that of the batch. */
static mr_status check_triangular(const mr_kernel_call *call, mr_shape *batch, mr_error *error)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    mr_shape x = call->inputs[0].shape, y = call->inputs[1].shape;
    for (int i = 0; i < 2; i++)
        if (call->inputs[i].shape.rank < 2)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[%d] ndims must be >= 2: %d", i,
                                  call->inputs[i].shape.rank);
    mr_shape_text(x, a, sizeof a);
    mr_shape_text(y, b, sizeof b);
    x.rank -= 2;
    y.rank -= 2;
    if (mr_kernel_broadcast(call, x, y, batch, nullptr) != MR_OK)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "In[0] and In[1] must have compatible batch dimensions: %s vs. %s", a, b);
    int64_t rows = x.dims[x.rank], columns = x.dims[x.rank + 1], right = y.dims[y.rank];
    if (rows != columns)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "In[0] matrices in the last dimensions must be square (%" PRId64 " =/= %" PRId64 ")",
                              columns, rows);
    if (rows != right)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "In[0] mismatch In[1] shape: %" PRId64 " vs. %" PRId64 ": %s %s", rows, right, a, b);
    return MR_OK;
}

static mr_status matrix_triangular_solve(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(matrix_triangular_solve);
    work w;
    mr_matrices rhs;
    mr_shape batch;
    void *b = nullptr;
    MR_TRY(check_triangular(call, &batch, error));
    MR_TRY(mr_matrices_of(call, 1, &rhs, error));
    MR_TRY(start(call, &w, error));
    mr_status status = MR_OK;
    if (status == MR_OK) status = mr_kernel_output(call, 0, mr_matrices_shape(batch, rhs.rows, rhs.columns), error);
    if (status == MR_OK) status = mr_lapack_memory(call, (int64_t)rhs.rows * rhs.columns, w.lapack->size, &b, error);
    if (status == MR_OK) status = triangular_each(call, &w, &rhs, batch, b, error);
    finish(&w);
    free(b);
    return status;
}

/* ---- Determinants ---- */

/* The determinant of a factored matrix as a sign, or a direction of absolute value 1, and a logarithm. */
static double log_determinant(const work *w, bool finite, double sign[2])
{
    double sum = 0;
    sign[0] = 1;
    sign[1] = 0;
    for (int d = 0; d < w->n; d++) {
        double re, im;
        diagonal_at(w, d, &re, &im);
        if (w->pivots[d] != d + 1) {
            sign[0] = -sign[0];
            sign[1] = -sign[1];
        }
        double size = hypot(re, im), x = sign[0];
        sum += log(size);
        sign[0] = (x * re - sign[1] * im) / size;
        sign[1] = (x * im + sign[1] * re) / size;
    }
    if (!finite || isfinite(sum)) return sum;
    sign[0] = sign[1] = 0;
    return sum > 0 ? (double)INFINITY : -(double)INFINITY;
}

static void put_scalar(const work *w, mr_tensor *output, int64_t i, double re, double im)
{
    double value[2] = {re, im};
    mr_lapack_store(w->dtype, mr_matrix_at(output, i, 1), 1, 1, true, value, 1);
}

static mr_status determinants(mr_kernel_call *call, bool as_log, mr_error *error)
{
    work w;
    MR_TRY(start(call, &w, error));
    mr_status status = mr_kernel_output(call, 0, w.matrices.batch, error);
    if (status == MR_OK && as_log) status = mr_kernel_output(call, 1, w.matrices.batch, error);
    for (int64_t i = 0; i < w.matrices.count && status == MR_OK; i++) {
        double sign[2];
        (void)factor(call, &w, i);
        double size = log_determinant(&w, true, sign);
        if (as_log) {
            put_scalar(&w, &call->outputs[0], i, sign[0], sign[1]);
            put_scalar(&w, &call->outputs[1], i, size, 0);
        } else {
            put_scalar(&w, &call->outputs[0], i, sign[0] == 0 ? 0 : sign[0] * exp(size),
                       sign[1] == 0 ? 0 : sign[1] * exp(size));
        }
    }
    finish(&w);
    return status;
}

static mr_status matrix_determinant(mr_kernel_call *call, mr_error *error)
{
    return determinants(call, false, error);
}

static mr_status log_matrix_determinant(mr_kernel_call *call, mr_error *error)
{
    return determinants(call, true, error);
}

/* ---- LU ---- */

/* Writes the permutation of rows: row i of the product of the factors is row p[i] of the matrix. */
static void put_permutation(const work *w, mr_tensor *output, int64_t matrix)
{
    int64_t *wide = output->dtype == MR_INT64 ? (int64_t *)output->data + matrix * w->n : nullptr;
    int32_t *narrow = output->dtype == MR_INT32 ? (int32_t *)output->data + matrix * w->n : nullptr;
    for (int i = 0; i < w->n; i++) {
        if (wide != nullptr) wide[i] = i;
        if (narrow != nullptr) narrow[i] = i;
    }
    for (int i = 0; i < w->n; i++) {
        int other = w->pivots[i] - 1;
        if (wide != nullptr) {
            int64_t row = wide[i];
            wide[i] = wide[other];
            wide[other] = row;
        } else if (narrow != nullptr) {
            int32_t row = narrow[i];
            narrow[i] = narrow[other];
            narrow[other] = row;
        }
    }
}

static mr_status lu(mr_kernel_call *call, mr_error *error)
{
    work w;
    MR_TRY(start(call, &w, error));
    mr_shape rows = w.matrices.batch;
    rows.dims[rows.rank++] = w.n;
    int64_t count = (int64_t)w.n * w.n;
    mr_status status = mr_kernel_output(call, 0, call->inputs[0].shape, error);
    if (status == MR_OK) status = mr_kernel_output(call, 1, rows, error);
    for (int64_t i = 0; i < w.matrices.count && count > 0 && status == MR_OK; i++) {
        if (!factor(call, &w, i)) {
            status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input is not invertible.");
            break;
        }
        mr_lapack_store(w.dtype, mr_matrix_at(&call->outputs[0], i, count), w.n, w.n, w.lapack->is_complex, w.a, w.n);
        put_permutation(&w, &call->outputs[1], i);
    }
    finish(&w);
    return status;
}

#define TYPES "T: float, double, complex64, complex128"
#define BOTH(name, ...)                                                                                                \
    {.op = name, __VA_ARGS__},                                                                                         \
    {                                                                                                                  \
        .op = "Batch" name, __VA_ARGS__                                                                                \
    }
static const mr_kernel kernels[] = {
    BOTH("Cholesky", .types = TYPES, .run = cholesky),
    BOTH("MatrixInverse", .run = matrix_inverse),
    BOTH("MatrixSolve", .types = TYPES, .run = matrix_solve),
    BOTH("MatrixTriangularSolve", .run = matrix_triangular_solve),
    BOTH("MatrixDeterminant", .types = TYPES, .run = matrix_determinant),
    {.op = "LogMatrixDeterminant", .types = TYPES, .run = log_matrix_determinant},
    {.op = "Lu", .types = TYPES, .run = lu},
};
MR_KERNEL_FAMILY(linalg);
