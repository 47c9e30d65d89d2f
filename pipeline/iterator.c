/* Iterator: runs a pipeline for the user, saves and restores its state, and reports statistics.
 *
 * A course is one execution: a pipeline with its engines and budget. mr_iterator_initialize replaces it by a new one.
 * Locking: `turn` serializes the calls of iterators with a handle, and is acquired before every other mutex. `swap`
 * protects the replacement of the course against cancel and statistics, which may come from any thread; it is acquired
 * before the mutexes of engines. */
#include "pipeline/iterator.h"

#include "base/pool.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/tuner.h"
#include "pipeline/to_device.h"

#include <assert.h>
#include <millrace/record.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct course {
    mr_dataset *dataset;
    mr_run run;
    mr_engines engines;
    mr_budget budget;
    mr_pipeline pipeline;
    bool may_misfit; /* elements may have shapes that the iterator's spec does not allow */
} course;

struct mr_iterator {
    mr_element_spec spec;
    mr_iterator_options options; /* of every course; options left unset are those of its dataset */
    mr_watch *watch;
    course *course; /* null: not initialized */
    /* Guards is_cancelled, coming and the replacement of course, so that cancel is allowed on any thread at any
     * time. */
    pthread_mutex_t swap;
    course *coming; /* under construction by initialize */
    bool is_cancelled;
    /* Serializes callers once the iterator has a handle. Acquired before every other mutex. */
    pthread_mutex_t turn;
    bool has_handle;
    mr_handle handle;
    bool has_digest;
    uint64_t digest, digested;        /* CRC of the delivered elements; number of elements in it */
    uint32_t crcs[MR_COMPONENTS_MAX]; /* checksums of the delivered element, if it is on a device */
};

/* ---- Courses ---- */

static void course_free(course *course)
{
    if (course == nullptr) return;
    /* Stops the pipelines inside stages too, before deinit waits for them. */
    mr_engines_cancel(&course->engines);
    mr_pipeline_deinit(&course->pipeline);
    mr_engines_deinit(&course->engines);
    mr_tuning_free(course->run.tuning);
    mr_dataset_free(course->dataset);
    free(course);
}

/* Pinned memory, which a device copies from asynchronously. */
static mr_status allocate_pinned(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    mr_device *device = context;
    return device->functions->allocate_host(device, size_bytes, buffer, error);
}

static mr_status course_new(mr_iterator *iterator, mr_dataset *dataset, course **result, mr_error *error)
{
    constexpr size_t BUDGET_BYTES = (size_t)1 << 30;
    course *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr_iterator_options options = iterator->options;
    if (options.threads == 0) options.threads = dataset->options.threads;
    if (options.budget_bytes == 0) options.budget_bytes = dataset->options.budget_bytes;
    made->dataset = mr_dataset_ref(dataset);
    mr_engines_init(&made->engines);
    made->run.seed = options.seed;
    made->run.threads = options.threads > 0 ? options.threads : mr_processor_count();
    made->budget.limit_bytes = options.budget_bytes > 0 ? options.budget_bytes : BUDGET_BYTES;
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
        course_free(made);
    return status;
}

/* While the new course is built, cancel reaches its engines; afterwards, cancel reaches all of it. */
static mr_status change_course(mr_iterator *iterator, mr_dataset *dataset, mr_error *error)
{
    course *made = nullptr;
    MR_TRY(course_new(iterator, dataset, &made, error));
    pthread_mutex_lock(&iterator->swap);
    assert(iterator->coming == nullptr);
    iterator->coming = made;
    bool is_cancelled = iterator->is_cancelled;
    pthread_mutex_unlock(&iterator->swap);
    mr_status status = is_cancelled ? mr_fail(error, MR_CANCELLED, "the iterator was cancelled") : MR_OK;
    if (status == MR_OK) status = mr_pipeline_init(&made->pipeline, dataset, &made->run, 0, error);
    if (status == MR_OK && made->run.tuning != nullptr) mr_tuning_begin(made->run.tuning);
    if (status == MR_OK) status = mr_stage_begin(made->pipeline.top, 0, error);
    pthread_mutex_lock(&iterator->swap);
    iterator->coming = nullptr;
    course *old = made;
    assert(status != MR_OK || made->pipeline.top != nullptr);
    if (status == MR_OK) {
        old = iterator->course;
        iterator->course = made;
        if (iterator->is_cancelled) mr_stage_cancel(made->pipeline.top);
    }
    pthread_mutex_unlock(&iterator->swap);
    course_free(old);
    return status;
}

/* ---- The user's functions ---- */

static mr_status new_iterator(const mr_element_spec *spec, const mr_iterator_options *options, mr_iterator **iterator,
                              mr_error *error)
{
    static const mr_iterator_options plain = {0};
    if (options == nullptr) options = &plain;
    if (options->threads < 0 || options->threads > MR_THREADS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: threads is %d, expected 0 to %d", options->threads,
                       MR_THREADS_MAX);
    if (options->threads_first < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: threads_first is %d, expected at least 0",
                       options->threads_first);
    bool is_tuned = options->tune == MR_TUNE_ON || (options->tune == MR_TUNE_AUTO && options->threads == 0);
    if (options->threads_first > 0 && !is_tuned)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: threads_first has no effect: the iterator is not tuned");
    if (options->allocate == nullptr && options->allocate_context != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "iterator: allocate_context has no effect: allocate is null");
    mr_iterator *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->spec = *spec;
    for (int32_t i = 0; i < spec->count; i++) made->spec.names[i] = nullptr;
    pthread_mutex_init(&made->swap, nullptr);
    pthread_mutex_init(&made->turn, nullptr);
    made->options = *options;
    made->options.trace_path = nullptr; /* borrowed from the caller; used only by mr_watch_new */
    made->has_digest = options->digest;
    mr_status status = mr_watch_new(options, &made->watch, error);
    if (status == MR_OK)
        *iterator = made;
    else
        mr_iterator_free(made);
    return status;
}

mr_status mr_iterator_new(mr_dataset *dataset, const mr_iterator_options *options, mr_iterator **iterator,
                          mr_error *error)
{
    *iterator = nullptr;
    MR_TRY(mr_dataset_status(dataset, error));
    mr_iterator *made = nullptr;
    MR_TRY(new_iterator(&dataset->spec, options, &made, error));
    mr_status status = change_course(made, dataset, error);
    if (status == MR_OK)
        *iterator = made;
    else
        mr_iterator_free(made);
    return status;
}

mr_status mr_iterator_new_from_spec(const mr_element_spec *spec, const mr_iterator_options *options,
                                    mr_iterator **iterator, mr_error *error)
{
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

mr_status mr_spec_check(const mr_element_spec *given, const mr_element_spec *wanted, mr_error *error)
{
    if (given->count != wanted->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "elements have %d components, expected %d", given->count,
                       wanted->count);
    for (int32_t i = 0; i < given->count; i++) {
        if (given->dtypes[i] != wanted->dtypes[i])
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d is %s, expected %s", i,
                           mr_dtype_name(given->dtypes[i]), mr_dtype_name(wanted->dtypes[i]));
        if (mr_shape_compatible(given->shapes[i], wanted->shapes[i])) continue;
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_fail(error, MR_INVALID_ARGUMENT, "component %d has shape %s, expected %s", i,
                       mr_shape_text(given->shapes[i], a, sizeof a), mr_shape_text(wanted->shapes[i], b, sizeof b));
    }
    return MR_OK;
}

static void take_turn(mr_iterator *iterator)
{
    if (iterator->has_handle) pthread_mutex_lock(&iterator->turn);
}

static void end_turn(mr_iterator *iterator)
{
    if (iterator->has_handle) pthread_mutex_unlock(&iterator->turn);
}

mr_status mr_iterator_initialize(mr_iterator *iterator, mr_dataset *dataset, mr_error *error)
{
    MR_TRY(mr_dataset_status(dataset, error));
    mr_status status = mr_spec_check(&dataset->spec, &iterator->spec, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "initialize");
    bool may_misfit = false;
    for (int32_t i = 0; i < dataset->spec.count; i++)
        may_misfit |= !shape_is_within(dataset->spec.shapes[i], iterator->spec.shapes[i]);
    take_turn(iterator);
    status = change_course(iterator, dataset, error);
    if (status == MR_OK) {
        iterator->course->may_misfit = may_misfit;
        iterator->digest = iterator->digested = 0;
    }
    end_turn(iterator);
    return status;
}

const mr_element_spec *mr_iterator_spec(const mr_iterator *iterator)
{
    return &iterator->spec;
}

mr_status mr_iterator_handle(mr_iterator *iterator, mr_tensor *handle, mr_error *error)
{
    if (!iterator->has_handle) MR_TRY(mr_handle_new(iterator, &iterator->handle, error));
    iterator->has_handle = true;
    return mr_handle_write(iterator->handle, handle, error);
}

void mr_iterator_free(mr_iterator *iterator)
{
    if (iterator == nullptr) return;
    if (iterator->has_handle) mr_handle_retire(iterator->handle, iterator);
    course_free(iterator->course);
    mr_watch_free(iterator->watch);
    pthread_mutex_destroy(&iterator->swap);
    pthread_mutex_destroy(&iterator->turn);
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
    return iterator->has_digest ? iterator->digest : 0;
}

mr_status mr_iterator_trace_stop(mr_iterator *iterator, mr_error *error)
{
    mr_trace *trace = mr_watch_trace(iterator->watch);
    return trace == nullptr ? MR_OK : mr_trace_stop(trace, error);
}

static mr_status next_tensors(mr_iterator *iterator, mr_tensor *tensors, mr_error *error)
{
    mr_stage *top = iterator->course->pipeline.top;
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
        mr_element_deinit(element);
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
    course *course = iterator->course;
    if (course == nullptr) return fail_uninitialized(error);
    mr_status status = iterator->watch != nullptr ? next_watched(iterator, element->tensors, error)
                                                  : next_tensors(iterator, element->tensors, error);
    if (status == MR_OK) element->count = course->dataset->spec.count;
    if (status == MR_OK && course->may_misfit) status = check_element(iterator, element, error);
    if (iterator->has_digest) digest_element(iterator, status, element);
    if (course->run.tuning != nullptr) mr_tuning_count(course->run.tuning);
    if (status != MR_OK) return status;
    mr_counters *counters = &course->pipeline.counters[course->pipeline.counter_count - 1];
    mr_role role = mr_dataset_without_options(course->dataset)->kind->role;
    if (role == MR_ROLE_PREFETCH) mr_count(&counters->elements, 1);
    return MR_OK;
}

mr_status mr_iterator_next(mr_iterator *iterator, mr_element *element, mr_error *error)
{
    mr_element_deinit(element);
    take_turn(iterator);
    mr_status status = next_element(iterator, element, error);
    end_turn(iterator);
    return status;
}

void mr_iterator_cancel(mr_iterator *iterator)
{
    pthread_mutex_lock(&iterator->swap);
    iterator->is_cancelled = true;
    if (iterator->coming != nullptr) mr_engines_cancel(&iterator->coming->engines);
    if (iterator->course != nullptr) {
        mr_engines_cancel(&iterator->course->engines);
        mr_stage_cancel(iterator->course->pipeline.top);
    }
    pthread_mutex_unlock(&iterator->swap);
}

/* ---- The state ---- */

/* "MRPLACE1", then little-endian: digest of the pipeline, seed, position (8 bytes each); or, for pipelines that are not
 * seekable, "MRPLACE2", digest, seed, and what the stages have saved; then the CRC32C of everything before (4
 * bytes). */
constexpr size_t PLACE_HEAD_BYTES = 24, PLACE_BYTES = 36;
static const char place_magic[] = {'M', 'R', 'P', 'L', 'A', 'C', 'E'};

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

static mr_status save(course *course, mr_state *place, mr_tensor *tensor, mr_error *error)
{
    mr_stage *top = course->pipeline.top;
    uint64_t digest = 0;
    MR_TRY(mr_dataset_digest(course->dataset, &digest, error));
    if (!top->is_seekable)
        MR_TRY(mr_is_to_device(top) ? mr_to_device_save(top, place, error) : mr_stage_save(top, place, error));
    size_t body_bytes = top->is_seekable ? 8 : place->size_bytes;
    size_t size_bytes = PLACE_HEAD_BYTES + body_bytes + 4;
    assert(!top->is_seekable || (size_bytes == PLACE_BYTES && top->position <= MR_POSITION_MAX));
    unsigned char *bytes = malloc(size_bytes);
    if (bytes == nullptr) return mr_fail_memory(error, size_bytes);
    memcpy(bytes, place_magic, sizeof place_magic);
    bytes[7] = top->is_seekable ? '1' : '2';
    put(bytes + 8, digest, 8);
    put(bytes + 16, atomic_load_explicit(&course->run.seed, memory_order_relaxed), 8);
    if (top->is_seekable)
        put(bytes + PLACE_HEAD_BYTES, top->position, 8);
    else
        memcpy(bytes + PLACE_HEAD_BYTES, place->bytes, body_bytes);
    put(bytes + size_bytes - 4, mr_crc32c(0, bytes, size_bytes - 4), 4);
    mr_status status = mr_tensor_init_string(tensor, (mr_string){(const char *)bytes, size_bytes}, error);
    free(bytes);
    return status;
}

mr_status mr_iterator_save(mr_iterator *iterator, mr_tensor *place, mr_error *error)
{
    mr_state bytes = {0};
    take_turn(iterator);
    mr_status status =
        iterator->course == nullptr ? fail_uninitialized(error) : save(iterator->course, &bytes, place, error);
    end_turn(iterator);
    mr_state_deinit(&bytes);
    return status;
}

static mr_status restore(mr_iterator *iterator, const mr_tensor *place, mr_error *error)
{
    course *course = iterator->course;
    if (course == nullptr) return fail_uninitialized(error);
    mr_stage *top = course->pipeline.top;
    if (place->dtype != MR_STRING || mr_tensor_count(place) != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the state must be one string");
    mr_string string = mr_tensor_strings(place)[0];
    const unsigned char *bytes = (const unsigned char *)string.data;
    size_t size_bytes = string.size_bytes;
    unsigned char version = top->is_seekable ? '1' : '2';
    if (size_bytes < PLACE_HEAD_BYTES + 4 || memcmp(bytes, place_magic, sizeof place_magic) != 0 ||
        (bytes[7] != '1' && bytes[7] != '2') || (bytes[7] == '1' && size_bytes != PLACE_BYTES))
        return mr_fail(error, MR_INVALID_ARGUMENT, "not a state of a pipeline (%zu bytes)", size_bytes);
    if (get(bytes + size_bytes - 4, 4) != mr_crc32c(0, bytes, size_bytes - 4))
        return mr_fail(error, MR_INVALID_ARGUMENT, "the state is damaged: its checksum does not match");
    uint64_t digest = 0;
    MR_TRY(mr_dataset_digest(course->dataset, &digest, error));
    if (get(bytes + 8, 8) != digest || bytes[7] != version)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the state belongs to another pipeline or to other data");
    uint64_t position = top->is_seekable ? get(bytes + PLACE_HEAD_BYTES, 8) : 0;
    if (position > MR_POSITION_SAVED_MAX || (top->count >= 0 && position > (uint64_t)top->count))
        return mr_state_refuse(error);
    iterator->digest = iterator->digested = 0;
    if (course->run.tuning != nullptr) mr_tuning_skip(course->run.tuning);
    /* Elements that threads still produce with the old seed are discarded by begin. */
    atomic_store_explicit(&course->run.seed, get(bytes + 16, 8), memory_order_relaxed);
    if (!top->is_seekable) {
        mr_state_reader reader = {bytes + PLACE_HEAD_BYTES, bytes + size_bytes - 4};
        return mr_is_to_device(top) ? mr_to_device_restore(top, &reader, error) : mr_stage_restore(top, &reader, error);
    }
    MR_TRY(mr_stage_begin(top, 0, error));
    MR_TRY(mr_stage_seek(top, position, error));
    return top->position == position ? MR_OK : mr_state_refuse(error);
}

mr_status mr_iterator_restore(mr_iterator *iterator, const mr_tensor *place, mr_error *error)
{
    take_turn(iterator);
    mr_status status = restore(iterator, place, error);
    end_turn(iterator);
    return status;
}

void mr_iterator_tuned(const mr_iterator *iterator, mr_tuned *tuned)
{
    *tuned = (mr_tuned){0};
    if (iterator->course != nullptr && iterator->course->run.tuning != nullptr)
        mr_tuning_report(iterator->course->run.tuning, tuned);
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

/* May be called while next waits. It therefore does not acquire `turn`, only `swap`. */
int32_t mr_iterator_statistics(mr_iterator *iterator, mr_stage_statistics *statistics, int32_t capacity)
{
    pthread_mutex_lock(&iterator->swap);
    int32_t count =
        iterator->course == nullptr ? 0 : read_statistics(&iterator->course->pipeline, statistics, capacity);
    pthread_mutex_unlock(&iterator->swap);
    return count;
}
