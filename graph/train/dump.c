/* Dumps: writes the values of runs. The names of the files are tfdbg's; see debug.h. */
#include "graph/train/dump.h"
#include "base/arena.h"
#include "base/device.h"
#include "base/mutex.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/ir/convert.h"
#include "graph/run/execute.h"
#include "graph/run/session.h"
#include "graph/train/hook.h"
#include "proto/event.pb-c.h"
#include "records/io/file.h"

#include <millrace/record.h>

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* As TensorFlow's. */
constexpr uint64_t BYTES_MAX_DEFAULT = (uint64_t)100 << 30;

struct mr_dumper {
    char *directory;
    mr_dump_options options;
    mr_watch watch;
    pthread_mutex_t mutex;                   /* guards what follows during a run */
    mr_arena arena;                          /* of the run */
    mr_arena scratch;                        /* of one file */
    const char *path;                        /* of the run's directory, in the arena */
    char *nonfinite;                         /* owned */
    mr_string graph;                         /* serialized, in the arena; written for each device that the run uses */
    const char *devices[1 + MR_DEVICES_MAX]; /* that have it, in the arena */
    int device_count;
    char *made; /* the last directory that was made; owned */
    bool is_running;
    int64_t run_count, value_count;
    uint64_t bytes;
};

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- Files ---- */

static mr_status no_memory(mr_error *error)
{
    return mr_fail_memory(error, sizeof(Mr__Event));
}

/* Writes an event as a file of its own. */
static mr_status write_event(mr_dumper *d, const Mr__Event *event, const char *path, mr_error *error)
{
    mr_string bytes = {0};
    MR_TRY(mr_proto_pack(event, &d->scratch, &bytes, error));
    return mr_file_write_no_sync(path, bytes.data, bytes.size_bytes, error);
}

static mr_status write_message(mr_dumper *d, const char *name, const char *text, mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    Mr__LogMessage message = MR__LOG_MESSAGE__INIT;
    char *path = mr_arena_printf(&d->scratch, "%s/" MR_DUMP_PREFIX "%s", d->path, name);
    if (path == nullptr || text == nullptr) return no_memory(error);
    message.message = (char *)text;
    event.wall_time = (double)now_us();
    event.what_case = MR__EVENT__WHAT_LOG_MESSAGE;
    event.log_message = &message;
    return write_event(d, &event, path, error);
}

/* The directory of a device: "/job:localhost/device:CPU:0" is "_tfdbg_device_,job_localhost,device_CPU_0". */
static char *device_path(mr_dumper *d, const char *device)
{
    char *path = mr_arena_printf(&d->scratch, "%s/" MR_DUMP_DEVICE "%s", d->path, device);
    if (path == nullptr) return nullptr;
    for (char *c = path + strlen(path) - strlen(device); *c != '\0'; c++)
        if (*c == '/' || *c == ':') *c = *c == '/' ? ',' : '_';
    return path;
}

static mr_status make_directory_of(mr_dumper *d, const char *path, mr_error *error)
{
    const char *end = strrchr(path, '/');
    assert(end != nullptr);
    char *directory = strndup(path, (size_t)(end - path));
    if (directory == nullptr) return no_memory(error);
    if (d->made != nullptr && strcmp(d->made, directory) == 0) {
        free(directory);
        return MR_OK;
    }
    free(d->made);
    d->made = directory;
    return mr_file_make_directories(directory, error);
}

static mr_status write_graph(mr_dumper *d, const char *device, mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    for (int i = 0; i < d->device_count; i++)
        if (strcmp(d->devices[i], device) == 0) return MR_OK;
    const char *directory = device_path(d, device);
    if (directory == nullptr) return no_memory(error);
    uint32_t hash = mr_crc32c(0, d->graph.data, d->graph.size_bytes);
    char *path =
        mr_arena_printf(&d->scratch, "%s/" MR_DUMP_GRAPH "hash%" PRIu32 "_%" PRId64, directory, hash, now_us());
    const char *copy = mr_arena_strdup(&d->arena, device);
    if (path == nullptr || copy == nullptr) return no_memory(error);
    assert(d->device_count < 1 + MR_DEVICES_MAX);
    d->devices[d->device_count++] = copy;
    event.wall_time = (double)now_us();
    event.what_case = MR__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = (ProtobufCBinaryData){d->graph.size_bytes, (uint8_t *)d->graph.data};
    MR_TRY(make_directory_of(d, path, error));
    return write_event(d, &event, path, error);
}

/* ---- Values ---- */

bool mr_dump_is_nonfinite(const mr_tensor *value)
{
    mr_tensor parts = *value;
    if (value->dtype == MR_COMPLEX64 || value->dtype == MR_COMPLEX128) {
        parts.dtype = value->dtype == MR_COMPLEX64 ? MR_FLOAT : MR_DOUBLE;
        parts.shape = MR_SHAPE(2 * mr_tensor_count(value));
    }
    return mr_tensor_find_nonfinite(&parts, false) >= 0;
}

/* Whether a node's name stays in the directory of its device, and is not taken for the graph's there. */
static bool is_path_safe(const char *name)
{
    if (strncmp(name, MR_DUMP_GRAPH, strlen(MR_DUMP_GRAPH)) == 0) return false;
    for (const char *part = name, *end; part != nullptr; part = end != nullptr ? end + 1 : nullptr) {
        end = strchr(part, '/');
        size_t length = end != nullptr ? (size_t)(end - part) : strlen(part);
        if (length == 0 || (length <= 2 && strncmp(part, "..", length) == 0)) return false;
    }
    return true;
}

/* The path of a value's file, which does not exist. */
static mr_status path_of(mr_dumper *d, const mr_watched *watched, char **path, mr_error *error)
{
    if (!is_path_safe(watched->node))
        return mr_fail(error, MR_INVALID_ARGUMENT, "node %.200s: its name cannot be that of a file", watched->node);
    const char *directory = device_path(d, watched->device);
    char *stem =
        mr_arena_printf(&d->scratch, "%s/%s_%d_" MR_DUMP_DEBUG_OP "_%" PRId64, directory != nullptr ? directory : "",
                        watched->node, (int)watched->output, watched->time_us);
    if (directory == nullptr || stem == nullptr) return no_memory(error);
    *path = stem;
    for (int64_t i = 1; mr_file_exists(*path); i++) {
        *path = mr_arena_printf(&d->scratch, "%s-%" PRId64, stem, i);
        if (*path == nullptr) return no_memory(error);
    }
    return MR_OK;
}

/* The elements as bytes in any case: tfdbg takes another form for a tensor that is not initialized. */
static mr_status write_tensor(mr_dumper *d, const mr_tensor *value, Mr__TensorProto **proto, mr_error *error)
{
    if (value->dtype == MR_STRING) return mr_tensor_write(value, &d->scratch, proto, error);
    *proto = MR_ARENA_NEW(&d->scratch, Mr__TensorProto, 1);
    if (*proto == nullptr) return no_memory(error);
    mr__tensor_proto__init(*proto);
    (*proto)->dtype = (int32_t)value->dtype;
    (*proto)->tensor_content = (ProtobufCBinaryData){mr_tensor_size_bytes(value), value->data};
    return mr_shape_write(value->shape, &d->scratch, &(*proto)->tensor_shape, error);
}

static mr_status write_value(mr_dumper *d, const mr_watched *watched, const char *path, mr_error *error)
{
    Mr__Event event = MR__EVENT__INIT;
    Mr__Summary summary = MR__SUMMARY__INIT;
    Mr__Summary__Value value = MR__SUMMARY__VALUE__INIT, *values[] = {&value};
    Mr__SummaryMetadata metadata = MR__SUMMARY_METADATA__INIT;
    Mr__SummaryMetadata__PluginData plugin = MR__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    value.tag = (char *)watched->node;
    value.node_name = mr_arena_printf(&d->scratch, "%s:%d:" MR_DUMP_DEBUG_OP, watched->node, (int)watched->output);
    char *content =
        mr_arena_printf(&d->scratch, "{\"device\":\"%s\",\"outputSlot\":%d,\"numChunks\":1,\"chunkIndex\":0}",
                        watched->device, (int)watched->output);
    if (value.node_name == nullptr || content == nullptr) return no_memory(error);
    plugin.plugin_name = "debugger";
    plugin.content = (ProtobufCBinaryData){strlen(content), (uint8_t *)content};
    metadata.plugin_data = &plugin;
    value.metadata = &metadata;
    value.value_case = MR__SUMMARY__VALUE__VALUE_TENSOR;
    MR_TRY(write_tensor(d, watched->value, &value.tensor, error));
    summary.n_value = 1;
    summary.value = values;
    event.wall_time = (double)watched->time_us;
    event.what_case = MR__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return write_event(d, &event, path, error);
}

static mr_status count_bytes(mr_dumper *d, const mr_watched *watched, mr_error *error)
{
    uint64_t bytes = mr_tensor_size_bytes(watched->value);
    if (watched->value->dtype == MR_STRING) {
        bytes = 0;
        for (int64_t i = 0, count = mr_tensor_count(watched->value); i < count; i++)
            bytes += mr_tensor_strings(watched->value)[i].size_bytes;
    }
    if (bytes > MR_DUMP_FILE_BYTES_MAX - 65536)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED,
                       "%.200s:%d has %" PRIu64 " bytes, more than a file of a dump holds", watched->node,
                       (int)watched->output, bytes);
    if (bytes > d->options.bytes_max || d->bytes > d->options.bytes_max - bytes)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED,
                       "%.200s:%d has %" PRIu64 " bytes; with it, the dump would exceed bytes_max, %" PRIu64,
                       watched->node, (int)watched->output, bytes, d->options.bytes_max);
    d->bytes += bytes;
    return MR_OK;
}

static mr_status see_locked(mr_dumper *d, const mr_watched *watched, mr_error *error)
{
    char *path = nullptr;
    assert(mr_mutex_is_held(&d->mutex));
    assert(d->is_running && d->path != nullptr && d->graph.data != nullptr);
    assert(d->bytes <= d->options.bytes_max);
    bool is_nonfinite = mr_dump_is_nonfinite(watched->value);
    if (is_nonfinite && d->nonfinite == nullptr &&
        asprintf(&d->nonfinite, "%s:%d", watched->node, (int)watched->output) < 0)
        d->nonfinite = nullptr;
    if (d->options.nonfinite_only && !is_nonfinite) return MR_OK;
    if (d->options.selects != nullptr && !d->options.selects(d->options.context, watched)) return MR_OK;
    MR_TRY(count_bytes(d, watched, error));
    MR_TRY(write_graph(d, watched->device, error));
    MR_TRY(path_of(d, watched, &path, error));
    MR_TRY(make_directory_of(d, path, error));
    MR_TRY(write_value(d, watched, path, error));
    d->value_count++;
    return MR_OK;
}

static mr_status see(void *context, const mr_watched *watched, mr_error *error)
{
    mr_dumper *d = context;
    pthread_mutex_lock(&d->mutex);
    mr_status status = see_locked(d, watched, error);
    mr_arena_reset(&d->scratch);
    pthread_mutex_unlock(&d->mutex);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "dump to %s", d->path);
}

/* ---- Runs ---- */

mr_status mr_dumper_new(const char *directory, const mr_dump_options *given, mr_dumper **dumper, mr_error *error)
{
    mr_dump_options options = {.size = sizeof options};
    if (dumper == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dumper_new: dumper is null");
    *dumper = nullptr;
    if (directory == nullptr || *directory == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "the directory of the dumps is empty");
    if (given != nullptr) MR_TRY(MR_OPTIONS_READ(mr_dump_options, &options, given, error));
    MR_TRY(mr_file_make_directories(directory, error));
    mr_dumper *d = calloc(1, sizeof *d);
    char *copy = strdup(directory);
    if (d == nullptr || copy == nullptr) {
        free(d);
        free(copy);
        return mr_fail_memory(error, sizeof *d);
    }
    d->directory = copy;
    d->options = options;
    if (options.bytes_max == 0) d->options.bytes_max = BYTES_MAX_DEFAULT;
    d->watch = (mr_watch){.see = see, .context = d};
    pthread_mutex_init(&d->mutex, nullptr);
    *dumper = d;
    return MR_OK;
}

void mr_dumper_free(mr_dumper *dumper)
{
    if (dumper == nullptr) return;
    mr_arena_deinit(&dumper->arena);
    mr_arena_deinit(&dumper->scratch);
    pthread_mutex_destroy(&dumper->mutex);
    free(dumper->directory);
    free(dumper->nonfinite);
    free(dumper->made);
    free(dumper);
}

/* ["x:0", "y:0"], with the texts around the names and between them. */
static char *join_names(mr_dumper *d, const char *quote, const char *separator, const mr_output *outputs, size_t stride,
                        int32_t count)
{
    char *text = mr_arena_strdup(&d->scratch, "");
    for (int32_t i = 0; i < count && text != nullptr; i++) {
        const mr_output *output = (const mr_output *)((const char *)outputs + (size_t)i * stride);
        text = mr_arena_printf(&d->scratch, "%s%s%s%s:%d%s", text, i > 0 ? separator : "", quote,
                               mr_node_name(output->node), (int)output->index, quote);
    }
    return text;
}

static mr_status write_names(mr_dumper *d, mr_feeds feeds, mr_outputs fetches, mr_error *error)
{
    const mr_output *fed = feeds.count > 0 ? &feeds.items->output : nullptr;
    const char *inputs = join_names(d, "\"", ",", fed, sizeof *feeds.items, feeds.count);
    const char *outputs = join_names(d, "\"", ",", fetches.items, sizeof *fetches.items, fetches.count);
    const char *plain_inputs = join_names(d, "'", ", ", fed, sizeof *feeds.items, feeds.count);
    const char *plain_outputs = join_names(d, "'", ", ", fetches.items, sizeof *fetches.items, fetches.count);
    if (inputs == nullptr || outputs == nullptr || plain_inputs == nullptr || plain_outputs == nullptr)
        return no_memory(error);
    char *name =
        mr_arena_printf(&d->scratch, "core_metadata_sessionrun%014" PRId64 "_%" PRId64, d->run_count - 1, now_us());
    if (name == nullptr) return no_memory(error);
    MR_TRY(write_message(d, name,
                         mr_arena_printf(&d->scratch,
                                         "{\"global_step\":-1,\"session_run_index\":%" PRId64
                                         ",\"executor_step_index\":%" PRId64
                                         ",\"input_names\":[%s],\"output_names\":[%s],\"target_nodes\":[]}",
                                         d->run_count - 1, d->run_count - 1, inputs, outputs),
                         error));
    MR_TRY(write_message(d, "fetches_info_", mr_arena_printf(&d->scratch, "[%s]", plain_outputs), error));
    return write_message(d, "feed_keys_info_", mr_arena_printf(&d->scratch, "[%s]", plain_inputs), error);
}

static mr_status begin(mr_dumper *d, mr_graph *graph, mr_feeds feeds, mr_outputs fetches, mr_error *error)
{
    mr_tensor exported = {0};
    mr_arena_reset(&d->arena);
    free(d->nonfinite);
    d->nonfinite = nullptr;
    d->device_count = 0;
    d->path = nullptr;
    d->path = mr_arena_printf(&d->arena, "%s/run_%" PRId64 "_%" PRId64, d->directory, now_us(), d->run_count++);
    if (d->path == nullptr) return no_memory(error);
    MR_TRY(mr_file_make_directories(d->path, error));
    MR_TRY(mr_graph_export(graph, &exported, error));
    mr_string bytes = mr_tensor_strings(&exported)[0];
    char *copy = mr_arena_alloc(&d->arena, bytes.size_bytes + 1);
    if (copy != nullptr) memcpy(copy, bytes.data, bytes.size_bytes);
    d->graph = (mr_string){copy, bytes.size_bytes};
    mr_tensor_deinit(&exported);
    if (copy == nullptr) return no_memory(error);
    mr_status status = write_names(d, feeds, fetches, error);
    mr_arena_reset(&d->scratch);
    return status;
}

static mr_status check_output(const mr_graph *graph, const char *list, int32_t index, mr_output output, mr_error *error)
{
    if (output.node != nullptr && output.node->graph == graph && output.index >= 0 &&
        output.index < output.node->output_count)
        return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dumper_begin: %s[%d] is not an output of the graph", list,
                   (int)index);
}

mr_status mr_dumper_begin(mr_dumper *dumper, mr_graph *graph, mr_feeds feeds, mr_outputs fetches,
                          const mr_watch **watch, mr_error *error)
{
    if (watch == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dumper_begin: watch is null");
    *watch = nullptr;
    if (dumper == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dumper_begin: dumper is null");
    if (graph == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dumper_begin: graph is null");
    MR_TRY(mr_session_check_list("mr_dumper_begin: feeds", feeds.items, feeds.count, error));
    MR_TRY(mr_session_check_list("mr_dumper_begin: fetches", fetches.items, fetches.count, error));
    for (int32_t i = 0; i < feeds.count; i++) MR_TRY(check_output(graph, "feeds", i, feeds.items[i].output, error));
    for (int32_t i = 0; i < fetches.count; i++) MR_TRY(check_output(graph, "fetches", i, fetches.items[i], error));
    if (dumper->is_running)
        return mr_fail(error, MR_FAILED_PRECONDITION, "the previous run of the dump to %s has not ended", dumper->path);
    MR_TRY(begin(dumper, graph, feeds, fetches, error));
    dumper->is_running = true;
    *watch = &dumper->watch;
    return MR_OK;
}

void mr_dumper_end(mr_dumper *dumper)
{
    if (dumper != nullptr) dumper->is_running = false;
}

const char *mr_dumper_path(const mr_dumper *dumper)
{
    return dumper != nullptr ? dumper->path : nullptr;
}

int64_t mr_dumper_count(const mr_dumper *dumper)
{
    return dumper != nullptr ? dumper->value_count : 0;
}

const char *mr_dumper_nonfinite(const mr_dumper *dumper)
{
    return dumper != nullptr ? dumper->nonfinite : nullptr;
}

/* ---- The hook ---- */

typedef struct dumping_hook {
    mr_hook hook;
    mr_dumper *dumper;
} dumping_hook;

static mr_status hook_begin(void *context, mr_graph *, mr_error *)
{
    mr_dumper_end(((dumping_hook *)context)->dumper);
    return MR_OK;
}

static mr_status hook_before(void *context, mr_hook_run *run, mr_error *error)
{
    dumping_hook *h = context;
    const mr_watch *watch = nullptr;
    mr_dumper_end(h->dumper); /* of a run that failed */
    MR_TRY(mr_dumper_begin(h->dumper, mr_monitored_graph(h->hook.owner), mr_hook_run_caller_feeds(run),
                           mr_hook_run_caller_fetches(run), &watch, error));
    return mr_hook_run_watch(run, watch, error);
}

static mr_status hook_after(void *context, mr_hook_run *, mr_error *)
{
    mr_dumper_end(((dumping_hook *)context)->dumper);
    return MR_OK;
}

static void hook_free(void *context)
{
    mr_dumper_free(((dumping_hook *)context)->dumper);
}

mr_hook *mr_dumping_hook_(const char *directory, const mr_dump_options *options)
{
    dumping_hook *h = mr_hook_alloc(
        sizeof *h, (mr_hook_functions){
                       .begin = hook_begin, .before_run = hook_before, .after_run = hook_after, .free = hook_free});
    if (h == nullptr) return nullptr;
    mr_error reason = {0};
    mr_status status = mr_dumper_new(directory, options, &h->dumper, &reason);
    if (status != MR_OK) mr_hook_fail(&h->hook, status, "dumping hook: %s", reason.message);
    return &h->hook;
}
