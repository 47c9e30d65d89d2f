/* Gradients of operators that change only the shape. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

/* Reshape, ExpandDims and Squeeze. */
static void reshape_gradient(mr_gradient_call *call)
{
    mr_output shape = mr_gradient_shape(call, gradient_input(call, 0));
    call->grad_inputs[0] = mr_reshape(call->graph, call->grad_outputs[0], shape);
}

static const mr_gradient gradients[] = {
    {"Reshape", reshape_gradient},
    {"ExpandDims", reshape_gradient},
    {"Squeeze", reshape_gradient},
};

const mr_gradient_table mr_gradients_reshape = {gradients, sizeof gradients / sizeof gradients[0]};
