/* Delivery: takes finished rows and batches from the head slot, in order, skips those that were dropped or are ignored,
 * and lets the consumer help or wait.
 *
 * Invariants: only the consumer advances head, `row` and the position; there is one consumer at a time. Every element
 * and every failure that is not ignored is delivered once, in the order of the sequence numbers.
 * Lock order: the engine's mutex is held throughout, also while the user's function decides whether a failure is
 * ignored; it is released while the consumer works or waits. */
#include "pipeline/engine/engine_internal.h"

/* Lock held. The head slot has been delivered completely. */
static void retire_head(mr_engine *engine)
{
    mr_counters *counters = engine->plan.counters;
    mr_engine_retire_head(engine, !mr_engine_has_room(engine, 0));
    engine->row = 0;
    uint64_t room = (uint64_t)engine->window_max - 1;
    mr_count(&counters->delivered, 1);
    mr_count(&counters->ready, engine->ready_count < room ? engine->ready_count : room);
    mr_count(&counters->room, room);
    mr_engine_wake_workers(engine);
}

/* Lock held. The row has been delivered or skipped. After a restore, earlier rows of the slot may still be in progress;
 * the slot then stays at the head. */
static void finish_row(mr_engine *engine, mr_slot *slot)
{
    assert(slot == mr_engine_head_slot(engine) && engine->row < slot->rows && slot->is_row_done[engine->row]);
    if (++engine->row >= slot->rows && slot->done == slot->rows) retire_head(engine);
}

static mr_status report(const mr_error *failure, mr_error *error)
{
    if (error != nullptr) *error = *failure;
    return failure->status;
}

/* Lock held. Whether the failure is to be skipped. Calls the user's function with the lock held. */
static bool is_ignored(mr_engine *engine, const mr_error *failure)
{
    if (failure == nullptr || engine->plan.ignore == nullptr) return false;
    const mr_ignore_settings *settings = engine->plan.ignore->settings;
    assert(engine->plan.drops);
    if (settings->budget >= 0 && engine->ignored >= (uint64_t)settings->budget) return false;
    if (settings->ignores != nullptr && !settings->ignores(settings->context, failure)) return false;
    engine->ignored++;
    return true;
}

/* Lock held. Skips the next row or batch if it was dropped or its failure is ignored, and returns true then. */
static bool skip_next(mr_engine *engine, mr_slot *slot)
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
    finish_row(engine, slot);
    return true;
}

/* Lock held. */
static mr_status deliver_batch(mr_engine *engine, mr_slot *slot, mr_tensor *tensors, mr_error *error)
{
    mr_status status = MR_OK;
    assert(slot == mr_engine_head_slot(engine) && slot->is_complete && slot->done == slot->rows);
    const mr_error *failure = mr_slot_failure(slot);
    assert(failure != nullptr || slot->result_count == engine->plan.last->spec.count);
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
    assert(slot == mr_engine_head_slot(engine) && engine->row < slot->rows && slot->is_row_done[engine->row]);
    const mr_error *failure = slot->failures[engine->row];
    size_t bytes_before = mr_slot_rows_bytes(slot, engine->row, engine->row + 1);
    mr_status status =
        failure != nullptr ? report(failure, error) : mr_slot_take_row(slot, engine->row, tensors, error);
    if (bytes_before > 0) {
        mr_slot_account_rows(slot, bytes_before, mr_slot_rows_bytes(slot, engine->row, engine->row + 1));
        mr_engine_wake_workers(engine);
    }
    engine->stage.position++;
    finish_row(engine, slot);
    return status;
}

/* Lock held; released while working. The work that the caller does instead of sleeping: all of it if no thread is
 * working, otherwise only slots so cheap that sleeping would take longer. */
static bool help_workers(mr_engine *engine, bool *has_waited)
{
    bool is_alone = mr_engine_threads_at_work(engine) == 0;
    if (!is_alone && !mr_engine_is_cheap(engine)) return false;
    /* A pull from a stage that is not seekable may take any time. */
    if (!is_alone && !engine->plan.order->is_seekable) return false;
    uint64_t start_ns = engine->plan.is_tuned ? mr_now_ns() : 0;
    bool has_worked = mr_engine_step(engine, &engine->workers[engine->worker_count - 1], has_waited);
    if (engine->plan.is_tuned) engine->starved_ns += mr_now_ns() - start_ns;
    /* With no work left and no thread at work, the active workers are threads above the limit: wait for them. */
    return has_worked || (is_alone && engine->active == 0);
}

/* Lock held; released while waiting. */
static mr_status next_locked(mr_engine *engine, mr_tensor *tensors, mr_error *error)
{
    bool has_waited = false;
    if (!engine->has_started) mr_engine_start_threads(engine);
    for (;;) {
        assert(mr_engine_is_consistent(engine) && !engine->is_paused);
        if (engine->is_cancelled) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        if (engine->head < engine->tail) {
            mr_slot *slot = mr_engine_head_slot(engine);
            bool is_batch = engine->plan.batch != nullptr;
            if (!is_batch && engine->row >= slot->rows) {
                /* Delivered while its first rows were still in progress; or shorter than when the state was saved. */
                int32_t row = engine->row - slot->rows;
                if (slot->done == slot->rows) {
                    retire_head(engine);
                    engine->row = row;
                    continue;
                }
            } else if ((is_batch ? slot->is_complete : slot->is_row_done[engine->row]) && skip_next(engine, slot)) {
                continue;
            }
            if (is_batch && slot->is_complete) return deliver_batch(engine, slot, tensors, error);
            if (!is_batch && engine->row < slot->rows && slot->is_row_done[engine->row])
                return deliver_row(engine, slot, tensors, error);
        } else if (engine->input_ended) {
            if (engine->failure.status != MR_OK) return report(&engine->failure, error);
            return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
        }
        if (help_workers(engine, &has_waited)) continue;
        uint64_t start_ns = mr_now_ns();
        mr_engine_wake_before_wait(engine);
        engine->is_waiting = true;
        pthread_cond_wait(&engine->ready, &engine->mutex);
        engine->is_waiting = false;
        has_waited = false;
        uint64_t waited_ns = mr_now_ns() - start_ns;
        engine->starved_ns += waited_ns;
        mr_count(&engine->plan.counters->input_wait_ns, waited_ns);
    }
}

/* Without the lock. Passes on the next element of the order unchanged, when the engine has no work to do. */
static mr_status next_direct(mr_engine *engine, mr_item *item, mr_error *error)
{
    mr_stage *order = engine->plan.order;
    assert(engine->is_direct && engine->thread_count == 0);
    uint64_t before = order->position;
    if (atomic_load_explicit(&engine->is_cancelled, memory_order_relaxed))
        return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
    /* After a failed begin, seek or restore the order is in an undefined state. */
    if (engine->failure.status != MR_OK) return report(&engine->failure, error);
    mr_note *note = &engine->workers[engine->worker_count - 1].note;
    mr_note_element(note, before, MR_NOTE_PULL);
    if (engine->plan.run->watch != nullptr) mr_note_since(note, mr_now_ns());
    mr_note_stage(note, mr_engine_order_name(engine));
    mr_status status = mr_stage_next(order, item, error);
    mr_note_stage(note, nullptr);
    if (status == MR_OK || order->position != before) engine->stage.position++;
    if (status == MR_RESOURCE_EXHAUSTED) {
        if (error != nullptr) engine->failure = *error;
        engine->failure.status = status;
    }
    return status;
}

mr_status mr_engine_next(mr_stage *stage, mr_tensor *tensors, mr_error *error)
{
    mr_engine *engine = (mr_engine *)stage;
    if (engine->is_direct) {
        mr_item item = {0};
        MR_TRY(next_direct(engine, &item, error));
        assert(item.payload != nullptr && item.payload->count == engine->plan.last->spec.count);
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

mr_status mr_engine_next_item(mr_stage *stage, mr_item *item, mr_error *error)
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
