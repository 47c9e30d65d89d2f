/* Convolutions on the GPU, NHWC. cuDNN computes those that it supports: with the same padding on both sides. All
 * others, and all convolutions if cuDNN is not installed or fails, are matrix products: the windows of several images
 * become the rows of a matrix, which cuBLAS multiplies. */
#include "kernels/conv.h"
#include "cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "cuda/matmul.h"

#include <limits.h>

/* The matrix of windows takes at most this much memory, or what one image needs. */
constexpr int64_t COLUMNS_BYTES_MAX = (int64_t)512 << 20;
constexpr int CHOICES_MAX = 8;

typedef enum direction { FORWARD, BACKWARD_INPUT, BACKWARD_FILTER } direction;

typedef struct prepared {
    mr_window_attrs window;
    mr_cu_function columns_from, columns_to, transpose;
} prepared;

/* One convolution, forward or backward: the memory of all three tensors, whichever of them is the result. */
typedef struct job {
    mr_conv v;
    direction pass;
    float *input, *filter, *output;
} job;

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    prepared *p = memory;
    MR_TRY(mr_window_attrs_read(node, &p->window, error));
    if (p->window.nchw)
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "data_format NCHW is not supported on a GPU (only NHWC)");
    MR_TRY(mr_cuda_find(node->device, MR_CUDA_conv, "columns_from", &p->columns_from, error));
    MR_TRY(mr_cuda_find(node->device, MR_CUDA_conv, "columns_to", &p->columns_to, error));
    return mr_cuda_find(node->device, MR_CUDA_conv, "transpose", &p->transpose, error);
}

/* ---- As matrix products ---- */

/* Copies the windows of `count` images to rows of a matrix, or adds them back to the images. */
static mr_status move_columns(mr_kernel_call *call, const mr_conv *v, mr_cu_function function, const float *in,
                              float *out, int64_t count, mr_error *error)
{
    mr_gpu_columns a = {.in = in,
                        .out = out,
                        .batch = count,
                        .in_h = (int32_t)v->in_height,
                        .in_w = (int32_t)v->in_width,
                        .channels = (int32_t)v->in_channels,
                        .out_h = (int32_t)v->out_height,
                        .out_w = (int32_t)v->out_width,
                        .size_h = (int32_t)v->filter_height,
                        .size_w = (int32_t)v->filter_width,
                        .stride_h = (int32_t)v->stride_y,
                        .stride_w = (int32_t)v->stride_x,
                        .dilation_h = (int32_t)v->dilation_y,
                        .dilation_w = (int32_t)v->dilation_x,
                        .pad_h = (int32_t)v->pad_top,
                        .pad_w = (int32_t)v->pad_left};
    int64_t threads = count * v->in_height * v->in_width * v->in_channels;
    if (function == ((const prepared *)call->prepared)->columns_from)
        threads = count * v->out_height * v->out_width * v->filter_height * v->filter_width * v->in_channels;
    return mr_cuda_launch(call, function, mr_cuda_grid_for(mr_cuda_of(call), threads), &a, error);
}

/* Some images of the job. windows: [count x out_height x out_width, filter_height x filter_width x in_channels] */
static mr_status multiply_some(mr_kernel_call *call, const job *j, int64_t first, int64_t count, float *windows,
                               mr_error *error)
{
    const prepared *p = call->prepared;
    const mr_conv *v = &j->v;
    float *input = j->input + first * v->in_height * v->in_width * v->in_channels;
    float *output = j->output + first * v->out_height * v->out_width * v->out_channels;
    int64_t rows = count * v->out_height * v->out_width;
    int64_t width = v->filter_height * v->filter_width * v->in_channels;
    if (j->pass != BACKWARD_INPUT) MR_TRY(move_columns(call, v, p->columns_from, input, windows, count, error));
    mr_cuda_product product = {.a = windows, .b = j->filter, .c = output};
    product.rows = rows, product.columns = v->out_channels, product.inner = width;
    if (j->pass == BACKWARD_FILTER) {
        product = (mr_cuda_product){.a = windows, .b = output, .c = j->filter, .transpose_a = true};
        product.rows = width, product.columns = v->out_channels, product.inner = rows;
        product.beta = first > 0 ? 1 : 0;
    } else if (j->pass == BACKWARD_INPUT) {
        product = (mr_cuda_product){.a = output, .b = j->filter, .c = windows, .transpose_b = true};
        product.rows = rows, product.columns = width, product.inner = v->out_channels;
    }
    MR_TRY(mr_cuda_multiply(call, &product, error));
    return j->pass == BACKWARD_INPUT ? move_columns(call, v, p->columns_to, windows, input, count, error) : MR_OK;
}

static mr_status multiply(mr_kernel_call *call, const job *j, mr_error *error)
{
    const mr_conv *v = &j->v;
    int64_t image_bytes = v->out_height * v->out_width * v->filter_height * v->filter_width * v->in_channels * 4;
    int64_t at_once = MR_MAX(1, MR_MIN(v->batch, COLUMNS_BYTES_MAX / MR_MAX(1, image_bytes)));
    mr_buffer *windows;
    MR_TRY(mr_cuda_scratch(call, (size_t)(at_once * image_bytes), &windows, error));
    mr_status status = MR_OK;
    for (int64_t first = 0; first < v->batch && status == MR_OK; first += at_once)
        status = multiply_some(call, j, first, MR_MIN(at_once, v->batch - first), mr_buffer_data(windows), error);
    mr_buffer_unref(windows);
    return status;
}

/* ---- With cuDNN ---- */

typedef struct descriptors {
    mr_dnn_tensor x, y;
    mr_dnn_filter w;
    mr_dnn_convolution convolution;
} descriptors;

static mr_dnn_result describe(const mr_cuda_dnn *dnn, const mr_conv *v, descriptors *d)
{
    mr_dnn_result result = dnn->tensor_new(&d->x);
    if (result == 0) result = dnn->tensor_new(&d->y);
    if (result == 0) result = dnn->filter_new(&d->w);
    if (result == 0) result = dnn->convolution_new(&d->convolution);
    if (result == 0)
        result = dnn->tensor_set(d->x, MR_DNN_NHWC, MR_DNN_FLOAT, (int)v->batch, (int)v->in_channels, (int)v->in_height,
                                 (int)v->in_width);
    if (result == 0)
        result = dnn->tensor_set(d->y, MR_DNN_NHWC, MR_DNN_FLOAT, (int)v->batch, (int)v->out_channels,
                                 (int)v->out_height, (int)v->out_width);
    if (result == 0)
        result = dnn->filter_set(d->w, MR_DNN_FLOAT, MR_DNN_NHWC, (int)v->out_channels, (int)v->in_channels,
                                 (int)v->filter_height, (int)v->filter_width);
    if (result == 0)
        result =
            dnn->convolution_set(d->convolution, (int)v->pad_top, (int)v->pad_left, (int)v->stride_y, (int)v->stride_x,
                                 (int)v->dilation_y, (int)v->dilation_x, MR_DNN_CROSS_CORRELATION, MR_DNN_FLOAT);
    /* Full float precision, without truncated mantissas: the same results as on the CPU, up to the order of sums. */
    if (result == 0) result = dnn->convolution_math(d->convolution, MR_DNN_FMA_MATH);
    return result;
}

static void destroy_descriptors(const mr_cuda_dnn *dnn, const descriptors *d)
{
    if (d->x != nullptr) (void)dnn->tensor_free(d->x);
    if (d->y != nullptr) (void)dnn->tensor_free(d->y);
    if (d->w != nullptr) (void)dnn->filter_free(d->w);
    if (d->convolution != nullptr) (void)dnn->convolution_free(d->convolution);
}

/* The algorithms that cuDNN offers, fastest first: only those that are deterministic and use full float precision. */
static int list_choices(const mr_cuda_device *device, direction pass, const descriptors *d, mr_dnn_choice *choices)
{
    const mr_cuda_dnn *dnn = device->dnn;
    mr_dnn_handle handle = device->dnn_handle;
    mr_dnn_result result = 1;
    int count = 0, usable = 0;
    if (pass == FORWARD)
        result = dnn->forward_choices(handle, d->x, d->w, d->convolution, d->y, CHOICES_MAX, &count, choices);
    if (pass == BACKWARD_INPUT)
        result = dnn->input_choices(handle, d->w, d->y, d->convolution, d->x, CHOICES_MAX, &count, choices);
    if (pass == BACKWARD_FILTER)
        result = dnn->filter_choices(handle, d->x, d->y, d->convolution, d->w, CHOICES_MAX, &count, choices);
    for (int i = 0; result == 0 && i < count; i++) {
        bool exact = choices[i].math == MR_DNN_FMA_MATH || choices[i].math == 0;
        bool fits = choices[i].workspace_bytes <= 2 * (size_t)COLUMNS_BYTES_MAX;
        if (choices[i].status == 0 && choices[i].determinism == 1 && exact && fits) choices[usable++] = choices[i];
    }
    return usable;
}

/* Transposes the filter between [height, width, in, out] and cuDNN's [out, height, width, in]. */
static mr_status transpose(mr_kernel_call *call, const float *in, float *out, int64_t rows, int64_t columns,
                           mr_error *error)
{
    const prepared *p = call->prepared;
    mr_gpu_transpose a = {in, out, rows, columns};
    return mr_cuda_launch(call, p->transpose, mr_cuda_grid_for(mr_cuda_of(call), rows * columns), &a, error);
}

/* Runs the chosen algorithm. turned: the filter with its output channel first. */
static mr_dnn_result run(const mr_cuda_device *device, const job *j, const descriptors *d, const mr_dnn_choice *choice,
                         float *transposed, void *workspace)
{
    const mr_cuda_dnn *dnn = device->dnn;
    float one = 1, zero = 0;
    if (j->pass == FORWARD)
        return dnn->forward(device->dnn_handle, &one, d->x, j->input, d->w, transposed, d->convolution,
                            choice->algorithm, workspace, choice->workspace_bytes, &zero, d->y, j->output);
    if (j->pass == BACKWARD_INPUT)
        return dnn->input(device->dnn_handle, &one, d->w, transposed, d->y, j->output, d->convolution,
                          choice->algorithm, workspace, choice->workspace_bytes, &zero, d->x, j->input);
    return dnn->filter(device->dnn_handle, &one, d->x, j->input, d->y, j->output, d->convolution, choice->algorithm,
                       workspace, choice->workspace_bytes, &zero, d->w, transposed);
}

static mr_status run_chosen(mr_kernel_call *call, const job *j, const descriptors *d, const mr_dnn_choice *choice,
                            bool *done, mr_error *error)
{
    mr_cuda_device *device = mr_cuda_of(call);
    int64_t rest = j->v.filter_height * j->v.filter_width * j->v.in_channels, out = j->v.out_channels;
    mr_buffer *transposed = nullptr, *workspace = nullptr;
    mr_status status = mr_cuda_scratch(call, (size_t)(rest * out) * sizeof(float), &transposed, error);
    if (status == MR_OK) status = mr_cuda_scratch(call, choice->workspace_bytes, &workspace, error);
    if (status == MR_OK && j->pass != BACKWARD_FILTER)
        status = transpose(call, j->filter, mr_buffer_data(transposed), rest, out, error);
    if (status == MR_OK) {
        pthread_mutex_lock(&device->mutex);
        *done = run(device, j, d, choice, mr_buffer_data(transposed), mr_buffer_data(workspace)) == 0;
        pthread_mutex_unlock(&device->mutex);
    }
    if (status == MR_OK && *done && j->pass == BACKWARD_FILTER)
        status = transpose(call, mr_buffer_data(transposed), j->filter, out, rest, error);
    mr_buffer_unref(transposed);
    mr_buffer_unref(workspace);
    return status;
}

/* *done is false if cuDNN is not available or does not support the convolution. */
static mr_status try_dnn(mr_kernel_call *call, const job *j, bool *done, mr_error *error)
{
    mr_cuda_device *device = mr_cuda_of(call);
    const mr_conv *v = &j->v;
    *done = false;
    if (v->pad_top != v->pad_bottom || v->pad_left != v->pad_right) return MR_OK;
    bool is_available;
    MR_TRY(mr_cuda_dnn_handle(device, &is_available, error));
    if (!is_available) return MR_OK;
    descriptors d = {0};
    mr_dnn_choice choices[CHOICES_MAX];
    mr_status status = MR_OK;
    int count = describe(device->dnn, v, &d) == 0 ? list_choices(device, j->pass, &d, choices) : 0;
    for (int i = 0; i < count && status == MR_OK && !*done; i++)
        status = run_chosen(call, j, &d, &choices[i], done, error);
    destroy_descriptors(device->dnn, &d);
    return status;
}

/* ---- The operators ---- */

static mr_status geometry(const mr_kernel_call *call, mr_shape in, mr_shape filter, mr_conv *v, mr_error *error)
{
    MR_TRY(mr_conv_geometry(call->node, &((const prepared *)call->prepared)->window, in, filter, v, error));
    for (int i = 0; i < 4; i++)
        if (in.dims[i] > INT_MAX / 4 || filter.dims[i] > INT_MAX / 4)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the tensors are too large for a GPU");
    return MR_OK;
}

/* The sum of no elements. */
static mr_status fill_zeros(mr_kernel_call *call, mr_error *error)
{
    mr_cuda_device *device = mr_cuda_of(call);
    mr_cu_pointer target = (mr_cu_pointer)(uintptr_t)call->outputs[0].data;
    MR_TRY(mr_cuda_enter(device, error));
    mr_cu_result result =
        device->driver->fill_bytes(target, 0, mr_tensor_size_bytes(&call->outputs[0]), device->stream);
    return mr_cuda_result(device, result, "fill", error);
}

static mr_status convolve(mr_kernel_call *call, const job *j, mr_error *error)
{
    bool done;
    const mr_conv *v = &j->v;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    if (v->batch == 0 || v->out_channels == 0 || v->in_height == 0 || v->in_width == 0) return fill_zeros(call, error);
    MR_TRY(try_dnn(call, j, &done, error));
    return done ? MR_OK : multiply(call, j, error);
}

static mr_status forward(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    job j = {.pass = FORWARD, .input = in[0].data, .filter = in[1].data};
    MR_TRY(geometry(call, in[0].shape, in[1].shape, &j.v, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(j.v.batch, j.v.out_height, j.v.out_width, j.v.out_channels), error));
    j.output = call->outputs[0].data;
    return convolve(call, &j, error);
}

static mr_status backward_input(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    job j = {.pass = BACKWARD_INPUT, .filter = in[1].data, .output = in[2].data};
    mr_shape shape;
    MR_TRY(mr_conv_input_shape(call, &((const prepared *)call->prepared)->window, &shape, error));
    MR_TRY(geometry(call, shape, in[1].shape, &j.v, error));
    MR_TRY(mr_conv_check_gradient(call->node, &j.v, in[2].shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    j.input = call->outputs[0].data;
    return convolve(call, &j, error);
}

static mr_status backward_filter(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    job j = {.pass = BACKWARD_FILTER, .input = in[0].data, .output = in[2].data};
    mr_shape shape;
    MR_TRY(mr_kernel_shape(call, 1, &shape, error));
    MR_TRY(geometry(call, in[0].shape, shape, &j.v, error));
    MR_TRY(mr_conv_check_gradient(call->node, &j.v, in[2].shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    j.filter = call->outputs[0].data;
    return convolve(call, &j, error);
}

#define ROW(name, function, hosts)                                                                                     \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = "T: float",                                                                                              \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare,                                                                                               \
     .host_inputs = hosts}

static const mr_kernel kernels[] = {
    ROW("Conv2D", forward, 0),
    ROW("Conv2DBackpropInput", backward_input, 1 << 0),
    ROW("Conv2DBackpropFilter", backward_filter, 1 << 1),
};

MR_CUDA_FAMILY(conv);
