/* The internals of loop_gradient.c that flow_gradient.c shares. */
#ifndef MR_GRAPH_TRAIN_LOOP_HISTORY_H
#define MR_GRAPH_TRAIN_LOOP_HISTORY_H

#include "graph/train/loop_gradient.h"

/* An output of the forward loop, and what stands for it in the backward loop. */
typedef struct mr_kept_value {
    mr_output forward, real;
    struct mr_kept_value *next;
} mr_kept_value;

/* The Merge of a variable of the backward loop, which the second visit of the Switch closes. */
typedef struct mr_back_edge {
    const mr_node *forward_switch;
    mr_output merge;
    struct mr_back_edge *next;
} mr_back_edge;

struct mr_loop_gradient {
    mr_loop_gradients *loops;
    mr_loop_gradient *next, *outer;
    mr_flow_context *forward, *context;
    mr_output forward_index, index; /* NextIteration of the counters */
    mr_node *forward_sync, *sync;
    mr_kept_value *history;
    mr_back_edge *edges;
    mr_loop_exits exits;
};

/* Adds a stack, outside of the loops, on which the forward loop pushes the value in every iteration.
 * is_dead_branch  the value has one if the branch of its conditional is not taken */
mr_output mr_loop_push(mr_loop_gradient *loop, mr_output value, bool is_dead_branch);
/* Pops the value of the iteration in the backward loop. */
mr_output mr_loop_pop(mr_loop_gradient *loop, mr_output stack, mr_output value, bool is_dead_branch);
/* What stands for the value in the backward loop; {0} if it is not known yet. */
mr_output mr_loop_find_kept(const mr_loop_gradient *loop, mr_output value);
void mr_loop_keep(mr_loop_gradient *loop, mr_output forward, mr_output real);
/* A loop variable whose initial value is taken as it is: returns its Merge. */
mr_output mr_loop_enter_variable(mr_flow_context *loop, mr_output initial, const char *name);
/* The Switch's output of that branch. */
mr_output mr_loop_switch(mr_graph *graph, mr_output value, mr_output pred, int32_t branch);
/* The second output of the same node: of a Switch, the one that has a value if the predicate is true. */
static inline mr_output mr_loop_taken(mr_output output)
{
    return (mr_output){output.node, output.node->id >= 0 ? 1 : 0};
}

#endif
