/* Accumulators: sums of gradients, which one step adds and another takes once there are enough.
 *
 * Locks: the condition's mutex guards the state. Calls that take a sum wait in the order of their arrival. */
#ifndef MR_GRAPH_STATE_ACCUMULATOR_H
#define MR_GRAPH_STATE_ACCUMULATOR_H

#include "graph/state/condition.h"
#include "graph/state/members.h"

typedef struct mr_accumulator {
    mr_resource resource;
    mr_condition condition;
    mr_dtype dtype;
    mr_shape shape; /* as declared; an unknown size allows any */
    bool takes_mean, is_sparse;
    int64_t step;  /* gradients of older steps are ignored */
    int64_t count; /* gradients in the sum */
    mr_tensor sum; /* without elements if count is 0 */
    /* Of a sparse one: the sum has a row for each index, in increasing order if those of each gradient are. */
    int64_t *indices;
    int32_t *counts; /* gradients in each row */
    int64_t row_count;
} mr_accumulator;

/* The accumulator of input 0, which must be sparse or not, and of this dtype. */
mr_status mr_accumulator_at(const mr_kernel_call *call, bool is_sparse, mr_dtype dtype, mr_accumulator **accumulator,
                            mr_error *error);
/* The operators that add: calls add with the mutex held unless the step of input 1 is too old. */
mr_status mr_accumulator_apply(mr_kernel_call *call, mr_accumulator *accumulator,
                               mr_status (*add)(const mr_kernel_call *call, mr_accumulator *accumulator,
                                                mr_error *error),
                               mr_error *error);
/* The operators that take: calls take, with the mutex held, when there are as many gradients as input 1 requires. It
 * makes the outputs. The sum is removed afterwards. */
mr_status mr_accumulator_take(mr_kernel_call *call, mr_accumulator *accumulator,
                              mr_status (*take)(mr_kernel_call *call, mr_accumulator *accumulator, mr_error *error),
                              mr_error *error);
/* elements /= divisor, in the arithmetic of the dtype: half, float or double. */
void mr_accumulator_divide(mr_dtype dtype, void *elements, int64_t count, int64_t divisor);

#endif
