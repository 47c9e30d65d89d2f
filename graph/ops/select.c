/* Selecting elements by a condition, and clipping. */
#include "graph/ir/op.h"

static mr_status select_v1_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape condition = call->inputs[0], result;
    MR_TRY(mr_shape_merge(call->inputs[1], call->inputs[2], &result, error));
    if (condition.rank == 1 && result.rank > 1) {
        MR_TRY(mr_size_merge(condition.dims[0], result.dims[0], &result.dims[0], error));
    } else if (condition.rank > 0 && result.rank >= 0) {
        MR_TRY(mr_shape_merge(condition, result, &result, error));
    }
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status select_v2_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape branches;
    MR_TRY(mr_shape_broadcast(call->inputs[1], call->inputs[2], &branches, error));
    return mr_shape_broadcast(call->inputs[0], branches, &call->outputs[0], error);
}

static mr_status clip_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unchanged(call, error);
}

static const mr_op select_ops[] = {
    {.name = "Select",
     .signature = "condition: bool, t: T, e: T -> output: T",
     .attrs = "T: type",
     .shape = select_v1_shape,
     .doc = "Returns t where condition is true, e elsewhere; a condition vector selects rows."},
    {.name = "SelectV2",
     .signature = "condition: bool, t: T, e: T -> output: T",
     .attrs = "T: type",
     .shape = select_v2_shape,
     .doc = "Returns t where condition is true, e elsewhere; all three are broadcast."},
    {.name = "ClipByValue",
     .signature = "t: T, clip_value_min: T, clip_value_max: T -> output: T",
     .attrs = "T: numbertype",
     .shape = clip_shape,
     .doc = "Clips t to the range from clip_value_min to clip_value_max."},
};

const mr_op_table mr_ops_select = {select_ops, sizeof select_ops / sizeof select_ops[0]};
