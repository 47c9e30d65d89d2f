/* Session managers: sessions that are restored from a checkpoint or initialized, and checked, without hooks or threads
 * (tf.train.SessionManager). monitored.h and supervisor.h do the same and more.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
 * mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
 * mr_output missing = mr_report_uninitialized_variables(g, (mr_variables){0}, "missing");
 * mr_saver *saver = mr_saver_new(g);
 * mr_session_manager *manager = nullptr;
 * mr_session *session = nullptr;
 * mr_status status = mr_session_manager_new(
 *     g, MR_OPTIONS(mr_session_manager_options, .ready_op = missing), &manager, &error);
 * if (status == MR_OK)
 *     status = mr_session_manager_prepare(
 *         manager, MR_OPTIONS(mr_session_prepare_options, .init_op = init, .saver = saver, .checkpoint_dir = "run"),
 *         &session, &error);
 * if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
 * mr_session_free(session);
 * mr_session_manager_free(manager);
 * mr_saver_free(saver);
 * mr_graph_free(g);
 * ```
 *
 * Options follow the rules of api.h. One thread at a time for each manager. */
#ifndef MILLRACE_SESSION_MANAGER_H
#define MILLRACE_SESSION_MANAGER_H

#include <millrace/saver.h>
#include <millrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_session_manager mr_session_manager;

typedef struct mr_session_manager_options {
    size_t size;            /* of this struct (api.h) */
    mr_node *local_init_op; /* run in each new session; default: none */
    mr_feeds local_init_feeds;
    /* A vector of the names that are not ready, as of mr_report_uninitialized_variables: the session is ready if it is
     * empty. Or the output of mr_assert_variables_initialized: one that fails because a variable is uninitialized is
     * not ready either. Default: not checked */
    mr_output ready_op;
    mr_output ready_for_local_init_op; /* the same, checked before local_init_op is run */
    double recovery_wait_secs;         /* between two attempts while waiting; above 0; default 30 */
    const mr_session_options *session; /* copied; null: the defaults */
} mr_session_manager_options;
/* graph    borrowed; must outlive the manager
 * options  null: the defaults; values of feeds are referenced
 * errors   MR_INVALID_ARGUMENT: options that are inconsistent or have no effect; those of the graph */
MR_API mr_status mr_session_manager_new(mr_graph *graph, const mr_session_manager_options *options,
                                        mr_session_manager **manager, mr_error *error);
/* The sessions stay valid. Null is allowed. */
MR_API void mr_session_manager_free(mr_session_manager *manager);

typedef struct mr_session_prepare_options {
    size_t size;      /* of this struct (api.h) */
    mr_node *init_op; /* initializes the variables if no checkpoint is restored; default: none */
    mr_feeds init_feeds;
    /* Called after init_op, if no checkpoint is restored. */
    mr_status (*init_fn)(void *context, mr_session *session, mr_error *error);
    void *init_context;
    mr_saver *saver;             /* borrowed; of the checkpoint */
    const char *checkpoint_dir;  /* restore the latest checkpoint of this directory, if there is one */
    const char *checkpoint_path; /* or: restore this checkpoint, which must exist */
    bool wait_for_checkpoint;    /* of checkpoint_dir; if there is none after max_wait_secs, initialize */
    double max_wait_secs;        /* default 7,200; below 0: no limit */
} mr_session_prepare_options;
/* Creates a session: restores a checkpoint, or runs init_op and init_fn; runs local_init_op, if
 * ready_for_local_init_op allows it; restores the state of iterators and random operators; and checks that the session
 * is ready (SessionManager.prepare_session).
 * session  owned by the caller
 * errors   MR_FAILED_PRECONDITION: not ready, with the names; or there is nothing to initialize it with */
MR_API mr_status mr_session_manager_prepare(mr_session_manager *manager, const mr_session_prepare_options *options,
                                            mr_session **session, mr_error *error);
/* Creates a session and restores a checkpoint, if there is one; without init_op and init_fn (recover_session).
 * session       owned by the caller; also if it is not recovered
 * is_recovered  receives whether a checkpoint was restored and the session is ready */
MR_API mr_status mr_session_manager_recover(mr_session_manager *manager, const mr_session_prepare_options *options,
                                            mr_session **session, bool *is_recovered, mr_error *error);
/* Creates sessions until one is ready after local_init_op (wait_for_session). A session has variables of its own, so
 * what is waited for is what local_init_op, ready_op and ready_for_local_init_op find outside: files, tables, a queue
 * of another program.
 * max_wait_secs  0 or less: no limit
 * session        owned by the caller
 * errors         MR_DEADLINE_EXCEEDED: not ready in time, with the reason */
MR_API mr_status mr_session_manager_wait(mr_session_manager *manager, double max_wait_secs, mr_session **session,
                                         mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
