/* Products of matrices of doubles, for those that are too large for plain loops. The micro-kernel and the loops are
 * those of gemm.h's packed form: a tile of the result stays in registers while packed rows of A and packed columns of B
 * are traversed. */
#ifndef MR_KERNELS_GEMM_DOUBLE_H
#define MR_KERNELS_GEMM_DOUBLE_H

#include "kernels/matmul.h"
#include "kernels/slots.h"

/* Whether the product is large enough in each direction to repay the packing. */
bool mr_gemm_double_repays(const mr_product *product);

/* Floats of scratch memory for each thread. */
int64_t mr_gemm_double_scratch(const mr_product *product);

/* slots  each of at least mr_gemm_double_scratch floats, on 64 bytes
 * pool   null: in this thread; the result has the same bits at any number of threads */
void mr_gemm_double_run(const mr_product *product, mr_slots *slots, mr_pool *pool);

/* A matrix and a vector: m or n of 1, k of more. */
bool mr_gemv_double_fits(const mr_product *product);
void mr_gemv_double_run(const mr_product *product, mr_pool *pool);

#endif
