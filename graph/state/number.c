/* Elements of any real dtype as numbers. */
#include "graph/state/number.h"

double mr_number_at(const mr_tensor *tensor, int64_t at)
{
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case MR_FLOAT:
        return (double)((const float *)data)[at];
    case MR_DOUBLE:
        return ((const double *)data)[at];
    case MR_INT8:
        return ((const int8_t *)data)[at];
    case MR_UINT8:
        return ((const uint8_t *)data)[at];
    case MR_INT16:
        return ((const int16_t *)data)[at];
    case MR_UINT16:
        return ((const uint16_t *)data)[at];
    case MR_INT32:
        return ((const int32_t *)data)[at];
    case MR_UINT32:
        return ((const uint32_t *)data)[at];
    case MR_INT64:
        return (double)((const int64_t *)data)[at];
    case MR_UINT64:
        return (double)((const uint64_t *)data)[at];
    case MR_HALF:
        return (double)mr_half_to_float(((const uint16_t *)data)[at]);
    case MR_BFLOAT16:
        return (double)mr_bfloat16_to_float(((const uint16_t *)data)[at]);
    default:
        return 0;
    }
}
