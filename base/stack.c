/* Stacking of rows into one tensor: see stack.h. */
#include "base/stack.h"

#include "base/status.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

mr_shape mr_stack_shape(const mr_tensor *rows, int64_t count, mr_shape shape)
{
    assert(count >= 0 && shape.rank >= 0 && shape.rank <= MR_RANK_MAX);
    for (int64_t r = 0; r < count; r++) assert(rows[r].shape.rank == shape.rank);
    for (int32_t d = 0; d < shape.rank; d++) {
        if (shape.dims[d] < 0) shape.dims[d] = 0;
        for (int64_t r = 0; r < count; r++)
            if (rows[r].shape.dims[d] > shape.dims[d]) shape.dims[d] = rows[r].shape.dims[d];
    }
    return shape;
}

/* Copies the row's elements to their positions in the larger shape. */
static void copy_row(char *to, mr_shape shape, const mr_tensor *row, size_t element_bytes)
{
    int64_t index[MR_RANK_MAX] = {0};
    int32_t last = shape.rank - 1;
    const char *from = row->data;
    assert(row->shape.rank == shape.rank);
    for (int32_t d = 0; d < shape.rank; d++) assert(row->shape.dims[d] <= shape.dims[d]);
    if (mr_tensor_count(row) == 0) return;
    if (mr_shape_equal(shape, row->shape)) {
        memcpy(to, from, (size_t)mr_tensor_count(row) * element_bytes);
        return;
    }
    size_t run_bytes = (size_t)row->shape.dims[last] * element_bytes;
    for (;;) {
        int64_t at = 0;
        for (int32_t d = 0; d < shape.rank; d++) at = at * shape.dims[d] + index[d];
        memcpy(to + (size_t)at * element_bytes, from, run_bytes);
        from += run_bytes;
        int32_t d = last - 1;
        while (d >= 0 && ++index[d] == row->shape.dims[d]) index[d--] = 0;
        if (d < 0) return;
    }
}

mr_status mr_stack(const mr_tensor *rows, int64_t count, mr_dtype dtype, mr_shape shape, const void *fill,
                   mr_tensor *result, mr_error *error)
{
    assert(count >= 0 && shape.rank >= 0 && shape.rank <= MR_RANK_MAX);
    mr_shape stacked = {.rank = shape.rank + 1, .dims = {count}};
    if (shape.rank == MR_RANK_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "rows of %d dimensions cannot be stacked", MR_RANK_MAX);
    for (int32_t d = 0; d < shape.rank; d++) stacked.dims[d + 1] = shape.dims[d];
    size_t element_bytes = mr_dtype_size(dtype), row_bytes = 0, size_bytes = 0;
    if (mr_shape_count(stacked) < 0 ||
        __builtin_mul_overflow((size_t)mr_shape_count(shape), element_bytes, &row_bytes) ||
        __builtin_mul_overflow(row_bytes, (size_t)count, &size_bytes))
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%lld rows are too large for one tensor", (long long)count);
    bool is_strings = dtype == MR_STRING;
    mr_status status = MR_OK;
    char *elements = nullptr;
    if (is_strings) {
        elements = calloc(size_bytes + 1, 1);
        if (elements == nullptr) return mr_fail_memory(error, size_bytes);
    } else {
        MR_TRY(mr_tensor_init(result, dtype, stacked, error));
        elements = result->data;
        if (size_bytes > 0) memset(elements, 0, size_bytes);
    }
    for (size_t i = 0; fill != nullptr && i < size_bytes; i += element_bytes) memcpy(elements + i, fill, element_bytes);
    for (int64_t r = 0; r < count; r++) assert(rows[r].dtype == dtype);
    for (int64_t r = 0; r < count; r++) copy_row(elements + (size_t)r * row_bytes, shape, &rows[r], element_bytes);
    if (!is_strings) return MR_OK;
    status = mr_tensor_init_strings(result, stacked, (const mr_string *)elements, error);
    free(elements);
    return status;
}
