/* Queues as resources. */
#ifndef MR_GRAPH_STATE_QUEUE_H
#define MR_GRAPH_STATE_QUEUE_H

#include "graph/state/state.h"

#include <millrace/queue.h>

typedef struct mr_queue_state {
    mr_resource resource;
    mr_queue *queue;
} mr_queue_state;

extern const mr_resource_class mr_queue_class;

/* Checks the components that a node gives a queue or barrier of an earlier node, with TensorFlow's messages.
 * kind    "queue" or "barrier"
 * errors  MR_INVALID_ARGUMENT for other dtypes or shapes */
typedef struct mr_components {
    const mr_dtype *dtypes;
    const mr_shape *shapes; /* of rank -1: not specified */
    int32_t count;
} mr_components;
mr_status mr_components_check(const char *kind, const char *name, mr_components has, mr_components requested,
                              mr_error *error);

#endif
