/* Checkpoints in graphs: the operators that tf.train.Saver adds. */
#include "graph/ir/op.h"

static mr_status restore_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    return mr_shape_expect_rank(call, 2, 1, error);
}

static mr_status scalars_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    return mr_shape_scalar(call, error);
}

static mr_status scalar_names_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    return mr_shape_unknown(call, error);
}

static const mr_op checkpoint_ops[] = {
    {.name = "SaveV2",
     .signature = "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes ->",
     .attrs = "dtypes: list(type) >= 1",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Saves tensors, or slices of them, under their names to the checkpoint prefix."},
    {.name = "RestoreV2",
     .signature = "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: dtypes",
     .attrs = "dtypes: list(type) >= 1",
     .shape = restore_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Restores tensors, or slices of them, by their names from the checkpoint prefix."},
    {.name = "MergeV2Checkpoints",
     .signature = "checkpoint_prefixes: string, destination_prefix: string ->",
     .attrs = "delete_old_dirs: bool = true; allow_missing_files: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Merges the checkpoints of shards into destination_prefix."},
    {.name = "ShardedFilename",
     .signature = "basename: string, shard: int32, num_shards: int32 -> filename: string",
     .shape = scalars_shape,
     .doc = "Returns the file name of one shard: basename-00001-of-00004."},
    {.name = "ShardedFilespec",
     .signature = "basename: string, num_shards: int32 -> filename: string",
     .shape = scalars_shape,
     .doc = "Returns the pattern that matches the file names of all shards."},
    {.name = "Save",
     .signature = "filename: string, tensor_names: string, data: T ->",
     .attrs = "T: list(type) >= 1",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Saves tensors under their names to the V1 checkpoint filename."},
    {.name = "SaveSlices",
     .signature = "filename: string, tensor_names: string, shapes_and_slices: string, data: T ->",
     .attrs = "T: list(type) >= 1",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Saves tensors, or slices of them, under their names to the V1 checkpoint filename."},
    {.name = "Restore",
     .signature = "file_pattern: string, tensor_name: string -> tensor: dt",
     .attrs = "dt: type; preferred_shard: int = -1",
     .shape = scalar_names_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Restores a tensor by its name from a checkpoint."},
    {.name = "RestoreSlice",
     .signature = "file_pattern: string, tensor_name: string, shape_and_slice: string -> tensor: dt",
     .attrs = "dt: type; preferred_shard: int = -1",
     .shape = scalar_names_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Restores a tensor, or a slice of it, by its name from a checkpoint."},
};

const mr_op_table mr_ops_checkpoint = {checkpoint_ops, sizeof checkpoint_ops / sizeof checkpoint_ops[0]};
