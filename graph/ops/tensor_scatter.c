/* Scattering slices into a copy of a tensor. */
#include "graph/ir/op.h"

/* updates has the outer dimensions of indices, and the dimensions of the tensor after those that an index covers. */
static mr_status scatter_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape target = call->inputs[0], indices = call->inputs[1], updates = call->inputs[2];
    MR_TRY(mr_shape_at_least(target, 1, error));
    MR_TRY(mr_shape_at_least(indices, 1, error));
    call->outputs[0] = target;
    if (target.rank < 0 || indices.rank < 0 || updates.rank < 0) return MR_OK;
    int32_t outer = indices.rank - 1;
    int64_t depth = indices.dims[outer], merged;
    if (depth < 0) return MR_OK;
    bool fits = depth <= target.rank && outer <= updates.rank && updates.rank == outer + target.rank - (int32_t)depth;
    for (int32_t i = 0; fits && i < updates.rank; i++) {
        int64_t size = i < outer ? indices.dims[i] : target.dims[depth + i - outer];
        fits = mr_size_merge(updates.dims[i], size, &merged, nullptr) == MR_OK;
    }
    if (fits) return MR_OK;
    char i[MR_SHAPE_TEXT_SIZE], u[MR_SHAPE_TEXT_SIZE], t[MR_SHAPE_TEXT_SIZE];
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of updates[shape=%s], and "
                   "dimensions [%lld,%d) of input[shape=%s] must match dimensions [%d,%d) of updates",
                   outer, mr_shape_text(indices, i, sizeof i), outer, mr_shape_text(updates, u, sizeof u),
                   (long long)depth, target.rank, mr_shape_text(target, t, sizeof t), outer, updates.rank);
}

static const mr_op tensor_scatter_ops[] = {
    {.name = "TensorScatterUpdate",
     .signature = "tensor: T, indices: Tindices, updates: T -> output: T",
     .attrs = "T: type; Tindices: {int16, int32, int64, uint16}",
     .shape = scatter_shape,
     .doc = "Returns tensor with the slices at the index tuples of indices replaced by updates."},
    {.name = "TensorScatterAdd",
     .signature = "tensor: T, indices: Tindices, updates: T -> output: T",
     .attrs = "T: type; Tindices: {int32, int64}",
     .shape = scatter_shape,
     .doc = "Returns tensor with updates added to the slices at the index tuples of indices."},
    {.name = "TensorScatterSub",
     .signature = "tensor: T, indices: Tindices, updates: T -> output: T",
     .attrs = "T: type; Tindices: {int32, int64}",
     .shape = scatter_shape,
     .doc = "Returns tensor with updates subtracted from the slices at the index tuples of indices."},
    {.name = "TensorScatterMax",
     .signature = "tensor: T, indices: Tindices, updates: T -> output: T",
     .attrs = "T: type; Tindices: {int32, int64}",
     .shape = scatter_shape,
     .doc = "Returns tensor with the maximum of itself and updates at the index tuples of indices."},
    {.name = "TensorScatterMin",
     .signature = "tensor: T, indices: Tindices, updates: T -> output: T",
     .attrs = "T: type; Tindices: {int32, int64}",
     .shape = scatter_shape,
     .doc = "Returns tensor with the minimum of itself and updates at the index tuples of indices."},
    {.name = "ScatterNdNonAliasingAdd",
     .signature = "input: T, indices: Tindices, updates: T -> output: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64, bool}; Tindices: {int32, int64}",
     .shape = scatter_shape,
     .doc = "Returns input with updates added to the slices at the index tuples of indices."},
};

const mr_op_table mr_ops_tensor_scatter = {tensor_scatter_ops,
                                           sizeof tensor_scatter_ops / sizeof tensor_scatter_ops[0]};
