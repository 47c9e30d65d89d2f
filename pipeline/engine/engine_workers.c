/* Workers: the threads of an engine, and the tasks that they take. A task is some rows of one slot.
 *
 * Invariants: the worker that has taken a row is the only one that writes its parts of the slot, until the row is done.
 * The worker that finishes a slot's last row assembles the batch. `active` counts the workers that run without the
 * lock; at 0 nobody but the caller uses the orders and the slots. Threads above `limit` sleep on `idle`, the others on
 * `work`. Lock order: the engine's mutex is held to take a task and to finish it, and never while rows are processed,
 * items are pulled or batches are assembled. The watch's mutex is acquired after it. */
#include "base/cpu.h"
#include "base/thread.h"
#include "pipeline/engine/engine_internal.h"

/* Target duration of a task: long enough that taking it costs little in comparison. */
constexpr uint64_t TASK_NS = 100000;
/* The same if rows are mapped by other processes, which are woken for each task. */
constexpr uint64_t BLOCK_TASK_NS = 1000000;
/* Longest busy wait. */
constexpr uint64_t WAIT_NS = 20000;

/* Some rows of a slot, for one worker. */
typedef struct task {
    mr_slot *slot;
    int32_t begin, end;
    int32_t request_begin, request_end; /* rows to request from the system first */
} task;

/* ---- Tasks ---- */

/* Lock held. Whether take_task could succeed. */
static bool may_take(const mr_engine *engine)
{
    assert(mr_engine_is_consistent(engine));
    if (engine->is_paused || engine->is_cancelled || engine->is_stopping) return false;
    return mr_engine_filling(engine) != nullptr ? mr_engine_may_fill(engine) : mr_engine_may_pull(engine);
}

/* Lock held; released while pulling. Takes rows, after pulling a slot if necessary. */
static bool take_task(mr_engine *engine, mr_worker *worker, task *taken)
{
    if (engine->is_paused || engine->is_cancelled || engine->is_stopping) return false;
    bool is_wanted = mr_engine_filling(engine) == nullptr || mr_engine_wants_read_ahead(engine);
    if (is_wanted && mr_engine_may_pull(engine)) {
        mr_engine_pull(engine, worker);
        if (engine->is_paused || engine->is_cancelled || engine->is_stopping) return false;
    }
    mr_slot *slot = mr_engine_filling(engine);
    if (slot == nullptr || !mr_engine_may_fill(engine)) return false;
    uint64_t task_ns = mr_engine_maps_blocks(engine) ? BLOCK_TASK_NS : TASK_NS;
    uint64_t rows = engine->row_ns == 0 ? 1 : task_ns / engine->row_ns;
    /* If other slots can be filled, the rows of this one need not be divided among the threads. */
    int32_t sharers =
        engine->window_max > 1 || mr_engine_threads_at_work(engine) == 0 ? 1 : mr_engine_threads_at_work(engine);
    assert(mr_slot_is_consistent(slot) && slot->taken < slot->rows && sharers >= 1);
    int32_t left = slot->rows - slot->taken, share = (left + sharers - 1) / sharers;
    int32_t count = rows<1 ? 1 : rows>(uint64_t) share ? share : (int32_t)rows;
    assert(count >= 1 && count <= left);
    *taken = (task){.slot = slot, .begin = slot->taken, .end = slot->taken + count};
    slot->taken += count;
    mr_engine_claim_read_ahead(engine, slot, slot->taken, &taken->request_begin, &taken->request_end);
    if (slot->taken == slot->rows) engine->fill++;
    engine->active++;
    return true;
}

/* Without the lock. Returns how often the thread slept. */
static uint64_t process_rows(mr_engine *engine, mr_worker *worker, const task *taken)
{
    if (taken->request_begin < taken->request_end)
        mr_engine_read_ahead(engine, taken->slot, taken->request_begin, taken->request_end);
    uint64_t sleeps = mr_engine_sleep_count(engine);
    mr_engine_do_rows(engine, worker, taken->slot, taken->begin, taken->end);
    sleeps = mr_engine_sleep_count(engine) - sleeps;
    mr_engine_count_workspace(engine, worker);
    return sleeps;
}

/* Lock held; released while the batch is assembled. All rows of the slot are done. */
static void finish_slot(mr_engine *engine, mr_worker *worker, mr_slot *slot, uint64_t start_ns)
{
    if (engine->plan.batch != nullptr) {
        pthread_mutex_unlock(&engine->mutex);
        mr_engine_do_batch(engine, worker, slot);
        uint64_t batch_ns = mr_now_ns() - start_ns;
        pthread_mutex_lock(&engine->mutex);
        engine->work_ns += batch_ns;
        engine->batch_ns = mr_average_ns(engine->batch_ns, batch_ns);
    }
    worker->reserved_bytes = 0;
    mr_engine_complete_slot(engine, slot);
}

/* Lock held; released while working. */
static void do_task(mr_engine *engine, mr_worker *worker, const task *taken)
{
    mr_slot *slot = taken->slot;
    int32_t count = taken->end - taken->begin;
    assert(count >= 1 && taken->begin >= 0 && taken->end <= slot->taken && mr_slot_is_consistent(slot));
    assert(worker->reserved_bytes == 0 && worker->workspace.count == 0);
    pthread_mutex_unlock(&engine->mutex);
    uint64_t start_ns = mr_now_ns();
    size_t bytes_before = mr_slot_rows_bytes(slot, taken->begin, taken->end);
    worker->slot = slot;
    uint64_t sleeps = process_rows(engine, worker, taken);
    size_t bytes = mr_slot_rows_bytes(slot, taken->begin, taken->end);
    uint64_t end_ns = mr_now_ns(), row_ns = (end_ns - start_ns) / (uint64_t)count;
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    if (trace != nullptr) mr_trace_slice(trace, engine->trace_name, start_ns, end_ns, (uint64_t)count);
    pthread_mutex_lock(&engine->mutex);
    assert(engine->active > 0 && mr_engine_is_consistent(engine) && worker->workspace.count == 0);
    engine->work_ns += end_ns - start_ns;
    engine->rows_done += (uint64_t)count;
    engine->row_ns = mr_average_ns(engine->row_ns, row_ns);
    for (int32_t r = taken->begin; r < taken->end; r++) slot->is_row_done[r] = true;
    slot->done += count;
    assert(mr_slot_is_consistent(slot));
    slot->waits += sleeps;
    mr_slot_account_rows(slot, bytes_before + worker->reserved_bytes, bytes);
    worker->reserved_bytes = 0;
    if (slot->done == slot->rows) mr_engine_measure_read_ahead(engine, slot);
    if (slot->done == slot->rows && !engine->is_cancelled) finish_slot(engine, worker, slot, end_ns);
    mr_note_stage(&worker->note, nullptr);
    mr_note_since(&worker->note, end_ns);
    engine->active--;
    bool is_head = engine->flight[engine->head % (uint64_t)engine->ring_size] == slot;
    bool is_next = is_head && (slot->is_complete || (engine->plan.batch == nullptr && engine->row < slot->rows &&
                                                     slot->is_row_done[engine->row]));
    bool is_wanted = is_next || mr_engine_threads_at_work(engine) == 0;
    if (engine->is_paused ? engine->active == 0 : is_wanted && engine->is_waiting)
        pthread_cond_broadcast(&engine->ready);
}

void mr_engine_wake_before_wait(mr_engine *engine)
{
    if (mr_engine_is_cheap(engine) || may_take(engine)) pthread_cond_broadcast(&engine->work);
}

/* Lock held; released meanwhile. Returns whether another worker's pull has ended. */
static bool wait_for_pull(mr_engine *engine)
{
    uint32_t pulls = atomic_load_explicit(&engine->pulls, memory_order_relaxed);
    pthread_mutex_unlock(&engine->mutex);
    uint64_t start_ns = mr_now_ns();
    bool has_ended = false;
    while (!has_ended && mr_now_ns() - start_ns < WAIT_NS) {
        mr_cpu_pause();
        has_ended = atomic_load_explicit(&engine->pulls, memory_order_relaxed) != pulls;
    }
    pthread_mutex_lock(&engine->mutex);
    return has_ended;
}

bool mr_engine_step(mr_engine *engine, mr_worker *worker, bool *has_waited)
{
    task taken;
    assert(worker->engine == engine && mr_engine_is_consistent(engine));
    if (may_take(engine)) {
        if (take_task(engine, worker, &taken)) do_task(engine, worker, &taken);
        *has_waited = false;
        return true;
    }
    if (*has_waited || !engine->is_pulling || !mr_engine_is_cheap(engine)) return false;
    *has_waited = !wait_for_pull(engine);
    return true;
}

/* ---- Threads ---- */

static void *worker_main(void *argument)
{
    mr_worker *worker = argument;
    mr_engine *engine = worker->engine;
    (void)mr_nesting_set(engine->plan.run->nesting);
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    if (trace != nullptr) mr_trace_thread(trace, engine->plan.last->kind->name, (int32_t)(worker - engine->workers));
    mr_note_since(&worker->note, mr_now_ns());
    bool has_waited = false;
    pthread_mutex_lock(&engine->mutex);
    while (!engine->is_stopping) {
        if (worker - engine->workers >= engine->limit) {
            pthread_cond_wait(&engine->idle, &engine->mutex);
            continue;
        }
        if (mr_engine_step(engine, worker, &has_waited)) continue;
        bool is_full = engine->fill < engine->tail || (!engine->is_pulling && !engine->input_ended);
        uint64_t start_ns = mr_now_ns();
        mr_note_since(&worker->note, start_ns);
        pthread_cond_wait(&engine->work, &engine->mutex);
        has_waited = false;
        mr_counters *waiter = engine->plan.batch != nullptr ? engine->plan.batch_counters : engine->plan.counters;
        mr_count(is_full ? &waiter->output_wait_ns : &waiter->input_wait_ns, mr_now_ns() - start_ns);
    }
    pthread_mutex_unlock(&engine->mutex);
    return nullptr;
}

void mr_engine_start_threads(mr_engine *engine)
{
    assert(mr_engine_is_consistent(engine));
    engine->has_started = true;
    while (engine->thread_count < engine->limit) {
        assert(engine->thread_count < engine->worker_count - 1);
        mr_worker *worker = &engine->workers[engine->thread_count];
        mr_watch_add(engine->plan.run->watch, &worker->note);
        if (mr_thread_create(&worker->thread, worker_main, worker) != 0) {
            mr_watch_remove(engine->plan.run->watch, &worker->note);
            break;
        }
        engine->thread_count++;
    }
}
