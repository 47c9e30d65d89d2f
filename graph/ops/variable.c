/* Variables, by reference and by handle, and the operators that update them. */
#include "graph/ir/op.h"

#include <string.h>

/* Old graphs write an unknown shape as that of a scalar. */
static mr_status variable_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_attr_get_shape(call->attrs, "shape", &call->outputs[0], error));
    bool is_old = strcmp(call->op->name, "Variable") == 0;
    if (is_old && call->outputs[0].rank == 0) call->outputs[0] = MR_SHAPE_UNKNOWN;
    return MR_OK;
}

static mr_status assign_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = call->inputs[1];
    if (!mr_attr_bool_or(call->attrs, "validate_shape", true)) return MR_OK;
    return mr_shape_merge(call->inputs[0], call->inputs[1], &call->outputs[0], error);
}

static mr_status assign_update_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_merge(call->inputs[0], call->inputs[1], &call->outputs[0], error);
}

/* updates has the shape of indices followed by that of a row of ref; or it is a scalar. */
static mr_status check_updates(const mr_shape_call *call, mr_shape ref, mr_error *error)
{
    mr_shape indices = call->inputs[1], updates = call->inputs[2], expected = indices;
    MR_TRY(mr_shape_at_least(ref, 1, error));
    if (ref.rank < 0 || indices.rank < 0 || updates.rank == 0) return MR_OK;
    if (indices.rank + ref.rank - 1 > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "updates have more than %d dimensions", MR_RANK_MAX);
    for (int32_t i = 1; i < ref.rank; i++) expected.dims[expected.rank++] = ref.dims[i];
    return mr_shape_merge(updates, expected, &updates, error);
}

static mr_status scatter_update_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = call->inputs[0];
    return check_updates(call, call->inputs[0], error);
}

static mr_status resource_scatter_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    return check_updates(call, call->input_handles[0], error);
}

static mr_status shape_of_variable(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = MR_SHAPE(call->input_handles[0].rank);
    return mr_shape_expect_rank(call, 0, 0, error);
}

static mr_status var_handle_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = MR_SCALAR;
    return mr_attr_get_shape(call->attrs, "shape", &call->output_handles[0], error);
}

static mr_status read_variable_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = call->input_handles[0];
    return mr_shape_expect_rank(call, 0, 0, error);
}

static mr_status assign_variable_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape merged;
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    if (!mr_attr_bool_or(call->attrs, "validate_shape", true)) return MR_OK;
    return mr_shape_merge(call->input_handles[0], call->inputs[1], &merged, error);
}

static const mr_op variable_ops[] = {
    {.name = "VariableV2",
     .signature = "-> ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
     .shape = variable_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns a reference to a variable, whose value is kept in the session from its first assignment on."},
    {.name = "Variable",
     .signature = "-> ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
     .shape = variable_shape,
     .builder = "mr_variable_op",
     .flags = MR_OP_STATEFUL,
     .doc = "Returns a reference to a variable; used by old graphs."},
    {.name = "Assign",
     .signature = "ref: Ref(T), value: T -> output_ref: Ref(T)",
     .attrs = "T: type; validate_shape: bool = true; use_locking: bool = true",
     .shape = assign_shape,
     .role = MR_FUSION_ASSIGN,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Assigns value to ref."},
    {.name = "AssignAdd",
     .signature = "ref: Ref(T), value: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = assign_update_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Adds value to ref."},
    {.name = "AssignSub",
     .signature = "ref: Ref(T), value: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = assign_update_shape,
     .fusion = {.adam = "_ApplySparseAdam"},
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Subtracts value from ref."},
    {.name = "IsVariableInitialized",
     .signature = "ref: Ref(dtype) -> is_initialized: bool",
     .attrs = "dtype: type",
     .shape = mr_shape_scalar,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns whether ref has a value."},
    {.name = "ScatterUpdate",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",
     .shape = scatter_update_shape,
     .writes = 0b1,
     .doc = "Assigns updates to the rows of ref at indices."},
    {.name = "ScatterAdd",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_update_shape,
     .role = MR_FUSION_SCATTER_ADD,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Adds updates to the rows of ref at indices."},
    {.name = "ScatterSub",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_update_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Subtracts updates from the rows of ref at indices."},
    {.name = "ScatterMul",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_update_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Multiplies the rows of ref at indices by updates."},
    {.name = "ResourceScatterMul",
     .signature = "resource: resource, indices: Tindices, updates: dtype ->",
     .attrs = "dtype: numbertype; Tindices: {int32, int64}",
     .shape = resource_scatter_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Multiplies the rows at indices of the variable with the handle resource by updates."},
    {.name = "ScatterDiv",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_update_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 0b1,
     .doc = "Divides the rows of ref at indices by updates."},
    {.name = "ResourceScatterDiv",
     .signature = "resource: resource, indices: Tindices, updates: dtype ->",
     .attrs = "dtype: numbertype; Tindices: {int32, int64}",
     .shape = resource_scatter_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Divides the rows at indices of the variable with the handle resource by updates."},
    {.name = "ScatterMin",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: {half, bfloat16, float, double, int32, int64}; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_update_shape,
     .writes = 0b1,
     .doc = "Replaces the rows of ref at indices by the minimum of them and updates."},
    {.name = "ResourceScatterMin",
     .signature = "resource: resource, indices: Tindices, updates: dtype ->",
     .attrs = "dtype: numbertype; Tindices: {int32, int64}",
     .shape = resource_scatter_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc =
         "Replaces the rows at indices of the variable with the handle resource by the minimum of them and updates."},
    {.name = "ScatterMax",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: {half, bfloat16, float, double, int32, int64}; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_update_shape,
     .writes = 0b1,
     .doc = "Replaces the rows of ref at indices by the maximum of them and updates."},
    {.name = "ResourceScatterMax",
     .signature = "resource: resource, indices: Tindices, updates: dtype ->",
     .attrs = "dtype: numbertype; Tindices: {int32, int64}",
     .shape = resource_scatter_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc =
         "Replaces the rows at indices of the variable with the handle resource by the maximum of them and updates."},
    {.name = "VarHandleOp",
     .signature = "-> resource: resource",
     .attrs = "container: string = ''; shared_name: string = ''; debug_name: string = ''; dtype: type; shape: shape; "
              "allowed_devices: list(string) = []",
     .shape = var_handle_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the handle of a variable."},
    {.name = "DisableCopyOnRead",
     .signature = "resource: resource ->",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Has no effect here: a value that was read never changes."},
    {.name = "ReadVariableOp",
     .signature = "resource: resource -> value: dtype",
     .attrs = "dtype: type",
     .shape = read_variable_shape,
     .flags = MR_OP_VIEW | MR_OP_STATEFUL,
     .doc = "Returns the value of the variable with the handle resource."},
    {.name = "AssignVariableOp",
     .signature = "resource: resource, value: dtype ->",
     .attrs = "dtype: type; validate_shape: bool = false",
     .shape = assign_variable_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Assigns value to the variable with the handle resource."},
    {.name = "AssignAddVariableOp",
     .signature = "resource: resource, value: dtype ->",
     .attrs = "dtype: type",
     .shape = assign_variable_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Adds value to the variable with the handle resource."},
    {.name = "AssignSubVariableOp",
     .signature = "resource: resource, value: dtype ->",
     .attrs = "dtype: type",
     .shape = assign_variable_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Subtracts value from the variable with the handle resource."},
    {.name = "ResourceScatterUpdate",
     .signature = "resource: resource, indices: Tindices, updates: dtype ->",
     .attrs = "dtype: type; Tindices: {int32, int64}",
     .shape = resource_scatter_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Assigns updates to the rows at indices of the variable with the handle resource."},
    {.name = "ResourceScatterAdd",
     .signature = "resource: resource, indices: Tindices, updates: dtype ->",
     .attrs = "dtype: numbertype; Tindices: {int32, int64}",
     .shape = resource_scatter_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Adds updates to the rows at indices of the variable with the handle resource."},
    {.name = "ResourceScatterSub",
     .signature = "resource: resource, indices: Tindices, updates: dtype ->",
     .attrs = "dtype: numbertype; Tindices: {int32, int64}",
     .shape = resource_scatter_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Subtracts updates from the rows at indices of the variable with the handle resource."},
    {.name = "VariableShape",
     .signature = "input: resource -> output: out_type",
     .attrs = "out_type: {int32, int64} = int32",
     .shape = shape_of_variable,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the shape of the variable with the handle input."},
    {.name = "VarIsInitializedOp",
     .signature = "resource: resource -> is_initialized: bool",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns whether the variable with the handle resource has a value."},
    {.name = "DestroyResourceOp",
     .signature = "resource: resource ->",
     .attrs = "ignore_lookup_error: bool = true",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .writes = 0b1,
     .doc = "Deletes the resource with the handle resource."},
};

const mr_op_table mr_ops_variable = {variable_ops, sizeof variable_ops / sizeof variable_ops[0]};
