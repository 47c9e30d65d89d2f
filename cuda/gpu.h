/* Definitions for the kernels. A .cu file uses the common subset of C and CUDA, plain functions and macros without
 * templates, so that the tests can compile it as C, with their own definition of MR_GPU_KERNEL, and run every thread on
 * the processor.
 *
 * Each kernel takes one struct by value, which the host fills: arguments.h. Threads of a block communicate only through
 * __shared__ arrays and __syncthreads. */
#ifndef MR_CUDA_GPU_H
#define MR_CUDA_GPU_H

#include "cuda/arguments.h"

#ifdef __CUDACC__
#define MR_GPU_KERNEL(name, arguments) extern "C" __global__ void name(const arguments a)
#define MR_GPU_FUNCTION static __device__ __forceinline__
#endif

/* Every index of [0, count), distributed over all threads of the grid. */
#define MR_GPU_EACH(i, count)                                                                                          \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += (int64_t)gridDim.x * blockDim.x)

#endif
