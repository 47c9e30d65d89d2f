/* Timelines: the calls of a traced run as a file that chrome://tracing and Perfetto show. */
#include "base/arena.h"
#include "base/status.h"
#include "graph/train/hook.h"
#include "proto/proto.h"
#include "proto/run.pb-c.h"
#include "records/io/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a device: calls that run at the same time are on different ones. The last row has the rest. */
constexpr int LANES_MAX = 64;

/* Text of a run is checked UTF-8 or not: other bytes, as control characters, become \u00xx. */
static void put_text(FILE *file, const char *text, size_t size)
{
    (void)fputc('"', file);
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        char escaped[8] = {(char)c, '\0'};
        if (c == '"' || c == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
        (void)fputs(escaped, file);
    }
    (void)fputc('"', file);
}

/* The operator of "name = Op(input, input:1)"; without one, the node's name. */
static mr_string operator_of(const Mr__NodeExecStats *call)
{
    const char *label = call->timeline_label != nullptr ? call->timeline_label : "";
    const char *begin = strstr(label, " = "), *end = begin != nullptr ? strchr(begin, '(') : nullptr;
    if (end == nullptr) return mr_string_from(call->node_name != nullptr ? call->node_name : "");
    return (mr_string){begin + 3, (size_t)(end - begin - 3)};
}

static int by_start(const void *a, const void *b)
{
    const Mr__NodeExecStats *x = *(Mr__NodeExecStats *const *)a, *y = *(Mr__NodeExecStats *const *)b;
    if (x->all_start_nanos != y->all_start_nanos) return x->all_start_nanos < y->all_start_nanos ? -1 : 1;
    return x->all_start_micros < y->all_start_micros ? -1 : x->all_start_micros > y->all_start_micros;
}

/* Microseconds, in nanoseconds where the run has them. */
static double start_of(const Mr__NodeExecStats *call)
{
    return call->all_start_nanos != 0 ? (double)call->all_start_nanos / 1e3 : (double)call->all_start_micros;
}

static double duration_of(const Mr__NodeExecStats *call)
{
    return call->all_end_rel_nanos != 0 ? (double)call->all_end_rel_nanos / 1e3 : (double)call->all_end_rel_micros;
}

static void put_call(FILE *file, const Mr__NodeExecStats *call, int device, int lane)
{
    const mr_string op = operator_of(call);
    const char *node = call->node_name != nullptr ? call->node_name : "";
    char head[160];
    snprintf(head, sizeof head,
             ",\n{\"ph\": \"X\", \"cat\": \"Op\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"name\": ",
             device, lane, start_of(call), duration_of(call));
    (void)fputs(head, file);
    put_text(file, op.data, op.size_bytes);
    (void)fputs(", \"args\": {\"name\": ", file);
    put_text(file, node, strlen(node));
    (void)fputs(", \"op\": ", file);
    put_text(file, op.data, op.size_bytes);
    (void)fputs("}}", file);
}

static void put_device(FILE *file, Mr__DeviceStepStats *device, int number)
{
    double ends[LANES_MAX] = {0};
    const char *name = device->device != nullptr ? device->device : "";
    char head[96];
    snprintf(head, sizeof head, "%s\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": ",
             number > 0 ? "," : "", number);
    (void)fputs(head, file);
    put_text(file, name, strlen(name));
    (void)fputs("}}", file);
    if (device->n_node_stats > 0)
        qsort(device->node_stats, device->n_node_stats, sizeof(Mr__NodeExecStats *), by_start);
    for (size_t i = 0; i < device->n_node_stats; i++) {
        const Mr__NodeExecStats *call = device->node_stats[i];
        int lane = 0;
        while (lane + 1 < LANES_MAX && ends[lane] > start_of(call)) lane++;
        ends[lane] = start_of(call) + duration_of(call);
        put_call(file, call, number, lane);
    }
}

static mr_status write_json(const Mr__StepStats *steps, const char *path, mr_error *error)
{
    char *bytes = nullptr;
    size_t size = 0;
    FILE *file = open_memstream(&bytes, &size);
    if (file == nullptr) return mr_fail_memory(error, 0);
    (void)fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", file);
    for (size_t i = 0; i < steps->n_dev_stats; i++) put_device(file, steps->dev_stats[i], (int)i);
    (void)fputs("\n]}\n", file);
    const bool failed = ferror(file) != 0;
    mr_status status =
        fclose(file) != 0 || failed ? mr_fail_memory(error, size) : mr_file_write_all(path, bytes, size, error);
    free(bytes);
    return status;
}

mr_status mr_timeline_write(mr_string run_metadata, const char *path, mr_error *error)
{
    mr_arena arena = {0};
    Mr__RunMetadata *metadata;
    if (path == nullptr || *path == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_timeline_write: path is %s", path == nullptr ? "null" : "empty");
    mr_status status = mr_proto_unpack_as(run_metadata, run_metadata, &arena, &metadata, error);
    if (status == MR_DATA_LOSS)
        status = mr_fail_prefix(error, MR_INVALID_ARGUMENT, "mr_timeline_write");
    else if (status == MR_OK && metadata->step_stats == nullptr)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "mr_timeline_write: the RunMetadata has no step_stats");
    if (status == MR_OK) status = write_json(metadata->step_stats, path, error);
    mr_arena_deinit(&arena);
    return status;
}
