/* Reductions over any dimensions, which the host has merged into runs. Row kernels use a block for each output, whose
 * threads iterate over the reduced elements. Column kernels use one of 32 threads for each output, with eight rows of
 * threads that iterate. Both divide the reduced elements into chunks (blockIdx.y), whose results a second launch
 * combines in order. */
#include "cuda/gpu.h"

MR_GPU_FUNCTION int64_t offset_of(int64_t i, int rank, const int64_t *dims, const int64_t *strides)
{
    int64_t at = 0;
    for (int d = rank - 1; d > 0; d--) {
        at += i % dims[d] * strides[d];
        i /= dims[d];
    }
    return rank > 0 ? at + i * strides[0] : at;
}

#define REDUCE(name, neutral, element, join)                                                                           \
    MR_GPU_KERNEL(row_##name, mr_gpu_reduce)                                                                           \
    {                                                                                                                  \
        __shared__ float shared[MR_GPU_BLOCK];                                                                         \
        int64_t begin = blockIdx.y * a.chunk, end = begin + a.chunk < a.reduced ? begin + a.chunk : a.reduced;         \
        const float *in = a.in + offset_of(blockIdx.x, a.kept_rank, a.kept_dims, a.kept_strides);                      \
        float x = neutral;                                                                                             \
        for (int64_t r = begin + threadIdx.x; r < end; r += MR_GPU_BLOCK) {                                            \
            float y = in[offset_of(r, a.reduced_rank, a.reduced_dims, a.reduced_strides)];                             \
            y = (element);                                                                                             \
            x = (join);                                                                                                \
        }                                                                                                              \
        shared[threadIdx.x] = x;                                                                                       \
        for (unsigned half = MR_GPU_BLOCK / 2; half > 0; half /= 2) {                                                  \
            __syncthreads();                                                                                           \
            if (threadIdx.x < half) {                                                                                  \
                float y = shared[threadIdx.x + half];                                                                  \
                x = shared[threadIdx.x];                                                                               \
                shared[threadIdx.x] = (join);                                                                          \
            }                                                                                                          \
        }                                                                                                              \
        if (threadIdx.x == 0) a.out[(int64_t)blockIdx.y * a.outputs + blockIdx.x] = a.scale * shared[0];               \
    }                                                                                                                  \
    MR_GPU_KERNEL(column_##name, mr_gpu_reduce)                                                                        \
    {                                                                                                                  \
        __shared__ float shared[8][32];                                                                                \
        int64_t begin = blockIdx.y * a.chunk, end = begin + a.chunk < a.reduced ? begin + a.chunk : a.reduced;         \
        int64_t o = (int64_t)blockIdx.x * 32 + threadIdx.x;                                                            \
        float x = neutral;                                                                                             \
        if (o < a.outputs) {                                                                                           \
            const float *in = a.in + offset_of(o, a.kept_rank, a.kept_dims, a.kept_strides);                           \
            for (int64_t r = begin + threadIdx.y; r < end; r += 8) {                                                   \
                float y = in[offset_of(r, a.reduced_rank, a.reduced_dims, a.reduced_strides)];                         \
                y = (element);                                                                                         \
                x = (join);                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        shared[threadIdx.y][threadIdx.x] = x;                                                                          \
        __syncthreads();                                                                                               \
        if (threadIdx.y == 0 && o < a.outputs) {                                                                       \
            for (int i = 1; i < 8; i++) {                                                                              \
                float y = shared[i][threadIdx.x];                                                                      \
                x = (join);                                                                                            \
            }                                                                                                          \
            a.out[(int64_t)blockIdx.y * a.outputs + o] = a.scale * x;                                                  \
        }                                                                                                              \
    }

REDUCE(sum, 0.0f, y, x + y)
REDUCE(squares, 0.0f, y *y, x + y)
REDUCE(largest, -INFINITY, y, y > x || y != y ? y : x)
REDUCE(smallest, INFINITY, y, y < x || y != y ? y : x)
