/* Gradients of softmax, its losses, and L2Loss. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static mr_output sum_rows(mr_gradient_call *call, mr_output value)
{
    return mr_sum(call->graph, value, mr_constant_ints(call->graph, MR_INTS(-1)), .keep_dims = true);
}

static void softmax_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output y = gradient_output(call, 0), grad = call->grad_outputs[0];
    mr_output mean = sum_rows(call, mr_mul(g, grad, y));
    call->grad_inputs[0] = mr_mul(g, mr_sub(g, grad, mean), y);
}

static void log_softmax_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output grad = call->grad_outputs[0];
    mr_output softmax = mr_exp(g, gradient_output(call, 0));
    call->grad_inputs[0] = mr_sub(g, grad, mr_mul(g, sum_rows(call, grad), softmax));
}

/* The operator's second output is the gradient of each row's loss. If that output is itself used (for a second
 * derivative), its part is added: (grad2 - sum(grad2 softmax)) softmax. */
static mr_output logits_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output result = {0};
    if (gradient_is_given(call, 0)) {
        mr_output column = mr_expand_dims(g, call->grad_outputs[0], mr_constant_int32(g, -1));
        result = mr_mul(g, column, gradient_output(call, 1));
    }
    if (gradient_is_given(call, 1)) {
        mr_output softmax = mr_softmax(g, gradient_input(call, 0)), grad = call->grad_outputs[1];
        mr_output curvature = mr_mul(g, mr_sub(g, grad, sum_rows(call, mr_mul(g, grad, softmax))), softmax);
        result = result.node != nullptr ? mr_add_v2(g, result, curvature) : curvature;
    }
    return result;
}

static void softmax_cross_entropy_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    call->grad_inputs[0] = logits_gradient(call);
    if (!gradient_is_given(call, 0)) return;
    mr_output column = mr_expand_dims(g, call->grad_outputs[0], mr_constant_int32(g, -1));
    mr_output logarithm = mr_log_softmax(g, gradient_input(call, 0));
    call->grad_inputs[1] = mr_mul(g, column, mr_neg(g, logarithm));
}

static void sparse_softmax_cross_entropy_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = logits_gradient(call);
}

static void l2_loss_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_mul(call->graph, gradient_input(call, 0), call->grad_outputs[0]);
}

static const mr_gradient gradients[] = {
    {"Softmax", softmax_gradient},
    {"LogSoftmax", log_softmax_gradient},
    {"SoftmaxCrossEntropyWithLogits", softmax_cross_entropy_gradient},
    {"SparseSoftmaxCrossEntropyWithLogits", sparse_softmax_cross_entropy_gradient},
    {"L2Loss", l2_loss_gradient},
};

const mr_gradient_table mr_gradients_softmax = {gradients, sizeof gradients / sizeof gradients[0]};
