/* Declarations common to the files of graph/train. */
#ifndef MR_GRAPH_TRAIN_TRAIN_H
#define MR_GRAPH_TRAIN_TRAIN_H

#include "graph/ir/graph.h"
#include <millrace/train.h>

/* A float variable whose name is relative to the current name scope; it is not found by mr_get_variable. */
mr_variable mr_train_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer,
                              bool trainable);
/* A slot: a variable with the shape and the dtype of another one, and of its kind (reference or resource), that is not
 * trained. */
mr_variable mr_train_slot(mr_graph *graph, const char *name, mr_variable primary, mr_initializer initializer);
/* Removes what a killed process left of checkpoints named path-STEP: partial files, and data and graphs without an
 * index. Saving also does so, once for each directory; a resumed run with nothing left to save calls it directly. */
mr_status mr_saver_clean(mr_saver *saver, const char *path, mr_error *error);
/* The graph whose variables it saves. */
const mr_graph *mr_saver_graph(const mr_saver *saver);
/* From now on, saving fails with MR_INVALID_ARGUMENT and leaves all checkpoints unchanged if a trainable variable is
 * not finite or any other variable contains a NaN. */
void mr_saver_require_finite(mr_saver *saver);
/* The two parts of mr_saver_restore: the variables, and the state of the session.
 * with_iterators  false: only the state of random operators */
mr_status mr_saver_restore_variables(mr_saver *saver, mr_session *session, const char *path, mr_error *error);
mr_status mr_saver_restore_state(mr_saver *saver, mr_session *session, const char *path, bool with_iterators,
                                 mr_error *error);
/* Writes a checkpoint of the variables only: no state of the session, no .meta, and no file "checkpoint".
 * prefix  its directory must exist */
mr_status mr_saver_write_variables(mr_saver *saver, mr_session *session, const char *prefix, mr_error *error);
/* The variable "global_step"; ref {0}: the graph has none. */
mr_variable mr_train_find_global_step(mr_graph *graph);
/* Fails with MR_INVALID_ARGUMENT unless the variable, if there is one, is a scalar of int32 or int64. */
mr_status mr_train_check_global_step(mr_variable step, mr_error *error);
/* The step in a tensor that was read from the variable. */
mr_status mr_train_step_of(const mr_tensor *value, int64_t *step, mr_error *error);
/* The step of a session; -1: there is no such variable. */
mr_status mr_train_read_global_step(mr_session *session, mr_variable variable, int64_t *step, mr_error *error);
/* Limits of options (options.c). Each function records a graph error that names the option unless the value is valid,
 * and returns whether it is. The message starts with the current scope's name. */
bool mr_train_check_count(mr_graph *graph, const char *option, int64_t value, int64_t min);
/* The same; 0 is reported as a missing option. */
bool mr_train_check_required(mr_graph *graph, const char *option, int64_t value);
/* Finite, at least min. */
bool mr_train_check_number(mr_graph *graph, const char *option, float value, float min);
/* min to max; max itself is valid only if max_is_legal. */
bool mr_train_check_range(mr_graph *graph, const char *option, float value, float min, float max, bool max_is_legal);
/* The seed pair of a random operator for a seed option: 0 takes the graph's seed, MR_SEED_ZERO means 0. */
void mr_train_seed_pair(mr_graph *graph, int64_t option, int64_t *seed, int64_t *seed2);
/* A float scalar with that name. */
static inline mr_output mr_train_float(mr_graph *graph, const char *name, float value)
{
    return mr_constant_floats(graph, MR_SCALAR, &value, name);
}
static inline bool mr_train_is_floating(mr_dtype dtype)
{
    return dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF || dtype == MR_BFLOAT16;
}
/* The current scope's name with a slash: the name for the node that represents the scope. */
static inline const char *mr_train_own_name(mr_graph *graph)
{
    const char *name = graph != nullptr ? mr_arena_printf(&graph->arena, "%s/", mr_graph_scope(graph)) : nullptr;
    return name != nullptr ? name : "";
}

#endif
