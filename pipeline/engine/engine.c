/* The engine as a stage: creation, settings, measurements and deinit (engine.h).
 *
 * Invariants: window_max ≤ ring_size and limit < worker_count, whatever the tuner sets; the last worker is the
 * caller's. What the engine needs as a minimum, itself and one slot, is reserved in the budget from creation to deinit.
 * Lock order: creation and deinit acquire the mutex of mr_engines alone, before and after any thread runs; measure and
 * set acquire the engine's. */
#include "pipeline/engine/engine_internal.h"

#include <stdio.h>
#include <stdlib.h>

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

/* Memory of the engine itself. */
static size_t own_bytes(const mr_engine *engine)
{
    if (engine->flight == nullptr || engine->workers == nullptr) return 0;
    return sizeof *engine + (size_t)engine->ring_size * sizeof *engine->flight +
           (size_t)engine->worker_count * sizeof *engine->workers;
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

/* Plans the slots: how many rows they have, and how their rows are filled. */
static mr_status init_slots(mr_engine *engine, mr_error *error)
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
    return MR_OK;
}

/* Threads, depth, and the largest window that they can lead to. */
static void init_window(mr_engine *engine)
{
    constexpr int32_t DEPTH_TUNED = 2;
    const mr_engine_plan *plan = &engine->plan;
    int32_t depth = plan->prefetch == 0 ? DEPTH_TUNED : plan->prefetch < 0 ? 1 : plan->prefetch;
    if (plan->batch == nullptr) depth = (depth - 1) / engine->slots.rows + 1;
    int32_t depth_max = plan->is_tuned && depth < MR_DEPTH_MAX ? MR_DEPTH_MAX : depth;
    set_threads(engine, plan->is_tuned ? plan->threads_first : plan->threads, depth);
    engine->window_cheap = cheap_window(engine);
    engine->ring_size = wanted_window(engine, plan->threads, depth_max);
    if (engine->ring_size < engine->window_cheap) engine->ring_size = engine->window_cheap;
    engine->worker_count = plan->threads + 1;
    assert(engine->window_max <= engine->ring_size && engine->slots.rows >= 1);
}

static mr_status engine_init(mr_engine *engine, mr_error *error)
{
    const mr_engine_plan *plan = &engine->plan;
    MR_TRY(init_slots(engine, error));
    init_window(engine);
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
    mr_engine_list(engine);
    mr_status status = engine_init(engine, error);
    if (status == MR_OK)
        *stage = &engine->stage;
    else
        mr_stage_free(&engine->stage);
    return status;
}

/* ---- Deinit ---- */

static void engine_cancel(mr_stage *stage)
{
    mr_engine *engine = (mr_engine *)stage;
    mr_engine_cancel(engine);
    mr_stage_cancel(engine->plan.order);
}

static void engine_deinit(mr_stage *stage)
{
    mr_engine *engine = (mr_engine *)stage;
    mr_engine_unlist(engine);
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
    mr_engine_free_slots(engine);
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

const mr_stage_functions mr_engine_functions = {.begin = mr_engine_begin,
                                                .next = mr_engine_next_item,
                                                .seek = mr_engine_seek,
                                                .cancel = engine_cancel,
                                                .deinit = engine_deinit,
                                                .save = mr_engine_save,
                                                .restore = mr_engine_restore};

/* ---- Settings and measurements ---- */

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
