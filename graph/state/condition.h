/* Calls that wait for a change of a resource: its mutex, the calls that wait, and how their runs end the wait.
 *
 * A resource that embeds one guards its own state with the mutex, and calls mr_condition_changed after every change. */
#ifndef MR_GRAPH_STATE_CONDITION_H
#define MR_GRAPH_STATE_CONDITION_H

#include "graph/state/run.h"

typedef struct mr_condition_wait mr_condition_wait;

typedef struct mr_condition {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    mr_condition_wait *first, *last; /* that wait, in the order of their arrival; guarded by the mutex */
    bool is_ordered;                 /* a call waits until those that came before it are done; set once */
} mr_condition;

/* Does the work of a call if the resource permits it, and returns true; *status is then its result. Called with the
 * mutex held, and again after each change. */
typedef bool (*mr_condition_attempt)(void *context, mr_status *status, mr_error *error);

void mr_condition_init(mr_condition *condition, bool is_ordered);
void mr_condition_deinit(mr_condition *condition);
/* Wakes the calls that wait. The caller holds the mutex. */
void mr_condition_changed(mr_condition *condition);
/* Calls attempt until it returns true. A call that may not wait sets would_wait instead.
 * errors  those of the attempt; that of a run which is stopped: attempt has then not been done */
mr_status mr_condition_run(mr_condition *condition, mr_kernel_call *call, mr_condition_attempt attempt, void *context,
                           mr_error *error);

#endif
