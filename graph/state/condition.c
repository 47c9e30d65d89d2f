/* Waiting for a change of a resource. */
#include "graph/state/condition.h"
#include "base/mutex.h"

#include <assert.h>

struct mr_condition_wait {
    mr_waiter waiter;
    mr_condition *condition;
    bool is_stopped;
    mr_condition_wait *next;
};

void mr_condition_init(mr_condition *condition, bool is_ordered)
{
    *condition = (mr_condition){.is_ordered = is_ordered};
    pthread_mutex_init(&condition->mutex, nullptr);
    pthread_cond_init(&condition->changed, nullptr);
}

void mr_condition_deinit(mr_condition *condition)
{
    assert(!condition->first); /* no run uses it */
    pthread_cond_destroy(&condition->changed);
    pthread_mutex_destroy(&condition->mutex);
}

void mr_condition_changed(mr_condition *condition)
{
    assert(mr_mutex_is_held(&condition->mutex));
    if (condition->first) pthread_cond_broadcast(&condition->changed);
}

static void stop(mr_waiter *waiter)
{
    mr_condition_wait *wait = waiter->object;
    pthread_mutex_lock(&wait->condition->mutex);
    wait->is_stopped = true;
    pthread_cond_broadcast(&wait->condition->changed);
    pthread_mutex_unlock(&wait->condition->mutex);
}

static void join(mr_condition *condition, mr_condition_wait *wait)
{
    assert(mr_mutex_is_held(&condition->mutex));
    assert((condition->first == nullptr) == (condition->last == nullptr));
    assert(condition->last == nullptr || condition->last->next == nullptr);
    wait->next = nullptr;
    if (condition->last)
        condition->last->next = wait;
    else
        condition->first = wait;
    condition->last = wait;
}

static void leave(mr_condition *condition, mr_condition_wait *wait)
{
    mr_condition_wait *before = nullptr, *at = condition->first;
    while (at != wait) {
        assert(at != nullptr); /* it has joined */
        before = at;
        at = at->next;
    }
    if (before)
        before->next = wait->next;
    else
        condition->first = wait->next;
    if (condition->last == wait) condition->last = before;
    assert((condition->first == nullptr) == (condition->last == nullptr));
    mr_condition_changed(condition); /* the next one may be first now */
}

/* With the mutex held. A call that has not joined comes after all that have. */
static bool try(const mr_condition *condition, const mr_condition_wait *wait, mr_condition_attempt attempt,
                void *context, mr_status *status, mr_error *error)
{
    assert(mr_mutex_is_held(&condition->mutex));
    if (condition->is_ordered && condition->first != wait) return false;
    return attempt(context, status, error);
}

/* The waiter is registered before the mutex is locked: see the order of locks in run.h. */
static mr_status wait_for(mr_condition *condition, mr_run_context *run, mr_condition_attempt attempt, void *context,
                          mr_error *error)
{
    mr_condition_wait wait = {.waiter = {.wake = stop, .object = &wait}, .condition = condition};
    mr_status status = MR_OK;
    MR_TRY(mr_run_begin_wait(run, &wait.waiter, error));
    pthread_mutex_lock(&condition->mutex);
    join(condition, &wait);
    bool is_done = try(condition, &wait, attempt, context, &status, error);
    while (!is_done && !wait.is_stopped) {
        pthread_cond_wait(&condition->changed, &condition->mutex);
        if (!wait.is_stopped) is_done = try(condition, &wait, attempt, context, &status, error);
    }
    leave(condition, &wait);
    pthread_mutex_unlock(&condition->mutex);
    mr_run_end_wait(run, &wait.waiter);
    return is_done ? status : mr_run_stopped(run, error);
}

mr_status mr_condition_run(mr_condition *condition, mr_kernel_call *call, mr_condition_attempt attempt, void *context,
                           mr_error *error)
{
    mr_status status = MR_OK;
    if (call->may_wait && call->run) return wait_for(condition, call->run, attempt, context, error);
    pthread_mutex_lock(&condition->mutex);
    bool is_done = try(condition, nullptr, attempt, context, &status, error);
    pthread_mutex_unlock(&condition->mutex);
    call->would_wait = !is_done;
    return status;
}
