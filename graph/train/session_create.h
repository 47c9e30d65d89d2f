/* Sessions of training programs, for monitored sessions, session managers and supervisors: created from the latest
 * checkpoint, or initialized, or waited for. */
#ifndef MR_GRAPH_TRAIN_SESSION_CREATE_H
#define MR_GRAPH_TRAIN_SESSION_CREATE_H

#include "graph/train/scaffold.h"

/* Where a session starts from: the latest checkpoint of a directory, or a checkpoint; both null: neither. */
typedef struct mr_session_source {
    const char *directory, *path;
    bool waits;           /* until the directory has a checkpoint */
    double max_wait_secs; /* INFINITY: no limit */
    double retry_secs;
    mr_coordinator *coordinator; /* a stop ends the waiting; null: none */
} mr_session_source;
/* Finds the checkpoint. Null: there is none. Owned: free()
 * errors  MR_CANCELLED: a stop was requested */
mr_status mr_session_source_find(const mr_session_source *source, char **checkpoint, mr_error *error);

/* Creates a session, restores or initializes its variables, and checks that it is ready.
 * restored  receives the checkpoint, or null; free() */
mr_status mr_session_create(mr_graph *graph, const mr_session_options *options, const mr_ready_scaffold *scaffold,
                            const mr_session_source *source, mr_session **session, char **restored, mr_error *error);
/* Creates sessions, and completes them without initialization, until one is ready.
 * source  how long to wait
 * errors  MR_DEADLINE_EXCEEDED: none was ready in time; MR_CANCELLED: a stop was requested */
mr_status mr_session_wait(mr_graph *graph, const mr_session_options *options, const mr_ready_scaffold *scaffold,
                          const mr_session_source *source, mr_session **session, mr_error *error);

/* Copies options (nullable). device: owns the copy's device; free() */
mr_status mr_session_options_copy(const mr_session_options *given, mr_session_options *copy, char **device,
                                  mr_error *error);
/* Reads an option in seconds. 0: the default; negative: INFINITY if is_limit, otherwise an error, as is a NaN.
 * what, name  for the message: "supervisor", "recovery_wait_secs" */
mr_status mr_session_read_secs(const char *what, const char *name, double given, double usual, bool is_limit,
                               double *secs, mr_error *error);

#endif
