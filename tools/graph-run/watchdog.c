#include "graph-run/watchdog.h"

#include <pthread.h>
#include <time.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    double limit; /* seconds; 0: not started */
    struct timespec deadline;
    bool is_running;
    watchdog_late *late;
    void *context;
} watchdog = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool is_late(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > watchdog.deadline.tv_sec ||
           (now.tv_sec == watchdog.deadline.tv_sec && now.tv_nsec >= watchdog.deadline.tv_nsec);
}

/* Holds the mutex while it ends the program, so that a run that ends meanwhile does not go on. */
static void *watch(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&watchdog.mutex);
    for (;;) {
        if (!watchdog.is_running)
            pthread_cond_wait(&watchdog.changed, &watchdog.mutex);
        else if (is_late())
            watchdog.late(watchdog.context);
        else
            (void)pthread_cond_timedwait(&watchdog.changed, &watchdog.mutex, &watchdog.deadline);
    }
    return nullptr;
}

mr_status watchdog_start(double seconds, watchdog_late *late, void *context, mr_error *error)
{
    pthread_condattr_t attributes;
    pthread_t thread;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    watchdog.limit = seconds + 1;
    watchdog.late = late;
    watchdog.context = context;
    if (pthread_create(&thread, nullptr, watch, nullptr) == 0) {
        pthread_detach(thread);
        return MR_OK;
    }
    watchdog.limit = 0;
    *error = (mr_error){.status = MR_RESOURCE_EXHAUSTED, .message = "no thread for --timeout"};
    return MR_RESOURCE_EXHAUSTED;
}

void watchdog_begin(void)
{
    if (watchdog.limit == 0) return;
    pthread_mutex_lock(&watchdog.mutex);
    clock_gettime(CLOCK_MONOTONIC, &watchdog.deadline);
    watchdog.deadline.tv_sec += (time_t)watchdog.limit;
    watchdog.deadline.tv_nsec += (long)((watchdog.limit - (double)(time_t)watchdog.limit) * 1e9);
    if (watchdog.deadline.tv_nsec >= 1'000'000'000) {
        watchdog.deadline.tv_sec++;
        watchdog.deadline.tv_nsec -= 1'000'000'000;
    }
    watchdog.is_running = true;
    pthread_cond_signal(&watchdog.changed);
    pthread_mutex_unlock(&watchdog.mutex);
}

void watchdog_end(void)
{
    if (watchdog.limit == 0) return;
    pthread_mutex_lock(&watchdog.mutex);
    watchdog.is_running = false;
    pthread_cond_signal(&watchdog.changed);
    pthread_mutex_unlock(&watchdog.mutex);
}
