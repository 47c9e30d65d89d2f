/* Sessions: correct results, no unnecessary work, and clear error messages. */
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>
#include <pthread.h>

static mr_tensor scalar(float value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_float(&tensor, value, &error));
    return tensor;
}

static mr_session *open_session(mr_graph *g)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_session_options options = {.size = sizeof options, .threads = 2};
    CHECK_OK(mr_session_new(g, &options, &session, &error));
    return session;
}

static float run_scalar(mr_session *session, mr_feeds feeds, mr_output fetch)
{
    mr_error error = {0};
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, feeds, (mr_outputs){&fetch, 1}, &result, nullptr, 0, &error));
    CHECK_EQ(result.dtype, MR_FLOAT);
    float value = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    return value;
}

TEST(session_runs_a_graph)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_output y = mr_add(g, mr_square(g, x), mr_constant_float(g, 1.0f), .name = "y");
    mr_session *session = open_session(g);
    mr_tensor three = scalar(3), four = scalar(4);
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, three}), y), 10, 0);
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, four}), y), 17, 0);
    mr_tensor_deinit(&three);
    mr_tensor_deinit(&four);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(session_runs_only_what_is_needed)
{
    mr_graph *g = mr_graph_new();
    mr_output unfed = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "unfed");
    mr_square(g, unfed);
    mr_output y = mr_square(g, mr_constant_float(g, 5.0f));
    mr_session *session = open_session(g);
    CHECK_NEAR(run_scalar(session, MR_NO_FEEDS, y), 25, 0);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Anything can be fed instead of being computed, including constants and variables. */
TEST(session_feeds_any_output)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_output c = mr_constant_float(g, 2.0f);
    mr_output middle = mr_mul(g, x, c, .name = "middle");
    mr_output y = mr_square(g, middle, .name = "y");
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_output z = mr_square(g, w.value);
    mr_session *session = open_session(g);
    mr_tensor three = scalar(3), five = scalar(5);
    CHECK_NEAR(run_scalar(session, MR_FEEDS({middle, five}), y), 25, 0); /* x is not needed in this case */
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, three}, {c, five}), y), 225, 0);
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, three}), y), 36, 0);
    CHECK_NEAR(run_scalar(session, MR_FEEDS({w.value, three}), z), 9, 0); /* w has no value */
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, three}), x), 3, 0);
    mr_tensor_deinit(&three);
    mr_tensor_deinit(&five);
    mr_session_free(session);
    mr_graph_free(g);
}

/* The value fed for a constant must not be replaced by the value that shape inference deduced from the constant. */
TEST(session_feeds_the_shape_of_a_reshape)
{
    mr_graph *g = mr_graph_new();
    mr_output rows = mr_constant_int32(g, 2);
    mr_output columns = mr_constant_int32(g, 3);
    mr_output shape = mr_pack(g, MR_OUTPUTS(rows, columns));
    mr_output zeros = mr_fill(g, shape, mr_constant_float(g, 0.0f));
    mr_output measured = mr_shape_of(g, zeros);
    mr_session *session = open_session(g);
    mr_error error = {0};
    mr_tensor four = {0}, result = {0};
    CHECK_OK(mr_tensor_init_int32(&four, 4, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(measured), &result, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_int32s(&result)[0], 2);
    mr_tensor_deinit(&result);
    CHECK_OK(mr_session_run(session, MR_FEEDS({rows, four}), MR_OUTPUTS(measured), &result, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_int32s(&result)[0], 4);
    CHECK_EQ(mr_tensor_int32s(&result)[1], 3);
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&four);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(session_fetches_one_output_twice)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_output y = mr_square(g, x);
    mr_output z = mr_square(g, y);
    mr_session *session = open_session(g);
    mr_tensor two = scalar(2), results[4] = {0};
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, two}), MR_OUTPUTS(y, z, y, x), results, nullptr, 0, &error));
    CHECK_NEAR(mr_tensor_floats(&results[0])[0], 4, 0);
    CHECK_NEAR(mr_tensor_floats(&results[1])[0], 16, 0);
    CHECK_NEAR(mr_tensor_floats(&results[2])[0], 4, 0);
    CHECK_NEAR(mr_tensor_floats(&results[3])[0], 2, 0);
    for (int i = 0; i < 4; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&two);
    mr_session_free(session);
    mr_graph_free(g);
}

/* An in-place kernel must not change tensors that the caller fed, that were fetched, or that are read again. */
TEST(session_never_modifies_shared_buffers)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1));
    mr_output same = mr_identity(g, x);
    mr_output negative = mr_neg(g, same);
    mr_output twice = mr_neg(g, negative);
    mr_output sum = mr_add(g, negative, negative);
    mr_session *session = open_session(g);
    mr_tensor fed = {0}, results[3] = {0};
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(3), (float[]){1, 2, 3}, &error));
    CHECK_OK(
        mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(twice, negative, sum), results, nullptr, 0, &error));
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(mr_tensor_floats(&fed)[i], i + 1, 0);
        CHECK_NEAR(mr_tensor_floats(&results[0])[i], i + 1, 0);
        CHECK_NEAR(mr_tensor_floats(&results[1])[i], -(i + 1), 0);
        CHECK_NEAR(mr_tensor_floats(&results[2])[i], -2 * (i + 1), 0);
    }
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(session_reports_invalid_feeds)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "x");
    mr_output y = mr_square(g, x, .name = "y");
    mr_session *session = open_session(g);
    mr_tensor vector = {0}, whole = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&vector, MR_FLOAT, MR_SHAPE(3), &error));
    CHECK_OK(mr_tensor_init_int32(&whole, 1, &error));
    CHECK_STATUS(mr_session_run(session, MR_FEEDS({x, vector}), MR_OUTPUTS(y), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "Cannot feed value of shape [3] for x:0, which has shape [?,2]");
    CHECK_STATUS(mr_session_run(session, MR_FEEDS({x, whole}), MR_OUTPUTS(y), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "Cannot feed a int32 for x:0, which is a float");
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(y), &result, nullptr, 0, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "x (Placeholder): You must feed a value for placeholder tensor 'x' with dtype float and "
                             "shape [?,2]");
    CHECK(result.buffer == nullptr);
    mr_tensor_deinit(&vector);
    mr_tensor_deinit(&whole);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(session_errors_name_the_node)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .name = "x");
    mr_graph_push_scope(g, "tower");
    mr_output y = mr_add(g, x, mr_constant_floats(g, MR_SHAPE(4), (float[]){1, 2, 3, 4}, nullptr), .name = "sum");
    mr_graph_pop_scope(g);
    mr_session *session = open_session(g);
    mr_tensor fed = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(2, 3), &error));
    CHECK_STATUS(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(y), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    CHECK(strncmp(error.message, "tower/sum (Add)", 15) == 0);
    CHECK(strstr(error.message + 1, "tower/sum") == nullptr); /* the name appears only once */
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

/* After a run that failed midway, the next one starts from a clean state. */
TEST(session_names_an_operator_without_kernel_for_a_type)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_QINT8, .shape = MR_SHAPE(2));
    mr_output y = mr_cumsum(g, x, mr_constant_int32(g, 0), .name = "sums");
    mr_session *session = open_session(g);
    mr_tensor bytes = {0}, result = {0};
    CHECK_OK(mr_tensor_init_copy(&bytes, MR_QINT8, MR_SHAPE(2), "ab", &error));
    CHECK_EQ(mr_session_run(session, MR_FEEDS({x, bytes}), MR_OUTPUTS(y), &result, nullptr, 0, &error),
             MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&bytes);
    CHECK_CONTAINS(error.message, "sums (Cumsum): No OpKernel was registered to support Op 'Cumsum' for T=qint8");
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(session_goes_on_after_a_failed_run)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_output y = mr_square(g, x);
    mr_output positive = mr_greater(g, x, mr_constant_float(g, 0.0f));
    mr_node *check = mr_assert(g, positive, MR_OUTPUTS(x), .name = "check");
    mr_graph_push_control_dependencies(g, &check, 1);
    mr_output z = mr_identity(g, y);
    mr_graph_pop_control_dependencies(g);
    mr_session *session = open_session(g);
    mr_tensor plus = scalar(2), minus = scalar(-2), result = {0};
    CHECK_STATUS(mr_session_run(session, MR_FEEDS({x, minus}), MR_OUTPUTS(z), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "check (Assert): assertion failed: [-2]");
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, plus}), z), 4, 0);
    mr_tensor_deinit(&plus);
    mr_tensor_deinit(&minus);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(session_reports_the_graphs_first_error)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output a = mr_constant_floats(g, MR_SHAPE(2, 2), (float[]){1, 2, 3, 4}, "a");
    mr_output b = mr_constant_floats(g, MR_SHAPE(3, 1), (float[]){1, 2, 3}, "b");
    mr_square(g, mr_mat_mul(g, a, b, .name = "wrong"));
    mr_session *session = nullptr;
    CHECK_STATUS(mr_session_new(g, nullptr, &session, &error), MR_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "wrong") != nullptr);
    CHECK(session == nullptr);
    mr_graph_free(g);
}

TEST(session_refuses_what_is_not_there)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new(), *other = mr_graph_new();
    mr_output x = mr_constant_float(g, 1.0f);
    mr_output y = mr_constant_float(other, 1.0f);
    mr_session *session = open_session(g);
    mr_tensor result = {0};
    mr_output past = {x.node, 1};
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(y), &result, nullptr, 0, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(past), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS((mr_output){0}), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    mr_tensor one = scalar(1);
    CHECK_STATUS(mr_session_run(session, MR_FEEDS({x, one}, {x, one}), MR_OUTPUTS(x), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&one);
    mr_session_free(session);
    mr_graph_free(g);
    mr_graph_free(other);
}

TEST(session_trace_lists_what_ran)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_output y = mr_square(g, mr_neg(g, x, .name = "first"), .name = "second");
    mr_session *session = open_session(g);
    mr_node_time times[8];
    mr_tensor one = scalar(1), result = {0};
    mr_session_trace(session, true);
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, one}), MR_OUTPUTS(y), &result, nullptr, 0, &error));
    CHECK_EQ(mr_session_trace_times(session, times, 8), 2);
    CHECK_STR(times[0].node, "first");
    CHECK_STR(times[1].node, "second");
    CHECK_STR(times[1].op, "Square");
    CHECK(times[1].start_ns >= times[0].start_ns + times[0].duration_ns);
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&one);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(session_without_a_gpu_logs_that_it_uses_the_cpu)
{
    mr_graph *g = mr_graph_new();
    mr_graph_push_device(g, "/device:GPU:7");
    mr_output y = mr_square(g, mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x"), .name = "y");
    mr_graph_pop_device(g);
    mr_error error = {0};
    mr_session *session = open_session(g);
    mr_output x = mr_graph_find_output(g, "x");
    mr_tensor three = scalar(3), result = {0};
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, three}), y), 9, 0);
    CHECK(strstr(mr_session_log(session), "/device:GPU:7 is not used: ") != nullptr);
    mr_session_free(session);

    mr_session_options strict = {.size = sizeof strict, .no_soft_placement = true};
    CHECK_OK(mr_session_new(g, &strict, &session, &error));
    CHECK(mr_session_run(session, MR_FEEDS({x, three}), MR_OUTPUTS(y), &result, nullptr, 0, &error) != MR_OK);
    CHECK(strncmp(error.message, "y (Square) requests /device:GPU:7", 33) == 0);
    mr_session_free(session);
    mr_tensor_deinit(&three);
    mr_graph_free(g);
}

/* ---- Threads ---- */

typedef struct racer {
    mr_session *session;
    mr_output fetch;
    mr_node *target;
    bool torn;
} racer;

/* Runs the target, or fetches a value and checks that all its elements are equal. */
static void *race(void *context)
{
    racer *r = context;
    mr_error error = {0};
    for (int i = 0; i < 200; i++) {
        mr_tensor result = {0};
        int32_t count = r->target ? 0 : 1;
        if (mr_session_run(r->session, MR_NO_FEEDS, (mr_outputs){&r->fetch, count}, &result, &r->target, 1 - count,
                           &error) != MR_OK)
            r->torn = true;
        for (int64_t j = 1; count > 0 && j < mr_tensor_count(&result); j++)
            r->torn |= mr_tensor_floats(&result)[j] != mr_tensor_floats(&result)[0];
        mr_tensor_deinit(&result);
    }
    return nullptr;
}

/* A variable whose reference is fetched, or that is read by handle, while it is updated has the value from before or
 * after the update, never a mixture. */
TEST(session_runs_on_several_threads)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    float zeros[1000] = {0}, ones[1000];
    for (int i = 0; i < 1000; i++) ones[i] = 1;
    mr_variable w = mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(1000), zeros, nullptr));
    mr_output one = mr_constant_floats(g, MR_SHAPE(1000), ones, nullptr);
    mr_output step = mr_assign_add(g, w.ref, one);
    mr_output v = mr_var_handle_op(g, MR_FLOAT, .shape = MR_SHAPE(1000), .name = "v");
    mr_node *set = mr_assign_variable_op(g, v, w.initial_value);
    mr_node *step_by_handle = mr_assign_add_variable_op(g, v, one);
    mr_output read = mr_read_variable_op(g, v, MR_FLOAT);
    mr_session *session = open_session(g);
    mr_node *initializers[] = {w.initializer, set};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, initializers, 2, &error));
    racer racers[4] = {{session, {0}, step.node, false},
                       {session, {0}, step_by_handle, false},
                       {session, read, nullptr, false},
                       {session, w.ref, nullptr, false}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, race, &racers[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], nullptr);
    for (int i = 0; i < 4; i++) CHECK(!racers[i].torn);
    CHECK_NEAR(run_scalar(session, MR_NO_FEEDS, w.value), 200, 0);
    CHECK_NEAR(run_scalar(session, MR_NO_FEEDS, read), 200, 0);
    mr_session_free(session);
    mr_graph_free(g);
}
