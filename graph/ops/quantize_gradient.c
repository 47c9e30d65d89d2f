/* Gradients of simulated quantization: rounding passes them; the range cuts them off. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))

static void arguments_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = NODE("FakeQuantWithMinMaxArgsGradient", call->grad_outputs[0], gradient_input(call, 0));
}

/* The gradient operators have outputs for the input and both limits. */
static void limits_gradient(mr_gradient_call *call, const char *op)
{
    mr_output first =
        NODE(op, call->grad_outputs[0], gradient_input(call, 0), gradient_input(call, 1), gradient_input(call, 2));
    for (int32_t i = 0; i < 3; i++) call->grad_inputs[i] = (mr_output){first.node, i};
}

static void variables_gradient(mr_gradient_call *call)
{
    limits_gradient(call, "FakeQuantWithMinMaxVarsGradient");
}

static void channels_gradient(mr_gradient_call *call)
{
    limits_gradient(call, "FakeQuantWithMinMaxVarsPerChannelGradient");
}

static void version_4_gradient(mr_gradient_call *call)
{
    limits_gradient(call, "QuantizeAndDequantizeV4Grad");
}

static const mr_gradient gradients[] = {
    {"QuantizeAndDequantize", mr_gradient_forward},           {"QuantizeAndDequantizeV2", mr_gradient_forward},
    {"QuantizeAndDequantizeV3", mr_gradient_forward},         {"QuantizeAndDequantizeV4", version_4_gradient},
    {"FakeQuantWithMinMaxArgs", arguments_gradient},          {"FakeQuantWithMinMaxVars", variables_gradient},
    {"FakeQuantWithMinMaxVarsPerChannel", channels_gradient},
};

const mr_gradient_table mr_gradients_quantize = {gradients, sizeof gradients / sizeof gradients[0]};
