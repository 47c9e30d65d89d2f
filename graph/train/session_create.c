/* Sessions of training programs are created: from a checkpoint that is found or waited for, or initialized. */
#include "graph/train/session_create.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/train/hook.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of one sleep. */
constexpr double SLEEP_SECS_MAX = 1e6;

mr_status mr_session_options_copy(const mr_session_options *given, mr_session_options *copy, char **device,
                                  mr_error *error)
{
    *device = nullptr;
    MR_TRY(MR_OPTIONS_READ(mr_session_options, copy, given, error));
    copy->size = sizeof *copy;
    if (copy->device == nullptr) return MR_OK;
    *device = strdup(copy->device);
    copy->device = *device;
    return *device != nullptr ? MR_OK : mr_fail_memory(error, 1);
}

mr_status mr_session_read_secs(const char *what, const char *name, double given, double usual, bool is_limit,
                               double *secs, mr_error *error)
{
    *secs = given == 0 ? usual : given < 0 ? INFINITY : given;
    if (!isnan(given) && (given >= 0 || is_limit)) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s is %g, not %s", what, name, given,
                   is_limit ? "a number" : "a number above 0, or 0 for the default");
}

/* ---- Waiting ---- */

/* False: a stop was requested. */
static bool wait(const mr_session_source *source, double wait_secs)
{
    const double secs = fmin(wait_secs, SLEEP_SECS_MAX);
    assert(secs >= 0);
    if (source->coordinator != nullptr)
        return !mr_coordinator_wait_for_stop(source->coordinator, (int64_t)(secs * 1e9));
    struct timespec rest = {.tv_sec = (time_t)secs, .tv_nsec = (long)((secs - floor(secs)) * 1e9)};
    while (nanosleep(&rest, &rest) != 0) continue;
    return true;
}

static mr_status find_latest(const char *directory, char **checkpoint, mr_error *error)
{
    char path[4096];
    mr_error reason = {0};
    mr_status status = mr_latest_checkpoint(directory, path, sizeof path, &reason);
    if (status == MR_NOT_FOUND) return MR_OK;
    if (status != MR_OK) return mr_fail(error, status, "%s", reason.message);
    *checkpoint = strdup(path);
    return *checkpoint != nullptr ? MR_OK : mr_fail_memory(error, strlen(path));
}

mr_status mr_session_source_find(const mr_session_source *source, char **checkpoint, mr_error *error)
{
    assert(source->directory == nullptr || source->path == nullptr);
    *checkpoint = nullptr;
    if (source->path != nullptr) {
        *checkpoint = strdup(source->path);
        return *checkpoint != nullptr ? MR_OK : mr_fail_memory(error, strlen(source->path));
    }
    if (source->directory == nullptr) return MR_OK;
    const double end = mr_hook_now() + source->max_wait_secs;
    for (;;) {
        MR_TRY(find_latest(source->directory, checkpoint, error));
        const double rest = end - mr_hook_now();
        if (*checkpoint != nullptr || !source->waits || rest <= 0) return MR_OK;
        if (!wait(source, fmin(source->retry_secs, rest)))
            return mr_fail(error, MR_CANCELLED, "%s: stopped while waiting for a checkpoint", source->directory);
    }
}

/* ---- Sessions ---- */

mr_status mr_session_create(mr_graph *graph, const mr_session_options *options, const mr_ready_scaffold *scaffold,
                            const mr_session_source *source, mr_session **session, char **restored, mr_error *error)
{
    mr_session *created = nullptr;
    *session = nullptr;
    *restored = nullptr;
    MR_TRY(mr_session_source_find(source, restored, error));
    mr_status status = mr_session_new(graph, options, &created, error);
    if (status == MR_OK) status = mr_scaffold_prepare(scaffold, created, *restored, error);
    if (status == MR_OK) return *session = created, MR_OK;
    mr_session_free(created);
    free(*restored);
    *restored = nullptr;
    return status;
}

mr_status mr_session_wait(mr_graph *graph, const mr_session_options *options, const mr_ready_scaffold *scaffold,
                          const mr_session_source *source, mr_session **session, mr_error *error)
{
    const double end = mr_hook_now() + source->max_wait_secs;
    *session = nullptr;
    for (;;) {
        mr_session *created = nullptr;
        bool is_ready = false;
        mr_error reason = {0};
        mr_status status = mr_session_new(graph, options, &created, error);
        if (status == MR_OK)
            status = mr_scaffold_complete(scaffold, created, nullptr, nullptr, &is_ready, &reason, error);
        if (status == MR_OK && is_ready) return *session = created, MR_OK;
        mr_session_free(created);
        if (status != MR_OK) return status;
        if (mr_hook_now() + source->retry_secs > end)
            return mr_fail(error, MR_DEADLINE_EXCEEDED, "the session was not ready after %g s: %s",
                           source->max_wait_secs, reason.message);
        if (!wait(source, source->retry_secs))
            return mr_fail(error, MR_CANCELLED, "stopped while waiting for a session that is ready: %s",
                           reason.message);
    }
}
