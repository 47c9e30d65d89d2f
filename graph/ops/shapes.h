/* Static shapes that operators of several files have. */
#ifndef MR_GRAPH_OPS_SHAPES_H
#define MR_GRAPH_OPS_SHAPES_H

#include "graph/ir/op.h"

/* Output 0 is input 0 without the dims that are listed in input 1, or with size 1 there if attr keep_dims is true. */
mr_status mr_reduction_shape(mr_shape_call *call, mr_error *error);
/* Output 0 is input 0 (data), whose first dims, those of input 1 (ids), are replaced by input 2 (the count). */
mr_status mr_unsorted_segment_shape(mr_shape_call *call, mr_error *error);
/* The handle of a resource of TensorFlow's first generation: a reference to two strings. */
mr_status mr_string_handle_shape(mr_shape_call *call, mr_error *error);

#endif
