/* Convolutions of 1 to 3 dimensions, and transposed ones, as in tf.compat.v1.layers. */
#include "graph/train/layers.h"
#include <millrace/ops.h>

#include <string.h>

/* A convolution's options, checked. */
typedef struct plan {
    mr_graph *graph;
    const mr_conv_layer *layer;
    int32_t rank;
    int64_t kernel[3], strides[3], rates[3];
    bool is_dilated;
    int64_t channels;
    mr_dtype dtype;
    mr_layer_end end;
} plan;

static bool check_dilation(plan *p)
{
    const mr_conv_layer *layer = p->layer;
    int32_t rate = layer->dilation_rate != 0 || layer->dilation_rates.count > 0 ? layer->dilation_rate : 1;
    if (!mr_layer_sizes(p->graph, "dilation_rate", rate, "dilation_rates", layer->dilation_rates, p->rank, 1, p->rates))
        return false;
    bool is_strided = false;
    for (int32_t i = 0; i < p->rank; i++) {
        p->is_dilated |= p->rates[i] > 1;
        is_strided |= p->strides[i] > 1;
    }
    if (!p->is_dilated || !is_strided) return true;
    (void)mr_graph_fail(p->graph, MR_INVALID_ARGUMENT, "strides and dilation_rate must not both be greater than 1");
    return false;
}

static bool settle(plan *p, mr_output input, mr_conv_layer *layer, const char *class_name)
{
    mr_graph *graph = p->graph;
    int32_t strides = layer->strides_each.count > 0 && layer->strides == 1 ? 0 : layer->strides;
    if (!mr_train_check_required(graph, "filters", layer->filters) ||
        !mr_layer_sizes(graph, "kernel_size", layer->kernel_size, "kernel_sizes", layer->kernel_sizes, p->rank, 0,
                        p->kernel) ||
        !mr_layer_sizes(graph, "strides", strides, "strides_each", layer->strides_each, p->rank, 1, p->strides) ||
        !check_dilation(p) || !mr_layer_settle_decay(graph, layer->weight_decay, &layer->kernel_regularizer))
        return false;
    p->channels = mr_layer_channels(graph, input, p->rank + 2, layer->channels_first ? 1 : p->rank + 1, class_name);
    p->dtype = mr_output_dtype(input);
    p->end = (mr_layer_end){.use_bias = layer->use_bias,
                            .trainable = !layer->not_trainable,
                            .units = layer->filters,
                            .bias_initializer = layer->bias_initializer,
                            .bias_regularizer = layer->bias_regularizer,
                            .bias_constraint = layer->bias_constraint,
                            .activity_regularizer = layer->activity_regularizer,
                            .activation = layer->activation,
                            .rank = p->rank,
                            .channels_first = layer->channels_first};
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* [sizes…, inputs, outputs] */
static mr_variable make_kernel(const plan *p, int64_t inputs, int64_t outputs)
{
    mr_shape shape = {.rank = p->rank + 2};
    memcpy(shape.dims, p->kernel, (size_t)p->rank * sizeof *p->kernel);
    shape.dims[p->rank] = inputs;
    shape.dims[p->rank + 1] = outputs;
    return mr_layer_variable(p->graph, &(mr_layer_weight){.name = "kernel",
                                                          .shape = shape,
                                                          .dtype = p->dtype,
                                                          .initializer = p->layer->kernel_initializer,
                                                          .regularizer = p->layer->kernel_regularizer,
                                                          .constraint = p->layer->kernel_constraint,
                                                          .trainable = !p->layer->not_trainable});
}

/* ---- Convolution ---- */

/* Of 1 dimension: as an image of height 1. */
static mr_output convolve1d(const plan *p, mr_output input, mr_output kernel, bool same)
{
    mr_graph *graph = p->graph;
    int32_t axis = p->layer->channels_first ? -2 : -3;
    int64_t items[4], sizes[2] = {p->strides[0], p->strides[0]};
    mr_output image = mr_expand_dims(graph, input, mr_constant_int32s(graph, MR_SCALAR, &axis, "ExpandDims/dim"));
    mr_output filter =
        mr_expand_dims(graph, kernel, mr_constant_int32s(graph, MR_SCALAR, (int32_t[]){0}, "ExpandDims_1/dim"));
    mr_output output =
        mr_conv2d(graph, image, filter, .strides = mr_layer_attr(items, sizes, 2, p->layer->channels_first),
                  .padding = same ? MR_SAME : MR_VALID, .data_format = p->layer->channels_first ? MR_NCHW : MR_NHWC,
                  .name = mr_train_own_name(graph));
    return mr_squeeze(graph, output, .squeeze_dims = MR_INTS(axis));
}

static mr_output convolve(const plan *p, mr_output input, mr_output kernel, bool same)
{
    mr_graph *graph = p->graph;
    bool first = p->layer->channels_first;
    int64_t items[5];
    mr_ints strides = mr_layer_attr(items, p->strides, p->rank, first);
    if (p->rank == 1) return convolve1d(p, input, kernel, same);
    if (p->rank == 2)
        return mr_conv2d(graph, input, kernel, .strides = strides, .padding = same ? MR_SAME : MR_VALID,
                         .data_format = first ? MR_NCHW : MR_NHWC, .name = mr_train_own_name(graph));
    return mr_conv3d(graph, input, kernel, .strides = strides, .padding = same ? MR_SAME : MR_VALID,
                     .data_format = first ? MR_NCDHW : MR_NDHWC, .name = mr_train_own_name(graph));
}

static mr_output build_conv(mr_graph *graph, mr_output input, mr_conv_layer *layer, int32_t rank)
{
    static const char *const classes[] = {"conv1d", "conv2d", "conv3d"};
    static const char *const operators[] = {"Conv1D", "Conv2D", "Conv3D"};
    plan p = {.graph = graph, .layer = layer, .rank = rank};
    if (!settle(&p, input, layer, classes[rank - 1])) return mr_graph_failed_output(graph);
    mr_variable kernel = make_kernel(&p, p.channels, layer->filters);
    mr_variable bias = mr_layer_bias(graph, &p.end, p.dtype);
    mr_output filter = mr_layer_value(graph, kernel, operators[rank - 1]);
    mr_dilation dilation = {.rank = rank, .same = layer->same, .channels_first = layer->channels_first};
    memcpy(dilation.kernel, p.kernel, sizeof p.kernel);
    memcpy(dilation.rates, p.rates, sizeof p.rates);
    mr_graph_push_scope(graph, operators[rank - 1]);
    mr_output output = p.is_dilated ? mr_dilation_begin(graph, &dilation, input) : input;
    output = convolve(&p, output, filter, layer->same && !p.is_dilated);
    if (p.is_dilated) output = mr_dilation_end(graph, &dilation, output);
    mr_graph_pop_scope(graph);
    return mr_layer_finish(graph, mr_layer_add_bias(graph, output, &p.end, bias), &p.end);
}

static mr_output conv(mr_graph *graph, mr_output input, const mr_conv_layer *given, int32_t rank)
{
    static const char *const names[] = {"conv1d", "conv2d", "conv3d"};
    mr_conv_layer layer;
    if (!MR_LAYER_READ(mr_conv_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_layer_begin(graph, layer.name, names[rank - 1], layer.reuse);
    mr_output output = build_conv(graph, input, &layer, rank);
    mr_graph_pop_variable_scope(graph);
    return output;
}

mr_output mr_layer_conv1d_(mr_graph *graph, mr_output input, const mr_conv_layer *layer)
{
    return conv(graph, input, layer, 1);
}

mr_output mr_layer_conv2d_(mr_graph *graph, mr_output input, const mr_conv_layer *layer)
{
    return conv(graph, input, layer, 2);
}

mr_output mr_layer_conv3d_(mr_graph *graph, mr_output input, const mr_conv_layer *layer)
{
    return conv(graph, input, layer, 3);
}

/* ---- Transposed convolution ---- */

/* The size of the result: that of the input of a convolution with this kernel, stride and padding. */
static int64_t result_size(const plan *p, int32_t i, int64_t size)
{
    int64_t rest = p->layer->same || p->kernel[i] < p->strides[i] ? 0 : p->kernel[i] - p->strides[i];
    return size * p->strides[i] + rest;
}

static mr_output element(mr_graph *graph, mr_output vector, int64_t index)
{
    mr_output begin = mr_constant_ints(graph, MR_INTS(index)), end = mr_constant_ints(graph, MR_INTS(index + 1));
    return mr_strided_slice(graph, vector, begin, end, mr_constant_ints(graph, MR_INTS(1)), .shrink_axis_mask = 1);
}

/* The shape of the result as a vector, from sizes that are known and those that only a run knows. */
static mr_output result_shape(const plan *p, mr_output input, mr_shape *known)
{
    mr_graph *graph = p->graph;
    bool first = p->layer->channels_first;
    mr_shape shape = mr_output_shape(input);
    mr_output sizes = mr_shape_of(graph, input), items[5];
    *known = shape;
    items[0] = element(graph, sizes, 0);
    int32_t at = first ? 1 : p->rank + 1;
    known->dims[at] = p->layer->filters;
    items[at] = mr_constant_int32(graph, p->layer->filters);
    for (int32_t i = 0; i < p->rank; i++) {
        at = 1 + first + i;
        if (shape.dims[at] >= 0) {
            known->dims[at] = result_size(p, i, shape.dims[at]);
            items[at] = mr_constant_int32(graph, (int32_t)known->dims[at]);
            continue;
        }
        mr_output stride = mr_constant_int32(graph, (int32_t)p->strides[i]);
        items[at] = mr_mul(graph, element(graph, sizes, at), stride);
        int32_t rest = (int32_t)result_size(p, i, 0);
        if (rest > 0) items[at] = mr_add_v2(graph, items[at], mr_constant_int32(graph, rest));
    }
    return mr_pack(graph, MR_OUTPUTS_OF(items, p->rank + 2), .name = "stack");
}

static mr_output build_transpose(mr_graph *graph, mr_output input, mr_conv_layer *layer, int32_t rank)
{
    const char *name = rank == 2 ? "conv2d_transpose" : "conv3d_transpose";
    plan p = {.graph = graph, .layer = layer, .rank = rank};
    if (layer->dilation_rate != 0 || layer->dilation_rates.count > 0)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "dilation_rate has no effect for a transposed convolution");
    if (!settle(&p, input, layer, name)) return mr_graph_failed_output(graph);
    mr_variable kernel = make_kernel(&p, layer->filters, p.channels);
    mr_variable bias = mr_layer_bias(graph, &p.end, p.dtype);
    mr_shape known;
    int64_t items[5];
    bool first = layer->channels_first;
    mr_output shape = result_shape(&p, input, &known), filter = mr_layer_value(graph, kernel, name), output;
    mr_ints strides = mr_layer_attr(items, p.strides, rank, first);
    if (rank == 2)
        output = mr_conv2d_backprop_input(graph, shape, filter, input, .strides = strides,
                                          .padding = layer->same ? MR_SAME : MR_VALID,
                                          .data_format = first ? MR_NCHW : MR_NHWC, .name = name);
    else
        output = mr_conv3d_backprop_input_v2(graph, shape, filter, input, .strides = strides,
                                             .padding = layer->same ? MR_SAME : MR_VALID,
                                             .data_format = first ? MR_NCDHW : MR_NDHWC, .name = name);
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(output, known);
    return mr_layer_finish(graph, mr_layer_add_bias(graph, output, &p.end, bias), &p.end);
}

static mr_output transpose(mr_graph *graph, mr_output input, const mr_conv_layer *given, int32_t rank)
{
    mr_conv_layer layer;
    if (!MR_LAYER_READ(mr_conv_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_layer_begin(graph, layer.name, rank == 2 ? "conv2d_transpose" : "conv3d_transpose", layer.reuse);
    mr_output output = build_transpose(graph, input, &layer, rank);
    mr_graph_pop_variable_scope(graph);
    return output;
}

mr_output mr_layer_conv2d_transpose_(mr_graph *graph, mr_output input, const mr_conv_layer *layer)
{
    return transpose(graph, input, layer, 2);
}

mr_output mr_layer_conv3d_transpose_(mr_graph *graph, mr_output input, const mr_conv_layer *layer)
{
    return transpose(graph, input, layer, 3);
}
