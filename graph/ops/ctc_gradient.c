/* Gradient of the connectionist temporal classification loss: the operator computes it together with the loss. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

/* The second output is d(loss[b])/d(inputs[:, b, :]), [time, batch, classes]. */
static void ctc_loss_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    if (gradient_is_given(call, 1)) {
        mr_gradient_fail(call, "the gradient of the loss has no derivative");
        return;
    }
    mr_output slopes = mr_prevent_gradient(g, gradient_output(call, 1), .message = "ctc_loss has no second derivative");
    mr_output column = mr_expand_dims(g, call->grad_outputs[0], mr_constant_int32(g, -1));
    call->grad_inputs[0] = mr_mul(g, column, slopes);
}

static const mr_gradient gradients[] = {
    {"CTCLoss", ctc_loss_gradient},
};

const mr_gradient_table mr_gradients_ctc = {gradients, sizeof gradients / sizeof gradients[0]};
