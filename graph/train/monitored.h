/* A monitored session, for the files that start, run and end one. */
#ifndef MR_GRAPH_TRAIN_MONITORED_H
#define MR_GRAPH_TRAIN_MONITORED_H

#include "graph/train/hook.h"
#include "graph/train/run_directory.h"
#include "graph/train/scaffold.h"

#include <stdatomic.h>

typedef struct mr_monitored_writer_entry {
    struct mr_monitored_writer_entry *next;
    char *directory;
    mr_event_writer *events;
} mr_monitored_writer_entry;

struct mr_monitored_session {
    mr_graph *graph;
    mr_hook **hooks;
    int32_t hook_count;
    mr_ready_scaffold scaffold;
    mr_session_options session_options;
    char *session_device; /* of session_options */
    char *checkpoint_dir, *checkpoint_path;
    char *restored; /* the checkpoint that the session started from; null: none */
    mr_run_directory directory;
    mr_session *session;
    mr_coordinator *coordinator;
    mr_variable global_step; /* ref {0}: the graph has none */
    mr_monitored_writer_entry *writers;
    int64_t grace_ns;
    bool no_recovery;
    bool is_busy;    /* in a run or at its end: hooks must not run or close it */
    mr_error broken; /* why there is no session: it could not be created again */
    int recoveries;
    atomic_bool stop; /* requested, and kept when the session is created again */
};

/* mr_monitored_session_new in a directory, whose lock is taken over; null: none. Hooks are freed on an error, too. */
mr_status mr_monitored_new(mr_graph *graph, const mr_monitored_session_options *options, mr_run_directory *directory,
                           mr_monitored_session **session, mr_error *error);
/* Frees the hooks of a list that no session has taken. */
void mr_monitored_free_hooks(mr_hooks hooks);
/* Ends the session's threads, and returns their first error. */
mr_status mr_monitored_join(mr_monitored_session *session, mr_error *error);
/* Replaces the session by a new one, from the latest checkpoint. */
mr_status mr_monitored_recover(mr_monitored_session *session, mr_error *error);
void mr_monitored_free(mr_monitored_session *session);

#endif
