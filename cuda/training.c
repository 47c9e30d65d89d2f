/* Optimizers on the GPU, and in-place updates of variables. The session passes the variables' elements (see `updates`
 * in base/kernel.h); learning rates and other scalars are read on the device, so no step waits for the host. */
#include "cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "kernels/common.h"

#include <string.h>

typedef struct prepared {
    mr_cu_function function;
    bool nesterov;
} prepared;

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    static const char *const names[][2] = {{"GradientDescent", "apply_gradient_descent"},
                                           {"Momentum", "apply_momentum"},
                                           {"Adam", "apply_adam"},
                                           {"AssignAdd", "assign_add"},
                                           {"AssignSub", "assign_sub"}};
    prepared *p = memory;
    const char *name = nullptr;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(node->op, names[i][0]) != nullptr) name = names[i][1];
    p->nesterov = mr_attr_bool_or(node->attrs, "use_nesterov", false);
    return mr_cuda_find(node->device, MR_CUDA_training, name, &p->function, error);
}

/* Input i must have the variable's number of elements, or one element if it is a scalar. */
static mr_status check(const mr_kernel_call *call, uint32_t scalars, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    for (int i = 1; i < call->node->input_count; i++) {
        const mr_tensor *input = &call->inputs[i];
        bool fits = scalars >> i & 1 ? mr_tensor_count(input) == 1 : mr_shape_equal(input->shape, shape);
        if (fits) continue;
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input %d of shape %s does not match a variable of shape %s", i,
                              mr_shape_text(input->shape, a, sizeof a), mr_shape_text(shape, b, sizeof b));
    }
    return MR_OK;
}

static mr_status launch(mr_kernel_call *call, mr_gpu_apply *a, mr_error *error)
{
    const prepared *p = call->prepared;
    a->variable = call->inputs[0].data;
    a->count = mr_tensor_count(&call->inputs[0]);
    a->nesterov = p->nesterov;
    return mr_cuda_launch(call, p->function, mr_cuda_grid_for(mr_cuda_of(call), a->count), a, error);
}

static mr_status gradient_descent(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check(call, 1 << 1, error));
    mr_gpu_apply a = {.rate = call->inputs[1].data, .gradient = call->inputs[2].data};
    return launch(call, &a, error);
}

static mr_status momentum(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    MR_TRY(check(call, 1 << 2 | 1 << 4, error));
    mr_gpu_apply a = {.m = in[1].data, .rate = in[2].data, .gradient = in[3].data, .momentum = in[4].data};
    return launch(call, &a, error);
}

static mr_status adam(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    MR_TRY(check(call, 0x1f8, error)); /* inputs 3 to 8 are scalars */
    mr_gpu_apply a = {.m = in[1].data,
                      .v = in[2].data,
                      .beta1_power = in[3].data,
                      .beta2_power = in[4].data,
                      .rate = in[5].data,
                      .beta1 = in[6].data,
                      .beta2 = in[7].data,
                      .epsilon = in[8].data,
                      .gradient = in[9].data};
    return launch(call, &a, error);
}

static mr_status assign(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check(call, 0, error));
    mr_gpu_apply a = {.gradient = call->inputs[1].data};
    return launch(call, &a, error);
}

#define ROW(name, function, attr, variables)                                                                           \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = attr ": float",                                                                                          \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare,                                                                                               \
     .updates = variables}

static const mr_kernel kernels[] = {
    ROW("ApplyGradientDescent", gradient_descent, "T", 1),
    ROW("ApplyMomentum", momentum, "T", 3),
    ROW("ApplyAdam", adam, "T", 7),
    ROW("ResourceApplyGradientDescent", gradient_descent, "T", 1),
    ROW("ResourceApplyMomentum", momentum, "T", 3),
    ROW("ResourceApplyAdam", adam, "T", 7),
    ROW("AssignAdd", assign, "T", 1),
    ROW("AssignSub", assign, "T", 1),
    ROW("AssignAddVariableOp", assign, "dtype", 1),
    ROW("AssignSubVariableOp", assign, "dtype", 1),
};

MR_CUDA_FAMILY(training);
