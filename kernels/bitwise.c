/* Operators on the bits of integers. Signed and unsigned types of one width share their loops, except for shifts to the
 * right. */
#include "kernels/elementwise.h"

#define RUN(name)                                                                                                      \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return mr_binary_run(call, &name##_binary, error);                                                             \
    }
#define WIDTH_ROWS(name)                                                                                               \
    [MR_INT8] = name##_uint8, [MR_UINT8] = name##_uint8, [MR_INT16] = name##_uint16, [MR_UINT16] = name##_uint16,      \
    [MR_INT32] = name##_uint32, [MR_UINT32] = name##_uint32, [MR_INT64] = name##_uint64, [MR_UINT64] = name##_uint64
#define WIDTHS(name, expression)                                                                                       \
    MR_BINARY_LOOP(name##_uint8, uint8_t, uint8_t, expression)                                                         \
    MR_BINARY_LOOP(name##_uint16, uint16_t, uint16_t, expression)                                                      \
    MR_BINARY_LOOP(name##_uint32, uint32_t, uint32_t, expression)                                                      \
    MR_BINARY_LOOP(name##_uint64, uint64_t, uint64_t, expression)                                                      \
    static const mr_binary name##_binary = {.loops = {WIDTH_ROWS(name)}};                                              \
    RUN(name)
WIDTHS(bitwise_and, a &b)
WIDTHS(bitwise_or, a | b)
WIDTHS(bitwise_xor, a ^ b)

/* Shift counts are limited to [0, width of the type). */
#define LIMITED(b, a) ((b) < 0 ? 0 : (uint64_t)(b) >= 8 * sizeof(a) ? 8 * sizeof(a) - 1 : (uint64_t)(b))
#define SHIFTS(X, name, expression)                                                                                    \
    X(name##_int8, int8_t, int8_t, expression)                                                                         \
    X(name##_int16, int16_t, int16_t, expression)                                                                      \
    X(name##_int32, int32_t, int32_t, expression)                                                                      \
    X(name##_int64, int64_t, int64_t, expression)                                                                      \
    X(name##_uint8, uint8_t, uint8_t, expression)                                                                      \
    X(name##_uint16, uint16_t, uint16_t, expression)                                                                   \
    X(name##_uint32, uint32_t, uint32_t, expression)                                                                   \
    X(name##_uint64, uint64_t, uint64_t, expression)                                                                   \
    static const mr_binary name##_binary = {.loops = {[MR_INT8] = name##_int8,                                         \
                                                      [MR_INT16] = name##_int16,                                       \
                                                      [MR_INT32] = name##_int32,                                       \
                                                      [MR_INT64] = name##_int64,                                       \
                                                      [MR_UINT8] = name##_uint8,                                       \
                                                      [MR_UINT16] = name##_uint16,                                     \
                                                      [MR_UINT32] = name##_uint32,                                     \
                                                      [MR_UINT64] = name##_uint64}};                                   \
    RUN(name)
#pragma clang diagnostic ignored "-Wtautological-compare"
SHIFTS(MR_BINARY_LOOP, left_shift, (uint64_t)a << LIMITED(b, a))
SHIFTS(MR_BINARY_LOOP, right_shift, a >> LIMITED(b, a))

#define UNARY_WIDTHS(name, out_type, expression)                                                                       \
    MR_UNARY_LOOP(name##_uint8, uint8_t, out_type(8), expression)                                                      \
    MR_UNARY_LOOP(name##_uint16, uint16_t, out_type(16), expression)                                                   \
    MR_UNARY_LOOP(name##_uint32, uint32_t, out_type(32), expression)                                                   \
    MR_UNARY_LOOP(name##_uint64, uint64_t, out_type(64), expression)                                                   \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        static const mr_unary unary = {.loops = {WIDTH_ROWS(name)}};                                                   \
        return mr_unary_run(call, &unary, error);                                                                      \
    }
#define SAME_WIDTH(bits) uint##bits##_t
#define BYTE(bits) uint8_t
UNARY_WIDTHS(invert, SAME_WIDTH, ~(uint64_t)x)
UNARY_WIDTHS(population_count, BYTE, __builtin_popcountll((uint64_t)x))

static const mr_kernel kernels[] = {
    {.op = "BitwiseAnd", .run = bitwise_and},           {.op = "BitwiseOr", .run = bitwise_or},
    {.op = "BitwiseXor", .run = bitwise_xor},           {.op = "LeftShift", .run = left_shift},
    {.op = "RightShift", .run = right_shift},           {.op = "Invert", .run = invert},
    {.op = "PopulationCount", .run = population_count},
};
MR_KERNEL_FAMILY(bitwise);
