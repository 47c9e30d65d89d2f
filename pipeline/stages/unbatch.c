/* unbatch: the rows of batches as elements, which reference their batch. And assert_cardinality. */
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct unbatch_stage {
    mr_stage stage;
    mr_item batch;
    int64_t row, rows;
    bool has_batch;
    mr_state before; /* the input's state before the batch */
    size_t counted_bytes;
} unbatch_stage;

/* The memory of one batch is counted without a limit. */
static void count_batch(unbatch_stage *self)
{
    const mr_payload *payload = self->batch.payload;
    mr_stage_keep_unlimited(&self->stage, &self->counted_bytes,
                            self->before.capacity_bytes + (payload == nullptr ? 0 : mr_payload_bytes(payload)));
}

static mr_status unbatch_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    unbatch_stage *self = (unbatch_stage *)stage;
    mr_item_deinit(&self->batch);
    self->has_batch = false;
    self->row = self->rows = 0;
    return mr_stream_begin(stage, iteration, error);
}

static mr_status take_batch(unbatch_stage *self, mr_error *error)
{
    mr_item_deinit(&self->batch);
    self->has_batch = false;
    mr_state_clear(&self->before);
    MR_TRY(mr_stage_save(self->stage.children[0], &self->before, error));
    MR_TRY(mr_stream_pull(&self->stage, &self->batch, error));
    count_batch(self);
    const mr_payload *payload = self->batch.payload;
    assert(payload != nullptr && payload->count == self->stage.dataset->spec.count);
    for (int32_t i = 0; i < payload->count; i++) {
        mr_shape shape = payload->tensors[i].shape;
        if (shape.rank < 1 || shape.dims[0] != payload->tensors[0].shape.dims[0]) {
            self->stage.position++;
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d does not have as many rows as component 0", i);
        }
    }
    self->row = 0;
    self->rows = payload->tensors[0].shape.dims[0];
    self->has_batch = true;
    return MR_OK;
}

/* References one row. */
static mr_tensor row_of(const mr_tensor *tensor, int64_t row)
{
    assert(tensor->shape.rank >= 1 && row >= 0 && row < tensor->shape.dims[0]);
    mr_tensor part = mr_tensor_ref(tensor);
    for (int32_t d = 1; d < part.shape.rank; d++) part.shape.dims[d - 1] = part.shape.dims[d];
    part.shape.dims[--part.shape.rank] = 0;
    part.data = (char *)tensor->data + (size_t)row * (size_t)mr_shape_count(part.shape) * mr_dtype_size(tensor->dtype);
    return part;
}

static mr_status unbatch_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    unbatch_stage *self = (unbatch_stage *)stage;
    while (!self->has_batch || self->row == self->rows) MR_TRY(take_batch(self, error));
    const mr_payload *batch = self->batch.payload;
    assert(self->row >= 0 && self->row < self->rows);
    mr_payload *payload = mr_payload_new(batch->count);
    if (payload == nullptr) return mr_fail_memory(error, sizeof *payload);
    for (int32_t i = 0; i < batch->count; i++) payload->tensors[i] = row_of(&batch->tensors[i], self->row);
    self->row++;
    *item = (mr_item){.payload = payload};
    mr_stream_number(stage, item);
    return MR_OK;
}

/* Takes the batch again whose rows are being delivered. */
static mr_status unbatch_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    const unbatch_stage *self = (const unbatch_stage *)stage;
    bool is_inside = self->has_batch && self->row < self->rows;
    assert(!self->has_batch || (self->batch.payload != nullptr && self->row <= self->rows));
    MR_TRY(mr_state_put(state, is_inside ? (uint64_t)self->row + 1 : 0, error));
    if (!is_inside) return mr_stage_save(stage->children[0], state, error);
    return mr_state_put_bytes(state, self->before.bytes, self->before.size_bytes, error);
}

static mr_status unbatch_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    unbatch_stage *self = (unbatch_stage *)stage;
    uint64_t row = 0;
    const void *bytes = nullptr;
    size_t size_bytes = 0;
    mr_item_deinit(&self->batch);
    self->has_batch = false;
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &row, error));
    if (row == 0) return mr_stage_restore(stage->children[0], reader, error);
    MR_TRY(mr_state_get_bytes(reader, &bytes, &size_bytes, error));
    mr_state_reader before = {bytes, (const unsigned char *)bytes + size_bytes};
    MR_TRY(mr_stage_restore(stage->children[0], &before, error));
    MR_TRY(mr_state_found(take_batch(self, error), error));
    if ((int64_t)row > self->rows) return mr_state_refuse(error);
    self->row = (int64_t)row - 1;
    assert(self->has_batch && self->row >= 0 && self->row < self->rows);
    return MR_OK;
}

static void unbatch_deinit(mr_stage *stage)
{
    unbatch_stage *self = (unbatch_stage *)stage;
    mr_item_deinit(&self->batch);
    mr_state_deinit(&self->before);
}

static const mr_stage_functions unbatch_functions = {.begin = unbatch_begin,
                                                     .next = unbatch_next,
                                                     .seek = mr_stage_seek_forward,
                                                     .deinit = unbatch_deinit,
                                                     .save = unbatch_save,
                                                     .restore = unbatch_restore};

/* A batch that fails is one failure, not one for each of its rows: its number of rows is unknown. */
static mr_status unbatch_prepare(mr_stage *stage, mr_error *error)
{
    (void)error;
    stage->count = MR_CARDINALITY_UNKNOWN;
    return MR_OK;
}

static const mr_dataset_kind unbatch_kind = {.name = "unbatch",
                                             .role = MR_ROLE_STREAM,
                                             .stage_size_bytes = sizeof(unbatch_stage),
                                             .functions = &unbatch_functions,
                                             .prepare = unbatch_prepare};

mr_dataset *mr_dataset_unbatch(mr_dataset *input)
{
    mr_dataset *dataset = mr_dataset_new(&unbatch_kind, input, 0);
    if (mr_dataset_failed(dataset)) return dataset;
    int64_t rows = -1; /* of every batch; -1 if unknown or not equal */
    for (int32_t i = 0; i < dataset->spec.count; i++) {
        mr_shape *shape = &dataset->spec.shapes[i];
        if (shape->rank == 0)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "unbatch: component %d is a scalar", i);
        if (shape->rank < 0) continue;
        if (shape->dims[0] >= 0) rows = shape->dims[0];
        for (int32_t d = 1; d < shape->rank; d++) shape->dims[d - 1] = shape->dims[d];
        shape->dims[--shape->rank] = 0;
    }
    if (dataset->count == 0)
        return dataset;
    else if (rows < 0 || dataset->count == MR_CARDINALITY_UNKNOWN || (dataset->count == MR_INFINITE && rows == 0))
        dataset->count = MR_CARDINALITY_UNKNOWN;
    else if (dataset->count > 0 && (__builtin_mul_overflow(dataset->count, rows, &dataset->count) ||
                                    (uint64_t)dataset->count > MR_POSITION_MAX))
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "unbatch: too many elements");
    return dataset;
}

/* ---- assert_cardinality ---- */

typedef struct assert_settings {
    int64_t count;
} assert_settings;

static uint64_t assert_digest(const mr_dataset *dataset)
{
    return (uint64_t)((const assert_settings *)dataset->settings)->count;
}

static mr_status assert_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    int64_t count = ((const assert_settings *)stage->dataset->settings)->count;
    uint64_t before = stage->input->position;
    mr_status status = mr_stage_next(stage->input, item, error);
    if (stage->input->position != before) stage->position++;
    if (status == MR_OUT_OF_RANGE && count >= 0 && stage->position < (uint64_t)count)
        return mr_fail(error, MR_FAILED_PRECONDITION, "expected %lld elements, but the input has %llu",
                       (long long)count, (unsigned long long)stage->position);
    if (status == MR_OUT_OF_RANGE && count == MR_INFINITE)
        return mr_fail(error, MR_FAILED_PRECONDITION, "expected an infinite input, but it has %llu elements",
                       (unsigned long long)stage->position);
    if (status == MR_OK && count >= 0 && stage->position > (uint64_t)count) {
        mr_item_deinit(item);
        return mr_fail(error, MR_FAILED_PRECONDITION, "expected %lld elements, but the input has more",
                       (long long)count);
    }
    if (status == MR_OK) mr_count(&stage->counters->elements, 1);
    return status;
}

static mr_status assert_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    return mr_stage_begin(stage->input, iteration, error);
}

static mr_status assert_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    MR_TRY(mr_stage_seek(stage->input, position, error));
    stage->position = stage->input->position;
    return MR_OK;
}

static const mr_stage_functions assert_functions = {.begin = assert_begin, .next = assert_next, .seek = assert_seek};

static const mr_dataset_kind assert_kind = {.name = "assert_cardinality",
                                            .role = MR_ROLE_ORDER,
                                            .digest = assert_digest,
                                            .stage_size_bytes = sizeof(mr_stage),
                                            .functions = &assert_functions};

mr_dataset *mr_dataset_assert_cardinality(mr_dataset *input, int64_t count)
{
    mr_dataset *dataset = mr_dataset_new(&assert_kind, input, sizeof(assert_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    if (count < 0 && count != MR_INFINITE)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "assert_cardinality: invalid count %lld",
                               (long long)count);
    ((assert_settings *)dataset->settings)->count = count;
    if (input->count != MR_CARDINALITY_UNKNOWN && input->count != count)
        return mr_dataset_fail(dataset, MR_FAILED_PRECONDITION,
                               "assert_cardinality: the input has %lld elements, expected %lld",
                               (long long)input->count, (long long)count);
    dataset->count = count;
    return dataset;
}

mr_dataset *mr_dataset_rebatch_(mr_dataset *input, int64_t size, const mr_batch_options *options)
{
    return mr_dataset_batch_(mr_dataset_unbatch(input), size, options);
}
