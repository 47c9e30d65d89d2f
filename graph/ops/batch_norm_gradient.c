/* Gradients of the fused batch normalizations. In training, the backward operator needs the reserve spaces of the
 * forward operator; otherwise the statistics are inputs, which are constant for it. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"

#include <string.h>

static void fused_batch_norm_gradient(mr_gradient_call *call)
{
    const char *op = mr_node_op(call->node);
    bool v3 = strcmp(op, "FusedBatchNormV3") == 0, v2 = strcmp(op, "FusedBatchNormV2") == 0;
    const char *backward = v3 ? "FusedBatchNormGradV3" : v2 ? "FusedBatchNormGradV2" : "FusedBatchNormGrad";
    bool training = mr_attr_bool_or(&call->node->attrs, "is_training", true);
    mr_output inputs[] = {
        mr_gradient_or_zeros(call, 0),
        gradient_input(call, 0),
        gradient_input(call, 1),
        training ? gradient_output(call, 3) : gradient_input(call, 3),
        training ? gradient_output(call, 4) : gradient_input(call, 4),
        v3 ? gradient_output(call, 5) : (mr_output){0},
    };
    mr_output grads = mr_gradient_node(call, backward, (mr_outputs){inputs, v3 ? 6 : 5});
    for (int32_t i = 0; i < 3; i++) call->grad_inputs[i] = (mr_output){grads.node, i};
}

static const mr_gradient gradients[] = {
    {"FusedBatchNorm", fused_batch_norm_gradient},
    {"FusedBatchNormV2", fused_batch_norm_gradient},
    {"FusedBatchNormV3", fused_batch_norm_gradient},
};

const mr_gradient_table mr_gradients_batch_norm = {gradients, sizeof gradients / sizeof gradients[0]};
