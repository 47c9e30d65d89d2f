/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status reshape_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status shape_of_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status shape_n_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status expand_dims_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status squeeze_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op reshape_ops[] = {
    {.name = "Reshape",
     .signature = "tensor: T, shape: Tshape -> output: T",
     .attrs = "T: type; Tshape: {int32, int64} = int32",
     .shape = reshape_shape,
     .gradient = MR_GRADIENT(mr_reshape_gradient),
     .doc = "The elements of tensor under another shape; one size may be -1."},
    {.name = "Shape",
     .signature = "input: T -> output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = int32",
     .shape = shape_of_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "The shape of input as a vector."},
    {.name = "ShapeN",
     .signature = "input: N * T -> output: N * out_type",
     .attrs = "N: int >= 1; T: type; out_type: {int32, int64} = int32",
     .shape = shape_n_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "The shape of each input as a vector."},
    {.name = "Rank",
     .signature = "input: T -> output: int32",
     .attrs = "T: type",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "How many dimensions input has."},
    {.name = "Size",
     .signature = "input: T -> output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = int32",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "How many elements input has."},
    {.name = "ExpandDims",
     .signature = "input: T, dim: Tdim -> output: T",
     .attrs = "T: type; Tdim: {int32, int64} = int32",
     .shape = expand_dims_shape,
     .gradient = MR_GRADIENT(mr_reshape_gradient),
     .doc = "input with a dimension of size 1 put in at dim."},
    {.name = "Squeeze",
     .signature = "input: T -> output: T",
     .attrs = "T: type; squeeze_dims: list(int) >= 0 = []",
     .shape = squeeze_shape,
     .gradient = MR_GRADIENT(mr_reshape_gradient),
     .doc = "input without its dimensions of size 1, or without those in squeeze_dims."},
};

const mr_op_table mr_op_table_reshape = {reshape_ops, sizeof reshape_ops / sizeof reshape_ops[0]};
