/* What the files of graph/train share. */
#ifndef MR_GRAPH_TRAIN_TRAIN_H
#define MR_GRAPH_TRAIN_TRAIN_H

#include "graph/ir/graph.h"
#include <millrace/train.h>

/* mr_get_variable, also for variables that optimizers leave alone. */
mr_variable mr_train_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer,
                              bool not_trainable);
/* Removes what a killed process left of checkpoints called path-STEP: partial files, data and graphs without an index.
 * Saving does so as well, once for each folder; a run that has nothing left to save does it when it goes on. */
mr_status mr_saver_clean(mr_saver *saver, const char *path, mr_error *error);
/* A float scalar of that name. */
static inline mr_output mr_train_float(mr_graph *graph, const char *name, float value)
{
    return mr_constant_floats(graph, MR_SCALAR, &value, name);
}
/* The current scope's name with a slash: for the node that stands for the whole scope. */
static inline const char *mr_train_own_name(mr_graph *graph)
{
    const char *name = mr_arena_printf(&graph->arena, "%s/", mr_graph_scope(graph));
    return name != nullptr ? name : "";
}

#endif
