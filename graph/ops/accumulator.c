/* Accumulators of gradients as nodes. */
#include "graph/ops/shapes.h"

static mr_status step_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape step;
    return mr_shape_with_rank(call->inputs[1], 0, &step, error);
}

static const mr_op accumulator_ops[] = {
    {.name = "ConditionalAccumulator",
     .signature = "-> handle: Ref(string)",
     .attrs = "dtype: numbertype; shape: shape; container: string = ''; shared_name: string = ''; reduction_type: "
              "{'MEAN', 'SUM'} = 'MEAN'",
     .shape = mr_string_handle_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the handle of an accumulator of gradients."},
    {.name = "AccumulatorApplyGradient",
     .signature = "handle: Ref(string), local_step: int64, gradient: dtype ->",
     .attrs = "dtype: numbertype",
     .shape = step_shape,
     .doc = "Adds a gradient, unless its step is older than that of the accumulator."},
    {.name = "AccumulatorTakeGradient",
     .signature = "handle: Ref(string), num_required: int32 -> average: dtype",
     .attrs = "dtype: numbertype",
     .shape = step_shape,
     .flags = MR_OP_WAITS,
     .doc = "Takes the mean or the sum of the gradients, and waits until there are num_required."},
    {.name = "AccumulatorNumAccumulated",
     .signature = "handle: Ref(string) -> num_accumulated: int32",
     .shape = mr_shape_scalar,
     .doc = "Returns the number of gradients in the accumulator."},
    {.name = "AccumulatorSetGlobalStep",
     .signature = "handle: Ref(string), new_global_step: int64 ->",
     .shape = step_shape,
     .doc = "Sets the step of the accumulator; older gradients are ignored."},
    {.name = "ResourceConditionalAccumulator",
     .signature = "-> handle: resource",
     .attrs = "dtype: numbertype; shape: shape; container: string = ''; shared_name: string = ''; reduction_type: "
              "{'MEAN', 'SUM'} = 'MEAN'",
     .shape = mr_string_handle_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the handle of an accumulator of gradients."},
    {.name = "ResourceAccumulatorApplyGradient",
     .signature = "handle: resource, local_step: int64, gradient: dtype ->",
     .attrs = "dtype: numbertype",
     .shape = step_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Adds a gradient, unless its step is older than that of the accumulator."},
    {.name = "ResourceAccumulatorTakeGradient",
     .signature = "handle: resource, num_required: int32 -> average: dtype",
     .attrs = "dtype: numbertype",
     .shape = step_shape,
     .flags = MR_OP_STATEFUL | MR_OP_WAITS,
     .doc = "Takes the mean or the sum of the gradients, and waits until there are num_required."},
    {.name = "ResourceAccumulatorNumAccumulated",
     .signature = "handle: resource -> num_accumulated: int32",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the number of gradients in the accumulator."},
    {.name = "ResourceAccumulatorSetGlobalStep",
     .signature = "handle: resource, new_global_step: int64 ->",
     .shape = step_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Sets the step of the accumulator; older gradients are ignored."},
    {.name = "SparseConditionalAccumulator",
     .signature = "-> handle: Ref(string)",
     .attrs = "dtype: numbertype; shape: shape; container: string = ''; shared_name: string = ''; reduction_type: "
              "{'MEAN', 'SUM'} = 'MEAN'",
     .shape = mr_string_handle_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the handle of an accumulator of gradients that are rows with indices."},
    {.name = "SparseAccumulatorApplyGradient",
     .signature = "handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, "
                  "gradient_shape: int64 ->",
     .attrs = "dtype: numbertype; has_known_shape: bool",
     .shape = step_shape,
     .doc = "Adds a gradient of rows, unless its step is older than that of the accumulator."},
    {.name = "SparseAccumulatorTakeGradient",
     .signature = "handle: Ref(string), num_required: int32 -> indices: int64, values: dtype, shape: int64",
     .attrs = "dtype: numbertype",
     .shape = step_shape,
     .flags = MR_OP_WAITS,
     .doc = "Takes the mean or the sum of each row, and waits until there are num_required gradients."},
};

const mr_op_table mr_ops_accumulator = {accumulator_ops, sizeof accumulator_ops / sizeof accumulator_ops[0]};
