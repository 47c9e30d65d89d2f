/* Operators on the GPU that forward tensors, return their shapes, or create and move elements. */
#include "cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "kernels/elementwise.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Operators that read no elements: the CPU's kernels, with shapes and axes in host memory ---- */

/* The CPU's kernel of the operator, which accesses no elements. */
typedef struct borrowed {
    const mr_kernel *kernel;
    max_align_t prepared[16];
} borrowed;

static mr_status prepare_borrowed(const mr_kernel_node *node, void *memory, mr_error *error)
{
    borrowed *b = memory;
    b->kernel = mr_kernel_find(node->op, MR_DEVICE_CPU, node->attrs);
    if (b->kernel == nullptr || b->kernel->prepared_size_bytes > sizeof b->prepared)
        return mr_kernel_fail(node, error, MR_INTERNAL, "the operator has no CPU kernel to use");
    return b->kernel->prepare != nullptr ? b->kernel->prepare(node, b->prepared, error) : MR_OK;
}

static mr_status run_borrowed(mr_kernel_call *call, mr_error *error)
{
    const borrowed *b = call->prepared;
    mr_kernel_call inner = *call;
    inner.prepared = b->prepared;
    return b->kernel->run(&inner, error);
}

/* ---- Fill, ZerosLike, OnesLike ---- */

typedef struct prepared {
    mr_cu_function function;
} prepared;

static mr_status prepare_fill(const mr_kernel_node *node, void *memory, mr_error *error)
{
    char name[32];
    snprintf(name, sizeof name, "fill_%zu", mr_dtype_size(node->output_dtypes[0]));
    return mr_cuda_find(node->device, MR_CUDA_array, name, &((prepared *)memory)->function, error);
}

static mr_status launch(mr_kernel_call *call, int64_t count, void *arguments, mr_error *error)
{
    const prepared *p = call->prepared;
    return mr_cuda_launch(call, p->function, mr_cuda_grid_for(mr_cuda_of(call), count), arguments, error);
}

static mr_status fill(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_kernel_shape(call, 0, &shape, error));
    if (mr_tensor_count(&call->inputs[1]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "value is not a scalar");
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_gpu_fill a = {call->inputs[1].data, call->outputs[0].data, mr_shape_count(shape), 0};
    return launch(call, a.count, &a, error);
}

static uint64_t bits_of_one(mr_dtype dtype)
{
    switch (dtype) {
    case MR_FLOAT:
        return 0x3f800000;
    case MR_DOUBLE:
        return 0x3ff0000000000000;
    case MR_HALF:
        return 0x3c00;
    case MR_BFLOAT16:
        return 0x3f80;
    default:
        return 1;
    }
}

static mr_status fill_like(mr_kernel_call *call, mr_error *error)
{
    bool ones = strcmp(call->node->op, "OnesLike") == 0;
    MR_TRY(mr_kernel_forward(call, 0, 0, call->inputs[0].shape, error));
    mr_gpu_fill a = {nullptr, call->outputs[0].data, mr_tensor_count(&call->outputs[0]),
                     ones ? bits_of_one(call->node->output_dtypes[0]) : 0};
    return launch(call, a.count, &a, error);
}

/* ---- Tile and BroadcastTo ---- */

static mr_status prepare_repeat(const mr_kernel_node *node, void *memory, mr_error *error)
{
    char name[32];
    snprintf(name, sizeof name, "repeat_%zu", mr_dtype_size(node->output_dtypes[0]));
    return mr_cuda_find(node->device, MR_CUDA_array, name, &((prepared *)memory)->function, error);
}

static mr_status repeat(mr_kernel_call *call, mr_shape in, mr_shape shape, mr_error *error)
{
    mr_gpu_repeat a = {.in = call->inputs[0].data, .count = mr_shape_count(shape), .rank = shape.rank};
    if (a.count < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the result is too large");
    memcpy(a.dims, shape.dims, sizeof a.dims);
    memcpy(a.in_dims, in.dims, sizeof a.in_dims);
    mr_shape_strides(in, a.in_strides);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    a.out = call->outputs[0].data;
    return launch(call, a.count, &a, error);
}

static mr_status tile(mr_kernel_call *call, mr_error *error)
{
    mr_shape in = call->inputs[0].shape, shape = in;
    int64_t multiples[MR_RANK_MAX];
    int count;
    MR_TRY(mr_kernel_ints(call, 1, "multiples", multiples, MR_RANK_MAX, &count, error));
    if (count != in.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%d multiples for a tensor of rank %d", count,
                              in.rank);
    for (int i = 0; i < count; i++)
        if (multiples[i] < 0 || __builtin_mul_overflow(in.dims[i], multiples[i], &shape.dims[i]))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "multiple %d is %" PRId64, i, multiples[i]);
    return repeat(call, in, shape, error);
}

static mr_status broadcast_to(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape, given = call->inputs[0].shape, joined, in = MR_SCALAR;
    MR_TRY(mr_kernel_shape(call, 1, &shape, error));
    MR_TRY(mr_kernel_broadcast(call, given, shape, &joined, error));
    if (!mr_shape_equal(joined, shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the input does not match the shape");
    in.rank = shape.rank;
    for (int i = 0; i < shape.rank; i++) {
        int own = i - (shape.rank - given.rank);
        in.dims[i] = own < 0 ? 1 : given.dims[own];
    }
    return repeat(call, in, shape, error);
}

/* ---- Cast ---- */

static mr_status prepare_cast(const mr_kernel_node *node, void *memory, mr_error *error)
{
    char name[64];
    if (node->input_dtypes[0] == node->output_dtypes[0]) return MR_OK;
    snprintf(name, sizeof name, "cast_%s_%s", mr_dtype_name(node->input_dtypes[0]),
             mr_dtype_name(node->output_dtypes[0]));
    return mr_cuda_find(node->device, MR_CUDA_array, name, &((prepared *)memory)->function, error);
}

static mr_status cast(mr_kernel_call *call, mr_error *error)
{
    if (call->node->input_dtypes[0] == call->node->output_dtypes[0]) {
        call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
        return MR_OK;
    }
    MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
    mr_gpu_unary a = {call->inputs[0].data, call->outputs[0].data, mr_tensor_count(&call->outputs[0])};
    return launch(call, a.count, &a, error);
}

/* ---- ArgMax, ArgMin ---- */

static mr_status prepare_extreme(const mr_kernel_node *node, void *memory, mr_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%s", strcmp(node->op, "ArgMax") == 0 ? "largest" : "smallest",
             mr_dtype_name(node->output_dtypes[0]));
    return mr_cuda_find(node->device, MR_CUDA_array, name, &((prepared *)memory)->function, error);
}

static mr_status extreme(mr_kernel_call *call, mr_error *error)
{
    mr_shape in = call->inputs[0].shape, shape = MR_SCALAR;
    int64_t given;
    int axis;
    MR_TRY(mr_kernel_int(call, 1, "dimension", &given, error));
    MR_TRY(mr_kernel_axis(call, given, in.rank, &axis, error));
    mr_gpu_extreme a = {.in = call->inputs[0].data, .outer = 1, .length = in.dims[axis], .inner = 1};
    for (int i = 0; i < in.rank; i++) {
        if (i < axis) a.outer *= in.dims[i];
        if (i > axis) a.inner *= in.dims[i];
        if (i != axis) shape.dims[shape.rank++] = in.dims[i];
    }
    if (a.length == 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "dimension %d is empty", axis);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    a.out = call->outputs[0].data;
    return launch(call, a.outer * a.inner, &a, error);
}

#define BORROWED(name, hosts_in, hosts_out)                                                                            \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = "T: float, double, half, bfloat16, int64, bool, uint8",                                                  \
     .run = run_borrowed,                                                                                              \
     .prepared_size_bytes = sizeof(borrowed),                                                                          \
     .prepare = prepare_borrowed,                                                                                      \
     .host_inputs = hosts_in,                                                                                          \
     .host_outputs = hosts_out}
#define ROW(name, function, prepare_function, type_list, hosts)                                                        \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = type_list,                                                                                               \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare_function,                                                                                      \
     .host_inputs = hosts}

/* Integers of 32 bits are shapes and counters, which are kept on the host, as in TensorFlow. */
#define FILLED "float, double, half, bfloat16, int64, bool, uint8"

static const mr_kernel kernels[] = {
    BORROWED("Identity", 0, 0),
    BORROWED("StopGradient", 0, 0),
    BORROWED("PreventGradient", 0, 0),
    BORROWED("Snapshot", 0, 0),
    BORROWED("Reshape", 1 << 1, 0),
    BORROWED("ExpandDims", 1 << 1, 0),
    BORROWED("Squeeze", 0, 0),
    BORROWED("Shape", 0, 1u << 31),
    BORROWED("ShapeN", 0, 1u << 31),
    BORROWED("Size", 0, 1u << 31),
    BORROWED("Rank", 0, 1u << 31),
    ROW("Fill", fill, prepare_fill, "T: " FILLED, 1 << 0),
    ROW("ZerosLike", fill_like, prepare_fill, "T: " FILLED, 0),
    ROW("OnesLike", fill_like, prepare_fill, "T: " FILLED, 0),
    ROW("Tile", tile, prepare_repeat, "T: float, int64, bool", 1 << 1),
    ROW("BroadcastTo", broadcast_to, prepare_repeat, "T: float, int64, bool", 1 << 1),
    ROW("Cast", cast, prepare_cast,
        "SrcT: float, double, int32, int64, uint8, bool; DstT: float, double, int32, int64, bool", 0),
    ROW("ArgMax", extreme, prepare_extreme, "T: float; output_type: int32, int64", 1 << 1),
    ROW("ArgMin", extreme, prepare_extreme, "T: float; output_type: int32, int64", 1 << 1),
};

MR_CUDA_FAMILY(array);
