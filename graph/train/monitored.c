/* Monitored sessions: made ready, run with hooks, recovered, ended. */
#include "graph/train/monitored.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/session_create.h"
#include "records/event/event.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- For hooks ---- */

mr_graph *mr_monitored_graph(mr_monitored_session *session)
{
    return session->graph;
}

mr_saver *mr_monitored_saver(mr_monitored_session *session)
{
    return session->scaffold.saver;
}

mr_output mr_monitored_summary(mr_monitored_session *session)
{
    return session->scaffold.summary;
}

mr_status mr_monitored_require_step(mr_monitored_session *session, const char *hook, mr_error *error)
{
    if (session->global_step.ref.node != nullptr) return MR_OK;
    return mr_fail(error, MR_FAILED_PRECONDITION, "%s needs the graph's global step: call mr_global_step first", hook);
}

mr_status mr_monitored_writer(mr_monitored_session *session, const char *directory, mr_event_writer **events,
                              mr_error *error)
{
    for (const mr_monitored_writer_entry *w = session->writers; w != nullptr; w = w->next)
        if (strcmp(w->directory, directory) == 0) return *events = w->events, MR_OK;
    mr_monitored_writer_entry *w = calloc(1, sizeof *w);
    if (w != nullptr) w->directory = strdup(directory);
    mr_status status = w == nullptr || w->directory == nullptr ? mr_fail_memory(error, sizeof *w)
                                                               : mr_event_writer_open(directory, &w->events, error);
    if (status != MR_OK) {
        if (w != nullptr) free(w->directory);
        free(w);
        return status;
    }
    w->next = session->writers;
    session->writers = w;
    *events = w->events;
    return MR_OK;
}

bool mr_monitored_wait(mr_monitored_session *session, int64_t wait_ns)
{
    return mr_coordinator_wait_for_stop(session->coordinator, wait_ns) || mr_monitored_session_should_stop(session);
}

bool mr_monitored_has_restored(const mr_monitored_session *session, const char *path)
{
    return session->restored != nullptr && strcmp(session->restored, path) == 0;
}

mr_status mr_monitored_session_global_step(mr_monitored_session *session, int64_t *step, mr_error *error)
{
    if (step == nullptr) return mr_session_null("mr_monitored_session_global_step: step", error);
    *step = -1;
    if (session == nullptr) return mr_session_null("mr_monitored_session_global_step: session", error);
    if (session->session == nullptr) return mr_fail(error, session->broken.status, "%s", session->broken.message);
    return mr_train_read_global_step(session->session, session->global_step, step, error);
}

/* ---- Stop ---- */

void mr_monitored_session_request_stop(mr_monitored_session *session)
{
    if (session == nullptr) return;
    atomic_store(&session->stop, true);
    mr_coordinator_request_stop(session->coordinator, nullptr);
}

bool mr_monitored_session_should_stop(mr_monitored_session *session)
{
    return session == nullptr || atomic_load(&session->stop) || mr_coordinator_should_stop(session->coordinator);
}

mr_session *mr_monitored_session_raw(mr_monitored_session *session)
{
    return session != nullptr ? session->session : nullptr;
}

/* ---- Start ---- */

static mr_status create_session(mr_monitored_session *s, mr_error *error)
{
    assert(s->session == nullptr);
    const mr_session_source source = {.directory = s->checkpoint_dir, .path = s->checkpoint_path};
    free(s->restored);
    MR_TRY(mr_session_create(s->graph, &s->session_options, &s->scaffold, &source, &s->session, &s->restored, error));
    for (int32_t i = 0; i < s->hook_count; i++) {
        const mr_hook *hook = s->hooks[i];
        if (hook->functions.after_create_session != nullptr)
            MR_TRY(hook->functions.after_create_session(hook->context, s->session, s->coordinator, error));
    }
    return MR_OK;
}

mr_status mr_monitored_join(mr_monitored_session *s, mr_error *error)
{
    mr_status status = MR_OK;
    if (s->coordinator != nullptr) {
        mr_coordinator_request_stop(s->coordinator, nullptr);
        status = mr_coordinator_join(s->coordinator, s->grace_ns, error);
    }
    /* Threads that have not ended in time use the session. */
    if (status == MR_DEADLINE_EXCEEDED && s->session != nullptr) mr_session_cancel(s->session);
    return status;
}

/* Frees the session when the threads of its hooks have ended.
 * errors  MR_DEADLINE_EXCEEDED: they have not */
static mr_status drop_session(mr_monitored_session *s, mr_error *error)
{
    mr_error ended = {0}; /* of a thread: the session is dropped because of another error */
    mr_status status = mr_monitored_join(s, &ended);
    if (status == MR_DEADLINE_EXCEEDED) return mr_fail(error, status, "%s", ended.message);
    mr_session_free(s->session);
    s->session = nullptr;
    mr_coordinator_clear_stop(s->coordinator);
    if (atomic_load(&s->stop)) mr_coordinator_request_stop(s->coordinator, nullptr);
    return MR_OK;
}

mr_status mr_monitored_recover(mr_monitored_session *s, mr_error *error)
{
    MR_TRY(drop_session(s, error));
    s->broken = (mr_error){0};
    mr_status status = create_session(s, &s->broken);
    if (status == MR_OK) return MR_OK;
    (void)drop_session(s, nullptr); /* the next run tries again */
    return mr_fail(error, status, "%s", s->broken.message);
}

static mr_status begin_hooks(mr_monitored_session *s, mr_error *error)
{
    for (int32_t i = 0; i < s->hook_count; i++) {
        const mr_hook *hook = s->hooks[i];
        if (hook->functions.begin != nullptr) MR_TRY(hook->functions.begin(hook->context, s->graph, error));
    }
    return mr_graph_status(s->graph, error);
}

/* Takes the hooks: from here on the session frees them. */
static mr_status take_hooks(mr_monitored_session *s, mr_hooks hooks, mr_error *error)
{
    mr_status status = MR_OK;
    if (hooks.count > 0) s->hooks = calloc((size_t)hooks.count, sizeof(mr_hook *));
    if (hooks.count > 0 && s->hooks == nullptr) {
        mr_monitored_free_hooks(hooks);
        return mr_fail_memory(error, (size_t)hooks.count * sizeof(mr_hook *));
    }
    for (int32_t i = 0; i < hooks.count; i++) {
        mr_hook *hook = hooks.items[i];
        if (hook == nullptr) {
            if (status == MR_OK)
                status = mr_fail(error, MR_INVALID_ARGUMENT, "hook %d is null: it could not be created", (int)i);
        } else if (hook->owner != nullptr) {
            if (status == MR_OK)
                status = mr_fail(error, MR_INVALID_ARGUMENT, "hook %d is already in use by a session", (int)i);
        } else {
            hook->owner = s;
            s->hooks[s->hook_count++] = hook;
            if (status == MR_OK && hook->error.status != MR_OK)
                status = mr_fail(error, hook->error.status, "%s", hook->error.message);
        }
    }
    return status;
}

static mr_status copy_text(const char *text, char **copy, mr_error *error)
{
    *copy = text != nullptr ? strdup(text) : nullptr;
    return text != nullptr && *copy == nullptr ? mr_fail_memory(error, strlen(text)) : MR_OK;
}

static mr_status read_options(mr_monitored_session *s, const mr_monitored_session_options *o, mr_error *error)
{
    if (o->checkpoint_dir != nullptr && o->checkpoint_path != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "monitored session: only one of checkpoint_dir and checkpoint_path may be given");
    if (isnan(o->stop_grace_period_secs))
        return mr_fail(error, MR_INVALID_ARGUMENT, "monitored session: stop_grace_period_secs is not a number");
    const double grace = o->stop_grace_period_secs == 0 ? 120 : o->stop_grace_period_secs;
    s->grace_ns = grace < 0 || grace > 9e9 ? -1 : (int64_t)(grace * 1e9);
    s->no_recovery = o->no_recovery;
    MR_TRY(mr_session_options_copy(o->session, &s->session_options, &s->session_device, error));
    if (o->checkpoint_dir != nullptr) MR_TRY(mr_run_directory_check(o->checkpoint_dir, error));
    MR_TRY(copy_text(o->checkpoint_dir, &s->checkpoint_dir, error));
    return copy_text(o->checkpoint_path, &s->checkpoint_path, error);
}

static mr_status start(mr_monitored_session *s, const mr_monitored_session_options *o, mr_error *error)
{
    MR_TRY(mr_coordinator_new(&s->coordinator, error));
    MR_TRY(read_options(s, o, error));
    MR_TRY(mr_graph_status(s->graph, error));
    s->global_step = mr_train_find_global_step(s->graph);
    MR_TRY(mr_train_check_global_step(s->global_step, error));
    MR_TRY(begin_hooks(s, error));
    MR_TRY(mr_scaffold_finalize(&s->scaffold, s->graph, o->scaffold, (mr_scaffold_omissions){0}, error));
    return create_session(s, error);
}

void mr_monitored_free(mr_monitored_session *s)
{
    mr_coordinator_free(s->coordinator);
    for (mr_monitored_writer_entry *w = s->writers, *next; w != nullptr; w = next) {
        next = w->next;
        (void)mr_event_writer_close(w->events, nullptr);
        free(w->directory);
        free(w);
    }
    for (int32_t i = 0; i < s->hook_count; i++) mr_hook_free(s->hooks[i]);
    free(s->hooks);
    mr_session_free(s->session);
    mr_scaffold_deinit(&s->scaffold);
    mr_run_directory_close(&s->directory);
    free(s->session_device);
    free(s->checkpoint_dir);
    free(s->checkpoint_path);
    free(s->restored);
    free(s);
}

void mr_monitored_free_hooks(mr_hooks hooks)
{
    for (int32_t i = 0; hooks.items != nullptr && i < hooks.count; i++) mr_hook_free(hooks.items[i]);
}

mr_status mr_monitored_new(mr_graph *graph, const mr_monitored_session_options *o, mr_run_directory *directory,
                           mr_monitored_session **session, mr_error *error)
{
    mr_monitored_session *s = calloc(1, sizeof *s);
    if (s == nullptr) {
        mr_monitored_free_hooks(o->hooks);
        return mr_fail_memory(error, sizeof *s);
    }
    s->graph = graph;
    if (directory != nullptr) {
        s->directory = *directory;
        *directory = (mr_run_directory){0};
    }
    mr_status status = take_hooks(s, o->hooks, error);
    if (status == MR_OK) status = start(s, o, error);
    if (status != MR_OK) {
        mr_monitored_free(s);
        return status;
    }
    *session = s;
    return MR_OK;
}

mr_status mr_monitored_session_new(mr_graph *graph, const mr_monitored_session_options *options,
                                   mr_monitored_session **session, mr_error *error)
{
    mr_monitored_session_options own;
    mr_status status = MR_OPTIONS_READ(mr_monitored_session_options, &own, options, error);
    if (status == MR_OK && graph == nullptr) status = mr_session_null("mr_monitored_session_new: graph", error);
    if (status == MR_OK)
        status = mr_session_check_list("monitored session: hooks", own.hooks.items, own.hooks.count, error);
    if (session == nullptr)
        status = mr_session_null("mr_monitored_session_new: session", error);
    else
        *session = nullptr;
    if (status == MR_OK && session != nullptr) return mr_monitored_new(graph, &own, nullptr, session, error);
    mr_monitored_free_hooks(own.hooks);
    return status;
}
