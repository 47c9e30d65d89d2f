/* What the calls of one run of a session have in common, including those in functions, and how a run is stopped.
 *
 * A run is stopped by a cancellation, by the end of its time, or by an error in another of its calls. Calls that
 * compute notice it before the next call. A call that waits registers a waiter meanwhile, which is woken.
 *
 * Locks: the mutex of a cancellation is taken before that of a run, and that of a run before those of resources: a
 * waiter's wake is called with the run's mutex held. */
#ifndef MR_GRAPH_STATE_RUN_H
#define MR_GRAPH_STATE_RUN_H

#include "base/rights.h"
#include "graph/state/state.h"
#include <millrace/session.h>
#include <pthread.h>

typedef struct mr_waiter mr_waiter;
struct mr_waiter {
    /* Ends the wait. Called once, from any thread; it must not block and not call functions of the run. */
    void (*wake)(mr_waiter *waiter);
    void *object; /* for wake */
    mr_waiter *next, *previous;
};

/* A run in a cancellation. */
typedef struct mr_run_link {
    mr_run_context *run;
    struct mr_run_link *next, *previous;
} mr_run_link;

typedef struct mr_run_trace mr_run_trace; /* graph/run/trace.h */

struct mr_run_context {
    mr_run_rights rights; /* first: see base/rights.h */
    mr_session *session;
    int stop;             /* atomic: the mr_status with which the run must end; MR_OK: it goes on */
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
    pthread_mutex_t mutex;
    mr_waiter *waiters;            /* guarded by the mutex */
    mr_resource_table temporaries; /* likewise: the variables of the run; see temporary.c */
    mr_run_trace *trace;           /* what the calls add their times to; null: none */
    const mr_watch *watch;         /* what sees the outputs of the calls; null: none */
    bool is_background;            /* the function of a dataset, on a thread of its own or of a run */
    mr_run_link of_session, of_caller;
};

/* ---- Runs ---- */

/* Starts a run, which mr_run_context_deinit ends.
 * all     the session's cancellation
 * caller  another one; null: none */
void mr_run_context_init(mr_run_context *run, mr_session *session, mr_cancellation *all, mr_cancellation *caller,
                         int64_t timeout_ms);
/* The same for the function of a dataset, which mr_cancellation_pause permits. */
void mr_run_context_init_background(mr_run_context *run, mr_session *session, mr_cancellation *all);
void mr_run_context_deinit(mr_run_context *run, mr_cancellation *all, mr_cancellation *caller);

/* Makes the run end with this status, unless it is stopped already. */
void mr_run_stop(mr_run_context *run, mr_status status);
static inline bool mr_run_is_stopped(const mr_run_context *run)
{
    return __atomic_load_n(&run->stop, __ATOMIC_RELAXED) != MR_OK;
}
/* The error of a stopped run. */
mr_status mr_run_stopped(const mr_run_context *run, mr_error *error);

/* Before a call waits: registers the waiter. After an error it is not registered.
 * errors  that of a stopped run */
mr_status mr_run_begin_wait(mr_run_context *run, mr_waiter *waiter, mr_error *error);
/* After the wait. wake is not called afterwards. */
void mr_run_end_wait(mr_run_context *run, mr_waiter *waiter);

/* ---- Cancellations ---- */

struct mr_cancellation {
    pthread_mutex_t mutex; /* guards what follows */
    mr_run_link *first;
    bool is_cancelled;
    bool is_paused;
    /* The thread that ends runs whose time is over; started by the first run with a time. */
    pthread_cond_t changed;
    pthread_t timer;
    bool has_timer, is_ending;
};

void mr_cancellation_init(mr_cancellation *cancellation);
void mr_cancellation_deinit(mr_cancellation *cancellation);
/* Stops the runs in progress. */
void mr_cancellation_stop_all(mr_cancellation *cancellation);
/* Until mr_cancellation_resume, runs that start end at once, except in the background. False if a run is in progress,
 * or if it is paused already: nothing is changed then. */
[[nodiscard]] bool mr_cancellation_pause(mr_cancellation *cancellation);
void mr_cancellation_resume(mr_cancellation *cancellation);

#endif
