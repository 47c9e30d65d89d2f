/* Optionals: variants that have a tuple of tensors, or no value. */
#include "graph/ir/op.h"

static mr_status get_value_shape(mr_shape_call *call, mr_error *error)
{
    const mr_attr *shapes = mr_attrs_find(call->attrs, "output_shapes");
    int32_t count = shapes == nullptr ? 0 : shapes->count;
    if (count != call->output_count)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "`output_shapes` must be the same length as `output_types` (%d vs. %d)", (int)count,
                       (int)call->output_count);
    for (int32_t i = 0; i < count; i++) call->outputs[i] = shapes->values[i].shape;
    return MR_OK;
}

static const mr_op optional_ops[] = {
    {.name = "OptionalFromValue",
     .signature = "components: Toutput_types -> optional: variant",
     .attrs = "Toutput_types: list(type) >= 1",
     .shape = mr_shape_scalar,
     .doc = "Returns an optional with the tensors components."},
    {.name = "OptionalNone",
     .signature = "-> optional: variant",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns an optional without a value."},
    {.name = "OptionalHasValue",
     .signature = "optional: variant -> has_value: bool",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns whether optional has a value."},
    {.name = "OptionalGetValue",
     .signature = "optional: variant -> components: output_types",
     .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     .shape = get_value_shape,
     .doc = "Returns the tensors of optional, which must have a value."},
};

const mr_op_table mr_ops_optional = {optional_ops, sizeof optional_ops / sizeof optional_ops[0]};
