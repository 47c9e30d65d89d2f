/* Batch normalization on the GPU, NHWC. The variance is the mean of (x - mean)^2, computed in a second pass, so that
 * large means lose no precision. reserve_space_1 and 2 are mean and variance, as on the CPU, so that the gradient may
 * run on either device. */
#include "cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "cuda/reduce.h"
#include "kernels/common.h"

#include <string.h>

typedef struct prepared {
    mr_cu_function column_sum, squares, forward, moving, gradient_sums, backward, scale_gradient;
    float epsilon, factor;
    bool training;
} prepared;

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    prepared *p = memory;
    mr_string format = mr_attr_string_or(node->attrs, "data_format", "NHWC");
    if (!mr_string_equal(format, MR_STR("NHWC")))
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "data_format %.*s is not supported on a GPU (only NHWC)",
                              (int)format.size_bytes, format.data);
    p->epsilon = mr_attr_float_or(node->attrs, "epsilon", 0.0001f);
    p->factor = mr_attr_float_or(node->attrs, "exponential_avg_factor", 1.0f);
    p->training = mr_attr_bool_or(node->attrs, "is_training", true);
    const mr_device *device = node->device;
    MR_TRY(mr_cuda_find(device, MR_CUDA_reduce, "column_sum", &p->column_sum, error));
    MR_TRY(mr_cuda_find(device, MR_CUDA_batch_norm, "norm_squares", &p->squares, error));
    MR_TRY(mr_cuda_find(device, MR_CUDA_batch_norm, "norm_forward", &p->forward, error));
    MR_TRY(mr_cuda_find(device, MR_CUDA_batch_norm, "norm_moving", &p->moving, error));
    MR_TRY(mr_cuda_find(device, MR_CUDA_batch_norm, "norm_gradient_sums", &p->gradient_sums, error));
    MR_TRY(mr_cuda_find(device, MR_CUDA_batch_norm, "norm_backward", &p->backward, error));
    return mr_cuda_find(device, MR_CUDA_batch_norm, "norm_scale_gradient", &p->scale_gradient, error);
}

static float *floats(const mr_tensor *tensor)
{
    return tensor->data;
}

/* x is [rows, channels], with any number of dimensions for the rows; each of the inputs from first to last is
 * [channels]. */
static mr_status check(const mr_kernel_call *call, int x, int first, int last, int64_t *rows, int64_t *channels,
                       mr_error *error)
{
    mr_shape shape = call->inputs[x].shape;
    if (shape.rank < 2 || shape.dims[shape.rank - 1] == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x has no channels");
    *channels = shape.dims[shape.rank - 1];
    *rows = mr_shape_count(shape) / *channels;
    for (int i = first; i <= last; i++)
        if (mr_tensor_count(&call->inputs[i]) != *channels)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "input %d has %lld elements, x has %lld channels", i,
                                  (long long)mr_tensor_count(&call->inputs[i]), (long long)*channels);
    return MR_OK;
}

/* Stores mean and variance of the batch in outputs 3 and 4. */
static mr_status measure(mr_kernel_call *call, const prepared *p, int64_t rows, int64_t channels, mr_error *error)
{
    const float *x = floats(&call->inputs[0]);
    float *mean = floats(&call->outputs[3]), share = 1.0f / (float)rows;
    int64_t chunks, chunk;
    MR_TRY(mr_cuda_column_sums(call, p->column_sum, x, rows, channels, share, mean, error));
    mr_cuda_chunks(mr_cuda_of(call), rows, channels, &chunks, &chunk);
    mr_buffer *partial;
    MR_TRY(mr_cuda_scratch(call, (size_t)(chunks * channels) * sizeof(float), &partial, error));
    mr_gpu_norm_sums sums = {.x = x,
                             .mean = mean,
                             .out = mr_buffer_data(partial),
                             .rows = rows,
                             .channels = channels,
                             .chunk = chunk,
                             .chunks = chunks};
    mr_cuda_grid grid = {.x = (channels + 31) / 32, .y = chunks, .width = 32, .height = 8};
    mr_status status = mr_cuda_launch(call, p->squares, grid, &sums, error);
    if (status == MR_OK)
        status = mr_cuda_column_sums(call, p->column_sum, sums.out, chunks, channels, share, floats(&call->outputs[4]),
                                     error);
    mr_buffer_unref(partial);
    return status;
}

static mr_status normalize(mr_kernel_call *call, const prepared *p, const mr_tensor *mean, const mr_tensor *variance,
                           int64_t rows, int64_t channels, mr_error *error)
{
    mr_gpu_norm_forward a = {.x = floats(&call->inputs[0]),
                             .mean = floats(mean),
                             .variance = floats(variance),
                             .scale = floats(&call->inputs[1]),
                             .offset = floats(&call->inputs[2]),
                             .y = floats(&call->outputs[0]),
                             .count = rows * channels,
                             .channels = channels,
                             .epsilon = p->epsilon};
    return mr_cuda_launch(call, p->forward, mr_cuda_grid_for(mr_cuda_of(call), a.count), &a, error);
}

/* reserve_space_3 is unused. */
static mr_status zero_scalar(mr_kernel_call *call, int index, mr_error *error)
{
    mr_cuda_device *device = mr_cuda_of(call);
    MR_TRY(mr_kernel_output(call, index, MR_SCALAR, error));
    MR_TRY(mr_cuda_enter(device, error));
    mr_cu_pointer pointer = (mr_cu_pointer)(uintptr_t)call->outputs[index].data;
    return mr_cuda_result(device, device->driver->fill_bytes(pointer, 0, sizeof(float), device->stream), "fill", error);
}

static mr_status forward(mr_kernel_call *call, mr_error *error)
{
    const prepared *p = call->prepared;
    const mr_tensor *inputs = call->inputs;
    int64_t rows, channels;
    bool needs_old = !p->training || p->factor != 1;
    MR_TRY(check(call, 0, 1, needs_old ? 4 : 2, &rows, &channels, error));
    MR_TRY(mr_kernel_output(call, 0, inputs[0].shape, error));
    if (call->node->output_count > 5) MR_TRY(zero_scalar(call, 5, error));
    if (!p->training) {
        for (int i = 1; i <= 4; i++) call->outputs[i] = mr_tensor_ref(&inputs[3 + (i - 1) % 2]);
        return normalize(call, p, &inputs[3], &inputs[4], rows, channels, error);
    }
    for (int i = 1; i <= 4; i++) MR_TRY(mr_kernel_output(call, i, MR_SHAPE(channels), error));
    if (rows == 0)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "an empty batch cannot be normalized on a GPU");
    MR_TRY(measure(call, p, rows, channels, error));
    MR_TRY(normalize(call, p, &call->outputs[3], &call->outputs[4], rows, channels, error));
    mr_gpu_norm_moving a = {.mean = floats(&call->outputs[3]),
                            .variance = floats(&call->outputs[4]),
                            .old_mean = needs_old ? floats(&inputs[3]) : nullptr,
                            .old_variance = needs_old ? floats(&inputs[4]) : nullptr,
                            .new_mean = floats(&call->outputs[1]),
                            .new_variance = floats(&call->outputs[2]),
                            .channels = channels,
                            .unbias = rows > 1 ? (float)rows / (float)(rows - 1) : 1,
                            .factor = p->factor};
    return mr_cuda_launch(call, p->moving, mr_cuda_grid_for(mr_cuda_of(call), channels), &a, error);
}

/* Stores the sums of dy in output 2 and of dy (x - mean) in output 1. */
static mr_status gradient_sums(mr_kernel_call *call, const prepared *p, int64_t rows, int64_t channels, mr_error *error)
{
    const mr_tensor *inputs = call->inputs;
    int64_t chunks, chunk;
    mr_cuda_chunks(mr_cuda_of(call), rows, channels, &chunks, &chunk);
    mr_buffer *partial;
    MR_TRY(mr_cuda_scratch(call, (size_t)(2 * chunks * channels) * sizeof(float), &partial, error));
    mr_gpu_norm_sums sums = {.x = floats(&inputs[1]),
                             .dy = floats(&inputs[0]),
                             .mean = floats(&inputs[3]),
                             .out = mr_buffer_data(partial),
                             .rows = rows,
                             .channels = channels,
                             .chunk = chunk,
                             .chunks = chunks};
    mr_cuda_grid grid = {.x = (channels + 31) / 32, .y = chunks, .width = 32, .height = 8};
    mr_status status = mr_cuda_launch(call, p->gradient_sums, grid, &sums, error);
    if (status == MR_OK)
        status =
            mr_cuda_column_sums(call, p->column_sum, sums.out, chunks, channels, 1, floats(&call->outputs[2]), error);
    if (status == MR_OK)
        status = mr_cuda_column_sums(call, p->column_sum, sums.out + chunks * channels, chunks, channels, 1,
                                     floats(&call->outputs[1]), error);
    mr_buffer_unref(partial);
    return status;
}

static mr_status backward(mr_kernel_call *call, mr_error *error)
{
    const prepared *p = call->prepared;
    const mr_tensor *inputs = call->inputs;
    int64_t rows, channels;
    MR_TRY(check(call, 1, 2, 4, &rows, &channels, error));
    if (!mr_shape_equal(inputs[0].shape, inputs[1].shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the shapes of y_backprop and x differ");
    MR_TRY(mr_kernel_output(call, 0, inputs[1].shape, error));
    for (int i = 1; i <= 2; i++) MR_TRY(mr_kernel_output(call, i, MR_SHAPE(channels), error));
    for (int i = 3; i <= 4; i++) MR_TRY(mr_kernel_output(call, i, MR_SHAPE(0), error));
    MR_TRY(gradient_sums(call, p, rows, channels, error));
    mr_gpu_norm_backward a = {.x = floats(&inputs[1]),
                              .dy = floats(&inputs[0]),
                              .mean = floats(&inputs[3]),
                              .variance = floats(&inputs[4]),
                              .scale = floats(&inputs[2]),
                              .sum_dy = floats(&call->outputs[2]),
                              .sum_dy_x = floats(&call->outputs[1]),
                              .dx = floats(&call->outputs[0]),
                              .count = rows * channels,
                              .channels = channels,
                              .rows = rows,
                              .epsilon = p->epsilon,
                              .training = p->training};
    MR_TRY(mr_cuda_launch(call, p->backward, mr_cuda_grid_for(mr_cuda_of(call), a.count), &a, error));
    mr_gpu_norm_scale scale = {.variance = a.variance,
                               .sum_dy_x = a.sum_dy_x,
                               .out = floats(&call->outputs[1]),
                               .channels = channels,
                               .epsilon = p->epsilon};
    return mr_cuda_launch(call, p->scale_gradient, mr_cuda_grid_for(mr_cuda_of(call), channels), &scale, error);
}

#define ROW(name, function, type_list)                                                                                 \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = type_list,                                                                                               \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare}

static const mr_kernel kernels[] = {
    ROW("FusedBatchNorm", forward, "T: float"),
    ROW("FusedBatchNormV2", forward, "T: float; U: float"),
    ROW("FusedBatchNormV3", forward, "T: float; U: float"),
    ROW("FusedBatchNormGrad", backward, "T: float"),
    ROW("FusedBatchNormGradV2", backward, "T: float; U: float"),
    ROW("FusedBatchNormGradV3", backward, "T: float; U: float"),
};

MR_CUDA_FAMILY(batch_norm);
