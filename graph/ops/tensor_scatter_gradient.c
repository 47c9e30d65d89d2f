/* Gradients of scattering: updates get the gradients at their indices. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static mr_output gathered(mr_gradient_call *call, mr_output values)
{
    return mr_gather_nd(call->graph, values, gradient_input(call, 1));
}

static void update_gradient(mr_gradient_call *call)
{
    mr_output zeros = mr_zeros_like(call->graph, gradient_input(call, 2));
    call->grad_inputs[0] = mr_tensor_scatter_update(call->graph, call->grad_outputs[0], gradient_input(call, 1), zeros);
    call->grad_inputs[2] = gathered(call, call->grad_outputs[0]);
}

static void add_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = call->grad_outputs[0];
    call->grad_inputs[2] = gathered(call, call->grad_outputs[0]);
}

static void sub_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = call->grad_outputs[0];
    call->grad_inputs[2] = mr_neg(call->graph, gathered(call, call->grad_outputs[0]));
}

/* Maximum and minimum: all that are equal to the result share its gradient. */
static void extreme_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output target = gradient_input(call, 0), indices = gradient_input(call, 1), updates = gradient_input(call, 2);
    mr_output result = gradient_output(call, 0);
    mr_dtype dtype = mr_output_dtype(target);
    mr_output in_target = mr_cast(g, mr_equal(g, target, result), dtype);
    mr_output in_updates = mr_cast(g, mr_equal(g, updates, gathered(call, result)), dtype);
    mr_output shape = mr_shape_of(g, target, .out_type = mr_output_dtype(indices));
    mr_output count = mr_add(g, in_target, mr_scatter_nd(g, indices, in_updates, shape));
    mr_output share = mr_real_div(g, call->grad_outputs[0], count);
    call->grad_inputs[0] = mr_mul(g, share, in_target);
    call->grad_inputs[2] = mr_mul(g, gathered(call, share), in_updates);
}

static const mr_gradient gradients[] = {
    {"TensorScatterUpdate", update_gradient}, {"TensorScatterAdd", add_gradient},
    {"TensorScatterSub", sub_gradient},       {"TensorScatterMax", extreme_gradient},
    {"TensorScatterMin", extreme_gradient},   {"ScatterNdNonAliasingAdd", add_gradient},
};

const mr_gradient_table mr_gradients_tensor_scatter = {gradients, sizeof gradients / sizeof gradients[0]};
