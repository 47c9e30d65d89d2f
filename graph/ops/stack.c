/* Stacks: gradients of loops push the values of each iteration and pop them in reverse order. */
#include "graph/ops/shapes.h"

static mr_status push_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = call->inputs[1];
    call->output_handles[0] = call->input_handles[1];
    return MR_OK;
}

/* TensorFlow gives the handles of resources the shape of the old ones. */
static const mr_op stack_ops[] = {
    {.name = "StackV2",
     .signature = "max_size: int32 -> handle: resource",
     .attrs = "elem_type: type; stack_name: string = ''",
     .shape = mr_string_handle_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Creates an empty stack of at most max_size tensors, or of any number if max_size is negative."},
    {.name = "StackPushV2",
     .signature = "handle: resource, elem: T -> output: T",
     .attrs = "T: type; swap_memory: bool = false",
     .shape = push_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Pushes elem onto the stack and returns it."},
    {.name = "StackPopV2",
     .signature = "handle: resource -> elem: elem_type",
     .attrs = "elem_type: type",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Removes the newest tensor from the stack and returns it."},
    {.name = "StackCloseV2",
     .signature = "handle: resource ->",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Releases the tensors of the stack, which cannot be used afterwards."},
    {.name = "Stack",
     .signature = "-> handle: Ref(string)",
     .attrs = "elem_type: type; stack_name: string = ''",
     .shape = mr_string_handle_shape,
     .builder = "mr_stack_op",
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Creates an empty stack of any number of tensors; used by old graphs."},
    {.name = "StackPush",
     .signature = "handle: Ref(string), elem: T -> output: T",
     .attrs = "T: type; swap_memory: bool = false",
     .shape = push_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Pushes elem onto the stack and returns it; used by old graphs."},
    {.name = "StackPop",
     .signature = "handle: Ref(string) -> elem: elem_type",
     .attrs = "elem_type: type",
     .shape = mr_shape_unknown,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Removes the newest tensor from the stack and returns it; used by old graphs."},
    {.name = "StackClose",
     .signature = "handle: Ref(string) ->",
     .shape = mr_shape_unknown,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Releases the tensors of the stack; used by old graphs."},
};

const mr_op_table mr_ops_stack = {stack_ops, sizeof stack_ops / sizeof stack_ops[0]};
