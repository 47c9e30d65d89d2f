/* exp, log and related functions for floats, without branches, so that compilers vectorize loops over them. Errors of
 * exp, log and tanh are at most two units in the last place over the complete range, of those that are computed from
 * them at most eight. Infinities, NaN and subnormal results are those of the C library. They use the processor's
 * fused multiply-add, so the last bit depends on the CPU level. */
#ifndef MR_KERNELS_VECTOR_MATH_H
#define MR_KERNELS_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define MR_MATH static inline __attribute__((always_inline))

MR_MATH float mr_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

MR_MATH uint32_t mr_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* (e^r - 1) for |r| <= ln 2 / 2: r + r²·(1/2 + r/6 + …), a minimax polynomial. */
MR_MATH float mr_expm1_reduced(float r)
{
#pragma clang fp contract(fast)
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return (p * r) * r + r;
}

/* e^x = 2^n · e^r. The scale is applied in two steps so that subnormal results and overflow are correct. */
MR_MATH float mr_expf(float x)
{
#pragma clang fp contract(fast)
    const float round = 12582912.0f; /* 1.5 · 2^23: adding it rounds to an integer */
    float bounded = x > 89.0f ? 89.0f : x;
    bounded = bounded < -104.0f ? -104.0f : bounded;
    float shifted = bounded * 1.44269504f + round, n = shifted - round;
    float r = bounded - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    int32_t whole = (int32_t)(mr_bits_of_float(shifted) - mr_bits_of_float(round));
    int32_t half = whole >> 1;
    float first = mr_float_of_bits((uint32_t)(half + 127) << 23);
    float second = mr_float_of_bits((uint32_t)(whole - half + 127) << 23);
    float result = (1.0f + mr_expm1_reduced(r)) * first * second;
    return x != x ? x : result;
}

MR_MATH float mr_expm1f(float x)
{
    float small = mr_expm1_reduced(x), large = mr_expf(x) - 1.0f;
    small = fabsf(x) < 5.9e-8f ? x : small; /* also the sign of zero */
    return fabsf(x) < 0.34f ? small : large;
}

/* x = 2^e · m with m in [√½, √2); log x = e·ln 2 + log m. */
MR_MATH float mr_logf(float x)
{
#pragma clang fp contract(fast)
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x; /* subnormal: times 2^23 */
    float bias = x < 1.17549435e-38f ? 150.0f : 127.0f;
    uint32_t bits = mr_bits_of_float(scaled);
    uint32_t shifted = bits + (0x3f800000u - 0x3f3504f3u);
    float e = (float)(int32_t)(shifted >> 23) - bias;
    float m = mr_float_of_bits((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * z + e * -2.12194440e-4f;
    y = y - 0.5f * z;
    float result = m + y + e * 0.693359375f;
    result = x == INFINITY ? x : result;
    result = x == 0.0f ? -INFINITY : result;
    return x < 0.0f || x != x ? NAN : result;
}

MR_MATH float mr_log1pf(float x)
{
    float u = 1.0f + x, away = u - 1.0f;
    float result = mr_logf(u) * (x / (away == 0.0f ? 1.0f : away)); /* corrects the rounding error of 1 + x */
    result = away == 0.0f ? x : result;
    return u == INFINITY ? u : result;
}

MR_MATH float mr_tanhf(float x)
{
#pragma clang fp contract(fast)
    float size = fabsf(x), z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float small = z < 5e-8f ? x : p * z * x + x; /* also the sign of zero */
    float large = 1.0f - 2.0f / (mr_expf(2.0f * size) + 1.0f);
    large = x < 0.0f ? -large : large;
    return size < 0.625f ? small : large;
}

MR_MATH float mr_sigmoidf(float x)
{
    return 1.0f / (1.0f + mr_expf(-x));
}

/* TensorFlow's Softplus: beyond the two thresholds log1p(exp(x)) equals exp(x) or x to the last bit. */
MR_MATH float mr_softplusf(float x)
{
    float e = mr_expf(x), result = mr_log1pf(e);
    result = x < -13.9423847f ? e : result;
    return x > 13.9423847f ? x : result;
}

#endif
