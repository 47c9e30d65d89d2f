/* Separable and depthwise convolutions, as in tf.compat.v1.layers. One of 1 dimension is that of an image of height
 * 1. */
#include "graph/train/layers.h"
#include <millrace/ops.h>

#include <string.h>

typedef struct plan {
    mr_graph *graph;
    const mr_separable_conv_layer *layer;
    int32_t rank;
    bool is_depthwise;
    int64_t kernel[3], stride, rate, channels;
    mr_dtype dtype;
    mr_layer_end end;
} plan;

static bool settle(plan *p, mr_output input, const char *class_name)
{
    const mr_separable_conv_layer *layer = p->layer;
    mr_graph *graph = p->graph;
    p->stride = layer->strides;
    p->rate = layer->dilation_rate != 0 ? layer->dilation_rate : 1;
    if (p->is_depthwise && layer->filters != 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "filters has no effect for a depthwise convolution");
        return false;
    }
    if ((!p->is_depthwise && !mr_train_check_required(graph, "filters", layer->filters)) ||
        !mr_layer_sizes(graph, "kernel_size", layer->kernel_size, "kernel_sizes", layer->kernel_sizes, p->rank, 0,
                        p->kernel) ||
        !mr_train_check_count(graph, "strides", p->stride, 1) ||
        !mr_train_check_count(graph, "dilation_rate", p->rate, 1) ||
        !mr_train_check_count(graph, "depth_multiplier", layer->depth_multiplier, 1))
        return false;
    const char *wrong = nullptr;
    if (p->rate > 1 && p->stride > 1) wrong = "strides and dilation_rate must not both be greater than 1";
    if (layer->channels_first && p->rank == 1) wrong = "channels_first needs 2 dimensions";
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s", wrong);
        return false;
    }
    p->channels = mr_layer_channels(graph, input, p->rank + 2, layer->channels_first ? 1 : p->rank + 1, class_name);
    p->dtype = mr_output_dtype(input);
    p->end = (mr_layer_end){.use_bias = layer->use_bias,
                            .trainable = !layer->not_trainable,
                            .units = p->is_depthwise ? p->channels * layer->depth_multiplier : layer->filters,
                            .bias_initializer = layer->bias_initializer,
                            .bias_regularizer = layer->bias_regularizer,
                            .bias_constraint = layer->bias_constraint,
                            .activity_regularizer = layer->activity_regularizer,
                            .activation = layer->activation,
                            .rank = 2,
                            .channels_first = layer->channels_first};
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static mr_variable depthwise_kernel(const plan *p)
{
    mr_shape shape = {.rank = p->rank + 2};
    memcpy(shape.dims, p->kernel, (size_t)p->rank * sizeof *p->kernel);
    shape.dims[p->rank] = p->channels;
    shape.dims[p->rank + 1] = p->layer->depth_multiplier;
    return mr_layer_variable(p->graph, &(mr_layer_weight){.name = "depthwise_kernel",
                                                          .shape = shape,
                                                          .dtype = p->dtype,
                                                          .initializer = p->layer->depthwise_initializer,
                                                          .regularizer = p->layer->depthwise_regularizer,
                                                          .constraint = p->layer->depthwise_constraint,
                                                          .trainable = p->end.trainable});
}

static mr_variable pointwise_kernel(const plan *p)
{
    int64_t inputs = p->channels * p->layer->depth_multiplier, filters = p->layer->filters;
    return mr_layer_variable(p->graph, &(mr_layer_weight){.name = "pointwise_kernel",
                                                          .shape = p->rank == 1 ? MR_SHAPE(1, inputs, filters)
                                                                                : MR_SHAPE(1, 1, inputs, filters),
                                                          .dtype = p->dtype,
                                                          .initializer = p->layer->pointwise_initializer,
                                                          .regularizer = p->layer->pointwise_regularizer,
                                                          .constraint = p->layer->pointwise_constraint,
                                                          .trainable = p->end.trainable});
}

static mr_output expand(const plan *p, mr_output value, int32_t axis)
{
    if (p->rank == 2) return value;
    return mr_expand_dims(p->graph, value, mr_constant_int32(p->graph, axis));
}

static mr_output each_channel(const plan *p, mr_output input, mr_output filter, const char *name)
{
    mr_graph *graph = p->graph;
    bool first = p->layer->channels_first;
    int64_t items[4], sizes[2] = {p->stride, p->stride};
    mr_dilation dilation = {.rank = 2, .same = p->layer->same, .channels_first = first};
    for (int32_t i = 0; i < 2; i++) {
        bool is_image = p->rank == 2, is_real = is_image || i == 1;
        dilation.kernel[i] = is_image ? p->kernel[i] : i == 1 ? p->kernel[0] : 1;
        dilation.rates[i] = is_real ? p->rate : 1;
    }
    bool is_dilated = p->rate > 1;
    if (is_dilated) input = mr_dilation_begin(graph, &dilation, input);
    mr_output output =
        mr_depthwise_conv2d_native(graph, input, filter, .strides = mr_layer_attr(items, sizes, 2, first),
                                   .padding = p->layer->same && !is_dilated ? MR_SAME : MR_VALID,
                                   .data_format = first ? MR_NCHW : MR_NHWC, .name = name);
    return is_dilated ? mr_dilation_end(graph, &dilation, output) : output;
}

static mr_output build(plan *p, mr_output input, const char *class_name)
{
    mr_graph *graph = p->graph;
    if (!settle(p, input, class_name)) return mr_graph_failed_output(graph);
    mr_variable depthwise = depthwise_kernel(p), pointwise = {0};
    if (!p->is_depthwise) pointwise = pointwise_kernel(p);
    mr_variable bias = mr_layer_bias(graph, &p->end, p->dtype);
    const char *scope = p->is_depthwise ? "depthwise" : "separable_conv2d";
    mr_output image = expand(p, input, 1), output;
    mr_output filter = expand(p, mr_layer_value(graph, depthwise, scope), 0), mix = {0};
    if (!p->is_depthwise) mix = expand(p, mr_layer_value(graph, pointwise, scope), 0);
    mr_graph_push_scope(graph, scope);
    if (p->is_depthwise) {
        output = each_channel(p, image, filter, p->rate > 1 ? "depthwise" : mr_train_own_name(graph));
    } else {
        output = each_channel(p, image, filter, "depthwise");
        output =
            mr_conv2d(graph, output, mix, .strides = MR_INTS(1, 1, 1, 1), .padding = MR_VALID,
                      .data_format = p->layer->channels_first ? MR_NCHW : MR_NHWC, .name = mr_train_own_name(graph));
    }
    mr_graph_pop_scope(graph);
    output = mr_layer_add_bias(graph, output, &p->end, bias);
    if (p->rank == 1) output = mr_squeeze(graph, output, .squeeze_dims = MR_INTS(1));
    return mr_layer_finish(graph, output, &p->end);
}

static mr_output separable(mr_graph *graph, mr_output input, const mr_separable_conv_layer *given, int32_t rank,
                           bool is_depthwise, const char *name)
{
    mr_separable_conv_layer layer;
    if (!MR_LAYER_READ(mr_separable_conv_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    plan p = {.graph = graph, .layer = &layer, .rank = rank, .is_depthwise = is_depthwise};
    mr_layer_begin(graph, layer.name, name, layer.reuse);
    mr_output output = build(&p, input, name);
    mr_graph_pop_variable_scope(graph);
    return output;
}

mr_output mr_layer_separable_conv1d_(mr_graph *graph, mr_output input, const mr_separable_conv_layer *layer)
{
    return separable(graph, input, layer, 1, false, "separable_conv1d");
}

mr_output mr_layer_separable_conv2d_(mr_graph *graph, mr_output input, const mr_separable_conv_layer *layer)
{
    return separable(graph, input, layer, 2, false, "separable_conv2d");
}

mr_output mr_layer_depthwise_conv2d_(mr_graph *graph, mr_output input, const mr_separable_conv_layer *layer)
{
    return separable(graph, input, layer, 2, true, "depthwise_conv2d");
}
