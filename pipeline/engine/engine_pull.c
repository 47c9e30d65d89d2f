/* Pulling: takes the items of the next slot from the orders, when the window and the budget have room (engine.h). */
#include "pipeline/engine/engine_internal.h"

#include <assert.h>
#include <stddef.h>

/* ---- Slots ---- */

void mr_engine_free_slots(mr_slot *list)
{
    while (list != nullptr) {
        mr_slot *next = list->next;
        mr_slot_free(list);
        list = next;
    }
}

void mr_engine_free_idle(mr_engine *engine)
{
    mr_engine_free_slots(engine->spare);
    engine->spare = nullptr;
    for (mr_slot **link = &engine->delivered; *link != nullptr;) {
        mr_slot *slot = *link;
        assert(slot->plan == &engine->slots);
        if (mr_slot_is_free(slot)) {
            *link = slot->next;
            mr_slot_free(slot);
        } else {
            link = &slot->next;
        }
    }
}

/* A slot that nobody references, or null. If the consumer keeps more slots than the window and DELIVERED_MAX, the
 * engine releases its references: their memory belongs to the consumer and is no longer counted in the budget. */
static mr_slot *find_slot(mr_engine *engine)
{
    constexpr int32_t DELIVERED_MAX = 4;
    int32_t held = 0;
    mr_slot *slot = engine->spare;
    if (slot != nullptr) {
        assert(mr_slot_is_free(slot));
        engine->spare = slot->next;
        return slot;
    }
    for (mr_slot **link = &engine->delivered; *link != nullptr;) {
        slot = *link;
        bool is_free = mr_slot_is_free(slot);
        if (!is_free && ++held <= mr_engine_window(engine) + DELIVERED_MAX) {
            link = &slot->next;
            continue;
        }
        *link = slot->next;
        if (is_free) return slot;
        mr_slot_free(slot);
    }
    return nullptr;
}

/* ---- The budget ---- */

/* Lock held. Whether find_slot would return a slot; otherwise another one must be allocated. */
static bool has_slot(const mr_engine *engine)
{
    if (engine->spare != nullptr) return true;
    for (const mr_slot *slot = engine->delivered; slot != nullptr; slot = slot->next)
        if (mr_slot_is_free(slot)) return true;
    return false;
}

/* Lock held. Whether another slot fits, if it is as large as the largest recent one. The first slot in flight is always
 * allowed: the consumer waits for it. */
static bool has_room(const mr_engine *engine)
{
    uint64_t in_flight = engine->tail - engine->head;
    assert(in_flight <= (uint64_t)engine->ring_size);
    if (in_flight == 0) return true;
    if (in_flight >= (uint64_t)mr_engine_window(engine)) return false;
    return mr_engine_has_room(engine, engine->extra_bytes + (has_slot(engine) ? 0 : mr_engine_slot_bytes(engine)));
}

bool mr_engine_may_pull(const mr_engine *engine)
{
    return !engine->is_pulling && !engine->input_ended && has_room(engine);
}

bool mr_engine_may_fill(const mr_engine *engine)
{
    assert(mr_engine_filling(engine) != nullptr);
    return mr_engine_filling(engine) == mr_engine_slot_next(engine) || mr_engine_has_room(engine, 0);
}

/* The consumer's own thread never waits: the slot that is delivered next may be ready, and only it can deliver that. */
void mr_engine_wait_for_room(mr_workspace *workspace, size_t size_bytes)
{
    mr_worker *worker = (mr_worker *)((char *)workspace - offsetof(mr_worker, workspace));
    mr_engine *engine = worker->engine;
    pthread_mutex_lock(&engine->mutex);
    assert(worker->slot != nullptr && engine->active > 0 && mr_engine_is_consistent(engine));
    engine->blocked++;
    while (worker->note.is_thread && !engine->is_paused && !engine->is_cancelled && !engine->is_stopping &&
           worker->slot != mr_engine_slot_next(engine) && !mr_engine_has_room(engine, size_bytes))
        pthread_cond_wait(&engine->work, &engine->mutex);
    engine->blocked--;
    mr_slot_account_rows(worker->slot, 0, size_bytes);
    worker->reserved_bytes += size_bytes;
    pthread_mutex_unlock(&engine->mutex);
}

void mr_engine_wake_workers(mr_engine *engine)
{
    if (engine->fill < engine->tail || engine->blocked > 0)
        pthread_cond_broadcast(&engine->work);
    else if (mr_engine_may_wake(engine))
        pthread_cond_signal(&engine->work);
}

/* ---- Pulling ---- */

/* Counts the payloads of pulled items. Beyond the budget, a slot is not filled further until it is delivered next, or
 * the engine moves to another position. The consumer's own thread does not wait, as above. */
static mr_status take_items(mr_engine *engine, mr_slot *slot, mr_worker *worker, size_t size_bytes, mr_error *error)
{
    mr_slot_account_rows(slot, 0, size_bytes);
    if (mr_engine_has_room(engine, 0) || !worker->note.is_thread) return MR_OK;
    mr_note_stage(&worker->note, nullptr);
    pthread_mutex_lock(&engine->mutex);
    assert(engine->is_pulling && mr_engine_is_consistent(engine));
    engine->blocked++;
    while (!engine->is_paused && !engine->is_cancelled && engine->head < engine->tail && !mr_engine_has_room(engine, 0))
        pthread_cond_wait(&engine->work, &engine->mutex);
    engine->blocked--;
    bool is_paused = engine->is_paused;
    pthread_mutex_unlock(&engine->mutex);
    mr_note_stage(&worker->note, mr_engine_order_name(engine));
    return is_paused ? mr_fail(error, MR_CANCELLED, "the pipeline is moving to another position") : MR_OK;
}

/* Appends the order's next item. An element that failed below becomes a failed row. The failure is permanent if the
 * order does not advance, or if it ran out of memory and may have lost the item. */
static mr_status fill_item(mr_engine *engine, mr_slot *slot, mr_error *error)
{
    mr_stage *order = engine->plan.order;
    assert(slot->rows < engine->slots.rows);
    uint64_t before = order->position;
    if (atomic_load_explicit(&engine->is_cancelled, memory_order_relaxed))
        return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
    mr_status status = mr_stage_next(order, &slot->items[slot->rows], error);
    if (status != MR_OK) {
        bool is_over = status == MR_OUT_OF_RANGE || status == MR_CANCELLED || status == MR_RESOURCE_EXHAUSTED;
        if (is_over || order->position == before || error == nullptr) return status;
        slot->items[slot->rows] = (mr_item){.epoch = order->iteration, .number = before};
        mr_slot_fail_row(slot, slot->rows, error);
    }
    slot->rows++;
    return MR_OK;
}

static mr_status fill_items(mr_engine *engine, mr_slot *slot, mr_worker *worker, mr_error *error)
{
    constexpr size_t COUNTED_BYTES = 65536;
    size_t taken_bytes = 0;
    mr_status status = MR_OK;
    if (!engine->slots.has_payloads) {
        while (status == MR_OK && slot->rows < engine->slots.rows) status = fill_item(engine, slot, error);
        return status;
    }
    while (status == MR_OK && slot->rows < engine->slots.rows) {
        status = fill_item(engine, slot, error);
        if (status != MR_OK) break;
        const mr_payload *payload = slot->items[slot->rows - 1].payload;
        if (payload == nullptr) continue;
        taken_bytes += mr_payload_bytes(payload);
        if (taken_bytes < COUNTED_BYTES) continue;
        status = take_items(engine, slot, worker, taken_bytes, error);
        taken_bytes = 0;
    }
    mr_slot_account_rows(slot, 0, taken_bytes);
    return status;
}

/* ---- The state of what is pulled next ---- */

mr_status mr_engine_save_orders(const mr_engine *engine, mr_state *state, mr_error *error)
{
    const mr_engine_plan *plan = &engine->plan;
    if (engine->failure.status == MR_RESOURCE_EXHAUSTED) {
        /* Otherwise a caller that saves before each element would never receive this error. */
        if (error != nullptr) *error = engine->failure;
        return engine->failure.status;
    }
    if (plan->batch != nullptr) {
        MR_TRY(mr_stage_save(plan->batches, state, error));
        MR_TRY(mr_state_put(state, engine->order_has_begun, error));
        MR_TRY(mr_state_put(state, engine->order_epoch, error));
        if (!engine->order_has_begun) return MR_OK;
    }
    return mr_stage_save(plan->order, state, error);
}

mr_status mr_engine_restore_orders(mr_engine *engine, mr_state_reader *reader, mr_error *error)
{
    const mr_engine_plan *plan = &engine->plan;
    if (plan->batch != nullptr) {
        uint64_t has_begun = 0;
        MR_TRY(mr_stage_restore(plan->batches, reader, error));
        MR_TRY(mr_state_get_below(reader, 1, &has_begun, error));
        MR_TRY(mr_state_get(reader, &engine->order_epoch, error));
        engine->order_has_begun = has_begun != 0;
        if (!engine->order_has_begun) return MR_OK;
    }
    return mr_stage_restore(plan->order, reader, error);
}

/* Pulls the items of one slot. Zero rows and MR_OK: the end. Rows and an error: the rows are valid, and the error
 * follows them. */
static mr_status pull(mr_engine *engine, mr_slot *slot, mr_worker *worker, mr_error *error)
{
    if (engine->plan.batch == nullptr) {
        mr_status status = fill_items(engine, slot, worker, error);
        return status == MR_OUT_OF_RANGE ? MR_OK : status;
    }
    const mr_batch_settings *settings = engine->plan.batch->settings;
    mr_item batch = {0};
    uint64_t before = engine->plan.batches->position;
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
    status = fill_items(engine, slot, worker, error);
    bool is_short = slot->rows < engine->slots.rows;
    bool has_failed = status != MR_OK && status != MR_OUT_OF_RANGE;
    if (has_failed || (is_short && settings->drop_remainder)) mr_slot_clear(slot);
    /* The order has failed permanently. A state saved now fails at the same batch when it is restored. */
    if (has_failed) (void)mr_stage_seek(engine->plan.batches, before, nullptr);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

const char *mr_engine_order_name(const mr_engine *engine)
{
    const mr_stage *order = engine->plan.order;
    return order->dataset != nullptr ? order->dataset->kind->name : engine->plan.last->kind->name;
}

void mr_engine_trace_slots(mr_engine *engine)
{
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    if (trace != nullptr && engine->thread_count > 0)
        mr_trace_slots(trace, engine->plan.last->kind->name, engine->trace_number, mr_now_ns(),
                       engine->tail - engine->head, engine->ready_count);
}

void mr_engine_pull(mr_engine *engine, mr_worker *worker)
{
    assert(mr_engine_may_pull(engine) && mr_engine_is_consistent(engine));
    engine->is_pulling = true;
    engine->active++;
    mr_slot *slot = find_slot(engine);
    int32_t ahead = mr_engine_read_ahead_rows(engine);
    pthread_mutex_unlock(&engine->mutex);
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    uint64_t start_ns = mr_now_ns();
    mr_note_element(&worker->note, engine->plan.order->position, MR_NOTE_PULL);
    mr_note_since(&worker->note, start_ns);
    mr_note_stage(&worker->note, mr_engine_order_name(engine));
    mr_error error = {0};
    mr_status status = MR_OK;
    if (slot == nullptr)
        status = mr_slot_new(&engine->slots, &slot, &error);
    else
        mr_slot_clear(slot);
    if (status == MR_OK && !engine->stage.is_seekable) {
        size_t state_bytes = slot->state.capacity_bytes;
        mr_state_clear(&slot->state);
        status = mr_engine_save_orders(engine, &slot->state, &error);
        mr_slot_account_rows(slot, state_bytes, slot->state.capacity_bytes);
    }
    if (status == MR_OK) status = pull(engine, slot, worker, &error);
    mr_note_stage(&worker->note, nullptr);
    bool is_empty = slot == nullptr || slot->rows == 0;
    if (!is_empty) {
        slot->requested = ahead < slot->rows ? ahead : slot->rows;
        mr_engine_read_ahead(engine, slot, 0, slot->requested);
    }
    uint64_t end_ns = mr_now_ns();
    if (trace != nullptr) mr_trace_slice(trace, "pull", start_ns, end_ns, is_empty ? 0 : (uint64_t)slot->rows);
    pthread_mutex_lock(&engine->mutex);
    assert(engine->is_pulling && engine->active > 0);
    assert(slot == nullptr || (slot->taken == 0 && mr_slot_is_consistent(slot)));
    engine->is_pulling = false;
    engine->pull_ns = mr_average_ns(engine->pull_ns, end_ns - start_ns);
    atomic_fetch_add_explicit(&engine->pulls, 1, memory_order_relaxed);
    engine->active--;
    if (status != MR_OK) {
        engine->failure = error;
        engine->failure.status = status;
    }
    if (status != MR_OK || is_empty) engine->input_ended = true;
    if (slot != nullptr && is_empty) {
        mr_slot_account(slot);
        mr_slot_push(&engine->spare, slot);
    } else if (slot != nullptr) {
        assert(engine->tail - engine->head < (uint64_t)engine->ring_size);
        engine->flight[engine->tail++ % (uint64_t)engine->ring_size] = slot;
        mr_engine_trace_slots(engine);
    }
    if (mr_engine_may_wake(engine)) pthread_cond_broadcast(&engine->work);
    if (engine->input_ended || engine->is_paused || !engine->stage.is_seekable ||
        mr_engine_threads_at_work(engine) == 0)
        pthread_cond_broadcast(&engine->ready);
}
