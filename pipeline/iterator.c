/* Iterator: runs a pipeline for the user, saves and restores its state, and reports statistics.
 *
 * An execution is a pipeline with its engines and budget. mr_iterator_initialize replaces it by a new one.
 *
 * Lock order: serial_mutex, replace_mutex, the mutexes of engines. serial_mutex serializes the calls of iterators with
 * a handle. replace_mutex protects the replacement of the execution against cancel and statistics, which may come from
 * any thread. */
#include "base/arguments.h"
#include "base/element.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/pool.h"
#include "base/thread.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/tuner.h"
#include "pipeline/handle.h"
#include "pipeline/to_device.h"

#include <assert.h>
#include <millrace/record.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct execution {
    mr_dataset *dataset;
    mr_run run;
    mr_engines engines;
    mr_budget budget;
    mr_pipeline pipeline;
    bool may_mismatch; /* elements may have shapes that the iterator's spec does not allow */
} execution;

struct mr_iterator {
    mr_element_spec spec;
    mr_iterator_options options; /* of every execution; options left unset are those of its dataset */
    mr_watch *watch;
    execution *execution; /* null: not initialized */
    /* Guards is_cancelled, pending and the replacement of execution, so that cancel is allowed on any thread at any
     * time. */
    pthread_mutex_t replace_mutex;
    execution *pending; /* under construction by initialize */
    bool is_cancelled;
    /* Serializes callers once the iterator has a handle. Acquired before every other mutex. */
    pthread_mutex_t serial_mutex;
    bool has_handle;
    mr_handle handle;
    bool has_digest;
    uint64_t digest, digested;        /* CRC of the delivered elements; number of elements in it */
    uint32_t crcs[MR_COMPONENTS_MAX]; /* checksums of the delivered element, if it is on a device */
};

/* ---- Executions ---- */

static void execution_free(execution *execution)
{
    if (execution == nullptr) return;
    /* Stops the pipelines inside stages too, before deinit waits for them. */
    mr_engines_cancel(&execution->engines);
    mr_pipeline_deinit(&execution->pipeline);
    mr_engines_deinit(&execution->engines);
    mr_tuning_free(execution->run.tuning);
    mr_dataset_free(execution->dataset);
    free(execution);
}

/* Pinned memory, which a device copies from asynchronously. */
static mr_status allocate_pinned(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    mr_device *device = context;
    return device->functions->allocate_host(device, size_bytes, buffer, error);
}

/* budget_bytes  0: half of the memory, of which at most 1 GiB is for reading ahead */
static void set_limits(mr_budget *budget, size_t budget_bytes)
{
    constexpr size_t READ_AHEAD_BYTES = (size_t)1 << 30;
    size_t half_bytes = mr_memory_bytes() / 2;
    budget->limit_bytes = budget_bytes > 0 ? budget_bytes : half_bytes > 0 ? half_bytes : READ_AHEAD_BYTES;
    if (budget_bytes == 0 && budget->limit_bytes > READ_AHEAD_BYTES) budget->read_ahead_bytes = READ_AHEAD_BYTES;
}

static mr_status execution_new(mr_iterator *iterator, mr_dataset *dataset, execution **result, mr_error *error)
{
    MR_TRY(mr_nesting_check(mr_nesting() + MR_NESTING_PIPELINE, error));
    execution *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr_iterator_options options = iterator->options;
    if (options.threads == 0) options.threads = dataset->options.threads;
    if (options.budget_bytes == 0) options.budget_bytes = dataset->options.budget_bytes;
    made->dataset = mr_dataset_ref(dataset);
    mr_engines_init(&made->engines);
    made->run.seed = options.seed;
    made->run.nesting = mr_nesting() + MR_NESTING_PIPELINE;
    made->run.threads = options.threads > 0 ? options.threads : mr_processor_count();
    set_limits(&made->budget, options.budget_bytes);
    made->budget.pipeline = &made->pipeline;
    made->run.budget = &made->budget;
    made->run.allocate = options.allocate;
    made->run.allocate_context = options.allocate_context;
    if (options.allocate == nullptr && mr_dataset_device(dataset) != nullptr) {
        made->run.allocate = allocate_pinned;
        made->run.allocate_context = mr_dataset_device(dataset);
    }
    made->run.has_digest = options.digest;
    made->run.watch = iterator->watch;
    made->run.engines = &made->engines;
    mr_status status = mr_tuning_new(&options, &made->run, &made->run.tuning, error);
    if (status == MR_OK)
        *result = made;
    else
        execution_free(made);
    return status;
}

/* While the new execution is built, cancel reaches its engines; afterwards, cancel reaches all of it. */
static mr_status replace_execution(mr_iterator *iterator, mr_dataset *dataset, mr_error *error)
{
    execution *made = nullptr;
    MR_TRY(execution_new(iterator, dataset, &made, error));
    pthread_mutex_lock(&iterator->replace_mutex);
    assert(iterator->pending == nullptr);
    iterator->pending = made;
    bool is_cancelled = iterator->is_cancelled;
    pthread_mutex_unlock(&iterator->replace_mutex);
    mr_status status = is_cancelled ? mr_fail(error, MR_CANCELLED, "the iterator was cancelled") : MR_OK;
    if (status == MR_OK) status = mr_pipeline_init(&made->pipeline, dataset, &made->run, 0, error);
    if (status == MR_OK && made->run.tuning != nullptr) mr_tuning_begin(made->run.tuning);
    if (status == MR_OK) status = mr_stage_begin(made->pipeline.top, 0, error);
    pthread_mutex_lock(&iterator->replace_mutex);
    iterator->pending = nullptr;
    execution *old = made;
    assert(status != MR_OK || made->pipeline.top != nullptr);
    if (status == MR_OK) {
        old = iterator->execution;
        iterator->execution = made;
        if (iterator->is_cancelled) mr_stage_cancel(made->pipeline.top);
    }
    pthread_mutex_unlock(&iterator->replace_mutex);
    execution_free(old);
    return status;
}

/* ---- The user's functions ---- */

static mr_status new_iterator(const mr_element_spec *spec, const mr_iterator_options *given, mr_iterator **iterator,
                              mr_error *error)
{
    mr_iterator_options options;
    MR_TRY(MR_OPTIONS_READ(mr_iterator_options, &options, given, error));
    if (options.threads < 0 || options.threads > MR_THREADS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: threads is %d, expected 0 to %d", options.threads,
                       MR_THREADS_MAX);
    if (options.threads_first < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: threads_first is %d, expected at least 0",
                       options.threads_first);
    bool is_tuned = options.tune == MR_TUNE_ON || (options.tune == MR_TUNE_AUTO && options.threads == 0);
    if (options.threads_first > 0 && !is_tuned)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: threads_first has no effect: the iterator is not tuned");
    if (options.allocate == nullptr && options.allocate_context != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: allocate_context has no effect: allocate is null");
    mr_iterator *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->spec = *spec;
    for (int32_t i = 0; i < spec->count; i++) made->spec.names[i] = nullptr;
    pthread_mutex_init(&made->replace_mutex, nullptr);
    pthread_mutex_init(&made->serial_mutex, nullptr);
    made->options = options;
    made->options.trace_path = nullptr; /* borrowed from the caller; used only by mr_watch_new */
    made->has_digest = options.digest;
    mr_status status = mr_watch_new(&options, &made->watch, error);
    if (status == MR_OK)
        *iterator = made;
    else
        mr_iterator_free(made);
    return status;
}

mr_status mr_iterator_new(mr_dataset *dataset, const mr_iterator_options *options, mr_iterator **iterator,
                          mr_error *error)
{
    MR_REFUSE_NULL(iterator, error);
    *iterator = nullptr;
    MR_TRY(mr_dataset_status(dataset, error));
    mr_iterator *made = nullptr;
    MR_TRY(new_iterator(&dataset->spec, options, &made, error));
    mr_status status = replace_execution(made, dataset, error);
    if (status == MR_OK)
        *iterator = made;
    else
        mr_iterator_free(made);
    return status;
}

mr_status mr_iterator_new_from_spec(const mr_element_spec *spec, const mr_iterator_options *options,
                                    mr_iterator **iterator, mr_error *error)
{
    MR_REFUSE_NULL(iterator, error);
    *iterator = nullptr;
    if (spec == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_iterator_new_from_spec: spec is null");
    if (spec->count < 1 || spec->count > MR_COMPONENTS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: the spec has %d components, expected 1 to %d",
                       spec->count, MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < spec->count; i++)
        if (mr_dtype_size(spec->dtypes[i]) == 0 || spec->shapes[i].rank > MR_RANK_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "iterator: component %d of the spec has an invalid dtype or shape: %s of %d dimensions", i,
                           mr_dtype_name(spec->dtypes[i]), spec->shapes[i].rank);
    return new_iterator(spec, options, iterator, error);
}

/* Whether every tensor of shape `given` also has shape `wanted`. */
static bool shape_is_within(mr_shape given, mr_shape wanted)
{
    if (wanted.rank < 0) return true;
    if (given.rank != wanted.rank) return false;
    for (int32_t d = 0; d < wanted.rank; d++)
        if (wanted.dims[d] >= 0 && given.dims[d] != wanted.dims[d]) return false;
    return true;
}

static void lock_calls(mr_iterator *iterator)
{
    if (iterator->has_handle) pthread_mutex_lock(&iterator->serial_mutex);
}

static void unlock_calls(mr_iterator *iterator)
{
    if (iterator->has_handle) pthread_mutex_unlock(&iterator->serial_mutex);
}

mr_status mr_iterator_initialize(mr_iterator *iterator, mr_dataset *dataset, mr_error *error)
{
    MR_REFUSE_NULL(iterator, error);
    MR_TRY(mr_dataset_status(dataset, error));
    mr_status status = mr_spec_check(&dataset->spec, &iterator->spec, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "initialize");
    bool may_mismatch = false;
    for (int32_t i = 0; i < dataset->spec.count; i++)
        may_mismatch |= !shape_is_within(dataset->spec.shapes[i], iterator->spec.shapes[i]);
    lock_calls(iterator);
    status = replace_execution(iterator, dataset, error);
    if (status == MR_OK) {
        iterator->execution->may_mismatch = may_mismatch;
        iterator->digest = iterator->digested = 0;
    }
    unlock_calls(iterator);
    return status;
}

const mr_element_spec *mr_iterator_spec(const mr_iterator *iterator)
{
    return &iterator->spec;
}

mr_status mr_iterator_handle(mr_iterator *iterator, mr_tensor *handle, mr_error *error)
{
    MR_REFUSE_NULL(iterator, error);
    MR_REFUSE_NULL(handle, error);
    if (!iterator->has_handle) MR_TRY(mr_handle_new(iterator, &iterator->handle, error));
    iterator->has_handle = true;
    return mr_handle_write(iterator->handle, handle, error);
}

void mr_iterator_free(mr_iterator *iterator)
{
    if (iterator == nullptr) return;
    if (iterator->has_handle) {
        mr_handle_invalidate(iterator->handle);
        mr_iterator_cancel(iterator);
        mr_handle_free(iterator->handle);
    }
    execution_free(iterator->execution);
    mr_watch_free(iterator->watch);
    pthread_mutex_destroy(&iterator->replace_mutex);
    pthread_mutex_destroy(&iterator->serial_mutex);
    free(iterator);
}

/* The end of the sequence has no element to name, and cancel comes at any time. */
static void digest_element(mr_iterator *iterator, mr_status status, const mr_element *element)
{
    if (status == MR_OUT_OF_RANGE || status == MR_CANCELLED) return;
    uint64_t digest = mr_digest(iterator->digest, iterator->digested++);
    digest = mr_digest(digest, (uint64_t)status);
    for (int32_t c = 0; status == MR_OK && c < element->count; c++) {
        const mr_tensor *tensor = &element->tensors[c];
        digest = mr_digest(digest, (uint64_t)tensor->dtype);
        digest = mr_digest(digest, (uint64_t)tensor->shape.rank);
        for (int32_t i = 0; i < tensor->shape.rank; i++) digest = mr_digest(digest, (uint64_t)tensor->shape.dims[i]);
        assert(mr_shape_count(tensor->shape) >= 0);
        if (tensor->dtype != MR_STRING) {
            bool is_here = mr_tensor_device(tensor) == nullptr;
            digest = mr_digest(digest,
                               is_here ? mr_crc32c(0, tensor->data, mr_tensor_size_bytes(tensor)) : iterator->crcs[c]);
            continue;
        }
        const mr_string *strings = mr_tensor_strings(tensor);
        for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
            digest = mr_digest(digest, strings[i].size_bytes);
            digest = mr_digest(digest, mr_crc32c(0, strings[i].data, strings[i].size_bytes));
        }
    }
    iterator->digest = digest;
}

uint64_t mr_iterator_digest(const mr_iterator *iterator)
{
    if (iterator == nullptr) return 0;
    return iterator->has_digest ? iterator->digest : 0;
}

mr_status mr_iterator_trace_stop(mr_iterator *iterator, mr_error *error)
{
    MR_REFUSE_NULL(iterator, error);
    mr_trace *trace = mr_watch_trace(iterator->watch);
    return trace == nullptr ? MR_OK : mr_trace_stop(trace, error);
}

static mr_status next_tensors(mr_iterator *iterator, mr_tensor *tensors, mr_error *error)
{
    mr_stage *top = iterator->execution->pipeline.top;
    assert(top != nullptr);
    if (mr_is_to_device(top)) return mr_to_device_next(top, tensors, iterator->crcs, error);
    return mr_engine_next(top, tensors, error);
}

/* Reports the call to the watchdog and the trace. */
static mr_status next_watched(mr_iterator *iterator, mr_tensor *tensors, mr_error *error)
{
    mr_watch *watch = iterator->watch;
    uint64_t start_ns = mr_now_ns();
    mr_watch_wait(watch, start_ns);
    mr_status status = next_tensors(iterator, tensors, error);
    mr_watch_wait(watch, 0);
    return status;
}

/* Needed if the dataset's spec is less specific than the iterator's. */
static mr_status check_element(const mr_iterator *iterator, mr_element *element, mr_error *error)
{
    for (int32_t i = 0; i < element->count; i++) {
        mr_shape found = element->tensors[i].shape;
        if (mr_shape_compatible(found, iterator->spec.shapes[i])) continue;
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        mr_element_clear(element);
        return mr_fail(error, MR_INVALID_ARGUMENT, "component %d has shape %s, expected %s", i,
                       mr_shape_text(found, a, sizeof a), mr_shape_text(iterator->spec.shapes[i], b, sizeof b));
    }
    return MR_OK;
}

static mr_status fail_uninitialized(mr_error *error)
{
    return mr_fail(error, MR_FAILED_PRECONDITION, "the iterator has not been initialized");
}

static mr_status next_element(mr_iterator *iterator, mr_element *element, mr_error *error)
{
    execution *execution = iterator->execution;
    if (execution == nullptr) return fail_uninitialized(error);
    mr_status status = iterator->watch != nullptr ? next_watched(iterator, element->tensors, error)
                                                  : next_tensors(iterator, element->tensors, error);
    if (status == MR_OK) element->count = execution->dataset->spec.count;
    if (status == MR_OK && execution->may_mismatch) status = check_element(iterator, element, error);
    if (iterator->has_digest) digest_element(iterator, status, element);
    if (execution->run.tuning != nullptr) mr_tuning_count(execution->run.tuning);
    if (status != MR_OK) return status;
    mr_counters *counters = &execution->pipeline.counters[execution->pipeline.counter_count - 1];
    mr_role role = mr_dataset_without_options(execution->dataset)->kind->role;
    if (role == MR_ROLE_PREFETCH) mr_count(&counters->elements, 1);
    return MR_OK;
}

mr_status mr_iterator_next(mr_iterator *iterator, mr_element *element, mr_error *error)
{
    MR_REFUSE_NULL(iterator, error);
    MR_REFUSE_NULL(element, error);
    MR_TRY(mr_element_reserve(element, iterator->spec.count, error));
    lock_calls(iterator);
    mr_status status = next_element(iterator, element, error);
    unlock_calls(iterator);
    if (status != MR_OK) mr_element_deinit(element);
    return status;
}

void mr_iterator_cancel(mr_iterator *iterator)
{
    if (iterator == nullptr) return;
    pthread_mutex_lock(&iterator->replace_mutex);
    iterator->is_cancelled = true;
    if (iterator->pending != nullptr) mr_engines_cancel(&iterator->pending->engines);
    if (iterator->execution != nullptr) {
        mr_engines_cancel(&iterator->execution->engines);
        mr_stage_cancel(iterator->execution->pipeline.top);
    }
    pthread_mutex_unlock(&iterator->replace_mutex);
}

/* ---- The state ---- */

/* "MRSTATE1", then little-endian: digest of the pipeline, seed, position (8 bytes each); or, for pipelines that are not
 * seekable, "MRSTATE2", digest, seed, and what the stages have saved; then the CRC32C of everything before (4
 * bytes). */
constexpr size_t STATE_HEADER_BYTES = 24, STATE_BYTES = 36;
static const char state_magic[] = {'M', 'R', 'S', 'T', 'A', 'T', 'E'};

static void put(unsigned char *to, uint64_t value, int size_bytes)
{
    for (int i = 0; i < size_bytes; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *from, int size_bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < size_bytes; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static mr_status save(execution *execution, mr_state *state, mr_tensor *tensor, mr_error *error)
{
    mr_stage *top = execution->pipeline.top;
    uint64_t digest = 0;
    MR_TRY(mr_dataset_digest(execution->dataset, &digest, error));
    if (!top->is_seekable)
        MR_TRY(mr_is_to_device(top) ? mr_to_device_save(top, state, error) : mr_stage_save(top, state, error));
    size_t body_bytes = top->is_seekable ? 8 : state->size_bytes;
    size_t size_bytes = STATE_HEADER_BYTES + body_bytes + 4;
    assert(!top->is_seekable || (size_bytes == STATE_BYTES && top->position <= MR_POSITION_MAX));
    unsigned char *bytes = malloc(size_bytes);
    if (bytes == nullptr) return mr_fail_memory(error, size_bytes);
    memcpy(bytes, state_magic, sizeof state_magic);
    bytes[7] = top->is_seekable ? '1' : '2';
    put(bytes + 8, digest, 8);
    put(bytes + 16, atomic_load_explicit(&execution->run.seed, memory_order_relaxed), 8);
    if (top->is_seekable)
        put(bytes + STATE_HEADER_BYTES, top->position, 8);
    else
        memcpy(bytes + STATE_HEADER_BYTES, state->bytes, body_bytes);
    put(bytes + size_bytes - 4, mr_crc32c(0, bytes, size_bytes - 4), 4);
    mr_status status = mr_tensor_init_string(tensor, (mr_string){(const char *)bytes, size_bytes}, error);
    free(bytes);
    return status;
}

mr_status mr_iterator_save(mr_iterator *iterator, mr_tensor *state, mr_error *error)
{
    MR_REFUSE_NULL(iterator, error);
    MR_REFUSE_NULL(state, error);
    mr_state bytes = {0};
    lock_calls(iterator);
    mr_status status =
        iterator->execution == nullptr ? fail_uninitialized(error) : save(iterator->execution, &bytes, state, error);
    unlock_calls(iterator);
    mr_state_deinit(&bytes);
    return status;
}

static mr_status restore(mr_iterator *iterator, const mr_tensor *state, mr_error *error)
{
    execution *execution = iterator->execution;
    if (execution == nullptr) return fail_uninitialized(error);
    mr_stage *top = execution->pipeline.top;
    if (state->dtype != MR_STRING || mr_tensor_count(state) != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the state must be one string");
    mr_string string = mr_tensor_strings(state)[0];
    const unsigned char *bytes = (const unsigned char *)string.data;
    size_t size_bytes = string.size_bytes;
    unsigned char version = top->is_seekable ? '1' : '2';
    if (size_bytes < STATE_HEADER_BYTES + 4 || memcmp(bytes, state_magic, sizeof state_magic) != 0 ||
        (bytes[7] != '1' && bytes[7] != '2') || (bytes[7] == '1' && size_bytes != STATE_BYTES))
        return mr_fail(error, MR_INVALID_ARGUMENT, "not a state of a pipeline (%zu bytes)", size_bytes);
    if (get(bytes + size_bytes - 4, 4) != mr_crc32c(0, bytes, size_bytes - 4))
        return mr_fail(error, MR_INVALID_ARGUMENT, "the state is damaged: its checksum does not match");
    uint64_t digest = 0;
    MR_TRY(mr_dataset_digest(execution->dataset, &digest, error));
    if (get(bytes + 8, 8) != digest || bytes[7] != version)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the state belongs to another pipeline or to other data");
    uint64_t position = top->is_seekable ? get(bytes + STATE_HEADER_BYTES, 8) : 0;
    if (position > MR_POSITION_SAVED_MAX || (top->count >= 0 && position > (uint64_t)top->count))
        return mr_state_refuse(error);
    iterator->digest = iterator->digested = 0;
    if (execution->run.tuning != nullptr) mr_tuning_skip(execution->run.tuning);
    /* Elements that threads still produce with the old seed are discarded by begin. */
    atomic_store_explicit(&execution->run.seed, get(bytes + 16, 8), memory_order_relaxed);
    if (!top->is_seekable) {
        mr_state_reader reader = {bytes + STATE_HEADER_BYTES, bytes + size_bytes - 4};
        return mr_is_to_device(top) ? mr_to_device_restore(top, &reader, error) : mr_stage_restore(top, &reader, error);
    }
    MR_TRY(mr_stage_begin(top, 0, error));
    MR_TRY(mr_stage_seek(top, position, error));
    return top->position == position ? MR_OK : mr_state_refuse(error);
}

mr_status mr_iterator_restore(mr_iterator *iterator, const mr_tensor *state, mr_error *error)
{
    MR_REFUSE_NULL(iterator, error);
    MR_REFUSE_NULL(state, error);
    lock_calls(iterator);
    mr_status status = restore(iterator, state, error);
    unlock_calls(iterator);
    return status;
}

void mr_iterator_tuned(const mr_iterator *iterator, mr_tuned *tuned)
{
    if (iterator == nullptr) return;
    if (tuned == nullptr) return;
    *tuned = (mr_tuned){0};
    if (iterator->execution != nullptr && iterator->execution->run.tuning != nullptr)
        mr_tuning_report(iterator->execution->run.tuning, tuned);
}

static int32_t read_statistics(const mr_pipeline *pipeline, mr_stage_statistics *statistics, int32_t capacity)
{
    for (int32_t i = 0; i < pipeline->counter_count && i < capacity; i++) {
        mr_counters *c = &pipeline->counters[i];
        uint64_t slots = atomic_load_explicit(&c->room, memory_order_relaxed);
        uint64_t ready = atomic_load_explicit(&c->ready, memory_order_relaxed);
        assert(c->stage != nullptr);
        if (ready > slots) ready = slots; /* the two counters are read one after the other */
        statistics[i] =
            (mr_stage_statistics){.stage = c->stage,
                                  .elements = atomic_load_explicit(&c->elements, memory_order_relaxed),
                                  .bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed),
                                  .busy_ns = atomic_load_explicit(&c->busy_ns, memory_order_relaxed),
                                  .input_wait_ns = atomic_load_explicit(&c->input_wait_ns, memory_order_relaxed),
                                  .output_wait_ns = atomic_load_explicit(&c->output_wait_ns, memory_order_relaxed),
                                  .held_bytes = atomic_load_explicit(&c->held_bytes, memory_order_relaxed),
                                  .threads = c->threads,
                                  .slots_max = c->slots_max,
                                  .occupancy = slots == 0 ? 0 : (double)ready / (double)slots};
        if (atomic_load_explicit(&c->warned, memory_order_acquire) == 2)
            memcpy(statistics[i].warning, c->warning, sizeof c->warning);
    }
    return pipeline->counter_count;
}

/* May be called while next waits. It therefore acquires only replace_mutex. */
int32_t mr_iterator_statistics(mr_iterator *iterator, mr_stage_statistics *statistics, int32_t capacity)
{
    if (iterator == nullptr) return 0;
    pthread_mutex_lock(&iterator->replace_mutex);
    int32_t count =
        iterator->execution == nullptr ? 0 : read_statistics(&iterator->execution->pipeline, statistics, capacity);
    pthread_mutex_unlock(&iterator->replace_mutex);
    return count;
}
