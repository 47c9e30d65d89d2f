/* Gradients of scan.c. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static void cumsum_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = mr_cumsum(call->graph, call->grad_outputs[0], gradient_input(call, 1),
                                     .exclusive = mr_attr_bool_or(&call->node->attrs, "exclusive", false),
                                     .reverse = !mr_attr_bool_or(&call->node->attrs, "reverse", false));
}

/* The sum of prod * g over the elements that contain x, divided by x. */
static void cumprod_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output x = mr_gradient_conj(call, gradient_input(call, 0)), y = mr_gradient_conj(call, gradient_output(call, 0));
    mr_output sum = mr_cumsum(g, mr_mul(g, y, call->grad_outputs[0]), gradient_input(call, 1),
                              .exclusive = mr_attr_bool_or(&call->node->attrs, "exclusive", false),
                              .reverse = !mr_attr_bool_or(&call->node->attrs, "reverse", false));
    call->grad_inputs[0] = mr_div_no_nan(g, sum, x);
}

/* exp(x) times the sum of part * exp(-y), computed with logarithms; part is not negative. */
static mr_output log_sum_part(mr_gradient_call *call, mr_output part)
{
    mr_graph *g = call->graph;
    mr_dtype dtype = mr_output_dtype(part);
    double lowest = dtype == MR_HALF       ? -65504.0
                    : dtype == MR_BFLOAT16 ? -0x1.fep127
                    : dtype == MR_FLOAT    ? -0x1.fffffep127
                                           : -0x1.fffffffffffffp1023;
    mr_output positive = mr_greater(g, part, mr_gradient_scalar(call, part, 0));
    mr_output logarithm = mr_select_v2(g, positive, mr_log(g, part), mr_gradient_scalar(call, part, lowest));
    mr_output scan = mr_cumulative_logsumexp(g, mr_sub(g, logarithm, gradient_output(call, 0)), gradient_input(call, 1),
                                             .exclusive = mr_attr_bool_or(&call->node->attrs, "exclusive", false),
                                             .reverse = !mr_attr_bool_or(&call->node->attrs, "reverse", false));
    return mr_exp(g, mr_add_v2(g, scan, gradient_input(call, 0)));
}

static void cumulative_logsumexp_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output grad = call->grad_outputs[0];
    call->grad_inputs[0] = mr_sub(g, log_sum_part(call, grad), log_sum_part(call, mr_neg(g, grad)));
}

static const mr_gradient gradients[] = {
    {"Cumsum", cumsum_gradient},
    {"Cumprod", cumprod_gradient},
    {"CumulativeLogsumexp", cumulative_logsumexp_gradient},
};

const mr_gradient_table mr_gradients_scan = {gradients, sizeof gradients / sizeof gradients[0]};
