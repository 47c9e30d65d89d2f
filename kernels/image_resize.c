/* ResizeBilinear, ResizeBicubic, ResizeArea, ResizeNearestNeighbor and their gradients, for all dtypes.
 *
 * Coordinates, weights and sums are floats in TensorFlow's order, so that the results are its results bit for bit
 * (tensorflow/core/kernels/image/resize_*_op.cc). The functions of <millrace/image.h>, which the pipeline uses, order
 * the sums in another way. Rows of the result are computed by any thread; gradients add in the order of the pixels. */
#include "base/halves.h"
#include "kernels/image/resize.h"
#include "kernels/image_floats.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct resize_job {
    const mr_resize_options *options;
    const void *source; /* floats, or elements of any size for the nearest neighbor */
    void *target;
    int64_t height, width, channels; /* of the source */
    int64_t out_height, out_width;
    float y_scale, x_scale;
    size_t element_size;
    void *columns; /* precomputed for each column of the result */
} resize_job;

mr_status mr_image_floats(const mr_kernel_call *call, const mr_tensor *images, const float **floats, float **owned,
                          mr_error *error)
{
    *owned = nullptr;
    *floats = images->data;
    int64_t count = mr_tensor_count(images);
    if (images->dtype == MR_FLOAT) return MR_OK;
    float *to = *owned = malloc((size_t)MR_MAX(count, 1) * sizeof(float));
    if (!to) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRId64 " floats", count);
    *floats = mr_pixels_as_floats(images, 0, count, to);
    return MR_OK;
}

static int64_t bound(int64_t value, int64_t limit)
{
    return value < 0 ? 0 : value >= limit ? limit - 1 : value;
}

/* ---- Bilinear ---- */

typedef struct line {
    int64_t low, high;
    float share; /* of high */
} line;

static line line_at(const mr_resize_options *options, int64_t index, float scale, int64_t size)
{
    float at = mr_resize_coordinate(options, scale, index), below = floorf(at);
    return (line){bound((int64_t)below, size), bound((int64_t)ceilf(at), size), at - below};
}

static void bilinear_rows(void *context, int64_t begin, int64_t end)
{
    const resize_job *job = context;
    const line *columns = job->columns;
    int64_t row_size = job->width * job->channels, channels = job->channels;
    for (int64_t i = begin; i < end; i++) {
        line row = line_at(job->options, i % job->out_height, job->y_scale, job->height);
        const float *image = (const float *)job->source + i / job->out_height * job->height * row_size;
        const float *low = image + row.low * row_size, *high = image + row.high * row_size;
        float *target = (float *)job->target + i * job->out_width * channels;
        for (int64_t x = 0; x < job->out_width; x++, target += channels) {
            int64_t left = columns[x].low * channels, right = columns[x].high * channels;
            float share = columns[x].share;
            for (int64_t c = 0; c < channels; c++) {
                float top = low[left + c] + (low[right + c] - low[left + c]) * share;
                float bottom = high[left + c] + (high[right + c] - high[left + c]) * share;
                target[c] = top + (bottom - top) * row.share;
            }
        }
    }
}

/* ---- Bicubic ---- */

typedef struct taps {
    int64_t index[4];
    float weight[4];
} taps;

/* Cubic convolution in steps of 1/1024: near is for distances below 1, far for those from 1 to 2. */
static float cubic_near(double a, int64_t step)
{
    double x = (double)(float)((double)step / 1024);
    return (float)(((a + 2) * x - (a + 3)) * x * x + 1);
}

static float cubic_far(double a, int64_t step)
{
    double x = (double)(float)((double)(float)((double)step / 1024) + 1.0);
    return (float)(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

static taps taps_at(const mr_resize_options *options, int64_t index, float scale, int64_t size)
{
    bool keys = options->half_pixel_centers;
    double a = keys ? -0.5 : -0.75;
    float at = mr_resize_coordinate(options, scale, index);
    int64_t below = (int64_t)floorf(at), step = lrintf((at - (float)below) * 1024);
    taps result = {
        .weight = {cubic_far(a, step), cubic_near(a, step), cubic_near(a, 1024 - step), cubic_far(a, 1024 - step)}};
    for (int k = 0; k < 4; k++) {
        result.index[k] = bound(below - 1 + k, size);
        if (keys && result.index[k] != below - 1 + k) result.weight[k] = 0;
    }
    float sum = result.weight[0] + result.weight[1] + result.weight[2] + result.weight[3];
    if (!keys || fabsf(sum) < 1000.0f * 0x1p-126f) return result;
    float inverse = 1.0f / sum;
    for (int k = 0; k < 4; k++) result.weight[k] *= inverse;
    return result;
}

static void bicubic_rows(void *context, int64_t begin, int64_t end)
{
    const resize_job *job = context;
    const taps *columns = job->columns;
    int64_t row_size = job->width * job->channels, channels = job->channels;
    for (int64_t i = begin; i < end; i++) {
        taps row = taps_at(job->options, i % job->out_height, job->y_scale, job->height);
        const float *image = (const float *)job->source + i / job->out_height * job->height * row_size;
        const float *rows[4];
        for (int k = 0; k < 4; k++) rows[k] = image + row.index[k] * row_size;
        float *target = (float *)job->target + i * job->out_width * channels;
        for (int64_t x = 0; x < job->out_width; x++, target += channels)
            for (int64_t c = 0; c < channels; c++) {
                float values[4];
                for (int k = 0; k < 4; k++) {
                    int64_t at = columns[x].index[k] * channels + c;
                    values[k] = rows[0][at] * row.weight[0] + rows[1][at] * row.weight[1] +
                                rows[2][at] * row.weight[2] + rows[3][at] * row.weight[3];
                }
                const float *weight = columns[x].weight;
                target[c] =
                    values[0] * weight[0] + values[1] * weight[1] + values[2] * weight[2] + values[3] * weight[3];
            }
    }
}

/* ---- Area ---- */

typedef struct span {
    int64_t begin, end;
    float at, at_end; /* the coordinates */
} span;

static span span_at(int64_t index, float scale)
{
    float at = (float)index * scale, at_end = (float)(index + 1) * scale;
    return (span){(int64_t)floorf(at), (int64_t)ceilf(at_end), at, at_end};
}

/* How much of pixel `index` is in the span. */
static float covered(span s, int64_t index, float scale)
{
    float low = (float)index, high = (float)(index + 1);
    if (low < s.at) return high > s.at_end ? scale : high - s.at;
    return high > s.at_end ? s.at_end - low : 1.0f;
}

static void area_rows(void *context, int64_t begin, int64_t end)
{
    const resize_job *job = context;
    const span *columns = job->columns;
    int64_t row_size = job->width * job->channels, channels = job->channels;
    float scale = (float)(1.0 / (double)(job->y_scale * job->x_scale));
    for (int64_t i = begin; i < end; i++) {
        span rows = span_at(i % job->out_height, job->y_scale);
        const float *image = (const float *)job->source + i / job->out_height * job->height * row_size;
        float *target = (float *)job->target + i * job->out_width * channels;
        for (int64_t x = 0; x < job->out_width; x++, target += channels) {
            span s = columns[x];
            float first = covered(s, s.begin, job->x_scale), last = covered(s, s.end - 1, job->x_scale);
            for (int64_t c = 0; c < channels; c++) {
                float sum = 0;
                for (int64_t y = rows.begin; y < rows.end; y++) {
                    const float *row = image + bound(y, job->height) * row_size + c;
                    float sum_x = row[bound(s.begin, job->width) * channels] * first;
                    for (int64_t k = s.begin + 1; k < s.end - 1; k++) sum_x += row[bound(k, job->width) * channels];
                    if (s.begin + 1 != s.end) sum_x += row[bound(s.end - 1, job->width) * channels] * last;
                    sum += sum_x * covered(rows, y, job->y_scale);
                }
                target[c] = sum * scale;
            }
        }
    }
}

/* ---- Nearest neighbor ---- */

static int64_t nearest(const mr_resize_options *options, int64_t index, float scale, int64_t size)
{
    float at = options->half_pixel_centers ? ((float)index + 0.5f) * scale : (float)index * scale;
    return bound((int64_t)(options->align_corners ? roundf(at) : floorf(at)), size);
}

static void nearest_rows(void *context, int64_t begin, int64_t end)
{
    const resize_job *job = context;
    const int64_t *columns = job->columns;
    size_t pixel = (size_t)job->channels * job->element_size;
    for (int64_t i = begin; i < end; i++) {
        int64_t y = nearest(job->options, i % job->out_height, job->y_scale, job->height);
        const char *row =
            (const char *)job->source + (size_t)((i / job->out_height * job->height + y) * job->width) * pixel;
        char *target = (char *)job->target + (size_t)(i * job->out_width) * pixel;
        for (int64_t x = 0; x < job->out_width; x++)
            memcpy(target + (size_t)x * pixel, row + (size_t)columns[x] * pixel, pixel);
    }
}

/* ---- The operators ---- */

static mr_status check_options(const mr_kernel_call *call, mr_error *error)
{
    const mr_resize_options *options = call->prepared;
    if (!options->half_pixel_centers || !options->align_corners) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "If half_pixel_centers is True, align_corners must be False.");
}

static mr_status read_size(const mr_kernel_call *call, const char *rule, int64_t size[2], mr_error *error)
{
    const mr_tensor *sizes = &call->inputs[1];
    if (sizes->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shape_t must be 1-dimensional%s",
                              mr_shape_text(sizes->shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE));
    if (sizes->shape.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shape_t must have two elements[%lld]",
                              (long long)sizes->shape.dims[0]);
    for (int i = 0; i < 2; i++) size[i] = mr_tensor_int32s(sizes)[i];
    if (size[0] <= 0 || size[1] <= 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s", rule);
    return MR_OK;
}

static mr_status check_images(const mr_kernel_call *call, mr_error *error)
{
    const mr_shape *shape = &call->inputs[0].shape;
    char text[MR_SHAPE_TEXT_SIZE];
    if (shape->rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4-dimensional%s",
                              mr_shape_text(*shape, text, sizeof text));
    if (shape->dims[3] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image must have at least one channel");
    if (shape->dims[1] <= 0 || shape->dims[2] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input image must be of non-zero size");
    if (shape->dims[1] >= INT32_MAX || shape->dims[2] >= INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input sizes must be between 0 and max int32");
    return MR_OK;
}

static mr_status fill_columns(const mr_kernel_call *call, resize_job *job, mr_error *error)
{
    mr_resize_method method = job->options->method;
    size_t size = method == MR_RESIZE_BILINEAR  ? sizeof(line)
                  : method == MR_RESIZE_BICUBIC ? sizeof(taps)
                  : method == MR_RESIZE_AREA    ? sizeof(span)
                                                : sizeof(int64_t);
    job->columns = calloc((size_t)job->out_width, size);
    if (!job->columns)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for a table of %" PRId64 " columns",
                              job->out_width);
    for (int64_t x = 0; x < job->out_width; x++) {
        if (method == MR_RESIZE_BILINEAR)
            ((line *)job->columns)[x] = line_at(job->options, x, job->x_scale, job->width);
        else if (method == MR_RESIZE_BICUBIC)
            ((taps *)job->columns)[x] = taps_at(job->options, x, job->x_scale, job->width);
        else if (method == MR_RESIZE_AREA)
            ((span *)job->columns)[x] = span_at(x, job->x_scale);
        else
            ((int64_t *)job->columns)[x] = nearest(job->options, x, job->x_scale, job->width);
    }
    return MR_OK;
}

static mr_status resize(mr_kernel_call *call, mr_error *error)
{
    const mr_resize_options *options = call->prepared;
    const mr_tensor *images = &call->inputs[0];
    int64_t size[2];
    float *owned = nullptr;
    MR_TRY(check_options(call, error));
    MR_TRY(check_images(call, error));
    MR_TRY(read_size(call, "output dimensions must be positive", size, error));
    const int64_t *dims = images->shape.dims;
    resize_job job = {.options = options,
                      .source = images->data,
                      .height = dims[1],
                      .width = dims[2],
                      .channels = dims[3],
                      .out_height = size[0],
                      .out_width = size[1],
                      .y_scale = mr_resize_scale(options, dims[1], size[0]),
                      .x_scale = mr_resize_scale(options, dims[2], size[1]),
                      .element_size = mr_dtype_size(images->dtype)};
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(dims[0], size[0], size[1], dims[3]), error));
    job.target = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    mr_status status = MR_OK;
    if (options->method != MR_RESIZE_NEAREST)
        status = mr_image_floats(call, images, (const float **)&job.source, &owned, error);
    bool is_same = options->method == MR_RESIZE_BILINEAR && dims[1] == size[0] && dims[2] == size[1];
    if (status == MR_OK && !is_same) status = fill_columns(call, &job, error);
    if (status == MR_OK && is_same)
        memcpy(job.target, job.source, (size_t)mr_tensor_count(&call->outputs[0]) * sizeof(float));
    if (status == MR_OK && !is_same) {
        void (*const rows)(void *, int64_t, int64_t) = options->method == MR_RESIZE_BILINEAR  ? bilinear_rows
                                                       : options->method == MR_RESIZE_BICUBIC ? bicubic_rows
                                                       : options->method == MR_RESIZE_AREA    ? area_rows
                                                                                              : nearest_rows;
        int64_t row = MR_MAX(job.out_width * job.channels, job.width * job.channels);
        mr_pool_for(call->device->pool, dims[0] * size[0], MR_MAX(1, MR_GRAIN / 4 / row), rows, &job);
    }
    free(job.columns);
    free(owned);
    return status;
}

/* ---- Gradients ---- */

/* Adds the gradient of each pixel to the pixels that it was interpolated from. */
#define BILINEAR_GRADIENT(name, type)                                                                                  \
    static void name(const resize_job *job, int64_t batch, const float *from, type *to)                                \
    {                                                                                                                  \
        int64_t channels = job->channels, row_size = job->width * channels;                                            \
        const line *columns = job->columns;                                                                            \
        for (int64_t i = 0; i < batch * job->out_height; i++) {                                                        \
            line row = line_at(job->options, i % job->out_height, job->y_scale, job->height);                          \
            type *image = to + i / job->out_height * job->height * row_size;                                           \
            type *low = image + row.low * row_size, *high = image + row.high * row_size;                               \
            for (int64_t x = 0; x < job->out_width; x++, from += channels) {                                           \
                int64_t left = columns[x].low * channels, right = columns[x].high * channels;                          \
                for (int64_t c = 0; c < channels; c++) {                                                               \
                    low[left + c] += (type)(from[c] * (1 - row.share) * (1 - columns[x].share));                       \
                    low[right + c] += (type)(from[c] * (1 - row.share) * columns[x].share);                            \
                    high[left + c] += (type)(from[c] * row.share * (1 - columns[x].share));                            \
                    high[right + c] += (type)(from[c] * row.share * columns[x].share);                                 \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
BILINEAR_GRADIENT(bilinear_gradient_float, float)
BILINEAR_GRADIENT(bilinear_gradient_double, double)

#define BICUBIC_GRADIENT(name, type)                                                                                   \
    static void name(const resize_job *job, int64_t batch, const float *from, type *to)                                \
    {                                                                                                                  \
        int64_t channels = job->channels, row_size = job->width * channels;                                            \
        const taps *columns = job->columns;                                                                            \
        for (int64_t i = 0; i < batch * job->out_height; i++) {                                                        \
            taps row = taps_at(job->options, i % job->out_height, job->y_scale, job->height);                          \
            type *image = to + i / job->out_height * job->height * row_size;                                           \
            for (int64_t x = 0; x < job->out_width; x++, from += channels)                                             \
                for (int64_t c = 0; c < channels; c++)                                                                 \
                    for (int k = 0; k < 16; k++)                                                                       \
                        image[row.index[k / 4] * row_size + columns[x].index[k % 4] * channels + c] +=                 \
                            (type)from[c] * (type)row.weight[k / 4] * (type)columns[x].weight[k % 4];                  \
        }                                                                                                              \
    }
BICUBIC_GRADIENT(bicubic_gradient_float, float)
BICUBIC_GRADIENT(bicubic_gradient_double, double)

static mr_status check_gradient(const mr_kernel_call *call, mr_error *error)
{
    const mr_shape *gradients = &call->inputs[0].shape, *original = &call->inputs[1].shape;
    MR_TRY(check_options(call, error));
    if (gradients->rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input_grad must be 4-dimensional");
    if (gradients->dims[1] <= 0 || gradients->dims[2] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "resized dimensions must be positive");
    if (original->rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "original_image must be 4-dimensional");
    if (original->dims[1] <= 0 || original->dims[2] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "original dimensions must be positive");
    if (original->dims[1] >= INT32_MAX || original->dims[2] >= INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "original sizes must be between 0 and max int32");
    return MR_OK;
}

static void run_gradient(const resize_job *job, int64_t batch, const float *from, void *to, mr_dtype dtype)
{
    if (job->options->method == MR_RESIZE_BICUBIC && dtype == MR_DOUBLE)
        bicubic_gradient_double(job, batch, from, to);
    else if (job->options->method == MR_RESIZE_BICUBIC)
        bicubic_gradient_float(job, batch, from, to);
    else if (dtype == MR_DOUBLE)
        bilinear_gradient_double(job, batch, from, to);
    else
        bilinear_gradient_float(job, batch, from, to);
}

/* Half types are summed as floats. */
static mr_status resize_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_resize_options *options = call->prepared;
    MR_TRY(check_gradient(call, error));
    const int64_t *gradients = call->inputs[0].shape.dims, *original = call->inputs[1].shape.dims;
    resize_job job = {.options = options,
                      .height = original[1],
                      .width = original[2],
                      .channels = gradients[3],
                      .out_height = gradients[1],
                      .out_width = gradients[2],
                      .y_scale = mr_resize_scale(options, original[1], gradients[1]),
                      .x_scale = mr_resize_scale(options, original[2], gradients[2])};
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(gradients[0], original[1], original[2], gradients[3]), error));
    mr_tensor *output = &call->outputs[0];
    int64_t count = mr_tensor_count(output);
    if (count == 0) return MR_OK;
    const bool is_half = mr_is_half(output->dtype);
    void *sums = is_half ? malloc((size_t)count * sizeof(float)) : output->data;
    if (!sums) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for the sums");
    memset(sums, 0, (size_t)count * (output->dtype == MR_DOUBLE ? sizeof(double) : sizeof(float)));
    mr_status status = fill_columns(call, &job, error);
    if (status == MR_OK) run_gradient(&job, gradients[0], mr_tensor_floats(&call->inputs[0]), sums, output->dtype);
    if (is_half && status == MR_OK) mr_floats_to_halves(output->data, sums, count, output->dtype);
    if (is_half) free(sums);
    free(job.columns);
    return status;
}

/* target[i] += source[i], rounded to the dtype. */
static void add_pixel(mr_dtype dtype, void *target, const void *source, int64_t count)
{
    switch (dtype) {
#define ADD(dtype, type, suffix)                                                                                       \
    case dtype:                                                                                                        \
        for (int64_t i = 0; i < count; i++) ((type *)target)[i] += ((const type *)source)[i];                          \
        break;
        MR_EACH_WRAPPING_NUMBER(ADD)
#undef ADD
    case MR_HALF:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)target)[i] = mr_float_to_half(mr_half_to_float(((uint16_t *)target)[i]) +
                                                       mr_half_to_float(((const uint16_t *)source)[i]));
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)target)[i] = mr_float_to_bfloat16(mr_bfloat16_to_float(((uint16_t *)target)[i]) +
                                                           mr_bfloat16_to_float(((const uint16_t *)source)[i]));
        break;
    }
}

static mr_status nearest_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_resize_options *options = call->prepared;
    const mr_tensor *gradients = &call->inputs[0];
    const int64_t *dims = gradients->shape.dims;
    int64_t size[2];
    if (gradients->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4-dimensional");
    MR_TRY(read_size(call, "shape_t's elements must be positive", size, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(dims[0], size[0], size[1], dims[3]), error));
    mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) == 0) return MR_OK;
    memset(output->data, 0, mr_tensor_size_bytes(output));
    if (mr_tensor_count(gradients) == 0) return MR_OK;
    float y_scale = mr_resize_scale(options, size[0], dims[1]), x_scale = mr_resize_scale(options, size[1], dims[2]);
    size_t pixel = (size_t)dims[3] * mr_dtype_size(gradients->dtype);
    const char *from = gradients->data;
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        int64_t y = i / dims[1] * size[0] + nearest(options, i % dims[1], y_scale, size[0]);
        for (int64_t x = 0; x < dims[2]; x++, from += pixel) {
            int64_t at = y * size[1] + nearest(options, x, x_scale, size[1]);
            add_pixel(gradients->dtype, (char *)output->data + (size_t)at * pixel, from, dims[3]);
        }
    }
    return MR_OK;
}

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *)
{
    *(mr_resize_options *)prepared = (mr_resize_options){
        .size = sizeof(mr_resize_options),
        .method = strncmp(node->op, "ResizeNearest", 13) == 0   ? MR_RESIZE_NEAREST
                  : strncmp(node->op, "ResizeBicubic", 13) == 0 ? MR_RESIZE_BICUBIC
                  : strcmp(node->op, "ResizeArea") == 0         ? MR_RESIZE_AREA
                                                                : MR_RESIZE_BILINEAR,
        .align_corners = mr_attr_bool_or(node->attrs, "align_corners", false),
        .half_pixel_centers = mr_attr_bool_or(node->attrs, "half_pixel_centers", false),
    };
    return MR_OK;
}

#define RESIZE(operator, function)                                                                                     \
    {.op = operator, .run = function, .prepared_size_bytes = sizeof(mr_resize_options), .prepare = prepare}

static const mr_kernel kernels[] = {
    RESIZE("ResizeBilinear", resize),
    RESIZE("ResizeBicubic", resize),
    RESIZE("ResizeArea", resize),
    RESIZE("ResizeNearestNeighbor", resize),
    RESIZE("ResizeBilinearGrad", resize_grad),
    RESIZE("ResizeBicubicGrad", resize_grad),
    RESIZE("ResizeNearestNeighborGrad", nearest_grad),
};
MR_KERNEL_FAMILY(image_resize);
