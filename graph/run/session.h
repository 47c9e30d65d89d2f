/* The internals of a session: devices, steps, and the state of nodes and resources. */
#ifndef MR_GRAPH_RUN_SESSION_H
#define MR_GRAPH_RUN_SESSION_H

#include "base/mutex.h"
#include "base/pool.h"
#include "graph/plan/plan.h"
#include "graph/state/run.h"

struct mr_session {
    mr_graph *graph;
    mr_session_options options;
    char *default_device; /* also options.device; "" if the options specify none */
    mr_pool *pool;
    mr_device *cpu;
    mr_device *gpus[MR_DEVICES_MAX]; /* opened on first use */
    mr_plan_context context;

    pthread_mutex_t mutex; /* guards what follows */
    mr_arena arena;        /* for node states */
    mr_resource_table resources;
    mr_node_states states;         /* of the graph's nodes */
    struct mr_function *functions; /* function.h */
    mr_step **steps;               /* buckets, chained */
    uint32_t step_bucket_count;
    uint32_t step_count;
    char *notes;
    size_t note_size_bytes, note_capacity_bytes;
    char *notes_copy;    /* the last result of mr_session_log, in the arena; null if there are new notes */
    mr_node_time *times; /* of the last run that was traced; owned */
    int32_t time_count;

    bool trace;           /* atomic; not guarded by the mutex */
    mr_cancellation runs; /* those in progress */
};

/* A signature, and its program. */
struct mr_step {
    mr_session *session;
    mr_arena arena;
    uint64_t hash;
    mr_step *next; /* in its bucket */
    mr_signature signature;
    pthread_mutex_t mutex; /* guards the program; held during a run with a guard */
    mr_program *program;   /* replaced when the graph has changed; runs of the old one end with it */
};

/* Reports a null argument of a public function, named "mr_session_run: results"; always MR_INVALID_ARGUMENT. */
mr_status mr_session_null(const char *argument, mr_error *error);
/* Checks a list of a public function, named "mr_session_run: feeds".
 * errors  MR_INVALID_ARGUMENT: its count is negative, or the items are null and the count is not 0 */
mr_status mr_session_check_list(const char *argument, const void *items, int32_t count, mr_error *error);
/* The state of a node of the states' graph. The caller holds the session's mutex. */
mr_status mr_session_node_state(mr_session *session, mr_node_states *states, const mr_node *node, mr_node_state **state,
                                mr_error *error);
/* Frees the states; no program uses them. */
void mr_node_states_deinit(mr_node_states *states);
/* Appends a line to the notes unless it already exists. */
[[gnu::format(printf, 2, 3)]] void mr_session_note(mr_session *session, const char *format, ...);
/* The GPU with that index, or null: the reason is added to the notes and to *error (nullable). */
mr_device *mr_session_gpu(mr_session *session, int index, mr_error *error);
/* As mr_session_run, for a training step: fetch `guard`, a scalar, must be finite. Variables are updated after it as
 * far as edges allow, so a run that ends because of the guard leaves them unchanged.
 * diverged  set if the guard is not finite; the status is then MR_INVALID_ARGUMENT, and the error names the guard and
 *           the first tensor of the run that is not finite */
mr_status mr_session_run_guarded(mr_session *session, mr_feeds feeds, mr_outputs fetches, mr_tensor *results,
                                 mr_node *const *targets, int32_t target_count, int32_t guard, bool *diverged,
                                 mr_error *error);
/* The variable that an output refers to: a reference, a handle, or the "read" of either.
 * errors  MR_INVALID_ARGUMENT if it does not refer to a variable */
mr_status mr_session_variable(mr_session *session, mr_output ref, mr_variable_state **variable, mr_error *error);

#endif
