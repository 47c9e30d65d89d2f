/* Pooling on the GPU, NHWC. */
#include "cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "kernels/conv.h"

#include <limits.h>
#include <string.h>

typedef struct prepared {
    mr_window_attrs window;
    mr_cu_function function;
} prepared;

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    static const char *const names[][2] = {{"MaxPool", "max_pool"},
                                           {"MaxPoolGrad", "max_pool_grad"},
                                           {"AvgPool", "average_pool"},
                                           {"AvgPoolGrad", "average_pool_grad"}};
    prepared *p = memory;
    MR_TRY(mr_window_attrs_read(node, &p->window, error));
    if (p->window.nchw)
        return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "data_format NCHW is not supported on a GPU (only NHWC)");
    const char *name = nullptr;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], node->op) == 0) name = names[i][1];
    return mr_cuda_find(node->device, MR_CUDA_pool, name, &p->function, error);
}

/* The geometry of pooling a tensor of this shape. */
static mr_status geometry(const mr_kernel_call *call, mr_shape in, mr_gpu_pool *a, mr_error *error)
{
    const mr_window_attrs *w = &((const prepared *)call->prepared)->window;
    int64_t out_h, out_w, top, left, after;
    if (in.rank != 4) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the input's rank is not 4");
    for (int i = 1; i < 4; i++)
        if (in.dims[i] > INT_MAX / 4)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the input is too large for a GPU");
    MR_TRY(mr_window_geometry(call->node, w, 0, in.dims[1], w->window_y, &out_h, &top, &after, error));
    MR_TRY(mr_window_geometry(call->node, w, 1, in.dims[2], w->window_x, &out_w, &left, &after, error));
    *a = (mr_gpu_pool){.batch = in.dims[0],
                       .in_h = (int32_t)in.dims[1],
                       .in_w = (int32_t)in.dims[2],
                       .channels = (int32_t)in.dims[3],
                       .out_h = (int32_t)out_h,
                       .out_w = (int32_t)out_w,
                       .size_h = (int32_t)w->window_y,
                       .size_w = (int32_t)w->window_x,
                       .stride_h = (int32_t)w->stride_y,
                       .stride_w = (int32_t)w->stride_x,
                       .pad_h = (int32_t)top,
                       .pad_w = (int32_t)left};
    return MR_OK;
}

static mr_status launch(mr_kernel_call *call, mr_gpu_pool *a, mr_error *error)
{
    const prepared *p = call->prepared;
    a->out = call->outputs[0].data;
    int64_t count = mr_tensor_count(&call->outputs[0]);
    return mr_cuda_launch(call, p->function, mr_cuda_grid_for(mr_cuda_of(call), count), a, error);
}

static mr_status forward(mr_kernel_call *call, mr_error *error)
{
    mr_gpu_pool a;
    MR_TRY(geometry(call, call->inputs[0].shape, &a, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(a.batch, a.out_h, a.out_w, a.channels), error));
    a.in = call->inputs[0].data;
    return launch(call, &a, error);
}

static mr_status check_gradient(const mr_kernel_call *call, const mr_gpu_pool *a, const mr_tensor *gradient,
                                mr_error *error)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    mr_shape shape = MR_SHAPE(a->batch, a->out_h, a->out_w, a->channels);
    if (mr_shape_equal(gradient->shape, shape)) return MR_OK;
    return mr_kernel_fail(
        call->node, error, MR_INVALID_ARGUMENT, "the gradient has shape %s, but the pooling's output has shape %s",
        mr_shape_text(gradient->shape, found, sizeof found), mr_shape_text(shape, expected, sizeof expected));
}

static mr_status max_grad(mr_kernel_call *call, mr_error *error)
{
    mr_gpu_pool a;
    MR_TRY(geometry(call, call->inputs[0].shape, &a, error));
    MR_TRY(check_gradient(call, &a, &call->inputs[2], error));
    MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
    a.in = call->inputs[0].data;
    a.grad = call->inputs[2].data;
    return launch(call, &a, error);
}

static mr_status average_grad(mr_kernel_call *call, mr_error *error)
{
    mr_gpu_pool a;
    mr_shape shape;
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    MR_TRY(geometry(call, shape, &a, error));
    MR_TRY(check_gradient(call, &a, &call->inputs[1], error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    a.grad = call->inputs[1].data;
    return launch(call, &a, error);
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
    ROW("MaxPool", forward, 0),
    ROW("MaxPoolGrad", max_grad, 0),
    ROW("AvgPool", forward, 0),
    ROW("AvgPoolGrad", average_grad, 1 << 0),
};

MR_CUDA_FAMILY(pool);
