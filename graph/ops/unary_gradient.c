/* Gradients of element-wise operators of one operand: x is the input and y the output, both conjugated if they are
 * complex; g is the gradient of y. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define UNARY(name, expression)                                                                                        \
    static void name(mr_gradient_call *call)                                                                           \
    {                                                                                                                  \
        mr_graph *gr = call->graph;                                                                                    \
        [[maybe_unused]] mr_output x = mr_gradient_conj(call, gradient_input(call, 0));                                \
        [[maybe_unused]] mr_output y = mr_gradient_conj(call, gradient_output(call, 0));                               \
        mr_output g = call->grad_outputs[0];                                                                           \
        call->grad_inputs[0] = (expression);                                                                           \
    }
#define CONSTANT(value) mr_gradient_scalar(call, x, (value))

UNARY(neg_gradient, mr_neg(gr, g))
UNARY(abs_gradient, mr_mul(gr, g, mr_sign(gr, x)))
UNARY(square_gradient, mr_mul(gr, g, mr_mul(gr, x, CONSTANT(2))))
/* These two operators conjugate y themselves. */
UNARY(sqrt_gradient, mr_sqrt_grad(gr, gradient_output(call, 0), g))
UNARY(rsqrt_gradient, mr_rsqrt_grad(gr, gradient_output(call, 0), g))
UNARY(reciprocal_gradient, mr_neg(gr, mr_mul(gr, g, mr_square(gr, y))))
UNARY(exp_gradient, mr_mul(gr, g, y))
UNARY(expm1_gradient, mr_mul(gr, g, mr_exp(gr, x)))
UNARY(log_gradient, mr_mul(gr, g, mr_reciprocal(gr, x)))
UNARY(log1p_gradient, mr_mul(gr, g, mr_reciprocal(gr, mr_add_v2(gr, CONSTANT(1), x))))
UNARY(sin_gradient, mr_mul(gr, g, mr_cos(gr, x)))
UNARY(cos_gradient, mr_neg(gr, mr_mul(gr, g, mr_sin(gr, x))))
UNARY(tanh_gradient, mr_tanh_grad(gr, y, g))
UNARY(sigmoid_gradient, mr_sigmoid_grad(gr, y, g))
UNARY(erf_gradient, /* 2 / sqrt(pi) */
      mr_mul(gr, g, mr_mul(gr, CONSTANT(1.1283791670955126), mr_exp(gr, mr_neg(gr, mr_square(gr, x))))))
UNARY(erfinv_gradient, /* sqrt(pi) / 2 */
      mr_mul(gr, g, mr_mul(gr, CONSTANT(0.8862269254527580), mr_exp(gr, mr_square(gr, y)))))

/* (1 - x^2)^(-1/2), the slope of Asin. */
static mr_output arc_slope(mr_gradient_call *call, mr_output x)
{
    mr_graph *gr = call->graph;
    return mr_rsqrt(gr, mr_sub(gr, CONSTANT(1), mr_square(gr, x)));
}

UNARY(tan_gradient, mr_mul(gr, g, mr_square(gr, mr_reciprocal(gr, mr_cos(gr, x)))))
UNARY(asin_gradient, mr_mul(gr, g, arc_slope(call, x)))
UNARY(acos_gradient, mr_neg(gr, mr_mul(gr, g, arc_slope(call, x))))
UNARY(atan_gradient, mr_mul(gr, g, mr_reciprocal(gr, mr_add_v2(gr, CONSTANT(1), mr_square(gr, x)))))
UNARY(sinh_gradient, mr_mul(gr, g, mr_cosh(gr, x)))
UNARY(cosh_gradient, mr_mul(gr, g, mr_sinh(gr, x)))
UNARY(asinh_gradient, mr_real_div(gr, g, mr_cosh(gr, y)))
UNARY(acosh_gradient, mr_real_div(gr, g, mr_sinh(gr, y)))
UNARY(atanh_gradient, mr_mul(gr, g, mr_reciprocal(gr, mr_sub(gr, CONSTANT(1), mr_square(gr, x)))))
UNARY(erfc_gradient, /* -2 / sqrt(pi) */
      mr_mul(gr, g, mr_mul(gr, CONSTANT(-1.1283791670955126), mr_exp(gr, mr_neg(gr, mr_square(gr, x))))))
UNARY(lgamma_gradient, mr_mul(gr, g, mr_digamma(gr, x)))

/* Second order: the inputs are y and dy of the gradient operators above. */

static void sqrt_grad_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output y = gradient_input(call, 0), z = gradient_output(call, 0);
    mr_output over = mr_real_div(gr, call->grad_outputs[0], y);
    call->grad_inputs[0] = mr_neg(gr, mr_mul(gr, over, z));
    call->grad_inputs[1] = mr_mul(gr, over, mr_gradient_scalar(call, y, 0.5));
}

static void rsqrt_grad_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output y = gradient_input(call, 0), dy = gradient_input(call, 1), g = call->grad_outputs[0];
    mr_output scaled = mr_mul(gr, mr_mul(gr, g, mr_gradient_scalar(call, y, -1.5)), dy);
    call->grad_inputs[0] = mr_mul(gr, scaled, mr_square(gr, y));
    call->grad_inputs[1] = mr_rsqrt_grad(gr, y, g);
}

/* The gradient of -dy * y^2. */
static void reciprocal_grad_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output y = mr_gradient_conj(call, gradient_input(call, 0)), dy = gradient_input(call, 1);
    mr_output g = call->grad_outputs[0], slope = mr_mul(gr, mr_gradient_conj(call, g), mr_gradient_scalar(call, y, -2));
    call->grad_inputs[0] = mr_mul(gr, mr_mul(gr, slope, dy), y);
    call->grad_inputs[1] = mr_reciprocal_grad(gr, y, g);
}

static void tanh_grad_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output y = mr_gradient_conj(call, gradient_input(call, 0)), dy = mr_gradient_conj(call, gradient_input(call, 1));
    mr_output g = call->grad_outputs[0];
    call->grad_inputs[0] = mr_mul(gr, mr_mul(gr, mr_mul(gr, g, mr_gradient_scalar(call, y, -2)), dy), y);
    call->grad_inputs[1] = mr_tanh_grad(gr, y, g);
}

static void sigmoid_grad_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output y = mr_gradient_conj(call, gradient_input(call, 0)), dy = mr_gradient_conj(call, gradient_input(call, 1));
    mr_output g = call->grad_outputs[0];
    mr_output product = mr_mul(gr, g, dy);
    mr_output twice = mr_mul(gr, mr_mul(gr, product, y), mr_gradient_scalar(call, y, 2));
    call->grad_inputs[0] = mr_sub(gr, product, twice);
    call->grad_inputs[1] = mr_sigmoid_grad(gr, y, g);
}

static bool is_differentiable(mr_dtype dtype)
{
    return dtype == MR_HALF || dtype == MR_BFLOAT16 || dtype == MR_FLOAT || dtype == MR_DOUBLE ||
           dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128;
}

static void cast_gradient(mr_gradient_call *call)
{
    mr_dtype source = mr_output_dtype(gradient_input(call, 0));
    if (is_differentiable(source) && is_differentiable(mr_output_dtype(gradient_output(call, 0))))
        call->grad_inputs[0] = mr_cast(call->graph, call->grad_outputs[0], source);
}

static const mr_gradient gradients[] = {
    {"Neg", neg_gradient},
    {"Abs", abs_gradient},
    {"Square", square_gradient},
    {"Sqrt", sqrt_gradient},
    {"SqrtGrad", sqrt_grad_gradient},
    {"Rsqrt", rsqrt_gradient},
    {"RsqrtGrad", rsqrt_grad_gradient},
    {"Reciprocal", reciprocal_gradient},
    {"Inv", reciprocal_gradient},
    {"Exp", exp_gradient},
    {"Expm1", expm1_gradient},
    {"Log", log_gradient},
    {"Log1p", log1p_gradient},
    {"Sin", sin_gradient},
    {"Cos", cos_gradient},
    {"ReciprocalGrad", reciprocal_grad_gradient},
    {"InvGrad", reciprocal_grad_gradient},
    {"Tan", tan_gradient},
    {"Asin", asin_gradient},
    {"Acos", acos_gradient},
    {"Atan", atan_gradient},
    {"Sinh", sinh_gradient},
    {"Cosh", cosh_gradient},
    {"Asinh", asinh_gradient},
    {"Acosh", acosh_gradient},
    {"Atanh", atanh_gradient},
    {"Erfc", erfc_gradient},
    {"Lgamma", lgamma_gradient},
    {"Tanh", tanh_gradient},
    {"TanhGrad", tanh_grad_gradient},
    {"Sigmoid", sigmoid_gradient},
    {"SigmoidGrad", sigmoid_grad_gradient},
    {"Erf", erf_gradient},
    {"Erfinv", erfinv_gradient},
    {"Cast", cast_gradient},
};

const mr_gradient_table mr_gradients_unary = {gradients, sizeof gradients / sizeof gradients[0]};
