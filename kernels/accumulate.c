/* The functions of accumulate.h. */
#include "kernels/accumulate.h"

#define SUM(name, type, suffix, operation)                                                                             \
    static void name##_##suffix(void *target, const void *source, int64_t count)                                       \
    {                                                                                                                  \
        type *restrict to = target;                                                                                    \
        const type *restrict from = source;                                                                            \
        for (int64_t i = 0; i < count; i++) to[i] = (type)(to[i] operation from[i]);                                   \
    }
#define SUMS(dtype, type, suffix) SUM(add, type, suffix, +) SUM(subtract, type, suffix, -)
MR_EACH_WRAPPING_NUMBER(SUMS)

/* As std::max and std::min do it: a NaN in the target stays, one in the source is ignored. */
#define EXTREMES(dtype, type, suffix)                                                                                  \
    static void maximum_##suffix(void *target, const void *source, int64_t count)                                      \
    {                                                                                                                  \
        type *restrict to = target;                                                                                    \
        const type *restrict from = source;                                                                            \
        for (int64_t i = 0; i < count; i++) to[i] = to[i] < from[i] ? from[i] : to[i];                                 \
    }                                                                                                                  \
    static void minimum_##suffix(void *target, const void *source, int64_t count)                                      \
    {                                                                                                                  \
        type *restrict to = target;                                                                                    \
        const type *restrict from = source;                                                                            \
        for (int64_t i = 0; i < count; i++) to[i] = from[i] < to[i] ? from[i] : to[i];                                 \
    }
MR_EACH_NUMBER(EXTREMES)

#define NARROW(name, suffix, expression)                                                                               \
    static void name##_##suffix(void *target, const void *source, int64_t count)                                       \
    {                                                                                                                  \
        uint16_t *restrict to = target;                                                                                \
        const uint16_t *restrict from = source;                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            float a = mr_##suffix##_to_float(to[i]), b = mr_##suffix##_to_float(from[i]);                              \
            to[i] = mr_float_to_##suffix(expression);                                                                  \
        }                                                                                                              \
    }
#define NARROWS(suffix)                                                                                                \
    NARROW(add, suffix, a + b)                                                                                         \
    NARROW(subtract, suffix, a - b) NARROW(maximum, suffix, a < b ? b : a) NARROW(minimum, suffix, b < a ? b : a)
NARROWS(half)
NARROWS(bfloat16)

/* A complex number is a pair of real ones. */
static void add_complex64(void *target, const void *source, int64_t count)
{
    add_float(target, source, 2 * count);
}
static void subtract_complex64(void *target, const void *source, int64_t count)
{
    subtract_float(target, source, 2 * count);
}
static void add_complex128(void *target, const void *source, int64_t count)
{
    add_double(target, source, 2 * count);
}
static void subtract_complex128(void *target, const void *source, int64_t count)
{
    subtract_double(target, source, 2 * count);
}

static void add_bool(void *target, const void *source, int64_t count)
{
    for (int64_t i = 0; i < count; i++) ((bool *)target)[i] |= ((const bool *)source)[i];
}

mr_accumulate mr_accumulate_find(mr_accumulation kind, mr_dtype dtype)
{
#define ADD_ROW(dtype, type, suffix) [dtype] = add_##suffix,
#define SUBTRACT_ROW(dtype, type, suffix) [dtype] = subtract_##suffix,
#define MAXIMUM_ROW(dtype, type, suffix) [dtype] = maximum_##suffix,
#define MINIMUM_ROW(dtype, type, suffix) [dtype] = minimum_##suffix,
#define HALVES(name) [MR_HALF] = name##_half, [MR_BFLOAT16] = name##_bfloat16
#define COMPLEX(name) [MR_COMPLEX64] = name##_complex64, [MR_COMPLEX128] = name##_complex128
    static const mr_accumulate functions[MR_ACCUMULATION_COUNT][MR_DTYPE_COUNT] = {
        [MR_ADD] = {MR_EACH_NUMBER(ADD_ROW) HALVES(add), COMPLEX(add), [MR_BOOL] = add_bool},
        [MR_SUBTRACT] = {MR_EACH_NUMBER(SUBTRACT_ROW) HALVES(subtract), COMPLEX(subtract)},
        [MR_MAXIMUM] = {MR_EACH_NUMBER(MAXIMUM_ROW) HALVES(maximum)},
        [MR_MINIMUM] = {MR_EACH_NUMBER(MINIMUM_ROW) HALVES(minimum)},
    };
    return dtype > MR_DTYPE_INVALID && dtype < MR_DTYPE_COUNT ? functions[kind][dtype] : nullptr;
}
