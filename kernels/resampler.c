/* Resampler and its gradient: images sampled at points with bilinear interpolation, as if they were surrounded by
 * zeros. Images are computed by any thread; the gradients of one image are added in the order of the points. */
#include "kernels/common.h"
#include <math.h>
#include <string.h>

typedef struct resampler_job {
    const void *data, *points, *gradients;
    void *result, *point_gradients;
    int64_t height, width, channels, count; /* count: points of each image */
} resampler_job;

/* The four pixels around a point and the shares of the left and upper ones; offset -1: outside of the image. */
#define RESAMPLER(T, name, FLOOR)                                                                                      \
    typedef struct corners_##name {                                                                                    \
        int64_t at[2][2]; /* [lower][right] */                                                                         \
        T left, top;                                                                                                   \
    } corners_##name;                                                                                                  \
                                                                                                                       \
    /* False if no pixel is near the point. */                                                                         \
    static bool find_##name(const resampler_job *job, const T *point, corners_##name *c)                               \
    {                                                                                                                  \
        T x = point[0], y = point[1];                                                                                  \
        if (!(x > -1 && y > -1 && x < (T)job->width && y < (T)job->height)) return false;                              \
        int64_t column = (int64_t)FLOOR(x), row = (int64_t)FLOOR(y);                                                   \
        c->left = (T)(column + 1) - x;                                                                                 \
        c->top = (T)(row + 1) - y;                                                                                     \
        for (int i = 0; i < 4; i++) {                                                                                  \
            int64_t at_y = row + i / 2, at_x = column + i % 2;                                                         \
            bool inside = at_y >= 0 && at_y < job->height && at_x >= 0 && at_x < job->width;                           \
            c->at[i / 2][i % 2] = inside ? (at_y * job->width + at_x) * job->channels : -1;                            \
        }                                                                                                              \
        return true;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static T value_##name(const T *image, int64_t at, int64_t channel)                                                 \
    {                                                                                                                  \
        return at < 0 ? 0 : image[at + channel];                                                                       \
    }                                                                                                                  \
                                                                                                                       \
    static void resample_##name(void *context, int64_t begin, int64_t end)                                             \
    {                                                                                                                  \
        const resampler_job *job = context;                                                                            \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const T *image = (const T *)job->data + i / job->count * (job->height * job->width * job->channels);       \
            T *to = (T *)job->result + i * job->channels;                                                              \
            corners_##name c;                                                                                          \
            bool is_near = find_##name(job, (const T *)job->points + 2 * i, &c);                                       \
            for (int64_t k = 0; k < job->channels; k++)                                                                \
                to[k] = !is_near ? 0                                                                                   \
                                 : c.left * c.top * value_##name(image, c.at[0][0], k) +                               \
                                       (1 - c.left) * (1 - c.top) * value_##name(image, c.at[1][1], k) +               \
                                       c.left * (1 - c.top) * value_##name(image, c.at[1][0], k) +                     \
                                       (1 - c.left) * c.top * value_##name(image, c.at[0][1], k);                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void add_##name(T *image, int64_t at, int64_t channel, T value)                                             \
    {                                                                                                                  \
        if (at >= 0) image[at + channel] += value;                                                                     \
    }                                                                                                                  \
                                                                                                                       \
    static void resample_grad_##name(void *context, int64_t begin, int64_t end)                                        \
    {                                                                                                                  \
        const resampler_job *job = context;                                                                            \
        int64_t elements = job->height * job->width * job->channels;                                                   \
        for (int64_t i = begin * job->count; i < end * job->count; i++) {                                              \
            const T *image = (const T *)job->data + i / job->count * elements;                                         \
            const T *gradient = (const T *)job->gradients + i * job->channels;                                         \
            T *to = (T *)job->result + i / job->count * elements, *point = (T *)job->point_gradients + 2 * i;          \
            corners_##name c;                                                                                          \
            if (!find_##name(job, (const T *)job->points + 2 * i, &c)) continue;                                       \
            for (int64_t k = 0; k < job->channels; k++) {                                                              \
                T g = gradient[k], right = 1 - c.left, lower = 1 - c.top;                                              \
                T p00 = value_##name(image, c.at[0][0], k), p01 = value_##name(image, c.at[0][1], k);                  \
                T p10 = value_##name(image, c.at[1][0], k), p11 = value_##name(image, c.at[1][1], k);                  \
                point[0] += g * (lower * (p11 - p10) + c.top * (p01 - p00));                                           \
                point[1] += g * (right * (p11 - p01) + c.left * (p10 - p00));                                          \
                add_##name(to, c.at[0][0], k, g *c.left *c.top);                                                       \
                add_##name(to, c.at[1][1], k, g *right *lower);                                                        \
                add_##name(to, c.at[1][0], k, g *c.left *lower);                                                       \
                add_##name(to, c.at[0][1], k, g *right *c.top);                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }
RESAMPLER(float, float, floorf)
RESAMPLER(double, double, floor)

/* Checks images and points, and reads their sizes. */
static mr_status start(const mr_kernel_call *call, resampler_job *job, mr_error *error)
{
    mr_shape data = call->inputs[0].shape, points = call->inputs[1].shape;
    char text[MR_SHAPE_TEXT_SIZE], other[MR_SHAPE_TEXT_SIZE];
    if (data.rank != 4)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "Only bilinear interpolation is currently supported. The input data shape must be "
                              "[batch_size, data_height, data_width, data_channels], but is: %s",
                              mr_shape_text(data, text, sizeof text));
    if (points.rank < 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "warp should be at least a matrix, got shape %s",
                              mr_shape_text(points, text, sizeof text));
    if (points.dims[points.rank - 1] != 2)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "Only bilinear interpolation is supported, warping coordinates must be 2D; warp shape "
                              "last entry should be 2, but shape vector is: %s",
                              mr_shape_text(points, text, sizeof text));
    if (data.dims[0] != points.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Batch size of data and warp tensor must be the same, but input shapes are: %s, %s",
                              mr_shape_text(data, text, sizeof text), mr_shape_text(points, other, sizeof other));
    *job = (resampler_job){.data = call->inputs[0].data,
                           .points = call->inputs[1].data,
                           .channels = data.dims[3],
                           .count = mr_dims_product(&points, 1, points.rank - 1)};
    if (mr_tensor_count(&call->inputs[0]) > 0) {
        job->height = data.dims[1];
        job->width = data.dims[2];
    }
    return MR_OK;
}

static mr_status resampler(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(resampler);
    resampler_job job;
    MR_TRY(start(call, &job, error));
    mr_shape shape = call->inputs[1].shape;
    shape.dims[shape.rank - 1] = job.channels;
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    job.result = call->outputs[0].data;
    mr_pool_for(call->device->pool, shape.dims[0] * job.count, MR_MAX(1, 4096 / job.channels),
                call->inputs[0].dtype == MR_DOUBLE ? resample_double : resample_float, &job);
    return MR_OK;
}

static mr_status resampler_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(resampler_grad);
    resampler_job job;
    char text[MR_SHAPE_TEXT_SIZE], other[MR_SHAPE_TEXT_SIZE];
    MR_TRY(start(call, &job, error));
    mr_shape shape = call->inputs[1].shape;
    shape.dims[shape.rank - 1] = job.channels;
    if (!mr_shape_equal(shape, call->inputs[2].shape))
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT,
            "grad_output shape is not consistent with data and warp shapes; it should be %s but is %s",
            mr_shape_text(shape, text, sizeof text), mr_shape_text(call->inputs[2].shape, other, sizeof other));
    for (int i = 0; i < 2; i++) {
        MR_TRY(mr_kernel_output(call, i, call->inputs[i].shape, error));
        if (mr_tensor_count(&call->outputs[i]) > 0)
            memset(call->outputs[i].data, 0, mr_tensor_size_bytes(&call->outputs[i]));
    }
    if (mr_tensor_count(&call->inputs[2]) == 0) return MR_OK;
    job.gradients = call->inputs[2].data;
    job.result = call->outputs[0].data;
    job.point_gradients = call->outputs[1].data;
    mr_pool_for(call->device->pool, shape.dims[0], 1,
                call->inputs[0].dtype == MR_DOUBLE ? resample_grad_double : resample_grad_float, &job);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "Resampler", .run = resampler},
    {.op = "ResamplerGrad", .run = resampler_grad},
};
MR_KERNEL_FAMILY(resampler);
