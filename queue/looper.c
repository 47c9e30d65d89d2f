/* Threads of a coordinator that call a function at regular times (queue.h). */
#include "queue/coordinator.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

/* Of an interval, so that the sum of the present time and an interval is a valid time: 31 years. */
constexpr double SECS_MAX = 1e9;

typedef struct thread {
    mr_looper looper;
    int64_t interval_ns;
} thread;

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

static mr_status run(void *context, mr_coordinator *coordinator, mr_error *error)
{
    const thread *t = context;
    const mr_looper *looper = &t->looper;
    assert(t->interval_ns >= 0);
    if (looper->start != nullptr) MR_TRY(looper->start(looper->context, error));
    int64_t next_ns = now_ns();
    for (;;) {
        const int64_t wait_ns = next_ns - now_ns();
        if (mr_coordinator_wait_for_stop(coordinator, wait_ns > 0 ? wait_ns : 0)) break;
        next_ns += t->interval_ns;
        MR_TRY(looper->run(looper->context, error));
    }
    mr_error failure = {0};
    failure.status = looper->stop != nullptr ? looper->stop(looper->context, &failure) : MR_OK;
    if (failure.status != MR_OK) mr_coordinator_record(coordinator, &failure);
    return MR_OK;
}

static void release(void *context)
{
    thread *t = context;
    if (t->looper.release != nullptr) t->looper.release(t->looper.context);
    free(t);
}

mr_status mr_coordinator_start_looper(mr_coordinator *coordinator, double interval_secs, const mr_looper *looper,
                                      mr_error *error)
{
    if (looper == nullptr || looper->run == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_coordinator_start_looper: %s is null",
                       looper == nullptr ? "looper" : "run");
    if (!(interval_secs >= 0) || isinf(interval_secs))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_coordinator_start_looper: interval_secs is %g, not at least 0",
                       interval_secs);
    thread *t = malloc(sizeof *t);
    if (t == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a thread");
    *t = (thread){*looper, (int64_t)(fmin(interval_secs, SECS_MAX) * 1e9)};
    mr_status status =
        mr_coordinator_start(coordinator, &(mr_member){.run = run, .release = release, .context = t}, error);
    if (status != MR_OK) free(t);
    return status;
}
