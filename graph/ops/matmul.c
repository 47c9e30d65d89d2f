/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status mat_mul_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status batch_mat_mul_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status batch_mat_mul_v2_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op matmul_ops[] = {
    {.name = "MatMul",
     .signature = "a: T, b: T -> product: T",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; "
              "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
     .shape = mat_mul_shape,
     .gradient = MR_GRADIENT(mr_mat_mul_gradient),
     .doc = "The product of two matrices, each transposed first when asked."},
    {.name = "BatchMatMul",
     .signature = "x: T, y: T -> output: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}; adj_x: bool = false; "
              "adj_y: bool = false",
     .shape = batch_mat_mul_shape,
     .gradient = MR_GRADIENT(mr_batch_mat_mul_gradient),
     .doc = "The products of the matrices in the last two dimensions; the others are equal."},
    {.name = "BatchMatMulV2",
     .signature = "x: T, y: T -> output: T",
     .attrs = "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
              "complex128}; "
              "adj_x: bool = false; adj_y: bool = false",
     .shape = batch_mat_mul_v2_shape,
     .gradient = MR_GRADIENT(mr_batch_mat_mul_gradient),
     .doc = "The products of the matrices in the last two dimensions; the others broadcast."},
};

const mr_op_table mr_op_table_matmul = {matmul_ops, sizeof matmul_ops / sizeof matmul_ops[0]};
