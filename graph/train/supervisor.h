/* A supervisor, for the files that create it, run its services and stop it. */
#ifndef MR_GRAPH_TRAIN_SUPERVISOR_H
#define MR_GRAPH_TRAIN_SUPERVISOR_H

#include "graph/train/run_directory.h"
#include "graph/train/session_create.h"
#include <millrace/supervisor.h>

#include <pthread.h>

struct mr_supervisor {
    mr_graph *graph;
    mr_ready_scaffold scaffold;
    mr_session_options session_options;
    char *session_device;    /* of session_options */
    mr_variable global_step; /* ref {0}: none */
    bool is_worker;
    char *logdir, *save_path;          /* null: no files */
    double summaries_secs, model_secs; /* INFINITY: never */
    double recovery_wait_secs;
    int64_t grace_ns;
    mr_coordinator *coordinator;

    mr_run_directory directory; /* locked while a session is open */
    mr_session *session;        /* null: none is open. Written with session_mutex locked */
    bool has_services;          /* they have been started in this session */
    double counter_time;        /* of the thread that counts steps */
    int64_t counter_step;

    /* Other threads of the program use the session between mr_supervisor_enter and mr_supervisor_leave. */
    pthread_mutex_t session_mutex;
    pthread_cond_t session_left; /* no thread uses the session any more */
    int32_t session_users;

    pthread_mutex_t writer_mutex; /* guards the writer, which threads of the program use as well */
    mr_event_writer *writer;      /* null: none is open */
    pthread_mutex_t saver_mutex;  /* guards the saver and saved_step; locked before writer_mutex */
    int64_t saved_step;           /* number in the name of the last checkpoint; -1: none */
};

/* The session, which stays open until mr_supervisor_leave. Null, with MR_FAILED_PRECONDITION: none is open.
 * threads  any */
mr_session *mr_supervisor_enter(mr_supervisor *supervisor, mr_error *error);
void mr_supervisor_leave(mr_supervisor *supervisor);
/* Opens it for other threads. */
void mr_supervisor_show_session(mr_supervisor *supervisor, mr_session *session);
/* Closes it: new calls find no session, and those in progress are waited for. Null: none was open. */
mr_session *mr_supervisor_take_session(mr_supervisor *supervisor);

/* The files of a session that has just been created from `restored` (nullable). */
mr_status mr_supervisor_open_files(mr_supervisor *supervisor, mr_session *session, const char *restored,
                                   mr_error *error);
/* Writes the end of the session, and closes the event file, if it is open. */
mr_status mr_supervisor_close_files(mr_supervisor *supervisor, mr_error *error);

#endif
