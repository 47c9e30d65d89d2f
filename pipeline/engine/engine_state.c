/* The position of an engine: begin, seek, save and restore.
 *
 * To move an engine, its workers are paused: is_paused is set, the running tasks end, and all slots in flight are
 * discarded. The orders are then moved without the lock, so that cancel is not blocked.
 *
 * Invariants: while is_paused is set, no worker is active and none begins, no slot is in flight, and the orders belong
 * to the caller. The state is that of the orders before the head slot, and the number of its rows that were delivered.
 * Lock order: this engine's mutex, then, to save the orders, those of the engines below. */
#include "pipeline/engine/engine_internal.h"

/* Returns with the lock held: no worker is active, none can start, and no slot is in flight. */
static void pause_engine(mr_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    engine->is_paused = true;
    if (engine->blocked > 0) pthread_cond_broadcast(&engine->work);
    while (engine->active > 0) pthread_cond_wait(&engine->ready, &engine->mutex);
    assert(!engine->is_pulling && engine->blocked == 0 && mr_engine_is_consistent(engine));
    mr_engine_discard_slots(engine);
    engine->row = 0;
    engine->input_ended = false;
    engine->failure = (mr_error){0};
}

/* Called with the lock held; releases it. If the order could not begin or seek, the engine has ended with that
 * failure. */
static void resume_engine(mr_engine *engine, mr_status status)
{
    assert(mr_engine_is_consistent(engine) && engine->is_paused && engine->active == 0 && engine->head == engine->tail);
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

mr_status mr_engine_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
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

mr_status mr_engine_seek(mr_stage *stage, uint64_t position, mr_error *error)
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

/* ---- State ---- */

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

/* Saves the state of the order before the head slot, and the number of rows of that slot already delivered. */
mr_status mr_engine_save(mr_stage *stage, mr_state *state, mr_error *error)
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
        const mr_slot *slot = engine->head < engine->tail ? mr_engine_head_slot(engine) : nullptr;
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

static mr_status restore_orders(mr_engine *engine, mr_state_reader *reader, mr_error *error)
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

static mr_status restore_paused(mr_engine *engine, mr_state_reader *reader, mr_error *error)
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
    MR_TRY(restore_orders(engine, &orders, error));
    engine->row = (int32_t)row;
    engine->ignored = ignored;
    return MR_OK;
}

mr_status mr_engine_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    mr_engine *engine = (mr_engine *)stage;
    pause_engine(engine);
    pthread_mutex_unlock(&engine->mutex);
    mr_status status = restore_paused(engine, reader, error);
    pthread_mutex_lock(&engine->mutex);
    resume_engine(engine, status);
    return status;
}
