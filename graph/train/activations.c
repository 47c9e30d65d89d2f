/* Activations, and the one with a variable. */
#include "graph/train/layers.h"
#include <millrace/ops.h>

#include <inttypes.h>

mr_output mr_activation_relu(mr_graph *graph, mr_output input)
{
    return mr_relu(graph, input);
}

mr_output mr_activation_sigmoid(mr_graph *graph, mr_output input)
{
    return mr_sigmoid(graph, input);
}

mr_output mr_activation_tanh(mr_graph *graph, mr_output input)
{
    return mr_tanh(graph, input);
}

mr_output mr_activation_relu6(mr_graph *graph, mr_output input)
{
    return mr_relu6(graph, input);
}

mr_output mr_activation_leaky_relu(mr_graph *graph, mr_output input)
{
    return mr_leaky_relu(graph, input);
}

mr_output mr_activation_crelu(mr_graph *graph, mr_output input)
{
    mr_graph_push_scope(graph, "CRelu");
    const mr_output axis = mr_constant_int32(graph, -1);
    const mr_output pair =
        mr_concat_v2(graph, MR_OUTPUTS(input, mr_neg(graph, input)), axis, .name = mr_train_own_name(graph));
    const mr_output output = mr_relu(graph, pair);
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_activation_elu(mr_graph *graph, mr_output input)
{
    return mr_elu(graph, input);
}

mr_output mr_activation_selu(mr_graph *graph, mr_output input)
{
    return mr_selu(graph, input);
}

mr_output mr_activation_swish(mr_graph *graph, mr_output input)
{
    return mr_mul(graph, input, mr_sigmoid(graph, input));
}

mr_output mr_activation_softplus(mr_graph *graph, mr_output input)
{
    return mr_softplus(graph, input);
}

mr_output mr_activation_log_sigmoid(mr_graph *graph, mr_output input)
{
    mr_graph_push_scope(graph, "LogSigmoid");
    const mr_output output = mr_neg(graph, mr_softplus(graph, mr_neg(graph, input)), .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_activation_softsign(mr_graph *graph, mr_output input)
{
    return mr_softsign(graph, input);
}

/* Records an error and returns false for a dtype that is not of floating point. */
static bool check_floating(mr_graph *graph, const char *name, mr_output input)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    const mr_dtype dtype = mr_output_dtype(input);
    if (mr_train_is_floating(dtype)) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: the input is %s, but must be floating point", name,
                        input.node != nullptr ? mr_dtype_name(dtype) : "missing");
    return false;
}

mr_output mr_activation_hard_sigmoid(mr_graph *graph, mr_output input)
{
    if (!check_floating(graph, "hard_sigmoid", input)) return mr_graph_failed_output(graph);
    const mr_dtype dtype = mr_output_dtype(input);
    mr_output line = mr_mul(graph, input, mr_train_scalar(graph, nullptr, dtype, 0.2));
    line = mr_add_v2(graph, line, mr_train_scalar(graph, nullptr, dtype, 0.5));
    line = mr_minimum(graph, line, mr_train_scalar(graph, nullptr, dtype, 1));
    return mr_maximum(graph, line, mr_train_scalar(graph, nullptr, dtype, 0));
}

mr_output mr_activation_softmax(mr_graph *graph, mr_output input)
{
    return mr_softmax(graph, input);
}

mr_output mr_activation_log_softmax(mr_graph *graph, mr_output input)
{
    return mr_log_softmax(graph, input);
}

/* ---- Layers without variables ---- */

mr_output mr_xw_plus_b(mr_graph *graph, mr_output input, mr_output weights, mr_output biases)
{
    mr_graph_push_scope(graph, "xw_plus_b");
    const mr_output output =
        mr_bias_add(graph, mr_mat_mul(graph, input, weights), biases, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_relu_layer(mr_graph *graph, mr_output input, mr_output weights, mr_output biases)
{
    mr_graph_push_scope(graph, "relu_layer");
    const mr_output sum = mr_bias_add(graph, mr_mat_mul(graph, input, weights), biases);
    const mr_output output = mr_relu(graph, sum, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return output;
}

/* ---- PReLU ---- */

/* The shape of alpha. Records an error and returns false if there is none. */
static bool alpha_shape(mr_graph *graph, mr_output input, mr_ints shared_axes, mr_shape *shape)
{
    const mr_shape whole = mr_output_shape(input);
    if (whole.rank < 1) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "a p_re_lu layer needs an input of known rank, at least 1");
        return false;
    }
    if (shared_axes.count < 0 || (shared_axes.count > 0 && shared_axes.items == nullptr)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "shared_axes is not a list");
        return false;
    }
    *shape = (mr_shape){.rank = whole.rank - 1};
    for (int32_t i = 1; i < whole.rank; i++) shape->dims[i - 1] = whole.dims[i];
    for (int64_t i = 0; i < shared_axes.count; i++) {
        const int64_t axis = shared_axes.items[i];
        if (axis < 1 || axis >= whole.rank) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "shared_axes has %" PRId64 ", but must be 1 to %d here",
                                axis, whole.rank - 1);
            return false;
        }
        shape->dims[axis - 1] = 1;
    }
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                                "dimension %d of a p_re_lu layer's input is unknown, but is the size of alpha; put it "
                                "into shared_axes",
                                i + 1);
            return false;
        }
    return true;
}

static mr_output build_prelu(mr_graph *graph, mr_output input, const mr_prelu_layer *layer)
{
    mr_shape shape;
    if (!check_floating(graph, "a p_re_lu layer", input) || !alpha_shape(graph, input, layer->shared_axes, &shape))
        return mr_graph_failed_output(graph);
    const mr_variable alpha = mr_layer_variable(graph, &(mr_layer_weight){.name = "alpha",
                                                                          .shape = shape,
                                                                          .dtype = mr_output_dtype(input),
                                                                          .initializer = layer->alpha_initializer,
                                                                          .default_kind = MR_INIT_ZEROS,
                                                                          .regularizer = layer->alpha_regularizer,
                                                                          .constraint = layer->alpha_constraint,
                                                                          .trainable = !layer->not_trainable});
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    const mr_output positive = mr_relu(graph, input);
    const mr_output slope = mr_neg(graph, mr_layer_value(graph, alpha, "Neg"));
    return mr_add_v2(graph, positive, mr_mul(graph, slope, mr_relu(graph, mr_neg(graph, input))), .name = "add");
}

mr_output mr_layer_prelu_(mr_graph *graph, mr_output input, const mr_prelu_layer *given)
{
    mr_prelu_layer layer;
    if (!MR_LAYER_READ(mr_prelu_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_layer_begin(graph, layer.name, "p_re_lu", layer.reuse);
    const mr_output output = build_prelu(graph, input, &layer);
    mr_graph_pop_variable_scope(graph);
    return output;
}
