/* Gradients of operators that forward their input. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static void identity_n_gradient(mr_gradient_call *call)
{
    int32_t count = mr_node_input_count(call->node);
    for (int32_t i = 0; i < count; i++) call->grad_inputs[i] = call->grad_outputs[i];
}

static void prevent_gradient_gradient(mr_gradient_call *call)
{
    mr_string message = mr_attr_string_or(&call->node->attrs, "message", "");
    mr_gradient_fail(call, "stopped by the graph: %.*s", (int)message.size_bytes, message.data);
}

static void check_numerics_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_check_numerics(call->graph, call->grad_outputs[0],
                                             .message = "Not a number (NaN) or infinity (Inf) values detected in "
                                                        "gradient.");
}

static const mr_gradient gradients[] = {
    {"Identity", mr_gradient_forward},
    {"IdentityN", identity_n_gradient},
    {"PreventGradient", prevent_gradient_gradient},
    {"Snapshot", mr_gradient_forward},
    {"CheckNumerics", check_numerics_gradient},
};

const mr_gradient_table mr_gradients_identity = {gradients, sizeof gradients / sizeof gradients[0]};
