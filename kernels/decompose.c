/* Orthogonal decompositions: Qr, Svd, SelfAdjointEig, Eig, and least squares by them. */
#include "kernels/blas.h"
#include "kernels/lapack.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Memory of one call: matrices of elements of LAPACK's type. */
typedef struct work {
    const mr_lapack *lapack;
    mr_dtype dtype;
    mr_matrices matrices;
    int rows, columns, inner; /* inner: the smaller one */
    void *a, *b, *c;
    double *values;
    mr_lapack_work lapack_work;
} work;

/* What QR and Eig need. */
static mr_lapack_sizes common_sizes(const work *w)
{
    const int64_t most = MR_MAX(w->rows, w->columns) + (int64_t)1;
    return (mr_lapack_sizes){.elements = most * 64 + 1024, .reals = 8 * most};
}

/* b and c have the given numbers of elements. */
static mr_status start(const mr_kernel_call *call, work *w, bool is_complex, int64_t b, int64_t c,
                       mr_lapack_sizes sizes, mr_error *error)
{
    w->lapack = mr_lapack_of(is_complex ? MR_COMPLEX128 : w->dtype);
    mr_status status = mr_lapack_memory(call, (int64_t)w->rows * w->columns, w->lapack->size, &w->a, error);
    if (status == MR_OK) status = mr_lapack_memory(call, b, w->lapack->size, &w->b, error);
    if (status == MR_OK) status = mr_lapack_memory(call, c, w->lapack->size, &w->c, error);
    if (status == MR_OK)
        status = mr_lapack_memory(call, MR_MAX(w->rows, w->columns), sizeof(double), (void **)&w->values, error);
    return status == MR_OK ? mr_lapack_work_new(call, w->lapack, sizes, &w->lapack_work, error) : status;
}

static void finish(work *w)
{
    free(w->a);
    free(w->b);
    free(w->c);
    free(w->values);
    mr_lapack_work_free(&w->lapack_work);
}

static mr_status read_matrices(const mr_kernel_call *call, bool square, work *w, mr_error *error)
{
    *w = (work){.dtype = call->inputs[0].dtype};
    if (square)
        MR_TRY(mr_matrices_square(call, 0, &w->matrices, error));
    else
        MR_TRY(mr_matrices_of(call, 0, &w->matrices, error));
    w->rows = w->matrices.rows;
    w->columns = w->matrices.columns;
    w->inner = MR_MIN(w->rows, w->columns);
    return MR_OK;
}

static void load(const mr_kernel_call *call, const work *w, int64_t i)
{
    mr_lapack_load(w->dtype, mr_matrix_at(&call->inputs[0], i, (int64_t)w->rows * w->columns), w->rows, w->columns,
                   w->lapack->is_complex, w->a);
}

/* Stores a column-major matrix with `lead` rows as matrix i of an output. */
static void store(mr_kernel_call *call, const work *w, int output, int64_t i, int64_t rows, int64_t columns,
                  const void *source, int64_t lead)
{
    mr_tensor *tensor = &call->outputs[output];
    mr_lapack_store(tensor->dtype, mr_matrix_at(tensor, i, rows * columns), rows, columns, w->lapack->is_complex,
                    source, lead);
}

/* The number of matrices to compute: none if no output has elements, since a batch of empty matrices can have any
 * size. */
static int64_t matrix_count(const mr_kernel_call *call, const work *w)
{
    for (int i = 0; i < call->node->output_count; i++)
        if (mr_tensor_count(&call->outputs[i]) > 0) return w->matrices.count;
    return 0;
}

static mr_shape append(mr_shape batch, int64_t size)
{
    batch.dims[batch.rank++] = size;
    return batch;
}

/* ---- QR ---- */

/* The first `size` columns of an identity matrix. */
static void set_identity(const work *w, void *target, int rows, int columns)
{
    memset(target, 0, (size_t)rows * (size_t)columns * w->lapack->size);
    for (int d = 0; d < MR_MIN(rows, columns); d++)
        *(double *)((char *)target + ((size_t)d * (size_t)rows + (size_t)d) * w->lapack->size) = 1;
}

static void qr_one(mr_kernel_call *call, work *w, int64_t i, int width)
{
    int info, m = w->rows, n = w->columns;
    const mr_lapack_work *space = &w->lapack_work;
    size_t size = w->lapack->size;
    set_identity(w, w->b, m, width);
    if (w->inner > 0) {
        load(call, w, i);
        MR_BLAS(w->lapack->geqrf(&m, &n, w->a, &m, w->c, space->elements, &space->element_count, &info));
        memcpy(w->b, w->a, (size_t)m * (size_t)w->inner * size);
        MR_BLAS(w->lapack->orgqr(&m, &width, &w->inner, w->b, &m, w->c, space->elements, &space->element_count, &info));
        for (int c = 0; c < n && c + 1 < m; c++)
            memset((char *)w->a + ((size_t)c * (size_t)m + (size_t)c + 1) * size, 0, (size_t)(m - c - 1) * size);
    }
    store(call, w, 0, i, m, width, w->b, m);
    if (width > 0 && n > 0) store(call, w, 1, i, width, n, w->a, m);
}

static mr_status qr(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(qr);
    work w;
    MR_TRY(read_matrices(call, false, &w, error));
    int width = mr_attr_bool_or(call->node->attrs, "full_matrices", false) ? w.rows : w.inner;
    mr_status status =
        start(call, &w, false, (int64_t)w.rows * MR_MAX(width, w.inner), w.inner, common_sizes(&w), error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, mr_matrices_shape(w.matrices.batch, w.rows, width), error);
    if (status == MR_OK)
        status = mr_kernel_output(call, 1, mr_matrices_shape(w.matrices.batch, width, w.columns), error);
    for (int64_t i = 0; status == MR_OK && i < matrix_count(call, &w); i++) qr_one(call, &w, i, width);
    finish(&w);
    return status;
}

/* ---- Singular values ---- */

/* Transposes and conjugates the column-major vt [rows, columns] into row-major v [columns, rows] of output 2. */
static void store_adjoint(mr_kernel_call *call, const work *w, int64_t i, int rows, int columns)
{
    if (w->lapack->is_complex)
        for (int64_t k = 0; k < (int64_t)rows * columns; k++)
            ((double *)w->c)[2 * k + 1] = -((double *)w->c)[2 * k + 1];
    mr_tensor *v = &call->outputs[2];
    /* Row-major [columns, rows] has the order of column-major [rows, columns]. */
    mr_lapack_store(v->dtype, mr_matrix_at(v, i, (int64_t)rows * columns), 1, (int64_t)rows * columns,
                    w->lapack->is_complex, w->c, 1);
}

/* Inputs that are not finite have no singular values, as in TensorFlow. */
static void svd_one(mr_kernel_call *call, work *w, int64_t i, bool vectors, bool full)
{
    int info = 0, m = w->rows, n = w->columns, u_width = full ? m : w->inner, v_height = full ? n : w->inner;
    const char *job = !vectors ? "N" : full ? "A" : "S";
    bool finite = mr_lapack_is_finite(w->dtype, mr_matrix_at(&call->inputs[0], i, (int64_t)m * n), (int64_t)m * n);
    set_identity(w, w->b, m, u_width);
    set_identity(w, w->c, v_height, n);
    if (finite && w->inner > 0) {
        load(call, w, i);
        MR_BLAS(w->lapack->gesdd(job, m, n, w->a, w->values, w->b, w->c, MR_MAX(1, v_height), &w->lapack_work, &info));
    }
    for (int k = 0; k < w->inner; k++)
        if (!finite || info != 0) w->values[k] = (double)NAN;
    mr_lapack_store(call->outputs[0].dtype, mr_matrix_at(&call->outputs[0], i, w->inner), 1, w->inner, false, w->values,
                    1);
    if (!vectors) return;
    if (!finite || info != 0) {
        for (size_t k = 0; k < (size_t)m * (size_t)u_width * w->lapack->size / 8; k++)
            ((double *)w->b)[k] = (double)NAN;
        for (size_t k = 0; k < (size_t)n * (size_t)v_height * w->lapack->size / 8; k++)
            ((double *)w->c)[k] = (double)NAN;
    }
    store(call, w, 1, i, m, u_width, w->b, m);
    store_adjoint(call, w, i, v_height, n);
}

static mr_status svd(mr_kernel_call *call, mr_error *error)
{
    work w;
    bool vectors = mr_attr_bool_or(call->node->attrs, "compute_uv", true);
    bool full = mr_attr_bool_or(call->node->attrs, "full_matrices", false);
    MR_TRY(read_matrices(call, false, &w, error));
    int u_width = full ? w.rows : w.inner, v_height = full ? w.columns : w.inner;
    mr_status status = start(call, &w, false, (int64_t)w.rows * w.rows, (int64_t)w.columns * w.columns,
                             mr_lapack_gesdd_sizes(w.rows, w.columns), error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, append(w.matrices.batch, w.inner), error);
    for (int o = 1; o < 3 && status == MR_OK; o++) {
        mr_shape shape = o == 1 ? mr_matrices_shape(w.matrices.batch, w.rows, u_width)
                                : mr_matrices_shape(w.matrices.batch, w.columns, v_height);
        status = mr_kernel_output(call, o, vectors ? shape : MR_SHAPE(0), error);
    }
    for (int64_t i = 0; status == MR_OK && i < matrix_count(call, &w); i++) svd_one(call, &w, i, vectors, full);
    finish(&w);
    return status;
}

/* ---- Eigenvalues ---- */

/* Computes w->values, and the vectors in place of w->a. The lower triangle is read. */
static mr_status self_adjoint_one(mr_kernel_call *call, work *w, int64_t i, bool vectors, mr_error *error)
{
    int info = 0;
    int64_t count = (int64_t)w->rows * w->rows;
    bool finite = mr_lapack_is_finite(w->dtype, mr_matrix_at(&call->inputs[0], i, count), count);
    load(call, w, i);
    if (finite && w->rows > 0)
        MR_BLAS(w->lapack->heevd(vectors ? "V" : "N", w->rows, w->a, w->values, &w->lapack_work, &info));
    if (finite && info == 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
}

static mr_status self_adjoint_eig_v2(mr_kernel_call *call, mr_error *error)
{
    work w;
    bool vectors = mr_attr_bool_or(call->node->attrs, "compute_v", true);
    MR_TRY(read_matrices(call, true, &w, error));
    mr_status status = start(call, &w, false, 0, 0, mr_lapack_heevd_sizes(w.rows), error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, append(w.matrices.batch, w.rows), error);
    if (status == MR_OK) status = mr_kernel_output(call, 1, vectors ? call->inputs[0].shape : MR_SHAPE(0), error);
    for (int64_t i = 0; i < w.matrices.count && w.rows > 0 && status == MR_OK; i++) {
        status = self_adjoint_one(call, &w, i, vectors, error);
        if (status != MR_OK) break;
        mr_lapack_store(w.dtype, mr_matrix_at(&call->outputs[0], i, w.rows), 1, w.rows, false, w.values, 1);
        if (vectors) store(call, &w, 1, i, w.rows, w.rows, w.a, w.rows);
    }
    finish(&w);
    return status;
}

/* The first version returns one matrix: the values, and below them the vectors. */
static mr_status self_adjoint_eig(mr_kernel_call *call, mr_error *error)
{
    work w;
    MR_TRY(read_matrices(call, true, &w, error));
    int64_t n = w.rows;
    mr_status status = start(call, &w, false, 0, 0, mr_lapack_heevd_sizes(w.rows), error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, mr_matrices_shape(w.matrices.batch, n + 1, n), error);
    for (int64_t i = 0; i < w.matrices.count && n > 0 && status == MR_OK; i++) {
        status = self_adjoint_one(call, &w, i, true, error);
        if (status != MR_OK) break;
        char *target = mr_matrix_at(&call->outputs[0], i, (n + 1) * n);
        mr_lapack_store(w.dtype, target, 1, n, false, w.values, 1);
        mr_lapack_store(w.dtype, target + (size_t)n * mr_dtype_size(w.dtype), n, n, w.lapack->is_complex, w.a, n);
    }
    finish(&w);
    return status;
}

static mr_status eig(mr_kernel_call *call, mr_error *error)
{
    work w;
    bool vectors = mr_attr_bool_or(call->node->attrs, "compute_v", true);
    MR_TRY(read_matrices(call, true, &w, error));
    mr_dtype given = call->inputs[0].dtype, result = call->node->output_dtypes[0];
    mr_dtype expected = given == MR_FLOAT || given == MR_COMPLEX64 ? MR_COMPLEX64 : MR_COMPLEX128;
    if (result != expected)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid output dtype %d vs %d", (int)result,
                              (int)expected);
    int n = w.rows;
    int64_t count = (int64_t)n * n;
    mr_status status = start(call, &w, true, count, n, common_sizes(&w), error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, append(w.matrices.batch, n), error);
    if (status == MR_OK) status = mr_kernel_output(call, 1, vectors ? call->inputs[0].shape : MR_SHAPE(0), error);
    for (int64_t i = 0; i < w.matrices.count && n > 0 && status == MR_OK; i++) {
        int info = 1;
        load(call, &w, i);
        if (mr_lapack_is_finite(w.dtype, mr_matrix_at(&call->inputs[0], i, count), count))
            MR_BLAS(mr_lapack_eig(n, w.a, w.c, vectors ? w.b : nullptr, w.lapack_work.elements,
                                  w.lapack_work.element_count, w.lapack_work.reals, &info));
        if (info != 0) {
            status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                    "Eigen decomposition was not successful. The input might not be valid.");
            break;
        }
        store(call, &w, 0, i, 1, n, w.c, 1);
        if (vectors) store(call, &w, 1, i, n, n, w.b, n);
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
    {.op = "Qr", .run = qr},
    BOTH("Svd", .types = TYPES, .run = svd),
    BOTH("SelfAdjointEig", .types = "T: float, double", .run = self_adjoint_eig),
    BOTH("SelfAdjointEigV2", .types = TYPES, .run = self_adjoint_eig_v2),
    {.op = "Eig", .run = eig},
};
MR_KERNEL_FAMILY(decompose);
