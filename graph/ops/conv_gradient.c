/* Gradients of convolutions: separate operators with the attrs of the forward operator. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"

#define IN(i) gradient_input(call, i)
#define G call->grad_outputs[0]
#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))
#define SIZES(value) mr_gradient_shape(call, value)

static void conv2d_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("Conv2DBackpropInput", SIZES(IN(0)), IN(1), G);
    call->grad_inputs[1] = NODE("Conv2DBackpropFilter", IN(0), SIZES(IN(1)), G);
}

static void conv2d_backprop_input_gradient(mr_gradient_call *call)
{
    call->grad_inputs[1] = NODE("Conv2DBackpropFilter", G, SIZES(IN(1)), IN(2));
    call->grad_inputs[2] = NODE("Conv2D", G, IN(1));
}

static void conv2d_backprop_filter_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("Conv2DBackpropInput", SIZES(IN(0)), G, IN(2));
    call->grad_inputs[2] = NODE("Conv2D", IN(0), G);
}

static void depthwise_conv2d_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("DepthwiseConv2dNativeBackpropInput", SIZES(IN(0)), IN(1), G);
    call->grad_inputs[1] = NODE("DepthwiseConv2dNativeBackpropFilter", IN(0), SIZES(IN(1)), G);
}

static void conv3d_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("Conv3DBackpropInputV2", SIZES(IN(0)), IN(1), G);
    call->grad_inputs[1] = NODE("Conv3DBackpropFilterV2", IN(0), SIZES(IN(1)), G);
}

static void conv3d_backprop_input_gradient(mr_gradient_call *call)
{
    call->grad_inputs[1] = NODE("Conv3DBackpropFilterV2", G, SIZES(IN(1)), IN(2));
    call->grad_inputs[2] = NODE("Conv3D", G, IN(1));
}

static const mr_gradient gradients[] = {
    {"Conv2D", conv2d_gradient},
    {"Conv2DBackpropInput", conv2d_backprop_input_gradient},
    {"Conv2DBackpropFilter", conv2d_backprop_filter_gradient},
    {"Conv3D", conv3d_gradient},
    {"Conv3DBackpropInputV2", conv3d_backprop_input_gradient},
    {"DepthwiseConv2dNative", depthwise_conv2d_gradient},
};

const mr_gradient_table mr_gradients_conv = {gradients, sizeof gradients / sizeof gradients[0]};
