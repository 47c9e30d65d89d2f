/* Pooling. Floats in NHWC are processed in vectors of channels; other types and NCHW element by element.
 *
 * MaxPoolGrad assigns the gradient to the first maximum of each window, as TensorFlow does. If windows do not overlap,
 * every input position is written once and need not be cleared first. */
#include "kernels/conv.h"
#include "kernels/vector.h"
#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>

typedef struct pooling {
    int64_t batch, in_height, in_width, channels, out_height, out_width;
    int64_t window_y, window_x, stride_y, stride_x, pad_top, pad_left;
    bool nchw;
    bool is_padded_little; /* padding is smaller than a window on each side, so that every window overlaps the input */
    const void *input, *output, *gradient;
    void *target;
} pooling;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    return mr_window_attrs_read(node, prepared, error);
}

static mr_status geometry(const mr_kernel_call *call, mr_shape input, pooling *p, mr_error *error)
{
    const mr_window_attrs *attrs = call->prepared;
    int64_t bottom, right;
    if (input.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              call->node->input_count == 1 && input.rank < 2
                                  ? "tensor_in_shape must have 2 spatial dimensions. 0 0"
                                  : "tensor_in must be 4-dimensional");
    bool nchw = attrs->nchw;
    *p = (pooling){.batch = input.dims[0],
                   .in_height = input.dims[nchw ? 2 : 1],
                   .in_width = input.dims[nchw ? 3 : 2],
                   .channels = input.dims[nchw ? 1 : 3],
                   .window_y = attrs->window_y,
                   .window_x = attrs->window_x,
                   .stride_y = attrs->stride_y,
                   .stride_x = attrs->stride_x,
                   .nchw = nchw};
    MR_TRY(mr_window_geometry(call->node, attrs, 0, p->in_height, p->window_y, &p->out_height, &p->pad_top, &bottom,
                              error));
    MR_TRY(
        mr_window_geometry(call->node, attrs, 1, p->in_width, p->window_x, &p->out_width, &p->pad_left, &right, error));
    p->is_padded_little = MR_MAX(p->pad_top, bottom) < p->window_y && MR_MAX(p->pad_left, right) < p->window_x;
    return MR_OK;
}

static mr_shape output_shape(const pooling *p)
{
    return p->nchw ? MR_SHAPE(p->batch, p->channels, p->out_height, p->out_width)
                   : MR_SHAPE(p->batch, p->out_height, p->out_width, p->channels);
}

/* The window of one output along one dimension, clipped to the input. */
static void span(int64_t output, int64_t stride, int64_t pad, int64_t window, int64_t limit, int64_t *from, int64_t *to)
{
    *from = output * stride - pad;
    *to = MR_MIN(*from + window, limit);
    *from = MR_MAX(0, *from);
}

/* In the gradient of the mean, TensorFlow clips a window of more than the whole input to the whole input, even where
 * its end is inside. */
static int64_t mean_grad_end(int64_t end, int64_t begin, int64_t window, int64_t limit)
{
    return begin == 0 && window > limit ? limit : end;
}

#define IN(n, y, x, c)                                                                                                 \
    (p->nchw ? (((n) * p->channels + (c)) * p->in_height + (y)) * p->in_width + (x)                                    \
             : (((n) * p->in_height + (y)) * p->in_width + (x)) * p->channels + (c))
#define OUT(n, y, x, c)                                                                                                \
    (p->nchw ? (((n) * p->channels + (c)) * p->out_height + (y)) * p->out_width + (x)                                  \
             : (((n) * p->out_height + (y)) * p->out_width + (x)) * p->channels + (c))
#define EACH_OUTPUT                                                                                                    \
    for (int64_t oy = 0; oy < p->out_height; oy++)                                                                     \
        for (int64_t ox = 0; ox < p->out_width; ox++)
#define WINDOW                                                                                                         \
    int64_t y0, y1, x0, x1;                                                                                            \
    span(oy, p->stride_y, p->pad_top, p->window_y, p->in_height, &y0, &y1);                                            \
    span(ox, p->stride_x, p->pad_left, p->window_x, p->in_width, &x0, &x1);
#define EACH_INPUT                                                                                                     \
    for (int64_t y = y0; y < y1; y++)                                                                                  \
        for (int64_t x = x0; x < x1; x++)

/* One image at a time, any type and layout. */
/* sum_type: unsigned for integers, whose sums wrap as in TensorFlow. */
#define PLAIN_MAX(dtype, type, sum_type, suffix, lowest)                                                               \
    static void max_##suffix(void *context, int64_t begin, int64_t end)                                                \
    {                                                                                                                  \
        const pooling *p = context;                                                                                    \
        for (int64_t n = begin; n < end; n++) EACH_OUTPUT                                                              \
            {                                                                                                          \
                WINDOW for (int64_t c = 0; c < p->channels; c++)                                                       \
                {                                                                                                      \
                    type most = lowest;                                                                                \
                    EACH_INPUT                                                                                         \
                    {                                                                                                  \
                        type value = ((const type *)p->input)[IN(n, y, x, c)];                                         \
                        if (value > most) most = value;                                                                \
                    }                                                                                                  \
                    ((type *)p->target)[OUT(n, oy, ox, c)] = most;                                                     \
                }                                                                                                      \
            }                                                                                                          \
    }                                                                                                                  \
    static void max_grad_##suffix(void *context, int64_t begin, int64_t end)                                           \
    {                                                                                                                  \
        const pooling *p = context;                                                                                    \
        int64_t image = p->in_height * p->in_width * p->channels;                                                      \
        memset((type *)p->target + begin * image, 0, (size_t)((end - begin) * image) * sizeof(type));                  \
        for (int64_t n = begin; n < end; n++) EACH_OUTPUT                                                              \
            {                                                                                                          \
                WINDOW for (int64_t c = 0; c < p->channels; c++)                                                       \
                {                                                                                                      \
                    type most = lowest;                                                                                \
                    int64_t chosen = -1;                                                                               \
                    EACH_INPUT                                                                                         \
                    {                                                                                                  \
                        type value = ((const type *)p->input)[IN(n, y, x, c)];                                         \
                        if (value > most || chosen < 0) {                                                              \
                            most = value;                                                                              \
                            chosen = IN(n, y, x, c);                                                                   \
                        }                                                                                              \
                    }                                                                                                  \
                    if (chosen >= 0)                                                                                   \
                        ((type *)p->target)[chosen] = (type)(((sum_type *)p->target)[chosen] +                         \
                                                             ((const sum_type *)p->gradient)[OUT(n, oy, ox, c)]);      \
                }                                                                                                      \
            }                                                                                                          \
    }
#define EACH_POOLED(X)                                                                                                 \
    X(MR_FLOAT, float, float, float, -FLT_MAX)                                                                         \
    X(MR_DOUBLE, double, double, double, -DBL_MAX)                                                                     \
    X(MR_INT32, int32_t, uint32_t, int32, INT32_MIN)                                                                   \
    X(MR_INT64, int64_t, uint64_t, int64, INT64_MIN)                                                                   \
    X(MR_INT8, int8_t, uint8_t, int8, INT8_MIN)                                                                        \
    X(MR_INT16, int16_t, uint16_t, int16, INT16_MIN)                                                                   \
    X(MR_UINT8, uint8_t, uint8_t, uint8, 0)                                                                            \
    X(MR_UINT16, uint16_t, uint16_t, uint16, 0)                                                                        \
    X(MR_UINT32, uint32_t, uint32_t, uint32, 0) X(MR_UINT64, uint64_t, uint64_t, uint64, 0)
EACH_POOLED(PLAIN_MAX)

/* A mean includes only positions inside the input. */
#define PLAIN_MEAN(type, suffix)                                                                                       \
    static void mean_##suffix(void *context, int64_t begin, int64_t end)                                               \
    {                                                                                                                  \
        const pooling *p = context;                                                                                    \
        for (int64_t n = begin; n < end; n++) EACH_OUTPUT                                                              \
            {                                                                                                          \
                WINDOW const type divisor = (type)((y1 - y0) * (x1 - x0));                                             \
                for (int64_t c = 0; c < p->channels; c++) {                                                            \
                    type sum = 0;                                                                                      \
                    EACH_INPUT sum += ((const type *)p->input)[IN(n, y, x, c)];                                        \
                    ((type *)p->target)[OUT(n, oy, ox, c)] = sum / divisor;                                            \
                }                                                                                                      \
            }                                                                                                          \
    }                                                                                                                  \
    static void mean_grad_##suffix(void *context, int64_t begin, int64_t end)                                          \
    {                                                                                                                  \
        const pooling *p = context;                                                                                    \
        int64_t image = p->in_height * p->in_width * p->channels;                                                      \
        memset((type *)p->target + begin * image, 0, (size_t)((end - begin) * image) * sizeof(type));                  \
        for (int64_t n = begin; n < end; n++) EACH_OUTPUT                                                              \
            {                                                                                                          \
                WINDOW                                                                                                 \
                y1 = mean_grad_end(y1, y0, p->window_y, p->in_height);                                                 \
                x1 = mean_grad_end(x1, x0, p->window_x, p->in_width);                                                  \
                const type divisor = (type)((y1 - y0) * (x1 - x0));                                                    \
                for (int64_t c = 0; c < p->channels; c++) {                                                            \
                    type part = ((const type *)p->gradient)[OUT(n, oy, ox, c)] / divisor;                              \
                    EACH_INPUT((type *)p->target)[IN(n, y, x, c)] += part;                                             \
                }                                                                                                      \
            }                                                                                                          \
    }
PLAIN_MEAN(float, float)
PLAIN_MEAN(double, double)

/* Floats in NHWC, 16 channels at a time; the number of channels must be a multiple of 16. A unit of work is one row of
 * outputs. */
MR_INLINE void max_rows_body(const pooling *p, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        int64_t n = row / p->out_height, oy = row % p->out_height;
        float *target = (float *)p->target + row * p->out_width * p->channels;
        const float *image = (const float *)p->input + n * p->in_height * p->in_width * p->channels;
        for (int64_t ox = 0; ox < p->out_width; ox++) {
            WINDOW for (int64_t c = 0; c < p->channels; c += 16, target += 16)
            {
                mr_vector most = mr_vector_of(-FLT_MAX); /* also of windows of -infinity or NaN */
                EACH_INPUT
                {
                    mr_vector value = mr_vector_load(image + (y * p->in_width + x) * p->channels + c);
                    most = mr_vector_choose(value > most, value, most);
                }
                mr_vector_store(target, most);
            }
        }
    }
}
MR_LEVELS(max_rows, (const pooling *p, int64_t begin, int64_t end), (p, begin, end))

/* 16 channels of a window's gradient: the first position of its maximum, of a NaN if that is the first one. */
typedef struct max_choice {
    mr_vector most;
    mr_vector_bits left; /* the gradient; 0 once it has been assigned */
    mr_vector_bits none; /* nothing equals NaN: then the first one */
} max_choice;

MR_INLINE max_choice choose(const pooling *p, const float *image, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
                            const float *gradient)
{
    max_choice m = {.most = mr_vector_load(image + (y0 * p->in_width + x0) * p->channels),
                    .left = (mr_vector_bits)mr_vector_load(gradient)};
    EACH_INPUT
    {
        const mr_vector value = mr_vector_load(image + (y * p->in_width + x) * p->channels);
        m.most = mr_vector_choose(value > m.most, value, m.most);
    }
    m.none = (mr_vector_bits)(m.most != m.most);
    return m;
}

/* The part of the gradient that a position with this value gets. */
MR_INLINE mr_vector take_gradient(max_choice *m, mr_vector value)
{
    const mr_vector_bits here = (mr_vector_bits)(value == m->most) | m->none;
    const mr_vector taken = (mr_vector)(m->left & here);
    m->left &= ~here;
    return taken;
}

/* The gradient if windows do not overlap. Positions outside all windows get zeros. */
MR_INLINE void max_grad_rows_body(const pooling *p, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        int64_t n = row / p->out_height, oy = row % p->out_height, size = p->in_width * p->channels;
        const float *gradient = (const float *)p->gradient + row * p->out_width * p->channels;
        const float *image = (const float *)p->input + n * p->in_height * size;
        float *target = (float *)p->target + n * p->in_height * size;
        int64_t first = MR_MAX(0, oy * p->stride_y - p->pad_top), last = (oy + 1) * p->stride_y - p->pad_top;
        if (oy == 0) first = 0;
        if (oy == p->out_height - 1) last = p->in_height;
        last = MR_MIN(last, p->in_height);
        assert(first >= 0 && first < p->in_height);
        bool covered = p->window_y == p->stride_y && p->window_x == p->stride_x &&
                       oy * p->stride_y - p->pad_top + p->window_y >= last &&
                       p->out_width * p->stride_x - p->pad_left >= p->in_width;
        if (!covered) memset(target + first * size, 0, (size_t)((last - first) * size) * sizeof *target);
        for (int64_t ox = 0; ox < p->out_width; ox++) {
            WINDOW for (int64_t c = 0; c < p->channels; c += 16, gradient += 16)
            {
                max_choice m = choose(p, image + c, y0, y1, x0, x1, gradient);
                EACH_INPUT
                {
                    const int64_t at = (y * p->in_width + x) * p->channels + c;
                    mr_vector_store(target + at, take_gradient(&m, mr_vector_load(image + at)));
                }
            }
        }
    }
}
MR_LEVELS(max_grad_rows, (const pooling *p, int64_t begin, int64_t end), (p, begin, end))

/* The gradient if windows overlap. A unit of work is an image, to which its windows add in their order. */
MR_INLINE void max_grad_images_body(const pooling *p, int64_t begin, int64_t end)
{
    const int64_t size = p->in_height * p->in_width * p->channels;
    memset((float *)p->target + begin * size, 0, (size_t)((end - begin) * size) * sizeof(float));
    for (int64_t n = begin; n < end; n++) {
        const float *gradient = (const float *)p->gradient + n * p->out_height * p->out_width * p->channels;
        const float *image = (const float *)p->input + n * size;
        float *target = (float *)p->target + n * size;
        EACH_OUTPUT
        {
            WINDOW for (int64_t c = 0; c < p->channels; c += 16, gradient += 16)
            {
                if (y0 >= y1 || x0 >= x1) continue;
                max_choice m = choose(p, image + c, y0, y1, x0, x1, gradient);
                EACH_INPUT
                {
                    const int64_t at = (y * p->in_width + x) * p->channels + c;
                    mr_vector_store(target + at,
                                    mr_vector_load(target + at) + take_gradient(&m, mr_vector_load(image + at)));
                }
            }
        }
    }
}
MR_LEVELS(max_grad_images, (const pooling *p, int64_t begin, int64_t end), (p, begin, end))

/* Means of floats in NHWC, for any number of channels. A unit of work is one row of outputs. Sums begin with zero and
 * are in the order of the plain loop, which has the same bits. */
MR_INLINE void mean_rows_body(const pooling *p, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        int64_t n = row / p->out_height, oy = row % p->out_height;
        float *target = (float *)p->target + row * p->out_width * p->channels;
        const float *image = (const float *)p->input + n * p->in_height * p->in_width * p->channels;
        for (int64_t ox = 0; ox < p->out_width; ox++, target += p->channels) {
            WINDOW const float divisor = (float)((y1 - y0) * (x1 - x0));
            int64_t c = 0;
            for (; c + 16 <= p->channels; c += 16) {
                mr_vector sum = {};
                EACH_INPUT sum += mr_vector_load(image + (y * p->in_width + x) * p->channels + c);
                mr_vector_store(target + c, sum / divisor);
            }
            for (; c < p->channels; c++) {
                float sum = 0;
                EACH_INPUT sum += image[(y * p->in_width + x) * p->channels + c];
                target[c] = sum / divisor;
            }
        }
    }
}
MR_LEVELS(mean_rows, (const pooling *p, int64_t begin, int64_t end), (p, begin, end))

/* The gradient of these means. A unit of work is an image, to which its windows add in their order. */
MR_INLINE void mean_grad_images_body(const pooling *p, int64_t begin, int64_t end)
{
    const int64_t size = p->in_height * p->in_width * p->channels;
    memset((float *)p->target + begin * size, 0, (size_t)((end - begin) * size) * sizeof(float));
    for (int64_t n = begin; n < end; n++) {
        const float *gradient = (const float *)p->gradient + n * p->out_height * p->out_width * p->channels;
        float *target = (float *)p->target + n * size;
        EACH_OUTPUT
        {
            WINDOW
            y1 = mean_grad_end(y1, y0, p->window_y, p->in_height);
            x1 = mean_grad_end(x1, x0, p->window_x, p->in_width);
            const float divisor = (float)((y1 - y0) * (x1 - x0));
            EACH_INPUT
            {
                float *sums = target + (y * p->in_width + x) * p->channels;
                int64_t c = 0;
                for (; c + 16 <= p->channels; c += 16)
                    mr_vector_store(sums + c, mr_vector_load(sums + c) + mr_vector_load(gradient + c) / divisor);
                for (; c < p->channels; c++) sums[c] += gradient[c] / divisor;
            }
            gradient += p->channels;
        }
    }
}
MR_LEVELS(mean_grad_images, (const pooling *p, int64_t begin, int64_t end), (p, begin, end))

static void fast_max(void *context, int64_t begin, int64_t end)
{
    max_rows[mr_cpu()](context, begin, end);
}

static void fast_max_grad(void *context, int64_t begin, int64_t end)
{
    max_grad_rows[mr_cpu()](context, begin, end);
}

static void overlapping_max_grad(void *context, int64_t begin, int64_t end)
{
    max_grad_images[mr_cpu()](context, begin, end);
}

static void fast_mean(void *context, int64_t begin, int64_t end)
{
    mean_rows[mr_cpu()](context, begin, end);
}

static void fast_mean_grad(void *context, int64_t begin, int64_t end)
{
    mean_grad_images[mr_cpu()](context, begin, end);
}

static void run_rows(mr_kernel_call *call, pooling *p, mr_pool_body body)
{
    int64_t row = p->out_width * p->channels * MR_MIN(p->window_y, p->in_height) * MR_MIN(p->window_x, p->in_width);
    mr_pool_for(call->device->pool, p->batch * p->out_height, MR_MAX(1, 2 * MR_GRAIN / MR_MAX(1, row)), body, p);
}

#define MAX_ROW(dtype, type, sum_type, suffix, lowest) [dtype] = {max_##suffix, max_grad_##suffix},
static const mr_pool_body max_loops[MR_DTYPE_COUNT][2] = {EACH_POOLED(MAX_ROW)};

static mr_status max_pool(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool);
    const mr_tensor *input = &call->inputs[0];
    pooling p;
    MR_TRY(geometry(call, input->shape, &p, error));
    MR_TRY(mr_kernel_output(call, 0, output_shape(&p), error));
    p.input = input->data;
    p.target = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    if (input->dtype == MR_FLOAT && !p.nchw && p.channels % 16 == 0)
        run_rows(call, &p, fast_max);
    else
        mr_pool_for(call->device->pool, p.batch, 1, max_loops[input->dtype][0], &p);
    return MR_OK;
}

/* MaxPool, which may also have windows over channels instead of height and width. */
typedef struct max_pool_attrs {
    mr_window_attrs window; /* first: max_pool reads only this */
    int64_t size[4], stride[4];
} max_pool_attrs;

static mr_status prepare_max_pool(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    max_pool_attrs *attrs = prepared;
    int32_t sizes = 0, strides = 0;
    *attrs = (max_pool_attrs){0};
    MR_TRY(mr_attr_get_ints(node->attrs, "ksize", attrs->size, 4, &sizes, error));
    MR_TRY(mr_attr_get_ints(node->attrs, "strides", attrs->stride, 4, &strides, error));
    bool nhwc = mr_string_equal(mr_attr_string_or(node->attrs, "data_format", "NHWC"), MR_STR("NHWC"));
    if (sizes == 4 && strides == 4 && nhwc && attrs->size[3] > 1) return MR_OK;
    attrs->size[3] = 1;
    return mr_window_attrs_read(node, &attrs->window, error);
}

/* Every run of `size[3]` channels is an image of one channel, with one window. */
static mr_status max_pool_depth(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool_depth);
    const max_pool_attrs *attrs = call->prepared;
    const mr_tensor *input = &call->inputs[0];
    mr_shape shape = input->shape;
    int64_t window = attrs->size[3];
    if (shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "tensor_in must be 4-dimensional");
    if (attrs->size[0] != 1 || attrs->stride[0] != 1)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "Pooling is not yet supported on the batch dimension.");
    if (attrs->size[1] != 1 || attrs->size[2] != 1 || attrs->stride[1] != 1 || attrs->stride[2] != 1)
        return mr_kernel_fail(
            call->node, error, MR_UNIMPLEMENTED,
            "MaxPooling supports exactly one of pooling across depth or pooling across width/height.");
    if (shape.dims[3] % window != 0)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "Depthwise max pooling requires the depth window to evenly divide the input depth");
    if (attrs->stride[3] != window)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "Depthwise max pooling requires the depth window to equal the depth stride");
    shape.dims[3] /= window;
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    pooling p = {.batch = mr_shape_count(shape),
                 .in_height = window,
                 .in_width = 1,
                 .channels = 1,
                 .out_height = 1,
                 .out_width = 1,
                 .window_y = window,
                 .window_x = 1,
                 .stride_y = 1,
                 .stride_x = 1,
                 .input = input->data,
                 .target = call->outputs[0].data};
    mr_pool_for(call->device->pool, p.batch, MR_MAX(1, MR_GRAIN / window), max_loops[input->dtype][0], &p);
    return MR_OK;
}

static mr_status max_pool_any(mr_kernel_call *call, mr_error *error)
{
    const max_pool_attrs *attrs = call->prepared;
    return attrs->size[3] > 1 ? max_pool_depth(call, error) : max_pool(call, error);
}

static mr_status check(const mr_kernel_call *call, int input, const char *name, mr_shape expected, mr_error *error)
{
    mr_shape given = call->inputs[input].shape;
    bool is_mean = strcmp(call->node->op, "AvgPoolGrad") == 0,
         is_second = strstr(call->node->op, "GradGrad") != nullptr;
    if (mr_shape_equal(given, expected)) return MR_OK;
    if (given.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 4-dimensional",
                              input == 1 && !is_mean ? "tensor_out"
                              : is_second            ? "out_grad_backprop"
                                                     : "out_backprop");
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected %s shape to be %s, but got %s", name,
                          mr_shape_text(expected, b, sizeof b), mr_shape_text(given, a, sizeof a));
}

static mr_status max_pool_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool_grad);
    const mr_tensor *input = &call->inputs[0];
    pooling p;
    MR_TRY(geometry(call, input->shape, &p, error));
    MR_TRY(check(call, 1, "orig_output", output_shape(&p), error));
    MR_TRY(check(call, 2, "grad", output_shape(&p), error));
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    p.input = input->data;
    p.gradient = call->inputs[2].data;
    p.target = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    bool apart = p.window_y <= p.stride_y && p.window_x <= p.stride_x;
    if (input->dtype == MR_FLOAT && !p.nchw && p.channels % 16 == 0 && apart && p.is_padded_little &&
        p.out_height > 0 && p.out_width > 0)
        run_rows(call, &p, fast_max_grad);
    else if (input->dtype == MR_FLOAT && !p.nchw && p.channels % 16 == 0)
        mr_pool_for(call->device->pool, p.batch, 1, overlapping_max_grad, &p);
    else
        mr_pool_for(call->device->pool, p.batch, 1, max_loops[input->dtype][1], &p);
    return MR_OK;
}

/* The gradient of MaxPoolGrad: the element of grad at the first position of each window that has the maximum. */
#define GRAD_GRAD(dtype, type, sum_type, suffix, lowest)                                                               \
    static void grad_grad_##suffix(void *context, int64_t begin, int64_t end)                                          \
    {                                                                                                                  \
        const pooling *p = context;                                                                                    \
        for (int64_t n = begin; n < end; n++) EACH_OUTPUT                                                              \
            {                                                                                                          \
                WINDOW for (int64_t c = 0; c < p->channels; c++)                                                       \
                {                                                                                                      \
                    int64_t out = OUT(n, oy, ox, c), chosen = -1;                                                      \
                    const type most = ((const type *)p->output)[out];                                                  \
                    EACH_INPUT if (chosen < 0 && ((const type *)p->input)[IN(n, y, x, c)] == most) chosen =            \
                        IN(n, y, x, c);                                                                                \
                    ((type *)p->target)[out] = chosen < 0 ? (type)0 : ((const type *)p->gradient)[chosen];             \
                }                                                                                                      \
            }                                                                                                          \
    }
EACH_POOLED(GRAD_GRAD)
#define GRAD_GRAD_ROW(dtype, type, sum_type, suffix, lowest) [dtype] = grad_grad_##suffix,
static const mr_pool_body grad_grad_loops[MR_DTYPE_COUNT] = {EACH_POOLED(GRAD_GRAD_ROW)};

static mr_status max_pool_grad_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(max_pool_grad_grad);
    const mr_tensor *input = &call->inputs[0];
    pooling p;
    MR_TRY(geometry(call, input->shape, &p, error));
    MR_TRY(check(call, 1, "orig_output", output_shape(&p), error));
    MR_TRY(check(call, 2, "grad", input->shape, error));
    MR_TRY(mr_kernel_output(call, 0, output_shape(&p), error));
    p.input = input->data;
    p.output = call->inputs[1].data;
    p.gradient = call->inputs[2].data;
    p.target = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    mr_pool_for(call->device->pool, p.batch, 1, grad_grad_loops[input->dtype], &p);
    return MR_OK;
}

static mr_status avg_pool(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(avg_pool);
    const mr_tensor *input = &call->inputs[0];
    pooling p;
    MR_TRY(geometry(call, input->shape, &p, error));
    MR_TRY(mr_kernel_output(call, 0, output_shape(&p), error));
    p.input = input->data;
    p.target = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    if (input->dtype == MR_FLOAT && !p.nchw)
        run_rows(call, &p, fast_mean);
    else
        mr_pool_for(call->device->pool, p.batch, 1, input->dtype == MR_FLOAT ? mean_float : mean_double, &p);
    return MR_OK;
}

static mr_status avg_pool_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(avg_pool_grad);
    const mr_tensor *gradient = &call->inputs[1];
    pooling p;
    mr_shape shape;
    if (call->inputs[0].shape.rank != 1 || mr_tensor_count(&call->inputs[0]) != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "out_backprop must be 1-dimensional and 4 elements");
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    MR_TRY(geometry(call, shape, &p, error));
    MR_TRY(check(call, 1, "grad", output_shape(&p), error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    p.gradient = gradient->data;
    p.target = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    mr_pool_body plain = gradient->dtype == MR_FLOAT ? mean_grad_float : mean_grad_double;
    mr_pool_for(call->device->pool, p.batch, 1, gradient->dtype == MR_FLOAT && !p.nchw ? fast_mean_grad : plain, &p);
    return MR_OK;
}

/* The second versions have ksize and strides as their last two inputs. */
static mr_status with_window_inputs(mr_kernel_call *call, mr_kernel_run run, mr_error *error)
{
    mr_window_attrs attrs = *(const mr_window_attrs *)call->prepared;
    int first = call->node->input_count - 2, count;
    int64_t values[2][4];
    bool is_forward = strcmp(call->node->op, "MaxPoolV2") == 0;
    for (int i = 0; i < 2; i++) {
        const char *what = i == 0 ? "ksize" : "strides";
        if (mr_tensor_count(&call->inputs[first + i]) != 4)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Sliding window %s field must specify 4 dimensions",
                                  i == 1 && is_forward ? "stride" : what);
        MR_TRY(mr_kernel_ints(call, first + i, what, values[i], 4, &count, error));
        for (int d = 0; d < 4 && is_forward && i == 0; d++)
            if (values[i][d] < 1)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Sliding window ksize must be positive.");
        if (values[i][0] != 1 || values[i][attrs.nchw ? 1 : 3] != 1)
            return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                                  "Pooling is not yet supported on the batch dimension or the channels.");
        for (int d = 0; d < 4; d++)
            if (values[i][d] < 1 || values[i][d] > INT32_MAX)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                      "Sliding window %s for dimension %d must be positive", what, d);
    }
    int height = attrs.nchw ? 2 : 1;
    attrs.window_y = values[0][height];
    attrs.window_x = values[0][height + 1];
    attrs.stride_y = values[1][height];
    attrs.stride_x = values[1][height + 1];
    mr_kernel_node node = *call->node;
    mr_kernel_call inner = *call;
    node.input_count = first;
    inner.node = &node;
    inner.prepared = &attrs;
    return run(&inner, error);
}

static mr_status max_pool_v2(mr_kernel_call *call, mr_error *error)
{
    return with_window_inputs(call, max_pool, error);
}

static mr_status max_pool_grad_v2(mr_kernel_call *call, mr_error *error)
{
    return with_window_inputs(call, max_pool_grad, error);
}

static mr_status max_pool_grad_grad_v2(mr_kernel_call *call, mr_error *error)
{
    return with_window_inputs(call, max_pool_grad_grad, error);
}

#define ROW(name, served, function, host)                                                                              \
    {.op = name,                                                                                                       \
     .types = served,                                                                                                  \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(mr_window_attrs),                                                                   \
     .prepare = prepare,                                                                                               \
     .host_inputs = host}
#define NUMBERS "T: half, bfloat16, float, double, int32, int64, int16, int8, uint8, uint16, uint32, uint64"
static const mr_kernel kernels[] = {
    {.op = "MaxPool",
     .types = NUMBERS,
     .run = max_pool_any,
     .prepared_size_bytes = sizeof(max_pool_attrs),
     .prepare = prepare_max_pool},
    ROW("MaxPoolGrad", NUMBERS, max_pool_grad, 0),
    ROW("MaxPoolGradGrad", NUMBERS, max_pool_grad_grad, 0),
    ROW("MaxPoolV2", NUMBERS, max_pool_v2, 3 << 1),
    ROW("MaxPoolGradV2", NUMBERS, max_pool_grad_v2, 3 << 3),
    ROW("MaxPoolGradGradV2", NUMBERS, max_pool_grad_grad_v2, 3 << 3),
    ROW("AvgPool", nullptr, avg_pool, 0),
    ROW("AvgPoolGrad", nullptr, avg_pool_grad, 1 << 0),
};
MR_KERNEL_FAMILY(pool);
