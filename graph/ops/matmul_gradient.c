/* Gradients of matrix products: products of the gradient and the other operand, transposed as required. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static void mat_mul_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output a = gradient_input(call, 0), b = gradient_input(call, 1), g = call->grad_outputs[0];
    bool ta = mr_attr_bool_or(&call->node->attrs, "transpose_a", false);
    bool tb = mr_attr_bool_or(&call->node->attrs, "transpose_b", false);
    call->grad_inputs[0] =
        ta ? mr_mat_mul(gr, b, g, .transpose_a = tb, .transpose_b = true) : mr_mat_mul(gr, g, b, .transpose_b = !tb);
    call->grad_inputs[1] =
        tb ? mr_mat_mul(gr, g, a, .transpose_a = true, .transpose_b = ta) : mr_mat_mul(gr, a, g, .transpose_a = !ta);
}

/* The last two dimensions are excluded by using shapes without them. */
mr_output mr_gradient_unbroadcast_matrices(mr_gradient_call *call, mr_output grad, mr_output target, mr_output other)
{
    mr_graph *g = call->graph;
    mr_shape shape = mr_output_shape(target), other_shape = mr_output_shape(other);
    bool same = shape.rank >= 0 && shape.rank == other_shape.rank;
    for (int32_t i = 0; same && i < shape.rank - 2; i++)
        same = shape.dims[i] >= 0 && shape.dims[i] == other_shape.dims[i];
    if (same) return grad;
    mr_output begin = mr_constant_ints(g, MR_INTS(0)), two = mr_constant_ints(g, MR_INTS(2));
    mr_output target_sizes = mr_shape_of(g, target), other_sizes = mr_shape_of(g, other);
    mr_output target_batch = mr_slice(g, target_sizes, begin, mr_sub(g, mr_shape_of(g, target_sizes), two));
    mr_output other_batch = mr_slice(g, other_sizes, begin, mr_sub(g, mr_shape_of(g, other_sizes), two));
    mr_broadcast_gradient_args_outputs args = mr_broadcast_gradient_args(g, target_batch, other_batch);
    return mr_reshape(g, mr_sum(g, grad, args.r0), target_sizes);
}

static void batch_mat_mul_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output x = gradient_input(call, 0), y = gradient_input(call, 1), g = call->grad_outputs[0];
    bool ax = mr_attr_bool_or(&call->node->attrs, "adj_x", false);
    bool ay = mr_attr_bool_or(&call->node->attrs, "adj_y", false);
    mr_output grad_x =
        ax ? mr_batch_mat_mul_v2(gr, y, g, .adj_x = ay, .adj_y = true) : mr_batch_mat_mul_v2(gr, g, y, .adj_y = !ay);
    mr_output grad_y =
        ay ? mr_batch_mat_mul_v2(gr, g, x, .adj_x = true, .adj_y = ax) : mr_batch_mat_mul_v2(gr, x, g, .adj_x = !ax);
    call->grad_inputs[0] = mr_gradient_unbroadcast_matrices(call, grad_x, x, y);
    call->grad_inputs[1] = mr_gradient_unbroadcast_matrices(call, grad_y, y, x);
}

static const mr_gradient gradients[] = {
    {"MatMul", mat_mul_gradient},
    {"BatchMatMul", batch_mat_mul_gradient},
    {"BatchMatMulV2", batch_mat_mul_gradient},
};

const mr_gradient_table mr_gradients_matmul = {gradients, sizeof gradients / sizeof gradients[0]};
