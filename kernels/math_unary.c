/* Functions of one number. Floats have loops for each CPU level; other types have one loop, vectorized by the
 * compiler. */
#include "kernels/complex_math.h"
#include "kernels/vector_math.h"
#include <stdlib.h>

#define DESCRIBE(name)                                                                                                 \
    static bool name##_describe(mr_dtype dtype, mr_elementwise *elementwise)                                           \
    {                                                                                                                  \
        return mr_unary_describe(&name##_unary, dtype, elementwise);                                                   \
    }
#define RUN(name)                                                                                                      \
    DESCRIBE(name)                                                                                                     \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return mr_unary_run(call, &name##_unary, error);                                                               \
    }

/* Floats and doubles, with separate expressions. Further arguments are loops of other types. */
#define REAL(name, float_expression, double_expression, ...)                                                           \
    MR_UNARY_LEVELS(name##_float, float, float, float_expression)                                                      \
    MR_UNARY_LOOP(name##_double, double, double, double_expression)                                                    \
    static const mr_unary name##_unary = {.float_levels = name##_float,                                                \
                                          .loops = {[MR_DOUBLE] = name##_double, __VA_ARGS__}};                        \
    RUN(name)
/* The same, but the float version calls the C library for each element. */
#define LIBRARY(name, float_expression, double_expression, ...)                                                        \
    static void name##_float(void *target, const void *source, int64_t count)                                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            float x = ((const float *)source)[i];                                                                      \
            ((float *)target)[i] = float_expression;                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_double(void *target, const void *source, int64_t count)                                         \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            double x = ((const double *)source)[i];                                                                    \
            ((double *)target)[i] = double_expression;                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static const mr_unary name##_unary = {                                                                             \
        .loops = {[MR_FLOAT] = name##_float, [MR_DOUBLE] = name##_double, __VA_ARGS__}};                               \
    RUN(name)
/* The same with complex numbers: complex_expression is a function of z. */
#define FIELD(name, float_expression, double_expression, complex_expression)                                           \
    MR_COMPLEX_UNARY(name, complex_expression)                                                                         \
    REAL(name, float_expression, double_expression, MR_COMPLEX_ROWS(name))
#define LIBRARY_FIELD(name, float_expression, double_expression, complex_expression)                                   \
    MR_COMPLEX_UNARY(name, complex_expression)                                                                         \
    LIBRARY(name, float_expression, double_expression, MR_COMPLEX_ROWS(name))
/* Floats, doubles and signed integers. Integer arithmetic is unsigned, so that it wraps. */
#define SIGNED(name, real_expression, integer_expression, ...)                                                         \
    MR_UNARY_LEVELS(name##_float, float, float, real_expression)                                                       \
    MR_UNARY_LOOP(name##_double, double, double, real_expression)                                                      \
    MR_UNARY_LOOP(name##_int32, int32_t, int32_t, integer_expression)                                                  \
    MR_UNARY_LOOP(name##_int64, int64_t, int64_t, integer_expression)                                                  \
    MR_UNARY_LOOP(name##_int8, int8_t, int8_t, integer_expression)                                                     \
    MR_UNARY_LOOP(name##_int16, int16_t, int16_t, integer_expression)                                                  \
    static const mr_unary name##_unary = {.float_levels = name##_float,                                                \
                                          .loops = {[MR_DOUBLE] = name##_double,                                       \
                                                    [MR_INT32] = name##_int32,                                         \
                                                    [MR_INT64] = name##_int64,                                         \
                                                    [MR_INT8] = name##_int8,                                           \
                                                    [MR_INT16] = name##_int16,                                         \
                                                    __VA_ARGS__}};                                                     \
    RUN(name)

/* exp(z) - 1, accurate near 0. */
static mr_complex128 complex_expm1(mr_complex128 z)
{
    double half_sine = sin(0.5 * cimag(z)), re = expm1(creal(z)) * cos(cimag(z)) - 2.0 * half_sine * half_sine;
    return MR_COMPLEX_OF(re, exp(creal(z)) * sin(cimag(z)));
}

MR_COMPLEX_UNARY(negate, -z)
SIGNED(negate, -x, -(uint64_t)x, MR_COMPLEX_ROWS(negate))
SIGNED(absolute, __builtin_elementwise_abs(x), x < 0 ? -(uint64_t)x : (uint64_t)x)
MR_COMPLEX_UNARY(sign, z == 0 ? z : z / cabs(z))
SIGNED(sign, x != x ? x : (x > 0) - (x < 0), (x > 0) - (x < 0), MR_COMPLEX_ROWS(sign))
MR_UNARY_LOOP(square_uint8, uint8_t, uint8_t, (uint64_t)x *(uint64_t)x)
MR_UNARY_LOOP(square_uint16, uint16_t, uint16_t, (uint64_t)x *(uint64_t)x)
MR_UNARY_LOOP(square_uint32, uint32_t, uint32_t, (uint64_t)x *(uint64_t)x)
MR_UNARY_LOOP(square_uint64, uint64_t, uint64_t, (uint64_t)x *(uint64_t)x)
MR_COMPLEX_UNARY(square, mr_complex_times(z, z))
SIGNED(square, x *x, (uint64_t)x *(uint64_t)x, MR_COMPLEX_ROWS(square), [MR_UINT8] = square_uint8,
       [MR_UINT16] = square_uint16, [MR_UINT32] = square_uint32, [MR_UINT64] = square_uint64)
FIELD(root, __builtin_sqrtf(x), __builtin_sqrt(x), csqrt(z))
FIELD(reciprocal_root, 1.0f / __builtin_sqrtf(x), 1.0 / __builtin_sqrt(x), 1.0 / csqrt(z))
FIELD(reciprocal, 1.0f / x, 1.0 / x, 1.0 / z)
FIELD(exponential, mr_expf(x), exp(x), cexp(z))
FIELD(exponential_minus_1, mr_expm1f(x), expm1(x), complex_expm1(z))
FIELD(logarithm, mr_logf(x), log(x), clog(z))
FIELD(logarithm_plus_1, mr_log1pf(x), log1p(x), mr_complex_log1p(z))
FIELD(hyperbolic_tangent, mr_tanhf(x), tanh(x), ctanh(z))
FIELD(sigmoid, mr_sigmoidf(x), 1.0 / (1.0 + exp(-x)), 1.0 / (1.0 + cexp(-z)))
REAL(round_down, __builtin_floorf(x), floor(x))
REAL(round_up, __builtin_ceilf(x), ceil(x))
LIBRARY_FIELD(sine, sinf(x), sin(x), csin(z))
LIBRARY_FIELD(cosine, cosf(x), cos(x), ccos(z))
LIBRARY_FIELD(tangent, tanf(x), tan(x), ctan(z))
LIBRARY_FIELD(arc_sine, asinf(x), asin(x), casin(z))
LIBRARY_FIELD(arc_cosine, acosf(x), acos(x), cacos(z))
LIBRARY_FIELD(arc_tangent, atanf(x), atan(x), catan(z))
LIBRARY_FIELD(hyperbolic_sine, sinhf(x), sinh(x), csinh(z))
LIBRARY_FIELD(hyperbolic_cosine, coshf(x), cosh(x), ccosh(z))
LIBRARY_FIELD(arc_hyperbolic_sine, asinhf(x), asinh(x), casinh(z))
LIBRARY_FIELD(arc_hyperbolic_cosine, acoshf(x), acosh(x), cacosh(z))
LIBRARY_FIELD(arc_hyperbolic_tangent, atanhf(x), atanh(x), catanh(z))
LIBRARY(error_function, erff(x), erf(x))
LIBRARY(error_function_complement, erfcf(x), erfc(x))

/* Round and Rint round to nearest even; integers are unchanged. */
MR_UNARY_LEVELS(round_even_float, float, float, __builtin_roundevenf(x))
MR_UNARY_LOOP(round_even_double, double, double, __builtin_roundeven(x))
static const mr_unary round_even_unary = {.float_levels = round_even_float, .loops = {[MR_DOUBLE] = round_even_double}};

DESCRIBE(round_even)
static mr_status round_even(mr_kernel_call *call, mr_error *error)
{
    mr_dtype dtype = call->inputs[0].dtype;
    if (dtype == MR_INT32 || dtype == MR_INT64 || dtype == MR_INT8 || dtype == MR_INT16) {
        call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
        return MR_OK;
    }
    return mr_unary_run(call, &round_even_unary, error);
}

/* Predicates of floats. */
#define PREDICATE(name, expression)                                                                                    \
    MR_UNARY_LEVELS(name##_float, float, bool, expression)                                                             \
    MR_UNARY_LOOP(name##_double, double, bool, expression)                                                             \
    static const mr_unary name##_unary = {.float_levels = name##_float, .loops = {[MR_DOUBLE] = name##_double}};       \
    RUN(name)
PREDICATE(is_nan, x != x)
PREDICATE(is_infinite, __builtin_elementwise_abs(x) == INFINITY)
PREDICATE(is_finite, __builtin_elementwise_abs(x) < INFINITY)

MR_UNARY_LOOP(not_bool, bool, bool, !x)
static const mr_unary not_unary = {.loops = {[MR_BOOL] = not_bool}};
static mr_status logical_not(mr_kernel_call *call, mr_error *error)
{
    return mr_unary_run(call, &not_unary, error);
}

/* The sum of several tensors of one shape. It is computed in pieces that stay in the cache while all inputs are
 * added. */
#define SUM_LOOP(dtype, type, suffix)                                                                                  \
    static void sum_##suffix(void *target, const void *source, int64_t count)                                          \
    {                                                                                                                  \
        type *to = target;                                                                                             \
        const type *from = source;                                                                                     \
        MR_EACH_ELEMENT to[i] = (type)(to[i] + from[i]);                                                               \
    }
MR_EACH_WRAPPING_NUMBER(SUM_LOOP)

static void sum_half(void *target, const void *source, int64_t count)
{
    uint16_t *to = target;
    const uint16_t *from = source;
    for (int64_t i = 0; i < count; i++) to[i] = mr_float_to_half(mr_half_to_float(to[i]) + mr_half_to_float(from[i]));
}

static void sum_bfloat16(void *target, const void *source, int64_t count)
{
    uint16_t *to = target;
    const uint16_t *from = source;
    for (int64_t i = 0; i < count; i++)
        to[i] = mr_float_to_bfloat16(mr_bfloat16_to_float(to[i]) + mr_bfloat16_to_float(from[i]));
}

static void sum_complex64(void *target, const void *source, int64_t count)
{
    sum_float(target, source, 2 * count);
}

static void sum_complex128(void *target, const void *source, int64_t count)
{
    sum_double(target, source, 2 * count);
}

#define SUM_ROW(dtype, type, suffix) [dtype] = sum_##suffix,
static const mr_unary_loop sums[MR_DTYPE_COUNT] = {
    MR_EACH_WRAPPING_NUMBER(SUM_ROW)[MR_HALF] = sum_half, [MR_BFLOAT16] = sum_bfloat16, MR_COMPLEX_ROWS(sum)};

typedef struct add_n_job {
    mr_unary_loop sum;
    const mr_kernel_call *call;
    char *target;
    const char *first; /* data of input 0, whose buffer may have become the output's */
    size_t size;
} add_n_job;

static void add_n_piece(void *context, int64_t begin, int64_t end)
{
    const add_n_job *job = context;
    char *target = job->target + (size_t)begin * job->size;
    const char *first = job->first + (size_t)begin * job->size;
    if (target != first) memcpy(target, first, (size_t)(end - begin) * job->size);
    for (int i = 1; i < job->call->node->input_count; i++)
        job->sum(target, (const char *)job->call->inputs[i].data + (size_t)begin * job->size, end - begin);
}

static mr_status add_n(mr_kernel_call *call, mr_error *error)
{
    int count = call->node->input_count;
    mr_shape shape = call->inputs[0].shape;
    mr_dtype dtype = call->inputs[0].dtype;
    bool accumulates = strcmp(call->node->op, "AccumulateNV2") == 0;
    for (int i = 1; i < count; i++) {
        if (accumulates && !mr_shape_equal(shape, call->inputs[i].shape))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Parameters and update must be the same size");
        MR_TRY(mr_kernel_same_shape(call, 0, i, error));
    }
    add_n_job job = {sums[dtype], call, nullptr, call->inputs[0].data, mr_dtype_size(dtype)};
    if (job.sum == nullptr) return mr_kernel_unsupported(call->node, error);
    if (count == 1) {
        call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
        return MR_OK;
    }
    MR_TRY(mr_kernel_forward(call, 0, 0, shape, error));
    job.target = call->outputs[0].data;
    mr_pool_for(call->device->pool, mr_shape_count(shape), MR_GRAIN, add_n_piece, &job);
    return MR_OK;
}

/* Two of the operands. */
MR_BINARY_LEVELS(add_pair_float, float, float, a + b)
MR_BINARY_LOOP(add_pair_double, double, double, a + b)
static const mr_binary add_pair = {
    .float_levels = add_pair_float, .loops = {[MR_DOUBLE] = add_pair_double}, .rule = MR_OPERANDS_SAME_SHAPE};

static bool add_n_describe(mr_dtype dtype, mr_elementwise *elementwise)
{
    return mr_binary_describe(&add_pair, dtype, elementwise);
}

#define UNARY(op_, name) {.op = op_, .run = name, .elementwise = name##_describe}
static const mr_kernel kernels[] = {
    UNARY("Neg", negate),
    UNARY("Abs", absolute),
    UNARY("Sign", sign),
    UNARY("Square", square),
    UNARY("Sqrt", root),
    UNARY("Rsqrt", reciprocal_root),
    UNARY("Reciprocal", reciprocal),
    UNARY("Inv", reciprocal),
    UNARY("Exp", exponential),
    UNARY("Expm1", exponential_minus_1),
    UNARY("Log", logarithm),
    UNARY("Log1p", logarithm_plus_1),
    UNARY("Tanh", hyperbolic_tangent),
    UNARY("Sigmoid", sigmoid),
    UNARY("Floor", round_down),
    UNARY("Ceil", round_up),
    UNARY("Round", round_even),
    UNARY("Rint", round_even),
    UNARY("Sin", sine),
    UNARY("Cos", cosine),
    UNARY("Tan", tangent),
    UNARY("Asin", arc_sine),
    UNARY("Acos", arc_cosine),
    UNARY("Atan", arc_tangent),
    UNARY("Sinh", hyperbolic_sine),
    UNARY("Cosh", hyperbolic_cosine),
    UNARY("Asinh", arc_hyperbolic_sine),
    UNARY("Acosh", arc_hyperbolic_cosine),
    UNARY("Atanh", arc_hyperbolic_tangent),
    UNARY("Erf", error_function),
    UNARY("Erfc", error_function_complement),
    UNARY("IsNan", is_nan),
    UNARY("IsInf", is_infinite),
    UNARY("IsFinite", is_finite),
    {.op = "LogicalNot", .run = logical_not},
    {.op = "AddN", .run = add_n, .elementwise = add_n_describe},
    {.op = "AccumulateNV2", .run = add_n, .elementwise = add_n_describe},
};
MR_KERNEL_FAMILY(math_unary);
