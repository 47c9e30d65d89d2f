/* Savers in the collection "savers" of a graph: SaverDefs, as TensorFlow's scaffolds store them. */
#ifndef MR_GRAPH_TRAIN_SAVER_COLLECTION_H
#define MR_GRAPH_TRAIN_SAVER_COLLECTION_H

#include "graph/train/train.h"

#define MR_SAVERS "savers"

int32_t mr_saver_collection_count(const mr_graph *graph);
/* A saver with the nodes, keys and options of the first item. Null: there is none, or it saves something other than
 * variables.
 * saver  owned by the caller */
mr_status mr_saver_collection_find(mr_graph *graph, mr_saver **saver, mr_error *error);
/* Adds the graph's SaverDef, that of the latest saver, unless the collection has an item. */
mr_status mr_saver_collection_store(mr_graph *graph, mr_error *error);

#endif
