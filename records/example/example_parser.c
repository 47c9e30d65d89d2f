/* Finds features by name in the wire bytes of Examples: in one pass, without objects and without allocations for each
 * record. */
#include "records/example/example_batch.h"

#include "base/arguments.h"
#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* The list of a feature that is present but has no list: empty. */
static const unsigned char empty_list[1] = {0};

/* The kind of a context feature whose first tag is invalid. It is an error only if no later feature of the same name
 * replaces it. */
static constexpr mr_feature_kind NO_KIND = (mr_feature_kind)(MR_FEATURE_INT64 + 1);

const unsigned char *mr_example_locate(const mr_example_parser *parser, mr_wire features, bool single,
                                       mr_example_guesses *guesses, size_t *position, mr_located *located,
                                       int64_t stride)
{
    size_t at = *position;
    for (; features.next < features.end; at++) {
        mr_wire_entry entry;
        if (!mr_wire_entry_read(&features, &entry)) return features.next;
        int32_t slot = mr_example_guess(&parser->table, guesses, at, entry.name.next, mr_wire_left(&entry.name));
        if (slot < 0) continue;
        assert(slot < parser->slot_count && stride > 0);
        mr_feature_kind kind = MR_FEATURE_BYTES;
        if (parser->scope != MR_SCOPE_LISTS) {
            if (!mr_wire_kind(&entry.feature, &kind)) {
                if (parser->scope == MR_SCOPE_EXAMPLE) return entry.feature.next;
                kind = NO_KIND;
            } else if (kind == MR_FEATURE_NONE && parser->scope == MR_SCOPE_CONTEXT) {
                located[slot * stride] = (mr_located){empty_list, sizeof(empty_list), parser->slots[slot].kind};
                continue;
            }
            if (kind == MR_FEATURE_NONE && (single || parser->slots[slot].use == MR_USE_DENSE)) continue;
        }
        located[slot * stride] = (mr_located){entry.feature.next, (uint32_t)mr_wire_left(&entry.feature), kind};
    }
    *position = at;
    return nullptr;
}

/* Walks one Example whose slots have not been located. Returns null, or the position of the damage. */
static const unsigned char *locate(const mr_example_parser *parser, mr_string record, bool single,
                                   mr_example_guesses *guesses, mr_located *located, int64_t stride)
{
    mr_wire wire = mr_wire_of(record), features;
    size_t position = 0;
    while (wire.next < wire.end) {
        if (!mr_wire_tag(&wire, MR_TAG_BYTES(1))) {
            if (!mr_wire_skip(&wire)) return wire.next;
            continue;
        }
        if (!mr_wire_bytes(&wire, &features)) return wire.next;
        const unsigned char *at = mr_example_locate(parser, features, single, guesses, &position, located, stride);
        if (at != nullptr) return at;
    }
    return nullptr;
}

mr_status mr_example_find(const mr_example_parser *parser, mr_string record, mr_feature_view *views, mr_error *error)
{
    MR_REFUSE_NULL(parser, error);
    MR_REFUSE_NULL(views, error);
    static constexpr int32_t ON_STACK = 32;
    mr_located few[ON_STACK], *located = few;
    if (parser->slot_count > ON_STACK) {
        located = malloc((size_t)parser->slot_count * sizeof(mr_located));
        if (located == nullptr) return mr_fail_memory(error, (size_t)parser->slot_count * sizeof(mr_located));
    }
    mr_example_guesses none = {.count = 0};
    mr_example_batch batch = {.parser = parser, .records = &record, .record_count = 1, .single = true};
    for (int32_t i = 0; i < parser->slot_count; i++) located[i] = (mr_located){0};
    const unsigned char *at = locate(parser, record, true, &none, located, 1);
    mr_status status = at != nullptr ? mr_example_fail_damaged(&batch, 0, at, error) : MR_OK;
    for (int32_t i = 0; i < parser->output_count && status == MR_OK; i++) {
        int32_t slot = parser->outputs[i].slot;
        assert(slot >= 0 && slot < parser->slot_count);
        views[i] = (mr_feature_view){.name = parser->names[slot], .kind = located[slot].kind};
        if (located[slot].kind == MR_FEATURE_NONE) continue;
        mr_wire list = {located[slot].next, located[slot].next + located[slot].size_bytes};
        if (!mr_wire_bytes(&list, &list)) status = mr_example_fail_damaged(&batch, 0, list.next, error);
        views[i].list = (mr_string){(const char *)list.next, mr_wire_left(&list)};
    }
    if (located != few) free(located);
    return status;
}

/* ---- Batches ---- */

mr_status mr_example_batch_init(mr_example_batch *batch, const mr_example_parser *parser, const mr_string *records,
                                int64_t record_count, bool single, mr_tensor *tensors, mr_error *error)
{
    for (int32_t i = 0; i < parser->tensor_count; i++) tensors[i] = (mr_tensor){0};
    *batch = (mr_example_batch){.parser = parser, .records = records, .record_count = record_count, .single = single};
    if (record_count < 0 || (single && record_count != 1))
        return mr_fail(error, MR_INVALID_ARGUMENT, "cannot parse %" PRId64 " records%s", record_count,
                       single ? " as a single record" : "");
    size_t located_size, rows_size = (size_t)parser->slot_count * sizeof(mr_example_rows);
    if (__builtin_mul_overflow((size_t)record_count, (size_t)parser->slot_count * sizeof(mr_located), &located_size))
        return mr_fail_memory(error, SIZE_MAX);
    batch->located = calloc(1, located_size + 1); /* MR_FEATURE_NONE is 0 */
    batch->rows = calloc(1, rows_size + 1);
    if (batch->located == nullptr || batch->rows == nullptr) return mr_fail_memory(error, located_size + rows_size);
    return mr_example_rows_begin(batch, error);
}

void mr_example_batch_deinit(mr_example_batch *batch)
{
    for (int32_t i = 0; batch->rows != nullptr && i < batch->parser->slot_count; i++) {
        free(batch->rows[i].items);
        free(batch->rows[i].splits);
    }
    free(batch->rows);
    free(batch->located);
    *batch = (mr_example_batch){0};
}

mr_status mr_example_columns(const mr_example_batch *batch, mr_tensor *tensors, mr_error *error)
{
    const mr_example_parser *parser = batch->parser;
    for (int32_t i = 0; i < parser->output_count; i++) {
        const mr_example_output *output = &parser->outputs[i];
        assert(output->first >= 0 && output->first < parser->tensor_count);
        if (output->form == MR_RAGGED)
            MR_TRY(mr_example_ragged(batch, output, tensors + output->first, error));
        else if (output->form == MR_SPARSE)
            MR_TRY(mr_example_sparse(batch, output, tensors + output->first, error));
        else if (parser->scope == MR_SCOPE_LISTS)
            MR_TRY(mr_sequence_column(batch, output, tensors + output->first, error));
        else
            MR_TRY(mr_example_column(batch, output, tensors + output->first, error));
    }
    return MR_OK;
}

static mr_status locate_all(const mr_example_batch *batch, mr_error *error)
{
    mr_example_guesses guesses = {.count = 0};
    for (int64_t i = 0; i < batch->record_count; i++) {
        const unsigned char *at =
            locate(batch->parser, batch->records[i], batch->single, &guesses, batch->located + i, batch->record_count);
        if (at != nullptr) return mr_example_fail_damaged(batch, i, at, error);
        MR_TRY(mr_example_rows_add(batch, i, error));
    }
    return MR_OK;
}

mr_status mr_example_parse_checked(const mr_example_parser *parser, const mr_string *records, int64_t record_count,
                                   bool single, mr_tensor *tensors, mr_example_fault *fault, mr_error *error)
{
    mr_example_batch batch;
    *fault = (mr_example_fault){.kind = MR_FAULT_NONE};
    mr_status status = mr_example_batch_init(&batch, parser, records, record_count, single, tensors, error);
    batch.fault = fault;
    if (status == MR_OK) status = locate_all(&batch, error);
    if (status == MR_OK) status = mr_example_columns(&batch, tensors, error);
    mr_example_batch_deinit(&batch);
    for (int32_t i = 0; status != MR_OK && i < parser->tensor_count; i++) mr_tensor_deinit(&tensors[i]);
    return status;
}

mr_status mr_example_parse(const mr_example_parser *parser, const mr_string *records, int64_t record_count, bool single,
                           mr_tensor *tensors, mr_error *error)
{
    MR_REFUSE_NULL(parser, error);
    mr_example_fault fault;
    return mr_example_parse_checked(parser, records, record_count, single, tensors, &fault, error);
}
