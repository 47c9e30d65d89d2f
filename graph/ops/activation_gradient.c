/* Gradients of activation functions and of their gradient operators. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static float alpha_of(const mr_gradient_call *call)
{
    return mr_attr_float_or(&call->node->attrs, "alpha", 0.2f);
}

#define X gradient_input(call, 0)
#define Y gradient_output(call, 0)
#define G call->grad_outputs[0]

#define ACTIVATION(name, expression)                                                                                   \
    static void name(mr_gradient_call *call)                                                                           \
    {                                                                                                                  \
        mr_graph *g = call->graph;                                                                                     \
        call->grad_inputs[0] = (expression);                                                                           \
    }

ACTIVATION(relu_gradient, mr_relu_grad(g, G, Y))
ACTIVATION(relu6_gradient, mr_relu6_grad(g, G, Y))
ACTIVATION(leaky_relu_gradient, mr_leaky_relu_grad(g, G, X, .alpha = alpha_of(call)))
ACTIVATION(elu_gradient, mr_elu_grad(g, G, Y))
ACTIVATION(selu_gradient, mr_selu_grad(g, G, Y))
ACTIVATION(softplus_gradient, mr_softplus_grad(g, G, X))
ACTIVATION(softsign_gradient, mr_softsign_grad(g, G, X))

/* Second order. The inputs are the gradient d, and the feature or output f. */
#define D gradient_input(call, 0)
#define F gradient_input(call, 1)

ACTIVATION(relu_grad_gradient, mr_relu_grad(g, G, F))
ACTIVATION(relu6_grad_gradient, mr_relu6_grad(g, G, F))
ACTIVATION(leaky_relu_grad_gradient, mr_leaky_relu_grad(g, G, F, .alpha = alpha_of(call)))

static mr_output where_negative(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output negative = mr_less(g, F, mr_gradient_scalar(call, F, 0));
    return mr_select(g, negative, mr_mul(g, G, D), mr_zeros_like(g, F));
}

static void elu_grad_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_elu_grad(call->graph, G, F);
    call->grad_inputs[1] = where_negative(call);
}

static void selu_grad_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_selu_grad(call->graph, G, F);
    call->grad_inputs[1] = where_negative(call);
}

/* d sigmoid(f); the derivative of sigmoid is 1 / (exp(-f) + 2 + exp(f)). */
static void softplus_grad_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output tails = mr_add_v2(g, mr_exp(g, mr_neg(g, F)), mr_exp(g, F));
    mr_output slope = mr_add_v2(g, tails, mr_gradient_scalar(call, F, 2));
    call->grad_inputs[0] = mr_softplus_grad(g, G, F);
    call->grad_inputs[1] = mr_real_div(g, mr_mul(g, G, D), slope);
}

/* d / (1 + |f|)^2. */
static void softsign_grad_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output base = mr_add_v2(g, mr_abs(g, F), mr_gradient_scalar(call, F, 1));
    mr_output cube = mr_mul(g, base, mr_square(g, base));
    mr_output twice = mr_mul(g, mr_sign(g, F), mr_gradient_scalar(call, F, -2));
    call->grad_inputs[0] = mr_softsign_grad(g, G, F);
    call->grad_inputs[1] = mr_real_div(g, mr_mul(g, mr_mul(g, G, D), twice), cube);
}

static const mr_gradient gradients[] = {
    {"Relu", relu_gradient},
    {"ReluGrad", relu_grad_gradient},
    {"Relu6", relu6_gradient},
    {"Relu6Grad", relu6_grad_gradient},
    {"LeakyRelu", leaky_relu_gradient},
    {"LeakyReluGrad", leaky_relu_grad_gradient},
    {"Elu", elu_gradient},
    {"EluGrad", elu_grad_gradient},
    {"Selu", selu_gradient},
    {"SeluGrad", selu_grad_gradient},
    {"Softplus", softplus_gradient},
    {"SoftplusGrad", softplus_grad_gradient},
    {"Softsign", softsign_gradient},
    {"SoftsignGrad", softsign_grad_gradient},
};

const mr_gradient_table mr_gradients_activation = {gradients, sizeof gradients / sizeof gradients[0]};
