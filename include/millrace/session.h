/* Sessions: run a graph.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
 * mr_output y = mr_square(g, x);
 * mr_session *session = nullptr;
 * if (mr_session_new(g, nullptr, &session, &error) != MR_OK) return 1;
 * mr_tensor three = {0}, nine = {0};
 * if (mr_tensor_init_float(&three, 3.0f, &error) != MR_OK) return 1;
 * if (mr_session_run(session, MR_FEEDS({x, three}), MR_OUTPUTS(y), &nine, nullptr, 0, &error) != MR_OK) return 1;
 * printf("%g\n", mr_tensor_floats(&nine)[0]);
 * mr_tensor_deinit(&three);
 * mr_tensor_deinit(&nine);
 * mr_session_free(session);
 * mr_graph_free(g);
 * ```
 *
 * The first run with a set of feeds, fetches and targets creates a plan: nodes are pruned, placed on devices, folded
 * and ordered. Later runs execute this plan. An mr_step is a prepared plan: running it needs no lookup. Nodes may be
 * added to the graph between runs. */
#ifndef MILLRACE_SESSION_H
#define MILLRACE_SESSION_H

#include <millrace/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_session mr_session;

typedef struct mr_session_options {
    size_t size;               /* of this struct (api.h) */
    int threads;               /* for loops inside operators, at least 0; 0: one for each available processor */
    bool no_soft_placement;    /* fail if an operator does not support its device, instead of running it on the CPU */
    bool log_device_placement; /* report the device of each node in mr_session_log */
    const char *device;        /* for nodes that request none: "/device:GPU:0"; null: the CPU */
    int64_t timeout_ms;        /* of runs that have no time of their own; 0: no limit */
    bool read_only;            /* an operator that would write a file fails with MR_PERMISSION_DENIED */
    bool has_seed;             /* use `seed`; otherwise random operators without a seed draw one from the system */
    int64_t seed;              /* together with the name of the node, of random operators without a seed */
    bool no_optimization;      /* run every node as it is in the graph: nothing is folded, merged or fused. Results are
                                  the same up to rounding */
    bool no_recompute;         /* keep normalized activations, and sums, differences and products, until the backward
                                  pass reads them, instead of computing them again just before: more memory, and less
                                  time for convolutional networks. Same results */
} mr_session_options;

/* graph    borrowed; must outlive the session
 * options  null: the defaults
 * errors   the graph's first error; MR_INVALID_ARGUMENT: an option out of range; MR_RESOURCE_EXHAUSTED */
MR_API mr_status mr_session_new(mr_graph *graph, const mr_session_options *options, mr_session **session,
                                mr_error *error);
MR_API void mr_session_free(mr_session *session); /* null is allowed */

typedef struct mr_feed {
    mr_output output;
    /* Borrowed for the run, in host memory or on any device; referenced where needed. A handle (MR_RESOURCE) or variant
     * may be fed to the session that it was fetched from. */
    mr_tensor value;
} mr_feed;
typedef struct mr_feeds {
    const mr_feed *items;
    int32_t count;
} mr_feeds;
#define MR_FEEDS(...) MR_LIST_(mr_feeds, mr_feed, __VA_ARGS__)
#define MR_NO_FEEDS MR_VALUE_(mr_feeds, 0, 0)

/* Feeds the inputs, computes the fetches and runs the targets.
 * results  one tensor for each fetch, owned by the caller, in host memory; empty if the run fails. The session never
 *          changes a result afterwards. A result may reference memory that the session keeps or was fed: modify it only
 *          if mr_buffer_is_unique returns true, and modify a fed tensor only after its results are released. Handles
 *          and variants are released before the session is freed
 * targets  nodes that are run for their side effects; may be null with count 0
 * errors   the failed operator's, with the node's name; MR_NOT_FOUND with the name of an output that
 *          mr_graph_find_output did not find; MR_OUT_OF_RANGE at the end of an iterator's data
 * threads  any number of runs at the same time, also with the same feeds, fetches and targets. As in TensorFlow, a run
 *          that computes with a variable (VariableV2) while another one updates it may see some elements before and
 *          some after the update; a fetched reference, and every value that is read through a handle (VarHandleOp), is
 *          consistent */
MR_API mr_status mr_session_run(mr_session *session, mr_feeds feeds, mr_outputs fetches, mr_tensor *results,
                                mr_node *const *targets, int32_t target_count, mr_error *error);

/* Ends the runs of the session that are in progress with MR_CANCELLED. Later runs are not affected. Null is allowed.
 * threads  any */
MR_API void mr_session_cancel(mr_session *session);

/* Ends the runs that were given it, also later ones, with MR_CANCELLED. Owned by the caller; it must outlive them.
 * threads  any */
typedef struct mr_cancellation mr_cancellation;
MR_API mr_status mr_cancellation_new(mr_cancellation **cancellation, mr_error *error);
MR_API void mr_cancellation_free(mr_cancellation *cancellation);   /* null is allowed */
MR_API void mr_cancellation_cancel(mr_cancellation *cancellation); /* null is allowed */

/* A value that a run has computed. Borrowed for the call. */
typedef struct mr_watched {
    const char *node, *op;
    int32_t output;         /* of the node */
    const char *device;     /* "/job:localhost/replica:0/task:0/device:CPU:0" */
    int64_t time_us;        /* since 1970 */
    const mr_tensor *value; /* in host memory; of a reference, that of its variable */
} mr_watched;
/* Called with each output of each operator of a run as soon as it is computed, also in each iteration of a loop, and
 * with the constants of the graph before the run. Not with outputs of functions' operators, of Switch, Merge and the
 * like, with handles and variants, which have no elements, and with variables that are not initialized. An error ends
 * the run.
 * threads  called from any thread of the run, several at a time */
typedef struct mr_watch {
    mr_status (*see)(void *context, const mr_watched *watched, mr_error *error);
    void *context;
} mr_watch;

/* Of one run. */
typedef struct mr_run_options {
    size_t size;                   /* of this struct (api.h) */
    int64_t timeout_ms;            /* the run ends with MR_DEADLINE_EXCEEDED after this time; 0: the session's */
    mr_cancellation *cancellation; /* borrowed; null: none */
    bool is_untraced;              /* mr_session_trace_times does not report the run */
    /* Set by the run: a scalar of dtype MR_STRING with a serialized tensorflow.RunMetadata, owned by the caller; empty
     * if the run fails. Null: none. It contains:
     *   trace                    step_stats: the times and the sizes of the outputs of each call, by device, also of
     *                            calls in functions and iterations of loops, in the order in which they ended; not of
     *                            Switch, Merge and the like. At most 256 MiB of memory is used for them: the calls
     *                            after that are missing
     *   output_partition_graphs  partition_graphs: one GraphDef with the nodes that the plan has, constants computed,
     *                            nodes fused and copies between devices included */
    mr_tensor *metadata;
    bool trace;
    bool output_partition_graphs;
    /* Borrowed for the run; null: none. What the session has fused or folded is not seen: see no_optimization. */
    const mr_watch *watch;
} mr_run_options;
/* mr_session_run with options; null: none. A run that is stopped ends after the call that computes at that time; calls
 * that wait (queues, iterators) end at once. An iterator that was waiting for an element stays cancelled: later runs
 * get MR_CANCELLED from it. */
MR_API mr_status mr_session_run_with(mr_session *session, const mr_run_options *options, mr_feeds feeds,
                                     mr_outputs fetches, mr_tensor *results, mr_node *const *targets,
                                     int32_t target_count, mr_error *error);

/* A plan for one set of feeds, fetches and targets. Owned by the session.
 * threads  any number of runs at the same time */
typedef struct mr_step mr_step;
MR_API mr_status mr_session_prepare(mr_session *session, const mr_output *feeds, int32_t feed_count, mr_outputs fetches,
                                    mr_node *const *targets, int32_t target_count, mr_step **step, mr_error *error);
/* values[i] feeds feeds[i]. results as in mr_session_run. */
MR_API mr_status mr_step_run(mr_step *step, const mr_tensor *values, mr_tensor *results, mr_error *error);
MR_API mr_status mr_step_run_with(mr_step *step, const mr_run_options *options, const mr_tensor *values,
                                  mr_tensor *results, mr_error *error);

/* Clears the resources of containers (tf.container), as tf.Session.reset does: variables and lookup tables of constants
 * are then not initialized, other tables, queues, barriers, accumulators and staging areas are empty, and open, readers
 * are in their initial state, and iterators start again when they are initialized, or with their dataset. Handles and
 * steps stay valid. Iterators from mr_session_iterator do not.
 * containers  names; "localhost" is the default container, of resources that name none. Unknown names are ignored. With
 *             a count of 0, as in TensorFlow, only the default container is cleared
 * errors      MR_FAILED_PRECONDITION: a run of the session is in progress. Nothing has been cleared
 * threads     any. A run that starts before the function returns ends with MR_CANCELLED */
MR_API mr_status mr_session_reset(mr_session *session, const char *const *containers, int32_t container_count,
                                  mr_error *error);

/* Read and write variables from outside the graph. */
MR_API mr_status mr_session_read_variable(mr_session *session, mr_output ref, mr_tensor *value, mr_error *error);
MR_API mr_status mr_session_write_variable(mr_session *session, mr_output ref, const mr_tensor *value, mr_error *error);

/* Where nodes were placed and why a device was not used, one line each; empty if there are no notes. Borrowed from the
 * session; not changed by later runs.
 * threads  any */
MR_API const char *mr_session_log(const mr_session *session);

/* Execution time of each node in the last run that succeeded while tracing was enabled, for profiling. A node of
 * a loop runs several times; the first 65,536 executions of such a program are kept.
 * threads  any */
typedef struct mr_node_time {
    const char *node;
    const char *op;
    uint64_t start_ns; /* since the start of the run */
    uint64_t duration_ns;
} mr_node_time;
MR_API void mr_session_trace(mr_session *session, bool enabled);
MR_API int32_t mr_session_trace_times(const mr_session *session, mr_node_time *times, int32_t capacity);

#ifdef __cplusplus
}
#endif
#endif
