/* The session's state of an iterator node, for the code that saves and restores it. */
#ifndef MR_GRAPH_STATE_ITERATOR_H
#define MR_GRAPH_STATE_ITERATOR_H

#include "graph/state/run.h"
#include "graph/state/state.h"
#include <millrace/dataset.h>

typedef struct mr_iterator_state mr_iterator_state;
struct mr_iterator_state {
    mr_resource resource;
    pthread_mutex_t mutex;
    mr_element element;  /* keeps its array between steps; guarded by mutex, empty without it */
    const mr_node *node; /* the node with the dataset; null for an iterator without one */
    void *source;        /* the dataset and its options, bound to the node; null if there is none */
    mr_iterator
        *iterator; /* null before the first element is requested; set once, atomically: see mr_session_iterator */
    /* The GPU on which steps receive the elements, except for strings; null: host memory. Taken from the dataset for
     * which the plan was made; elements of a dataset that is set later are copied there. */
    mr_device *home;
    /* Of a one-shot iterator, whose dataset is made at the first GetNext; otherwise null. */
    const mr_node *factory;
    mr_status (*make_dataset)(const mr_iterator_state *state, mr_run_context *run, mr_dataset **dataset,
                              mr_error *error);
};

extern const mr_resource_class mr_iterator_class;

/* Finds or makes the resource of a node: mr_state_row.make. */
mr_status mr_iterator_make(mr_resource_table *resources, const mr_node *node, mr_device *device, mr_resource **resource,
                           mr_error *error);
/* Creates the iterator unless it exists. The caller holds the mutex.
 * run     may be null for an iterator with a source
 * errors  MR_FAILED_PRECONDITION if it has no dataset; the errors of the dataset */
mr_status mr_iterator_start(mr_iterator_state *state, mr_run_context *run, mr_error *error);
/* Makes the iterator start at the dataset's first element. The dataset is referenced. */
mr_status mr_iterator_set(mr_iterator_state *state, mr_dataset *dataset, mr_error *error);

#endif
