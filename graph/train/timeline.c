/* Timelines: the calls of a traced run as a file that chrome://tracing and Perfetto show, with arrows from a call to
 * those on other rows that read its outputs, and the memory of the outputs. */
#include "base/arena.h"
#include "base/options.h"
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

/* ---- Calls, by device and row ---- */

typedef struct placed {
    const Mr__NodeExecStats *call;
    const char *node;
    int device, lane;
    double freed; /* when the last reader of its outputs ends */
} placed;

typedef struct timeline {
    FILE *file;
    const Mr__StepStats *steps;
    placed *calls; /* of all devices; sorted by node, then by time */
    size_t count;
    mr_timeline_options options;
} timeline;

static double end_of(const Mr__NodeExecStats *call)
{
    return start_of(call) + duration_of(call);
}

static void put_device(timeline *t, Mr__DeviceStepStats *device, int number)
{
    double ends[LANES_MAX] = {0};
    const char *name = device->device != nullptr ? device->device : "";
    char head[96];
    snprintf(head, sizeof head, "%s\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": ",
             number > 0 ? "," : "", number);
    (void)fputs(head, t->file);
    put_text(t->file, name, strlen(name));
    (void)fputs("}}", t->file);
    if (device->n_node_stats > 0)
        qsort(device->node_stats, device->n_node_stats, sizeof(Mr__NodeExecStats *), by_start);
    for (size_t i = 0; i < device->n_node_stats; i++) {
        const Mr__NodeExecStats *call = device->node_stats[i];
        int lane = 0;
        while (lane + 1 < LANES_MAX && ends[lane] > start_of(call)) lane++;
        ends[lane] = end_of(call);
        t->calls[t->count++] = (placed){call, call->node_name ? call->node_name : "", number, lane, end_of(call)};
        put_call(t->file, call, number, lane);
    }
}

/* ---- Who reads what ---- */

static int by_node(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    const int order = strcmp(x->node, y->node);
    return order != 0 ? order : by_start(&x->call, &y->call);
}

/* The call of a node that is the last before a time, or null. */
static placed *call_before(const timeline *t, mr_string node, double time)
{
    size_t low = 0, high = t->count; /* the first call after those of the node until then is between them */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const placed *p = &t->calls[middle];
        int order = strncmp(p->node, node.data, node.size_bytes);
        if (order == 0 && p->node[node.size_bytes] != '\0') order = 1;
        if (order < 0 || (order == 0 && start_of(p->call) <= time))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return nullptr;
    placed *p = &t->calls[low - 1];
    const bool is_node = strncmp(p->node, node.data, node.size_bytes) == 0 && p->node[node.size_bytes] == '\0';
    return is_node ? p : nullptr;
}

/* The next input of "name = Op(input, input:1, ^control)", without the number of the output; false: there is none. */
static bool next_input(const char **at, mr_string *node)
{
    *at += strspn(*at, ", ");
    const size_t length = strcspn(*at, ",)");
    if (length == 0 || (*at)[length] == '\0') return false;
    *node = (mr_string){*at, length};
    *at += length;
    if (*node->data == '^') *node = (mr_string){node->data + 1, node->size_bytes - 1};
    const char *colon = memrchr(node->data, ':', node->size_bytes);
    if (colon != nullptr) node->size_bytes = (size_t)(colon - node->data);
    return true;
}

static void put_arrow(const timeline *t, const placed *from, const placed *to, int64_t id)
{
    for (int end = 0; end < 2; end++) {
        const placed *at = end == 0 ? from : to;
        char head[160];
        snprintf(head, sizeof head,
                 ",\n{\"ph\": \"%c\", \"cat\": \"DataFlow\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, \"id\": %" PRId64
                 ", \"name\": ",
                 end == 0 ? 's' : 't', at->device, at->lane, end == 0 ? end_of(at->call) : start_of(at->call), id);
        (void)fputs(head, t->file);
        put_text(t->file, from->node, strlen(from->node));
        (void)fputs("}", t->file);
    }
}

/* Finds the readers of each call's outputs; draws arrows to those on other rows. */
static void follow_inputs(timeline *t)
{
    int64_t arrows = 0;
    for (size_t i = 0; i < t->count; i++) {
        const placed *reader = &t->calls[i];
        const char *label = reader->call->timeline_label, *begin = label != nullptr ? strstr(label, " = ") : nullptr;
        const char *at = begin != nullptr ? strchr(begin, '(') : nullptr;
        mr_string input;
        if (at == nullptr) continue;
        at++;
        while (next_input(&at, &input)) {
            placed *from = call_before(t, input, start_of(reader->call));
            if (from == nullptr || from == reader) continue;
            if (from->freed < end_of(reader->call)) from->freed = end_of(reader->call);
            const bool is_far = from->device != reader->device || from->lane != reader->lane;
            if (t->options.show_dataflow && is_far) put_arrow(t, from, reader, arrows++);
        }
    }
}

/* ---- Memory ---- */

typedef struct change {
    double time;
    int64_t bytes;
    const char *allocator;
} change;

static int by_time(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The allocator and the size of an output; false: it has no memory of its own. */
static bool is_allocated(const Mr__NodeOutput *output, change *made)
{
    const Mr__TensorDescription *tensor = output->tensor_description;
    const Mr__AllocationDescription *allocation = tensor != nullptr ? tensor->allocation_description : nullptr;
    if (allocation == nullptr || allocation->requested_bytes <= 0) return false;
    made->bytes = allocation->requested_bytes;
    made->allocator = allocation->allocator_name != nullptr ? allocation->allocator_name : "";
    return true;
}

/* The sums of each allocator, as a counter: an output takes memory from the start of its call to the end of its last
 * reader. */
static mr_status put_memory(const timeline *t, mr_arena *arena, mr_error *error)
{
    size_t most = 0, count = 0, names = 0;
    for (size_t i = 0; i < t->count; i++) most += 2 * t->calls[i].call->n_output;
    change *changes = MR_ARENA_NEW(arena, change, most + 1);
    struct total {
        const char *allocator;
        int64_t bytes;
    } *totals = mr_arena_alloc_array(arena, most + 1, sizeof *totals);
    if (changes == nullptr || totals == nullptr) return mr_fail_memory(error, most * sizeof *changes);
    for (size_t i = 0; i < t->count; i++)
        for (size_t j = 0; j < t->calls[i].call->n_output; j++) {
            change made = {.time = start_of(t->calls[i].call)};
            if (!is_allocated(t->calls[i].call->output[j], &made)) continue;
            changes[count++] = made;
            changes[count++] = (change){t->calls[i].freed, -made.bytes, made.allocator};
        }
    qsort(changes, count, sizeof *changes, by_time);
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < names && strcmp(totals[k].allocator, changes[i].allocator) != 0) k++;
        if (k == names) totals[names++].allocator = changes[i].allocator;
        /* Hostile sizes wrap. */
        totals[k].bytes = (int64_t)((uint64_t)totals[k].bytes + (uint64_t)changes[i].bytes);
        char head[96];
        snprintf(head, sizeof head, ",\n{\"ph\": \"C\", \"cat\": \"Memory\", \"pid\": %zu, \"tid\": 0, \"ts\": %.3f",
                 t->steps->n_dev_stats, changes[i].time);
        (void)fputs(head, t->file);
        (void)fputs(", \"name\": ", t->file);
        put_text(t->file, totals[k].allocator, strlen(totals[k].allocator));
        (void)fputs(", \"args\": {", t->file);
        put_text(t->file, totals[k].allocator, strlen(totals[k].allocator));
        snprintf(head, sizeof head, ": %" PRId64 "}}", totals[k].bytes);
        (void)fputs(head, t->file);
    }
    return MR_OK;
}

static mr_status write_json(const Mr__StepStats *steps, const mr_timeline_options *options, mr_arena *arena,
                            const char *path, mr_error *error)
{
    char *bytes = nullptr;
    size_t size = 0, count = 0;
    timeline t = {.steps = steps, .options = *options};
    for (size_t i = 0; i < steps->n_dev_stats; i++) count += steps->dev_stats[i]->n_node_stats;
    t.calls = MR_ARENA_NEW(arena, placed, count + 1);
    t.file = t.calls != nullptr ? open_memstream(&bytes, &size) : nullptr;
    if (t.file == nullptr) return mr_fail_memory(error, count * sizeof *t.calls);
    (void)fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", t.file);
    for (size_t i = 0; i < steps->n_dev_stats; i++) put_device(&t, steps->dev_stats[i], (int)i);
    qsort(t.calls, t.count, sizeof *t.calls, by_node);
    if (options->show_dataflow || options->show_memory) follow_inputs(&t);
    mr_status status = options->show_memory ? put_memory(&t, arena, error) : MR_OK;
    (void)fputs("\n]}\n", t.file);
    const bool failed = ferror(t.file) != 0;
    if ((fclose(t.file) != 0 || failed) && status == MR_OK) status = mr_fail_memory(error, size);
    if (status == MR_OK) status = mr_file_write_all(path, bytes, size, error);
    free(bytes);
    return status;
}

mr_status mr_timeline_write_(mr_string run_metadata, const char *path, const mr_timeline_options *given,
                             mr_error *error)
{
    mr_arena arena = {0};
    Mr__RunMetadata *metadata;
    mr_timeline_options options;
    MR_TRY(MR_OPTIONS_READ(mr_timeline_options, &options, given, error));
    if (path == nullptr || *path == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_timeline_write: path is %s", path == nullptr ? "null" : "empty");
    mr_status status = mr_proto_unpack_as(run_metadata, run_metadata, &arena, &metadata, error);
    const Mr__StepStats *steps = status == MR_OK ? metadata->step_stats : nullptr;
    if (status == MR_DATA_LOSS)
        status = mr_fail_prefix(error, MR_INVALID_ARGUMENT, "mr_timeline_write");
    else if (steps != nullptr)
        status = write_json(steps, &options, &arena, path, error);
    else if (status == MR_OK)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "mr_timeline_write: the RunMetadata has no step_stats");
    mr_arena_deinit(&arena);
    return status;
}
