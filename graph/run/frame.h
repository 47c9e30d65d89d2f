/* Frames: the values of a run outside of loops, or of one iteration of a loop. A region keeps the frames of finished
 * runs for the next ones, so that a run allocates none. */
#ifndef MR_GRAPH_RUN_FRAME_H
#define MR_GRAPH_RUN_FRAME_H

#include "graph/run/program.h"
#include <millrace/session.h>

/* The position of a random operator before a call that a guarded run may repeat. */
typedef struct mr_draw {
    uint64_t draws_before;
    bool drew; /* the call drew random numbers */
} mr_draw;

/* A loop in a frame. It runs from the first token that enters it to the end of its last iteration. */
typedef struct mr_loop {
    int32_t region;
    bool is_running;
    mr_frame *outer;      /* the frame that contains the loop */
    mr_frame *first;      /* the oldest iteration that is not finished */
    mr_frame *latest;     /* the newest */
    int32_t waiting;      /* tokens that have not entered yet */
    bool is_dead;         /* a token was dead: no iteration runs */
    bool *has_left;       /* by segment of the region: its exits have sent live tokens */
    mr_tensor *constants; /* by slot of the region: values of constant Enter nodes; the loop owns them */
} mr_loop;

/* The state of a segment in a frame. */
typedef struct mr_segment_state {
    int32_t pending; /* tokens that have not come yet */
    int32_t dead;    /* of a merge: dead inputs */
    int32_t input;   /* of a merge: the live input; -1: none yet */
    bool is_dead;
    bool is_queued; /* or done */
} mr_segment_state;

/* A segment that is ready to run. */
typedef struct mr_queued {
    mr_frame *frame;
    int32_t segment;
} mr_queued;

struct mr_frame {
    mr_frame *next;      /* in the region's idle frames */
    int32_t depth;       /* of calls of functions */
    mr_run_context *run; /* that uses the frame; null: none does */
    /* Of the call that runs: see mr_kernel_call. */
    bool may_wait, would_wait;
    mr_program *program;
    mr_region *region;
    mr_tensor *slots;  /* region->slot_count */
    mr_tensor *inputs; /* program->inputs_max: of the call that runs */
    bool *may_reuse;   /* likewise */

    /* Of region 0. */
    mr_tensor *taken; /* by fetch: results that were copied when they were computed; the others are empty */
    mr_tensor *fed;   /* host copies, for the run, of feeds that are not in host memory */
    mr_tensor *kept;  /* program->kept_count; they are filled only during a guarded run */
    mr_draw *draws;   /* program->guard_calls */
    /* While tracing: the calls so far, up to times_capacity; otherwise times is null. */
    mr_node_time *times;
    int32_t timed_count, times_capacity;

    /* With segments. */
    mr_segment_state *states; /* by segment of the region */
    int32_t *uses;            /* by slot: segments that have not read it yet */
    bool *branches;           /* by predicate: the branch that was taken */
    mr_loop *loops;           /* by loop directly inside */
    mr_loop *loop;            /* the loop of which this is an iteration; null in region 0 */
    mr_frame *later;          /* the next iteration; null: it does not exist yet */
    int32_t iteration;
    mr_queued *queue; /* of region 0: a ring, kept between runs */
    int32_t queue_capacity;
    int32_t busy; /* segments that are queued or run, and loops that run */
};

/* A frame of the region: the constants are set, all other slots are empty.
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_frame_take(mr_program *program, int32_t region, mr_frame **frame, mr_error *error);
/* Releases what is left in the slots. */
void mr_frame_clear(mr_frame *frame);
/* Gives the frame back to its region. All slots but the constants must be empty. */
void mr_frame_give(mr_frame *frame);
/* Frees the idle frames of a region that no run uses. */
void mr_frames_free(mr_region *region);

#endif
