/* Supervisors: services, continuation, kills, errors of threads, stops in any order, mistakes. */
#include "tests/kill.h"
#include "tests/train/monitored.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, nullptr);
}

/* As build(), with resource variables, whose values threads read while they are updated. */
static model build_shared(void)
{
    model m = {.graph = mr_graph_new()};
    mr_graph *g = m.graph;
    m.step = mr_get_variable(g, "global_step", MR_SCALAR, .dtype = MR_INT64, .initializer = {.kind = MR_INIT_ZEROS},
                             .use_resource = true, .trainable = false);
    m.w = mr_get_variable(g, "w", MR_SCALAR, .initializer = {.kind = MR_INIT_ONES}, .use_resource = true);
    m.loss = mr_square(g, m.w.value, .name = "square");
    mr_summary_scalar(g, "loss", m.loss);
    mr_output next = mr_variable_assign_add(g, m.w, mr_constant_float(g, 0.5f));
    mr_graph_push_control_dependencies(g, &next.node, 1);
    m.train = mr_variable_assign_add(g, m.step, mr_constant_int64(g, 1)).node;
    mr_graph_pop_control_dependencies(g);
    return m;
}

static mr_status train(mr_session *session, const model *m, mr_error *error)
{
    return mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->train, 1, error);
}

static mr_supervisor *supervise(const model *m, const mr_supervisor_options *options)
{
    mr_error error = {0};
    mr_supervisor *supervisor = nullptr;
    CHECK_OK(mr_supervisor_new(m->graph, options, &supervisor, &error));
    return supervisor;
}

static int64_t step_of(mr_session *session, const model *m)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(session, m->step.ref, &value, &error));
    const int64_t step = mr_tensor_int64s(&value)[0];
    mr_tensor_deinit(&value);
    return step;
}

typedef struct counts {
    int files, graphs, metas, starts, stops, checkpoints, losses, speeds;
    int64_t last_start, last_checkpoint; /* steps */
} counts;

/* Files are read in any order. */
static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void count_file(const char *path, counts *c)
{
    mr_error error = {0};
    mr_event_reader *reader = nullptr;
    const mr_event_message *event;
    CHECK_OK(mr_event_reader_open(path, &reader, &error));
    while (mr_event_reader_next(reader, &event, &error) == MR_OK) {
        c->graphs += event->kind == MR_EVENT_GRAPH_DEF;
        c->metas += event->kind == MR_EVENT_META_GRAPH_DEF;
        if (event->kind == MR_EVENT_SESSION_LOG) {
            c->stops += event->session == MR_SESSION_STOP;
            if (event->session == MR_SESSION_START) c->starts++, c->last_start = later(c->last_start, event->step);
            if (event->session == MR_SESSION_CHECKPOINT)
                c->checkpoints++, c->last_checkpoint = later(c->last_checkpoint, event->step);
        }
        for (int32_t i = 0; i < event->value_count; i++) {
            c->losses += strcmp(event->values[i].tag, "loss") == 0;
            c->speeds += strcmp(event->values[i].tag, "global_step/sec") == 0;
        }
    }
    mr_event_reader_close(reader);
}

static counts count_events(const char *directory)
{
    counts c = {0};
    DIR *entries = opendir(directory);
    CHECK(entries != nullptr);
    for (struct dirent *entry; (entry = readdir(entries)) != nullptr;) {
        char path[2048];
        if (strstr(entry->d_name, "tfevents") == nullptr) continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        c.files++;
        count_file(path, &c);
    }
    closedir(entries);
    return c;
}

/* ---- Services ---- */

/* Trains until the services have run twice. */
static void train_with_services(const char *directory, int64_t *last, float *w)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = directory, .save_summaries_secs = 0.05,
                                                .save_model_secs = 0.05));
    mr_session *session = nullptr;
    CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
    const int64_t first = step_of(session, &m);
    CHECK_EQ(first, *last);
    if (first > 0) {
        mr_tensor value = {0};
        CHECK_OK(mr_session_read_variable(session, m.w.ref, &value, &error));
        CHECK(mr_tensor_floats(&value)[0] == *w);
        mr_tensor_deinit(&value);
    }
    for (int i = 0; i < 60 && !mr_supervisor_should_stop(s); i++) {
        CHECK_OK(train(session, &m, &error));
        sleep_ms(3);
    }
    CHECK_OK(mr_supervisor_save(s, &error));
    *last = step_of(session, &m);
    CHECK_EQ(*last, first + 60);
    *w = 1 + 0.5f * (float)*last;
    CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
}

TEST(supervisors_save_summarize_and_continue)
{
    char directory[1024];
    snprintf(directory, sizeof directory, "%s", test_path("run"));
    int64_t last = 0;
    float w = 0;
    train_with_services(directory, &last, &w);
    counts c = count_events(directory);
    CHECK_EQ(c.files, 1);
    CHECK_EQ(c.graphs, 1);
    CHECK_EQ(c.metas, 1);
    CHECK_EQ(c.starts, 1);
    CHECK_EQ(c.stops, 1);
    CHECK_EQ(c.last_start, 0);
    CHECK(c.checkpoints >= 2 && c.losses >= 2 && c.speeds >= 2);
    CHECK_EQ(c.last_checkpoint, last);
    CHECK_EQ(files(directory, "graph.pbtxt"), 1);
    mr_error error = {0};
    mr_model *text = nullptr;
    CHECK_OK(mr_model_open(test_path("run/graph.pbtxt"), nullptr, &text, &error));
    CHECK(mr_graph_find(mr_model_graph(text), "loss") != nullptr);
    mr_model_free(text);

    train_with_services(directory, &last, &w);
    CHECK_EQ(last, 120);
    c = count_events(directory);
    CHECK_EQ(c.files, 2);
    CHECK_EQ(c.stops, 2);
    CHECK_EQ(c.starts, 2);
    CHECK_EQ(c.last_checkpoint, 120);
    CHECK_EQ(files(directory, ".partial"), 0);
}

/* Nothing is written at a step that has a checkpoint, as after a restore. */
TEST(supervisors_do_not_save_a_restored_checkpoint)
{
    mr_error error = {0};
    const mr_supervisor_options *options = MR_OPTIONS(mr_supervisor_options, .logdir = test_path("run"),
                                                      .save_model_secs = 0.01, .save_summaries_secs = -1);
    for (int i = 0; i < 2; i++) {
        model m = build_shared();
        mr_supervisor *s = supervise(&m, options);
        mr_session *session = nullptr;
        CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
        sleep_ms(100);
        CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
        mr_supervisor_free(s);
        mr_graph_free(m.graph);
        const counts c = count_events(test_path("run"));
        CHECK_EQ(c.checkpoints, 1);
        CHECK_EQ(c.losses + c.speeds, 0);
        CHECK_EQ(files(test_path("run"), ".index"), 1);
    }
}

/* A checkpoint without a global step never takes the place of the latest one. The numbers go on after a restart. */
TEST(supervisors_number_checkpoints_without_a_global_step)
{
    mr_error error = {0};
    char directory[1024], latest[2048];
    snprintf(directory, sizeof directory, "%s", test_path("run"));
    for (int i = 0; i < 6; i++) {
        char logdir[1100];
        model m = build_shared();
        snprintf(logdir, sizeof logdir, "%s%s", directory, i % 2 == 0 ? "" : "/");
        mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = logdir, .no_global_step = true,
                                                    .save_model_secs = -1, .save_summaries_secs = -1));
        mr_session *session = nullptr;
        CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
        CHECK_EQ(step_of(session, &m), i);
        CHECK_OK(train(session, &m, &error));
        CHECK_OK(mr_supervisor_save(s, &error));
        CHECK_OK(mr_supervisor_save(s, &error));
        CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
        mr_supervisor_free(s);
        mr_graph_free(m.graph);
        CHECK_OK(mr_latest_checkpoint(directory, latest, sizeof latest, &error));
        CHECK_EQ(strtoll(strrchr(latest, '-') + 1, nullptr, 10), 2 * i + 1);
    }
    CHECK_EQ(files(directory, "model.ckpt.index"), 0);
}

/* Without services, the program writes. */
TEST(supervisors_write_what_the_program_computes)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s =
        supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = test_path("run"), .checkpoint_basename = "mine"));
    mr_session *session = nullptr;
    mr_tensor summary = {0};
    CHECK_OK(mr_supervisor_open_session(s, MR_OPTIONS(mr_supervisor_session_options, .no_standard_services = true),
                                        &session, &error));
    CHECK_OK(train(session, &m, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(mr_graph_find_output(m.graph, "loss")), &summary, nullptr,
                            0, &error));
    CHECK_OK(mr_supervisor_summary_computed(s, mr_tensor_strings(&summary)[0], -1, &error));
    CHECK_EQ(count_events(test_path("run")).starts, 0);
    CHECK_OK(mr_supervisor_start_standard_services(s, &error));
    CHECK_STATUS(mr_supervisor_start_standard_services(s, &error), MR_FAILED_PRECONDITION);
    CHECK_OK(mr_supervisor_summary_computed(s, mr_tensor_strings(&summary)[0], 77, &error));
    CHECK_STATUS(mr_supervisor_summary_computed(s, (mr_string){"\xff", 1}, 78, &error), MR_DATA_LOSS);
    CHECK_STATUS(mr_supervisor_summary_computed(s, mr_tensor_strings(&summary)[0], -2, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_supervisor_stop(s, MR_OPTIONS(mr_supervisor_stop_options, .keep_summary_writer = true), &error));
    CHECK_OK(mr_supervisor_summary_computed(s, mr_tensor_strings(&summary)[0], 78, &error));
    CHECK_OK(mr_supervisor_stop(s, nullptr, &error));
    CHECK_STATUS(mr_supervisor_summary_computed(s, mr_tensor_strings(&summary)[0], 79, &error), MR_FAILED_PRECONDITION);
    CHECK_OK(mr_supervisor_save(s, &error)); /* the session is still open */
    CHECK_OK(mr_supervisor_stop(s, nullptr, &error));
    CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
    const counts c = count_events(test_path("run"));
    CHECK_EQ(c.starts, 1);
    CHECK_EQ(c.last_start, 1);
    CHECK_EQ(c.stops, 1);
    CHECK(c.losses >= 3);
    CHECK_EQ(files(test_path("run"), "mine-1.index"), 1);
    CHECK_CONTAINS(mr_supervisor_save_path(s), "run/mine");
    CHECK(mr_supervisor_saver(s) != nullptr);
    mr_tensor_deinit(&summary);
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
}

/* ---- Errors and stops ---- */

typedef struct ticker {
    atomic_int runs;
    int fail_at;
    mr_status status;
    int sleep_ms;
} ticker;

static mr_status tick(void *context, mr_error *error)
{
    ticker *t = context;
    sleep_ms(t->sleep_ms);
    return ++t->runs == t->fail_at ? mr_fail(error, t->status, "the ticker failed") : MR_OK;
}

/* Opens a session with a ticker, and trains until a stop. */
static mr_status run_with(const char *logdir, ticker *t, mr_status loop_status, mr_error *error)
{
    model m = build_shared();
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = logdir));
    mr_session *session = nullptr;
    mr_status status = mr_supervisor_open_session(s, nullptr, &session, error);
    if (status == MR_OK) status = mr_supervisor_loop(s, 0.001, &(mr_looper){.run = tick, .context = t}, error);
    while (status == MR_OK && !mr_supervisor_should_stop(s) && t->runs < 20) status = train(session, &m, error);
    if (status == MR_OK && loop_status != MR_OK) status = mr_fail(error, loop_status, "the loop failed");
    status = mr_supervisor_close_session(s, status, error);
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
    return status;
}

TEST(supervisors_return_the_first_error)
{
    mr_error error = {0};
    CHECK_EQ(run_with(test_path("a"), &(ticker){.fail_at = 5, .status = MR_DATA_LOSS}, MR_OK, &error), MR_DATA_LOSS);
    CHECK_STR(error.message, "the ticker failed");
    CHECK_EQ(count_events(test_path("a")).stops, 1);
    CHECK_EQ(run_with(test_path("a"), &(ticker){.fail_at = 5, .status = MR_DATA_LOSS}, MR_INTERNAL, &error),
             MR_DATA_LOSS);
    CHECK_STR(error.message, "the ticker failed");
    CHECK_EQ(run_with(nullptr, &(ticker){0}, MR_INTERNAL, &error), MR_INTERNAL);
    CHECK_STR(error.message, "the loop failed");
    /* The end of the data is no error, of a thread or of the loop; a cancelled loop is one. */
    CHECK_OK(run_with(nullptr, &(ticker){.fail_at = 3, .status = MR_OUT_OF_RANGE}, MR_OK, &error));
    CHECK_OK(run_with(nullptr, &(ticker){0}, MR_OUT_OF_RANGE, &error));
    CHECK_EQ(run_with(nullptr, &(ticker){0}, MR_CANCELLED, &error), MR_CANCELLED);
    CHECK_STR(error.message, "the loop failed");
}

static mr_status fail_at_end(void *, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "the end failed");
}

TEST(supervisors_return_errors_of_the_end)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s = supervise(&m, nullptr);
    mr_session *session = nullptr;
    const mr_looper looper = {.run = tick, .stop = fail_at_end, .context = &(ticker){0}};
    CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
    CHECK_OK(mr_supervisor_loop(s, 0.01, &looper, &error));
    CHECK_STATUS(mr_supervisor_close_session(s, MR_OK, &error), MR_DATA_LOSS);
    CHECK_STR(error.message, "the end failed");
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
}

typedef struct user {
    mr_supervisor *supervisor;
    bool saves;
    atomic_bool has_ended;
    atomic_int done;
} user;

static void *use_any_time(void *context)
{
    user *u = context;
    const mr_string summary = {"\x0a\x08\x0a\x01"
                               "a\x15\0\0\0\0",
                               10};
    while (!u->has_ended) {
        mr_error error = {0};
        const mr_status status = u->saves ? mr_supervisor_save(u->supervisor, &error)
                                          : mr_supervisor_summary_computed(u->supervisor, summary, -1, &error);
        if (status != MR_FAILED_PRECONDITION) CHECK_OK(status);
        u->done += status == MR_OK;
    }
    return nullptr;
}

/* Sessions are closed while other threads save and write summaries. */
TEST(supervisors_close_while_they_are_used)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = test_path("run"),
                                                .save_model_secs = 0.01, .save_summaries_secs = 0.01));
    user users[] = {{.supervisor = s, .saves = true}, {.supervisor = s}, {.supervisor = s}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, use_any_time, &users[i]), 0);
    for (int i = 0; i < 20; i++) {
        mr_session *session = nullptr;
        CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
        sleep_ms(i % 5 * 4);
        CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
    }
    for (int i = 0; i < 3; i++) users[i].has_ended = true;
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], nullptr), 0);
    CHECK(users[0].done > 0 && users[1].done + users[2].done > 0);
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
}

TEST(supervisors_wait_for_slow_threads)
{
    mr_error error = {0};
    model m = build_shared();
    ticker t = {.sleep_ms = 400};
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .stop_grace_secs = 0.01));
    mr_session *session = nullptr;
    CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
    CHECK_OK(mr_supervisor_loop(s, 1, &(mr_looper){.run = tick, .context = &t}, &error));
    sleep_ms(50);
    CHECK_STATUS(mr_supervisor_stop(s, nullptr, &error), MR_DEADLINE_EXCEEDED);
    CHECK_OK(mr_supervisor_stop(s, MR_OPTIONS(mr_supervisor_stop_options, .ignore_live_threads = true), &error));
    CHECK_STATUS(mr_supervisor_close_session(s, MR_OK, &error), MR_DEADLINE_EXCEEDED);
    CHECK_EQ(t.runs, 1);
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
}

TEST(supervisors_stop_in_any_order)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = test_path("run")));
    mr_session *session = nullptr, *second = nullptr;
    CHECK_OK(mr_supervisor_stop(s, nullptr, &error)); /* before a session is open */
    CHECK_STATUS(mr_supervisor_save(s, &error), MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "the supervisor has no open session");
    CHECK_STATUS(mr_supervisor_start_standard_services(s, &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_supervisor_start_queue_runners(s, nullptr, &error), MR_FAILED_PRECONDITION);
    CHECK_STATUS(mr_supervisor_summary_computed(s, (mr_string){0}, 0, &error), MR_FAILED_PRECONDITION);
    CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
        CHECK(!mr_supervisor_should_stop(s));
        CHECK_STATUS(mr_supervisor_open_session(s, nullptr, &second, &error), MR_FAILED_PRECONDITION);
        CHECK_OK(train(session, &m, &error));
        CHECK_OK(mr_supervisor_save(s, &error));
        mr_supervisor_request_stop(s, nullptr);
        mr_supervisor_wait_for_stop(s);
        for (int j = 0; j < i; j++) CHECK_OK(mr_supervisor_stop(s, nullptr, &error));
        CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
        CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
        CHECK(mr_supervisor_should_stop(s));
    }
    CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
    CHECK_EQ(step_of(session, &m), 3);
    mr_supervisor_free(s); /* closes it */
    CHECK_EQ(count_events(test_path("run")).stops, 4);
    mr_graph_free(m.graph);
}

TEST(supervisors_lock_their_directory)
{
    mr_error error = {0};
    model m = build_shared(), other = build_shared();
    const mr_supervisor_options *options = MR_OPTIONS(mr_supervisor_options, .logdir = test_path("run"));
    mr_supervisor *one = supervise(&m, options), *two = supervise(&other, options);
    mr_session *session = nullptr;
    CHECK_OK(mr_supervisor_open_session(one, nullptr, &session, &error));
    CHECK_STATUS(mr_supervisor_open_session(two, nullptr, &session, &error), MR_ABORTED);
    CHECK(session == nullptr);
    CHECK_CONTAINS(error.message, "run: another training run is using this directory");
    CHECK_OK(mr_supervisor_close_session(one, MR_OK, &error));
    CHECK_OK(mr_supervisor_open_session(two, nullptr, &session, &error));
    mr_supervisor_free(one);
    mr_supervisor_free(two);
    mr_graph_free(m.graph);
    mr_graph_free(other.graph);
}

static void *train_late(void *context)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = context));
    mr_session *session = nullptr;
    sleep_ms(100);
    CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
    CHECK_OK(train(session, &m, &error));
    CHECK_OK(mr_supervisor_save(s, &error));
    CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
    return nullptr;
}

/* The directory is not locked meanwhile, so that the other run can write the checkpoint. */
TEST(supervisors_wait_for_a_checkpoint)
{
    mr_error error = {0};
    char directory[1024];
    model m = build_shared();
    snprintf(directory, sizeof directory, "%s", test_path("run"));
    mr_supervisor *s =
        supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = directory, .recovery_wait_secs = 0.01));
    mr_session *session = nullptr;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, train_late, directory), 0);
    mr_status status = MR_ABORTED; /* the other run may not have ended */
    while (status == MR_ABORTED)
        status = mr_supervisor_open_session(s, MR_OPTIONS(mr_supervisor_session_options, .wait_for_checkpoint = true),
                                            &session, &error);
    pthread_join(thread, nullptr);
    CHECK_OK(status);
    CHECK_EQ(step_of(session, &m), 1);
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
}

/* ---- Workers, scaffolds, queue runners ---- */

static void *stop_soon(void *context)
{
    sleep_ms(50);
    mr_supervisor_request_stop(context, nullptr);
    return nullptr;
}

TEST(workers_wait_for_a_session)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .is_worker = true, .logdir = test_path("none"),
                                                .recovery_wait_secs = 0.02));
    mr_session *session = nullptr;
    CHECK_STATUS(mr_supervisor_open_session(s, MR_OPTIONS(mr_supervisor_session_options, .max_wait_secs = 0.1),
                                            &session, &error),
                 MR_DEADLINE_EXCEEDED);
    CHECK_CONTAINS(error.message, "not ready after 0.1 s: 2 variables are not initialized: global_step, w");
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, stop_soon, s), 0);
    CHECK_STATUS(mr_supervisor_open_session(s, nullptr, &session, &error), MR_CANCELLED);
    pthread_join(thread, nullptr);
    CHECK_STATUS(mr_supervisor_save(s, &error), MR_FAILED_PRECONDITION);
    CHECK(access(test_path("none"), F_OK) != 0);
    mr_supervisor_free(s);
    mr_graph_free(m.graph);

    model local = build_shared();
    mr_node *init = mr_initialize_variables(local.graph, MR_GLOBAL_VARIABLES, "init");
    s = supervise(&local, MR_OPTIONS(mr_supervisor_options, .is_worker = true, .no_init_op = true, .no_ready_op = true,
                                     .scaffold = MR_OPTIONS(mr_scaffold, .local_init_op = init)));
    CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
    CHECK_OK(train(session, &local, &error));
    CHECK_STATUS(mr_supervisor_start_standard_services(s, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "only the chief");
    mr_supervisor_free(s);
    mr_graph_free(local.graph);
}

static mr_status fail_to_initialize(void *, mr_session *, mr_error *error)
{
    return mr_fail(error, MR_OUT_OF_RANGE, "init_fn failed");
}

TEST(supervisors_report_failed_starts)
{
    mr_error error = {0};
    model m = build_shared();
    mr_session *session = nullptr;
    mr_node *some = m.step.initializer;
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = test_path("run"),
                                                .scaffold = MR_OPTIONS(mr_scaffold, .init_op = some)));
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(mr_supervisor_open_session(s, nullptr, &session, &error), MR_FAILED_PRECONDITION);
        CHECK_STR(error.message, "1 variables are not initialized after init_op: w");
    }
    CHECK_EQ(files(test_path("run"), "tfevents"), 0);
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
    /* Even with a status that would end a loop well. */
    m = build_shared();
    s = supervise(
        &m, MR_OPTIONS(mr_supervisor_options, .scaffold = MR_OPTIONS(mr_scaffold, .init_fn = fail_to_initialize)));
    CHECK_STATUS(mr_supervisor_open_session(s, nullptr, &session, &error), MR_OUT_OF_RANGE);
    CHECK_STR(error.message, "init_fn failed");
    CHECK(session == nullptr);
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
}

TEST(supervisors_start_queue_runners)
{
    mr_error error = {0};
    model m = build_shared();
    mr_graph *g = m.graph;
    mr_output queue = mr_fifo_queue_v2(g, .component_types = MR_DTYPES(MR_FLOAT), .capacity = 2);
    mr_node *enqueue = mr_queue_enqueue_v2(g, queue, MR_OUTPUTS(m.w.value));
    mr_output next = {mr_queue_dequeue_v2(g, queue, .component_types = MR_DTYPES(MR_FLOAT)).node, 0};
    mr_add_queue_runner(g, queue, &enqueue, 1);
    mr_supervisor *s = supervise(&m, nullptr);
    mr_session *session = nullptr;
    CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
    CHECK_OK(mr_supervisor_start_queue_runners(s, nullptr, &error)); /* they run */
    for (int i = 0; i < 10; i++) {
        mr_tensor value = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(next), &value, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&value)[0] == 1);
        mr_tensor_deinit(&value);
    }
    CHECK_OK(mr_supervisor_close_session(s, MR_OK, &error));
    mr_supervisor_free(s);
    mr_graph_free(g);
}

/* A summary that cannot be computed without a feed stops the supervisor. */
TEST(supervisors_stop_when_a_service_fails)
{
    mr_error error = {0};
    model m = build_shared();
    mr_summary_scalar(m.graph, "fed", mr_placeholder(m.graph, MR_FLOAT, .shape = MR_SCALAR, .name = "unfed"));
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = test_path("run")));
    mr_session *session = nullptr;
    CHECK_OK(mr_supervisor_open_session(s, nullptr, &session, &error));
    mr_supervisor_wait_for_stop(s);
    CHECK_STATUS(mr_supervisor_close_session(s, MR_OK, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "unfed");
    mr_supervisor_free(s);
    mr_graph_free(m.graph);
}

/* ---- Kills ---- */

static void train_to(const char *directory, int64_t last)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s = supervise(&m, MR_OPTIONS(mr_supervisor_options, .logdir = directory, .save_model_secs = 0.004,
                                                .save_summaries_secs = 0.004));
    mr_session *session = nullptr;
    mr_status status = mr_supervisor_open_session(s, nullptr, &session, &error);
    while (status == MR_OK && !mr_supervisor_should_stop(s) && step_of(session, &m) < last) {
        status = train(session, &m, &error);
        sleep_ms(1);
    }
    if (status == MR_OK) status = mr_supervisor_save(s, &error);
    status = mr_supervisor_close_session(s, status, &error);
    if (status != MR_OK) fprintf(stderr, "supervisor: %s\n", error.message);
    _exit(status == MR_OK ? 0 : 1);
}

TEST(supervisors_continue_after_kills)
{
    mr_error error = {0};
    char directory[1024], latest[2048];
    uint64_t state = test_seed();
    int64_t before = -1;
    int ended = 0, killed = 0;
    snprintf(directory, sizeof directory, "%s", test_path("run"));
    for (int round = 0; round < 100 && ended == 0; round++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int watch = kill_watch(directory);
        int how = 0;
        const pid_t child = fork();
        if (child == 0) train_to(directory, 150);
        /* A slow machine may train to the end in few saves; the first files are always written. */
        const int changes = killed == 0 ? 4 : killed < 12 ? 20 + (int)((state >> 33) % 200) : -1;
        (void)kill_at_change(child, watch, changes, &how);
        CHECK(WIFSIGNALED(how) ? WTERMSIG(how) == SIGKILL : WEXITSTATUS(how) == 0);
        killed += WIFSIGNALED(how);
        ended += WIFEXITED(how);
        mr_status status = mr_latest_checkpoint(directory, latest, sizeof latest, &error);
        if (status == MR_NOT_FOUND && before < 0) continue;
        CHECK_OK(status);
        const int64_t step = strtoll(strrchr(latest, '-') + 1, nullptr, 10);
        CHECK(step >= before);
        before = step;
    }
    CHECK(killed > 0 && ended == 1);
    CHECK_EQ(before, 150);
    mr_checkpoint_reader *reader = nullptr;
    mr_tensor w = {0};
    CHECK_OK(mr_checkpoint_reader_open(latest, &reader, &error));
    CHECK_OK(mr_checkpoint_read(reader, "w", &w, &error));
    /* The service saves beside the steps, as in TensorFlow: a checkpoint may hold one of w and the step before an
     * update, the other after it, and each continuation starts with one checkpoint. */
    CHECK(fabsf(mr_tensor_floats(&w)[0] - (1 + 0.5f * 150)) <= 0.5f * (float)killed);
    mr_tensor_deinit(&w);
    mr_checkpoint_reader_close(reader);
    CHECK_EQ(files(directory, ".partial"), 0);
}

/* ---- Mistakes ---- */

static void check_refused(const mr_supervisor_options *options, const char *message)
{
    mr_error error = {0};
    model m = build_shared();
    mr_supervisor *s = nullptr;
    CHECK_STATUS(mr_supervisor_new(m.graph, options, &s, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, message);
    CHECK(s == nullptr);
    mr_graph_free(m.graph);
}

static void check_session_refused(mr_supervisor *s, const mr_supervisor_session_options *options, const char *message)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_STATUS(mr_supervisor_open_session(s, options, &session, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, message);
}

TEST(supervisors_refuse_mistakes)
{
    mr_error error = {0};
    model other = build_shared();
    mr_summary_scalar(other.graph, "s", other.loss);
    mr_saver *saver = mr_saver_new(other.graph);
    check_refused(MR_OPTIONS(mr_supervisor_options, .save_model_secs = 1),
                  "save_model_secs has no effect without logdir");
    check_refused(MR_OPTIONS(mr_supervisor_options, .save_summaries_secs = -1),
                  "save_summaries_secs has no effect without logdir");
    check_refused(MR_OPTIONS(mr_supervisor_options, .logdir = "run", .save_model_secs = -2), "save_model_secs must be");
    check_refused(MR_OPTIONS(mr_supervisor_options, .logdir = "run", .save_model_secs = NAN), "is nan, not a number");
    check_refused(MR_OPTIONS(mr_supervisor_options, .logdir = "run", .checkpoint_basename = "a/b"),
                  "checkpoint_basename is not a file name");
    check_refused(MR_OPTIONS(mr_supervisor_options, .logdir = "run", .checkpoint_basename = ""),
                  "checkpoint_basename is not a file name");
    check_refused(MR_OPTIONS(mr_supervisor_options, .checkpoint_basename = "m"),
                  "checkpoint_basename has no effect without logdir");
    check_refused(MR_OPTIONS(mr_supervisor_options, .logdir = "run", .no_saver = true, .save_model_secs = 3),
                  "save_model_secs has no effect with no_saver");
    check_refused(MR_OPTIONS(mr_supervisor_options, .logdir = "run", .no_summary = true, .no_global_step = true,
                             .save_summaries_secs = 5),
                  "save_summaries_secs has no effect with no_summary and no_global_step");
    check_refused(MR_OPTIONS(mr_supervisor_options, .logdir = ""), "the name of the directory is empty");
    check_refused(MR_OPTIONS(mr_supervisor_options, .logdir = "/dev/null"), "/dev/null is not a directory");
    check_refused(MR_OPTIONS(mr_supervisor_options, .recovery_wait_secs = -1), "recovery_wait_secs is -1");
    check_refused(MR_OPTIONS(mr_supervisor_options, .stop_grace_secs = NAN), "stop_grace_secs is nan");
    check_refused(MR_OPTIONS(mr_supervisor_options, .global_step = other.step), "global_step is not a variable");
    check_refused(MR_OPTIONS(mr_supervisor_options, .global_step = other.step, .no_global_step = true),
                  "global_step excludes no_global_step");
    check_refused(MR_OPTIONS(mr_supervisor_options, .scaffold = MR_OPTIONS(mr_scaffold, .saver = saver)),
                  "the saver belongs to another graph");
    check_refused(MR_OPTIONS(mr_supervisor_options, .no_init_op = true,
                             .scaffold = MR_OPTIONS(mr_scaffold, .init_op = other.step.initializer)),
                  "init_op belongs to another graph");

    mr_supervisor *s = nullptr;
    mr_session *session = nullptr;
    CHECK_STATUS(mr_supervisor_new(nullptr, nullptr, &s, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_new(other.graph, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_new(other.graph, MR_OPTIONS(mr_supervisor_options, .global_step = other.w), &s, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the global step is float");
    CHECK_STATUS(mr_supervisor_new(other.graph,
                                   MR_OPTIONS(mr_supervisor_options, .no_init_op = true,
                                              .scaffold = MR_OPTIONS(mr_scaffold, .init_op = other.step.initializer)),
                                   &s, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "scaffold: init_op excludes no_init_op");
    CHECK_OK(mr_supervisor_new(other.graph, nullptr, &s, &error));
    check_session_refused(s, MR_OPTIONS(mr_supervisor_session_options, .wait_for_checkpoint = true),
                          "wait_for_checkpoint has no effect without logdir");
    check_session_refused(s, MR_OPTIONS(mr_supervisor_session_options, .max_wait_secs = 1),
                          "max_wait_secs has no effect without wait_for_checkpoint");
    CHECK_STATUS(mr_supervisor_open_session(s, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_open_session(nullptr, nullptr, &session, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_save(s, &error), MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "the supervisor has no logdir");
    CHECK(mr_supervisor_save_path(s) == nullptr);
    mr_constant_float(other.graph, 1); /* the graph is finalized */
    CHECK_STATUS(mr_graph_status(other.graph, &error), MR_FAILED_PRECONDITION);
    mr_supervisor_free(s);
    mr_saver_free(saver);
    mr_graph_free(other.graph);

    CHECK_EQ(mr_supervisor_close_session(nullptr, MR_DATA_LOSS, &error), MR_DATA_LOSS);
    CHECK(mr_supervisor_should_stop(nullptr));
    CHECK_STATUS(mr_supervisor_stop(nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_save(nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_loop(nullptr, 1, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_start_queue_runners(nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_start_standard_services(nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_supervisor_summary_computed(nullptr, (mr_string){0}, 0, &error), MR_INVALID_ARGUMENT);
    mr_supervisor_request_stop(nullptr, nullptr);
    mr_supervisor_wait_for_stop(nullptr);
    mr_supervisor_free(nullptr);
    CHECK(mr_supervisor_coordinator(nullptr) == nullptr && mr_supervisor_saver(nullptr) == nullptr);
}

/* ---- No memory ---- */

static mr_status use_supervisor(const model *m, const char *logdir, mr_error *error)
{
    mr_supervisor *s = nullptr;
    mr_session *session = nullptr;
    mr_status status = mr_supervisor_new(m->graph, MR_OPTIONS(mr_supervisor_options, .logdir = logdir), &s, error);
    if (status == MR_OK) status = mr_supervisor_open_session(s, nullptr, &session, error);
    if (status == MR_OK) status = train(session, m, error);
    if (status == MR_OK) status = mr_supervisor_save(s, error);
    status = mr_supervisor_close_session(s, status, error);
    mr_supervisor_free(s);
    return status;
}

/* Whichever allocation fails, of the program or a thread: an error or none, and all threads end. */
TEST(supervisors_survive_failed_allocations)
{
    if (test_allocations() < 0 || test_is_sanitized()) test_skip("allocations are not counted here");
    long long count = 1'000'000;
    for (long long n = 0; n <= count; n += count / 150 + 1) {
        mr_error error = {0};
        model m = build_shared();
        mr_output queue = mr_fifo_queue_v2(m.graph, .component_types = MR_DTYPES(MR_FLOAT), .capacity = 2);
        mr_node *enqueue = mr_queue_enqueue_v2(m.graph, queue, MR_OUTPUTS(m.w.value));
        mr_add_queue_runner(m.graph, queue, &enqueue, 1);
        const long long before = test_allocations();
        if (n > 0) test_fail_allocation(before + n);
        const mr_status status = use_supervisor(&m, test_path("run-%lld", n), &error);
        test_fail_allocation(0);
        if (n == 0) CHECK_OK(status);
        if (n == 0) count = test_allocations() - before;
        CHECK(status == MR_OK || error.message[0] != '\0');
        mr_graph_free(m.graph);
    }
}
