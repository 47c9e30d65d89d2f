/* Control flow: nodes that only order others, and the loops and conditionals of TensorFlow 1. */
#include "graph/ir/op.h"

static mr_status switch_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    call->outputs[0] = call->outputs[1] = call->inputs[0];
    call->output_handles[0] = call->output_handles[1] = call->input_handles[0];
    return MR_OK;
}

/* The common shape of all inputs: any of them may be forwarded. */
static mr_status merge_inputs_shape(mr_shape_call *call, mr_error *)
{
    mr_shape common = call->input_count > 0 ? call->inputs[0] : MR_SHAPE_UNKNOWN;
    for (int32_t i = 1; i < call->input_count; i++) {
        mr_shape other = call->inputs[i];
        if (other.rank != common.rank) common = MR_SHAPE_UNKNOWN;
        for (int32_t j = 0; j < common.rank; j++)
            if (common.dims[j] != other.dims[j]) common.dims[j] = -1;
    }
    call->outputs[0] = common;
    call->outputs[1] = MR_SCALAR;
    if (call->input_count > 0) call->output_handles[0] = call->input_handles[0];
    return MR_OK;
}

static mr_status ref_select_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    mr_shape common = call->inputs[1];
    for (int32_t i = 2; i < call->input_count; i++)
        if (!mr_shape_equal(common, call->inputs[i])) common = MR_SHAPE_UNKNOWN;
    call->outputs[0] = common;
    return MR_OK;
}

/* A loop may change the shape of a loop variable, unless it is constant. */
static mr_status enter_shape(mr_shape_call *call, mr_error *)
{
    if (mr_attr_bool_or(call->attrs, "is_constant", false)) call->outputs[0] = call->inputs[0];
    call->output_handles[0] = call->input_handles[0];
    return MR_OK;
}

static mr_status next_iteration_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unchanged(call, error);
}

static const mr_op control_ops[] = {
    {.name = "NoOp",
     .signature = "->",
     .shape = mr_shape_unknown,
     .doc = "Does nothing; useful only for control edges."},
    {.name = "Assert",
     .signature = "condition: bool, data: T ->",
     .attrs = "T: list(type) >= 1; summarize: int = 3",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Fails with an error that shows data unless condition is true."},
    {.name = "Print",
     .signature = "input: T, data: U -> output: T",
     .attrs = "T: type; U: list(type) >= 0; message: string = ''; first_n: int = -1; summarize: int = 3",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns input unchanged and prints message and data."},
    {.name = "Switch",
     .signature = "data: T, pred: bool -> output_false: T, output_true: T",
     .attrs = "T: type",
     .shape = switch_shape,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_SWITCH,
     .doc = "Forwards data to output_true if pred is true, otherwise to output_false."},
    {.name = "RefSwitch",
     .signature = "data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)",
     .attrs = "T: type",
     .shape = switch_shape,
     .flags = MR_OP_VIEW | MR_OP_ALLOWS_UNINITIALIZED,
     .flow = MR_FLOW_SWITCH,
     .doc = "Forwards the reference data to output_true if pred is true, otherwise to output_false."},
    {.name = "Merge",
     .signature = "inputs: N * T -> output: T, value_index: int32",
     .attrs = "T: type; N: int >= 1",
     .shape = merge_inputs_shape,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_MERGE,
     .doc = "Forwards the first of inputs that becomes available, and its index."},
    {.name = "RefMerge",
     .signature = "inputs: Ref(N * T) -> output: Ref(T), value_index: int32",
     .attrs = "T: type; N: int >= 1",
     .shape = merge_inputs_shape,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_MERGE,
     .doc = "Forwards the first reference of inputs that becomes available, and its index."},
    {.name = "Enter",
     .signature = "data: T -> output: T",
     .attrs = "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10",
     .shape = enter_shape,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_ENTER,
     .doc = "Forwards data into the loop frame_name."},
    {.name = "RefEnter",
     .signature = "data: Ref(T) -> output: Ref(T)",
     .attrs = "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10",
     .shape = enter_shape,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_ENTER,
     .doc = "Forwards the reference data into the loop frame_name."},
    {.name = "Exit",
     .signature = "data: T -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_EXIT,
     .doc = "Forwards data out of its loop."},
    {.name = "RefExit",
     .signature = "data: Ref(T) -> output: Ref(T)",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_EXIT,
     .doc = "Forwards the reference data out of its loop."},
    {.name = "NextIteration",
     .signature = "data: T -> output: T",
     .attrs = "T: type",
     .shape = next_iteration_shape,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_NEXT_ITERATION,
     .doc = "Forwards data to the next iteration of its loop."},
    {.name = "RefNextIteration",
     .signature = "data: Ref(T) -> output: Ref(T)",
     .attrs = "T: type",
     .shape = next_iteration_shape,
     .flags = MR_OP_VIEW,
     .flow = MR_FLOW_NEXT_ITERATION,
     .doc = "Forwards the reference data to the next iteration of its loop."},
    {.name = "LoopCond",
     .signature = "input: bool -> output: bool",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_IDENTITY,
     .doc = "Returns whether the loop runs another iteration."},
    {.name = "ControlTrigger",
     .signature = "->",
     .shape = mr_shape_unknown,
     .flow = MR_FLOW_TRIGGER,
     .doc = "Runs after its control inputs, whether or not these are dead."},
    {.name = "RefIdentity",
     .signature = "input: Ref(T) -> output: Ref(T)",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_ALLOWS_UNINITIALIZED,
     .doc = "Returns the reference input unchanged."},
    {.name = "RefSelect",
     .signature = "index: int32, inputs: Ref(N * T) -> output: Ref(T)",
     .attrs = "T: type; N: int >= 1",
     .shape = ref_select_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the reference at index in inputs."},
    {.name = "Abort",
     .signature = "->",
     .attrs = "error_msg: string = ''; exit_without_error: bool = false",
     .shape = mr_shape_unknown,
     .builder = "mr_abort_op",
     .doc = "Fails with error_msg. TensorFlow ends the process instead."},
};

const mr_op_table mr_ops_control = {control_ops, sizeof control_ops / sizeof control_ops[0]};
