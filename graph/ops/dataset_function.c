/* Datasets as nodes: stages that call functions of the graph. */
#include "graph/ir/op.h"

static const mr_op dataset_function_ops[] = {
    {.name = "MapDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_map_dataset_op",
     .doc = "Applies f to each element."},
    {.name = "ParallelMapDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int32 -> handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "use_inter_op_parallelism: bool = true; sloppy: bool = false; preserve_cardinality: bool = false; "
              "metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parallel_map_dataset_op",
     .doc = "Applies f to each element, to several at a time."},
    {.name = "ParallelMapDatasetV2",
     .signature = "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64 -> handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "use_inter_op_parallelism: bool = true; deterministic: string = 'default'; preserve_cardinality: bool = "
              "false; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parallel_map_dataset_v2_op",
     .doc = "Applies f to each element, to several at a time."},
    {.name = "MapAndBatchDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, "
                  "drop_remainder: bool -> handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "preserve_cardinality: bool = false; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_map_and_batch_dataset_op",
     .doc = "Applies f to each element and makes batches of the results."},
    {.name = "FilterDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     .attrs = "predicate: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) "
              ">= 1; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_filter_dataset_op",
     .doc = "Keeps the elements for which predicate is true."},
    {.name = "TakeWhileDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     .attrs = "predicate: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) "
              ">= 1; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_take_while_dataset_op",
     .doc = "Ends before the first element for which predicate is false."},
    {.name = "FlatMapDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_flat_map_dataset_op",
     .doc = "Joins the datasets that f makes of the elements."},
    {.name = "InterleaveDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64 -> "
                  "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_interleave_dataset_op",
     .doc = "Takes elements in turn from the datasets that f makes of the elements."},
    {.name = "ParallelInterleaveDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
                  "sloppy: bool, buffer_output_elements: int64, prefetch_input_elements: int64 -> handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parallel_interleave_dataset_op",
     .doc = "Takes elements in turn from the datasets that f makes of the elements, ahead of time."},
    {.name = "ParallelInterleaveDatasetV2",
     .signature = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
                  "num_parallel_calls: int64 -> handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "sloppy: bool = false; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parallel_interleave_dataset_v2_op",
     .doc = "Takes elements in turn from the datasets that f makes of the elements, ahead of time."},
    {.name = "ParallelInterleaveDatasetV3",
     .signature = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
                  "num_parallel_calls: int64 -> handle: variant",
     .attrs = "f: func; deterministic: string = 'default'; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
              "output_shapes: list(shape) >= 1; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parallel_interleave_dataset_v3_op",
     .doc = "Takes elements in turn from the datasets that f makes of the elements, ahead of time."},
    {.name = "ParallelInterleaveDatasetV4",
     .signature = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
                  "buffer_output_elements: int64, prefetch_input_elements: int64, num_parallel_calls: int64 -> handle: "
                  "variant",
     .attrs = "f: func; deterministic: string = 'default'; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
              "output_shapes: list(shape) >= 1; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parallel_interleave_dataset_v4_op",
     .doc = "Takes elements in turn from the datasets that f makes of the elements, ahead of time."},
    {.name = "LegacyParallelInterleaveDatasetV2",
     .signature = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
                  "buffer_output_elements: int64, prefetch_input_elements: int64 -> handle: variant",
     .attrs = "f: func; deterministic: string = 'default'; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
              "output_shapes: list(shape) >= 1; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_legacy_parallel_interleave_dataset_v2_op",
     .doc = "Takes elements in turn from the datasets that f makes of the elements, ahead of time."},
    {.name = "ScanDataset",
     .signature = "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments -> handle: variant",
     .attrs = "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
              "output_shapes: list(shape) >= 1; preserve_cardinality: bool = false; use_default_device: bool = true; "
              "metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_scan_dataset_op",
     .doc = "Applies f to a state and each element."},
    {.name = "ParallelFilterDataset",
     .signature = "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64 -> handle: variant",
     .attrs = "predicate: func; deterministic: string = 'default'; Targuments: list(type) >= 0; output_types: "
              "list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parallel_filter_dataset_op",
     .doc = "Keeps the elements for which predicate is true."},
    {.name = "MapAndBatchDatasetV2",
     .signature = "input_dataset: variant, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, "
                  "drop_remainder: bool -> handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "preserve_cardinality: bool = false",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_map_and_batch_dataset_v2_op",
     .doc = "The same as MapAndBatchDataset, under its name in TensorFlow 1.9 to 1.12."},
    {.name = "ParseExampleDataset",
     .signature = "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense -> handle: variant",
     .attrs = "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: list({float, int64, "
              "string}) >= 0; Tdense: list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0; output_types: "
              "list(type) >= 1; output_shapes: list(shape) >= 1; sloppy: bool = false; ragged_keys: list(string) >= 0 "
              "= []; ragged_value_types: list({float, int64, string}) >= 0 = []; ragged_split_types: list({int32, "
              "int64}) >= 0 = []",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parse_example_dataset_op",
     .doc = "Parses vectors of serialized Examples to the features, in the order of their names."},
    {.name = "ParseExampleDatasetV2",
     .signature = "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense -> handle: variant",
     .attrs = "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: list({float, int64, "
              "string}) >= 0; Tdense: list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0; output_types: "
              "list(type) >= 1; output_shapes: list(shape) >= 1; deterministic: string = 'default'; ragged_keys: "
              "list(string) >= 0 = []; ragged_value_types: list({float, int64, string}) >= 0 = []; ragged_split_types: "
              "list({int32, int64}) >= 0 = []",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_parse_example_dataset_v2_op",
     .doc = "Parses vectors of serialized Examples to the features, in the order of their names."},
};

const mr_op_table mr_ops_dataset_function = {dataset_function_ops,
                                             sizeof dataset_function_ops / sizeof dataset_function_ops[0]};
