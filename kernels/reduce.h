/* Sums over dimensions, for reductions that compute something before or after. */
#ifndef MR_KERNELS_REDUCE_H
#define MR_KERNELS_REDUCE_H

#include "kernels/common.h"

/* Reads the axes of a reduction, input 1: the output's shape, which dimensions are reduced, and the number of elements
 * that are reduced into each output. */
mr_status mr_reduce_shape(mr_kernel_call *call, mr_shape *shape, bool reduced[MR_RANK_MAX], int64_t *divisor,
                          mr_error *error);
/* Sums `source`, which has the shape of input 0, into `target`, which has that of output 0. dtype is that of both, a
 * number that is not a half type; it may differ from the dtypes of the call. Output 0 exists. */
mr_status mr_reduce_sum(mr_kernel_call *call, mr_dtype dtype, const void *source, void *target,
                        const bool reduced[MR_RANK_MAX], mr_error *error);

#endif
