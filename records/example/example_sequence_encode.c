/* The encoder of SequenceExamples, without protobuf objects. Steps are serialized as they are added; those of different
 * lists may be added in any order. Finish sorts them by name, keeps the order of steps of the same name, and writes the
 * enclosing messages. Like protobuf's deterministic serialization it omits empty messages. */
#include "records/example/example_encode.h"

#include "base/arguments.h"
#include "base/status.h"

#include <assert.h>

void mr_sequence_add_bytes_list(mr_sequence_encoder *encoder, const char *name, const mr_string *values, size_t count)
{
    if (encoder == nullptr) return;
    mr_encoded_add_bytes(&encoder->lists, name, values, count);
}

void mr_sequence_add_int64_list(mr_sequence_encoder *encoder, const char *name, const int64_t *values, size_t count)
{
    if (encoder == nullptr) return;
    mr_encoded_add_int64s(&encoder->lists, name, values, count);
}

void mr_sequence_add_float_list(mr_sequence_encoder *encoder, const char *name, const float *values, size_t count)
{
    if (encoder == nullptr) return;
    mr_encoded_add_floats(&encoder->lists, name, values, count);
}

void mr_sequence_add_list(mr_sequence_encoder *encoder, const char *name)
{
    if (encoder == nullptr) return;
    mr_encoded_add_name(&encoder->lists, name);
}

/* Returns the entry after the last step of the list that begins at an entry, and the size of its FeatureList. */
static size_t list_end(const struct mr_example_state *lists, size_t first, size_t *list_size)
{
    size_t end = first;
    *list_size = 0;
    for (; end < lists->count && mr_encoded_compare_names(lists, &lists->entries[first], &lists->entries[end]) == 0;
         end++)
        if (lists->entries[end].feature_size != MR_ENCODED_NO_STEP)
            *list_size += mr_encoded_field_size(lists->entries[end].feature_size);
    assert(end > first && end <= lists->count);
    return end;
}

static size_t list_entry_size(const struct mr_example_state *lists, size_t first, size_t list_size)
{
    return mr_encoded_field_size(lists->entries[first].name_size) + mr_encoded_field_size(list_size);
}

static size_t lists_size(const struct mr_example_state *lists)
{
    size_t size = 0, list_size;
    for (size_t first = 0, end; first < lists->count; first = end) {
        end = list_end(lists, first, &list_size);
        size += mr_encoded_field_size(list_entry_size(lists, first, list_size));
    }
    return size;
}

static unsigned char *put_lists(const struct mr_example_state *lists, unsigned char *next)
{
    const unsigned char *parts = lists->parts.data;
    size_t list_size;
    for (size_t first = 0, end; first < lists->count; first = end) {
        const mr_encoded *entry = &lists->entries[first];
        end = list_end(lists, first, &list_size);
        next = mr_encoded_put_head(next, 1, list_entry_size(lists, first, list_size));
        next = mr_encoded_put_head(next, 1, entry->name_size);
        memcpy(next, parts + entry->name_offset, entry->name_size);
        next = mr_encoded_put_head(next + entry->name_size, 2, list_size);
        for (size_t i = first; i < end; i++) {
            const mr_encoded *step = &lists->entries[i];
            if (step->feature_size == MR_ENCODED_NO_STEP) continue;
            next = mr_encoded_put_head(next, 1, step->feature_size);
            memcpy(next, parts + step->feature_offset, step->feature_size);
            next += step->feature_size;
        }
    }
    return next;
}

static mr_status assemble(struct mr_example_state *context, struct mr_example_state *lists, mr_error *error)
{
    size_t features_bytes, lists_bytes;
    mr_encoded_sort(context);
    mr_encoded_sort(lists);
    MR_TRY(mr_encoded_features_size(context, &features_bytes, error));
    if (lists->fault.status != MR_OK) return mr_fail(error, lists->fault.status, "%s", lists->fault.message);
    lists_bytes = lists_size(lists);
    size_t size = (context->count > 0 ? mr_encoded_field_size(features_bytes) : 0) +
                  (lists->count > 0 ? mr_encoded_field_size(lists_bytes) : 0);
    if (size > MR_EXAMPLE_SIZE_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the SequenceExample has %zu bytes, more than the limit of %zu",
                       size, (size_t)MR_EXAMPLE_SIZE_MAX);
    lists->record.size = 0;
    unsigned char *next = mr_encoded_reserve(&lists->record, size + 1);
    if (next == nullptr) return mr_fail_memory(error, size);
    if (context->count > 0) next = mr_encoded_put_features(context, mr_encoded_put_head(next, 1, features_bytes));
    if (lists->count > 0) next = put_lists(lists, mr_encoded_put_head(next, 2, lists_bytes));
    lists->record.size = size;
    assert(next == lists->record.data + size);
    return MR_OK;
}

mr_status mr_sequence_finish(mr_sequence_encoder *encoder, mr_string *record, mr_error *error)
{
    MR_REFUSE_NULL(encoder, error);
    MR_REFUSE_NULL(record, error);
    struct mr_example_state *context = mr_encoded_state(&encoder->context.state);
    struct mr_example_state *lists = mr_encoded_state(&encoder->lists);
    mr_status status = assemble(context, lists, error);
    if (status == MR_OK) *record = (mr_string){(const char *)lists->record.data, lists->record.size};
    mr_encoded_clear(&encoder->context.state);
    mr_encoded_clear(&encoder->lists);
    return status;
}

void mr_sequence_encoder_deinit(mr_sequence_encoder *encoder)
{
    if (encoder == nullptr) return;
    mr_example_encoder_deinit(&encoder->context);
    mr_encoded_free(encoder->lists);
    *encoder = (mr_sequence_encoder){0};
}
