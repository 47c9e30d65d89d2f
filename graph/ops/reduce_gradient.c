/* Gradients of reductions. The output is broadcast to the input after the reduced dimensions are restored with size
 * 1. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

/* The input's shape with 1 at the reduced dimensions, computed in each step, for axes that are not constant. */
static mr_output kept_shape(mr_gradient_call *call, mr_output input, mr_output axes)
{
    mr_graph *g = call->graph;
    mr_output shape = mr_shape_of(g, input), rank = mr_rank(g, input);
    mr_output one = mr_constant_int32(g, 1), zero = mr_constant_int32(g, 0);
    mr_output list = mr_reshape(g, mr_cast(g, axes, MR_INT32), mr_constant_ints(g, MR_INTS(-1)));
    list = mr_floor_mod(g, mr_add_v2(g, list, rank), mr_maximum(g, rank, one)); /* a scalar has no dimensions */
    mr_output marks = mr_max(g, mr_one_hot(g, list, rank, one, zero), mr_constant_ints(g, MR_INTS(0)));
    return mr_select(g, mr_greater(g, marks, zero), mr_ones_like(g, shape), shape);
}

/* value, which has the output's shape, reshaped to keep the reduced dimensions with size 1. */
static mr_output with_kept_dimensions(mr_gradient_call *call, mr_output value)
{
    mr_graph *g = call->graph;
    if (mr_attr_bool_or(&call->node->attrs, "keep_dims", false)) return value;
    mr_output input = gradient_input(call, 0), axes = gradient_input(call, 1);
    mr_shape shape = mr_output_shape(input);
    int32_t reduced[MR_RANK_MAX], count;
    if (!mr_gradient_axes(axes, shape.rank, reduced, &count))
        return mr_reshape(g, value, kept_shape(call, input, axes));
    bool known = true;
    int32_t sizes[MR_RANK_MAX];
    for (int32_t i = 0, next = 0; i < shape.rank; i++) {
        bool is_reduced = next < count && reduced[next] == i;
        next += is_reduced;
        sizes[i] = is_reduced ? 1 : (int32_t)shape.dims[i];
        known &= is_reduced || (shape.dims[i] >= 0 && shape.dims[i] <= INT32_MAX);
    }
    if (known) return mr_reshape(g, value, mr_gradient_ints(call, sizes, shape.rank));
    for (int32_t i = 0; i < count; i++) value = mr_expand_dims(g, value, mr_constant_int32(g, reduced[i]));
    return value;
}

static mr_output spread(mr_gradient_call *call, mr_output kept)
{
    return mr_broadcast_to(call->graph, kept, mr_gradient_shape(call, gradient_input(call, 0)));
}

static void sum_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = spread(call, with_kept_dimensions(call, call->grad_outputs[0]));
}

/* Number of elements in each mean: a constant if the sizes are known. */
static mr_output mean_count(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output input = gradient_input(call, 0), output = gradient_output(call, 0);
    mr_shape shape = mr_output_shape(input);
    int32_t reduced[MR_RANK_MAX], count;
    int64_t product = 1;
    bool known = mr_gradient_axes(gradient_input(call, 1), shape.rank, reduced, &count);
    for (int32_t i = 0; known && i < count; i++)
        known = shape.dims[reduced[i]] >= 0 && !__builtin_mul_overflow(product, shape.dims[reduced[i]], &product);
    if (known) return mr_gradient_scalar(call, input, (double)(product > 0 ? product : 1));
    mr_output outputs = mr_maximum(g, mr_size(g, output), mr_constant_int32(g, 1));
    return mr_cast(g, mr_floor_div(g, mr_size(g, input), outputs), mr_output_dtype(input));
}

/* Divides before broadcasting: fewer divisions, the same quotients. */
static void mean_gradient(mr_gradient_call *call)
{
    mr_output share = mr_real_div(call->graph, call->grad_outputs[0], mean_count(call));
    call->grad_inputs[0] = spread(call, with_kept_dimensions(call, share));
}

/* The product of the other factors: product / x if no factor is zero; with one zero, the product of the others at its
 * position and zero elsewhere; with more, zero everywhere. */
static void prod_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output x = gradient_input(call, 0), axes = gradient_input(call, 1);
    mr_output zero = mr_gradient_scalar(call, x, 0), zeros = mr_zeros_like(g, x), one = mr_gradient_scalar(call, x, 1);
    mr_output is_zero = mr_equal(g, x, zero);
    mr_output factors = mr_select(g, is_zero, mr_ones_like(g, x), x);
    mr_output rest = mr_prod(g, factors, axes, .keep_dims = true);
    mr_output zero_count = mr_sum(g, mr_cast(g, is_zero, mr_output_dtype(x)), axes, .keep_dims = true);
    mr_output none = mr_zeros_like(g, rest);
    mr_output at_zero = mr_select(g, mr_equal(g, zero_count, one), rest, none);
    mr_output elsewhere = mr_select(g, mr_equal(g, zero_count, zero), rest, none);
    mr_output spread_zero = mr_add_v2(g, zeros, at_zero), spread_rest = mr_real_div(g, elsewhere, factors);
    mr_output slope = mr_select(g, is_zero, spread_zero, spread_rest);
    call->grad_inputs[0] = mr_mul(g, with_kept_dimensions(call, call->grad_outputs[0]), slope);
}

/* Max and Min: divided equally among the elements that are equal to the result. */
static void extremum_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output x = gradient_input(call, 0);
    mr_output kept = with_kept_dimensions(call, gradient_output(call, 0));
    mr_output marks = mr_cast(g, mr_equal(g, x, kept), mr_output_dtype(x));
    mr_output count = mr_sum(g, marks, gradient_input(call, 1), .keep_dims = true);
    mr_output grad = with_kept_dimensions(call, call->grad_outputs[0]);
    call->grad_inputs[0] = mr_mul(g, mr_real_div(g, marks, count), grad);
}

static void euclidean_norm_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output over = mr_real_div(g, call->grad_outputs[0], gradient_output(call, 0));
    call->grad_inputs[0] = mr_mul(g, gradient_input(call, 0), with_kept_dimensions(call, over));
}

static const mr_gradient gradients[] = {
    {"Sum", sum_gradient},      {"Mean", mean_gradient},    {"Prod", prod_gradient},
    {"Max", extremum_gradient}, {"Min", extremum_gradient}, {"EuclideanNorm", euclidean_norm_gradient},
};

const mr_gradient_table mr_gradients_reduce = {gradients, sizeof gradients / sizeof gradients[0]};
