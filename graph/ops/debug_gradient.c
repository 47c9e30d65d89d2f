/* Gradients of operators that check or mark tensors. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static void check_numerics_v2_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_check_numerics_v2(call->graph, call->grad_outputs[0],
                                                .message = "Not a number (NaN) or infinity (Inf) values detected in "
                                                           "gradient.");
}

static const mr_gradient gradients[] = {
    {"CheckNumericsV2", check_numerics_v2_gradient},
    {"EnsureShape", mr_gradient_forward},
    {"DebugGradientIdentity", mr_gradient_forward},
};

const mr_gradient_table mr_gradients_debug = {gradients, sizeof gradients / sizeof gradients[0]};
