/* Room: how far an engine reads ahead. Workers pull and fill slots only while the window and the iterator's budget have
 * room.
 *
 * Invariants: the head slot never waits for room, nor does the consumer's own thread, which alone can deliver; so
 * waiting for room cannot deadlock. `blocked` counts the workers that wait here; each of them is also active.
 * Lock order: the engine's mutex is held, except in the two functions in which workers wait, which acquire it. Whoever
 * returns memory or delivers a slot calls mr_engine_wake_workers. The budget itself consists of atomics. */
#include "pipeline/engine/engine_internal.h"

#include <stddef.h>

bool mr_engine_may_wake(const mr_engine *engine)
{
    assert(mr_engine_is_consistent(engine));
    int32_t window = mr_engine_window(engine);
    return window < 4 || engine->tail - engine->head <= (uint64_t)window / 2 || !mr_engine_is_cheap(engine);
}

/* Whether another slot fits, if it is as large as the largest recent one. The first slot in flight is always allowed:
 * the consumer waits for it. */
static bool has_room(const mr_engine *engine)
{
    uint64_t in_flight = engine->tail - engine->head;
    assert(in_flight <= (uint64_t)engine->ring_size);
    if (in_flight == 0) return true;
    if (in_flight >= (uint64_t)mr_engine_window(engine)) return false;
    return mr_engine_has_room(engine,
                              engine->extra_bytes + (mr_engine_has_slot(engine) ? 0 : mr_engine_slot_bytes(engine)));
}

bool mr_engine_may_pull(const mr_engine *engine)
{
    assert(mr_engine_is_consistent(engine));
    return !engine->is_pulling && !engine->input_ended && has_room(engine);
}

bool mr_engine_may_fill(const mr_engine *engine)
{
    assert(mr_engine_is_consistent(engine) && mr_engine_filling(engine) != nullptr);
    return mr_engine_filling(engine) == mr_engine_head_slot(engine) || mr_engine_has_room(engine, 0);
}

void mr_engine_wake_workers(mr_engine *engine)
{
    assert(mr_engine_is_consistent(engine));
    if (engine->fill < engine->tail || engine->blocked > 0)
        pthread_cond_broadcast(&engine->work);
    else if (mr_engine_may_wake(engine))
        pthread_cond_signal(&engine->work);
}

/* ---- Without the lock ---- */

void mr_engine_wait_for_room(mr_workspace *workspace, size_t size_bytes)
{
    mr_worker *worker = (mr_worker *)((char *)workspace - offsetof(mr_worker, workspace));
    mr_engine *engine = worker->engine;
    pthread_mutex_lock(&engine->mutex);
    assert(worker->slot != nullptr && engine->active > 0 && mr_engine_is_consistent(engine));
    engine->blocked++;
    while (worker->note.is_thread && !engine->is_paused && !engine->is_cancelled && !engine->is_stopping &&
           worker->slot != mr_engine_head_slot(engine) && !mr_engine_has_room(engine, size_bytes))
        pthread_cond_wait(&engine->work, &engine->mutex);
    engine->blocked--;
    mr_slot_account_rows(worker->slot, 0, size_bytes);
    worker->reserved_bytes += size_bytes;
    pthread_mutex_unlock(&engine->mutex);
}

mr_status mr_engine_count_payloads(mr_engine *engine, mr_slot *slot, mr_worker *worker, size_t size_bytes,
                                   mr_error *error)
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
