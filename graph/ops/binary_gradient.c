/* Gradients of element-wise operators of two or more operands. The gradient of an operand that was broadcast is summed
 * over the dimensions along which it was repeated. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

typedef struct operands {
    mr_graph *graph;
    mr_output x, y, z, g;
} operands;

/* Complex operands and results are conjugated. */
static operands operands_of(mr_gradient_call *call)
{
    return (operands){call->graph, mr_gradient_conj(call, gradient_input(call, 0)),
                      mr_gradient_conj(call, gradient_input(call, 1)), mr_gradient_conj(call, gradient_output(call, 0)),
                      call->grad_outputs[0]};
}

static void set(mr_gradient_call *call, mr_output grad_x, mr_output grad_y)
{
    mr_output x = gradient_input(call, 0), y = gradient_input(call, 1);
    call->grad_inputs[0] = mr_gradient_unbroadcast(call, grad_x, x, y);
    call->grad_inputs[1] = mr_gradient_unbroadcast(call, grad_y, y, x);
}

static void add_gradient(mr_gradient_call *call)
{
    set(call, call->grad_outputs[0], call->grad_outputs[0]);
}

static void sub_gradient(mr_gradient_call *call)
{
    set(call, call->grad_outputs[0], mr_neg(call->graph, call->grad_outputs[0]));
}

static void mul_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    set(call, mr_mul(o.graph, o.g, o.y), mr_mul(o.graph, o.x, o.g));
}

static void div_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    mr_output slope = mr_real_div(o.graph, mr_real_div(o.graph, mr_neg(o.graph, o.x), o.y), o.y);
    set(call, mr_real_div(o.graph, o.g, o.y), mr_mul(o.graph, o.g, slope));
}

static void div_no_nan_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    mr_output slope = mr_div_no_nan(o.graph, mr_div_no_nan(o.graph, mr_neg(o.graph, o.x), o.y), o.y);
    set(call, mr_div_no_nan(o.graph, o.g, o.y), mr_mul(o.graph, o.g, slope));
}

static void floor_mod_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    mr_output quotient = mr_floor_div(o.graph, o.x, o.y);
    set(call, o.g, mr_mul(o.graph, o.g, mr_neg(o.graph, quotient)));
}

static void squared_difference_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    mr_output twice = mr_mul(o.graph, mr_gradient_scalar(call, o.g, 2), o.g);
    mr_output grad = mr_mul(o.graph, twice, mr_sub(o.graph, o.x, o.y));
    set(call, grad, mr_neg(o.graph, grad));
}

/* Where x is not positive, or a complex x is 0, the logarithm of 1 is computed instead and the result is 0. */
static void pow_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    mr_output one = mr_gradient_scalar(call, o.x, 1);
    mr_output lower = mr_pow(o.graph, o.x, mr_sub(o.graph, o.y, one));
    mr_output grad_x = mr_mul(o.graph, mr_mul(o.graph, o.g, o.y), lower);
    mr_dtype dtype = mr_output_dtype(o.x);
    mr_output zero = mr_gradient_scalar(call, o.x, 0);
    mr_output positive = dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128 ? mr_not_equal(o.graph, o.x, zero)
                                                                         : mr_greater(o.graph, o.x, zero);
    mr_output safe = mr_select(o.graph, positive, o.x, mr_ones_like(o.graph, o.x));
    mr_output logarithm = mr_select(o.graph, positive, mr_log(o.graph, safe), mr_zeros_like(o.graph, o.x));
    set(call, grad_x, mr_mul(o.graph, mr_mul(o.graph, o.g, o.z), logarithm));
}

static void atan2_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call); /* x is the operator's y, and o.y its x */
    mr_output over = mr_real_div(o.graph, o.g, mr_add_v2(o.graph, mr_square(o.graph, o.x), mr_square(o.graph, o.y)));
    set(call, mr_mul(o.graph, o.y, over), mr_mul(o.graph, mr_neg(o.graph, o.x), over));
}

static void mul_no_nan_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    set(call, mr_mul_no_nan(o.graph, o.g, o.y), mr_mul_no_nan(o.graph, o.x, o.g));
}

/* 1 where x is not zero, otherwise 0. */
static mr_output not_zero(mr_gradient_call *call, mr_output x)
{
    mr_graph *g = call->graph;
    return mr_cast(g, mr_not_equal(g, x, mr_gradient_scalar(call, x, 0)), mr_output_dtype(x));
}

static void xlogy_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    set(call, mr_mul(o.graph, mr_xlogy(o.graph, not_zero(call, o.x), o.y), o.g),
        mr_mul(o.graph, mr_xdivy(o.graph, o.x, o.y), o.g));
}

static void xlog1py_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    mr_output above = mr_add_v2(o.graph, o.y, mr_gradient_scalar(call, o.y, 1));
    set(call, mr_mul(o.graph, mr_xlog1py(o.graph, not_zero(call, o.x), o.y), o.g),
        mr_mul(o.graph, mr_xdivy(o.graph, o.x, above), o.g));
}

static void xdivy_gradient(mr_gradient_call *call)
{
    operands o = operands_of(call);
    mr_output slope = mr_xdivy(o.graph, mr_neg(o.graph, o.x), mr_square(o.graph, o.y));
    set(call, mr_mul(o.graph, mr_xdivy(o.graph, not_zero(call, o.x), o.y), o.g), mr_mul(o.graph, slope, o.g));
}

static void next_after_gradient(mr_gradient_call *call)
{
    mr_output g = call->grad_outputs[0];
    set(call, g, mr_zeros_like(call->graph, g));
}

static void cross_gradient(mr_gradient_call *call)
{
    mr_output u = gradient_input(call, 0), v = gradient_input(call, 1), g = call->grad_outputs[0];
    call->grad_inputs[0] = mr_cross(call->graph, v, g);
    call->grad_inputs[1] = mr_cross(call->graph, g, u);
}

static void choose(mr_gradient_call *call, mr_output takes_x)
{
    mr_graph *graph = call->graph;
    mr_output g = call->grad_outputs[0], zeros = mr_zeros_like(graph, g);
    set(call, mr_select(graph, takes_x, g, zeros), mr_select(graph, takes_x, zeros, g));
}

static void maximum_gradient(mr_gradient_call *call)
{
    choose(call, mr_greater_equal(call->graph, gradient_input(call, 0), gradient_input(call, 1)));
}

static void minimum_gradient(mr_gradient_call *call)
{
    choose(call, mr_less_equal(call->graph, gradient_input(call, 0), gradient_input(call, 1)));
}

static void add_n_gradient(mr_gradient_call *call)
{
    int32_t count = mr_node_input_count(call->node);
    for (int32_t i = 0; i < count; i++) call->grad_inputs[i] = call->grad_outputs[0];
}

static const mr_gradient gradients[] = {
    {"Add", add_gradient},
    {"AddV2", add_gradient},
    {"Sub", sub_gradient},
    {"Mul", mul_gradient},
    {"Div", div_gradient},
    {"RealDiv", div_gradient},
    {"DivNoNan", div_no_nan_gradient},
    {"FloorMod", floor_mod_gradient},
    {"SquaredDifference", squared_difference_gradient},
    {"Pow", pow_gradient},
    {"MulNoNan", mul_no_nan_gradient},
    {"Atan2", atan2_gradient},
    {"Xlogy", xlogy_gradient},
    {"Xlog1py", xlog1py_gradient},
    {"Xdivy", xdivy_gradient},
    {"NextAfter", next_after_gradient},
    {"Cross", cross_gradient},
    {"Maximum", maximum_gradient},
    {"Minimum", minimum_gradient},
    {"AddN", add_n_gradient},
    {"AccumulateNV2", add_n_gradient},
};

const mr_gradient_table mr_gradients_binary = {gradients, sizeof gradients / sizeof gradients[0]};
