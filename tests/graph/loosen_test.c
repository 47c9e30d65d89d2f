/* Control edges that the plan removes, and those that it keeps. */
#include "base/random.h"
#include "tests/graph/ran.h"

#include <millrace/ops.h>

static mr_session *session_of(const mr_graph *graph, bool is_plain)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new((mr_graph *)graph,
                            MR_OPTIONS(mr_session_options, .threads = 2, .no_optimization = is_plain), &session,
                            &error));
    mr_session_trace(session, true);
    return session;
}

static float run(mr_session *session, mr_output x, mr_output y)
{
    mr_error error = {0};
    mr_tensor fed = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(100), &error));
    for (int i = 0; i < 100; i++) mr_tensor_floats(&fed)[i] = (float)i / 10;
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(y), &result, nullptr, 0, &error));
    const float last = mr_tensor_floats(&result)[mr_tensor_count(&result) - 1];
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&fed);
    return last;
}

/* The gradients of tf.gradients wait for each other, by tf.tuple. */
TEST(loosen_lets_go_of_tuples)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(100));
    mr_output a = mr_mul(g, x, x), b = mr_neg(g, x);
    mr_node *both = mr_group(g, (mr_node *[]){a.node, b.node}, 2, nullptr);
    mr_output passed[2] = {mr_identity(g, a), mr_identity(g, b)};
    for (int i = 0; i < 2; i++) mr_node_add_control(passed[i].node, both);
    mr_output y = mr_add(g, passed[0], passed[1]);
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = session_of(g, plain == 1);
        CHECK_NEAR(run(session, x, y), 9.9f * 9.9f - 9.9f, 1e-4);
        CHECK_EQ(ran(session, "Identity"), plain ? 2 : 0);
        CHECK_EQ(ran(session, nullptr), plain ? 5 : 1);
        mr_session_free(session);
    }
    mr_graph_free(g);
}

/* What only waits for an update still runs it, once, although the wait itself is left to a later node. */
TEST(loosen_keeps_updates)
{
    for (int way = 0; way < 4; way++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(100));
        mr_variable v = mr_variable_new(g, "v", mr_constant_float(g, 1), .use_resource = way % 2 == 1);
        mr_output one = mr_constant_float(g, 1);
        mr_node *update = way % 2 == 1 ? mr_assign_add_variable_op(g, v.ref, one) : mr_assign_add(g, v.ref, one).node;
        mr_output a = mr_identity(g, x);
        mr_node_add_control(a.node, update);
        mr_output y = mr_mul(g, mr_neg(g, a), x);
        if (way >= 2) { /* a reader, which must come after the update */
            mr_output read = mr_identity(g, v.ref);
            if (way == 3) read = mr_read_variable_op(g, v.ref, MR_FLOAT);
            mr_node_add_control(read.node, y.node);
            y = mr_mul(g, read, mr_neg(g, y));
        }
        for (int plain = 0; plain < 2; plain++) {
            mr_session *session = session_of(g, plain == 1);
            CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &v.initializer, 1, &error));
            for (int step = 0; step < 3; step++)
                CHECK_NEAR(run(session, x, y), (way >= 2 ? step + 2 : -1) * 9.9f * 9.9f, 1e-3);
            mr_tensor value = {0};
            CHECK_OK(mr_session_read_variable(session, v.ref, &value, &error));
            CHECK_NEAR(mr_tensor_floats(&value)[0], 4, 0);
            mr_tensor_deinit(&value);
            mr_session_free(session);
        }
        mr_graph_free(g);
    }
}

/* A node that can fail does not run before what checks its inputs. */
TEST(loosen_keeps_checks_first)
{
    mr_graph *g = mr_graph_new();
    mr_error error = {0};
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(100)), index = mr_placeholder(g, MR_INT32);
    mr_output taken = mr_gather(g, x, index);
    mr_output checked = mr_check_numerics(g, x, .message = "checked first");
    mr_node_add_control(taken.node, checked.node);
    mr_output y = mr_neg(g, taken);
    mr_tensor fed = {0}, at = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(100), &error));
    for (int i = 0; i < 100; i++) mr_tensor_floats(&fed)[i] = i == 50 ? 0.0f / 0.0f : 1;
    CHECK_OK(mr_tensor_init(&at, MR_INT32, MR_SHAPE(1), &error));
    mr_tensor_int32s(&at)[0] = 1000;
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = session_of(g, plain == 1);
        CHECK(mr_session_run(session, MR_FEEDS({x, fed}, {index, at}), MR_OUTPUTS(y), &result, nullptr, 0, &error) !=
              MR_OK);
        CHECK(strstr(error.message, "checked first"));
        mr_session_free(session);
    }
    mr_tensor_deinit(&fed);
    mr_tensor_deinit(&at);
    mr_graph_free(g);
}

/* A target that waits for very many nodes, and nodes that wait for more than can be left to their readers. */
TEST(loosen_many_edges)
{
    constexpr int COUNT = 400;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(100));
    mr_output one = mr_constant_float(g, 1);
    mr_node *updates[COUNT], *initializers[COUNT];
    mr_variable v[COUNT];
    mr_output y = x;
    for (int i = 0; i < COUNT; i++) {
        v[i] = mr_variable_new(g, nullptr, mr_constant_float(g, 0));
        initializers[i] = v[i].initializer;
        updates[i] = mr_assign_add(g, v[i].ref, one).node;
        if (i % 7 == 0) y = mr_neg(g, y);
        if (i % 3 > 0) mr_node_add_control(y.node, updates[i]);
    }
    mr_node *all = mr_group(g, updates, COUNT, "all"), *initializer = mr_group(g, initializers, COUNT, "initializer");
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = session_of(g, plain == 1);
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &initializer, 1, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &all, 1, &error));
        CHECK_NEAR(run(session, x, y), (COUNT + 6) / 7 % 2 ? -9.9f : 9.9f, 1e-5);
        for (int i = 0; i < COUNT; i++) {
            mr_tensor value = {0};
            CHECK_OK(mr_session_read_variable(session, v[i].ref, &value, &error));
            CHECK_NEAR(mr_tensor_floats(&value)[0], i % 3 > 0 ? 2 : 1, 0);
            mr_tensor_deinit(&value);
        }
        mr_session_free(session);
    }
    mr_graph_free(g);
}
