/* Changes of a MetaGraphDef that is imported or exported. */
#ifndef MR_GRAPH_IR_META_CHANGE_H
#define MR_GRAPH_IR_META_CHANGE_H

#include "graph/ir/graph.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/proto.h"

/* Nodes request no device. */
void mr_meta_clear_devices(Mr__MetaGraphDef *meta);
/* Removes all other collections. */
void mr_meta_keep_collections(Mr__MetaGraphDef *meta, mr_names names);
/* Adds "prefix/" to all names in collections and in the SaverDef, but not to those of the nodes. The message may be
 * hostile.
 * errors  MR_DATA_LOSS: an item of a collection is damaged */
mr_status mr_meta_add_prefix(Mr__MetaGraphDef *meta, const char *prefix, mr_arena *arena, mr_error *error);

#endif
