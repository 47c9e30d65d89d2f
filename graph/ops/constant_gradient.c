/* Gradients of Fill and of a placeholder with a default value. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static mr_output all_dimensions(mr_gradient_call *call, mr_output value)
{
    mr_graph *g = call->graph;
    int32_t axes[MR_RANK_MAX], rank = mr_output_shape(value).rank;
    for (int32_t i = 0; i < rank; i++) axes[i] = i;
    if (rank >= 0) return mr_gradient_ints(call, axes, rank);
    return mr_range(g, mr_constant_int32(g, 0), mr_rank(g, value), mr_constant_int32(g, 1));
}

static void fill_gradient(mr_gradient_call *call)
{
    mr_output g = call->grad_outputs[0];
    call->grad_inputs[1] = mr_sum(call->graph, g, all_dimensions(call, g));
}

static const mr_gradient gradients[] = {
    {"PlaceholderWithDefault", mr_gradient_forward},
    {"Fill", fill_gradient},
};

const mr_gradient_table mr_gradients_constant = {gradients, sizeof gradients / sizeof gradients[0]};
