/* The coordinator: threads that stop together (queue.h). */
#include "queue/coordinator.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct member {
    struct member *next;
    mr_coordinator *coordinator;
    pthread_t thread;
    mr_member what;
    bool has_ended;
} member;

struct mr_coordinator {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a stop was requested, or a member has ended */
    bool is_stopping;
    mr_error reason; /* the first reason other than a clean stop; MR_OK if there is none */
    int32_t stops;   /* calls of stop in progress: members are not freed meanwhile */
    member *members; /* owned */
};

/* Mutex locked. */
static void check(const mr_coordinator *coordinator)
{
    (void)coordinator;
    assert(coordinator->stops >= 0);
    assert(coordinator->is_stopping || coordinator->reason.status == MR_OK);
    assert(coordinator->reason.status != MR_OUT_OF_RANGE && coordinator->reason.status != MR_CANCELLED);
}

mr_status mr_coordinator_new(mr_coordinator **coordinator, mr_error *error)
{
    if (coordinator == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_coordinator_new: coordinator is null");
    *coordinator = calloc(1, sizeof **coordinator);
    if (*coordinator == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a coordinator");
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&(*coordinator)->mutex, nullptr);
    pthread_cond_init(&(*coordinator)->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return MR_OK;
}

bool mr_coordinator_should_stop(mr_coordinator *coordinator)
{
    if (coordinator == nullptr) return true;
    pthread_mutex_lock(&coordinator->mutex);
    check(coordinator);
    bool is_stopping = coordinator->is_stopping;
    pthread_mutex_unlock(&coordinator->mutex);
    return is_stopping;
}

static bool is_clean(const mr_error *reason)
{
    return reason == nullptr || reason->status == MR_OK || reason->status == MR_OUT_OF_RANGE ||
           reason->status == MR_CANCELLED;
}

/* Mutex locked. The first error is kept. */
static void keep_reason(mr_coordinator *coordinator, const mr_error *reason)
{
    if (coordinator->reason.status != MR_OK || is_clean(reason)) return;
    coordinator->reason = *reason;
    if (reason->message[0] == '\0')
        (void)mr_fail(&coordinator->reason, reason->status, "%s", mr_status_name(reason->status));
}

void mr_coordinator_record(mr_coordinator *coordinator, const mr_error *error)
{
    pthread_mutex_lock(&coordinator->mutex);
    if (coordinator->is_stopping) keep_reason(coordinator, error);
    check(coordinator);
    pthread_mutex_unlock(&coordinator->mutex);
}

void mr_coordinator_request_stop(mr_coordinator *coordinator, const mr_error *reason)
{
    if (coordinator == nullptr) return;
    pthread_mutex_lock(&coordinator->mutex);
    check(coordinator);
    bool is_first = !coordinator->is_stopping;
    /* Later errors are ignored: they are consequences of the stop. */
    if (is_first) keep_reason(coordinator, reason);
    coordinator->is_stopping = true;
    member *members = coordinator->members;
    coordinator->stops += is_first;
    pthread_cond_broadcast(&coordinator->changed);
    pthread_mutex_unlock(&coordinator->mutex);
    if (!is_first) return;
    /* Members are added at the front, so the list from here on does not change. */
    for (member *m = members; m != nullptr; m = m->next)
        if (m->what.stop != nullptr) m->what.stop(m->what.context);
    pthread_mutex_lock(&coordinator->mutex);
    assert(coordinator->stops > 0);
    coordinator->stops--;
    pthread_cond_broadcast(&coordinator->changed);
    pthread_mutex_unlock(&coordinator->mutex);
}

static struct timespec after(int64_t wait_ns)
{
    constexpr int64_t SECOND_NS = 1'000'000'000;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += wait_ns / SECOND_NS;
    at.tv_nsec += wait_ns % SECOND_NS;
    if (at.tv_nsec >= SECOND_NS) {
        at.tv_nsec -= SECOND_NS;
        at.tv_sec++;
    }
    return at;
}

/* Mutex locked. False: the time has expired. Null: no time limit. */
static bool wait_for_change(mr_coordinator *coordinator, const struct timespec *until)
{
    if (until == nullptr) return pthread_cond_wait(&coordinator->changed, &coordinator->mutex) == 0;
    return pthread_cond_timedwait(&coordinator->changed, &coordinator->mutex, until) != ETIMEDOUT;
}

bool mr_coordinator_wait_for_stop(mr_coordinator *coordinator, int64_t wait_ns)
{
    if (coordinator == nullptr) return true;
    struct timespec until = wait_ns < 0 ? (struct timespec){0} : after(wait_ns);
    pthread_mutex_lock(&coordinator->mutex);
    while (!coordinator->is_stopping && wait_for_change(coordinator, wait_ns < 0 ? nullptr : &until)) continue;
    bool is_stopping = coordinator->is_stopping;
    pthread_mutex_unlock(&coordinator->mutex);
    return is_stopping;
}

static void *run_member(void *argument)
{
    member *m = argument;
    mr_error error = {0};
    mr_status status = m->what.run(m->what.context, m->coordinator, &error);
    if (status != MR_OK) {
        error.status = status;
        mr_coordinator_request_stop(m->coordinator, &error);
    }
    pthread_mutex_lock(&m->coordinator->mutex);
    check(m->coordinator);
    assert(!m->has_ended && m->coordinator->members != nullptr);
    m->has_ended = true;
    pthread_cond_broadcast(&m->coordinator->changed);
    pthread_mutex_unlock(&m->coordinator->mutex);
    return nullptr;
}

mr_status mr_coordinator_start(mr_coordinator *coordinator, const mr_member *what, mr_error *error)
{
    if (coordinator == nullptr || what == nullptr || what->run == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_coordinator_start: %s is null",
                       coordinator == nullptr ? "coordinator"
                       : what == nullptr      ? "member"
                                              : "run");
    member *m = calloc(1, sizeof *m);
    if (m == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a thread");
    *m = (member){.coordinator = coordinator, .what = *what};
    pthread_mutex_lock(&coordinator->mutex);
    int failure = mr_thread_create(&m->thread, run_member, m);
    bool was_stopping = coordinator->is_stopping;
    if (failure == 0) {
        m->next = coordinator->members;
        coordinator->members = m;
        coordinator->stops += was_stopping;
    }
    pthread_mutex_unlock(&coordinator->mutex);
    if (failure != 0) {
        free(m);
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "cannot start a thread");
    }
    if (!was_stopping) return MR_OK;
    if (what->stop != nullptr) what->stop(what->context);
    pthread_mutex_lock(&coordinator->mutex);
    assert(coordinator->stops > 0);
    coordinator->stops--;
    pthread_cond_broadcast(&coordinator->changed);
    pthread_mutex_unlock(&coordinator->mutex);
    return MR_OK;
}

/* Mutex locked. */
static int32_t count_running(const mr_coordinator *coordinator)
{
    int32_t count = coordinator->stops;
    for (const member *m = coordinator->members; m != nullptr; m = m->next) count += !m->has_ended;
    return count;
}

/* Mutex locked. Joins the threads that have ended. A concurrent stop calls members, so they are not freed then. */
static void take_leave(mr_coordinator *coordinator)
{
    for (member **link = &coordinator->members; *link != nullptr;) {
        member *m = *link;
        if (coordinator->stops > 0) {
            (void)wait_for_change(coordinator, nullptr);
            link = &coordinator->members;
            continue;
        }
        if (!m->has_ended) {
            link = &m->next;
            continue;
        }
        check(coordinator);
        *link = m->next;
        pthread_mutex_unlock(&coordinator->mutex);
        pthread_join(m->thread, nullptr);
        if (m->what.release != nullptr) m->what.release(m->what.context);
        free(m);
        pthread_mutex_lock(&coordinator->mutex);
        link = &coordinator->members;
    }
}

mr_status mr_coordinator_join(mr_coordinator *coordinator, int64_t grace_ns, mr_error *error)
{
    struct timespec until = {0};
    bool has_limit = false, is_in_time = true;
    if (coordinator == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_coordinator_join: coordinator is null");
    pthread_mutex_lock(&coordinator->mutex);
    check(coordinator);
    while (count_running(coordinator) > 0 && is_in_time) {
        if (coordinator->is_stopping && grace_ns >= 0 && !has_limit) {
            until = after(grace_ns);
            has_limit = true;
        }
        is_in_time = wait_for_change(coordinator, has_limit ? &until : nullptr);
    }
    int32_t running = count_running(coordinator);
    mr_error reason = coordinator->reason;
    if (running == 0) take_leave(coordinator);
    pthread_mutex_unlock(&coordinator->mutex);
    if (reason.status != MR_OK) return mr_fail(error, reason.status, "%s", reason.message);
    if (running > 0)
        return mr_fail(error, MR_DEADLINE_EXCEEDED, "%d threads did not stop within %.3f s", running,
                       (double)grace_ns * 1e-9);
    return MR_OK;
}

void mr_coordinator_clear_stop(mr_coordinator *coordinator)
{
    if (coordinator == nullptr) return;
    pthread_mutex_lock(&coordinator->mutex);
    check(coordinator);
    coordinator->is_stopping = false;
    coordinator->reason = (mr_error){0};
    pthread_mutex_unlock(&coordinator->mutex);
}

void mr_coordinator_free(mr_coordinator *coordinator)
{
    if (coordinator == nullptr) return;
    mr_coordinator_request_stop(coordinator, nullptr);
    (void)mr_coordinator_join(coordinator, -1, nullptr);
    assert(coordinator->members == nullptr && coordinator->stops == 0);
    pthread_cond_destroy(&coordinator->changed);
    pthread_mutex_destroy(&coordinator->mutex);
    free(coordinator);
}
