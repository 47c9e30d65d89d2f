/* Variables of one run as nodes. */
#include "graph/ir/op.h"

static mr_status attr_shape(mr_shape_call *call, mr_error *)
{
    if (mr_attr_get_shape(call->attrs, "shape", &call->outputs[0], nullptr) != MR_OK)
        call->outputs[0] = MR_SHAPE_UNKNOWN;
    return MR_OK;
}

static const mr_op temporary_ops[] = {
    {.name = "TemporaryVariable",
     .signature = "-> ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; var_name: string = ''",
     .shape = attr_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns a variable that exists until it is destroyed, or until the run ends."},
    {.name = "DestroyTemporaryVariable",
     .signature = "ref: Ref(T) -> value: T",
     .attrs = "T: type; var_name: string",
     .shape = mr_shape_unchanged,
     .doc = "Returns the value of a variable of the run, and removes the variable."},
};

const mr_op_table mr_ops_temporary = {temporary_ops, sizeof temporary_ops / sizeof temporary_ops[0]};
