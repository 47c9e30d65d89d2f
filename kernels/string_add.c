/* Element-wise concatenation of strings with broadcasting: Add. */
#include "kernels/elementwise.h"
#include <stdlib.h>
#include <string.h>

/* The offset of element `index` of shape `wide` in an operand with these strides. */
static int64_t offset_of(mr_shape wide, const int64_t *strides, int64_t index)
{
    int64_t offset = 0;
    for (int i = wide.rank - 1; i >= 0; i--) {
        offset += index % wide.dims[i] * strides[i];
        index /= wide.dims[i];
    }
    return offset;
}

mr_status mr_string_add(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *a = &call->inputs[0], *b = &call->inputs[1];
    const mr_string *as = mr_tensor_strings(a), *bs = mr_tensor_strings(b);
    mr_shape wide;
    int64_t a_strides[MR_RANK_MAX], b_strides[MR_RANK_MAX];
    mr_sink sink;
    MR_TRY(mr_kernel_broadcast(call, a->shape, b->shape, &wide, error));
    MR_TRY(mr_sink_init(call, 0, wide, &sink, error));
    mr_broadcast_strides(a->shape, wide, a_strides);
    mr_broadcast_strides(b->shape, wide, b_strides);
    mr_string *strings = sink.data;
    size_t total = 0;
    bool fits = true;
    for (int64_t i = 0; i < sink.count && fits; i++) {
        size_t first = as[offset_of(wide, a_strides, i)].size_bytes,
               second = bs[offset_of(wide, b_strides, i)].size_bytes;
        fits = !__builtin_add_overflow(first, second, &strings[i].size_bytes) &&
               !__builtin_add_overflow(total, strings[i].size_bytes, &total);
    }
    char *bytes = fits ? malloc(total > 0 ? total : 1) : nullptr, *at = bytes;
    mr_status status = MR_OK;
    if (bytes == nullptr) status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int64_t i = 0; i < sink.count && status == MR_OK; i++) {
        mr_string first = as[offset_of(wide, a_strides, i)], second = bs[offset_of(wide, b_strides, i)];
        if (first.size_bytes > 0) memcpy(at, first.data, first.size_bytes);
        if (second.size_bytes > 0) memcpy(at + first.size_bytes, second.data, second.size_bytes);
        strings[i].data = at;
        at += strings[i].size_bytes;
    }
    status = mr_sink_finish(call, &sink, status, error);
    free(bytes);
    return status;
}
