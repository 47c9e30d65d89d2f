/* Slots: allocation, accounting and assembly of batches (slot.h). */
#include "pipeline/engine/slot.h"

#include "base/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static mr_error no_memory = {.status = MR_RESOURCE_EXHAUSTED,
                             .message = "an element failed, and there was no memory to say why"};

/* Padding to the size that all elements have is no padding. */
static bool must_be_joined(const mr_element_spec *spec, int32_t i, const mr_pad *pad, mr_column_kind kind)
{
    if (pad->join != MR_JOIN_PADDED) return pad->join != MR_JOIN_EQUAL;
    return kind == MR_COLUMN_LOOSE || (kind != MR_COLUMN_STRINGS && !mr_shape_equal(spec->shapes[i], pad->shape));
}

mr_status mr_slot_plan_init(mr_slot_plan *plan, const mr_element_spec *spec, const mr_pad *pads, int32_t rows,
                            bool is_batch, const mr_run *run, mr_error *error)
{
    assert(rows >= 1 && spec->count >= 1 && spec->count <= MR_COMPONENTS_MAX);
    *plan = (mr_slot_plan){.run = run, .rows = rows, .is_batch = is_batch, .count = spec->count};
    for (int32_t i = 0; i < spec->count; i++) {
        mr_column_plan *column = &plan->columns[i];
        *column = (mr_column_plan){.dtype = spec->dtypes[i], .shape = spec->shapes[i]};
        column->row_bytes = mr_spec_row_bytes(spec, i);
        bool is_sized = mr_shape_count(spec->shapes[i]) >= 0;
        if (column->dtype == MR_STRING)
            column->kind = is_batch && spec->shapes[i].rank == 0 ? MR_COLUMN_STRINGS : MR_COLUMN_LOOSE;
        else
            column->kind = is_sized && column->dtype != MR_VARIANT ? MR_COLUMN_FIXED : MR_COLUMN_LOOSE;
        if (pads != nullptr && must_be_joined(spec, i, &pads[i], column->kind)) {
            column->kind = MR_COLUMN_LOOSE;
            column->pad = &pads[i];
        }
        if (column->kind != MR_COLUMN_FIXED) continue;
        size_t column_bytes = 0;
        if (__builtin_mul_overflow(column->row_bytes, (size_t)rows, &column_bytes) ||
            __builtin_add_overflow(plan->fixed_bytes, column_bytes, &plan->fixed_bytes) ||
            plan->fixed_bytes > PTRDIFF_MAX / 2)
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "a batch of %d elements is too large", rows);
    }
    size_t row_bytes = sizeof(mr_item) + 2 * sizeof(bool) + sizeof(mr_error *);
    for (int32_t i = 0; i < spec->count; i++) {
        if (plan->columns[i].kind == MR_COLUMN_STRINGS) row_bytes += sizeof(mr_text);
        if (plan->columns[i].kind == MR_COLUMN_LOOSE) row_bytes += sizeof(mr_tensor);
    }
    plan->head_bytes = sizeof(mr_slot) + (size_t)rows * row_bytes;
    return MR_OK;
}

static mr_status allocate(const mr_run *run, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    if (run->allocate == nullptr) return mr_buffer_new(size_bytes, buffer, error);
    *buffer = nullptr;
    MR_TRY(run->allocate(run->allocate_context, size_bytes, buffer, error));
    if (*buffer != nullptr && mr_buffer_size(*buffer) >= size_bytes) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "the iterator's function allocate returned a buffer of %zu bytes, "
                   "expected %zu",
                   *buffer == nullptr ? 0 : mr_buffer_size(*buffer), size_bytes);
}

mr_status mr_slot_new(const mr_slot_plan *plan, mr_slot **slot, mr_error *error)
{
    size_t rows = (size_t)plan->rows;
    assert(plan->rows >= 1 && plan->count >= 1);
    *slot = nullptr;
    mr_slot *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->plan = plan;
    made->items = calloc(rows, sizeof *made->items);
    made->is_row_done = calloc(rows, sizeof *made->is_row_done);
    made->failures = calloc(rows, sizeof *made->failures);
    if (plan->drops) made->is_row_dropped = calloc(rows, sizeof *made->is_row_dropped);
    mr_status status = MR_OK;
    if (made->items == nullptr || (plan->drops && made->is_row_dropped == nullptr) || made->is_row_done == nullptr ||
        made->failures == nullptr)
        status = mr_fail_memory(error, rows * sizeof *made->items);
    for (int32_t i = 0; i < plan->count && status == MR_OK; i++) {
        mr_column *column = &made->columns[i];
        switch (plan->columns[i].kind) {
        case MR_COLUMN_FIXED:
            status = allocate(plan->run, plan->columns[i].row_bytes * rows, &column->buffer, error);
            if (status == MR_OK) atomic_store_explicit(&column->buffer->is_pooled, true, memory_order_relaxed);
            break;
        case MR_COLUMN_STRINGS:
            column->texts = calloc(rows, sizeof *column->texts);
            if (column->texts == nullptr) status = mr_fail_memory(error, rows * sizeof *column->texts);
            break;
        case MR_COLUMN_LOOSE:
            column->loose = calloc(rows, sizeof *column->loose);
            if (column->loose == nullptr) status = mr_fail_memory(error, rows * sizeof *column->loose);
            break;
        }
    }
    if (status == MR_OK) {
        mr_slot_account(made);
        *slot = made;
    } else {
        mr_slot_free(made);
    }
    return status;
}

/* ---- Accounting ---- */

size_t mr_slot_rows_bytes(const mr_slot *slot, int32_t begin, int32_t end)
{
    size_t size_bytes = 0;
    assert(begin >= 0 && begin <= end && end <= slot->plan->rows);
    for (int32_t c = 0; c < slot->plan->count; c++) {
        const mr_column *column = &slot->columns[c];
        for (int32_t r = begin; column->texts != nullptr && r < end; r++) size_bytes += column->texts[r].capacity_bytes;
        for (int32_t r = begin; column->loose != nullptr && r < end; r++)
            size_bytes += mr_tensor_held_bytes(&column->loose[r]);
    }
    for (int32_t r = begin; slot->plan->has_payloads && slot->items != nullptr && r < end; r++)
        if (slot->items[r].payload != nullptr) size_bytes += mr_payload_bytes(slot->items[r].payload);
    return size_bytes;
}

void mr_slot_account_rows(mr_slot *slot, size_t bytes_before, size_t bytes_now)
{
    slot->held_bytes += bytes_now - bytes_before;
    mr_budget_add(slot->plan->run, slot->plan->counters, (ptrdiff_t)(bytes_now - bytes_before));
}

static bool is_column(const mr_slot *slot, const mr_buffer *buffer)
{
    for (int32_t c = 0; c < slot->plan->count; c++)
        if (slot->columns[c].buffer == buffer) return true;
    return false;
}

void mr_slot_account(mr_slot *slot)
{
    size_t size_bytes = slot->plan->fixed_bytes + slot->plan->head_bytes + slot->state.capacity_bytes +
                        mr_slot_rows_bytes(slot, 0, slot->plan->rows);
    for (int32_t c = 0; c < slot->plan->count; c++)
        if (slot->plan->columns[c].kind == MR_COLUMN_STRINGS && slot->columns[c].buffer != nullptr)
            size_bytes += mr_buffer_size(slot->columns[c].buffer);
    for (int32_t i = 0; i < slot->result_count; i++)
        if (!is_column(slot, slot->results[i].buffer)) size_bytes += mr_tensor_held_bytes(&slot->results[i]);
    mr_slot_account_rows(slot, slot->held_bytes, size_bytes);
}

/* Frees the memory of unusually long strings, which later rows would otherwise keep permanently. */
static void trim(mr_column *column, int32_t rows)
{
    constexpr size_t KEPT_BYTES = 65536;
    for (int32_t r = 0; r < rows; r++) {
        mr_text *text = &column->texts[r];
        if (text->capacity_bytes <= KEPT_BYTES || text->size_bytes >= text->capacity_bytes / 4) continue;
        free(text->bytes);
        *text = (mr_text){0};
    }
}

void mr_slot_clear(mr_slot *slot)
{
    assert(slot->rows >= 0 && slot->rows <= slot->plan->rows && slot->taken - slot->done >= 0);
    for (int32_t r = 0; r < slot->rows; r++) {
        mr_item_deinit(&slot->items[r]);
        slot->is_row_done[r] = false;
        if (slot->is_row_dropped != nullptr) slot->is_row_dropped[r] = false;
        if (slot->failures[r] != &no_memory) free(slot->failures[r]);
        slot->failures[r] = nullptr;
    }
    for (int32_t c = 0; c < slot->plan->count; c++) {
        if (slot->columns[c].texts != nullptr) trim(&slot->columns[c], slot->rows);
        for (int32_t r = 0; slot->columns[c].loose != nullptr && r < slot->rows; r++)
            mr_tensor_deinit(&slot->columns[c].loose[r]);
    }
    for (int32_t i = 0; i < slot->result_count; i++) mr_tensor_deinit(&slot->results[i]);
    if (slot->failure != &no_memory) free(slot->failure);
    slot->failure = nullptr;
    slot->result_count = slot->rows = slot->taken = slot->done = slot->requested = 0;
    slot->waits = 0;
    slot->is_complete = false;
    slot->extra_bytes = 0;
    mr_slot_account(slot);
}

void mr_slot_free(mr_slot *slot)
{
    if (slot == nullptr) return;
    mr_slot_clear(slot);
    mr_slot_account_rows(slot, slot->held_bytes, 0);
    for (int32_t c = 0; c < slot->plan->count; c++) {
        mr_column *column = &slot->columns[c];
        if (column->buffer != nullptr) atomic_store_explicit(&column->buffer->is_pooled, false, memory_order_relaxed);
        mr_buffer_unref(column->buffer);
        for (int32_t r = 0; column->texts != nullptr && r < slot->plan->rows; r++) free(column->texts[r].bytes);
        free(column->texts);
        free(column->loose);
    }
    free(slot->items);
    free(slot->is_row_done);
    free(slot->is_row_dropped);
    mr_state_deinit(&slot->state);
    free(slot->failures);
    free(slot);
}

bool mr_slot_is_free(const mr_slot *slot)
{
    for (int32_t c = 0; c < slot->plan->count; c++)
        if (slot->columns[c].buffer != nullptr && !mr_buffer_is_idle(slot->columns[c].buffer)) return false;
    return true;
}

static char *row_data(const mr_slot *slot, int32_t component, int32_t row)
{
    assert(row >= 0 && row < slot->plan->rows && slot->plan->columns[component].kind == MR_COLUMN_FIXED);
    return (char *)mr_buffer_data(slot->columns[component].buffer) +
           (size_t)row * slot->plan->columns[component].row_bytes;
}

void mr_slot_set_rows(const mr_slot *slot, int32_t row, mr_workspace *workspace)
{
    for (int32_t c = 0; c < slot->plan->count; c++)
        workspace->rows[c] = slot->plan->columns[c].kind == MR_COLUMN_FIXED ? row_data(slot, c, row) : nullptr;
}

static mr_status store_text(mr_text *text, mr_string string, mr_error *error)
{
    if (string.size_bytes > text->capacity_bytes) {
        size_t capacity_bytes = string.size_bytes + string.size_bytes / 2;
        char *bytes = realloc(text->bytes, capacity_bytes);
        if (bytes == nullptr) return mr_fail_memory(error, capacity_bytes);
        text->bytes = bytes;
        text->capacity_bytes = capacity_bytes;
    }
    if (string.size_bytes > 0) memcpy(text->bytes, string.data, string.size_bytes);
    text->size_bytes = string.size_bytes;
    return MR_OK;
}

static mr_status fail_shape(int32_t component, mr_shape found, mr_shape expected, mr_error *error)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    return mr_fail(error, MR_INVALID_ARGUMENT, "component %d has shape %s, expected %s", component,
                   mr_shape_text(found, a, sizeof a), mr_shape_text(expected, b, sizeof b));
}

mr_status mr_slot_store(mr_slot *slot, int32_t row, mr_workspace *workspace, mr_error *error)
{
    assert(row >= 0 && row < slot->rows && workspace->count == slot->plan->count);
    for (int32_t c = 0; c < slot->plan->count; c++) {
        const mr_column_plan *plan = &slot->plan->columns[c];
        mr_value *value = &workspace->values[c];
        if (value->is_in_row) continue;
        switch (plan->kind) {
        case MR_COLUMN_FIXED:
            if (!mr_shape_equal(value->shape, plan->shape)) return fail_shape(c, value->shape, plan->shape, error);
            if (plan->row_bytes == sizeof(uint64_t))
                memcpy(workspace->rows[c], value->data, sizeof(uint64_t));
            else if (plan->row_bytes > 0)
                memcpy(workspace->rows[c], value->data, plan->row_bytes);
            break;
        case MR_COLUMN_STRINGS:
            assert(value->dtype == MR_STRING && value->shape.rank == 0);
            MR_TRY(store_text(&slot->columns[c].texts[row], *(const mr_string *)value->data, error));
            break;
        case MR_COLUMN_LOOSE:
            MR_TRY(mr_value_to_tensor(value, &slot->columns[c].loose[row], error));
            break;
        }
    }
    return MR_OK;
}

static mr_error *keep(const mr_error *error)
{
    mr_error *kept = malloc(sizeof *kept);
    if (kept == nullptr) return &no_memory;
    *kept = *error;
    return kept;
}

void mr_slot_fail_row(mr_slot *slot, int32_t row, const mr_error *error)
{
    assert(row >= 0 && row < slot->plan->rows && slot->failures[row] == nullptr);
    slot->failures[row] = keep(error);
}

void mr_slot_fail(mr_slot *slot, const mr_error *error)
{
    assert(slot->failure == nullptr);
    slot->failure = keep(error);
}

const mr_error *mr_slot_failure(const mr_slot *slot)
{
    for (int32_t r = 0; r < slot->rows; r++)
        if (slot->failures[r] != nullptr) return slot->failures[r];
    return slot->failure;
}

/* ---- Assembling a batch from its rows ---- */

static mr_shape batch_shape(int32_t rows, mr_shape shape)
{
    mr_shape result = {.rank = shape.rank + 1, .dims = {rows}};
    for (int32_t d = 0; d < shape.rank && d + 1 < MR_RANK_MAX; d++) result.dims[d + 1] = shape.dims[d];
    return result;
}

/* Layout of the column's buffer: the mr_strings, then their bytes. */
static mr_status assemble_strings(mr_slot *slot, int32_t component, mr_tensor *result, mr_error *error)
{
    mr_column *column = &slot->columns[component];
    assert(column->texts != nullptr && (column->buffer == nullptr || mr_buffer_is_idle(column->buffer)));
    size_t size_bytes = (size_t)slot->rows * sizeof(mr_string);
    for (int32_t r = 0; r < slot->rows; r++)
        if (__builtin_add_overflow(size_bytes, column->texts[r].size_bytes, &size_bytes))
            return mr_fail_memory(error, SIZE_MAX);
    constexpr size_t KEPT_BYTES = 1 << 20;
    size_t room = column->buffer == nullptr ? 0 : mr_buffer_size(column->buffer);
    if (column->buffer == nullptr || room < size_bytes || (room > KEPT_BYTES && size_bytes < room / 4)) {
        mr_buffer_unref(column->buffer);
        column->buffer = nullptr;
        MR_TRY(mr_buffer_new(size_bytes + size_bytes / 2, &column->buffer, error));
    }
    mr_string *elements = mr_buffer_data(column->buffer);
    char *bytes = (char *)(elements + slot->rows);
    for (int32_t r = 0; r < slot->rows; r++) {
        const mr_text *text = &column->texts[r];
        elements[r] = (mr_string){bytes, text->size_bytes};
        if (text->size_bytes > 0) memcpy(bytes, text->bytes, text->size_bytes);
        bytes += text->size_bytes;
    }
    slot->extra_bytes += size_bytes;
    *result = (mr_tensor){MR_STRING, MR_SHAPE(slot->rows), mr_buffer_ref(column->buffer), elements};
    return MR_OK;
}

static mr_status assemble_loose(mr_slot *slot, int32_t component, mr_tensor *results, mr_error *error)
{
    if (slot->plan->columns[component].pad != nullptr) return mr_slot_assemble_pad(slot, component, results, error);
    const mr_tensor *rows = slot->columns[component].loose;
    for (int32_t r = 1; r < slot->rows; r++) {
        if (mr_shape_equal(rows[0].shape, rows[r].shape)) continue;
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "component %d: element %d has shape %s, element 0 has %s; shapes in a batch must be equal",
                       component, r, mr_shape_text(rows[r].shape, a, sizeof a),
                       mr_shape_text(rows[0].shape, b, sizeof b));
    }
    if (rows[0].shape.rank == MR_RANK_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "component %d already has %d dimensions", component, MR_RANK_MAX);
    return mr_slot_concatenate(rows, slot->rows, rows[0].dtype, batch_shape(slot->rows, rows[0].shape), results, error);
}

mr_status mr_slot_assemble(mr_slot *slot, mr_error *error)
{
    assert(slot->rows >= 1 && slot->result_count == 0 && slot->plan->is_batch);
    for (int32_t c = 0; c < slot->plan->count; c++) {
        const mr_column_plan *plan = &slot->plan->columns[c];
        mr_tensor *results = &slot->results[slot->result_count];
        int32_t made = mr_pad_tensors(plan->pad);
        assert(slot->result_count + made <= MR_COMPONENTS_MAX);
        for (int32_t i = 0; i < made; i++) results[i] = (mr_tensor){0};
        slot->result_count += made;
        switch (plan->kind) {
        case MR_COLUMN_FIXED:
            *results = (mr_tensor){plan->dtype, batch_shape(slot->rows, plan->shape),
                                   mr_buffer_ref(slot->columns[c].buffer), mr_buffer_data(slot->columns[c].buffer)};
            break;
        case MR_COLUMN_STRINGS:
            MR_TRY(assemble_strings(slot, c, results, error));
            break;
        case MR_COLUMN_LOOSE:
            MR_TRY(assemble_loose(slot, c, results, error));
            for (int32_t i = 0; i < made; i++) slot->extra_bytes += mr_buffer_size(results[i].buffer);
            for (int32_t r = 0; r < slot->rows; r++) mr_tensor_deinit(&slot->columns[c].loose[r]);
            break;
        }
    }
    return MR_OK;
}

mr_status mr_slot_take_row(mr_slot *slot, int32_t row, mr_tensor *tensors, mr_error *error)
{
    (void)error;
    assert(row >= 0 && row < slot->rows && slot->is_row_done[row] && slot->failures[row] == nullptr);
    for (int32_t c = 0; c < slot->plan->count; c++) {
        const mr_column_plan *plan = &slot->plan->columns[c];
        if (plan->kind == MR_COLUMN_FIXED) {
            tensors[c] =
                (mr_tensor){plan->dtype, plan->shape, mr_buffer_ref(slot->columns[c].buffer), row_data(slot, c, row)};
            continue;
        }
        tensors[c] = slot->columns[c].loose[row];
        slot->columns[c].loose[row] = (mr_tensor){0};
    }
    return MR_OK;
}
