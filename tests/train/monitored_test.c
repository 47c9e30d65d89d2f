/* Monitored sessions: what is called when, recovery, the end, scaffolds, and what goes wrong. */
#include "tests/train/monitored.h"

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
    CHECK_STR(error.message, "never available, after 10 recoveries without a completed run");
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
    CHECK_STR(error.message, "1 variables are not initialized after init_op: w");

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

/* ---- What goes wrong ---- */

static mr_status fail_once(void *context, mr_session *, int64_t, mr_error *error)
{
    int *left = context;
    if (*left == 0) return MR_OK;
    return --*left == 0 ? mr_fail(error, MR_RESOURCE_EXHAUSTED, "the disk is full") : MR_OK;
}

/* A save that failed is made up for, by the next run or at the end. */
TEST(a_save_that_failed_is_tried_again)
{
    for (int at_end = 0; at_end < 2; at_end++) {
        mr_error error = {0};
        int left = 2; /* the first one succeeds */
        const mr_checkpoint_listener listener = {.before_save = fail_once, .context = &left};
        model m = build();
        mr_monitored_session *session = nullptr;
        char latest[4096];
        CHECK_OK(mr_monitored_session_new(
            m.graph,
            MR_OPTIONS(mr_monitored_session_options,
                       .hooks = MR_HOOKS(mr_checkpoint_saver_hook(test_path("run-%d", at_end), .save_steps = 5,
                                                                  .listeners = &listener, .listener_count = 1))),
            &session, &error));
        for (int i = 0; i < 4; i++) CHECK_OK(run(session, &m, &error));
        CHECK_EQ(run(session, &m, &error), MR_RESOURCE_EXHAUSTED);
        if (at_end == 0) CHECK_OK(run(session, &m, &error));
        CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
        CHECK_OK(mr_latest_checkpoint(test_path("run-%d", at_end), latest, sizeof latest, &error));
        CHECK_EQ(atoi(strrchr(latest, '-') + 1), at_end == 0 ? 6 : 5);
        mr_graph_free(m.graph);
    }
}

typedef struct fragile {
    int created, before, fail_created, fail_before; /* counts; at which a function fails */
} fragile;

static mr_status fragile_created(void *context, mr_session *, mr_coordinator *, mr_error *error)
{
    fragile *f = context;
    return ++f->created == f->fail_created ? mr_fail(error, MR_INTERNAL, "not now") : MR_OK;
}

static mr_status fragile_before(void *context, mr_hook_run *, mr_error *error)
{
    fragile *f = context;
    return ++f->before == f->fail_before ? mr_fail(error, MR_ABORTED, "aborted") : MR_OK;
}

TEST(a_session_that_cannot_be_created_again_is_tried_at_the_next_run)
{
    for (int again = 0; again < 2; again++) {
        mr_error error = {0};
        fragile f = {.fail_created = 2, .fail_before = 2};
        model m = build();
        mr_monitored_session *session = nullptr;
        CHECK_OK(mr_monitored_session_new(
            m.graph,
            MR_OPTIONS(mr_monitored_session_options,
                       .hooks = MR_HOOKS(
                           mr_hook_new(&f, .after_create_session = fragile_created, .before_run = fragile_before))),
            &session, &error));
        CHECK_OK(run(session, &m, &error));
        CHECK_EQ(run(session, &m, &error), MR_INTERNAL);
        CHECK(mr_monitored_session_raw(session) == nullptr);
        int64_t step;
        CHECK_EQ(mr_monitored_session_global_step(session, &step, &error), MR_INTERNAL);
        if (again == 1) {
            CHECK_OK(run(session, &m, &error));
            CHECK_EQ(f.created, 3);
            CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
        } else {
            CHECK_EQ(mr_monitored_session_close(session, MR_OK, &error), MR_INTERNAL);
            CHECK_STR(error.message, "not now");
        }
        mr_graph_free(m.graph);
    }
}

typedef struct nested {
    mr_monitored_session *session;
    const model *model;
} nested;

static mr_status run_again(void *context, mr_hook_run *, mr_error *error)
{
    const nested *n = context;
    return run(n->session, n->model, error);
}

static mr_status close_again(void *context, mr_hook_run *, mr_error *error)
{
    return mr_monitored_session_close(((nested *)context)->session, MR_OK, error);
}

static mr_status close_at_end(void *context, mr_session *, mr_error *error)
{
    return mr_monitored_session_close(((nested *)context)->session, MR_OK, error);
}

TEST(hooks_cannot_run_or_close_their_session)
{
    for (int i = 0; i < 3; i++) {
        mr_error error = {0};
        model m = build();
        nested n = {.model = &m};
        mr_hook *hooks[] = {mr_hook_new(&n, .before_run = run_again), mr_hook_new(&n, .after_run = close_again),
                            mr_hook_new(&n, .end = close_at_end)};
        for (int j = 0; j < 3; j++)
            if (j != i) mr_hook_free(hooks[j]);
        CHECK_OK(mr_monitored_session_new(m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = {&hooks[i], 1}),
                                          &n.session, &error));
        mr_status status = run(n.session, &m, &error);
        CHECK_EQ(status, i == 2 ? MR_OK : MR_FAILED_PRECONDITION);
        status = mr_monitored_session_close(n.session, status, &error);
        CHECK_EQ(status, MR_FAILED_PRECONDITION);
        CHECK_CONTAINS(error.message, "hooks cannot call this");
        mr_graph_free(m.graph);
    }
}

static mr_status fail_at_end(void *, mr_session *, mr_error *error)
{
    return mr_fail(error, MR_INTERNAL, "the end failed");
}

TEST(the_end_of_one_hook_does_not_prevent_that_of_others)
{
    mr_error error = {0};
    model m = build();
    mr_monitored_session *session = nullptr;
    char latest[4096];
    CHECK_OK(mr_monitored_training_session_new(
        m.graph,
        MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = test_path("run"),
                   .chief_only_hooks = MR_HOOKS(mr_hook_new(nullptr, .end = fail_at_end))),
        &session, &error));
    for (int i = 0; i < 7; i++) CHECK_OK(run(session, &m, &error));
    CHECK_EQ(mr_monitored_session_close(session, MR_OK, &error), MR_INTERNAL);
    CHECK_STR(error.message, "the end failed");
    CHECK_OK(mr_latest_checkpoint(test_path("run"), latest, sizeof latest, &error));
    CHECK_EQ(atoi(strrchr(latest, '-') + 1), 7);
    mr_graph_free(m.graph);
}

static void refuse_step(mr_output initial, mr_graph *g, const char *message)
{
    mr_error error = {0};
    mr_monitored_session *session = nullptr;
    mr_variable_new(g, "global_step", initial, .trainable = false);
    CHECK_EQ(mr_monitored_session_new(g, nullptr, &session, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, message);
    mr_graph_free(g);
}

TEST(global_steps_that_are_no_scalars_of_integers_are_refused)
{
    mr_graph *g = mr_graph_new();
    refuse_step(mr_constant_float(g, 0), g, "the global step is float[], not a scalar of int32 or int64");
    g = mr_graph_new();
    refuse_step(mr_constant_ints(g, MR_INTS(1, 2)), g, "the global step is int32[2], not a scalar of int32 or int64");
    g = mr_graph_new();
    refuse_step(mr_constant_int32s(g, MR_SHAPE(0), nullptr, nullptr), g,
                "the global step is int32[0], not a scalar of int32 or int64");
}

TEST(a_step_that_is_reached_already_needs_no_run)
{
    mr_error error = {0};
    for (int i = 0; i < 3; i++) {
        model m = build();
        mr_monitored_session *session = nullptr;
        CHECK_OK(mr_monitored_training_session_new(m.graph,
                                                   MR_OPTIONS(mr_monitored_training_session_options,
                                                              .checkpoint_dir = test_path("run"),
                                                              .hooks = MR_HOOKS(mr_stop_at_step_hook(.last_step = 3))),
                                                   &session, &error));
        CHECK_EQ(mr_monitored_session_should_stop(session), i > 0);
        CHECK_OK(run_all(session, &m, &error));
        int64_t step;
        CHECK_OK(mr_monitored_session_global_step(session, &step, &error));
        CHECK_EQ(step, 3);
        CHECK_OK(mr_monitored_session_close(session, MR_OK, &error));
        mr_graph_free(m.graph);
    }
    CHECK_EQ(files(test_path("run"), ".index"), 2);
}
