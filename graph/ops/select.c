/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status select_v1_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status select_v2_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status clip_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op select_ops[] = {
    {.name = "Select",
     .signature = "condition: bool, t: T, e: T -> output: T",
     .attrs = "T: type",
     .shape = select_v1_shape,
     .gradient = MR_GRADIENT(mr_select_gradient),
     .doc = "t where condition is true, e elsewhere; a vector as condition chooses rows."},
    {.name = "SelectV2",
     .signature = "condition: bool, t: T, e: T -> output: T",
     .attrs = "T: type",
     .shape = select_v2_shape,
     .gradient = MR_GRADIENT(mr_select_v2_gradient),
     .doc = "t where condition is true, e elsewhere; all three broadcast."},
    {.name = "ClipByValue",
     .signature = "t: T, clip_value_min: T, clip_value_max: T -> output: T",
     .attrs = "T: numbertype",
     .shape = clip_shape,
     .gradient = MR_GRADIENT(mr_clip_by_value_gradient),
     .doc = "t, not below clip_value_min and not above clip_value_max."},
};

const mr_op_table mr_op_table_select = {select_ops, sizeof select_ops / sizeof select_ops[0]};
