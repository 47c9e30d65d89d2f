/* Row-major matrix products with cuBLAS, for the families that need them. */
#ifndef MR_CUDA_MATMUL_H
#define MR_CUDA_MATMUL_H

#include "cuda/device.h"

/* c [rows, columns] = op(a) op(b) + beta * c, row-major and dense. op(a) is [rows, inner], op(b) [inner, columns]; a
 * transposed operand is stored as the transpose. */
typedef struct mr_cuda_product {
    const float *a, *b;
    float *c;
    int64_t rows, columns, inner;
    bool transpose_a, transpose_b;
    float beta;
} mr_cuda_product;
mr_status mr_cuda_multiply(mr_kernel_call *call, const mr_cuda_product *product, mr_error *error);

#endif
