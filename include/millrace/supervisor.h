/* Supervisors: a training session with threads that save checkpoints, write summaries and count steps
 * (tf.train.Supervisor).
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_constant_floats(g, MR_SHAPE(4, 1), (float[]){1, 2, 3, 4}, "x");
 * mr_output y = mr_constant_floats(g, MR_SHAPE(4, 1), (float[]){3, 5, 7, 9}, "y");
 * mr_output loss = mr_loss_mean_squared_error(g, y, mr_layer_dense(g, x, .units = 1));
 * mr_node *train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.05f), loss, mr_global_step(g).ref);
 * mr_supervisor *supervisor = nullptr;
 * mr_session *session = nullptr;
 * mr_status status = mr_supervisor_new(g, MR_OPTIONS(mr_supervisor_options, .logdir = "run"), &supervisor, &error);
 * if (status == MR_OK) status = mr_supervisor_open_session(supervisor, nullptr, &session, &error);
 * for (int i = 0; i < 200 && status == MR_OK && !mr_supervisor_should_stop(supervisor); i++)
 *     status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error);
 * if (status == MR_OK) status = mr_supervisor_save(supervisor, &error);
 * status = mr_supervisor_close_session(supervisor, status, &error);
 * if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
 * mr_supervisor_free(supervisor);
 * mr_graph_free(g);
 * ```
 *
 * Run again, the program continues from the latest checkpoint in "run". New programs are simpler with monitored.h,
 * whose hooks need no threads.
 *
 * The chief initializes the session or restores it, and writes the files of logdir: graph.pbtxt, checkpoints, and an
 * event file with the graph, the start and the end of the session, summaries and checkpoints. Other supervisors wait
 * until their session is ready. The services of the chief and the queue runners of the graph are threads of one
 * coordinator: an error of one of them stops all, and closing the session returns it. After a stop is requested, errors
 * of threads are dropped, except that of a looper's `stop`. As in TensorFlow, no checkpoint is saved at the end:
 * mr_supervisor_save does.
 *
 * Options follow the rules of api.h. */
#ifndef MILLRACE_SUPERVISOR_H
#define MILLRACE_SUPERVISOR_H

#include <millrace/monitored.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_supervisor mr_supervisor;

/* A time of 0 takes the default. */
typedef struct mr_supervisor_options {
    size_t size; /* of this struct (api.h) */
    /* Copied. What it lacks is taken from the graph's collections, the first item of each, or created, except for what
     * is excluded here: */
    const mr_scaffold *scaffold;
    bool no_init_op, no_local_init_op, no_summary, no_saver;
    bool no_ready_op; /* nor ready_for_local_init_op */
    bool no_global_step;
    mr_variable global_step; /* default: the graph's */
    bool is_worker;          /* not the chief */
    /* Of the chief, which creates it and locks it while a session is open; default: no files and no services. Workers
     * accept and ignore this and the next three options. */
    const char *logdir;
    double save_summaries_secs;      /* between summaries; default 120; -1: none, and no count of steps per second */
    double save_model_secs;          /* between checkpoints; default 600; -1: none */
    const char *checkpoint_basename; /* default "model.ckpt" */
    double recovery_wait_secs;       /* between two attempts while waiting; default 30 */
    /* For the threads, at the end; default 120; below 0: no limit. A thread that takes longer is an error,
     * MR_DEADLINE_EXCEEDED. */
    double stop_grace_secs;
    const mr_session_options *session; /* copied; null: the defaults */
} mr_supervisor_options;
/* graph    borrowed; must outlive the supervisor. Complete: nodes are added to it, then it is finalized
 * options  null: the defaults
 * errors   MR_INVALID_ARGUMENT: options that are inconsistent or have no effect; those of the graph */
MR_API mr_status mr_supervisor_new(mr_graph *graph, const mr_supervisor_options *options, mr_supervisor **supervisor,
                                   mr_error *error);
/* Closes the session if it is open. Null is allowed. */
MR_API void mr_supervisor_free(mr_supervisor *supervisor);

/* ---- The session ---- */

typedef struct mr_supervisor_session_options {
    size_t size;              /* of this struct (api.h) */
    bool wait_for_checkpoint; /* of the chief: until logdir has one; if there is none after max_wait_secs, initialize */
    double max_wait_secs;     /* for a checkpoint, or of a worker for a session; default 7,200; below 0: no limit */
    bool no_standard_services; /* neither services nor queue runners are started */
} mr_supervisor_session_options;
/* Creates the session: the chief restores the latest checkpoint of logdir, or initializes; a worker waits until a
 * session is ready without that. Writes the graph, then starts the services and the queue runners of the graph
 * (Supervisor.prepare_or_wait_for_session). An earlier request to stop is forgotten.
 * session  borrowed, until it is closed
 * errors   MR_ABORTED: another run is using logdir; MR_FAILED_PRECONDITION: the session is not ready, with the names,
 *          or another one is open; MR_DEADLINE_EXCEEDED: a worker's session was not ready in time; MR_CANCELLED: a stop
 *          was requested while waiting */
MR_API mr_status mr_supervisor_open_session(mr_supervisor *supervisor, const mr_supervisor_session_options *options,
                                            mr_session **session, mr_error *error);
/* Requests a stop, stops as mr_supervisor_stop does, and frees the session. With mr_supervisor_open_session it takes
 * the place of Supervisor.managed_session. A thread that does not stop in time is cancelled and waited for. Calls of
 * mr_supervisor_save and mr_supervisor_summary_computed that are in progress in other threads are waited for, too.
 * supervisor  null is allowed: then status is returned
 * status      of the loop. The result is the first error of the loop or a thread; MR_OUT_OF_RANGE, the end of the data,
 *             is none. Without such an error it is that of a looper's `stop` or of the end, or MR_OK
 * error       that of the loop; keeps its message if the result is `status` */
MR_API mr_status mr_supervisor_close_session(mr_supervisor *supervisor, mr_status status, mr_error *error);

/* ---- Services ---- */

/* Writes the start of the session to the event file, then starts the threads that write summaries, count steps and save
 * checkpoints, each at once and then at its interval. Called by mr_supervisor_open_session, unless it is told not to.
 * Without logdir there are none.
 * errors  MR_FAILED_PRECONDITION: not the chief, no session is open, or they have been started */
MR_API mr_status mr_supervisor_start_standard_services(mr_supervisor *supervisor, mr_error *error);
/* Starts the queue runners of a collection that are not running (queue_runners.h).
 * collection  null: MR_QUEUE_RUNNERS */
MR_API mr_status mr_supervisor_start_queue_runners(mr_supervisor *supervisor, const char *collection, mr_error *error);
/* Starts a thread that calls a function at regular times (mr_coordinator_start_looper). */
MR_API mr_status mr_supervisor_loop(mr_supervisor *supervisor, double interval_secs, const mr_looper *looper,
                                    mr_error *error);
/* Writes a summary to the event file.
 * summary  a serialized Summary
 * step     at least 0; -1: the global step of the open session
 * errors   MR_FAILED_PRECONDITION: no event file is open, or no session
 * threads  any */
MR_API mr_status mr_supervisor_summary_computed(mr_supervisor *supervisor, mr_string summary, int64_t step,
                                                mr_error *error);
/* Saves logdir/model.ckpt-STEP now, and writes it to the event file. Without a global step, STEP is a count of the
 * checkpoints, so that a process that dies leaves the one before; TensorFlow writes over logdir/model.ckpt. A save at
 * the step of the latest checkpoint writes over it (saver.h).
 * errors   MR_FAILED_PRECONDITION: not the chief, no logdir, no saver, or no session is open
 * threads  any */
MR_API mr_status mr_supervisor_save(mr_supervisor *supervisor, mr_error *error);

/* ---- Stop ---- */

/* Whether a stop has been requested, or a thread has failed. True of null.
 * threads  any */
MR_API bool mr_supervisor_should_stop(mr_supervisor *supervisor);
/* reason   an error; null: none. The first reason is kept
 * threads  any */
MR_API void mr_supervisor_request_stop(mr_supervisor *supervisor, const mr_error *reason);
/* Waits for a request to stop.
 * threads  any */
MR_API void mr_supervisor_wait_for_stop(mr_supervisor *supervisor);

typedef struct mr_supervisor_stop_options {
    size_t size;              /* of this struct (api.h) */
    bool keep_summary_writer; /* leave the event file open, without the end of the session */
    bool ignore_live_threads; /* threads that do not stop in time are no error */
} mr_supervisor_stop_options;
/* Requests a stop, waits for the threads, writes the end of the session and closes the event file. The session stays
 * open. Again, it returns the same error, and closes the event file if it was kept open. Not to be called by one of the
 * threads.
 * options  null: the defaults
 * errors   the first error of a thread, as of mr_coordinator_join; MR_DEADLINE_EXCEEDED: threads did not stop in time;
 *          those of writing */
MR_API mr_status mr_supervisor_stop(mr_supervisor *supervisor, const mr_supervisor_stop_options *options,
                                    mr_error *error);

/* ---- Parts. Borrowed. ---- */

/* For threads of the program that stop with the session. */
MR_API mr_coordinator *mr_supervisor_coordinator(mr_supervisor *supervisor);
/* The saver; null: none. One thread at a time: the services use it. */
MR_API mr_saver *mr_supervisor_saver(mr_supervisor *supervisor);
/* logdir/model.ckpt; null: the supervisor writes no files. */
MR_API const char *mr_supervisor_save_path(const mr_supervisor *supervisor);

#ifdef __cplusplus
}
#endif
#endif
