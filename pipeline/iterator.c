/* Iterator: turns a chain of datasets into stages and engines, and runs the last engine for the user.
 *
 * Going up the chain from the source, order stages are stacked on the order, work is noted; batch turns the noted work
 * into the rows' work, and what follows works on batches, whose order is that of their numbers. An engine is closed at
 * the end, and before what cannot be part of it: a second batch, or order stages on batches of unknown number. */
#include "pipeline/engine.h"

#include "base/pool.h"

#include <millrace/record.h>
#include <stdlib.h>
#include <string.h>

struct mr_iterator {
    mr_dataset *dataset;
    mr_run run;
    int32_t stage_count;
    mr_counters *counters; /* of each dataset of the chain, source first */
    mr_stage *top;         /* an engine */
    uint64_t digest;       /* of the chain */
};

/* ---- From chain to engines ---- */

typedef struct builder {
    mr_iterator *iterator;
    mr_engine_plan plan;
    bool is_threaded;
    int32_t threads; /* most that a stage asked for */
} builder;

static mr_status close_engine(builder *b, const mr_dataset *last, mr_counters *counters, mr_error *error)
{
    mr_engine_plan *plan = &b->plan;
    int32_t most = b->iterator->run.threads;
    plan->last = last;
    plan->counters = counters;
    if (plan->batch == nullptr) plan->row_spec = &last->spec;
    plan->threads = !b->is_threaded ? 0 : b->threads > 0 && b->threads < most ? b->threads : most;
    for (int32_t i = 0; i < plan->work_count; i++) plan->works[i].counters->threads = plan->threads;
    for (int32_t i = 0; i < plan->batch_work_count; i++) plan->batch_works[i].counters->threads = plan->threads;
    if (plan->source_counters != nullptr) plan->source_counters->threads = plan->threads;
    if (plan->batch_counters != nullptr) plan->batch_counters->threads = plan->threads;
    /* A component stays where it is from the last work on that is not decoding, which changes no places. */
    for (int32_t i = plan->work_count - 1; i >= 0; i--) {
        plan->works[i].is_last = true;
        if (mr_decode_keeps(plan->works[i].dataset)) continue;
        break;
    }
    mr_stage *engine = nullptr;
    mr_engine_plan closed = *plan;
    *plan = (mr_engine_plan){.run = closed.run, .prefetch = -1};
    b->is_threaded = false;
    b->threads = 0;
    MR_TRY(mr_engine_new(&closed, &engine, error));
    plan->order = engine;
    return MR_OK;
}

static void add_work(builder *b, const mr_dataset *dataset, mr_counters *counters, uint32_t purpose)
{
    mr_engine_plan *plan = &b->plan;
    mr_work work = {.dataset = dataset, .counters = counters, .purpose = purpose};
    if (plan->batch != nullptr)
        plan->batch_works[plan->batch_work_count++] = work;
    else
        plan->works[plan->work_count++] = work;
    int32_t threads = mr_map_threads(dataset) + mr_decode_threads(dataset);
    if (threads > b->threads) b->threads = threads;
    b->is_threaded = true;
}

static mr_status add_order(builder *b, const mr_dataset *dataset, mr_counters *counters, uint32_t purpose,
                           mr_error *error)
{
    mr_engine_plan *plan = &b->plan;
    const mr_run *run = plan->run;
    if (plan->batch != nullptr && plan->batches->count == MR_CARDINALITY_UNKNOWN)
        MR_TRY(close_engine(b, dataset->input, counters - 1, error));
    mr_stage **order = plan->batch != nullptr ? &plan->batches : &plan->order;
    mr_stage *input = *order;
    *order = nullptr;
    return mr_stage_new(dataset, input, run, counters, purpose, order, error);
}

static mr_status add(builder *b, const mr_dataset *dataset, mr_counters *counters, uint32_t purpose, mr_error *error)
{
    mr_engine_plan *plan = &b->plan;
    switch (dataset->kind->role) {
    case MR_ROLE_SOURCE:
        plan->source = dataset;
        plan->source_counters = counters;
        b->is_threaded = dataset->is_heavy;
        return mr_stage_new(dataset, nullptr, plan->run, counters, purpose, &plan->order, error);
    case MR_ROLE_ORDER:
        return add_order(b, dataset, counters, purpose, error);
    case MR_ROLE_WORK:
        add_work(b, dataset, counters, purpose);
        return MR_OK;
    case MR_ROLE_PREFETCH: {
        int32_t depth = ((const mr_prefetch_settings *)dataset->settings)->depth;
        if (plan->prefetch < 0 || plan->batch != nullptr) plan->prefetch = depth;
        b->is_threaded = true;
        return MR_OK;
    }
    case MR_ROLE_BATCH:
        if (plan->batch != nullptr) MR_TRY(close_engine(b, dataset->input, counters - 1, error));
        plan->batch = dataset;
        plan->batch_counters = counters;
        plan->row_spec = &dataset->input->spec;
        plan->prefetch = -1;
        return mr_stage_numbers(dataset->count, plan->run, nullptr, &plan->batches, error);
    }
    return MR_OK;
}

static mr_status build(mr_iterator *iterator, mr_error *error)
{
    const mr_dataset *chain[MR_STAGES_MAX];
    int32_t count = 0;
    for (const mr_dataset *d = iterator->dataset; d != nullptr; d = d->input) chain[count++] = d;
    iterator->stage_count = count;
    iterator->counters = calloc((size_t)count, sizeof *iterator->counters);
    builder *b = calloc(1, sizeof *b);
    if (iterator->counters == nullptr || b == nullptr) {
        free(b);
        return mr_fail_memory(error, sizeof *b);
    }
    *b = (builder){.iterator = iterator, .plan = {.run = &iterator->run, .prefetch = -1}};
    mr_status status = MR_OK;
    uint32_t purpose = 0;
    for (int32_t i = 0; i < count && status == MR_OK; i++) {
        const mr_dataset *dataset = chain[count - 1 - i];
        iterator->counters[i].stage = dataset->kind->name;
        /* How far it is read ahead changes no element: neither its place nor its random numbers. */
        if (dataset->kind->role != MR_ROLE_PREFETCH) {
            purpose++;
            iterator->digest = mr_digest_bytes(iterator->digest, dataset->kind->name, strlen(dataset->kind->name));
            iterator->digest = mr_digest(iterator->digest, dataset->kind->digest(dataset));
        }
        status = add(b, dataset, &iterator->counters[i], purpose, error);
    }
    if (status == MR_OK) {
        status = close_engine(b, iterator->dataset, &iterator->counters[count - 1], error);
        iterator->top = b->plan.order;
    } else {
        mr_stage_free(b->plan.order);
        mr_stage_free(b->plan.batches);
    }
    free(b);
    return status;
}

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
    mr_iterator *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->dataset = mr_dataset_ref(dataset);
    made->run = (mr_run){.seed = options->seed,
                         .threads = options->threads > 0 ? options->threads : mr_processor_count(),
                         .budget_bytes = options->budget_bytes > 0 ? options->budget_bytes : BUDGET_BYTES,
                         .allocate = options->allocate,
                         .allocate_context = options->allocate_context};
    mr_status status = build(made, error);
    if (status == MR_OK) status = mr_stage_begin(made->top, 0, error);
    if (status == MR_OK)
        *iterator = made;
    else
        mr_iterator_free(made);
    return status;
}

void mr_iterator_free(mr_iterator *iterator)
{
    if (iterator == nullptr) return;
    mr_stage_free(iterator->top);
    free(iterator->counters);
    mr_dataset_free(iterator->dataset);
    free(iterator);
}

mr_status mr_iterator_next(mr_iterator *iterator, mr_element *element, mr_error *error)
{
    mr_element_deinit(element);
    mr_status status = mr_engine_next(iterator->top, element->tensors, error);
    if (status != MR_OK) return status;
    element->count = iterator->dataset->spec.count;
    mr_counters *counters = &iterator->counters[iterator->stage_count - 1];
    mr_role role = iterator->dataset->kind->role;
    if (role == MR_ROLE_PREFETCH) mr_count(&counters->elements, 1);
    return MR_OK;
}

void mr_iterator_cancel(mr_iterator *iterator)
{
    mr_stage_cancel(iterator->top);
}

/* ---- The place ---- */

/* "MRPLACE1", then four little-endian numbers: digest of the chain, seed, position; and the CRC32C of all before. */
constexpr size_t PLACE_BYTES = 36;
static const char place_magic[] = {'M', 'R', 'P', 'L', 'A', 'C', 'E', '1'};

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

mr_status mr_iterator_save(mr_iterator *iterator, mr_tensor *place, mr_error *error)
{
    unsigned char bytes[PLACE_BYTES];
    memcpy(bytes, place_magic, sizeof place_magic);
    put(bytes + 8, iterator->digest, 8);
    put(bytes + 16, atomic_load_explicit(&iterator->run.seed, memory_order_relaxed), 8);
    put(bytes + 24, iterator->top->position, 8);
    put(bytes + 32, mr_crc32c(0, bytes, 32), 4);
    return mr_tensor_init_string(place, (mr_string){(const char *)bytes, sizeof bytes}, error);
}

mr_status mr_iterator_restore(mr_iterator *iterator, const mr_tensor *place, mr_error *error)
{
    if (place->dtype != MR_STRING || mr_tensor_count(place) != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a place must be one string");
    mr_string string = mr_tensor_strings(place)[0];
    const unsigned char *bytes = (const unsigned char *)string.data;
    if (string.size_bytes != PLACE_BYTES || memcmp(bytes, place_magic, sizeof place_magic) != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "these %zu bytes are no place of a pipeline", string.size_bytes);
    if (get(bytes + 32, 4) != mr_crc32c(0, bytes, 32))
        return mr_fail(error, MR_INVALID_ARGUMENT, "the place is damaged: its checksum is wrong");
    if (get(bytes + 8, 8) != iterator->digest)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the place is that of another pipeline, or of other data");
    uint64_t position = get(bytes + 24, 8);
    if (position > MR_POSITION_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the place is damaged: its position is wrong");
    /* What threads still do by then is thrown away by begin. */
    atomic_store_explicit(&iterator->run.seed, get(bytes + 16, 8), memory_order_relaxed);
    MR_TRY(mr_stage_begin(iterator->top, 0, error));
    return mr_stage_seek(iterator->top, position, error);
}

int32_t mr_iterator_statistics(mr_iterator *iterator, mr_stage_statistics *statistics, int32_t capacity)
{
    for (int32_t i = 0; i < iterator->stage_count && i < capacity; i++) {
        mr_counters *c = &iterator->counters[i];
        statistics[i] =
            (mr_stage_statistics){.stage = c->stage,
                                  .elements = atomic_load_explicit(&c->elements, memory_order_relaxed),
                                  .bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed),
                                  .busy_ns = atomic_load_explicit(&c->busy_ns, memory_order_relaxed),
                                  .input_wait_ns = atomic_load_explicit(&c->input_wait_ns, memory_order_relaxed),
                                  .output_wait_ns = atomic_load_explicit(&c->output_wait_ns, memory_order_relaxed),
                                  .threads = c->threads};
    }
    return iterator->stage_count;
}
