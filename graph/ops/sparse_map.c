/* Sparse tensors that a session keeps in a map: queues carry their handles, which are numbers. */
#include "graph/ops/shapes.h"

static mr_status handles_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status taken_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SHAPE(-1, -1);
    call->outputs[1] = call->outputs[2] = MR_SHAPE(-1);
    return MR_OK;
}

static const mr_op sparse_map_ops[] = {
    {.name = "AddSparseToTensorsMap",
     .signature = "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> sparse_handle: int64",
     .attrs = "T: type; container: string = ''; shared_name: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Keeps a sparse tensor in the map and returns its handle."},
    {.name = "AddManySparseToTensorsMap",
     .signature = "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> sparse_handles: int64",
     .attrs = "T: type; container: string = ''; shared_name: string = ''",
     .shape = handles_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Keeps the parts of a sparse tensor along its first dimension in the map and returns their handles."},
    {.name = "TakeManySparseFromTensorsMap",
     .signature = "sparse_handles: int64 -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type; container: string = ''; shared_name: string = ''",
     .shape = taken_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Takes sparse tensors from the map and joins them into one with an additional dimension."},
};

const mr_op_table mr_ops_sparse_map = {sparse_map_ops, sizeof sparse_map_ops / sizeof sparse_map_ops[0]};
