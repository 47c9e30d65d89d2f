/* Session managers: initialized, restored, waited for, not ready, mistakes. */
#include "tests/train/monitored.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

typedef struct fixture {
    model m;
    mr_node *init;
    mr_output missing;
    mr_saver *saver;
    mr_session_manager *manager;
} fixture;

static fixture new_fixture(double wait_secs)
{
    mr_error error = {0};
    fixture f = {.m = build()};
    mr_graph *g = f.m.graph;
    f.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    f.missing = mr_report_uninitialized_variables(g, (mr_variables){0}, "missing");
    f.saver = mr_saver_new(g);
    CHECK_OK(mr_session_manager_new(
        g, MR_OPTIONS(mr_session_manager_options, .ready_op = f.missing, .recovery_wait_secs = wait_secs), &f.manager,
        &error));
    return f;
}

static void free_fixture(fixture *f)
{
    mr_session_manager_free(f->manager);
    mr_saver_free(f->saver);
    mr_graph_free(f->m.graph);
}

static float w_of(mr_session *session, const fixture *f)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(session, f->m.w.ref, &value, &error));
    const float w = mr_tensor_floats(&value)[0];
    mr_tensor_deinit(&value);
    return w;
}

static mr_session *prepare(const fixture *f, const char *directory)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_session_manager_prepare(
        f->manager,
        MR_OPTIONS(mr_session_prepare_options, .init_op = f->init, .saver = f->saver, .checkpoint_dir = directory),
        &session, &error));
    return session;
}

static void train(const fixture *f, mr_session *session, int steps)
{
    mr_error error = {0};
    for (int i = 0; i < steps; i++)
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &f->m.train, 1, &error));
}

TEST(session_managers_initialize_then_restore)
{
    mr_error error = {0};
    fixture f = new_fixture(0);
    mr_session *session = prepare(&f, test_path("run"));
    CHECK(w_of(session, &f) == 1);
    train(&f, session, 2);
    const float w = w_of(session, &f);
    CHECK_OK(mr_saver_save(f.saver, session, test_path("run/model.ckpt"), 2, &error));
    mr_session_free(session);
    session = prepare(&f, test_path("run"));
    CHECK(w_of(session, &f) == w);
    mr_session_free(session);
    CHECK_OK(mr_session_manager_prepare(
        f.manager,
        MR_OPTIONS(mr_session_prepare_options, .saver = f.saver, .checkpoint_path = test_path("run/model.ckpt-2")),
        &session, &error));
    CHECK(w_of(session, &f) == w);
    mr_session_free(session);
    CHECK_STATUS(mr_session_manager_prepare(f.manager,
                                            MR_OPTIONS(mr_session_prepare_options, .saver = f.saver, .init_op = f.init,
                                                       .checkpoint_path = test_path("run/model.ckpt-3")),
                                            &session, &error),
                 MR_NOT_FOUND);
    CHECK(session == nullptr);
    free_fixture(&f);
}

static mr_status set_w(void *context, mr_session *session, mr_error *error)
{
    const fixture *f = context;
    mr_tensor five = {0}, step = {0};
    MR_TRY(mr_tensor_init_float(&five, 5, error));
    MR_TRY(mr_tensor_init_int64(&step, 3, error));
    mr_status status = mr_session_write_variable(session, f->m.w.ref, &five, error);
    if (status == MR_OK) status = mr_session_write_variable(session, f->m.step.ref, &step, error);
    mr_tensor_deinit(&five);
    mr_tensor_deinit(&step);
    return status;
}

TEST(session_managers_name_what_is_not_ready)
{
    mr_error error = {0};
    fixture f = new_fixture(0);
    mr_session *session = nullptr;
    CHECK_STATUS(mr_session_manager_prepare(f.manager,
                                            MR_OPTIONS(mr_session_prepare_options, .init_op = f.m.step.initializer),
                                            &session, &error),
                 MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "1 variables are not initialized after init_op and local_init_op: w");
    CHECK_STATUS(mr_session_manager_prepare(f.manager, nullptr, &session, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "no init_op, init_fn or local_init_op");
    CHECK_OK(mr_session_manager_prepare(
        f.manager, MR_OPTIONS(mr_session_prepare_options, .init_fn = set_w, .init_context = &f), &session, &error));
    CHECK(w_of(session, &f) == 5);
    mr_session_free(session);
    free_fixture(&f);
}

/* local_init_op is run only if ready_for_local_init_op is empty. */
TEST(session_managers_initialize_local_variables)
{
    mr_error error = {0};
    model m = build();
    mr_graph *g = m.graph;
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_variable local = mr_variable_new(g, "local", m.w.value, .local = true);
    mr_output missing = mr_report_uninitialized_variables(g, (mr_variables){&m.w, 1}, "missing");
    mr_session_manager *manager = nullptr;
    mr_session *session = nullptr;
    CHECK_OK(mr_session_manager_new(g,
                                    MR_OPTIONS(mr_session_manager_options, .local_init_op = local.initializer,
                                               .ready_for_local_init_op = missing,
                                               .ready_op = mr_assert_variables_initialized(g, (mr_variables){0})),
                                    &manager, &error));
    CHECK_OK(
        mr_session_manager_prepare(manager, MR_OPTIONS(mr_session_prepare_options, .init_op = init), &session, &error));
    mr_session_free(session);
    CHECK_STATUS(mr_session_manager_prepare(
                     manager, MR_OPTIONS(mr_session_prepare_options, .init_op = m.step.initializer), &session, &error),
                 MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "1 variables are not initialized after init_op: w");
    /* ready_op fails instead of returning names. */
    CHECK_STATUS(mr_session_manager_prepare(manager, MR_OPTIONS(mr_session_prepare_options, .init_op = m.w.initializer),
                                            &session, &error),
                 MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "uninitialized");
    mr_session_manager_free(manager);
    mr_graph_free(g);
}

TEST(session_managers_recover)
{
    mr_error error = {0};
    fixture f = new_fixture(0);
    mr_session *session = nullptr;
    bool is_recovered = true;
    const mr_session_prepare_options *options =
        MR_OPTIONS(mr_session_prepare_options, .saver = f.saver, .checkpoint_dir = test_path("run"));
    CHECK_OK(mr_session_manager_recover(f.manager, options, &session, &is_recovered, &error));
    CHECK(session != nullptr && !is_recovered);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &f.init, 1, &error));
    CHECK_OK(mr_saver_save(f.saver, session, test_path("run/model.ckpt"), 0, &error));
    mr_session_free(session);
    CHECK_OK(mr_session_manager_recover(f.manager, options, &session, &is_recovered, &error));
    CHECK(is_recovered && w_of(session, &f) == 1);
    mr_session_free(session);

    /* A checkpoint of some of the variables is restored, but is not enough. */
    mr_saver *some = mr_saver_new(f.m.graph, .variables = &f.m.step.ref, .variable_count = 1);
    CHECK_OK(mr_session_manager_recover(
        f.manager,
        MR_OPTIONS(mr_session_prepare_options, .saver = some, .checkpoint_path = test_path("run/model.ckpt-0")),
        &session, &is_recovered, &error));
    CHECK(session != nullptr && !is_recovered);
    mr_session_free(session);
    CHECK_STATUS(mr_session_manager_recover(f.manager, MR_OPTIONS(mr_session_prepare_options, .init_op = f.init),
                                            &session, &is_recovered, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "init_op has no effect in a recovery");
    CHECK_STATUS(mr_session_manager_recover(f.manager, options, &session, nullptr, &error), MR_INVALID_ARGUMENT);
    mr_saver_free(some);
    free_fixture(&f);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void *save_late(void *context)
{
    mr_error error = {0};
    const fixture *f = context;
    mr_session *session = nullptr;
    usleep(100'000);
    CHECK_OK(mr_session_manager_prepare(f->manager, MR_OPTIONS(mr_session_prepare_options, .init_op = f->init),
                                        &session, &error));
    train(f, session, 1);
    CHECK_OK(mr_saver_save(f->saver, session, test_path("run/model.ckpt"), 1, &error));
    mr_session_free(session);
    return nullptr;
}

TEST(session_managers_wait_for_checkpoints)
{
    mr_error error = {0};
    fixture f = new_fixture(0.02), other = new_fixture(0);
    mr_session *session = nullptr;
    const double begin = now();
    CHECK_OK(mr_session_manager_prepare(f.manager,
                                        MR_OPTIONS(mr_session_prepare_options, .init_op = f.init, .saver = f.saver,
                                                   .checkpoint_dir = test_path("run"), .wait_for_checkpoint = true,
                                                   .max_wait_secs = 0.1),
                                        &session, &error));
    CHECK(now() - begin >= 0.1 && w_of(session, &f) == 1); /* initialized instead */
    mr_session_free(session);
    pthread_t thread;
    const char *directory = test_path("run");
    CHECK_EQ(pthread_create(&thread, nullptr, save_late, &other), 0);
    CHECK_OK(mr_session_manager_prepare(f.manager,
                                        MR_OPTIONS(mr_session_prepare_options, .init_op = f.init, .saver = f.saver,
                                                   .checkpoint_dir = directory, .wait_for_checkpoint = true),
                                        &session, &error));
    CHECK(w_of(session, &f) == 2);
    pthread_join(thread, nullptr);
    mr_session_free(session);
    free_fixture(&f);
    free_fixture(&other);
}

TEST(session_managers_wait_for_sessions)
{
    mr_error error = {0};
    fixture f = new_fixture(0.02);
    mr_session *session = nullptr;
    const double begin = now();
    CHECK_STATUS(mr_session_manager_wait(f.manager, 0.1, &session, &error), MR_DEADLINE_EXCEEDED);
    CHECK(now() - begin < 5 && session == nullptr);
    CHECK_STR(error.message, "the session was not ready after 0.1 s: 2 variables are not initialized after "
                             "local_init_op: global_step, w");
    mr_session_manager *ready = nullptr;
    CHECK_OK(mr_session_manager_new(
        f.m.graph, MR_OPTIONS(mr_session_manager_options, .local_init_op = f.init, .ready_op = f.missing), &ready,
        &error));
    CHECK_OK(mr_session_manager_wait(ready, 0, &session, &error));
    CHECK(w_of(session, &f) == 1);
    mr_session_free(session);
    mr_session_manager_free(ready);
    free_fixture(&f);
}

static void check_refused(const fixture *f, const mr_session_prepare_options *options, const char *message)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_STATUS(mr_session_manager_prepare(f->manager, options, &session, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, message);
}

static void check_ready_refused(const fixture *f, const mr_session_manager_options *options, const char *message)
{
    mr_error error = {0};
    mr_session_manager *manager = nullptr;
    CHECK_STATUS(mr_session_manager_new(f->m.graph, options, &manager, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, message);
    CHECK(manager == nullptr);
}

TEST(session_managers_refuse_what_cannot_be_names)
{
    fixture f = new_fixture(0);
    const mr_output name = mr_constant_string(f.m.graph, "a");
    check_ready_refused(&f, MR_OPTIONS(mr_session_manager_options, .ready_op = f.m.w.value),
                        "session manager: ready_op is float, not a vector of strings");
    check_ready_refused(&f, MR_OPTIONS(mr_session_manager_options, .ready_op = name),
                        "session manager: ready_op has rank 0, not 1");
    check_ready_refused(&f, MR_OPTIONS(mr_session_manager_options, .ready_op = {f.missing.node, 7}),
                        "session manager: ready_op is output 7 of ");
    check_ready_refused(&f, MR_OPTIONS(mr_session_manager_options, .ready_op = {f.missing.node, -1}),
                        "session manager: ready_op is output -1 of ");
    check_ready_refused(
        &f, MR_OPTIONS(mr_session_manager_options, .local_init_op = f.init, .ready_for_local_init_op = name),
        "session manager: ready_for_local_init_op has rank 0, not 1");
    free_fixture(&f);
}

TEST(session_managers_refuse_mistakes)
{
    mr_error error = {0};
    fixture f = new_fixture(0), other = new_fixture(0);
    mr_session *session = nullptr;
    mr_session_manager *manager = nullptr;
    check_refused(&f, MR_OPTIONS(mr_session_prepare_options, .saver = f.saver),
                  "saver has no effect without checkpoint_dir or checkpoint_path");
    check_refused(&f, MR_OPTIONS(mr_session_prepare_options, .checkpoint_dir = "a"),
                  "checkpoint_dir has no effect without saver");
    check_refused(
        &f, MR_OPTIONS(mr_session_prepare_options, .saver = f.saver, .checkpoint_dir = "a", .checkpoint_path = "b"),
        "checkpoint_dir excludes checkpoint_path");
    check_refused(&f, MR_OPTIONS(mr_session_prepare_options, .wait_for_checkpoint = true),
                  "wait_for_checkpoint has no effect without checkpoint_dir");
    check_refused(&f, MR_OPTIONS(mr_session_prepare_options, .max_wait_secs = 1),
                  "max_wait_secs has no effect without wait_for_checkpoint");
    check_refused(&f,
                  MR_OPTIONS(mr_session_prepare_options, .saver = f.saver, .checkpoint_dir = "a",
                             .wait_for_checkpoint = true, .max_wait_secs = NAN),
                  "max_wait_secs is nan, not a number");
    check_refused(&f, MR_OPTIONS(mr_session_prepare_options, .init_op = other.init),
                  "init_op belongs to another graph");
    check_refused(&f, MR_OPTIONS(mr_session_prepare_options, .init_context = &f),
                  "init_context has no effect without init_fn");
    CHECK_STATUS(mr_session_manager_prepare(f.manager, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_prepare(nullptr, nullptr, &session, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_wait(nullptr, 1, &session, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_wait(f.manager, 1, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_wait(f.manager, NAN, &session, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_new(nullptr, nullptr, &manager, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_new(f.m.graph, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_new(f.m.graph,
                                        MR_OPTIONS(mr_session_manager_options, .ready_for_local_init_op = f.missing),
                                        &manager, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_new(f.m.graph, MR_OPTIONS(mr_session_manager_options, .recovery_wait_secs = -1),
                                        &manager, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_manager_new(f.m.graph, MR_OPTIONS(mr_session_manager_options, .ready_op = other.missing),
                                        &manager, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "ready_op belongs to another graph");
    CHECK(manager == nullptr);
    mr_session_manager_free(nullptr);
    free_fixture(&f);
    free_fixture(&other);
}
