/* Gradients of padding, which slice. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

/* Pad and PadV2. As in TensorFlow, PadV2's constant_values has no gradient. */
static void pad_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output input = gradient_input(call, 0), paddings = gradient_input(call, 1);
    mr_output_range sides = mr_unpack(g, paddings, .num = 2, .axis = 1);
    mr_output shape = mr_gradient_shape_like(call, input, paddings);
    call->grad_inputs[0] = mr_slice(g, call->grad_outputs[0], mr_output_at(sides, 0), shape);
}

static const mr_gradient gradients[] = {
    {"Pad", pad_gradient},
    {"PadV2", pad_gradient},
};

const mr_gradient_table mr_gradients_pad = {gradients, sizeof gradients / sizeof gradients[0]};
