/* Sparse tensors as values: what serialized and stored sparse tensors are made from. */
#ifndef MR_GRAPH_STATE_SPARSE_PARTS_H
#define MR_GRAPH_STATE_SPARSE_PARTS_H

#include "kernels/sparse.h"

/* Owns its tensors. */
typedef struct mr_sparse_part {
    mr_tensor indices, values, shape;
} mr_sparse_part;

void mr_sparse_part_deinit(mr_sparse_part *part);
/* References to inputs 0, 1 and 2. */
mr_status mr_sparse_part_of(const mr_kernel_call *call, mr_sparse_part *part, mr_error *error);

/* Called for each index of the first dimension, with what it contains. It may take the part's tensors. */
typedef mr_status (*mr_sparse_row)(void *context, int64_t row, mr_sparse_part *part, mr_error *error);
/* Splits a sparse tensor with more than one dimension along the first. */
mr_status mr_sparse_rows(const mr_kernel_call *call, const mr_sparse *s, mr_sparse_row each, void *context,
                         mr_error *error);

/* Joins one part or more in outputs 0, 1 and 2: the dimensions of `lead` come before theirs. */
mr_status mr_sparse_join(mr_kernel_call *call, mr_shape lead, const mr_sparse_part *parts, int64_t count,
                         mr_error *error);

#endif
