/* The graph, for TensorBoard and for people. */
#ifndef MR_GRAPH_TRAIN_WRITE_GRAPH_H
#define MR_GRAPH_TRAIN_WRITE_GRAPH_H

#include "graph/train/train.h"
#include "records/event/event.h"

/* Writes directory/graph.pbtxt, a GraphDef in text format with the shapes of outputs. */
mr_status mr_train_write_graph_text(const mr_graph *graph, const char *directory, mr_error *error);
/* Writes the graph as GraphDef and as MetaGraphDef, both with shapes, to the event file. */
mr_status mr_train_write_graph_events(const mr_graph *graph, mr_event_writer *writer, mr_error *error);

#endif
