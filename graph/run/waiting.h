/* Calls of a run that have to wait: for other calls of the run, or for other runs.
 *
 * A call that would have to wait is parked, and the run goes on with what it can. When nothing else is left, a single
 * parked call waits on the run's own thread; several wait on a thread each, because what one of them waits for may come
 * after another. */
#ifndef MR_GRAPH_RUN_WAITING_H
#define MR_GRAPH_RUN_WAITING_H

#include "graph/run/execute.h"

typedef struct mr_parked mr_parked;

typedef struct mr_waiting {
    mr_parked *first;
    int32_t count;
    pthread_mutex_t mutex; /* initialized with the first thread */
    pthread_cond_t done;
    bool has_threads;
} mr_waiting;

/* Parks the only call of a segment.
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_waiting_park(mr_waiting *waiting, mr_frame *frame, int32_t segment, mr_error *error);
/* Waits until a parked call is computed, and removes it. There must be one.
 * errors  those of the call, or of starting a thread */
mr_status mr_waiting_next(mr_waiting *waiting, mr_frame **frame, int32_t *segment, mr_error *error);
/* Stops the run if calls still wait, and joins their threads. */
void mr_waiting_end(mr_waiting *waiting);

#endif
