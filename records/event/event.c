/* Event files: TFRecords of Event messages. The first message specifies the version.
 *
 * Records are appended and flushed, never replaced: after a crash the file is readable up to the last complete
 * record. */
#include "records/event/event.h"

#include "base/arguments.h"
#include "base/options.h"
#include "proto/event.pb-c.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/proto.h"
#include "proto/run.pb-c.h"
#include "records/event/tags.h"
#include "records/io/file.h"
#include <assert.h>
#include <math.h>
#include <millrace/record.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

constexpr int SAME_SECOND_MAX = 1000;
constexpr size_t SUFFIX_MAX = 100;
constexpr double FLUSH_SECS = 120;
constexpr double FLUSH_SECS_MIN = 0.001;

struct mr_event_writer {
    mr_arena arena;            /* of the event being written */
    mr_record_writer *records; /* null: reopening failed */
    char *path;                /* owned */
    char *directory, *suffix;  /* owned */
    double flush_secs, flushed_secs;
    mr_tag_set with_metadata; /* tags whose metadata is in the file */
    mr_tag_set runs;          /* tags of run metadata */
};

static double clock_secs(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + floor((double)now.tv_nsec / 1000) / 1e6;
}

static mr_status check_open(const mr_event_writer *writer, mr_error *error)
{
    if (writer->records != nullptr) return MR_OK;
    return mr_fail(error, MR_FAILED_PRECONDITION, "%s: the event writer has no file since reopening it failed",
                   writer->directory);
}

static mr_status append_record(mr_event_writer *writer, mr_string bytes, mr_error *error)
{
    MR_TRY(check_open(writer, error));
    MR_TRY(mr_record_writer_append(writer->records, bytes.data, bytes.size_bytes, error));
    double now = clock_secs(CLOCK_MONOTONIC);
    if (now - writer->flushed_secs < writer->flush_secs) return MR_OK;
    writer->flushed_secs = now;
    return mr_record_writer_flush(writer->records, false, error);
}

static mr_status append(mr_event_writer *writer, Mr__Event *event, mr_error *error)
{
    assert(event->what_case != MR__EVENT__WHAT__NOT_SET);
    mr_string bytes;
    event->wall_time = clock_secs(CLOCK_REALTIME);
    mr_status status = mr_proto_pack(event, &writer->arena, &bytes, error);
    if (status == MR_OK) status = append_record(writer, bytes, error);
    mr_arena_reset(&writer->arena);
    return status;
}

mr_status mr_event_writer_append(mr_event_writer *writer, Mr__Event *event, mr_error *error)
{
    if (writer == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "the event writer is null");
    return append(writer, event, error);
}

mr_status mr_event_writer_check_tag(const mr_event_writer *writer, const char *tag, mr_error *error)
{
    if (writer == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "the event writer is null");
    if (tag != nullptr && *tag != '\0') return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: an event has no tag", writer->path);
}

/* Chooses an unused name: if several writers open in the same second, ".1", ".2", … is appended. */
static mr_status choose_path(mr_event_writer *writer, mr_error *error)
{
    char host[256] = "localhost";
    if (gethostname(host, sizeof host) != 0 || host[0] == '\0') host[0] = '_', host[1] = '\0';
    host[sizeof host - 1] = '\0';
    long long seconds = (long long)time(nullptr);
    for (int i = 0; i < SAME_SECOND_MAX; i++) {
        char number[16] = "";
        if (i > 0) snprintf(number, sizeof number, ".%d", i);
        free(writer->path);
        if (asprintf(&writer->path, "%s/events.out.tfevents.%010lld.%s%s%s", writer->directory, seconds, host, number,
                     writer->suffix) < 0) {
            writer->path = nullptr;
            return mr_fail_memory(error, sizeof host);
        }
        if (!mr_file_exists(writer->path)) return MR_OK;
    }
    return mr_fail(error, MR_ALREADY_EXISTS, "%s: too many event files were created in the same second",
                   writer->directory);
}

static mr_status open_file(mr_event_writer *writer, mr_error *error)
{
    assert(writer->records == nullptr);
    MR_TRY(mr_file_make_directories(writer->directory, error));
    MR_TRY(choose_path(writer, error));
    MR_TRY(mr_record_writer_open(writer->path, nullptr, &writer->records, error));
    Mr__Event event = MR__EVENT__INIT;
    event.what_case = MR__EVENT__WHAT_FILE_VERSION;
    event.file_version = (char *)"brain.Event:2";
    writer->flushed_secs = clock_secs(CLOCK_MONOTONIC);
    mr_status status = append(writer, &event, error);
    if (status == MR_OK) status = mr_record_writer_flush(writer->records, false, error);
    if (status == MR_OK) return MR_OK;
    mr_record_writer_discard(writer->records);
    writer->records = nullptr;
    return status;
}

static void release(mr_event_writer *writer)
{
    mr_tag_set_deinit(&writer->with_metadata);
    mr_tag_set_deinit(&writer->runs);
    mr_arena_deinit(&writer->arena);
    free(writer->path);
    free(writer->directory);
    free(writer->suffix);
    free(writer);
}

mr_status mr_event_writer_open_with(const char *directory, const mr_event_writer_options *given,
                                    mr_event_writer **writer, mr_error *error)
{
    mr_event_writer_options options;
    MR_REFUSE_NULL(writer, error);
    *writer = nullptr;
    MR_TRY(MR_OPTIONS_READ(mr_event_writer_options, &options, given, error));
    if (directory == nullptr || *directory == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "the directory of the event file is empty");
    const char *suffix = options.filename_suffix != nullptr ? options.filename_suffix : "";
    if (strchr(suffix, '/') != nullptr || strlen(suffix) > SUFFIX_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: filename_suffix \"%.100s\" must have at most %zu bytes and no slash", directory, suffix,
                       SUFFIX_MAX);
    if (options.flush_secs == 0) options.flush_secs = FLUSH_SECS;
    if (!isfinite(options.flush_secs) || options.flush_secs < FLUSH_SECS_MIN)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: flush_secs is %g, but must be finite and at least %g",
                       directory, options.flush_secs, FLUSH_SECS_MIN);
    mr_event_writer *w = calloc(1, sizeof *w);
    if (w == nullptr) return mr_fail_memory(error, sizeof *w);
    w->directory = strdup(directory);
    w->suffix = strdup(suffix);
    w->flush_secs = options.flush_secs;
    mr_status status = w->directory != nullptr && w->suffix != nullptr ? open_file(w, error)
                                                                       : mr_fail_memory(error, strlen(directory));
    if (status == MR_OK)
        *writer = w;
    else
        release(w);
    return status;
}

mr_status mr_event_writer_open_suffix(const char *directory, const char *suffix, mr_event_writer **writer,
                                      mr_error *error)
{
    mr_event_writer_options options = {.size = sizeof options, .filename_suffix = suffix};
    return mr_event_writer_open_with(directory, &options, writer, error);
}

mr_status mr_event_writer_reopen(mr_event_writer *writer, mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    mr_status status = writer->records != nullptr ? mr_record_writer_close(writer->records, error) : MR_OK;
    writer->records = nullptr;
    mr_tag_set_deinit(&writer->with_metadata); /* each file is complete */
    return status == MR_OK ? open_file(writer, error) : status;
}

mr_status mr_event_writer_open(const char *directory, mr_event_writer **writer, mr_error *error)
{
    return mr_event_writer_open_with(directory, nullptr, writer, error);
}

const char *mr_event_writer_path(const mr_event_writer *writer)
{
    return writer != nullptr ? writer->path : nullptr;
}

/* Removes the metadata of values whose tags have been written with it, and notes the tags of the others. */
static mr_status drop_metadata(mr_event_writer *writer, Mr__Summary *summary, mr_error *error)
{
    for (size_t i = 0; i < summary->n_value; i++) {
        Mr__Summary__Value *value = summary->value[i];
        if (value->metadata == nullptr) continue;
        if (mr_tag_set_contains(&writer->with_metadata, value->tag))
            value->metadata = nullptr;
        else
            MR_TRY(mr_tag_set_add(&writer->with_metadata, value->tag, error));
    }
    return MR_OK;
}

static mr_status add_summary(mr_event_writer *writer, int64_t step, mr_string summary, bool drops, mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    mr_status status = mr_proto_unpack_as(summary, summary, &writer->arena, &event.summary, error);
    if (status == MR_OK && drops) status = drop_metadata(writer, event.summary, error);
    if (status != MR_OK) {
        mr_arena_reset(&writer->arena);
        return mr_fail_prefix(error, status, "%s: step %lld", writer->path, (long long)step);
    }
    event.step = step;
    event.what_case = MR__EVENT__WHAT_SUMMARY;
    return append(writer, &event, error);
}

mr_status mr_event_writer_add(mr_event_writer *writer, int64_t step, mr_string summary, mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    return add_summary(writer, step, summary, true, error);
}

mr_status mr_event_writer_add_unchanged(mr_event_writer *writer, int64_t step, mr_string summary, mr_error *error)
{
    return add_summary(writer, step, summary, false, error);
}

mr_status mr_event_writer_add_scalar(mr_event_writer *writer, int64_t step, const char *tag, float value,
                                     mr_error *error)
{
    Mr__Summary__Value item = MR__SUMMARY__VALUE__INIT, *items[] = {&item};
    Mr__Summary summary = MR__SUMMARY__INIT;
    Mr__Event event = MR__EVENT__INIT;
    MR_TRY(mr_event_writer_check_tag(writer, tag, error));
    item.tag = (char *)tag;
    item.value_case = MR__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    item.simple_value = value;
    summary.n_value = 1;
    summary.value = items;
    event.step = step;
    event.what_case = MR__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return append(writer, &event, error);
}

static ProtobufCBinaryData borrowed(mr_string bytes)
{
    return (ProtobufCBinaryData){.len = bytes.size_bytes, .data = (uint8_t *)bytes.data};
}

/* Checks that bytes are a message of this type. */
static mr_status check_message(const mr_event_writer *writer, const ProtobufCMessageDescriptor *type, mr_string bytes,
                               mr_error *error)
{
    mr_status status = mr_proto_check(type, bytes, error);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s", writer->path);
}

mr_status mr_event_writer_add_graph_def(mr_event_writer *writer, int64_t step, mr_string graph_def, mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    MR_REFUSE_NULL(writer, error);
    MR_TRY(check_message(writer, &mr__graph_def__descriptor, graph_def, error));
    event.step = step;
    event.what_case = MR__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = borrowed(graph_def);
    return append(writer, &event, error);
}

mr_status mr_event_writer_add_meta_graph_def(mr_event_writer *writer, int64_t step, mr_string meta_graph_def,
                                             mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    MR_REFUSE_NULL(writer, error);
    MR_TRY(check_message(writer, &mr__meta_graph_def__descriptor, meta_graph_def, error));
    event.step = step;
    event.what_case = MR__EVENT__WHAT_META_GRAPH_DEF;
    event.meta_graph_def = borrowed(meta_graph_def);
    return append(writer, &event, error);
}

mr_status mr_event_writer_add_run_metadata(mr_event_writer *writer, int64_t step, const char *tag,
                                           mr_string run_metadata, mr_error *error)
{
    Mr__TaggedRunMetadata tagged = MR__TAGGED_RUN_METADATA__INIT;
    Mr__Event event = MR__EVENT__INIT;
    MR_TRY(mr_event_writer_check_tag(writer, tag, error));
    MR_TRY(check_message(writer, &mr__run_metadata__descriptor, run_metadata, error));
    if (mr_tag_set_contains(&writer->runs, tag))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the tag \"%s\" of run metadata has been used", writer->path,
                       tag);
    MR_TRY(mr_tag_set_add(&writer->runs, tag, error));
    tagged.tag = (char *)tag;
    tagged.run_metadata = borrowed(run_metadata);
    event.step = step;
    event.what_case = MR__EVENT__WHAT_TAGGED_RUN_METADATA;
    event.tagged_run_metadata = &tagged;
    return append(writer, &event, error);
}

mr_status mr_event_writer_import_event(mr_event_writer *writer, int64_t, mr_string event, mr_error *error)
{
    MR_TRY(check_message(writer, &mr__event__descriptor, event, error));
    return append_record(writer, event, error);
}

mr_status mr_event_writer_add_event(mr_event_writer *writer, mr_string event, mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    return mr_event_writer_import_event(writer, 0, event, error);
}

mr_status mr_event_writer_add_session_log(mr_event_writer *writer, int64_t step, mr_session_event session,
                                          const char *checkpoint, mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    if (session < MR_SESSION_START || session > MR_SESSION_CHECKPOINT)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: session event %d is not one of mr_session_event", writer->path,
                       (int)session);
    Mr__SessionLog log = MR__SESSION_LOG__INIT;
    Mr__Event event = MR__EVENT__INIT;
    log.status = session;
    if (checkpoint != nullptr) log.checkpoint_path = (char *)checkpoint;
    event.step = step;
    event.what_case = MR__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    return append(writer, &event, error);
}

mr_status mr_event_writer_flush(mr_event_writer *writer, mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    MR_TRY(check_open(writer, error));
    writer->flushed_secs = clock_secs(CLOCK_MONOTONIC);
    return mr_record_writer_flush(writer->records, false, error);
}

mr_status mr_event_writer_close(mr_event_writer *writer, mr_error *error)
{
    if (writer == nullptr) return MR_OK;
    mr_status status = writer->records != nullptr ? mr_record_writer_close(writer->records, error) : MR_OK;
    release(writer);
    return status;
}
