/* Hooks that look at steps and values: stop at a step, count steps, wait for a step, stop at NaN, fetch at the end. */
#include "base/options.h"
#include "graph/run/execute.h"
#include "graph/run/session.h"
#include "graph/train/hook.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Stop at a step ---- */

typedef struct stop_hook {
    mr_hook hook;
    int64_t num_steps, last_step; /* last_step 0: not known before the session exists */
} stop_hook;

static mr_status stop_begin(void *context, mr_graph *, mr_error *error)
{
    const stop_hook *h = context;
    return mr_monitored_require_step(h->hook.owner, "the stop-at-step hook", error);
}

/* A session that is created again after an abort keeps the last step of the first one. */
static mr_status stop_created(void *context, mr_session *, mr_coordinator *, mr_error *error)
{
    stop_hook *h = context;
    int64_t step;
    MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
    if (h->last_step == 0) h->last_step = step > INT64_MAX - h->num_steps ? INT64_MAX : step + h->num_steps;
    if (step >= h->last_step) mr_monitored_session_request_stop(h->hook.owner); /* TensorFlow runs one more step */
    return MR_OK;
}

static mr_status stop_after(void *context, mr_hook_run *run, mr_error *error)
{
    const stop_hook *h = context;
    int64_t step;
    MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
    if (step >= h->last_step) mr_hook_run_request_stop(run);
    return MR_OK;
}

mr_hook *mr_stop_at_step_hook_(const mr_stop_at_step_hook_options *given)
{
    stop_hook *h = mr_hook_alloc(
        sizeof *h,
        (mr_hook_functions){.begin = stop_begin, .after_create_session = stop_created, .after_run = stop_after});
    if (h == nullptr) return nullptr;
    mr_stop_at_step_hook_options o;
    (void)MR_OPTIONS_READ(mr_stop_at_step_hook_options, &o, given, &h->hook.error);
    if ((o.num_steps == 0) == (o.last_step == 0))
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "stop-at-step hook: either num_steps or last_step must be given");
    if (o.num_steps < 0 || o.last_step < 0)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "stop-at-step hook: %s is %" PRId64 ", but must be at least 1",
                     o.num_steps < 0 ? "num_steps" : "last_step", o.num_steps < 0 ? o.num_steps : o.last_step);
    h->num_steps = o.num_steps;
    h->last_step = o.last_step;
    return &h->hook;
}

/* ---- NaN ---- */

typedef struct nan_hook {
    mr_hook hook;
    mr_output loss;
    bool fails;
} nan_hook;

static mr_status nan_begin(void *context, mr_graph *graph, mr_error *error)
{
    const nan_hook *h = context;
    return mr_hook_check_outputs(graph, "NaN hook", (mr_outputs){&h->loss, 1}, error);
}

static mr_status nan_before(void *context, mr_hook_run *run, mr_error *error)
{
    const nan_hook *h = context;
    return mr_hook_run_fetch(run, (mr_outputs){&h->loss, 1}, error);
}

static mr_status nan_after(void *context, mr_hook_run *run, mr_error *error)
{
    const nan_hook *h = context;
    const mr_tensor *loss = mr_hook_run_results(run, nullptr);
    if (loss == nullptr || mr_tensor_find_nonfinite(loss, true) < 0) return MR_OK;
    if (h->fails)
        return mr_fail(error, MR_INVALID_ARGUMENT, "NaN loss during training: %s:%d", mr_node_name(h->loss.node),
                       (int)h->loss.index);
    mr_hook_run_request_stop(run);
    return MR_OK;
}

mr_hook *mr_nan_tensor_hook_(mr_output loss, const mr_nan_tensor_hook_options *given)
{
    nan_hook *h = mr_hook_alloc(
        sizeof *h, (mr_hook_functions){.begin = nan_begin, .before_run = nan_before, .after_run = nan_after});
    if (h == nullptr) return nullptr;
    mr_nan_tensor_hook_options o;
    (void)MR_OPTIONS_READ(mr_nan_tensor_hook_options, &o, given, &h->hook.error);
    h->loss = loss;
    h->fails = o.fail_on_nan_loss;
    if (loss.node == nullptr)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "NaN hook: the loss is missing");
    else if (!mr_train_is_floating(mr_output_dtype(loss)))
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "NaN hook: %s:%d is %s, not a floating number",
                     mr_node_name(loss.node), (int)loss.index, mr_dtype_name(mr_output_dtype(loss)));
    return &h->hook;
}

/* ---- Steps per second ---- */

typedef struct counter_hook {
    mr_hook hook;
    mr_hook_timer timer;
    char *directory;        /* null: none */
    mr_event_writer *given; /* null: that of the directory */
    mr_log_function log;
    void *log_context;
} counter_hook;

/* Null: no events are written. */
static mr_status counter_writer(const counter_hook *h, mr_event_writer **writer, mr_error *error)
{
    *writer = h->given;
    return h->directory != nullptr ? mr_monitored_writer(h->hook.owner, h->directory, writer, error) : MR_OK;
}

static mr_status counter_begin(void *context, mr_graph *, mr_error *error)
{
    const counter_hook *h = context;
    mr_event_writer *writer;
    MR_TRY(mr_monitored_require_step(h->hook.owner, "the step counter hook", error));
    return counter_writer(h, &writer, error);
}

static mr_status counter_after(void *context, mr_hook_run *, mr_error *error)
{
    counter_hook *h = context;
    int64_t step;
    MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
    if (!mr_hook_timer_is_due(&h->timer, step)) return MR_OK;
    const double seconds = mr_hook_now() - h->timer.last_time, steps = (double)step - (double)h->timer.last_step;
    const bool is_first = !h->timer.has_triggered;
    mr_hook_timer_fire(&h->timer, step);
    if (is_first || !(seconds > 0)) return MR_OK;
    if (h->log != nullptr) {
        char line[64];
        snprintf(line, sizeof line, "global_step/sec: %g", steps / seconds);
        h->log(h->log_context, line);
    }
    mr_event_writer *writer;
    MR_TRY(counter_writer(h, &writer, error));
    if (writer == nullptr) return MR_OK;
    return mr_event_writer_add_scalar(writer, step, "global_step/sec", (float)(steps / seconds), error);
}

static void counter_free(void *context)
{
    free(((counter_hook *)context)->directory);
}

mr_hook *mr_step_counter_hook_(const mr_step_counter_hook_options *given)
{
    counter_hook *h = mr_hook_alloc(sizeof *h, (mr_hook_functions){.begin = counter_begin,

                                                                   .after_run = counter_after,
                                                                   .free = counter_free});
    if (h == nullptr) return nullptr;
    mr_step_counter_hook_options o;
    (void)MR_OPTIONS_READ(mr_step_counter_hook_options, &o, given, &h->hook.error);
    if (o.every_n_steps == 0 && o.every_n_secs == 0) o.every_n_steps = 100;
    mr_hook_timer_init(&h->timer, &h->hook, "step counter hook", "every_n_steps", o.every_n_steps, "every_n_secs",
                       o.every_n_secs);
    if (o.output_dir == nullptr && o.log == nullptr && o.writer == nullptr)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "step counter hook: log, output_dir or writer must be given");
    if (o.output_dir != nullptr && o.writer != nullptr)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT,
                     "step counter hook: only one of output_dir and writer may be given");
    h->given = o.writer;
    if (o.output_dir != nullptr && *o.output_dir == '\0')
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "step counter hook: the directory is empty");
    if (o.log == nullptr && o.log_context != nullptr)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "step counter hook: log_context has no effect without log");
    h->directory = mr_hook_copy_text(&h->hook, o.output_dir);
    h->log = o.log;
    h->log_context = o.log_context;
    return &h->hook;
}

/* ---- Wait for a step ---- */

constexpr int64_t WAIT_NS = 500'000'000;

typedef struct waiter_hook {
    mr_hook hook;
    int64_t step;
    bool is_over;
} waiter_hook;

static mr_status waiter_begin(void *context, mr_graph *, mr_error *error)
{
    const waiter_hook *h = context;
    return mr_monitored_require_step(h->hook.owner, "the global step waiter hook", error);
}

static mr_status waiter_before(void *context, mr_hook_run *, mr_error *error)
{
    waiter_hook *h = context;
    while (!h->is_over) {
        int64_t step;
        MR_TRY(mr_monitored_session_global_step(h->hook.owner, &step, error));
        h->is_over = step >= h->step;
        if (!h->is_over && mr_monitored_wait(h->hook.owner, WAIT_NS))
            return mr_fail(error, MR_CANCELLED, "stopped while waiting for the global step %" PRId64 "; it is %" PRId64,
                           h->step, step);
    }
    return MR_OK;
}

mr_hook *mr_global_step_waiter_hook(int64_t wait_until_step)
{
    waiter_hook *h = mr_hook_alloc(sizeof *h, (mr_hook_functions){.begin = waiter_begin, .before_run = waiter_before});
    if (h == nullptr) return nullptr;
    h->step = wait_until_step;
    if (wait_until_step < 0)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT,
                     "global step waiter hook: wait_until_step is %" PRId64 ", but must be at least 0",
                     wait_until_step);
    return &h->hook;
}

/* ---- Fetch at the end ---- */

typedef struct final_hook {
    mr_hook hook;
    mr_output *outputs;
    int32_t count;
    mr_feed *feeds;
    int32_t feed_count;
    mr_tensor *results;
} final_hook;

static mr_status final_begin(void *context, mr_graph *graph, mr_error *error)
{
    const final_hook *h = context;
    return mr_hook_check_outputs(graph, "final ops hook", (mr_outputs){h->outputs, h->count}, error);
}

static mr_status final_end(void *context, mr_session *session, mr_error *error)
{
    const final_hook *h = context;
    return mr_session_run(session, (mr_feeds){h->feeds, h->feed_count}, (mr_outputs){h->outputs, h->count}, h->results,
                          nullptr, 0, error);
}

static void final_free(void *context)
{
    final_hook *h = context;
    for (int32_t i = 0; i < h->feed_count; i++) mr_tensor_deinit(&h->feeds[i].value);
    free(h->feeds);
    free(h->outputs);
}

mr_hook *mr_final_ops_hook_(mr_outputs outputs, mr_tensor *results, const mr_final_ops_hook_options *given)
{
    final_hook *h =
        mr_hook_alloc(sizeof *h, (mr_hook_functions){.begin = final_begin, .end = final_end, .free = final_free});
    if (h == nullptr) return nullptr;
    mr_final_ops_hook_options o;
    (void)MR_OPTIONS_READ(mr_final_ops_hook_options, &o, given, &h->hook.error);
    if (outputs.items == nullptr || outputs.count < 1 || results == nullptr)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "final ops hook: at least one output and its result are needed");
    if (o.feeds.count < 0 || (o.feeds.items == nullptr && o.feeds.count > 0))
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "final ops hook: feeds is not a list");
    for (int32_t i = 0; outputs.items != nullptr && i < outputs.count; i++)
        if (outputs.items[i].node == nullptr)
            mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "final ops hook: output %d is missing", (int)i);
    if (h->hook.error.status != MR_OK) return &h->hook;
    h->outputs = mr_hook_copy_items(&h->hook, outputs.items, outputs.count, sizeof *outputs.items);
    h->count = h->outputs != nullptr ? outputs.count : 0;
    h->feeds = mr_hook_copy_items(&h->hook, o.feeds.items, o.feeds.count, sizeof *o.feeds.items);
    h->feed_count = h->feeds != nullptr ? o.feeds.count : 0;
    for (int32_t i = 0; i < h->feed_count; i++) h->feeds[i].value = mr_tensor_ref(&o.feeds.items[i].value);
    h->results = results;
    return &h->hook;
}
