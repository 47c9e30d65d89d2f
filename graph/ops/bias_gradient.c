/* Gradients of biases. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define IN(i) gradient_input(call, i)
#define G call->grad_outputs[0]
#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))
#define SIZES(value) mr_gradient_shape(call, value)

static void bias_add_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = G;
    call->grad_inputs[1] = NODE("BiasAddGrad", G);
}

/* Broadcasts one value for each channel to all elements of the channel. */
static void bias_add_grad_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output grad = G;
    mr_string format = mr_attr_string_or(&call->node->attrs, "data_format", "NHWC");
    if (mr_string_equal(format, MR_STR("NCHW"))) {
        int32_t rank = mr_output_shape(IN(0)).rank;
        if (rank < 2) {
            mr_gradient_fail(call, "the rank must be known while the graph is built");
            return;
        }
        for (int32_t i = 2; i < rank; i++) grad = mr_expand_dims(g, grad, mr_constant_int32(g, -1));
    }
    call->grad_inputs[0] = mr_broadcast_to(g, grad, SIZES(IN(0)));
}

static const mr_gradient gradients[] = {
    {"BiasAdd", bias_add_gradient},
    {"BiasAddGrad", bias_add_grad_gradient},
};

const mr_gradient_table mr_gradients_bias = {gradients, sizeof gradients / sizeof gradients[0]};
