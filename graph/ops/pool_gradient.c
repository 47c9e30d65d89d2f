/* Gradients of pooling and of local response normalization. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"

#define IN(i) gradient_input(call, i)
#define OUT(i) gradient_output(call, i)
#define G call->grad_outputs[0]
#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))
#define SIZES(value) mr_gradient_shape(call, value)

static void max_pool_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("MaxPoolGrad", IN(0), OUT(0), G);
}

static void avg_pool_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("AvgPoolGrad", SIZES(IN(0)), G);
}

static void avg_pool_grad_gradient(mr_gradient_call *call)
{
    call->grad_inputs[1] = NODE("AvgPool", G);
}

static void lrn_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("LRNGrad", G, IN(0), OUT(0));
}

static void max_pool3d_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("MaxPool3DGrad", IN(0), OUT(0), G);
}

static void avg_pool3d_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("AvgPool3DGrad", SIZES(IN(0)), G);
}

static const mr_gradient gradients[] = {
    {"MaxPool", max_pool_gradient},     {"AvgPool", avg_pool_gradient},     {"AvgPoolGrad", avg_pool_grad_gradient},
    {"MaxPool3D", max_pool3d_gradient}, {"AvgPool3D", avg_pool3d_gradient}, {"LRN", lrn_gradient},
};

const mr_gradient_table mr_gradients_pool = {gradients, sizeof gradients / sizeof gradients[0]};
