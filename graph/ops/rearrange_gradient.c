/* Gradients of moving elements: the movement back. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))

static void reverse_sequence_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("ReverseSequence", call->grad_outputs[0], gradient_input(call, 1));
}

static void roll_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    call->grad_inputs[0] =
        mr_roll(g, call->grad_outputs[0], mr_neg(g, gradient_input(call, 1)), gradient_input(call, 2));
}

static void mirror_pad_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("MirrorPadGrad", call->grad_outputs[0], gradient_input(call, 1));
}

static void mirror_pad_grad_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("MirrorPad", call->grad_outputs[0], gradient_input(call, 1));
}

/* Elements that are equal to the n-th share its gradient. */
static void nth_element_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output last = mr_constant_int32(g, -1), input = gradient_input(call, 0);
    mr_output value = mr_expand_dims(g, gradient_output(call, 0), last);
    mr_output chosen = mr_cast(g, mr_equal(g, value, input), mr_output_dtype(input));
    mr_output count = mr_expand_dims(g, mr_sum(g, chosen, last), last);
    mr_output grad = mr_expand_dims(g, call->grad_outputs[0], last);
    call->grad_inputs[0] = mr_mul(g, mr_real_div(g, chosen, count), grad);
}

static const mr_gradient gradients[] = {
    {"ReverseSequence", reverse_sequence_gradient},
    {"Roll", roll_gradient},
    {"MirrorPad", mirror_pad_gradient},
    {"MirrorPadGrad", mirror_pad_grad_gradient},
    {"NthElement", nth_element_gradient},
};

const mr_gradient_table mr_gradients_rearrange = {gradients, sizeof gradients / sizeof gradients[0]};
