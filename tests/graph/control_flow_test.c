/* Conditionals and loops built from C, and their gradients. */
#include "tests/test.h"

#include <math.h>
#include <millrace/control_flow.h>
#include <millrace/ops.h>
#include <millrace/session.h>

/* Runs y and its gradient by x, for x = value. */
static void run(mr_graph *g, mr_output x, float value, mr_output y, double expected, double slope)
{
    mr_error error = {0};
    mr_output gradient = {0};
    mr_gradients(g, MR_OUTPUTS(y), MR_OUTPUTS(x), nullptr, &gradient);
    CHECK_OK(mr_graph_status(g, &error));
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    mr_tensor fed = {0}, results[2] = {0};
    CHECK_OK(mr_tensor_init_float(&fed, value, &error));
    mr_outputs fetches = MR_OUTPUTS(y, gradient);
    if (gradient.node == nullptr) fetches.count = 1;
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), fetches, results, nullptr, 0, &error));
    CHECK_NEAR(mr_tensor_floats(&results[0])[0], expected, 1e-4);
    CHECK_NEAR(gradient.node == nullptr ? 0 : mr_tensor_floats(&results[1])[0], slope, 1e-4);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
}

static mr_output scalar(mr_graph *g)
{
    return mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
}

/* base ^ count, by a loop. */
static mr_output power(mr_graph *g, mr_output base, mr_output count)
{
    mr_output v[2], r[2];
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(mr_constant_int32(g, 0), mr_constant_float(g, 1)), v);
    mr_while_loop_body(loop, mr_less(g, v[0], count), v);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), mr_mul(g, v[1], base)), r);
    return r[1];
}

TEST(cond_takes_one_branch_and_its_gradient)
{
    for (float value = 0.5f; value < 4; value += 1.5f) {
        mr_graph *g = mr_graph_new();
        mr_output x = scalar(g), y = {0};
        mr_cond *cond = mr_cond_begin(g, mr_less(g, x, mr_constant_float(g, 1)));
        mr_cond_else(cond, MR_OUTPUTS(mr_mul(g, x, mr_constant_float(g, 2))));
        mr_cond_end(cond, MR_OUTPUTS(mr_mul(g, x, x)), &y);
        run(g, x, value, y, value < 1 ? 2 * value : value * value, value < 1 ? 2 : 2 * value);
        mr_graph_free(g);
    }
}

TEST(cond_passes_outputs_from_outside_through)
{
    mr_graph *g = mr_graph_new();
    mr_output x = scalar(g), square = mr_mul(g, x, x), y = {0};
    mr_cond *cond = mr_cond_begin(g, mr_less(g, x, mr_constant_float(g, 1)));
    mr_cond_else(cond, MR_OUTPUTS(x));
    mr_cond_end(cond, MR_OUTPUTS(square), &y);
    run(g, x, 3, y, 9, 6);
    mr_graph_free(g);
}

TEST(while_loop_and_its_gradient)
{
    for (int count = 0; count < 5; count++) {
        mr_graph *g = mr_graph_new();
        mr_output x = scalar(g), y = power(g, x, mr_constant_int32(g, count));
        run(g, x, 1.5f, y, pow(1.5, count), count * pow(1.5, count - 1));
        mr_graph_free(g);
    }
}

TEST(nested_loops_and_their_gradients)
{
    mr_graph *g = mr_graph_new();
    mr_output x = scalar(g), v[2], r[2];
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(mr_constant_int32(g, 0), mr_constant_float(g, 0)), v);
    mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_int32(g, 4)), v);
    mr_output sum = mr_add(g, v[1], power(g, x, v[0]));
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), sum), r);
    run(g, x, 2, r[1], 1 + 2 + 4 + 8, 1 + 2 * 2 + 3 * 4); /* 1 + x + x^2 + x^3 */
    mr_graph_free(g);
}

TEST(conditional_inside_of_a_loop)
{
    mr_graph *g = mr_graph_new();
    mr_output x = scalar(g), v[2], r[2], next = {0};
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(mr_constant_int32(g, 0), x), v, .parallel_iterations = 3);
    mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_int32(g, 3)), v);
    mr_cond *cond = mr_cond_begin(g, mr_equal(g, v[0], mr_constant_int32(g, 1)));
    mr_cond_else(cond, MR_OUTPUTS(mr_mul(g, v[1], v[1])));
    mr_cond_end(cond, MR_OUTPUTS(mr_mul(g, v[1], mr_constant_float(g, 3))), &next);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), next), r);
    run(g, x, 2, r[1], 3 * 36, 3 * 9 * 2 * 2); /* 3 (3 x)^2 */
    mr_graph_free(g);
}

TEST(loop_inside_of_a_conditional)
{
    for (int taken = 0; taken < 2; taken++) {
        mr_graph *g = mr_graph_new();
        mr_output x = scalar(g), y = {0};
        mr_cond *cond = mr_cond_begin(g, mr_constant_bool(g, taken));
        mr_cond_else(cond, MR_OUTPUTS(power(g, x, mr_constant_int32(g, 3))));
        mr_cond_end(cond, MR_OUTPUTS(mr_neg(g, x)), &y);
        run(g, x, 2, y, taken ? 8 : -2, taken ? 12 : -1);
        mr_graph_free(g);
    }
}

/* Gradients of values whose shapes are known only when they run. */
TEST(loop_over_a_tensor_of_unknown_shape)
{
    mr_graph *g = mr_graph_new();
    mr_output x = scalar(g),
              rows = mr_placeholder_with_default(g, mr_constant_ints(g, MR_INTS(3)), .shape = MR_SHAPE(1));
    mr_output start = mr_fill(g, rows, x), v[3], r[3]; /* [x, x, x] */
    mr_while_loop *loop =
        mr_while_loop_begin(g, MR_OUTPUTS(mr_constant_int32(g, 0), start, mr_constant_float(g, 0)), v);
    mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_int32(g, 2)), v);
    mr_output total = mr_add(g, v[2], mr_sum(g, mr_mul(g, v[1], start), mr_constant_int32(g, 0)));
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), mr_mul(g, v[1], start), total), r);
    run(g, x, 2, r[2], 3 * 4 + 3 * 8, 3 * 4 + 3 * 3 * 4); /* 3 x^2 + 3 x^3 */
    mr_graph_free(g);
}

/* y[i] = x[i] * w, read from one array and written to another one, as dynamic RNNs do. */
TEST(loop_over_arrays_and_its_gradient)
{
    mr_graph *g = mr_graph_new();
    mr_output x = scalar(g), v[2], r[2];
    mr_output rows = mr_mul(g, x, mr_constant_floats(g, MR_SHAPE(3), (float[]){1, 2, 3}, "rows"));
    mr_output size = mr_constant_int32(g, 3), all = mr_range(g, mr_constant_int32(g, 0), size, mr_constant_int32(g, 1));
    mr_tensor_array_v3_outputs in = mr_tensor_array_v3(g, size, MR_FLOAT, .element_shape = MR_SCALAR);
    mr_tensor_array_v3_outputs out = mr_tensor_array_v3(g, size, MR_FLOAT, .element_shape = MR_SCALAR);
    mr_output filled = mr_tensor_array_scatter_v3(g, in.handle, all, rows, in.flow);
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(mr_constant_int32(g, 0), out.flow), v);
    mr_while_loop_body(loop, mr_less(g, v[0], size), v);
    mr_output row = mr_tensor_array_read_v3(g, in.handle, v[0], filled, MR_FLOAT);
    mr_output written = mr_tensor_array_write_v3(g, out.handle, v[0], mr_mul(g, row, x), v[1]);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), written), r);
    mr_output stacked = mr_tensor_array_gather_v3(g, out.handle, all, r[1], MR_FLOAT, .element_shape = MR_SCALAR);
    run(g, x, 2, mr_sum(g, stacked, mr_constant_int32(g, 0)), 6 * 4, 6 * 2 * 2); /* 6 x^2 */
    mr_graph_free(g);
}

static void check_refused(mr_graph *g, mr_status status, const char *part)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_STATUS(mr_session_new(g, nullptr, &session, &error), status);
    CHECK_CONTAINS(error.message, part);
    mr_graph_free(g);
}

TEST(control_flow_says_what_does_not_fit)
{
    mr_graph *g = mr_graph_new();
    mr_output x = scalar(g), y[2] = {0}, v[2], r[2];
    mr_cond *cond = mr_cond_begin(g, mr_less(g, x, x));
    mr_cond_else(cond, MR_OUTPUTS(x));
    mr_cond_end(cond, MR_OUTPUTS(x, x), y);
    check_refused(g, MR_INVALID_ARGUMENT, "cond: the branches have 1 and 2 results");

    g = mr_graph_new();
    cond = mr_cond_begin(g, mr_constant_bool(g, true));
    mr_cond_else(cond, MR_OUTPUTS(mr_constant_int32(g, 1)));
    mr_cond_end(cond, MR_OUTPUTS(mr_constant_float(g, 1)), y);
    check_refused(g, MR_INVALID_ARGUMENT, "result 0 is int32 in the branch of true and float in that of false");

    g = mr_graph_new();
    cond = mr_cond_begin(g, scalar(g));
    mr_cond_else(cond, (mr_outputs){0});
    mr_cond_end(cond, (mr_outputs){0}, nullptr);
    check_refused(g, MR_INVALID_ARGUMENT, "pred must be a bool");

    g = mr_graph_new();
    cond = mr_cond_begin(g, mr_constant_bool(g, true));
    mr_cond_end(cond, (mr_outputs){0}, nullptr);
    check_refused(g, MR_FAILED_PRECONDITION, "mr_cond_else");

    g = mr_graph_new();
    (void)mr_cond_begin(g, mr_constant_bool(g, true));
    check_refused(g, MR_FAILED_PRECONDITION, "conditional cond has not ended");

    g = mr_graph_new();
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(scalar(g)), v);
    mr_while_loop_body(loop, mr_constant_bool(g, false), v);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 2}, "two")), r);
    check_refused(g, MR_INVALID_ARGUMENT, "enters the loop with shape [], but has shape [2] after one iteration");

    g = mr_graph_new();
    loop = mr_while_loop_begin(g, MR_OUTPUTS(scalar(g)), v);
    mr_while_loop_body(loop, mr_constant_bool(g, false), v);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_constant_int32(g, 2)), r);
    check_refused(g, MR_INVALID_ARGUMENT, "enters the loop as float, but is int32");

    g = mr_graph_new();
    loop = mr_while_loop_begin(g, MR_OUTPUTS(scalar(g)), v);
    mr_while_loop_body(loop, v[0], v);
    mr_while_loop_end(loop, MR_OUTPUTS(v[0]), r);
    check_refused(g, MR_INVALID_ARGUMENT, "the test must be a bool");

    g = mr_graph_new();
    loop = mr_while_loop_begin(g, MR_OUTPUTS(scalar(g)), v, .parallel_iterations = 0);
    mr_while_loop_body(loop, mr_constant_bool(g, true), v);
    mr_while_loop_end(loop, MR_OUTPUTS(v[0]), r);
    check_refused(g, MR_INVALID_ARGUMENT, "parallel_iterations is 0");

    g = mr_graph_new();
    (void)mr_while_loop_begin(g, MR_OUTPUTS(scalar(g)), v);
    check_refused(g, MR_FAILED_PRECONDITION, "loop while has not ended");
}
