/* Gradients of operators that choose elements. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static void select_gradient(mr_gradient_call *call)
{
    mr_graph *graph = call->graph;
    mr_output condition = gradient_input(call, 0), g = call->grad_outputs[0], zeros = mr_zeros_like(graph, g);
    call->grad_inputs[1] = mr_select(graph, condition, g, zeros);
    call->grad_inputs[2] = mr_select(graph, condition, zeros, g);
}

static void select_v2_gradient(mr_gradient_call *call)
{
    mr_graph *graph = call->graph;
    mr_output condition = gradient_input(call, 0), z = gradient_output(call, 0), g = call->grad_outputs[0];
    mr_output zero = mr_gradient_scalar(call, g, 0);
    mr_output grad_t = mr_select_v2(graph, condition, g, zero), grad_e = mr_select_v2(graph, condition, zero, g);
    call->grad_inputs[1] = mr_gradient_unbroadcast(call, grad_t, gradient_input(call, 1), z);
    call->grad_inputs[2] = mr_gradient_unbroadcast(call, grad_e, gradient_input(call, 2), z);
}

static void clip_by_value_gradient(mr_gradient_call *call)
{
    mr_graph *graph = call->graph;
    mr_output t = gradient_input(call, 0), low = gradient_input(call, 1), high = gradient_input(call, 2);
    mr_output g = call->grad_outputs[0], zeros = mr_zeros_like(graph, g);
    mr_output below = mr_less(graph, t, low), above = mr_greater(graph, t, high);
    mr_output outside = mr_logical_or(graph, below, above);
    call->grad_inputs[0] = mr_select(graph, outside, zeros, g);
    call->grad_inputs[1] = mr_gradient_unbroadcast(call, mr_select(graph, below, g, zeros), low, t);
    call->grad_inputs[2] = mr_gradient_unbroadcast(call, mr_select(graph, above, g, zeros), high, t);
}

static const mr_gradient gradients[] = {
    {"Select", select_gradient},
    {"SelectV2", select_v2_gradient},
    {"ClipByValue", clip_by_value_gradient},
};

const mr_gradient_table mr_gradients_select = {gradients, sizeof gradients / sizeof gradients[0]};
