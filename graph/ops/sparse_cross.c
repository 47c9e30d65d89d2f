/* Crosses of sparse and dense features. */
#include "graph/ir/op.h"

static mr_status sparse_cross_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SHAPE(-1, 2);
    call->outputs[1] = MR_SHAPE(-1);
    call->outputs[2] = MR_SHAPE(2);
    return MR_OK;
}

static const mr_op sparse_cross_ops[] = {
    {.name = "SparseCross",
     .signature = "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types -> "
                  "output_indices: int64, output_values: out_type, output_shape: int64",
     .attrs = "N: int >= 0; hashed_output: bool; num_buckets: int >= 0; hash_key: int; sparse_types: list({int64, "
              "string}) >= 0; dense_types: list({int64, string}) >= 0; out_type: {int64, string}; internal_type: "
              "{int64, string}",
     .shape = sparse_cross_shape,
     .doc = "Computes all combinations of the features of each row, as strings or as one hash each."},
    {.name = "SparseCrossV2",
     .signature = "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types, sep: string "
                  "-> output_indices: int64, output_values: string, output_shape: int64",
     .attrs = "N: int >= 0; sparse_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0",
     .shape = sparse_cross_shape,
     .doc = "Computes all combinations of the features of each row, as strings with sep between features."},
    {.name = "SparseCrossHashed",
     .signature = "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types, "
                  "num_buckets: int64, strong_hash: bool, salt: int64 -> output_indices: int64, output_values: int64, "
                  "output_shape: int64",
     .attrs = "N: int >= 0; sparse_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0",
     .shape = sparse_cross_shape,
     .doc = "Computes all combinations of the features of each row, as one hash each."},
};

const mr_op_table mr_ops_sparse_cross = {sparse_cross_ops, sizeof sparse_cross_ops / sizeof sparse_cross_ops[0]};
