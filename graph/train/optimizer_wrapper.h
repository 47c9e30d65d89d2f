/* Optimizers around others: what those of optimizer_wrappers.h share. */
#ifndef MR_GRAPH_TRAIN_OPTIMIZER_WRAPPER_H
#define MR_GRAPH_TRAIN_OPTIMIZER_WRAPPER_H

#include "graph/train/train.h"
#include <millrace/optimizer_wrappers.h>

typedef struct mr_optimizer_wrapper mr_optimizer_wrapper;
typedef struct mr_optimizer_wrapper_kind {
    const char *name; /* of the function that creates it, for messages */
    /* Null: those of the inner optimizer. */
    mr_gradients_and_variables (*compute)(mr_optimizer_wrapper *wrapper, mr_output loss,
                                          const mr_compute_gradients_options *options);
    /* run_update_ops  as of mr_optimizer_apply */
    mr_node *(*apply)(mr_optimizer_wrapper *wrapper, mr_gradients_and_variables list, mr_output global_step,
                      bool run_update_ops);
} mr_optimizer_wrapper_kind;
struct mr_optimizer_wrapper {
    const mr_optimizer_wrapper_kind *kind;
    mr_graph *graph;
    mr_optimizer optimizer; /* for the caller */
    mr_optimizer inner;
};

/* Allocates a wrapper of that size, zero but for its first member, in the graph. Checks the given optimizer, and copies
 * it with its lists. Null after an error, which is recorded. */
void *mr_optimizer_wrapper_new(mr_graph *graph, size_t size, const mr_optimizer_wrapper_kind *kind,
                               const mr_optimizer *inner);
/* The wrapper of an optimizer of that kind. Otherwise null: an error of `function` is recorded. */
void *mr_optimizer_wrapper_of(mr_graph *graph, const mr_optimizer *optimizer, const mr_optimizer_wrapper_kind *kind,
                              const char *function);
/* mr_apply_gradients.
 * run_update_ops  the update waits for the collection "update_ops" */
mr_node *mr_optimizer_apply(mr_graph *graph, const mr_optimizer *optimizer, mr_gradients_and_variables list,
                            mr_output global_step, bool run_update_ops);
/* Leaves conditionals and control dependencies, but not the name scope, for variables that are created there
 * (tf.init_scope); returns what to pass to end. */
struct mr_flow_context *mr_optimizer_lift(mr_graph *graph);
void mr_optimizer_lift_end(mr_graph *graph, struct mr_flow_context *before);

#endif
