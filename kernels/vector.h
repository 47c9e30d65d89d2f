/* Vectors of 16 floats in the compiler's vector extension: one AVX-512 register, two of AVX2, four of SSE. Code that
 * uses them has the same results at every CPU level, unless it requests fused multiply-add. */
#ifndef MR_KERNELS_VECTOR_H
#define MR_KERNELS_VECTOR_H

#include "kernels/common.h"
#include <string.h>

#pragma clang diagnostic ignored "-Wpsabi"

typedef float mr_vector __attribute__((vector_size(64)));
typedef float mr_vector_at __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t mr_vector_mask __attribute__((vector_size(64)));
typedef uint32_t mr_vector_bits __attribute__((vector_size(64)));
constexpr int MR_LANES = 16;

MR_INLINE mr_vector mr_vector_load(const float *from)
{
    return *(const mr_vector_at *)from;
}

MR_INLINE void mr_vector_store(float *to, mr_vector value)
{
    *(mr_vector_at *)to = value;
}

MR_INLINE mr_vector mr_vector_of(float value)
{
    return value - (mr_vector){};
}

/* a * b + c, rounded once if fused, which the CPU level must support. */
MR_INLINE mr_vector mr_vector_multiply_add(mr_vector a, mr_vector b, mr_vector c, bool fused)
{
    return fused ? __builtin_elementwise_fma(a, b, c) : a * b + c;
}

/* Loads the first count lanes; the other lanes are `rest`. */
MR_INLINE mr_vector mr_vector_load_some(const float *from, int64_t count, float rest)
{
    mr_vector value = mr_vector_of(rest);
    memcpy(&value, from, (size_t)count * sizeof *from);
    return value;
}

/* a in the lanes where the mask is set, otherwise b. */
MR_INLINE mr_vector mr_vector_choose(mr_vector_mask mask, mr_vector a, mr_vector b)
{
    return (mr_vector)((mask & (mr_vector_mask)a) | (~mask & (mr_vector_mask)b));
}

MR_INLINE float mr_vector_sum(mr_vector v)
{
    float lanes[16];
    memcpy(lanes, &v, sizeof lanes);
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
    return lanes[0];
}

#endif
