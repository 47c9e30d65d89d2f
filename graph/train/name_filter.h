/* Items of a collection by the names of their scope (tf.get_collection(key, scope)). */
#ifndef MR_GRAPH_TRAIN_NAME_FILTER_H
#define MR_GRAPH_TRAIN_NAME_FILTER_H

#include "graph/ir/graph.h"

/* Keeps the items whose names match the regular expression at their beginning, in order; returns how many. Records an
 * error of the graph if it is not a regular expression.
 * pattern  null or "": keeps all */
int32_t mr_train_filter_names(mr_graph *graph, mr_output *items, int32_t count, const char *pattern);

#endif
