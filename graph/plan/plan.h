/* Plans: how a part of a graph becomes a flat array of prepared kernel calls.
 *
 * The planner goes through these passes, one file each:
 *   prune  the nodes that fetches and targets need, backwards, cut at feeds; values get numbers
 *   place  a device and a kernel for each node; handles of resources become constants
 *   fold   nodes whose inputs are constants are computed now
 *   share  equal nodes with equal inputs become one
 *   fuse   chains for which there is one kernel become one node
 *   copy   values that are needed on another device are copied there
 *   order  a sequence that respects edges, runs early what frees memory, and updates variables after their readers
 *   lower  values become slots, nodes become calls, and each slot is released after its last use
 * What the planner works with lives in its arena and is gone afterwards; what the step needs lives in the step's.
 *
 * A value is what flows along edges: a feed, a constant, or an output of a node. A step holds one slot for each. */
#ifndef MR_GRAPH_RUN_PLAN_H
#define MR_GRAPH_RUN_PLAN_H

#include "base/arena.h"
#include "base/kernel.h"
#include "graph/ir/graph.h"
#include <millrace/session.h>
#include <pthread.h>

typedef struct mr_node_state mr_node_state;

typedef enum mr_value_kind {
    MR_VALUE_FEED,
    MR_VALUE_CONSTANT,
    MR_VALUE_OUTPUT,
} mr_value_kind;

typedef struct mr_plan_value {
    mr_value_kind kind;
    int32_t producer; /* plan node; -1 for feeds */
    int32_t index;    /* of the output, or of the feed */
    mr_dtype dtype;
    bool is_ref; /* the slot holds a handle to a variable */
    mr_shape shape;
    mr_tensor constant; /* a share, or a handle */
    mr_device *home;    /* where a constant or a variable's value lives; null: in host memory */
    bool fetched;
} mr_plan_value;

typedef struct mr_plan_node {
    const mr_node *node;     /* for a copy: the node whose value it copies */
    const mr_kernel *kernel; /* null: a constant or a handle, nothing to run */
    const mr_attrs *attrs;   /* null: the node's; otherwise what fuse made of them */
    mr_device *device;       /* null before place */
    int32_t input_count;
    int32_t *inputs;          /* values */
    const bool *input_is_ref; /* the operator takes a reference there */
    int32_t output_count;
    int32_t first_output; /* values first_output … are its outputs */
    int32_t control_count;
    int32_t *controls; /* plan nodes */
    bool live;         /* dead nodes are passed over */
    bool pinned;       /* a target: runs even when nobody takes its outputs */
    bool is_copy;
    mr_device *copy_from, *copy_to; /* null: host memory */
    mr_device *outputs_at;          /* where a node of the CPU has its outputs, strings aside, when that is a GPU */
} mr_plan_node;

typedef struct mr_planner {
    mr_session *session;
    mr_step *step;
    mr_arena arena;
    mr_arena kept; /* what the plan takes over */
    mr_plan_node *nodes;
    int32_t node_count, node_capacity;
    mr_plan_value *values;
    int32_t value_count, value_capacity;
    int32_t *fetch_values;
    int32_t *order; /* plan nodes; live ones that have a kernel */
    int32_t order_count;
    bool uses_gpu;
} mr_planner;

/* ---- The passes ---- */

mr_status mr_plan_prune(mr_planner *planner, mr_error *error);
mr_status mr_plan_place(mr_planner *planner, mr_error *error);
mr_status mr_plan_fold(mr_planner *planner, mr_error *error);
/* After folding: every live node that is no constant has a kernel, or an error names the first that has none. */
mr_status mr_plan_check_kernels(const mr_planner *planner, mr_error *error);
mr_status mr_plan_share(mr_planner *planner, mr_error *error);
mr_status mr_plan_fuse(mr_planner *planner, mr_error *error);
mr_status mr_plan_copy(mr_planner *planner, mr_error *error);
mr_status mr_plan_order(mr_planner *planner, mr_error *error);
mr_status mr_plan_lower(mr_planner *planner, mr_error *error);

/* ---- What passes share ---- */

/* A new value or node; the numbers of the others stay. *index is set. */
mr_status mr_plan_add_value(mr_planner *planner, mr_plan_value value, int32_t *index, mr_error *error);
mr_status mr_plan_add_node(mr_planner *planner, mr_plan_node node, int32_t *index, mr_error *error);
/* All live nodes, inputs before their consumers, in the order they were made where edges leave a choice.
 * errors  MR_INVALID_ARGUMENT naming a node of a cycle */
mr_status mr_plan_topological(mr_planner *planner, int32_t **order, int32_t *count, mr_error *error);
/* Marks live what fetches and pinned nodes need, and nothing else. */
void mr_plan_sweep(mr_planner *planner);
/* The variable's handle behind a value that is a reference or a resource: the value that the name of the resource made.
 * -1 when it comes from elsewhere. */
int32_t mr_plan_handle(const mr_planner *planner, int32_t value);
/* True when the kernel has that input (output) in host memory. */
static inline bool mr_plan_on_host(uint32_t mask, int32_t index)
{
    return (mask >> 31 & 1) != 0 || (index < 31 && (mask >> index & 1) != 0);
}
/* Bytes of a value; 0 when not known. */
size_t mr_plan_value_bytes(const mr_plan_value *value);

/* ---- The step: what is left after planning ---- */

typedef enum mr_input_mode {
    MR_INPUT_SLOT = 0, /* the slot's tensor as it is, a handle included */
    MR_INPUT_READ,     /* the slot is a reference, the kernel takes the value: a share for the call */
    MR_INPUT_UPDATE,   /* the slot is a handle, the kernel changes the variable's value in place */
} mr_input_mode;

typedef struct mr_call_input {
    int32_t slot;
    mr_input_mode mode;
    bool last_use; /* nobody reads the slot after this call, and it is neither fed, constant nor fetched */
} mr_call_input;

typedef struct mr_call_copy {
    mr_device *from, *to; /* null: host memory */
} mr_call_copy;

typedef struct mr_call {
    mr_kernel_run run;
    mr_kernel_call kernel_call;
    mr_kernel_node kernel_node;
    const mr_kernel *kernel;
    int32_t input_count, output_count, release_count;
    int32_t ref_output_count; /* outputs [0, n) that the session makes for an updating kernel */
    const mr_call_input *inputs;
    bool *may_reuse;
    mr_tensor *input_tensors;
    mr_tensor *outputs;      /* slots */
    const int32_t *releases; /* slots that are given back after the call */
    bool plain;              /* every input is MR_INPUT_SLOT */
    mr_node_state *state;    /* of a stateful node; else null */
    int32_t first_kept;      /* in the plan's kept outputs; -1: the call may be repeated */
    bool drew;               /* in a guarded run: it drew random numbers, from draws_before on */
    uint64_t draws_before;
} mr_call;

typedef struct mr_plan {
    mr_arena arena;
    uint64_t graph_version;
    int32_t call_count;
    mr_call *calls;
    int32_t slot_count;
    mr_tensor *slots;
    int32_t constant_count;
    int32_t *constants; /* slots that stay */
    int32_t owned_count;
    int32_t *owned; /* slots that a run fills and a failed run must empty; fetched ones too */
    int32_t *feed_slots;
    bool *feed_is_read; /* by others than copies, so that it has to be in host memory */
    mr_tensor *fed;     /* host copies of feeds that are not, for the run */
    int32_t *fetch_slots;
    bool *fetch_is_ref;  /* the slot is a reference: the result is the variable's value */
    bool *fetch_is_last; /* the slot's share goes to the result */
    int32_t wait_count;
    mr_device **waits;                /* devices that are waited for at the end of a run */
    uint64_t *start_ns, *duration_ns; /* by call, when tracing */
    int32_t traced_count;
    /* Of a step with a guard: its value is there after this many calls. The kept calls among them, which are not repeated
     * when a diverged run is examined, have their outputs here until the run ends. */
    int32_t guard_calls;
    int32_t kept_count;
    mr_tensor *kept;
} mr_plan;

struct mr_step {
    mr_session *session;
    pthread_mutex_t mutex; /* one run at a time */
    mr_arena arena;
    uint64_t hash;
    mr_step *next; /* in its bucket */
    int32_t feed_count, fetch_count, target_count;
    mr_output *feeds;
    mr_output *fetches;
    mr_node **targets;
    int32_t guard; /* a fetch that must be finite, before variables are updated; -1: none */
    mr_plan *plan;
};

/* Plans the step anew; with the session's mutex held. */
mr_status mr_plan_make(mr_step *step, mr_error *error);
void mr_plan_free(mr_plan *plan);
/* Puts "node (Op): " before the message that *error holds, unless it begins so; returns status. */
mr_status mr_call_named(const mr_kernel_node *node, mr_status status, mr_error *error);
/* One run; with the step's mutex held. diverged: see mr_session_run_guarded. */
mr_status mr_plan_run(mr_step *step, const mr_tensor *values, mr_tensor *results, bool trace, bool *diverged,
                      mr_error *error);
/* The calls from first to before end, on slots that the calls before them have filled. began_ns: of the run, when it is
 * traced; else 0. */
mr_status mr_plan_run_calls(mr_plan *plan, int32_t first, int32_t end, uint64_t began_ns, mr_error *error);

/* ---- The guard of a step (guard.c) ---- */

/* The first element that is not finite, or with nan_only the first NaN; -1 without one. In host memory; other dtypes than
 * the floating-point ones are finite. */
int64_t mr_tensor_find_nonfinite(const mr_tensor *tensor, bool nan_only);
/* "nan", "inf" or "-inf": what the element is. */
const char *mr_tensor_nonfinite_text(const mr_tensor *tensor, int64_t index);
/* Runs the calls up to the guard, keeping what an examination must not repeat; then checks the guard. */
mr_status mr_guard_run(mr_step *step, uint64_t began_ns, bool *diverged, mr_error *error);
/* After a guard that is not finite: runs the same calls again on the same data, and names in *error the first tensor that
 * is not finite. Returns MR_INVALID_ARGUMENT. */
mr_status mr_guard_examine(mr_step *step, const mr_tensor *values, mr_error *error);

#endif
