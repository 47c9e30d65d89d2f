/* Element-wise operators on the GPU: the kernel of each operator, and the strides of its operands. */
#include "kernels/elementwise.h"
#include "cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/kernels.h"

#include <stdio.h>
#include <string.h>

/* An operator and the kernel's name without its type. */
typedef struct function_name {
    const char *op, *name;
} function_name;

static const function_name names[] = {
    {"Neg", "neg"},
    {"Abs", "abs"},
    {"Square", "square"},
    {"Sqrt", "sqrt"},
    {"Rsqrt", "rsqrt"},
    {"Reciprocal", "reciprocal"},
    {"Inv", "reciprocal"},
    {"Exp", "exp"},
    {"Log", "log"},
    {"Tanh", "tanh"},
    {"Sigmoid", "sigmoid"},
    {"Relu", "relu"},
    {"Relu6", "relu6"},
    {"Add", "add"},
    {"AddV2", "add"},
    {"BiasAdd", "add"},
    {"Sub", "sub"},
    {"Mul", "mul"},
    {"Div", "div"},
    {"RealDiv", "div"},
    {"DivNoNan", "div_no_nan"},
    {"Maximum", "maximum"},
    {"Minimum", "minimum"},
    {"SquaredDifference", "squared_difference"},
    {"Equal", "equal"},
    {"NotEqual", "not_equal"},
    {"Less", "less"},
    {"LessEqual", "less_equal"},
    {"Greater", "greater"},
    {"GreaterEqual", "greater_equal"},
    {"ReluGrad", "relu_grad"},
    {"Relu6Grad", "relu6_grad"},
    {"SigmoidGrad", "sigmoid_grad"},
    {"TanhGrad", "tanh_grad"},
    {"SqrtGrad", "sqrt_grad"},
    {"RsqrtGrad", "rsqrt_grad"},
    {"ReciprocalGrad", "reciprocal_grad"},
    {"InvGrad", "reciprocal_grad"},
    {"AddN", "add_n"},
};

typedef struct prepared {
    mr_cu_function function;
} prepared;

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    char name[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].op, node->op) != 0) continue;
        snprintf(name, sizeof name, "%s_%s", names[i].name, mr_dtype_name(node->input_dtypes[0]));
        return mr_cuda_find(node->device, MR_CUDA_elementwise, name, &((prepared *)memory)->function, error);
    }
    return mr_kernel_fail(node, error, MR_INTERNAL, "the operator has no GPU kernel");
}

static mr_cu_function function_of(const mr_kernel_call *call)
{
    return ((const prepared *)call->prepared)->function;
}

static mr_status unary(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(mr_kernel_forward(call, 0, 0, call->inputs[0].shape, error));
    mr_gpu_unary arguments = {call->inputs[0].data, call->outputs[0].data, mr_tensor_count(&call->outputs[0])};
    return mr_cuda_launch(call, function_of(call), mr_cuda_grid_for(mr_cuda_of(call), arguments.count), &arguments,
                          error);
}

/* Merges adjacent dimensions that both operands traverse as one, and drops those of size 1. */
static void join_dimensions(mr_gpu_binary *a)
{
    int32_t rank = 0;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] == 1) continue;
        bool joins = rank > 0 && a->a_strides[rank - 1] == a->dims[i] * a->a_strides[i] &&
                     a->b_strides[rank - 1] == a->dims[i] * a->b_strides[i];
        int32_t target = joins ? rank - 1 : rank++;
        a->dims[target] = joins ? a->dims[target] * a->dims[i] : a->dims[i];
        a->a_strides[target] = a->a_strides[i];
        a->b_strides[target] = a->b_strides[i];
    }
    a->rank = rank;
}

static mr_status launch_binary(mr_kernel_call *call, mr_shape a, mr_shape b, mr_shape shape, mr_error *error)
{
    const mr_tensor *inputs = call->inputs;
    bool same_type = call->node->output_dtypes[0] == call->node->input_dtypes[0];
    if (same_type && mr_shape_equal(inputs[0].shape, shape) && call->may_reuse != nullptr && call->may_reuse[0])
        MR_TRY(mr_kernel_forward(call, 0, 0, shape, error));
    else if (same_type && mr_shape_equal(inputs[1].shape, shape))
        MR_TRY(mr_kernel_forward(call, 0, 1, shape, error));
    else
        MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_gpu_binary arguments = {
        .a = inputs[0].data, .b = inputs[1].data, .out = call->outputs[0].data, .count = mr_shape_count(shape)};
    if (mr_tensor_count(&inputs[1]) == 1) {
        arguments.mode = mr_tensor_count(&inputs[0]) == 1 ? MR_GPU_SAME : MR_GPU_SCALAR_B;
    } else if (mr_tensor_count(&inputs[0]) == 1) {
        arguments.mode = MR_GPU_SCALAR_A;
    } else if (!mr_shape_equal(a, b)) {
        arguments.mode = MR_GPU_STRIDED;
        arguments.rank = shape.rank;
        memcpy(arguments.dims, shape.dims, sizeof arguments.dims);
        mr_broadcast_strides(a, shape, arguments.a_strides);
        mr_broadcast_strides(b, shape, arguments.b_strides);
        join_dimensions(&arguments);
    }
    return mr_cuda_launch(call, function_of(call), mr_cuda_grid_for(mr_cuda_of(call), arguments.count), &arguments,
                          error);
}
static_assert(MR_GPU_RANK_MAX == MR_RANK_MAX);

static mr_status binary(mr_kernel_call *call, mr_error *error)
{
    mr_shape a = call->inputs[0].shape, b = call->inputs[1].shape, shape;
    MR_TRY(mr_kernel_broadcast(call, a, b, &shape, error));
    return launch_binary(call, a, b, shape, error);
}

/* Gradients of functions from their results: of as many elements, in the shape of the first. */
static mr_status gradient_of_result(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(mr_kernel_same_count(call, 0, 1, error));
    const mr_shape shape = call->inputs[0].shape;
    return launch_binary(call, shape, shape, shape, error);
}

static mr_status gradient(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(mr_kernel_same_shape(call, 0, 1, error));
    const mr_shape shape = call->inputs[0].shape;
    return launch_binary(call, shape, shape, shape, error);
}

/* The bias is along the channels: the last dimension, or the second of NCHW. */
static mr_status bias_add(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape, bias = call->inputs[1].shape;
    bool nchw = mr_string_equal(mr_attr_string_or(call->node->attrs, "data_format", "NHWC"), MR_STR("NCHW"));
    int32_t channels = nchw ? 1 : shape.rank - 1;
    if (shape.rank < 2 || bias.rank != 1 || bias.dims[0] != shape.dims[channels]) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "a bias of shape %s does not match the input shape %s", mr_shape_text(bias, a, sizeof a),
                              mr_shape_text(shape, b, sizeof b));
    }
    mr_shape wide = {.rank = shape.rank};
    for (int32_t i = 0; i < shape.rank; i++) wide.dims[i] = i == channels ? bias.dims[0] : 1;
    return launch_binary(call, shape, wide, shape, error);
}

static mr_status add_n(mr_kernel_call *call, mr_error *error)
{
    int32_t count = call->node->input_count;
    mr_shape shape = call->inputs[0].shape;
    for (int32_t i = 1; i < count; i++)
        if (!mr_shape_equal(call->inputs[i].shape, shape)) {
            char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "input 0 has shape %s, but input %d has shape %s", mr_shape_text(shape, a, sizeof a),
                                  i, mr_shape_text(call->inputs[i].shape, b, sizeof b));
        }
    MR_TRY(mr_kernel_forward(call, 0, 0, shape, error));
    /* The first launch adds up to MR_GPU_ADD_MAX inputs, each later one the sum so far and the next inputs. */
    mr_gpu_add arguments = {.out = call->outputs[0].data, .count = mr_shape_count(shape)};
    mr_cuda_grid grid = mr_cuda_grid_for(mr_cuda_of(call), arguments.count);
    for (int32_t next = 0; next < count;) {
        arguments.inputs = 0;
        if (next > 0) arguments.in[arguments.inputs++] = arguments.out;
        while (next < count && arguments.inputs < MR_GPU_ADD_MAX)
            arguments.in[arguments.inputs++] = call->inputs[next++].data;
        MR_TRY(mr_cuda_launch(call, function_of(call), grid, &arguments, error));
    }
    return MR_OK;
}

/* ---- Select ---- */

static mr_status prepare_select(const mr_kernel_node *node, void *memory, mr_error *error)
{
    char name[32];
    snprintf(name, sizeof name, "select_%zu", mr_dtype_size(node->output_dtypes[0]));
    return mr_cuda_find(node->device, MR_CUDA_elementwise, name, &((prepared *)memory)->function, error);
}

/* Merges adjacent dimensions that all three operands traverse as one; at least one remains. */
static void join_selected(mr_gpu_select *a)
{
    int32_t rank = 0;
    for (int32_t i = 0; i < a->rank; i++) {
        bool joins = rank > 0;
        for (int o = 0; o < 3 && joins; o++) joins = a->strides[o][rank - 1] == a->dims[i] * a->strides[o][i];
        int32_t target = joins ? rank - 1 : rank++;
        a->dims[target] = joins ? a->dims[target] * a->dims[i] : a->dims[i];
        for (int o = 0; o < 3; o++) a->strides[o][target] = a->strides[o][i];
    }
    a->rank = rank;
}

static mr_status launch_select(mr_kernel_call *call, mr_shape take, mr_shape shape, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_gpu_select a = {in[0].data, in[1].data, in[2].data, call->outputs[0].data, mr_shape_count(shape),
                       shape.rank, {0},        {{0}}};
    memcpy(a.dims, shape.dims, sizeof a.dims);
    mr_broadcast_strides(take, shape, a.strides[0]);
    mr_broadcast_strides(in[1].shape, shape, a.strides[1]);
    mr_broadcast_strides(in[2].shape, shape, a.strides[2]);
    join_selected(&a);
    return mr_cuda_launch(call, function_of(call), mr_cuda_grid_for(mr_cuda_of(call), a.count), &a, error);
}

static mr_status select_broadcast(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_kernel_broadcast(call, call->inputs[1].shape, call->inputs[2].shape, &shape, error));
    MR_TRY(mr_kernel_broadcast(call, call->inputs[0].shape, shape, &shape, error));
    return launch_select(call, call->inputs[0].shape, shape, error);
}

/* The condition has the operands' shape, or is a scalar, or a vector that selects rows. */
static mr_status select_rows(mr_kernel_call *call, mr_error *error)
{
    mr_shape take = call->inputs[0].shape, shape = call->inputs[1].shape;
    bool rows = take.rank == 1 && shape.rank > 1 && take.dims[0] == shape.dims[0];
    if (!mr_shape_equal(shape, call->inputs[2].shape) || !(rows || take.rank == 0 || mr_shape_equal(take, shape)))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the shapes of condition, t and e do not match");
    if (rows) {
        take.rank = shape.rank;
        for (int32_t i = 1; i < shape.rank; i++) take.dims[i] = 1;
    }
    return launch_select(call, take, shape, error);
}

#define ROW(name, function, type_list)                                                                                 \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = type_list,                                                                                               \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare}
#define SELECT(name, function)                                                                                         \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = "T: float, double, int64, bool",                                                                         \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare_select}
#define UNARY(name) ROW(name, unary, "T: float")
#define BINARY(name) ROW(name, binary, "T: float")
#define COMPARISON(name) ROW(name, binary, "T: float, int32, int64")

static const mr_kernel kernels[] = {
    UNARY("Neg"),
    UNARY("Abs"),
    UNARY("Square"),
    UNARY("Sqrt"),
    UNARY("Rsqrt"),
    UNARY("Reciprocal"),
    UNARY("Inv"),
    UNARY("Exp"),
    UNARY("Log"),
    UNARY("Tanh"),
    UNARY("Sigmoid"),
    UNARY("Relu"),
    UNARY("Relu6"),
    BINARY("Add"),
    BINARY("AddV2"),
    BINARY("Sub"),
    BINARY("Mul"),
    BINARY("Div"),
    BINARY("RealDiv"),
    BINARY("DivNoNan"),
    BINARY("Maximum"),
    BINARY("Minimum"),
    BINARY("SquaredDifference"),
    COMPARISON("Equal"),
    COMPARISON("NotEqual"),
    COMPARISON("Less"),
    COMPARISON("LessEqual"),
    COMPARISON("Greater"),
    COMPARISON("GreaterEqual"),
    ROW("ReluGrad", gradient, "T: float"),
    ROW("Relu6Grad", gradient, "T: float"),
    ROW("SigmoidGrad", gradient_of_result, "T: float"),
    ROW("TanhGrad", gradient_of_result, "T: float"),
    ROW("SqrtGrad", gradient_of_result, "T: float"),
    ROW("RsqrtGrad", gradient_of_result, "T: float"),
    ROW("ReciprocalGrad", gradient_of_result, "T: float"),
    ROW("InvGrad", gradient_of_result, "T: float"),
    ROW("BiasAdd", bias_add, "T: float"),
    ROW("AddN", add_n, "T: float"),
    SELECT("Select", select_rows),
    SELECT("SelectV2", select_broadcast),
};

MR_CUDA_FAMILY(elementwise);
