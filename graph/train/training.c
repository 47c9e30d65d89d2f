/* The training loop: restores, runs, summarizes, saves, stops, and reports progress. */
#include "base/arguments.h"
#include "base/options.h"
#include "graph/run/session.h"
#include "graph/train/progress.h"
#include "graph/train/run_directory.h"
#include "graph/train/train.h"
#include "records/checkpoint/checkpoint.h"
#include "records/event/event.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of fetches in one step. */
constexpr int32_t FETCHES_MAX = 64;

struct mr_training {
    mr_graph *graph;
    mr_training_options options;
    char *directory;
    mr_run_directory lock; /* of the directory, while the run uses it */
    char *prefix;          /* directory/model.ckpt */
    mr_session *session;
    mr_saver *saver; /* null without a directory */
    mr_event_writer *events;
    mr_output summaries;   /* {0}: no summaries */
    mr_output global_step; /* {0}: the graph has none, and steps are counted here */
    int64_t step;
    int64_t saved_step;      /* -1: none yet; at most step */
    int64_t summarised_step; /* -1: none yet */
    mr_progress progress;
    bool done;
};

static mr_output find_global_step(const mr_graph *graph)
{
    mr_node *node = mr_graph_find(graph, "global_step");
    if (node == nullptr || node->output_count != 1 || !node->outputs[0].is_ref) return (mr_output){0};
    return (mr_output){node, 0};
}

static mr_status read_step(mr_training *t, mr_error *error)
{
    if (t->global_step.node == nullptr) return MR_OK;
    mr_tensor value = {0};
    MR_TRY(mr_session_read_variable(t->session, t->global_step, &value, error));
    if (mr_tensor_count(&value) == 1 && value.dtype == MR_INT64) t->step = mr_tensor_int64s(&value)[0];
    if (mr_tensor_count(&value) == 1 && value.dtype == MR_INT32) t->step = mr_tensor_int32s(&value)[0];
    mr_tensor_deinit(&value);
    return MR_OK;
}

mr_status mr_training_save(mr_training *training, mr_error *error)
{
    MR_REFUSE_NULL(training, error);
    if (training->saver == nullptr || training->saved_step == training->step) return MR_OK;
    assert(training->saved_step < training->step);
    if (training->events != nullptr) MR_TRY(mr_event_writer_flush(training->events, error));
    mr_status status = mr_saver_save(training->saver, training->session, training->prefix, training->step, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "saving step %" PRId64, training->step);
    training->saved_step = training->step;
    return MR_OK;
}

static mr_status run_targets(mr_session *session, mr_node *first, mr_node *second, mr_error *error)
{
    mr_node *targets[] = {first, second};
    return mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, targets, second != nullptr ? 2 : 1, error);
}

/* Adds to the reason why the latest checkpoint cannot be used how to continue: from an earlier checkpoint, or in
 * another directory. */
static mr_status add_advice(const mr_training *t, mr_status status, const mr_error *reason, mr_error *error)
{
    mr_checkpoint_state state = {0};
    const char *earlier = nullptr;
    if (mr_checkpoint_state_read(t->directory, nullptr, &state, nullptr) == MR_OK && state.count > 1)
        earlier = strrchr(state.paths[state.count - 2], '/');
    if (earlier != nullptr)
        status = mr_fail(error, status,
                         "%s; to continue from an earlier checkpoint, change the first line of %s/checkpoint to name "
                         "\"%s\"; to start again, choose another directory",
                         reason->message, t->directory, earlier + 1);
    else
        status = mr_fail(error, status, "%s; to start again, choose another directory than %s", reason->message,
                         t->directory);
    mr_checkpoint_state_deinit(&state);
    return status;
}

/* Continues from the checkpoint. An error explains what to do; nothing is restarted without a request. */
static mr_status resume(mr_training *t, mr_node *local, const char *checkpoint, mr_error *error)
{
    mr_error reason = {0};
    MR_TRY(run_targets(t->session, local, nullptr, error));
    mr_status status = mr_saver_restore_variables(t->saver, t->session, checkpoint, &reason);
    if (status != MR_OK) return add_advice(t, status, &reason, error);
    status = mr_saver_restore_state(t->saver, t->session, checkpoint, !t->options.restart_data, &reason);
    if (status == MR_INVALID_ARGUMENT)
        return mr_fail(error, MR_FAILED_PRECONDITION,
                       "%s; if the data have changed, restart_data keeps the variables of this checkpoint and starts "
                       "the data from the beginning; to start again, choose another directory than %s",
                       reason.message, t->directory);
    if (status != MR_OK) return add_advice(t, status, &reason, error);
    MR_TRY(read_step(t, error));
    t->saved_step = t->step;
    return mr_saver_clean(t->saver, t->prefix, error);
}

static mr_status start(mr_training *t, mr_error *error)
{
    if (t->directory != nullptr) MR_TRY(mr_run_directory_open(t->directory, &t->lock, error));

    mr_node *global = mr_initialize_variables(t->graph, MR_GLOBAL_VARIABLES, "init");
    mr_node *local = mr_initialize_variables(t->graph, MR_LOCAL_VARIABLES, "init_local");
    t->summaries = mr_summary_merge_all(t->graph);
    t->global_step = find_global_step(t->graph);
    if (t->directory != nullptr) t->saver = mr_saver_new(t->graph, .max_to_keep = t->options.max_to_keep);
    if (t->saver != nullptr) mr_saver_require_finite(t->saver);
    MR_TRY(mr_session_new(t->graph, t->options.session, &t->session, error));
    char latest[4096];
    mr_status status = MR_NOT_FOUND;
    if (t->directory != nullptr) {
        mr_error reason = {0};
        status = mr_latest_checkpoint(t->directory, latest, sizeof latest, &reason);
        if (status != MR_OK && status != MR_NOT_FOUND) return add_advice(t, status, &reason, error);
    }
    if (status == MR_OK) {
        MR_TRY(resume(t, local, latest, error));
    } else {
        MR_TRY(run_targets(t->session, global, local, error));
        MR_TRY(read_step(t, error));
        MR_TRY(mr_training_save(t, error));
    }
    if (t->directory == nullptr) return MR_OK;
    MR_TRY(mr_event_writer_open(t->directory, &t->events, error));
    MR_TRY(mr_event_writer_add_graph(t->events, t->graph, error));
    return mr_event_writer_add_session_log(t->events, t->step, MR_SESSION_START, nullptr, error);
}

static mr_status check_option(const char *option, int64_t value, int64_t min, mr_error *error)
{
    if (value >= min) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "training: %s is %" PRId64 ", but must be at least %" PRId64, option,
                   value, min);
}

static mr_status check_effect(const char *option, bool is_set, const char *needed, bool has_needed, mr_error *error)
{
    if (!is_set || has_needed) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "training: %s has no effect without %s", option, needed);
}

static mr_status check_effects(const mr_training_options *o, mr_error *error)
{
    bool saves = o->checkpoint_dir != nullptr, shows = o->progress != nullptr;
    MR_TRY(check_effect("save_checkpoint_steps", o->save_checkpoint_steps != MR_COUNT_UNSET, "checkpoint_dir", saves,
                        error));
    MR_TRY(check_effect("save_summaries_steps", o->save_summaries_steps != MR_COUNT_UNSET, "checkpoint_dir", saves,
                        error));
    MR_TRY(check_effect("max_to_keep", o->max_to_keep != MR_COUNT_UNSET, "checkpoint_dir", saves, error));
    MR_TRY(check_effect("restart_data", o->restart_data, "checkpoint_dir", saves, error));
    MR_TRY(check_effect("is_terminal", o->is_terminal, "progress", shows, error));
    MR_TRY(check_effect("unit", o->unit != nullptr, "progress", shows, error));
    MR_TRY(check_effect("units_per_step", o->units_per_step != MR_COUNT_UNSET, "progress", shows, error));
    return check_effect("continue_on_nan_loss", o->continue_on_nan_loss, "loss", o->loss.node != nullptr, error);
}

/* Replaces counts that were omitted by their default values. */
static void set_default_counts(mr_training_options *o)
{
    if (o->save_checkpoint_steps == MR_COUNT_UNSET) o->save_checkpoint_steps = 1000;
    if (o->save_summaries_steps == MR_COUNT_UNSET) o->save_summaries_steps = 100;
    if (o->max_to_keep == MR_COUNT_UNSET) o->max_to_keep = 5;
    if (o->units_per_step == MR_COUNT_UNSET) o->units_per_step = 1;
}

static mr_status check_options(const mr_graph *graph, const mr_training_options *o, mr_error *error)
{
    MR_TRY(check_option("last_step", o->last_step, MR_INFINITE, error));
    MR_TRY(check_option("save_checkpoint_steps", o->save_checkpoint_steps, 0, error));
    MR_TRY(check_option("save_summaries_steps", o->save_summaries_steps, 0, error));
    MR_TRY(check_option("max_to_keep", o->max_to_keep, 0, error));
    MR_TRY(check_option("units_per_step", o->units_per_step, 1, error));
    MR_TRY(check_option("session.threads", o->session->threads, 0, error));
    if (o->checkpoint_dir != nullptr && *o->checkpoint_dir == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "training: checkpoint_dir is empty");
    if (o->loss.node != nullptr && mr_node_graph(o->loss.node) != graph)
        return mr_fail(error, MR_INVALID_ARGUMENT, "training: the loss belongs to another graph");
    return MR_OK;
}

mr_status mr_training_new(mr_graph *graph, const mr_training_options *options, mr_training **training, mr_error *error)
{
    if (graph == nullptr || training == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_training_new: %s is null",
                       graph == nullptr ? "graph" : "training");
    *training = nullptr;
    mr_training_options own;
    mr_session_options session;
    MR_TRY(MR_OPTIONS_READ(mr_training_options, &own, options != nullptr ? options : MR_TRAINING_OPTIONS(), error));
    MR_TRY(MR_OPTIONS_READ(mr_session_options, &session, own.session, error));
    own.session = &session;
    MR_TRY(mr_graph_status(graph, error));
    MR_TRY(check_effects(&own, error));
    set_default_counts(&own);
    MR_TRY(check_options(graph, &own, error));
    mr_training *t = calloc(1, sizeof *t);
    if (t == nullptr) return mr_fail_memory(error, sizeof *t);
    t->graph = graph;
    t->options = own;
    t->saved_step = t->summarised_step = -1;
    mr_status status = MR_OK;
    if (own.checkpoint_dir != nullptr) {
        size_t size = strlen(own.checkpoint_dir) + sizeof "/model.ckpt";
        t->directory = strdup(own.checkpoint_dir);
        t->prefix = malloc(size);
        if (t->directory == nullptr || t->prefix == nullptr)
            status = mr_fail_memory(error, size);
        else
            snprintf(t->prefix, size, "%s/model.ckpt", t->directory);
    }
    if (status == MR_OK) status = start(t, error);
    t->options.session = nullptr;
    if (status != MR_OK) {
        mr_training_free(t);
        return status;
    }
    mr_progress_begin(&t->progress, &t->options, t->step);
    *training = t;
    return MR_OK;
}

/* After the last step: saves and ends the line. Returns MR_OUT_OF_RANGE, or an error. */
static mr_status finish(mr_training *t, mr_error *error)
{
    if (!t->done) {
        t->done = true;
        mr_progress_end(&t->progress, t->step, true);
        MR_TRY(mr_training_save(t, error));
        if (t->events != nullptr) MR_TRY(mr_event_writer_flush(t->events, error));
    }
    return mr_fail(error, MR_OUT_OF_RANGE, "training is done at step %lld", (long long)t->step);
}

/* A save between steps. With continue_on_nan_loss, variables that are not finite are not saved and do not end the
 * run. */
static mr_status save_in_passing(mr_training *t, mr_error *error)
{
    mr_error reason = {0};
    mr_status status = mr_training_save(t, &reason);
    if (status == MR_OK || (status == MR_INVALID_ARGUMENT && t->options.continue_on_nan_loss)) return MR_OK;
    return mr_fail(error, status, "%s", reason.message);
}

/* One of every save_summaries_steps steps is summarized, starting with the first. */
static bool summary_is_due(const mr_training *t)
{
    if (t->events == nullptr || t->summaries.node == nullptr || t->options.save_summaries_steps == 0) return false;
    return t->summarised_step < 0 || t->step + 1 >= t->summarised_step + t->options.save_summaries_steps;
}

/* Takes the loss and the summaries, which the step fetched in addition to the caller's fetches, and releases them. */
static mr_status take_extras(mr_training *t, mr_tensor *loss, mr_tensor *summary, mr_error *error)
{
    mr_status status = MR_OK;
    if (loss != nullptr && loss->dtype == MR_FLOAT && mr_tensor_count(loss) == 1)
        mr_progress_loss(&t->progress, mr_tensor_floats(loss)[0]);
    if (summary != nullptr) {
        status = mr_event_writer_add(t->events, t->step, mr_tensor_strings(summary)[0], error);
        t->summarised_step = t->step;
        double rate = mr_progress_rate(&t->progress);
        if (status == MR_OK && rate > 0)
            status = mr_event_writer_add_scalar(t->events, t->step, "global_step/sec", (float)rate, error);
        mr_tensor_deinit(summary);
    }
    if (loss != nullptr) mr_tensor_deinit(loss);
    return status;
}

/* The error of the step that would have been the next. */
static mr_status fail_diverged(const mr_training *t, const mr_error *reason, mr_error *error)
{
    assert(reason->status != MR_OK);
    if (t->saved_step < 0) return mr_fail(error, reason->status, "step %" PRId64 ": %s", t->step + 1, reason->message);
    return mr_fail(error, reason->status, "step %" PRId64 ": %s; the last checkpoint is %s-%" PRId64, t->step + 1,
                   reason->message, t->prefix, t->saved_step);
}

mr_status mr_training_step(mr_training *training, mr_node *train, mr_feeds feeds, mr_outputs fetches,
                           mr_tensor *results, mr_error *error)
{
    mr_training *t = training;
    MR_REFUSE_NULL(training, error);
    MR_TRY(mr_session_check_list("mr_training_step: fetches", fetches.items, fetches.count, error));
    if (fetches.count > 0) MR_REFUSE_NULL(results, error);
    if (t->done || (t->options.last_step >= 0 && t->step >= t->options.last_step)) return finish(t, error);
    if (fetches.count > FETCHES_MAX - 2)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a training step may fetch at most %d outputs", FETCHES_MAX - 2);
    mr_output all[FETCHES_MAX];
    mr_tensor values[FETCHES_MAX] = {0};
    int32_t count = fetches.count;
    for (int32_t i = 0; i < count; i++) all[i] = fetches.items[i];
    int32_t loss = t->options.loss.node != nullptr ? count : -1;
    if (loss >= 0) all[count++] = t->options.loss;
    int32_t summary = summary_is_due(t) ? count : -1;
    if (summary >= 0) all[count++] = t->summaries;
    bool diverged = false;
    mr_error reason = {0};
    int32_t guard = t->options.continue_on_nan_loss ? -1 : loss;
    mr_status status = mr_session_run_guarded(t->session, feeds, (mr_outputs){all, count}, values, &train, 1, guard,
                                              &diverged, &reason);
    if (status == MR_OUT_OF_RANGE) return finish(t, error);
    if (diverged) return fail_diverged(t, &reason, error);
    if (status != MR_OK) return mr_fail(error, status, "%s", reason.message);
    for (int32_t i = 0; i < fetches.count; i++) results[i] = values[i];
    t->step++;
    status = read_step(t, error);
    mr_status extras = take_extras(t, loss >= 0 ? &values[loss] : nullptr, summary >= 0 ? &values[summary] : nullptr,
                                   status == MR_OK ? error : nullptr);
    if (status == MR_OK) status = extras;
    mr_progress_step(&t->progress, t->step);
    if (status == MR_OK && t->options.save_checkpoint_steps > 0 && t->step % t->options.save_checkpoint_steps == 0)
        status = save_in_passing(t, error);
    for (int32_t i = 0; status != MR_OK && i < fetches.count; i++) mr_tensor_deinit(&results[i]);
    return status;
}

int64_t mr_training_global_step(const mr_training *training)
{
    return training != nullptr ? training->step : -1;
}

mr_session *mr_training_session(mr_training *training)
{
    return training != nullptr ? training->session : nullptr;
}

void mr_training_free(mr_training *training)
{
    if (training == nullptr) return;
    if (!training->done) mr_progress_end(&training->progress, training->step, false);
    if (training->events != nullptr) (void)mr_event_writer_close(training->events, nullptr);
    mr_session_free(training->session);
    mr_saver_free(training->saver);
    mr_run_directory_close(&training->lock);
    free(training->prefix);
    free(training->directory);
    free(training);
}

mr_status mr_training_run(mr_graph *graph, mr_node *train, const mr_training_options *options, mr_error *error)
{
    mr_error end = {0}; /* the end of the run is not an error for the caller */
    mr_training *training = nullptr;
    mr_status status = mr_training_new(graph, options, &training, &end);
    while (status == MR_OK) status = mr_training_step(training, train, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &end);
    bool done = status == MR_OUT_OF_RANGE && training != nullptr && training->done;
    if (done && training->step == 0 && (options == nullptr || training->options.last_step > 0) &&
        training->global_step.node != nullptr) {
        done = false;
        status = mr_fail(&end, MR_INVALID_ARGUMENT, "no data to train on: the data end before the first step");
    }
    mr_training_free(training);
    return done ? MR_OK : mr_fail(error, status, "%s", end.message);
}
