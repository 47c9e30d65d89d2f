/* Conv2D and its gradients: checks attributes and shapes. The arithmetic is in conv_fast.c and conv_plain.c. */
#include "kernels/conv.h"
#include "kernels/gemm.h"
#include <inttypes.h>
#include <string.h>

/* The error of a window that moves over the batch or the channels. */
static mr_status not_spatial(const mr_kernel_node *node, const char *name, bool batch, mr_error *error)
{
    if (strstr(node->op, "Pool"))
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "%s",
                              batch ? "Pooling is not yet supported on the batch dimension."
                                    : "Non-spatial pooling is not yet supported.");
    bool is_invalid = strstr(node->op, "Depthwise") || strcmp(node->op, "Conv2DBackpropFilter") == 0;
    return mr_kernel_fail(node, error, is_invalid ? MR_INVALID_ARGUMENT : MR_UNIMPLEMENTED,
                          "Current implementation does not yet support %s in the batch and depth dimensions.", name);
}

/* Reads a list of four ints in NHWC or NCHW order: the values for height and width; batch and channels must be 1. */
static mr_status read_pair(const mr_kernel_node *node, const char *name, bool nchw, bool optional, int64_t *y,
                           int64_t *x, mr_error *error)
{
    int64_t values[4];
    int32_t count;
    *y = *x = 1;
    if (optional && mr_attrs_find(node->attrs, name) == nullptr) return MR_OK;
    MR_TRY(mr_attr_get_ints(node->attrs, name, values, 4, &count, error));
    if (count == 0 && optional) return MR_OK;
    int height = nchw ? 2 : 1, channel = nchw ? 1 : 3;
    if (count == 4 && (values[0] != 1 || values[channel] != 1)) return not_spatial(node, name, values[0] != 1, error);
    if (count != 4 || values[height] < 1 || values[height + 1] < 1 || values[height] > INT32_MAX ||
        values[height + 1] > INT32_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s must be 4 positive ints, 1 for batch and channels",
                              name);
    *y = values[height];
    *x = values[height + 1];
    return MR_OK;
}

mr_status mr_window_attrs_read(const mr_kernel_node *node, mr_window_attrs *attrs, mr_error *error)
{
    *attrs = (mr_window_attrs){0};
    mr_string format = mr_attr_string_or(node->attrs, "data_format", "NHWC"), padding;
    attrs->nchw = mr_string_equal(format, MR_STR("NCHW"));
    if (!attrs->nchw && !mr_string_equal(format, MR_STR("NHWC")))
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "data_format %.*s", (int)MR_MIN(format.size_bytes, 32u),
                              format.data);
    bool strides_are_input = mr_attrs_find(node->attrs, "strides") == nullptr;
    MR_TRY(read_pair(node, "strides", attrs->nchw, strides_are_input, &attrs->stride_y, &attrs->stride_x, error));
    MR_TRY(read_pair(node, "dilations", attrs->nchw, true, &attrs->dilation_y, &attrs->dilation_x, error));
    MR_TRY(read_pair(node, "ksize", attrs->nchw, true, &attrs->window_y, &attrs->window_x, error));
    MR_TRY(mr_attr_get_string(node->attrs, "padding", &padding, error));
    attrs->padding = mr_string_equal(padding, MR_STR("SAME"))    ? MR_PADDING_SAME
                     : mr_string_equal(padding, MR_STR("VALID")) ? MR_PADDING_VALID
                                                                 : MR_PADDING_EXPLICIT;
    if (attrs->padding == MR_PADDING_EXPLICIT) {
        int64_t pads[8];
        int32_t count;
        MR_TRY(mr_attr_get_ints(node->attrs, "explicit_paddings", pads, 8, &count, error));
        if (count != 8) return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "explicit_paddings must be 8 ints");
        for (int i = 0; i < 8; i++)
            if (pads[i] < 0 || pads[i] > INT32_MAX)
                return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "explicit padding %d is %" PRId64, i, pads[i]);
        int channel = attrs->nchw ? 2 : 6;
        if (pads[0] != 0 || pads[1] != 0 || pads[channel] != 0 || pads[channel + 1] != 0)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                                  "explicit_paddings must be 0 for batch and channels");
        memcpy(attrs->pads, pads + (attrs->nchw ? 4 : 2), sizeof attrs->pads);
    }
    return MR_OK;
}

mr_status mr_window_geometry(const mr_kernel_node *node, const mr_window_attrs *attrs, int dimension, int64_t input,
                             int64_t window, int64_t *output, int64_t *before, int64_t *after, mr_error *error)
{
    int64_t stride = dimension == 0 ? attrs->stride_y : attrs->stride_x;
    int64_t dilation = dimension == 0 ? attrs->dilation_y : attrs->dilation_x, reach;
    if (window < 1 || __builtin_mul_overflow(window - 1, dilation, &reach) || reach >= INT32_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "invalid window size %" PRId64, window);
    if (input > INT32_MAX) /* TensorFlow's limit */
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "dimension %d of %" PRId64 " elements is too large",
                              dimension, input);
    reach++;
    *before = *after = 0;
    if (attrs->padding == MR_PADDING_SAME) {
        *output = (input + stride - 1) / stride;
        int64_t missing = MR_MAX(0, (*output - 1) * stride + reach - input);
        *before = missing / 2;
        *after = missing - *before;
        return MR_OK;
    }
    if (attrs->padding == MR_PADDING_EXPLICIT) {
        *before = attrs->pads[2 * dimension];
        *after = attrs->pads[2 * dimension + 1];
    }
    *output = (input + *before + *after - reach + stride) / stride; /* TensorFlow's formula; the result may be 0 */
    if (*output < 0)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Computed output size would be negative: %" PRId64 " [input_size: %" PRId64
                              ", effective_filter_size: %" PRId64 ", stride: %" PRId64 "]",
                              *output, input, reach, stride);
    return MR_OK;
}

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    return mr_window_attrs_read(node, prepared, error);
}

static int64_t size_of(const mr_window_attrs *attrs, mr_shape shape, char dimension)
{
    switch (dimension) {
    case 'y':
        return shape.dims[attrs->nchw ? 2 : 1];
    case 'x':
        return shape.dims[attrs->nchw ? 3 : 2];
    default:
        return shape.dims[attrs->nchw ? 1 : 3];
    }
}

mr_status mr_conv_geometry(const mr_kernel_node *node, const mr_window_attrs *attrs, mr_shape input, mr_shape filter,
                           mr_conv *v, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    bool depthwise = strncmp(node->op, "Depthwise", 9) == 0; /* which TensorFlow words differently */
    if (input.rank != 4)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%sinput must be 4-dimensional%s%s",
                              depthwise ? "" : "convolution ", depthwise ? "" : ": ",
                              mr_shape_text(input, text, sizeof text));
    if (filter.rank != 4)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%sfilter must be 4-dimensional: %s",
                              depthwise ? "" : "convolution ", mr_shape_text(filter, text, sizeof text));
    *v = (mr_conv){.batch = input.dims[0],
                   .in_height = size_of(attrs, input, 'y'),
                   .in_width = size_of(attrs, input, 'x'),
                   .in_channels = size_of(attrs, input, 'c'),
                   .filter_height = filter.dims[0],
                   .filter_width = filter.dims[1],
                   .out_channels = filter.dims[3],
                   .stride_y = attrs->stride_y,
                   .stride_x = attrs->stride_x,
                   .dilation_y = attrs->dilation_y,
                   .dilation_x = attrs->dilation_x,
                   .nchw = attrs->nchw};
    if (filter.dims[2] == 0 && !depthwise)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "filter depth must be stricly positive, got 0");
    if (!depthwise && filter.dims[2] != v->in_channels && v->in_channels % filter.dims[2] == 0 && v->in_channels > 0)
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED,
                              "a convolution in groups is not supported: the input's depth is %" PRId64
                              ", the filter's %" PRId64,
                              v->in_channels, filter.dims[2]);
    if (filter.dims[2] != v->in_channels)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s: %" PRId64 " vs %" PRId64,
                              depthwise ? "input and filter must have the same depth"
                                        : "input depth must be evenly divisible by filter depth",
                              v->in_channels, filter.dims[2]);
    if (v->in_channels == 0)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "filter depth must be stricly positive, got 0");
    MR_TRY(mr_window_geometry(node, attrs, 0, v->in_height, v->filter_height, &v->out_height, &v->pad_top,
                              &v->pad_bottom, error));
    return mr_window_geometry(node, attrs, 1, v->in_width, v->filter_width, &v->out_width, &v->pad_left, &v->pad_right,
                              error);
}

static mr_shape output_shape(const mr_conv *v)
{
    return v->nchw ? MR_SHAPE(v->batch, v->out_channels, v->out_height, v->out_width)
                   : MR_SHAPE(v->batch, v->out_height, v->out_width, v->out_channels);
}

static const char *label_of(const mr_kernel_node *node)
{
    static const struct {
        const char *op, *label;
    } labels[] = {{"Conv2DBackpropInput", "Conv2DCustomBackpropInput"},
                  {"Conv2DBackpropFilter", "Conv2DCustomBackpropFilter"},
                  {"DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2DBackpropInput"},
                  {"DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2DBackpropFilter"}};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        if (strcmp(node->op, labels[i].op) == 0) return labels[i].label;
    return node->op;
}

#define FAIL(format, ...)                                                                                              \
    mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s: " format, label_of(node) __VA_OPT__(, ) __VA_ARGS__)

mr_status mr_conv_check_sizes(const mr_kernel_call *call, int input, mr_error *error)
{
    const mr_kernel_node *node = call->node;
    mr_shape shape = call->inputs[input].shape;
    bool depthwise = strncmp(node->op, "Depthwise", 9) == 0;
    if (shape.rank != 1 && input == 0) /* the same words for both operators */
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Conv2DBackpropInput: input_sizes input must be 1-dim, not %d", shape.rank);
    if (shape.rank != 1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s: filter_sizes input must be 1-dim, not %d",
                              depthwise ? "Conv2DBackpropFilter" : label_of(node), shape.rank);
    if (input == 0 && !depthwise && shape.dims[0] != 4 && shape.dims[0] != 2)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: "
                              "%" PRId64,
                              shape.dims[0]);
    if (input == 0 && !depthwise && shape.dims[0] == 2) {
        const int32_t *sizes = mr_tensor_int32s(&call->inputs[0]);
        if (sizes[0] < 0 || sizes[1] < 0)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                                  "Conv2DBackpropInput: elements of input_sizes must be >= 0, not %dx%d", sizes[0],
                                  sizes[1]);
    }
    for (int64_t i = 0; i < shape.dims[0] && depthwise && call->inputs[input].dtype == MR_INT32; i++)
        if (mr_tensor_int32s(&call->inputs[input])[i] < 0)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Dimension %" PRId64 " of %s_sizes must be >= 0", i,
                                  input == 0 ? "input" : "filter");
    return MR_OK;
}

mr_status mr_conv_check_backprop(const mr_kernel_node *node, const mr_window_attrs *attrs, mr_shape input,
                                 mr_shape filter, mr_shape gradient, mr_error *error)
{
    bool depthwise = strncmp(node->op, "Depthwise", 9) == 0;
    if (input.rank != 4) return FAIL("input must be 4-dimensional");
    if (filter.rank != 4) return FAIL("filter must be 4-dimensional");
    if (gradient.rank != 4) return FAIL("out_backprop must be 4-dimensional");
    int64_t in = size_of(attrs, input, 'c'), taken = filter.dims[2], out = size_of(attrs, gradient, 'c'), wide;
    if (input.dims[0] != gradient.dims[0] && depthwise)
        return FAIL("input and out_backprop must have the same batch size");
    if (input.dims[0] != gradient.dims[0])
        return FAIL("input and out_backprop must have the same batch size. Input batch: %" PRId64
                    ", outbackprop batch: %" PRId64 ", batch_dim: 0",
                    input.dims[0], gradient.dims[0]);
    if (depthwise) {
        if (taken != in) return FAIL("input and filter must have the same in_depth");
        if (__builtin_mul_overflow(in, filter.dims[3], &wide) || wide != out)
            return FAIL("depth_multiplier * in_depth not equal to out_depth");
        return MR_OK;
    }
    if (taken <= 0) return FAIL("filter depth must be strictly greated than zero");
    if (in % taken != 0) return FAIL("input depth must be evenly divisible by filter depth");
    if (filter.dims[3] != out) return FAIL("filter and out_backprop must have the same out_depth");
    return MR_OK;
}

static mr_status check_size(const mr_kernel_node *node, int dimension, int64_t actual, int64_t computed, int64_t input,
                            int64_t filter, int64_t stride, int64_t dilation, mr_error *error)
{
    if (actual == computed) return MR_OK;
    if (strncmp(node->op, "Depthwise", 9) == 0)
        return FAIL("Number of %s of out_backprop doesn't match computed: actual = %" PRId64 ", computed = %" PRId64,
                    dimension == 0 ? "rows" : "cols", actual, computed);
    return FAIL("Size of out_backprop doesn't match computed: actual = %" PRId64 ", computed = %" PRId64
                " spatial_dim: %d input: %" PRId64 " filter: %" PRId64 " output: %" PRId64 " stride: %" PRId64
                " dilation: %" PRId64,
                actual, computed, dimension + 1, input, filter, actual, stride, dilation);
}

mr_status mr_conv_check_gradient(const mr_kernel_node *node, const mr_conv *v, mr_shape gradient, mr_error *error)
{
    mr_shape expected = output_shape(v);
    if (strncmp(node->op, "Depthwise", 9) == 0) expected.dims[3] *= v->in_channels;
    if (mr_shape_equal(gradient, expected)) return MR_OK;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    int height = v->nchw ? 2 : 1;
    if (gradient.rank == 4) {
        MR_TRY(check_size(node, 0, gradient.dims[height], v->out_height, v->in_height, v->filter_height, v->stride_y,
                          v->dilation_y, error));
        MR_TRY(check_size(node, 1, gradient.dims[height + 1], v->out_width, v->in_width, v->filter_width, v->stride_x,
                          v->dilation_x, error));
    }
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                          "out_backprop has shape %s, but the convolution's output has shape %s",
                          mr_shape_text(gradient, a, sizeof a), mr_shape_text(expected, b, sizeof b));
}

/* The frames of conv_fast.c contain the padding around an image, so the padding must be smaller than a window; explicit
 * padding can have any size. */
static bool is_fast(const mr_kernel_call *call, const mr_conv *v)
{
    bool is_padded_little =
        MR_MAX(v->pad_top, v->pad_bottom) < v->filter_height && MR_MAX(v->pad_left, v->pad_right) < v->filter_width;
    return call->node->output_dtypes[0] == MR_FLOAT && !v->nchw && v->dilation_y == 1 && v->dilation_x == 1 &&
           is_padded_little;
}

static int thread_count(const mr_kernel_call *call)
{
    return call->device->pool != nullptr ? mr_pool_thread_count(call->device->pool) : 1;
}

static bool finish_empty(mr_kernel_call *call, const mr_conv *v)
{
    bool empty = mr_tensor_count(&call->outputs[0]) == 0;
    const int64_t sizes[] = {v->batch,        v->in_height,    v->in_width,   v->in_channels, v->filter_height,
                             v->filter_width, v->out_channels, v->out_height, v->out_width};
    bool is_empty_sum = false;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) is_empty_sum |= sizes[i] == 0;
    if (is_empty_sum && !empty) memset(call->outputs[0].data, 0, mr_tensor_size_bytes(&call->outputs[0]));
    return empty || is_empty_sum;
}

static mr_status conv2d(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(conv2d);
    const mr_tensor *input = &call->inputs[0], *filter = &call->inputs[1];
    mr_conv v;
    mr_buffer *buffer;
    mr_conv_scratch scratch = {.threads = thread_count(call)};
    mr_shape taps = filter->shape;
    bool has_outputs = taps.rank == 4 && taps.dims[3] > 0 && mr_tensor_count(input) > 0;
    if (has_outputs && taps.dims[2] != 0 && mr_shape_count(taps) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "filter must not have zero elements (i.e. all dimensions must be non-zero)");
    MR_TRY(mr_conv_geometry(call->node, call->prepared, input->shape, filter->shape, &v, error));
    MR_TRY(mr_kernel_output(call, 0, output_shape(&v), error));
    if (finish_empty(call, &v)) return MR_OK;
    void *output = call->outputs[0].data;
    mr_pool *pool = call->device->pool;
    if (!is_fast(call, &v)) {
        mr_conv_forward_plain(&v, input->dtype, input->data, filter->data, output, pool);
        return MR_OK;
    }
    MR_TRY(mr_scratch_new(call, mr_conv_forward_scratch(&v, scratch.threads), &buffer, &scratch.floats, error));
    mr_conv_forward(&v, input->data, filter->data, output, scratch, pool);
    mr_buffer_unref(buffer);
    return MR_OK;
}

mr_status mr_conv_input_shape(const mr_kernel_call *call, const mr_window_attrs *attrs, mr_shape *shape,
                              mr_error *error)
{
    const mr_shape filter = call->inputs[1].shape, gradient = call->inputs[2].shape;
    MR_TRY(mr_kernel_shape(call, 0, shape, error));
    if (shape->rank != 2 || filter.rank != 4 || gradient.rank != 4) return MR_OK;
    const int64_t batch = gradient.dims[0], depth = filter.dims[2], height = shape->dims[0], width = shape->dims[1];
    *shape = attrs->nchw ? MR_SHAPE(batch, depth, height, width) : MR_SHAPE(batch, height, width, depth);
    return MR_OK;
}

static mr_status conv2d_backprop_input(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(conv2d_backprop_input);
    const mr_tensor *filter = &call->inputs[1], *gradient = &call->inputs[2];
    mr_conv v;
    mr_shape shape;
    mr_buffer *buffer;
    mr_conv_scratch scratch = {.threads = thread_count(call)};
    MR_TRY(mr_conv_check_sizes(call, 0, error));
    MR_TRY(mr_conv_input_shape(call, call->prepared, &shape, error));
    MR_TRY(mr_conv_check_backprop(call->node, call->prepared, shape, filter->shape, gradient->shape, error));
    MR_TRY(mr_conv_geometry(call->node, call->prepared, shape, filter->shape, &v, error));
    MR_TRY(mr_conv_check_gradient(call->node, &v, gradient->shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (finish_empty(call, &v)) return MR_OK;
    void *output = call->outputs[0].data;
    mr_pool *pool = call->device->pool;
    if (!is_fast(call, &v)) {
        mr_conv_backward_input_plain(&v, filter->dtype, filter->data, gradient->data, output, pool);
        return MR_OK;
    }
    MR_TRY(mr_scratch_new(call, mr_conv_backward_input_scratch(&v, scratch.threads), &buffer, &scratch.floats, error));
    mr_conv_backward_input(&v, filter->data, gradient->data, output, scratch, pool);
    mr_buffer_unref(buffer);
    return MR_OK;
}

static mr_status conv2d_backprop_filter(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(conv2d_backprop_filter);
    const mr_tensor *input = &call->inputs[0], *gradient = &call->inputs[2];
    mr_conv v;
    mr_shape shape;
    mr_buffer *buffer;
    mr_conv_scratch scratch = {.threads = thread_count(call)};
    MR_TRY(mr_conv_check_sizes(call, 1, error));
    MR_TRY(mr_kernel_shape(call, 1, &shape, error));
    MR_TRY(mr_conv_check_backprop(call->node, call->prepared, input->shape, shape, gradient->shape, error));
    MR_TRY(mr_conv_geometry(call->node, call->prepared, input->shape, shape, &v, error));
    MR_TRY(mr_conv_check_gradient(call->node, &v, gradient->shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (finish_empty(call, &v)) return MR_OK;
    void *output = call->outputs[0].data;
    mr_pool *pool = call->device->pool;
    if (!is_fast(call, &v)) {
        mr_conv_backward_filter_plain(&v, input->dtype, input->data, gradient->data, output, pool);
        return MR_OK;
    }
    MR_TRY(mr_scratch_new(call, mr_conv_backward_filter_scratch(&v, scratch.threads), &buffer, &scratch.floats, error));
    mr_conv_backward_filter(&v, input->data, gradient->data, output, scratch, pool);
    mr_buffer_unref(buffer);
    return MR_OK;
}

#define ROW(name, function, host)                                                                                      \
    {.op = name,                                                                                                       \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(mr_window_attrs),                                                                   \
     .prepare = prepare,                                                                                               \
     .host_inputs = host}
static const mr_kernel kernels[] = {
    ROW("Conv2D", conv2d, 0),
    ROW("Conv2DBackpropInput", conv2d_backprop_input, 1 << 0),
    ROW("Conv2DBackpropFilter", conv2d_backprop_filter, 1 << 1),
};
MR_KERNEL_FAMILY(conv);
