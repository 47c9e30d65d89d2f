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

#endif
