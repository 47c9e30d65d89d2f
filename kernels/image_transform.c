/* ImageProjectiveTransform and its versions: each pixel of the result is read at a point of the image
 * (tensorflow/core/kernels/image/image_ops.h). Coordinates are floats in TensorFlow's order, so that results are its
 * results bit for bit. */
#include "kernels/common.h"
#include <math.h>
#include <string.h>

typedef enum fill_mode { FILL_CONSTANT, FILL_REFLECT, FILL_WRAP, FILL_NEAREST } fill_mode;

typedef struct transform_options {
    bool is_bilinear;
    fill_mode mode;
} transform_options;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    static const char *const modes[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
    transform_options *options = prepared;
    mr_string interpolation = mr_attr_string_or(node->attrs, "interpolation", "NEAREST");
    mr_string mode = mr_attr_string_or(node->attrs, "fill_mode", "CONSTANT");
    *options = (transform_options){.is_bilinear = mr_string_equal(interpolation, MR_STR("BILINEAR"))};
    if (!options->is_bilinear && !mr_string_equal(interpolation, MR_STR("NEAREST")))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Invalid interpolation %.*s. Supported types: NEAREST, BILINEAR",
                              (int)interpolation.size_bytes, interpolation.data);
    while (options->mode <= FILL_NEAREST && !mr_string_equal(mode, mr_string_from(modes[options->mode])))
        if (++options->mode > FILL_NEAREST)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                                  "Invalid mode %.*s. Supported types: REFLECT, WRAP, CONSTANT, NEAREST",
                                  (int)mode.size_bytes, mode.data);
    return MR_OK;
}

typedef struct transform_job {
    const transform_options *options;
    mr_dtype dtype;
    size_t element_size;
    const char *images;
    const float *transforms;
    bool is_shared; /* one transform for all images */
    int64_t height, width, channels;
    int64_t out_height, out_width;
    char *target;
    float fill;
    alignas(8) char fill_element[8];
} transform_job;

/* ---- Elements ---- */

static float load(mr_dtype dtype, const void *from, int64_t i)
{
    switch (dtype) {
    case MR_UINT8:
        return (float)((const uint8_t *)from)[i];
    case MR_INT32:
        return (float)((const int32_t *)from)[i];
    case MR_INT64:
        return (float)((const int64_t *)from)[i];
    case MR_HALF:
        return mr_half_to_float(((const uint16_t *)from)[i]);
    case MR_DOUBLE:
        return (float)((const double *)from)[i];
    default:
        return ((const float *)from)[i];
    }
}

/* Integers are truncated; a number that does not fit becomes the smallest one, as on x86. */
static void store(mr_dtype dtype, void *to, int64_t i, float value)
{
    int32_t narrow = value > -0x1p31f && value < 0x1p31f ? (int32_t)value : INT32_MIN;
    switch (dtype) {
    case MR_UINT8:
        ((uint8_t *)to)[i] = (uint8_t)narrow;
        break;
    case MR_INT32:
        ((int32_t *)to)[i] = narrow;
        break;
    case MR_INT64:
        ((int64_t *)to)[i] = value > -0x1p63f && value < 0x1p63f ? (int64_t)value : INT64_MIN;
        break;
    case MR_HALF:
        ((uint16_t *)to)[i] = mr_float_to_half(value);
        break;
    case MR_DOUBLE:
        ((double *)to)[i] = (double)value;
        break;
    default:
        ((float *)to)[i] = value;
        break;
    }
}

/* ---- Points ---- */

/* The number of whole periods in a finite distance. */
static float periods(float distance, int64_t period)
{
    return truncf(distance / (float)period);
}

/* Moves a finite coordinate into the image, unless the mode is FILL_CONSTANT. */
static float map(fill_mode mode, float at, int64_t size)
{
    float last = (float)(size - 1);
    bool is_low = at<0, is_high = at> last;
    if (mode == FILL_CONSTANT) return at;
    if (mode != FILL_NEAREST && (is_low || is_high) && size <= 1) at = 0;
    if (mode == FILL_REFLECT && size > 1) {
        int64_t twice = 2 * size;
        if (is_low) {
            if (at < (float)twice) at = (float)twice * periods(-at, twice) + at;
            at = at < (float)-size ? at + (float)twice : -at - 1;
        } else if (is_high) {
            at -= (float)twice * periods(at, twice);
            if (at >= (float)size) at = (float)twice - at - 1;
        }
    } else if (mode == FILL_WRAP && size > 1) {
        if (is_low)
            at += (float)size * (periods(-at, size - 1) + 1);
        else if (is_high)
            at -= (float)size * periods(at, size - 1);
    }
    return at < 0 ? 0 : at > last ? last : at;
}

static void put_fill(const transform_job *job, char *target)
{
    for (int64_t c = 0; c < job->channels; c++)
        memcpy(target + (size_t)c * job->element_size, job->fill_element, job->element_size);
}

/* The element of channel c at a pixel, or the fill value outside of the image. */
static float value_at(const transform_job *job, const char *image, int64_t y, int64_t x, int64_t c)
{
    if (y < 0 || y >= job->height || x < 0 || x >= job->width) return job->fill;
    return load(job->dtype, image, (y * job->width + x) * job->channels + c);
}

static void read_bilinear(const transform_job *job, const char *image, float y, float x, char *target)
{
    float y_low = floorf(y), x_low = floorf(x), y_high = y_low + 1, x_high = x_low + 1;
    int64_t top = (int64_t)y_low, left = (int64_t)x_low, bottom = (int64_t)y_high, right = (int64_t)x_high;
    for (int64_t c = 0; c < job->channels; c++) {
        float low =
            (x_high - x) * value_at(job, image, top, left, c) + (x - x_low) * value_at(job, image, top, right, c);
        float high =
            (x_high - x) * value_at(job, image, bottom, left, c) + (x - x_low) * value_at(job, image, bottom, right, c);
        store(job->dtype, target, c, (y_high - y) * low + (y - y_low) * high);
    }
}

static void read_pixel(const transform_job *job, const char *image, const float *t, int64_t y, int64_t x, char *target)
{
    float projection = t[6] * (float)x + t[7] * (float)y + 1.0f;
    float from_x = (t[0] * (float)x + t[1] * (float)y + t[2]) / projection;
    float from_y = (t[3] * (float)x + t[4] * (float)y + t[5]) / projection;
    /* A point too far away for integers is outside of every image. */
    if (projection == 0 || !(fabsf(from_x) < 0x1p60f && fabsf(from_y) < 0x1p60f)) {
        put_fill(job, target);
        return;
    }
    from_x = map(job->options->mode, from_x, job->width);
    from_y = map(job->options->mode, from_y, job->height);
    if (job->options->is_bilinear) {
        read_bilinear(job, image, from_y, from_x, target);
        return;
    }
    size_t pixel_bytes = (size_t)job->channels * job->element_size;
    int64_t row = (int64_t)roundf(from_y), column = (int64_t)roundf(from_x);
    if (row < 0 || row >= job->height || column < 0 || column >= job->width)
        put_fill(job, target);
    else
        memcpy(target, image + (size_t)(row * job->width + column) * pixel_bytes, pixel_bytes);
}

static void transform_rows(void *context, int64_t begin, int64_t end)
{
    const transform_job *job = context;
    size_t pixel_bytes = (size_t)job->channels * job->element_size;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i / job->out_height, y = i % job->out_height;
        const char *image = job->images + (size_t)(n * job->height * job->width) * pixel_bytes;
        const float *transform = job->transforms + (job->is_shared ? 0 : 8 * n);
        char *target = job->target + (size_t)(i * job->out_width) * pixel_bytes;
        for (int64_t x = 0; x < job->out_width; x++)
            read_pixel(job, image, transform, y, x, target + (size_t)x * pixel_bytes);
    }
}

/* ---- The operators ---- */

static mr_status read_size(const mr_kernel_call *call, transform_job *job, mr_error *error)
{
    const mr_tensor *size = &call->inputs[2];
    char text[MR_SHAPE_TEXT_SIZE];
    if (size->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output shape must be 1-dimensional%s",
                              mr_shape_text(size->shape, text, sizeof text));
    if (size->shape.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output shape must have two elements%s",
                              mr_shape_text(size->shape, text, sizeof text));
    job->out_height = mr_tensor_int32s(size)[0];
    job->out_width = mr_tensor_int32s(size)[1];
    if (job->out_height > 0 && job->out_width > 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output dimensions must be positive");
}

static mr_status image_projective_transform(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *images = &call->inputs[0], *transforms = &call->inputs[1];
    const int64_t *dims = images->shape.dims;
    char text[MR_SHAPE_TEXT_SIZE];
    if (images->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input images must have rank 4");
    if (transforms->shape.rank != 2 || transforms->shape.dims[1] != 8 ||
        (transforms->shape.dims[0] != dims[0] && transforms->shape.dims[0] != 1))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input transform should be num_images x 8 or 1 x 8");
    transform_job job = {.options = call->prepared,
                         .dtype = images->dtype,
                         .element_size = mr_dtype_size(images->dtype),
                         .images = images->data,
                         .transforms = mr_tensor_floats(transforms),
                         .is_shared = transforms->shape.dims[0] == 1,
                         .height = dims[1],
                         .width = dims[2],
                         .channels = dims[3],
                         .out_height = dims[1],
                         .out_width = dims[2]};
    if (call->node->input_count >= 3) MR_TRY(read_size(call, &job, error));
    if (call->node->input_count >= 4) {
        if (call->inputs[3].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "fill_value must be a scalar%s",
                                  mr_shape_text(call->inputs[3].shape, text, sizeof text));
        job.fill = mr_tensor_floats(&call->inputs[3])[0];
    }
    store(job.dtype, job.fill_element, 0, job.fill);
    job.fill = load(job.dtype, job.fill_element, 0);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(dims[0], job.out_height, job.out_width, dims[3]), error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    if (mr_tensor_count(images) == 0) job.height = job.width = 0;
    job.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, dims[0] * job.out_height, MR_MAX(1, 4096 / job.out_width), transform_rows, &job);
    return MR_OK;
}

#define TRANSFORM(name)                                                                                                \
    {.op = name,                                                                                                       \
     .run = image_projective_transform,                                                                                \
     .prepared_size_bytes = sizeof(transform_options),                                                                 \
     .prepare = prepare}
static const mr_kernel kernels[] = {
    TRANSFORM("ImageProjectiveTransform"),
    TRANSFORM("ImageProjectiveTransformV2"),
    TRANSFORM("ImageProjectiveTransformV3"),
};
MR_KERNEL_FAMILY(image_transform);
