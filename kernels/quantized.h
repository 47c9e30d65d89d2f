/* Conversions between floats and quantized numbers, with TensorFlow's arithmetic: which of them are in float and which
 * in double decides about the last bit of the results. A range is the floats that the lowest and the highest number
 * stand for. */
#ifndef MR_KERNELS_QUANTIZED_H
#define MR_KERNELS_QUANTIZED_H

#include "kernels/common.h"

#include <math.h>

typedef struct mr_quantized {
    int bits;
    int64_t lowest, highest;
} mr_quantized;

static inline mr_quantized mr_quantized_of(mr_dtype dtype)
{
    return dtype == MR_QINT8    ? (mr_quantized){8, INT8_MIN, INT8_MAX}
           : dtype == MR_QUINT8 ? (mr_quantized){8, 0, UINT8_MAX}
                                : (mr_quantized){32, INT32_MIN, INT32_MAX};
}

typedef struct mr_quantized_range {
    float low, high;
} mr_quantized_range;

/* As the processor converts: what does not fit becomes the smallest number. */
static inline int64_t mr_double_to_int64(double value)
{
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}
static inline int32_t mr_float_to_int32(float value)
{
    return value >= -0x1p31f && value < 0x1p31f ? (int32_t)value : INT32_MIN;
}

/* ---- One number at a time ---- */

/* The double that a step of the type stands for is range / 2^bits, with the range widened by a step. */
static inline double mr_quantized_width(mr_quantized type, mr_quantized_range range)
{
    double steps = ldexp(1, type.bits);
    return (double)(range.high - range.low) * (steps / (steps - 1.0));
}

/* The number for a float, which may lie outside of the type. */
static inline int64_t mr_quantize_unclamped(mr_quantized type, float value, mr_quantized_range range)
{
    if (range.low == range.high) return type.lowest;
    double scale = ldexp(1, type.bits) / mr_quantized_width(type, range);
    int64_t number = mr_double_to_int64(round((double)value * scale) - round((double)range.low * scale));
    return (int64_t)((uint64_t)number + (uint64_t)type.lowest);
}

static inline int32_t mr_quantize(mr_quantized type, float value, mr_quantized_range range)
{
    int64_t number = mr_quantize_unclamped(type, value, range);
    return (int32_t)MR_MIN(MR_MAX(number, type.lowest), type.highest);
}

static inline float mr_dequantize(mr_quantized type, int32_t number, mr_quantized_range range)
{
    if (range.low == range.high) return range.low;
    double scale = mr_quantized_width(type, range) / ldexp(1, type.bits);
    double low = (double)(roundf(range.low / (float)scale) * (float)scale);
    return (float)(low +
                   ((double)(float)number - (double)type.lowest) * scale); /* TensorFlow's qint32 becomes a float */
}

/* ---- Tensors, in float ---- */

typedef struct mr_dequantizer {
    float scale, low;
} mr_dequantizer;

static inline mr_dequantizer mr_dequantizer_of(mr_quantized type, mr_quantized_range range)
{
    float scale = (float)((double)(range.high - range.low) / (ldexp(1, type.bits) - 1.0));
    float low = range.high == range.low ? range.low : roundf(range.low / scale) * scale;
    return (mr_dequantizer){scale, low - (float)type.lowest * scale};
}

static inline float mr_dequantizer_apply(mr_dequantizer d, int32_t number)
{
    float product = (float)number * d.scale;
    return d.low + product;
}

typedef struct mr_quantizer {
    float scale, shift, lowest, highest;
} mr_quantizer;

static inline mr_quantizer mr_quantizer_of(mr_quantized type, mr_quantized_range range)
{
    float scale = range.high == range.low ? 0 : (float)((ldexp(1, type.bits) - 1.0) / (double)(range.high - range.low));
    return (mr_quantizer){.scale = scale,
                          .shift = roundf(range.low * scale) - (float)type.lowest,
                          .lowest = (float)type.lowest,
                          .highest = type.bits == 32 ? 2147483520.0f : (float)type.highest};
}

static inline int32_t mr_quantizer_apply(mr_quantizer q, float value)
{
    float number = roundf(value * q.scale) - q.shift;
    number = number < q.lowest ? q.lowest : number;
    return mr_float_to_int32(number > q.highest ? q.highest : number);
}

/* ---- Kernels ---- */

/* The range in inputs `low` and `low` + 1, which have one element each. */
static inline mr_status mr_quantized_read_range(const mr_kernel_call *call, int low, mr_quantized_range *range,
                                                mr_error *error)
{
    for (int i = low; i < low + 2; i++)
        if (mr_tensor_count(&call->inputs[i]) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "input %d, a limit of a range, must be a scalar", i);
    *range = (mr_quantized_range){mr_tensor_floats(&call->inputs[low])[0], mr_tensor_floats(&call->inputs[low + 1])[0]};
    return MR_OK;
}

/* Makes outputs `low` and `low` + 1. */
static inline mr_status mr_quantized_put_range(mr_kernel_call *call, int low, mr_quantized_range range, mr_error *error)
{
    MR_TRY(mr_kernel_output(call, low, MR_SCALAR, error));
    MR_TRY(mr_kernel_output(call, low + 1, MR_SCALAR, error));
    mr_tensor_floats(&call->outputs[low])[0] = range.low;
    mr_tensor_floats(&call->outputs[low + 1])[0] = range.high;
    return MR_OK;
}

#endif
