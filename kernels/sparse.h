/* Sparse tensors as inputs of kernels: checks, order, and moving their elements. */
#ifndef MR_KERNELS_SPARSE_H
#define MR_KERNELS_SPARSE_H

#include "kernels/change.h"

/* Everything is borrowed from the inputs. Indices are not checked: see mr_sparse_check_indices. */
typedef struct mr_sparse {
    const int64_t *indices; /* [count, rank] */
    const mr_tensor *values;
    const int64_t *shape;
    int64_t count, rank;
} mr_sparse;

/* Reads the sparse tensor in inputs `indices`, `values` and `shape`, whose ranks and sizes must match.
 * values  -1: there are none
 *
 * mr_sparse_read_parts accepts any dense shape, mr_sparse_read only one that mr_sparse_check_shape accepts: without
 * negative sizes, with at most 2⁶³ - 1 elements. */
mr_status mr_sparse_read_parts(const mr_kernel_call *call, int indices, int values, int shape, mr_sparse *sparse,
                               mr_error *error);
mr_status mr_sparse_check_shape(const mr_kernel_call *call, const mr_sparse *sparse, mr_error *error);
mr_status mr_sparse_read(const mr_kernel_call *call, int indices, int values, int shape, mr_sparse *sparse,
                         mr_error *error);
/* Every index must be in its dimension; the rows may have any order. */
mr_status mr_sparse_check_inside(const mr_kernel_call *call, const mr_sparse *sparse, mr_error *error);
/* Every index must be in its dimension, and the rows sorted without repeats, with TensorFlow's messages. */
mr_status mr_sparse_check_indices(const mr_kernel_call *call, const mr_sparse *sparse, mr_error *error);

/* Compares two rows by the given columns, or by all in their order if `columns` is null. */
int mr_sparse_compare(const int64_t *a, const int64_t *b, const int32_t *columns, int64_t count);
/* Returns the positions of the rows in sorted order; equal rows keep their order. The caller frees the array. */
mr_status mr_sparse_order(const mr_kernel_call *call, const mr_sparse *sparse, const int32_t *columns, int64_t count,
                          int64_t **order, mr_error *error);

/* Allocates an array of `count` elements of that size, at least one. The caller frees it. */
mr_status mr_sparse_memory(const mr_kernel_call *call, int64_t count, size_t size, void *memory, mr_error *error);

/* The sum of `count` numbers, at least one, of dtype half or bfloat16, rounded as TensorFlow's SparseReduceSum. */
uint16_t mr_sparse_half_sum(const uint16_t *values, int64_t count, mr_dtype dtype);

/* Creates output `index`, a vector with the elements of `values` at the positions; -1 stands for *fill. */
mr_status mr_sparse_take(mr_kernel_call *call, int index, const mr_tensor *values, const int64_t *positions,
                         int64_t count, const void *fill, mr_error *error);
/* Creates output `index`, a vector of int64. */
mr_status mr_sparse_put(mr_kernel_call *call, int index, const int64_t *values, int64_t count, mr_error *error);

/* "2,3" */
constexpr size_t MR_SPARSE_TEXT_SIZE = 200;
char *mr_sparse_text(const int64_t *values, int64_t count, const char *separator, char *text, size_t size);

#endif
