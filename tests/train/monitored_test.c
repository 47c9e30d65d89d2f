/* Monitored sessions and hooks: what is called when, at which steps something is written, recovery, the end, and
 * mistakes. */
#include "tests/test.h"

#include <dirent.h>
#include <millrace/millrace.h>
#include <pthread.h>
#include <unistd.h>

typedef struct model {
    mr_graph *graph;
    mr_node *train; /* w += 1 / (step + 1), step += 1 */
    mr_output loss;
    mr_variable w, step;
} model;

static model build(void)
{
    model m = {.graph = mr_graph_new()};
    mr_graph *g = m.graph;
    m.step = mr_global_step(g);
    m.w = mr_get_variable(g, "w", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ONES});
    m.loss = mr_square(g, m.w.value, .name = "loss");
    mr_summary_scalar(g, "loss", m.loss);
    mr_graph_push_control_dependencies(g, &m.loss.node, 1); /* a loss of a run is that before its update */
    mr_output next = mr_variable_assign_add(
        g, m.w, mr_reciprocal(g, mr_cast(g, mr_add_v2(g, m.step.value, mr_constant_int64(g, 1)), MR_FLOAT)));
    mr_graph_push_control_dependencies(g, &next.node, 1);
    m.train = mr_variable_assign_add(g, m.step, mr_constant_int64(g, 1)).node;
    mr_graph_pop_control_dependencies(g);
    mr_graph_pop_control_dependencies(g);
    return m;
}

static mr_status run(mr_monitored_session *session, const model *m, mr_error *error)
{
    return mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->train, 1, error);
}

static mr_status run_all(mr_monitored_session *session, const model *m, mr_error *error)
{
    mr_status status = MR_OK;
    while (status == MR_OK && !mr_monitored_session_should_stop(session)) status = run(session, m, error);
    return status;
}

static float value_of(mr_monitored_session *session, mr_variable variable)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(mr_monitored_session_raw(session), variable.ref, &value, &error));
    float number = mr_tensor_floats(&value)[0];
    mr_tensor_deinit(&value);
    return number;
}

/* The number of files in the directory whose names contain `part`. */
static int files(const char *directory, const char *part)
{
    int count = 0;
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries != nullptr && (entry = readdir(entries)) != nullptr;)
        count += strstr(entry->d_name, part) != nullptr;
    if (entries != nullptr) closedir(entries);
    return count;
}

/* ---- What is called when ---- */

typedef struct witness {
    char *calls;
    char name;
    mr_status fails; /* in before_run, at run number at */
    int at, runs;
} witness;

static void note(const witness *w, char call)
{
    char text[3] = {w->name, call, '\0'};
    strcat(w->calls, text);
}

static mr_status witness_begin(void *context, mr_graph *graph, mr_error *)
{
    CHECK(graph != nullptr);
    return note(context, 'b'), MR_OK;
}

static mr_status witness_created(void *context, mr_session *session, mr_coordinator *coordinator, mr_error *)
{
    CHECK(session != nullptr && coordinator != nullptr);
    return note(context, 'c'), MR_OK;
}

static mr_status witness_before(void *context, mr_hook_run *hook_run, mr_error *error)
{
    witness *w = context;
    note(w, '<');
    CHECK(mr_hook_run_results(hook_run, nullptr) == nullptr);
    if (w->fails != MR_OK && w->runs++ == w->at) return mr_fail(error, w->fails, "failed on purpose");
    return MR_OK;
}

static mr_status witness_after(void *context, mr_hook_run *, mr_error *)
{
    return note(context, '>'), MR_OK;
}

static mr_status witness_end(void *context, mr_session *, mr_error *)
{
    return note(context, 'e'), MR_OK;
}

static void witness_free(void *context)
{
    note(context, 'f');
}

static mr_hook *witness_hook(witness *w)
{
    return mr_hook_new(w, .begin = witness_begin, .after_create_session = witness_created, .before_run = witness_before,
                       .after_run = witness_after, .end = witness_end, .free = witness_free);
}

TEST(hooks_are_called_in_order)
{
    mr_error error = {0};
    char calls[256] = "";
    witness a = {.calls = calls, .name = '1'}, b = {.calls = calls, .name = '2'};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(witness_hook(&a), witness_hook(&b))),
        &session, &error));
    CHECK_STR(calls, "1b2b1c2c");
    CHECK_OK(run(session, &m, &error));
    CHECK_STR(calls, "1b2b1c2c1<2<1>2>");
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    CHECK_STR(calls, "1b2b1c2c1<2<1>2>1e2e1f2f");
    mr_graph_free(m.graph);
}

TEST(an_error_ends_a_session_without_the_hooks_end)
{
    mr_error error = {0};
    char calls[256] = "";
    witness a = {.calls = calls, .name = '1', .fails = MR_INTERNAL, .at = 1};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(witness_hook(&a))), &session, &error));
    CHECK_EQ(run_all(session, &m, &error), MR_INTERNAL);
    CHECK_EQ(mr_monitored_session_close(session, MR_INTERNAL, &error), MR_INTERNAL);
    CHECK_STR(error.message, "failed on purpose");
    CHECK_STR(calls, "1b1c1<1>1<1f");
    mr_graph_free(m.graph);
}

TEST(an_aborted_run_is_repeated_in_a_new_session)
{
    mr_error error = {0};
    char calls[256] = "";
    witness a = {.calls = calls, .name = '1', .fails = MR_ABORTED, .at = 1};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(
        mr_monitored_session_new(m.graph,
                                 MR_OPTIONS(mr_monitored_session_options,
                                            .hooks = MR_HOOKS(witness_hook(&a), mr_stop_at_step_hook(.num_steps = 2))),
                                 &session, &error));
    CHECK_OK(run_all(session, &m, &error));
    CHECK_STR(calls, "1b1c1<1>1<1c1<1>1<1>");
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    mr_graph_free(m.graph);
}

TEST(a_singular_session_does_not_recover)
{
    mr_error error = {0};
    char calls[256] = "";
    witness a = {.calls = calls, .name = '1', .fails = MR_ABORTED};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph, MR_OPTIONS(mr_monitored_session_options, .no_recovery = true, .hooks = MR_HOOKS(witness_hook(&a))),
        &session, &error));
    CHECK_EQ(run(session, &m, &error), MR_ABORTED);
    CHECK_EQ(mr_monitored_session_close(session, MR_ABORTED, &error), MR_ABORTED);
    CHECK_STR(calls, "1b1c1<1f");
    mr_graph_free(m.graph);
}

static mr_status always_aborted(void *context, mr_hook_run *, mr_error *error)
{
    ++*(int *)context;
    return mr_fail(error, MR_UNAVAILABLE, "never available");
}

TEST(recovery_gives_up)
{
    mr_error error = {0};
    int tries = 0;
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(mr_hook_new(&tries, .before_run = always_aborted))),
        &session, &error));
    CHECK_EQ(run(session, &m, &error), MR_UNAVAILABLE);
    CHECK_STR(error.message, "never available");
    CHECK_EQ(tries, 11);
    CHECK_EQ(mr_monitored_session_close(session, MR_UNAVAILABLE, &error), MR_UNAVAILABLE);
    mr_graph_free(m.graph);
}

typedef struct chance {
    uint64_t state;
    int one_of, failures;
} chance;

static mr_status fail_at_random(void *context, mr_hook_run *, mr_error *error)
{
    chance *c = context;
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    if ((int)((c->state >> 33) % (uint64_t)c->one_of) != 0) return MR_OK;
    c->failures++;
    return mr_fail(error, c->state >> 40 & 1 ? MR_ABORTED : MR_UNAVAILABLE, "at random");
}

/* However often and wherever runs fail, before them or after them, the variables at the end are those of an unbroken
 * run: an update that was made twice would show. */
TEST(recovered_training_ends_as_the_unbroken_one)
{
    mr_error error = {0};
    float expected = 1;
    constexpr int steps = 25;
    for (int i = 0; i < steps; i++) expected += 1.0f / (float)(i + 1);
    int failures = 0;
    for (int round = 0; round < 8; round++) {
        chance before = {.state = test_seed() + (uint64_t)round, .one_of = 4 + round % 5};
        chance after = {.state = before.state + 1000, .one_of = 4 + round % 7};
        model m = build();
        mr_monitored_session *session = nullptr;
        CHECK_OK(mr_monitored_training_session_new(
            m.graph,
            MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = test_path("run-%d", round),
                       .save_checkpoint_steps = 1 + round % 3, .log_step_count_steps = -1,
                       .hooks = MR_HOOKS(mr_stop_at_step_hook(.last_step = steps),
                                         mr_hook_new(&before, .before_run = fail_at_random),
                                         mr_hook_new(&after, .after_run = fail_at_random))),
            &session, &error));
        mr_status status = run_all(session, &m, &error);
        if (status == MR_OK) {
            float w = value_of(session, m.w);
            int64_t step;
            CHECK_OK(mr_monitored_session_global_step(session, &step, &error));
            CHECK_EQ(step, steps);
            CHECK(w == expected);
        } else {
            CHECK(status == MR_ABORTED || status == MR_UNAVAILABLE); /* more than ten times in a row */
        }
        CHECK_EQ(mr_monitored_session_close(session, status, &error), status);
        failures += before.failures + after.failures;
        mr_graph_free(m.graph);
    }
    CHECK(failures > 20);
}

/* ---- Ends ---- */

TEST(the_end_of_the_data_ends_a_session_well)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_dataset *d = mr_dataset_range(0, 7, 1);
    mr_output number = {0};
    mr_graph_iterator(g, "numbers", d, nullptr, &number);
    mr_dataset_free(d);
    mr_variable w = mr_get_variable(g, "w", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ONES});
    mr_output loss = mr_square(g, mr_sub(g, w.value, mr_cast(g, number, MR_FLOAT)));
    model m = {.graph = g,
               .train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.01f), loss, mr_global_step(g).ref)};
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_training_session_new(
        g, MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = test_path("run")), &session, &error));
    mr_status status = run_all(session, &m, &error);
    CHECK_EQ(status, MR_OUT_OF_RANGE);
    CHECK(mr_monitored_session_should_stop(session));
    CHECK_EQ(run(session, &m, &error), MR_FAILED_PRECONDITION);
    CHECK_OK(mr_monitored_session_close(session, status, &error));
    char latest[4096];
    CHECK_OK(mr_latest_checkpoint(test_path("run"), latest, sizeof latest, &error));
    CHECK_STR(strrchr(latest, '/'), "/model.ckpt-7");
    mr_graph_free(g);
}

TEST(a_training_session_continues_and_locks_its_directory)
{
    mr_error error = {0};
    char latest[4096];
    for (int i = 1; i <= 3; i++) {
        model m = build();
        mr_monitored_session *session = nullptr, *second = nullptr;
        CHECK_OK(mr_monitored_training_session_new(m.graph,
                                                   MR_OPTIONS(mr_monitored_training_session_options,
                                                              .checkpoint_dir = test_path("run"),
                                                              .hooks = MR_HOOKS(mr_stop_at_step_hook(.num_steps = 4))),
                                                   &session, &error));
        CHECK_EQ(mr_monitored_training_session_new(
                     m.graph, MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = test_path("run")),
                     &second, &error),
                 MR_ABORTED);
        CHECK_CONTAINS(error.message, "another training run is using this directory");
        CHECK(second == nullptr);
        CHECK_OK(run_all(session, &m, &error));
        CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
        CHECK_OK(mr_latest_checkpoint(test_path("run"), latest, sizeof latest, &error));
        CHECK_EQ(atoi(strrchr(latest, '-') + 1), 4 * i);
        mr_graph_free(m.graph);
    }
    /* Saved when the first session began, and at each end: not again when the next one began. */
    CHECK_EQ(files(test_path("run"), ".index"), 4);
}

static mr_status thread_run(void *, mr_coordinator *coordinator, mr_error *error)
{
    (void)mr_coordinator_wait_for_stop(coordinator, 5'000'000);
    return mr_fail(error, MR_DATA_LOSS, "the thread failed");
}

static mr_status start_thread(void *, mr_session *, mr_coordinator *coordinator, mr_error *error)
{
    return mr_coordinator_start(coordinator, &(mr_member){.run = thread_run}, error);
}

TEST(an_error_of_a_hooks_thread_ends_the_session)
{
    mr_error error = {0};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_session_options,
                   .hooks = MR_HOOKS(mr_hook_new(nullptr, .after_create_session = start_thread))),
        &session, &error));
    mr_status status = run_all(session, &m, &error);
    CHECK_OK(status == MR_FAILED_PRECONDITION ? MR_OK : status); /* it may stop between the question and the run */
    CHECK_EQ(mr_monitored_session_close(session, MR_OK, &error), MR_DATA_LOSS);
    CHECK_STR(error.message, "the thread failed");
    mr_graph_free(m.graph);
}

/* ---- Scaffolds ---- */

static mr_status set_w(void *context, mr_session *session, mr_error *error)
{
    const model *m = context;
    mr_tensor five = {0};
    MR_TRY(mr_tensor_init_float(&five, 5, error));
    mr_status status = mr_session_write_variable(session, m->w.ref, &five, error);
    mr_tensor_deinit(&five);
    return status;
}

TEST(scaffolds_initialize_and_are_checked)
{
    mr_error error = {0};
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(
        mr_monitored_session_new(m.graph,
                                 MR_OPTIONS(mr_monitored_session_options,
                                            .scaffold = MR_OPTIONS(mr_scaffold, .init_fn = set_w, .init_context = &m)),
                                 &session, &error));
    CHECK(value_of(session, m.w) == 5);
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));

    mr_node *only_step[] = {m.step.initializer};
    CHECK_EQ(mr_monitored_session_new(
                 m.graph,
                 MR_OPTIONS(mr_monitored_session_options,
                            .scaffold = MR_OPTIONS(mr_scaffold, .init_op = mr_group(m.graph, only_step, 1, "some"))),
                 &session, &error),
             MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "1 variables are not initialized after init_op and local_init_op: w");

    mr_output fed = mr_placeholder(m.graph, MR_FLOAT, .shape = MR_SCALAR);
    mr_node *both[] = {m.step.initializer, mr_variable_assign(m.graph, m.w, fed).node};
    mr_tensor seven = {0};
    CHECK_OK(mr_tensor_init_float(&seven, 7, &error));
    CHECK_OK(mr_monitored_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_session_options,
                   .scaffold = MR_OPTIONS(mr_scaffold, .init_op = mr_group(m.graph, both, 2, "both"),
                                          .init_feeds = MR_FEEDS({fed, seven}))),
        &session, &error));
    mr_tensor_deinit(&seven);
    CHECK(value_of(session, m.w) == 7);
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    mr_graph_free(m.graph);
}

TEST(local_variables_are_initialized_after_a_restore)
{
    mr_error error = {0};
    for (int i = 0; i < 2; i++) {
        model m = build();
        mr_variable local =
            mr_get_local_variable(m.graph, "local", MR_SCALAR, .initializer = (mr_initializer){.kind = MR_INIT_ONES});
        mr_monitored_session *session = nullptr;
        CHECK_OK(mr_monitored_training_session_new(m.graph,
                                                   MR_OPTIONS(mr_monitored_training_session_options,
                                                              .checkpoint_dir = test_path("run"),
                                                              .hooks = MR_HOOKS(mr_stop_at_step_hook(.num_steps = 2))),
                                                   &session, &error));
        CHECK(value_of(session, local) == 1);
        CHECK_OK(run_all(session, &m, &error));
        CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
        mr_graph_free(m.graph);
    }
    /* A checkpoint by its path. */
    model m = build();
    mr_monitored_session *session = nullptr;
    CHECK_OK(mr_monitored_session_new(
        m.graph, MR_OPTIONS(mr_monitored_session_options, .checkpoint_path = test_path("run/model.ckpt-2")), &session,
        &error));
    int64_t step;
    CHECK_OK(mr_monitored_session_global_step(session, &step, &error));
    CHECK_EQ(step, 2);
    CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
    mr_graph_free(m.graph);
}

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
    refuse(mr_stop_at_step_hook(), "stop-at-step hook: one of num_steps and last_step must be given");
    refuse(mr_stop_at_step_hook(.num_steps = 1, .last_step = 1),
           "stop-at-step hook: one of num_steps and last_step must be given");
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
    refuse(mr_step_counter_hook(), "step counter hook: log or output_dir must be given");
    refuse(mr_step_counter_hook(.log = collect, .every_n_steps = 1, .every_n_secs = 1),
           "step counter hook: only one of every_n_steps and every_n_secs may be given");
    refuse(mr_summary_saver_hook("", .save_steps = 1), "summary saver hook: the directory is empty");
    refuse(mr_checkpoint_saver_hook(nullptr, .save_steps = 1), "checkpoint saver hook: the directory is null");
    refuse(mr_checkpoint_saver_hook("x"), "checkpoint saver hook: save_steps or save_secs must be given");
    refuse(mr_checkpoint_saver_hook("x", .save_steps = 1, .listener_count = 2), "checkpoint saver hook: 2 listeners");
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
