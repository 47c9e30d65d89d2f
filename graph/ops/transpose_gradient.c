/* Gradients of operators that reorder or repeat elements. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static void transpose_gradient(mr_gradient_call *call)
{
    mr_output inverse = mr_invert_permutation(call->graph, gradient_input(call, 1));
    call->grad_inputs[0] = mr_transpose(call->graph, call->grad_outputs[0], inverse);
}

static void conjugate_transpose_gradient(mr_gradient_call *call)
{
    mr_output inverse = mr_invert_permutation(call->graph, gradient_input(call, 1));
    call->grad_inputs[0] = mr_conjugate_transpose(call->graph, call->grad_outputs[0], inverse);
}

/* Each dimension of the gradient is split into (multiple, size), and summed over the multiples. */
static void tile_gradient(mr_gradient_call *call)
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

static void reverse_v2_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_reverse_v2(call->graph, call->grad_outputs[0], gradient_input(call, 1));
}

static void broadcast_to_gradient(mr_gradient_call *call)
{
    mr_output grad = call->grad_outputs[0], output = gradient_output(call, 0);
    call->grad_inputs[0] = mr_gradient_unbroadcast(call, grad, gradient_input(call, 0), output);
}

static const mr_gradient gradients[] = {
    {"Tile", tile_gradient},
    {"Transpose", transpose_gradient},
    {"ConjugateTranspose", conjugate_transpose_gradient},
    {"ReverseV2", reverse_v2_gradient},
    {"BroadcastTo", broadcast_to_gradient},
};

const mr_gradient_table mr_gradients_transpose = {gradients, sizeof gradients / sizeof gradients[0]};
