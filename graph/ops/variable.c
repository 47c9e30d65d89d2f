/* IDEA */
#include "graph/ir/op.h"

static mr_status variable_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status assign_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status assign_update_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status scatter_update_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status read_variable_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op variable_ops[] = {
    {.name = "VariableV2",
     .signature = "-> ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
     .shape = variable_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "A variable as a reference: its value lives in the session from its first assignment."},
    {.name = "Variable",
     .signature = "-> ref: Ref(dtype)",
     .attrs = "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
     .shape = variable_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "A variable as a reference, as old graphs have it."},
    {.name = "Assign",
     .signature = "ref: Ref(T), value: T -> output_ref: Ref(T)",
     .attrs = "T: type; validate_shape: bool = true; use_locking: bool = true",
     .shape = assign_shape,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Sets ref to value."},
    {.name = "AssignAdd",
     .signature = "ref: Ref(T), value: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = assign_update_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Adds value to ref."},
    {.name = "AssignSub",
     .signature = "ref: Ref(T), value: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; use_locking: bool = false",
     .shape = assign_update_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Subtracts value from ref."},
    {.name = "IsVariableInitialized",
     .signature = "ref: Ref(dtype) -> is_initialized: bool",
     .attrs = "dtype: type",
     .shape = mr_shape_scalar,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "True when ref has a value."},
    {.name = "ScatterUpdate",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: type; Tindices: {int32, int64}; use_locking: bool = true",
     .shape = scatter_update_shape,
     .doc = "Sets the rows of ref that indices name to updates."},
    {.name = "ScatterAdd",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_update_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Adds updates to the rows of ref that indices name."},
    {.name = "ScatterSub",
     .signature = "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
     .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
     .shape = scatter_update_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Subtracts updates from the rows of ref that indices name."},
    {.name = "VarHandleOp",
     .signature = "-> resource: resource",
     .attrs = "container: string = ''; shared_name: string = ''; debug_name: string = ''; dtype: type; shape: shape; "
              "allowed_devices: list(string) = []",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL,
     .doc = "The handle of a variable."},
    {.name = "ReadVariableOp",
     .signature = "resource: resource -> value: dtype",
     .attrs = "dtype: type",
     .shape = read_variable_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "The value of the variable that resource names."},
    {.name = "AssignVariableOp",
     .signature = "resource: resource, value: dtype ->",
     .attrs = "dtype: type; validate_shape: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Sets the variable that resource names to value."},
    {.name = "AssignAddVariableOp",
     .signature = "resource: resource, value: dtype ->",
     .attrs = "dtype: type",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Adds value to the variable that resource names."},
    {.name = "AssignSubVariableOp",
     .signature = "resource: resource, value: dtype ->",
     .attrs = "dtype: type",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Subtracts value from the variable that resource names."},
    {.name = "VarIsInitializedOp",
     .signature = "resource: resource -> is_initialized: bool",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "True when the variable that resource names has a value."},
    {.name = "DestroyResourceOp",
     .signature = "resource: resource ->",
     .attrs = "ignore_lookup_error: bool = true",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Drops what resource names."},
};

const mr_op_table mr_op_table_variable = {variable_ops, sizeof variable_ops / sizeof variable_ops[0]};
