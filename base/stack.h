/* Stacking: tensors of one dtype become the rows of one tensor, padded where they are smaller. */
#ifndef MR_BASE_STACK_H
#define MR_BASE_STACK_H

#include <millrace/tensor.h>

/* The maximum size of the rows in each dimension, at least that of shape, where −1 counts as 0. The rows must have the
 * rank of shape. */
mr_shape mr_stack_shape(const mr_tensor *rows, int64_t count, mr_shape shape);
/* Creates a tensor of shape [count] + shape from the rows. Padding is the element at fill; null: 0 or "".
 * rows    of dtype; no row is larger than shape
 * errors  out of memory; MR_INVALID_ARGUMENT if the result has too many dimensions */
mr_status mr_stack(const mr_tensor *rows, int64_t count, mr_dtype dtype, mr_shape shape, const void *fill,
                   mr_tensor *result, mr_error *error);

#endif
