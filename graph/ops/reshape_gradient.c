/* Gradients of operators that forward or reshape their input. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

void mr_identity_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = call->grad_outputs[0];
}

void mr_identity_n_gradient(mr_gradient_call *call)
{
    int32_t count = mr_node_input_count(call->node);
    for (int32_t i = 0; i < count; i++) call->grad_inputs[i] = call->grad_outputs[i];
}

void mr_prevent_gradient_gradient(mr_gradient_call *call)
{
    mr_string message = mr_attr_string_or(&call->node->attrs, "message", "");
    mr_gradient_fail(call, "stopped by the graph: %.*s", (int)message.size_bytes, message.data);
}

void mr_check_numerics_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_check_numerics(call->graph, call->grad_outputs[0],
                                             .message = "Not a number (NaN) or infinity (Inf) values detected in "
                                                        "gradient.");
}

/* Reshape, ExpandDims and Squeeze. */
void mr_reshape_gradient(mr_gradient_call *call)
{
    mr_output shape = mr_gradient_shape(call, gradient_input(call, 0));
    call->grad_inputs[0] = mr_reshape(call->graph, call->grad_outputs[0], shape);
}

static mr_output all_dimensions(mr_gradient_call *call, mr_output value)
{
    mr_graph *g = call->graph;
    int32_t axes[MR_RANK_MAX], rank = mr_output_shape(value).rank;
    for (int32_t i = 0; i < rank; i++) axes[i] = i;
    if (rank >= 0) return mr_gradient_ints(call, axes, rank);
    return mr_range(g, mr_constant_int32(g, 0), mr_rank(g, value), mr_constant_int32(g, 1));
}

void mr_fill_gradient(mr_gradient_call *call)
{
    mr_output g = call->grad_outputs[0];
    call->grad_inputs[1] = mr_sum(call->graph, g, all_dimensions(call, g));
}

void mr_transpose_gradient(mr_gradient_call *call)
{
    mr_output inverse = mr_invert_permutation(call->graph, gradient_input(call, 1));
    call->grad_inputs[0] = mr_transpose(call->graph, call->grad_outputs[0], inverse);
}

/* Each dimension of the gradient is split into (multiple, size), and summed over the multiples. */
void mr_tile_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output input = gradient_input(call, 0), multiples = mr_cast(g, gradient_input(call, 1), MR_INT32);
    int32_t rank = mr_output_shape(input).rank;
    if (rank < 0 || 2 * rank > MR_RANK_MAX) {
        mr_gradient_fail(call, "supported only for up to %d dimensions that are known while the graph is built",
                         MR_RANK_MAX / 2);
        return;
    }
    if (rank == 0) {
        call->grad_inputs[0] = call->grad_outputs[0];
        return;
    }
    mr_output shape = mr_gradient_shape(call, input);
    mr_output pairs = mr_pack(g, MR_OUTPUTS(multiples, shape), .axis = 1);
    mr_output parts = mr_reshape(g, pairs, mr_constant_ints(g, MR_INTS(-1)));
    int32_t axes[MR_RANK_MAX];
    for (int32_t i = 0; i < rank; i++) axes[i] = 2 * i;
    mr_output split = mr_reshape(g, call->grad_outputs[0], parts);
    call->grad_inputs[0] = mr_reshape(g, mr_sum(g, split, mr_gradient_ints(call, axes, rank)), shape);
}

void mr_reverse_v2_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_reverse_v2(call->graph, call->grad_outputs[0], gradient_input(call, 1));
}

void mr_broadcast_to_gradient(mr_gradient_call *call)
{
    mr_output grad = call->grad_outputs[0], output = gradient_output(call, 0);
    call->grad_inputs[0] = mr_gradient_unbroadcast(call, grad, gradient_input(call, 0), output);
}
