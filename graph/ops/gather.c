/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status gather_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status gather_v1_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status gather_nd_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status scatter_nd_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status segment_sum_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status unsorted_segment_sum_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status one_hot_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status where_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op gather_ops[] = {
    {.name = "GatherV2",
     .signature = "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams",
     .attrs = "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}",
     .shape = gather_shape,
     .gradient = MR_GRADIENT(mr_gather_v2_gradient),
     .doc = "The slices of params along axis that indices name."},
    {.name = "Gather",
     .signature = "params: Tparams, indices: Tindices -> output: Tparams",
     .attrs = "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}",
     .shape = gather_v1_shape,
     .gradient = MR_GRADIENT(mr_gather_gradient),
     .doc = "The rows of params that indices name."},
    {.name = "GatherNd",
     .signature = "params: Tparams, indices: Tindices -> output: Tparams",
     .attrs = "Tparams: type; Tindices: {int16, int32, int64}",
     .shape = gather_nd_shape,
     .gradient = MR_GRADIENT(mr_gather_nd_gradient),
     .doc = "The slices of params at the index tuples in the last dimension of indices."},
    {.name = "ScatterNd",
     .signature = "indices: Tindices, updates: T, shape: Tindices -> output: T",
     .attrs = "T: type; Tindices: {int16, int32, int64}",
     .shape = scatter_nd_shape,
     .gradient = MR_GRADIENT(mr_scatter_nd_gradient),
     .doc = "A tensor of that shape with updates added at the index tuples of indices, zeros elsewhere."},
    {.name = "SegmentSum",
     .signature = "data: T, segment_ids: Tindices -> output: T",
     .attrs = "T: numbertype; Tindices: {int32, int64}",
     .shape = segment_sum_shape,
     .gradient = MR_GRADIENT(mr_segment_sum_gradient),
     .doc = "Sums rows of data that have the same id; the ids are sorted."},
    {.name = "UnsortedSegmentSum",
     .signature = "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     .attrs = "T: numbertype; Tindices: {int16, int32, int64}; Tnumsegments: {int32, int64} = int32",
     .shape = unsorted_segment_sum_shape,
     .gradient = MR_GRADIENT(mr_unsorted_segment_sum_gradient),
     .doc = "Sums rows of data that have the same id into num_segments rows."},
    {.name = "OneHot",
     .signature = "indices: TI, depth: int32, on_value: T, off_value: T -> output: T",
     .attrs = "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64",
     .shape = one_hot_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "on_value where the new dimension's index equals indices, off_value elsewhere."},
    {.name = "Where",
     .signature = "input: T -> index: int64",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = bool",
     .shape = where_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "The index tuples of the elements that are not zero, in order."},
};

const mr_op_table mr_op_table_gather = {gather_ops, sizeof gather_ops / sizeof gather_ops[0]};
