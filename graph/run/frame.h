/* Frames: the memory of one run of a program. A program keeps the frames of finished runs for the next ones, so that a
 * run allocates none. */
#ifndef MR_GRAPH_RUN_FRAME_H
#define MR_GRAPH_RUN_FRAME_H

#include "graph/run/program.h"
#include <millrace/session.h>

/* The position of a random operator before a call that a guarded run may repeat. */
typedef struct mr_draw {
    uint64_t draws_before;
    bool drew; /* the call drew random numbers */
} mr_draw;

struct mr_frame {
    mr_frame *next; /* in the program's idle frames */
    mr_program *program;
    mr_tensor *slots;  /* program->slot_count */
    mr_tensor *inputs; /* program->inputs_max: of the call that runs */
    bool *may_reuse;   /* likewise */
    mr_tensor *taken;  /* by fetch: results that were copied when they were computed; the others are empty */
    mr_tensor *fed;    /* host copies, for the run, of feeds that are not in host memory */
    mr_tensor *kept;   /* program->kept_count; they are filled only during a guarded run */
    mr_draw *draws;    /* program->guard_calls */
    /* While tracing: the calls so far; otherwise times is null. */
    mr_node_time *times;
    int32_t timed_count;
};

/* A frame for one run: the constants are set, all other slots are empty.
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_frame_take(mr_program *program, mr_frame **frame, mr_error *error);
/* Gives the frame back to its program. All slots but the constants must be empty. */
void mr_frame_give(mr_frame *frame);
/* Frees the idle frames of a program that no run uses. */
void mr_frames_free(mr_program *program);

#endif
