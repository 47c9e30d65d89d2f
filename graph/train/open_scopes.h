/* Functions of the caller's that add to the graph: they must leave open the scopes that they have found, and no others.
 *
 * While such a function runs, the scopes around it cannot be closed: the functions that close one record an error. What
 * the function leaves open is closed after it, with an error too. */
#ifndef MR_GRAPH_TRAIN_OPEN_SCOPES_H
#define MR_GRAPH_TRAIN_OPEN_SCOPES_H

#include "graph/train/train.h"

typedef struct mr_callback {
    mr_open_scopes before, floor;
    struct mr_flow_context *flow;
} mr_callback;

/* Before the function is called. */
mr_callback mr_callback_begin(mr_graph *graph);
/* After it. Records an error and returns false if the function has left a scope, a conditional or a loop open; also
 * returns false after any other error of the graph.
 * owner, function  for the message: "custom_helper", "next_inputs" */
bool mr_callback_end(mr_graph *graph, const mr_callback *callback, const char *owner, const char *function);

#endif
