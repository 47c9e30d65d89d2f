/* Pulling: takes the items of the next slot from the orders.
 *
 * Invariants: at most one worker pulls (is_pulling); the orders belong to it meanwhile, so order stages need no lock.
 * The slot that it fills is in no list. When a pull has failed or was empty, input_ended is set and nothing is pulled
 * any more until the engine moves.
 * Lock order: the engine's mutex is released while items are taken, because the orders may wait for engines below for
 * any time. */
#include "pipeline/engine/engine_internal.h"

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
        status = mr_engine_count_payloads(engine, slot, worker, taken_bytes, error);
        taken_bytes = 0;
    }
    mr_slot_account_rows(slot, 0, taken_bytes);
    return status;
}

/* Pulls the items of one slot. Zero rows and MR_OK: the end. Rows and an error: the rows are valid, and the error
 * follows them. */
static mr_status fill_slot(mr_engine *engine, mr_slot *slot, mr_worker *worker, mr_error *error)
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

/* Without the lock. Prepares *slot, which is allocated if it is null, and fills it. */
static mr_status pull_slot(mr_engine *engine, mr_slot **slot, mr_worker *worker, mr_error *error)
{
    if (*slot == nullptr)
        MR_TRY(mr_slot_new(&engine->slots, slot, error));
    else
        mr_slot_clear(*slot);
    if (!engine->stage.is_seekable) {
        mr_state *state = &(*slot)->state;
        size_t state_bytes = state->capacity_bytes;
        mr_state_clear(state);
        mr_status status = mr_engine_save_orders(engine, state, error);
        mr_slot_account_rows(*slot, state_bytes, state->capacity_bytes);
        MR_TRY(status);
    }
    return fill_slot(engine, *slot, worker, error);
}

/* Without the lock. Pulls into *slot and requests the bytes of its first read_ahead rows. */
static mr_status pull_noted(mr_engine *engine, mr_slot **slot, mr_worker *worker, uint64_t start_ns, int32_t read_ahead,
                            mr_error *error)
{
    mr_note_element(&worker->note, engine->plan.order->position, MR_NOTE_PULL);
    mr_note_since(&worker->note, start_ns);
    mr_note_stage(&worker->note, mr_engine_order_name(engine));
    mr_status status = pull_slot(engine, slot, worker, error);
    mr_note_stage(&worker->note, nullptr);
    int32_t rows = *slot == nullptr ? 0 : (*slot)->rows;
    if (rows > 0) {
        (*slot)->requested = read_ahead < rows ? read_ahead : rows;
        mr_engine_read_ahead(engine, *slot, 0, (*slot)->requested);
    }
    return status;
}

void mr_engine_pull(mr_engine *engine, mr_worker *worker)
{
    assert(mr_engine_may_pull(engine) && mr_engine_is_consistent(engine));
    engine->is_pulling = true;
    engine->active++;
    mr_slot *slot = mr_engine_take_slot(engine);
    int32_t read_ahead = mr_engine_read_ahead_rows(engine);
    pthread_mutex_unlock(&engine->mutex);
    mr_error error = {0};
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    uint64_t start_ns = mr_now_ns();
    mr_status status = pull_noted(engine, &slot, worker, start_ns, read_ahead, &error);
    uint64_t end_ns = mr_now_ns();
    bool is_empty = slot == nullptr || slot->rows == 0;
    if (trace != nullptr) mr_trace_slice(trace, "pull", start_ns, end_ns, is_empty ? 0 : (uint64_t)slot->rows);
    pthread_mutex_lock(&engine->mutex);
    assert(engine->is_pulling && engine->active > 0);
    engine->is_pulling = false;
    engine->pull_ns = mr_average_ns(engine->pull_ns, end_ns - start_ns);
    atomic_fetch_add_explicit(&engine->pulls, 1, memory_order_relaxed);
    engine->active--;
    if (status != MR_OK) {
        engine->failure = error;
        engine->failure.status = status;
    }
    if (status != MR_OK || is_empty) engine->input_ended = true;
    if (!is_empty)
        mr_engine_append_slot(engine, slot);
    else if (slot != nullptr)
        mr_engine_return_slot(engine, slot);
    if (mr_engine_may_wake(engine)) pthread_cond_broadcast(&engine->work);
    if (engine->input_ended || engine->is_paused || !engine->stage.is_seekable ||
        mr_engine_threads_at_work(engine) == 0)
        pthread_cond_broadcast(&engine->ready);
}
