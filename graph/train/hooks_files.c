/* Hooks that write files: checkpoints, summaries, timelines. */
#include "base/options.h"
#include "base/status.h"
#include "graph/train/hook.h"
#include "graph/train/write_graph.h"
#include "records/event/event.h"
#include "records/io/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "directory/base", or with a step "directory/base-step". Owned: free(). */
static mr_status path_of(const char *directory, const char *base, const char *ending, char **path, mr_error *error)
{
    *path = nullptr;
    if (asprintf(path, "%s/%s%s", directory, base, ending) >= 0) return MR_OK;
    *path = nullptr;
    return mr_fail_memory(error, strlen(directory));
}

static void require_directory(mr_hook *hook, const char *name, const char *directory)
{
    if (directory == nullptr || *directory == '\0')
        mr_hook_fail(hook, MR_INVALID_ARGUMENT, "%s: the directory is %s", name,
                     directory == nullptr ? "null" : "empty");
}

/* ---- Checkpoints ---- */

typedef struct saver_hook {
    mr_hook hook;
    mr_hook_timer timer;
    char *directory, *base;
    mr_saver *saver;
    mr_checkpoint_listener *listeners;
    int32_t listener_count;
    bool has_graph;
} saver_hook;

static mr_status saver_begin(void *context, mr_graph *graph, mr_error *error)
{
    const saver_hook *h = context;
    mr_event_writer *writer;
    MR_TRY(mr_monitored_require_step(h->hook.owner, "the checkpoint saver hook", error));
    MR_TRY(mr_monitored_writer(h->hook.owner, h->directory, &writer, error));
    for (int32_t i = 0; i < h->listener_count; i++)
        if (h->listeners[i].begin != nullptr) MR_TRY(h->listeners[i].begin(h->listeners[i].context, graph, error));
    return MR_OK;
}

static mr_status tell_after(saver_hook *h, mr_session *session, int64_t step, mr_error *error)
{
    for (int32_t i = 0; i < h->listener_count; i++) {
        bool stop = false;
        if (h->listeners[i].after_save == nullptr) continue;
        MR_TRY(h->listeners[i].after_save(h->listeners[i].context, session, step, &stop, error));
        if (stop) mr_monitored_session_request_stop(h->hook.owner);
    }
    return MR_OK;
}

/* What was written to event files before the checkpoint is complete when the checkpoint is. */
static mr_status write_checkpoint(const saver_hook *h, mr_session *session, const char *prefix, int64_t step,
                                  mr_error *error)
{
    mr_event_writer *writer;
    mr_saver *saver = h->saver != nullptr ? h->saver : mr_monitored_saver(h->hook.owner);
    MR_TRY(mr_monitored_writer(h->hook.owner, h->directory, &writer, error));
    MR_TRY(mr_event_writer_flush(writer, error));
    MR_TRY(mr_saver_save_with(saver, session, prefix, step,
                              MR_OPTIONS(mr_saver_save_options, .no_meta_graph = !h->has_graph), error));
    return mr_event_writer_add_session_log(writer, step, MR_SESSION_CHECKPOINT, prefix, error);
}

static mr_status save(saver_hook *h, mr_session *session, int64_t step, mr_error *error)
{
    char *prefix = nullptr;
    for (int32_t i = 0; i < h->listener_count; i++)
        if (h->listeners[i].before_save != nullptr)
            MR_TRY(h->listeners[i].before_save(h->listeners[i].context, session, step, error));
    MR_TRY(path_of(h->directory, h->base, "", &prefix, error));
    mr_status status = write_checkpoint(h, session, prefix, step, error);
    free(prefix);
    if (status != MR_OK) return mr_fail_prefix(error, status, "saving step %" PRId64, step);
    mr_hook_timer_fire(&h->timer, step); /* a save that failed is tried again */
    return tell_after(h, session, step, error);
}

static mr_status write_graph(const saver_hook *h, mr_error *error)
{
    mr_event_writer *writer;
    const mr_graph *graph = mr_monitored_graph(h->hook.owner);
    if (h->has_graph) MR_TRY(mr_train_write_graph_text(graph, h->directory, error));
    MR_TRY(mr_monitored_writer(h->hook.owner, h->directory, &writer, error));
    return mr_train_write_graph_events(graph, writer, error);
}

/* A checkpoint that has just been restored is not written again: while its files are replaced, a process that dies
 * would leave none. */
static mr_status saver_created(void *context, mr_session *session, mr_coordinator *, mr_error *error)
{
    saver_hook *h = context;
    int64_t step;
    char number[32];
    char *path = nullptr;
    MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
    MR_TRY(write_graph(h, error));
    snprintf(number, sizeof number, "-%" PRId64, step);
    MR_TRY(path_of(h->directory, h->base, number, &path, error));
    const bool is_saved = mr_monitored_has_restored(h->hook.owner, path);
    free(path);
    if (!is_saved) return save(h, session, step, error);
    mr_hook_timer_fire(&h->timer, step);
    MR_TRY(path_of(h->directory, h->base, "", &path, error));
    mr_status status = mr_saver_clean(h->saver != nullptr ? h->saver : mr_monitored_saver(h->hook.owner), path, error);
    free(path);
    return status;
}

static mr_status saver_after(void *context, mr_hook_run *run, mr_error *error)
{
    saver_hook *h = context;
    int64_t step;
    MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
    return mr_hook_timer_is_due(&h->timer, step) ? save(h, run->session, step, error) : MR_OK;
}

static mr_status saver_end(void *context, mr_session *session, mr_error *error)
{
    saver_hook *h = context;
    int64_t step;
    MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
    if (!h->timer.has_triggered || step != h->timer.last_step) MR_TRY(save(h, session, step, error));
    for (int32_t i = 0; i < h->listener_count; i++)
        if (h->listeners[i].end != nullptr) MR_TRY(h->listeners[i].end(h->listeners[i].context, session, step, error));
    return MR_OK;
}

static void saver_free(void *context)
{
    saver_hook *h = context;
    free(h->directory);
    free(h->base);
    free(h->listeners);
}

mr_hook *mr_checkpoint_saver_hook_(const char *checkpoint_dir, const mr_checkpoint_saver_hook_options *given)
{
    static const char name[] = "checkpoint saver hook";
    saver_hook *h = mr_hook_alloc(sizeof *h, (mr_hook_functions){.begin = saver_begin,
                                                                 .after_create_session = saver_created,
                                                                 .after_run = saver_after,
                                                                 .end = saver_end,
                                                                 .free = saver_free});
    if (h == nullptr) return nullptr;
    mr_checkpoint_saver_hook_options o;
    (void)MR_OPTIONS_READ(mr_checkpoint_saver_hook_options, &o, given, &h->hook.error);
    require_directory(&h->hook, name, checkpoint_dir);
    mr_hook_timer_init(&h->timer, &h->hook, name, "save_steps", o.save_steps, "save_secs", o.save_secs);
    if (o.listener_count < 0 || (o.listener_count > 0) != (o.listeners != nullptr))
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "%s: listener_count is %d, but listeners is %s", name,
                     (int)o.listener_count, o.listeners == nullptr ? "null" : "given");
    const char *base = o.checkpoint_basename;
    if (base != nullptr && (*base == '\0' || strchr(base, '/') != nullptr))
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "%s: checkpoint_basename \"%s\" is not a file name", name, base);
    h->directory = mr_hook_copy_text(&h->hook, checkpoint_dir);
    h->base = mr_hook_copy_text(&h->hook, o.checkpoint_basename != nullptr ? o.checkpoint_basename : "model.ckpt");
    h->saver = o.saver;
    h->has_graph = !o.no_graph_def;
    h->listeners = mr_hook_copy_items(&h->hook, o.listeners, o.listener_count, sizeof *o.listeners);
    h->listener_count = h->listeners != nullptr ? o.listener_count : 0;
    return &h->hook;
}

/* ---- Summaries ---- */

typedef struct summary_hook {
    mr_hook hook;
    mr_hook_timer timer;
    char *directory;
    mr_event_writer *given; /* null: that of the directory */
    mr_output summary;      /* {0}: the scaffold's */
    bool is_due, has_started;
    int64_t next; /* the step after the next run, if each run is one step; -1: not known */
} summary_hook;

static mr_status summary_writer(const summary_hook *h, mr_event_writer **writer, mr_error *error)
{
    *writer = h->given;
    return h->given != nullptr ? MR_OK : mr_monitored_writer(h->hook.owner, h->directory, writer, error);
}

static mr_status summary_begin(void *context, mr_graph *graph, mr_error *error)
{
    static const char name[] = "summary saver hook";
    summary_hook *h = context;
    mr_event_writer *writer;
    h->next = -1;
    MR_TRY(mr_monitored_require_step(h->hook.owner, "the summary saver hook", error));
    MR_TRY(summary_writer(h, &writer, error));
    if (h->summary.node == nullptr) return MR_OK;
    if (mr_output_dtype(h->summary) != MR_STRING)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s is %s, not a serialized summary", name,
                       mr_node_name(h->summary.node), mr_dtype_name(mr_output_dtype(h->summary)));
    return mr_hook_check_outputs(graph, name, (mr_outputs){&h->summary, 1}, error);
}

static mr_output summary_of(const summary_hook *h)
{
    return h->summary.node != nullptr ? h->summary : mr_monitored_summary(h->hook.owner);
}

static mr_status summary_before(void *context, mr_hook_run *run, mr_error *error)
{
    summary_hook *h = context;
    const mr_output summary = summary_of(h);
    h->is_due = summary.node != nullptr && (h->next < 0 || mr_hook_timer_is_due(&h->timer, h->next));
    return h->is_due ? mr_hook_run_fetch(run, (mr_outputs){&summary, 1}, error) : MR_OK;
}

static mr_status summary_after(void *context, mr_hook_run *run, mr_error *error)
{
    summary_hook *h = context;
    int64_t step;
    MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
    h->next = step + 1;
    if (!h->is_due) return MR_OK;
    mr_event_writer *writer;
    const mr_tensor *summary = mr_hook_run_results(run, nullptr);
    mr_hook_timer_fire(&h->timer, step);
    MR_TRY(summary_writer(h, &writer, error));
    if (!h->has_started) MR_TRY(mr_event_writer_add_session_log(writer, step, MR_SESSION_START, nullptr, error));
    h->has_started = true;
    if (summary->dtype != MR_STRING || mr_tensor_count(summary) != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "summary saver hook: %s is not a string scalar",
                       mr_node_name(summary_of(h).node));
    return mr_event_writer_add(writer, step, mr_tensor_strings(summary)[0], error);
}

static mr_status summary_end(void *context, mr_session *, mr_error *error)
{
    const summary_hook *h = context;
    mr_event_writer *writer;
    MR_TRY(summary_writer(h, &writer, error));
    return mr_event_writer_flush(writer, error);
}

static void summary_free(void *context)
{
    free(((summary_hook *)context)->directory);
}

mr_hook *mr_summary_saver_hook_(const char *output_dir, const mr_summary_saver_hook_options *given)
{
    static const char name[] = "summary saver hook";
    summary_hook *h = mr_hook_alloc(sizeof *h, (mr_hook_functions){.begin = summary_begin,
                                                                   .before_run = summary_before,
                                                                   .after_run = summary_after,
                                                                   .end = summary_end,
                                                                   .free = summary_free});
    if (h == nullptr) return nullptr;
    mr_summary_saver_hook_options o;
    (void)MR_OPTIONS_READ(mr_summary_saver_hook_options, &o, given, &h->hook.error);
    h->given = o.writer;
    if (o.writer == nullptr) require_directory(&h->hook, name, output_dir);
    if (o.writer != nullptr && output_dir != nullptr)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "%s: only one of output_dir and writer may be given", name);
    mr_hook_timer_init(&h->timer, &h->hook, name, "save_steps", o.save_steps, "save_secs", o.save_secs);
    h->directory = mr_hook_copy_text(&h->hook, output_dir);
    h->summary = o.summary;
    return &h->hook;
}

/* ---- Timelines ---- */

typedef struct profiler_hook {
    mr_hook hook;
    mr_hook_timer timer;
    char *directory;
    bool is_due;
    int64_t next;
    mr_timeline_options options;
} profiler_hook;

static mr_status profiler_begin(void *context, mr_graph *, mr_error *error)
{
    profiler_hook *h = context;
    h->next = -1;
    MR_TRY(mr_monitored_require_step(h->hook.owner, "the profiler hook", error));
    return mr_file_make_directories(h->directory, error);
}

static mr_status profiler_before(void *context, mr_hook_run *run, mr_error *error)
{
    profiler_hook *h = context;
    if (h->next < 0) {
        int64_t step;
        MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
        mr_hook_timer_fire(&h->timer, step);
    }
    h->is_due = h->next >= 0 && mr_hook_timer_is_due(&h->timer, h->next);
    if (h->is_due) mr_hook_run_trace(run);
    return MR_OK;
}

static mr_status write_timeline(const profiler_hook *h, const mr_hook_run *run, int64_t step, mr_error *error)
{
    char name[64];
    char *path = nullptr;
    const mr_tensor *metadata = mr_hook_run_metadata(run);
    if (metadata == nullptr) return MR_OK;
    snprintf(name, sizeof name, "timeline-%" PRId64 ".json", step);
    MR_TRY(path_of(h->directory, name, "", &path, error));
    mr_status status = mr_timeline_write_(mr_tensor_strings(metadata)[0], path, &h->options, error);
    free(path);
    return status;
}

static mr_status profiler_after(void *context, mr_hook_run *run, mr_error *error)
{
    profiler_hook *h = context;
    int64_t step;
    MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
    h->next = step + 1;
    if (!h->is_due) return MR_OK;
    mr_hook_timer_fire(&h->timer, step);
    return write_timeline(h, run, step, error);
}

static void profiler_free(void *context)
{
    free(((profiler_hook *)context)->directory);
}

mr_hook *mr_profiler_hook_(const char *output_dir, const mr_profiler_hook_options *given)
{
    static const char name[] = "profiler hook";
    profiler_hook *h = mr_hook_alloc(sizeof *h, (mr_hook_functions){.begin = profiler_begin,
                                                                    .before_run = profiler_before,
                                                                    .after_run = profiler_after,
                                                                    .free = profiler_free});
    if (h == nullptr) return nullptr;
    mr_profiler_hook_options o;
    (void)MR_OPTIONS_READ(mr_profiler_hook_options, &o, given, &h->hook.error);
    require_directory(&h->hook, name, output_dir);
    mr_hook_timer_init(&h->timer, &h->hook, name, "save_steps", o.save_steps, "save_secs", o.save_secs);
    h->directory = mr_hook_copy_text(&h->hook, output_dir);
    h->options = (mr_timeline_options){sizeof h->options, o.show_dataflow, o.show_memory};
    return &h->hook;
}
