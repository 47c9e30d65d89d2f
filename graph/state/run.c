/* Stopping runs: cancellations, deadlines, and waking what waits. */
#include "graph/state/run.h"
#include "base/status.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Runs ---- */

void mr_run_stop(mr_run_context *run, mr_status status)
{
    int running = MR_OK;
    assert(status != MR_OK);
    pthread_mutex_lock(&run->mutex);
    if (__atomic_compare_exchange_n(&run->stop, &running, (int)status, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        for (mr_waiter *waiter = run->waiters; waiter; waiter = waiter->next) waiter->wake(waiter);
    pthread_mutex_unlock(&run->mutex);
}

mr_status mr_run_stopped(const mr_run_context *run, mr_error *error)
{
    mr_status status = (mr_status)__atomic_load_n(&run->stop, __ATOMIC_RELAXED);
    assert(status != MR_OK);
    if (status == MR_DEADLINE_EXCEEDED) return mr_fail(error, status, "Timed out waiting for notification");
    return mr_fail(error, status, "Step was cancelled");
}

mr_status mr_run_begin_wait(mr_run_context *run, mr_waiter *waiter, mr_error *error)
{
    pthread_mutex_lock(&run->mutex);
    bool is_stopped = mr_run_is_stopped(run);
    if (!is_stopped) {
        waiter->previous = nullptr;
        waiter->next = run->waiters;
        if (run->waiters) run->waiters->previous = waiter;
        run->waiters = waiter;
    }
    pthread_mutex_unlock(&run->mutex);
    return is_stopped ? mr_run_stopped(run, error) : MR_OK;
}

void mr_run_end_wait(mr_run_context *run, mr_waiter *waiter)
{
    pthread_mutex_lock(&run->mutex);
    if (waiter->next) waiter->next->previous = waiter->previous;
    if (waiter->previous)
        waiter->previous->next = waiter->next;
    else {
        assert(run->waiters == waiter);
        run->waiters = waiter->next;
    }
    pthread_mutex_unlock(&run->mutex);
}

/* ---- Deadlines ---- */

/* Stops runs whose time is over; returns when the next one ends, or 0. The caller holds the mutex. */
static uint64_t stop_late_runs(const mr_cancellation *cancellation)
{
    uint64_t now = now_ns(), next = 0;
    for (const mr_run_link *link = cancellation->first; link; link = link->next) {
        uint64_t deadline = link->run->deadline_ns;
        if (deadline == 0 || mr_run_is_stopped(link->run)) continue;
        if (deadline <= now)
            mr_run_stop(link->run, MR_DEADLINE_EXCEEDED);
        else if (next == 0 || deadline < next)
            next = deadline;
    }
    return next;
}

static void *watch_time(void *context)
{
    mr_cancellation *cancellation = context;
    pthread_mutex_lock(&cancellation->mutex);
    while (!cancellation->is_ending) {
        uint64_t next = stop_late_runs(cancellation);
        struct timespec until = {.tv_sec = (time_t)(next / 1000000000u), .tv_nsec = (long)(next % 1000000000u)};
        if (next == 0)
            pthread_cond_wait(&cancellation->changed, &cancellation->mutex);
        else
            pthread_cond_timedwait(&cancellation->changed, &cancellation->mutex, &until);
    }
    pthread_mutex_unlock(&cancellation->mutex);
    return nullptr;
}

/* The caller holds the mutex. Without a thread the run has no limit. */
static void start_timer(mr_cancellation *cancellation)
{
    if (!cancellation->has_timer)
        cancellation->has_timer = pthread_create(&cancellation->timer, nullptr, watch_time, cancellation) == 0;
    else
        pthread_cond_signal(&cancellation->changed);
}

/* ---- Cancellations ---- */

void mr_cancellation_init(mr_cancellation *cancellation)
{
    pthread_condattr_t attr;
    *cancellation = (mr_cancellation){0};
    pthread_mutex_init(&cancellation->mutex, nullptr);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cancellation->changed, &attr);
    pthread_condattr_destroy(&attr);
}

void mr_cancellation_deinit(mr_cancellation *cancellation)
{
    assert(!cancellation->first); /* no run uses it */
    pthread_mutex_lock(&cancellation->mutex);
    cancellation->is_ending = true;
    pthread_cond_signal(&cancellation->changed);
    pthread_mutex_unlock(&cancellation->mutex);
    if (cancellation->has_timer) pthread_join(cancellation->timer, nullptr);
    pthread_cond_destroy(&cancellation->changed);
    pthread_mutex_destroy(&cancellation->mutex);
}

void mr_cancellation_stop_all(mr_cancellation *cancellation)
{
    pthread_mutex_lock(&cancellation->mutex);
    for (mr_run_link *link = cancellation->first; link; link = link->next) mr_run_stop(link->run, MR_CANCELLED);
    pthread_mutex_unlock(&cancellation->mutex);
}

bool mr_cancellation_pause(mr_cancellation *cancellation)
{
    pthread_mutex_lock(&cancellation->mutex);
    bool can_pause = !cancellation->is_paused;
    for (const mr_run_link *link = cancellation->first; link; link = link->next) can_pause &= link->run->is_background;
    cancellation->is_paused |= can_pause;
    pthread_mutex_unlock(&cancellation->mutex);
    return can_pause;
}

void mr_cancellation_resume(mr_cancellation *cancellation)
{
    pthread_mutex_lock(&cancellation->mutex);
    assert(cancellation->is_paused);
    cancellation->is_paused = false;
    pthread_mutex_unlock(&cancellation->mutex);
}

static void add_run(mr_cancellation *cancellation, mr_run_link *link, mr_run_context *run, bool has_timer)
{
    link->run = run;
    pthread_mutex_lock(&cancellation->mutex);
    link->previous = nullptr;
    link->next = cancellation->first;
    if (link->next) link->next->previous = link;
    cancellation->first = link;
    bool is_cancelled = cancellation->is_cancelled || (cancellation->is_paused && !run->is_background);
    if (has_timer) start_timer(cancellation);
    pthread_mutex_unlock(&cancellation->mutex);
    if (is_cancelled) mr_run_stop(run, MR_CANCELLED);
}

static void remove_run(mr_cancellation *cancellation, mr_run_link *link)
{
    pthread_mutex_lock(&cancellation->mutex);
    if (link->next) link->next->previous = link->previous;
    if (link->previous)
        link->previous->next = link->next;
    else {
        assert(cancellation->first == link);
        cancellation->first = link->next;
    }
    pthread_mutex_unlock(&cancellation->mutex);
}

static void start_run(mr_run_context *run, mr_cancellation *all, mr_cancellation *caller, int64_t timeout_ms)
{
    pthread_mutex_init(&run->mutex, nullptr);
    constexpr int64_t TIMEOUT_MS_MAX = INT64_C(1) << 40; /* 35 years */
    if (timeout_ms > TIMEOUT_MS_MAX) timeout_ms = TIMEOUT_MS_MAX;
    if (timeout_ms > 0) run->deadline_ns = now_ns() + (uint64_t)timeout_ms * 1000000u;
    add_run(all, &run->of_session, run, timeout_ms > 0);
    if (caller) add_run(caller, &run->of_caller, run, false);
}

void mr_run_context_init(mr_run_context *run, mr_session *session, mr_cancellation *all, mr_cancellation *caller,
                         int64_t timeout_ms)
{
    *run = (mr_run_context){.session = session};
    start_run(run, all, caller, timeout_ms);
}

void mr_run_context_init_background(mr_run_context *run, mr_session *session, mr_cancellation *all)
{
    *run = (mr_run_context){.session = session, .is_background = true};
    start_run(run, all, nullptr, 0);
}

void mr_run_context_deinit(mr_run_context *run, mr_cancellation *all, mr_cancellation *caller)
{
    remove_run(all, &run->of_session);
    if (caller) remove_run(caller, &run->of_caller);
    assert(!run->waiters);
    mr_resource_table_deinit(&run->temporaries);
    pthread_mutex_destroy(&run->mutex);
}

/* ---- Public functions ---- */

mr_status mr_cancellation_new(mr_cancellation **cancellation, mr_error *error)
{
    if (!cancellation) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_cancellation_new: cancellation is null");
    *cancellation = malloc(sizeof **cancellation);
    if (!*cancellation) return mr_fail_memory(error, sizeof **cancellation);
    mr_cancellation_init(*cancellation);
    return MR_OK;
}

void mr_cancellation_free(mr_cancellation *cancellation)
{
    if (!cancellation) return;
    mr_cancellation_deinit(cancellation);
    free(cancellation);
}

void mr_cancellation_cancel(mr_cancellation *cancellation)
{
    if (!cancellation) return;
    pthread_mutex_lock(&cancellation->mutex);
    cancellation->is_cancelled = true;
    pthread_mutex_unlock(&cancellation->mutex);
    mr_cancellation_stop_all(cancellation);
}
