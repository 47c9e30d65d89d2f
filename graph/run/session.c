/* Session: its lifetime, its devices, its table of steps, and the public functions.
 *
 * Locks: a step's mutex is taken before the session's. Both are held while a program is made, never while it runs and
 * never while waiting, except that runs with a guard hold their step's. So any number of runs may proceed at the same
 * time, and functions of a pipeline may run steps of the session that waits for their elements. */
#include "graph/run/session.h"
#include "base/cpu.h"
#include "base/options.h"

#include "graph/run/execute.h"
#include "graph/run/function.h"
#include "graph/run/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_status check_device(const char *device, mr_error *error)
{
    mr_arena arena = {0};
    const char *name = mr_device_name_merge(&arena, "", device, error);
    mr_arena_deinit(&arena);
    return name != nullptr ? MR_OK
                           : mr_fail_prefix(error, error ? error->status : MR_INVALID_ARGUMENT, "session.device");
}

mr_status mr_session_null(const char *argument, mr_error *error)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s is null", argument);
}

mr_status mr_session_check_list(const char *argument, const void *items, int32_t count, mr_error *error)
{
    if (count < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the count is %d", argument, (int)count);
    if (!items && count > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s is null, with a count of %d", argument, (int)count);
    return MR_OK;
}

/* cpu is set when the device is open. */
static void set_context(mr_session *session)
{
    session->context = (mr_plan_context){.session = session,
                                         .graph = session->graph,
                                         .states = &session->states,
                                         .options = &session->options,
                                         .gpus = session->gpus,
                                         .resources = &session->resources,
                                         .open_gpu = mr_session_gpu,
                                         .node_state = mr_session_node_state,
                                         .note = mr_session_note};
}

mr_status mr_session_new(mr_graph *graph, const mr_session_options *given, mr_session **session, mr_error *error)
{
    if (!session) return mr_session_null("mr_session_new: session", error);
    *session = nullptr;
    MR_TRY(mr_graph_check_complete(graph, error));
    mr_session_options options;
    MR_TRY(MR_OPTIONS_READ(mr_session_options, &options, given, error));
    if (options.device) MR_TRY(check_device(options.device, error));
    if (options.threads < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "session.threads is %d, but must be at least 0", options.threads);
    if (options.timeout_ms < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "session.timeout_ms is %" PRId64, options.timeout_ms);
    mr_session *made = calloc(1, sizeof *made);
    if (!made) return mr_fail_memory(error, sizeof *made);
    made->graph = graph;
    made->options = options;
    pthread_mutex_init(&made->mutex, nullptr);
    mr_cancellation_init(&made->runs);
    made->default_device = strdup(options.device ? options.device : "");
    made->options.device = made->default_device;
    set_context(made);
    mr_status status = made->default_device ? MR_OK : mr_fail_memory(error, 1);
    if (status == MR_OK) status = mr_pool_new(made->options.threads, &made->pool, error);
    if (status == MR_OK) status = mr_device_cpu_new(made->pool, &made->cpu, error);
    if (status != MR_OK) {
        mr_session_free(made);
        return status;
    }
    made->context.cpu = made->cpu;
    *session = made;
    return MR_OK;
}

static void free_step(mr_step *step)
{
    mr_program_unref(step->program);
    pthread_mutex_destroy(&step->mutex);
    mr_arena_deinit(&step->arena);
    free(step);
}

void mr_session_free(mr_session *session)
{
    if (!session) return;
    for (uint32_t i = 0; i < session->step_bucket_count; i++)
        for (mr_step *step = session->steps[i], *next; step; step = next) {
            next = step->next;
            free_step(step);
        }
    free(session->steps);
    mr_resource_table_deinit(&session->resources); /* iterators call functions */
    mr_session_free_functions(session);
    mr_node_states_deinit(&session->states);
    mr_arena_deinit(&session->arena);
    for (int i = 0; i < MR_DEVICES_MAX; i++) mr_device_close(session->gpus[i]);
    mr_device_free(session->cpu);
    mr_pool_free(session->pool);
    mr_cancellation_deinit(&session->runs);
    pthread_mutex_destroy(&session->mutex);
    free(session->default_device);
    free(session->notes);
    free(session->times);
    free(session);
}

/* ---- Notes and devices ---- */

void mr_session_note(mr_session *session, const char *format, ...)
{
    char line[1024];
    assert(mr_mutex_is_held(&session->mutex));
    va_list args;
    va_start(args, format);
    int written = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (written < 0) return;
    size_t length = strlen(line);
    line[length++] = '\n';
    line[length] = '\0';
    if (session->notes && strstr(session->notes, line)) return;
    if (!session->notes || session->note_size_bytes + length + 1 > session->note_capacity_bytes) {
        size_t capacity_bytes = 2 * (session->note_capacity_bytes + length + 1);
        char *larger = realloc(session->notes, capacity_bytes);
        if (!larger) return;
        session->notes = larger;
        session->note_capacity_bytes = capacity_bytes;
    }
    assert(session->note_size_bytes + length < session->note_capacity_bytes);
    memcpy(session->notes + session->note_size_bytes, line, length + 1);
    session->note_size_bytes += length;
    session->notes_copy = nullptr;
}

/* The notes may be reallocated when another thread plans, so callers get a copy that stays valid. */
const char *mr_session_log(const mr_session *session)
{
    mr_session *own = (mr_session *)session;
    if (!own) return "";
    pthread_mutex_lock(&own->mutex);
    if (!own->notes_copy && own->notes) own->notes_copy = mr_arena_strdup(&own->arena, own->notes);
    const char *copy = own->notes_copy;
    pthread_mutex_unlock(&own->mutex);
    return copy ? copy : "";
}

mr_device *mr_session_gpu(mr_session *session, int index, mr_error *error)
{
    assert(mr_mutex_is_held(&session->mutex));
    if (index < 0 || index >= MR_DEVICES_MAX) {
        (void)mr_fail(error, MR_INVALID_ARGUMENT, "there is no GPU %d", index);
        return nullptr;
    }
    if (session->gpus[index]) return session->gpus[index];
    mr_error reason = {0};
    mr_status status = mr_device_retain(MR_DEVICE_GPU, index, &session->gpus[index], &reason);
    if (status == MR_OK) return session->gpus[index];
    mr_session_note(session, "/device:GPU:%d is not used: %s", index, reason.message);
    (void)mr_fail(error, status, "%s", reason.message);
    return nullptr;
}

/* ---- Steps ---- */

typedef struct step_key {
    const mr_output *feeds;
    const mr_feed *run_feeds; /* used instead of feeds by mr_session_run */
    int32_t feed_count;
    mr_outputs fetches;
    mr_node *const *targets;
    int32_t target_count;
    int32_t guard; /* index of a fetch, or -1 */
} step_key;

static mr_output key_feed(const step_key *key, int32_t index)
{
    assert(index < key->feed_count && (key->run_feeds || key->feeds));
    return key->run_feeds ? key->run_feeds[index].output : key->feeds[index];
}

static uint64_t mix_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t hash_key(const step_key *key)
{
    uint64_t hash = mix_word((uint64_t)key->feed_count << 32 | (uint32_t)key->fetches.count,
                             (uint64_t)key->target_count << 32 | (uint32_t)key->guard);
    for (int32_t i = 0; i < key->feed_count; i++)
        hash = mix_word(hash, (uintptr_t)key_feed(key, i).node + (uint64_t)key_feed(key, i).index);
    for (int32_t i = 0; i < key->fetches.count; i++)
        hash = mix_word(hash, (uintptr_t)key->fetches.items[i].node + (uint64_t)key->fetches.items[i].index);
    for (int32_t i = 0; i < key->target_count; i++) hash = mix_word(hash, (uintptr_t)key->targets[i]);
    return hash;
}

static bool same_output(mr_output a, mr_output b)
{
    return a.node == b.node && a.index == b.index;
}

static bool is_step(const mr_step *step, const step_key *key, uint64_t hash)
{
    const mr_signature *has = &step->signature;
    if (step->hash != hash || has->feed_count != key->feed_count || has->fetch_count != key->fetches.count ||
        has->target_count != key->target_count || has->guard != key->guard)
        return false;
    for (int32_t i = 0; i < key->feed_count; i++)
        if (!same_output(has->feeds[i], key_feed(key, i))) return false;
    for (int32_t i = 0; i < key->fetches.count; i++)
        if (!same_output(has->fetches[i], key->fetches.items[i])) return false;
    for (int32_t i = 0; i < key->target_count; i++)
        if (has->targets[i] != key->targets[i]) return false;
    return true;
}

static mr_status check_output(const mr_session *session, mr_output output, const char *what, int32_t index,
                              mr_error *error)
{
    if (!output.node) {
        const char *name = mr_graph_missing_name(session->graph, output);
        if (name) return mr_fail(error, MR_NOT_FOUND, "%s %d: the graph has no output %s", what, (int)index, name);
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s %d is not an output of a graph", what, (int)index);
    }
    if (output.node->graph != session->graph || output.node->id < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s %d, %s, belongs to another graph", what, (int)index,
                       output.node->name ? output.node->name : "(a failed builder)");
    if (output.index < 0 || output.index >= output.node->output_count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s %d: %s (%s) has %d outputs, so :%d does not exist", what,
                       (int)index, output.node->name, output.node->op, (int)output.node->output_count,
                       (int)output.index);
    return MR_OK;
}

static mr_status check_key(const mr_session *session, const step_key *key, mr_error *error)
{
    MR_TRY(mr_graph_check_complete(session->graph, error));
    for (int32_t i = 0; i < key->feed_count; i++) {
        MR_TRY(check_output(session, key_feed(key, i), "feed", i, error));
        for (int32_t j = 0; j < i; j++)
            if (same_output(key_feed(key, i), key_feed(key, j)))
                return mr_fail(error, MR_INVALID_ARGUMENT, "%s:%d is fed twice", key_feed(key, i).node->name,
                               (int)key_feed(key, i).index);
    }
    for (int32_t i = 0; i < key->fetches.count; i++)
        MR_TRY(check_output(session, key->fetches.items[i], "fetch", i, error));
    for (int32_t i = 0; i < key->target_count; i++)
        if (!key->targets[i] || key->targets[i]->graph != session->graph || key->targets[i]->id < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "target %d is not a node of the session's graph", (int)i);
    return MR_OK;
}

static mr_status copy_key(mr_arena *arena, const step_key *key, mr_signature *signature, mr_error *error)
{
    mr_output *feeds = MR_ARENA_NEW(arena, mr_output, (size_t)key->feed_count + 1);
    mr_output *fetches = MR_ARENA_NEW(arena, mr_output, (size_t)key->fetches.count + 1);
    mr_node **targets = MR_ARENA_NEW(arena, mr_node *, (size_t)key->target_count + 1);
    if (!feeds || !fetches || !targets) return mr_fail_memory(error, sizeof(mr_output) * (size_t)key->fetches.count);
    for (int32_t i = 0; i < key->feed_count; i++) feeds[i] = key_feed(key, i);
    for (int32_t i = 0; i < key->fetches.count; i++) fetches[i] = key->fetches.items[i];
    for (int32_t i = 0; i < key->target_count; i++) targets[i] = key->targets[i];
    *signature = (mr_signature){.feed_count = key->feed_count,
                                .fetch_count = key->fetches.count,
                                .target_count = key->target_count,
                                .feeds = feeds,
                                .fetches = fetches,
                                .targets = targets,
                                .guard = key->guard};
    return MR_OK;
}

static mr_status make_step(mr_session *session, const step_key *key, uint64_t hash, mr_step **step, mr_error *error)
{
    mr_step *made = calloc(1, sizeof *made);
    if (!made) return mr_fail_memory(error, sizeof *made);
    pthread_mutex_init(&made->mutex, nullptr);
    made->session = session;
    made->hash = hash;
    mr_status status = copy_key(&made->arena, key, &made->signature, error);
    if (status == MR_OK) status = mr_plan_make(&made->signature, &session->context, &made->program, error);
    if (status != MR_OK) {
        free_step(made);
        return status;
    }
    *step = made;
    return MR_OK;
}

static mr_status add_step(mr_session *session, mr_step *step, mr_error *error)
{
    assert(mr_mutex_is_held(&session->mutex));
    assert((session->step_bucket_count & (session->step_bucket_count - 1)) == 0);
    if (session->step_count >= session->step_bucket_count) {
        uint32_t count = session->step_bucket_count ? 2 * session->step_bucket_count : 16;
        mr_step **larger = calloc(count, sizeof(mr_step *));
        if (!larger) return mr_fail_memory(error, count * sizeof(mr_step *));
        for (uint32_t i = 0; i < session->step_bucket_count; i++)
            for (mr_step *at = session->steps[i], *next; at; at = next) {
                next = at->next;
                at->next = larger[at->hash & (count - 1)];
                larger[at->hash & (count - 1)] = at;
            }
        free(session->steps);
        session->steps = larger;
        session->step_bucket_count = count;
    }
    mr_step **bucket = &session->steps[step->hash & (session->step_bucket_count - 1)];
    assert(step->program && !step->next);
    step->next = *bucket;
    *bucket = step;
    session->step_count++;
    return MR_OK;
}

/* Finds the step of the key, or plans and stores it. The caller holds the session's mutex. */
static mr_status find_step(mr_session *session, const step_key *key, mr_step **step, mr_error *error)
{
    assert(mr_mutex_is_held(&session->mutex));
    assert(key->guard >= -1 && key->guard < key->fetches.count);
    uint64_t hash = hash_key(key);
    if (session->step_bucket_count > 0)
        for (mr_step *at = session->steps[hash & (session->step_bucket_count - 1)]; at; at = at->next)
            if (is_step(at, key, hash)) {
                *step = at;
                return mr_graph_status(session->graph, error);
            }
    MR_TRY(check_key(session, key, error));
    MR_TRY(make_step(session, key, hash, step, error));
    mr_status status = add_step(session, *step, error);
    if (status != MR_OK) free_step(*step);
    return status;
}

mr_status mr_session_prepare(mr_session *session, const mr_output *feeds, int32_t feed_count, mr_outputs fetches,
                             mr_node *const *targets, int32_t target_count, mr_step **step, mr_error *error)
{
    if (!step) return mr_session_null("mr_session_prepare: step", error);
    *step = nullptr;
    if (!session) return mr_session_null("mr_session_prepare: session", error);
    MR_TRY(mr_session_check_list("mr_session_prepare: feeds", feeds, feed_count, error));
    MR_TRY(mr_session_check_list("mr_session_prepare: fetches", fetches.items, fetches.count, error));
    MR_TRY(mr_session_check_list("mr_session_prepare: targets", targets, target_count, error));
    step_key key = {.feeds = feeds,
                    .feed_count = feed_count,
                    .fetches = fetches,
                    .targets = targets,
                    .target_count = target_count,
                    .guard = -1};
    pthread_mutex_lock(&session->mutex);
    mr_status status = find_step(session, &key, step, error);
    pthread_mutex_unlock(&session->mutex);
    return status;
}

/* Plans the step again if the graph has changed. The caller holds the step's mutex. */
static mr_status update_program(mr_step *step, mr_error *error)
{
    mr_session *session = step->session;
    mr_program *program = nullptr;
    assert(mr_mutex_is_held(&step->mutex));
    uint64_t version = __atomic_load_n(&session->graph->version, __ATOMIC_RELAXED);
    if (step->program->graph_version == version) return MR_OK;
    pthread_mutex_lock(&session->mutex);
    mr_status status = mr_plan_make(&step->signature, &session->context, &program, error);
    pthread_mutex_unlock(&session->mutex);
    if (status != MR_OK) return status;
    mr_program_unref(step->program);
    step->program = program;
    return MR_OK;
}

constexpr int32_t LOOP_TIMES_MAX = 1 << 16;

/* Makes the times of a run those that mr_session_trace_times reports. */
static void set_times(mr_session *session, mr_status status, mr_node_time *times, int32_t count)
{
    pthread_mutex_lock(&session->mutex);
    mr_node_time *before = times;
    if (status == MR_OK && __atomic_load_n(&session->trace, __ATOMIC_RELAXED)) {
        before = session->times;
        session->times = times;
        session->time_count = count;
    }
    pthread_mutex_unlock(&session->mutex);
    free(before);
}

static mr_status run_traced(mr_session *session, mr_frame *frame, const mr_tensor *values, mr_tensor *results,
                            bool *diverged, mr_error *error)
{
    frame->times_capacity = frame->program->call_count;
    if (frame->program->region_count > 1 && frame->times_capacity < LOOP_TIMES_MAX)
        frame->times_capacity = LOOP_TIMES_MAX; /* the calls of loops run several times */
    size_t size_bytes = ((size_t)frame->times_capacity + 1) * sizeof *frame->times;
    frame->times = malloc(size_bytes);
    if (!frame->times) return mr_fail_memory(error, size_bytes);
    mr_status status = mr_frame_run(frame, values, results, diverged, error);
    mr_node_time *times = frame->times;
    int32_t count = frame->timed_count;
    frame->times = nullptr;
    frame->timed_count = 0;
    set_times(session, status, times, count);
    return status;
}

static mr_status run_program(mr_session *session, const mr_run_options *options, mr_program *program,
                             mr_run_trace *trace, const mr_tensor *values, mr_tensor *results, bool *diverged,
                             mr_error *error)
{
    mr_frame *frame;
    mr_run_context run;
    MR_TRY(mr_frame_take(program, 0, &frame, error));
    bool flushes = mr_cpu_flush_subnormals(true); /* as TensorFlow's threads do */
    mr_run_context_init(&run, session, &session->runs, options->cancellation, options->timeout_ms);
    run.rights.read_only = session->options.read_only;
    run.trace = trace;
    run.watch = options->watch;
    frame->run = &run;
    mr_status status = !options->is_untraced && __atomic_load_n(&session->trace, __ATOMIC_RELAXED)
                           ? run_traced(session, frame, values, results, diverged, error)
                           : mr_frame_run(frame, values, results, diverged, error);
    mr_run_context_deinit(&run, &session->runs, options->cancellation);
    frame->run = nullptr;
    mr_frame_give(frame);
    (void)mr_cpu_flush_subnormals(flushes);
    return status;
}

/* run_program, which also makes the metadata that the options request. */
static mr_status run_reported(mr_session *session, const mr_run_options *options, mr_program *program,
                              const mr_tensor *values, mr_tensor *results, bool *diverged, mr_error *error)
{
    mr_run_trace *trace = nullptr;
    const mr_signature *signature = &program->signature;
    if (options->watch) MR_TRY(mr_watch_constants(options->watch, program, session->cpu, error));
    if (options->metadata && options->trace) MR_TRY(mr_run_trace_new(&trace, error));
    mr_status status = run_program(session, options, program, trace, values, results, diverged, error);
    if (status == MR_OK && options->metadata) {
        const mr_program *reported = options->output_partition_graphs ? program : nullptr;
        status = mr_run_metadata_make(trace, reported, session, options->metadata, error);
        for (int32_t i = 0; i < signature->fetch_count && status != MR_OK; i++) mr_tensor_deinit(&results[i]);
    }
    mr_run_trace_free(trace);
    return status;
}

static mr_status read_options(const mr_session *session, const mr_run_options *given, mr_run_options *options,
                              mr_error *error)
{
    *options = (mr_run_options){.size = sizeof *options};
    if (given) MR_TRY(MR_OPTIONS_READ(mr_run_options, options, given, error));
    if (options->metadata) *options->metadata = (mr_tensor){0};
    if (options->watch && !options->watch->see)
        return mr_fail(error, MR_INVALID_ARGUMENT, "run.watch has no function `see`");
    if (options->timeout_ms < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "run.timeout_ms is %" PRId64, options->timeout_ms);
    if (options->timeout_ms == 0) options->timeout_ms = session->options.timeout_ms;
    return MR_OK;
}

static mr_status run_step(mr_step *step, const mr_run_options *given, const mr_tensor *values, mr_tensor *results,
                          bool *diverged, mr_error *error)
{
    bool is_alone = step->signature.guard >= 0;
    mr_run_options options;
    MR_TRY(read_options(step->session, given, &options, error));
    pthread_mutex_lock(&step->mutex);
    mr_status status = update_program(step, error);
    mr_program *program = status == MR_OK ? mr_program_ref(step->program) : nullptr;
    if (!is_alone) pthread_mutex_unlock(&step->mutex);
    if (status == MR_OK) status = run_reported(step->session, &options, program, values, results, diverged, error);
    if (is_alone) pthread_mutex_unlock(&step->mutex);
    mr_program_unref(program);
    return status;
}

mr_status mr_step_run_with(mr_step *step, const mr_run_options *options, const mr_tensor *values, mr_tensor *results,
                           mr_error *error)
{
    bool diverged = false;
    if (!step) return mr_session_null("mr_step_run: step", error);
    MR_TRY(mr_session_check_list("mr_step_run: values", values, step->signature.feed_count, error));
    MR_TRY(mr_session_check_list("mr_step_run: results", results, step->signature.fetch_count, error));
    assert(step->signature.guard < 0);
    return run_step(step, options, values, results, &diverged, error);
}

mr_status mr_step_run(mr_step *step, const mr_tensor *values, mr_tensor *results, mr_error *error)
{
    return mr_step_run_with(step, nullptr, values, results, error);
}

constexpr int32_t FEEDS_ON_STACK = 16;

static mr_status run_once(mr_session *session, const mr_run_options *options, mr_feeds feeds, mr_outputs fetches,
                          mr_tensor *results, mr_node *const *targets, int32_t target_count, int32_t guard,
                          bool *diverged, mr_error *error)
{
    *diverged = false;
    if (!session) return mr_session_null("mr_session_run: session", error);
    MR_TRY(mr_session_check_list("mr_session_run: fetches", fetches.items, fetches.count, error));
    MR_TRY(mr_session_check_list("mr_session_run: results", results, fetches.count, error));
    for (int32_t i = 0; i < fetches.count; i++) results[i] = (mr_tensor){0};
    MR_TRY(mr_session_check_list("mr_session_run: feeds", feeds.items, feeds.count, error));
    MR_TRY(mr_session_check_list("mr_session_run: targets", targets, target_count, error));
    step_key key = {.run_feeds = feeds.items,
                    .feed_count = feeds.count,
                    .fetches = fetches,
                    .targets = targets,
                    .target_count = target_count,
                    .guard = guard};
    mr_step *step;
    pthread_mutex_lock(&session->mutex);
    mr_status status = find_step(session, &key, &step, error);
    pthread_mutex_unlock(&session->mutex);
    if (status != MR_OK) return status;
    mr_tensor few[FEEDS_ON_STACK], *values = few;
    if (feeds.count > FEEDS_ON_STACK) values = calloc((size_t)feeds.count, sizeof *values);
    if (!values) return mr_fail_memory(error, (size_t)feeds.count * sizeof *values);
    for (int32_t i = 0; i < feeds.count; i++) values[i] = feeds.items[i].value;
    status = run_step(step, options, values, results, diverged, error);
    if (values != few) free(values);
    return status;
}

mr_status mr_session_run_guarded(mr_session *session, mr_feeds feeds, mr_outputs fetches, mr_tensor *results,
                                 mr_node *const *targets, int32_t target_count, int32_t guard, bool *diverged,
                                 mr_error *error)
{
    return run_once(session, nullptr, feeds, fetches, results, targets, target_count, guard, diverged, error);
}

mr_status mr_session_run_with(mr_session *session, const mr_run_options *options, mr_feeds feeds, mr_outputs fetches,
                              mr_tensor *results, mr_node *const *targets, int32_t target_count, mr_error *error)
{
    bool diverged = false;
    return run_once(session, options, feeds, fetches, results, targets, target_count, -1, &diverged, error);
}

void mr_session_cancel(mr_session *session)
{
    if (session) mr_cancellation_stop_all(&session->runs);
}

mr_status mr_session_run(mr_session *session, mr_feeds feeds, mr_outputs fetches, mr_tensor *results,
                         mr_node *const *targets, int32_t target_count, mr_error *error)
{
    return mr_session_run_with(session, nullptr, feeds, fetches, results, targets, target_count, error);
}

/* ---- Access to variables ---- */

mr_status mr_session_variable(mr_session *session, mr_output ref, mr_variable_state **variable, mr_error *error)
{
    MR_TRY(check_output(session, ref, "variable", 0, error));
    const mr_node *node = ref.node;
    for (int hops = 0; hops < 8 && !mr_state_find(node->op) && node->input_count > 0; hops++)
        node = node->inputs[0].node;
    mr_resource *resource = nullptr;
    if (mr_state_find(node->op)) {
        pthread_mutex_lock(&session->mutex);
        mr_status status = mr_plan_resource(&session->context, node, &resource, error);
        pthread_mutex_unlock(&session->mutex);
        MR_TRY(status);
    }
    if (!resource || resource->class != &mr_variable_class)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) is not a variable", ref.node->name, ref.node->op);
    *variable = (mr_variable_state *)resource;
    return MR_OK;
}

mr_status mr_session_read_variable(mr_session *session, mr_output ref, mr_tensor *value, mr_error *error)
{
    if (!value) return mr_session_null("mr_session_read_variable: value", error);
    *value = (mr_tensor){0};
    if (!session) return mr_session_null("mr_session_read_variable: session", error);
    mr_variable_state *variable;
    MR_TRY(mr_session_variable(session, ref, &variable, error));
    mr_tensor share = {0};
    MR_TRY(mr_variable_snapshot(variable, &share, error));
    mr_status status = mr_tensor_to_host(&share, value, error);
    mr_tensor_deinit(&share);
    return status;
}

mr_status mr_session_write_variable(mr_session *session, mr_output ref, const mr_tensor *value, mr_error *error)
{
    if (!session) return mr_session_null("mr_session_write_variable: session", error);
    if (!value) return mr_session_null("mr_session_write_variable: value", error);
    MR_TRY(mr_run_check_value(value, error));
    mr_variable_state *variable;
    MR_TRY(mr_session_variable(session, ref, &variable, error));
    mr_tensor there = {0};
    MR_TRY(mr_tensor_to_device(value, variable->device, &there, error));
    mr_status status = mr_variable_write(variable, &there, false, false, error);
    mr_tensor_deinit(&there);
    return status;
}

/* ---- Traces ---- */

void mr_session_trace(mr_session *session, bool enabled)
{
    if (!session) return;
    pthread_mutex_lock(&session->mutex);
    __atomic_store_n(&session->trace, enabled, __ATOMIC_RELAXED);
    if (!enabled) session->time_count = 0;
    pthread_mutex_unlock(&session->mutex);
}

int32_t mr_session_trace_times(const mr_session *session, mr_node_time *times, int32_t capacity)
{
    mr_session *own = (mr_session *)session;
    if (!own || !times) return 0;
    pthread_mutex_lock(&own->mutex);
    int32_t count = session->time_count < capacity ? session->time_count : capacity;
    if (count > 0) memcpy(times, session->times, (size_t)count * sizeof *times);
    pthread_mutex_unlock(&own->mutex);
    return count > 0 ? count : 0;
}
