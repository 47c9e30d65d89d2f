/* Helpers of gradient functions.
 *
 * FAMILY_gradient.c has a function for each differentiable operator of FAMILY.c, built with <millrace/ops.h>, and a
 * table of them at its end, which builtin/builtin.c lists. The formulas are those of TensorFlow's array_grad, math_grad
 * and nn_grad, with two differences: sparse gradients (IndexedSlices) are made dense at once, and if shapes are known
 * while the graph is built, the reductions of broadcast operands are determined then instead of by
 * BroadcastGradientArgs in every step. */
#ifndef MR_GRAPH_OPS_GRADIENTS_H
#define MR_GRAPH_OPS_GRADIENTS_H

#include "graph/ir/op.h"

static inline mr_output gradient_input(const mr_gradient_call *call, int32_t index)
{
    return mr_node_input(call->node, index);
}
static inline mr_output gradient_output(const mr_gradient_call *call, int32_t index)
{
    return (mr_output){call->node, index};
}
static inline bool gradient_is_given(const mr_gradient_call *call, int32_t index)
{
    return call->grad_outputs[index].node != nullptr;
}

/* grad_outputs[index], or zeros in the output's shape if nothing depends on it. */
mr_output mr_gradient_or_zeros(mr_gradient_call *call, int32_t index);
/* A scalar constant of like's dtype. */
mr_output mr_gradient_scalar(mr_gradient_call *call, mr_output like, double value);
/* The complex conjugate of a complex value; a real one is returned itself. Slopes are conjugated before they are
 * multiplied with a gradient, as in TensorFlow. */
mr_output mr_gradient_conj(mr_gradient_call *call, mr_output value);
/* The gradient of an operator that returns its input. */
void mr_gradient_forward(mr_gradient_call *call);
/* A constant vector of int32. */
mr_output mr_gradient_ints(mr_gradient_call *call, const int32_t *values, int32_t count);
/* The shape as a vector of int32, a constant if it is known. */
mr_output mr_gradient_shape(mr_gradient_call *call, mr_output value);
/* The same, with the dtype of `like`, int32 or int64. */
mr_output mr_gradient_shape_like(mr_gradient_call *call, mr_output value, mr_output like);
/* Reverses the broadcast of `target` in "target op other": sums grad, which has the shape of the result, over the
 * dimensions along which target was repeated. The result has target's shape. */
mr_output mr_gradient_unbroadcast(mr_gradient_call *call, mr_output grad, mr_output target, mr_output other);
/* The same for matrices in the last two dimensions, where only the dimensions before them are broadcast. */
mr_output mr_gradient_unbroadcast_matrices(mr_gradient_call *call, mr_output grad, mr_output target, mr_output other);
/* The dimensions in a constant vector or scalar of integers: non-negative, ascending, without duplicates. False if they
 * are not constant. */
bool mr_gradient_axes(mr_output axes, int32_t rank, int32_t *values, int32_t *count);
/* Adds a node of operator op. Attrs that the node of the call also has, and that inputs do not determine, are
 * copied. */
mr_output mr_gradient_node(mr_gradient_call *call, const char *op, mr_outputs inputs);
/* Records that the gradient cannot be built. The message names the node. */
[[gnu::format(printf, 2, 3)]] void mr_gradient_fail(mr_gradient_call *call, const char *format, ...);

#endif
