/* IDEA */
#include "graph/ir/op.h"

static mr_status string_join_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op text_ops[] = {
    {.name = "StringJoin",
     .signature = "inputs: N * string -> output: string",
     .attrs = "N: int >= 0; separator: string = ''",
     .shape = string_join_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Joins strings element by element with separator between them."},
};

const mr_op_table mr_op_table_text = {text_ops, sizeof text_ops / sizeof text_ops[0]};
