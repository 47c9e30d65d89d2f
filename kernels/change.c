/* The loops of change.h for each dtype. */
#include "kernels/change.h"

#include <string.h>

/* v is an element of the target, u one of the source. */
#define OPERATION(name, suffix, type, ...)                                                                             \
    static void name##_##suffix(void *target, const void *source, int64_t count, int64_t step)                         \
    {                                                                                                                  \
        type *t = target;                                                                                              \
        const type *s = source;                                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            [[maybe_unused]] const type v = t[i];                                                                      \
            const type u = s[i * step];                                                                                \
            t[i] = (type)(__VA_ARGS__);                                                                                \
        }                                                                                                              \
    }

/* Sums and products of signed integers are those of unsigned ones, which wrap around. */
#define WRAPPING(suffix, type, wide)                                                                                   \
    OPERATION(add, suffix, type, (wide)v + (wide)u)                                                                    \
    OPERATION(sub, suffix, type, (wide)v - (wide)u)                                                                    \
    OPERATION(mul, suffix, type, (wide)v *(wide)u)
#define ORDERED(suffix, type)                                                                                          \
    OPERATION(min, suffix, type, u < v ? u : v)                                                                        \
    OPERATION(max, suffix, type, u > v ? u : v)
#define SIGNED(suffix, type, wide)                                                                                     \
    WRAPPING(suffix, type, wide)                                                                                       \
    ORDERED(suffix, type)                                                                                              \
    OPERATION(div, suffix, type, u == 0 ? 0 : u == -1 ? (type)(0 - (wide)v) : v / u)
#define UNSIGNED(suffix, type, wide)                                                                                   \
    WRAPPING(suffix, type, wide)                                                                                       \
    ORDERED(suffix, type)                                                                                              \
    OPERATION(div, suffix, type, u == 0 ? 0 : v / u)
#define FLOATING(suffix, type)                                                                                         \
    WRAPPING(suffix, type, type)                                                                                       \
    OPERATION(div, suffix, type, v / u)
#define NARROW(suffix, load, store)                                                                                    \
    OPERATION(add, suffix, uint16_t, store(load(v) + load(u)))                                                         \
    OPERATION(sub, suffix, uint16_t, store(load(v) - load(u)))                                                         \
    OPERATION(mul, suffix, uint16_t, store(load(v) * load(u)))                                                         \
    OPERATION(div, suffix, uint16_t, store(load(v) / load(u)))                                                         \
    OPERATION(min, suffix, uint16_t, load(u) < load(v) ? u : v)                                                        \
    OPERATION(max, suffix, uint16_t, load(u) > load(v) ? u : v)
SIGNED(int8, int8_t, uint32_t)
SIGNED(int16, int16_t, uint32_t)
SIGNED(int32, int32_t, uint32_t)
SIGNED(int64, int64_t, uint64_t)
UNSIGNED(uint8, uint8_t, uint32_t)
UNSIGNED(uint16, uint16_t, uint32_t)
UNSIGNED(uint32, uint32_t, uint32_t)
UNSIGNED(uint64, uint64_t, uint64_t)
FLOATING(float, float)
ORDERED(float, float)
FLOATING(double, double)
ORDERED(double, double)
FLOATING(complex64, float _Complex)
FLOATING(complex128, double _Complex)
NARROW(half, mr_half_to_float, mr_float_to_half)
NARROW(bfloat16, mr_bfloat16_to_float, mr_float_to_bfloat16)
OPERATION(add, bool, uint8_t, v | u)
OPERATION(sub, bool, uint8_t, v != u)
OPERATION(set, 1, uint8_t, u)
OPERATION(set, 2, uint16_t, u)
OPERATION(set, 4, uint32_t, u)
OPERATION(set, 8, uint64_t, u)
OPERATION(set, 16, double _Complex, u)

#define NUMBER(dtype, suffix)                                                                                          \
    [dtype] = {[MR_CHANGE_ADD] = add_##suffix, [MR_CHANGE_SUB] = sub_##suffix, [MR_CHANGE_MUL] = mul_##suffix,         \
               [MR_CHANGE_DIV] = div_##suffix, [MR_CHANGE_MIN] = min_##suffix, [MR_CHANGE_MAX] = max_##suffix}
#define COMPLEX(dtype, suffix)                                                                                         \
    [dtype] = {[MR_CHANGE_ADD] = add_##suffix,                                                                         \
               [MR_CHANGE_SUB] = sub_##suffix,                                                                         \
               [MR_CHANGE_MUL] = mul_##suffix,                                                                         \
               [MR_CHANGE_DIV] = div_##suffix}
static const mr_change_function functions[MR_DTYPE_COUNT][MR_CHANGE_COUNT] = {
    NUMBER(MR_FLOAT, float),
    NUMBER(MR_DOUBLE, double),
    NUMBER(MR_INT8, int8),
    NUMBER(MR_INT16, int16),
    NUMBER(MR_INT32, int32),
    NUMBER(MR_INT64, int64),
    NUMBER(MR_UINT8, uint8),
    NUMBER(MR_UINT16, uint16),
    NUMBER(MR_UINT32, uint32),
    NUMBER(MR_UINT64, uint64),
    NUMBER(MR_HALF, half),
    NUMBER(MR_BFLOAT16, bfloat16),
    COMPLEX(MR_COMPLEX64, complex64),
    COMPLEX(MR_COMPLEX128, complex128),
    [MR_BOOL] = {[MR_CHANGE_ADD] = add_bool, [MR_CHANGE_SUB] = sub_bool},
};

mr_change_function mr_change_find(mr_change change, mr_dtype dtype)
{
    if (change != MR_CHANGE_SET) return functions[dtype][change];
    if (dtype == MR_STRING) return nullptr;
    switch (mr_dtype_size(dtype)) {
    case 1:
        return set_1;
    case 2:
        return set_2;
    case 4:
        return set_4;
    case 8:
        return set_8;
    case 16:
        return set_16;
    default:
        return nullptr;
    }
}

bool mr_change_divides(const mr_tensor *divisors)
{
    static const uint32_t integers = 1u << MR_INT8 | 1u << MR_INT16 | 1u << MR_INT32 | 1u << MR_INT64 | 1u << MR_UINT8 |
                                     1u << MR_UINT16 | 1u << MR_UINT32 | 1u << MR_UINT64;
    static const char zero[8];
    size_t size = mr_dtype_size(divisors->dtype);
    if ((integers >> divisors->dtype & 1) == 0) return true;
    for (int64_t i = 0, count = mr_tensor_count(divisors); i < count; i++)
        if (memcmp((const char *)divisors->data + (size_t)i * size, zero, size) == 0) return false;
    return true;
}
