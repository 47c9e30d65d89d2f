/* Products of row-major matrices of any number type. */
#ifndef MR_KERNELS_MATMUL_H
#define MR_KERNELS_MATMUL_H

#include "kernels/common.h"

/* c [m, n] = a [m, k] · b [k, n]. a_transposed: a is stored as [k, m]; b_transposed: b is stored as [n, k].
 * a_conjugated, b_conjugated: the conjugate of a complex operand. */
typedef struct mr_product {
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    bool a_transposed, b_transposed, a_conjugated, b_conjugated;
    bool accumulate;             /* c += a · b; floats only */
    bool pairs;                  /* as of mr_gemm; floats only */
    const float *bias;           /* null, or n numbers that are added to every row of c; floats only */
    int64_t a_row, b_row, c_row; /* elements from one stored row to the next; 0: they follow each other; floats only */
} mr_product;

/* Computes `count` products. Product i reads a + a_index(i) and b + b_index(i) matrices further, where the indices are
 * those of a broadcast of batch dimensions, and writes c + i matrices further. */
typedef struct mr_product_batch {
    mr_shape shape;                                         /* of the batch; rank 0: one product */
    int64_t a_strides[MR_RANK_MAX], b_strides[MR_RANK_MAX]; /* in matrices */
    int64_t c_strides[MR_RANK_MAX];                         /* the same, if c_matrix is not 0 */
    int64_t a_matrix, b_matrix, c_matrix; /* elements from one matrix to the next; 0: they follow each other */
} mr_product_batch;

/* dtype: float, double, complex64, complex128, any integer. The same result at any number of threads.
 * errors  MR_UNIMPLEMENTED: another dtype; MR_RESOURCE_EXHAUSTED */
mr_status mr_product_run(mr_kernel_call *call, mr_dtype dtype, const mr_product *product, const mr_product_batch *batch,
                         mr_error *error);

/* Whether mr_product_pairs_run computes a product of bfloat16 numbers: the processor has instructions for it, and it is
 * large enough to repay the conversion. */
bool mr_product_is_pairs(const mr_product *product);
/* As mr_product_run, of bfloat16 numbers. Sums are floats, c is rounded. */
mr_status mr_product_pairs_run(mr_kernel_call *call, const mr_product *product, const mr_product_batch *batch,
                               mr_error *error);

/* A matrix of bfloat16 numbers, each row of which is multiplied with a vector: sums are floats, c is rounded. */
bool mr_product_is_bfloat16_dots(const mr_product *product);
void mr_product_bfloat16_dots(const mr_product *product, mr_pool *pool);

/* Whether BLAS can compute the product: of doubles or complex numbers, and not small. Doubles of matrices that repay
 * packing go to gemm_double.h instead. */
bool mr_product_is_blas(mr_dtype dtype, const mr_product *product);
void mr_product_blas(mr_dtype dtype, const mr_product *product);

#endif
