/* Threads and slots: who works on what, and what is delivered when (engine.h).
 *
 * One mutex. It is held for taking a task, for finishing one and for delivering; never while items are pulled, rows
 * worked on or batches put together. One worker at a time pulls, so that the order stages need no lock. */
#include "pipeline/engine_inside.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* A task is some rows of a slot: enough of them that taking one costs little beside doing it. */
constexpr uint64_t TASK_NS = 100000;

typedef struct task {
    mr_slot *slot;
    int32_t begin, end;
} task;

/* ---- Slots ---- */

static void push(mr_slot **list, mr_slot *slot)
{
    slot->next = *list;
    *list = slot;
}

/* A slot that nobody holds, or null. */
static mr_slot *find_slot(mr_engine *engine)
{
    mr_slot *slot = engine->spare;
    if (slot != nullptr) {
        engine->spare = slot->next;
        return slot;
    }
    for (mr_slot **link = &engine->lent; *link != nullptr; link = &(*link)->next) {
        if (!mr_slot_is_free(*link)) continue;
        slot = *link;
        *link = slot->next;
        return slot;
    }
    return nullptr;
}

/* ---- The budget ---- */

static bool fits(const mr_engine *engine, size_t more_bytes)
{
    size_t held = atomic_load_explicit(engine->plan.run->held_bytes, memory_order_relaxed), free_bytes;
    return !__builtin_sub_overflow(engine->plan.run->budget_bytes, held, &free_bytes) && more_bytes <= free_bytes;
}

/* Lock held. Whether the slot that find_slot would give is there, or another one has to be made. */
static bool has_slot(const mr_engine *engine)
{
    if (engine->spare != nullptr) return true;
    for (const mr_slot *slot = engine->lent; slot != nullptr; slot = slot->next)
        if (mr_slot_is_free(slot)) return true;
    return false;
}

/* Lock held. For another slot in flight, if it is like the largest so far. The first one may always be: somebody waits for
 * it, and gives the memory of others back when it is there. */
static bool has_room(const mr_engine *engine)
{
    uint64_t in_flight = engine->tail - engine->head;
    if (in_flight == 0) return true;
    if (in_flight >= (uint64_t)engine->window_max) return false;
    return fits(engine, engine->extra_bytes + (has_slot(engine) ? 0 : engine->slots.fixed_bytes));
}

static mr_slot *slot_due(const mr_engine *engine)
{
    return engine->flight[engine->head % (uint64_t)engine->ring_size];
}

/* Lock held, a slot is being filled. Beyond the budget rows of the slot that is due go on, those of later ones wait. */
static bool may_fill(const mr_engine *engine)
{
    return engine->filling == slot_due(engine) || fits(engine, 0);
}

/* A row says what it is about to take, and waits for it unless its slot is due. */
static void wait_for_room(mr_lane *lane, size_t size_bytes)
{
    mr_worker *worker = (mr_worker *)((char *)lane - offsetof(mr_worker, lane));
    mr_engine *engine = worker->engine;
    pthread_mutex_lock(&engine->mutex);
    engine->blocked++;
    while (!engine->is_paused && !engine->is_cancelled && !engine->is_stopping && worker->slot != slot_due(engine) &&
           !fits(engine, size_bytes))
        pthread_cond_wait(&engine->work, &engine->mutex);
    engine->blocked--;
    mr_slot_account_rows(worker->slot, 0, size_bytes);
    worker->reserved_bytes += size_bytes;
    pthread_mutex_unlock(&engine->mutex);
}

/* Lock held. Memory was given back, or another slot is due. */
static void wake_workers(mr_engine *engine)
{
    if (engine->filling != nullptr || engine->blocked > 0)
        pthread_cond_broadcast(&engine->work);
    else
        pthread_cond_signal(&engine->work);
}

/* ---- Pulling ---- */

/* An element that failed below is a failed row; an order that does not move on over its failure has failed for good. */
static mr_status fill_items(mr_engine *engine, mr_slot *slot, mr_error *error)
{
    mr_stage *order = engine->plan.order;
    while (slot->rows < engine->slots.rows) {
        uint64_t before = order->position;
        if (atomic_load_explicit(&engine->is_cancelled, memory_order_relaxed))
            return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        mr_status status = mr_stage_next(order, &slot->items[slot->rows], error);
        if (status != MR_OK) {
            bool is_over = status == MR_OUT_OF_RANGE || status == MR_CANCELLED;
            if (is_over || order->position == before || error == nullptr) return status;
            slot->items[slot->rows] = (mr_item){.epoch = order->iteration, .number = before};
            mr_slot_fail_row(slot, slot->rows, error);
        }
        slot->rows++;
    }
    return MR_OK;
}

/* ---- The place of what is pulled ---- */

static mr_status save_orders(const mr_engine *engine, mr_place *place, mr_error *error)
{
    const mr_engine_plan *plan = &engine->plan;
    if (plan->batch != nullptr) {
        MR_TRY(mr_stage_save(plan->batches, place, error));
        MR_TRY(mr_place_put(place, engine->order_has_begun, error));
        MR_TRY(mr_place_put(place, engine->order_epoch, error));
        if (!engine->order_has_begun) return MR_OK;
    }
    return mr_stage_save(plan->order, place, error);
}

static mr_status restore_orders(mr_engine *engine, mr_place_reader *reader, mr_error *error)
{
    const mr_engine_plan *plan = &engine->plan;
    if (plan->batch != nullptr) {
        uint64_t has_begun = 0;
        MR_TRY(mr_stage_restore(plan->batches, reader, error));
        MR_TRY(mr_place_get_below(reader, 1, &has_begun, error));
        MR_TRY(mr_place_get(reader, &engine->order_epoch, error));
        engine->order_has_begun = has_begun != 0;
        if (!engine->order_has_begun) return MR_OK;
    }
    return mr_stage_restore(plan->order, reader, error);
}

/* The next slot's items. Zero rows and MR_OK: the end. Rows and an error: they are good, the error comes after them. */
static mr_status pull(mr_engine *engine, mr_slot *slot, mr_error *error)
{
    if (engine->plan.batch == nullptr) {
        mr_status status = fill_items(engine, slot, error);
        return status == MR_OUT_OF_RANGE ? MR_OK : status;
    }
    const mr_batch_settings *settings = engine->plan.batch->settings;
    mr_item batch = {0};
    mr_status status = mr_stage_next(engine->plan.batches, &batch, error);
    if (status != MR_OK) return status == MR_OUT_OF_RANGE ? MR_OK : status;
    slot->epoch = batch.epoch;
    slot->number = batch.number;
    if (!engine->order_has_begun || engine->order_epoch != batch.epoch) {
        engine->order_has_begun = true;
        engine->order_epoch = batch.epoch;
        MR_TRY(mr_stage_begin(engine->plan.order, batch.epoch, error));
    }
    uint64_t first = 0;
    if (__builtin_mul_overflow(batch.number, (uint64_t)settings->size, &first) || first > MR_POSITION_MAX) return MR_OK;
    MR_TRY(mr_stage_seek(engine->plan.order, first, error));
    status = fill_items(engine, slot, error);
    bool is_short = slot->rows < engine->slots.rows;
    if ((status != MR_OK && status != MR_OUT_OF_RANGE) || (is_short && settings->drop_remainder)) {
        int32_t rows = slot->rows;
        for (int32_t r = 0; r < rows; r++) mr_item_deinit(&slot->items[r]);
        slot->rows = 0;
    }
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* Threads at work; without any the caller works. Lock held. */
static int32_t threads_at_work(const mr_engine *engine)
{
    return engine->limit < engine->thread_count ? engine->limit : engine->thread_count;
}

/* The stage that items come from. */
static const char *order_name(const mr_engine *engine)
{
    const mr_stage *order = engine->plan.order;
    return order->dataset != nullptr ? order->dataset->kind->name : engine->plan.last->kind->name;
}

/* Of an engine with threads: those of others are short-lived, or no queue. */
static void trace_slots(mr_engine *engine)
{
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    if (trace != nullptr && engine->thread_count > 0)
        mr_trace_slots(trace, engine->plan.last->kind->name, engine->trace_number, mr_now_ns(),
                       engine->tail - engine->head, engine->ready_count);
}

/* Lock held; let go inside. */
static void pull_slot(mr_engine *engine, mr_worker *worker)
{
    engine->is_pulling = true;
    engine->active++;
    mr_slot *slot = find_slot(engine);
    pthread_mutex_unlock(&engine->mutex);
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    uint64_t start_ns = engine->plan.run->watch != nullptr ? mr_now_ns() : 0;
    mr_note_element(&worker->note, engine->plan.order->position, MR_NOTE_PULL);
    mr_note_since(&worker->note, start_ns);
    mr_note_stage(&worker->note, order_name(engine));
    mr_error error = {0};
    mr_status status = MR_OK;
    if (slot == nullptr)
        status = mr_slot_new(&engine->slots, &slot, &error);
    else
        mr_slot_clear(slot);
    if (status == MR_OK && !engine->stage.is_seekable) {
        mr_place_clear(&slot->place);
        status = save_orders(engine, &slot->place, &error);
    }
    if (status == MR_OK) status = pull(engine, slot, &error);
    mr_note_stage(&worker->note, nullptr);
    bool is_empty = slot == nullptr || slot->rows == 0;
    if (trace != nullptr) mr_trace_slice(trace, "pull", start_ns, mr_now_ns(), is_empty ? 0 : (uint64_t)slot->rows);
    pthread_mutex_lock(&engine->mutex);
    engine->is_pulling = false;
    engine->active--;
    if (status != MR_OK) {
        engine->failure = error;
        engine->failure.status = status;
    }
    if (status != MR_OK || is_empty) engine->input_ended = true;
    if (slot != nullptr && is_empty)
        push(&engine->spare, slot);
    else if (slot != nullptr) {
        engine->flight[engine->tail++ % (uint64_t)engine->ring_size] = slot;
        engine->filling = slot;
        trace_slots(engine);
    }
    pthread_cond_broadcast(&engine->work);
    if (engine->input_ended || engine->is_paused || !engine->stage.is_seekable || threads_at_work(engine) == 0)
        pthread_cond_broadcast(&engine->ready);
}

/* ---- Tasks ---- */

static bool may_pull(const mr_engine *engine)
{
    return !engine->is_pulling && !engine->input_ended && has_room(engine);
}

/* Takes rows, pulling first when there are none. Lock held. */
static bool take_task(mr_engine *engine, mr_worker *worker, task *taken)
{
    if (engine->is_paused || engine->is_cancelled || engine->is_stopping) return false;
    if (engine->filling == nullptr && may_pull(engine)) {
        pull_slot(engine, worker);
        if (engine->is_paused || engine->is_cancelled || engine->is_stopping) return false;
    }
    mr_slot *slot = engine->filling;
    if (slot == nullptr || !may_fill(engine)) return false;
    uint64_t rows = engine->row_ns == 0 ? 1 : TASK_NS / engine->row_ns;
    /* With other slots to go on with, nobody needs a share of quick rows. */
    int32_t sharers = engine->window_max > 1 || threads_at_work(engine) == 0 ? 1 : threads_at_work(engine);
    int32_t left = slot->rows - slot->taken, share = (left + sharers - 1) / sharers;
    int32_t count = rows<1 ? 1 : rows>(uint64_t) share ? share : (int32_t)rows;
    *taken = (task){slot, slot->taken, slot->taken + count};
    slot->taken += count;
    if (slot->taken == slot->rows) engine->filling = nullptr;
    engine->active++;
    return true;
}

/* Lock held; let go while working. */
static void do_task(mr_engine *engine, mr_worker *worker, task taken)
{
    mr_slot *slot = taken.slot;
    int32_t count = taken.end - taken.begin;
    pthread_mutex_unlock(&engine->mutex);
    uint64_t start_ns = mr_now_ns();
    size_t bytes_before = mr_slot_rows_bytes(slot, taken.begin, taken.end);
    worker->slot = slot;
    mr_engine_do_rows(engine, worker, slot, taken.begin, taken.end);
    size_t bytes = mr_slot_rows_bytes(slot, taken.begin, taken.end);
    uint64_t end_ns = mr_now_ns(), row_ns = (end_ns - start_ns) / (uint64_t)count + 1;
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    if (trace != nullptr) mr_trace_slice(trace, engine->trace_name, start_ns, end_ns, (uint64_t)count);
    pthread_mutex_lock(&engine->mutex);
    engine->work_ns += end_ns - start_ns;
    engine->rows_done += (uint64_t)count;
    engine->row_ns = engine->row_ns == 0 ? row_ns : (7 * engine->row_ns + row_ns) / 8 + 1;
    for (int32_t r = taken.begin; r < taken.end; r++) slot->is_row_done[r] = true;
    slot->done += count;
    mr_slot_account_rows(slot, bytes_before + worker->reserved_bytes, bytes);
    worker->reserved_bytes = 0;
    if (slot->done == slot->rows && !engine->is_cancelled) {
        if (engine->plan.batch != nullptr) {
            pthread_mutex_unlock(&engine->mutex);
            mr_engine_do_batch(engine, worker, slot);
            uint64_t batch_ns = mr_now_ns() - end_ns;
            pthread_mutex_lock(&engine->mutex);
            engine->work_ns += batch_ns;
        }
        mr_slot_account(slot);
        slot->is_complete = true;
        engine->ready_count++;
        trace_slots(engine);
        size_t extra_bytes = slot->held_bytes - engine->slots.fixed_bytes;
        engine->extra_bytes -= engine->extra_bytes / 8;
        if (extra_bytes > engine->extra_bytes) engine->extra_bytes = extra_bytes;
    }
    mr_note_stage(&worker->note, nullptr);
    mr_note_since(&worker->note, end_ns);
    engine->active--;
    bool is_head = engine->flight[engine->head % (uint64_t)engine->ring_size] == slot;
    bool is_due = is_head && (slot->is_complete || (engine->plan.batch == nullptr && engine->row < slot->rows &&
                                                    slot->is_row_done[engine->row]));
    bool is_wanted = is_due || threads_at_work(engine) == 0;
    if (engine->is_paused ? engine->active == 0 : is_wanted && engine->is_waiting)
        pthread_cond_broadcast(&engine->ready);
}

static void *worker_main(void *argument)
{
    mr_worker *worker = argument;
    mr_engine *engine = worker->engine;
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    if (trace != nullptr) mr_trace_lane(trace, engine->plan.last->kind->name, (int32_t)(worker - engine->workers));
    mr_note_since(&worker->note, mr_now_ns());
    pthread_mutex_lock(&engine->mutex);
    while (!engine->is_stopping) {
        task taken;
        if (worker - engine->workers >= engine->limit) {
            pthread_cond_wait(&engine->idle, &engine->mutex);
            continue;
        }
        if (take_task(engine, worker, &taken)) {
            do_task(engine, worker, taken);
            continue;
        }
        if (engine->is_stopping) break;
        if (engine->filling != nullptr ? may_fill(engine) : may_pull(engine))
            if (!engine->is_paused && !engine->is_cancelled) continue;
        bool is_full = engine->filling != nullptr || !has_room(engine);
        uint64_t start_ns = mr_now_ns();
        mr_note_since(&worker->note, start_ns);
        pthread_cond_wait(&engine->work, &engine->mutex);
        mr_counters *waiter = engine->plan.batch != nullptr ? engine->plan.batch_counters : engine->plan.counters;
        mr_count(is_full ? &waiter->output_wait_ns : &waiter->input_wait_ns, mr_now_ns() - start_ns);
    }
    pthread_mutex_unlock(&engine->mutex);
    return nullptr;
}

/* Lock held. Fewer threads than wanted are enough; without any the caller works. */
static void start_threads(mr_engine *engine)
{
    engine->has_started = true;
    while (engine->thread_count < engine->limit) {
        mr_worker *worker = &engine->workers[engine->thread_count];
        mr_watch_add(engine->plan.run->watch, &worker->note);
        if (pthread_create(&worker->thread, nullptr, worker_main, worker) != 0) {
            mr_watch_remove(engine->plan.run->watch, &worker->note);
            break;
        }
        engine->thread_count++;
    }
}

/* ---- Delivering ---- */

/* Lock held. The head slot has been delivered whole. */
static void retire_head(mr_engine *engine)
{
    mr_counters *counters = engine->plan.counters;
    mr_count(&counters->delivered, 1);
    if (engine->flight[engine->head % (uint64_t)engine->ring_size]->is_complete) engine->ready_count--;
    mr_count(&counters->ready, engine->ready_count);
    mr_count(&counters->room, (uint64_t)engine->window_max - 1);
    mr_slot *slot = engine->flight[engine->head % (uint64_t)engine->ring_size];
    if (engine->surplus > 0 && slot->done == slot->rows) {
        engine->surplus--;
        mr_slot_free(slot);
    } else {
        push(&engine->lent, slot);
    }
    engine->flight[engine->head % (uint64_t)engine->ring_size] = nullptr;
    engine->head++;
    engine->row = 0;
    trace_slots(engine);
    wake_workers(engine);
}

/* Lock held. The row is behind us. Behind a restored place rows before it may still be worked on: then the slot stays. */
static void pass_row(mr_engine *engine, mr_slot *slot)
{
    if (++engine->row >= slot->rows && slot->done == slot->rows) retire_head(engine);
}

static mr_status report(const mr_error *failure, mr_error *error)
{
    if (error != nullptr) *error = *failure;
    return failure->status;
}

/* Lock held. Whether a failure is one of those that are left out. */
static bool is_ignored(mr_engine *engine, const mr_error *failure)
{
    if (failure == nullptr || engine->plan.ignore == nullptr) return false;
    const mr_ignore_settings *settings = engine->plan.ignore->settings;
    if (settings->budget >= 0 && engine->ignored >= (uint64_t)settings->budget) return false;
    engine->ignored++;
    return true;
}

/* Lock held. True when the row, or batch, that is due is not to be delivered: it is passed over. */
static bool pass_over(mr_engine *engine, mr_slot *slot)
{
    if (!engine->plan.drops) return false;
    if (engine->plan.batch != nullptr) {
        if (!is_ignored(engine, mr_slot_failure(slot))) return false;
        for (int32_t c = 0; c < slot->result_count; c++) mr_tensor_deinit(&slot->results[c]);
        slot->result_count = 0;
        retire_head(engine);
        return true;
    }
    if (!slot->is_row_dropped[engine->row] && !is_ignored(engine, slot->failures[engine->row])) return false;
    pass_row(engine, slot);
    return true;
}

/* Lock held. */
static mr_status deliver_batch(mr_engine *engine, mr_slot *slot, mr_tensor *tensors, mr_error *error)
{
    mr_status status = MR_OK;
    const mr_error *failure = mr_slot_failure(slot);
    if (failure != nullptr) status = report(failure, error);
    for (int32_t c = 0; c < slot->result_count; c++) {
        if (status == MR_OK)
            tensors[c] = slot->results[c];
        else
            mr_tensor_deinit(&slot->results[c]);
        slot->results[c] = (mr_tensor){0};
    }
    slot->result_count = 0;
    mr_slot_account(slot);
    engine->stage.position++;
    retire_head(engine);
    return status;
}

/* Lock held. */
static mr_status deliver_row(mr_engine *engine, mr_slot *slot, mr_tensor *tensors, mr_error *error)
{
    const mr_error *failure = slot->failures[engine->row];
    size_t bytes_before = mr_slot_rows_bytes(slot, engine->row, engine->row + 1);
    mr_status status =
        failure != nullptr ? report(failure, error) : mr_slot_take_row(slot, engine->row, tensors, error);
    mr_slot_account_rows(slot, bytes_before, mr_slot_rows_bytes(slot, engine->row, engine->row + 1));
    if (bytes_before > 0) wake_workers(engine);
    engine->stage.position++;
    pass_row(engine, slot);
    return status;
}

/* Lock held. The caller does a task; false when threads that were at work before hold all there is. */
static bool work_instead(mr_engine *engine)
{
    mr_worker *worker = &engine->workers[engine->worker_count - 1];
    uint64_t start_ns = engine->plan.is_tuned ? mr_now_ns() : 0;
    task taken;
    if (!take_task(engine, worker, &taken)) return engine->active == 0;
    do_task(engine, worker, taken);
    if (engine->plan.is_tuned) engine->starved_ns += mr_now_ns() - start_ns;
    return true;
}

/* Lock held, and let go while waiting. */
static mr_status next_locked(mr_engine *engine, mr_tensor *tensors, mr_error *error)
{
    if (!engine->has_started) start_threads(engine);
    for (;;) {
        if (engine->is_cancelled) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        if (engine->head < engine->tail) {
            mr_slot *slot = engine->flight[engine->head % (uint64_t)engine->ring_size];
            bool is_batch = engine->plan.batch != nullptr;
            if (!is_batch && engine->row >= slot->rows) {
                /* Delivered, but its first rows were still worked on; or shorter than when its place was saved. */
                int32_t row = engine->row - slot->rows;
                if (slot->done == slot->rows) {
                    retire_head(engine);
                    engine->row = row;
                    continue;
                }
            } else if ((is_batch ? slot->is_complete : slot->is_row_done[engine->row]) && pass_over(engine, slot)) {
                continue;
            }
            if (is_batch && slot->is_complete) return deliver_batch(engine, slot, tensors, error);
            if (!is_batch && engine->row < slot->rows && slot->is_row_done[engine->row])
                return deliver_row(engine, slot, tensors, error);
        } else if (engine->input_ended) {
            if (engine->failure.status != MR_OK) return report(&engine->failure, error);
            return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
        }
        if (threads_at_work(engine) == 0 && work_instead(engine)) continue;
        uint64_t start_ns = mr_now_ns();
        engine->is_waiting = true;
        pthread_cond_wait(&engine->ready, &engine->mutex);
        engine->is_waiting = false;
        uint64_t waited_ns = mr_now_ns() - start_ns;
        engine->starved_ns += waited_ns;
        mr_count(&engine->plan.counters->input_wait_ns, waited_ns);
    }
}

/* The order's elements as they are, when nothing is to be done for them. */
static mr_status next_direct(mr_engine *engine, mr_item *item, mr_error *error)
{
    mr_stage *order = engine->plan.order;
    uint64_t before = order->position;
    if (atomic_load_explicit(&engine->is_cancelled, memory_order_relaxed))
        return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
    /* What could not go to its place is half there. */
    if (engine->failure.status != MR_OK) return report(&engine->failure, error);
    mr_note *note = &engine->workers[engine->worker_count - 1].note;
    mr_note_element(note, before, MR_NOTE_PULL);
    if (engine->plan.run->watch != nullptr) mr_note_since(note, mr_now_ns());
    mr_note_stage(note, order_name(engine));
    mr_status status = mr_stage_next(order, item, error);
    mr_note_stage(note, nullptr);
    if (status == MR_OK || order->position != before) engine->stage.position++;
    return status;
}

mr_status mr_engine_next(mr_stage *stage, mr_tensor *tensors, mr_error *error)
{
    mr_engine *engine = (mr_engine *)stage;
    if (engine->is_direct) {
        mr_item item = {0};
        MR_TRY(next_direct(engine, &item, error));
        for (int32_t i = 0; i < item.payload->count; i++) {
            tensors[i] = item.payload->tensors[i];
            item.payload->tensors[i] = (mr_tensor){0};
        }
        mr_item_deinit(&item);
        return MR_OK;
    }
    pthread_mutex_lock(&engine->mutex);
    mr_status status = next_locked(engine, tensors, error);
    pthread_mutex_unlock(&engine->mutex);
    return status;
}

/* ---- As a stage ---- */

static mr_status engine_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    uint64_t number = stage->position;
    if (((mr_engine *)stage)->is_direct) {
        MR_TRY(next_direct((mr_engine *)stage, item, error));
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

/* Lock held on return: no worker is outside it, none starts, nothing is in flight. */
static void pause_engine(mr_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    engine->is_paused = true;
    if (engine->blocked > 0) pthread_cond_broadcast(&engine->work);
    while (engine->active > 0) pthread_cond_wait(&engine->ready, &engine->mutex);
    for (; engine->head < engine->tail; engine->head++)
        push(&engine->lent, engine->flight[engine->head % (uint64_t)engine->ring_size]);
    for (mr_slot *slot = engine->lent; slot != nullptr; slot = slot->next) mr_slot_clear(slot);
    engine->filling = nullptr;
    engine->ready_count = 0;
    engine->row = 0;
    engine->input_ended = false;
    engine->failure = (mr_error){0};
}

/* Lock held, and given back. What could not be begun, or gone to, has ended with that failure. */
static void resume_engine(mr_engine *engine, mr_status status)
{
    if (status != MR_OK) {
        engine->input_ended = true;
        (void)mr_fail(&engine->failure, status, "the pipeline could not go to its place");
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

/* The order may wait for another engine below; cancel must get through meanwhile. */
static mr_status begin_order(mr_engine *engine, uint64_t iteration, mr_error *error)
{
    mr_engine_plan *plan = &engine->plan;
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

/* The place of the head slot's order, and how many of its rows are behind us. */
static mr_status engine_save(mr_stage *stage, mr_place *place, mr_error *error)
{
    mr_engine *engine = (mr_engine *)stage;
    if (engine->is_direct) return mr_stage_save(engine->plan.order, place, error);
    pthread_mutex_lock(&engine->mutex);
    while (engine->is_pulling && engine->head == engine->tail && !engine->is_cancelled)
        pthread_cond_wait(&engine->ready, &engine->mutex);
    mr_status status;
    if (engine->is_cancelled) {
        status = mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
    } else {
        const mr_slot *slot =
            engine->head < engine->tail ? engine->flight[engine->head % (uint64_t)engine->ring_size] : nullptr;
        status = mr_place_put(place, (uint64_t)engine->row, error);
        if (status == MR_OK) status = mr_place_put(place, engine->ignored, error);
        mr_place now = {0};
        if (status == MR_OK && slot == nullptr) status = save_orders(engine, &now, error);
        const mr_place *from = slot == nullptr ? &now : &slot->place;
        if (status == MR_OK) status = mr_place_put_bytes(place, from->bytes, from->size_bytes, error);
        mr_place_deinit(&now);
    }
    pthread_mutex_unlock(&engine->mutex);
    return status;
}

static mr_status restore_inside(mr_engine *engine, mr_place_reader *reader, mr_error *error)
{
    if (engine->is_direct) return mr_stage_restore(engine->plan.order, reader, error);
    uint64_t row = 0, ignored = 0;
    const void *bytes = nullptr;
    size_t size_bytes = 0;
    MR_TRY(mr_place_get_below(reader, (uint64_t)engine->slots.rows, &row, error));
    MR_TRY(mr_place_get(reader, &ignored, error));
    MR_TRY(mr_place_get_bytes(reader, &bytes, &size_bytes, error));
    take_seeds(engine);
    engine->order_has_begun = false;
    mr_place_reader orders = {bytes, (const unsigned char *)bytes + size_bytes};
    MR_TRY(restore_orders(engine, &orders, error));
    engine->row = (int32_t)row;
    engine->ignored = ignored;
    return MR_OK;
}

static mr_status engine_restore(mr_stage *stage, mr_place_reader *reader, mr_error *error)
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
    atomic_store_explicit(&engines->are_cancelled, true, memory_order_relaxed);
    for (mr_engine *engine = engines->first; engine != nullptr; engine = engine->next) cancel_one(engine);
    pthread_mutex_unlock(&engines->mutex);
}

bool mr_run_is_cancelled(const mr_run *run)
{
    return run->engines != nullptr && atomic_load_explicit(&run->engines->are_cancelled, memory_order_relaxed);
}

static void list_engine(mr_engine *engine)
{
    mr_engines *engines = engine->plan.run->engines;
    if (engines == nullptr) return;
    pthread_mutex_lock(&engines->mutex);
    engine->is_cancelled = atomic_load_explicit(&engines->are_cancelled, memory_order_relaxed);
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
    if (engine->next != nullptr) engine->next->previous = engine->previous;
    if (engine->previous != nullptr)
        engine->previous->next = engine->next;
    else
        engines->first = engine->next;
    pthread_mutex_unlock(&engines->mutex);
}

static void free_slots(mr_slot *list)
{
    while (list != nullptr) {
        mr_slot *next = list->next;
        mr_slot_free(list);
        list = next;
    }
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
    for (int32_t i = 0; i < engine->worker_count; i++) {
        mr_watch_remove(engine->plan.run->watch, &engine->workers[i].note);
        mr_lane_deinit(&engine->workers[i].lane);
    }
    for (; engine->head < engine->tail; engine->head++)
        mr_slot_free(engine->flight[engine->head % (uint64_t)engine->ring_size]);
    free_slots(engine->spare);
    free_slots(engine->lent);
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

/* ---- Making one ---- */

/* Single elements go through in blocks: of one when they are large, of many when they are small. */
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

/* Slots in flight: what was asked to be prefetched and the one being filled, and rows enough to keep every thread busy
 * while one element takes long. */
static int32_t wanted_window(const mr_engine *engine, int32_t threads, int64_t depth)
{
    constexpr int64_t WINDOW_MAX = 1024;
    int32_t rows = engine->slots.rows;
    int64_t busy = (4 * (int64_t)threads + rows - 1) / rows + 1;
    int64_t wanted = depth + 1 > busy ? depth + 1 : busy;
    if (threads == 0) wanted = 1;
    return (int32_t)(wanted > WINDOW_MAX ? WINDOW_MAX : wanted);
}

/* Lock held, or nobody else there. */
static void set_threads(mr_engine *engine, int32_t threads, int32_t depth)
{
    const mr_engine_plan *plan = &engine->plan;
    int32_t window_before = engine->window_max;
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

void mr_engine_set(mr_stage *stage, int32_t threads, int32_t depth)
{
    mr_engine *engine = (mr_engine *)stage;
    assert(engine->plan.is_tuned && threads >= 0 && threads <= engine->plan.threads && depth > 0);
    pthread_mutex_lock(&engine->mutex);
    set_threads(engine, threads, depth);
    assert(engine->window_max <= engine->ring_size);
    if (engine->has_started) start_threads(engine);
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->idle);
    pthread_cond_broadcast(&engine->ready);
    pthread_mutex_unlock(&engine->mutex);
}

void mr_engine_measure(mr_stage *stage, mr_engine_gauge *gauge)
{
    mr_engine *engine = (mr_engine *)stage;
    pthread_mutex_lock(&engine->mutex);
    *gauge = (mr_engine_gauge){.name = engine->trace_name,
                               .threads = engine->limit,
                               .threads_max = engine->plan.threads,
                               .depth = engine->depth,
                               .may_be_inline = engine->plan.order->is_seekable || engine->plan.batch != nullptr ||
                                                engine->slots.rows == 1,
                               .slot_bytes = engine->slots.fixed_bytes + engine->extra_bytes,
                               .slots = engine->window_max,
                               .ready = (int32_t)engine->ready_count,
                               .slot_rows = engine->plan.batch != nullptr ? 1 : engine->slots.rows,
                               .made = engine->plan.drops              ? 0
                                       : engine->plan.batch != nullptr ? (double)engine->rows_done / engine->slots.rows
                                                                       : (double)engine->rows_done,
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
    /* What waits for each element, a generator or a queue, is not asked for more than one at a time. */
    if (batch == nullptr && plan->threads == 0 && !plan->order->is_seekable) rows = 1;
    MR_TRY(mr_slot_plan_init(&engine->slots, plan->row_spec, batch == nullptr ? nullptr : batch->pads, rows,
                             batch != nullptr, plan->run, error));
    engine->slots.drops = plan->drops;
    if (engine->slots.fixed_bytes > plan->run->budget_bytes)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: one batch takes %zu bytes, the budget is %zu",
                       plan->last->kind->name, engine->slots.fixed_bytes, plan->run->budget_bytes);
    engine->is_direct =
        plan->threads == 0 && plan->work_count == 0 && batch == nullptr && !plan->drops && !plan->order->is_seekable;
    engine->copies = plan->source != nullptr && plan->source->kind->copy != nullptr && plan->work_count == 0;
    for (int32_t c = 0; c < engine->slots.count; c++)
        if (engine->slots.columns[c].kind != MR_COLUMN_FIXED) engine->copies = false;
    constexpr int32_t DEPTH_TUNED = 2;
    int32_t depth = plan->prefetch == 0 ? DEPTH_TUNED : plan->prefetch < 0 ? 1 : plan->prefetch;
    if (batch == nullptr) depth = (depth - 1) / rows + 1;
    int32_t depth_max = plan->is_tuned && depth < MR_DEPTH_MAX ? MR_DEPTH_MAX : depth;
    set_threads(engine, plan->is_tuned ? plan->threads_first : plan->threads, depth);
    engine->ring_size = wanted_window(engine, plan->threads, depth_max);
    engine->worker_count = plan->threads + 1;
    engine->flight = calloc((size_t)engine->ring_size, sizeof(mr_slot *));
    engine->workers = calloc((size_t)engine->worker_count, sizeof *engine->workers);
    if (engine->flight == nullptr || engine->workers == nullptr) {
        engine->worker_count = 0;
        return mr_fail_memory(error, ((size_t)plan->threads + 1) * sizeof *engine->workers);
    }
    for (int32_t i = 0; i < engine->worker_count; i++) {
        mr_worker *worker = &engine->workers[i];
        worker->engine = engine;
        worker->lane.reserve = wait_for_room;
        worker->note.source = plan->source;
        worker->note.is_thread = i < plan->threads;
    }
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
