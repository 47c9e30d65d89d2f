/* Gradients of linear algebra. Those of solvers and inverses are solutions of the adjoint systems. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define IN(i) gradient_input(call, i)
#define OUT(i) gradient_output(call, i)
#define G call->grad_outputs[0]

static mr_output negative(mr_gradient_call *call, mr_output x)
{
    return mr_neg(call->graph, x);
}

/* Scalars as matrices with one element. */
static mr_output as_matrices(mr_gradient_call *call, mr_output x)
{
    mr_graph *g = call->graph;
    mr_output last = mr_constant_int32(g, -1);
    return mr_expand_dims(g, mr_expand_dims(g, x, last), last);
}

static mr_output lower_part(mr_gradient_call *call, mr_output x)
{
    mr_graph *g = call->graph;
    return mr_matrix_band_part(g, x, mr_constant_int32(g, -1), mr_constant_int32(g, 0));
}

static mr_output halved_diagonal(mr_gradient_call *call, mr_output x)
{
    mr_graph *g = call->graph;
    return mr_matrix_set_diag(g, x, mr_mul(g, mr_matrix_diag_part(g, x), mr_gradient_scalar(call, x, 0.5)));
}

static void matrix_inverse_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    bool adjoint = mr_attr_bool_or(&call->node->attrs, "adjoint", false);
    mr_output right = mr_batch_mat_mul_v2(g, G, OUT(0), .adj_x = adjoint, .adj_y = !adjoint);
    call->grad_inputs[0] = negative(call, mr_batch_mat_mul_v2(g, OUT(0), right, .adj_x = !adjoint));
}

static void matrix_determinant_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output factor = as_matrices(call, mr_mul(g, G, mr_gradient_conj(call, OUT(0))));
    call->grad_inputs[0] = mr_mul(g, factor, mr_matrix_inverse(g, IN(0), .adjoint = true));
}

static void log_matrix_determinant_gradient(mr_gradient_call *call)
{
    if (!gradient_is_given(call, 1)) return;
    call->grad_inputs[0] = mr_mul(call->graph, as_matrices(call, call->grad_outputs[1]),
                                  mr_matrix_inverse(call->graph, IN(0), .adjoint = true));
}

/* s = adjoint(inverse(l)) · p · inverse(l), where p is the lower triangle of adjoint(l) · grad with half of its
 * diagonal; the gradient is (s + adjoint(s)) / 2. */
static void cholesky_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output l = OUT(0), identity = mr_matrix_diag(g, mr_ones_like(g, mr_matrix_diag_part(g, l)));
    mr_output inverse = mr_matrix_triangular_solve(g, l, identity);
    mr_output p = lower_part(call, halved_diagonal(call, mr_batch_mat_mul_v2(g, l, G, .adj_x = true)));
    mr_output both = mr_add_v2(g, mr_batch_mat_mul_v2(g, inverse, p, .adj_x = true),
                               mr_batch_mat_mul_v2(g, inverse, p, .adj_x = true, .adj_y = true));
    mr_output sum = mr_batch_mat_mul_v2(g, both, inverse);
    call->grad_inputs[0] = mr_mul(g, sum, mr_gradient_scalar(call, sum, 0.5));
}

/* The gradient of the matrix from that of the right side. */
static mr_output matrix_part(mr_gradient_call *call, mr_output right, bool adjoint)
{
    mr_graph *g = call->graph;
    return negative(call, adjoint ? mr_batch_mat_mul_v2(g, OUT(0), right, .adj_y = true)
                                  : mr_batch_mat_mul_v2(g, right, OUT(0), .adj_y = true));
}

static void matrix_solve_gradient(mr_gradient_call *call)
{
    bool adjoint = mr_attr_bool_or(&call->node->attrs, "adjoint", false);
    mr_output right = mr_matrix_solve(call->graph, IN(0), G, .adjoint = !adjoint);
    call->grad_inputs[0] = matrix_part(call, right, adjoint);
    call->grad_inputs[1] = right;
}

static void matrix_triangular_solve_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    bool adjoint = mr_attr_bool_or(&call->node->attrs, "adjoint", false);
    bool lower = mr_attr_bool_or(&call->node->attrs, "lower", true);
    mr_output right = mr_matrix_triangular_solve(g, IN(0), G, .lower = lower, .adjoint = !adjoint);
    mr_output all = mr_constant_int32(g, -1), none = mr_constant_int32(g, 0);
    mr_output matrix =
        mr_matrix_band_part(g, matrix_part(call, right, adjoint), lower ? all : none, lower ? none : all);
    call->grad_inputs[0] = mr_gradient_unbroadcast_matrices(call, matrix, IN(0), IN(1));
    call->grad_inputs[1] = mr_gradient_unbroadcast_matrices(call, right, IN(1), IN(0));
}

/* v · x · adjoint(v), plus its adjoint */
static mr_output symmetric_product(mr_gradient_call *call, mr_output v, mr_output x)
{
    mr_graph *g = call->graph;
    mr_output both = mr_add_v2(g, mr_batch_mat_mul_v2(g, v, x), mr_batch_mat_mul_v2(g, v, x, .adj_y = true));
    return mr_batch_mat_mul_v2(g, both, v, .adj_y = true);
}

/* Only the lower triangle is read, so it has the complete gradient. The gradient of vectors is divided by differences
 * of values; equal ones contribute nothing. */
static void self_adjoint_eig_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output x = mr_matrix_diag(g, mr_gradient_or_zeros(call, 0)), v;
    if (mr_attr_bool_or(&call->node->attrs, "compute_v", true)) {
        v = OUT(1);
        mr_output e = OUT(0), difference = mr_sub(g, mr_expand_dims(g, e, mr_constant_int32(g, -2)),
                                                  mr_expand_dims(g, e, mr_constant_int32(g, -1)));
        mr_output square = mr_add_v2(g, mr_square(g, difference), mr_gradient_scalar(call, e, 1e-20));
        mr_output f = mr_matrix_set_diag(g, mr_div(g, difference, square), mr_zeros_like(g, e));
        mr_output product = mr_batch_mat_mul_v2(g, v, mr_gradient_or_zeros(call, 1), .adj_x = true);
        x = mr_add_v2(g, x, mr_mul(g, f, product));
    } else {
        v = mr_self_adjoint_eig_v2(g, IN(0)).v;
    }
    call->grad_inputs[0] = halved_diagonal(call, lower_part(call, symmetric_product(call, v, x)));
}

static const mr_gradient gradients[] = {
    {"MatrixInverse", matrix_inverse_gradient},
    {"MatrixDeterminant", matrix_determinant_gradient},
    {"LogMatrixDeterminant", log_matrix_determinant_gradient},
    {"Cholesky", cholesky_gradient},
    {"MatrixSolve", matrix_solve_gradient},
    {"MatrixTriangularSolve", matrix_triangular_solve_gradient},
    {"SelfAdjointEigV2", self_adjoint_eig_gradient},
};

const mr_gradient_table mr_gradients_linalg = {gradients, sizeof gradients / sizeof gradients[0]};
