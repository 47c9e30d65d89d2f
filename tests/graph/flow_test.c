/* Conditionals and loops: values, errors, memory, threads. tests/oracle/run_oracle.py compares with TensorFlow. */
#include "graph/ir/graph.h"
#include "graph/run/session.h"
#include "tests/test.h"

#include <millrace/ops.h>
#include <pthread.h>

static mr_session *open_session(mr_graph *g)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    return session;
}

/* Makes an edge back to a merge, which a builder cannot: both inputs were the same Enter. */
static void close_loop(mr_output merge, mr_output next)
{
    merge.node->inputs[1] = next;
    merge.node->graph->version++;
}

/* while (i < n) { i++; x = x * x + c }, for vectors x. */
typedef struct loop {
    mr_graph *g;
    mr_output n, x, i, value;
} loop;

static mr_output enter(mr_graph *g, mr_output value, bool is_constant)
{
    return mr_enter(g, value, .frame_name = "loop", .is_constant = is_constant);
}

static loop make_loop(void)
{
    mr_graph *g = mr_graph_new();
    loop l = {.g = g,
              .n = mr_placeholder(g, MR_INT32, .shape = MR_SCALAR, .name = "n"),
              .x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x")};
    mr_output i0 = enter(g, mr_constant_int32(g, 0), false), x0 = enter(g, l.x, false);
    mr_output limit = enter(g, l.n, true), c = enter(g, mr_constant_float(g, 0.25f), true);
    mr_output one = enter(g, mr_constant_int32(g, 1), true);
    mr_output i = mr_merge(g, MR_OUTPUTS(i0, i0)).output, x = mr_merge(g, MR_OUTPUTS(x0, x0)).output;
    mr_output proceed = mr_loop_cond(g, mr_less(g, i, limit));
    mr_switch_outputs i_ways = mr_switch(g, i, proceed), x_ways = mr_switch(g, x, proceed);
    mr_output next_i = mr_add(g, mr_identity(g, i_ways.output_true), one);
    mr_output next_x = mr_add(g, mr_square(g, x_ways.output_true), c, .name = "body");
    close_loop(i, mr_next_iteration(g, next_i));
    close_loop(x, mr_next_iteration(g, next_x));
    l.i = mr_exit(g, i_ways.output_false);
    l.value = mr_exit(g, x_ways.output_false, .name = "exit");
    mr_error error = {0};
    CHECK_OK(mr_graph_status(g, &error));
    return l;
}

static float expected(int n, float x)
{
    for (int i = 0; i < n; i++) {
        volatile float square = x * x; /* the compiler must not fuse the addition with it */
        x = square + 0.25f;
    }
    return x;
}

/* False if a result is wrong. */
static bool run_loop(const loop *l, mr_session *session, int32_t n, int64_t size)
{
    mr_error error = {0};
    mr_tensor count = {0}, fed = {0}, results[2] = {0};
    bool right = mr_tensor_init_int32(&count, n, &error) == MR_OK &&
                 mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(size), &error) == MR_OK;
    for (int64_t i = 0; right && i < size; i++) mr_tensor_floats(&fed)[i] = (float)i / (float)size;
    right = right && mr_session_run(session, MR_FEEDS({l->n, count}, {l->x, fed}), MR_OUTPUTS(l->i, l->value), results,
                                    nullptr, 0, &error) == MR_OK;
    right = right && mr_tensor_int32s(&results[0])[0] == (n > 0 ? n : 0) && mr_tensor_count(&results[1]) == size;
    for (int64_t i = 0; right && i < size; i++)
        right = mr_tensor_floats(&results[1])[i] == expected(n, (float)i / (float)size);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&count);
    mr_tensor_deinit(&fed);
    return right;
}

TEST(flow_loop_runs_until_its_condition_is_false)
{
    loop l = make_loop();
    mr_session *session = open_session(l.g);
    for (int32_t n = -1; n < 40; n++) CHECK(run_loop(&l, session, n, (n + 5) % 5));
    mr_session_free(session);
    mr_graph_free(l.g);
}

TEST(flow_loop_allocates_nothing_in_the_steady_state)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    loop l = make_loop();
    mr_session *session = open_session(l.g);
    mr_tensor n = {0}, x = {0}, result = {0};
    CHECK_OK(mr_tensor_init_int32(&n, 1000, &error));
    CHECK_OK(mr_tensor_init(&x, MR_FLOAT, MR_SHAPE(8), &error));
    memset(x.data, 0, 32);
    long long before = 0;
    for (int i = 0; i < 4; i++) {
        if (i == 2) before = test_allocations();
        CHECK_OK(
            mr_session_run(session, MR_FEEDS({l.n, n}, {l.x, x}), MR_OUTPUTS(l.value), &result, nullptr, 0, &error));
        mr_tensor_deinit(&result);
    }
    CHECK_EQ(test_allocations(), before);
    mr_tensor_deinit(&n);
    mr_tensor_deinit(&x);
    mr_session_free(session);
    mr_graph_free(l.g);
}

/* Each iteration's call of the body is reported, up to the documented number of executions. */
TEST(flow_trace_reports_each_iteration)
{
    constexpr int KEPT_MAX = 65'536;
    loop l = make_loop();
    mr_session *session = open_session(l.g);
    mr_node_time *times = calloc(KEPT_MAX + 1, sizeof *times);
    CHECK(times != nullptr);
    mr_session_trace(session, true);
    const int32_t iterations[] = {0, 1, 1000, 3};
    for (int i = 0; i < 4; i++) {
        CHECK(run_loop(&l, session, iterations[i], 2));
        int count = mr_session_trace_times(session, times, KEPT_MAX + 1), found = 0;
        for (int j = 0; j < count; j++) found += strcmp(times[j].op, "Square") == 0;
        CHECK_EQ(found, iterations[i]);
    }
    CHECK(run_loop(&l, session, KEPT_MAX, 1));
    CHECK_EQ(mr_session_trace_times(session, times, KEPT_MAX + 1), KEPT_MAX);
    free(times);
    mr_session_free(session);
    mr_graph_free(l.g);
}

typedef struct job {
    const loop *loop;
    mr_session *session;
    int number, faults;
} job;

static void *run_many(void *context)
{
    job *j = context;
    uint64_t random = test_seed() + (uint64_t)j->number;
    for (int i = 0; i < 150; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        j->faults += !run_loop(j->loop, j->session, (int32_t)(random >> 60), (int64_t)(random >> 33) % 20);
    }
    return nullptr;
}

TEST(flow_runs_of_one_loop_are_concurrent)
{
    loop l = make_loop();
    mr_session *session = open_session(l.g);
    job jobs[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) jobs[i] = (job){&l, session, i, 0};
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, run_many, &jobs[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], nullptr);
    for (int i = 0; i < 4; i++) CHECK_EQ(jobs[i].faults, 0);
    mr_session_free(session);
    mr_graph_free(l.g);
}

/* An error in an iteration names the node, and the next run works. */
TEST(flow_error_in_an_iteration)
{
    mr_error error = {0};
    loop l = make_loop();
    mr_session *session = open_session(l.g);
    mr_graph *g = l.g;
    mr_tensor n = {0}, x = {0}, result = {0};
    mr_output body = mr_graph_find_output(g, "body");
    mr_node_builder b = mr_node_begin(g, "CheckNumerics", "checked");
    mr_node_add_input(&b, body);
    mr_node_set_string(&b, "message", "the loop");
    mr_output checked = mr_node_finish(&b);
    mr_node *next = mr_graph_find(g, "NextIteration_1");
    CHECK(next != nullptr && next->inputs[0].node == body.node);
    next->inputs[0] = checked;
    g->version++;
    CHECK_OK(mr_tensor_init_int32(&n, 100, &error));
    CHECK_OK(mr_tensor_init(&x, MR_FLOAT, MR_SHAPE(1), &error));
    for (int i = 0; i < 3; i++) {
        mr_tensor_floats(&x)[0] = 2; /* 2, 4.25, … is infinite after a few iterations */
        CHECK_STATUS(
            mr_session_run(session, MR_FEEDS({l.n, n}, {l.x, x}), MR_OUTPUTS(l.value), &result, nullptr, 0, &error),
            MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "checked (CheckNumerics)");
        mr_tensor_floats(&x)[0] = 0;
        CHECK_OK(
            mr_session_run(session, MR_FEEDS({l.n, n}, {l.x, x}), MR_OUTPUTS(l.value), &result, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&result)[0] == expected(100, 0));
        mr_tensor_deinit(&result);
    }
    mr_tensor_deinit(&n);
    mr_tensor_deinit(&x);
    mr_session_free(session);
    mr_graph_free(g);
}

static void expect_error(mr_graph *g, mr_output fetch, mr_status status, const char *part)
{
    mr_error error = {0};
    mr_session *session = open_session(g);
    mr_tensor result = {0};
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(fetch), &result, nullptr, 0, &error), status);
    CHECK_CONTAINS(error.message, part);
    CHECK(result.buffer == nullptr);
    mr_session_free(session);
}

TEST(flow_refuses_what_has_no_value)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 1), p = mr_constant_bool(g, true);
    mr_switch_outputs ways = mr_switch(g, x, p, .name = "ways");
    expect_error(g, mr_neg(g, ways.output_false, .name = "dead"), MR_INVALID_ARGUMENT,
                 "Retval[0] does not have value: dead:0 is in a branch that did not run");
    expect_error(g, ways.output_false, MR_INVALID_ARGUMENT, "Retval[0] does not have value: ways:0");
    expect_error(g, mr_exit(g, x, .name = "out"), MR_INVALID_ARGUMENT, "out (Exit) is not inside a loop");
    expect_error(g, mr_next_iteration(g, x, .name = "next"), MR_INVALID_ARGUMENT,
                 "next (NextIteration) is not inside a loop");
    mr_output inside = mr_enter(g, x, .frame_name = "a loop", .name = "inside");
    expect_error(g, inside, MR_INVALID_ARGUMENT, "inside:0 is inside the loop 'a loop' and cannot be fetched");
    expect_error(g, mr_exit(g, mr_add(g, inside, x, .name = "mixed")), MR_INVALID_ARGUMENT,
                 "mixed (Add) has inputs from different frames: 'a loop' and ''");
    mr_output odd = mr_placeholder(g, MR_BOOL, .name = "odd");
    mr_switch_outputs odd_ways = mr_switch(g, x, odd, .name = "odd_ways");
    mr_error error = {0};
    mr_session *session = open_session(g);
    mr_tensor two = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&two, MR_BOOL, MR_SHAPE(2), &error));
    memset(two.data, 0, 2);
    CHECK_STATUS(
        mr_session_run(session, MR_FEEDS({odd, two}), MR_OUTPUTS(odd_ways.output_true), &result, nullptr, 0, &error),
        MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "odd_ways (Switch): The second input must be a scalar, but it has shape [2]");
    mr_tensor_deinit(&two);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Enter and Exit without anything between pass the value through one iteration. */
TEST(flow_enter_and_exit)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 3);
    mr_output deep = mr_enter(g, mr_enter(g, x, .frame_name = "a"), .frame_name = "b", .is_constant = true);
    mr_output out = mr_square(g, mr_exit(g, mr_exit(g, mr_square(g, deep))));
    mr_session *session = open_session(g);
    mr_tensor result = {0};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(out), &result, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&result)[0] == 81);
        mr_tensor_deinit(&result);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* A merge takes the input that is there without a token, and its index. */
/* if (p) for (i = 0; i < 3; i++) x = x + 2; the counter and the constants enter the loop whether p is true or not. */
TEST(flow_loop_of_a_branch_with_constants)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output p = mr_placeholder(g, MR_BOOL, .shape = MR_SCALAR), x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_switch_outputs branches = mr_switch(g, x, p);
    mr_output i0 = enter(g, mr_constant_int32(g, 0), false), limit = enter(g, mr_constant_int32(g, 3), true);
    mr_output one = enter(g, mr_constant_int32(g, 1), true), two = enter(g, mr_constant_float(g, 2), true);
    mr_output x0 = enter(g, branches.output_true, false);
    mr_output i = mr_merge(g, MR_OUTPUTS(i0, i0)).output, v = mr_merge(g, MR_OUTPUTS(x0, x0)).output;
    mr_output proceed = mr_loop_cond(g, mr_less(g, i, limit));
    mr_switch_outputs i_ways = mr_switch(g, i, proceed), v_ways = mr_switch(g, v, proceed);
    close_loop(i, mr_next_iteration(g, mr_add(g, i_ways.output_true, one)));
    close_loop(v, mr_next_iteration(g, mr_add(g, v_ways.output_true, two)));
    mr_output left = mr_exit(g, v_ways.output_false);
    mr_output result = mr_merge(g, MR_OUTPUTS(left, branches.output_false)).output;
    mr_session *session = open_session(g);
    for (int taken = 0; taken < 2; taken++) {
        mr_tensor flag = {0}, fed = {0}, value = {0};
        CHECK_OK(mr_tensor_init_bool(&flag, taken == 1, &error));
        CHECK_OK(mr_tensor_init_float(&fed, 5, &error));
        CHECK_OK(
            mr_session_run(session, MR_FEEDS({p, flag}, {x, fed}), MR_OUTPUTS(result), &value, nullptr, 0, &error));
        CHECK_EQ((int)mr_tensor_floats(&value)[0], taken ? 11 : 5);
        mr_tensor_deinit(&flag);
        mr_tensor_deinit(&fed);
        mr_tensor_deinit(&value);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(flow_merge_of_a_constant)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 3), p = mr_placeholder(g, MR_BOOL, .shape = MR_SCALAR);
    mr_switch_outputs ways = mr_switch(g, mr_square(g, x), p);
    mr_merge_outputs merged = mr_merge(g, MR_OUTPUTS(ways.output_true, mr_constant_float(g, 5)));
    mr_merge_outputs chosen = mr_merge(g, MR_OUTPUTS(ways.output_true, mr_neg(g, ways.output_false)));
    mr_session *session = open_session(g);
    for (int flag = 0; flag < 2; flag++) {
        mr_tensor fed = {0}, results[4] = {0};
        CHECK_OK(mr_tensor_init_bool(&fed, flag, &error));
        mr_outputs fetches = MR_OUTPUTS(merged.output, merged.value_index, chosen.output, chosen.value_index);
        CHECK_OK(mr_session_run(session, MR_FEEDS({p, fed}), fetches, results, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&results[0])[0] == 5);
        CHECK_EQ(mr_tensor_int32s(&results[1])[0], 1);
        CHECK(mr_tensor_floats(&results[2])[0] == (flag ? 9 : -9));
        CHECK_EQ(mr_tensor_int32s(&results[3])[0], !flag);
        for (int i = 0; i < 4; i++) mr_tensor_deinit(&results[i]);
        mr_tensor_deinit(&fed);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* Constants that other nodes only wait for, and what was computed from them, keep their values for the next run. */
TEST(flow_constants_that_only_order)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR), p = mr_placeholder(g, MR_BOOL, .shape = MR_SCALAR);
    mr_switch_outputs ways = mr_switch(g, x, p);
    mr_output branch = mr_identity(g, ways.output_true), c = mr_constant_float(g, 3);
    mr_node_add_control(c.node, branch.node);
    mr_output unused = mr_mul(g, mr_neg(g, c), branch), y = mr_square(g, branch);
    mr_node_add_control(y.node, unused.node);
    mr_merge_outputs merged = mr_merge(g, MR_OUTPUTS(y, mr_neg(g, ways.output_false)));
    mr_output kept = mr_merge(g, MR_OUTPUTS(c, ways.output_false)).output;
    mr_session *session = open_session(g);
    for (int i = 0; i < 8; i++) {
        mr_tensor flag = {0}, two = {0}, results[2] = {0};
        CHECK_OK(mr_tensor_init_bool(&flag, i % 2, &error));
        CHECK_OK(mr_tensor_init_float(&two, 2, &error));
        mr_outputs fetches = {(mr_output[]){merged.output, kept}, i < 4 ? 1 : 2};
        CHECK_OK(mr_session_run(session, MR_FEEDS({p, flag}, {x, two}), fetches, results, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&results[0])[0] == (i % 2 ? 4 : -2));
        if (i >= 4) CHECK(mr_tensor_floats(&results[1])[0] == (i % 2 ? 3 : 2));
        for (int j = 0; j < 2; j++) mr_tensor_deinit(&results[j]);
        mr_tensor_deinit(&flag);
        mr_tensor_deinit(&two);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* A reader of a variable in another segment runs before the update, as it does without conditionals. */
TEST(flow_keeps_readers_before_updates)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output p = mr_placeholder(g, MR_BOOL, .shape = MR_SCALAR);
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1));
    mr_output update = mr_assign_add(g, w.ref, mr_constant_float(g, 1));
    mr_switch_outputs ways = mr_switch(g, w.value, p);
    mr_output seen = mr_merge(g, MR_OUTPUTS(mr_square(g, ways.output_true), mr_neg(g, ways.output_false))).output;
    mr_session *session = open_session(g);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    for (int i = 1; i < 7; i++) {
        mr_tensor fed = {0}, result = {0};
        CHECK_OK(mr_tensor_init_bool(&fed, i % 2 == 0, &error));
        CHECK_OK(mr_session_run(session, MR_FEEDS({p, fed}), MR_OUTPUTS(seen), &result, &update.node, 1, &error));
        CHECK(mr_tensor_floats(&result)[0] == (i % 2 == 0 ? i * i : -i));
        mr_tensor_deinit(&result);
        mr_tensor_deinit(&fed);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* A value that only its own segment reads and that is fetched is not overwritten, in a run with conditionals. */
TEST(flow_keeps_what_is_fetched)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_output square = mr_square(g, x);
    mr_output twice = mr_mul(g, square, mr_constant_float(g, 2));
    mr_switch_outputs ways = mr_switch(g, x, mr_greater(g, x, mr_constant_float(g, 1)));
    mr_output merged = mr_merge(g, MR_OUTPUTS(mr_neg(g, ways.output_false), mr_exp(g, ways.output_true))).output;
    mr_session *session = open_session(g);
    mr_tensor three = {0}, results[3] = {0};
    CHECK_OK(mr_tensor_init_float(&three, 3, &error));
    CHECK_OK(
        mr_session_run(session, MR_FEEDS({x, three}), MR_OUTPUTS(square, twice, merged), results, nullptr, 0, &error));
    CHECK_NEAR(mr_tensor_floats(&results[0])[0], 9, 0);
    CHECK_NEAR(mr_tensor_floats(&results[1])[0], 18, 0);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&three);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A guard that is not finite ends the run before the updates. */
TEST(flow_guard_comes_before_updates)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output p = mr_placeholder(g, MR_BOOL, .shape = MR_SCALAR);
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1));
    mr_output update = mr_assign_add(g, w.ref, mr_constant_float(g, 1));
    mr_switch_outputs ways = mr_switch(g, w.value, p);
    mr_output zero = mr_sub(g, ways.output_true, ways.output_true);
    mr_output loss = mr_merge(g, MR_OUTPUTS(mr_real_div(g, ways.output_true, zero), ways.output_false)).output;
    mr_session *session = open_session(g);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    for (int i = 0; i < 6; i++) {
        mr_tensor fed = {0}, result = {0}, value = {0};
        bool diverged = false, bad = i % 2 == 1;
        CHECK_OK(mr_tensor_init_bool(&fed, bad, &error));
        mr_status status = mr_session_run_guarded(session, MR_FEEDS({p, fed}), MR_OUTPUTS(loss), &result, &update.node,
                                                  1, 0, &diverged, &error);
        CHECK_EQ(status, bad ? MR_INVALID_ARGUMENT : MR_OK);
        CHECK_EQ(diverged, bad);
        CHECK_OK(mr_session_read_variable(session, w.ref, &value, &error));
        CHECK(mr_tensor_floats(&value)[0] == 2 + i / 2);
        mr_tensor_deinit(&value);
        mr_tensor_deinit(&result);
        mr_tensor_deinit(&fed);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* If any allocation fails, the run reports it, releases everything, and the session remains usable. */
TEST(flow_any_allocation_may_fail)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    loop l = make_loop();
    mr_tensor n = {0}, x = {0}, result = {0};
    CHECK_OK(mr_tensor_init_int32(&n, 5, &error));
    CHECK_OK(mr_tensor_init(&x, MR_FLOAT, MR_SHAPE(4), &error));
    memset(x.data, 0, 16);
    mr_status status = MR_UNKNOWN;
    for (long long number = 1; status != MR_OK; number++) {
        CHECK(number < 5000);
        mr_session *session = open_session(l.g);
        test_fail_allocation(test_allocations() + number);
        status =
            mr_session_run(session, MR_FEEDS({l.n, n}, {l.x, x}), MR_OUTPUTS(l.value), &result, nullptr, 0, &error);
        test_fail_allocation(0);
        if (status != MR_OK) {
            CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
            CHECK(result.buffer == nullptr);
            CHECK(run_loop(&l, session, 3, 2));
        }
        mr_tensor_deinit(&result);
        mr_session_free(session);
    }
    mr_tensor_deinit(&n);
    mr_tensor_deinit(&x);
    mr_graph_free(l.g);
}
