/* Between mr_array and tensors. */
#ifndef MR_GRAPH_ABI_ARRAY_H
#define MR_GRAPH_ABI_ARRAY_H

#include <millrace/run.h>

/* An array with this dtype and shape; the other fields are zero. */
mr_array mr_array_of(mr_dtype dtype, mr_shape shape);
/* A string scalar in the form of a fetched one. */
mr_array mr_array_of_bytes(mr_tensor *owner);
/* Checks an array without an owner that a caller filled, and returns its shape. */
mr_status mr_array_check(const mr_array *array, mr_shape *shape, mr_error *error);
/* Copies the elements of an array that has been checked. */
mr_status mr_array_copy(const mr_array *array, mr_shape shape, mr_tensor *tensor, mr_error *error);

#endif
