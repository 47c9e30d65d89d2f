/* Runs of one step at the same time: each has its own values, waits only for itself, and fails only itself. */
#include "graph/run/session.h"
#include "tests/test.h"

#include <millrace/millrace.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000}, nullptr);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* ---- Many runs of a step ---- */

constexpr int THREADS = 4;
constexpr int RUNS = 300;
constexpr int64_t SIZE_MAX_FED = 40;

typedef struct shared {
    mr_session *session;
    mr_step *step;
    mr_output x, sum, twice, drawn;
    atomic_int drawn_count;
} shared;

typedef struct runner {
    shared *shared;
    uint64_t random;
    int faults;
} runner;

/* What the step must compute for x = start, start + 1, …: the sum of (2 x + 1), and 2 x. */
static bool is_right(const mr_tensor *results, int64_t count, float start)
{
    double sum = 0;
    bool right = results[1].shape.rank == 1 && results[1].shape.dims[0] == count;
    for (int64_t i = 0; right && i < count; i++) {
        right = mr_tensor_floats(&results[1])[i] == 2 * (start + (float)i);
        sum += 2 * (double)(start + (float)i) + 1;
    }
    return right && mr_tensor_floats(&results[0])[0] == (float)sum;
}

static bool run_once(runner *r)
{
    mr_error error = {0};
    shared *s = r->shared;
    int64_t count = (int64_t)(next_random(&r->random) % SIZE_MAX_FED);
    float start = (float)(next_random(&r->random) % 1000);
    bool is_bad = next_random(&r->random) % 8 == 0; /* a feed of the wrong rank */
    mr_tensor fed = {0}, results[3] = {0};
    if (mr_tensor_init(&fed, MR_FLOAT, is_bad ? MR_SHAPE(count, 1) : MR_SHAPE(count), &error) != MR_OK) return false;
    for (int64_t i = 0; i < count; i++) mr_tensor_floats(&fed)[i] = start + (float)i;
    mr_status status;
    if (next_random(&r->random) % 2 == 0)
        status = mr_step_run(s->step, &fed, results, &error);
    else
        status = mr_session_run(s->session, MR_FEEDS({s->x, fed}), MR_OUTPUTS(s->sum, s->twice, s->drawn), results,
                                nullptr, 0, &error);
    bool right = is_bad ? status == MR_INVALID_ARGUMENT && results[0].buffer == nullptr
                        : status == MR_OK && is_right(results, count, start);
    if (status == MR_OK) atomic_fetch_add(&s->drawn_count, 1);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&fed);
    return right;
}

static void *run_many(void *context)
{
    runner *r = context;
    mr_node_time times[16];
    for (int i = 0; i < RUNS; i++) {
        r->faults += !run_once(r);
        if (i % 50 == 0) mr_session_trace(r->shared->session, next_random(&r->random) % 2 == 0);
        if (i % 10 == 0) r->faults += mr_session_trace_times(r->shared->session, times, 16) > 16;
    }
    return nullptr;
}

TEST(concurrent_runs_of_one_step_are_independent)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    shared s = {.x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1))};
    s.twice = mr_mul(g, s.x, mr_constant_float(g, 2));
    s.sum = mr_sum(g, mr_add(g, s.twice, mr_constant_float(g, 1)), mr_constant_ints(g, MR_INTS(0)));
    s.drawn = mr_random_uniform(g, mr_constant_ints(g, MR_INTS(3)), MR_FLOAT, .seed = 7);
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 2), &s.session, &error));
    CHECK_OK(mr_session_prepare(s.session, &s.x, 1, MR_OUTPUTS(s.sum, s.twice, s.drawn), nullptr, 0, &s.step, &error));
    runner runners[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) runners[i] = (runner){.shared = &s, .random = test_seed() + (uint64_t)i};
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, run_many, &runners[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], nullptr);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(runners[i].faults, 0);
    /* Every run drew its numbers once. */
    mr_node_state *state = s.session->states.items[s.drawn.node->id];
    CHECK(state != nullptr && state->invocations == (uint64_t)atomic_load(&s.drawn_count));
    CHECK_EQ(s.session->step_count, 1);
    mr_session_free(s.session);
    mr_graph_free(g);
}

/* ---- A run that waits ---- */

typedef struct producer {
    atomic_bool waits, go;
} producer;

static mr_status produce(void *context, void *, mr_element *output, mr_error *error)
{
    producer *p = context;
    atomic_store(&p->waits, true);
    while (!atomic_load(&p->go)) sleep_ms(1);
    output->count = 1;
    return mr_tensor_init_float(&output->tensors[0], 4, error);
}

typedef struct job {
    mr_step *step;
    float fed, value;
    mr_status status;
} job;

static void *run_job(void *context)
{
    job *j = context;
    mr_error error = {0};
    mr_tensor fed = {0}, result = {0};
    j->status = mr_tensor_init_float(&fed, j->fed, &error);
    if (j->status == MR_OK) j->status = mr_step_run(j->step, &fed, &result, &error);
    if (j->status == MR_OK) j->value = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&fed);
    return nullptr;
}

/* A run of the same step that needs nothing of the first one ends while that one waits for an element. */
TEST(concurrent_run_does_not_wait_for_another)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    static producer p;
    p = (producer){0};
    mr_generator generator = {.next = produce};
    mr_element_spec spec = {.count = 1, .dtypes = {MR_FLOAT}, .shapes = {MR_SCALAR}};
    mr_dataset *d = mr_dataset_generator(&generator, &p, &spec);
    mr_output number, x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_graph_iterator(g, "numbers", d, MR_OPTIONS(mr_iterator_options, .threads = 1), &number);
    mr_dataset_free(d);
    mr_output y = mr_add(g, x, number);
    mr_session *session;
    mr_step *step;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    CHECK_OK(mr_session_prepare(session, &x, 1, MR_OUTPUTS(y), nullptr, 0, &step, &error));
    job j = {.step = step, .fed = 3};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, run_job, &j), 0);
    while (!atomic_load(&p.waits)) sleep_ms(1);
    mr_tensor wrong = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&wrong, MR_FLOAT, MR_SHAPE(2), &error));
    CHECK_STATUS(mr_step_run(step, &wrong, &result, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "Cannot feed value of shape [2]");
    CHECK(!atomic_load(&p.go));
    atomic_store(&p.go, true);
    pthread_join(thread, nullptr);
    CHECK_OK(j.status);
    CHECK_NEAR(j.value, 7, 0);
    mr_tensor_deinit(&wrong);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Reading or writing a variable from outside plans nothing. */
TEST(session_reads_variables_without_a_plan)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 5.0f));
    mr_session *session;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    mr_tensor value = {0}, seven = {0};
    CHECK_STATUS(mr_session_read_variable(session, w.value, &value, &error), MR_FAILED_PRECONDITION);
    CHECK_OK(mr_tensor_init_float(&seven, 7, &error));
    CHECK_OK(mr_session_write_variable(session, w.ref, &seven, &error));
    CHECK_OK(mr_session_read_variable(session, w.value, &value, &error));
    CHECK_NEAR(mr_tensor_floats(&value)[0], 7, 0);
    CHECK_EQ(session->step_count, 0);
    mr_tensor_deinit(&value);
    mr_tensor_deinit(&seven);
    mr_session_free(session);
    mr_graph_free(g);
}
