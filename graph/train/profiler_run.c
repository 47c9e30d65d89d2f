/* Runs of a profile: the calls of a RunMetadata are added to the executions of their nodes, and complete the shapes of
 * the graph. */
#include "base/status.h"
#include "graph/ir/convert.h"
#include "graph/run/session.h"
#include "graph/train/profiler_flops.h"
#include "proto/proto.h"
#include "proto/run.pb-c.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Steps ---- */

static mr_status add_step(mr_profile *profile, int64_t step, mr_error *error)
{
    if (mr_profile_has_step(profile, step)) return MR_OK;
    if (profile->step_count == profile->step_capacity) {
        if (profile->step_capacity > INT32_MAX / 2) return mr_fail_memory(error, SIZE_MAX);
        const int32_t capacity = profile->step_capacity > 0 ? 2 * profile->step_capacity : 16;
        int64_t *steps = realloc(profile->steps, (size_t)capacity * sizeof *steps);
        if (steps == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *steps);
        profile->steps = steps;
        profile->step_capacity = capacity;
    }
    int32_t at = profile->step_count++;
    for (; at > 0 && profile->steps[at - 1] > step; at--) profile->steps[at] = profile->steps[at - 1];
    profile->steps[at] = step;
    return MR_OK;
}

/* ---- Devices ---- */

typedef struct device {
    char *name; /* in lower case */
    bool is_accelerator_time;
    bool is_canonical; /* "…/device:cpu:0", "…/gpu:1"; not a part of a device such as a stream */
} device;

static bool ends_with_device(const char *name, const char *kind)
{
    const char *colon = strrchr(name, ':'), *slash = strrchr(name, '/');
    if (colon == nullptr || slash == nullptr || slash > colon || colon[1] == '\0') return false;
    return (size_t)(colon - slash) == strlen(kind) + 1 && strncmp(slash + 1, kind, strlen(kind)) == 0 &&
           strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

static mr_status read_device(const Mr__DeviceStepStats *stats, mr_arena *arena, device *d, mr_error *error)
{
    d->name = mr_arena_strdup(arena, stats->device);
    if (d->name == nullptr) return mr_fail_memory(error, strlen(stats->device) + 1);
    for (char *at = d->name; *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z') *at = (char)(*at - 'A' + 'a');
    d->is_accelerator_time = strstr(d->name, "stream:all") != nullptr;
    d->is_canonical = ends_with_device(d->name, "device:gpu") || ends_with_device(d->name, "gpu") ||
                      ends_with_device(d->name, "device:cpu") || ends_with_device(d->name, "cpu");
    return MR_OK;
}

/* ---- Calls ---- */

/* A number of the file that cannot be negative. */
static int64_t at_least_0(int64_t value)
{
    return value > 0 ? value : 0;
}

static void add_time(mr_profile_execution *execution, const device *d, const Mr__NodeExecStats *call)
{
    if (call->all_start_micros <= 0) return;
    /* Less than a microsecond counts as one. */
    const int64_t micros = call->op_end_rel_micros > 0 ? call->op_end_rel_micros : 1;
    const int64_t start = call->all_start_micros, end = mr_profile_add(start, micros);
    const bool is_first = execution->start_micros == 0;
    execution->start_micros = is_first || start < execution->start_micros ? start : execution->start_micros;
    execution->end_micros = end > execution->end_micros ? end : execution->end_micros;
    mr_profile_figures more = {0};
    if (d->is_accelerator_time) {
        more.accelerator_micros = more.micros = micros;
    } else if (d->is_canonical) {
        more.cpu_micros = more.micros = micros;
        more.run_count = 1;
    }
    mr_profile_figures_add(&execution->figures, &more);
}

static int64_t output_bytes(const Mr__NodeExecStats *call)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < call->n_output; i++) {
        const Mr__TensorDescription *tensor = call->output[i]->tensor_description;
        if (tensor == nullptr || tensor->allocation_description == nullptr) continue;
        const int64_t requested = at_least_0(tensor->allocation_description->requested_bytes);
        const int64_t allocated = at_least_0(tensor->allocation_description->allocated_bytes);
        bytes = mr_profile_add(bytes, allocated > requested ? allocated : requested);
    }
    return bytes;
}

static void add_memory(mr_profile_execution *execution, const Mr__NodeExecStats *call)
{
    if (call->all_start_micros <= 0) return;
    mr_profile_figures more = {.output_bytes = output_bytes(call)};
    for (size_t i = 0; i < call->n_memory; i++) {
        more.requested_bytes = mr_profile_add(more.requested_bytes, at_least_0(call->memory[i]->total_bytes));
        more.peak_bytes = mr_profile_add(more.peak_bytes, at_least_0(call->memory[i]->peak_bytes));
        more.residual_bytes = mr_profile_add(more.residual_bytes, at_least_0(call->memory[i]->live_bytes));
    }
    if (call->memory_stats != nullptr) {
        const int64_t persistent = at_least_0(call->memory_stats->persistent_memory_size);
        const int64_t used = mr_profile_add(persistent, at_least_0(call->memory_stats->temp_memory_size));
        more.requested_bytes = mr_profile_add(more.requested_bytes, used);
        more.peak_bytes = mr_profile_add(more.peak_bytes, used);
        more.residual_bytes = mr_profile_add(more.residual_bytes, persistent);
    } else if (call->n_memory == 0) { /* a RunMetadata of this library */
        more.requested_bytes = more.peak_bytes = more.output_bytes;
    }
    mr_profile_figures_add(&execution->figures, &more);
}

/* The node's execution in a step. They are sorted, the last step first. */
static mr_profile_execution *find_execution(mr_profile *profile, mr_profile_node *node, int64_t step)
{
    mr_profile_execution **at = &node->executions;
    while (*at != nullptr && (*at)->step > step) at = &(*at)->next;
    if (*at != nullptr && (*at)->step == step) return *at;
    mr_profile_execution *made = MR_ARENA_NEW(&profile->arena, mr_profile_execution, 1);
    if (made == nullptr) return nullptr;
    *made = (mr_profile_execution){.step = step, .next = *at};
    *at = made;
    return made;
}

/* A node belongs to the first device on which it ran. Of other devices, only streams add to it. */
static mr_status add_call(mr_profile *profile, mr_profile_node *node, int64_t step, const device *d,
                          const Mr__NodeExecStats *call, mr_error *error)
{
    if (d->is_canonical) {
        if (node->device != nullptr && strcmp(node->device, d->name) != 0) return MR_OK;
        if (node->device == nullptr) node->device = d->name;
    }
    mr_profile_execution *execution = find_execution(profile, node, step);
    if (execution == nullptr) return mr_fail_memory(error, sizeof *execution);
    add_time(execution, d, call);
    if (d->is_canonical) add_memory(execution, call);
    return MR_OK;
}

/* ---- Nodes ---- */

/* Copies, sources of control edges and the like appear on several devices. */
static bool is_ignored(const char *name)
{
    return strcmp(name, "RecvTensor") == 0 || strcmp(name, "_SOURCE") == 0 || strstr(name, "MEMCPY") != nullptr;
}

/* The name before the first colon, after which some calls have details. Null: no memory. */
static char *name_of(const Mr__NodeExecStats *call, mr_arena *arena)
{
    return mr_arena_strndup(arena, call->node_name, strcspn(call->node_name, ":"));
}

/* The node of a call; null if it is ignored. A call of no node is an operator of its own. */
static mr_status find_node(mr_profile *profile, const Mr__NodeExecStats *call, mr_arena *scratch,
                           mr_profile_node **node, mr_error *error)
{
    *node = nullptr;
    const char *name = name_of(call, scratch);
    if (name == nullptr) return mr_fail_memory(error, strlen(call->node_name) + 1);
    const int32_t index = mr_name_table_get(&profile->names, name, -1);
    if (index >= 0) *node = profile->nodes[index];
    if (index >= 0 || is_ignored(name)) return MR_OK;
    const char *copy = mr_arena_strdup(&profile->arena, name);
    if (copy == nullptr) return mr_fail_memory(error, strlen(name) + 1);
    return mr_profile_add_node(profile, copy, copy, node, error);
}

/* Refines unknown sizes of the outputs. As in TensorFlow, only if the run reports every output, and if all agree. */
static void complete_shapes(mr_profile *profile, const Mr__NodeExecStats *call)
{
    const int32_t index = mr_name_table_get(&profile->names, call->node_name, -1);
    if (index < 0 || index >= profile->graph_node_count) return;
    mr_profile_node *node = profile->nodes[index];
    if (call->n_output != (size_t)node->output_count) return;
    for (size_t i = 0; i < call->n_output; i++) {
        const Mr__TensorDescription *tensor = call->output[i]->tensor_description;
        const int32_t slot = call->output[i]->slot;
        mr_shape shape, merged;
        if (tensor == nullptr || tensor->shape == nullptr || slot < 0 || slot >= node->output_count) continue;
        if (mr_shape_count(node->outputs[slot]) >= 0) continue;
        if (mr_shape_read(tensor->shape, &shape, nullptr) != MR_OK) continue;
        if (mr_shape_merge(node->outputs[slot], shape, &merged, nullptr) == MR_OK) node->outputs[slot] = merged;
    }
}

/* ---- Runs ---- */

static mr_status check_calls(const Mr__StepStats *stats, mr_error *error)
{
    for (size_t i = 0; i < stats->n_dev_stats; i++)
        for (size_t j = 0; j < stats->dev_stats[i]->n_node_stats; j++)
            MR_TRY(mr_profile_check_name(stats->dev_stats[i]->node_stats[j]->node_name, error));
    return MR_OK;
}

static mr_status add_calls(mr_profile *profile, int64_t step, const Mr__StepStats *stats, mr_arena *scratch,
                           mr_error *error)
{
    for (size_t i = 0; i < stats->n_dev_stats; i++) {
        device d = {0};
        MR_TRY(read_device(stats->dev_stats[i], &profile->arena, &d, error));
        for (size_t j = 0; j < stats->dev_stats[i]->n_node_stats; j++) {
            const Mr__NodeExecStats *call = stats->dev_stats[i]->node_stats[j];
            mr_profile_node *node;
            MR_TRY(find_node(profile, call, scratch, &node, error));
            if (node == nullptr) continue;
            MR_TRY(add_call(profile, node, step, &d, call, error));
            complete_shapes(profile, call);
        }
    }
    return MR_OK;
}

mr_status mr_profile_add_run(mr_profile *profile, int64_t step, mr_string run_metadata, mr_error *error)
{
    mr_arena scratch = {0};
    Mr__RunMetadata *metadata;
    if (profile == nullptr) return mr_session_null("mr_profile_add_run: profile", error);
    if (run_metadata.data == nullptr && run_metadata.size_bytes > 0)
        return mr_session_null("mr_profile_add_run: run_metadata", error);
    if (step < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_profile_add_run: step is %lld, less than 0", (long long)step);
    mr_status status = mr_proto_unpack_as(run_metadata, run_metadata, &scratch, &metadata, error);
    if (status == MR_DATA_LOSS)
        status = mr_fail_prefix(error, MR_INVALID_ARGUMENT, "mr_profile_add_run");
    else if (status == MR_OK && metadata->step_stats == nullptr)
        status = mr_fail(error, MR_INVALID_ARGUMENT,
                         "mr_profile_add_run: the RunMetadata has no step_stats; the run must be traced");
    if (status == MR_OK) status = check_calls(metadata->step_stats, error);
    if (status == MR_OK) status = add_step(profile, step, error);
    if (status == MR_OK) status = add_calls(profile, step, metadata->step_stats, &scratch, error);
    for (int32_t i = 0; status == MR_OK && i < profile->graph_node_count; i++)
        profile->nodes[i]->float_ops = mr_profile_count_float_ops(profile, profile->nodes[i]);
    mr_arena_deinit(&scratch);
    return status;
}
