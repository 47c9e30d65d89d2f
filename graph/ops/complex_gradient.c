/* Gradients of complex.c. A complex gradient has the gradients of the real and imaginary parts as its parts. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static mr_dtype complex_of(mr_output real)
{
    return mr_output_dtype(real) == MR_DOUBLE ? MR_COMPLEX128 : MR_COMPLEX64;
}

static mr_dtype real_of(mr_output value)
{
    return mr_output_dtype(value) == MR_COMPLEX128 ? MR_DOUBLE : MR_FLOAT;
}

static mr_output compose(mr_gradient_call *call, mr_output real, mr_output imaginary)
{
    return mr_complex(call->graph, real, imaginary, .Tout = complex_of(real));
}

static mr_output as_complex(mr_gradient_call *call, mr_output real)
{
    return compose(call, real, mr_gradient_scalar(call, real, 0));
}

static void complex_gradient(mr_gradient_call *call)
{
    mr_output x = gradient_input(call, 0), y = gradient_input(call, 1), g = call->grad_outputs[0];
    mr_output real = mr_real(call->graph, g, .Tout = real_of(g)),
              imaginary = mr_imag(call->graph, g, .Tout = real_of(g));
    call->grad_inputs[0] = mr_gradient_unbroadcast(call, real, x, y);
    call->grad_inputs[1] = mr_gradient_unbroadcast(call, imaginary, y, x);
}

static void real_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = as_complex(call, call->grad_outputs[0]);
}

static void imag_gradient(mr_gradient_call *call)
{
    mr_output g = call->grad_outputs[0];
    call->grad_inputs[0] = compose(call, mr_gradient_scalar(call, g, 0), g);
}

static void angle_gradient(mr_gradient_call *call)
{
    mr_graph *graph = call->graph;
    mr_output x = gradient_input(call, 0), g = as_complex(call, call->grad_outputs[0]);
    mr_output real = mr_real(graph, x, .Tout = real_of(x)), imaginary = mr_imag(graph, x, .Tout = real_of(x));
    call->grad_inputs[0] = mr_mul(graph, mr_neg(graph, g), mr_reciprocal(graph, compose(call, imaginary, real)));
}

static void conj_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_conj(call->graph, call->grad_outputs[0]);
}

static void complex_abs_gradient(mr_gradient_call *call)
{
    mr_graph *graph = call->graph;
    mr_output g = as_complex(call, call->grad_outputs[0]), size = as_complex(call, gradient_output(call, 0));
    call->grad_inputs[0] = mr_div_no_nan(graph, mr_mul(graph, g, gradient_input(call, 0)), size);
}

static const mr_gradient gradients[] = {
    {"Complex", complex_gradient}, {"Real", real_gradient}, {"Imag", imag_gradient},
    {"Angle", angle_gradient},     {"Conj", conj_gradient}, {"ComplexAbs", complex_abs_gradient},
};

const mr_gradient_table mr_gradients_complex = {gradients, sizeof gradients / sizeof gradients[0]};
