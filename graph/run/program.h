/* Programs: what planning makes of a part of a graph. A program is a flat array of prepared kernel calls.
 *
 * A program does not change after planning, and any number of runs may execute it at the same time: what a run changes
 * is in its frames (frame.h). Values are numbered: a frame has one slot for each value, the tensor of that value during
 * the run.
 *
 * Without conditionals and loops there is one region and one segment: the calls run one after another. Otherwise each
 * loop is a region, of which every iteration has a frame, and the calls are divided into segments, which run, or do not
 * run, as a whole. A segment that is done sends a token along each of its edges. A token is alive or dead; a segment
 * starts when all its tokens have come, and is skipped if one of them is dead (dataflow.c). A simple loop needs neither
 * tokens nor a frame for each iteration: see mr_straight_loop. */
#ifndef MR_GRAPH_RUN_PROGRAM_H
#define MR_GRAPH_RUN_PROGRAM_H

#include "base/arena.h"
#include "base/kernel.h"
#include "graph/ir/graph.h"
#include "graph/state/state.h"
#include <pthread.h>

typedef struct mr_frame mr_frame;

/* State of a stateful node, common to all programs of a session; created when a program first contains the node. */
typedef struct mr_node_state {
    const mr_node *node;
    mr_kernel_random random;
    uint64_t invocations;
    mr_node_memory memory; /* of its kernel */
} mr_node_state;

/* Those of one graph: the session's, or the body of a function. */
typedef struct mr_node_states {
    mr_node_state **items; /* by node id; null for nodes without state; owned */
    int32_t capacity;
} mr_node_states;

/* What a program computes. */
typedef struct mr_signature {
    int32_t feed_count, fetch_count, target_count;
    const mr_output *feeds;
    const mr_output *fetches;
    mr_node *const *targets;
    int32_t guard;    /* index of a fetch that must be finite before variables are updated; -1: none */
    bool is_function; /* the feeds may be handles; the run owns them */
} mr_signature;

typedef enum mr_input_mode {
    MR_INPUT_SLOT = 0, /* the slot's tensor unchanged, possibly a handle */
    MR_INPUT_READ,     /* the slot is a handle, the kernel takes the value: a reference for the duration of the call */
    MR_INPUT_UPDATE,   /* the slot is a handle, the kernel changes the variable's value in place */
} mr_input_mode;

typedef struct mr_call_input {
    int32_t slot;
    mr_input_mode mode;
    bool last_use;        /* no later call reads the slot, and it is neither fed, constant nor fetched */
    bool last_in_segment; /* no later call of the segment reads the slot, whose readers are counted */
} mr_call_input;

/* An output of a call that is fetched. */
typedef struct mr_call_fetch {
    int32_t output, fetch;
} mr_call_fetch;

/* Where a token goes. */
typedef enum mr_edge_kind {
    MR_EDGE_SAME,  /* to a segment of the same frame */
    MR_EDGE_NEXT,  /* to a segment of the next iteration */
    MR_EDGE_ENTER, /* to a loop, whose first iteration starts when all such tokens have come */
    MR_EDGE_EXIT,  /* to a segment of the frame that contains the loop */
} mr_edge_kind;

typedef struct mr_edge {
    mr_edge_kind kind;
    int32_t target;    /* a segment; for MR_EDGE_ENTER a region */
    int32_t predicate; /* -1: none. Otherwise the token is dead unless the predicate took the branch */
    bool branch;
    bool is_order;       /* the token only orders: it is never dead */
    int32_t merge_input; /* of a segment that is a merge: the input; -1: a control input */
} mr_edge;

typedef struct mr_segment {
    int32_t region;
    int32_t first_call, end_call;
    int32_t first_edge, end_edge; /* in the program's edges */
    int32_t first_use, end_use;   /* in the program's uses: slots that it reads and others have filled */
    int32_t pending;              /* tokens that it waits for in the first iteration */
    int32_t pending_later;        /* in later iterations */
    bool waits;                   /* one call that may wait for others */
    bool is_merge;                /* one conditional merge: it waits for one live input and all control inputs */
    int32_t merge_inputs;
    int32_t ready_input; /* of a merge: an input that needs no token; -1: none */
} mr_segment;

typedef enum mr_origin_kind {
    MR_ORIGIN_OUTPUT, /* an output of the node's call */
    MR_ORIGIN_FEED,   /* feed `index` of the signature */
    MR_ORIGIN_CONSTANT,
    MR_ORIGIN_COPY, /* a copy of another slot on another device */
} mr_origin_kind;

/* What a slot contains, for reports about the program. */
typedef struct mr_origin {
    const mr_node *node; /* of which it is an output; null: a feed */
    int32_t index;
    mr_origin_kind kind;
    const mr_node *computes; /* of a call for several nodes: the one whose output it is; otherwise null */
    const char *name;        /* of a second computation; null: the node's */
} mr_origin;

typedef struct mr_call {
    const mr_node *source; /* the node that it computes */
    mr_flow flow;
    int32_t flow_index; /* Switch: the predicate; Enter: the region; Merge: 1 if the index of the input is used */
    bool is_constant;   /* Enter: the value is there in every iteration */
    mr_kernel_run run;
    mr_kernel_node node;
    const mr_kernel *kernel; /* null: a copy between devices */
    const void *prepared;
    mr_device *device;
    int32_t input_count, output_count, release_count, fetch_count;
    int32_t first_output;     /* the outputs are the slots first_output … */
    int32_t ref_output_count; /* outputs [0, n) are set by the session for an updating kernel */
    const mr_call_input *inputs;
    const int32_t *releases; /* slots that are released after the call */
    bool plain;              /* every input is MR_INPUT_SLOT */
    mr_binary_loop scalars;  /* used instead of run if both inputs are scalars; null: none */
    bool scalars_in_place;   /* the output has the size of the inputs */
    mr_node_state *state;    /* of a stateful node; otherwise null */
    int32_t first_fetch;     /* in the program's fetches */
    int32_t first_kept;      /* in the frame's kept outputs; -1: the call may be repeated */
} mr_call;

/* A value goes from one slot to another. */
typedef struct mr_move {
    int32_t from, to;
    bool is_last; /* nothing else reads the slot */
} mr_move;

/* A loop whose iterations need no tokens: they follow one another in one frame. What Merge, Switch, NextIteration and
 * Identity forward does not move during an iteration: their consumers read the slot of the variable. */
typedef struct mr_straight_loop {
    bool is_straight;
    bool branch;             /* the value of the predicate for which the body runs */
    int32_t predicate;       /* slot */
    bool predicate_is_last;  /* nothing else reads it */
    const mr_call *decision; /* a Switch, for errors */
    int32_t head_count, body_count;
    const int32_t *head, *body; /* calls */
    int32_t exit;               /* the segment that runs after the last iteration */
    int32_t enter_count, next_count, release_count;
    const mr_move *enter;    /* before the first iteration */
    const mr_move *next;     /* after each body */
    const int32_t *releases; /* likewise: slots that no call of the iteration reads last */
} mr_straight_loop;

/* A loop, or what is outside of all loops. */
typedef struct mr_region {
    int32_t parent; /* -1: region 0 */
    int32_t slot_count;
    mr_tensor *slots;   /* as a frame finds them: the constants; the others are empty */
    mr_origin *origins; /* by slot */
    int32_t constant_count;
    int32_t *constants; /* slots that stay filled */
    int32_t owned_count;
    int32_t *owned; /* slots that a run fills and a failed run must clear, including fetched ones */
    int32_t first_segment, segment_count;
    int32_t invariant_count;
    int32_t *invariants;  /* slots of constant Enter nodes */
    int32_t enter_tokens; /* that its first iteration waits for */
    int32_t predicate_count;
    int32_t *use_counts; /* by slot: the segments that read it, if others fill it */
    int32_t *loops;      /* regions directly inside */
    int32_t loop_count;  /* regions directly inside */
    int32_t loop_index;  /* among those of the parent */
    mr_straight_loop straight;

    /* Frames that no run uses. */
    mr_frame *spare; /* atomic; one frame, so that runs one after another take no lock */
    pthread_mutex_t mutex;
    mr_frame *idle; /* the others; guarded by the mutex */
} mr_region;

typedef struct mr_program {
    int references;
    mr_arena arena;
    uint64_t graph_version;
    mr_signature signature; /* borrowed from the step */
    int32_t call_count;
    mr_call *calls;
    int32_t inputs_max; /* of all calls */
    const mr_call_fetch *fetches;
    int32_t region_count;
    mr_region *regions;    /* region 0: outside of all loops */
    int32_t segment_count; /* 0: the calls run one after another */
    mr_segment *segments;  /* those of a region are neighbors */
    const mr_edge *edges;
    const int32_t *uses;
    int32_t *feed_slots;
    bool *feed_is_read; /* by calls other than copies, so it must be in host memory */
    int32_t *fetch_slots;
    bool *fetch_is_ref;  /* the slot is a handle: the result is the variable's value */
    bool *fetch_is_last; /* the slot's reference moves to the result */
    int32_t wait_count;
    mr_device **waits; /* devices to wait for at the end of a run */
    /* With a guard: its value is available after this many calls. The kept calls among them, which are not repeated
     * when a diverged run is examined, have kept_count outputs. */
    int32_t guard_calls;
    int32_t guard_segment; /* with segments: the one that computes the guard; -1: none */
    int32_t kept_count;
} mr_program;

/* An empty program with one reference.
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_program_new(mr_program **program, mr_error *error);
mr_program *mr_program_ref(mr_program *program);
void mr_program_unref(mr_program *program); /* null is allowed */

/* Prepends "node (Op): " to the message in *error unless it already starts with it; returns status. */
mr_status mr_call_named(const mr_kernel_node *node, mr_status status, mr_error *error);
#endif
