/* What a session keeps for an iterator, for those who save and restore its place. */
#ifndef MR_GRAPH_STATE_ITERATOR_H
#define MR_GRAPH_STATE_ITERATOR_H

#include "graph/state/state.h"
#include <millrace/dataset.h>

typedef struct mr_iterator_state {
    mr_resource resource;
    pthread_mutex_t mutex;
    const mr_node *node; /* that has the dataset; null for an iterator without one */
    void *source;        /* the dataset and its options, bound to the node; null without */
    mr_iterator
        *iterator; /* null before the first element is requested; set once, atomically: see mr_session_iterator */
    /* The GPU on which steps get its elements, all but strings; null: host memory. As the dataset has it that the plan was
     * made for; what the iterator was given since is brought there. */
    mr_device *home;
} mr_iterator_state;

extern const mr_resource_class mr_iterator_class;

mr_status mr_iterator_make(mr_session *session, const mr_node *node, mr_device *device, mr_resource **resource,
                           mr_error *error);
/* With the mutex held: makes the iterator unless it is there.
 * errors  MR_FAILED_PRECONDITION when no dataset was given to it; the dataset's own */
mr_status mr_iterator_start(mr_iterator_state *state, mr_error *error);

#endif
