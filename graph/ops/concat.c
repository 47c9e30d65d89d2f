/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status concat_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status concat_v1_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status each_rest_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status pack_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status unpack_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status split_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status split_v_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op concat_ops[] = {
    {.name = "ConcatV2",
     .signature = "values: N * T, axis: Tidx -> output: T",
     .attrs = "N: int >= 2; T: type; Tidx: {int32, int64} = int32",
     .shape = concat_shape,
     .gradient = MR_GRADIENT(mr_concat_v2_gradient),
     .doc = "Joins values along dimension axis."},
    {.name = "Concat",
     .signature = "concat_dim: int32, values: N * T -> output: T",
     .attrs = "N: int >= 2; T: type",
     .shape = concat_v1_shape,
     .gradient = MR_GRADIENT(mr_concat_gradient),
     .doc = "Joins values along dimension concat_dim."},
    {.name = "ConcatOffset",
     .signature = "concat_dim: int32, shape: N * shape_type -> offset: N * shape_type",
     .attrs = "N: int >= 2; shape_type: {int32, int64} = int32",
     .shape = each_rest_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Where each input of a concatenation begins in its output; the inputs are their shapes."},
    {.name = "Pack",
     .signature = "values: N * T -> output: T",
     .attrs = "N: int >= 1; T: type; axis: int = 0",
     .shape = pack_shape,
     .gradient = MR_GRADIENT(mr_pack_gradient),
     .doc = "Puts tensors of one shape beside each other along a new dimension axis."},
    {.name = "Unpack",
     .signature = "value: T -> output: num * T",
     .attrs = "num: int >= 0; T: type; axis: int = 0",
     .shape = unpack_shape,
     .gradient = MR_GRADIENT(mr_unpack_gradient),
     .doc = "Takes value apart along dimension axis into num tensors."},
    {.name = "Split",
     .signature = "split_dim: int32, value: T -> output: num_split * T",
     .attrs = "num_split: int >= 1; T: type",
     .shape = split_shape,
     .gradient = MR_GRADIENT(mr_split_gradient),
     .doc = "Cuts value into num_split equal pieces along dimension split_dim."},
    {.name = "SplitV",
     .signature = "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T",
     .attrs = "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = int64",
     .shape = split_v_shape,
     .gradient = MR_GRADIENT(mr_split_v_gradient),
     .doc = "Cuts value into pieces of size_splits along dimension split_dim."},
};

const mr_op_table mr_op_table_concat = {concat_ops, sizeof concat_ops / sizeof concat_ops[0]};
