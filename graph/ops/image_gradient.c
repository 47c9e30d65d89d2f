/* Gradients of resizing. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"

#define IN(i) gradient_input(call, i)
#define G call->grad_outputs[0]
#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))

static void resize_bilinear_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("ResizeBilinearGrad", G, IN(0));
}

static const mr_gradient gradients[] = {
    {"ResizeBilinear", resize_bilinear_gradient},
};

const mr_gradient_table mr_gradients_image = {gradients, sizeof gradients / sizeof gradients[0]};
