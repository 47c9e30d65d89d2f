/* What the kernels are written with. A .cu file is the common part of C and CUDA: plain functions and macros, no
 * templates; so the tests compile it as C, with their own meaning of MR_GPU_KERNEL, and run every thread on the processor.
 *
 * Each kernel takes one struct by value, which the host fills: arguments.h. Threads of a block speak through __shared__
 * arrays and __syncthreads alone. */
#ifndef MR_CUDA_GPU_H
#define MR_CUDA_GPU_H

#include "cuda/arguments.h"

#ifdef __CUDACC__
#define MR_GPU_KERNEL(name, arguments) extern "C" __global__ void name(const arguments a)
#define MR_GPU_FUNCTION static __device__ __forceinline__
#endif

/* Every index of [0, count), over all threads of the grid. */
#define MR_GPU_EACH(i, count)                                                                                          \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += (int64_t)gridDim.x * blockDim.x)

#endif
