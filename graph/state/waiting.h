/* How the kernels of queues and readers wait: as the call allows, and until its run is stopped. */
#ifndef MR_GRAPH_STATE_WAITING_H
#define MR_GRAPH_STATE_WAITING_H

#include "graph/state/run.h"
#include "queue/attempt.h"

typedef struct mr_queue_waiting {
    mr_queue_patience patience; /* for the functions of attempt.h */
    mr_kernel_call *call;
} mr_queue_waiting;

/* The struct must not move afterwards. */
void mr_queue_waiting_init(mr_queue_waiting *waiting, mr_kernel_call *call);
/* The result of a function that was given the patience: sets call->would_wait, or makes the error of a wait that the
 * run has stopped that of the run. */
mr_status mr_queue_waiting_end(const mr_queue_waiting *waiting, mr_status status, mr_error *error);

#endif
