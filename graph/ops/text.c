/* String operators. */
#include "graph/ir/op.h"

/* Scalars are joined with every element of the other inputs, which must have the same shape. */
static mr_status string_join_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = MR_SCALAR;
    bool is_unknown = false;
    for (int32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i].rank == 0) continue;
        is_unknown |= call->inputs[i].rank < 0;
        if (call->inputs[i].rank < 0) continue;
        if (result.rank == 0)
            result = call->inputs[i];
        else
            MR_TRY(mr_shape_merge(result, call->inputs[i], &result, error));
    }
    call->outputs[0] = is_unknown && result.rank == 0 ? MR_SHAPE_UNKNOWN : result;
    return MR_OK;
}

static const mr_op text_ops[] = {
    {.name = "StringJoin",
     .signature = "inputs: N * string -> output: string",
     .attrs = "N: int >= 0; separator: string = ''",
     .shape = string_join_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Joins strings element-wise with separator between them."},
};

const mr_op_table mr_ops_text = {text_ops, sizeof text_ops / sizeof text_ops[0]};
