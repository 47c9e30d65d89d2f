/* Gradients of slicing, which pad with zeros. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static void slice_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output input = gradient_input(call, 0), begin = gradient_input(call, 1);
    mr_output whole = mr_gradient_shape_like(call, input, begin),
              taken = mr_gradient_shape_like(call, gradient_output(call, 0), begin);
    mr_output after = mr_sub(g, mr_sub(g, whole, taken), begin);
    mr_output paddings = mr_pack(g, MR_OUTPUTS(begin, after), .axis = 1);
    call->grad_inputs[0] = mr_pad(g, call->grad_outputs[0], paddings);
}

static void strided_slice_gradient(mr_gradient_call *call)
{
    mr_output begin = gradient_input(call, 1);
    mr_output shape = mr_gradient_shape_like(call, gradient_input(call, 0), begin);
    mr_outputs inputs =
        MR_OUTPUTS(shape, begin, gradient_input(call, 2), gradient_input(call, 3), call->grad_outputs[0]);
    call->grad_inputs[0] = mr_gradient_node(call, "StridedSliceGrad", inputs);
}

static void strided_slice_grad_gradient(mr_gradient_call *call)
{
    mr_outputs inputs =
        MR_OUTPUTS(call->grad_outputs[0], gradient_input(call, 1), gradient_input(call, 2), gradient_input(call, 3));
    call->grad_inputs[4] = mr_gradient_node(call, "StridedSlice", inputs);
}

static const mr_gradient gradients[] = {
    {"Slice", slice_gradient},
    {"StridedSlice", strided_slice_gradient},
    {"StridedSliceGrad", strided_slice_grad_gradient},
};

const mr_gradient_table mr_gradients_slice = {gradients, sizeof gradients / sizeof gradients[0]};
