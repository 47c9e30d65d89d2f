/* Conv3D, AvgPool3D, MaxPool3D and their gradients, in NDHWC.
 *
 * A convolution copies the windows of one output slice (one depth of one image) into a matrix of patches and multiplies
 * it by the filter; the gradients use the transposed products. */
#include "kernels/gemm.h"
#include "kernels/matmul.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Arrays are in the order depth, height, width. */
typedef struct volume_attrs {
    int64_t strides[3], dilations[3], window[3];
    bool same;
} volume_attrs;

static mr_status read_three(const mr_kernel_node *node, const char *name, int64_t three[3], mr_error *error)
{
    int64_t values[5];
    int32_t count;
    for (int i = 0; i < 3; i++) three[i] = 1;
    if (mr_attrs_find(node->attrs, name) == nullptr) return MR_OK;
    MR_TRY(mr_attr_get_ints(node->attrs, name, values, 5, &count, error));
    if (count != 5)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Sliding window %s field must specify 5 dimensions",
                              name);
    if (strstr(node->op, "Pool") && (values[0] != 1 || values[4] != 1))
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "Pooling is not yet supported on the %s dimension.",
                              values[0] != 1 ? "batch" : "depth");
    if (values[0] != 1 || values[4] != 1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Current implementation does not yet support %s in the batch and depth dimensions.",
                              name);
    for (int i = 0; i < 3; i++) {
        three[i] = values[i + 1];
        if (three[i] < 1 || three[i] > INT32_MAX)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s should be larger than 0.", name);
    }
    return MR_OK;
}

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    volume_attrs *attrs = prepared;
    mr_string format = mr_attr_string_or(node->attrs, "data_format", "NDHWC"), padding;
    if (!mr_string_equal(format, MR_STR("NDHWC")))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s only supports NDHWC on device type CPU", node->op);
    MR_TRY(mr_attr_get_string(node->attrs, "padding", &padding, error));
    attrs->same = mr_string_equal(padding, MR_STR("SAME"));
    MR_TRY(read_three(node, "strides", attrs->strides, error));
    MR_TRY(read_three(node, "dilations", attrs->dilations, error));
    return read_three(node, "ksize", attrs->window, error);
}

typedef struct volume {
    const volume_attrs *attrs;
    int64_t batch, in[3], window[3], out[3], before[3], channels, out_channels;
    const void *input, *output, *gradient;
    void *target;
} volume;

static mr_status geometry(const mr_kernel_call *call, mr_shape input, const int64_t window[3], volume *v,
                          mr_error *error)
{
    if (input.rank != 5)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor_in must be 5-dimensional");
    *v = (volume){.attrs = call->prepared, .batch = input.dims[0], .channels = input.dims[4]};
    for (int i = 0; i < 3; i++) {
        int64_t reach, stride = v->attrs->strides[i];
        v->in[i] = input.dims[i + 1];
        v->window[i] = window[i];
        if (window[i] < 1 || v->in[i] > INT32_MAX ||
            __builtin_mul_overflow(window[i] - 1, v->attrs->dilations[i], &reach) || reach >= INT32_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "invalid window size %" PRId64, window[i]);
        reach++;
        if (v->attrs->same) {
            v->out[i] = (v->in[i] + stride - 1) / stride;
            v->before[i] = MR_MAX(0, (v->out[i] - 1) * stride + reach - v->in[i]) / 2;
        } else {
            v->out[i] = (v->in[i] - reach + stride) / stride;
        }
        if (v->out[i] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Computed output size would be negative: %" PRId64 " [input_size: %" PRId64
                                  ", effective_filter_size: %" PRId64 ", stride: %" PRId64 "]",
                                  v->out[i], v->in[i], reach, stride);
    }
    return MR_OK;
}

static mr_shape output_shape(const volume *v, int64_t channels)
{
    return MR_SHAPE(v->batch, v->out[0], v->out[1], v->out[2], channels);
}

/* ---- Convolution ---- */

/* One slice of outputs and its patches: [rows, window · channels]. */
typedef struct slice {
    const volume *volume;
    size_t size;
    int64_t n, depth, columns;
    char *patches;
} slice;

/* Copies the windows of rows [begin, end) of output heights into patches. */
static void gather_rows(void *context, int64_t begin, int64_t end)
{
    const slice *s = context;
    const volume *v = s->volume;
    size_t pixel = (size_t)v->channels * s->size;
    for (int64_t oy = begin; oy < end; oy++)
        for (int64_t ox = 0; ox < v->out[2]; ox++) {
            char *to = s->patches + (size_t)((oy * v->out[2] + ox) * s->columns) * s->size;
            for (int64_t a = 0; a < v->window[0]; a++)
                for (int64_t b = 0; b < v->window[1]; b++)
                    for (int64_t c = 0; c < v->window[2]; c++, to += pixel) {
                        int64_t z = s->depth * v->attrs->strides[0] - v->before[0] + a * v->attrs->dilations[0];
                        int64_t y = oy * v->attrs->strides[1] - v->before[1] + b * v->attrs->dilations[1];
                        int64_t x = ox * v->attrs->strides[2] - v->before[2] + c * v->attrs->dilations[2];
                        if (z < 0 || z >= v->in[0] || y < 0 || y >= v->in[1] || x < 0 || x >= v->in[2]) {
                            memset(to, 0, pixel);
                            continue;
                        }
                        int64_t at = ((s->n * v->in[0] + z) * v->in[1] + y) * v->in[2] + x;
                        memcpy(to, (const char *)v->input + (size_t)at * pixel, pixel);
                    }
        }
}

/* Adds patches to the windows that they come from. */
#define SCATTER(type, suffix)                                                                                          \
    static void scatter_##suffix(const slice *s)                                                                       \
    {                                                                                                                  \
        const volume *v = s->volume;                                                                                   \
        const type *from = (const type *)s->patches;                                                                   \
        for (int64_t row = 0; row < v->out[1] * v->out[2]; row++)                                                      \
            for (int64_t tap = 0; tap < v->window[0] * v->window[1] * v->window[2]; tap++, from += v->channels) {      \
                int64_t c = tap % v->window[2], b = tap / v->window[2] % v->window[1];                                 \
                int64_t a = tap / v->window[2] / v->window[1], oy = row / v->out[2], ox = row % v->out[2];             \
                int64_t z = s->depth * v->attrs->strides[0] - v->before[0] + a * v->attrs->dilations[0];               \
                int64_t y = oy * v->attrs->strides[1] - v->before[1] + b * v->attrs->dilations[1];                     \
                int64_t x = ox * v->attrs->strides[2] - v->before[2] + c * v->attrs->dilations[2];                     \
                if (z < 0 || z >= v->in[0] || y < 0 || y >= v->in[1] || x < 0 || x >= v->in[2]) continue;              \
                type *to = (type *)v->target + (((s->n * v->in[0] + z) * v->in[1] + y) * v->in[2] + x) * v->channels;  \
                for (int64_t i = 0; i < v->channels; i++) to[i] += from[i];                                            \
            }                                                                                                          \
    }                                                                                                                  \
    static void sum_##suffix(void *target, const void *part, int64_t count)                                            \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) ((type *)target)[i] += ((const type *)part)[i];                            \
    }
SCATTER(float, float)
SCATTER(double, double)

static mr_status conv_geometry(const mr_kernel_call *call, mr_shape input, mr_shape filter, volume *v, mr_error *error)
{
    if (filter.rank != 5) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filter must be 5-dimensional");
    MR_TRY(geometry(call, input, filter.dims, v, error));
    v->out_channels = filter.dims[4];
    if (filter.dims[3] != v->channels)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "filter and input must have the same depth: %" PRId64 " vs %" PRId64, filter.dims[3],
                              v->channels);
    return MR_OK;
}

/* The checks of a gradient before its geometry, with TensorFlow's messages. */
static mr_status check_backprop(const mr_kernel_call *call, mr_shape input, mr_shape filter, mr_error *error)
{
    const mr_kernel_node *node = call->node;
    mr_shape given = call->inputs[2].shape;
    const char *label = strstr(node->op, "Input") ? "Conv3DBackpropInputOp" : "Conv3DBackpropFilterOp";
    if (input.rank != 5) return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "input tensor must have 5 dimensions");
    if (filter.rank != 5)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "filter_sizes tensor must have 5 dimensions");
    if (given.rank != 5)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "out_backprop tensor must have 5 dimensions");
    if (input.dims[4] != filter.dims[3])
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "input and filter_sizes must have the same number of channels. Got %" PRId64
                              " for input and %" PRId64 " for filter_sizes",
                              input.dims[4], filter.dims[3]);
    if (given.dims[4] != filter.dims[4])
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "out_backprop and filter_sizes must have the same number of channels. Got %" PRId64
                              " for out_backprop and %" PRId64 " for filter_sizes",
                              given.dims[4], filter.dims[4]);
    if (input.dims[0] != given.dims[0])
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "%s: input and out_backprop must have the same batch size. Input batch: %" PRId64
                              ", outbackprop batch: %" PRId64 ", batch_dim: 0",
                              label, input.dims[0], given.dims[0]);
    return MR_OK;
}

static mr_status check_sizes(const mr_kernel_call *call, const volume *v, mr_error *error)
{
    const int64_t *given = call->inputs[2].shape.dims + 1;
    for (int i = 0; i < 3; i++)
        if (given[i] != v->out[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "%s: Size of out_backprop doesn't match computed: actual = %" PRId64
                                  ", computed = %" PRId64 " spatial_dim: %d input: %" PRId64 " filter: %" PRId64
                                  " output: %" PRId64 " stride: %" PRId64 " dilation: %" PRId64,
                                  strstr(call->node->op, "Input") ? "Conv3DBackpropInputOp" : "Conv3DBackpropFilterOp",
                                  given[i], v->out[i], i + 1, v->in[i], v->window[i], given[i], v->attrs->strides[i],
                                  v->attrs->dilations[i]);
    return MR_OK;
}

typedef enum direction { FORWARD, TO_INPUT, TO_FILTER } direction;

/* Runs the product of each slice. Sums over slices are in their order. The filter is in v->output for FORWARD and
 * TO_INPUT. */
static mr_status each_slice(mr_kernel_call *call, mr_dtype dtype, const volume *v, direction which, mr_error *error)
{
    int64_t rows = v->out[1] * v->out[2], columns, taps, filter_count, bytes;
    size_t size = mr_dtype_size(dtype);
    if (__builtin_mul_overflow(v->window[0] * v->window[1], v->window[2], &taps) ||
        __builtin_mul_overflow(taps, v->channels, &columns) || __builtin_mul_overflow(columns, rows, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)size, &bytes) ||
        __builtin_mul_overflow(columns, v->out_channels, &filter_count))
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the window is too large");
    slice s = {.volume = v, .size = size, .columns = columns, .patches = malloc((size_t)bytes)};
    char *part = which == TO_FILTER ? malloc((size_t)filter_count * size) : nullptr;
    mr_status status = MR_OK;
    if (s.patches == nullptr || (which == TO_FILTER && part == nullptr))
        status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int64_t i = 0; i < v->batch * v->out[0] && status == MR_OK; i++) {
        s.n = i / v->out[0];
        s.depth = i % v->out[0];
        size_t at = (size_t)(i * rows * v->out_channels) * size;
        if (which != TO_INPUT) mr_pool_for(call->device->pool, v->out[1], 1, gather_rows, &s);
        const char *gradient = which == FORWARD ? nullptr : (const char *)v->gradient + at;
        mr_product product =
            which == FORWARD
                ? (mr_product){rows, v->out_channels, columns, s.patches, v->output, (char *)v->target + at}
            : which == TO_INPUT
                ? (mr_product){rows, columns, v->out_channels, gradient, v->output, s.patches, .b_transposed = true}
                : (mr_product){columns, v->out_channels, rows, s.patches, gradient, part, .a_transposed = true};
        status = mr_product_run(call, dtype, &product, nullptr, error);
        if (status != MR_OK) break;
        if (which == TO_INPUT) (dtype == MR_FLOAT ? scatter_float : scatter_double)(&s);
        if (which == TO_FILTER) (dtype == MR_FLOAT ? sum_float : sum_double)(v->target, part, filter_count);
    }
    free(s.patches);
    free(part);
    return status;
}

static bool is_empty_sum(const volume *v)
{
    bool empty = v->batch == 0 || v->channels == 0 || v->out_channels == 0;
    for (int i = 0; i < 3; i++) empty |= v->in[i] == 0 || v->out[i] == 0;
    return empty;
}

static mr_status finish(mr_kernel_call *call, mr_dtype dtype, volume *v, direction which, mr_error *error)
{
    mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) > 0 && (which != FORWARD || is_empty_sum(v)))
        memset(output->data, 0, mr_tensor_size_bytes(output));
    v->target = output->data;
    return mr_tensor_count(output) == 0 || is_empty_sum(v) ? MR_OK : each_slice(call, dtype, v, which, error);
}

static mr_status conv3d(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(conv3d);
    volume v;
    mr_shape in = call->inputs[0].shape, filter = call->inputs[1].shape;
    if (in.rank != 5) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 5-dimensional");
    if (filter.rank == 5 && filter.dims[3] == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filter_depth must be non-zero");
    if (filter.rank == 5 && mr_shape_count(filter) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "filter must not have zero elements (i.e. all dimensions must be non-zero)");
    MR_TRY(conv_geometry(call, in, filter, &v, error));
    MR_TRY(mr_kernel_output(call, 0, output_shape(&v, v.out_channels), error));
    v.input = call->inputs[0].data;
    v.output = call->inputs[1].data;
    return finish(call, call->inputs[0].dtype, &v, FORWARD, error);
}

static mr_status backprop_input(mr_kernel_call *call, mr_shape shape, mr_error *error)
{
    const mr_tensor *filter = &call->inputs[1], *gradient = &call->inputs[2];
    volume v;
    MR_TRY(check_backprop(call, shape, filter->shape, error));
    MR_TRY(conv_geometry(call, shape, filter->shape, &v, error));
    MR_TRY(check_sizes(call, &v, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    v.output = filter->data;
    v.gradient = gradient->data;
    return finish(call, filter->dtype, &v, TO_INPUT, error);
}

static mr_status conv3d_backprop_input(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(conv3d_backprop_input);
    return backprop_input(call, call->inputs[0].shape, error);
}

static mr_status conv3d_backprop_input_v2(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(conv3d_backprop_input_v2);
    mr_shape shape;
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    return backprop_input(call, shape, error);
}

static mr_status backprop_filter(mr_kernel_call *call, mr_shape shape, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *gradient = &call->inputs[2];
    volume v;
    MR_TRY(check_backprop(call, input->shape, shape, error));
    MR_TRY(conv_geometry(call, input->shape, shape, &v, error));
    MR_TRY(check_sizes(call, &v, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    v.input = input->data;
    v.gradient = gradient->data;
    return finish(call, input->dtype, &v, TO_FILTER, error);
}

static mr_status conv3d_backprop_filter(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(conv3d_backprop_filter);
    return backprop_filter(call, call->inputs[1].shape, error);
}

static mr_status conv3d_backprop_filter_v2(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(conv3d_backprop_filter_v2);
    mr_shape shape;
    MR_TRY(mr_kernel_shape(call, 1, &shape, error));
    return backprop_filter(call, shape, error);
}

/* ---- Pooling ---- */

/* The window of output position `at` in dimension i, clipped to the input. */
static void span(const volume *v, int i, int64_t at, int64_t *from, int64_t *to)
{
    *from = at * v->attrs->strides[i] - v->before[i];
    *to = MR_MIN(*from + v->window[i], v->in[i]);
    *from = MR_MAX(0, *from);
}

/* One output position at a time; `body` has the window's bounds and `to`, the position's first output element. */
#define EACH_WINDOW                                                                                                    \
    const volume *v = context;                                                                                         \
    const int64_t places = v->out[0] * v->out[1] * v->out[2], image = v->in[0] * v->in[1] * v->in[2] * v->channels;    \
    for (int64_t place = begin * places; place < end * places; place++)
#define WINDOW                                                                                                         \
    int64_t z0, z1, y0, y1, x0, x1, first = place / places * image;                                                    \
    span(v, 0, place / v->out[2] / v->out[1] % v->out[0], &z0, &z1);                                                   \
    span(v, 1, place / v->out[2] % v->out[1], &y0, &y1);                                                               \
    span(v, 2, place % v->out[2], &x0, &x1);
#define EACH_INPUT                                                                                                     \
    for (int64_t z = z0; z < z1; z++)                                                                                  \
        for (int64_t y = y0; y < y1; y++)                                                                              \
            for (int64_t x = x0; x < x1; x++)
#define AT (first + ((z * v->in[1] + y) * v->in[2] + x) * v->channels + c)

static void max_images(void *context, int64_t begin, int64_t end)
{
    EACH_WINDOW
    {
        WINDOW for (int64_t c = 0; c < v->channels; c++)
        {
            float most = -INFINITY;
            EACH_INPUT
            {
                float value = ((const float *)v->input)[AT];
                if (value > most) most = value;
            }
            ((float *)v->target)[place * v->channels + c] = most;
        }
    }
}

/* Every position that has the maximum receives the gradient, as in TensorFlow, unlike in two dimensions. */
static void max_grad_images(void *context, int64_t begin, int64_t end)
{
    EACH_WINDOW
    {
        WINDOW for (int64_t c = 0; c < v->channels; c++)
        {
            int64_t out = place * v->channels + c;
            float most = ((const float *)v->output)[out], part = ((const float *)v->gradient)[out];
            EACH_INPUT if (((const float *)v->input)[AT] == most)((float *)v->target)[AT] += part;
        }
    }
}

static void max_grad_grad_images(void *context, int64_t begin, int64_t end)
{
    EACH_WINDOW
    {
        WINDOW for (int64_t c = 0; c < v->channels; c++)
        {
            int64_t out = place * v->channels + c, chosen = -1;
            float most = ((const float *)v->output)[out];
            EACH_INPUT if (chosen < 0 && ((const float *)v->input)[AT] == most) chosen = AT;
            ((float *)v->target)[out] = chosen < 0 ? 0 : ((const float *)v->gradient)[chosen];
        }
    }
}

static void mean_images(void *context, int64_t begin, int64_t end)
{
    EACH_WINDOW
    {
        WINDOW float divisor = (float)((z1 - z0) * (y1 - y0) * (x1 - x0));
        for (int64_t c = 0; c < v->channels; c++) {
            float sum = 0;
            EACH_INPUT sum += ((const float *)v->input)[AT];
            ((float *)v->target)[place * v->channels + c] = sum / divisor;
        }
    }
}

static void mean_grad_images(void *context, int64_t begin, int64_t end)
{
    EACH_WINDOW
    {
        WINDOW float divisor = (float)((z1 - z0) * (y1 - y0) * (x1 - x0));
        for (int64_t c = 0; c < v->channels; c++) {
            float part = ((const float *)v->gradient)[place * v->channels + c] / divisor;
            EACH_INPUT((float *)v->target)[AT] += part;
        }
    }
}

static mr_status run_images(mr_kernel_call *call, volume *v, mr_shape shape, mr_pool_body body, bool clears,
                            mr_error *error)
{
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    v->target = call->outputs[0].data;
    if (clears) memset(v->target, 0, mr_tensor_size_bytes(&call->outputs[0]));
    mr_pool_for(call->device->pool, v->batch, 1, body, v);
    return MR_OK;
}

static mr_status pool_geometry(const mr_kernel_call *call, mr_shape input, volume *v, mr_error *error)
{
    return geometry(call, input, ((const volume_attrs *)call->prepared)->window, v, error);
}

static mr_status max_pool3d(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool3d);
    volume v;
    MR_TRY(pool_geometry(call, call->inputs[0].shape, &v, error));
    v.input = call->inputs[0].data;
    return run_images(call, &v, output_shape(&v, v.channels), max_images, false, error);
}

static mr_status avg_pool3d(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(avg_pool3d);
    volume v;
    MR_TRY(pool_geometry(call, call->inputs[0].shape, &v, error));
    v.input = call->inputs[0].data;
    return run_images(call, &v, output_shape(&v, v.channels), mean_images, false, error);
}

/* name: of the tensor in messages about its rank and its shape. */
static mr_status check_shape(const mr_kernel_call *call, mr_shape given, mr_shape expected, const char *name,
                             const char *short_name, mr_error *error)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (mr_shape_equal(given, expected)) return MR_OK;
    if (given.rank != 5)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 5-dimensional", name);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected %s shape to be %s, but got %s", short_name,
                          mr_shape_text(expected, a, sizeof a), mr_shape_text(given, b, sizeof b));
}

static mr_status max_pool3d_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool3d_grad);
    volume v;
    MR_TRY(pool_geometry(call, call->inputs[0].shape, &v, error));
    mr_shape out = output_shape(&v, v.channels);
    MR_TRY(check_shape(call, call->inputs[1].shape, out, "tensor_out", "orig_output", error));
    MR_TRY(check_shape(call, call->inputs[2].shape, out, "out_backprop", "grad", error));
    v.input = call->inputs[0].data;
    v.output = call->inputs[1].data;
    v.gradient = call->inputs[2].data;
    return run_images(call, &v, call->inputs[0].shape, max_grad_images, true, error);
}

static mr_status max_pool3d_grad_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool3d_grad_grad);
    volume v;
    MR_TRY(pool_geometry(call, call->inputs[0].shape, &v, error));
    MR_TRY(check_shape(call, call->inputs[1].shape, output_shape(&v, v.channels), "tensor_out", "orig_output", error));
    MR_TRY(check_shape(call, call->inputs[2].shape, call->inputs[0].shape, "out_grad_backprop", "grad", error));
    v.input = call->inputs[0].data;
    v.output = call->inputs[1].data;
    v.gradient = call->inputs[2].data;
    return run_images(call, &v, output_shape(&v, v.channels), max_grad_grad_images, false, error);
}

static mr_status avg_pool3d_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(avg_pool3d_grad);
    volume v;
    mr_shape shape;
    if (call->inputs[0].shape.rank != 1 || mr_tensor_count(&call->inputs[0]) != 5)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor_in must be 1-dimensional and 5 elements");
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    MR_TRY(pool_geometry(call, shape, &v, error));
    MR_TRY(
        check_shape(call, call->inputs[1].shape, output_shape(&v, v.channels), "out_backprop", "out_backprop", error));
    v.gradient = call->inputs[1].data;
    return run_images(call, &v, shape, mean_grad_images, true, error);
}

#define ROW(name, served, function, host)                                                                              \
    {.op = name,                                                                                                       \
     .types = served,                                                                                                  \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(volume_attrs),                                                                      \
     .prepare = prepare,                                                                                               \
     .host_inputs = host}
#define POOLED "T: half, bfloat16, float"
static const mr_kernel kernels[] = {
    ROW("Conv3D", nullptr, conv3d, 0),
    ROW("Conv3DBackpropInput", nullptr, conv3d_backprop_input, 0),
    ROW("Conv3DBackpropInputV2", nullptr, conv3d_backprop_input_v2, 1 << 0),
    ROW("Conv3DBackpropFilter", nullptr, conv3d_backprop_filter, 0),
    ROW("Conv3DBackpropFilterV2", nullptr, conv3d_backprop_filter_v2, 1 << 1),
    ROW("MaxPool3D", POOLED, max_pool3d, 0),
    ROW("MaxPool3DGrad", POOLED, max_pool3d_grad, 0),
    ROW("MaxPool3DGradGrad", POOLED, max_pool3d_grad_grad, 0),
    ROW("AvgPool3D", POOLED, avg_pool3d, 0),
    ROW("AvgPool3DGrad", POOLED, avg_pool3d_grad, 1 << 0),
};
MR_KERNEL_FAMILY(volume);
