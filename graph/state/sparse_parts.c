/* Splitting and joining sparse tensors (sparse_parts.h). */
#include "graph/state/sparse_parts.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

void mr_sparse_part_deinit(mr_sparse_part *part)
{
    mr_tensor_deinit(&part->indices);
    mr_tensor_deinit(&part->values);
    mr_tensor_deinit(&part->shape);
}

mr_status mr_sparse_part_of(const mr_kernel_call *call, mr_sparse_part *part, mr_error *)
{
    *part = (mr_sparse_part){mr_tensor_ref(&call->inputs[0]), mr_tensor_ref(&call->inputs[1]),
                             mr_tensor_ref(&call->inputs[2])};
    return MR_OK;
}

static mr_status take_values(const mr_sparse *s, const int64_t *positions, int64_t count, mr_tensor *values,
                             mr_error *error)
{
    if (s->values->dtype == MR_STRING) {
        mr_string *strings = malloc((size_t)MR_MAX(count, 1) * sizeof *strings);
        if (!strings) return mr_fail_memory(error, (size_t)count * sizeof *strings);
        for (int64_t i = 0; i < count; i++) strings[i] = mr_tensor_strings(s->values)[positions[i]];
        mr_status status = mr_tensor_init_strings(values, MR_SHAPE(count), strings, error);
        free(strings);
        return status;
    }
    size_t size = mr_dtype_size(s->values->dtype);
    MR_TRY(mr_tensor_init(values, s->values->dtype, MR_SHAPE(count), error));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)values->data + (size_t)i * size, (const char *)s->values->data + (size_t)positions[i] * size,
               size);
    return MR_OK;
}

/* The values at the positions, without the first dimension. */
static mr_status take_row(const mr_sparse *s, const int64_t *positions, int64_t count, mr_sparse_part *part,
                          mr_error *error)
{
    int64_t rank = s->rank - 1;
    MR_TRY(mr_tensor_init(&part->indices, MR_INT64, MR_SHAPE(count, rank), error));
    for (int64_t i = 0; i < count; i++)
        memcpy(mr_tensor_int64s(&part->indices) + i * rank, s->indices + positions[i] * s->rank + 1,
               (size_t)rank * sizeof(int64_t));
    MR_TRY(take_values(s, positions, count, &part->values, error));
    return mr_tensor_init_copy(&part->shape, MR_INT64, MR_SHAPE(rank), s->shape + 1, error);
}

mr_status mr_sparse_rows(const mr_kernel_call *call, const mr_sparse *s, mr_sparse_row each, void *context,
                         mr_error *error)
{
    const int32_t first = 0;
    int64_t *order = nullptr, begin = 0, rows = s->shape[0];
    MR_TRY(mr_sparse_order(call, s, &first, 1, &order, error));
    mr_status status = MR_OK;
    for (int64_t row = 0; row < rows && status == MR_OK; row++) {
        mr_sparse_part part = {0};
        int64_t end = begin;
        while (end < s->count && s->indices[order[end] * s->rank] == row) end++;
        status = take_row(s, order + begin, end - begin, &part, error);
        if (status == MR_OK) status = each(context, row, &part, error);
        mr_sparse_part_deinit(&part);
        begin = end;
    }
    free(order);
    if (status == MR_OK && begin != s->count)
        return FAIL("the index of a value is outside dimension 0 of size %" PRId64, rows);
    return status;
}

mr_status mr_sparse_join(mr_kernel_call *call, mr_shape lead, const mr_sparse_part *parts, int64_t count,
                         mr_error *error)
{
    int64_t rank = parts[0].shape.shape.dims[0], total = 0, columns = lead.rank + rank, at = 0;
    for (int64_t i = 0; i < count; i++) {
        if (parts[i].shape.shape.dims[0] != rank)
            return FAIL("Inconsistent shape across SparseTensors: rank prior to SparseTensor[%" PRId64 "] was: %" PRId64
                        " but rank of SparseTensor[%" PRId64 "] is: %" PRId64,
                        i, rank, i, parts[i].shape.shape.dims[0]);
        total += parts[i].values.shape.dims[0];
    }
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(total, columns), error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(columns), error));
    int64_t *indices = call->outputs[0].data, *shape = call->outputs[2].data;
    for (int d = 0; d < lead.rank; d++) shape[d] = lead.dims[d];
    for (int64_t d = 0; d < rank; d++) {
        shape[lead.rank + d] = 0;
        for (int64_t i = 0; i < count; i++)
            shape[lead.rank + d] = MR_MAX(shape[lead.rank + d], mr_tensor_int64s(&parts[i].shape)[d]);
    }
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 1, MR_SHAPE(total), &sink, error));
    for (int64_t i = 0; i < count; i++) {
        int64_t rows = parts[i].values.shape.dims[0];
        if (rows > 0)
            memcpy((char *)sink.data + (size_t)at * sink.element_size, parts[i].values.data,
                   (size_t)rows * sink.element_size);
        for (int64_t r = 0; r < rows; r++, at++) {
            int64_t rest = i, *row = indices + at * columns;
            for (int d = lead.rank - 1; d >= 0; d--) {
                row[d] = rest % lead.dims[d];
                rest /= lead.dims[d];
            }
            if (rank > 0)
                memcpy(row + lead.rank, mr_tensor_int64s(&parts[i].indices) + r * rank, (size_t)rank * sizeof *row);
        }
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}
