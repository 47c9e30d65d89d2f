/* DrawBoundingBoxes and SampleDistortedBoundingBox
 * (tensorflow/core/kernels/image/draw_bounding_box_op.cc, sample_distorted_bounding_box_op.cc). */
#include "kernels/random.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Drawing ---- */

static const float default_colors[10][4] = {{1, 1, 0, 1},       {0, 0, 1, 1},       {1, 0, 0, 1},    {0, 1, 0, 1},
                                            {0.5f, 0, 0.5f, 1}, {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1},
                                            {0, 1, 1, 1},       {1, 0, 1, 1}};

typedef struct canvas {
    mr_tensor *output;
    int64_t height, width, depth;
    int64_t image; /* offset of the image */
    float color[4];
} canvas;

static void draw_line(const canvas *c, int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    for (int64_t y = row; y < row + rows; y++)
        for (int64_t x = column; x < column + columns; x++)
            for (int64_t d = 0; d < c->depth; d++) {
                int64_t at = c->image + (y * c->width + x) * c->depth + d;
                if (c->output->dtype == MR_HALF)
                    ((uint16_t *)c->output->data)[at] = mr_float_to_half(c->color[d]);
                else
                    ((float *)c->output->data)[at] = c->color[d];
            }
}

/* A coordinate in pixels, truncated; a number that does not fit is far outside. */
static int64_t pixel_of(float coordinate, int64_t size)
{
    float at = coordinate * (float)(size - 1);
    return at > -0x1p62f && at < 0x1p62f ? (int64_t)at : at > 0 ? INT64_MAX / 2 : INT64_MIN / 2;
}

static void draw_box(const canvas *c, const float *box)
{
    int64_t top = pixel_of(box[0], c->height), left = pixel_of(box[1], c->width);
    int64_t bottom = pixel_of(box[2], c->height), right = pixel_of(box[3], c->width);
    if (top > bottom || left > right) return;
    if (top >= c->height || bottom < 0 || left >= c->width || right < 0) return;
    int64_t first_row = MR_MAX(top, 0), rows = MR_MIN(bottom, c->height - 1) - first_row + 1;
    int64_t first_column = MR_MAX(left, 0), columns = MR_MIN(right, c->width - 1) - first_column + 1;
    if (top >= 0) draw_line(c, top, first_column, 1, columns);
    if (bottom < c->height) draw_line(c, bottom, first_column, 1, columns);
    if (left >= 0) draw_line(c, first_row, left, rows, 1);
    if (right < c->width) draw_line(c, first_row, right, rows, 1);
}

static mr_status check_drawing(const mr_kernel_call *call, mr_error *error)
{
    const mr_shape *images = &call->inputs[0].shape, *boxes = &call->inputs[1].shape;
    if (images->rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "The rank of the images should be 4");
    if (boxes->rank != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "The rank of the boxes tensor should be 3");
    if (images->dims[0] != boxes->dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "The batch sizes should be the same");
    if (images->dims[3] != 4 && images->dims[3] != 1 && images->dims[3] != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
    if (boxes->dims[2] != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The size of the third dimension of the box must be 4. Received: %" PRId64,
                              boxes->dims[2]);
    if (call->node->input_count < 3) return MR_OK;
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_shape *colors = &call->inputs[2].shape;
    if (colors->rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "colors must be a 2-D matrix%s",
                              mr_shape_text(*colors, text, sizeof text));
    if (colors->dims[1] < images->dims[3])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "colors must have equal or more channels than the image provided: %s",
                              mr_shape_text(*colors, text, sizeof text));
    return MR_OK;
}

static mr_status draw_bounding_boxes(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check_drawing(call, error));
    const mr_tensor *images = &call->inputs[0], *boxes = &call->inputs[1];
    const mr_tensor *colors = call->node->input_count == 3 ? &call->inputs[2] : nullptr;
    MR_TRY(mr_kernel_output(call, 0, images->shape, error));
    if (mr_tensor_count(images) == 0) return MR_OK;
    memcpy(call->outputs[0].data, images->data, mr_tensor_size_bytes(images));
    const int64_t *dims = images->shape.dims;
    canvas c = {.output = &call->outputs[0], .height = dims[1], .width = dims[2], .depth = dims[3]};
    bool is_default = colors == nullptr || mr_tensor_count(colors) == 0;
    int64_t each = boxes->shape.dims[1], color_count = is_default ? 10 : colors->shape.dims[0];
    for (int64_t i = 0; i < dims[0] * each; i++) {
        int64_t color = i % each % color_count;
        for (int64_t d = 0; d < c.depth; d++)
            c.color[d] = !is_default    ? mr_tensor_floats(colors)[color * colors->shape.dims[1] + d]
                         : c.depth == 1 ? 1
                                        : default_colors[color][d];
        c.image = i / each * c.height * c.width * c.depth;
        draw_box(&c, mr_tensor_floats(boxes) + i * 4);
    }
    return MR_OK;
}

/* ---- Sampling ---- */

typedef struct rectangle {
    int32_t left, top, right, bottom;
} rectangle;

typedef struct box_options {
    float covered, aspect[2], area[2];
    int64_t attempts;
    bool use_image;
    uint64_t seed, seed2;
} box_options;

static float area_of(rectangle r)
{
    return (float)(((int64_t)r.right - r.left) * ((int64_t)r.bottom - r.top));
}

static rectangle intersection(rectangle a, rectangle b)
{
    rectangle r = {MR_MAX(a.left, b.left), MR_MAX(a.top, b.top), MR_MIN(a.right, b.right), MR_MIN(a.bottom, b.bottom)};
    return r.left > r.right || r.top > r.bottom ? (rectangle){0} : r;
}

static int64_t rounded(float value)
{
    return value > -0x1p40f && value < 0x1p40f ? lrintf(value) : INT32_MAX;
}

/* A rectangle of this aspect ratio with a random height and position; false if there is none. */
static bool choose_rectangle(const box_options *options, int32_t width, int32_t height, float aspect, mr_words *words,
                             rectangle *result)
{
    if (options->area[1] <= 0 || aspect <= 0 || width <= 0 || height <= 0 || options->area[0] > options->area[1])
        return false;
    float least = options->area[0] * (float)width * (float)height;
    float most = options->area[1] * (float)width * (float)height;
    int64_t h = rounded(sqrtf(least / aspect)), highest = rounded(sqrtf(most / aspect));
    if (rounded((float)highest * aspect) > width) {
        double bound = ((double)width + 0.5 - (double)0.0000001f) / (double)aspect;
        highest = bound < 0x1p31 ? (int64_t)bound : INT32_MAX;
        if (rounded((float)highest * aspect) > width) highest--;
    }
    highest = MR_MIN(highest, height);
    h = MR_MIN(h, highest);
    if (h < highest) h += mr_words_below(words, (uint32_t)(highest - h + 1));
    int64_t w = rounded((float)h * aspect);
    float area = (float)(w * h);
    if (area < least) {
        h++;
        w = rounded((float)h * aspect);
        area = (float)(w * h);
    }
    if (area > most) {
        h--;
        w = rounded((float)h * aspect);
        area = (float)(w * h);
    }
    if (area < least || area > most || w > width || h > height || w <= 0 || h <= 0) return false;
    int64_t y = h < height ? mr_words_below(words, (uint32_t)(height - h)) : 0;
    int64_t x = w < width ? mr_words_below(words, (uint32_t)(width - w)) : 0;
    *result = (rectangle){(int32_t)x, (int32_t)y, (int32_t)(x + w), (int32_t)(y + h)};
    return true;
}

static bool covers_one(rectangle crop, const rectangle *boxes, int64_t count, float covered)
{
    if (area_of(crop) < 1) return false;
    for (int64_t i = 0; i < count; i++) {
        float area = area_of(boxes[i]);
        if (area >= 1 && area_of(intersection(crop, boxes[i])) / area >= covered) return true;
    }
    return false;
}

static int64_t read_integer(const mr_tensor *tensor, int64_t index)
{
    switch (tensor->dtype) {
    case MR_UINT8:
        return ((const uint8_t *)tensor->data)[index];
    case MR_INT8:
        return ((const int8_t *)tensor->data)[index];
    case MR_INT16:
        return ((const int16_t *)tensor->data)[index];
    case MR_INT32:
        return ((const int32_t *)tensor->data)[index];
    default:
        return ((const int64_t *)tensor->data)[index];
    }
}

static void write_integers(const mr_tensor *tensor, const int64_t values[3])
{
    for (int i = 0; i < 3; i++) {
        if (tensor->dtype == MR_UINT8 || tensor->dtype == MR_INT8)
            ((uint8_t *)tensor->data)[i] = (uint8_t)values[i];
        else if (tensor->dtype == MR_INT16)
            ((uint16_t *)tensor->data)[i] = (uint16_t)values[i];
        else if (tensor->dtype == MR_INT32)
            ((int32_t *)tensor->data)[i] = (int32_t)values[i];
        else
            ((int64_t *)tensor->data)[i] = values[i];
    }
}

static mr_status read_image_size(const mr_kernel_call *call, int32_t *height, int32_t *width, mr_error *error)
{
    const mr_tensor *size = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    if (size->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image_size must be 1-dimensional%s",
                              mr_shape_text(size->shape, text, sizeof text));
    if (size->shape.dims[0] != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image_size must contain 3 elements%s",
                              mr_shape_text(size->shape, text, sizeof text));
    int64_t sizes[2] = {read_integer(size, 0), read_integer(size, 1)};
    for (int i = 0; i < 2; i++)
        if (sizes[i] < 0 || sizes[i] >= INT32_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image %s cannot be >= int32 max",
                                  i == 0 ? "height" : "width");
    *height = (int32_t)sizes[0];
    *width = (int32_t)sizes[1];
    return MR_OK;
}

/* The boxes in pixels; the caller frees them. Without boxes, the complete image. */
static mr_status read_objects(const mr_kernel_call *call, int32_t height, int32_t width, rectangle **objects,
                              int64_t *count, mr_error *error)
{
    const box_options *options = call->prepared;
    const mr_tensor *boxes = &call->inputs[1];
    char text[MR_SHAPE_TEXT_SIZE];
    if (boxes->shape.rank != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input boxes must be 3-dimensional [batch, num_boxes, coords]: %s",
                              mr_shape_text(boxes->shape, text, sizeof text));
    if (boxes->shape.dims[2] != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "bounding boxes must have shape [4] or [*, 4], got %s",
                              mr_shape_text(boxes->shape, text, sizeof text));
    *count = mr_tensor_count(boxes) / 4;
    const float *numbers = mr_tensor_floats(boxes);
    for (int64_t i = 0; i < *count * 4; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= 1))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "All bounding box coordinates must be in [0.0, 1.0]: %g", (double)numbers[i]);
    if (*count == 0 && !options->use_image)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes "
                              "if you wish to not provide any bounding boxes.");
    rectangle *made = *objects = calloc((size_t)MR_MAX(*count, 1), sizeof **objects);
    if (!made) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for the boxes");
    for (int64_t i = 0; i < *count; i++) {
        const float *b = numbers + i * 4;
        made[i] = (rectangle){(int32_t)(b[1] * (float)width), (int32_t)(b[0] * (float)height),
                              (int32_t)(b[3] * (float)width), (int32_t)(b[2] * (float)height)};
    }
    if (*count == 0) made[(*count)++] = (rectangle){0, 0, width, height};
    return MR_OK;
}

static mr_status sample_distorted_bounding_box(mr_kernel_call *call, mr_error *error)
{
    const box_options *options = call->prepared;
    float covered = options->covered;
    int32_t height, width;
    rectangle *objects = nullptr;
    int64_t count;
    MR_TRY(read_image_size(call, &height, &width, error));
    if (call->node->input_count > 2) {
        char text[MR_SHAPE_TEXT_SIZE];
        if (call->inputs[2].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "min_object_covered must be 0-D, got shape %s",
                                  mr_shape_text(call->inputs[2].shape, text, sizeof text));
        covered = mr_tensor_floats(&call->inputs[2])[0];
        if (!(covered >= 0))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Min object covered must be non-negative: %g",
                                  (double)covered);
    }
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(3), error));
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(3), error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(1, 1, 4), error));
    MR_TRY(read_objects(call, height, width, &objects, &count, error));
    rectangle all = {0, 0, width, height}, crop = all;
    mr_words words = {.philox = mr_kernel_reserve(call, options->seed, options->seed2, (uint64_t)options->attempts),
                      .used = 4};
    bool is_found = false;
    for (int64_t i = 0; i < options->attempts && !is_found; i++) {
        float aspect =
            mr_random_float(mr_words_next(&words)) * (options->aspect[1] - options->aspect[0]) + options->aspect[0];
        is_found = choose_rectangle(options, width, height, aspect, &words, &crop) &&
                   covers_one(crop, objects, count, covered);
    }
    free(objects);
    if (!is_found) crop = all;
    write_integers(&call->outputs[0], (int64_t[]){crop.top, crop.left, 0});
    write_integers(&call->outputs[1], (int64_t[]){crop.bottom - crop.top, crop.right - crop.left, -1});
    float *box = mr_tensor_floats(&call->outputs[2]);
    box[0] = (float)crop.top / (float)height;
    box[1] = (float)crop.left / (float)width;
    box[2] = (float)crop.bottom / (float)height;
    box[3] = (float)crop.right / (float)width;
    return MR_OK;
}

static mr_status read_pair(const mr_kernel_node *node, const char *name, const char *title, float pair[2],
                           mr_error *error)
{
    const mr_attr *attr = mr_attrs_find(node->attrs, name);
    if (!attr || attr->kind != MR_ATTR_FLOAT || attr->count != 2)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s field must specify 2 dimensions", title);
    for (int i = 0; i < 2; i++) pair[i] = attr->values[i].number;
    if (!(pair[0] > 0 && pair[1] > 0))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "%s must be non-negative: [%g, %g]", title,
                              (double)pair[0], (double)pair[1]);
    return MR_OK;
}

static mr_status prepare_sample(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    box_options *options = prepared;
    options->covered = mr_attr_float_or(node->attrs, "min_object_covered", 0.1f);
    options->attempts = mr_attr_int_or(node->attrs, "max_attempts", 100);
    options->use_image = mr_attr_bool_or(node->attrs, "use_image_if_no_bounding_boxes", false);
    options->seed = (uint64_t)mr_attr_int_or(node->attrs, "seed", 0);
    options->seed2 = (uint64_t)mr_attr_int_or(node->attrs, "seed2", 0);
    if (!(options->covered >= 0))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Min object covered must be non-negative: %g",
                              (double)options->covered);
    MR_TRY(read_pair(node, "aspect_ratio_range", "Aspect ratio range", options->aspect, error));
    MR_TRY(read_pair(node, "area_range", "Area range", options->area, error));
    if (options->area[0] > 1 || options->area[1] > 1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Area range must be less then or equal to 1.0: [%g, %g]", (double)options->area[0],
                              (double)options->area[1]);
    if (options->attempts <= 0 || options->attempts > INT32_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Max attempts must be non-negative: %" PRId64,
                              options->attempts);
    return MR_OK;
}

#define SAMPLE(operator)                                                                                               \
    {.op = operator,                                                                                                   \
     .run = sample_distorted_bounding_box,                                                                             \
     .prepared_size_bytes = sizeof(box_options),                                                                       \
     .prepare = prepare_sample}

static const mr_kernel kernels[] = {
    {.op = "DrawBoundingBoxes", .run = draw_bounding_boxes},
    {.op = "DrawBoundingBoxesV2", .run = draw_bounding_boxes},
    SAMPLE("SampleDistortedBoundingBox"),
    SAMPLE("SampleDistortedBoundingBoxV2"),
};
MR_KERNEL_FAMILY(image_box);
