/* Gradients of the operators of sparse tensors, with respect to values and dense operands. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

/* The values are permuted: the gradient is permuted back. */
static void reorder_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    if (!gradient_is_given(call, 1)) return;
    mr_output values = gradient_input(call, 1), zero = mr_constant_int32(g, 0), one = mr_constant_int32(g, 1);
    mr_output positions = mr_range(g, zero, mr_size(g, values), one);
    mr_output permutation =
        mr_sparse_reorder(g, gradient_input(call, 0), positions, gradient_input(call, 2)).output_values;
    call->grad_inputs[1] = mr_gather_v2(g, call->grad_outputs[1], mr_invert_permutation(g, permutation), zero);
}

static void add_gradient(mr_gradient_call *call)
{
    if (!gradient_is_given(call, 1)) return;
    mr_sparse_add_grad_outputs outputs = mr_sparse_add_grad(call->graph, call->grad_outputs[1], gradient_input(call, 0),
                                                            gradient_input(call, 3), gradient_output(call, 0));
    call->grad_inputs[1] = outputs.a_val_grad;
    call->grad_inputs[4] = outputs.b_val_grad;
}

/* Column `column` of a matrix of indices. */
static mr_output column(mr_gradient_call *call, mr_output indices, int32_t at)
{
    mr_graph *g = call->graph;
    mr_output part = mr_slice(g, indices, mr_constant_ints(g, MR_INTS(0, at)), mr_constant_ints(g, MR_INTS(-1, 1)));
    return mr_reshape(g, part, mr_constant_ints(g, MR_INTS(-1)));
}

static mr_output transposed(mr_gradient_call *call, mr_output matrix)
{
    return mr_transpose(call->graph, matrix, mr_constant_ints(call->graph, MR_INTS(1, 0)));
}

/* A value multiplies a row of b into a row of the product: its gradient is their scalar product. */
static void matmul_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output indices = gradient_input(call, 0), values = gradient_input(call, 1), b = gradient_input(call, 3);
    mr_output grad = call->grad_outputs[0], zero = mr_constant_int32(g, 0), one = mr_constant_int32(g, 1);
    bool adjoint_a = mr_attr_bool_or(&call->node->attrs, "adjoint_a", false);
    bool adjoint_b = mr_attr_bool_or(&call->node->attrs, "adjoint_b", false);
    mr_dtype dtype = mr_output_dtype(b);
    if (dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128) {
        mr_gradient_fail(call, "the gradient of complex matrices is not implemented");
        return;
    }
    mr_output b_grad =
        mr_sparse_tensor_dense_mat_mul(g, indices, values, gradient_input(call, 2), grad, .adjoint_a = !adjoint_a);
    mr_output rows = column(call, indices, adjoint_a ? 1 : 0), columns = column(call, indices, adjoint_a ? 0 : 1);
    mr_output left = mr_gather_v2(g, grad, rows, zero);
    mr_output right = mr_gather_v2(g, adjoint_b ? transposed(call, b) : b, columns, zero);
    call->grad_inputs[1] = mr_sum(g, mr_mul(g, left, right), one);
    call->grad_inputs[3] = adjoint_b ? transposed(call, b_grad) : b_grad;
}

static void to_dense_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output grad = call->grad_outputs[0], indices = gradient_input(call, 0);
    mr_shape shape = mr_output_shape(indices), values = mr_output_shape(gradient_input(call, 2));
    if (shape.rank != 2 || values.rank != 1) {
        mr_gradient_fail(call, "the gradient needs a matrix of indices and a vector of values");
        return;
    }
    mr_output selected = mr_gather_nd(g, grad, indices), zero = mr_constant_ints(g, MR_INTS(0));
    mr_output all = mr_sum(g, mr_reshape(g, grad, mr_constant_ints(g, MR_INTS(-1))), zero);
    call->grad_inputs[2] = selected;
    call->grad_inputs[3] = mr_sub(g, all, mr_sum(g, selected, zero));
}

static void fill_empty_rows_gradient(mr_gradient_call *call)
{
    if (!gradient_is_given(call, 1)) return;
    mr_sparse_fill_empty_rows_grad_outputs outputs =
        mr_sparse_fill_empty_rows_grad(call->graph, gradient_output(call, 3), call->grad_outputs[1]);
    call->grad_inputs[1] = outputs.d_values;
    call->grad_inputs[3] = outputs.d_default_value;
}

static void slice_gradient(mr_gradient_call *call)
{
    if (!gradient_is_given(call, 1)) return;
    call->grad_inputs[1] = mr_sparse_slice_grad(call->graph, call->grad_outputs[1], gradient_input(call, 0),
                                                gradient_input(call, 3), gradient_output(call, 0));
}

static void dense_add_gradient(mr_gradient_call *call)
{
    call->grad_inputs[1] = mr_gather_nd(call->graph, call->grad_outputs[0], gradient_input(call, 0));
    call->grad_inputs[3] = call->grad_outputs[0];
}

static const mr_gradient gradients[] = {
    {"SparseReorder", reorder_gradient},
    {"SparseAdd", add_gradient},
    {"SparseTensorDenseMatMul", matmul_gradient},
    {"SparseToDense", to_dense_gradient},
    {"SparseFillEmptyRows", fill_empty_rows_gradient},
    {"SparseSlice", slice_gradient},
    {"SparseTensorDenseAdd", dense_add_gradient},
};

const mr_gradient_table mr_gradients_sparse = {gradients, sizeof gradients / sizeof gradients[0]};
