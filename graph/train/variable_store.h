/* The internal part of variable scopes: the variables of a graph by complete name, and the stack of scopes. Everything
 * is in the graph's arena. */
#ifndef MR_GRAPH_TRAIN_VARIABLE_STORE_H
#define MR_GRAPH_TRAIN_VARIABLE_STORE_H

#include "graph/train/train.h"

typedef struct mr_variable_getter_ {
    mr_variable_getter get;
    void *context;
    const struct mr_variable_getter_ *next; /* that of the enclosing scope */
} mr_variable_getter_;

struct mr_variable_scope {
    const mr_graph *graph;
    const char *name;       /* "tower/layer"; "": the graph's */
    const char *name_scope; /* "tower_1/layer" */
    mr_reuse reuse;
    mr_initializer initializer;
    mr_regularizer regularizer;
    mr_partitioner partitioner;
    const mr_variable_getter_ *getter;
    const char *caching_device;
    mr_dtype dtype;       /* MR_DTYPE_INVALID: none */
    int32_t use_resource; /* MR_INHERIT: false */
    mr_constraint constraint;
};

/* Number of scopes that were opened under a complete name, for default names. */
typedef struct mr_scope_count {
    const char *name;
    int32_t count;
} mr_scope_count;

typedef struct mr_scope_frame {
    mr_variable_scope *scope;
    bool has_name_scope;
    mr_scope_count *counts; /* of the moment when a scope was entered again: restored at its end; otherwise null */
    int32_t count_count;
} mr_scope_frame;

/* A variable, or a partitioned one. */
typedef struct mr_stored_variable {
    const char *name;
    mr_variable variable;
    mr_variable *parts; /* null: not partitioned */
    int32_t part_count;
    mr_shape shape;
    mr_dtype dtype;
} mr_stored_variable;

typedef struct mr_variable_store {
    mr_variable_scope root;
    mr_scope_frame *frames;
    int32_t frame_count;
    mr_scope_count *counts;
    int32_t count_count;
    mr_stored_variable *variables;
    int32_t variable_count;
} mr_variable_store;

/* The graph's store, created by the first call. Null, with an error of the graph, if memory is exhausted. */
mr_variable_store *mr_variable_store_of(mr_graph *graph);
mr_variable_scope *mr_variable_store_scope(mr_variable_store *store);
/* The name that a variable scope with this default_name would get here: "layer", or "layer_1", … */
const char *mr_variable_scope_free_name(mr_graph *graph, const char *default_name);
/* Null if no variable has this complete name. */
mr_stored_variable *mr_variable_store_find(const mr_graph *graph, const char *name);
bool mr_variable_store_add(mr_graph *graph, mr_stored_variable variable);
/* Replaces the initializer of a variable in the collections and in the store. */
void mr_variable_set_initializer(mr_graph *graph, mr_output ref, mr_node *initializer, mr_output initial_value);
/* The variable's initializer now; that of `variable` if no collection has it. */
mr_node *mr_variable_initializer_of(const mr_graph *graph, mr_variable variable);

/* The number of parts for each axis, all 1 except one; and the axis. Records an error of the graph. (partitioner.c) */
bool mr_partitioner_apply(mr_graph *graph, const char *name, const mr_partitioner *partitioner, mr_shape shape,
                          mr_dtype dtype, int32_t *axis, int32_t *parts);

/* ---- Initial values (initializer.c) ---- */

/* What an initializer computes: the value of a variable, or of one part of a partitioned one. */
typedef struct mr_initial {
    const mr_initializer *initializer; /* not MR_INIT_DEFAULT */
    mr_dtype dtype;
    mr_shape shape;  /* of the part */
    mr_shape full;   /* of the variable */
    int64_t *offset; /* of the part in the variable; null: not partitioned */
} mr_initial;
/* Whether it specifies nothing: MR_INIT_DEFAULT without options. */
bool mr_initializer_is_omitted(const mr_initializer *initializer);
/* What is wrong with the options of an initializer, whatever its variable; null: nothing. */
const char *mr_initializer_wrong_options(const mr_initializer *initializer);
/* Records an error of the graph for an option that is missing, out of range, or without effect for the kind. */
bool mr_initializer_check(mr_graph *graph, const char *name, const mr_initializer *initializer, mr_shape full,
                          mr_dtype dtype);
/* An mr_initial_function whose context is an mr_initial. */
mr_output mr_initial_value(mr_graph *graph, const void *context);
/* The same for MR_INIT_ORTHOGONAL, MR_INIT_DELTA_ORTHOGONAL and MR_INIT_IDENTITY (initializer_orthogonal.c). */
mr_output mr_initial_orthogonal(mr_graph *graph, const mr_initial *initial);
mr_output mr_initial_delta_orthogonal(mr_graph *graph, const mr_initial *initial);
mr_output mr_initial_identity(mr_graph *graph, const mr_initial *initial);
/* The same for MR_INIT_CONVOLUTION_ORTHOGONAL (initializer_convolution.c). */
mr_output mr_initial_convolution_orthogonal(mr_graph *graph, const mr_initial *initial);
/* Equal elements, under that name (initializer_values.c). */
mr_output mr_initial_filled(mr_graph *graph, const mr_initial *initial, double value, const char *name);
/* The part of `all` that the variable's part has; `all` itself if the variable is not partitioned. */
mr_output mr_initial_part(mr_graph *graph, mr_output all, const mr_initial *initial);
/* The elements that the caller gave; of a part: its slice of them. */
mr_output mr_initial_elements(mr_graph *graph, const mr_initial *initial);
/* [min, max) as tf.random_uniform computes it. */
mr_output mr_initial_uniform(mr_graph *graph, const mr_initial *initial, double min, double max);
/* A random normal value as tf.random_normal or tf.truncated_normal compute it, under that name. */
mr_output mr_initial_normal(mr_graph *graph, mr_shape shape, mr_dtype dtype, double mean, double std, bool truncated,
                            int64_t seed);
/* A scalar constant of any numeric dtype. */
mr_output mr_train_scalar(mr_graph *graph, const char *name, mr_dtype dtype, double value);

/* Adds the variable's regularization loss, NAME/Regularizer/…, to "regularization_losses". */
void mr_train_regularize(mr_graph *graph, const char *name, mr_output value, mr_regularizer regularizer);
/* The loss itself in the current scope: "l2_regularizer", "l1_regularizer", or "l1_l2_regularizer"; {0} if both are
 * 0. */
mr_output mr_train_regularization(mr_graph *graph, mr_output value, mr_regularizer regularizer);

#endif
