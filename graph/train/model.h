/* The internal part of models: see <millrace/model.h>. */
#ifndef MR_GRAPH_TRAIN_MODEL_H
#define MR_GRAPH_TRAIN_MODEL_H

#include "base/arena.h"
#include <millrace/model.h>

/* A file of a SavedModel, and the output that names it. */
typedef struct mr_model_asset {
    const char *output, *path;
} mr_model_asset;

struct mr_model {
    mr_arena arena;
    mr_graph *graph;
    mr_model_about about;
    mr_model_asset *assets;
    int32_t asset_count;
    const char **init_ops; /* of a SavedModel */
    int32_t init_count;
};

/* mr_model_open, when the operators are registered. */
mr_status mr_model_read(const char *path, const char *tags, mr_model **model, mr_error *error);

#endif
