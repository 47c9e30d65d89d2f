/* The functions of segment_rows.h. Integers wrap. A maximum or minimum with a NaN is the later operand, as in
 * TensorFlow: that of (1, NaN) is NaN, that of (NaN, 1) is 1. */
#include "kernels/segment_rows.h"
#include "kernels/complex_math.h"
#include <float.h>

#define FILL(name, type, neutral)                                                                                      \
    static void name##_fill(void *accumulator, int64_t count)                                                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) ((type *)accumulator)[i] = (type)(neutral);                                \
    }
#define COMBINE(name, type, expression)                                                                                \
    static void name##_combine(void *accumulator, const void *row, int64_t count)                                      \
    {                                                                                                                  \
        type *restrict to = accumulator;                                                                               \
        const type *restrict from = row;                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const type a = to[i], b = from[i];                                                                         \
            to[i] = (type)(expression);                                                                                \
        }                                                                                                              \
    }
#define DIVIDE(suffix, type, divisor_type)                                                                             \
    static void divide_##suffix(void *accumulator, int64_t count, double divisor)                                      \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++)                                                                            \
            ((type *)accumulator)[i] = (type)(((type *)accumulator)[i] / (divisor_type)divisor);                       \
    }
/* sum_type: unsigned for integers, at least 32 bits wide. */
#define SUMS(type, suffix, sum_type)                                                                                   \
    FILL(sum_##suffix, type, 0)                                                                                        \
    COMBINE(sum_##suffix, type, (sum_type)a + (sum_type)b)                                                             \
    FILL(product_##suffix, type, 1)                                                                                    \
    COMBINE(product_##suffix, type, (sum_type)a *(sum_type)b)
#define REALS(type, suffix, sum_type, divisor_type, low, high)                                                         \
    SUMS(type, suffix, sum_type)                                                                                       \
    FILL(maximum_##suffix, type, low)                                                                                  \
    COMBINE(maximum_##suffix, type, a > b ? a : b)                                                                     \
    FILL(minimum_##suffix, type, high)                                                                                 \
    COMBINE(minimum_##suffix, type, a < b ? a : b)                                                                     \
    DIVIDE(suffix, type, divisor_type)
REALS(float, float, float, float, -FLT_MAX, FLT_MAX)
REALS(double, double, double, double, -DBL_MAX, DBL_MAX)
REALS(int8_t, int8, uint32_t, int64_t, INT8_MIN, INT8_MAX)
REALS(int16_t, int16, uint32_t, int64_t, INT16_MIN, INT16_MAX)
REALS(int32_t, int32, uint32_t, int64_t, INT32_MIN, INT32_MAX)
REALS(int64_t, int64, uint64_t, int64_t, INT64_MIN, INT64_MAX)
REALS(uint8_t, uint8, uint32_t, uint64_t, 0, UINT8_MAX)
REALS(uint16_t, uint16, uint32_t, uint64_t, 0, UINT16_MAX)
REALS(uint32_t, uint32, uint32_t, uint64_t, 0, UINT32_MAX)
REALS(uint64_t, uint64, uint64_t, uint64_t, 0, UINT64_MAX)

#define COMPLEX(type, suffix, real)                                                                                    \
    FILL(sum_##suffix, type, 0)                                                                                        \
    COMBINE(sum_##suffix, type, a + b)                                                                                 \
    FILL(product_##suffix, type, 1)                                                                                    \
    COMBINE(product_##suffix, type, mr_complex_times(a, b))                                                            \
    DIVIDE(suffix, type, real)
COMPLEX(mr_complex64, complex64, float)
COMPLEX(mr_complex128, complex128, double)

/* Half types are rounded after each operation. */
#define COMBINE_HALF(name, suffix, neutral, expression)                                                                \
    FILL(name##_##suffix, uint16_t, neutral)                                                                           \
    static void name##_##suffix##_combine(void *accumulator, const void *row, int64_t count)                           \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const float a = mr_##suffix##_to_float(((uint16_t *)accumulator)[i]);                                      \
            const float b = mr_##suffix##_to_float(((const uint16_t *)row)[i]);                                        \
            ((uint16_t *)accumulator)[i] = mr_float_to_##suffix(expression);                                           \
        }                                                                                                              \
    }
#define HALF(suffix, one, low, high)                                                                                   \
    COMBINE_HALF(sum, suffix, 0, a + b)                                                                                \
    COMBINE_HALF(product, suffix, one, a *b)                                                                           \
    COMBINE_HALF(maximum, suffix, low, a > b ? a : b)                                                                  \
    COMBINE_HALF(minimum, suffix, high, a < b ? a : b)                                                                 \
    static void divide_##suffix(void *accumulator, int64_t count, double divisor)                                      \
    {                                                                                                                  \
        uint16_t *to = accumulator;                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = mr_float_to_##suffix(mr_##suffix##_to_float(to[i]) / (float)divisor);                              \
    }
HALF(half, 0x3c00, 0xfbff, 0x7bff)
HALF(bfloat16, 0x3f80, 0xff7f, 0x7f7f)

#define ROW(name, suffix) {name##_##suffix##_fill, name##_##suffix##_combine, divide_##suffix}
#define REAL_ROWS(dtype, suffix)                                                                                       \
    [dtype] = {ROW(sum, suffix), ROW(product, suffix), ROW(maximum, suffix), ROW(minimum, suffix)}
#define COMPLEX_ROWS(dtype, suffix) [dtype] = {ROW(sum, suffix), ROW(product, suffix)}

const mr_segment_rows *mr_segment_rows_find(mr_segment_kind kind, mr_dtype dtype)
{
    static const mr_segment_rows rows[MR_DTYPE_COUNT][MR_SEGMENT_KIND_COUNT] = {
        REAL_ROWS(MR_FLOAT, float), REAL_ROWS(MR_DOUBLE, double), REAL_ROWS(MR_HALF, half),
        REAL_ROWS(MR_INT8, int8),   REAL_ROWS(MR_UINT8, uint8),   REAL_ROWS(MR_BFLOAT16, bfloat16),
        REAL_ROWS(MR_INT16, int16), REAL_ROWS(MR_UINT16, uint16), COMPLEX_ROWS(MR_COMPLEX64, complex64),
        REAL_ROWS(MR_INT32, int32), REAL_ROWS(MR_UINT32, uint32), COMPLEX_ROWS(MR_COMPLEX128, complex128),
        REAL_ROWS(MR_INT64, int64), REAL_ROWS(MR_UINT64, uint64),
    };
    const mr_segment_rows *found = &rows[dtype][kind];
    return found->fill != nullptr ? found : nullptr;
}

double mr_segment_divisor_of(mr_segment_divisor divisor, int64_t count)
{
    return divisor == MR_SEGMENT_BY_COUNT ? (double)count : divisor == MR_SEGMENT_BY_ROOT ? sqrt((double)count) : 1.0;
}
