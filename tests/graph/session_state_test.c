/* Saving and restoring a session's state while its iterators wait. Producers of a pipeline may use the session
 * concurrently, and any number of threads may run, save, trace and read notes at once. */
#include "graph/run/session_state.h"
#include "tests/test.h"

#include <millrace/millrace.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000}, nullptr);
}

/* A generator whose third element waits for `go`, and then runs a new step of the session. */
typedef struct producer {
    mr_session *session;
    mr_output extra;
    int64_t next;
    atomic_bool waits, go;
} producer;

static mr_status produce(void *context, void *state, mr_element *output, mr_error *error)
{
    (void)state;
    producer *p = context;
    if (p->next == 2) {
        atomic_store(&p->waits, true);
        while (!atomic_load(&p->go)) sleep_ms(1);
        mr_tensor result = {0};
        MR_TRY(mr_session_run(p->session, MR_NO_FEEDS, MR_OUTPUTS(p->extra), &result, nullptr, 0, error));
        mr_tensor_deinit(&result);
    }
    output->count = 1;
    int64_t number = p->next++;
    return mr_tensor_init_copy(&output->tensors[0], MR_INT64, MR_SCALAR, &number, error);
}

typedef struct job {
    mr_session *session;
    mr_output number;
    mr_tensor *state; /* null: get the next number instead */
    bool restores;
    int64_t value;
    mr_status status;
} job;

static void *run_job(void *context)
{
    job *j = context;
    mr_tensor result = {0};
    if (j->state && j->restores)
        j->status = mr_session_restore_state(j->session, j->state, nullptr);
    else if (j->state)
        j->status = mr_session_save_state(j->session, j->state, nullptr);
    else
        j->status = mr_session_run(j->session, MR_NO_FEEDS, MR_OUTPUTS(j->number), &result, nullptr, 0, nullptr);
    if (!j->state && j->status == MR_OK) j->value = mr_tensor_int64s(&result)[0];
    mr_tensor_deinit(&result);
    return nullptr;
}

static void join_soon(pthread_t thread, const char *what)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    if (pthread_timedjoin_np(thread, nullptr, &until) != 0) test_fail(__FILE__, __LINE__, "%s hangs", what);
}

/* Saves (or restores) while GetNext waits for a producer that then uses the session. */
static void check_no_deadlock(bool restores)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    static producer p;
    p = (producer){.extra = mr_square(g, mr_constant_float(g, 3))};
    mr_generator generator = {.next = produce};
    mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    mr_dataset *d = mr_dataset_generator(&generator, &p, &spec);
    mr_output number;
    mr_graph_iterator(g, "numbers", d, MR_OPTIONS(mr_iterator_options, .threads = 1), &number);
    mr_dataset_free(d);
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &p.session, &error));
    mr_tensor state = {0}, first = {0};
    job get = {.session = p.session, .number = number}, other = {.session = p.session, .state = &state};
    for (int64_t i = 0; i < 2; i++) {
        CHECK(run_job(&get) == nullptr);
        CHECK_OK(get.status);
        CHECK_EQ(get.value, i);
        if (i == 0 && restores) CHECK_OK(mr_session_save_state(p.session, &first, &error));
    }
    if (restores) other = (job){.session = p.session, .state = &first, .restores = true};
    pthread_t getter, saver;
    CHECK_EQ(pthread_create(&getter, nullptr, run_job, &get), 0);
    while (!atomic_load(&p.waits)) sleep_ms(1);
    CHECK_EQ(pthread_create(&saver, nullptr, run_job, &other), 0);
    sleep_ms(50); /* long enough for the other thread to wait for the iterator */
    atomic_store(&p.go, true);
    join_soon(getter, "GetNext");
    join_soon(saver, restores ? "restoring" : "saving");
    CHECK_OK(get.status);
    CHECK_OK(other.status);
    CHECK_EQ(get.value, 2);
    mr_tensor_deinit(&state);
    mr_tensor_deinit(&first);
    mr_session_free(p.session);
    mr_graph_free(g);
}

TEST(session_state_is_saved_while_a_producer_uses_the_session)
{
    check_no_deadlock(false);
}

TEST(session_state_is_restored_while_a_producer_uses_the_session)
{
    check_no_deadlock(true);
}

/* ---- Many threads on one session ---- */

typedef struct shared {
    mr_session *session;
    mr_saver *saver;
    mr_node *iterator, *update;
    mr_output number, random, value, counter;
    atomic_bool stop;
    atomic_int runs;
} shared;

static mr_status run_one(shared *s, uint64_t choice, mr_tensor *result)
{
    mr_output fetches[] = {s->number, s->random, s->value};
    atomic_fetch_add(&s->runs, 1);
    return mr_session_run(s->session, MR_NO_FEEDS, (mr_outputs){&fetches[choice % 3], 1}, result,
                          choice % 5 == 0 ? &s->update : nullptr, choice % 5 == 0, nullptr);
}

static void *run_steps(void *context)
{
    shared *s = context;
    uint64_t random = test_seed() * 2654435761u + (uint64_t)(uintptr_t)pthread_self();
    while (!atomic_load(&s->stop)) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        mr_tensor result = {0};
        if (run_one(s, random >> 33, &result) != MR_OK) return (void *)"a step failed";
        mr_tensor_deinit(&result);
    }
    return nullptr;
}

static void *save_states(void *context)
{
    shared *s = context;
    for (int64_t i = 0; !atomic_load(&s->stop); i++) {
        mr_tensor state = {0}, value = {0};
        bool failed = mr_session_save_state(s->session, &state, nullptr) != MR_OK ||
                      (i % 4 == 0 && mr_session_restore_state(s->session, &state, nullptr) != MR_OK) ||
                      mr_session_read_variable(s->session, s->counter, &value, nullptr) != MR_OK;
        mr_tensor_deinit(&state);
        mr_tensor_deinit(&value);
        if (failed) return (void *)"saving failed";
    }
    return nullptr;
}

static void *save_checkpoints(void *context)
{
    shared *s = context;
    for (int64_t i = 0; !atomic_load(&s->stop); i++)
        if (mr_saver_save(s->saver, s->session, test_path("model"), i, nullptr) != MR_OK)
            return (void *)"a checkpoint was not saved";
    return nullptr;
}

static void *watch(void *context)
{
    shared *s = context;
    for (int i = 0; !atomic_load(&s->stop); i++) {
        mr_node_time times[32];
        mr_session_trace(s->session, i % 3 != 0);
        int32_t count = mr_session_trace_times(s->session, times, 32);
        for (int32_t j = 0; j < count; j++)
            if (times[j].node == nullptr) return (void *)"a call has no node";
        if (strlen(mr_session_log(s->session)) > 1 << 20) return (void *)"the notes are too long";
        (void)mr_session_iterator(s->session, s->iterator);
    }
    return nullptr;
}

TEST(session_runs_saves_and_traces_at_once)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    shared s = {0};
    mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_range(0, 100, 1), .seed = 3), MR_INFINITE);
    s.iterator = mr_graph_iterator(g, "numbers", d, MR_OPTIONS(mr_iterator_options, .threads = 2), &s.number);
    mr_dataset_free(d);
    s.random = mr_random_uniform(g, mr_constant_ints(g, MR_INTS(100)), MR_FLOAT, .seed = 1, .seed2 = 2);
    /* What is read while it is updated has a handle; other values may be a mixture of old and new elements. */
    mr_variable saved = mr_get_variable(g, "saved", MR_SHAPE(1000), (mr_initializer){.kind = MR_INIT_ZEROS});
    mr_output ones = mr_fill(g, mr_constant_ints(g, MR_INTS(1000)), mr_constant_float(g, 1));
    s.counter = mr_var_handle_op(g, MR_FLOAT, .shape = MR_SHAPE(1000), .name = "counter");
    mr_node *initializers[] = {saved.initializer, mr_assign_variable_op(g, s.counter, ones)};
    s.value = mr_read_variable_op(g, s.counter, MR_FLOAT);
    s.update = mr_assign_add_variable_op(g, s.counter, ones);
    s.saver = mr_saver_new(g, .max_to_keep = 2);
    mr_session_options options = {.size = sizeof options, .threads = 2, .log_device_placement = true};
    CHECK_OK(mr_session_new(g, &options, &s.session, &error));
    CHECK_OK(mr_session_run(s.session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, initializers, 2, &error));
    void *(*const jobs[])(void *) = {run_steps, run_steps, run_steps, save_states, save_checkpoints, watch};
    constexpr int COUNT = sizeof jobs / sizeof *jobs;
    pthread_t threads[COUNT];
    (void)test_path("x"); /* create the directory before threads request it */
    for (int i = 0; i < COUNT; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, jobs[i], &s), 0);
    sleep_ms(400);
    atomic_store(&s.stop, true);
    for (int i = 0; i < COUNT; i++) {
        void *problem = nullptr;
        CHECK_EQ(pthread_join(threads[i], &problem), 0);
        if (problem) test_fail(__FILE__, __LINE__, "%s", (const char *)problem);
    }
    CHECK(atomic_load(&s.runs) > 0);
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(s.session, s.counter, &value, &error));
    for (int i = 1; i < 1000; i++) CHECK(mr_tensor_floats(&value)[i] == mr_tensor_floats(&value)[0]);
    mr_tensor_deinit(&value);
    mr_saver_free(s.saver);
    mr_session_free(s.session);
    mr_graph_free(g);
}

/* ---- Names ---- */

TEST(session_names_an_output_that_was_not_found)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 1);
    mr_output towers[2] = {x, x};
    mr_output sum = mr_add_n(g, MR_OUTPUTS_OF(towers, 2), .name = "sum");
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    mr_tensor results[2] = {0};
    mr_outputs fetches = MR_OUTPUTS(sum, mr_graph_find_output(g, "summ:0"));
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, fetches, results, nullptr, 0, &error), MR_NOT_FOUND);
    CHECK_STR(error.message, "fetch 1: the graph has no output summ:0");
    mr_output missing = mr_graph_find_output(g, "sum:1");
    CHECK(missing.node == nullptr);
    CHECK_STATUS(
        mr_session_run(session, MR_FEEDS({missing, (mr_tensor){0}}), MR_OUTPUTS(sum), results, nullptr, 0, &error),
        MR_NOT_FOUND);
    CHECK_STR(error.message, "feed 0: the graph has no output sum:1");
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS((mr_output){0}), results, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "fetch 0 is not an output of a graph");
    for (int i = 0; i < 100; i++) { /* more names than are kept */
        char name[32];
        snprintf(name, sizeof name, "n%d", i);
        CHECK(mr_graph_find_output(g, name).node == nullptr);
        CHECK(mr_graph_find_output(g, "sum").node == sum.node);
    }
    (void)mr_square(g, mr_graph_find_output(g, "n3"));
    CHECK_STATUS(mr_graph_status(g, &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "input 0: the graph has no output n3");
    mr_session_free(session);
    mr_graph_free(g);
}
