/* DepthwiseConv2dNative and its gradients, in NHWC. Channel c of the input produces the output channels
 * [c · multiplier, (c + 1) · multiplier). */
#include "kernels/conv.h"
#include <string.h>

typedef struct depthwise {
    mr_conv conv; /* out_channels is the multiplier */
    const void *input, *filter, *gradient;
    void *target;
} depthwise;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_window_attrs *attrs = prepared;
    MR_TRY(mr_window_attrs_read(node, attrs, error));
    if (attrs->nchw)
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED,
                              "Depthwise convolution on CPU is only supported for NHWC format");
    if (attrs->stride_y != attrs->stride_x)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Current implementation only supports equal length strides in the row and column "
                              "dimensions.");
    return MR_OK;
}

static mr_status geometry(const mr_kernel_call *call, mr_shape input, mr_shape filter, depthwise *d, mr_error *error)
{
    int64_t channels;
    *d = (depthwise){0};
    MR_TRY(mr_conv_geometry(call->node, call->prepared, input, filter, &d->conv, error));
    if (__builtin_mul_overflow(d->conv.in_channels, d->conv.out_channels, &channels))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "there are too many output channels");
    return MR_OK;
}

static mr_shape output_shape(const mr_conv *v)
{
    return MR_SHAPE(v->batch, v->out_height, v->out_width, v->in_channels * v->out_channels);
}

/* Executes body with iy, ix, fy, fx for each tap of the window of output (oy, ox) that is inside the input. */
#define EACH_TAP(body)                                                                                                 \
    for (int64_t fy = 0; fy < v->filter_height; fy++)                                                                  \
        for (int64_t fx = 0; fx < v->filter_width; fx++) {                                                             \
            int64_t iy = oy * v->stride_y - v->pad_top + fy * v->dilation_y;                                           \
            int64_t ix = ox * v->stride_x - v->pad_left + fx * v->dilation_x;                                          \
            if (iy < 0 || iy >= v->in_height || ix < 0 || ix >= v->in_width) continue;                                 \
            body                                                                                                       \
        }

#define LOOPS(type, suffix)                                                                                            \
    static void forward_##suffix(void *context, int64_t begin, int64_t end)                                            \
    {                                                                                                                  \
        const depthwise *d = context;                                                                                  \
        const mr_conv *v = &d->conv;                                                                                   \
        const int64_t channels = v->in_channels, multiplier = v->out_channels, wide = channels * multiplier;           \
        for (int64_t row = begin; row < end; row++) {                                                                  \
            int64_t n = row / v->out_height, oy = row % v->out_height;                                                 \
            for (int64_t ox = 0; ox < v->out_width; ox++) {                                                            \
                type *to = (type *)d->target + (row * v->out_width + ox) * wide;                                       \
                memset(to, 0, (size_t)wide * sizeof(type));                                                            \
                EACH_TAP(const type *from =                                                                            \
                             (const type *)d->input + ((n * v->in_height + iy) * v->in_width + ix) * channels;         \
                         const type *by = (const type *)d->filter + (fy * v->filter_width + fx) * wide;                \
                         if (multiplier == 1) for (int64_t c = 0; c < channels; c++) to[c] += from[c] * by[c];         \
                         else for (int64_t c = 0; c < channels; c++) for (int64_t q = 0; q < multiplier; q++)          \
                             to[c * multiplier + q] += from[c] * by[c * multiplier + q];)                              \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void backward_input_##suffix(void *context, int64_t begin, int64_t end)                                     \
    {                                                                                                                  \
        const depthwise *d = context;                                                                                  \
        const mr_conv *v = &d->conv;                                                                                   \
        const int64_t channels = v->in_channels, multiplier = v->out_channels, wide = channels * multiplier;           \
        const int64_t image = v->in_height * v->in_width * channels;                                                   \
        memset((type *)d->target + begin * image, 0, (size_t)((end - begin) * image) * sizeof(type));                  \
        for (int64_t n = begin; n < end; n++)                                                                          \
            for (int64_t oy = 0; oy < v->out_height; oy++)                                                             \
                for (int64_t ox = 0; ox < v->out_width; ox++) {                                                        \
                    const type *from =                                                                                 \
                        (const type *)d->gradient + ((n * v->out_height + oy) * v->out_width + ox) * wide;             \
                    EACH_TAP(type *to = (type *)d->target + ((n * v->in_height + iy) * v->in_width + ix) * channels;   \
                             const type *by = (const type *)d->filter + (fy * v->filter_width + fx) * wide;            \
                             for (int64_t c = 0; c < channels; c++) for (int64_t q = 0; q < multiplier; q++) to[c] +=  \
                             from[c * multiplier + q] * by[c * multiplier + q];)                                       \
                }                                                                                                      \
    }                                                                                                                  \
    /* One position of the filter at a time. */                                                                        \
    static void backward_filter_##suffix(void *context, int64_t begin, int64_t end)                                    \
    {                                                                                                                  \
        const depthwise *d = context;                                                                                  \
        const mr_conv *v = &d->conv;                                                                                   \
        const int64_t channels = v->in_channels, multiplier = v->out_channels, wide = channels * multiplier;           \
        for (int64_t tap = begin; tap < end; tap++) {                                                                  \
            type *to = (type *)d->target + tap * wide;                                                                 \
            memset(to, 0, (size_t)wide * sizeof(type));                                                                \
            for (int64_t row = 0; row < v->batch * v->out_height; row++) {                                             \
                int64_t n = row / v->out_height;                                                                       \
                int64_t iy = row % v->out_height * v->stride_y - v->pad_top + tap / v->filter_width * v->dilation_y;   \
                if (iy < 0 || iy >= v->in_height) continue;                                                            \
                for (int64_t ox = 0; ox < v->out_width; ox++) {                                                        \
                    int64_t ix = ox * v->stride_x - v->pad_left + tap % v->filter_width * v->dilation_x;               \
                    if (ix < 0 || ix >= v->in_width) continue;                                                         \
                    const type *from =                                                                                 \
                        (const type *)d->input + ((n * v->in_height + iy) * v->in_width + ix) * channels;              \
                    const type *by = (const type *)d->gradient + (row * v->out_width + ox) * wide;                     \
                    for (int64_t c = 0; c < channels; c++)                                                             \
                        for (int64_t q = 0; q < multiplier; q++)                                                       \
                            to[c * multiplier + q] += from[c] * by[c * multiplier + q];                                \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
LOOPS(float, float)
LOOPS(double, double)
#define CHOOSE(dtype, loop) ((dtype) == MR_FLOAT ? loop##_float : loop##_double)

static mr_status forward(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(forward);
    depthwise d;
    MR_TRY(geometry(call, call->inputs[0].shape, call->inputs[1].shape, &d, error));
    MR_TRY(mr_kernel_output(call, 0, output_shape(&d.conv), error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    d.input = call->inputs[0].data;
    d.filter = call->inputs[1].data;
    d.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, d.conv.batch * d.conv.out_height, 1, CHOOSE(call->inputs[0].dtype, forward), &d);
    return MR_OK;
}

static mr_status backprop_input(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(backprop_input);
    depthwise d;
    mr_shape shape;
    mr_shape gradient = call->inputs[2].shape;
    MR_TRY(mr_conv_check_sizes(call, 0, error));
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    MR_TRY(mr_conv_check_backprop(call->node, call->prepared, shape, call->inputs[1].shape, gradient, error));
    MR_TRY(geometry(call, shape, call->inputs[1].shape, &d, error));
    MR_TRY(mr_conv_check_gradient(call->node, &d.conv, gradient, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    d.filter = call->inputs[1].data;
    d.gradient = call->inputs[2].data;
    d.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, d.conv.batch, 1, CHOOSE(call->inputs[1].dtype, backward_input), &d);
    return MR_OK;
}

static mr_status backprop_filter(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(backprop_filter);
    depthwise d;
    mr_shape shape;
    mr_shape gradient = call->inputs[2].shape;
    MR_TRY(mr_conv_check_sizes(call, 1, error));
    MR_TRY(mr_kernel_shape(call, 1, &shape, error));
    MR_TRY(mr_conv_check_backprop(call->node, call->prepared, call->inputs[0].shape, shape, gradient, error));
    MR_TRY(geometry(call, call->inputs[0].shape, shape, &d, error));
    MR_TRY(mr_conv_check_gradient(call->node, &d.conv, gradient, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    d.input = call->inputs[0].data;
    d.gradient = call->inputs[2].data;
    d.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, d.conv.filter_height * d.conv.filter_width, 1,
                CHOOSE(call->inputs[0].dtype, backward_filter), &d);
    return MR_OK;
}

#define ROW(name, function, host)                                                                                      \
    {.op = name,                                                                                                       \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(mr_window_attrs),                                                                   \
     .prepare = prepare,                                                                                               \
     .host_inputs = host}
static const mr_kernel kernels[] = {
    ROW("DepthwiseConv2dNative", forward, 0),
    ROW("DepthwiseConv2dNativeBackpropInput", backprop_input, 1 << 0),
    ROW("DepthwiseConv2dNativeBackpropFilter", backprop_filter, 1 << 1),
};
MR_KERNEL_FAMILY(depthwise);
