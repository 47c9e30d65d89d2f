/* graph-run: loads a graph, feeds and runs it, prints and writes the results. See --help. */
#include "common/file.h"
#include "common/interrupt.h"
#include "common/output.h"
#include "common/text.h"
#include "graph-run/dumps.h"
#include "graph-run/events.h"
#include "graph-run/explain.h"
#include "graph-run/feeds.h"
#include "graph-run/hints.h"
#include "graph-run/npz.h"
#include "graph-run/options.h"
#include "graph-run/outputs.h"
#include "graph-run/queue_runners.h"
#include "graph-run/restore.h"
#include "graph-run/trace.h"
#include "graph-run/value.h"
#include "graph-run/watchdog.h"

#include <inttypes.h>
#include <millrace/device.h>
#include <millrace/hooks.h>
#include <millrace/train.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state of a run. */
typedef struct run {
    mr_model *model;
    mr_graph *graph;
    mr_session *session;
    mr_coordinator *runners; /* of the threads of queue runners; null: none */
    mr_event_writer *events;
    dumps dumps;
    feeds file;
    npz results_file;
    mr_output feeds[2 * ITEMS_MAX], fetches[ITEMS_MAX];
    int32_t arrays[ITEMS_MAX]; /* of the file: the first one of feed number feed_count + i */
    int feed_count, array_count;
    mr_node *targets[ITEMS_MAX];
    mr_tensor values[2 * ITEMS_MAX], results[ITEMS_MAX];
    mr_tensor metadata; /* the RunMetadata of the last step, if an option needs it */
    int64_t steps;      /* to run */
    int64_t done;
    bool has_ended;  /* the input */
    bool is_written; /* what the steps computed */
    const options *options;
} run;

static mr_status find_output(const mr_graph *graph, const char *name, bool is_fetch, mr_output *output, mr_error *error)
{
    *output = mr_graph_find_output(graph, name);
    if (output->node) return MR_OK;
    const char *colon = strrchr(name, ':');
    char *plain = strndup(name, colon ? (size_t)(colon - name) : strlen(name));
    const mr_node *node = plain ? mr_graph_find(graph, plain) : nullptr;
    free(plain);
    if (!node) return mr_fail(error, MR_NOT_FOUND, "the graph has no output %s (--list prints its nodes)", name);
    if (mr_node_output_count(node) > 0)
        return mr_fail(error, MR_NOT_FOUND, "%s (%s) has %d output%s; there is no %s", mr_node_name(node),
                       mr_node_op(node), (int)mr_node_output_count(node), mr_node_output_count(node) == 1 ? "" : "s",
                       name);
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) has no outputs%s%s", mr_node_name(node), mr_node_op(node),
                   is_fetch ? "; run it with --target " : "", is_fetch ? mr_node_name(node) : "");
}

static mr_status find_node(const mr_graph *graph, const char *name, mr_node **node, mr_error *error)
{
    *node = mr_graph_find(graph, name);
    if (*node) return MR_OK;
    mr_output output = mr_graph_find_output(graph, name);
    if (output.node)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s is an output; its node is %s", name, mr_node_name(output.node));
    return mr_fail(error, MR_NOT_FOUND, "the graph has no node %s (--list prints its nodes)", name);
}

static mr_status find_feed(const char *text, run *r, int index, mr_error *error)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) return mr_fail(error, MR_INVALID_ARGUMENT, "--feed %s: not NAME=VALUE", text);
    char *name = strndup(text, (size_t)(equals - text));
    if (!name) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = find_output(r->graph, name, false, &r->feeds[index], error);
    if (status == MR_OK) status = value_parse(equals + 1, mr_output_dtype(r->feeds[index]), &r->values[index], error);
    if (status != MR_OK) status = mr_fail_prefix(error, status, "--feed %s", name);
    free(name);
    return status;
}

static bool is_fed(const run *r, mr_output output)
{
    for (int i = 0; i < r->feed_count + r->array_count; i++)
        if (r->feeds[i].node == output.node && r->feeds[i].index == output.index) return true;
    return false;
}

/* The outputs that the file of --feeds feeds. */
static mr_status find_arrays(const options *o, run *r, mr_error *error)
{
    MR_TRY(feeds_open(&r->file, o->feeds_file, error));
    for (int32_t i = 0; i < r->file.count; i = feeds_next(&r->file, i)) {
        const char *name = r->file.arrays[i].name;
        mr_output output;
        mr_status status = find_output(r->graph, name, false, &output, error);
        if (status == MR_OK && is_fed(r, output)) status = mr_fail(error, MR_INVALID_ARGUMENT, "%s is fed twice", name);
        if (status == MR_OK && r->array_count == ITEMS_MAX)
            status = mr_fail(error, MR_INVALID_ARGUMENT, "more than %d outputs are fed", ITEMS_MAX);
        if (status != MR_OK) return mr_fail_prefix(error, status, "--feeds %s", o->feeds_file);
        r->feeds[r->feed_count + r->array_count] = output;
        r->arrays[r->array_count++] = i;
    }
    if (o->steps == 0 && r->file.last_step > 0) r->steps = r->file.last_step;
    for (int i = 0; i < r->array_count; i++) MR_TRY(feeds_check(&r->file, r->arrays[i], r->steps, error));
    return MR_OK;
}

static mr_status find_all(const options *o, run *r, mr_error *error)
{
    for (int i = 0; i < o->feed_count; i++, r->feed_count++) MR_TRY(find_feed(o->feeds[i], r, i, error));
    if (o->feeds_file) MR_TRY(find_arrays(o, r, error));
    for (int i = 0; i < o->fetch_count; i++) MR_TRY(find_output(r->graph, o->fetches[i], true, &r->fetches[i], error));
    for (int i = 0; i < o->target_count; i++) MR_TRY(find_node(r->graph, o->targets[i], &r->targets[i], error));
    return MR_OK;
}

/* What must be right before anything runs. */
static mr_status check(const options *o, run *r, mr_error *error)
{
    mr_node *nodes[2 * ITEMS_MAX];
    int32_t count = 0;
    about_inputs inputs;
    MR_TRY(find_all(o, r, error));
    for (int i = 0; i < o->fetch_count; i++)
        if (!is_fed(r, r->fetches[i])) nodes[count++] = r->fetches[i].node;
    for (int i = 0; i < o->target_count; i++) nodes[count++] = r->targets[i];
    MR_TRY(about_find_inputs(r->graph, nodes, count, r->feeds, r->feed_count + r->array_count, &inputs, error));
    /* The input may end before the last step. */
    if (o->out && !inputs.has_queue && !inputs.has_iterator) MR_TRY(outputs_check_size(o, r->fetches, r->steps, error));
    MR_TRY(outputs_check(o, error));
    if (inputs.has_queue && !o->queue_runners && mr_model_info(r->model)->queue_runner_count > 0)
        fputs("graph-run: the steps read queues of the graph's queue runners, which --queue-runners starts\n", stderr);
    return MR_OK;
}

static mr_status keep_results(const options *o, run *r, int64_t step, mr_error *error)
{
    for (int i = 0; i < o->fetch_count; i++) {
        char *name = nullptr;
        int length = r->steps > 1 ? asprintf(&name, "%s@%" PRId64, o->fetches[i], step + 1)
                                  : asprintf(&name, "%s", o->fetches[i]);
        if (length < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        mr_status status = npz_add(&r->results_file, name, &r->results[i], error);
        free(name);
        MR_TRY(status);
    }
    return MR_OK;
}

static void print_result(const char *name, const mr_tensor *value, int64_t step, bool has_step)
{
    char shape[MR_SHAPE_TEXT_SIZE];
    if (has_step) printf("%" PRId64 " ", step + 1);
    text_print_sentence(stdout, name);
    printf(" %s%s%s", mr_dtype_name(value->dtype), mr_shape_text(value->shape, shape, sizeof shape),
           value->shape.rank > 1 ? "\n" : " ");
    value_print(stdout, value, 10);
}

static mr_status show(const options *o, run *r, int64_t step, mr_error *error)
{
    for (int i = 0; i < o->fetch_count; i++) {
        bool is_hidden = o->write || (o->logdir && events_is_summary(r->fetches[i]));
        if (!is_hidden) print_result(o->fetches[i], &r->results[i], step, r->steps > 1);
    }
    if (o->out) MR_TRY(keep_results(o, r, step, error));
    if (r->events) MR_TRY(events_write(r->events, o, r->graph, r->session, r->fetches, r->results, step, error));
    return output_error() ? mr_fail(error, MR_CANCELLED, "standard output is closed") : MR_OK;
}

/* Prints notes, which are lines that contain names from the graph. */
static void show_notes(const char *notes)
{
    for (const char *end; (end = strchr(notes, '\n')); notes = end + 1) {
        char line[1024];
        snprintf(line, sizeof line, "%.*s", (int)(end - notes), notes);
        text_print_sentence(stderr, line);
        fputc('\n', stderr);
    }
}

/* Only an invalid device name is an error here. If the machine lacks the device, the session reports it and runs on the
 * CPU. */
static mr_status check_device(const char *name, mr_error *error)
{
    mr_device *device = nullptr;
    mr_status status = mr_device_open(name, &device, error);
    mr_device_close(device);
    return status == MR_INVALID_ARGUMENT ? mr_fail_prefix(error, status, "--device") : MR_OK;
}

/* What runs before the steps; leaves the watchdog on. */
static mr_status set_values(const options *o, run *r, mr_error *error)
{
    watchdog_begin();
    MR_TRY(mr_model_initialize(r->model, r->session, error));
    for (int i = 0; i < o->first_count; i++) {
        mr_node *first;
        MR_TRY(find_node(r->graph, o->firsts[i], &first, error));
        watchdog_begin();
        MR_TRY(mr_session_run(r->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &first, 1, error));
    }
    watchdog_begin();
    return o->restore ? restore_checkpoint(r->model, r->session, o->restore, error) : MR_OK;
}

static mr_status prepare(const options *o, run *r, mr_error *error)
{
    mr_session_options session = {.size = sizeof session,
                                  .threads = (int)o->threads,
                                  .device = o->device,
                                  .timeout_ms = o->timeout > 0 ? (int64_t)(o->timeout * 1e3 + 0.5) : 0,
                                  .read_only = o->read_only,
                                  .has_seed = o->has_seed,
                                  .seed = o->seed,
                                  .no_optimization = o->no_optimization || o->dump,
                                  .no_recompute = o->no_recompute};
    if (o->device) MR_TRY(check_device(o->device, error));
    MR_TRY(mr_session_new(r->graph, &session, &r->session, error));
    MR_TRY(check(o, r, error));
    mr_status status = set_values(o, r, error);
    watchdog_end();
    MR_TRY(status);
    if (o->logdir) MR_TRY(mr_event_writer_open(o->logdir, &r->events, error));
    MR_TRY(dumps_open(&r->dumps, o, error));
    return o->queue_runners ? queue_runners_start(r->model, r->session, &r->runners, error) : MR_OK;
}

static mr_status read_arrays(run *r, int64_t step, mr_error *error)
{
    for (int i = 0; i < r->array_count; i++) {
        int feed = r->feed_count + i;
        MR_TRY(feeds_read(&r->file, r->arrays[i], step + 1, mr_output_dtype(r->feeds[feed]), &r->values[feed], error));
    }
    return MR_OK;
}

static mr_status run_dumped(const options *o, run *r, mr_step *step, mr_run_options options, mr_tensor *results,
                            int64_t number, mr_error *error)
{
    mr_feed feeds[2 * ITEMS_MAX];
    int32_t count = r->feed_count + r->array_count;
    for (int32_t i = 0; i < count; i++) feeds[i] = (mr_feed){r->feeds[i], r->values[i]};
    return dumps_run(&r->dumps, r->graph, step, (mr_feeds){feeds, count}, (mr_outputs){r->fetches, o->fetch_count},
                     options, results, number, error);
}

static mr_status run_step(const options *o, run *r, mr_step *step, int64_t number, mr_error *error)
{
    mr_tensor results[ITEMS_MAX] = {0};
    mr_tensor metadata = {0};
    MR_TRY(read_arrays(r, number, error));
    const mr_run_options options = trace_begin(o, r->session, &metadata);
    watchdog_begin();
    mr_status status = run_dumped(o, r, step, options, results, number, error);
    watchdog_end();
    MR_TRY(status);
    mr_tensor_deinit(&r->metadata);
    r->metadata = metadata;
    for (int i = 0; i < o->fetch_count; i++) {
        mr_tensor_deinit(&r->results[i]);
        r->results[i] = results[i];
    }
    r->done++;
    return show(o, r, number, error);
}

/* The end of the input is the end of the steps. */
static mr_status run_steps(const options *o, run *r, mr_error *error)
{
    mr_step *step;
    mr_status status = MR_OK;
    MR_TRY(mr_session_prepare(r->session, r->feeds, r->feed_count + r->array_count,
                              (mr_outputs){r->fetches, o->fetch_count}, r->targets, o->target_count, &step, error));
    for (int64_t i = 0; i < r->steps && status == MR_OK && !interrupt_signal(); i++)
        status = run_step(o, r, step, i, error);
    r->has_ended = status == MR_OUT_OF_RANGE;
    show_notes(mr_session_log(r->session));
    return r->has_ended ? MR_OK : status;
}

/* ---- What is written after the steps ---- */

static mr_status write_results(const options *o, run *r, mr_error *error)
{
    for (int i = 0; o->write && r->done > 0 && i < o->fetch_count; i++)
        MR_TRY(outputs_write(o->write, o->fetches[i], &r->results[i], error));
    return MR_OK;
}

static mr_status write_out(const options *o, run *r, mr_error *error)
{
    return o->out ? npz_write(&r->results_file, o->out, error) : MR_OK;
}

static mr_status write_times(const options *o, run *r, mr_error *error)
{
    return o->trace && r->done > 0 ? mr_timeline_write(mr_tensor_strings(&r->metadata)[0], o->trace, error) : MR_OK;
}

static mr_status print_times(const options *o, run *r, mr_error *error)
{
    mr_status status = o->profile && r->done > 0 ? trace_print(o, r->graph, r->session, &r->metadata, error) : MR_OK;
    mr_session_trace(r->session, false);
    return status;
}

static mr_status save(const options *o, run *r, mr_error *error)
{
    return o->save ? mr_model_save(r->model, r->session, o->save, error) : MR_OK;
}

/* Writes everything, also after an error; returns the first error. While a run is busy only results are written: the
 * variables may be in the middle of an update. */
static mr_status finish(const options *o, run *r, bool is_busy, mr_error *error)
{
    static mr_status (*const parts[])(const options *, run *, mr_error *) = {write_results, write_out, write_times,
                                                                             print_times, save};
    mr_status first = MR_OK;
    for (size_t i = 0; i < (is_busy ? 2 : sizeof parts / sizeof *parts); i++) {
        mr_error late = {0};
        mr_status status = parts[i](o, r, &late);
        if (status == MR_OK || first != MR_OK) continue;
        first = status;
        *error = late;
    }
    return first;
}

static void print_error(const mr_error *error)
{
    fputs("graph-run: ", stderr);
    text_print_sentence(stderr, error->message);
    fputc('\n', stderr);
}

/* Whether the run writes something after its steps. */
static bool has_files(const options *o)
{
    return o->save || o->out || o->write || o->trace || o->pprof;
}

/* The steps, and what they leave. What they computed before an error is written as well. */
static mr_status run_prepared(const options *o, run *r, mr_error *error)
{
    mr_error late = {0};
    bool has_steps = o->fetch_count + o->target_count > 0;
    mr_status status = has_steps ? run_steps(o, r, error) : MR_OK;
    mr_status stopped = queue_runners_stop(r->runners, &late);
    r->runners = nullptr;
    if (stopped != MR_OK && (status == MR_OK || status == MR_CANCELLED)) {
        status = stopped;
        *error = late;
    } else if (r->has_ended) {
        fprintf(stderr, "graph-run: the input ended after %" PRId64 " steps\n", r->done);
    }
    if (status != MR_OK && r->done == 0) return status;
    mr_status written = finish(o, r, false, &late);
    r->is_written = written == MR_OK && (has_files(o) || o->logdir);
    if (written == MR_OK) return status;
    if (status != MR_OK && !output_error()) {
        hints_add(r->model, o, error);
        print_error(error);
    }
    *error = late;
    return written;
}

/* A run is busy and does not end in time: writes what the steps before it have computed, and ends the program. */
static void end_late(void *context)
{
    run *r = context;
    const options *o = r->options;
    mr_error error = {0};
    bool has_written = r->done > 0 && (o->out || o->write);
    if (has_written && finish(o, r, true, &error) != MR_OK) {
        print_error(&error);
        has_written = false;
    }
    fprintf(stderr,
            "graph-run: not finished after %g s (--timeout %g), in the middle of an operator, after %" PRId64
            " steps%s%s\n",
            o->timeout, o->timeout, r->done, has_written ? "; what they computed is written" : "",
            o->save ? "; the variables are not saved" : "");
    _exit(output_close("graph-run", 1));
}

static mr_status run_model(const options *o, run *r, mr_error *error)
{
    mr_error late = {0};
    if (o->timeout > 0) MR_TRY(watchdog_start(o->timeout, end_late, r, error));
    /* Interrupted, the run ends after the current step, so that what it has computed is written. */
    if (has_files(o) || o->logdir) interrupt_defer_pipe();
    mr_status status = prepare(o, r, error);
    if (status == MR_OK)
        status = run_prepared(o, r, error);
    else
        (void)queue_runners_stop(r->runners, nullptr);
    r->runners = nullptr;
    dumps_close(&r->dumps);
    mr_status closed = r->events ? mr_event_writer_close(r->events, &late) : MR_OK;
    r->events = nullptr;
    if (status != MR_OK || closed == MR_OK) return status;
    *error = late;
    return closed;
}

/* Everything after option parsing; returns the exit code. */
static int run_graph(const options *o, run *r)
{
    mr_error error = {0};
    mr_status status = mr_model_open(o->graph, o->tags, &r->model, &error);
    if (status == MR_OK) {
        r->graph = mr_model_graph(r->model);
        r->steps = o->steps > 0 ? o->steps : 1;
        r->options = o;
        status = o->list                     ? list_graph(r->model, &error)
                 : !options_run_something(o) ? explain_graph(r->model, o->graph, &error)
                                             : run_model(o, r, &error);
    }
    (void)fflush(stdout);
    if (status == MR_OK) return 0;
    if (r->model)
        hints_add(r->model, o, &error);
    else
        hints_add_graph(o->graph, &error);
    /* output_close reports why the output failed. */
    if (!output_error()) print_error(&error);
    if (r->is_written && !interrupt_signal())
        fprintf(stderr, "graph-run: stopped after %" PRId64 " steps; what they computed is written\n", r->done);
    return 1;
}

int main(int argc, char **argv)
{
    static options o;
    static run r;
    output_open();
    int exit_code = options_parse(argc, argv, &o);
    interrupt_install("graph-run: interrupted\n");
    if (exit_code < 0) exit_code = run_graph(&o, &r);
    for (int i = 0; i < r.feed_count + r.array_count; i++) mr_tensor_deinit(&r.values[i]);
    for (int i = 0; i < o.fetch_count; i++) mr_tensor_deinit(&r.results[i]);
    mr_tensor_deinit(&r.metadata);
    feeds_close(&r.file);
    npz_deinit(&r.results_file);
    mr_session_free(r.session);
    mr_model_free(r.model);
    if (interrupt_signal()) {
        fprintf(stderr, "graph-run: %s after %" PRId64 " steps%s\n",
                interrupt_signal() == SIGPIPE ? "the standard output was closed" : "interrupted", r.done,
                r.is_written ? "; what they computed is written" : "");
        interrupt_exit();
    }
    return output_close("graph-run", exit_code);
}
