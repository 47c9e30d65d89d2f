/* Indices in tensors of any integer type, and the index vectors of GatherNd and ScatterNd. */
#ifndef MR_KERNELS_INDICES_H
#define MR_KERNELS_INDICES_H

#include "kernels/common.h"

/* Element i of an integer tensor; -1, which no operator accepts as an index, for other types. */
MR_INLINE int64_t mr_index_at(const mr_tensor *indices, int64_t i)
{
    switch (indices->dtype) {
    case MR_INT64:
        return ((const int64_t *)indices->data)[i];
    case MR_INT32:
        return ((const int32_t *)indices->data)[i];
    case MR_UINT8:
        return ((const uint8_t *)indices->data)[i];
    case MR_INT8:
        return ((const int8_t *)indices->data)[i];
    case MR_INT16:
        return ((const int16_t *)indices->data)[i];
    case MR_UINT16:
        return ((const uint16_t *)indices->data)[i];
    default:
        return -1;
    }
}

/* The length and number of index vectors of [..., depth] into a tensor of the given rank, which errors call `name`. */
mr_status mr_nd_depth(mr_kernel_call *call, const mr_tensor *indices, int rank, const char *name, int64_t *depth,
                      int64_t *rows, mr_error *error);
/* The offset, in slices, of index vector `row` over the first depth dimensions of a shape. An index outside of it is an
 * error that calls the shape `name`. */
mr_status mr_nd_offset(mr_kernel_call *call, const mr_tensor *indices, int64_t row, int64_t depth, mr_shape shape,
                       const char *name, int64_t *offset, mr_error *error);

#endif
