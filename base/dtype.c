/* Dtypes: names, sizes, and conversions of the two 16-bit float formats. */
#include <millrace/tensor.h>

#include <string.h>

static const struct {
    const char *name;
    size_t size_bytes;
} dtypes[MR_DTYPE_COUNT] = {
    [MR_DTYPE_INVALID] = {"invalid", 0},
    [MR_FLOAT] = {"float", 4},
    [MR_DOUBLE] = {"double", 8},
    [MR_INT32] = {"int32", 4},
    [MR_UINT8] = {"uint8", 1},
    [MR_INT16] = {"int16", 2},
    [MR_INT8] = {"int8", 1},
    [MR_STRING] = {"string", sizeof(mr_string)},
    [MR_COMPLEX64] = {"complex64", 8},
    [MR_INT64] = {"int64", 8},
    [MR_BOOL] = {"bool", 1},
    [MR_QINT8] = {"qint8", 1},
    [MR_QUINT8] = {"quint8", 1},
    [MR_QINT32] = {"qint32", 4},
    [MR_BFLOAT16] = {"bfloat16", 2},
    [MR_QINT16] = {"qint16", 2},
    [MR_QUINT16] = {"quint16", 2},
    [MR_UINT16] = {"uint16", 2},
    [MR_COMPLEX128] = {"complex128", 16},
    [MR_HALF] = {"half", 2},
    [MR_RESOURCE] = {"resource", 0},
    [MR_VARIANT] = {"variant", 0},
    [MR_UINT32] = {"uint32", 4},
    [MR_UINT64] = {"uint64", 8},
};

size_t mr_dtype_size(mr_dtype dtype)
{
    return (unsigned)dtype < MR_DTYPE_COUNT ? dtypes[dtype].size_bytes : 0;
}

const char *mr_dtype_name(mr_dtype dtype)
{
    return (unsigned)dtype < MR_DTYPE_COUNT ? dtypes[dtype].name : "invalid";
}

static bool equal_ignoring_case(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        char upper = *a >= 'a' && *a <= 'z' ? (char)(*a - 'a' + 'A') : *a;
        if (upper != *b) return false;
    }
    return *a == *b;
}

mr_dtype mr_dtype_parse(const char *name)
{
    if (name == nullptr) return MR_DTYPE_INVALID;
    if (strcmp(name, "float32") == 0) return MR_FLOAT;
    if (strcmp(name, "float64") == 0) return MR_DOUBLE;
    if (strcmp(name, "float16") == 0) return MR_HALF;
    bool is_constant = strncmp(name, "DT_", 3) == 0;
    for (int i = MR_DTYPE_INVALID + 1; i < MR_DTYPE_COUNT; i++)
        if (is_constant ? equal_ignoring_case(dtypes[i].name, name + 3) : strcmp(dtypes[i].name, name) == 0)
            return (mr_dtype)i;
    return MR_DTYPE_INVALID;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float mr_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ff;
    if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f;
    return float_of(sign | bits_of(magnitude));
}

uint16_t mr_float_to_half(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return sign | 0x7e00;  /* NaN, quiet */
    if (magnitude >= 0x477ff000) return sign | 0x7c00; /* 65520 and above round to infinity */
    if (magnitude < 0x38800000) {                      /* below 2^-14: a subnormal, in steps of 2^-24 */
        float steps = float_of(magnitude) + 0.5f;      /* the last bit of the sum is 2^-24, so the addition rounds to
                                                          even */
        return sign | (uint16_t)(bits_of(steps) - bits_of(0.5f));
    }
    uint32_t odd = magnitude >> 13 & 1;
    return sign | (uint16_t)((magnitude - (112u << 23) + 0xfff + odd) >> 13);
}

float mr_bfloat16_to_float(uint16_t bfloat16)
{
    return float_of((uint32_t)bfloat16 << 16);
}

uint16_t mr_float_to_bfloat16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 & 0x8000) | 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
