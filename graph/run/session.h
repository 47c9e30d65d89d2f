/* The inside of a session: devices, plans, and what it keeps for nodes and resources. */
#ifndef MR_GRAPH_RUN_SESSION_H
#define MR_GRAPH_RUN_SESSION_H

#include "base/pool.h"
#include "graph/plan/plan.h"
#include "graph/state/state.h"

/* Devices of one kind that a session opens. */
constexpr int MR_GPUS_MAX = MR_DEVICES_MAX;

/* Kept for a stateful node over all plans; made when a plan first has the node. */
struct mr_node_state {
    const mr_node *node;
    mr_kernel_random random;
    uint64_t invocations;
};

struct mr_session {
    mr_graph *graph;
    mr_session_options options;
    char *default_device; /* "" when options have none */
    mr_pool *pool;
    mr_device *cpu;
    mr_device *gpus[MR_GPUS_MAX]; /* opened when first asked for */

    pthread_mutex_t mutex; /* what follows */
    mr_arena arena;        /* node states */
    mr_resource_table resources;
    mr_node_state **node_states; /* by node id; null where there is none */
    int32_t node_state_capacity;
    mr_step **steps; /* buckets, chained */
    uint32_t step_bucket_count;
    uint32_t step_count;
    char *notes;
    size_t note_size_bytes, note_capacity_bytes;
    char *notes_copy; /* what mr_session_log returned last, in the arena; null when there are new notes */

    /* Atomic, without the mutex. */
    bool trace;
    mr_step *traced; /* the step that ran last while tracing */
};

/* For assertions: somebody holds the mutex, and it has to be this thread. */
static inline bool mr_mutex_is_held(pthread_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) != 0;
}

/* With the session's mutex held. */
mr_status mr_session_node_state(mr_session *session, const mr_node *node, mr_node_state **state, mr_error *error);
/* Appends one line to the notes, unless it is there already. */
[[gnu::format(printf, 2, 3)]] void mr_session_note(mr_session *session, const char *format, ...);
/* The GPU of that index, or null and why in the notes and in *error (nullable). */
mr_device *mr_session_gpu(mr_session *session, int index, mr_error *error);
/* As mr_session_run, for a training step: fetch `guard`, a scalar, must be finite. Updates of variables come after it in the
 * plan as far as edges allow, so a run that ends because of it leaves the variables as they were.
 * diverged  set when the guard is not finite; the status is then MR_INVALID_ARGUMENT, and the error names the guard and
 *           the first tensor of the run that is not finite */
mr_status mr_session_run_guarded(mr_session *session, mr_feeds feeds, mr_outputs fetches, mr_tensor *results,
                                 mr_node *const *targets, int32_t target_count, int32_t guard, bool *diverged,
                                 mr_error *error);
/* The variable that an output refers to: a reference, a handle, or the "read" of either.
 * errors  MR_INVALID_ARGUMENT when it refers to none */
mr_status mr_session_variable(mr_session *session, mr_output ref, mr_variable_state **variable, mr_error *error);

#endif
