/* Orthogonal decompositions of the matrices in the last two dimensions: QR, singular values, eigenvalues. */
#include "graph/ir/op.h"

/* Splits an input of rank 2 or more into its leading dimensions and the sizes of its matrices; -1 is unknown. */
static mr_status split(mr_shape shape, mr_shape *batch, int64_t *rows, int64_t *columns, mr_error *error)
{
    *rows = *columns = -1;
    *batch = shape;
    MR_TRY(mr_shape_at_least(shape, 2, error));
    if (shape.rank < 0) return MR_OK;
    *rows = shape.dims[shape.rank - 2];
    *columns = shape.dims[shape.rank - 1];
    batch->rank -= 2;
    return MR_OK;
}

static mr_shape append(mr_shape batch, int64_t size)
{
    if (batch.rank >= 0) batch.dims[batch.rank++] = size;
    return batch;
}

static int64_t smaller(int64_t rows, int64_t columns)
{
    return rows < 0 || columns < 0 ? -1 : rows < columns ? rows : columns;
}

static mr_status qr_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape batch;
    int64_t rows, columns;
    MR_TRY(split(call->inputs[0], &batch, &rows, &columns, error));
    int64_t inner = mr_attr_bool_or(call->attrs, "full_matrices", false) ? rows : smaller(rows, columns);
    call->outputs[0] = append(append(batch, rows), inner);
    call->outputs[1] = append(append(batch, inner), columns);
    return MR_OK;
}

static mr_status svd_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape batch;
    int64_t rows, columns;
    MR_TRY(split(call->inputs[0], &batch, &rows, &columns, error));
    int64_t inner = smaller(rows, columns);
    bool full = mr_attr_bool_or(call->attrs, "full_matrices", false);
    call->outputs[0] = append(batch, inner);
    call->outputs[1] = call->outputs[2] = MR_SHAPE(0);
    if (!mr_attr_bool_or(call->attrs, "compute_uv", true)) return MR_OK;
    call->outputs[1] = append(append(batch, rows), full ? rows : inner);
    call->outputs[2] = append(append(batch, columns), full ? columns : inner);
    return MR_OK;
}

static mr_status self_adjoint_eig_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape batch;
    int64_t rows, columns, size;
    MR_TRY(split(call->inputs[0], &batch, &rows, &columns, error));
    MR_TRY(mr_size_merge(rows, columns, &size, error));
    if (size == INT64_MAX) return mr_fail(error, MR_INVALID_ARGUMENT, "the matrices are too large");
    call->outputs[0] = append(append(batch, size < 0 ? -1 : size + 1), size);
    return MR_OK;
}

static mr_status eig_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape batch;
    int64_t rows, columns, size;
    MR_TRY(split(call->inputs[0], &batch, &rows, &columns, error));
    MR_TRY(mr_size_merge(rows, columns, &size, error));
    call->outputs[0] = append(batch, size);
    call->outputs[1] =
        mr_attr_bool_or(call->attrs, "compute_v", true) ? append(append(batch, size), size) : MR_SHAPE(0);
    return MR_OK;
}

static const mr_op decompose_ops[] = {
    {.name = "Qr",
     .signature = "input: T -> q: T, r: T",
     .attrs = "full_matrices: bool = false; T: {double, float, half, complex64, complex128}",
     .shape = qr_shape,
     .doc = "Computes QR decompositions: q is orthogonal, r upper triangular."},
    {.name = "Svd",
     .signature = "input: T -> s: T, u: T, v: T",
     .attrs = "compute_uv: bool = true; full_matrices: bool = false; T: {double, float, half, complex64, complex128}",
     .shape = svd_shape,
     .doc = "Computes singular value decompositions: u * diag(s) * adjoint(v)."},
    {.name = "BatchSvd",
     .signature = "input: T -> s: T, u: T, v: T",
     .attrs = "compute_uv: bool = true; full_matrices: bool = false; T: {double, float, complex64, complex128}",
     .shape = svd_shape,
     .doc = "Computes singular value decompositions: u * diag(s) * adjoint(v); used by old graphs."},
    {.name = "SelfAdjointEig",
     .signature = "input: T -> output: T",
     .attrs = "T: {double, float, half}",
     .shape = self_adjoint_eig_shape,
     .doc = "Computes the eigenvalues, in the first row, and eigenvectors of self-adjoint matrices."},
    {.name = "BatchSelfAdjointEig",
     .signature = "input: T -> output: T",
     .attrs = "T: {double, float}",
     .shape = self_adjoint_eig_shape,
     .doc =
         "Computes the eigenvalues, in the first row, and eigenvectors of self-adjoint matrices; used by old graphs."},
    {.name = "SelfAdjointEigV2",
     .signature = "input: T -> e: T, v: T",
     .attrs = "compute_v: bool = true; T: {double, float, half, complex64, complex128}",
     .shape = eig_shape,
     .doc = "Computes the eigenvalues and eigenvectors of self-adjoint matrices."},
    {.name = "BatchSelfAdjointEigV2",
     .signature = "input: T -> e: T, v: T",
     .attrs = "compute_v: bool = true; T: {double, float}",
     .shape = eig_shape,
     .doc = "Computes the eigenvalues and eigenvectors of self-adjoint matrices; used by old graphs."},
    {.name = "Eig",
     .signature = "input: T -> e: Tout, v: Tout",
     .attrs = "compute_v: bool = true; T: {float, double, complex64, complex128}; Tout: {complex64, complex128}",
     .shape = eig_shape,
     .doc = "Computes the eigenvalues and right eigenvectors of square matrices."},
};

const mr_op_table mr_ops_decompose = {decompose_ops, sizeof decompose_ops / sizeof decompose_ops[0]};
