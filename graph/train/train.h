/* What the files of graph/train share. */
#ifndef MR_GRAPH_TRAIN_TRAIN_H
#define MR_GRAPH_TRAIN_TRAIN_H

#include "graph/ir/graph.h"
#include <millrace/train.h>

/* mr_get_variable, also for variables that optimizers leave alone. */
mr_variable mr_train_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer,
                              bool not_trainable);
/* Removes what a killed process left of checkpoints called path-STEP: partial files, data and graphs without an index.
 * Saving does so as well, once for each directory; a run that has nothing left to save does it when it goes on. */
mr_status mr_saver_clean(mr_saver *saver, const char *path, mr_error *error);
/* From now on saving fails with MR_INVALID_ARGUMENT, and leaves every checkpoint as it is, when a trainable variable is not
 * finite or another one is NaN. */
void mr_saver_require_finite(mr_saver *saver);
/* The two parts of mr_saver_restore: the variables, and the state of the session beside them.
 * with_iterators  false: only of random operators */
mr_status mr_saver_restore_variables(mr_saver *saver, mr_session *session, const char *path, mr_error *error);
mr_status mr_saver_restore_state(mr_saver *saver, mr_session *session, const char *path, bool with_iterators,
                                 mr_error *error);
/* The limits of options (options.c): each records an error of the graph that names the option, unless the value is legal,
 * and returns whether it is. The current scope's name comes before the message. */
bool mr_train_check_count(mr_graph *graph, const char *option, int64_t value, int64_t min);
/* The same; a value of 0 is reported as an option that was left out. */
bool mr_train_check_required(mr_graph *graph, const char *option, int64_t value);
/* Finite, at least min. */
bool mr_train_check_number(mr_graph *graph, const char *option, float value, float min);
/* min to max; max itself only where max_is_legal. */
bool mr_train_check_range(mr_graph *graph, const char *option, float value, float min, float max, bool max_is_legal);
/* The pair for a random operator from a seed option: 0 takes it from the graph, MR_SEED_ZERO is 0. */
void mr_train_seed_pair(mr_graph *graph, int64_t option, int64_t *seed, int64_t *seed2);
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
