/* Control-flow contexts in MetaGraphDefs: the collections while_context and cond_context. */
#ifndef MR_GRAPH_IR_META_FLOW_H
#define MR_GRAPH_IR_META_FLOW_H

#include "graph/ir/graph.h"
#include "proto/meta_graph.pb-c.h"

bool mr_is_context_collection(const char *name);
/* Gives the nodes from `first` on the contexts that the message has; none if they do not fit the nodes.
 * arena  for the call */
void mr_graph_read_contexts(mr_graph *graph, const Mr__MetaGraphDef *meta, int32_t first, mr_arena *arena);
/* Writes the contexts of the graph's nodes: at most two entries, in the arena. None if the graph has no contexts, or
 * the imported ones without change: then the imported collections are exported.
 * entries  receives them */
mr_status mr_graph_write_contexts(const mr_graph *graph, mr_arena *arena, Mr__MetaGraphDef__CollectionEntry **entries,
                                  size_t *count, mr_error *error);

#endif
