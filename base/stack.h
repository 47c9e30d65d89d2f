/* Stack: tensors of one dtype as the rows of one, padded where they are smaller. */
#ifndef MR_BASE_STACK_H
#define MR_BASE_STACK_H

#include <millrace/tensor.h>

/* The largest size of the rows in each dimension, at least those of shape; what is −1 there counts as 0. Rows must have
 * its rank. */
mr_shape mr_stack_shape(const mr_tensor *rows, int64_t count, mr_shape shape);
/* [count] + shape, filled with the rows and, around them, with the one element at fill (null: 0 and "").
 * rows    of dtype, none larger than shape
 * errors  memory; MR_INVALID_ARGUMENT: a dimension too many */
mr_status mr_stack(const mr_tensor *rows, int64_t count, mr_dtype dtype, mr_shape shape, const void *fill,
                   mr_tensor *result, mr_error *error);

#endif
