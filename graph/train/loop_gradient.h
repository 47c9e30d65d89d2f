/* Gradients of loops: for each loop between xs and ys another one, which runs as many iterations backwards.
 *
 * The forward loop counts its iterations and pushes what the backward loop needs on stacks; the backward loop pops
 * them in reverse order. This is _ControlFlowState of TensorFlow's control_flow_state.py, with its nodes. */
#ifndef MR_GRAPH_TRAIN_LOOP_GRADIENT_H
#define MR_GRAPH_TRAIN_LOOP_GRADIENT_H

#include "graph/ir/flow.h"

typedef struct mr_loop_gradient mr_loop_gradient;
/* The loops of one call of mr_gradients. */
typedef struct mr_loop_gradients {
    mr_graph *graph;
    mr_flow_context *base; /* the context in which mr_gradients was called */
    mr_loop_gradient *first;
} mr_loop_gradients;

/* A node of graph->nodes, and the next one. */
typedef struct mr_node_list {
    mr_node *node;
    struct mr_node_list *next;
} mr_node_list;

/* What the sweep of gradients.c keeps of each loop: a loop's exits are processed together. */
typedef struct mr_loop_exits {
    int32_t pending;        /* exits whose consumers are not all processed */
    mr_node_list *deferred; /* the others, in reverse order */
    bool has_gradient;      /* one of those has */
} mr_loop_exits;

/* Adds the gradient of the loop that the Exit leaves, with its counters, unless it exists. Outer loops first. Null
 * after an error of the graph. */
mr_loop_gradient *mr_loop_gradient_add(mr_loop_gradients *loops, const mr_node *exit);
/* The gradient that contains the gradient of the node; is_before: that of the gradients of its outputs. Null: none. */
mr_loop_gradient *mr_loop_gradient_of(const mr_loop_gradients *loops, const mr_node *node, bool is_before);
mr_flow_context *mr_loop_gradient_context(const mr_loop_gradient *loop);
mr_loop_exits *mr_loop_gradient_exits(mr_loop_gradient *loop);
/* Zeros in the shape of an exit that nothing depends on. */
mr_output mr_loop_gradient_zeros(mr_loop_gradients *loops, mr_output exit);

/* True if the node only directs values: then mr_loop_gradient_call is its gradient function. */
bool mr_loop_gradient_handles(const mr_node *node);
/* The gradient of Switch, Merge, Enter, Exit, NextIteration or LoopCond. The current context is that of the node's
 * gradient. results are {0} on entry. */
void mr_loop_gradient_call(mr_loop_gradients *loops, mr_node *node, const mr_output *grads, mr_output *results);
/* Closes the loops of variables whose next value does not depend on the last one. */
void mr_loop_gradients_finish(mr_loop_gradients *loops);

#endif
