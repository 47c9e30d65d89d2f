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
/* Removes attrs of nodes, also of those in functions, that have their operator's default value (meta_strip.c). */
mr_status mr_meta_strip_defaults(Mr__MetaGraphDef *meta, mr_arena *arena, mr_error *error);
/* Removes the nodes in scopes of savers, and the items of "savers", except for those that the SaverDef names. */
mr_status mr_meta_clear_savers(Mr__MetaGraphDef *meta, mr_arena *arena, mr_error *error);
/* Keeps only the nodes in the scope "a/b", with names relative to it, as tf.train.export_meta_graph does. The inputs
 * from outside are named in the collection "unbound_inputs" (meta_scope.c). */
mr_status mr_meta_keep_scope(Mr__MetaGraphDef *meta, const char *scope, mr_arena *arena, mr_error *error);
/* The part of it that concerns collections and the SaverDef. */
mr_status mr_meta_strip_collections(Mr__MetaGraphDef *meta, const char *scope, mr_arena *arena, mr_error *error);
/* The name relative to the scope; the name itself if it is not in the scope. */
const char *mr_meta_without_scope(const char *name, const char *scope);
/* Adds "prefix/" to all names in collections and in the SaverDef, but not to those of the nodes. The message may be
 * hostile.
 * errors  MR_DATA_LOSS: an item of a collection is damaged */
mr_status mr_meta_add_prefix(Mr__MetaGraphDef *meta, const char *prefix, mr_arena *arena, mr_error *error);

#endif
