/* What runs share and wait for: barriers, accumulators and staging areas. Values are added by some threads and taken by
 * others; none is lost, also if runs are cancelled or end in the middle of a wait. */
#include "tests/test.h"

#include <millrace/ops.h>
#include <millrace/session.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

constexpr int64_t VALUES = 150;

typedef struct shared {
    mr_graph *graph;
    mr_session *session;
    mr_output key, value; /* fed; key.node is null if there is none */
    mr_node *adds[2];     /* each adds all values */
    int add_count;
    mr_output taken[2]; /* their elements are values; nothing computes with them, since a stopped run would lose them */
    int32_t taken_count;
    mr_node *close; /* null: a run that takes ends in time when nothing is left */
    _Atomic int64_t sum_added, sum_taken;
    _Atomic bool added_all, done;
} shared;

typedef struct adder {
    shared *of;
    int index;
} adder;

static void start(shared *s)
{
    mr_error error = {0};
    CHECK_OK(mr_graph_status(s->graph, &error));
    CHECK_OK(mr_session_new(s->graph, MR_OPTIONS(mr_session_options, .threads = 1), &s->session, &error));
}

static mr_status add_one(shared *s, mr_node *add, int64_t number, mr_error *error)
{
    char text[32];
    mr_tensor key = {0}, value = {0};
    int length = snprintf(text, sizeof text, "key %lld", (long long)number);
    mr_string name = {text, (size_t)length};
    CHECK(mr_tensor_init_strings(&key, MR_SHAPE(1), &name, error) == MR_OK);
    CHECK(mr_tensor_init_copy(&value, MR_DOUBLE, MR_SHAPE(1), &(double){(double)number}, error) == MR_OK);
    mr_feed feeds[] = {{s->value, value}, {s->key, key}};
    mr_feeds given = {feeds, s->key.node ? 2 : 1};
    mr_status status = mr_session_run(s->session, given, (mr_outputs){0}, nullptr, &add, 1, error);
    mr_tensor_deinit(&key);
    mr_tensor_deinit(&value);
    return status;
}

static void *add_values(void *context)
{
    const adder *a = context;
    for (int64_t i = 1; i <= VALUES; i++) {
        mr_error error = {0};
        mr_status status = MR_CANCELLED;
        while (status == MR_CANCELLED) status = add_one(a->of, a->of->adds[a->index], i, &error);
        if (status != MR_OK) test_fail(__FILE__, __LINE__, "%s", error.message);
        a->of->sum_added += i;
    }
    return nullptr;
}

static void *take_values(void *context)
{
    shared *s = context;
    for (;;) {
        mr_error error = {0};
        mr_tensor results[2] = {0};
        bool is_last = s->added_all;
        mr_status status = mr_session_run_with(s->session, MR_OPTIONS(mr_run_options, .timeout_ms = 20), MR_NO_FEEDS,
                                               (mr_outputs){s->taken, s->taken_count}, results, nullptr, 0, &error);
        if (status == MR_CANCELLED || (status == MR_DEADLINE_EXCEEDED && !(is_last && s->done))) continue;
        if (status == MR_OUT_OF_RANGE || status == MR_DEADLINE_EXCEEDED) return nullptr;
        if (status != MR_OK) test_fail(__FILE__, __LINE__, "%s", error.message);
        for (int32_t r = 0; r < s->taken_count; r++) {
            for (int64_t i = 0; i < mr_tensor_count(&results[r]); i++)
                s->sum_taken += (int64_t)mr_tensor_doubles(&results[r])[i];
            mr_tensor_deinit(&results[r]);
        }
    }
}

static void *cancel_at_times(void *context)
{
    shared *s = context;
    while (!s->added_all) {
        mr_session_cancel(s->session);
        nanosleep(&(struct timespec){.tv_nsec = 300000}, nullptr);
    }
    return nullptr;
}

static void run_traffic(shared *s, bool cancels)
{
    pthread_t adders[2], takers[3], canceller;
    adder contexts[2] = {{s, 0}, {s, 1}};
    mr_error error = {0};
    for (int i = 0; i < s->add_count; i++) CHECK_EQ(pthread_create(&adders[i], nullptr, add_values, &contexts[i]), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&takers[i], nullptr, take_values, s), 0);
    if (cancels) CHECK_EQ(pthread_create(&canceller, nullptr, cancel_at_times, s), 0);
    for (int i = 0; i < s->add_count; i++) pthread_join(adders[i], nullptr);
    s->added_all = true;
    if (cancels) pthread_join(canceller, nullptr);
    s->done = true;
    if (s->close) CHECK_OK(mr_session_run(s->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &s->close, 1, &error));
    for (int i = 0; i < 3; i++) pthread_join(takers[i], nullptr);
    CHECK_EQ(s->sum_added, s->add_count * VALUES * (VALUES + 1) / 2);
    CHECK_EQ(s->sum_taken, s->sum_added);
    mr_session_free(s->session);
    mr_graph_free(s->graph);
}

static shared begin(bool has_key)
{
    shared s = {.graph = mr_graph_new(), .add_count = 2, .taken_count = 1};
    s.value = mr_placeholder(s.graph, MR_DOUBLE, .shape = MR_SHAPE(1));
    if (has_key) s.key = mr_placeholder(s.graph, MR_STRING, .shape = MR_SHAPE(1));
    return s;
}

/* ---- Barriers: two threads add the two components of each key, in the same order ---- */

static shared make_barrier(void)
{
    shared s = begin(true);
    mr_dtypes types = MR_DTYPES(MR_DOUBLE, MR_DOUBLE);
    mr_output barrier = mr_barrier(s.graph, .component_types = types, .shapes = MR_SHAPES(MR_SCALAR, MR_SCALAR));
    for (int i = 0; i < 2; i++)
        s.adds[i] = mr_barrier_insert_many(s.graph, barrier, s.key, s.value, .component_index = i);
    mr_output_range taken = mr_barrier_take_many(s.graph, barrier, mr_constant_int32(s.graph, 3),
                                                 .component_types = types, .allow_small_batch = true)
                                .values;
    s.taken_count = 2;
    for (int i = 0; i < 2; i++) s.taken[i] = mr_output_at(taken, i);
    s.close = mr_barrier_close(s.graph, barrier);
    start(&s);
    return s;
}

TEST(waiting_for_barriers)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        shared s = make_barrier();
        run_traffic(&s, cancels != 0);
    }
}

/* ---- Accumulators: two threads add gradients, the others take sums of at least one ---- */

TEST(waiting_for_accumulators)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        shared s = begin(false);
        mr_output accumulator =
            mr_conditional_accumulator(s.graph, MR_DOUBLE, .shape = MR_SHAPE(1), .reduction_type = MR_SUM);
        mr_output step = mr_constant_int64(s.graph, INT64_MAX);
        for (int i = 0; i < 2; i++) s.adds[i] = mr_accumulator_apply_gradient(s.graph, accumulator, step, s.value);
        s.taken[0] = mr_accumulator_take_gradient(s.graph, accumulator, mr_constant_int32(s.graph, 1), MR_DOUBLE);
        start(&s);
        run_traffic(&s, cancels != 0);
    }
}

/* ---- Staging areas: those that add wait too ---- */

TEST(waiting_for_stages)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        shared s = begin(false);
        mr_dtypes types = MR_DTYPES(MR_DOUBLE);
        for (int i = 0; i < 2; i++)
            s.adds[i] = mr_stage(s.graph, MR_OUTPUTS(s.value), .capacity = 3, .shared_name = "area");
        s.taken[0] = mr_output_at(mr_unstage(s.graph, .dtypes = types, .capacity = 3, .shared_name = "area"), 0);
        start(&s);
        run_traffic(&s, cancels != 0);
    }
}
