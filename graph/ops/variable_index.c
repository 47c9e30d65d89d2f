/* Operators that read or update slices of a variable, and counters. */
#include "graph/ir/op.h"

/* A reference, or the variable of a handle. */
static mr_shape shape_of_variable(const mr_shape_call *call)
{
    return call->input_dtypes[0] == MR_RESOURCE ? call->input_handles[0] : call->inputs[0];
}

static mr_status count_up_to_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = MR_SCALAR;
    return mr_shape_expect_rank(call, 0, 0, error);
}

static mr_status resource_count_up_to_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape variable;
    call->outputs[0] = MR_SCALAR;
    return mr_shape_with_rank(call->input_handles[0], 0, &variable, error);
}

static mr_status too_many_dimensions(mr_error *error)
{
    return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
}

/* The batch dimensions, those of the indices after them, and those of the variable after its indexed one. */
static mr_status resource_gather_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape params = call->input_handles[0], indices = call->inputs[1], result = MR_SCALAR;
    int64_t batch_dims = mr_attr_int_or(call->attrs, "batch_dims", 0);
    MR_TRY(mr_shape_at_least(params, 1, error));
    if (params.rank < 0 || indices.rank < 0) return MR_OK;
    if (batch_dims < 0) batch_dims += indices.rank;
    if (batch_dims < 0 || batch_dims > indices.rank || batch_dims >= params.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "batch_dims %lld is invalid for indices of rank %d and a variable of rank %d",
                       (long long)batch_dims, indices.rank, params.rank);
    if (indices.rank + params.rank - batch_dims - 1 > MR_RANK_MAX) return too_many_dimensions(error);
    for (int32_t i = 0; i < indices.rank; i++) {
        result.dims[result.rank] = indices.dims[i];
        if (i < batch_dims) MR_TRY(mr_size_merge(indices.dims[i], params.dims[i], &result.dims[result.rank], error));
        result.rank++;
    }
    for (int32_t i = (int32_t)batch_dims + 1; i < params.rank; i++) result.dims[result.rank++] = params.dims[i];
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status resource_gather_nd_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape params = call->input_handles[0], indices = call->inputs[1], result = indices;
    MR_TRY(mr_shape_at_least(indices, 1, error));
    if (params.rank < 0 || indices.rank < 0) return MR_OK;
    int64_t depth = indices.dims[indices.rank - 1];
    if (depth < 0) return MR_OK;
    if (depth > params.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "indices.shape[-1] must be <= params.rank, but saw indices shape[-1] %lld and rank %d",
                       (long long)depth, params.rank);
    if (indices.rank - 1 + params.rank - depth > MR_RANK_MAX) return too_many_dimensions(error);
    result.rank--;
    for (int32_t i = (int32_t)depth; i < params.rank; i++) result.dims[result.rank++] = params.dims[i];
    call->outputs[0] = result;
    return MR_OK;
}

/* The updates have the dimensions of the index vectors, followed by those of a slice of the variable. */
static mr_status check_nd_updates(mr_shape variable, mr_shape indices, mr_shape updates, mr_error *error)
{
    if (indices.rank < 0 || updates.rank < 0 || updates.rank == 0) return MR_OK;
    int32_t lead = indices.rank - 1;
    int64_t depth = indices.dims[lead], merged;
    if (depth < 0) return MR_OK;
    if (updates.rank < lead || (variable.rank >= 0 && depth > variable.rank))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "updates of rank %d and index vectors of size %lld do not match a variable of rank %d",
                       updates.rank, (long long)depth, variable.rank);
    for (int32_t i = 0; i < lead; i++)
        if (mr_size_merge(indices.dims[i], updates.dims[i], &merged, error) != MR_OK)
            return mr_fail_prefix(error, MR_INVALID_ARGUMENT,
                                  "Dimensions [0,%d) of indices must match dimensions [0,%d) of updates", lead, lead);
    if (variable.rank < 0) return MR_OK;
    bool fits = updates.rank - lead == variable.rank - depth;
    for (int32_t i = lead; fits && i < updates.rank; i++)
        fits = mr_size_merge(variable.dims[depth + i - lead], updates.dims[i], &merged, nullptr) == MR_OK;
    return fits ? MR_OK
                : mr_fail(error, MR_INVALID_ARGUMENT,
                          "Dimensions [%lld,%d) of input must match dimensions [%d,%d) of updates", (long long)depth,
                          variable.rank, lead, updates.rank);
}

static mr_status scatter_nd_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape variable = shape_of_variable(call);
    MR_TRY(mr_shape_at_least(call->inputs[1], 1, error));
    bool has_rows = mr_shape_count(call->inputs[1]) > 0 || mr_shape_count(call->inputs[2]) > 0;
    if (mr_shape_count(variable) == 0 && has_rows)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Indices and updates specified for empty input");
    if (call->output_count > 0) call->outputs[0] = variable;
    return check_nd_updates(variable, call->inputs[1], call->inputs[2], error);
}

static const mr_op variable_index_ops[] = {
    {.name = "CountUpTo",
     .signature = "ref: Ref(T) -> output: T",
     .attrs = "limit: int; T: {int32, int64}",
     .shape = count_up_to_shape,
     .writes = 0b1,
     .doc = "Returns the value of ref and then increments it; an error if it has reached limit."},
    {.name = "ResourceCountUpTo",
     .signature = "resource: resource -> output: T",
     .attrs = "limit: int; T: {int32, int64}",
     .shape = resource_count_up_to_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Returns the value of the variable with the handle resource and then increments it; an error if it has "
            "reached limit."},
    {.name = "ResourceGather",
     .signature = "resource: resource, indices: Tindices -> output: dtype",
     .attrs = "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: {int32, int64}",
     .shape = resource_gather_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the rows at indices of the variable with the handle resource."},
    {.name = "ResourceGatherNd",
     .signature = "resource: resource, indices: Tindices -> output: dtype",
     .attrs = "dtype: type; Tindices: {int32, int64}",
     .shape = resource_gather_nd_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the slices at the index vectors indices of the variable with the handle resource."},
    {.name = "ScatterNdUpdate",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",
     .shape = scatter_nd_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Assigns updates to the slices of ref at the index vectors indices."},
    {.name = "ResourceScatterNdUpdate",
     .signature = "ref: resource, indices: Tindices, updates: T ->",
     .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",
     .shape = scatter_nd_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Assigns updates to the slices of the variable with the handle ref at the index vectors indices."},
    {.name = "ScatterNdAdd",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_nd_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Adds updates to the slices of ref at the index vectors indices."},
    {.name = "ResourceScatterNdAdd",
     .signature = "ref: resource, indices: Tindices, updates: T ->",
     .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",
     .shape = scatter_nd_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Adds updates to the slices of the variable with the handle ref at the index vectors indices."},
    {.name = "ScatterNdSub",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_nd_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Subtracts updates from the slices of ref at the index vectors indices."},
    {.name = "ResourceScatterNdSub",
     .signature = "ref: resource, indices: Tindices, updates: T ->",
     .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",
     .shape = scatter_nd_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Subtracts updates from the slices of the variable with the handle ref at the index vectors indices."},
    {.name = "ScatterNdMin",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_nd_shape,
     .writes = 0b1,
     .doc = "Replaces the slices of ref at the index vectors indices by the minimum of them and updates."},
    {.name = "ResourceScatterNdMin",
     .signature = "ref: resource, indices: Tindices, updates: T ->",
     .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",
     .shape = scatter_nd_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Replaces the slices of the variable with the handle ref at the index vectors indices by the minimum of "
            "them and updates."},
    {.name = "ScatterNdMax",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_nd_shape,
     .writes = 0b1,
     .doc = "Replaces the slices of ref at the index vectors indices by the maximum of them and updates."},
    {.name = "ResourceScatterNdMax",
     .signature = "ref: resource, indices: Tindices, updates: T ->",
     .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",
     .shape = scatter_nd_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Replaces the slices of the variable with the handle ref at the index vectors indices by the maximum of "
            "them and updates."},
    {.name = "StridedSliceAssign",
     .signature = "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
     .attrs = "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
              "new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = mr_shape_unchanged,
     .writes = 0b1,
     .doc = "Assigns value to a strided slice of ref."},
    {.name = "ResourceStridedSliceAssign",
     .signature = "ref: resource, begin: Index, end: Index, strides: Index, value: T ->",
     .attrs = "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
              "new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Assigns value to a strided slice of the variable with the handle ref."},
    {.name = "TensorStridedSliceUpdate",
     .signature = "input: T, begin: Index, end: Index, strides: Index, value: T -> output: T",
     .attrs = "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
              "new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = mr_shape_unchanged,
     .doc = "Returns a copy of input with value assigned to a strided slice."},
};

const mr_op_table mr_ops_variable_index = {variable_index_ops,
                                           sizeof variable_index_ops / sizeof variable_index_ops[0]};
