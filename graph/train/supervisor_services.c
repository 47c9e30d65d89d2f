/* What a supervisor writes: by threads at regular times, and when the program asks for it. */
#include "base/mutex.h"
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/hook.h"
#include "graph/train/supervisor.h"
#include "graph/train/write_graph.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Event file ---- */

static mr_status no_writer(mr_error *error)
{
    return mr_fail(error, MR_FAILED_PRECONDITION, "the supervisor has no event file open");
}

static mr_status log_session(mr_supervisor *s, int64_t step, mr_session_event event, const char *checkpoint,
                             mr_error *error)
{
    pthread_mutex_lock(&s->writer_mutex);
    mr_status status = s->writer != nullptr
                           ? mr_event_writer_add_session_log(s->writer, step < 0 ? 0 : step, event, checkpoint, error)
                           : MR_OK;
    pthread_mutex_unlock(&s->writer_mutex);
    return status;
}

static mr_status write_summary(mr_supervisor *s, int64_t step, mr_string summary, mr_error *error)
{
    pthread_mutex_lock(&s->writer_mutex);
    mr_status status =
        s->writer != nullptr ? mr_event_writer_add(s->writer, step < 0 ? 0 : step, summary, error) : no_writer(error);
    pthread_mutex_unlock(&s->writer_mutex);
    return status;
}

mr_status mr_supervisor_summary_computed(mr_supervisor *supervisor, mr_string summary, int64_t step, mr_error *error)
{
    if (supervisor == nullptr) return mr_session_null("mr_supervisor_summary_computed: supervisor", error);
    if (summary.data == nullptr && summary.size_bytes > 0)
        return mr_session_null("mr_supervisor_summary_computed: summary", error);
    if (step < -1)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "mr_supervisor_summary_computed: the step is %" PRId64 ", but must be at least -1", step);
    if (step >= 0) return write_summary(supervisor, step, summary, error);
    mr_session *session = mr_supervisor_enter(supervisor, error);
    if (session == nullptr) return MR_FAILED_PRECONDITION;
    mr_status status = mr_train_read_global_step(session, supervisor->global_step, &step, error);
    if (status == MR_OK) status = write_summary(supervisor, step, summary, error);
    mr_supervisor_leave(supervisor);
    return status;
}

static mr_status open_writer(mr_supervisor *s, mr_error *error)
{
    MR_TRY(mr_train_write_graph_text(s->graph, s->logdir, error));
    pthread_mutex_lock(&s->writer_mutex);
    mr_status status = MR_OK;
    if (s->writer == nullptr) {
        status = mr_event_writer_open(s->logdir, &s->writer, error);
        if (status == MR_OK) status = mr_train_write_graph_events(s->graph, s->writer, error);
    }
    pthread_mutex_unlock(&s->writer_mutex);
    return status;
}

/* The number at the end of a checkpoint's name; -1: it is not one of the supervisor. */
static int64_t number_of(const mr_supervisor *s, const char *checkpoint)
{
    constexpr size_t DIGITS_MAX = 18; /* of which each number is less than the greatest int64_t */
    const char *base = strrchr(s->save_path, '/') + 1, *slash = strrchr(checkpoint, '/');
    const char *name = slash != nullptr ? slash + 1 : checkpoint;
    const size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || name[length] != '-') return -1;
    const char *digits = name + length + 1;
    const size_t count = strspn(digits, "0123456789");
    return count > 0 && count <= DIGITS_MAX && digits[count] == '\0' ? strtoll(digits, nullptr, 10) : -1;
}

mr_status mr_supervisor_open_files(mr_supervisor *s, mr_session *session, const char *restored, mr_error *error)
{
    s->saved_step = -1;
    if (s->logdir == nullptr) return MR_OK;
    if (restored != nullptr && s->scaffold.saver != nullptr) {
        int64_t step;
        const int64_t number = number_of(s, restored);
        MR_TRY(mr_train_read_global_step(session, s->global_step, &step, error));
        if (s->global_step.ref.node == nullptr || number == step) s->saved_step = number;
        MR_TRY(mr_saver_clean(s->scaffold.saver, s->save_path, error));
    }
    return open_writer(s, error);
}

mr_status mr_supervisor_close_files(mr_supervisor *s, mr_error *error)
{
    pthread_mutex_lock(&s->writer_mutex);
    mr_event_writer *writer = s->writer;
    s->writer = nullptr;
    pthread_mutex_unlock(&s->writer_mutex);
    if (writer == nullptr) return MR_OK;
    mr_status status = mr_event_writer_add_session_log(writer, 0, MR_SESSION_STOP, nullptr, error);
    mr_status closed = mr_event_writer_close(writer, status == MR_OK ? error : nullptr);
    return status != MR_OK ? status : closed;
}

/* ---- Checkpoints ---- */

/* What was written to the event file before the checkpoint is complete when the checkpoint is. saver_mutex locked. */
static mr_status save_step(mr_supervisor *s, mr_session *session, int64_t step, mr_error *error)
{
    mr_status status = MR_OK;
    assert(mr_mutex_is_held(&s->saver_mutex));
    assert(s->logdir != nullptr && s->scaffold.saver != nullptr && s->saved_step >= -1);
    pthread_mutex_lock(&s->writer_mutex);
    if (s->writer != nullptr) status = mr_event_writer_flush(s->writer, error);
    pthread_mutex_unlock(&s->writer_mutex);
    MR_TRY(status);
    if (s->global_step.ref.node == nullptr) s->saved_step = step; /* a save that fails may have been named */
    MR_TRY(mr_saver_save(s->scaffold.saver, session, s->save_path, step, error));
    s->saved_step = step;
    if (s->global_step.ref.node == nullptr) return MR_OK;
    return log_session(s, step, MR_SESSION_CHECKPOINT, s->save_path, error);
}

/* only_new: a checkpoint of this step is not written again: while its files are replaced, a process that dies would
 * leave none. For the same reason, checkpoints without a global step are numbered. */
static mr_status save(mr_supervisor *s, mr_session *session, bool only_new, mr_error *error)
{
    int64_t step;
    pthread_mutex_lock(&s->saver_mutex);
    mr_status status = mr_train_read_global_step(session, s->global_step, &step, error);
    if (s->global_step.ref.node == nullptr) step = s->saved_step + 1;
    if (status == MR_OK && (!only_new || step < 0 || step != s->saved_step))
        status = save_step(s, session, step, error);
    pthread_mutex_unlock(&s->saver_mutex);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "saving a checkpoint");
}

mr_status mr_supervisor_save(mr_supervisor *supervisor, mr_error *error)
{
    if (supervisor == nullptr) return mr_session_null("mr_supervisor_save: supervisor", error);
    const char *missing = supervisor->logdir == nullptr           ? "logdir"
                          : supervisor->scaffold.saver == nullptr ? "saver"
                                                                  : nullptr;
    if (missing != nullptr) return mr_fail(error, MR_FAILED_PRECONDITION, "the supervisor has no %s", missing);
    mr_session *session = mr_supervisor_enter(supervisor, error);
    if (session == nullptr) return MR_FAILED_PRECONDITION;
    mr_status status = save(supervisor, session, false, error);
    mr_supervisor_leave(supervisor);
    return status;
}

static mr_status run_checkpoint(void *context, mr_error *error)
{
    mr_supervisor *s = context;
    return save(s, s->session, true, error);
}

/* ---- Summaries ---- */

/* The summary and the step are of one run. */
static mr_status run_summary(void *context, mr_error *error)
{
    mr_supervisor *s = context;
    assert(s->session != nullptr && s->scaffold.summary.node != nullptr);
    const mr_output fetches[] = {s->scaffold.summary, s->global_step.value};
    const int32_t count = s->global_step.value.node != nullptr ? 2 : 1;
    mr_tensor values[2] = {0};
    int64_t step = -1;
    MR_TRY(mr_session_run(s->session, MR_NO_FEEDS, (mr_outputs){fetches, count}, values, nullptr, 0, error));
    mr_status status = count == 2 ? mr_train_step_of(&values[1], &step, error) : MR_OK;
    if (status == MR_OK && mr_tensor_count(&values[0]) != 1)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "supervisor: %s is not a string scalar",
                         mr_node_name(s->scaffold.summary.node));
    if (status == MR_OK) status = write_summary(s, step, mr_tensor_strings(&values[0])[0], error);
    for (int32_t i = 0; i < count; i++) mr_tensor_deinit(&values[i]);
    return status;
}

/* ---- Steps per second ---- */

static mr_status start_counter(void *context, mr_error *error)
{
    mr_supervisor *s = context;
    assert(s->session != nullptr && s->global_step.ref.node != nullptr);
    s->counter_time = mr_hook_now();
    return mr_train_read_global_step(s->session, s->global_step, &s->counter_step, error);
}

static mr_status run_counter(void *context, mr_error *error)
{
    mr_supervisor *s = context;
    int64_t step;
    char tag[300];
    MR_TRY(mr_train_read_global_step(s->session, s->global_step, &step, error));
    const double now = mr_hook_now(), elapsed = now - s->counter_time;
    const double rate = elapsed > 0 ? (double)(step - s->counter_step) / elapsed : INFINITY;
    s->counter_time = now;
    s->counter_step = step;
    snprintf(tag, sizeof tag, "%.280s/sec", mr_node_name(s->global_step.ref.node));
    pthread_mutex_lock(&s->writer_mutex);
    mr_status status =
        s->writer != nullptr ? mr_event_writer_add_scalar(s->writer, step, tag, (float)rate, error) : no_writer(error);
    pthread_mutex_unlock(&s->writer_mutex);
    return status;
}

/* ---- Start ---- */

mr_status mr_supervisor_start_standard_services(mr_supervisor *supervisor, mr_error *error)
{
    mr_supervisor *s = supervisor;
    if (s == nullptr) return mr_session_null("mr_supervisor_start_standard_services: supervisor", error);
    if (s->is_worker)
        return mr_fail(error, MR_FAILED_PRECONDITION, "only the chief supervisor can start the standard services");
    if (s->session == nullptr) return mr_fail(error, MR_FAILED_PRECONDITION, "the supervisor has no open session");
    if (s->has_services)
        return mr_fail(error, MR_FAILED_PRECONDITION, "the standard services of this session have been started");
    if (s->logdir == nullptr) return MR_OK;
    s->has_services = true;
    const bool has_step = s->global_step.ref.node != nullptr;
    if (has_step) {
        int64_t step;
        MR_TRY(mr_train_read_global_step(s->session, s->global_step, &step, error));
        MR_TRY(log_session(s, step, MR_SESSION_START, nullptr, error));
    }
    const mr_looper summary = {.run = run_summary, .context = s}, checkpoint = {.run = run_checkpoint, .context = s},
                    counter = {.start = start_counter, .run = run_counter, .context = s};
    if (isfinite(s->summaries_secs) && s->scaffold.summary.node != nullptr)
        MR_TRY(mr_coordinator_start_looper(s->coordinator, s->summaries_secs, &summary, error));
    if (isfinite(s->summaries_secs) && has_step)
        MR_TRY(mr_coordinator_start_looper(s->coordinator, s->summaries_secs, &counter, error));
    if (isfinite(s->model_secs) && s->scaffold.saver != nullptr)
        MR_TRY(mr_coordinator_start_looper(s->coordinator, s->model_secs, &checkpoint, error));
    return MR_OK;
}
