/* Runs of a monitored session, with what hooks do before and after them, and its end. */
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/monitored.h"
#include "records/event/event.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Without a completed run in between. */
constexpr int RECOVERIES_MAX = 10;

void mr_hook_run_request_stop(mr_hook_run *run)
{
    if (run != nullptr) mr_monitored_session_request_stop(run->owner);
}

bool mr_hook_run_should_stop(const mr_hook_run *run)
{
    return run == nullptr || mr_monitored_session_should_stop(run->owner);
}

static void run_deinit(mr_hook_run *run)
{
    for (int32_t i = run->caller_feeds.count; i < run->feed_count; i++) mr_tensor_deinit(&run->feeds[i].value);
    for (int32_t i = run->caller_fetches.count; run->results != nullptr && i < run->fetch_count; i++)
        mr_tensor_deinit(&run->results[i]);
    mr_tensor_deinit(&run->metadata);
    free(run->feeds);
    free(run->fetches);
    free(run->ranges);
    free(run->results);
}

static void *copied(const void *items, int32_t count, size_t size)
{
    void *copy = calloc((size_t)count + 1, size);
    if (copy != nullptr && count > 0) memcpy(copy, items, (size_t)count * size);
    return copy;
}

static mr_status run_init(mr_hook_run *run, mr_monitored_session *s, mr_feeds feeds, mr_outputs fetches,
                          mr_error *error)
{
    *run = (mr_hook_run){.owner = s, .session = s->session, .caller_feeds = feeds, .caller_fetches = fetches};
    run->feeds = copied(feeds.items, feeds.count, sizeof *run->feeds);
    run->fetches = copied(fetches.items, fetches.count, sizeof *run->fetches);
    run->ranges = calloc((size_t)s->hook_count + 1, sizeof *run->ranges);
    if (run->feeds == nullptr || run->fetches == nullptr || run->ranges == nullptr)
        return mr_fail_memory(error, sizeof *run);
    run->feed_count = feeds.count;
    run->fetch_count = fetches.count;
    return MR_OK;
}

static mr_status run_session(mr_hook_run *run, mr_node *const *targets, int32_t target_count, mr_error *error)
{
    mr_tensor *results = calloc((size_t)run->fetch_count + 1, sizeof *results);
    if (results == nullptr) return mr_fail_memory(error, (size_t)run->fetch_count * sizeof *results);
    const mr_run_options options = {.size = sizeof options,
                                    .metadata = run->trace ? &run->metadata : nullptr,
                                    .trace = run->trace,
                                    .watch = run->watch};
    mr_status status =
        mr_session_run_with(run->session, &options, (mr_feeds){run->feeds, run->feed_count},
                            (mr_outputs){run->fetches, run->fetch_count}, results, targets, target_count, error);
    if (status == MR_OK)
        run->results = results;
    else
        free(results);
    return status;
}

/* One run with all hooks. */
static mr_status run_once(mr_hook_run *run, mr_node *const *targets, int32_t target_count, mr_error *error)
{
    const mr_monitored_session *s = run->owner;
    for (run->hook = 0; run->hook < s->hook_count; run->hook++) {
        const mr_hook *hook = s->hooks[run->hook];
        if (hook->functions.before_run != nullptr) MR_TRY(hook->functions.before_run(hook->context, run, error));
    }
    MR_TRY(run_session(run, targets, target_count, error));
    for (run->hook = 0; run->hook < s->hook_count; run->hook++) {
        const mr_hook *hook = s->hooks[run->hook];
        if (hook->functions.after_run != nullptr) MR_TRY(hook->functions.after_run(hook->context, run, error));
    }
    return MR_OK;
}

static mr_status attempt(mr_monitored_session *s, mr_feeds feeds, mr_outputs fetches, mr_tensor *results,
                         mr_node *const *targets, int32_t target_count, mr_error *error)
{
    mr_hook_run run;
    mr_status status = run_init(&run, s, feeds, fetches, error);
    if (status == MR_OK) status = run_once(&run, targets, target_count, error);
    for (int32_t i = 0; run.results != nullptr && i < fetches.count; i++)
        if (status == MR_OK)
            results[i] = run.results[i];
        else
            mr_tensor_deinit(&run.results[i]);
    run_deinit(&run);
    return status;
}

static bool may_recover(const mr_monitored_session *s, mr_status status)
{
    return (status == MR_ABORTED || status == MR_UNAVAILABLE) && !s->no_recovery && s->recoveries < RECOVERIES_MAX &&
           !atomic_load(&s->stop);
}

static mr_status fail_busy(const char *function, mr_error *error)
{
    return mr_fail(error, MR_FAILED_PRECONDITION, "%s: the session is in a run or ending; hooks cannot call this",
                   function);
}

mr_status mr_monitored_session_run(mr_monitored_session *session, mr_feeds feeds, mr_outputs fetches,
                                   mr_tensor *results, mr_node *const *targets, int32_t target_count, mr_error *error)
{
    mr_monitored_session *s = session;
    if (s == nullptr) return mr_session_null("mr_monitored_session_run: session", error);
    MR_TRY(mr_session_check_list("mr_monitored_session_run: feeds", feeds.items, feeds.count, error));
    MR_TRY(mr_session_check_list("mr_monitored_session_run: fetches", fetches.items, fetches.count, error));
    if (fetches.count > 0 && results == nullptr) return mr_session_null("mr_monitored_session_run: results", error);
    for (int32_t i = 0; i < fetches.count; i++) results[i] = (mr_tensor){0};
    if (mr_monitored_session_should_stop(s))
        return mr_fail(error, MR_FAILED_PRECONDITION, "the monitored session has been asked to stop");
    if (s->is_busy) return fail_busy("mr_monitored_session_run", error);
    s->is_busy = true;
    mr_error reason = {0};
    mr_status status = s->session != nullptr ? MR_OK : mr_monitored_recover(s, &reason);
    if (status == MR_OK) status = attempt(s, feeds, fetches, results, targets, target_count, &reason);
    while (may_recover(s, status)) {
        s->recoveries++;
        reason = (mr_error){0};
        status = mr_monitored_recover(s, &reason);
        if (status == MR_OK) status = attempt(s, feeds, fetches, results, targets, target_count, &reason);
    }
    s->is_busy = false;
    const int tries = s->recoveries;
    if (status == MR_OK) s->recoveries = 0;
    if (status == MR_OUT_OF_RANGE) mr_monitored_session_request_stop(s);
    if (status == MR_OK) return MR_OK;
    if (tries < RECOVERIES_MAX) return mr_fail(error, status, "%s", reason.message);
    return mr_fail(error, status, "%s, after %d recoveries without a completed run", reason.message, tries);
}

/* ---- End ---- */

/* Calls the end of all hooks, also if that of one fails; returns the first error. */
static mr_status end_hooks(mr_monitored_session *s, mr_error *error)
{
    mr_status status = MR_OK;
    for (int32_t i = 0; i < s->hook_count; i++) {
        const mr_hook *hook = s->hooks[i];
        if (hook->functions.end == nullptr) continue;
        mr_status ended = hook->functions.end(hook->context, s->session, status == MR_OK ? error : nullptr);
        if (status == MR_OK) status = ended;
    }
    return status;
}

static mr_status close_writers(mr_monitored_session *s, mr_error *error)
{
    mr_status status = MR_OK;
    for (mr_monitored_writer_entry *w = s->writers, *next; w != nullptr; w = next) {
        next = w->next;
        mr_status closed = mr_event_writer_close(w->events, status == MR_OK ? error : nullptr);
        if (status == MR_OK) status = closed;
        free(w->directory);
        free(w);
    }
    s->writers = nullptr;
    return status;
}

mr_status mr_monitored_session_close(mr_monitored_session *session, mr_status status, mr_error *error)
{
    mr_monitored_session *s = session;
    if (s == nullptr) return status;
    if (s->is_busy) return fail_busy("mr_monitored_session_close", error);
    s->is_busy = true;
    mr_error reason = {0};
    mr_status result = MR_OK;
    const bool ends_well = status == MR_OK || status == MR_OUT_OF_RANGE;
    if (ends_well && s->session == nullptr)
        result = mr_fail(&reason, s->broken.status, "%s", s->broken.message);
    else if (ends_well)
        result = end_hooks(s, &reason);
    mr_status joined = mr_monitored_join(s, result == MR_OK ? &reason : nullptr);
    if (result == MR_OK) result = joined;
    mr_status closed = close_writers(s, result == MR_OK ? &reason : nullptr);
    if (result == MR_OK) result = closed;
    mr_monitored_free(s);
    if (!ends_well) return status;
    return result == MR_OK ? MR_OK : mr_fail(error, result, "%s", reason.message);
}
