/* The columns of feature lists. Compared to those of an Example they have one more dimension, the steps; every step is
 * a row. */
#include "records/example/example_batch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* [batch, first] + shape, or [first] + shape when single. */
static mr_shape list_shape(const mr_example_batch *batch, int64_t first, mr_shape shape)
{
    mr_shape result = {0};
    if (!batch->single) result.dims[result.rank++] = batch->record_count;
    result.dims[result.rank++] = first;
    for (int32_t i = 0; i < shape.rank; i++) result.dims[result.rank++] = shape.dims[i];
    assert(result.rank <= MR_RANK_MAX);
    return result;
}

static mr_status fixed_sequence(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                                mr_error *error)
{
    const mr_example_rows *rows = mr_example_rows_of(batch, output->slot);
    for (int64_t i = 0; !output->allow_missing && i < batch->record_count; i++)
        if (mr_example_located(batch, i, output->slot)->kind == MR_FEATURE_NONE)
            return mr_example_fail_missing(batch, i, output->slot, error);
    for (int64_t i = 0; i < rows->count; i++)
        if (rows->items[i].count != output->stride)
            return mr_example_fail_count(batch, rows, i, output, rows->items[i].count, error);
    MR_TRY(mr_tensor_init(&tensors[1], MR_INT64, batch->single ? MR_SCALAR : MR_SHAPE(batch->record_count), error));
    mr_example_target target;
    MR_TRY(mr_example_target_open(&target, output->dtype, list_shape(batch, rows->most, output->shape), &tensors[0],
                                  error));
    mr_feature_kind kind = batch->parser->slots[output->slot].kind;
    for (int64_t i = 0; i < batch->record_count; i++) {
        int64_t steps = rows->splits[i + 1] - rows->splits[i];
        assert(steps >= 0 && steps <= rows->most);
        char *values = mr_example_target_at(&target, i * rows->most * output->stride);
        size_t step_bytes = (size_t)output->stride * target.element_bytes;
        for (int64_t j = 0; j < steps; j++)
            mr_example_row_values(kind, &rows->items[rows->splits[i] + j], values + (size_t)j * step_bytes);
        memset(values + (size_t)steps * step_bytes, 0, (size_t)(rows->most - steps) * step_bytes);
        mr_tensor_int64s(&tensors[1])[i] = steps;
    }
    return mr_example_target_close(&target, error);
}

static mr_status variable(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                          mr_error *error)
{
    const mr_example_rows *rows = mr_example_rows_of(batch, output->slot);
    int32_t rank = batch->single ? 2 : 3;
    MR_TRY(mr_tensor_init(&tensors[0], MR_INT64, MR_SHAPE(rows->total, rank), error));
    int64_t *index = mr_tensor_int64s(&tensors[0]);
    for (int64_t i = 0; i < batch->record_count; i++) {
        for (int64_t row = rows->splits[i]; row < rows->splits[i + 1]; row++) {
            for (int64_t j = 0; j < rows->items[row].count; j++) {
                if (!batch->single) *index++ = i;
                *index++ = row - rows->splits[i];
                *index++ = j;
            }
        }
    }
    assert(index == mr_tensor_int64s(&tensors[0]) + rows->total * rank);
    MR_TRY(mr_example_values(batch, output->slot, rows, MR_SHAPE(rows->total), &tensors[1], error));
    int64_t dense[3] = {batch->record_count, rows->most, rows->longest};
    return mr_tensor_init_copy(&tensors[2], MR_INT64, MR_SHAPE(rank), batch->single ? &dense[1] : dense, error);
}

mr_status mr_sequence_column(const mr_example_batch *batch, const mr_example_output *output, mr_tensor *tensors,
                             mr_error *error)
{
    return output->form == MR_FIXED_LEN_SEQUENCE ? fixed_sequence(batch, output, tensors, error)
                                                 : variable(batch, output, tensors, error);
}
