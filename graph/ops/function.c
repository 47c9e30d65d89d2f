/* Functions: their arguments and results, and the operators that call them. */
#include "graph/ir/op.h"

#include <string.h>

/* The attr output_shapes, if it has as many shapes as there are outputs. */
static mr_status stated_shapes(mr_shape_call *call, mr_error *)
{
    const mr_attr *shapes = mr_attrs_find(call->attrs, "output_shapes");
    if (!shapes || shapes->kind != MR_ATTR_SHAPE || shapes->count != call->output_count) return MR_OK;
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = shapes->values[i].shape;
    return MR_OK;
}

static mr_status fake_shape(mr_shape_call *call, mr_error *error)
{
    return mr_attr_get_shape(call->attrs, "shape", &call->outputs[0], error);
}

static const mr_op function_ops[] = {
    {.name = "_Arg",
     .signature = "-> output: T",
     .attrs = "T: type; index: int >= 0",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_PLACEHOLDER | MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_function_argument",
     .doc = "Returns argument index of the function that contains it."},
    {.name = "_Retval",
     .signature = "input: T ->",
     .attrs = "T: type; index: int >= 0",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_function_result",
     .doc = "Makes input result index of the function that contains it."},
    {.name = "PartitionedCall",
     .signature = "args: Tin -> output: Tout",
     .attrs = "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = ''; config_proto: string = ''; "
              "executor_type: string = ''",
     .shape = mr_shape_unknown,
     .doc = "Calls the function f, which has no side effects."},
    {.name = "StatefulPartitionedCall",
     .signature = "args: Tin -> output: Tout",
     .attrs = "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = ''; config_proto: string = ''; "
              "executor_type: string = ''",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Calls the function f."},
    {.name = "RemoteCall",
     .signature = "target: string, args: Tin -> output: Tout",
     .attrs = "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .doc = "Calls the function f on the device target, which must be one of the session's."},
    {.name = "If",
     .signature = "cond: Tcond, input: Tin -> output: Tout",
     .attrs = "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; else_branch: func; "
              "output_shapes: list(shape) = []",
     .shape = stated_shapes,
     .flags = MR_OP_STATEFUL,
     .doc = "Calls then_branch if cond is true, otherwise else_branch."},
    {.name = "StatelessIf",
     .signature = "cond: Tcond, input: Tin -> output: Tout",
     .attrs = "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; else_branch: func; "
              "output_shapes: list(shape) = []",
     .shape = stated_shapes,
     .doc = "Calls then_branch if cond is true, otherwise else_branch; neither has side effects."},
    {.name = "While",
     .signature = "input: T -> output: T",
     .attrs = "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = "
              "10",
     .shape = stated_shapes,
     .flags = MR_OP_STATEFUL,
     .doc = "Calls body on its own results, starting with input, as long as cond of them is true."},
    {.name = "StatelessWhile",
     .signature = "input: T -> output: T",
     .attrs = "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = "
              "10",
     .shape = stated_shapes,
     .doc = "Calls body on its own results, starting with input, as long as cond of them is true; neither has side "
            "effects."},
    {.name = "Case",
     .signature = "branch_index: int32, input: Tin -> output: Tout",
     .attrs = "Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1; output_shapes: list(shape) = []",
     .shape = stated_shapes,
     .flags = MR_OP_STATEFUL,
     .doc = "Calls branch branch_index, or the last one if there is no such branch."},
    {.name = "StatelessCase",
     .signature = "branch_index: int32, input: Tin -> output: Tout",
     .attrs = "Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1; output_shapes: list(shape) = []",
     .shape = stated_shapes,
     .doc = "Calls branch branch_index, or the last one if there is no such branch; none has side effects."},
    {.name = "For",
     .signature = "start: int32, limit: int32, delta: int32, input: T -> output: T",
     .attrs = "T: list(type) >= 0; body: func",
     .shape = mr_shape_unknown,
     .doc = "Calls body for each number from start to limit in steps of delta, with its own earlier results."},
    {.name = "SymbolicGradient",
     .signature = "input: Tin -> output: Tout",
     .attrs = "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
     .shape = mr_shape_unknown,
     .doc = "Computes the gradients of the arguments of f from its arguments and the gradients of its results."},
    {.name = "FakeParam",
     .signature = "-> output: dtype",
     .attrs = "dtype: type; shape: shape",
     .shape = fake_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Stands for a value that is never used."},
    {.name = "ToBool",
     .signature = "input: T -> output: bool",
     .attrs = "T: type",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns whether a scalar is not zero or empty, or another tensor has elements."},
    {.name = "_ListToArray",
     .signature = "input: Tin -> output: N * T",
     .attrs = "Tin: list(type) >= 1; T: type; N: int >= 1",
     .shape = mr_shape_each,
     .builder = "mr_list_to_array",
     .doc = "Returns its inputs, whose types are all T."},
    {.name = "_ArrayToList",
     .signature = "input: N * T -> output: out_types",
     .attrs = "T: type; N: int >= 1; out_types: list(type) >= 1",
     .shape = mr_shape_each,
     .builder = "mr_array_to_list",
     .doc = "Returns its inputs as a list of types."},
};

const mr_op_table mr_ops_function = {function_ops, sizeof function_ops / sizeof function_ops[0]};
