/* CropAndResize and its gradients (tensorflow/core/kernels/image/crop_and_resize_op.cc). Boxes are computed by any
 * thread; gradients are added in the order of the boxes. */
#include "kernels/image_floats.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct crop_job {
    const float *images;
    const float *boxes;
    const int32_t *indices;
    float *crops;
    int64_t batch, height, width, depth; /* of the images */
    int64_t crop_height, crop_width;
    bool is_nearest;
    float outside;
} crop_job;

/* One coordinate of a crop, in pixels of the image: the pixels at both sides of it, and the share of the second. */
typedef struct place {
    bool is_inside;
    int64_t low, high, nearest;
    float share;
} place;

static place place_at(float first, float last, int64_t index, int64_t count, int64_t size)
{
    float scale = count > 1 ? (last - first) * (float)(size - 1) / (float)(count - 1) : 0;
    float at = count > 1 ? first * (float)(size - 1) + (float)index * scale
                         : (float)(0.5 * (double)(first + last) * (double)(size - 1));
    if (!(at >= 0 && at <= (float)(size - 1))) return (place){0};
    float low = floorf(at);
    return (place){true, (int64_t)low, MR_MIN((int64_t)ceilf(at), size - 1), MR_MIN((int64_t)roundf(at), size - 1),
                   at - low};
}

static void crop_pixel(const crop_job *job, const float *image, place y, place x, float *target)
{
    int64_t depth = job->depth, row_size = job->width * depth;
    if (!x.is_inside || !y.is_inside) {
        for (int64_t d = 0; d < depth; d++) target[d] = job->outside;
        return;
    }
    if (job->is_nearest) {
        memcpy(target, image + y.nearest * row_size + x.nearest * depth, (size_t)depth * sizeof(float));
        return;
    }
    const float *low = image + y.low * row_size, *high = image + y.high * row_size;
    int64_t left = x.low * depth, right = x.high * depth;
    for (int64_t d = 0; d < depth; d++) {
        float top = low[left + d] + (low[right + d] - low[left + d]) * x.share;
        float bottom = high[left + d] + (high[right + d] - high[left + d]) * x.share;
        target[d] = top + (bottom - top) * y.share;
    }
}

static void crop_rows(void *context, int64_t begin, int64_t end)
{
    const crop_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        const float *box = job->boxes + i / job->crop_height * 4;
        const float *image = job->images + job->indices[i / job->crop_height] * job->height * job->width * job->depth;
        float *target = job->crops + i * job->crop_width * job->depth;
        place y = place_at(box[0], box[2], i % job->crop_height, job->crop_height, job->height);
        for (int64_t x = 0; x < job->crop_width; x++, target += job->depth)
            crop_pixel(job, image, y, place_at(box[1], box[3], x, job->crop_width, job->width), target);
    }
}

/* Checks boxes and their images' numbers. */
static mr_status read_boxes(const mr_kernel_call *call, int first, crop_job *job, int64_t *count, mr_error *error)
{
    const mr_tensor *boxes = &call->inputs[first], *indices = &call->inputs[first + 1];
    char text[MR_SHAPE_TEXT_SIZE];
    *count = 0;
    if (boxes->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "boxes must be 2-D%s",
                              mr_shape_text(boxes->shape, text, sizeof text));
    if (boxes->shape.dims[1] != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "boxes must have 4 columns");
    if (indices->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "box_index must be 1-D%s",
                              mr_shape_text(indices->shape, text, sizeof text));
    if (indices->shape.dims[0] != boxes->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "box_index has incompatible shape");
    *count = boxes->shape.dims[0];
    job->boxes = mr_tensor_floats(boxes);
    job->indices = mr_tensor_int32s(indices);
    return MR_OK;
}

static mr_status check_indices(const mr_kernel_call *call, const crop_job *job, int64_t count, mr_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (job->indices[i] < 0 || job->indices[i] >= job->batch)
            return mr_kernel_fail(call->node, error, MR_OUT_OF_RANGE, "box_index has values outside [0, batch_size)");
    return MR_OK;
}

static mr_status check_image(const mr_kernel_call *call, const mr_tensor *images, crop_job *job, mr_error *error)
{
    const int64_t *dims = images->shape.dims;
    if (images->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input image must be 4-D%s",
                              mr_shape_text(images->shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE));
    if (dims[1] <= 0 || dims[2] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image dimensions must be positive");
    job->batch = dims[0];
    job->height = dims[1];
    job->width = dims[2];
    job->depth = dims[3];
    return MR_OK;
}

static bool is_nearest(const mr_kernel_node *node)
{
    return mr_string_equal(mr_attr_string_or(node->attrs, "method", "bilinear"), MR_STR("nearest"));
}

static mr_status crop_and_resize(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *sizes = &call->inputs[3];
    crop_job job = {.is_nearest = is_nearest(call->node),
                    .outside = mr_attr_float_or(call->node->attrs, "extrapolation_value", 0)};
    int64_t count;
    float *owned;
    MR_TRY(check_image(call, &call->inputs[0], &job, error));
    MR_TRY(read_boxes(call, 1, &job, &count, error));
    if (sizes->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "crop_size must be 1-D%s",
                              mr_shape_text(sizes->shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE));
    if (sizes->shape.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "crop_size must have two elements");
    job.crop_height = mr_tensor_int32s(sizes)[0];
    job.crop_width = mr_tensor_int32s(sizes)[1];
    if (job.crop_height <= 0 || job.crop_width <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "crop dimensions must be positive");
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(count, job.crop_height, job.crop_width, job.depth), error));
    MR_TRY(check_indices(call, &job, count, error));
    for (int64_t i = 0; i < count * 4; i++)
        if (!isfinite(job.boxes[i]))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Boxes contains at least one element that is not finite");
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    MR_TRY(mr_image_floats(call, &call->inputs[0], &job.images, &owned, error));
    job.crops = mr_tensor_floats(&call->outputs[0]);
    mr_pool_for(call->device->pool, count * job.crop_height, MR_MAX(1, 4096 / (job.crop_width * job.depth)), crop_rows,
                &job);
    free(owned);
    return MR_OK;
}

/* ---- Gradients ---- */

/* element += value, rounded to the dtype. */
static void add(const mr_tensor *tensor, int64_t at, float value)
{
    if (tensor->dtype == MR_FLOAT) {
        ((float *)tensor->data)[at] += value;
    } else if (tensor->dtype == MR_DOUBLE) {
        ((double *)tensor->data)[at] += (double)value;
    } else {
        uint16_t *element = (uint16_t *)tensor->data + at;
        *element = mr_float_to_half(mr_half_to_float(*element) + mr_half_to_float(mr_float_to_half(value)));
    }
}

static void spread(const crop_job *job, const mr_tensor *output, int64_t image, place y, place x, const float *from)
{
    int64_t depth = job->depth, row_size = job->width * depth;
    int64_t low = image + y.low * row_size, high = image + y.high * row_size;
    for (int64_t d = 0; d < depth; d++) {
        if (job->is_nearest) {
            add(output, image + y.nearest * row_size + x.nearest * depth + d, from[d]);
            continue;
        }
        float top = (1 - y.share) * from[d], bottom = y.share * from[d];
        add(output, low + x.low * depth + d, (1 - x.share) * top);
        add(output, low + x.high * depth + d, x.share * top);
        add(output, high + x.low * depth + d, (1 - x.share) * bottom);
        add(output, high + x.high * depth + d, x.share * bottom);
    }
}

static mr_status read_gradients(const mr_kernel_call *call, int64_t count, crop_job *job, mr_error *error)
{
    const mr_tensor *gradients = &call->inputs[0];
    if (gradients->shape.dims[0] != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "boxes and grads have incompatible shape");
    job->crop_height = gradients->shape.dims[1];
    job->crop_width = gradients->shape.dims[2];
    return MR_OK;
}

static mr_status check_gradients(const mr_kernel_call *call, mr_error *error)
{
    const mr_shape *shape = &call->inputs[0].shape;
    if (shape->rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "grads image must be 4-D%s",
                              mr_shape_text(*shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE));
    if (shape->dims[1] <= 0 || shape->dims[2] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "grads dimensions must be positive");
    return MR_OK;
}

static mr_status crop_grad_image(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *sizes = &call->inputs[3], *gradients = &call->inputs[0];
    crop_job job = {.is_nearest = is_nearest(call->node)};
    int64_t count;
    MR_TRY(check_gradients(call, error));
    MR_TRY(read_boxes(call, 1, &job, &count, error));
    MR_TRY(read_gradients(call, count, &job, error));
    if (sizes->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image_size must be 1-D%s",
                              mr_shape_text(sizes->shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE));
    if (sizes->shape.dims[0] != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image_size must have 4 elements");
    const int32_t *size = mr_tensor_int32s(sizes);
    if (size[1] <= 0 || size[2] <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image dimensions must be positive");
    if (size[0] < 0 || gradients->shape.dims[3] != size[3])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image_size and grads are incompatible");
    job.batch = size[0], job.height = size[1], job.width = size[2], job.depth = size[3];
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(job.batch, job.height, job.width, job.depth), error));
    MR_TRY(check_indices(call, &job, count, error));
    const mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) == 0) return MR_OK;
    memset(output->data, 0, mr_tensor_size_bytes(output));
    const float *from = mr_tensor_floats(gradients);
    for (int64_t i = 0; i < count * job.crop_height; i++) {
        const float *box = job.boxes + i / job.crop_height * 4;
        int64_t image = job.indices[i / job.crop_height] * job.height * job.width * job.depth;
        place y = place_at(box[0], box[2], i % job.crop_height, job.crop_height, job.height);
        for (int64_t x = 0; x < job.crop_width; x++, from += job.depth) {
            place at = place_at(box[1], box[3], x, job.crop_width, job.width);
            if (y.is_inside && at.is_inside) spread(&job, output, image, y, at, from);
        }
    }
    return MR_OK;
}

/* The derivative along one axis with respect to its first and last coordinate. */
static void add_edges(float gradient, int64_t index, int64_t count, int64_t size, float *first, float *last)
{
    if (count > 1) {
        float ratio = (float)(size - 1) / (float)(count - 1);
        *first += gradient * ((float)(size - 1) - (float)index * ratio);
        *last += gradient * ((float)index * ratio);
        return;
    }
    double both = (double)gradient * 0.5 * (double)(size - 1);
    *first = (float)((double)*first + both);
    *last = (float)((double)*last + both);
}

/* The gradient of boxes scales by a ratio that is rounded first, unlike place_at. */
static place grad_place_at(float first, float last, int64_t index, int64_t count, int64_t size)
{
    if (count <= 1) return place_at(first, last, index, count, size);
    float ratio = (float)(size - 1) / (float)(count - 1);
    float at = first * (float)(size - 1) + (float)index * ((last - first) * ratio);
    if (!(at >= 0 && at <= (float)(size - 1))) return (place){0};
    return (place){true, (int64_t)floorf(at), MR_MIN((int64_t)ceilf(at), size - 1), 0, at - floorf(at)};
}

static void grad_box(const crop_job *job, int64_t index, const float *from, float *sums)
{
    const float *box = job->boxes + index * 4;
    int64_t depth = job->depth, row_size = job->width * depth;
    const float *image = job->images + job->indices[index] * job->height * row_size;
    for (int64_t i = 0; i < job->crop_height * job->crop_width; i++, from += depth) {
        int64_t row = i / job->crop_width, column = i % job->crop_width;
        place y = grad_place_at(box[0], box[2], row, job->crop_height, job->height);
        place x = grad_place_at(box[1], box[3], column, job->crop_width, job->width);
        if (!y.is_inside || !x.is_inside) continue;
        const float *low = image + y.low * row_size, *high = image + y.high * row_size;
        int64_t left = x.low * depth, right = x.high * depth;
        for (int64_t d = 0; d < depth; d++) {
            float dy = (1 - x.share) * (high[left + d] - low[left + d]) + x.share * (high[right + d] - low[right + d]);
            float dx = (1 - y.share) * (low[right + d] - low[left + d]) + y.share * (high[right + d] - high[left + d]);
            add_edges(dy * from[d], row, job->crop_height, job->height, &sums[0], &sums[2]);
            add_edges(dx * from[d], column, job->crop_width, job->width, &sums[1], &sums[3]);
        }
    }
}

static mr_status crop_grad_boxes(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *gradients = &call->inputs[0];
    crop_job job = {0};
    int64_t count;
    float *owned;
    MR_TRY(check_gradients(call, error));
    MR_TRY(check_image(call, &call->inputs[1], &job, error));
    if (gradients->shape.dims[3] != job.depth)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image, grads depth differ");
    MR_TRY(read_boxes(call, 2, &job, &count, error));
    MR_TRY(read_gradients(call, count, &job, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(count, 4), error));
    MR_TRY(check_indices(call, &job, count, error));
    if (count == 0) return MR_OK;
    float *sums = mr_tensor_floats(&call->outputs[0]);
    memset(sums, 0, mr_tensor_size_bytes(&call->outputs[0]));
    MR_TRY(mr_image_floats(call, &call->inputs[1], &job.images, &owned, error));
    const float *from = mr_tensor_floats(gradients);
    for (int64_t i = 0; i < count && job.depth > 0; i++)
        grad_box(&job, i, from + i * job.crop_height * job.crop_width * job.depth, sums + i * 4);
    free(owned);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "CropAndResize", .run = crop_and_resize},
    {.op = "CropAndResizeGradImage", .run = crop_grad_image},
    {.op = "CropAndResizeGradBoxes", .run = crop_grad_boxes},
};
MR_KERNEL_FAMILY(image_crop);
