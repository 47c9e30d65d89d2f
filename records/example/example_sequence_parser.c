/* Parses SequenceExamples into columns: one pass over each record locates the slots of its context and of its feature
 * lists, which are then processed as two batches of the same records. */
#include "records/example/example_batch.h"

#include "base/arguments.h"
#include "base/status.h"

#include <stdlib.h>

struct mr_sequence_parser {
    mr_example_parser *context, *lists;
};

mr_status mr_sequence_parser_new(const mr_feature *context, int32_t context_count, const mr_feature *lists,
                                 int32_t list_count, mr_sequence_parser **parser, mr_error *error)
{
    mr_sequence_parser *created = calloc(1, sizeof *created);
    if (created == nullptr) return mr_fail_memory(error, sizeof *created);
    mr_status status = mr_example_parser_make(MR_SCOPE_CONTEXT, context, context_count, &created->context, error);
    if (status == MR_OK) status = mr_example_parser_make(MR_SCOPE_LISTS, lists, list_count, &created->lists, error);
    if (status == MR_OK)
        *parser = created;
    else
        mr_sequence_parser_free(created);
    return status;
}

void mr_sequence_parser_free(mr_sequence_parser *parser)
{
    if (parser == nullptr) return;
    mr_example_parser_free(parser->context);
    mr_example_parser_free(parser->lists);
    free(parser);
}

/* The context or the feature lists of the records. */
typedef struct half {
    mr_example_batch batch;
    mr_example_guesses guesses;
    size_t position; /* index of the next entry of the current record */
} half;

/* Walks one record. Returns null, or the position of the damage. */
static const unsigned char *locate(half *context, half *lists, int64_t record)
{
    mr_wire wire = mr_wire_of(context->batch.records[record]), inner;
    context->position = lists->position = 0;
    while (wire.next < wire.end) {
        bool is_context = *wire.next == MR_TAG_BYTES(1);
        if (!is_context && *wire.next != MR_TAG_BYTES(2)) {
            if (!mr_wire_skip(&wire)) return wire.next;
            continue;
        }
        wire.next++;
        if (!mr_wire_bytes(&wire, &inner)) return wire.next;
        half *half = is_context ? context : lists;
        const mr_example_batch *batch = &half->batch;
        const unsigned char *at = mr_example_locate(batch->parser, inner, batch->single, &half->guesses,
                                                    &half->position, batch->located + record, batch->record_count);
        if (at != nullptr) return at;
    }
    return nullptr;
}

static mr_status parse(half *context, half *lists, mr_tensor *tensors, mr_error *error)
{
    for (int64_t i = 0; i < context->batch.record_count; i++) {
        const unsigned char *at = locate(context, lists, i);
        if (at != nullptr) return mr_example_fail_damaged(&context->batch, i, at, error);
        MR_TRY(mr_example_rows_add(&context->batch, i, error));
        MR_TRY(mr_example_rows_add(&lists->batch, i, error));
    }
    MR_TRY(mr_example_columns(&context->batch, tensors, error));
    return mr_example_columns(&lists->batch, tensors + context->batch.parser->tensor_count, error);
}

mr_status mr_sequence_parse_checked(const mr_sequence_parser *parser, const mr_string *records, int64_t record_count,
                                    bool single, mr_tensor *tensors, mr_example_fault *fault, mr_error *error)
{
    *fault = (mr_example_fault){.kind = MR_FAULT_NONE};
    half context = {.guesses = {.count = 0}}, lists = {.guesses = {.count = 0}};
    int32_t context_tensors = parser->context->tensor_count, count = context_tensors + parser->lists->tensor_count;
    for (int32_t i = 0; i < count; i++) tensors[i] = (mr_tensor){0};
    mr_status status =
        mr_example_batch_init(&context.batch, parser->context, records, record_count, single, tensors, error);
    if (status == MR_OK)
        status = mr_example_batch_init(&lists.batch, parser->lists, records, record_count, single,
                                       tensors + context_tensors, error);
    context.batch.fault = lists.batch.fault = fault;
    if (status == MR_OK) status = parse(&context, &lists, tensors, error);
    if (context.batch.parser != nullptr) mr_example_batch_deinit(&context.batch);
    if (lists.batch.parser != nullptr) mr_example_batch_deinit(&lists.batch);
    for (int32_t i = 0; status != MR_OK && i < count; i++) mr_tensor_deinit(&tensors[i]);
    return status;
}

mr_status mr_sequence_parse(const mr_sequence_parser *parser, const mr_string *records, int64_t record_count,
                            bool single, mr_tensor *tensors, mr_error *error)
{
    MR_REFUSE_NULL(parser, error);
    mr_example_fault fault;
    return mr_sequence_parse_checked(parser, records, record_count, single, tensors, &fault, error);
}
