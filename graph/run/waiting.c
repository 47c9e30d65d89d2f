/* Parked calls, and their threads. */
#include "graph/run/waiting.h"

#include "base/mutex.h"
#include "base/thread.h"
#include "graph/state/run.h"

#include <assert.h>
#include <stdlib.h>

struct mr_parked {
    mr_parked *next;
    mr_waiting *waiting;
    mr_frame *frame;
    int32_t segment;
    mr_frame apart; /* a copy of the frame with inputs of its own; the slots are the frame's */
    pthread_t thread;
    bool has_thread;
    /* Guarded by the mutex once there is a thread. */
    bool is_done;
    mr_status status;
    mr_error error;
};

static const mr_call *call_of(const mr_parked *parked)
{
    const mr_program *program = parked->frame->program;
    assert(parked->segment >= 0 && parked->segment < program->segment_count);
    return &program->calls[program->segments[parked->segment].first_call];
}

mr_status mr_waiting_park(mr_waiting *waiting, mr_frame *frame, int32_t segment, mr_error *error)
{
    mr_parked *parked = calloc(1, sizeof *parked);
    if (!parked) return mr_fail_memory(error, sizeof *parked);
    *parked = (mr_parked){.waiting = waiting, .frame = frame, .segment = segment};
    mr_parked **last = &waiting->first;
    while (*last) last = &(*last)->next;
    *last = parked;
    waiting->count++;
    return MR_OK;
}

static void *compute(void *context)
{
    mr_parked *parked = context;
    mr_error error = {0};
    (void)mr_nesting_set(parked->apart.depth);
    mr_status status = mr_frame_compute_call(&parked->apart, call_of(parked), &error);
    pthread_mutex_lock(&parked->waiting->mutex);
    assert(!parked->is_done);
    parked->status = status;
    parked->error = error;
    parked->is_done = true;
    pthread_cond_signal(&parked->waiting->done);
    pthread_mutex_unlock(&parked->waiting->mutex);
    return nullptr;
}

static mr_status start_thread(mr_parked *parked, mr_error *error)
{
    mr_waiting *waiting = parked->waiting;
    assert(!parked->has_thread && !parked->is_done);
    size_t count = (size_t)call_of(parked)->input_count + 1;
    if (!waiting->has_threads) {
        pthread_mutex_init(&waiting->mutex, nullptr);
        pthread_cond_init(&waiting->done, nullptr);
        waiting->has_threads = true;
    }
    parked->apart = *parked->frame;
    parked->apart.inputs = calloc(count, sizeof *parked->apart.inputs);
    parked->apart.may_reuse = calloc(count, sizeof *parked->apart.may_reuse);
    parked->apart.may_wait = true;
    bool has_memory = parked->apart.inputs && parked->apart.may_reuse;
    parked->has_thread = has_memory && mr_thread_create(&parked->thread, compute, parked) == 0;
    if (parked->has_thread) return MR_OK;
    free(parked->apart.inputs);
    free(parked->apart.may_reuse);
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "cannot start a thread for %s", call_of(parked)->node.name);
}

static void end_thread(mr_parked *parked)
{
    if (!parked->has_thread) return;
    pthread_join(parked->thread, nullptr);
    free(parked->apart.inputs);
    free(parked->apart.may_reuse);
}

/* Removes a call whose thread is done, or waits for one. */
static mr_parked *take_done(mr_waiting *waiting)
{
    assert(mr_mutex_is_held(&waiting->mutex));
    for (;;) {
        assert(waiting->count > 0 && waiting->first); /* otherwise it would wait without end */
        for (mr_parked **at = &waiting->first; *at; at = &(*at)->next) {
            mr_parked *parked = *at;
            if (!parked->is_done) continue;
            *at = parked->next;
            waiting->count--;
            return parked;
        }
        pthread_cond_wait(&waiting->done, &waiting->mutex);
    }
}

static mr_status wait_here(mr_waiting *waiting, mr_frame **frame, int32_t *segment, mr_error *error)
{
    mr_parked *parked = waiting->first;
    assert(waiting->count == 1 && !parked->has_thread && !parked->next);
    *frame = parked->frame;
    *segment = parked->segment;
    (*frame)->may_wait = true;
    mr_status status = mr_frame_compute_call(*frame, call_of(parked), error);
    (*frame)->may_wait = false;
    waiting->first = nullptr;
    waiting->count = 0;
    free(parked);
    return status;
}

mr_status mr_waiting_next(mr_waiting *waiting, mr_frame **frame, int32_t *segment, mr_error *error)
{
    assert(waiting->count > 0 && waiting->first);
    if (waiting->count == 1 && !waiting->first->has_thread) return wait_here(waiting, frame, segment, error);
    for (mr_parked *at = waiting->first; at; at = at->next)
        if (!at->has_thread) MR_TRY(start_thread(at, error));
    pthread_mutex_lock(&waiting->mutex);
    mr_parked *done = take_done(waiting);
    pthread_mutex_unlock(&waiting->mutex);
    end_thread(done);
    *frame = done->frame;
    *segment = done->segment;
    mr_status status = done->status;
    if (status != MR_OK && error) *error = done->error;
    free(done);
    return status;
}

void mr_waiting_end(mr_waiting *waiting)
{
    if (waiting->first) mr_run_stop(waiting->first->frame->run, MR_ABORTED);
    for (mr_parked *at = waiting->first, *next; at; at = next) {
        next = at->next;
        end_thread(at);
        free(at);
    }
    if (waiting->has_threads) {
        pthread_cond_destroy(&waiting->done);
        pthread_mutex_destroy(&waiting->mutex);
    }
    *waiting = (mr_waiting){0};
}
