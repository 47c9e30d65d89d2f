/* Iterator: runs the engine on top of a pipeline for the user, and keeps its place. */
#include "pipeline/engine.h"
#include "pipeline/tuner.h"

#include "base/pool.h"

#include <millrace/record.h>
#include <stdlib.h>
#include <string.h>

struct mr_iterator {
    mr_dataset *dataset;
    mr_run run;
    mr_engines engines;
    mr_pipeline pipeline;
    bool has_digest;
    uint64_t digest, digested; /* of how many elements */
};

/* ---- The user's side ---- */

mr_status mr_iterator_new(mr_dataset *dataset, const mr_iterator_options *options, mr_iterator **iterator,
                          mr_error *error)
{
    constexpr size_t BUDGET_BYTES = (size_t)1 << 30;
    constexpr int32_t THREADS_MAX = 1024;
    static const mr_iterator_options plain = {0};
    *iterator = nullptr;
    MR_TRY(mr_dataset_status(dataset, error));
    if (options == nullptr) options = &plain;
    if (options->threads < 0 || options->threads > THREADS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "an iterator with %d threads, where 0 to %d may be",
                       options->threads, THREADS_MAX);
    if (options->threads_first < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "an iterator that begins with %d threads", options->threads_first);
    mr_iterator *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->dataset = mr_dataset_ref(dataset);
    mr_engines_init(&made->engines);
    made->run = (mr_run){.seed = options->seed,
                         .threads = options->threads > 0 ? options->threads : mr_processor_count(),
                         .budget_bytes = options->budget_bytes > 0 ? options->budget_bytes : BUDGET_BYTES,
                         .allocate = options->allocate,
                         .allocate_context = options->allocate_context,
                         .engines = &made->engines};
    made->has_digest = options->digest;
    mr_status status = mr_watch_new(options, &made->run.watch, error);
    if (status == MR_OK) status = mr_tuning_new(options, &made->run, &made->run.tuning, error);
    if (status == MR_OK) status = mr_pipeline_init(&made->pipeline, dataset, &made->run, 0, error);
    if (status == MR_OK && made->run.tuning != nullptr) mr_tuning_begin(made->run.tuning);
    if (status == MR_OK) status = mr_stage_begin(made->pipeline.top, 0, error);
    if (status == MR_OK)
        *iterator = made;
    else
        mr_iterator_free(made);
    return status;
}

void mr_iterator_free(mr_iterator *iterator)
{
    if (iterator == nullptr) return;
    /* What is inside stages stops too, before it is waited for. */
    mr_engines_cancel(&iterator->engines);
    mr_pipeline_deinit(&iterator->pipeline);
    mr_engines_deinit(&iterator->engines);
    mr_watch_free(iterator->run.watch);
    mr_tuning_free(iterator->run.tuning);
    mr_dataset_free(iterator->dataset);
    free(iterator);
}

/* The end has no element, and cancelling comes at any moment. */
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
        if (tensor->dtype != MR_STRING) {
            digest = mr_digest(digest, mr_crc32c(0, tensor->data, mr_tensor_size_bytes(tensor)));
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
    mr_trace *trace = mr_watch_trace(iterator->run.watch);
    return trace == nullptr ? MR_OK : mr_trace_stop(trace, error);
}

/* What the watchdog and a trace see of the call. */
static mr_status next_watched(mr_iterator *iterator, mr_tensor *tensors, mr_error *error)
{
    mr_watch *watch = iterator->run.watch;
    uint64_t start_ns = mr_now_ns();
    mr_watch_wait(watch, start_ns);
    mr_status status = mr_engine_next(iterator->pipeline.top, tensors, error);
    mr_watch_wait(watch, 0);
    return status;
}

mr_status mr_iterator_next(mr_iterator *iterator, mr_element *element, mr_error *error)
{
    mr_element_deinit(element);
    mr_status status = iterator->run.watch != nullptr ? next_watched(iterator, element->tensors, error)
                                                      : mr_engine_next(iterator->pipeline.top, element->tensors, error);
    if (status == MR_OK) element->count = iterator->dataset->spec.count;
    if (iterator->has_digest) digest_element(iterator, status, element);
    if (iterator->run.tuning != nullptr) mr_tuning_count(iterator->run.tuning);
    if (status != MR_OK) return status;
    mr_counters *counters = &iterator->pipeline.counters[iterator->pipeline.counter_count - 1];
    mr_role role = iterator->dataset->kind->role;
    if (role == MR_ROLE_PREFETCH) mr_count(&counters->elements, 1);
    return MR_OK;
}

void mr_iterator_cancel(mr_iterator *iterator)
{
    mr_engines_cancel(&iterator->engines);
    mr_stage_cancel(iterator->pipeline.top);
}

/* ---- The place ---- */

/* "MRPLACE1", then little-endian: digest of the pipeline, seed, position (8 bytes each), or, when a position is not
 * enough, "MRPLACE2", digest, seed, and what the stages saved; and the CRC32C of all before (4). */
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

static mr_status save(mr_iterator *iterator, mr_place *place, mr_tensor *tensor, mr_error *error)
{
    mr_stage *top = iterator->pipeline.top;
    if (!top->is_seekable) MR_TRY(mr_stage_save(top, place, error));
    size_t body_bytes = top->is_seekable ? 8 : place->size_bytes;
    size_t size_bytes = PLACE_HEAD_BYTES + body_bytes + 4;
    unsigned char *bytes = malloc(size_bytes);
    if (bytes == nullptr) return mr_fail_memory(error, size_bytes);
    memcpy(bytes, place_magic, sizeof place_magic);
    bytes[7] = top->is_seekable ? '1' : '2';
    put(bytes + 8, iterator->pipeline.digest, 8);
    put(bytes + 16, atomic_load_explicit(&iterator->run.seed, memory_order_relaxed), 8);
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
    mr_place bytes = {0};
    mr_status status = save(iterator, &bytes, place, error);
    mr_place_deinit(&bytes);
    return status;
}

mr_status mr_iterator_restore(mr_iterator *iterator, const mr_tensor *place, mr_error *error)
{
    mr_stage *top = iterator->pipeline.top;
    if (place->dtype != MR_STRING || mr_tensor_count(place) != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a place must be one string");
    mr_string string = mr_tensor_strings(place)[0];
    const unsigned char *bytes = (const unsigned char *)string.data;
    size_t size_bytes = string.size_bytes;
    unsigned char version = top->is_seekable ? '1' : '2';
    if (size_bytes < PLACE_HEAD_BYTES + 4 || memcmp(bytes, place_magic, sizeof place_magic) != 0 ||
        (bytes[7] != '1' && bytes[7] != '2') || (bytes[7] == '1' && size_bytes != PLACE_BYTES))
        return mr_fail(error, MR_INVALID_ARGUMENT, "these %zu bytes are no place of a pipeline", size_bytes);
    if (get(bytes + size_bytes - 4, 4) != mr_crc32c(0, bytes, size_bytes - 4))
        return mr_fail(error, MR_INVALID_ARGUMENT, "the place is damaged: its checksum is wrong");
    if (get(bytes + 8, 8) != iterator->pipeline.digest || bytes[7] != version)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the place is that of another pipeline, or of other data");
    uint64_t position = top->is_seekable ? get(bytes + PLACE_HEAD_BYTES, 8) : 0;
    if (position > MR_POSITION_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the place is damaged: its position is wrong");
    iterator->digest = iterator->digested = 0;
    if (iterator->run.tuning != nullptr) mr_tuning_skip(iterator->run.tuning);
    /* What threads still do by then is thrown away by begin. */
    atomic_store_explicit(&iterator->run.seed, get(bytes + 16, 8), memory_order_relaxed);
    if (!top->is_seekable) {
        mr_place_reader reader = {bytes + PLACE_HEAD_BYTES, bytes + size_bytes - 4};
        return mr_stage_restore(top, &reader, error);
    }
    MR_TRY(mr_stage_begin(top, 0, error));
    return mr_stage_seek(top, position, error);
}

void mr_iterator_tuned(const mr_iterator *iterator, mr_tuned *tuned)
{
    *tuned = (mr_tuned){0};
    if (iterator->run.tuning != nullptr) mr_tuning_report(iterator->run.tuning, tuned);
}

int32_t mr_iterator_statistics(mr_iterator *iterator, mr_stage_statistics *statistics, int32_t capacity)
{
    for (int32_t i = 0; i < iterator->pipeline.counter_count && i < capacity; i++) {
        mr_counters *c = &iterator->pipeline.counters[i];
        uint64_t slots = atomic_load_explicit(&c->room, memory_order_relaxed);
        uint64_t ready = atomic_load_explicit(&c->ready, memory_order_relaxed);
        if (ready > slots) ready = slots; /* counted one after the other */
        statistics[i] =
            (mr_stage_statistics){.stage = c->stage,
                                  .elements = atomic_load_explicit(&c->elements, memory_order_relaxed),
                                  .bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed),
                                  .busy_ns = atomic_load_explicit(&c->busy_ns, memory_order_relaxed),
                                  .input_wait_ns = atomic_load_explicit(&c->input_wait_ns, memory_order_relaxed),
                                  .output_wait_ns = atomic_load_explicit(&c->output_wait_ns, memory_order_relaxed),
                                  .threads = c->threads,
                                  .slots_max = c->slots_max,
                                  .occupancy = slots == 0 ? 0 : (double)ready / (double)slots};
    }
    return iterator->pipeline.counter_count;
}
