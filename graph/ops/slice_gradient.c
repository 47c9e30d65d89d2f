/* Gradients of slicing, which pad with zeros, and of padding, which slice. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static mr_output shape_like(mr_gradient_call *call, mr_output value, mr_output like)
{
    if (mr_output_dtype(like) == MR_INT32) return mr_gradient_shape(call, value);
    return mr_shape_of(call->graph, value, .out_type = mr_output_dtype(like));
}

void mr_slice_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output input = gradient_input(call, 0), begin = gradient_input(call, 1);
    mr_output whole = shape_like(call, input, begin), taken = shape_like(call, gradient_output(call, 0), begin);
    mr_output after = mr_sub(g, mr_sub(g, whole, taken), begin);
    mr_output paddings = mr_pack(g, MR_OUTPUTS(begin, after), .axis = 1);
    call->grad_inputs[0] = mr_pad(g, call->grad_outputs[0], paddings);
}

void mr_strided_slice_gradient(mr_gradient_call *call)
{
    mr_output begin = gradient_input(call, 1);
    mr_output shape = shape_like(call, gradient_input(call, 0), begin);
    mr_outputs inputs =
        MR_OUTPUTS(shape, begin, gradient_input(call, 2), gradient_input(call, 3), call->grad_outputs[0]);
    call->grad_inputs[0] = mr_gradient_node(call, "StridedSliceGrad", inputs);
}

void mr_strided_slice_grad_gradient(mr_gradient_call *call)
{
    mr_outputs inputs =
        MR_OUTPUTS(call->grad_outputs[0], gradient_input(call, 1), gradient_input(call, 2), gradient_input(call, 3));
    call->grad_inputs[4] = mr_gradient_node(call, "StridedSlice", inputs);
}

/* Pad and PadV2. As in TensorFlow, PadV2's constant_values has no gradient. */
void mr_pad_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output input = gradient_input(call, 0), paddings = gradient_input(call, 1);
    mr_output_range sides = mr_unpack(g, paddings, .num = 2, .axis = 1);
    mr_output shape = shape_like(call, input, paddings);
    call->grad_inputs[0] = mr_slice(g, call->grad_outputs[0], mr_output_at(sides, 0), shape);
}
