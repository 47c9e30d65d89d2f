/* AdjustContrast, AdjustContrastv2, AdjustHue, AdjustSaturation, HSVToRGB, RGBToHSV.
 *
 * The operations are TensorFlow's in its order. bfloat16 and half are rounded after every operation where TensorFlow
 * computes in them, which are the conversions; the adjusting kernels exist for float only
 * (tensorflow/core/kernels/image/adjust_*_op.cc, colorspace_op.h). */
#include "kernels/image_floats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Contrast ---- */

typedef struct contrast_job {
    const float *source;
    float *target;
    int64_t pixels, channels; /* of an image */
    float factor;
    bool is_clipped;
    float least, most;
} contrast_job;

/* The sum of each channel in target[0, channels): halves are added until one pixel is left. */
static void fold_image(const float *source, float *target, int64_t pixels, int64_t channels)
{
    for (int64_t left = pixels, round = 0; round == 0 || left > 1; round++) {
        int64_t right = left / 2;
        const float *from = round == 0 ? source : target;
        int64_t offset = (left - right) * channels, count = right * channels;
        for (int64_t i = 0; i < count; i++) target[i] = from[offset + i] + from[i];
        if (round == 0 && left - right > right)
            memcpy(target + count, source + count, (size_t)channels * sizeof(float));
        left -= right;
    }
}

static void contrast_images(void *context, int64_t begin, int64_t end)
{
    const contrast_job *job = context;
    int64_t size = job->pixels * job->channels, channels = job->channels;
    for (int64_t image = begin; image < end; image++) {
        const float *source = job->source + image * size;
        float *target = job->target + image * size;
        fold_image(source, target, job->pixels, channels);
        float scale = 1.0f / (float)job->pixels;
        for (int64_t c = 0; c < channels; c++) target[c] *= scale;
        for (int64_t i = channels; i < size; i++) target[i] = target[i - channels];
        for (int64_t i = 0; i < size; i++) target[i] += (source[i] - target[i]) * job->factor;
    }
}

/* The deprecated operator: the sums are in the order of the pixels. */
static void contrast_images_clipped(void *context, int64_t begin, int64_t end)
{
    const contrast_job *job = context;
    int64_t size = job->pixels * job->channels;
    for (int64_t image = begin; image < end; image++) {
        const float *source = job->source + image * size;
        float *target = job->target + image * size;
        for (int64_t c = 0; c < job->channels; c++) {
            float sum = 0;
            for (int64_t i = c; i < size; i += job->channels) sum += source[i];
            float mean = sum / (float)job->pixels;
            for (int64_t i = c; i < size; i += job->channels) {
                float value = (source[i] - mean) * job->factor + mean;
                value = value > job->least ? value : job->least;
                target[i] = value < job->most ? value : job->most;
            }
        }
    }
}

static mr_status scalar_input(const mr_kernel_call *call, int index, const char *name, float *value, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_tensor *input = &call->inputs[index];
    if (input->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be scalar: %s", name,
                              mr_shape_text(input->shape, text, sizeof text));
    *value = mr_tensor_floats(input)[0];
    return MR_OK;
}

static mr_status check_rank(const mr_kernel_call *call, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[0].shape.rank >= 3) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be at least 3-D, got shape%s",
                          mr_shape_text(call->inputs[0].shape, text, sizeof text));
}

static mr_status adjust_contrast(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *images = &call->inputs[0];
    contrast_job job = {.is_clipped = call->node->input_count == 4};
    float *owned;
    MR_TRY(check_rank(call, error));
    MR_TRY(scalar_input(call, 1, "contrast_factor", &job.factor, error));
    if (job.is_clipped) {
        MR_TRY(scalar_input(call, 2, "min_value", &job.least, error));
        MR_TRY(scalar_input(call, 3, "max_value", &job.most, error));
    }
    MR_TRY(mr_kernel_output(call, 0, images->shape, error));
    int rank = images->shape.rank;
    int64_t count = mr_tensor_count(images);
    if (count == 0) return MR_OK;
    MR_TRY(mr_image_floats(call, images, &job.source, &owned, error));
    job.target = mr_tensor_floats(&call->outputs[0]);
    job.channels = images->shape.dims[rank - 1];
    job.pixels = mr_dims_product(&images->shape, rank - 3, rank - 1);
    mr_pool_for(call->device->pool, count / (job.pixels * job.channels), 1,
                job.is_clipped ? contrast_images_clipped : contrast_images, &job);
    free(owned);
    return MR_OK;
}

/* ---- Hue and saturation ---- */

typedef struct pixel_job {
    const float *source;
    float *target;
    float amount;
} pixel_job;

/* The hue in [0, 6), and the least and greatest channel. */
static float hue_of(const float *p, float *least, float *most)
{
    float r = p[0], g = p[1], b = p[2], middle;
    int sector;
    if (r < g) {
        if (b < r)
            *most = g, middle = r, *least = b, sector = 1;
        else if (b > g)
            *most = b, middle = g, *least = r, sector = 3;
        else
            *most = g, middle = b, *least = r, sector = 2;
    } else {
        if (b < g)
            *most = r, middle = g, *least = b, sector = 0;
        else if (b > r)
            *most = b, middle = r, *least = g, sector = 4;
        else
            *most = r, middle = b, *least = g, sector = 5;
    }
    if (*most == *least) return 0;
    float ratio = (middle - *least) / (*most - *least);
    return (float)sector + (sector % 2 == 0 ? ratio : 1 - ratio);
}

static void rotate_hue(void *context, int64_t begin, int64_t end)
{
    static const unsigned char most_of[6] = {0, 1, 1, 2, 2, 0}, middle_of[6] = {1, 0, 2, 1, 0, 2},
                               least_of[6] = {2, 2, 0, 0, 1, 1};
    const pixel_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        const float *p = job->source + 3 * i;
        float *q = job->target + 3 * i, least, most;
        float hue = hue_of(p, &least, &most) + job->amount * 6;
        while (hue < 0 && isfinite(hue)) hue += 6;
        while (hue >= 6 && isfinite(hue)) hue -= 6;
        int sector = hue >= 0 && hue < 6 ? (int)hue : 5;
        float ratio = hue - (float)sector;
        if (sector % 2 != 0) ratio = 1 - ratio;
        float middle = least + ratio * (most - least);
        q[most_of[sector]] = most;
        q[middle_of[sector]] = middle;
        q[least_of[sector]] = least;
    }
}

static void scale_saturation(void *context, int64_t begin, int64_t end)
{
    const pixel_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        const float *p = job->source + 3 * i;
        float *q = job->target + 3 * i, r = p[0], g = p[1], b = p[2];
        float value = MR_MAX(r, MR_MAX(g, b)), range = value - MR_MIN(r, MR_MIN(g, b)), hue;
        float saturation = value > 0 ? range / value : 0, norm = 1.0f / (6.0f * range);
        if (r == value)
            hue = norm * (g - b);
        else if (g == value)
            hue = (float)((double)(norm * (b - r)) + 2.0 / 6.0);
        else
            hue = (float)((double)(norm * (r - g)) + 4.0 / 6.0);
        if (range <= 0) hue = 0;
        if (hue < 0) hue = hue + 1;
        saturation *= job->amount;
        saturation = saturation > 0 ? saturation : 0;
        saturation = saturation < 1 ? saturation : 1;
        float chroma = saturation * value, rest = value - chroma, sixths = hue * 6, part = sixths;
        int sector = sixths >= 0 && sixths < 6 ? (int)sixths : sixths < 0 && sixths > -1 ? 0 : 6;
        while (part <= 0 && isfinite(part)) part += 2.0f;
        while (part >= 2.0f && isfinite(part)) part -= 2.0f;
        float x = chroma * (1 - fabsf(part - 1));
        float rgb[7][3] = {{chroma, x, 0}, {x, chroma, 0}, {0, chroma, x}, {0, x, chroma},
                           {x, 0, chroma}, {chroma, 0, x}, {0, 0, 0}};
        for (int c = 0; c < 3; c++) q[c] = rgb[sector][c] + rest;
    }
}

static mr_status adjust_pixels(mr_kernel_call *call, const char *name, void (*pixels)(void *, int64_t, int64_t),
                               mr_error *error)
{
    const mr_tensor *images = &call->inputs[0];
    pixel_job job = {.source = mr_tensor_floats(images)};
    MR_TRY(check_rank(call, error));
    MR_TRY(scalar_input(call, 1, name, &job.amount, error));
    int64_t channels = images->shape.dims[images->shape.rank - 1];
    if (channels != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input must have 3 channels but instead has %lld channels.", (long long)channels);
    if (pixels == rotate_hue && !(fabsf(job.amount) <= 1e6f))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "delta is %g", (double)job.amount);
    MR_TRY(mr_kernel_output(call, 0, images->shape, error));
    job.target = mr_tensor_floats(&call->outputs[0]);
    mr_pool_for(call->device->pool, mr_tensor_count(images) / 3, 2048, pixels, &job);
    return MR_OK;
}

static mr_status adjust_hue(mr_kernel_call *call, mr_error *error)
{
    return adjust_pixels(call, "delta", rotate_hue, error);
}

static mr_status adjust_saturation(mr_kernel_call *call, mr_error *error)
{
    return adjust_pixels(call, "scale", scale_saturation, error);
}

/* ---- Conversions ---- */

typedef struct convert_job {
    const void *source;
    void *target;
} convert_job;

static float half_of(float value)
{
    return mr_half_to_float(mr_float_to_half(value));
}
static float bfloat16_of(float value)
{
    return mr_bfloat16_to_float(mr_float_to_bfloat16(value));
}
#define SAME(value) (value)

/* C is the type of the arithmetic, R rounds to the dtype. */
#define CONVERSIONS(suffix, type, C, LOAD, STORE, R)                                                                   \
    static void to_hsv_##suffix(void *context, int64_t begin, int64_t end)                                             \
    {                                                                                                                  \
        const convert_job *job = context;                                                                              \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const type *p = (const type *)job->source + 3 * i;                                                         \
            type *q = (type *)job->target + 3 * i;                                                                     \
            C r = LOAD(p[0]), g = LOAD(p[1]), b = LOAD(p[2]);                                                          \
            C value = MR_MAX(MR_MAX(r, g), b), range = R(value - MR_MIN(MR_MIN(r, g), b));                             \
            C saturation = value > 0 ? R(range / value) : 0;                                                           \
            C norm = R(R((C)1 / range) * R((C)1 / 6)), hue;                                                            \
            if (r == value)                                                                                            \
                hue = R(norm * R(g - b));                                                                              \
            else if (g == value)                                                                                       \
                hue = R(R(norm * R(b - r)) + R((C)2 / 6));                                                             \
            else                                                                                                       \
                hue = R(R(norm * R(r - g)) + R((C)4 / 6));                                                             \
            if (!(range > 0)) hue = 0;                                                                                 \
            if (hue < 0) hue = R(hue + 1);                                                                             \
            q[0] = STORE(hue);                                                                                         \
            q[1] = STORE(saturation);                                                                                  \
            q[2] = STORE(value);                                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static C part_##suffix(C value)                                                                                    \
    {                                                                                                                  \
        return value < 0 ? 0 : value > 1 ? 1 : value;                                                                  \
    }                                                                                                                  \
    static void to_rgb_##suffix(void *context, int64_t begin, int64_t end)                                             \
    {                                                                                                                  \
        const convert_job *job = context;                                                                              \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const type *p = (const type *)job->source + 3 * i;                                                         \
            type *q = (type *)job->target + 3 * i;                                                                     \
            C h = LOAD(p[0]), s = LOAD(p[1]), v = LOAD(p[2]), sixths = R(h * 6), rest = R(-s + 1);                     \
            C r = part_##suffix(R(ABSOLUTE_##suffix(R(sixths - 3)) - 1));                                              \
            C g = part_##suffix(R(-ABSOLUTE_##suffix(R(sixths - 2)) + 2));                                             \
            C b = part_##suffix(R(-ABSOLUTE_##suffix(R(sixths - 4)) + 2));                                             \
            q[0] = STORE(R(R(rest + R(s * r)) * v));                                                                   \
            q[1] = STORE(R(R(rest + R(s * g)) * v));                                                                   \
            q[2] = STORE(R(R(rest + R(s * b)) * v));                                                                   \
        }                                                                                                              \
    }
#define ABSOLUTE_float fabsf
#define ABSOLUTE_double fabs
#define ABSOLUTE_half fabsf
#define ABSOLUTE_bfloat16 fabsf
CONVERSIONS(float, float, float, SAME, SAME, SAME)
CONVERSIONS(double, double, double, SAME, SAME, SAME)
CONVERSIONS(half, uint16_t, float, mr_half_to_float, mr_float_to_half, half_of)
CONVERSIONS(bfloat16, uint16_t, float, mr_bfloat16_to_float, mr_float_to_bfloat16, bfloat16_of)

static mr_status convert(mr_kernel_call *call, bool to_hsv, mr_error *error)
{
    const mr_tensor *images = &call->inputs[0];
    if (images->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be at least 1D%s",
                              mr_shape_text(images->shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE));
    int64_t channels = images->shape.dims[images->shape.rank - 1];
    if (channels != 3)
        return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION,
                              "input must have 3 channels but input only has %lld channels.", (long long)channels);
    MR_TRY(mr_kernel_output(call, 0, images->shape, error));
    convert_job job = {images->data, call->outputs[0].data};
    void (*function)(void *, int64_t, int64_t) = nullptr;
    switch (images->dtype) {
    case MR_FLOAT:
        function = to_hsv ? to_hsv_float : to_rgb_float;
        break;
    case MR_DOUBLE:
        function = to_hsv ? to_hsv_double : to_rgb_double;
        break;
    case MR_HALF:
        function = to_hsv ? to_hsv_half : to_rgb_half;
        break;
    default:
        function = to_hsv ? to_hsv_bfloat16 : to_rgb_bfloat16;
        break;
    }
    mr_pool_for(call->device->pool, mr_tensor_count(images) / 3, 2048, function, &job);
    return MR_OK;
}

static mr_status rgb_to_hsv(mr_kernel_call *call, mr_error *error)
{
    return convert(call, true, error);
}

static mr_status hsv_to_rgb(mr_kernel_call *call, mr_error *error)
{
    return convert(call, false, error);
}

static const mr_kernel kernels[] = {
    {.op = "AdjustContrast", .types = "T: uint8, int8, int16, int32, float, double", .run = adjust_contrast},
    {.op = "AdjustContrastv2", .types = "T: float", .run = adjust_contrast},
    {.op = "AdjustHue", .types = "T: float", .run = adjust_hue},
    {.op = "AdjustSaturation", .types = "T: float", .run = adjust_saturation},
    {.op = "HSVToRGB", .run = hsv_to_rgb},
    {.op = "RGBToHSV", .run = rgb_to_hsv},
};
MR_KERNEL_FAMILY(image_color);
