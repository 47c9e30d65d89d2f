/* TensorFlow's ResizeBilinear, ResizeNearestNeighbor, ResizeArea and ResizeBicubic.
 *
 * The source coordinate of an output pixel depends on the rule. TensorFlow 1 uses i x scale, or with align_corners a
 * scale that maps the centers of the corner pixels onto each other. Half-pixel centers are (i + 0.5) x scale - 0.5. The
 * coordinates are computed in float as in TensorFlow, since at an integral coordinate a rounding error selects another
 * pixel. */
#include "kernels/image/resize.h"
#include "base/arguments.h"
#include "base/options.h"

#include "base/arena.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

float mr_resize_scale(const mr_resize_options *options, int64_t source_count, int64_t target_count)
{
    if (options->align_corners && target_count > 1 && source_count > 1)
        return (float)(source_count - 1) / (float)(target_count - 1);
    return (float)source_count / (float)target_count;
}

static int32_t clamp(int64_t value, int32_t count)
{
    return value < 0 ? 0 : value >= count ? count - 1 : (int32_t)value;
}

int32_t mr_resize_taps(const mr_resize_options *options, int32_t source_count, int32_t target_count)
{
    int32_t taps = 2;
    if (options->method == MR_RESIZE_BICUBIC) taps = 4;
    if (options->method == MR_RESIZE_AREA)
        taps = (int32_t)ceilf(mr_resize_scale(options, source_count, target_count)) + 1;
    if (options->method == MR_RESIZE_NEAREST) taps = 1;
    return taps < source_count ? taps : source_count;
}

/* The offset is clamped, too: a rounding error of the coordinates must not cause a write past the table. */
static void add_tap(mr_resize_axis *axis, int32_t target, int64_t source, float weight)
{
    int32_t offset = clamp((int64_t)clamp(source, axis->source_count) - axis->first[target], axis->taps);
    axis->weights[(int64_t)target * axis->taps + offset] += weight;
}

static void set_first(mr_resize_axis *axis, int32_t target, int64_t source)
{
    int64_t last = axis->source_count - axis->taps;
    axis->first[target] = (int32_t)(source < 0 ? 0 : source > last ? last : source);
    memset(axis->weights + (int64_t)target * axis->taps, 0, (size_t)axis->taps * sizeof(float));
}

static void fill_nearest(mr_resize_axis *axis, const mr_resize_options *options, float scale, float offset)
{
    for (int32_t i = 0; i < axis->target_count; i++) {
        float at = options->half_pixel_centers ? floorf(((float)i + 0.5f) * scale + offset)
                   : options->align_corners    ? roundf((float)i * scale)
                                               : floorf((float)i * scale + offset);
        set_first(axis, i, (int64_t)at);
        add_tap(axis, i, (int64_t)at, 1.0f);
    }
}

float mr_resize_coordinate(const mr_resize_options *options, float scale, int64_t i)
{
    return options->half_pixel_centers ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

static void fill_bilinear(mr_resize_axis *axis, const mr_resize_options *options, float scale, float offset)
{
    for (int32_t i = 0; i < axis->target_count; i++) {
        float at = mr_resize_coordinate(options, scale, i) + offset, below = floorf(at);
        set_first(axis, i, (int64_t)below);
        add_tap(axis, i, (int64_t)below, 1.0f - (at - below));
        add_tap(axis, i, (int64_t)below + 1, at - below);
    }
}

/* Area: the weight of each source pixel is the part of it that the output pixel [i, i + 1) x scale covers. */
static void fill_area(mr_resize_axis *axis, float scale, float offset)
{
    for (int32_t i = 0; i < axis->target_count; i++) {
        float begin = (float)i * scale + offset, end = (float)(i + 1) * scale + offset;
        int64_t first = (int64_t)floorf(begin), last = (int64_t)ceilf(end);
        set_first(axis, i, first);
        if (last <= first) add_tap(axis, i, first, 1.0f);
        for (int64_t k = first; k < last; k++) {
            float covered = fminf((float)(k + 1), end) - fmaxf((float)k, begin);
            add_tap(axis, i, k, covered / scale);
        }
    }
}

/* Cubic convolution: x is the distance, below 1 for the inner pair and 1…2 for the outer pair. Like TensorFlow, it uses
 * a table of 1024 steps. */
constexpr int cubic_steps = 1024;

static float cubic_near(float a, int step)
{
    float x = (float)step / cubic_steps;
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}

static float cubic_far(float a, int step)
{
    float x = (float)step / cubic_steps + 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static void fill_bicubic(mr_resize_axis *axis, const mr_resize_options *options, float scale, float offset)
{
    bool keys = options->half_pixel_centers;
    float a = keys ? -0.5f : -0.75f;
    for (int32_t i = 0; i < axis->target_count; i++) {
        float at = mr_resize_coordinate(options, scale, i) + offset, below = floorf(at);
        int64_t first = (int64_t)below - 1;
        int step = (int)lrintf((at - below) * cubic_steps);
        float weights[4] = {cubic_far(a, step), cubic_near(a, step), cubic_near(a, cubic_steps - step),
                            cubic_far(a, cubic_steps - step)};
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            /* With half-pixel centers, taps outside the image are dropped and the others are scaled up. */
            if (keys && clamp(first + k, axis->source_count) != first + k) weights[k] = 0;
            sum += weights[k];
        }
        set_first(axis, i, first);
        for (int k = 0; k < 4; k++) add_tap(axis, i, first + k, keys ? weights[k] / sum : weights[k]);
    }
}

void mr_resize_axis_fill_part(mr_resize_axis *axis, const mr_resize_options *options, float scale, float offset)
{
    switch (options->method) {
    case MR_RESIZE_NEAREST:
        fill_nearest(axis, options, scale, offset);
        break;
    case MR_RESIZE_AREA:
        fill_area(axis, scale, offset);
        break;
    case MR_RESIZE_BICUBIC:
        fill_bicubic(axis, options, scale, offset);
        break;
    case MR_RESIZE_BILINEAR:
        fill_bilinear(axis, options, scale, offset);
        break;
    }
}

void mr_resize_axis_fill(mr_resize_axis *axis, const mr_resize_options *options)
{
    mr_resize_axis_fill_part(axis, options, mr_resize_scale(options, axis->source_count, axis->target_count), 0);
}

typedef struct resize_work {
    const mr_tensor *images;
    mr_tensor *resized;
    mr_resize_axis rows, columns;
    int64_t channels;
    float *source_row; /* one source row as floats */
    float *row;        /* result of the vertical pass */
} resize_work;

static mr_status axis_init(mr_resize_axis *axis, const mr_resize_options *options, int64_t source_count,
                           int64_t target_count, mr_arena *arena, mr_error *error)
{
    *axis = (mr_resize_axis){.source_count = (int32_t)source_count, .target_count = (int32_t)target_count};
    axis->taps = mr_resize_taps(options, axis->source_count, axis->target_count);
    size_t count = (size_t)target_count;
    axis->first = MR_ARENA_NEW(arena, int32_t, count);
    axis->weights = MR_ARENA_NEW(arena, float, count *(size_t)axis->taps);
    if (axis->first == nullptr || axis->weights == nullptr) return mr_fail_memory(error, count * sizeof(float));
    mr_resize_axis_fill(axis, options);
    return MR_OK;
}

const float *mr_pixels_as_floats(const mr_tensor *tensor, int64_t begin, int64_t count, float *floats)
{
    switch (tensor->dtype) {
    case MR_FLOAT:
        return (const float *)tensor->data + begin;
#define LOAD(dtype, type, expression)                                                                                  \
    case dtype: {                                                                                                      \
        const type *source = (const type *)tensor->data + begin;                                                       \
        for (int64_t i = 0; i < count; i++) floats[i] = (float)(expression);                                           \
        break;                                                                                                         \
    }
        LOAD(MR_UINT8, uint8_t, source[i])
        LOAD(MR_INT8, int8_t, source[i])
        LOAD(MR_UINT16, uint16_t, source[i])
        LOAD(MR_INT16, int16_t, source[i])
        LOAD(MR_INT32, int32_t, source[i])
        LOAD(MR_INT64, int64_t, source[i])
        LOAD(MR_DOUBLE, double, source[i])
        LOAD(MR_HALF, uint16_t, mr_half_to_float(source[i]))
        LOAD(MR_BFLOAT16, uint16_t, mr_bfloat16_to_float(source[i]))
#undef LOAD
    default:
        assert(!"a dtype of images");
    }
    return floats;
}

static void sum_columns(const resize_work *work, float *target)
{
    const mr_resize_axis *columns = &work->columns;
    int64_t channels = work->channels;
    for (int32_t i = 0; i < columns->target_count; i++, target += channels) {
        const float *source = work->row + columns->first[i] * channels;
        const float *weights = columns->weights + (int64_t)i * columns->taps;
        for (int64_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int32_t k = 0; k < columns->taps; k++) sum += weights[k] * source[k * channels + c];
            target[c] = sum;
        }
    }
}

static void resize_one(resize_work *work, int64_t batch)
{
    const mr_resize_axis *rows = &work->rows;
    int64_t source_count = work->columns.source_count * work->channels;
    int64_t target_count = work->columns.target_count * work->channels;
    float *target = (float *)work->resized->data + batch * rows->target_count * target_count;
    for (int32_t i = 0; i < rows->target_count; i++, target += target_count) {
        memset(work->row, 0, (size_t)source_count * sizeof(float));
        for (int32_t k = 0; k < rows->taps; k++) {
            float weight = rows->weights[(int64_t)i * rows->taps + k];
            if (weight == 0.0f) continue;
            int64_t at = batch * rows->source_count + rows->first[i] + k;
            const float *source = mr_pixels_as_floats(work->images, at * source_count, source_count, work->source_row);
            for (int64_t j = 0; j < source_count; j++) work->row[j] += weight * source[j];
        }
        sum_columns(work, target);
    }
}

static void pick_one(const resize_work *work, int64_t batch)
{
    size_t pixel_bytes = mr_dtype_size(work->images->dtype) * (size_t)work->channels;
    const mr_resize_axis *rows = &work->rows, *columns = &work->columns;
    unsigned char *target = (unsigned char *)work->resized->data +
                            (size_t)(batch * rows->target_count * columns->target_count) * pixel_bytes;
    for (int32_t y = 0; y < rows->target_count; y++) {
        int64_t row = batch * rows->source_count + rows->first[y];
        const unsigned char *source =
            (const unsigned char *)work->images->data + (size_t)(row * columns->source_count) * pixel_bytes;
        for (int32_t x = 0; x < columns->target_count; x++, target += pixel_bytes)
            memcpy(target, source + (size_t)columns->first[x] * pixel_bytes, pixel_bytes);
    }
}

static mr_status check(const mr_tensor *images, int64_t height, int64_t width, const mr_resize_options *options,
                       mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    int rank = images->shape.rank;
    if (rank != 3 && rank != 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "images to resize must be [batch, height, width, channels], not %s",
                       mr_shape_text(images->shape, text, sizeof(text)));
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "images cannot be resized to %lld x %lld pixels", (long long)width,
                       (long long)height);
    for (int i = 1; i <= 3; i++)
        if (images->shape.dims[rank - i] < 1 || images->shape.dims[rank - i] > INT32_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "images of shape %s cannot be resized",
                           mr_shape_text(images->shape, text, sizeof(text)));
    if (options->align_corners && options->half_pixel_centers)
        return mr_fail(error, MR_INVALID_ARGUMENT, "align_corners and half_pixel_centers cannot be combined");
    if (mr_dtype_size(images->dtype) == 0 || images->dtype == MR_STRING ||
        (options->method != MR_RESIZE_NEAREST && images->dtype != MR_FLOAT && images->dtype != MR_UINT8 &&
         images->dtype != MR_INT8 && images->dtype != MR_UINT16 && images->dtype != MR_INT16 &&
         images->dtype != MR_INT32 && images->dtype != MR_INT64 && images->dtype != MR_DOUBLE &&
         images->dtype != MR_HALF && images->dtype != MR_BFLOAT16))
        return mr_fail(error, MR_INVALID_ARGUMENT, "images of %s cannot be resized", mr_dtype_name(images->dtype));
    return MR_OK;
}

static mr_status prepare(resize_work *work, int64_t height, int64_t width, const mr_resize_options *options,
                         mr_arena *arena, mr_error *error)
{
    const mr_shape *shape = &work->images->shape;
    const int64_t *dims = shape->dims + shape->rank - 3;
    MR_TRY(axis_init(&work->rows, options, dims[0], height, arena, error));
    MR_TRY(axis_init(&work->columns, options, dims[1], width, arena, error));
    work->channels = dims[2];
    size_t row_count = (size_t)(dims[1] * dims[2]);
    work->source_row = MR_ARENA_NEW(arena, float, row_count);
    work->row = MR_ARENA_NEW(arena, float, row_count);
    if (work->source_row == nullptr || work->row == nullptr) return mr_fail_memory(error, row_count * sizeof(float));
    mr_shape resized =
        shape->rank == 4 ? MR_SHAPE(shape->dims[0], height, width, dims[2]) : MR_SHAPE(height, width, dims[2]);
    mr_dtype dtype = options->method == MR_RESIZE_NEAREST ? work->images->dtype : MR_FLOAT;
    return mr_tensor_init(work->resized, dtype, resized, error);
}

mr_status mr_image_resize(const mr_tensor *images, int64_t height, int64_t width, const mr_resize_options *options,
                          mr_tensor *resized, mr_error *error)
{
    MR_REFUSE_NULL(images, error);
    mr_resize_options chosen;
    MR_TRY(MR_OPTIONS_READ(mr_resize_options, &chosen, options, error));
    MR_TRY(check(images, height, width, &chosen, error));
    mr_arena arena = {0};
    resize_work work = {.images = images, .resized = resized};
    mr_status status = prepare(&work, height, width, &chosen, &arena, error);
    int64_t batch_count = images->shape.rank == 4 ? images->shape.dims[0] : 1;
    for (int64_t batch = 0; status == MR_OK && batch < batch_count; batch++) {
        if (chosen.method == MR_RESIZE_NEAREST)
            pick_one(&work, batch);
        else
            resize_one(&work, batch);
    }
    mr_arena_deinit(&arena);
    return status;
}
