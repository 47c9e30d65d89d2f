/* Matrix products. */
#include "graph/ir/op.h"

static mr_status product_sizes(mr_shape a, mr_shape b, bool transpose_a, bool transpose_b, int64_t *rows,
                               int64_t *columns, mr_error *error)
{
    int64_t inner = 0, inner_a = a.dims[a.rank - (transpose_a ? 2 : 1)],
            inner_b = b.dims[b.rank - (transpose_b ? 1 : 2)];
    if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a has rows of %lld elements, but b has columns of %lld",
                       (long long)inner_a, (long long)inner_b);
    MR_TRY(mr_size_merge(inner_a, inner_b, &inner, error));
    *rows = a.dims[a.rank - (transpose_a ? 1 : 2)];
    *columns = b.dims[b.rank - (transpose_b ? 2 : 1)];
    return MR_OK;
}

static mr_status mat_mul_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape a, b;
    int64_t rows = 0, columns = 0;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &a, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 2, &b, error));
    MR_TRY(product_sizes(a, b, mr_attr_bool_or(call->attrs, "transpose_a", false),
                         mr_attr_bool_or(call->attrs, "transpose_b", false), &rows, &columns, error));
    call->outputs[0] = MR_SHAPE(rows, columns);
    return MR_OK;
}

static mr_status batch_product(mr_shape_call *call, bool broadcasts, mr_error *error)
{
    mr_shape a = call->inputs[0], b = call->inputs[1], batch;
    int64_t rows = 0, columns = 0;
    MR_TRY(mr_shape_at_least(a, 2, error));
    MR_TRY(mr_shape_at_least(b, 2, error));
    if (a.rank < 0 || b.rank < 0) return MR_OK;
    MR_TRY(product_sizes(a, b, mr_attr_bool_or(call->attrs, "adj_x", false),
                         mr_attr_bool_or(call->attrs, "adj_y", false), &rows, &columns, error));
    a.rank -= 2;
    b.rank -= 2;
    if (broadcasts)
        MR_TRY(mr_shape_broadcast(a, b, &batch, error));
    else
        MR_TRY(mr_shape_merge(a, b, &batch, error));
    batch.dims[batch.rank++] = rows;
    batch.dims[batch.rank++] = columns;
    call->outputs[0] = batch;
    return MR_OK;
}

static mr_status batch_mat_mul_shape(mr_shape_call *call, mr_error *error)
{
    return batch_product(call, false, error);
}

static mr_status batch_mat_mul_v2_shape(mr_shape_call *call, mr_error *error)
{
    return batch_product(call, true, error);
}

static const mr_op matmul_ops[] = {
    {.name = "MatMul",
     .signature = "a: T, b: T -> product: T",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; "
              "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
     .shape = mat_mul_shape,
     .fusion = {.sum = "_SumOfMatMuls",
                .accumulate = "_AccumulateMatMul",
                .bias = "_MatMulBias",
                .transpose = "_TransposeMatrix"},
     .doc = "Computes the product of two matrices, each optionally transposed first."},
    {.name = "BatchMatMul",
     .signature = "x: T, y: T -> output: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}; adj_x: bool = false; "
              "adj_y: bool = false",
     .shape = batch_mat_mul_shape,
     .fusion = {.heads = "_BatchMatMulHeads"},
     .doc = "Computes the products of the matrices in the last two dimensions; the others must be equal."},
    {.name = "BatchMatMulV2",
     .signature = "x: T, y: T -> output: T",
     .attrs = "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
              "complex128}; "
              "adj_x: bool = false; adj_y: bool = false",
     .shape = batch_mat_mul_v2_shape,
     .fusion = {.heads = "_BatchMatMulV2Heads"},
     .doc = "Computes the products of the matrices in the last two dimensions; the others are broadcast."},
    {.name = "BatchMatMulV3",
     .signature = "x: Ta, y: Tb -> output: Tout",
     .attrs = "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}; Tb: "
              "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}; Tout: "
              "{bfloat16, half, float, double, int16, int32, int64, complex64, complex128}; adj_x: bool = false; "
              "adj_y: bool = false",
     .shape = batch_mat_mul_v2_shape,
     .doc = "Computes the products of the matrices in the last two dimensions; the operands may have different types."},
    {.name = "SparseMatMul",
     .signature = "a: Ta, b: Tb -> product: float",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; a_is_sparse: bool = false; b_is_sparse: bool = "
              "false; Ta: {float, bfloat16} = float; Tb: {float, bfloat16} = float",
     .shape = mat_mul_shape,
     .doc = "Computes the product of two matrices of float or bfloat16; the hints that one is sparse have no effect."},
};

const mr_op_table mr_ops_matmul = {matmul_ops, sizeof matmul_ops / sizeof matmul_ops[0]};
