/* Kernels that create and move elements: fill, repeat, cast, index of the largest. */
#include "cuda/gpu.h"

#define FILL(name, type)                                                                                               \
    MR_GPU_KERNEL(name, mr_gpu_fill)                                                                                   \
    {                                                                                                                  \
        type value = a.value ? *(const type *)a.value : (type)a.bits;                                                  \
        MR_GPU_EACH(i, a.count)((type *)a.out)[i] = value;                                                             \
    }
FILL(fill_1, uint8_t)
FILL(fill_2, uint16_t)
FILL(fill_4, uint32_t)
FILL(fill_8, uint64_t)

#define REPEAT(name, type)                                                                                             \
    MR_GPU_KERNEL(name, mr_gpu_repeat)                                                                                 \
    {                                                                                                                  \
        MR_GPU_EACH(i, a.count)                                                                                        \
        {                                                                                                              \
            int64_t rest = i, at = 0;                                                                                  \
            for (int d = a.rank - 1; d >= 0; d--) {                                                                    \
                at += rest % a.dims[d] % a.in_dims[d] * a.in_strides[d];                                               \
                rest /= a.dims[d];                                                                                     \
            }                                                                                                          \
            ((type *)a.out)[i] = ((const type *)a.in)[at];                                                             \
        }                                                                                                              \
    }
REPEAT(repeat_1, uint8_t)
REPEAT(repeat_4, uint32_t)
REPEAT(repeat_8, uint64_t)

#define CAST(from, from_type, to, to_type)                                                                             \
    MR_GPU_KERNEL(cast_##from##_##to, mr_gpu_unary)                                                                    \
    {                                                                                                                  \
        MR_GPU_EACH(i, a.count)((to_type *)a.out)[i] = (to_type)((const from_type *)a.in)[i];                          \
    }
#define CAST_FROM(from, from_type)                                                                                     \
    CAST(from, from_type, float, float)                                                                                \
    CAST(from, from_type, double, double)                                                                              \
    CAST(from, from_type, int32, int32_t)                                                                              \
    CAST(from, from_type, int64, int64_t)                                                                              \
    CAST(from, from_type, bool, bool)
CAST_FROM(float, float)
CAST_FROM(double, double)
CAST_FROM(int32, int32_t)
CAST_FROM(int64, int64_t)
CAST_FROM(uint8, uint8_t)
CAST_FROM(bool, bool)

/* Returns the first of equal elements. x is better than y if the comparison is true. */
#define EXTREME(name, type, better)                                                                                    \
    MR_GPU_KERNEL(name, mr_gpu_extreme)                                                                                \
    {                                                                                                                  \
        MR_GPU_EACH(i, a.outer *a.inner)                                                                               \
        {                                                                                                              \
            const float *in = a.in + i / a.inner * a.length * a.inner + i % a.inner;                                   \
            int64_t best = 0;                                                                                          \
            for (int64_t n = 1; n < a.length; n++)                                                                     \
                if (in[n * a.inner] better in[best * a.inner]) best = n;                                               \
            ((type *)a.out)[i] = (type)best;                                                                           \
        }                                                                                                              \
    }
EXTREME(largest_int32, int32_t, >)
EXTREME(largest_int64, int64_t, >)
EXTREME(smallest_int32, int32_t, <)
EXTREME(smallest_int64, int64_t, <)
