/* Initial values from a checkpoint of another model: tf.train.init_from_checkpoint and tf.train.warm_start.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_variable w = mr_get_variable(g, "new/w", MR_SHAPE(2, 3));
 * mr_status status =
 *     mr_init_from_checkpoint(g, "pretrained/model.ckpt-100", MR_ASSIGNMENTS({.from = "old/", .to = "new/"}), &error);
 * mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
 * if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s restores %s\n", mr_node_name(init), mr_node_name(w.ref.node));
 * mr_graph_free(g);
 * ```
 *
 * Nothing is restored by the calls themselves: the initializers of the variables become restores, so that a session's
 * initialization, that of a monitored session included, reads the checkpoint. Call them when the variables exist, and
 * before mr_initialize_variables and mr_monitored_session_new. The collections, mr_get_variable and
 * mr_variables_initializer use the new initializers; the members initializer and initial_value of an mr_variable that
 * the program has copied before are the old ones.
 *
 * What a checkpoint contains: mr_checkpoint_reader_open, mr_checkpoint_key and mr_checkpoint_read (saver.h), which are
 * tf.train.list_variables, load_checkpoint and load_variable. */
#ifndef MILLRACE_WARM_START_H
#define MILLRACE_WARM_START_H

#include <millrace/variables.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One entry of an assignment map. */
typedef struct mr_assignment {
    const char *from; /* a key of the checkpoint, "old/w"; a scope, "old/"; or "/", all keys */
    /* The complete name of a variable of mr_get_variable, "new/w"; a scope, "new/", of which every variable is
     * restored; or "/", all variables. Scopes are assigned to scopes, variables to variables. Null: `variable`. */
    const char *to;
    mr_variable variable; /* instead of `to`: of either kind, also a partitioned one */
} mr_assignment;
typedef struct mr_assignments {
    const mr_assignment *items;
    int32_t count;
} mr_assignments;
#define MR_ASSIGNMENTS(...) MR_LIST_(mr_assignments, mr_assignment, __VA_ARGS__)

/* Makes the initializers of variables restore keys of a checkpoint. Adds the nodes "checkpoint_initializer" and
 * "Assign" (references) or "AssignVariableOp" (resources) to the graph. The parts of a partitioned variable are
 * restored from their slices, whether the checkpoint has slices, others, or the complete tensor. Variables of
 * mr_variable_new and slots of optimizers have no name that a scope finds: give them as `variable`.
 * checkpoint   PREFIX as passed to the Saver, with its -STEP; or a directory, of which the latest checkpoint is used
 * assignments  at least one; applied in the order of their keys, so that the last one wins
 * errors       MR_NOT_FOUND: no such checkpoint, key or variable, with the nearest names that exist;
 *              MR_INVALID_ARGUMENT: another shape or dtype. The graph is then unchanged */
MR_API mr_status mr_init_from_checkpoint(mr_graph *graph, const char *checkpoint, mr_assignments assignments,
                                         mr_error *error);

/* A variable that has another name in the checkpoint. */
typedef struct mr_previous_name {
    const char *name;     /* of the variable; of a partitioned one, without "/part_0" */
    const char *previous; /* in the checkpoint */
} mr_previous_name;
typedef struct mr_previous_names {
    const mr_previous_name *items;
    int32_t count;
} mr_previous_names;
#define MR_PREVIOUS_NAMES(...) MR_LIST_(mr_previous_names, mr_previous_name, __VA_ARGS__)

/* A matrix whose rows or columns belong to words: those of words that the checkpoint has are taken from there, whatever
 * their order; those of other words are new (tf.estimator.VocabInfo). The files have one word per line, and are read
 * when the variables are initialized. */
typedef struct mr_vocab_info {
    const char *name;        /* of the variable, a float matrix; of a partitioned one, without "/part_0" */
    const char *new_vocab;   /* file of the variable's words */
    int64_t new_vocab_size;  /* number of its words that are used: the first ones; at least 1 */
    int32_t num_oov_buckets; /* rows or columns behind those of the words, which are new; default 0, at least 0 */
    const char *old_vocab;   /* file of the checkpoint's words */
    int64_t old_vocab_size;  /* number of its words that are used; default 0: all; at least 0; no effect on axis 1 is an
                                error */
    /* New elements: zeros, ones, constant, uniform, normal or truncated normal; default: zeros. */
    mr_initializer backup_initializer;
    int32_t axis; /* 0: words are rows; 1: words are columns, and the rows are those of the checkpoint */
} mr_vocab_info;
typedef struct mr_vocab_infos {
    const mr_vocab_info *items;
    int32_t count;
} mr_vocab_infos;
#define MR_VOCAB_INFOS(...) MR_LIST_(mr_vocab_infos, mr_vocab_info, __VA_ARGS__)

typedef struct mr_warm_start_options {
    size_t size; /* of this struct (api.h) */
    /* Of these, at most one. Default: ".*". */
    const char *pattern; /* trainable variables of whose name, "scope/w:0", a regular expression matches a beginning */
    mr_names names;      /* global variables, each by such a regular expression */
    mr_variables variables;           /* or the variables themselves */
    mr_previous_names previous_names; /* each name once; each is used, or an error */
    mr_vocab_infos vocab_infos;       /* likewise */
} mr_warm_start_options;
/* Calls mr_init_from_checkpoint for the variables that the options select, except those with a vocabulary
 * (tf.train.warm_start).
 * checkpoint  as above
 * options     null: the defaults
 * errors      as above; MR_NOT_FOUND also if the options select no variable. The graph is then unchanged */
MR_API mr_status mr_warm_start(mr_graph *graph, const char *checkpoint, const mr_warm_start_options *options,
                               mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
