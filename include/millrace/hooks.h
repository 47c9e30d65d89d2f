/* Hooks: what is done around each run of a monitored session (tf.train.SessionRunHook and those that tf.train has).
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_variable step = mr_global_step(g);
 * mr_output next = mr_variable_assign_add(g, step, mr_constant_int64(g, 1));
 * mr_hook *stop = mr_stop_at_step_hook(.last_step = 3);
 * mr_hook *log = mr_logging_tensor_hook(MR_OUTPUTS(step.value), .every_n_iter = 1, .log = mr_log_to_stderr);
 * mr_monitored_session *session = nullptr;
 * mr_status status = mr_monitored_session_new(
 *     g, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(stop, log)), &session, &error);
 * while (status == MR_OK && !mr_monitored_session_should_stop(session))
 *     status = mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &next.node, 1, &error);
 * status = mr_monitored_session_close(session, status, &error);
 * mr_graph_free(g);
 * ```
 *
 * Ownership. A hook belongs to the session that it is given to, also if that session cannot be created: it is freed
 * with it. A hook that is given to no session is freed with mr_hook_free. A hook is given to one session.
 *
 * Errors. A function that creates a hook does not return an error: the hook keeps it (options without effect, no
 * memory), and mr_monitored_session_new returns it.
 *
 * Steps are values of the graph's global step (mr_global_step), which hooks that count steps need. Times are measured
 * with a clock that is not set. Options follow the rules of api.h. */
#ifndef MILLRACE_HOOKS_H
#define MILLRACE_HOOKS_H

#include <millrace/queue.h>
#include <millrace/saver.h>
#include <millrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_hook mr_hook;
/* A borrowed list of hooks: MR_HOOKS(a, b). Null is not allowed. */
typedef mr_hook *mr_hook_item;
typedef struct mr_hooks {
    const mr_hook_item *items;
    int32_t count;
} mr_hooks;
#define MR_HOOKS(...) MR_LIST_(mr_hooks, mr_hook_item, __VA_ARGS__)

MR_API void mr_hook_free(mr_hook *hook); /* null is allowed */

/* ---- Hooks of your own ---- */

/* One call of mr_monitored_session_run, as a hook sees it. Valid during before_run and after_run. */
typedef struct mr_hook_run mr_hook_run;

/* Each function may be null. A result other than MR_OK ends the call during which it is returned, with the function's
 * error; MR_ABORTED and MR_UNAVAILABLE of before_run and after_run lead to a recovery. A hook cannot run or close its
 * session: it uses mr_hook_run_session for runs of its own. */
typedef struct mr_hook_functions {
    size_t size; /* of this struct (api.h) */
    /* Once, before the session exists: may add nodes to the graph. */
    mr_status (*begin)(void *context, mr_graph *graph, mr_error *error);
    /* The variables are initialized or restored. Again after each recovery, with the new session.
     * coordinator  for threads that are stopped and joined with the session (mr_coordinator_start) */
    mr_status (*after_create_session)(void *context, mr_session *session, mr_coordinator *coordinator, mr_error *error);
    mr_status (*before_run)(void *context, mr_hook_run *run, mr_error *error);
    /* Not after a run that failed. */
    mr_status (*after_run)(void *context, mr_hook_run *run, mr_error *error);
    /* At the end, unless the session ends with an error; also if that of another hook has failed. */
    mr_status (*end)(void *context, mr_session *session, mr_error *error);
    void (*free)(void *context);
} mr_hook_functions;
MR_API mr_hook *mr_hook_new_(void *context, const mr_hook_functions *functions);
/* mr_hook_new(context, .before_run = before, .after_run = after). tf.train.FeedFnHook is a hook whose before_run calls
 * mr_hook_run_feed. Null if memory is exhausted. */
#define mr_hook_new(context, ...) MR_WITH_SIZE_(mr_hook_new_((context), &options_), mr_hook_functions, __VA_ARGS__)

/* For runs of its own; they have no hooks. */
MR_API mr_session *mr_hook_run_session(const mr_hook_run *run);
/* What the caller of mr_monitored_session_run feeds and fetches. */
MR_API mr_feeds mr_hook_run_caller_feeds(const mr_hook_run *run);
MR_API mr_outputs mr_hook_run_caller_fetches(const mr_hook_run *run);
/* In before_run: also fetch these outputs. */
MR_API mr_status mr_hook_run_fetch(mr_hook_run *run, mr_outputs fetches, mr_error *error);
/* In before_run: also feed these values, which are referenced.
 * errors  MR_INVALID_ARGUMENT: the caller or another hook feeds the same output */
MR_API mr_status mr_hook_run_feed(mr_hook_run *run, mr_feeds feeds, mr_error *error);
/* In before_run: measure the run (mr_hook_run_metadata). */
MR_API void mr_hook_run_trace(mr_hook_run *run);
/* In before_run: show the run's values to a watch (session.h), which is borrowed for the run.
 * errors  MR_ALREADY_EXISTS: another hook watches it */
MR_API mr_status mr_hook_run_watch(mr_hook_run *run, const mr_watch *watch, mr_error *error);
/* In after_run: the values of what this hook fetched, in this order. Borrowed; count may be null. */
MR_API const mr_tensor *mr_hook_run_results(const mr_hook_run *run, int32_t *count);
/* In after_run: a scalar of dtype MR_STRING with a serialized RunMetadata; null if no hook asked for it. Borrowed. */
MR_API const mr_tensor *mr_hook_run_metadata(const mr_hook_run *run);
/* The session stops after this run. */
MR_API void mr_hook_run_request_stop(mr_hook_run *run);
/* Whether a stop has been requested. */
MR_API bool mr_hook_run_should_stop(const mr_hook_run *run);

/* ---- Timers of hooks (tf.train.SecondOrStepTimer) ---- */

/* Triggers every so many steps, or seconds: one of the two is given. The other members are the library's; zero at
 * first. */
typedef struct mr_step_timer {
    int64_t every_steps;
    double every_secs;
    bool has_triggered;
    int64_t last_step;
    double last_time;
} mr_step_timer;
/* Whether it triggers at this step: the first time it is asked, then when the steps or seconds since the last trigger
 * have passed. Never twice for one step; false of null. */
MR_API bool mr_step_timer_should_trigger(const mr_step_timer *timer, int64_t step);
/* It has triggered at this step: steps and seconds count from here.
 * elapsed_secs, elapsed_steps  receive what has passed since the trigger before; 0: there was none. May be null */
MR_API void mr_step_timer_update(mr_step_timer *timer, int64_t step, double *elapsed_secs, int64_t *elapsed_steps);

/* ---- The hooks of tf.train ----
 *
 * every_n_steps, save_steps   at the first run, then when so many steps have passed since the last time; at least 1
 *                             (step counter and profiler: since the first run)
 * every_n_secs, save_secs     the same with seconds; above 0
 * One of the two must be given, except for a hook whose option has a default. */

/* Receives a line of text without its end. */
typedef void (*mr_log_function)(void *context, const char *line);
/* One that prints to the standard error. context is not used. */
MR_API void mr_log_to_stderr(void *context, const char *line);

typedef struct mr_stop_at_step_hook_options {
    size_t size;       /* of this struct (api.h) */
    int64_t num_steps; /* stop after so many steps of this session; at least 1 */
    /* Or: stop when the global step has reached this value; at least 1. If it has when the session is created, there is
     * no run. */
    int64_t last_step;
} mr_stop_at_step_hook_options;
MR_API mr_hook *mr_stop_at_step_hook_(const mr_stop_at_step_hook_options *options);
#define mr_stop_at_step_hook(...)                                                                                      \
    MR_WITH_SIZE_(mr_stop_at_step_hook_(&options_), mr_stop_at_step_hook_options, __VA_ARGS__)

typedef struct mr_nan_tensor_hook_options {
    size_t size;           /* of this struct (api.h) */
    bool fail_on_nan_loss; /* default true; false: request a stop instead */
} mr_nan_tensor_hook_options;
/* Fails with MR_INVALID_ARGUMENT after a run in which the loss, of any floating dtype and shape, has a NaN. The
 * variables are updated by then: mr_training_step (train.h) checks before it updates. */
MR_API mr_hook *mr_nan_tensor_hook_(mr_output loss, const mr_nan_tensor_hook_options *options);
#define mr_nan_tensor_hook(loss, ...)                                                                                  \
    MR_WITH_SIZE_(mr_nan_tensor_hook_((loss), &options_), mr_nan_tensor_hook_options, .fail_on_nan_loss = true,        \
                  __VA_ARGS__)

typedef struct mr_logging_tensor_hook_options {
    size_t size; /* of this struct (api.h) */
    /* One of these, or at_end alone. Runs are counted, not steps. */
    int64_t every_n_iter;
    double every_n_secs;
    bool at_end;         /* also when the session ends */
    mr_names names;      /* of the outputs, one for each; default: "node:0" */
    mr_log_function log; /* required */
    void *log_context;
    /* Writes the line for these values, one for each output, as snprintf does: at most `size` bytes, of which the last
     * is 0, and returns the length of the complete line; below 0: it cannot be written (formatter). Names are then an
     * error. */
    int (*format)(void *context, const mr_tensor *values, int32_t count, char *line, size_t size);
    void *format_context;
} mr_logging_tensor_hook_options;
/* Prints the values: "loss = 0.25, accuracy = 0.9 (1.204 sec)". Of an array, at most the first 6 elements.
 * outputs  at least 1; copied */
MR_API mr_hook *mr_logging_tensor_hook_(mr_outputs outputs, const mr_logging_tensor_hook_options *options);
#define mr_logging_tensor_hook(outputs, ...)                                                                           \
    MR_WITH_SIZE_(mr_logging_tensor_hook_((outputs), &options_), mr_logging_tensor_hook_options, __VA_ARGS__)

typedef struct mr_step_counter_hook_options {
    size_t size;           /* of this struct (api.h) */
    int64_t every_n_steps; /* default 100, if every_n_secs is not given */
    double every_n_secs;
    const char *output_dir; /* of an event file with the scalar "global_step/sec"; copied */
    mr_log_function log;    /* receives "global_step/sec: 12.5". One of log, output_dir and writer must be given */
    void *log_context;
    /* Instead of output_dir: of the program, borrowed until the session is closed (summary_writer) */
    struct mr_event_writer *writer;
} mr_step_counter_hook_options;
MR_API mr_hook *mr_step_counter_hook_(const mr_step_counter_hook_options *options);
#define mr_step_counter_hook(...)                                                                                      \
    MR_WITH_SIZE_(mr_step_counter_hook_(&options_), mr_step_counter_hook_options, __VA_ARGS__)

/* Called when a checkpoint is saved (tf.train.CheckpointSaverListener). Each function may be null. */
typedef struct mr_checkpoint_listener {
    mr_status (*begin)(void *context, mr_graph *graph, mr_error *error);
    mr_status (*before_save)(void *context, mr_session *session, int64_t step, mr_error *error);
    /* stop  set it to true to stop the session */
    mr_status (*after_save)(void *context, mr_session *session, int64_t step, bool *stop, mr_error *error);
    mr_status (*end)(void *context, mr_session *session, int64_t step, mr_error *error);
    void *context;
} mr_checkpoint_listener;

typedef struct mr_checkpoint_saver_hook_options {
    size_t size; /* of this struct (api.h) */
    int64_t save_steps;
    double save_secs;
    mr_saver *saver;                         /* borrowed; default: the scaffold's */
    const char *checkpoint_basename;         /* default "model.ckpt"; without "/" */
    const mr_checkpoint_listener *listeners; /* copied */
    int32_t listener_count;
    bool no_graph_def; /* neither graph.pbtxt nor the .meta of checkpoints is written (save_graph_def) */
} mr_checkpoint_saver_hook_options;
/* Saves checkpoint_dir/model.ckpt-STEP when the session starts, when it is time, and at the end. The graph is written
 * to graph.pbtxt and to an event file of that directory, and each checkpoint is noted there. */
MR_API mr_hook *mr_checkpoint_saver_hook_(const char *checkpoint_dir, const mr_checkpoint_saver_hook_options *options);
#define mr_checkpoint_saver_hook(checkpoint_dir, ...)                                                                  \
    MR_WITH_SIZE_(mr_checkpoint_saver_hook_((checkpoint_dir), &options_), mr_checkpoint_saver_hook_options, __VA_ARGS__)

typedef struct mr_summary_saver_hook_options {
    size_t size; /* of this struct (api.h) */
    int64_t save_steps;
    double save_secs;
    mr_output summary; /* a serialized Summary, a string scalar; default: the scaffold's, all summaries of the graph */
    /* Of the program, borrowed until the session is closed (summary_writer). Then output_dir is null. */
    struct mr_event_writer *writer;
} mr_summary_saver_hook_options;
/* Writes summaries to an event file of output_dir. */
MR_API mr_hook *mr_summary_saver_hook_(const char *output_dir, const mr_summary_saver_hook_options *options);
#define mr_summary_saver_hook(output_dir, ...)                                                                         \
    MR_WITH_SIZE_(mr_summary_saver_hook_((output_dir), &options_), mr_summary_saver_hook_options, __VA_ARGS__)

typedef struct mr_profiler_hook_options {
    size_t size; /* of this struct (api.h) */
    int64_t save_steps;
    double save_secs;
    bool show_dataflow, show_memory; /* see mr_timeline_options; default true and false */
} mr_profiler_hook_options;
/* Writes output_dir/timeline-STEP.json with mr_timeline_write. Not of the first run, which makes the plan. */
MR_API mr_hook *mr_profiler_hook_(const char *output_dir, const mr_profiler_hook_options *options);
#define mr_profiler_hook(output_dir, ...)                                                                              \
    MR_WITH_SIZE_(mr_profiler_hook_((output_dir), &options_), mr_profiler_hook_options, .show_dataflow = true,         \
                  __VA_ARGS__)

typedef struct mr_timeline_options {
    size_t size;        /* of this struct (api.h) */
    bool show_dataflow; /* arrows from a call to those on other rows that read its outputs; default true */
    bool show_memory;   /* a counter of the bytes that the outputs take in each kind of memory; default false */
} mr_timeline_options;
/* Writes a serialized RunMetadata with step_stats (mr_run_options.metadata) as a file that chrome://tracing and
 * Perfetto show: each call of the run, by device and thread (Timeline.generate_chrome_trace_format).
 * errors  MR_INVALID_ARGUMENT: not a RunMetadata; those of writing the file */
MR_API mr_status mr_timeline_write_(mr_string run_metadata, const char *path, const mr_timeline_options *options,
                                    mr_error *error);
#define mr_timeline_write(run_metadata, path, error, ...)                                                              \
    MR_WITH_SIZE_(mr_timeline_write_((run_metadata), (path), &options_, (error)), mr_timeline_options,                 \
                  .show_dataflow = true, __VA_ARGS__)

/* Waits, before a run, until the global step has reached wait_until_step: for sessions that train in turn with others,
 * in other threads. It looks every 0.5 s, and at once when the session is asked to stop. */
MR_API mr_hook *mr_global_step_waiter_hook(int64_t wait_until_step);

typedef struct mr_final_ops_hook_options {
    size_t size;    /* of this struct (api.h) */
    mr_feeds feeds; /* copied; the values are referenced */
} mr_final_ops_hook_options;
/* Fetches the outputs when the session ends.
 * outputs  copied
 * results  one empty tensor for each output, owned by the caller; filled when the session ends without an error */
MR_API mr_hook *mr_final_ops_hook_(mr_outputs outputs, mr_tensor *results, const mr_final_ops_hook_options *options);
#define mr_final_ops_hook(outputs, results, ...)                                                                       \
    MR_WITH_SIZE_(mr_final_ops_hook_((outputs), (results), &options_), mr_final_ops_hook_options, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
