/* Sessions that initialize or restore their variables, run hooks, and recover: tf.train.MonitoredTrainingSession,
 * MonitoredSession, SingularMonitoredSession, Scaffold.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_constant_floats(g, MR_SHAPE(4, 1), (float[]){1, 2, 3, 4}, "x");
 * mr_output y = mr_constant_floats(g, MR_SHAPE(4, 1), (float[]){3, 5, 7, 9}, "y");
 * mr_output loss = mr_loss_mean_squared_error(g, y, mr_layer_dense(g, x, .units = 1));
 * mr_node *train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.05f), loss, mr_global_step(g).ref);
 * mr_hook *stop = mr_stop_at_step_hook(.last_step = 200);
 * mr_monitored_session *session = nullptr;
 * mr_status status = mr_monitored_training_session_new(
 *     g, MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = "run", .hooks = MR_HOOKS(stop)), &session,
 *     &error);
 * while (status == MR_OK && !mr_monitored_session_should_stop(session))
 *     status = mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error);
 * status = mr_monitored_session_close(session, status, &error);
 * if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
 * mr_graph_free(g);
 * ```
 *
 * Run again, the program continues from the latest checkpoint in "run". mr_training_run (train.h) is shorter where no
 * hooks are needed.
 *
 * Start. Hooks' begin; then the nodes that the scaffold lacks are added; then the session is created, its variables are
 * restored from the latest checkpoint, or initialized if there is none, and it is checked that all are initialized;
 * then hooks' after_create_session.
 *
 * A run. Hooks' before_run, one session run with all their feeds and fetches, and hooks' after_run.
 *
 * Recovery. If a run ends with MR_ABORTED or MR_UNAVAILABLE, a new session is created in the same way, from the latest
 * checkpoint, and the run is repeated in it. After 10 recoveries without a completed run in between, the error is
 * returned; so is an error while the session is created again, and the next run tries that once more. With
 * checkpoint_path, training goes back to that checkpoint, without any checkpoint to its beginning. An error of a thread
 * of the coordinator is no reason to recover: it ends the session.
 *
 * End. MR_OUT_OF_RANGE, the end of the data, ends the session as well as a stop does. */
#ifndef MILLRACE_MONITORED_H
#define MILLRACE_MONITORED_H

#include <millrace/hooks.h>
#include <millrace/variables.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a session is made ready (tf.train.Scaffold). What is omitted is taken from the graph's collections "init_op",
 * "local_init_op", "ready_op", "ready_for_local_init_op", "summary_op" and "savers", which an imported MetaGraph may
 * have; what they lack is created, and stored there. Several items in one of them are an error. Of a saver in a
 * collection, variables, keys and options are taken; one that saves something other than variables, such as tables, is
 * replaced by the default. */
typedef struct mr_scaffold {
    size_t size;         /* of this struct (api.h) */
    mr_node *init_op;    /* default: the initializers of "variables". Not run after a restore */
    mr_feeds init_feeds; /* of init_op */
    /* Called after init_op, for example to restore some of the variables from another model. */
    mr_status (*init_fn)(void *context, mr_session *session, mr_error *error);
    void *init_context;
    mr_node *local_init_op; /* default: the initializers of "local_variables", and of tables ("table_initializer") */
    mr_output ready_op;     /* a vector of the names that are not ready; default: variables that are not initialized */
    mr_output summary;      /* default: all summaries of the graph */
    mr_saver *saver;        /* borrowed; default: one that saves everything and keeps 5 checkpoints */
    /* The same as ready_op, before local_init_op is run; default: the global variables that are not initialized. */
    mr_output ready_for_local_init_op;
    mr_feeds local_init_feeds; /* of local_init_op */
} mr_scaffold;

typedef struct mr_monitored_session mr_monitored_session;

typedef struct mr_monitored_session_options {
    size_t size;                       /* of this struct (api.h) */
    const mr_scaffold *scaffold;       /* copied; null: all defaults */
    mr_hooks hooks;                    /* owned by the session, on an error too */
    const char *checkpoint_dir;        /* restore the latest checkpoint of this directory, if there is one */
    const char *checkpoint_path;       /* or: restore this checkpoint, which must exist */
    const mr_session_options *session; /* copied; null: the defaults */
    bool no_recovery;                  /* tf.train.SingularMonitoredSession */
    /* For the threads of hooks, when the session ends; 0: 120; below 0: no limit. A thread that takes longer is an
     * error, MR_DEADLINE_EXCEEDED, but it is waited for: it may use the session. */
    double stop_grace_period_secs;
} mr_monitored_session_options;
/* graph    borrowed; must outlive the session. Complete: nodes are added to it
 * options  null: the defaults
 * errors   of the graph, of a hook, of restoring; MR_FAILED_PRECONDITION: variables that are still not initialized */
MR_API mr_status mr_monitored_session_new(mr_graph *graph, const mr_monitored_session_options *options,
                                          mr_monitored_session **session, mr_error *error);

/* A count or a time of 0 takes the default, -1 means never. Of steps and seconds, one may be given. */
typedef struct mr_monitored_training_session_options {
    size_t size;                 /* of this struct (api.h) */
    const char *checkpoint_dir;  /* of checkpoints and event files; locked until the end; default: none are written */
    const char *summary_dir;     /* of event files; default: checkpoint_dir */
    const mr_scaffold *scaffold; /* copied; null: all defaults */
    mr_hooks
        hooks; /* owned by the session, on an error too; after the ones that this function adds, as in TensorFlow */
    /* The same, before them: a NaN hook here fails before a checkpoint is saved. */
    mr_hooks chief_only_hooks;
    int64_t save_checkpoint_steps; /* with checkpoint_dir: between checkpoints; default: 600 s */
    double save_checkpoint_secs;
    int64_t save_summaries_steps; /* with a directory of event files: between summaries; default: 100 steps */
    double save_summaries_secs;
    int64_t log_step_count_steps;      /* with such a directory: between values of "global_step/sec"; default 100 */
    const mr_session_options *session; /* copied; null: the defaults */
    double stop_grace_period_secs;     /* as above */
    bool no_graph_def;                 /* with checkpoint_dir: as in mr_checkpoint_saver_hook_options */
} mr_monitored_training_session_options;
/* A session with the hooks of a training run: step counter, summary saver and checkpoint saver.
 * options  null: the defaults
 * errors   those of mr_monitored_session_new; MR_ABORTED: another run is using the directory */
MR_API mr_status mr_monitored_training_session_new(mr_graph *graph,
                                                   const mr_monitored_training_session_options *options,
                                                   mr_monitored_session **session, mr_error *error);

/* Whether a hook, the end of the data, or mr_monitored_session_request_stop asked to stop, or a thread of the
 * coordinator failed. True of null.
 * threads  any */
MR_API bool mr_monitored_session_should_stop(mr_monitored_session *session);
/* threads  any */
MR_API void mr_monitored_session_request_stop(mr_monitored_session *session);
/* As mr_session_run, with the hooks around it.
 * errors   also those of hooks; MR_FAILED_PRECONDITION: the session has been asked to stop
 * threads  one at a time */
MR_API mr_status mr_monitored_session_run(mr_monitored_session *session, mr_feeds feeds, mr_outputs fetches,
                                          mr_tensor *results, mr_node *const *targets, int32_t target_count,
                                          mr_error *error);
/* The session, for runs without hooks. It is another one after a recovery. */
MR_API mr_session *mr_monitored_session_raw(mr_monitored_session *session);
/* The global step now; -1: the graph has none. */
MR_API mr_status mr_monitored_session_global_step(mr_monitored_session *session, int64_t *step, mr_error *error);
/* Ends the session and frees it.
 * session  null, after mr_monitored_session_new failed, is allowed: then status is returned
 * status   of the loop. MR_OK and MR_OUT_OF_RANGE: hooks' end is called, and the result is MR_OK, or the first error
 *          of a hook or a thread. Otherwise hooks' end is not called, and the result is this status
 * error    that of the loop; keeps its message if the result is `status` */
MR_API mr_status mr_monitored_session_close(mr_monitored_session *session, mr_status status, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
