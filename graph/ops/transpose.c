/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status tile_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status transpose_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status invert_permutation_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status broadcast_to_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status two_vectors_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op transpose_ops[] = {
    {.name = "Tile",
     .signature = "input: T, multiples: Tmultiples -> output: T",
     .attrs = "T: type; Tmultiples: {int32, int64} = int32",
     .shape = tile_shape,
     .gradient = MR_GRADIENT(mr_tile_gradient),
     .doc = "input repeated multiples times along each dimension."},
    {.name = "Transpose",
     .signature = "x: T, perm: Tperm -> y: T",
     .attrs = "T: type; Tperm: {int32, int64} = int32",
     .shape = transpose_shape,
     .gradient = MR_GRADIENT(mr_transpose_gradient),
     .doc = "x with dimension perm[i] as its i-th."},
    {.name = "InvertPermutation",
     .signature = "x: T -> y: T",
     .attrs = "T: {int32, int64} = int32",
     .shape = invert_permutation_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "The permutation that undoes x."},
    {.name = "ReverseV2",
     .signature = "tensor: T, axis: Tidx -> output: T",
     .attrs = "Tidx: {int32, int64} = int32; "
              "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, "
              "complex64, complex128, string}",
     .shape = mr_shape_unchanged,
     .gradient = MR_GRADIENT(mr_reverse_v2_gradient),
     .doc = "tensor with the order of its elements turned round along each of axis."},
    {.name = "BroadcastTo",
     .signature = "input: T, shape: Tidx -> output: T",
     .attrs = "T: type; Tidx: {int32, int64} = int32",
     .shape = broadcast_to_shape,
     .gradient = MR_GRADIENT(mr_broadcast_to_gradient),
     .doc = "input repeated along dimensions of size 1 to fill shape."},
    {.name = "BroadcastGradientArgs",
     .signature = "s0: T, s1: T -> r0: T, r1: T",
     .attrs = "T: {int32, int64} = int32",
     .shape = two_vectors_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Which dimensions the gradients of two broadcast operands sum over, for shapes s0 and s1."},
};

const mr_op_table mr_op_table_transpose = {transpose_ops, sizeof transpose_ops / sizeof transpose_ops[0]};
