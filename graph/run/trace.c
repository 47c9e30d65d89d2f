/* The records of a traced run, as messages that mr_run_metadata_make serializes. */
#include "graph/run/trace.h"

#include "base/status.h"
#include "graph/run/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A loop may run any number of calls. */
constexpr size_t TRACE_BYTES_MAX = (size_t)256 << 20;

typedef struct record record;
struct record {
    record *next;
    Mr__NodeExecStats stats;
};

/* The calls on one device, in the order in which they ended. */
typedef struct device_records {
    const mr_device *device;
    record *first, *last;
    size_t count;
} device_records;

struct mr_run_trace {
    pthread_mutex_t mutex; /* guards what follows */
    mr_arena arena;        /* with a limit */
    bool is_full;
    uint64_t epoch_ns; /* what to add to mr_run_trace_now for the time since 1970 */
    device_records devices[1 + MR_DEVICES_MAX];
    size_t device_count;
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t mr_run_trace_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

mr_status mr_run_trace_new(mr_run_trace **trace, mr_error *error)
{
    *trace = calloc(1, sizeof **trace);
    if (!*trace) return mr_fail_memory(error, sizeof **trace);
    pthread_mutex_init(&(*trace)->mutex, nullptr);
    (*trace)->arena.limit_bytes = TRACE_BYTES_MAX;
    (*trace)->epoch_ns = clock_ns(CLOCK_REALTIME) - mr_run_trace_now();
    return MR_OK;
}

void mr_run_trace_free(mr_run_trace *trace)
{
    if (!trace) return;
    mr_arena_deinit(&trace->arena);
    pthread_mutex_destroy(&trace->mutex);
    free(trace);
}

/* ---- Records ---- */

static device_records *records_of(mr_run_trace *trace, const mr_device *device)
{
    for (size_t i = 0; i < trace->device_count; i++)
        if (trace->devices[i].device == device) return &trace->devices[i];
    if (trace->device_count == sizeof trace->devices / sizeof trace->devices[0]) return nullptr;
    device_records *added = &trace->devices[trace->device_count++];
    added->device = device;
    return added;
}

/* "name = Op(input, input:1, ^control)" */
static char *label_of(const mr_frame *frame, const mr_call *call, mr_arena *arena)
{
    int32_t controls = call->kernel ? call->source->control_count : 0, count = call->input_count + controls;
    const char **names = MR_ARENA_NEW(arena, const char *, (size_t)count + 1);
    if (!names) return nullptr;
    size_t size_bytes = strlen(call->node.name) + strlen(call->node.op) + sizeof " = ()";
    for (int32_t i = 0; i < count; i++) {
        names[i] = i < call->input_count
                       ? mr_program_value_name(frame->program, frame->region, call->inputs[i].slot, arena)
                       : mr_arena_printf(arena, "^%s", call->source->controls[i - call->input_count]->name);
        if (!names[i]) return nullptr;
        size_bytes += strlen(names[i]) + 2;
    }
    char *label = mr_arena_alloc(arena, size_bytes), *at = label;
    if (!label) return nullptr;
    at = stpcpy(stpcpy(stpcpy(stpcpy(at, call->node.name), " = "), call->node.op), "(");
    for (int32_t i = 0; i < count; i++) at = stpcpy(stpcpy(at, i > 0 ? ", " : ""), names[i]);
    at = stpcpy(at, ")");
    assert((size_t)(at - label) < size_bytes);
    return label;
}

static bool describe_output(const mr_tensor *tensor, int32_t slot, mr_arena *arena, Mr__NodeOutput **output)
{
    Mr__TensorDescription *description = MR_ARENA_NEW(arena, Mr__TensorDescription, 1);
    Mr__AllocationDescription *allocation = MR_ARENA_NEW(arena, Mr__AllocationDescription, 1);
    *output = MR_ARENA_NEW(arena, Mr__NodeOutput, 1);
    if (!description || !allocation || !*output) return false;
    mr__tensor_description__init(description);
    mr__allocation_description__init(allocation);
    mr__node_output__init(*output);
    (*output)->slot = slot;
    (*output)->tensor_description = description;
    description->dtype = (int32_t)tensor->dtype;
    description->allocation_description = allocation;
    allocation->requested_bytes = (int64_t)mr_tensor_size_bytes(tensor);
    allocation->allocator_name = mr_tensor_device(tensor) ? "gpu" : "cpu";
    return mr_shape_write(tensor->shape, arena, &description->shape, nullptr) == MR_OK;
}

/* A handle has no buffer, and no size. */
static bool describe_outputs(const mr_frame *frame, const mr_call *call, mr_arena *arena, Mr__NodeExecStats *stats)
{
    stats->output = MR_ARENA_NEW(arena, Mr__NodeOutput *, (size_t)call->output_count + 1);
    if (!stats->output) return false;
    for (int32_t i = 0; i < call->output_count; i++) {
        const mr_tensor *output = &frame->slots[call->first_output + i];
        if (!output->buffer || mr_dtype_size(output->dtype) == 0) continue;
        if (!describe_output(output, i, arena, &stats->output[stats->n_output])) return false;
        stats->n_output++;
    }
    return true;
}

static record *make_record(mr_run_trace *trace, const mr_frame *frame, const mr_call *call, uint64_t start_ns,
                           uint64_t end_ns)
{
    record *made = MR_ARENA_NEW(&trace->arena, record, 1);
    if (!made) return nullptr;
    Mr__NodeExecStats *stats = &made->stats;
    int64_t start = (int64_t)(start_ns + trace->epoch_ns), duration = (int64_t)(end_ns - start_ns);
    mr__node_exec_stats__init(stats);
    stats->node_name = mr_arena_strdup(&trace->arena, call->node.name);
    stats->timeline_label = label_of(frame, call, &trace->arena);
    stats->all_start_nanos = stats->scheduled_nanos = start;
    stats->op_end_rel_nanos = stats->all_end_rel_nanos = duration;
    stats->all_start_micros = stats->scheduled_micros = start / 1000;
    stats->op_end_rel_micros = stats->all_end_rel_micros = (duration + 999) / 1000;
    bool is_complete = stats->node_name && stats->timeline_label && describe_outputs(frame, call, &trace->arena, stats);
    return is_complete ? made : nullptr;
}

void mr_run_trace_add(mr_run_trace *trace, const mr_frame *frame, const mr_call *call, uint64_t start_ns,
                      uint64_t end_ns)
{
    assert(start_ns <= end_ns);
    pthread_mutex_lock(&trace->mutex);
    device_records *records = trace->is_full ? nullptr : records_of(trace, call->device);
    record *made = records ? make_record(trace, frame, call, start_ns, end_ns) : nullptr;
    trace->is_full = !made;
    assert(!made || (records->first == nullptr) == (records->last == nullptr));
    assert(!made || made->next == nullptr);
    if (made) {
        if (records->last)
            records->last->next = made;
        else
            records->first = made;
        records->last = made;
        records->count++;
    }
    pthread_mutex_unlock(&trace->mutex);
}

/* ---- The message ---- */

static mr_status write_device(const device_records *records, mr_arena *arena, Mr__DeviceStepStats **stats,
                              mr_error *error)
{
    *stats = MR_ARENA_NEW(arena, Mr__DeviceStepStats, 1);
    Mr__NodeExecStats **nodes = MR_ARENA_NEW(arena, Mr__NodeExecStats *, records->count + 1);
    char *name = mr_device_full_name(records->device, arena);
    if (!*stats || !nodes || !name) return mr_fail_memory(error, records->count * sizeof *nodes);
    mr__device_step_stats__init(*stats);
    (*stats)->device = name;
    (*stats)->node_stats = nodes;
    for (record *at = records->first; at; at = at->next) nodes[(*stats)->n_node_stats++] = &at->stats;
    assert((*stats)->n_node_stats == records->count);
    return MR_OK;
}

static mr_status write_trace(const mr_run_trace *trace, mr_arena *arena, Mr__StepStats **stats, mr_error *error)
{
    *stats = MR_ARENA_NEW(arena, Mr__StepStats, 1);
    Mr__DeviceStepStats **devices = MR_ARENA_NEW(arena, Mr__DeviceStepStats *, trace->device_count + 1);
    if (!*stats || !devices) return mr_fail_memory(error, sizeof **stats);
    mr__step_stats__init(*stats);
    (*stats)->dev_stats = devices;
    for (size_t i = 0; i < trace->device_count; i++)
        if (trace->devices[i].count > 0)
            MR_TRY(write_device(&trace->devices[i], arena, &devices[(*stats)->n_dev_stats++], error));
    return MR_OK;
}

static mr_status write_graph(const mr_program *program, mr_session *session, mr_arena *arena, Mr__RunMetadata *metadata,
                             mr_error *error)
{
    metadata->partition_graphs = MR_ARENA_NEW(arena, Mr__GraphDef *, 1);
    if (!metadata->partition_graphs) return mr_fail_memory(error, sizeof *metadata->partition_graphs);
    pthread_mutex_lock(&session->mutex); /* guards the graph */
    mr_status status =
        mr_program_write(program, session->graph, session->cpu, arena, metadata->partition_graphs, error);
    pthread_mutex_unlock(&session->mutex);
    metadata->n_partition_graphs = status == MR_OK;
    return status;
}

mr_status mr_run_metadata_make(const mr_run_trace *trace, const mr_program *program, mr_session *session,
                               mr_tensor *metadata, mr_error *error)
{
    mr_arena arena = {0};
    mr_string bytes = {0};
    Mr__RunMetadata message = MR__RUN_METADATA__INIT;
    mr_status status = trace ? write_trace(trace, &arena, &message.step_stats, error) : MR_OK;
    if (status == MR_OK && program) status = write_graph(program, session, &arena, &message, error);
    if (status == MR_OK) status = mr_proto_pack(&message, &arena, &bytes, error);
    if (status == MR_OK) status = mr_tensor_init_string(metadata, bytes, error);
    mr_arena_deinit(&arena);
    return status;
}
