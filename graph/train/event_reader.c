/* Reads event files: each record is an Event, whose parts are borrowed from the unpacked message. */
#include "base/arguments.h"
#include "graph/ir/convert.h"
#include "proto/event.pb-c.h"
#include "proto/proto.h"

#include <millrace/events.h>
#include <millrace/record.h>
#include <stdlib.h>
#include <string.h>

struct mr_event_reader {
    mr_record_reader *records;
    mr_arena arena; /* of the current event */
    mr_event_message event;
    mr_event_value *values; /* in the arena */
    char *path;             /* owned */
    uint64_t count;         /* events read */
};

mr_status mr_event_reader_open(const char *path, mr_event_reader **reader, mr_error *error)
{
    MR_REFUSE_NULL(reader, error);
    *reader = nullptr;
    if (path == nullptr || *path == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "the path of the event file is empty");
    mr_event_reader *r = calloc(1, sizeof *r);
    char *copy = strdup(path);
    mr_status status = r != nullptr && copy != nullptr ? mr_record_reader_open(path, nullptr, &r->records, error)
                                                       : mr_fail_memory(error, strlen(path));
    if (status != MR_OK) {
        free(copy);
        free(r);
        return status;
    }
    r->path = copy;
    *reader = r;
    return MR_OK;
}

static void clear(mr_event_reader *reader)
{
    for (int32_t i = 0; i < reader->event.value_count; i++) mr_tensor_deinit(&reader->values[i].tensor);
    reader->event = (mr_event_message){0};
    reader->values = nullptr;
    mr_arena_reset(&reader->arena);
}

static mr_status read_value(const Mr__Summary__Value *from, mr_event_value *value, mr_error *error)
{
    /* What a tensor may take: the value list of a message repeats its last value to the end of its shape. */
    mr_import_budget budget = {.tensor_bytes = (size_t)1 << 30};
    value->tag = from->tag[0] != '\0' ? from->tag : from->node_name;
    value->plugin_name = value->display_name = value->description = "";
    if (from->metadata != nullptr) {
        value->display_name = from->metadata->display_name;
        value->description = from->metadata->summary_description;
        if (from->metadata->plugin_data != nullptr) {
            value->plugin_name = from->metadata->plugin_data->plugin_name;
            value->plugin_data = mr_proto_bytes(from->metadata->plugin_data->content);
        }
    }
    switch (from->value_case) {
    case MR__SUMMARY__VALUE__VALUE_SIMPLE_VALUE:
        value->kind = MR_EVENT_VALUE_SCALAR;
        value->scalar = from->simple_value;
        return MR_OK;
    case MR__SUMMARY__VALUE__VALUE_IMAGE:
        value->kind = MR_EVENT_VALUE_IMAGE;
        value->image = (mr_event_image){from->image->height, from->image->width, from->image->colorspace,
                                        mr_proto_bytes(from->image->encoded_image_string)};
        return MR_OK;
    case MR__SUMMARY__VALUE__VALUE_HISTO: {
        const Mr__HistogramProto *h = from->histo;
        if (h->n_bucket != h->n_bucket_limit)
            return mr_fail(error, MR_DATA_LOSS, "histogram %.200s has %zu buckets, but %zu limits", value->tag,
                           h->n_bucket, h->n_bucket_limit);
        value->kind = MR_EVENT_VALUE_HISTOGRAM;
        value->histogram = (mr_event_histogram){.min = h->min,
                                                .max = h->max,
                                                .number = h->num,
                                                .sum = h->sum,
                                                .sum_squares = h->sum_squares,
                                                .limits = h->bucket_limit,
                                                .counts = h->bucket,
                                                .bucket_count = (int64_t)h->n_bucket};
        return MR_OK;
    }
    case MR__SUMMARY__VALUE__VALUE_AUDIO:
        value->kind = MR_EVENT_VALUE_AUDIO;
        value->audio = (mr_event_audio){from->audio->sample_rate, from->audio->num_channels, from->audio->length_frames,
                                        mr_proto_bytes(from->audio->encoded_audio_string), from->audio->content_type};
        return MR_OK;
    case MR__SUMMARY__VALUE__VALUE_TENSOR:
        value->kind = MR_EVENT_VALUE_TENSOR;
        if (mr_tensor_read(from->tensor, &budget, &value->tensor, error) == MR_OK) return MR_OK;
        return mr_fail_prefix(error, MR_DATA_LOSS, "tensor %.200s", value->tag);
    default:
        return MR_OK;
    }
}

static mr_status read_summary(mr_event_reader *reader, const Mr__Summary *summary, mr_error *error)
{
    if (summary->n_value > INT32_MAX) return mr_fail(error, MR_DATA_LOSS, "too many values");
    reader->values = MR_ARENA_NEW(&reader->arena, mr_event_value, summary->n_value + 1);
    if (reader->values == nullptr) return mr_fail_memory(error, summary->n_value * sizeof *reader->values);
    reader->event.values = reader->values;
    for (size_t i = 0; i < summary->n_value; i++) {
        reader->event.value_count++; /* first: its tensor is released in any case */
        MR_TRY(read_value(summary->value[i], &reader->values[i], error));
    }
    return MR_OK;
}

static mr_status read_event(mr_event_reader *reader, const Mr__Event *from, mr_error *error)
{
    mr_event_message *event = &reader->event;
    event->wall_time = from->wall_time;
    event->step = from->step;
    switch (from->what_case) {
    case MR__EVENT__WHAT_FILE_VERSION:
        event->kind = MR_EVENT_FILE_VERSION;
        event->bytes = mr_string_from(from->file_version);
        return MR_OK;
    case MR__EVENT__WHAT_GRAPH_DEF:
        event->kind = MR_EVENT_GRAPH_DEF;
        event->bytes = mr_proto_bytes(from->graph_def);
        return MR_OK;
    case MR__EVENT__WHAT_META_GRAPH_DEF:
        event->kind = MR_EVENT_META_GRAPH_DEF;
        event->bytes = mr_proto_bytes(from->meta_graph_def);
        return MR_OK;
    case MR__EVENT__WHAT_LOG_MESSAGE:
        event->kind = MR_EVENT_LOG_MESSAGE;
        event->bytes = mr_string_from(from->log_message->message);
        return MR_OK;
    case MR__EVENT__WHAT_SESSION_LOG:
        event->kind = MR_EVENT_SESSION_LOG;
        event->session = (mr_session_event)from->session_log->status;
        event->checkpoint_path = from->session_log->checkpoint_path;
        event->bytes = mr_string_from(from->session_log->msg);
        return MR_OK;
    case MR__EVENT__WHAT_TAGGED_RUN_METADATA:
        event->kind = MR_EVENT_RUN_METADATA;
        event->tag = from->tagged_run_metadata->tag;
        event->bytes = mr_proto_bytes(from->tagged_run_metadata->run_metadata);
        return MR_OK;
    case MR__EVENT__WHAT_SUMMARY:
        event->kind = MR_EVENT_SUMMARY;
        return read_summary(reader, from->summary, error);
    default:
        return MR_OK;
    }
}

mr_status mr_event_reader_next(mr_event_reader *reader, const mr_event_message **event, mr_error *error)
{
    mr_string record;
    Mr__Event *message = nullptr;
    MR_REFUSE_NULL(event, error);
    *event = nullptr;
    MR_REFUSE_NULL(reader, error);
    clear(reader);
    MR_TRY(mr_record_reader_next(reader->records, &record, error));
    reader->count++;
    mr_status status = mr_proto_unpack_as(event, record, &reader->arena, &message, error);
    if (status == MR_OK) status = read_event(reader, message, error);
    if (status != MR_OK)
        return mr_fail_prefix(error, status, "%s: event %llu", reader->path, (unsigned long long)reader->count - 1);
    *event = &reader->event;
    return MR_OK;
}

void mr_event_reader_close(mr_event_reader *reader)
{
    if (reader == nullptr) return;
    clear(reader);
    mr_record_reader_close(reader->records);
    mr_arena_deinit(&reader->arena);
    free(reader->path);
    free(reader);
}
