/* Activation functions. Gradients that are functions of two tensors are in math_binary.c, except those with an
 * attribute. */
#include "kernels/elementwise.h"
#include "kernels/vector_math.h"

#define RUN(name)                                                                                                      \
    static bool name##_describe(mr_dtype dtype, mr_elementwise *elementwise)                                           \
    {                                                                                                                  \
        return mr_unary_describe(&name##_unary, dtype, elementwise);                                                   \
    }                                                                                                                  \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return mr_unary_run(call, &name##_unary, error);                                                               \
    }
#define NUMBERS(name, expression)                                                                                      \
    MR_UNARY_LEVELS(name##_float, float, float, expression)                                                            \
    MR_UNARY_LOOP(name##_double, double, double, expression)                                                           \
    MR_UNARY_LOOP(name##_int32, int32_t, int32_t, expression)                                                          \
    MR_UNARY_LOOP(name##_int64, int64_t, int64_t, expression)                                                          \
    MR_UNARY_LOOP(name##_int8, int8_t, int8_t, expression)                                                             \
    MR_UNARY_LOOP(name##_int16, int16_t, int16_t, expression)                                                          \
    MR_UNARY_LOOP(name##_uint8, uint8_t, uint8_t, expression)                                                          \
    MR_UNARY_LOOP(name##_uint16, uint16_t, uint16_t, expression)                                                       \
    MR_UNARY_LOOP(name##_uint32, uint32_t, uint32_t, expression)                                                       \
    MR_UNARY_LOOP(name##_uint64, uint64_t, uint64_t, expression)                                                       \
    static const mr_unary name##_unary = {.float_levels = name##_float,                                                \
                                          .loops = {[MR_DOUBLE] = name##_double,                                       \
                                                    [MR_INT32] = name##_int32,                                         \
                                                    [MR_INT64] = name##_int64,                                         \
                                                    [MR_INT8] = name##_int8,                                           \
                                                    [MR_INT16] = name##_int16,                                         \
                                                    [MR_UINT8] = name##_uint8,                                         \
                                                    [MR_UINT16] = name##_uint16,                                       \
                                                    [MR_UINT32] = name##_uint32,                                       \
                                                    [MR_UINT64] = name##_uint64}};                                     \
    RUN(name)
#define REALS(name, float_expression, double_expression)                                                               \
    MR_UNARY_LEVELS(name##_float, float, float, float_expression)                                                      \
    MR_UNARY_LOOP(name##_double, double, double, double_expression)                                                    \
    static const mr_unary name##_unary = {.float_levels = name##_float, .loops = {[MR_DOUBLE] = name##_double}};       \
    RUN(name)

NUMBERS(relu, x < 0 ? 0 : x)
NUMBERS(relu6, x < 0 ? 0 : x > 6 ? 6 : x)
/* The exponential units of half types, which TensorFlow rounds after every step. */
#define ROUNDED(suffix, number) mr_##suffix##_to_float(mr_float_to_##suffix(number))
#define EXPONENTIAL_HALF(suffix)                                                                                       \
    static uint16_t elu_of_##suffix(uint16_t bits)                                                                     \
    {                                                                                                                  \
        float x = mr_##suffix##_to_float(bits);                                                                        \
        return x < 0 ? mr_float_to_##suffix(ROUNDED(suffix, expf(x)) - 1) : bits;                                      \
    }                                                                                                                  \
    static uint16_t selu_of_##suffix(uint16_t bits)                                                                    \
    {                                                                                                                  \
        float x = mr_##suffix##_to_float(bits);                                                                        \
        if (!(x < 0)) return mr_float_to_##suffix(ROUNDED(suffix, 1.0507009873554805f) * x);                           \
        return mr_float_to_##suffix(ROUNDED(suffix, 1.7580993408473768f) *                                             \
                                    ROUNDED(suffix, ROUNDED(suffix, expf(x)) - 1));                                    \
    }                                                                                                                  \
    MR_UNARY_LOOP(elu_##suffix, uint16_t, uint16_t, elu_of_##suffix(x))                                                \
    MR_UNARY_LOOP(selu_##suffix, uint16_t, uint16_t, selu_of_##suffix(x))
EXPONENTIAL_HALF(half)
EXPONENTIAL_HALF(bfloat16)
/* Of fewer elements than a vector has the compiler computes only what is chosen, and rounds it in another way. So the
 * last ones are part of a whole vector: the result of an element is the same wherever it is. */
#define WHOLE_VECTORS(name, expression)                                                                                \
    MR_UNARY_BODY(name##_vectors, float, float, expression)                                                            \
    MR_INLINE void name##_body(void *target, const void *source, int64_t count)                                        \
    {                                                                                                                  \
        constexpr int64_t LANES = 16;                                                                                  \
        const int64_t whole = count / LANES * LANES, rest = count - whole;                                             \
        float last[LANES] = {};                                                                                        \
        memcpy(last, (const float *)source + whole, (size_t)rest * sizeof *last);                                      \
        name##_vectors_body(target, source, whole);                                                                    \
        if (rest == 0) return;                                                                                         \
        name##_vectors_body(last, last, LANES);                                                                        \
        memcpy((float *)target + whole, last, (size_t)rest * sizeof *last);                                            \
    }                                                                                                                  \
    MR_LEVELS(name, (void *target, const void *source, int64_t count), (target, source, count))
#define EXPONENTIAL(name, float_expression, double_expression)                                                         \
    WHOLE_VECTORS(name##_float, float_expression)                                                                      \
    MR_UNARY_LOOP(name##_double, double, double, double_expression)                                                    \
    static const mr_unary name##_unary = {                                                                             \
        .float_levels = name##_float,                                                                                  \
        .loops = {[MR_DOUBLE] = name##_double, [MR_HALF] = name##_half, [MR_BFLOAT16] = name##_bfloat16}};             \
    RUN(name)
EXPONENTIAL(elu, x < 0 ? mr_expm1f(x) : x, x < 0 ? expm1(x) : x)
EXPONENTIAL(selu, x < 0 ? 1.7580993408473768f * mr_expm1f(x) : 1.0507009873554805f * x,
            x < 0 ? 1.7580993408473768 * expm1(x) : 1.0507009873554805 * x)
REALS(softplus, mr_softplusf(x), x > 34 ? x : log1p(exp(x)))
REALS(softsign, x / (1.0f + fabsf(x)), x / (1.0 + fabs(x)))

/* LeakyRelu and its gradient. For the function itself gradients is null: it has the form of the gradient, with x in
 * place of the gradients. */
typedef struct leaky_job {
    float alpha;
    const void *gradients, *features;
    void *target;
    mr_dtype dtype;
} leaky_job;

#define LEAKY(type)                                                                                                    \
    {                                                                                                                  \
        const type *x = job->features, *g = job->gradients ? job->gradients : job->features;                           \
        type *to = job->target;                                                                                        \
        const type alpha = (type)job->alpha;                                                                           \
        const int64_t count = end - begin;                                                                             \
        x += begin;                                                                                                    \
        g += begin;                                                                                                    \
        to += begin;                                                                                                   \
        MR_EACH_ELEMENT to[i] = x[i] > 0 ? g[i] : alpha * g[i];                                                        \
    }

/* alpha is rounded to the half type, as in TensorFlow. */
#define LEAKY_HALF(narrow, widen)                                                                                      \
    {                                                                                                                  \
        const uint16_t *x = job->features, *g = job->gradients ? job->gradients : job->features;                       \
        uint16_t *to = job->target;                                                                                    \
        const float alpha = widen(narrow(job->alpha));                                                                 \
        for (int64_t i = begin; i < end; i++) to[i] = widen(x[i]) > 0 ? g[i] : narrow(alpha * widen(g[i]));            \
    }

static void leaky_piece(void *context, int64_t begin, int64_t end)
{
    const leaky_job *job = context;
    if (job->dtype == MR_FLOAT)
        LEAKY(float)
    else if (job->dtype == MR_DOUBLE)
        LEAKY(double)
    else if (job->dtype == MR_HALF)
        LEAKY_HALF(mr_float_to_half, mr_half_to_float)
    else
        LEAKY_HALF(mr_float_to_bfloat16, mr_bfloat16_to_float)
}

static mr_status leaky(mr_kernel_call *call, bool gradient, mr_error *error)
{
    const mr_tensor *first = &call->inputs[0];
    leaky_job job = {.alpha = mr_attr_float_or(call->node->attrs, "alpha", 0.2f), .dtype = first->dtype};
    job.features = call->inputs[gradient ? 1 : 0].data;
    job.gradients = gradient ? first->data : nullptr;
    if (gradient) MR_TRY(mr_kernel_same_shape(call, 0, 1, error));
    int64_t count = mr_tensor_count(first);
    MR_TRY(mr_kernel_forward(call, 0, 0, first->shape, error));
    job.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, count, MR_GRAIN, leaky_piece, &job);
    return MR_OK;
}

static mr_status leaky_relu(mr_kernel_call *call, mr_error *error)
{
    return leaky(call, false, error);
}

static mr_status leaky_relu_grad(mr_kernel_call *call, mr_error *error)
{
    return leaky(call, true, error);
}

#define UNARY(op_, name) {.op = op_, .run = name, .elementwise = name##_describe}
static const mr_kernel kernels[] = {
    UNARY("Relu", relu),
    UNARY("Relu6", relu6),
    UNARY("Elu", elu),
    UNARY("Selu", selu),
    UNARY("Softplus", softplus),
    UNARY("Softsign", softsign),
    {.op = "LeakyRelu", .types = "T: float, double, half, bfloat16", .run = leaky_relu},
    {.op = "LeakyReluGrad", .types = "T: float, double, half, bfloat16", .run = leaky_relu_grad},
};
MR_KERNEL_FAMILY(activation);
