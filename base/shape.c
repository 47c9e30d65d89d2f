/* Shapes: overflow-checked counts, comparison of partially known shapes, and text. */
#include <millrace/tensor.h>

#include <inttypes.h>
#include <stdio.h>

int64_t mr_shape_count(mr_shape shape)
{
    if (shape.rank < 0 || shape.rank > MR_RANK_MAX) return -1;
    int64_t count = 1;
    bool empty = false;
    for (int32_t i = 0; i < shape.rank; i++) {
        if (shape.dims[i] < 0) return -1;
        empty |= shape.dims[i] == 0;
    }
    if (empty) return 0;
    for (int32_t i = 0; i < shape.rank; i++)
        if (__builtin_mul_overflow(count, shape.dims[i], &count)) return -1;
    return count;
}

bool mr_shape_equal(mr_shape a, mr_shape b)
{
    if (a.rank != b.rank) return a.rank < 0 && b.rank < 0;
    if (a.rank > MR_RANK_MAX) return false;
    for (int32_t i = 0; i < a.rank; i++)
        if (a.dims[i] != b.dims[i]) return false;
    return true;
}

bool mr_shape_compatible(mr_shape a, mr_shape b)
{
    if (a.rank < 0 || b.rank < 0) return true;
    if (a.rank != b.rank || a.rank > MR_RANK_MAX) return false;
    for (int32_t i = 0; i < a.rank; i++)
        if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i]) return false;
    return true;
}

char *mr_shape_text(mr_shape shape, char *text, size_t size_bytes)
{
    if (text == nullptr || size_bytes == 0) return text;
    if (shape.rank < 0 || shape.rank > MR_RANK_MAX) {
        snprintf(text, size_bytes, shape.rank < 0 ? "<unknown>" : "<invalid>");
        return text;
    }
    size_t used = (size_t)snprintf(text, size_bytes, "[");
    for (int32_t i = 0; i < shape.rank && used < size_bytes; i++) {
        const char *comma = i > 0 ? "," : "";
        int written = shape.dims[i] < 0 ? snprintf(text + used, size_bytes - used, "%s?", comma)
                                        : snprintf(text + used, size_bytes - used, "%s%" PRId64, comma, shape.dims[i]);
        used += (size_t)written;
    }
    if (used < size_bytes) snprintf(text + used, size_bytes - used, "]");
    return text;
}
