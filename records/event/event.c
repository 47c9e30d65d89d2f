/* Event files: TFRecords of Event messages. The first message specifies the version.
 *
 * Records are appended and flushed, never replaced: after a crash the file is readable up to the last complete
 * record. */
#include "records/event/event.h"

#include "proto/event.pb-c.h"
#include "proto/proto.h"
#include "records/event/summary.h"
#include "records/io/file.h"
#include <assert.h>
#include <math.h>
#include <millrace/record.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

constexpr int SAME_SECOND_MAX = 1000;

struct mr_event_writer {
    mr_arena arena; /* of the event being written */
    mr_record_writer *records;
    char *path; /* owned */
};

static mr_status append(mr_event_writer *writer, Mr__Event *event, mr_error *error)
{
    assert(writer->records != nullptr && event->what_case != MR__EVENT__WHAT__NOT_SET);
    struct timespec now;
    mr_string bytes;
    clock_gettime(CLOCK_REALTIME, &now);
    event->wall_time = (double)now.tv_sec + floor((double)now.tv_nsec / 1000) / 1e6;
    mr_status status = mr_proto_pack(event, &writer->arena, &bytes, error);
    if (status == MR_OK) status = mr_record_writer_append(writer->records, bytes.data, bytes.size_bytes, error);
    mr_arena_reset(&writer->arena);
    return status;
}

/* Chooses an unused name: if several writers open in the same second, ".1", ".2", … is appended. */
static mr_status choose_path(mr_event_writer *writer, const char *directory, const char *end, mr_error *error)
{
    char host[256] = "localhost";
    if (gethostname(host, sizeof host) != 0 || host[0] == '\0') host[0] = '_', host[1] = '\0';
    host[sizeof host - 1] = '\0';
    long long seconds = (long long)time(nullptr);
    for (int i = 0; i < SAME_SECOND_MAX; i++) {
        char number[16] = "";
        if (i > 0) snprintf(number, sizeof number, ".%d", i);
        free(writer->path);
        if (asprintf(&writer->path, "%s/events.out.tfevents.%010lld.%s%s%s", directory, seconds, host, number, end) <
            0) {
            writer->path = nullptr;
            return mr_fail_memory(error, sizeof host);
        }
        if (!mr_file_exists(writer->path)) return MR_OK;
    }
    return mr_fail(error, MR_ALREADY_EXISTS, "%s: too many event files were created in the same second", directory);
}

static mr_status open_file(mr_event_writer *writer, const char *directory, const char *suffix, mr_error *error)
{
    MR_TRY(mr_file_make_directories(directory, error));
    MR_TRY(choose_path(writer, directory, suffix, error));
    MR_TRY(mr_record_writer_open(writer->path, nullptr, &writer->records, error));
    Mr__Event event = MR__EVENT__INIT;
    event.what_case = MR__EVENT__WHAT_FILE_VERSION;
    event.file_version = (char *)"brain.Event:2";
    MR_TRY(append(writer, &event, error));
    return mr_record_writer_flush(writer->records, false, error);
}

static void release(mr_event_writer *writer)
{
    mr_arena_deinit(&writer->arena);
    free(writer->path);
    free(writer);
}

mr_status mr_event_writer_open_suffix(const char *directory, const char *suffix, mr_event_writer **writer,
                                      mr_error *error)
{
    *writer = calloc(1, sizeof **writer);
    if (*writer == nullptr) return mr_fail_memory(error, sizeof **writer);
    mr_status status = open_file(*writer, directory, suffix, error);
    if (status == MR_OK) return MR_OK;
    mr_record_writer_discard((*writer)->records);
    release(*writer);
    *writer = nullptr;
    return status;
}

mr_status mr_event_writer_open(const char *directory, mr_event_writer **writer, mr_error *error)
{
    return mr_event_writer_open_suffix(directory, "", writer, error);
}

const char *mr_event_writer_path(const mr_event_writer *writer)
{
    return writer->path;
}

mr_status mr_event_writer_add(mr_event_writer *writer, int64_t step, mr_string summary, mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    mr_status status = mr_proto_unpack_as(summary, summary, &writer->arena, &event.summary, error);
    if (status != MR_OK) {
        mr_arena_reset(&writer->arena);
        return mr_fail_prefix(error, status, "%s: step %lld", writer->path, (long long)step);
    }
    event.step = step;
    event.what_case = MR__EVENT__WHAT_SUMMARY;
    return append(writer, &event, error);
}

mr_status mr_event_writer_add_scalar(mr_event_writer *writer, int64_t step, const char *tag, float value,
                                     mr_error *error)
{
    Mr__Summary__Value item = MR__SUMMARY__VALUE__INIT, *items[] = {&item};
    Mr__Summary summary = MR__SUMMARY__INIT;
    Mr__Event event = MR__EVENT__INIT;
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

mr_status mr_event_writer_add_graph_at(mr_event_writer *writer, int64_t step, mr_string graph_def, mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    event.step = step;
    event.what_case = MR__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = borrowed(graph_def);
    return append(writer, &event, error);
}

mr_status mr_event_writer_add_graph_def(mr_event_writer *writer, mr_string graph_def, mr_error *error)
{
    return mr_event_writer_add_graph_at(writer, 0, graph_def, error);
}

mr_status mr_event_writer_add_event(mr_event_writer *writer, int64_t, mr_string event, mr_error *error)
{
    Mr__Event *parsed = nullptr;
    mr_status status = mr_proto_unpack_as(event, event, &writer->arena, &parsed, error);
    if (status == MR_OK) status = mr_record_writer_append(writer->records, event.data, event.size_bytes, error);
    mr_arena_reset(&writer->arena);
    return status;
}

mr_status mr_event_writer_add_meta_graph_def(mr_event_writer *writer, mr_string meta_graph_def, mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    event.what_case = MR__EVENT__WHAT_META_GRAPH_DEF;
    event.meta_graph_def = borrowed(meta_graph_def);
    return append(writer, &event, error);
}

mr_status mr_event_writer_add_session(mr_event_writer *writer, int64_t step, mr_session_event session,
                                      const char *checkpoint, mr_error *error)
{
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
    return mr_record_writer_flush(writer->records, false, error);
}

mr_status mr_event_writer_close(mr_event_writer *writer, mr_error *error)
{
    if (writer == nullptr) return MR_OK;
    mr_status status = mr_record_writer_close(writer->records, error);
    release(writer);
    return status;
}
