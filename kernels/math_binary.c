/* Functions of two numbers with broadcasting, comparisons, and gradients that are functions of two tensors. */
#include "kernels/complex_math.h"
#include "kernels/vector_math.h"
#include <string.h>

#define DESCRIBE(name)                                                                                                 \
    static bool name##_describe(mr_dtype dtype, mr_elementwise *elementwise)                                           \
    {                                                                                                                  \
        return mr_binary_describe(&name##_binary, dtype, elementwise);                                                 \
    }
#define RUN(name)                                                                                                      \
    DESCRIBE(name)                                                                                                     \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return mr_binary_run(call, &name##_binary, error);                                                             \
    }
#define INTEGERS(X, name, expression)                                                                                  \
    X(name##_int32, int32_t, int32_t, expression)                                                                      \
    X(name##_int64, int64_t, int64_t, expression)                                                                      \
    X(name##_int8, int8_t, int8_t, expression)                                                                         \
    X(name##_int16, int16_t, int16_t, expression)                                                                      \
    X(name##_uint8, uint8_t, uint8_t, expression)                                                                      \
    X(name##_uint16, uint16_t, uint16_t, expression)                                                                   \
    X(name##_uint32, uint32_t, uint32_t, expression)                                                                   \
    X(name##_uint64, uint64_t, uint64_t, expression)
#define INTEGER_ROWS(name)                                                                                             \
    [MR_INT32] = name##_int32, [MR_INT64] = name##_int64, [MR_INT8] = name##_int8, [MR_INT16] = name##_int16,          \
    [MR_UINT8] = name##_uint8, [MR_UINT16] = name##_uint16, [MR_UINT32] = name##_uint32, [MR_UINT64] = name##_uint64

/* The loops of complex numbers, as arguments of the macros below. */
#define COMPLEX(name) .loops[MR_COMPLEX64] = name##_complex64, .loops[MR_COMPLEX128] = name##_complex128

/* All numeric types. Integers wrap, so their expression is unsigned where it can overflow. */
#define NUMBERS(name, real_expression, integer_expression, ...)                                                        \
    MR_BINARY_LEVELS(name##_float, float, float, real_expression)                                                      \
    MR_BINARY_LOOP(name##_double, double, double, real_expression)                                                     \
    INTEGERS(MR_BINARY_LOOP, name, integer_expression)                                                                 \
    static const mr_binary name##_binary = {                                                                           \
        .float_levels = name##_float, .loops = {[MR_DOUBLE] = name##_double, INTEGER_ROWS(name)}, __VA_ARGS__};        \
    RUN(name)
/* Floats and doubles, for gradients. Those of functions fail with another message for other shapes. */
#define REALS(...) REALS_OF(MR_OPERANDS_SAME_SHAPE, __VA_ARGS__)
#define FUNCTION_GRAD(...) REALS_OF(MR_OPERANDS_SAME_COUNT, __VA_ARGS__)
#define REALS_OF(rule_, name, float_expression, double_expression, ...)                                                \
    MR_BINARY_LEVELS(name##_float, float, float, float_expression)                                                     \
    MR_BINARY_LOOP(name##_double, double, double, double_expression)                                                   \
    static const mr_binary name##_binary = {                                                                           \
        .float_levels = name##_float, .loops = {[MR_DOUBLE] = name##_double}, .rule = rule_, __VA_ARGS__};             \
    RUN(name)

/* Division and remainder that do not trap for the lowest number divided by -1 and need no sign test for unsigned
 * types. */
#define QUOTIENT(a, b) ((b) == (typeof(b))-1 && (typeof(b))-1 < 0 ? (typeof(b))(-(uint64_t)(a)) : (a) / ((b) ? (b) : 1))
#define REMAINDER(a, b) ((b) == (typeof(b))-1 && (typeof(b))-1 < 0 ? (typeof(b))0 : (a) % ((b) ? (b) : 1))
#define FLOOR_QUOTIENT(a, b) (QUOTIENT(a, b) - (REMAINDER(a, b) != 0 && ((a) < 0) != ((b) < 0)))
#define FLOOR_REMAINDER(a, b) (REMAINDER(a, b) + ((REMAINDER(a, b) != 0 && ((a) < 0) != ((b) < 0)) ? (b) : 0))

MR_COMPLEX_BINARY(add, a + b)
NUMBERS(add, a + b, (uint64_t)a + (uint64_t)b, COMPLEX(add))
MR_COMPLEX_BINARY(subtract, a - b)
NUMBERS(subtract, a - b, (uint64_t)a - (uint64_t)b, COMPLEX(subtract))
MR_COMPLEX_BINARY(multiply, mr_complex_times(a, b))
NUMBERS(multiply, a *b, (uint64_t)a *(uint64_t)b, COMPLEX(multiply))
MR_COMPLEX_BINARY(squared_difference, mr_complex_times(conj(a - b), a - b))
NUMBERS(squared_difference, (a - b) * (a - b), ((uint64_t)a - (uint64_t)b) * ((uint64_t)a - (uint64_t)b),
        COMPLEX(squared_difference))
/* Subnormal numbers, which compare as 0 while a graph runs, are 0: otherwise it would depend on the loop which of two
 * is the result. */
NUMBERS(maximum, (a > b || a != a ? a : b) * mr_one, a > b ? a : b)
NUMBERS(minimum, (a < b || a != a ? a : b) * mr_one, a < b ? a : b)
MR_COMPLEX_BINARY(divide, a / b)
NUMBERS(divide, a / b, QUOTIENT(a, b), .nonzero_b = true, COMPLEX(divide))
MR_COMPLEX_BINARY(divide_no_nan, b == 0 ? 0 : a / b)
NUMBERS(divide_no_nan, b == 0 ? 0 : a / b, b == 0 ? 0 : QUOTIENT(a, b), COMPLEX(divide_no_nan))
MR_COMPLEX_BINARY(multiply_no_nan, b == 0 ? 0 : mr_complex_times(a, b))
NUMBERS(multiply_no_nan, b == 0 ? 0 : a * b, (uint64_t)a *(uint64_t)b, COMPLEX(multiply_no_nan))

/* Functions that call the C library for each element: they are rare in a training step. */
static float floor_remainder_float(float a, float b)
{
    float rest = fmodf(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double floor_remainder_double(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t power_int(int64_t base, int64_t exponent)
{
    uint64_t result = 1, square = (uint64_t)base;
    for (uint64_t rest = (uint64_t)exponent; rest > 0; rest >>= 1) {
        if (rest & 1) result *= square;
        square *= square;
    }
    return (int64_t)result;
}

#define SLOW_LOOP(name, type, out_type, expression)                                                                    \
    static void name(void *target, const void *a_row, const void *b_row, int64_t count, mr_operands operands)          \
    {                                                                                                                  \
        int64_t a_step = operands != MR_A_SCALAR, b_step = operands != MR_B_SCALAR;                                    \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            type a = ((const type *)a_row)[i * a_step], b = ((const type *)b_row)[i * b_step];                         \
            ((out_type *)target)[i] = (out_type)(expression);                                                          \
        }                                                                                                              \
    }
#define SLOW_NUMBERS(name, float_expression, double_expression, integer_expression, ...)                               \
    SLOW_LOOP(name##_float, float, float, float_expression)                                                            \
    SLOW_LOOP(name##_double, double, double, double_expression)                                                        \
    INTEGERS(SLOW_LOOP, name, integer_expression)                                                                      \
    static const mr_binary name##_binary = {                                                                           \
        .loops = {[MR_FLOAT] = name##_float, [MR_DOUBLE] = name##_double, INTEGER_ROWS(name)}, __VA_ARGS__};           \
    RUN(name)
/* The quotient of halves is rounded before its floor is taken, as in TensorFlow. */
#define ROUNDED_HALF(rounded, narrow, widen) narrow(rounded(widen(narrow(widen(a) / widen(b)))))
#define ROUNDED_HALVES(name, rounded)                                                                                  \
    SLOW_LOOP(name##_half, uint16_t, uint16_t, ROUNDED_HALF(rounded, mr_float_to_half, mr_half_to_float))              \
    SLOW_LOOP(name##_bfloat16, uint16_t, uint16_t, ROUNDED_HALF(rounded, mr_float_to_bfloat16, mr_bfloat16_to_float))
ROUNDED_HALVES(truncate_divide, truncf)
SLOW_NUMBERS(truncate_divide, truncf(a / b), trunc(a / b), QUOTIENT(a, b), .nonzero_b = true,
             .loops[MR_HALF] = truncate_divide_half, .loops[MR_BFLOAT16] = truncate_divide_bfloat16)
ROUNDED_HALVES(floor_divide, floorf)
SLOW_NUMBERS(floor_divide, floorf(a / b), floor(a / b), FLOOR_QUOTIENT(a, b), .nonzero_b = true,
             .loops[MR_HALF] = floor_divide_half, .loops[MR_BFLOAT16] = floor_divide_bfloat16)
SLOW_NUMBERS(floor_modulo, floor_remainder_float(a, b), floor_remainder_double(a, b), FLOOR_REMAINDER(a, b),
             .nonzero_b = true)
SLOW_NUMBERS(modulo, fmodf(a, b), fmod(a, b), REMAINDER(a, b), .nonzero_b = true)
MR_COMPLEX_BINARY(power, cpow(a, b))
SLOW_NUMBERS(power, powf(a, b), pow(a, b), power_int((int64_t)a, (int64_t)b), .nonnegative_b = true, COMPLEX(power))

#define SLOW_REALS(name, float_expression, double_expression, ...)                                                     \
    SLOW_LOOP(name##_float, float, float, float_expression)                                                            \
    SLOW_LOOP(name##_double, double, double, double_expression)                                                        \
    static const mr_binary name##_binary = {.loops = {[MR_FLOAT] = name##_float, [MR_DOUBLE] = name##_double},         \
                                            __VA_ARGS__};                                                              \
    RUN(name)
SLOW_REALS(arc_tangent_2, atan2f(a, b), atan2(a, b))
SLOW_REALS(next_after, nextafterf(a, b), nextafter(a, b))
/* 0 where a is 0, even if b is NaN. */
MR_COMPLEX_BINARY(x_divided_by_y, a == 0 ? 0 : a / b)
SLOW_REALS(x_divided_by_y, a == 0 ? 0 : a / b, a == 0 ? 0 : a / b, COMPLEX(x_divided_by_y))
MR_COMPLEX_BINARY(x_log_y, a == 0 ? 0 : mr_complex_times(a, clog(b)))
SLOW_REALS(x_log_y, a == 0 ? 0 : a * logf(b), a == 0 ? 0 : a * log(b), COMPLEX(x_log_y))
MR_COMPLEX_BINARY(x_log1p_y, a == 0 ? 0 : mr_complex_times(a, mr_complex_log1p(b)))
SLOW_REALS(x_log1p_y, a == 0 ? 0 : a * log1pf(b), a == 0 ? 0 : a * log1p(b), COMPLEX(x_log1p_y))

/* Gradients in terms of the result y (a) and dy (b). Where dy is 0 the first three are 0, even if y is infinite. */
MR_COMPLEX_BINARY(root_grad, b == 0 ? 0 : 0.5 * b / conj(a))
FUNCTION_GRAD(root_grad, b == 0 ? 0 : b * 0.5f / a, b == 0 ? 0 : b * 0.5 / a, COMPLEX(root_grad))
MR_COMPLEX_BINARY(reciprocal_root_grad,
                  b == 0 ? 0
                         : -0.5 * mr_complex_times(b, mr_complex_times(conj(a), mr_complex_times(conj(a), conj(a)))))
FUNCTION_GRAD(reciprocal_root_grad, b == 0 ? 0 : -0.5f * b * (a * a * a), b == 0 ? 0 : -0.5 * b * (a * a * a),
              COMPLEX(reciprocal_root_grad))
MR_COMPLEX_BINARY(reciprocal_grad, b == 0 ? 0 : -mr_complex_times(b, mr_complex_times(conj(a), conj(a))))
FUNCTION_GRAD(reciprocal_grad, b == 0 ? 0 : -b * (a * a), b == 0 ? 0 : -b * (a * a), COMPLEX(reciprocal_grad))
MR_COMPLEX_BINARY(tangent_grad, mr_complex_times(b, 1.0 - mr_complex_times(a, a)))
FUNCTION_GRAD(tangent_grad, b * (1.0f - a * a), b * (1.0 - a * a), COMPLEX(tangent_grad))
MR_COMPLEX_BINARY(sigmoid_grad, mr_complex_times(mr_complex_times(b, a), 1.0 - a))
FUNCTION_GRAD(sigmoid_grad, b *a * (1.0f - a), b *a * (1.0 - a), COMPLEX(sigmoid_grad))
/* Gradients of activations: gradients (a), then features or outputs (b). */
/* Products with 0 or 1: as in TensorFlow, a gradient of NaN stays NaN. */
NUMBERS(relu_grad, a *(float)(b > 0), a *(b > 0), .rule = MR_OPERANDS_SAME_SHAPE)
NUMBERS(relu6_grad, a *(float)(b > 0 && b < 6), a *(b > 0 && b < 6), .rule = MR_OPERANDS_SAME_SHAPE)
REALS(elu_grad, b < 0 ? (b + 1) * a : a, b < 0 ? (b + 1) * a : a)
REALS(selu_grad, b < 0 ? a * (b + 1.7580993408473768f) : a * 1.0507009873554805f,
      b < 0 ? a * (b + 1.7580993408473768) : a * 1.0507009873554805)
REALS(softplus_grad, a / (mr_expf(-b) + 1.0f), a / (exp(-b) + 1.0))
REALS(softsign_grad, a / ((1.0f + fabsf(b)) * (1.0f + fabsf(b))), a / ((1.0 + fabs(b)) * (1.0 + fabs(b))))

/* Comparisons. Halves compare as floats. */
#define COMPARE(name, expression)                                                                                      \
    MR_BINARY_LEVELS(name##_float, float, bool, expression)                                                            \
    MR_BINARY_LOOP(name##_double, double, bool, expression)                                                            \
    MR_BINARY_LOOP(name##_int32, int32_t, bool, expression)                                                            \
    MR_BINARY_LOOP(name##_int64, int64_t, bool, expression)                                                            \
    MR_BINARY_LOOP(name##_int8, int8_t, bool, expression)                                                              \
    MR_BINARY_LOOP(name##_int16, int16_t, bool, expression)                                                            \
    MR_BINARY_LOOP(name##_uint8, uint8_t, bool, expression)                                                            \
    MR_BINARY_LOOP(name##_uint16, uint16_t, bool, expression)                                                          \
    MR_BINARY_LOOP(name##_uint32, uint32_t, bool, expression)                                                          \
    MR_BINARY_LOOP(name##_uint64, uint64_t, bool, expression)
#define COMPARE_BINARY(name, ...)                                                                                      \
    static const mr_binary name##_binary = {.float_levels = name##_float,                                              \
                                            .loops = {[MR_DOUBLE] = name##_double, INTEGER_ROWS(name), __VA_ARGS__}};
COMPARE(less, a < b)
COMPARE_BINARY(less)
RUN(less)
COMPARE(less_equal, a <= b)
COMPARE_BINARY(less_equal)
RUN(less_equal)
COMPARE(greater, a > b)
COMPARE_BINARY(greater)
RUN(greater)
COMPARE(greater_equal, a >= b)
COMPARE_BINARY(greater_equal)
RUN(greater_equal)
COMPARE(equal, a == b)
SLOW_LOOP(equal_string, mr_string, bool, mr_string_equal(a, b))
MR_BINARY_LOOP(equal_bool, bool, bool, a == b)
MR_COMPLEX_BINARY_LOOP(equal_complex64, mr_complex64, bool, a == b)
MR_COMPLEX_BINARY_LOOP(equal_complex128, mr_complex128, bool, a == b)
#define QUANTIZED_ROWS(name)                                                                                           \
    [MR_QINT8] = name##_int8, [MR_QUINT8] = name##_uint8, [MR_QINT16] = name##_int16, [MR_QUINT16] = name##_uint16,    \
    [MR_QINT32] = name##_int32
COMPARE_BINARY(equal, [MR_STRING] = equal_string, [MR_BOOL] = equal_bool, MR_COMPLEX_ROWS(equal), QUANTIZED_ROWS(equal))
COMPARE(not_equal, a != b)
SLOW_LOOP(not_equal_string, mr_string, bool, !mr_string_equal(a, b))
MR_BINARY_LOOP(not_equal_bool, bool, bool, a != b)
MR_COMPLEX_BINARY_LOOP(not_equal_complex64, mr_complex64, bool, a != b)
MR_COMPLEX_BINARY_LOOP(not_equal_complex128, mr_complex128, bool, a != b)
COMPARE_BINARY(not_equal, [MR_STRING] = not_equal_string, [MR_BOOL] = not_equal_bool, MR_COMPLEX_ROWS(not_equal),
               QUANTIZED_ROWS(not_equal))

/* If incompatible_shape_error is false, shapes that do not broadcast compare as not equal. */
static mr_status equality(mr_kernel_call *call, const mr_binary *binary, bool different, mr_error *error)
{
    mr_shape wide;
    if (!mr_attr_bool_or(call->node->attrs, "incompatible_shape_error", true) &&
        mr_kernel_broadcast(call, call->inputs[0].shape, call->inputs[1].shape, &wide, nullptr) != MR_OK) {
        MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
        *(bool *)call->outputs[0].data = different;
        return MR_OK;
    }
    return mr_binary_run(call, binary, error);
}

DESCRIBE(equal)
static mr_status equal(mr_kernel_call *call, mr_error *error)
{
    return equality(call, &equal_binary, false, error);
}

DESCRIBE(not_equal)
static mr_status not_equal(mr_kernel_call *call, mr_error *error)
{
    return equality(call, &not_equal_binary, true, error);
}

MR_BINARY_LOOP(and_bool, bool, bool, a &&b)
static const mr_binary logical_and_binary = {.loops = {[MR_BOOL] = and_bool}};
RUN(logical_and)
MR_BINARY_LOOP(or_bool, bool, bool, a || b)
static const mr_binary logical_or_binary = {.loops = {[MR_BOOL] = or_bool}};
RUN(logical_or)

/* BiasAdd: an addition that broadcasts the bias along the channels, which are the last dimension, or the second of
 * NCHW. */
static mr_status bias_add(mr_kernel_call *call, mr_error *error)
{
    mr_tensor inputs[2] = {call->inputs[0], call->inputs[1]};
    mr_kernel_call shaped = *call;
    shaped.inputs = inputs;
    mr_shape value = inputs[0].shape;
    bool nchw = mr_string_equal(mr_attr_string_or(call->node->attrs, "data_format", "NHWC"), MR_STR("NCHW"));
    int channel = nchw ? MR_MIN(1, value.rank - 1) : value.rank - 1;
    MR_TRY(mr_bias_check(call, channel, !nchw, error));
    inputs[1].shape.rank = value.rank - channel;
    for (int i = 1; i < inputs[1].shape.rank; i++) inputs[1].shape.dims[i] = 1;
    mr_status status = mr_binary_run(&shaped, &add_binary, error);
    for (int i = 0; i < 2; i++) call->inputs[i].buffer = inputs[i].buffer; /* one may have moved to the output */
    return status;
}

/* Of channels that are the last dimension. */
static bool bias_add_describe(mr_dtype dtype, mr_elementwise *elementwise)
{
    bool is_described = mr_binary_describe(&add_binary, dtype, elementwise);
    elementwise->rule = MR_OPERANDS_BIAS;
    return is_described;
}

#define BINARY(op_, name) {.op = op_, .run = name, .elementwise = name##_describe}
static const mr_kernel kernels[] = {
    BINARY("BiasAdd", bias_add),
    BINARY("BiasAddV1", bias_add),
    {.op = "Add", .types = "T: string", .run = mr_string_add},
    BINARY("Add", add),
    BINARY("AddV2", add),
    BINARY("Sub", subtract),
    BINARY("Mul", multiply),
    BINARY("MulNoNan", multiply_no_nan),
    BINARY("Div", divide),
    BINARY("RealDiv", divide),
    BINARY("TruncateDiv", truncate_divide),
    BINARY("DivNoNan", divide_no_nan),
    BINARY("FloorDiv", floor_divide),
    BINARY("FloorMod", floor_modulo),
    BINARY("Mod", modulo),
    BINARY("TruncateMod", modulo),
    BINARY("SquaredDifference", squared_difference),
    BINARY("Maximum", maximum),
    BINARY("Minimum", minimum),
    BINARY("Pow", power),
    BINARY("Atan2", arc_tangent_2),
    BINARY("NextAfter", next_after),
    BINARY("Xdivy", x_divided_by_y),
    BINARY("Xlogy", x_log_y),
    BINARY("Xlog1py", x_log1p_y),
    BINARY("SqrtGrad", root_grad),
    BINARY("RsqrtGrad", reciprocal_root_grad),
    BINARY("ReciprocalGrad", reciprocal_grad),
    BINARY("InvGrad", reciprocal_grad),
    BINARY("TanhGrad", tangent_grad),
    BINARY("SigmoidGrad", sigmoid_grad),
    BINARY("ReluGrad", relu_grad),
    BINARY("Relu6Grad", relu6_grad),
    BINARY("EluGrad", elu_grad),
    BINARY("SeluGrad", selu_grad),
    BINARY("SoftplusGrad", softplus_grad),
    BINARY("SoftsignGrad", softsign_grad),
    BINARY("Less", less),
    BINARY("LessEqual", less_equal),
    BINARY("Greater", greater),
    BINARY("GreaterEqual", greater_equal),
    BINARY("Equal", equal),
    BINARY("NotEqual", not_equal),
    BINARY("LogicalAnd", logical_and),
    BINARY("LogicalOr", logical_or),
};
MR_KERNEL_FAMILY(math_binary);
