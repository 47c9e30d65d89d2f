/* Supervisors: created, sessions opened and closed (supervisor.h). */
#include "graph/train/supervisor.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/run/session.h"

#include <millrace/queue_runners.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Creation ---- */

static mr_status fail(mr_error *error, const char *option, const char *reason)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "supervisor: %s %s", option, reason);
}

/* An interval of a service: -1 is never. */
static mr_status read_interval(const char *name, double given, double usual, double *secs, mr_error *error)
{
    if (given < 0 && given != -1) return fail(error, name, "must be a number above 0, 0 for the default, or -1");
    return mr_session_read_secs("supervisor", name, given, usual, true, secs, error);
}

static mr_status read_files(mr_supervisor *s, const mr_supervisor_options *o, mr_error *error)
{
    const char *base = o->checkpoint_basename != nullptr ? o->checkpoint_basename : "model.ckpt";
    if (*base == '\0' || strchr(base, '/') != nullptr) return fail(error, "checkpoint_basename", "is not a file name");
    MR_TRY(read_interval("save_summaries_secs", o->save_summaries_secs, 120, &s->summaries_secs, error));
    MR_TRY(read_interval("save_model_secs", o->save_model_secs, 600, &s->model_secs, error));
    if (o->is_worker) return MR_OK;
    const char *idle = o->save_summaries_secs != 0         ? "save_summaries_secs"
                       : o->save_model_secs != 0           ? "save_model_secs"
                       : o->checkpoint_basename != nullptr ? "checkpoint_basename"
                                                           : nullptr;
    if (o->logdir == nullptr) return idle == nullptr ? MR_OK : fail(error, idle, "has no effect without logdir");
    if (o->no_saver && o->save_model_secs > 0) return fail(error, "save_model_secs", "has no effect with no_saver");
    if (o->no_summary && o->no_global_step && o->save_summaries_secs > 0)
        return fail(error, "save_summaries_secs", "has no effect with no_summary and no_global_step");
    MR_TRY(mr_run_directory_check(o->logdir, error));
    s->logdir = strdup(o->logdir);
    if (s->logdir == nullptr || asprintf(&s->save_path, "%s/%s", o->logdir, base) < 0) {
        s->save_path = nullptr;
        return mr_fail_memory(error, strlen(o->logdir));
    }
    return MR_OK;
}

static mr_status read_step(mr_supervisor *s, const mr_supervisor_options *o, mr_error *error)
{
    const mr_node *node = o->global_step.ref.node;
    if (node != nullptr && o->no_global_step) return fail(error, "global_step", "excludes no_global_step");
    if (node != nullptr && (mr_node_graph(node) != s->graph || o->global_step.value.node == nullptr))
        return fail(error, "global_step", "is not a variable of the graph");
    if (node != nullptr)
        s->global_step = o->global_step;
    else if (!o->no_global_step)
        s->global_step = mr_train_find_global_step(s->graph);
    return mr_train_check_global_step(s->global_step, error);
}

static mr_status init_supervisor(mr_supervisor *s, const mr_supervisor_options *given, mr_error *error)
{
    double grace;
    mr_supervisor_options o;
    MR_TRY(MR_OPTIONS_READ(mr_supervisor_options, &o, given, error));
    MR_TRY(mr_graph_status(s->graph, error));
    s->is_worker = o.is_worker;
    MR_TRY(mr_session_read_secs("supervisor", "recovery_wait_secs", o.recovery_wait_secs, 30, false,
                                &s->recovery_wait_secs, error));
    MR_TRY(mr_session_read_secs("supervisor", "stop_grace_secs", o.stop_grace_secs, 120, true, &grace, error));
    s->grace_ns = grace > 9e9 ? -1 : (int64_t)(grace * 1e9);
    MR_TRY(read_files(s, &o, error));
    MR_TRY(read_step(s, &o, error));
    MR_TRY(mr_session_options_copy(o.session, &s->session_options, &s->session_device, error));
    MR_TRY(mr_coordinator_new(&s->coordinator, error));
    const mr_scaffold_omissions omit = {.init_op = o.no_init_op,
                                        .local_init_op = o.no_local_init_op,
                                        .ready_op = o.no_ready_op,
                                        .summary = o.no_summary,
                                        .saver = o.no_saver,
                                        .takes_first = true};
    MR_TRY(mr_scaffold_finalize(&s->scaffold, s->graph, o.scaffold, omit, error));
    mr_graph_finalize(s->graph);
    return MR_OK;
}

mr_status mr_supervisor_new(mr_graph *graph, const mr_supervisor_options *options, mr_supervisor **supervisor,
                            mr_error *error)
{
    if (supervisor == nullptr) return mr_session_null("mr_supervisor_new: supervisor", error);
    *supervisor = nullptr;
    if (graph == nullptr) return mr_session_null("mr_supervisor_new: graph", error);
    mr_supervisor *s = calloc(1, sizeof *s);
    if (s == nullptr) return mr_fail_memory(error, sizeof *s);
    s->graph = graph;
    pthread_mutex_init(&s->session_mutex, nullptr);
    pthread_cond_init(&s->session_left, nullptr);
    pthread_mutex_init(&s->writer_mutex, nullptr);
    pthread_mutex_init(&s->saver_mutex, nullptr);
    mr_status status = init_supervisor(s, options, error);
    if (status == MR_OK)
        *supervisor = s;
    else
        mr_supervisor_free(s);
    return status;
}

void mr_supervisor_free(mr_supervisor *supervisor)
{
    mr_supervisor *s = supervisor;
    if (s == nullptr) return;
    (void)mr_supervisor_close_session(s, MR_OK, nullptr);
    mr_coordinator_free(s->coordinator);
    mr_scaffold_deinit(&s->scaffold);
    pthread_mutex_destroy(&s->session_mutex);
    pthread_cond_destroy(&s->session_left);
    pthread_mutex_destroy(&s->writer_mutex);
    pthread_mutex_destroy(&s->saver_mutex);
    free(s->session_device);
    free(s->logdir);
    free(s->save_path);
    free(s);
}

/* ---- Open ---- */

static mr_status create_session(mr_supervisor *s, const mr_supervisor_session_options *o, mr_session **session,
                                mr_error *error)
{
    char *restored = nullptr;
    const bool restores = s->logdir != nullptr && s->scaffold.saver != nullptr;
    mr_session_source source = {.directory = restores ? s->logdir : nullptr,
                                .waits = o->wait_for_checkpoint,
                                .retry_secs = s->recovery_wait_secs,
                                .coordinator = s->coordinator};
    if (o->wait_for_checkpoint && (s->is_worker || !restores))
        return fail(error, "wait_for_checkpoint",
                    s->is_worker ? "has no effect on a worker" : "has no effect without logdir and a saver");
    if (o->max_wait_secs != 0 && !s->is_worker && !o->wait_for_checkpoint)
        return fail(error, "max_wait_secs", "has no effect without wait_for_checkpoint");
    MR_TRY(mr_session_read_secs("supervisor", "max_wait_secs", o->max_wait_secs, 7200, true, &source.max_wait_secs,
                                error));
    if (s->is_worker) return mr_session_wait(s->graph, &s->session_options, &s->scaffold, &source, session, error);
    if (source.waits) MR_TRY(mr_session_source_find(&source, &restored, error)); /* of a run that has the lock */
    free(restored);
    source.waits = false;
    if (s->logdir != nullptr) MR_TRY(mr_run_directory_open(s->logdir, &s->directory, error));
    MR_TRY(mr_session_create(s->graph, &s->session_options, &s->scaffold, &source, session, &restored, error));
    mr_status status = mr_supervisor_open_files(s, *session, restored, error);
    free(restored);
    return status;
}

static mr_status open_session(mr_supervisor *s, const mr_supervisor_session_options *o, mr_error *error)
{
    mr_session *session = nullptr;
    mr_status status = create_session(s, o, &session, error);
    if (status != MR_OK) {
        mr_session_free(session);
        return status;
    }
    mr_supervisor_show_session(s, session);
    if (o->no_standard_services) return MR_OK;
    if (!s->is_worker) MR_TRY(mr_supervisor_start_standard_services(s, error));
    return mr_supervisor_start_queue_runners(s, nullptr, error);
}

mr_status mr_supervisor_open_session(mr_supervisor *supervisor, const mr_supervisor_session_options *options,
                                     mr_session **session, mr_error *error)
{
    mr_supervisor *s = supervisor;
    mr_supervisor_session_options o;
    if (session == nullptr) return mr_session_null("mr_supervisor_open_session: session", error);
    *session = nullptr;
    if (s == nullptr) return mr_session_null("mr_supervisor_open_session: supervisor", error);
    MR_TRY(MR_OPTIONS_READ(mr_supervisor_session_options, &o, options, error));
    if (s->session != nullptr)
        return mr_fail(error, MR_FAILED_PRECONDITION, "the supervisor has an open session; close it first");
    mr_coordinator_clear_stop(s->coordinator);
    mr_status status = open_session(s, &o, error);
    if (status == MR_OK) return *session = s->session, MR_OK;
    mr_status closed = mr_supervisor_close_session(s, status, error);
    return closed != MR_OK ? closed : status;
}

mr_status mr_supervisor_start_queue_runners(mr_supervisor *supervisor, const char *collection, mr_error *error)
{
    if (supervisor == nullptr) return mr_session_null("mr_supervisor_start_queue_runners: supervisor", error);
    if (supervisor->session == nullptr)
        return mr_fail(error, MR_FAILED_PRECONDITION, "the supervisor has no open session");
    return mr_start_queue_runners(supervisor->session, supervisor->coordinator, collection, nullptr, error);
}

mr_status mr_supervisor_loop(mr_supervisor *supervisor, double interval_secs, const mr_looper *looper, mr_error *error)
{
    if (supervisor == nullptr) return mr_session_null("mr_supervisor_loop: supervisor", error);
    return mr_coordinator_start_looper(supervisor->coordinator, interval_secs, looper, error);
}

/* ---- Stop ---- */

bool mr_supervisor_should_stop(mr_supervisor *supervisor)
{
    return supervisor == nullptr || mr_coordinator_should_stop(supervisor->coordinator);
}

void mr_supervisor_request_stop(mr_supervisor *supervisor, const mr_error *reason)
{
    if (supervisor != nullptr) mr_coordinator_request_stop(supervisor->coordinator, reason);
}

void mr_supervisor_wait_for_stop(mr_supervisor *supervisor)
{
    if (supervisor != nullptr) (void)mr_coordinator_wait_for_stop(supervisor->coordinator, -1);
}

mr_status mr_supervisor_stop(mr_supervisor *supervisor, const mr_supervisor_stop_options *options, mr_error *error)
{
    mr_supervisor *s = supervisor;
    mr_supervisor_stop_options o;
    if (s == nullptr) return mr_session_null("mr_supervisor_stop: supervisor", error);
    MR_TRY(MR_OPTIONS_READ(mr_supervisor_stop_options, &o, options, error));
    mr_coordinator_request_stop(s->coordinator, nullptr);
    mr_status status = mr_coordinator_join(s->coordinator, s->grace_ns, error);
    if (status == MR_DEADLINE_EXCEEDED && o.ignore_live_threads) status = MR_OK;
    if (o.keep_summary_writer) return status;
    mr_status closed = mr_supervisor_close_files(s, status == MR_OK ? error : nullptr);
    return status != MR_OK ? status : closed;
}

mr_status mr_supervisor_close_session(mr_supervisor *supervisor, mr_status status, mr_error *error)
{
    mr_supervisor *s = supervisor;
    mr_error reason = {0};
    if (s == nullptr || s->coordinator == nullptr) return status;
    if (status != MR_OK) (void)mr_fail(&reason, status, "%s", error != nullptr ? error->message : "");
    mr_coordinator_request_stop(s->coordinator, status != MR_OK ? &reason : nullptr);
    reason = (mr_error){0};
    mr_status stopped = mr_supervisor_stop(s, nullptr, &reason);
    if (stopped != MR_OK) mr_session_cancel(s->session); /* threads may still be waiting in it */
    (void)mr_coordinator_join(s->coordinator, -1, nullptr);
    mr_session_free(mr_supervisor_take_session(s));
    s->has_services = false;
    mr_run_directory_close(&s->directory);
    const bool is_end = status == MR_OK || status == MR_OUT_OF_RANGE;
    if (stopped == MR_OK) return is_end ? MR_OK : status;
    return mr_fail(error, stopped, "%s", reason.message);
}

/* ---- Parts ---- */

mr_coordinator *mr_supervisor_coordinator(mr_supervisor *supervisor)
{
    return supervisor != nullptr ? supervisor->coordinator : nullptr;
}

mr_saver *mr_supervisor_saver(mr_supervisor *supervisor)
{
    return supervisor != nullptr ? supervisor->scaffold.saver : nullptr;
}

const char *mr_supervisor_save_path(const mr_supervisor *supervisor)
{
    return supervisor != nullptr ? supervisor->save_path : nullptr;
}
