/* Datasets as nodes: windows, groups, and reduction. */
#include "graph/ir/op.h"

static mr_status reduce_shape(mr_shape_call *call, mr_error *)
{
    const mr_attr *shapes = mr_attrs_find(call->attrs, "output_shapes");
    for (int32_t i = 0; shapes && i < shapes->count && i < call->output_count; i++)
        call->outputs[i] = shapes->values[i].shape;
    return MR_OK;
}

static const mr_op dataset_window_ops[] = {
    {.name = "ShuffleAndRepeatDataset",
     .signature = "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, count: int64 -> handle: "
                  "variant",
     .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; reshuffle_each_iteration: bool = true; "
              "metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_shuffle_and_repeat_dataset_op",
     .doc = "Gives elements of count repetitions in random order, from a buffer of buffer_size of them."},
    {.name = "WindowDataset",
     .signature = "input_dataset: variant, size: int64, shift: int64, stride: int64, drop_remainder: bool -> handle: "
                  "variant",
     .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_window_dataset_op",
     .doc = "Makes datasets of size consecutive elements."},
    {.name = "GroupByWindowDataset",
     .signature = "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, "
                  "reduce_func_other_arguments: Treduce_func_other_arguments, window_size_func_other_arguments: "
                  "Twindow_size_func_other_arguments -> handle: variant",
     .attrs = "key_func: func; reduce_func: func; window_size_func: func; Tkey_func_other_arguments: list(type) >= 0; "
              "Treduce_func_other_arguments: list(type) >= 0; Twindow_size_func_other_arguments: list(type) >= 0; "
              "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_group_by_window_dataset_op",
     .doc = "Groups elements by key, and joins the datasets that reduce_func makes of each group."},
    {.name = "ReduceDataset",
     .signature = "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments -> components: "
                  "output_types",
     .attrs = "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
              "output_shapes: list(shape) >= 1; use_inter_op_parallelism: bool = true; metadata: string = ''",
     .shape = reduce_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_reduce_dataset_op",
     .doc = "Applies f to a state and each element, and returns the last state."},
    {.name = "SlidingWindowDataset",
     .signature = "input_dataset: variant, window_size: int64, window_shift: int64, window_stride: int64 -> handle: "
                  "variant",
     .attrs = "drop_remainder: bool = true; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_sliding_window_dataset_op",
     .doc = "Makes batches of window_size elements, the first ones window_shift apart."},
    {.name = "DenseToSparseBatchDataset",
     .signature = "input_dataset: variant, batch_size: int64, row_shape: int64 -> handle: variant",
     .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_dense_to_sparse_batch_dataset_op",
     .doc = "Makes sparse batches of elements that may have different sizes."},
};

const mr_op_table mr_ops_dataset_window = {dataset_window_ops,
                                           sizeof dataset_window_ops / sizeof dataset_window_ops[0]};
