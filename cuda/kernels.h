/* What every family of GPU kernels includes. */
#ifndef MR_CUDA_KERNELS_H
#define MR_CUDA_KERNELS_H

#include "base/kernel.h"

/* At the end of a family's file, after `static const mr_kernel kernels[]`. */
#define MR_CUDA_FAMILY(name)                                                                                           \
    extern const mr_kernel_table mr_cuda_kernels_##name;                                                               \
    const mr_kernel_table mr_cuda_kernels_##name = {kernels, sizeof kernels / sizeof kernels[0]}

#endif
