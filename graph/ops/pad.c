/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status pad_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status mirror_pad_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op pad_ops[] = {
    {.name = "Pad",
     .signature = "input: T, paddings: Tpaddings -> output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32",
     .shape = pad_shape,
     .gradient = MR_GRADIENT(mr_pad_gradient),
     .doc = "input with paddings[i] = (before, after) zeros around dimension i."},
    {.name = "PadV2",
     .signature = "input: T, paddings: Tpaddings, constant_values: T -> output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32",
     .shape = pad_shape,
     .gradient = MR_GRADIENT(mr_pad_gradient),
     .doc = "input with paddings[i] = (before, after) of constant_values around dimension i."},
    {.name = "MirrorPad",
     .signature = "input: T, paddings: Tpaddings -> output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32; mode: {'REFLECT', 'SYMMETRIC'}",
     .shape = mirror_pad_shape,
     .doc = "input with its own elements mirrored around it."},
};

const mr_op_table mr_op_table_pad = {pad_ops, sizeof pad_ops / sizeof pad_ops[0]};
