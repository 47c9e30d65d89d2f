/* Hooks: at which steps something is written, logged or stopped; mistakes. */
#include "tests/train/monitored.h"

#include <pthread.h>
#include <unistd.h>

/* ---- Hooks ---- */

static void collect(void *context, const char *line)
{
    strncat(context, line, 4000 - strlen(context));
    strncat(context, "\n", 4000 - strlen(context));
}

/* Runs `runs` times with these hooks, or until they stop. */
static int64_t run_with(mr_hooks hooks, int runs)
{
    mr_error error = {0};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(
        mr_monitored_session_new(m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = hooks), &session, &error));
    for (int i = 0; i < runs && !mr_monitored_session_should_stop(session); i++) CHECK_OK(run(session, &m, &error));
    int64_t step;
    CHECK_OK(mr_monitored_session_global_step(session, &step, &error));
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    mr_graph_free(m.graph);
    return step;
}

TEST(stop_at_step_hooks_stop)
{
    CHECK_EQ(run_with(MR_HOOKS(mr_stop_at_step_hook(.last_step = 3)), 10), 3);
    CHECK_EQ(run_with(MR_HOOKS(mr_stop_at_step_hook(.num_steps = 5)), 10), 5);
    CHECK_EQ(run_with(MR_HOOKS(mr_stop_at_step_hook(.num_steps = INT64_MAX)), 10), 10);
    CHECK_EQ(run_with(MR_HOOKS(mr_stop_at_step_hook(.num_steps = 5), mr_stop_at_step_hook(.last_step = 2)), 10), 2);
}

/* A run that advances several steps at once, and one that advances none. */
TEST(steps_are_read_after_the_run)
{
    mr_error error = {0};
    model m = build();
    mr_node *by_four = mr_variable_assign_add(m.graph, m.step, mr_constant_int64(m.graph, 4)).node;
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_training_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = test_path("run"),
                   .save_checkpoint_steps = 3, .hooks = MR_HOOKS(mr_stop_at_step_hook(.last_step = 10))),
        &session, &error));
    int runs = 0;
    for (; !mr_monitored_session_should_stop(session); runs++) {
        mr_tensor loss = {0};
        CHECK_OK(mr_monitored_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(m.loss), &loss, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&loss)[0] == 1);
        mr_tensor_deinit(&loss);
        CHECK_OK(mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &by_four, 1, &error));
    }
    CHECK_EQ(runs, 3);
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    CHECK_EQ(files(test_path("run"), ".index"), 4); /* 0, 4, 8, 12 */
    mr_graph_free(m.graph);
}

TEST(logging_hooks_log)
{
    mr_error error = {0};
    char text[4096] = "", at_end[4096] = "";
    model m = build();
    mr_output pair = mr_pack(m.graph, MR_OUTPUTS(mr_sqrt(m.graph, m.loss), m.loss));
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(
            mr_monitored_session_options,
            .hooks = MR_HOOKS(
                mr_logging_tensor_hook(MR_OUTPUTS(m.loss, pair), .every_n_iter = 2, .names = MR_NAMES("loss", "pair"),
                                       .log = collect, .log_context = text),
                mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .at_end = true, .log = collect, .log_context = at_end))),
        &session, &error));
    for (int i = 0; i < 4; i++) CHECK_OK(run(session, &m, &error));
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    static const char start[] = "loss = 1, pair = [1 1]\nloss = 6.25, pair = [2.5 6.25] (";
    CHECK(strncmp(text, start, sizeof start - 1) == 0);
    CHECK_STR(strchr(strchr(text, '\n') + 1, '\n'), "\n"); /* two lines: runs 0 and 2 */
    CHECK_CONTAINS(at_end, "loss:0 = 9.5069");
    mr_graph_free(m.graph);
}

TEST(step_counter_hooks_count)
{
    char text[4096] = "";
    run_with(MR_HOOKS(mr_step_counter_hook(.every_n_steps = 3, .log = collect, .log_context = text)), 10);
    int lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != nullptr; at++) lines++;
    CHECK_EQ(lines, 3);
    CHECK(strncmp(text, "global_step/sec: ", 17) == 0);
}

TEST(nan_hooks_fail_or_stop)
{
    for (int fails = 0; fails < 2; fails++) {
        mr_error error = {0};
        model m = build();
        mr_output loss = mr_div(m.graph, mr_constant_float(m.graph, 0),
                                mr_sub(m.graph, m.w.value, mr_constant_float(m.graph, 2.5f)), .name = "ratio");
        mr_monitored_session *session = nullptr;
        CHECK_OK(mr_monitored_session_new(
            m.graph,
            MR_OPTIONS(mr_monitored_session_options,
                       .hooks = MR_HOOKS(mr_nan_tensor_hook(loss, .fail_on_nan_loss = fails == 1))),
            &session, &error));
        mr_status status = run_all(session, &m, &error); /* w is 2.5 in the third run */
        CHECK_EQ(status, fails == 1 ? MR_INVALID_ARGUMENT : MR_OK);
        if (fails == 1) CHECK_STR(error.message, "NaN loss during training: ratio:0");
        int64_t step;
        CHECK_OK(mr_monitored_session_global_step(session, &step, &error));
        CHECK_EQ(step, 3);
        CHECK_EQ(mr_monitored_session_close(session, status, &error), status);
        mr_graph_free(m.graph);
    }
}

TEST(final_ops_hooks_fetch_at_the_end)
{
    mr_error error = {0};
    model m = build();
    mr_output x = mr_placeholder(m.graph, MR_FLOAT, .shape = MR_SCALAR);
    mr_output sum = mr_add_v2(m.graph, x, m.w.value);
    mr_tensor ten = {0}, result = {0};
    CHECK_OK(mr_tensor_init_float(&ten, 10, &error));
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_session_options,
                   .hooks = MR_HOOKS(mr_final_ops_hook(MR_OUTPUTS(sum), &result, .feeds = MR_FEEDS({x, ten})))),
        &session, &error));
    mr_tensor_deinit(&ten);
    CHECK_OK(run(session, &m, &error));
    CHECK(result.buffer == nullptr);
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    CHECK(mr_tensor_floats(&result)[0] == 12);
    mr_tensor_deinit(&result);
    mr_graph_free(m.graph);
}

static mr_status feed_x(void *context, mr_hook_run *hook_run, mr_error *error)
{
    mr_tensor value = {0};
    MR_TRY(mr_tensor_init_float(&value, 3, error));
    mr_status status = mr_hook_run_feed(hook_run, MR_FEEDS({*(mr_output *)context, value}), error);
    mr_tensor_deinit(&value);
    return status;
}

static mr_status fetch_late(void *context, mr_hook_run *hook_run, mr_error *error)
{
    return mr_hook_run_fetch(hook_run, (mr_outputs){context, 1}, error);
}

TEST(hooks_feed)
{
    mr_error error = {0};
    model m = build();
    mr_output x = mr_placeholder(m.graph, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_output twice = mr_add_v2(m.graph, x, x);
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(mr_hook_new(&x, .before_run = feed_x))),
        &session, &error));
    mr_tensor result = {0}, one = {0};
    CHECK_OK(mr_monitored_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(twice), &result, nullptr, 0, &error));
    CHECK(mr_tensor_floats(&result)[0] == 6);
    mr_tensor_deinit(&result);
    CHECK_OK(mr_tensor_init_float(&one, 1, &error));
    CHECK_EQ(mr_monitored_session_run(session, MR_FEEDS({x, one}), MR_OUTPUTS(twice), &result, nullptr, 0, &error),
             MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "x:0 is fed by the caller of the run and by a hook, or by two");
    mr_tensor_deinit(&one);
    CHECK_EQ(mr_monitored_session_close(session, MR_OK, &error), MR_OK);

    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(mr_hook_new(&m.loss, .after_run = fetch_late))),
        &session, &error));
    CHECK_EQ(run(session, &m, &error), MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "mr_hook_run_fetch is for before_run: this run has taken place");
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    mr_graph_free(m.graph);
}

typedef struct listened {
    char calls[256];
    int64_t stop_at;
} listened;

static void add_call(listened *l, const char *what, int64_t step)
{
    snprintf(l->calls + strlen(l->calls), sizeof l->calls - strlen(l->calls), "%s%d ", what, (int)step);
}

static mr_status listen_begin(void *context, mr_graph *, mr_error *)
{
    return add_call(context, "begin", 0), MR_OK;
}

static mr_status listen_before(void *context, mr_session *, int64_t step, mr_error *)
{
    return add_call(context, "before", step), MR_OK;
}

static mr_status listen_after(void *context, mr_session *, int64_t step, bool *stop, mr_error *)
{
    listened *l = context;
    *stop = step == l->stop_at;
    return add_call(context, "after", step), MR_OK;
}

static mr_status listen_end(void *context, mr_session *, int64_t step, mr_error *)
{
    return add_call(context, "end", step), MR_OK;
}

TEST(checkpoint_listeners_are_told)
{
    listened l = {.stop_at = 4};
    const mr_checkpoint_listener listener = {listen_begin, listen_before, listen_after, listen_end, &l};
    CHECK_EQ(run_with(MR_HOOKS(mr_checkpoint_saver_hook(test_path("run"), .save_steps = 2, .checkpoint_basename = "c",
                                                        .listeners = &listener, .listener_count = 1)),
                      100),
             4);
    CHECK_STR(l.calls, "begin0 before0 after0 before2 after2 before4 after4 end4 ");
    CHECK_EQ(files(test_path("run"), "c-4.index"), 1);
}

TEST(profiler_hooks_write_timelines)
{
    run_with(MR_HOOKS(mr_profiler_hook(test_path("run"), .save_steps = 3)), 9);
    CHECK_EQ(files(test_path("run"), "timeline-"), 3); /* 3, 6, 9 */
    FILE *file = fopen(test_path("run/timeline-3.json"), "r");
    CHECK(file != nullptr);
    static char text[1 << 16];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    static const char start[] = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{\"ph\": \"M\"";
    CHECK(strncmp(text, start, sizeof start - 1) == 0);
    CHECK_CONTAINS(text, "\"name\": \"AssignAdd\", \"args\": {\"name\": \"AssignAdd\", \"op\": \"AssignAdd\"}}");
    CHECK_STR(text + strlen(text) - 4, "\n]}\n");

    mr_error error = {0};
    const char *bad[] = {"\xff", "", "\x0a\x05"};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(mr_timeline_write(mr_string_from(bad[i]), test_path("bad.json"), &error), MR_INVALID_ARGUMENT);
    CHECK(access(test_path("bad.json"), F_OK) != 0);
}

typedef struct other {
    mr_monitored_session *session;
    const model *model;
} other;

static void *stop_soon(void *context)
{
    usleep(50'000);
    mr_monitored_session_request_stop(context);
    return nullptr;
}

TEST(waiter_hooks_wait_until_the_step_or_a_stop)
{
    mr_error error = {0};
    CHECK_EQ(run_with(MR_HOOKS(mr_global_step_waiter_hook(0)), 2), 2);
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(mr_global_step_waiter_hook(1000))),
        &session, &error));
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, stop_soon, session), 0);
    CHECK_EQ(run(session, &m, &error), MR_CANCELLED);
    CHECK_STR(error.message, "stopped while waiting for the global step 1000; it is 0");
    pthread_join(thread, nullptr);
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    mr_graph_free(m.graph);
}

/* ---- Mistakes ---- */

static void refuse(mr_hook *hook, const char *message)
{
    mr_error error = {0};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_EQ(mr_monitored_session_new(m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(hook)),
                                      &session, &error),
             MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, message);
    CHECK(session == nullptr);
    mr_graph_free(m.graph);
}

TEST(hooks_with_mistakes_are_refused)
{
    model m = build();
    mr_output flag = mr_identity(m.graph, mr_constant_int32(m.graph, 1), .name = "flag");
    refuse(nullptr, "hook 0 is null: it could not be created");
    refuse(mr_stop_at_step_hook(), "stop-at-step hook: either num_steps or last_step must be given");
    refuse(mr_stop_at_step_hook(.num_steps = 1, .last_step = 1),
           "stop-at-step hook: either num_steps or last_step must be given");
    refuse(mr_stop_at_step_hook(.last_step = -1), "stop-at-step hook: last_step is -1, but must be at least 1");
    refuse(mr_nan_tensor_hook((mr_output){0}), "NaN hook: the loss is missing");
    refuse(mr_nan_tensor_hook(flag), "NaN hook: flag:0 is int32, not a floating number");
    refuse(mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .every_n_iter = 1), "logging hook: log is required");
    refuse(mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .log = collect),
           "logging hook: every_n_iter or every_n_secs must be given");
    refuse(mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .log = collect, .every_n_iter = -2),
           "logging hook: every_n_iter is -2, but must be at least 1");
    refuse(mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .log = collect, .every_n_secs = NAN),
           "logging hook: every_n_secs is nan, but must be a number above 0");
    refuse(mr_logging_tensor_hook((mr_outputs){0}, .log = collect, .at_end = true),
           "logging hook: at least one output is needed");
    refuse(mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .log = collect, .at_end = true, .names = MR_NAMES("a", "b")),
           "logging hook: 2 names for 1 outputs");
    refuse(mr_step_counter_hook(), "step counter hook: log, output_dir or writer must be given");
    refuse(mr_step_counter_hook(.log = collect, .every_n_steps = 1, .every_n_secs = 1),
           "step counter hook: only one of every_n_steps and every_n_secs may be given");
    refuse(mr_step_counter_hook(.output_dir = ""), "step counter hook: the directory is empty");
    refuse(mr_checkpoint_saver_hook("x", .save_steps = 1, .checkpoint_basename = "../x"),
           "checkpoint saver hook: checkpoint_basename \"../x\" is not a file name");
    refuse(mr_final_ops_hook(MR_OUTPUTS({0}), &(mr_tensor){0}), "final ops hook: output 0 is missing");
    refuse(mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .log = collect, .at_end = true),
           "logging hook: loss belongs to another graph");
    refuse(mr_nan_tensor_hook(m.loss), "NaN hook: loss belongs to another graph");
    refuse(mr_summary_saver_hook(test_path("run"), .save_steps = 1, .summary = m.loss),
           "summary saver hook: loss is float, not a serialized summary");
    refuse(mr_summary_saver_hook("", .save_steps = 1), "summary saver hook: the directory is empty");
    refuse(mr_checkpoint_saver_hook(nullptr, .save_steps = 1), "checkpoint saver hook: the directory is null");
    refuse(mr_checkpoint_saver_hook("x"), "checkpoint saver hook: save_steps or save_secs must be given");
    refuse(mr_checkpoint_saver_hook("x", .save_steps = 1, .listener_count = 2),
           "checkpoint saver hook: listener_count is 2, but listeners is null");
    refuse(mr_profiler_hook("x", .save_secs = -1), "profiler hook: save_secs is -1, but must be a number above 0");
    refuse(mr_global_step_waiter_hook(-1), "global step waiter hook: wait_until_step is -1, but must be at least 0");
    refuse(mr_final_ops_hook((mr_outputs){0}, nullptr),
           "final ops hook: at least one output and its result are needed");
    mr_hook_free(mr_stop_at_step_hook());
    mr_hook_free(nullptr);
    mr_graph_free(m.graph);
}

TEST(sessions_with_mistakes_are_refused)
{
    mr_error error = {0};
    model m = build();
    mr_monitored_session *session = nullptr;
    mr_hook *twice = mr_stop_at_step_hook(.num_steps = 1);
    CHECK_EQ(mr_monitored_session_new(
                 m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(twice, twice)), &session, &error),
             MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "hook 1 is already in use by a session");
#define REFUSE(type, function, text, ...)                                                                              \
    do {                                                                                                               \
        CHECK(function(m.graph, MR_OPTIONS(type, __VA_ARGS__), &session, &error) != MR_OK);                            \
        CHECK_STR(error.message, text);                                                                                \
        CHECK(session == nullptr);                                                                                     \
    } while (0)
#define REFUSE_SESSION(text, ...) REFUSE(mr_monitored_session_options, mr_monitored_session_new, text, __VA_ARGS__)
#define REFUSE_TRAINING(text, ...)                                                                                     \
    REFUSE(mr_monitored_training_session_options, mr_monitored_training_session_new,                                   \
           "monitored training session: " text, __VA_ARGS__)
    REFUSE_SESSION("monitored session: only one of checkpoint_dir and checkpoint_path may be given",
                   .checkpoint_dir = "a", .checkpoint_path = "b");
    REFUSE_SESSION("the name of the directory is empty", .checkpoint_dir = "");
    REFUSE_SESSION("/dev/null is not a directory", .checkpoint_dir = "/dev/null");
    REFUSE_SESSION("scaffold: summary is float, not a serialized summary",
                   .scaffold = MR_OPTIONS(mr_scaffold, .summary = m.loss));
    REFUSE_SESSION("monitored session: stop_grace_period_secs is not a number", .stop_grace_period_secs = NAN);
    REFUSE_SESSION("scaffold: init_context has no effect without init_fn",
                   .scaffold = MR_OPTIONS(mr_scaffold, .init_context = &m));
    REFUSE_TRAINING("checkpoint_dir is empty", .checkpoint_dir = "");
    REFUSE_TRAINING("save_checkpoint_steps has no effect without checkpoint_dir", .save_checkpoint_steps = 5);
    REFUSE_TRAINING("save_summaries_secs has no effect without checkpoint_dir or summary_dir",
                    .save_summaries_secs = 5);
    REFUSE_TRAINING("only one of save_checkpoint_steps and save_checkpoint_secs may be given",
                    .checkpoint_dir = test_path("run"), .save_checkpoint_steps = 5, .save_checkpoint_secs = 5);
    REFUSE_TRAINING("save_summaries_steps must be at least -1", .checkpoint_dir = test_path("run"),
                    .save_summaries_steps = -2);
    REFUSE_TRAINING("save_checkpoint_secs must be a number from 0 on, or -1", .checkpoint_dir = test_path("run"),
                    .save_checkpoint_secs = -0.5);
    REFUSE_TRAINING("summary_dir has no effect: nothing is to be written there", .summary_dir = test_path("run"),
                    .save_summaries_steps = -1, .log_step_count_steps = -1);
    mr_graph *empty = mr_graph_new();
    CHECK_EQ(mr_monitored_session_new(
                 empty,
                 MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(mr_stop_at_step_hook(.num_steps = 1))),
                 &session, &error),
             MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "the stop-at-step hook needs the graph's global step: call mr_global_step first");
    CHECK_OK(mr_monitored_session_new(empty, nullptr, &session, &error)); /* a graph without variables */
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    mr_graph_free(empty);
    CHECK(mr_monitored_session_should_stop(nullptr));
    mr_monitored_session_request_stop(nullptr);
    CHECK_EQ(mr_monitored_session_close(nullptr, MR_INTERNAL, &error), MR_INTERNAL);
    mr_graph_free(m.graph);
}

/* Each allocation fails once: the session is refused or ends with an error, and nothing is lost. */
TEST(monitored_sessions_without_memory_fail)
{
    if (test_allocations() < 0) test_skip("allocations cannot fail here");
    bool done = false;
    for (long long number = 1; !done && number < 20000; number += 1 + number / 64) {
        mr_error error = {0};
        char text[4096] = "";
        model m = build();
        mr_monitored_session *session = nullptr;
        test_fail_allocation(number);
        mr_status status = mr_monitored_training_session_new(
            m.graph,
            MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = test_path("run-%lld", number),
                       .save_checkpoint_steps = 1,
                       .hooks = MR_HOOKS(mr_stop_at_step_hook(.last_step = 2),
                                         mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .every_n_iter = 1, .log = collect,
                                                                .log_context = text))),
            &session, &error);
        if (status == MR_OK) status = run_all(session, &m, &error);
        const mr_status end = mr_monitored_session_close(session, status, &error);
        done = test_allocations() > 0 && end == MR_OK && status == MR_OK;
        test_fail_allocation(0);
        mr_graph_free(m.graph);
    }
    CHECK(done);
}

/* "N values: A", as the program wants it. */
static int format_values(void *context, const mr_tensor *values, int32_t count, char *line, size_t size)
{
    if (*(const int *)context < 0) return -1;
    return snprintf(line, size, "%d values: %g", (int)count, (double)mr_tensor_floats(&values[0])[0]);
}

TEST(logging_hooks_format)
{
    mr_error error = {0};
    char text[4096] = "";
    int sign = 1;
    model m = build();
    mr_monitored_session *session = nullptr;
    mr_hook *hook = mr_logging_tensor_hook(MR_OUTPUTS(m.loss, m.loss), .every_n_iter = 2, .log = collect,
                                           .log_context = text, .format = format_values, .format_context = &sign);
    CHECK_OK(mr_monitored_session_new(m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(hook)),
                                      &session, &error));
    for (int i = 0; i < 4; i++) CHECK_OK(run(session, &m, &error));
    CHECK_STR(text, "2 values: 1\n2 values: 6.25\n");
    sign = -1;
    CHECK_STATUS(run(session, &m, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "logging hook: format returned -1");
    CHECK_STATUS(mr_monitored_session_close(session, MR_INVALID_ARGUMENT, &error), MR_INVALID_ARGUMENT);
    mr_graph_free(m.graph);
}

TEST(hooks_write_to_a_writer_of_the_program)
{
    mr_error error = {0};
    model m = build();
    mr_event_writer *writer = nullptr;
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_event_writer_open(test_path("own"), &writer, &error));
    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_session_options,
                   .hooks = MR_HOOKS(mr_summary_saver_hook(nullptr, .save_steps = 2, .writer = writer),
                                     mr_step_counter_hook(.every_n_steps = 1, .writer = writer))),
        &session, &error));
    for (int i = 0; i < 5; i++) CHECK_OK(run(session, &m, &error));
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    char path[4096];
    snprintf(path, sizeof path, "%s", mr_event_writer_path(writer));
    CHECK_OK(mr_event_writer_close(writer, &error));
    mr_event_reader *reader = nullptr;
    const mr_event_message *event = nullptr;
    int losses = 0, rates = 0;
    CHECK_OK(mr_event_reader_open(path, &reader, &error));
    while (mr_event_reader_next(reader, &event, &error) == MR_OK)
        for (int32_t i = 0; i < event->value_count; i++) {
            losses += strncmp(event->values[i].tag, "loss", 4) == 0; /* "loss_1" */
            rates += strcmp(event->values[i].tag, "global_step/sec") == 0;
        }
    mr_event_reader_close(reader);
    CHECK_EQ(losses, 3); /* steps 1, 3, 5 */
    CHECK_EQ(rates, 4);
    mr_graph_free(m.graph);
}

TEST(checkpoint_hooks_leave_graphs_out)
{
    mr_error error = {0};
    for (int i = 0; i < 2; i++) {
        model m = build();
        mr_monitored_session *session = nullptr;
        const char *directory = test_path(i == 0 ? "with" : "without");
        CHECK_OK(mr_monitored_training_session_new(
            m.graph,
            MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = directory, .save_checkpoint_steps = 2,
                       .no_graph_def = i == 1, .hooks = MR_HOOKS(mr_stop_at_step_hook(.last_step = 3))),
            &session, &error));
        CHECK_OK(run_all(session, &m, &error));
        CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
        CHECK_EQ(files(directory, ".index"), 3); /* 0, 2, 3 */
        CHECK_EQ(files(directory, ".meta"), i == 0 ? 3 : 0);
        CHECK_EQ(files(directory, "graph.pbtxt"), i == 0 ? 1 : 0);
        mr_graph_free(m.graph);
    }
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_STATUS(
        mr_monitored_training_session_new(
            m.graph, MR_OPTIONS(mr_monitored_training_session_options, .no_graph_def = true), &session, &error),
        MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "no_graph_def has no effect");
    mr_graph_free(m.graph);
}

TEST(hooks_refuse_two_writers)
{
    mr_error error = {0};
    mr_event_writer *writer = nullptr;
    CHECK_OK(mr_event_writer_open(test_path("own"), &writer, &error));
#define REFUSE_HOOK(part, hook)                                                                                        \
    {                                                                                                                  \
        model m = build();                                                                                             \
        mr_monitored_session *session = nullptr;                                                                       \
        CHECK_STATUS(mr_monitored_session_new(m.graph,                                                                 \
                                              MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(hook)),       \
                                              &session, &error),                                                       \
                     MR_INVALID_ARGUMENT);                                                                             \
        CHECK_CONTAINS(error.message, part);                                                                           \
        mr_graph_free(m.graph);                                                                                        \
    }
    REFUSE_HOOK("only one of output_dir and writer", mr_summary_saver_hook("x", .save_steps = 1, .writer = writer))
    REFUSE_HOOK("the directory is null", mr_summary_saver_hook(nullptr, .save_steps = 1))
    REFUSE_HOOK("only one of output_dir and writer", mr_step_counter_hook(.output_dir = "x", .writer = writer))
    REFUSE_HOOK("log, output_dir or writer must be given", mr_step_counter_hook(.every_n_steps = 1))
    REFUSE_HOOK("names have no effect with format",
                mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .every_n_iter = 1, .log = collect, .names = MR_NAMES("x"),
                                       .format = format_values))
    REFUSE_HOOK("format_context has no effect without format",
                mr_logging_tensor_hook(MR_OUTPUTS(m.loss), .every_n_iter = 1, .log = collect, .format_context = &error))
    CHECK_OK(mr_event_writer_close(writer, &error));
}

TEST(step_timers_trigger)
{
    double seconds = -1;
    int64_t steps = -1;
    mr_step_timer timer = {.every_steps = 3}, slow = {.every_secs = 1000};
    CHECK(mr_step_timer_should_trigger(&timer, 5));
    mr_step_timer_update(&timer, 5, &seconds, &steps);
    CHECK(seconds == 0 && steps == 0);
    CHECK(!mr_step_timer_should_trigger(&timer, 5) && !mr_step_timer_should_trigger(&timer, 7));
    CHECK(mr_step_timer_should_trigger(&timer, 8));
    mr_step_timer_update(&timer, 9, &seconds, &steps);
    CHECK(seconds >= 0 && steps == 4);
    mr_step_timer_update(&timer, INT64_MIN, nullptr, nullptr); /* no overflow */
    mr_step_timer_update(&timer, INT64_MAX, nullptr, &steps);
    CHECK(mr_step_timer_should_trigger(&slow, 1));
    mr_step_timer_update(&slow, 1, nullptr, nullptr);
    CHECK(!mr_step_timer_should_trigger(&slow, 100));
    CHECK(!mr_step_timer_should_trigger(nullptr, 1));
    mr_step_timer_update(nullptr, 1, &seconds, &steps);
    CHECK(seconds == 0 && steps == 0);
}
