/* Variables: references and handles, reading and updating, and lifetimes. */
#include "graph/run/session.h"
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>

static mr_session *open_session(mr_graph *g)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_session_options options = {.size = sizeof options, .threads = 2};
    CHECK_OK(mr_session_new(g, &options, &session, &error));
    return session;
}

static void run_node(mr_session *session, mr_node *node)
{
    mr_error error = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &node, 1, &error));
}

static mr_tensor fetch(mr_session *session, mr_output output)
{
    mr_error error = {0};
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){&output, 1}, &result, nullptr, 0, &error));
    return result;
}

static float fetch_float(mr_session *session, mr_output output)
{
    mr_tensor result = fetch(session, output);
    float value = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    return value;
}

TEST(variable_reading_before_assigning_is_tensorflows_error)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_push_scope(g, "layer");
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_graph_pop_scope(g);
    mr_output y = mr_square(g, w.value);
    mr_output added = mr_assign_add(g, w.ref, mr_constant_float(g, 1.0f));
    mr_session *session = open_session(g);
    mr_tensor result = {0};
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(y), &result, nullptr, 0, &error),
                 MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "layer/w/read (Identity): Attempting to use uninitialized value layer/w");
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(added), &result, nullptr, 0, &error),
                 MR_FAILED_PRECONDITION);
    CHECK(strstr(error.message, "Attempting to use uninitialized value layer/w") != nullptr);
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(w.ref), &result, nullptr, 0, &error),
                 MR_FAILED_PRECONDITION);
    run_node(session, w.initializer);
    CHECK_NEAR(fetch_float(session, y), 1, 0);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variable_is_initialized_tells)
{
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_output known = mr_is_variable_initialized(g, w.ref);
    mr_session *session = open_session(g);
    mr_tensor before = fetch(session, known);
    CHECK(!mr_tensor_bools(&before)[0]);
    run_node(session, w.initializer);
    mr_tensor after = fetch(session, known);
    CHECK(mr_tensor_bools(&after)[0]);
    mr_tensor_deinit(&before);
    mr_tensor_deinit(&after);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A fetched result never changes, whatever happens to the variable. */
TEST(variable_updates_leave_fetched_results_alone)
{
    mr_graph *g = mr_graph_new();
    mr_output initial = mr_constant_floats(g, MR_SHAPE(3), (float[]){1, 2, 3}, nullptr);
    mr_variable w = mr_variable_new(g, "w", initial);
    mr_output step = mr_assign_add(g, w.ref, mr_constant_floats(g, MR_SHAPE(3), (float[]){10, 10, 10}, nullptr));
    mr_session *session = open_session(g);
    run_node(session, w.initializer);
    mr_tensor before = fetch(session, w.value), by_ref = fetch(session, w.ref);
    run_node(session, step.node);
    run_node(session, step.node);
    mr_tensor after = fetch(session, w.value), constant = fetch(session, initial);
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(mr_tensor_floats(&before)[i], i + 1, 0);
        CHECK_NEAR(mr_tensor_floats(&by_ref)[i], i + 1, 0);
        CHECK_NEAR(mr_tensor_floats(&constant)[i], i + 1, 0);
        CHECK_NEAR(mr_tensor_floats(&after)[i], i + 21, 0);
    }
    mr_tensor_deinit(&before);
    mr_tensor_deinit(&by_ref);
    mr_tensor_deinit(&after);
    mr_tensor_deinit(&constant);
    mr_session_free(session);
    mr_graph_free(g);
}

/* The caller may write to a fed tensor after the run. */
TEST(variable_keeps_its_own_copy_of_what_was_fed)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2));
    mr_variable w = mr_variable_new(g, "w", x);
    mr_session *session = open_session(g);
    mr_tensor fed = {0};
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(2), (float[]){1, 2}, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    mr_tensor_floats(&fed)[0] = 99;
    CHECK_NEAR(fetch_float(session, w.value), 1, 0);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

/* An update works in place, and what was read from outside is a copy. */
TEST(variable_updates_in_place)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 2}, nullptr));
    mr_output gradient = mr_mul(g, w.value, mr_constant_float(g, 0.5f)); /* reads w before it is updated */
    mr_output descend = mr_apply_gradient_descent(g, w.ref, mr_constant_float(g, 1.0f), gradient);
    mr_session *session = open_session(g);
    run_node(session, w.initializer);
    mr_tensor value = {0};
    const mr_variable_state *state =
        (const mr_variable_state *)mr_resource_find(&session->resources, &mr_variable_class, "", "w");
    const void *buffer = state->value.data;
    for (int i = 0; i < 3; i++) run_node(session, descend.node);
    CHECK(state->value.data == buffer);
    CHECK_OK(mr_session_read_variable(session, w.ref, &value, &error));
    CHECK(value.data != buffer);
    CHECK_NEAR(mr_tensor_floats(&value)[1], 0.25, 1e-7);
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A node that updates a variable runs after those that read it unless an edge requires otherwise. */
TEST(variable_readers_of_a_step_see_the_value_before_its_update)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_output step = mr_assign_add(g, w.ref, mr_constant_float(g, 1.0f));
    mr_output seen = mr_square(g, mr_square(g, mr_add(g, mr_identity(g, w.ref), w.value)));
    mr_session *session = open_session(g);
    run_node(session, w.initializer);
    mr_tensor result = {0};
    for (int i = 1; i < 4; i++) {
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(seen), &result, &step.node, 1, &error));
        CHECK_NEAR(mr_tensor_floats(&result)[0], pow(2 * i, 4), 0);
        mr_tensor_deinit(&result);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* A value that was read by reference before an update has the new elements after it, as in TensorFlow; a fetched result
 * has those of the time when it was computed. */
TEST(variable_read_by_reference_shares_the_buffer)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable x = mr_variable_new(g, "x", mr_constant_floats(g, MR_SHAPE(2), (float[]){0, 10}, nullptr));
    mr_output flat = mr_reshape(g, x.value, mr_constant_ints(g, MR_INTS(2, 1)));
    mr_output add = mr_assign_add(g, x.ref, mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 1}, nullptr));
    mr_graph_push_control_dependencies(g, &add.node, 1);
    mr_output after = mr_identity(g, x.value), seen = mr_neg(g, flat);
    mr_graph_pop_control_dependencies(g);
    mr_session *session = open_session(g);
    run_node(session, x.initializer);
    mr_tensor results[4][3] = {0};
    for (int i = 0; i < 4; i++)
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(after, flat, seen), results[i], nullptr, 0, &error));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) {
            CHECK_NEAR(mr_tensor_floats(&results[i][0])[j], i + 1 + 10 * j, 0);
            CHECK_NEAR(mr_tensor_floats(&results[i][1])[j], i + 10 * j, 0);
            CHECK_NEAR(mr_tensor_floats(&results[i][2])[j], -(i + 1 + 10 * j), 0);
        }
    for (int i = 0; i < 12; i++) mr_tensor_deinit(&results[i / 3][i % 3]);
    mr_session_free(session);
    mr_graph_free(g);
}

/* An assignment of as many elements keeps the buffer, so earlier reads see it; another size gets a new buffer. */
TEST(variable_assignment_keeps_the_buffer)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output new_value = mr_placeholder(g, MR_FLOAT);
    mr_output x = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_output read = mr_identity(g, x);
    mr_output set = mr_assign(g, x, new_value, .validate_shape = false);
    mr_node_add_control(set.node, read.node);
    mr_graph_push_control_dependencies(g, &set.node, 1);
    mr_output late = mr_identity(g, read);
    mr_graph_pop_control_dependencies(g);
    mr_session *session = open_session(g);
    float expected[4] = {1, 2, 3, 4};
    for (int64_t count = 2; count <= 4; count++)
        for (int round = 0; round < 2; round++) {
            mr_tensor fed = {0}, result = {0};
            CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(count), &error));
            for (int64_t i = 0; i < count; i++) mr_tensor_floats(&fed)[i] = expected[i] + (float)round;
            bool first = count == 2 && round == 0;
            mr_outputs fetches = first ? (mr_outputs){0} : MR_OUTPUTS(late);
            mr_node *target = set.node;
            if (first) CHECK_OK(mr_session_write_variable(session, x, &fed, &error));
            CHECK_OK(mr_session_run(session, MR_FEEDS({new_value, fed}), fetches, &result, &target, 1, &error));
            /* The first round of a size replaces the buffer, and the value that was read keeps the old one. */
            if (!first) CHECK_EQ(mr_tensor_count(&result), round == 0 ? count - 1 : count);
            if (round == 1)
                for (int64_t i = 0; i < count; i++) CHECK_NEAR(mr_tensor_floats(&result)[i], expected[i] + 1, 0);
            if (!first && round == 0) CHECK_NEAR(mr_tensor_floats(&result)[0], 2, 0);
            mr_tensor_floats(&fed)[0] = 99; /* the variable has a copy */
            mr_tensor_deinit(&fed);
            mr_tensor_deinit(&result);
        }
    CHECK_NEAR(fetch_float(session, read), 2, 0);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A variable with a handle is read as a snapshot. */
TEST(variable_read_by_handle_never_changes)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output handle = mr_var_handle_op(g, MR_FLOAT, .shape = MR_SCALAR, .name = "v");
    mr_node *set = mr_assign_variable_op(g, handle, mr_constant_float(g, 0));
    mr_output read = mr_read_variable_op(g, handle, MR_FLOAT);
    mr_node *add = mr_assign_add_variable_op(g, handle, mr_constant_float(g, 1));
    mr_node_add_control(add, read.node);
    mr_graph_push_control_dependencies(g, &add, 1);
    mr_output after = mr_identity(g, read);
    mr_graph_pop_control_dependencies(g);
    mr_session *session = open_session(g);
    run_node(session, set);
    for (int i = 0; i < 4; i++) CHECK_NEAR(fetch_float(session, after), i, 0);
    CHECK_OK(mr_graph_status(g, &error));
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variable_control_edges_order_updates_and_reads)
{
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_output step = mr_assign_add(g, w.ref, mr_constant_float(g, 1.0f));
    mr_graph_push_control_dependencies(g, &step.node, 1);
    mr_output after = mr_identity(g, w.ref);
    mr_output constant = mr_square(g, mr_constant_float(g, 3.0f)); /* keeps its control edge although it is constant */
    mr_graph_pop_control_dependencies(g);
    mr_session *session = open_session(g);
    run_node(session, w.initializer);
    CHECK_NEAR(fetch_float(session, after), 2, 0);
    CHECK_NEAR(fetch_float(session, constant), 9, 0);
    CHECK_NEAR(fetch_float(session, w.value), 3, 0);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variable_lives_on_while_the_graph_grows)
{
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 4.0f));
    mr_session *session = open_session(g);
    run_node(session, w.initializer);
    CHECK_NEAR(fetch_float(session, w.value), 4, 0);
    for (int i = 0; i < 100; i++) mr_constant_float(g, (float)i);
    mr_output y = mr_square(g, w.value);
    CHECK_NEAR(fetch_float(session, y), 16, 0);
    mr_node_add_control(y.node, mr_assign_add(g, w.ref, mr_constant_float(g, 1.0f)).node); /* changes a planned node */
    CHECK_NEAR(fetch_float(session, y), 25, 0);
    CHECK_NEAR(fetch_float(session, w.value), 5, 0);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variable_of_one_session_is_not_the_others)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_session *first = open_session(g), *second = open_session(g);
    mr_tensor result = {0};
    run_node(first, w.initializer);
    CHECK_STATUS(mr_session_run(second, MR_NO_FEEDS, MR_OUTPUTS(w.value), &result, nullptr, 0, &error),
                 MR_FAILED_PRECONDITION);
    mr_session_free(first);
    mr_session_free(second);
    mr_graph_free(g);
}

TEST(variable_with_a_shared_name_is_one)
{
    mr_graph *g = mr_graph_new();
    mr_output a = mr_variable_v2(g, MR_FLOAT, .shape = MR_SCALAR, .shared_name = "both", .name = "a");
    mr_output b = mr_variable_v2(g, MR_FLOAT, .shape = MR_SCALAR, .shared_name = "both", .name = "b");
    mr_output set = mr_assign(g, a, mr_constant_float(g, 7.0f));
    mr_session *session = open_session(g);
    run_node(session, set.node);
    CHECK_NEAR(fetch_float(session, b), 7, 0);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variable_assign_checks_the_shape)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .name = "x");
    mr_output w = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(2), .name = "w");
    mr_output strict = mr_assign(g, w, x, .name = "strict");
    mr_output loose = mr_assign(g, w, x, .validate_shape = false);
    mr_session *session = open_session(g);
    mr_tensor three = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&three, MR_FLOAT, MR_SHAPE(3), &error));
    CHECK_STATUS(mr_session_run(session, MR_FEEDS({x, three}), (mr_outputs){0}, nullptr, &strict.node, 1, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "strict (Assign): Assign requires shapes of both tensors to match. lhs shape= [2] rhs "
                             "shape= [3]");
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, three}), MR_OUTPUTS(loose), &result, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_count(&result), 3);
    mr_tensor_deinit(&result);
    /* From now on the shape is that of the value. */
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, three}), (mr_outputs){0}, nullptr, &strict.node, 1, &error));
    mr_tensor_deinit(&three);
    mr_tensor two = {0};
    CHECK_OK(mr_tensor_init(&two, MR_FLOAT, MR_SHAPE(2), &error));
    CHECK_STATUS(mr_session_run(session, MR_FEEDS({x, two}), (mr_outputs){0}, nullptr, &strict.node, 1, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "strict (Assign): Assign requires shapes of both tensors to match. lhs shape= [3] rhs "
                             "shape= [2]");
    mr_tensor_deinit(&two);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variable_by_handle)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output handle = mr_var_handle_op(g, MR_FLOAT, .shape = MR_SHAPE(2), .name = "v");
    mr_output ones = mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 1}, nullptr);
    mr_node *set = mr_assign_variable_op(g, handle, ones);
    mr_node *add = mr_assign_add_variable_op(g, handle, ones);
    mr_output read = mr_read_variable_op(g, handle, MR_FLOAT);
    mr_output known = mr_var_is_initialized_op(g, handle);
    mr_session *session = open_session(g);
    mr_tensor result = {0};
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(read), &result, nullptr, 0, &error),
                 MR_FAILED_PRECONDITION);
    CHECK(strstr(error.message, "Could not find variable v") != nullptr);
    /* TensorFlow has other codes for operators that change it. */
    mr_node *scatter = mr_resource_scatter_add(g, handle, mr_constant_ints(g, MR_INTS(0)), mr_constant_float(g, 1)),
            *step = mr_resource_apply_gradient_descent(g, handle, mr_constant_float(g, 1), ones),
            *destroy = mr_destroy_resource_op(g, handle, .ignore_lookup_error = false),
            *reset = mr_destroy_resource_op(g, handle);
    mr_node *changes[] = {add, scatter, destroy};
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &changes[i], 1, &error),
                     MR_NOT_FOUND);
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &step, 1, &error), MR_INTERNAL);
    CHECK(strstr(error.message, "Invalid variable reference. Could not find variable v") != nullptr);
    run_node(session, reset);
    result = fetch(session, known);
    CHECK(!mr_tensor_bools(&result)[0]);
    mr_tensor_deinit(&result);
    run_node(session, set);
    mr_tensor before = fetch(session, read);
    run_node(session, add);
    CHECK_NEAR(fetch_float(session, read), 2, 0);
    CHECK_NEAR(mr_tensor_floats(&before)[0], 1, 0);
    mr_tensor_deinit(&before);
    /* The handle may be fetched, and fed again. */
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(handle), &result, nullptr, 0, &error));
    CHECK_EQ(result.dtype, MR_RESOURCE);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A variable is deleted after the readers of the same run, although the operator takes nothing but the handle. */
TEST(variable_is_deleted_after_its_readers)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output handle = mr_var_handle_op(g, MR_FLOAT, .shape = MR_SCALAR, .name = "v");
    mr_node *set = mr_assign_variable_op(g, handle, mr_constant_float(g, 3.0f));
    mr_node *delete = mr_destroy_resource_op(g, handle);
    mr_output read = mr_read_variable_op(g, handle, MR_FLOAT);
    mr_session *session = open_session(g);
    run_node(session, set);
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(read), &result, &delete, 1, &error));
    CHECK_NEAR(mr_tensor_floats(&result)[0], 3, 0);
    mr_tensor_deinit(&result);
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(read), &result, nullptr, 0, &error),
                 MR_FAILED_PRECONDITION);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Integers are divided by 0 only where there are indices. */
TEST(variable_scatter_without_indices_divides_nothing)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_ints(g, MR_INTS(7, 8)));
    mr_output rows = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1));
    mr_output divide = mr_scatter_div(g, w.ref, rows, mr_constant_int32(g, 0));
    mr_session *session = open_session(g);
    run_node(session, w.initializer);
    for (int64_t count = 0; count < 2; count++) {
        mr_tensor indices = {0}, result = {0};
        CHECK_OK(mr_tensor_init_copy(&indices, MR_INT32, MR_SHAPE(count), (int32_t[]){1}, &error));
        const mr_status status =
            mr_session_run(session, MR_FEEDS({rows, indices}), MR_OUTPUTS(divide), &result, nullptr, 0, &error);
        CHECK_EQ(status, count == 0 ? MR_OK : MR_INVALID_ARGUMENT);
        if (count == 0) CHECK_EQ(mr_tensor_int32s(&result)[1], 8);
        if (count > 0) CHECK_CONTAINS(error.message, "Integer division by zero");
        mr_tensor_deinit(&indices);
        mr_tensor_deinit(&result);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variable_scatter_changes_rows)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w =
        mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(3, 2), (float[]){1, 2, 3, 4, 5, 6}, nullptr));
    mr_output rows = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1), .name = "rows");
    mr_output updates = mr_constant_floats(g, MR_SHAPE(2, 2), (float[]){10, 20, 30, 40}, nullptr);
    mr_output add = mr_scatter_add(g, w.ref, rows, updates, .name = "add");
    mr_session *session = open_session(g);
    run_node(session, w.initializer);
    mr_tensor indices = {0}, outside = {0}, result = {0};
    CHECK_OK(mr_tensor_init_copy(&indices, MR_INT32, MR_SHAPE(2), (int32_t[]){2, 2}, &error));
    CHECK_OK(mr_tensor_init_copy(&outside, MR_INT32, MR_SHAPE(2), (int32_t[]){0, 3}, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({rows, indices}), MR_OUTPUTS(add), &result, nullptr, 0, &error));
    const float expected[] = {1, 2, 3, 4, 45, 66};
    for (int i = 0; i < 6; i++) CHECK_NEAR(mr_tensor_floats(&result)[i], expected[i], 0);
    mr_tensor_deinit(&result);
    CHECK_STATUS(mr_session_run(session, MR_FEEDS({rows, outside}), MR_OUTPUTS(add), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "add (ScatterAdd): indices[1] = 3 is not in [0, 3)");
    CHECK_NEAR(fetch_float(session, w.value), 1, 0); /* nothing has changed */
    mr_tensor_deinit(&indices);
    mr_tensor_deinit(&outside);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Compares the optimizers with TensorFlow's formulas. */
TEST(variable_optimizers_follow_tensorflows_formulas)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output start = mr_constant_floats(g, MR_SHAPE(3), (float[]){1, -2, 3}, nullptr);
    mr_output zeros = mr_constant_floats(g, MR_SHAPE(3), (float[]){0, 0, 0}, nullptr);
    mr_output gradient = mr_constant_floats(g, MR_SHAPE(3), (float[]){0.5f, -0.25f, 2}, nullptr);
    mr_variable w = mr_variable_new(g, "w", start), m = mr_variable_new(g, "m", zeros),
                v = mr_variable_new(g, "v", zeros);
    mr_variable x = mr_variable_new(g, "x", start), a = mr_variable_new(g, "a", zeros);
    mr_output adam = mr_apply_adam(g, w.ref, m.ref, v.ref, mr_constant_float(g, 0.9f), mr_constant_float(g, 0.999f),
                                   mr_constant_float(g, 0.1f), mr_constant_float(g, 0.9f), mr_constant_float(g, 0.999f),
                                   mr_constant_float(g, 1e-8f), gradient);
    mr_output momentum = mr_apply_momentum(g, x.ref, a.ref, mr_constant_float(g, 0.1f), gradient,
                                           mr_constant_float(g, 0.9f), .use_nesterov = true);
    mr_session *session = open_session(g);
    run_node(session, mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr));
    mr_tensor results[2] = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(adam, momentum), results, nullptr, 0, &error));
    const double w0[] = {1, -2, 3}, g0[] = {0.5, -0.25, 2};
    for (int i = 0; i < 3; i++) {
        double m1 = 0.1 * g0[i], v1 = 0.001 * g0[i] * g0[i];
        double rate = 0.1 * sqrt(1 - 0.999) / (1 - 0.9);
        CHECK_NEAR(mr_tensor_floats(&results[0])[i], w0[i] - rate * m1 / (sqrt(v1) + 1e-8), 1e-5);
        CHECK_NEAR(mr_tensor_floats(&results[1])[i], w0[i] - (g0[i] * 0.1 + g0[i] * 0.9 * 0.1), 1e-6);
    }
    mr_tensor_deinit(&results[0]);
    mr_tensor_deinit(&results[1]);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variable_from_outside)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_output c = mr_constant_float(g, 2.0f);
    mr_session *session = open_session(g);
    mr_tensor value = {0}, whole = {0};
    CHECK_STATUS(mr_session_read_variable(session, w.ref, &value, &error), MR_FAILED_PRECONDITION);
    CHECK_OK(mr_tensor_init_float(&value, 5.0f, &error));
    CHECK_OK(mr_session_write_variable(session, w.ref, &value, &error));
    mr_tensor_deinit(&value);
    CHECK_NEAR(fetch_float(session, w.value), 5, 0);
    CHECK_OK(mr_session_read_variable(session, w.value, &value, &error));
    CHECK_NEAR(mr_tensor_floats(&value)[0], 5, 0);
    mr_tensor_deinit(&value);
    CHECK_OK(mr_tensor_init_int32(&whole, 5, &error));
    CHECK_STATUS(mr_session_write_variable(session, w.ref, &whole, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&whole);
    CHECK_STATUS(mr_session_read_variable(session, c, &value, &error), MR_INVALID_ARGUMENT);
    mr_session_free(session);
    mr_graph_free(g);
}
