/* The nodes that TensorFlow's Saver would add. */
#ifndef MR_GRAPH_TRAIN_SAVER_NODES_H
#define MR_GRAPH_TRAIN_SAVER_NODES_H

#include "graph/train/saver_items.h"

/* Adds save/… nodes and stores the SaverDef for the MetaGraphDef. Errors are recorded in the graph.
 * arena  for the call */
void mr_saver_make_nodes(mr_graph *graph, mr_arena *arena, const mr_saver_item *items, int32_t count,
                         const mr_saver_options *options);
/* mr_saver_new_ for a saver whose nodes exist (saver.c). */
mr_saver *mr_saver_adopt(mr_graph *graph, const mr_saver_options *options);

#endif
