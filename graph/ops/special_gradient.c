/* Gradients of special.c: x is the input, y the output, g the gradient of y. Some parameters have no gradient, as in
 * TensorFlow. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define UNARY(name, slope)                                                                                             \
    static void name(mr_gradient_call *call)                                                                           \
    {                                                                                                                  \
        mr_graph *gr = call->graph;                                                                                    \
        [[maybe_unused]] mr_output x = gradient_input(call, 0), y = gradient_output(call, 0);                          \
        call->grad_inputs[0] = mr_mul(gr, call->grad_outputs[0], (slope));                                             \
    }
#define CONSTANT(value) mr_gradient_scalar(call, x, (value))

/* `at` where x is `place`, otherwise slope. */
static mr_output except(mr_gradient_call *call, double place, double at, mr_output slope)
{
    mr_output x = gradient_input(call, 0);
    return mr_select_v2(call->graph, mr_equal(call->graph, x, CONSTANT(place)), CONSTANT(at), slope);
}

static mr_output half_pi_square(mr_gradient_call *call, mr_output x)
{
    return mr_mul(call->graph, CONSTANT(1.5707963267948966), mr_square(call->graph, x));
}

UNARY(digamma_gradient, mr_polygamma(gr, CONSTANT(1), x))
UNARY(ndtri_gradient, /* sqrt(2 pi) */
      mr_mul(gr, CONSTANT(2.5066282746310002), mr_exp(gr, mr_mul(gr, mr_square(gr, y), CONSTANT(0.5)))))
UNARY(dawsn_gradient, mr_sub(gr, CONSTANT(1), mr_mul(gr, CONSTANT(2), mr_mul(gr, x, y))))
UNARY(expint_gradient, mr_real_div(gr, mr_exp(gr, x), x))
UNARY(fresnel_cos_gradient, mr_cos(gr, half_pi_square(call, x)))
UNARY(fresnel_sin_gradient, mr_sin(gr, half_pi_square(call, x)))
UNARY(spence_gradient, except(call, 1, -1, mr_real_div(gr, mr_log(gr, x), mr_sub(gr, CONSTANT(1), x))))
UNARY(i0_gradient, mr_bessel_i1(gr, x))
UNARY(i0e_gradient, mr_sub(gr, mr_bessel_i1e(gr, x), mr_mul(gr, mr_sign(gr, x), y)))
UNARY(i1_gradient, /* TensorFlow's slope at 0 is 1, although the exact one is 1/2 */
      except(call, 0, 1, mr_sub(gr, mr_bessel_i0(gr, x), mr_real_div(gr, y, x))))
UNARY(i1e_gradient,
      except(call, 0, 0.5,
             mr_sub(gr, mr_bessel_i0e(gr, x), mr_mul(gr, y, mr_add_v2(gr, mr_sign(gr, x), mr_reciprocal(gr, x))))))
UNARY(k0_gradient, mr_neg(gr, mr_bessel_k1(gr, x)))
UNARY(k0e_gradient, mr_sub(gr, y, mr_bessel_k1e(gr, x)))
UNARY(k1_gradient, mr_sub(gr, mr_neg(gr, mr_bessel_k0(gr, x)), mr_real_div(gr, y, x)))
UNARY(k1e_gradient, mr_sub(gr, mr_mul(gr, y, mr_sub(gr, CONSTANT(1), mr_reciprocal(gr, x))), mr_bessel_k0e(gr, x)))
UNARY(j0_gradient, mr_neg(gr, mr_bessel_j1(gr, x)))
UNARY(j1_gradient, except(call, 0, 0.5, mr_sub(gr, mr_bessel_j0(gr, x), mr_real_div(gr, y, x))))
UNARY(y0_gradient, mr_neg(gr, mr_bessel_y1(gr, x)))
UNARY(y1_gradient, mr_sub(gr, mr_bessel_y0(gr, x), mr_real_div(gr, y, x)))

static void set(mr_gradient_call *call, int32_t index, mr_output slope)
{
    mr_output target = gradient_input(call, index), other = gradient_input(call, 1 - index);
    mr_output grad = mr_mul(call->graph, slope, call->grad_outputs[0]);
    call->grad_inputs[index] = mr_gradient_unbroadcast(call, grad, target, other);
}

static void igamma(mr_gradient_call *call, bool upper)
{
    mr_graph *gr = call->graph;
    mr_output a = gradient_input(call, 0), x = gradient_input(call, 1);
    mr_output power = mr_mul(gr, mr_sub(gr, a, CONSTANT(1)), mr_log(gr, x));
    mr_output slope_a = mr_igamma_grad_a(gr, a, x);
    mr_output slope_x = mr_exp(gr, mr_sub(gr, mr_sub(gr, power, x), mr_lgamma(gr, a)));
    set(call, 0, upper ? mr_neg(gr, slope_a) : slope_a);
    set(call, 1, upper ? mr_neg(gr, slope_x) : slope_x);
}

static void igamma_gradient(mr_gradient_call *call)
{
    igamma(call, false);
}

static void igammac_gradient(mr_gradient_call *call)
{
    igamma(call, true);
}

static void zeta_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output x = gradient_input(call, 0), q = gradient_input(call, 1);
    set(call, 1, mr_mul(gr, mr_neg(gr, x), mr_zeta(gr, mr_add_v2(gr, x, CONSTANT(1)), q)));
}

static void polygamma_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output n = gradient_input(call, 0), x = gradient_input(call, 1);
    set(call, 1, mr_polygamma(gr, mr_add_v2(gr, n, CONSTANT(1)), x));
}

/* Only x has a gradient. Factors are added as logarithms, which do not overflow. */
static void betainc_gradient(mr_gradient_call *call)
{
    mr_graph *gr = call->graph;
    mr_output a = gradient_input(call, 0), b = gradient_input(call, 1), x = gradient_input(call, 2);
    mr_output beta = mr_sub(gr, mr_add_v2(gr, mr_lgamma(gr, a), mr_lgamma(gr, b)), mr_lgamma(gr, mr_add_v2(gr, a, b)));
    mr_output right = mr_xlog1py(gr, mr_sub(gr, b, CONSTANT(1)), mr_neg(gr, x));
    mr_output left = mr_xlogy(gr, mr_sub(gr, a, CONSTANT(1)), x);
    mr_output slope = mr_exp(gr, mr_sub(gr, mr_add_v2(gr, right, left), beta));
    call->grad_inputs[2] =
        mr_gradient_unbroadcast(call, mr_mul(gr, slope, call->grad_outputs[0]), x, gradient_output(call, 0));
}

static const mr_gradient gradients[] = {
    {"Digamma", digamma_gradient},
    {"Polygamma", polygamma_gradient},
    {"Zeta", zeta_gradient},
    {"Igamma", igamma_gradient},
    {"Igammac", igammac_gradient},
    {"Betainc", betainc_gradient},
    {"Ndtri", ndtri_gradient},
    {"Dawsn", dawsn_gradient},
    {"Expint", expint_gradient},
    {"FresnelCos", fresnel_cos_gradient},
    {"FresnelSin", fresnel_sin_gradient},
    {"Spence", spence_gradient},
    {"BesselI0", i0_gradient},
    {"BesselI0e", i0e_gradient},
    {"BesselI1", i1_gradient},
    {"BesselI1e", i1e_gradient},
    {"BesselK0", k0_gradient},
    {"BesselK0e", k0e_gradient},
    {"BesselK1", k1_gradient},
    {"BesselK1e", k1e_gradient},
    {"BesselJ0", j0_gradient},
    {"BesselJ1", j1_gradient},
    {"BesselY0", y0_gradient},
    {"BesselY1", y1_gradient},
};

const mr_gradient_table mr_gradients_special = {gradients, sizeof gradients / sizeof gradients[0]};
