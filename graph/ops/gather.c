/* Selecting elements by index. */
#include "graph/ir/fold.h"
#include "graph/ir/graph.h"

static mr_status push_range(mr_shape *target, mr_shape source, int32_t begin, int32_t end, mr_error *error)
{
    for (int32_t i = begin; i < end; i++) {
        if (target->rank == MR_RANK_MAX)
            return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
        target->dims[target->rank++] = source.dims[i];
    }
    return MR_OK;
}

static mr_status gather_along(mr_shape_call *call, int64_t given_axis, int64_t given_batch, mr_error *error)
{
    mr_shape params = call->inputs[0], indices = call->inputs[1], result = MR_SCALAR;
    int32_t axis = 0, batch = 0;
    MR_TRY(mr_shape_at_least(params, 1, error));
    if (params.rank < 0 || indices.rank < 0) return MR_OK;
    MR_TRY(mr_shape_axis(given_axis, params.rank, &axis, error));
    MR_TRY(mr_shape_axis(given_batch, indices.rank + 1, &batch, error));
    if (given_batch < 0) batch--;
    if (batch > axis || batch < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "batch_dims %lld is greater than axis %d", (long long)given_batch,
                       axis);
    for (int32_t i = 0; i < batch; i++) {
        int64_t size = 0;
        MR_TRY(mr_size_merge(params.dims[i], indices.dims[i], &size, error));
    }
    MR_TRY(push_range(&result, params, 0, axis, error));
    MR_TRY(push_range(&result, indices, batch, indices.rank, error));
    MR_TRY(push_range(&result, params, axis + 1, params.rank, error));
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status gather_shape(mr_shape_call *call, mr_error *error)
{
    int64_t axis = 0, batch = mr_attr_int_or(call->attrs, "batch_dims", 0);
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    if (mr_shape_input_integer(call, 2, &axis)) return gather_along(call, axis, batch, error);
    int32_t params = call->inputs[0].rank, indices = call->inputs[1].rank;
    if (params < 0 || indices < 0 || batch < 0 || params + indices - 1 - batch < 0) return MR_OK;
    return mr_shape_with_rank(MR_SHAPE_UNKNOWN, params + indices - 1 - (int32_t)batch, &call->outputs[0], error);
}

static mr_status gather_v1_shape(mr_shape_call *call, mr_error *error)
{
    return gather_along(call, 0, 0, error);
}

static mr_status gather_nd_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape params = call->inputs[0], indices = call->inputs[1], result = MR_SCALAR;
    MR_TRY(mr_shape_at_least(indices, 1, error));
    if (params.rank < 0 || indices.rank < 0) return MR_OK;
    int64_t depth = indices.dims[indices.rank - 1];
    if (depth < 0) return MR_OK;
    if (depth > params.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "index tuples have %lld elements, but there are %d dimensions",
                       (long long)depth, params.rank);
    MR_TRY(push_range(&result, indices, 0, indices.rank - 1, error));
    MR_TRY(push_range(&result, params, (int32_t)depth, params.rank, error));
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status scatter_nd_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_from_input(call, 2, &call->outputs[0], error);
}

static mr_status one_hot_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape indices = call->inputs[0];
    int64_t depth = -1, given = mr_attr_int_or(call->attrs, "axis", -1);
    int32_t axis = 0;
    for (int32_t i = 1; i < 4; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    if (mr_shape_input_integer(call, 1, &depth) && depth < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "depth is %lld", (long long)depth);
    if (indices.rank < 0) return MR_OK;
    MR_TRY(mr_shape_axis(given, indices.rank + 1, &axis, error));
    mr_shape result = MR_SCALAR;
    MR_TRY(push_range(&result, indices, 0, axis, error));
    MR_TRY(push_range(&result, MR_SHAPE(depth), 0, 1, error));
    MR_TRY(push_range(&result, indices, axis, indices.rank, error));
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status where_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SHAPE(-1, call->inputs[0].rank);
    return MR_OK;
}

/* ---- Values known while the graph is built ---- */

static bool fold_gather(mr_folding *f)
{
    const mr_partial *vector = mr_fold_input(f, 0), *indices = mr_fold_input(f, 1);
    int64_t axis = 0;
    if (vector == nullptr || vector->rank != 1 || !mr_fold_is_whole(indices)) return false;
    if (f->node->input_count > 2 && (!mr_fold_scalar(f, 2, &axis) || axis != 0)) return false;
    for (int32_t i = 0; i < indices->count; i++)
        if (indices->values[i] < 0 || indices->values[i] >= vector->count ||
            !mr_fold_push_element(f, vector, indices->values[i]))
            return false;
    return true;
}

static const mr_op gather_ops[] = {
    {.name = "GatherV2",
     .signature = "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams",
     .attrs = "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}",
     .shape = gather_shape,
     .fold = fold_gather,
     .doc = "Gathers slices of params along axis at indices."},
    {.name = "Gather",
     .signature = "params: Tparams, indices: Tindices -> output: Tparams",
     .attrs = "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}",
     .shape = gather_v1_shape,
     .fold = fold_gather,
     .doc = "Gathers rows of params at indices."},
    {.name = "GatherNd",
     .signature = "params: Tparams, indices: Tindices -> output: Tparams",
     .attrs = "Tparams: type; Tindices: {int16, int32, int64}",
     .shape = gather_nd_shape,
     .doc = "Gathers slices of params at the index tuples in the last dimension of indices."},
    {.name = "ScatterNd",
     .signature = "indices: Tindices, updates: T, shape: Tindices -> output: T",
     .attrs = "T: type; Tindices: {int16, int32, int64}",
     .shape = scatter_nd_shape,
     .doc = "Returns a tensor of the given shape with updates added at the index tuples of indices, zeros elsewhere."},
    {.name = "OneHot",
     .signature = "indices: TI, depth: int32, on_value: T, off_value: T -> output: T",
     .attrs = "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64",
     .shape = one_hot_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns a one-hot tensor: on_value where the index in the new dimension equals indices, off_value "
            "elsewhere."},
    {.name = "Where",
     .signature = "input: T -> index: int64",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = bool",
     .shape = where_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the index tuples of the nonzero elements, in order."},
};

const mr_op_table mr_ops_gather = {gather_ops, sizeof gather_ops / sizeof gather_ops[0]};
