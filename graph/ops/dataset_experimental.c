/* Datasets as nodes: the names with the prefix Experimental, which TensorFlow 1.13 to 1.15 write. */
#include "graph/ir/op.h"

/* Operators that have more attrs under their newer names state those of the old one. */
#define OLD_NAME(original, ...)                                                                                        \
    {.name = "Experimental" original,                                                                                  \
     .same_as = original,                                                                                              \
     .doc = "The same as " original ", under its name in TensorFlow 1.13 to 1.15.",                                    \
     __VA_ARGS__}

static const mr_op dataset_experimental_ops[] = {
    OLD_NAME("UnbatchDataset", .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"),
    OLD_NAME("UniqueDataset", .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"),
    OLD_NAME("IgnoreErrorsDataset"),
    OLD_NAME("NonSerializableDataset"),
    OLD_NAME("MaxIntraOpParallelismDataset"),
    OLD_NAME("PrivateThreadPoolDataset"),
    OLD_NAME("ScanDataset",
             .attrs = "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
                      "output_shapes: list(shape) >= 1; preserve_cardinality: bool = false"),
    OLD_NAME("TakeWhileDataset", .attrs = "predicate: func; Targuments: list(type) >= 0; output_types: list(type) >= "
                                          "1; output_shapes: list(shape) >= 1"),
    OLD_NAME("MapDataset",
             .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) "
                      ">= 1; use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false"),
    OLD_NAME("MapAndBatchDataset", .attrs = "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
                                            "output_shapes: list(shape) >= 1; preserve_cardinality: bool = false"),
    OLD_NAME(
        "ParallelInterleaveDataset",
        .attrs =
            "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1"),
    OLD_NAME("GroupByWindowDataset",
             .attrs =
                 "key_func: func; reduce_func: func; window_size_func: func; Tkey_func_other_arguments: list(type) >= "
                 "0; Treduce_func_other_arguments: list(type) >= 0; Twindow_size_func_other_arguments: list(type) >= "
                 "0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1"),
    OLD_NAME("AssertNextDataset"),
    OLD_NAME("LatencyStatsDataset"),
    OLD_NAME("BytesProducedStatsDataset"),
    OLD_NAME("DatasetCardinality", .attrs = ""),
    OLD_NAME("DatasetToTFRecord"),
    OLD_NAME("DirectedInterleaveDataset",
             .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1"),
    OLD_NAME("SlidingWindowDataset", .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"),
    OLD_NAME("RandomDataset", .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"),
    OLD_NAME("CSVDataset"),
    OLD_NAME(
        "ParseExampleDataset",
        .attrs =
            "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: list({float, int64, "
            "string}) >= 0; Tdense: list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0; output_types: "
            "list(type) >= 1; output_shapes: list(shape) >= 1; sloppy: bool = false"),
    OLD_NAME("DenseToSparseBatchDataset"),
    OLD_NAME("GroupByReducerDataset"),
    OLD_NAME("MatchingFilesDataset"),
    OLD_NAME("ThreadPoolDataset"),
    OLD_NAME("ThreadPoolHandle"),
};

const mr_op_table mr_ops_dataset_experimental = {dataset_experimental_ops,
                                                 sizeof dataset_experimental_ops / sizeof dataset_experimental_ops[0]};
