/* Checkpoints in graphs: the operators that tf.train.Saver adds. */
#include "graph/ir/op.h"

static mr_status restore_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    return mr_shape_expect_rank(call, 2, 1, error);
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
     .shape = mr_shape_scalar,
     .doc = "Returns the file name of one shard: basename-00001-of-00004."},
};

const mr_op_table mr_ops_checkpoint = {checkpoint_ops, sizeof checkpoint_ops / sizeof checkpoint_ops[0]};
