/* Columns of a batch from the lists that were found: one function for each form. Every list is checked and counted
 * first, so that each tensor is made once, in its final size, and filled without a further check. */
#include "records/example_parser.h"

#include "base/arena.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* What a column is made of; see mr_example_column. */
typedef struct column {
    const mr_example_slot *slot;
    const mr_string *records;
    int64_t record_count;
    bool single;
    mr_located *located;
    int32_t step;
    int64_t *counts; /* values of each record's list; 0 when missing */
    int64_t total, longest;
} column;

static mr_located *located_at(const column *column, int64_t record)
{
    return column->located + record * column->step;
}

/* ---- Errors ---- */

static constexpr int NAME_BYTES_SHOWN = 100;

static int shown(const mr_example_slot *slot)
{
    return slot->name.size_bytes < (size_t)NAME_BYTES_SHOWN ? (int)slot->name.size_bytes : NAME_BYTES_SHOWN;
}

static mr_status fail_missing(const column *column, int64_t record, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    return mr_fail(error, MR_INVALID_ARGUMENT, "%sfeature \"%.*s\" is missing",
                   mr_example_where(record, column->single, where), shown(column->slot), column->slot->name.data);
}

static mr_status fail_kind(const column *column, int64_t record, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    return mr_fail(error, MR_INVALID_ARGUMENT, "%sfeature \"%.*s\" holds %s, not %s",
                   mr_example_where(record, column->single, where), shown(column->slot), column->slot->name.data,
                   mr_feature_kind_name(located_at(column, record)->kind), mr_feature_kind_name(column->slot->kind));
}

static mr_status fail_damaged(const column *column, int64_t record, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    const unsigned char *begin = (const unsigned char *)column->records[record].data;
    return mr_fail(error, MR_DATA_LOSS, "%sfeature \"%.*s\" is damaged: its list begins at byte %zu of %zu",
                   mr_example_where(record, column->single, where), shown(column->slot), column->slot->name.data,
                   (size_t)(located_at(column, record)->next - begin), column->records[record].size_bytes);
}

static mr_status fail_count(const column *column, int64_t record, size_t count, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE], text[MR_SHAPE_TEXT_SIZE];
    bool is_sequence = column->slot->form == MR_FIXED_SEQUENCE;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%sfeature \"%.*s\" has %zu values, and the shape %s takes %s%" PRId64,
                   mr_example_where(record, column->single, where), shown(column->slot), column->slot->name.data, count,
                   mr_shape_text(column->slot->shape, text, sizeof(text)), is_sequence ? "a multiple of " : "",
                   column->slot->stride);
}

/* ---- Lists ---- */

/* Checks kind and bytes of a record's list; *is_there false when it is missing. */
static mr_status list_of(const column *column, int64_t record, bool *is_there, mr_wire *list, mr_error *error)
{
    const mr_located *located = located_at(column, record);
    *is_there = located->kind != MR_FEATURE_NONE;
    if (!*is_there) return MR_OK;
    if (located->kind != column->slot->kind) return fail_kind(column, record, error);
    *list = (mr_wire){located->next, located->next + located->size_bytes};
    return mr_wire_bytes(list, list) ? MR_OK : fail_damaged(column, record, error);
}

/* Counts all lists, and leaves in each mr_located the list without its length. */
static mr_status count_lists(column *column, mr_error *error)
{
    for (int64_t i = 0; i < column->record_count; i++) {
        mr_wire list;
        bool is_there;
        size_t count = 0;
        MR_TRY(list_of(column, i, &is_there, &list, error));
        if (is_there) {
            if (!mr_wire_count(column->slot->kind, list, &count)) return fail_damaged(column, i, error);
            mr_located *located = located_at(column, i);
            located->next = list.next;
            located->size_bytes = (uint32_t)mr_wire_left(&list);
        }
        column->counts[i] = (int64_t)count;
        column->total += (int64_t)count;
        if ((int64_t)count > column->longest) column->longest = (int64_t)count;
    }
    return MR_OK;
}

static void fill_list(const column *column, int64_t record, void *values)
{
    const mr_located *located = located_at(column, record);
    mr_wire list = {located->next, located->next + located->size_bytes};
    size_t count = (size_t)column->counts[record];
    switch (column->slot->kind) {
    case MR_FEATURE_BYTES:
        mr_wire_strings(list, values);
        break;
    case MR_FEATURE_FLOAT:
        mr_wire_floats(list, count, values);
        break;
    case MR_FEATURE_INT64:
        mr_wire_int64s(list, count, values);
        break;
    case MR_FEATURE_NONE:
        assert(false);
    }
}

/* ---- Values on their way into a tensor: numbers go straight there, strings are gathered as views first ---- */

typedef struct target {
    mr_tensor *tensor;
    mr_shape shape;
    size_t element_bytes;
    char *values;
    mr_string *views; /* owned; null for numbers */
} target;

static mr_status target_open(target *target, mr_dtype dtype, mr_shape shape, mr_tensor *tensor, mr_error *error)
{
    *target = (struct target){.tensor = tensor, .shape = shape, .element_bytes = mr_dtype_size(dtype)};
    if (dtype != MR_STRING) {
        MR_TRY(mr_tensor_init(tensor, dtype, shape, error));
        target->values = tensor->data;
        return MR_OK;
    }
    int64_t count = mr_shape_count(shape);
    size_t size;
    if (count < 0 || __builtin_mul_overflow((size_t)count, sizeof(mr_string), &size))
        return mr_fail_memory(error, SIZE_MAX);
    target->views = calloc(1, size + 1);
    if (!target->views) return mr_fail_memory(error, size);
    target->values = (char *)target->views;
    return MR_OK;
}

static void *target_at(const target *target, int64_t element)
{
    return target->values + (size_t)element * target->element_bytes;
}

static mr_status target_close(target *target, mr_error *error)
{
    if (!target->views) return MR_OK;
    mr_status status = mr_tensor_init_strings(target->tensor, target->shape, target->views, error);
    free(target->views);
    return status;
}

/* shape with the batch before it. */
static mr_shape batched(const column *column, mr_shape shape)
{
    if (column->single) return shape;
    mr_shape result = {.rank = shape.rank + 1, .dims = {column->record_count}};
    for (int32_t i = 0; i < shape.rank; i++) result.dims[i + 1] = shape.dims[i];
    return result;
}

/* ---- Forms ---- */

/* The commonest list: one integer, packed, as TensorFlow and everybody writes it. */
static inline bool one_packed_int64(mr_wire list, int64_t *value)
{
    size_t left = mr_wire_left(&list);
    if (left < 3 || list.next[0] != MR_TAG_BYTES(1) || list.next[1] != left - 2) return false;
    uint64_t varint = 0;
    list.next += 2;
    if (!mr_wire_varint(&list, &varint) || list.next != list.end) return false;
    *value = (int64_t)varint;
    return true;
}

static mr_status fill_fixed(const column *column, const target *target, mr_error *error)
{
    const mr_example_slot *slot = column->slot;
    int64_t stride = slot->stride;
    for (int64_t i = 0; i < column->record_count; i++) {
        mr_wire list = {0};
        bool is_there;
        void *values = target_at(target, i * stride);
        MR_TRY(list_of(column, i, &is_there, &list, error));
        if (!is_there) {
            if (!slot->fallback.buffer) return fail_missing(column, i, error);
            if (stride > 0) memcpy(values, slot->fallback.data, (size_t)stride * target->element_bytes);
            continue;
        }
        if (stride == 1 && slot->kind == MR_FEATURE_INT64 && one_packed_int64(list, values)) continue;
        size_t count;
        if (!mr_wire_count(slot->kind, list, &count)) return fail_damaged(column, i, error);
        if (count != (size_t)stride) return fail_count(column, i, count, error);
        if (slot->kind == MR_FEATURE_BYTES)
            mr_wire_strings(list, values);
        else if (slot->kind == MR_FEATURE_FLOAT)
            mr_wire_floats(list, count, values);
        else
            mr_wire_int64s(list, count, values);
    }
    return MR_OK;
}

static mr_status fixed(const column *column, mr_tensor *tensors, mr_error *error)
{
    target target;
    MR_TRY(target_open(&target, column->slot->dtype, batched(column, column->slot->shape), &tensors[0], error));
    mr_status status = fill_fixed(column, &target, error);
    if (status == MR_OK) return target_close(&target, error);
    free(target.views);
    return status;
}

static mr_status fixed_sequence(column *column, mr_tensor *tensors, mr_error *error)
{
    const mr_example_slot *slot = column->slot;
    MR_TRY(count_lists(column, error));
    for (int64_t i = 0; i < column->record_count; i++)
        if (column->counts[i] % slot->stride != 0) return fail_count(column, i, (size_t)column->counts[i], error);
    mr_shape shape = {.rank = slot->shape.rank + 1, .dims = {column->longest / slot->stride}};
    for (int32_t i = 0; i < slot->shape.rank; i++) shape.dims[i + 1] = slot->shape.dims[i];
    target target;
    MR_TRY(target_open(&target, slot->dtype, batched(column, shape), &tensors[0], error));
    for (int64_t i = 0; i < column->record_count; i++) {
        char *values = target_at(&target, i * column->longest);
        size_t used = (size_t)column->counts[i], row = (size_t)column->longest, size = target.element_bytes;
        if (used > 0) fill_list(column, i, values);
        if (!slot->fallback.buffer) {
            if (row > used) memset(values + used * size, 0, (row - used) * size);
            continue;
        }
        for (size_t j = used; j < row; j++) memcpy(values + j * size, slot->fallback.data, size);
    }
    return target_close(&target, error);
}

/* All values, one list behind the other: what variable and ragged features share. */
static mr_status fill_values(column *column, mr_tensor *tensor, mr_error *error)
{
    target target;
    MR_TRY(target_open(&target, column->slot->dtype, MR_SHAPE(column->total), tensor, error));
    int64_t place = 0;
    for (int64_t i = 0; i < column->record_count; i++) {
        if (column->counts[i] > 0) fill_list(column, i, target_at(&target, place));
        place += column->counts[i];
    }
    return target_close(&target, error);
}

static mr_status variable(column *column, mr_tensor *tensors, mr_error *error)
{
    MR_TRY(count_lists(column, error));
    int32_t rank = column->single ? 1 : 2;
    MR_TRY(mr_tensor_init(&tensors[0], MR_INT64, MR_SHAPE(column->total, rank), error));
    int64_t *index = mr_tensor_int64s(&tensors[0]);
    for (int64_t i = 0; i < column->record_count; i++) {
        for (int64_t j = 0; j < column->counts[i]; j++) {
            if (!column->single) *index++ = i;
            *index++ = j;
        }
    }
    MR_TRY(fill_values(column, &tensors[1], error));
    int64_t dense[2] = {column->record_count, column->longest};
    return mr_tensor_init_copy(&tensors[2], MR_INT64, MR_SHAPE(rank), column->single ? &dense[1] : dense, error);
}

static mr_status ragged(column *column, mr_tensor *tensors, mr_error *error)
{
    MR_TRY(count_lists(column, error));
    MR_TRY(fill_values(column, &tensors[0], error));
    MR_TRY(mr_tensor_init(&tensors[1], MR_INT64, MR_SHAPE(column->single ? 0 : column->record_count + 1), error));
    if (column->single) return MR_OK;
    int64_t *splits = mr_tensor_int64s(&tensors[1]);
    splits[0] = 0;
    for (int64_t i = 0; i < column->record_count; i++) splits[i + 1] = splits[i] + column->counts[i];
    return MR_OK;
}

mr_status mr_example_column(const mr_example_slot *slot, const mr_string *records, int64_t record_count, bool single,
                            mr_located *located, int32_t slot_count, int64_t *counts, mr_tensor *tensors,
                            mr_error *error)
{
    column column = {.slot = slot,
                     .records = records,
                     .record_count = record_count,
                     .single = single,
                     .located = located,
                     .step = slot_count,
                     .counts = counts};
    switch (slot->form) {
    case MR_FIXED:
        return fixed(&column, tensors, error);
    case MR_FIXED_SEQUENCE:
        return fixed_sequence(&column, tensors, error);
    case MR_VARIABLE:
        return variable(&column, tensors, error);
    case MR_RAGGED:
        return ragged(&column, tensors, error);
    }
    return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%.*s\" has no form", shown(slot), slot->name.data);
}
