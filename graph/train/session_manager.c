/* Session managers (session_manager.h). */
#include <millrace/session_manager.h>

#include "base/options.h"
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/session_create.h"

#include <math.h>
#include <stdlib.h>

struct mr_session_manager {
    mr_graph *graph;
    mr_ready_scaffold ready; /* without init_op, init_fn and saver */
    mr_session_options session_options;
    char *session_device; /* of session_options */
    double recovery_wait_secs;
};

static mr_status init_manager(mr_session_manager *m, const mr_session_manager_options *given, mr_error *error)
{
    mr_session_manager_options o;
    MR_TRY(MR_OPTIONS_READ(mr_session_manager_options, &o, given, error));
    MR_TRY(mr_graph_status(m->graph, error));
    if (o.ready_for_local_init_op.node != nullptr && o.local_init_op == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "session manager: ready_for_local_init_op has no effect without local_init_op");
    MR_TRY(mr_session_read_secs("session manager", "recovery_wait_secs", o.recovery_wait_secs, 30, false,
                                &m->recovery_wait_secs, error));
    MR_TRY(mr_session_options_copy(o.session, &m->session_options, &m->session_device, error));
    const mr_scaffold parts = {.local_init_op = o.local_init_op,
                               .local_init_feeds = o.local_init_feeds,
                               .ready_op = o.ready_op,
                               .ready_for_local_init_op = o.ready_for_local_init_op};
    return mr_scaffold_copy(&m->ready, m->graph, &parts, "session manager", error);
}

mr_status mr_session_manager_new(mr_graph *graph, const mr_session_manager_options *options,
                                 mr_session_manager **manager, mr_error *error)
{
    if (manager == nullptr) return mr_session_null("mr_session_manager_new: manager", error);
    *manager = nullptr;
    if (graph == nullptr) return mr_session_null("mr_session_manager_new: graph", error);
    mr_session_manager *m = calloc(1, sizeof *m);
    if (m == nullptr) return mr_fail_memory(error, sizeof *m);
    m->graph = graph;
    mr_status status = init_manager(m, options, error);
    if (status == MR_OK)
        *manager = m;
    else
        mr_session_manager_free(m);
    return status;
}

void mr_session_manager_free(mr_session_manager *manager)
{
    if (manager == nullptr) return;
    mr_scaffold_deinit(&manager->ready);
    free(manager->session_device);
    free(manager);
}

/* ---- One session ---- */

typedef struct request {
    mr_session_prepare_options o;
    mr_session_source source;
    mr_ready_scaffold scaffold; /* the manager's, with what the options add */
} request;

static mr_status fail(mr_error *error, const char *option, const char *reason)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "session manager: %s %s", option, reason);
}

static mr_status read_source(const mr_session_manager *m, request *r, mr_error *error)
{
    const mr_session_prepare_options *o = &r->o;
    const char *checkpoint = o->checkpoint_dir != nullptr    ? "checkpoint_dir"
                             : o->checkpoint_path != nullptr ? "checkpoint_path"
                                                             : nullptr;
    if (o->checkpoint_dir != nullptr && o->checkpoint_path != nullptr)
        return fail(error, "checkpoint_dir", "excludes checkpoint_path");
    if (checkpoint != nullptr && o->saver == nullptr) return fail(error, checkpoint, "has no effect without saver");
    if (checkpoint == nullptr && o->saver != nullptr)
        return fail(error, "saver", "has no effect without checkpoint_dir or checkpoint_path");
    if (o->wait_for_checkpoint && o->checkpoint_dir == nullptr)
        return fail(error, "wait_for_checkpoint", "has no effect without checkpoint_dir");
    if (o->max_wait_secs != 0 && !o->wait_for_checkpoint)
        return fail(error, "max_wait_secs", "has no effect without wait_for_checkpoint");
    r->source = (mr_session_source){.directory = o->checkpoint_dir,
                                    .path = o->checkpoint_path,
                                    .waits = o->wait_for_checkpoint,
                                    .retry_secs = m->recovery_wait_secs};
    return mr_session_read_secs("session manager", "max_wait_secs", o->max_wait_secs, 7200, true,
                                &r->source.max_wait_secs, error);
}

static mr_status read_request(const mr_session_manager *m, const mr_session_prepare_options *given, request *r,
                              mr_error *error)
{
    *r = (request){0};
    if (m == nullptr) return mr_session_null("session manager", error);
    MR_TRY(MR_OPTIONS_READ(mr_session_prepare_options, &r->o, given, error));
    MR_TRY(read_source(m, r, error));
    MR_TRY(mr_graph_status(m->graph, error));
    const mr_scaffold all = {.init_op = r->o.init_op,
                             .init_feeds = r->o.init_feeds,
                             .init_fn = r->o.init_fn,
                             .init_context = r->o.init_context,
                             .saver = r->o.saver,
                             .local_init_op = m->ready.local_init_op,
                             .local_init_feeds = {m->ready.local_init_feeds, m->ready.local_init_feed_count},
                             .ready_op = m->ready.ready_op,
                             .ready_for_local_init_op = m->ready.ready_for_local_init_op};
    return mr_scaffold_copy(&r->scaffold, m->graph, &all, "session manager", error);
}

mr_status mr_session_manager_prepare(mr_session_manager *manager, const mr_session_prepare_options *options,
                                     mr_session **session, mr_error *error)
{
    request r;
    char *restored = nullptr;
    if (session == nullptr) return mr_session_null("mr_session_manager_prepare: session", error);
    *session = nullptr;
    mr_status status = read_request(manager, options, &r, error);
    if (status == MR_OK)
        status = mr_session_create(manager->graph, &manager->session_options, &r.scaffold, &r.source, session,
                                   &restored, error);
    free(restored);
    mr_scaffold_deinit(&r.scaffold);
    return status;
}

static mr_status recover(request *r, mr_session *session, bool *is_recovered, mr_error *error)
{
    char *checkpoint = nullptr;
    bool is_ready = false;
    mr_error reason = {0};
    MR_TRY(mr_session_source_find(&r->source, &checkpoint, error));
    mr_status status = MR_OK;
    if (checkpoint != nullptr)
        status = mr_saver_restore_variables(r->scaffold.saver, session, checkpoint, error);
    else
        r->scaffold.ready_op = (mr_output){0}; /* what is not restored need not be ready */
    if (status == MR_OK)
        status = mr_scaffold_complete(&r->scaffold, session, checkpoint,
                                      checkpoint != nullptr ? "the restore" : nullptr, &is_ready, &reason, error);
    *is_recovered = status == MR_OK && is_ready && checkpoint != nullptr;
    free(checkpoint);
    return status;
}

mr_status mr_session_manager_recover(mr_session_manager *manager, const mr_session_prepare_options *options,
                                     mr_session **session, bool *is_recovered, mr_error *error)
{
    request r;
    mr_session *created = nullptr;
    if (session == nullptr) return mr_session_null("mr_session_manager_recover: session", error);
    *session = nullptr;
    if (is_recovered == nullptr) return mr_session_null("mr_session_manager_recover: is_recovered", error);
    *is_recovered = false;
    mr_status status = read_request(manager, options, &r, error);
    if (status == MR_OK && (r.o.init_op != nullptr || r.o.init_fn != nullptr))
        status = fail(error, r.o.init_op != nullptr ? "init_op" : "init_fn", "has no effect in a recovery");
    if (status == MR_OK) status = mr_session_new(manager->graph, &manager->session_options, &created, error);
    if (status == MR_OK) status = recover(&r, created, is_recovered, error);
    if (status == MR_OK)
        *session = created;
    else
        mr_session_free(created);
    mr_scaffold_deinit(&r.scaffold);
    return status;
}

mr_status mr_session_manager_wait(mr_session_manager *manager, double max_wait_secs, mr_session **session,
                                  mr_error *error)
{
    if (session == nullptr) return mr_session_null("mr_session_manager_wait: session", error);
    *session = nullptr;
    if (manager == nullptr) return mr_session_null("mr_session_manager_wait: manager", error);
    mr_session_source source = {.retry_secs = manager->recovery_wait_secs};
    MR_TRY(mr_session_read_secs("session manager", "max_wait_secs", max_wait_secs, INFINITY, true,
                                &source.max_wait_secs, error));
    return mr_session_wait(manager->graph, &manager->session_options, &manager->ready, &source, session, error);
}
