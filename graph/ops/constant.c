/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status const_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status placeholder_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status placeholder_with_default_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status fill_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status range_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op constant_ops[] = {
    {.name = "Const",
     .signature = "-> output: dtype",
     .attrs = "value: tensor; dtype: type",
     .shape = const_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "A tensor that is part of the graph."},
    {.name = "Placeholder",
     .signature = "-> output: dtype",
     .attrs = "dtype: type; shape: shape = unknown",
     .shape = placeholder_shape,
     .doc = "A value that must be fed."},
    {.name = "PlaceholderWithDefault",
     .signature = "input: dtype -> output: dtype",
     .attrs = "dtype: type; shape: shape",
     .shape = placeholder_with_default_shape,
     .gradient = MR_GRADIENT(mr_identity_gradient),
     .doc = "Passes input on unless a value is fed in its place."},
    {.name = "Fill",
     .signature = "dims: index_type, value: T -> output: T",
     .attrs = "T: type; index_type: {int32, int64} = int32",
     .shape = fill_shape,
     .gradient = MR_GRADIENT(mr_fill_gradient),
     .doc = "A tensor of the shape dims with value everywhere."},
    {.name = "ZerosLike",
     .signature = "x: T -> y: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Zeros of x's shape and dtype."},
    {.name = "OnesLike",
     .signature = "x: T -> y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, "
              "complex64, complex128, bool}",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Ones of x's shape and dtype."},
    {.name = "Range",
     .signature = "start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx",
     .attrs = "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32} = int32",
     .shape = range_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "start, start + delta, … as long as it is before limit."},
};

const mr_op_table mr_op_table_constant = {constant_ops, sizeof constant_ops / sizeof constant_ops[0]};
