/* Hooks: their creation, timers, and what a hook may do with a run. */
#include "graph/train/hook.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/run/session.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

mr_hook *mr_hook_new_(void *context, const mr_hook_functions *given)
{
    mr_hook *hook = calloc(1, sizeof *hook);
    if (hook == nullptr) return nullptr;
    (void)MR_OPTIONS_READ(mr_hook_functions, &hook->functions, given, &hook->error);
    hook->context = context;
    return hook;
}

void *mr_hook_alloc(size_t size, mr_hook_functions functions)
{
    assert(size >= sizeof(mr_hook));
    mr_hook *hook = calloc(1, size);
    if (hook == nullptr) return nullptr;
    hook->functions = functions;
    hook->context = hook;
    return hook;
}

void mr_hook_free(mr_hook *hook)
{
    if (hook == nullptr) return;
    if (hook->functions.free != nullptr) hook->functions.free(hook->context);
    free(hook);
}

void mr_hook_fail(mr_hook *hook, mr_status status, const char *format, ...)
{
    if (hook->error.status != MR_OK) return;
    va_list args;
    va_start(args, format);
    (void)mr_fail_va(&hook->error, status, format, args);
    va_end(args);
}

char *mr_hook_copy_text(mr_hook *hook, const char *text)
{
    return text != nullptr ? mr_hook_copy_items(hook, text, 1, strlen(text) + 1) : nullptr;
}

void *mr_hook_copy_items(mr_hook *hook, const void *items, int32_t count, size_t item_size)
{
    if (items == nullptr || count <= 0) return nullptr;
    void *copy = malloc((size_t)count * item_size);
    if (copy != nullptr)
        memcpy(copy, items, (size_t)count * item_size);
    else
        mr_hook_fail(hook, MR_RESOURCE_EXHAUSTED, "no memory for a hook");
    return copy;
}

mr_status mr_hook_check_outputs(const mr_graph *graph, const char *name, mr_outputs outputs, mr_error *error)
{
    for (int32_t i = 0; i < outputs.count; i++)
        if (mr_node_graph(outputs.items[i].node) != graph)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s belongs to another graph", name,
                           mr_node_name(outputs.items[i].node));
    return MR_OK;
}

void mr_log_to_stderr(void *, const char *line)
{
    (void)fputs(line, stderr);
    (void)fputc('\n', stderr);
}

/* ---- Timers ---- */

double mr_hook_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void mr_hook_timer_init(mr_hook_timer *timer, mr_hook *hook, const char *name, const char *steps_name,
                        int64_t every_steps, const char *secs_name, double every_secs)
{
    *timer = (mr_hook_timer){.every_steps = every_steps, .every_secs = every_secs};
    if (every_steps == 0 && every_secs == 0)
        mr_hook_fail(hook, MR_INVALID_ARGUMENT, "%s: %s or %s must be given", name, steps_name, secs_name);
    else if (every_steps != 0 && every_secs != 0)
        mr_hook_fail(hook, MR_INVALID_ARGUMENT, "%s: only one of %s and %s may be given", name, steps_name, secs_name);
    else if (every_steps < 0)
        mr_hook_fail(hook, MR_INVALID_ARGUMENT, "%s: %s is %" PRId64 ", but must be at least 1", name, steps_name,
                     every_steps);
    else if (!(every_secs >= 0) || isinf(every_secs))
        mr_hook_fail(hook, MR_INVALID_ARGUMENT, "%s: %s is %g, but must be a number above 0", name, secs_name,
                     every_secs);
}

/* Steps may be any numbers: no overflow. */
static int64_t steps_since(const mr_step_timer *timer, int64_t step)
{
    return (int64_t)((uint64_t)step - (uint64_t)timer->last_step);
}

bool mr_hook_timer_is_due(const mr_hook_timer *timer, int64_t step)
{
    if (!timer->has_triggered) return true;
    if (step == timer->last_step) return false;
    if (timer->every_steps > 0) return steps_since(timer, step) >= timer->every_steps;
    return mr_hook_now() - timer->last_time >= timer->every_secs;
}

void mr_hook_timer_fire(mr_hook_timer *timer, int64_t step)
{
    timer->has_triggered = true;
    timer->last_step = step;
    timer->last_time = mr_hook_now();
}

bool mr_step_timer_should_trigger(const mr_step_timer *timer, int64_t step)
{
    return timer != nullptr && mr_hook_timer_is_due(timer, step);
}

void mr_step_timer_update(mr_step_timer *timer, int64_t step, double *elapsed_secs, int64_t *elapsed_steps)
{
    const bool has_before = timer != nullptr && timer->has_triggered;
    if (elapsed_secs != nullptr) *elapsed_secs = has_before ? mr_hook_now() - timer->last_time : 0;
    if (elapsed_steps != nullptr) *elapsed_steps = has_before ? steps_since(timer, step) : 0;
    if (timer != nullptr) mr_hook_timer_fire(timer, step);
}

/* ---- One run ---- */

mr_session *mr_hook_run_session(const mr_hook_run *run)
{
    return run != nullptr ? run->session : nullptr;
}

mr_feeds mr_hook_run_caller_feeds(const mr_hook_run *run)
{
    return run != nullptr ? run->caller_feeds : (mr_feeds){0};
}

mr_outputs mr_hook_run_caller_fetches(const mr_hook_run *run)
{
    return run != nullptr ? run->caller_fetches : (mr_outputs){0};
}

/* Grows an array of the run by `more` items. */
static void *grown(void *items, int32_t count, int32_t more, size_t item_size, mr_error *error)
{
    if (more > INT32_MAX - count) {
        (void)mr_fail(error, MR_INVALID_ARGUMENT, "hooks feed or fetch more than %d outputs", INT32_MAX);
        return nullptr;
    }
    void *larger = realloc(items, (size_t)(count + more) * item_size);
    if (larger == nullptr) (void)mr_fail_memory(error, (size_t)(count + more) * item_size);
    return larger;
}

static mr_status check_time(const mr_hook_run *run, const char *function, mr_error *error)
{
    if (run == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: run is null", function);
    if (run->results == nullptr) return MR_OK;
    return mr_fail(error, MR_FAILED_PRECONDITION, "%s is for before_run: this run has taken place", function);
}

mr_status mr_hook_run_fetch(mr_hook_run *run, mr_outputs fetches, mr_error *error)
{
    MR_TRY(check_time(run, "mr_hook_run_fetch", error));
    MR_TRY(mr_session_check_list("mr_hook_run_fetch: fetches", fetches.items, fetches.count, error));
    if (fetches.count == 0) return MR_OK;
    mr_output *all = grown(run->fetches, run->fetch_count, fetches.count, sizeof *all, error);
    if (all == nullptr) return MR_RESOURCE_EXHAUSTED;
    run->fetches = all;
    mr_hook_range *range = &run->ranges[run->hook];
    if (range->count == 0) range->first = run->fetch_count;
    assert(range->first + range->count == run->fetch_count);
    for (int32_t i = 0; i < fetches.count; i++) all[run->fetch_count++] = fetches.items[i];
    range->count += fetches.count;
    return MR_OK;
}

mr_status mr_hook_run_feed(mr_hook_run *run, mr_feeds feeds, mr_error *error)
{
    MR_TRY(check_time(run, "mr_hook_run_feed", error));
    MR_TRY(mr_session_check_list("mr_hook_run_feed: feeds", feeds.items, feeds.count, error));
    for (int32_t i = 0; i < feeds.count; i++) {
        const mr_output output = feeds.items[i].output;
        for (int32_t j = 0; j < run->feed_count; j++)
            if (run->feeds[j].output.node == output.node && run->feeds[j].output.index == output.index)
                return mr_fail(
                    error, MR_INVALID_ARGUMENT, "%s:%d is fed by the caller of the run and by a hook, or by two",
                    output.node != nullptr ? mr_node_name(output.node) : "an output without a node", (int)output.index);
        mr_feed *all = grown(run->feeds, run->feed_count, 1, sizeof *all, error);
        if (all == nullptr) return MR_RESOURCE_EXHAUSTED;
        run->feeds = all;
        all[run->feed_count++] = (mr_feed){output, mr_tensor_ref(&feeds.items[i].value)};
    }
    return MR_OK;
}

void mr_hook_run_trace(mr_hook_run *run)
{
    if (run != nullptr && run->results == nullptr) run->trace = true;
}

mr_status mr_hook_run_watch(mr_hook_run *run, const mr_watch *watch, mr_error *error)
{
    if (watch == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_hook_run_watch: watch is null");
    if (run == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_hook_run_watch: run is null");
    if (run->results != nullptr)
        return mr_fail(error, MR_FAILED_PRECONDITION, "mr_hook_run_watch: the run has already ended");
    if (run->watch != nullptr) return mr_fail(error, MR_ALREADY_EXISTS, "two hooks watch the same run");
    run->watch = watch;
    return MR_OK;
}

const mr_tensor *mr_hook_run_results(const mr_hook_run *run, int32_t *count)
{
    if (count != nullptr) *count = 0;
    if (run == nullptr) return nullptr;
    const mr_hook_range range = run->ranges[run->hook];
    const bool has_run = run->results != nullptr;
    if (count != nullptr) *count = has_run ? range.count : 0;
    return has_run && range.count > 0 ? &run->results[range.first] : nullptr;
}

const mr_tensor *mr_hook_run_metadata(const mr_hook_run *run)
{
    if (run == nullptr) return nullptr;
    return run->results != nullptr && mr_tensor_count(&run->metadata) == 1 && run->metadata.dtype == MR_STRING
               ? &run->metadata
               : nullptr;
}
