/* Gradients of resizing and cropping images, and of gamma samples. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define IN(i) gradient_input(call, i)
#define G call->grad_outputs[0]
#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))

static void resize_bilinear_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("ResizeBilinearGrad", G, IN(0));
}

static void resize_bicubic_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("ResizeBicubicGrad", G, IN(0));
}

static void resize_nearest_neighbor_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_shape images = mr_output_shape(IN(0));
    bool is_known = images.rank == 4 && images.dims[1] >= 0 && images.dims[1] <= INT32_MAX && images.dims[2] >= 0 &&
                    images.dims[2] <= INT32_MAX;
    mr_output size = is_known ? mr_constant_ints(g, MR_INTS((int32_t)images.dims[1], (int32_t)images.dims[2]))
                              : mr_slice(g, mr_gradient_shape(call, IN(0)), mr_constant_ints(g, MR_INTS(1)),
                                         mr_constant_ints(g, MR_INTS(2)));
    call->grad_inputs[0] = NODE("ResizeNearestNeighborGrad", G, size);
}

/* With respect to the boxes it is always the gradient of bilinear interpolation, as in TensorFlow. */
static void crop_and_resize_gradient(mr_gradient_call *call)
{
    mr_dtype dtype = mr_output_dtype(IN(0));
    bool is_nearest = mr_string_equal(mr_attr_string_or(&call->node->attrs, "method", ""), MR_STR("nearest"));
    if (dtype == MR_FLOAT || dtype == MR_HALF || dtype == MR_DOUBLE)
        call->grad_inputs[0] =
            mr_crop_and_resize_grad_image(call->graph, G, IN(1), IN(2), mr_gradient_shape(call, IN(0)), dtype,
                                          .method = is_nearest ? MR_NEAREST : MR_BILINEAR);
    call->grad_inputs[1] = mr_crop_and_resize_grad_boxes(call->graph, G, IN(0), IN(1), IN(2));
}

/* The shape of alpha is the end of that of the samples, so alpha is broadcast along the other dimensions. */
static void random_gamma_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output samples = gradient_output(call, 0);
    mr_output product = mr_mul(g, G, mr_random_gamma_grad(g, IN(1), samples));
    call->grad_inputs[1] = mr_gradient_unbroadcast(call, product, IN(1), samples);
}

static const mr_gradient gradients[] = {
    {"ResizeBilinear", resize_bilinear_gradient},
    {"ResizeBicubic", resize_bicubic_gradient},
    {"ResizeNearestNeighbor", resize_nearest_neighbor_gradient},
    {"CropAndResize", crop_and_resize_gradient},
    {"RandomGamma", random_gamma_gradient},
};

const mr_gradient_table mr_gradients_image = {gradients, sizeof gradients / sizeof gradients[0]};
