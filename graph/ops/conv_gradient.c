/* Gradients of convolutions, biases, pooling, local response normalization and resizing: separate operators with the
 * attrs of the forward operator. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define IN(i) gradient_input(call, i)
#define OUT(i) gradient_output(call, i)
#define G call->grad_outputs[0]
#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))
#define SIZES(value) mr_gradient_shape(call, value)

void mr_conv2d_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("Conv2DBackpropInput", SIZES(IN(0)), IN(1), G);
    call->grad_inputs[1] = NODE("Conv2DBackpropFilter", IN(0), SIZES(IN(1)), G);
}

void mr_conv2d_backprop_input_gradient(mr_gradient_call *call)
{
    call->grad_inputs[1] = NODE("Conv2DBackpropFilter", G, SIZES(IN(1)), IN(2));
    call->grad_inputs[2] = NODE("Conv2D", G, IN(1));
}

void mr_conv2d_backprop_filter_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("Conv2DBackpropInput", SIZES(IN(0)), G, IN(2));
    call->grad_inputs[2] = NODE("Conv2D", IN(0), G);
}

void mr_depthwise_conv2d_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("DepthwiseConv2dNativeBackpropInput", SIZES(IN(0)), IN(1), G);
    call->grad_inputs[1] = NODE("DepthwiseConv2dNativeBackpropFilter", IN(0), SIZES(IN(1)), G);
}

void mr_bias_add_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = G;
    call->grad_inputs[1] = NODE("BiasAddGrad", G);
}

/* Broadcasts one value for each channel to all elements of the channel. */
void mr_bias_add_grad_gradient(mr_gradient_call *call)
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

void mr_max_pool_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("MaxPoolGrad", IN(0), OUT(0), G);
}

void mr_avg_pool_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("AvgPoolGrad", SIZES(IN(0)), G);
}

void mr_avg_pool_grad_gradient(mr_gradient_call *call)
{
    call->grad_inputs[1] = NODE("AvgPool", G);
}

void mr_lrn_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("LRNGrad", G, IN(0), OUT(0));
}

void mr_resize_bilinear_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("ResizeBilinearGrad", G, IN(0));
}
