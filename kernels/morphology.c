/* Dilation2D, the maximum of input + filter over a window, and its gradients. */
#include "kernels/conv.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct dilation {
    int64_t batch, in_height, in_width, channels, filter_height, filter_width, out_height, out_width;
    int64_t stride_y, stride_x, rate_y, rate_x, pad_top, pad_left;
    const void *input, *filter, *gradient;
    void *target;
} dilation;

static mr_status read_pair(const mr_kernel_node *node, const char *name, const char *what, int64_t *y, int64_t *x,
                           mr_error *error)
{
    int64_t values[4];
    int32_t count;
    MR_TRY(mr_attr_get_ints(node->attrs, name, values, 4, &count, error));
    if (count != 4) return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s field must specify 4 dimensions", name);
    if (values[0] != 1 || values[3] != 1)
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "%s is only supported across spatial dimensions.", what);
    if (values[1] < 1 || values[2] < 1 || values[1] > INT32_MAX || values[2] > INT32_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s must be positive", name);
    *y = values[1];
    *x = values[2];
    return MR_OK;
}

/* The rates are the window's dilations. */
static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_window_attrs *attrs = prepared;
    mr_string padding;
    *attrs = (mr_window_attrs){0};
    MR_TRY(read_pair(node, "strides", "Stride", &attrs->stride_y, &attrs->stride_x, error));
    MR_TRY(read_pair(node, "rates", "Rate", &attrs->dilation_y, &attrs->dilation_x, error));
    MR_TRY(mr_attr_get_string(node->attrs, "padding", &padding, error));
    attrs->padding = mr_string_equal(padding, MR_STR("SAME")) ? MR_PADDING_SAME : MR_PADDING_VALID;
    return MR_OK;
}

static mr_status geometry(const mr_kernel_call *call, dilation *d, mr_error *error)
{
    const mr_window_attrs *attrs = call->prepared;
    mr_shape input = call->inputs[0].shape, filter = call->inputs[1].shape;
    int64_t after;
    if (input.rank != 4) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4-dimensional");
    if (filter.rank != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filter must be 3-dimensional: ");
    if (input.dims[3] != filter.dims[2])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input and filter must have the same depth: %" PRId64 " vs %" PRId64, input.dims[3],
                              filter.dims[2]);
    *d = (dilation){.batch = input.dims[0],
                    .in_height = input.dims[1],
                    .in_width = input.dims[2],
                    .channels = input.dims[3],
                    .filter_height = filter.dims[0],
                    .filter_width = filter.dims[1],
                    .stride_y = attrs->stride_y,
                    .stride_x = attrs->stride_x,
                    .rate_y = attrs->dilation_y,
                    .rate_x = attrs->dilation_x,
                    .input = call->inputs[0].data,
                    .filter = call->inputs[1].data};
    MR_TRY(mr_window_geometry(call->node, attrs, 0, d->in_height, d->filter_height, &d->out_height, &d->pad_top, &after,
                              error));
    return mr_window_geometry(call->node, attrs, 1, d->in_width, d->filter_width, &d->out_width, &d->pad_left, &after,
                              error);
}

/* Sets most, and in_at and filter_at: the first position of the maximum, or -1 if no position is inside the input.
 * sum_type: unsigned for integers, whose sums wrap. */
#define FIND(type, sum_type, lowest)                                                                                   \
    int64_t c = out % d->channels, ox = out / d->channels % d->out_width;                                              \
    int64_t oy = out / d->channels / d->out_width % d->out_height;                                                     \
    int64_t n = out / d->channels / d->out_width / d->out_height, in_at = -1, filter_at = -1;                          \
    type most = lowest;                                                                                                \
    for (int64_t fy = 0; fy < d->filter_height; fy++)                                                                  \
        for (int64_t fx = 0; fx < d->filter_width; fx++) {                                                             \
            int64_t y = oy * d->stride_y - d->pad_top + fy * d->rate_y;                                                \
            int64_t x = ox * d->stride_x - d->pad_left + fx * d->rate_x;                                               \
            if (y < 0 || y >= d->in_height || x < 0 || x >= d->in_width) continue;                                     \
            int64_t at = ((n * d->in_height + y) * d->in_width + x) * d->channels + c;                                 \
            int64_t by = (fy * d->filter_width + fx) * d->channels + c;                                                \
            type value = (type)(sum_type)(((const sum_type *)d->input)[at] + ((const sum_type *)d->filter)[by]);       \
            if (!(value > most)) continue;                                                                             \
            most = value;                                                                                              \
            in_at = at;                                                                                                \
            filter_at = by;                                                                                            \
        }

/* Without a value above the lowest one, TensorFlow takes the window's first position, clipped at the low end. */
#define LOOPS(dtype, type, sum_type, suffix, lowest)                                                                   \
    static void forward_##suffix(void *context, int64_t begin, int64_t end)                                            \
    {                                                                                                                  \
        const dilation *d = context;                                                                                   \
        int64_t image = d->out_height * d->out_width * d->channels;                                                    \
        for (int64_t out = begin * image; out < end * image; out++) {                                                  \
            FIND(type, sum_type, lowest)                                                                               \
            (void)in_at;                                                                                               \
            (void)filter_at;                                                                                           \
            ((type *)d->target)[out] = most;                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void to_input_##suffix(void *context, int64_t begin, int64_t end)                                           \
    {                                                                                                                  \
        const dilation *d = context;                                                                                   \
        sum_type *target = d->target;                                                                                  \
        int64_t image = d->out_height * d->out_width * d->channels;                                                    \
        for (int64_t out = begin * image; out < end * image; out++) {                                                  \
            FIND(type, sum_type, lowest)                                                                               \
            (void)filter_at;                                                                                           \
            int64_t y = MR_MAX(0, oy * d->stride_y - d->pad_top), x = MR_MAX(0, ox * d->stride_x - d->pad_left);       \
            if (in_at < 0 && y < d->in_height && x < d->in_width)                                                      \
                in_at = ((n * d->in_height + y) * d->in_width + x) * d->channels + c;                                  \
            if (in_at >= 0) target[in_at] = (sum_type)(target[in_at] + ((const sum_type *)d->gradient)[out]);          \
        }                                                                                                              \
    }                                                                                                                  \
    static void to_filter_##suffix(void *context, int64_t begin, int64_t end)                                          \
    {                                                                                                                  \
        const dilation *d = context;                                                                                   \
        sum_type *target = d->target;                                                                                  \
        int64_t image = d->out_height * d->out_width * d->channels;                                                    \
        for (int64_t out = begin * image; out < end * image; out++) {                                                  \
            FIND(type, sum_type, lowest)                                                                               \
            (void)in_at;                                                                                               \
            if (filter_at < 0) filter_at = c;                                                                          \
            target[filter_at] = (sum_type)(target[filter_at] + ((const sum_type *)d->gradient)[out]);                  \
        }                                                                                                              \
    }
#define EACH_DILATED(X)                                                                                                \
    X(MR_FLOAT, float, float, float, -__FLT_MAX__)                                                                     \
    X(MR_DOUBLE, double, double, double, -__DBL_MAX__)                                                                 \
    X(MR_INT32, int32_t, uint32_t, int32, INT32_MIN)                                                                   \
    X(MR_INT64, int64_t, uint64_t, int64, INT64_MIN)                                                                   \
    X(MR_INT16, int16_t, uint16_t, int16, INT16_MIN)                                                                   \
    X(MR_INT8, int8_t, uint8_t, int8, INT8_MIN)                                                                        \
    X(MR_UINT8, uint8_t, uint8_t, uint8, 0)                                                                            \
    X(MR_UINT16, uint16_t, uint16_t, uint16, 0)                                                                        \
    X(MR_UINT32, uint32_t, uint32_t, uint32, 0) X(MR_UINT64, uint64_t, uint64_t, uint64, 0)
EACH_DILATED(LOOPS)
#define LOOP_ROW(dtype, type, sum_type, suffix, lowest)                                                                \
    [dtype] = {forward_##suffix, to_input_##suffix, to_filter_##suffix},
static const mr_pool_body loops[MR_DTYPE_COUNT][3] = {EACH_DILATED(LOOP_ROW)};

static mr_status dilation2d(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(dilation2d);
    dilation d;
    MR_TRY(geometry(call, &d, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(d.batch, d.out_height, d.out_width, d.channels), error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    d.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, d.batch, 1, loops[call->inputs[0].dtype][0], &d);
    return MR_OK;
}

static mr_status gradient(mr_kernel_call *call, int which, mr_error *error)
{
    dilation d;
    mr_shape given = call->inputs[2].shape;
    MR_TRY(geometry(call, &d, error));
    if (!mr_shape_equal(given, MR_SHAPE(d.batch, d.out_height, d.out_width, d.channels)))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "out_backprop has incompatible size.");
    MR_TRY(mr_kernel_output(call, 0, call->inputs[which - 1].shape, error));
    mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) == 0) return MR_OK;
    memset(output->data, 0, mr_tensor_size_bytes(output));
    if (mr_tensor_count(&call->inputs[2]) == 0) return MR_OK;
    d.gradient = call->inputs[2].data;
    d.target = output->data;
    if (which == 1)
        mr_pool_for(call->device->pool, d.batch, 1, loops[output->dtype][1], &d);
    else
        loops[output->dtype][2](&d, 0, d.batch); /* the images share one sum */
    return MR_OK;
}

static mr_status backprop_input(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(backprop_input);
    return gradient(call, 1, error);
}

static mr_status backprop_filter(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(backprop_filter);
    return gradient(call, 2, error);
}

#define ROW(name, function)                                                                                            \
    {.op = name, .run = function, .prepared_size_bytes = sizeof(mr_window_attrs), .prepare = prepare}
static const mr_kernel kernels[] = {
    ROW("Dilation2D", dilation2d),
    ROW("Dilation2DBackpropInput", backprop_input),
    ROW("Dilation2DBackpropFilter", backprop_filter),
};
MR_KERNEL_FAMILY(morphology);
