/* Control-flow contexts while a graph is built: the conditional or the loop that a node belongs to, as the contexts of
 * TensorFlow's control_flow_ops.
 *
 * graph->flow is the context of the nodes that are being built, and node->flow that of a node. A builder inside of a
 * context may use outputs from outside: mr_flow_capture leads them in, through a Switch on the conditional's predicate
 * or through a constant Enter of the loop, once for each context and output. Contexts nest; each is owned by the graph.
 *
 * An Exit belongs to its loop, but its output is outside. */
#ifndef MR_GRAPH_IR_FLOW_H
#define MR_GRAPH_IR_FLOW_H

#include "graph/ir/graph.h"

/* An output from outside, and what stands for it inside. */
typedef struct mr_flow_value {
    mr_output outside, inside;
    struct mr_flow_value *next;
} mr_flow_value;

constexpr int32_t MR_FLOW_BUCKETS = 64;

typedef struct mr_flow_context mr_flow_context;
struct mr_flow_context {
    mr_graph *graph;
    mr_flow_context *outer; /* null: the graph itself */
    bool is_loop;
    /* mr_flow_capture and mr_flow_complete: what the builder of nodes, on which these are built, calls. */
    mr_output (*capture)(mr_flow_context *context, mr_output value, const char *consumer);
    mr_status (*complete)(mr_node *node, mr_error *error);
    mr_flow_value *values[MR_FLOW_BUCKETS];
    /* Of a conditional: */
    mr_output pred;
    int32_t branch;  /* 1: the nodes run if pred is true; 0: if it is false */
    mr_output pivot; /* has a value if the branch is taken; nodes without inputs run after it */
    /* Of a loop: */
    const char *frame;
    int64_t parallel_iterations;
    bool back_prop, swap_memory;
    int32_t imported_count; /* of its nodes, those that were imported with it */
    bool pops;              /* imported: takes values from stacks, so that it is the gradient of another loop */
    mr_output loop_cond;
    mr_output body_pivot; /* runs in every iteration: the first variable in the test, then the one in the body */
    mr_output *exits;
    int32_t exit_count;
    /* Of a loop that computes the gradient of another one (graph/train/loop_gradient.c): leads in an output of that
     * loop. Null: none. */
    struct mr_loop_gradient *gradient;
    mr_flow_context *forward; /* the other loop */
    mr_output (*forward_value)(struct mr_loop_gradient *gradient, mr_output value);
};

/* Adds a context inside of the current one, without entering it. Null if memory is exhausted: recorded. */
mr_flow_context *mr_flow_new(mr_graph *graph, bool is_loop);
/* Makes the context current (null: the graph itself), and returns the one that was. */
mr_flow_context *mr_flow_enter(mr_graph *graph, mr_flow_context *context);
/* Records an error unless this context is the current one: what was begun in it has ended. function: for the message */
void mr_flow_check_current(mr_graph *graph, const mr_flow_context *context, const char *function);

/* The context of an output: for an Exit, the one around its loop. */
mr_flow_context *mr_flow_of(const mr_node *node);
/* The innermost loop around the context, itself included; null: none. */
mr_flow_context *mr_flow_loop(mr_flow_context *context);
/* True if the node enters a value that is the same in all iterations. */
bool mr_flow_is_constant_enter(const mr_node *node);

/* Returns what stands for value inside of the context. New nodes are named CONSUMER/Switch or CONSUMER/Enter. */
mr_output mr_flow_capture(mr_flow_context *context, mr_output value, const char *consumer);
/* What stands for the value inside; null: nothing yet. */
const mr_flow_value *mr_flow_find_value(mr_flow_context *context, mr_output value);
/* From now on, inside stands for outside. */
void mr_flow_set_value(mr_flow_context *context, mr_output outside, mr_output inside);

/* Adds a node of an operator that forwards values, which belongs to the context but whose inputs are taken as they are:
 * Enter (with the context's frame), Switch, Merge, NextIteration, Exit, Identity, … For references their form of it. */
mr_output mr_flow_add(mr_flow_context *context, mr_flow kind, const char *name, mr_outputs inputs, bool is_constant);
/* Adds the control edges of the enclosing control frames to an Enter: those from nodes in the context around the loop,
 * or in a conditional there. */
void mr_flow_add_enter_controls(mr_node *enter);
/* Replaces the second input of a Merge: closes the loop. */
void mr_flow_close(mr_output merge, mr_output next);
void mr_flow_add_exit(mr_flow_context *loop, mr_output exit);

/* Gives a node that is almost complete its context, and corrects its control edges: those from other iterations'
 * frames become edges from inside, and a node without inputs runs after the context's pivot. */
mr_status mr_flow_complete(mr_node *node, mr_error *error);

#endif
