/* The monitored session of a training run: a directory, and the hooks that write to it. */
#include "base/options.h"
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/monitored.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct interval {
    int64_t steps;
    double secs;
} interval;

static mr_status fail(mr_error *error, const char *option, const char *reason)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "monitored training session: %s %s", option, reason);
}

/* Two options of which one may be given. Result {0}: never. */
static mr_status read_interval(const char *steps_name, const char *secs_name, int64_t steps, double secs,
                               interval unset, const char *needed, bool has_needed, interval *result, mr_error *error)
{
    *result = (interval){0};
    if (steps < -1) return fail(error, steps_name, "must be at least -1");
    if (!(secs >= 0 || secs == -1) || isinf(secs)) return fail(error, secs_name, "must be a number from 0 on, or -1");
    if (!has_needed) {
        if (steps == 0 && secs == 0) return MR_OK;
        return mr_fail(error, MR_INVALID_ARGUMENT, "monitored training session: %s has no effect without %s",
                       steps != 0 ? steps_name : secs_name, needed);
    }
    if (steps > 0 && secs > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "monitored training session: only one of %s and %s may be given",
                       steps_name, secs_name);
    if (steps == 0 && secs == 0)
        *result = unset;
    else
        *result = (interval){steps > 0 ? steps : 0, secs > 0 ? secs : 0};
    return MR_OK;
}

typedef struct plan {
    mr_monitored_training_session_options o;
    interval checkpoints, summaries;
    int64_t count_steps; /* 0: none */
    const char *summary_dir;
} plan;

static mr_status read_options(plan *p, mr_error *error)
{
    const mr_monitored_training_session_options *o = &p->o;
    MR_TRY(mr_session_check_list("monitored training session: hooks", o->hooks.items, o->hooks.count, error));
    MR_TRY(mr_session_check_list("monitored training session: chief_only_hooks", o->chief_only_hooks.items,
                                 o->chief_only_hooks.count, error));
    if (o->checkpoint_dir != nullptr && *o->checkpoint_dir == '\0') return fail(error, "checkpoint_dir", "is empty");
    if (o->summary_dir != nullptr && *o->summary_dir == '\0') return fail(error, "summary_dir", "is empty");
    p->summary_dir = o->summary_dir != nullptr ? o->summary_dir : o->checkpoint_dir;
    MR_TRY(read_interval("save_checkpoint_steps", "save_checkpoint_secs", o->save_checkpoint_steps,
                         o->save_checkpoint_secs, (interval){.secs = 600}, "checkpoint_dir",
                         o->checkpoint_dir != nullptr, &p->checkpoints, error));
    MR_TRY(read_interval("save_summaries_steps", "save_summaries_secs", o->save_summaries_steps, o->save_summaries_secs,
                         (interval){.steps = 100}, "checkpoint_dir or summary_dir", p->summary_dir != nullptr,
                         &p->summaries, error));
    if (o->no_graph_def && p->checkpoints.steps == 0 && p->checkpoints.secs == 0)
        return fail(error, "no_graph_def", "has no effect: no checkpoints are saved");
    interval counter;
    MR_TRY(read_interval("log_step_count_steps", "", o->log_step_count_steps, 0, (interval){.steps = 100},
                         "checkpoint_dir or summary_dir", p->summary_dir != nullptr, &counter, error));
    p->count_steps = counter.steps;
    if (o->summary_dir != nullptr && p->count_steps == 0 && p->summaries.steps == 0 && p->summaries.secs == 0)
        return fail(error, "summary_dir", "has no effect: nothing is to be written there");
    return MR_OK;
}

/* The hooks in the order in which they run. Owned: free() the items. */
static mr_status list_hooks(const plan *p, mr_hooks *hooks, mr_error *error)
{
    const mr_monitored_training_session_options *o = &p->o;
    mr_hook **all = calloc((size_t)o->chief_only_hooks.count + (size_t)o->hooks.count + 3, sizeof(mr_hook *));
    if (all == nullptr) return mr_fail_memory(error, sizeof(mr_hook *));
    int32_t count = 0;
    for (int32_t i = 0; i < o->chief_only_hooks.count; i++) all[count++] = o->chief_only_hooks.items[i];
    if (p->count_steps > 0)
        all[count++] = mr_step_counter_hook(.every_n_steps = p->count_steps, .output_dir = p->summary_dir);
    if (p->summaries.steps > 0 || p->summaries.secs > 0)
        all[count++] =
            mr_summary_saver_hook(p->summary_dir, .save_steps = p->summaries.steps, .save_secs = p->summaries.secs);
    if (p->checkpoints.steps > 0 || p->checkpoints.secs > 0)
        all[count++] = mr_checkpoint_saver_hook(o->checkpoint_dir, .save_steps = p->checkpoints.steps,
                                                .save_secs = p->checkpoints.secs, .no_graph_def = o->no_graph_def);
    for (int32_t i = 0; i < o->hooks.count; i++) all[count++] = o->hooks.items[i];
    *hooks = (mr_hooks){all, count};
    return MR_OK;
}

mr_status mr_monitored_training_session_new(mr_graph *graph, const mr_monitored_training_session_options *options,
                                            mr_monitored_session **session, mr_error *error)
{
    plan p = {0};
    mr_run_directory directory = {0};
    mr_hooks hooks = {0};
    mr_status status = MR_OPTIONS_READ(mr_monitored_training_session_options, &p.o, options, error);
    if (session != nullptr) *session = nullptr;
    if (status == MR_OK && (session == nullptr || graph == nullptr))
        status = mr_session_null(graph == nullptr ? "mr_monitored_training_session_new: graph"
                                                  : "mr_monitored_training_session_new: session",
                                 error);
    if (status == MR_OK) status = read_options(&p, error);
    if (status == MR_OK && p.o.checkpoint_dir != nullptr)
        status = mr_run_directory_open(p.o.checkpoint_dir, &directory, error);
    if (status == MR_OK) status = list_hooks(&p, &hooks, error);
    if (status == MR_OK) {
        status = mr_monitored_new(graph,
                                  MR_OPTIONS(mr_monitored_session_options, .scaffold = p.o.scaffold, .hooks = hooks,
                                             .checkpoint_dir = p.o.checkpoint_dir, .session = p.o.session,
                                             .stop_grace_period_secs = p.o.stop_grace_period_secs),
                                  &directory, session, error);
    } else {
        mr_monitored_free_hooks(p.o.hooks);
        mr_monitored_free_hooks(p.o.chief_only_hooks);
    }
    free((void *)hooks.items);
    mr_run_directory_close(&directory);
    return status;
}
