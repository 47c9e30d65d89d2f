/* The engine as a stage: creation, begin, seek, save, restore and cancel (engine.h).
 *
 * To move an engine, its workers are paused: is_paused is set, the running tasks end, and all slots in flight are
 * discarded. The orders are then moved without the lock, so that cancel is not blocked. */
#include "pipeline/engine/engine_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- As a stage ---- */

static mr_status engine_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    uint64_t number = stage->position;
    if (((mr_engine *)stage)->is_direct) {
        MR_TRY(mr_engine_next_direct((mr_engine *)stage, item, error));
        item->epoch = stage->iteration;
        item->number = number;
        return MR_OK;
    }
    mr_payload *payload = mr_payload_new(((mr_engine *)stage)->plan.last->spec.count);
    if (payload == nullptr) return mr_fail_memory(error, sizeof *payload);
    *item = (mr_item){.epoch = stage->iteration, .number = number, .payload = payload};
    mr_status status = mr_engine_next(stage, payload->tensors, error);
    if (status != MR_OK) mr_item_deinit(item);
    return status;
}

/* Returns with the lock held: no worker is active, none can start, and no slot is in flight. */
static void pause_engine(mr_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    engine->is_paused = true;
    if (engine->blocked > 0) pthread_cond_broadcast(&engine->work);
    while (engine->active > 0) pthread_cond_wait(&engine->ready, &engine->mutex);
    assert(!engine->is_pulling && engine->blocked == 0 && mr_engine_is_consistent(engine));
    for (; engine->head < engine->tail; engine->head++)
        mr_slot_push(&engine->delivered, engine->flight[engine->head % (uint64_t)engine->ring_size]);
    for (mr_slot *slot = engine->delivered; slot != nullptr; slot = slot->next) mr_slot_clear(slot);
    engine->fill = engine->tail;
    engine->ready_count = 0;
    engine->row = 0;
    engine->input_ended = false;
    engine->failure = (mr_error){0};
    assert(engine->head == engine->tail && mr_engine_is_consistent(engine));
}

/* Called with the lock held; releases it. If the order could not begin or seek, the engine has ended with that
 * failure. */
static void resume_engine(mr_engine *engine, mr_status status)
{
    assert(engine->is_paused && engine->active == 0 && engine->head == engine->tail);
    if (status != MR_OK) {
        engine->input_ended = true;
        (void)mr_fail(&engine->failure, status, "the pipeline failed to move to its position");
    }
    engine->is_paused = false;
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->mutex);
}

static void take_seeds(mr_engine *engine)
{
    mr_engine_plan *plan = &engine->plan;
    for (int32_t i = 0; i < plan->work_count; i++)
        plan->works[i].seed = mr_stage_seed(plan->run, plan->works[i].dataset->seed, plan->works[i].purpose);
    for (int32_t i = 0; i < plan->batch_work_count; i++)
        plan->batch_works[i].seed =
            mr_stage_seed(plan->run, plan->batch_works[i].dataset->seed, plan->batch_works[i].purpose);
}

/* Without the lock: the order may wait for another engine below, and cancel must not be blocked meanwhile. */
static mr_status begin_order(mr_engine *engine, uint64_t iteration, mr_error *error)
{
    mr_engine_plan *plan = &engine->plan;
    assert(engine->is_paused);
    take_seeds(engine);
    engine->order_has_begun = false;
    engine->ignored = 0;
    return mr_stage_begin(plan->batch != nullptr ? plan->batches : plan->order, iteration, error);
}

static mr_status engine_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    mr_engine *engine = (mr_engine *)stage;
    pause_engine(engine);
    pthread_mutex_unlock(&engine->mutex);
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    mr_status status = begin_order(engine, iteration, error);
    pthread_mutex_lock(&engine->mutex);
    resume_engine(engine, status);
    return status;
}

static mr_status engine_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    mr_engine *engine = (mr_engine *)stage;
    if (!stage->is_seekable) return mr_stage_seek_forward(stage, position, error);
    if (stage->count >= 0 && position > (uint64_t)stage->count) position = (uint64_t)stage->count;
    pause_engine(engine);
    pthread_mutex_unlock(&engine->mutex);
    mr_stage *order = engine->plan.batch != nullptr ? engine->plan.batches : engine->plan.order;
    mr_status status = mr_stage_seek(order, position, error);
    stage->position = order->position;
    pthread_mutex_lock(&engine->mutex);
    resume_engine(engine, status);
    return status;
}

/* Saves the state of the order before the head slot, and the number of rows of that slot already delivered. */
static mr_status engine_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    mr_engine *engine = (mr_engine *)stage;
    if (engine->is_direct) return mr_stage_save(engine->plan.order, state, error);
    pthread_mutex_lock(&engine->mutex);
    while (engine->is_pulling && engine->head == engine->tail && !engine->is_cancelled)
        pthread_cond_wait(&engine->ready, &engine->mutex);
    assert(mr_engine_is_consistent(engine));
    mr_status status;
    if (engine->is_cancelled) {
        status = mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
    } else {
        const mr_slot *slot = engine->head < engine->tail ? mr_engine_slot_next(engine) : nullptr;
        assert(slot == nullptr || mr_slot_is_consistent(slot));
        status = mr_state_put(state, (uint64_t)engine->row, error);
        if (status == MR_OK) status = mr_state_put(state, engine->ignored, error);
        mr_state now = {0};
        if (status == MR_OK && slot == nullptr) status = mr_engine_save_orders(engine, &now, error);
        const mr_state *from = slot == nullptr ? &now : &slot->state;
        if (status == MR_OK) status = mr_state_put_bytes(state, from->bytes, from->size_bytes, error);
        mr_state_deinit(&now);
    }
    pthread_mutex_unlock(&engine->mutex);
    return status;
}

static mr_status restore_inside(mr_engine *engine, mr_state_reader *reader, mr_error *error)
{
    assert(engine->is_paused && engine->active == 0);
    if (engine->is_direct) return mr_stage_restore(engine->plan.order, reader, error);
    uint64_t row = 0, ignored = 0;
    const void *bytes = nullptr;
    size_t size_bytes = 0;
    MR_TRY(mr_state_get_below(reader, (uint64_t)engine->slots.rows, &row, error));
    MR_TRY(mr_state_get(reader, &ignored, error));
    MR_TRY(mr_state_get_bytes(reader, &bytes, &size_bytes, error));
    take_seeds(engine);
    engine->order_has_begun = false;
    mr_state_reader orders = {bytes, (const unsigned char *)bytes + size_bytes};
    MR_TRY(mr_engine_restore_orders(engine, &orders, error));
    engine->row = (int32_t)row;
    engine->ignored = ignored;
    return MR_OK;
}

static mr_status engine_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    mr_engine *engine = (mr_engine *)stage;
    pause_engine(engine);
    pthread_mutex_unlock(&engine->mutex);
    mr_status status = restore_inside(engine, reader, error);
    pthread_mutex_lock(&engine->mutex);
    resume_engine(engine, status);
    return status;
}

static void cancel_one(mr_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    engine->is_cancelled = true;
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->ready);
    pthread_mutex_unlock(&engine->mutex);
}

static void engine_cancel(mr_stage *stage)
{
    mr_engine *engine = (mr_engine *)stage;
    cancel_one(engine);
    mr_stage_cancel(engine->plan.order);
}

void mr_engines_init(mr_engines *engines)
{
    *engines = (mr_engines){0};
    pthread_mutex_init(&engines->mutex, nullptr);
}

void mr_engines_deinit(mr_engines *engines)
{
    assert(engines->first == nullptr);
    pthread_mutex_destroy(&engines->mutex);
}

void mr_engines_cancel(mr_engines *engines)
{
    pthread_mutex_lock(&engines->mutex);
    atomic_store_explicit(&engines->is_cancelled, true, memory_order_relaxed);
    for (mr_engine *engine = engines->first; engine != nullptr; engine = engine->next) cancel_one(engine);
    pthread_mutex_unlock(&engines->mutex);
}

bool mr_run_is_cancelled(const mr_run *run)
{
    return run->engines != nullptr && atomic_load_explicit(&run->engines->is_cancelled, memory_order_relaxed);
}

static void list_engine(mr_engine *engine)
{
    mr_engines *engines = engine->plan.run->engines;
    if (engines == nullptr) return;
    pthread_mutex_lock(&engines->mutex);
    assert(!engine->is_listed && engine->next == nullptr && engine->previous == nullptr);
    engine->is_cancelled = atomic_load_explicit(&engines->is_cancelled, memory_order_relaxed);
    engine->is_listed = true;
    engine->next = engines->first;
    if (engine->next != nullptr) engine->next->previous = engine;
    engines->first = engine;
    pthread_mutex_unlock(&engines->mutex);
}

static void unlist_engine(mr_engine *engine)
{
    if (!engine->is_listed) return;
    mr_engines *engines = engine->plan.run->engines;
    pthread_mutex_lock(&engines->mutex);
    assert(engine->previous == nullptr ? engines->first == engine : engine->previous->next == engine);
    assert(engine->next == nullptr || engine->next->previous == engine);
    if (engine->next != nullptr) engine->next->previous = engine->previous;
    if (engine->previous != nullptr)
        engine->previous->next = engine->next;
    else
        engines->first = engine->next;
    pthread_mutex_unlock(&engines->mutex);
}

/* Memory of the engine itself. */
static size_t own_bytes(const mr_engine *engine)
{
    if (engine->flight == nullptr || engine->workers == nullptr) return 0;
    return sizeof *engine + (size_t)engine->ring_size * sizeof *engine->flight +
           (size_t)engine->worker_count * sizeof *engine->workers;
}

static void engine_deinit(mr_stage *stage)
{
    mr_engine *engine = (mr_engine *)stage;
    unlist_engine(engine);
    engine_cancel(stage);
    pthread_mutex_lock(&engine->mutex);
    engine->is_stopping = true;
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->idle);
    pthread_mutex_unlock(&engine->mutex);
    for (int32_t i = 0; i < engine->thread_count; i++) pthread_join(engine->workers[i].thread, nullptr);
    assert(engine->active == 0 && engine->blocked == 0 && !engine->is_pulling);
    for (int32_t i = 0; i < engine->worker_count; i++) {
        mr_watch_remove(engine->plan.run->watch, &engine->workers[i].note);
        mr_workspace_deinit(&engine->workers[i].workspace);
        mr_budget_add(engine->plan.run, engine->plan.counters, -(ptrdiff_t)engine->workers[i].workspace_bytes);
    }
    for (; engine->head < engine->tail; engine->head++)
        mr_slot_free(engine->flight[engine->head % (uint64_t)engine->ring_size]);
    mr_engine_free_slots(engine->spare);
    mr_engine_free_slots(engine->delivered);
    mr_budget_add(engine->plan.run, engine->plan.counters, -(ptrdiff_t)own_bytes(engine));
    mr_budget_release(engine->plan.run, engine->kept_bytes);
    mr_stage_free(engine->plan.batches);
    mr_stage_free(engine->plan.order);
    free(engine->workers);
    free(engine->flight);
    pthread_cond_destroy(&engine->work);
    pthread_cond_destroy(&engine->idle);
    pthread_cond_destroy(&engine->ready);
    pthread_mutex_destroy(&engine->mutex);
}

const mr_stage_functions mr_engine_functions = {.begin = engine_begin,
                                                .next = engine_next,
                                                .seek = engine_seek,
                                                .cancel = engine_cancel,
                                                .deinit = engine_deinit,
                                                .save = engine_save,
                                                .restore = engine_restore};

/* ---- Creation ---- */

/* Number of single elements in a block: one if elements are large, many if they are small. */
static int32_t block_rows(const mr_element_spec *spec)
{
    constexpr size_t BLOCK_BYTES = 65536;
    constexpr int32_t ROWS_LOOSE = 4, ROWS_MAX = 256;
    size_t row_bytes = 1;
    for (int32_t i = 0; i < spec->count; i++) {
        if (spec->dtypes[i] != MR_STRING && mr_shape_count(spec->shapes[i]) < 0) return ROWS_LOOSE;
        size_t bytes = mr_spec_row_bytes(spec, i);
        if (bytes >= BLOCK_BYTES) return 1;
        row_bytes += bytes;
    }
    size_t rows = BLOCK_BYTES / row_bytes;
    return rows<1 ? 1 : rows>(size_t) ROWS_MAX ? ROWS_MAX : (int32_t)rows;
}

/* Maximum number of slots in flight: the prefetched ones and the one being filled, but at least enough rows to keep
 * every thread busy while one element takes long. */
static int32_t wanted_window(const mr_engine *engine, int32_t threads, int64_t depth)
{
    constexpr int64_t WINDOW_MAX = 1024;
    int32_t rows = engine->slots.rows;
    int64_t busy = (4 * (int64_t)threads + rows - 1) / rows + 1;
    int64_t wanted = depth + 1 > busy ? depth + 1 : busy;
    if (threads == 0) wanted = 1;
    return (int32_t)(wanted > WINDOW_MAX ? WINDOW_MAX : wanted);
}

/* The number of slots in flight while slots are cheap: as many as fit into little memory, and only for seekable orders,
 * where reading ahead has no visible effect. */
static int32_t cheap_window(const mr_engine *engine)
{
    constexpr size_t CHEAP_BYTES = (size_t)1 << 20;
    constexpr size_t WINDOW_CHEAP = 16;
    if (!engine->is_even || !engine->plan.order->is_seekable || engine->plan.threads == 0) return 0;
    size_t count = CHEAP_BYTES / (mr_engine_slot_bytes(engine) + 1);
    return (int32_t)(count < WINDOW_CHEAP ? count : WINDOW_CHEAP);
}

/* The lock is held, or no other thread has access yet. */
static void set_threads(mr_engine *engine, int32_t threads, int32_t depth)
{
    const mr_engine_plan *plan = &engine->plan;
    int32_t window_before = engine->window_max;
    assert(threads >= 0 && threads <= plan->threads && depth >= 1);
    engine->limit = threads;
    engine->depth = depth;
    engine->window_max = wanted_window(engine, threads, depth);
    engine->surplus = window_before > engine->window_max ? window_before - engine->window_max : 0;
    if (!engine->is_direct) plan->counters->slots_max = engine->window_max;
    for (int32_t i = 0; i < plan->work_count; i++) plan->works[i].counters->threads = threads;
    for (int32_t i = 0; i < plan->batch_work_count; i++) plan->batch_works[i].counters->threads = threads;
    if (plan->source_counters != nullptr) plan->source_counters->threads = threads;
    if (plan->batch_counters != nullptr) plan->batch_counters->threads = threads;
}

void mr_engine_set(mr_stage *stage, int32_t threads, int32_t depth, int32_t reads)
{
    mr_engine *engine = (mr_engine *)stage;
    assert(engine->plan.is_tuned && threads >= 0 && threads <= engine->plan.threads && depth > 0);
    pthread_mutex_lock(&engine->mutex);
    set_threads(engine, threads, depth);
    if (reads > 0) engine->reads = reads;
    assert(mr_engine_is_consistent(engine));
    if (engine->has_started) mr_engine_start_threads(engine);
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->idle);
    pthread_cond_broadcast(&engine->ready);
    pthread_mutex_unlock(&engine->mutex);
}

void mr_engine_measure(mr_stage *stage, mr_engine_gauge *gauge)
{
    mr_engine *engine = (mr_engine *)stage;
    pthread_mutex_lock(&engine->mutex);
    assert(mr_engine_is_consistent(engine));
    *gauge = (mr_engine_gauge){
        .name = engine->trace_name,
        .threads = engine->limit,
        .threads_max = engine->plan.threads,
        .depth = engine->depth,
        .may_be_inline = engine->plan.order->is_seekable || engine->plan.batch != nullptr || engine->slots.rows == 1,
        .is_cheap = engine->limit > 0 && mr_engine_is_cheap(engine),
        .slot_bytes = mr_engine_slot_bytes(engine) + engine->extra_bytes,
        .slots = engine->window_max,
        .ready = (int32_t)engine->ready_count,
        .slot_rows = engine->plan.batch != nullptr ? 1 : engine->slots.rows,
        .batch_rows = engine->plan.batch != nullptr ? engine->slots.rows : 1,
        .produced = engine->plan.drops              ? 0
                    : engine->plan.batch != nullptr ? (double)engine->rows_done / engine->slots.rows
                                                    : (double)engine->rows_done,
        .reads = engine->reads_ahead ? engine->reads : 0,
        .rows_requested = engine->rows_requested,
        .rows_waited = engine->rows_waited,
        .work_ns = engine->work_ns,
        .starved_ns = engine->starved_ns};
    pthread_mutex_unlock(&engine->mutex);
}

static void name_tasks(mr_engine *engine)
{
    const mr_engine_plan *plan = &engine->plan;
    char *name = engine->trace_name;
    size_t at = (size_t)snprintf(name, sizeof engine->trace_name, "%s",
                                 plan->source != nullptr ? plan->source->kind->name : plan->last->kind->name);
    for (int32_t i = 0; i < plan->work_count && at < sizeof engine->trace_name; i++)
        at += (size_t)snprintf(name + at, sizeof engine->trace_name - at, "+%s", plan->works[i].dataset->kind->name);
}

static mr_status engine_init(mr_engine *engine, mr_error *error)
{
    const mr_engine_plan *plan = &engine->plan;
    const mr_batch_settings *batch = plan->batch == nullptr ? nullptr : plan->batch->settings;
    int32_t rows = batch == nullptr ? block_rows(plan->row_spec) : (int32_t)batch->size;
    /* Sources that wait for each element, such as generators and queues, are read one element at a time. */
    if (batch == nullptr && plan->threads == 0 && !plan->order->is_seekable) rows = 1;
    MR_TRY(mr_slot_plan_init(&engine->slots, plan->row_spec, batch == nullptr ? nullptr : batch->pads, rows,
                             batch != nullptr, plan->run, error));
    engine->slots.drops = plan->drops;
    engine->slots.has_payloads = plan->source == nullptr || !plan->order->is_seekable;
    engine->slots.counters = plan->counters;
    engine->is_direct =
        plan->threads == 0 && plan->work_count == 0 && batch == nullptr && !plan->drops && !plan->order->is_seekable;
    engine->is_even = true;
    for (int32_t c = 0; c < engine->slots.count; c++)
        engine->is_even &= engine->slots.columns[c].kind == MR_COLUMN_FIXED;
    for (int32_t i = 0; i < plan->work_count; i++) engine->is_even &= !plan->works[i].dataset->kind->reserves;
    for (int32_t i = 0; i < plan->batch_work_count; i++)
        engine->is_even &= !plan->batch_works[i].dataset->kind->reserves;
    engine->copies =
        engine->is_even && plan->source != nullptr && plan->source->kind->copy != nullptr && plan->work_count == 0;
    /* The rows of a source without numbers carry their payload, except those that failed. */
    engine->can_read_ahead =
        plan->source != nullptr && plan->source->kind->read_ahead != nullptr && plan->source->count >= 0;
    engine->reads_ahead = engine->can_read_ahead;
    engine->reads = MR_READS_FIRST;
    engine->probe = engine->probe_gap = 1;
    constexpr int32_t DEPTH_TUNED = 2;
    int32_t depth = plan->prefetch == 0 ? DEPTH_TUNED : plan->prefetch < 0 ? 1 : plan->prefetch;
    if (batch == nullptr) depth = (depth - 1) / rows + 1;
    int32_t depth_max = plan->is_tuned && depth < MR_DEPTH_MAX ? MR_DEPTH_MAX : depth;
    set_threads(engine, plan->is_tuned ? plan->threads_first : plan->threads, depth);
    engine->window_cheap = cheap_window(engine);
    engine->ring_size = wanted_window(engine, plan->threads, depth_max);
    if (engine->ring_size < engine->window_cheap) engine->ring_size = engine->window_cheap;
    engine->worker_count = plan->threads + 1;
    assert(engine->window_max <= engine->ring_size && engine->slots.rows >= 1);
    engine->flight = calloc((size_t)engine->ring_size, sizeof(mr_slot *));
    engine->workers = calloc((size_t)engine->worker_count, sizeof *engine->workers);
    if (engine->flight == nullptr || engine->workers == nullptr) {
        engine->worker_count = 0;
        return mr_fail_memory(error, ((size_t)plan->threads + 1) * sizeof *engine->workers);
    }
    for (int32_t i = 0; i < engine->worker_count; i++) {
        mr_worker *worker = &engine->workers[i];
        worker->engine = engine;
        worker->workspace.reserve = mr_engine_wait_for_room;
        worker->workspace.stop = &engine->is_cancelled;
        worker->note.source = plan->source;
        worker->note.is_thread = i < plan->threads;
    }
    mr_budget_add(plan->run, plan->counters, (ptrdiff_t)own_bytes(engine));
    /* What the engine needs as a minimum is reserved without a limit. */
    engine->kept_bytes = own_bytes(engine) + mr_engine_slot_bytes(engine);
    atomic_fetch_add_explicit(&plan->run->budget->kept_bytes, engine->kept_bytes, memory_order_relaxed);
    mr_watch_add(plan->run->watch, &engine->workers[plan->threads].note);
    engine->trace_number = mr_watch_engine(plan->run->watch);
    name_tasks(engine);
    return MR_OK;
}

mr_status mr_engine_new(const mr_engine_plan *plan, mr_stage **stage, mr_error *error)
{
    *stage = nullptr;
    mr_engine *engine = calloc(1, sizeof *engine);
    if (engine == nullptr) {
        mr_stage_free(plan->order);
        mr_stage_free(plan->batches);
        return mr_fail_memory(error, sizeof *engine);
    }
    engine->plan = *plan;
    const mr_stage *delivered = plan->batch != nullptr ? plan->batches : plan->order;
    engine->stage =
        (mr_stage){.functions = &mr_engine_functions,
                   .run = plan->run,
                   .counters = plan->counters,
                   .is_seekable = plan->order->is_seekable && !plan->drops,
                   .count = plan->drops && delivered->count >= 0 ? MR_CARDINALITY_UNKNOWN : delivered->count};
    pthread_mutex_init(&engine->mutex, nullptr);
    pthread_cond_init(&engine->work, nullptr);
    pthread_cond_init(&engine->idle, nullptr);
    pthread_cond_init(&engine->ready, nullptr);
    list_engine(engine);
    mr_status status = engine_init(engine, error);
    if (status == MR_OK)
        *stage = &engine->stage;
    else
        mr_stage_free(&engine->stage);
    return status;
}
