/* Maps of sparse tensors, for queues. */
#include "graph/ir/op.h"

static mr_status add_sparse_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 2, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 1, error));
    call->outputs[0] = MR_SCALAR;
    return MR_OK;
}

static mr_status add_many_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(add_sparse_shape(call, error));
    call->outputs[0] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status take_many_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    call->outputs[0] = MR_SHAPE(-1, -1);
    call->outputs[1] = call->outputs[2] = MR_SHAPE(-1);
    return MR_OK;
}

static const mr_op sparse_map_ops[] = {
    {.name = "AddSparseToTensorsMap",
     .signature = "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> sparse_handle: int64",
     .attrs = "T: type; container: string = ''; shared_name: string = ''",
     .shape = add_sparse_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Adds a sparse tensor to the map, and returns its handle."},
    {.name = "AddManySparseToTensorsMap",
     .signature = "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> sparse_handles: int64",
     .attrs = "T: type; container: string = ''; shared_name: string = ''",
     .shape = add_many_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Adds the rows of a sparse tensor to the map, and returns their handles."},
    {.name = "TakeManySparseFromTensorsMap",
     .signature = "sparse_handles: int64 -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type; container: string = ''; shared_name: string = ''",
     .shape = take_many_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Takes sparse tensors from the map, and joins them along a new first dimension."},
};

const mr_op_table mr_ops_sparse_map = {sparse_map_ops, sizeof sparse_map_ops / sizeof sparse_map_ops[0]};
