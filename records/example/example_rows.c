/* Rows: the lists of a slot in a batch, checked and counted once, so that each tensor is allocated once, in its final
 * size, and filled without further checks. A row is the list of a record or, for a feature list, of a step. Also: the
 * errors about rows. */
#include "records/example/example_batch.h"

#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Errors ---- */

static constexpr int NAME_BYTES_SHOWN = 100;

int mr_example_shown(mr_string name)
{
    return name.size_bytes < (size_t)NAME_BYTES_SHOWN ? (int)name.size_bytes : NAME_BYTES_SHOWN;
}

/* Finds the record of a row, and its step, or -1. */
static void locate_row(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row, int64_t *record,
                       int64_t *step)
{
    *record = row, *step = -1;
    if (rows == nullptr || rows->splits == nullptr) return;
    for (*record = 0; *record + 1 < batch->record_count && rows->splits[*record + 1] <= row;) ++*record;
    *step = row - rows->splits[*record];
}

/* slot  -1: none */
static void set_fault(const mr_example_batch *batch, mr_fault_kind kind, const mr_example_rows *rows, int64_t row,
                      int32_t slot, mr_feature_kind found, size_t count)
{
    static const mr_dtype dtypes[] = {MR_DTYPE_INVALID, MR_STRING, MR_FLOAT, MR_INT64};
    mr_example_fault *fault = batch->fault;
    const mr_example_parser *parser = batch->parser;
    if (fault == nullptr) return;
    *fault = (mr_example_fault){.kind = kind,
                                .in_context = parser->scope == MR_SCOPE_CONTEXT,
                                .in_lists = parser->scope == MR_SCOPE_LISTS,
                                .found = dtypes[found],
                                .count = count};
    locate_row(batch, rows, row, &fault->record, &fault->step);
    if (slot < 0) return;
    fault->name = parser->names[slot];
    fault->dtype = dtypes[parser->slots[slot].kind];
    for (int32_t i = 0; i < parser->output_count; i++)
        if (parser->outputs[i].slot == slot) {
            fault->form = parser->outputs[i].form;
            fault->shape = parser->outputs[i].shape;
            return;
        }
}

const char *mr_example_noun(const mr_example_parser *parser)
{
    return parser->scope == MR_SCOPE_LISTS ? "feature list" : "feature";
}

const char *mr_example_where(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row,
                             char text[MR_EXAMPLE_WHERE_SIZE])
{
    int64_t record, step;
    locate_row(batch, rows, row, &record, &step);
    char *next = text;
    size_t left = MR_EXAMPLE_WHERE_SIZE;
    text[0] = '\0';
    if (!batch->single) {
        int used = snprintf(next, left, "record %" PRId64 ": ", record);
        assert(used > 0 && (size_t)used < left);
        next += used;
        left -= (size_t)used;
    }
    if (step >= 0) (void)snprintf(next, left, "step %" PRId64 ": ", step);
    return text;
}

mr_status mr_example_fail_damaged(const mr_example_batch *batch, int64_t record, const unsigned char *at,
                                  mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    mr_string bytes = batch->records[record];
    set_fault(batch, MR_FAULT_DAMAGED, nullptr, record, -1, MR_FEATURE_NONE, 0);
    assert(at >= (const unsigned char *)bytes.data &&
           (size_t)(at - (const unsigned char *)bytes.data) <= bytes.size_bytes);
    return mr_fail(error, MR_DATA_LOSS, "%sthe %s is damaged at byte %zu of %zu",
                   mr_example_where(batch, nullptr, record, where),
                   batch->parser->scope == MR_SCOPE_EXAMPLE ? "Example" : "SequenceExample",
                   (size_t)(at - (const unsigned char *)bytes.data), bytes.size_bytes);
}

mr_status mr_example_fail_missing(const mr_example_batch *batch, int64_t record, int32_t slot, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    mr_string name = batch->parser->names[slot];
    set_fault(batch, MR_FAULT_MISSING, nullptr, record, slot, MR_FEATURE_NONE, 0);
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s%s \"%.*s\" is missing",
                   mr_example_where(batch, nullptr, record, where), mr_example_noun(batch->parser),
                   mr_example_shown(name), name.data);
}

mr_status mr_example_fail_kind(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row, int32_t slot,
                               mr_feature_kind found, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    mr_string name = batch->parser->names[slot];
    set_fault(batch, MR_FAULT_DTYPE, rows, row, slot, found, 0);
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s%s \"%.*s\" holds %s, not %s",
                   mr_example_where(batch, rows, row, where), mr_example_noun(batch->parser), mr_example_shown(name),
                   name.data, mr_feature_kind_name(found), mr_feature_kind_name(batch->parser->slots[slot].kind));
}

mr_status mr_example_fail_list(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row, int64_t record,
                               int32_t slot, const unsigned char *at, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    mr_string name = batch->parser->names[slot], bytes = batch->records[record];
    set_fault(batch, MR_FAULT_DAMAGED, rows, row, slot, MR_FEATURE_NONE, 0);
    return mr_fail(error, MR_DATA_LOSS, "%s%s \"%.*s\" is damaged: its list begins at byte %zu of %zu",
                   mr_example_where(batch, rows, row, where), mr_example_noun(batch->parser), mr_example_shown(name),
                   name.data, (size_t)(at - (const unsigned char *)bytes.data), bytes.size_bytes);
}

mr_status mr_example_fail_count(const mr_example_batch *batch, const mr_example_rows *rows, int64_t row,
                                const mr_example_output *output, size_t count, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE], text[MR_SHAPE_TEXT_SIZE];
    bool is_sequence = output->form == MR_FIXED_LEN_SEQUENCE && batch->parser->scope == MR_SCOPE_EXAMPLE;
    set_fault(batch, MR_FAULT_COUNT, rows, row, output->slot, MR_FEATURE_NONE, count);
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s%s \"%.*s\" has %zu values, but shape %s requires %s%" PRId64,
                   mr_example_where(batch, rows, row, where), mr_example_noun(batch->parser),
                   mr_example_shown(output->name), output->name.data, count,
                   mr_shape_text(output->shape, text, sizeof(text)), is_sequence ? "a multiple of " : "",
                   output->stride);
}

/* ---- Records ---- */

static mr_status add_record(const mr_example_batch *batch, int64_t record, int32_t slot, mr_error *error)
{
    mr_example_rows *rows = &batch->rows[slot];
    assert(rows->count == record && rows->count < rows->capacity);
    mr_feature_kind kind = batch->parser->slots[slot].kind;
    const mr_located *located = mr_example_located(batch, record, slot);
    mr_example_row *row = &rows->items[rows->count++];
    *row = (mr_example_row){0};
    if (located->kind == MR_FEATURE_NONE) return MR_OK;
    if (located->kind != kind) return mr_example_fail_kind(batch, nullptr, record, slot, located->kind, error);
    mr_wire list = {located->next, located->next + located->size_bytes};
    size_t count;
    if (!mr_wire_bytes(&list, &list) || !mr_wire_count(kind, list, &count))
        return mr_example_fail_list(batch, nullptr, record, record, slot, located->next, error);
    *row = (mr_example_row){list.next, (uint32_t)mr_wire_left(&list), (uint32_t)count};
    rows->total += (int64_t)count;
    if ((int64_t)count > rows->longest) rows->longest = (int64_t)count;
    return MR_OK;
}

/* ---- Steps ---- */

/* Reserves more rows. */
static mr_status grow(mr_example_rows *rows, mr_error *error)
{
    assert(rows->capacity > 0 && rows->count <= rows->capacity);
    int64_t grown = rows->capacity * 2;
    mr_example_row *items = realloc(rows->items, (size_t)grown * sizeof *items);
    if (items == nullptr) return mr_fail_memory(error, (size_t)grown * sizeof *items);
    rows->items = items;
    rows->capacity = grown;
    return MR_OK;
}

/* Reports the error in a step, given from its beginning. The row that it would have become is the next one. */
static mr_status fail_step(const mr_example_batch *batch, int64_t record, int32_t slot, mr_wire step, mr_error *error)
{
    const mr_example_rows *rows = &batch->rows[slot];
    const unsigned char *begin = step.next;
    mr_feature_kind kind;
    if (mr_wire_tag(&step, MR_TAG_BYTES(1)) && mr_wire_bytes(&step, &step) && mr_wire_kind(&step, &kind) &&
        kind != MR_FEATURE_NONE && kind != batch->parser->slots[slot].kind)
        return mr_example_fail_kind(batch, rows, rows->count, slot, kind, error);
    return mr_example_fail_list(batch, rows, rows->count, record, slot, begin, error);
}

/* Reads the next step; false if it is invalid. A Feature without a list has no values. */
static inline bool read_step(mr_wire *steps, mr_feature_kind wanted, mr_example_row *row)
{
    mr_wire feature;
    mr_feature_kind kind;
    size_t count;
    if (!mr_wire_tag(steps, MR_TAG_BYTES(1)) || !mr_wire_bytes(steps, &feature) || !mr_wire_kind(&feature, &kind))
        return false;
    *row = (mr_example_row){0};
    if (kind == MR_FEATURE_NONE) return true;
    if (kind != wanted || !mr_wire_bytes(&feature, &feature) || !mr_wire_count(kind, feature, &count)) return false;
    *row = (mr_example_row){feature.next, (uint32_t)mr_wire_left(&feature), (uint32_t)count};
    return true;
}

static mr_status add_steps(const mr_example_batch *batch, int64_t record, int32_t slot, mr_error *error)
{
    mr_example_rows *rows = &batch->rows[slot];
    const mr_located *located = mr_example_located(batch, record, slot);
    mr_feature_kind kind = batch->parser->slots[slot].kind;
    mr_wire steps = {0};
    if (located->kind != MR_FEATURE_NONE && located->size_bytes > 0)
        steps = (mr_wire){located->next, located->next + located->size_bytes};
    /* The end of this record's rows is unknown until it has been read; errors derive the step from the rows so far. */
    int64_t begin = rows->count, count = begin, total = 0, longest = rows->longest;
    assert(record < batch->record_count && begin <= rows->capacity);
    rows->splits[record] = begin;
    rows->splits[record + 1] = INT64_MAX;
    for (; steps.next < steps.end; count++) {
        rows->count = count;
        if (count == rows->capacity) MR_TRY(grow(rows, error));
        assert(count < rows->capacity);
        mr_wire step = steps;
        if (!read_step(&steps, kind, &rows->items[count])) return fail_step(batch, record, slot, step, error);
        int64_t values = rows->items[count].count;
        total += values;
        if (values > longest) longest = values;
    }
    rows->count = rows->splits[record + 1] = count;
    rows->total += total;
    rows->longest = longest;
    if (count - begin > rows->most) rows->most = count - begin;
    return MR_OK;
}

/* ---- Records and steps ---- */

mr_status mr_example_rows_begin(const mr_example_batch *batch, mr_error *error)
{
    const mr_example_parser *parser = batch->parser;
    bool is_list = parser->scope == MR_SCOPE_LISTS;
    for (int32_t slot = 0; slot < parser->slot_count; slot++) {
        mr_example_rows *rows = &batch->rows[slot];
        if (!parser->slots[slot].has_rows) continue;
        rows->capacity = batch->record_count + 64;
        size_t size = (size_t)rows->capacity * sizeof *rows->items;
        rows->items = malloc(size);
        if (is_list) rows->splits = malloc(size);
        if (rows->items == nullptr || (is_list && rows->splits == nullptr)) return mr_fail_memory(error, size);
        if (is_list) rows->splits[0] = 0;
    }
    return MR_OK;
}

mr_status mr_example_rows_add(const mr_example_batch *batch, int64_t record, mr_error *error)
{
    const mr_example_parser *parser = batch->parser;
    for (int32_t slot = 0; slot < parser->slot_count; slot++) {
        if (!parser->slots[slot].has_rows) continue;
        MR_TRY(parser->scope == MR_SCOPE_LISTS ? add_steps(batch, record, slot, error)
                                               : add_record(batch, record, slot, error));
    }
    return MR_OK;
}

void mr_example_row_values(mr_feature_kind kind, const mr_example_row *row, void *values)
{
    mr_wire list = {row->list, row->list + row->size_bytes};
    switch (kind) {
    case MR_FEATURE_BYTES:
        mr_wire_strings(list, values);
        break;
    case MR_FEATURE_FLOAT:
        mr_wire_floats(list, row->count, values);
        break;
    case MR_FEATURE_INT64:
        mr_wire_int64s(list, row->count, values);
        break;
    case MR_FEATURE_NONE:
        assert(false);
    }
}
