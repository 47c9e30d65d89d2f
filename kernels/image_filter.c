/* ScaleAndTranslate and its gradient: images resampled with a filter
 * (tensorflow/core/kernels/image/scale_and_translate_op.cc). Weights and sums are floats in TensorFlow's order. */
#include "kernels/image_floats.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Filters: the weight at a distance of x >= 0 ---- */

static float lanczos(float x, float radius)
{
    constexpr float pi = 3.14159265359f;
    if (x > radius) return 0;
    if (x <= 1e-3f) return 1;
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float gaussian(float x, float radius)
{
    float sigma = radius / 3;
    return x >= radius ? 0 : (float)exp((double)(-x * x) / (2.0 * (double)sigma * (double)sigma));
}

static float box(float x, float)
{
    return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}

static float triangle(float x, float)
{
    return x < 1 ? 1 - x : 0;
}

static float keys_cubic(float x, float)
{
    if (x >= 2) return 0;
    if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f;
    return ((1.5f * x - 2.5f) * x) * x + 1.0f;
}

static float mitchell_cubic(float x, float)
{
    if (x >= 2) return 0;
    if (x >= 1) return (((-7.0f / 18.0f) * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
    return (((7.0f / 6.0f) * x - 2.0f) * x) * x + 8.0f / 9.0f;
}

typedef struct filter {
    const char *name;
    float (*weight)(float x, float radius);
    float radius;
} filter;

static const filter filters[] = {
    {"lanczos1", lanczos, 1},
    {"lanczos3", lanczos, 3},
    {"lanczos5", lanczos, 5},
    {"gaussian", gaussian, 1.5f},
    {"box", box, 1},
    {"triangle", triangle, 1},
    {"keyscubic", keys_cubic, 2},
    {"mitchellcubic", mitchell_cubic, 2},
};

typedef struct scale_options {
    const filter *filter;
    bool antialias;
} scale_options;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    scale_options *options = prepared;
    mr_string name = mr_attr_string_or(node->attrs, "kernel_type", "lanczos3");
    options->antialias = mr_attr_bool_or(node->attrs, "antialias", true);
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        if (mr_string_equal(name, mr_string_from(filters[i].name))) options->filter = &filters[i];
    if (options->filter != nullptr) return MR_OK;
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Unrecognized kernel type: %.*s", (int)name.size_bytes,
                          name.data);
}

/* ---- Spans: for each pixel of an axis of the result, pixels of the source and their weights ---- */

typedef struct spans {
    int64_t count, size; /* pixels of the result; weights of each */
    int64_t *starts;
    float *weights; /* [count, size] */
} spans;

static void spans_free(spans *spans)
{
    free(spans->starts);
    free(spans->weights);
}

static mr_status spans_init(const mr_kernel_call *call, spans *spans, int64_t count, int64_t size, mr_error *error)
{
    size_t weights;
    *spans = (struct spans){.count = count, .size = size};
    if (__builtin_mul_overflow((size_t)count, (size_t)MR_MAX(size, 1), &weights)) weights = SIZE_MAX;
    spans->starts = calloc((size_t)count + 1, sizeof *spans->starts);
    spans->weights = weights < SIZE_MAX ? calloc(weights + 1, sizeof *spans->weights) : nullptr;
    if (spans->starts && spans->weights) return MR_OK;
    spans_free(spans);
    *spans = (struct spans){0};
    return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for the weights of %" PRId64 " pixels",
                          count);
}

/* Rounds a position to a pixel. */
static int64_t pixel(float position, int64_t size)
{
    return position >= (float)size ? size - 1 : position > 0 ? MR_MIN((int64_t)position, size - 1) : 0;
}

/* in > 0 */
static mr_status spans_compute(const mr_kernel_call *call, int64_t out, int64_t in, float scale, float translation,
                               spans *spans, mr_error *error)
{
    const scale_options *options = call->prepared;
    const filter *filter = options->filter;
    float inverse = (float)(1.0 / (double)scale), shift = -inverse * translation;
    float stretch = options->antialias && inverse > 1 ? inverse : 1, shrink = 1.0f / stretch;
    float radius = filter->radius * stretch;
    int64_t size = radius < (float)in ? MR_MIN(2 * (int64_t)ceilf(radius) + 1, in) : in;
    MR_TRY(spans_init(call, spans, out, size, error));
    for (int64_t x = 0; x < out; x++) {
        float at = ((float)x + 0.5f) * inverse + shift, sum = 0, *weights = spans->weights + x * size;
        if (!(at >= 0 && at <= (float)in)) continue;
        int64_t begin = pixel(ceilf(at - radius - 0.5f), in), end = pixel(floorf(at + radius - 0.5f), in) + 1;
        if (end - begin > size)
            return mr_kernel_fail(call->node, error, MR_INTERNAL, "Span is too large: %" PRId64 " vs %" PRId64 ".",
                                  end - begin, size);
        for (int64_t source = begin; source < end; source++) {
            float distance = (float)source + 0.5f - at;
            weights[source - begin] = filter->weight(fabsf(distance * shrink), filter->radius);
            sum += weights[source - begin];
        }
        float factor = fabsf(sum) >= 1000.0f * FLT_MIN ? 1.0f / sum : 0;
        for (int64_t i = 0; i < end - begin; i++) weights[i] = factor == 0 ? 0 : weights[i] * factor;
        spans->starts[x] = begin;
    }
    return MR_OK;
}

/* The transposed spans: for each pixel of the source, the pixels of the result that it contributes to. */
static mr_status spans_transpose(const mr_kernel_call *call, const spans *forward, int64_t in, spans *spans,
                                 mr_error *error)
{
    int64_t size = 0, *ends = calloc((size_t)in + 1, sizeof *ends);
    *spans = (struct spans){0};
    if (!ends) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory");
    struct spans extent;
    mr_status status = spans_init(call, &extent, in, 0, error);
    for (int pass = 0; pass < 2 && status == MR_OK; pass++) {
        if (pass == 1) {
            for (int64_t i = 0; i < in; i++) size = MR_MAX(size, ends[i] - extent.starts[i]);
            status = spans_init(call, spans, in, size, error);
            if (status != MR_OK) break;
            memcpy(spans->starts, extent.starts, (size_t)in * sizeof *spans->starts);
        }
        for (int64_t i = 0; i < forward->count * forward->size; i++) {
            int64_t x = i / forward->size, source = forward->starts[x] + i % forward->size;
            if (forward->weights[i] == 0 || source >= in) continue;
            if (pass == 1) {
                spans->weights[source * size + x - spans->starts[source]] += forward->weights[i];
            } else {
                if (ends[source] == 0) extent.starts[source] = x;
                ends[source] = x + 1;
            }
        }
    }
    spans_free(&extent);
    free(ends);
    return status;
}

/* ---- Sums ---- */

typedef struct scale_job {
    const float *images;
    float *target;
    int64_t height, width, channels; /* of the source */
    const spans *rows, *columns;
    int failed;
} scale_job;

static void scale_rows(void *context, int64_t begin, int64_t end)
{
    scale_job *job = context;
    const spans *rows = job->rows, *columns = job->columns;
    int64_t line = job->width * job->channels, channels = job->channels;
    float *sums = malloc((size_t)line * sizeof *sums + 1);
    if (!sums) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i / rows->count, y = i % rows->count, start = rows->starts[y];
        const float *from = job->images + (n * job->height + start) * line;
        memset(sums, 0, (size_t)line * sizeof *sums);
        for (int64_t k = 0; k < rows->size && start + k < job->height; k++, from += line) {
            float weight = rows->weights[y * rows->size + k];
            for (int64_t c = 0; c < line; c++) sums[c] += weight * from[c];
        }
        float *to = job->target + i * columns->count * channels;
        for (int64_t x = 0; x < columns->count; x++, to += channels) {
            const float *pixel = sums + columns->starts[x] * channels;
            for (int64_t c = 0; c < channels; c++) to[c] = 0;
            for (int64_t k = 0; k < columns->size && columns->starts[x] + k < job->width; k++, pixel += channels)
                for (int64_t c = 0; c < channels; c++) to[c] += columns->weights[x * columns->size + k] * pixel[c];
        }
    }
    free(sums);
}

static mr_status scale_images(mr_kernel_call *call, int64_t batch, const spans *rows, const spans *columns,
                              mr_error *error)
{
    const mr_tensor *images = &call->inputs[0];
    const int64_t *dims = images->shape.dims;
    float *owned;
    scale_job job = {.target = mr_tensor_floats(&call->outputs[0]),
                     .height = dims[1],
                     .width = dims[2],
                     .channels = dims[3],
                     .rows = rows,
                     .columns = columns};
    MR_TRY(mr_image_floats(call, images, &job.images, &owned, error));
    if (mr_tensor_count(images) == 0) job.height = job.width = 0; /* the other sizes can be too large to multiply */
    int64_t cost = MR_MAX(1, (rows->size + columns->size) * MR_MAX(job.width, columns->count) * job.channels);
    mr_pool_for(call->device->pool, batch * rows->count, MR_MAX(1, 65536 / cost), scale_rows, &job);
    free(owned);
    return job.failed ? mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for a row") : MR_OK;
}

/* ---- The operators ---- */

static mr_status read_pair(const mr_kernel_call *call, int input, float pair[2], mr_error *error)
{
    mr_shape shape = call->inputs[input].shape;
    char text[MR_SHAPE_TEXT_SIZE];
    if (shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "t must be 1-dimensional%s",
                              mr_shape_text(shape, text, sizeof text));
    if (shape.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "t must have two elements%s",
                              mr_shape_text(shape, text, sizeof text));
    memcpy(pair, call->inputs[input].data, 2 * sizeof(float));
    return MR_OK;
}

/* Reads inputs 2 and 3. */
static mr_status read_scale(const mr_kernel_call *call, float scale[2], float translation[2], mr_error *error)
{
    MR_TRY(read_pair(call, 2, scale, error));
    if (!(scale[0] > 0 && scale[1] > 0))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Scale must be greater than zero.");
    return read_pair(call, 3, translation, error);
}

static mr_status scale_and_translate(mr_kernel_call *call, mr_error *error)
{
    mr_shape images = call->inputs[0].shape, size = call->inputs[1].shape;
    const int64_t *dims = images.dims;
    char text[MR_SHAPE_TEXT_SIZE];
    float scale[2], translation[2];
    if (images.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4-dimensional%s",
                              mr_shape_text(images, text, sizeof text));
    if (size.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output_shape_t must be 1-dimensional%s",
                              mr_shape_text(size, text, sizeof text));
    if (size.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output_shape_t must have two elements%s",
                              mr_shape_text(size, text, sizeof text));
    int64_t height = mr_tensor_int32s(&call->inputs[1])[0], width = mr_tensor_int32s(&call->inputs[1])[1];
    if (dims[1] >= INT32_MAX || dims[2] >= INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input sizes must be between 0 and max int32");
    if (height <= 0 || width <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output dimensions must be positive");
    if (dims[3] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image must have at least one channel");
    if (dims[1] <= 0 || dims[2] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input image must be of non-zero size");
    MR_TRY(read_scale(call, scale, translation, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(dims[0], height, width, dims[3]), error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    spans rows = {0}, columns = {0};
    mr_status status = spans_compute(call, height, dims[1], scale[0], translation[0], &rows, error);
    if (status == MR_OK) status = spans_compute(call, width, dims[2], scale[1], translation[1], &columns, error);
    if (status == MR_OK) status = scale_images(call, dims[0], &rows, &columns, error);
    spans_free(&rows);
    spans_free(&columns);
    return status;
}

static mr_status grad_spans(const mr_kernel_call *call, int axis, float scale, float translation, spans *spans,
                            mr_error *error)
{
    int64_t out = call->inputs[0].shape.dims[1 + axis], in = call->inputs[1].shape.dims[1 + axis];
    struct spans forward = {0};
    mr_status status = spans_compute(call, out, in, scale, translation, &forward, error);
    if (status == MR_OK) status = spans_transpose(call, &forward, in, spans, error);
    spans_free(&forward);
    return status;
}

static mr_status scale_and_translate_grad(mr_kernel_call *call, mr_error *error)
{
    mr_shape grads = call->inputs[0].shape, original = call->inputs[1].shape;
    char text[MR_SHAPE_TEXT_SIZE];
    float scale[2], translation[2];
    if (grads.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input_grad must be 4-dimensional%s",
                              mr_shape_text(grads, text, sizeof text));
    if (original.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "original_image must be 4-dimensional%s",
                              mr_shape_text(original, text, sizeof text));
    if (original.dims[1] >= INT32_MAX || original.dims[2] >= INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "original sizes must be between 0 and max int32");
    if (grads.dims[0] != original.dims[0] || grads.dims[3] != original.dims[3])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input_grad and original_image must have the same batch and channels");
    MR_TRY(read_scale(call, scale, translation, error));
    MR_TRY(mr_kernel_output(call, 0, original, error));
    mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) == 0) return MR_OK;
    memset(output->data, 0, mr_tensor_size_bytes(output));
    if (mr_tensor_count(&call->inputs[0]) == 0) return MR_OK;
    spans rows = {0}, columns = {0};
    mr_status status = grad_spans(call, 0, scale[0], translation[0], &rows, error);
    if (status == MR_OK) status = grad_spans(call, 1, scale[1], translation[1], &columns, error);
    if (status == MR_OK) status = scale_images(call, grads.dims[0], &rows, &columns, error);
    spans_free(&rows);
    spans_free(&columns);
    return status;
}

#define SCALE(name, function)                                                                                          \
    {.op = name, .run = function, .prepared_size_bytes = sizeof(scale_options), .prepare = prepare}
static const mr_kernel kernels[] = {
    SCALE("ScaleAndTranslate", scale_and_translate),
    SCALE("ScaleAndTranslateGrad", scale_and_translate_grad),
};
MR_KERNEL_FAMILY(image_filter);
