/* The columns of a batch, one function for each form that needs only one slot. Fixed columns are filled directly from
 * the wire bytes; the others from rows, which are counted first. */
#include "records/example/example_batch.h"

#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* ---- Targets ---- */

mr_status mr_example_target_open(mr_example_target *target, mr_dtype dtype, mr_shape shape, mr_tensor *tensor,
                                 mr_error *error)
{
    *target = (mr_example_target){.tensor = tensor, .shape = shape, .element_bytes = mr_dtype_size(dtype)};
    assert(target->element_bytes > 0);
    if (dtype != MR_STRING) {
        MR_TRY(mr_tensor_init(tensor, dtype, shape, error));
        target->values = tensor->data;
        return MR_OK;
    }
    int64_t count = mr_shape_count(shape);
    size_t size;
    if (count < 0 || __builtin_mul_overflow((size_t)count, sizeof(mr_string), &size))
        return mr_fail_memory(error, SIZE_MAX);
    target->views = malloc(size + 1);
    if (target->views == nullptr) return mr_fail_memory(error, size);
    target->values = (char *)target->views;
    return MR_OK;
}

mr_status mr_example_target_close(mr_example_target *target, mr_error *error)
{
    if (target->views == nullptr) return MR_OK;
    mr_status status = mr_tensor_init_strings(target->tensor, target->shape, target->views, error);
    free(target->views);
    return status;
}

void mr_example_target_drop(mr_example_target *target)
{
    free(target->views);
}

mr_status mr_example_values(const mr_example_batch *batch, int32_t slot, const mr_example_rows *rows, mr_shape shape,
                            mr_tensor *tensor, mr_error *error)
{
    mr_example_target target;
    mr_feature_kind kind = batch->parser->slots[slot].kind;
    MR_TRY(mr_example_target_open(&target, batch->parser->slots[slot].dtype, shape, tensor, error));
    int64_t offset = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        const mr_example_row *row = &rows->items[i];
        if (row->count > 0) mr_example_row_values(kind, row, mr_example_target_at(&target, offset));
        offset += row->count;
    }
    assert(offset == rows->total);
    return mr_example_target_close(&target, error);
}

/* ---- Fixed ---- */

/* shape, with the batch dimension first. */
static mr_shape batched(const mr_example_batch *batch, mr_shape shape)
{
    assert(shape.rank < MR_RANK_MAX);
    if (batch->single) return shape;
    mr_shape result = {.rank = shape.rank + 1, .dims = {batch->record_count}};
    for (int32_t i = 0; i < shape.rank; i++) result.dims[i + 1] = shape.dims[i];
    return result;
}

/* The fast path for the usual encodings: packed numbers, or one string. False: use the general path. */
static inline bool read_common(mr_wire list, mr_feature_kind kind, int64_t stride, void *values)
{
    mr_wire inner;
    if (!mr_wire_tag(&list, MR_TAG_BYTES(1)) || !mr_wire_bytes(&list, &inner)) return false;
    size_t size = mr_wire_left(&inner);
    switch (kind) {
    case MR_FEATURE_FLOAT:
        if (stride == 0 || size != (size_t)stride * 4) return false;
        mr_wire_packed_floats(inner.next, (size_t)stride, values);
        return true;
    case MR_FEATURE_BYTES:
        if (stride != 1 || list.next != list.end) return false;
        *(mr_string *)values = (mr_string){(const char *)inner.next, size};
        return true;
    default: {
        uint64_t varint;
        if (stride != 1 || !mr_wire_varint(&inner, &varint) || inner.next != inner.end) return false;
        *(int64_t *)values = (int64_t)varint;
        return true;
    }
    }
}

static mr_status fill_fixed(const mr_example_batch *batch, const mr_example_output *output,
                            const mr_example_target *target, mr_error *error)
{
    int64_t stride = output->stride;
    mr_feature_kind kind = batch->parser->slots[output->slot].kind;
    for (int64_t i = 0; i < batch->record_count; i++) {
        const mr_located *located = mr_example_located(batch, i, output->slot);
        void *values = mr_example_target_at(target, i * stride);
        if (located->kind != kind) {
            if (located->kind != MR_FEATURE_NONE)
                return mr_example_fail_kind(batch, nullptr, i, output->slot, located->kind, error);
            /* As in TensorFlow, a default without values counts as no default. */
            if (output->default_value.buffer == nullptr || stride == 0)
                return mr_example_fail_missing(batch, i, output->slot, error);
            memcpy(values, output->default_value.data, (size_t)stride * target->element_bytes);
            continue;
        }
        mr_wire list = {located->next, located->next + located->size_bytes};
        if (!mr_wire_bytes(&list, &list))
            return mr_example_fail_list(batch, nullptr, i, i, output->slot, located->next, error);
        if (read_common(list, kind, stride, values)) continue;
        size_t count;
        if (!mr_wire_count(kind, list, &count))
            return mr_example_fail_list(batch, nullptr, i, i, output->slot, located->next, error);
        if (count != (size_t)stride) return mr_example_fail_count(batch, nullptr, i, output, count, error);
        if (kind == MR_FEATURE_BYTES)
            mr_wire_strings(list, values);
        else if (kind == MR_FEATURE_FLOAT)
            mr_wire_floats(list, count, values);
        else
            mr_wire_int64s(list, count, values);
    }
    return MR_OK;
}

static mr_status fixed(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                       mr_error *error)
{
    mr_example_target target;
    MR_TRY(mr_example_target_open(&target, output->dtype, batched(batch, output->shape), &tensors[0], error));
    mr_status status = fill_fixed(batch, output, &target, error);
    if (status == MR_OK) return mr_example_target_close(&target, error);
    mr_example_target_drop(&target);
    return status;
}

/* ---- Variable ---- */

static mr_status fixed_sequence(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                                mr_error *error)
{
    const mr_example_rows *rows = mr_example_rows_of(batch, output->slot);
    for (int64_t i = 0; i < rows->count; i++)
        if (rows->items[i].count % output->stride != 0)
            return mr_example_fail_count(batch, nullptr, i, output, rows->items[i].count, error);
    mr_shape shape = {.rank = output->shape.rank + 1, .dims = {rows->longest / output->stride}};
    for (int32_t i = 0; i < output->shape.rank; i++) shape.dims[i + 1] = output->shape.dims[i];
    mr_example_target target;
    MR_TRY(mr_example_target_open(&target, output->dtype, batched(batch, shape), &tensors[0], error));
    mr_feature_kind kind = batch->parser->slots[output->slot].kind;
    for (int64_t i = 0; i < rows->count; i++) {
        char *values = mr_example_target_at(&target, i * rows->longest);
        size_t used = rows->items[i].count, row = (size_t)rows->longest, size = target.element_bytes;
        assert(used <= row && output->stride > 0);
        if (used > 0) mr_example_row_values(kind, &rows->items[i], values);
        if (output->default_value.buffer == nullptr) {
            if (row > used) memset(values + used * size, 0, (row - used) * size);
            continue;
        }
        for (size_t j = used; j < row; j++) memcpy(values + j * size, output->default_value.data, size);
    }
    return mr_example_target_close(&target, error);
}

static mr_status variable(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                          mr_error *error)
{
    const mr_example_rows *rows = mr_example_rows_of(batch, output->slot);
    int32_t rank = batch->single ? 1 : 2;
    MR_TRY(mr_tensor_init(&tensors[0], MR_INT64, MR_SHAPE(rows->total, rank), error));
    int64_t *index = mr_tensor_int64s(&tensors[0]);
    for (int64_t i = 0; i < rows->count; i++) {
        for (int64_t j = 0; j < rows->items[i].count; j++) {
            if (!batch->single) *index++ = i;
            *index++ = j;
        }
    }
    assert(index == mr_tensor_int64s(&tensors[0]) + rows->total * rank);
    MR_TRY(mr_example_values(batch, output->slot, rows, MR_SHAPE(rows->total), &tensors[1], error));
    int64_t dense[2] = {batch->record_count, rows->longest};
    return mr_tensor_init_copy(&tensors[2], MR_INT64, MR_SHAPE(rank), batch->single ? &dense[1] : dense, error);
}

mr_status mr_example_column(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                            mr_error *error)
{
    if (output->form == MR_FIXED_LEN) return fixed(batch, output, tensors, error);
    if (output->form == MR_FIXED_LEN_SEQUENCE) return fixed_sequence(batch, output, tensors, error);
    return variable(batch, output, tensors, error);
}
