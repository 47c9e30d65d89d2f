/* The engines of one iterator, and their cancellation.
 *
 * Every engine is in the list of its iterator, mr_run.engines, from creation to deinit, also the engines of pipelines
 * inside stages. Cancelling the list therefore reaches all of them.
 *
 * Invariants: an engine is listed once. Once is_cancelled of the list is set, is_cancelled of every engine in it is set
 * or is about to be set by the thread that holds the list's mutex; neither is ever reset.
 * Lock order: the list's mutex, then that of an engine. No thread that holds an engine's mutex waits for the list's. */
#include "pipeline/engine/engine_internal.h"

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

void mr_engine_cancel(mr_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    engine->is_cancelled = true;
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->ready);
    pthread_mutex_unlock(&engine->mutex);
}

void mr_engines_cancel(mr_engines *engines)
{
    pthread_mutex_lock(&engines->mutex);
    atomic_store_explicit(&engines->is_cancelled, true, memory_order_relaxed);
    for (mr_engine *engine = engines->first; engine != nullptr; engine = engine->next) mr_engine_cancel(engine);
    pthread_mutex_unlock(&engines->mutex);
}

void mr_engine_list(mr_engine *engine)
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

void mr_engine_unlist(mr_engine *engine)
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
