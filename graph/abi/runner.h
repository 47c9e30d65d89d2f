/* The internals of a runner: a graph and its session, for callers that know nodes only by name. */
#ifndef MR_GRAPH_ABI_RUNNER_H
#define MR_GRAPH_ABI_RUNNER_H

#include "graph/run/session.h"
#include <millrace/run.h>
#include <stdatomic.h>

struct mr_runner {
    atomic_int references; /* the caller's and one for each step */
    atomic_bool is_closed;
    mr_cancellation *closing; /* given to every run */
    mr_graph *graph;          /* read and extended while the session's mutex is held */
    mr_session *session;
};

/* mr_runner_new, when the operators are registered already. */
mr_status mr_runner_create(const void *graph_def, size_t size_bytes, const mr_session_options *options,
                           mr_runner **runner, mr_error *error);
mr_runner *mr_runner_ref(mr_runner *runner);
/* Finds an output, "name:0" or "name". The caller holds the session's mutex.
 * role  "feed", "fetch"; for errors */
mr_status mr_runner_find_output(const mr_runner *runner, const char *role, const char *name, mr_output *output,
                                mr_error *error);
/* Whether a run with these feeds, fetches and targets keeps no reference to a feed's memory after it. The caller holds
 * the session's mutex. False if no memory is available. */
bool mr_runner_feeds_end(const mr_graph *graph, const mr_output *feeds, int32_t feed_count, const mr_output *fetches,
                         int32_t fetch_count, mr_node *const *targets, int32_t target_count);

#endif
