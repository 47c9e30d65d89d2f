/* The parts of a SavedModel that is written. */
#ifndef MR_GRAPH_TRAIN_SAVED_MODEL_H
#define MR_GRAPH_TRAIN_SAVED_MODEL_H

#include "graph/ir/convert.h"
#include "proto/meta_graph.pb-c.h"
#include <millrace/saved_model.h>

/* A file in assets/. */
typedef struct mr_saved_asset {
    const char *path; /* where it was copied from */
    const char *name; /* in assets/ */
} mr_saved_asset;

struct mr_saved_model {
    mr_arena arena; /* also of the messages */
    const char *directory;
    Mr__MetaGraphDef **graphs;
    int32_t count;
    mr_saved_asset *assets;
    int32_t asset_count;
};

/* The SignatureDefs (saved_model_graph.c). */
mr_status mr_saved_signatures(mr_saved_model *m, const mr_graph *graph, const mr_saved_graph *options,
                              Mr__MetaGraphDef *meta, mr_error *error);
/* Adds or replaces a collection with one name of a node. */
mr_status mr_saved_add_node(mr_saved_model *m, Mr__MetaGraphDef *meta, const char *collection, const mr_node *node,
                            mr_error *error);
/* Lists an asset in the MetaGraphDef and in its collection of assets. */
mr_status mr_saved_add_asset(mr_saved_model *m, Mr__MetaGraphDef *meta, mr_output output, const char *name,
                             mr_error *error);

#endif
