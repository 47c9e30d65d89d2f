/* Random numbers on the GPU: the same as the CPU draws for the same node and run. */
#include "cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "kernels/common.h"

#include <string.h>

typedef struct prepared {
    mr_cu_function function;
    uint64_t seed, seed2;
} prepared;

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    prepared *p = memory;
    p->seed = (uint64_t)mr_attr_int_or(node->attrs, "seed", 0);
    p->seed2 = (uint64_t)mr_attr_int_or(node->attrs, "seed2", 0);
    return mr_cuda_find(node->device, MR_CUDA_random, "uniform_float", &p->function, error);
}

static mr_status uniform(mr_kernel_call *call, mr_error *error)
{
    const prepared *p = call->prepared;
    mr_shape shape;
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_gpu_random a = {.out = call->outputs[0].data, .count = mr_shape_count(shape)};
    /* TensorFlow reserves 256 samples for each number. */
    mr_philox philox = mr_kernel_reserve(call, p->seed, p->seed2, (uint64_t)a.count * 256);
    memcpy(a.key, philox.key, sizeof a.key);
    memcpy(a.counter, philox.counter, sizeof a.counter);
    return mr_cuda_launch(call, p->function, mr_cuda_grid_for(mr_cuda_of(call), (a.count + 3) / 4), &a, error);
}

static const mr_kernel kernels[] = {
    {.op = "RandomUniform",
     .device = MR_DEVICE_GPU,
     .types = "dtype: float",
     .run = uniform,
     .prepared_size_bytes = sizeof(prepared),
     .prepare = prepare,
     .host_inputs = 1 << 0},
};

MR_CUDA_FAMILY(random);
