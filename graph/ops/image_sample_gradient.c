/* Gradients of sampling images. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define IN(i) gradient_input(call, i)
#define G call->grad_outputs[0]

static void scale_and_translate_gradient(mr_gradient_call *call)
{
    mr_output images = IN(0);
    if (mr_output_dtype(images) != MR_FLOAT) {
        mr_gradient_fail(call, "the gradient needs float images");
        return;
    }
    call->grad_inputs[0] = mr_gradient_node(call, "ScaleAndTranslateGrad", MR_OUTPUTS(G, images, IN(2), IN(3)));
}

static void resampler_gradient(mr_gradient_call *call)
{
    mr_resampler_grad_outputs grads = mr_resampler_grad(call->graph, IN(0), IN(1), G);
    call->grad_inputs[0] = grads.grad_data;
    call->grad_inputs[1] = grads.grad_warp;
}

/* Rows of 8 elements as matrices [3, 3], whose last element is 1, inverted, and back. */
static mr_output inverse_transforms(mr_gradient_call *call, mr_output transforms)
{
    mr_graph *g = call->graph;
    mr_output axis = mr_constant_int32(g, 1);
    mr_output begin = mr_constant_ints(g, MR_INTS(0, 0)), last = mr_constant_ints(g, MR_INTS(0, 8));
    mr_output column = mr_constant_ints(g, MR_INTS(-1, 1)), rows = mr_constant_ints(g, MR_INTS(-1, 8));
    mr_output ones = mr_ones_like(g, mr_slice(g, transforms, begin, column));
    mr_output nine = mr_concat_v2(g, MR_OUTPUTS(transforms, ones), axis);
    mr_output matrices = mr_reshape(g, nine, mr_constant_ints(g, MR_INTS(-1, 3, 3)));
    mr_output flat = mr_reshape(g, mr_matrix_inverse(g, matrices), mr_constant_ints(g, MR_INTS(-1, 9)));
    return mr_div(g, mr_slice(g, flat, begin, rows), mr_slice(g, flat, last, column));
}

/* TensorFlow's approximation: the gradient is transformed back, with zeros around it. */
static void transform_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output size =
        mr_slice(g, mr_gradient_shape(call, IN(0)), mr_constant_ints(g, MR_INTS(1)), mr_constant_ints(g, MR_INTS(2)));
    call->grad_inputs[0] =
        mr_gradient_node(call, "ImageProjectiveTransformV2", MR_OUTPUTS(G, inverse_transforms(call, IN(1)), size));
}

static const mr_gradient gradients[] = {
    {"ScaleAndTranslate", scale_and_translate_gradient}, {"Resampler", resampler_gradient},
    {"ImageProjectiveTransform", transform_gradient},    {"ImageProjectiveTransformV2", transform_gradient},
    {"ImageProjectiveTransformV3", transform_gradient},
};

const mr_gradient_table mr_gradients_image_sample = {gradients, sizeof gradients / sizeof gradients[0]};
