/* What the files of the lower pass share. */
#ifndef MR_GRAPH_PLAN_LOWER_H
#define MR_GRAPH_PLAN_LOWER_H

#include "graph/plan/plan.h"

typedef struct mr_lowering {
    mr_planner *planner;
    mr_program *program;
    int32_t *sequence; /* plan nodes, by call */
    int32_t *call_of;  /* by plan node; -1: not called */
    int32_t *slot_of;  /* by value: in its region; -1: none */
    int32_t *last_use; /* by value: the last call that reads it; -1: none */
    bool *is_shared; /* by value: read by other segments than the one that computes it, or written from another frame */
    int32_t *seen;   /* by value: number of occurrences in the current list; the entries of its values are cleared
                          first */
} mr_lowering;

/* An array in the program's arena, of at least one element. */
#define NEW(type, count) MR_ARENA_NEW(&program->arena, type, (size_t)(count) + 1)

/* True for the output of a constant Enter node: the loop owns it, and every iteration borrows it. */
bool mr_lower_is_invariant(const mr_planner *planner, const mr_plan_value *value);

/* ---- Programs with segments (lower_segments.c) ---- */

/* Brings the sequence into the order of segments, those of a region together, and makes the program's segments. */
mr_status mr_lower_sequence_segments(mr_lowering *l, mr_error *error);
/* The edges of the segments, and the slots that they share. */
mr_status mr_lower_segments(mr_lowering *l, mr_error *error);
/* Finds the last readers of slots in each segment. The calls have been lowered. */
mr_status mr_lower_last_readers(mr_lowering *l, mr_error *error);
/* Lowers the loops that need no tokens (lower_loops.c). The segments and calls have been lowered. */
mr_status mr_lower_straight_loops(mr_lowering *l, mr_error *error);
/* What the session needs to run a call of a conditional or a loop. */
void mr_lower_flow(const mr_lowering *l, const mr_plan_node *node, mr_call *call);

#endif
