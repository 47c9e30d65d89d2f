/* Indices and strings of the operators that update a variable. */
#ifndef MR_GRAPH_STATE_CHANGE_H
#define MR_GRAPH_STATE_CHANGE_H

#include "graph/state/state.h"
#include "kernels/change.h"
#include "kernels/common.h"

/* Element `at` of int32 or int64 indices. */
static inline int64_t mr_change_index(const mr_tensor *indices, int64_t at)
{
    return indices->dtype == MR_INT64 ? ((const int64_t *)indices->data)[at] : ((const int32_t *)indices->data)[at];
}

/* Checks the shapes of a Scatter operator's indices and updates, and each index, against the variable's value. */
mr_status mr_scatter_check(const mr_kernel_node *node, const mr_tensor *target, const mr_tensor *indices,
                           const mr_tensor *updates, mr_error *error);

/* Copies `count` slices of `width` strings from updates to the variable's value, at offsets[i] * width. Strings are
 * never changed in place: the variable gets a new value.
 * step  0: updates is one string for all elements */
mr_status mr_change_strings(mr_kernel_call *call, mr_variable_state *variable, const mr_tensor *updates,
                            const int64_t *offsets, int64_t count, int64_t width, int64_t step, mr_error *error);

#endif
