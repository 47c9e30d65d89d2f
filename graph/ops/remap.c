/* Warm starts from checkpoints with other vocabularies: tf.train.warm_start. */
#include "graph/ir/op.h"

static mr_status vocab_remapping_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    call->outputs[0] = MR_SHAPE(mr_attr_int_or(call->attrs, "num_new_vocab", -1));
    call->outputs[1] = MR_SCALAR;
    return MR_OK;
}

static mr_status remap_matrix_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    call->outputs[0] =
        MR_SHAPE(mr_attr_int_or(call->attrs, "num_rows", -1), mr_attr_int_or(call->attrs, "num_cols", -1));
    return MR_OK;
}

static const mr_op remap_ops[] = {
    {.name = "GenerateVocabRemapping",
     .signature = "new_vocab_file: string, old_vocab_file: string -> remapping: int64, num_present: int32",
     .attrs = "new_vocab_offset: int >= 0; num_new_vocab: int >= 0; old_vocab_size: int >= -1 = -1",
     .shape = vocab_remapping_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the line in the old vocabulary of each word in a part of the new one; -1 if it is not there."},
    {.name = "LoadAndRemapMatrix",
     .signature = "ckpt_path: string, old_tensor_name: string, row_remapping: int64, col_remapping: int64, "
                  "initializing_values: float -> output_matrix: float",
     .attrs = "num_rows: int >= 0; num_cols: int >= 1; max_rows_in_memory: int = -1",
     .shape = remap_matrix_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Loads rows and columns of a matrix from a checkpoint; elements of those with number -1 are taken from "
            "initializing_values, in order."},
};

const mr_op_table mr_ops_remap = {remap_ops, sizeof remap_ops / sizeof remap_ops[0]};
