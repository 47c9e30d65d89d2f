/* Gradients of tables that are only gathered from: rows, which optimizers apply without the dense sum. The comparison
 * with TensorFlow is tests/oracle/optimizers_oracle.py. */
#include "tests/test.h"
#include <millrace/millrace.h>

#include <string.h>

static mr_output gather(mr_graph *g, mr_variable table, int32_t first, int32_t second)
{
    mr_output ids = mr_constant_int32s(g, MR_SHAPE(2), (int32_t[]){first, second}, nullptr);
    return mr_gather_v2(g, table.value, ids, mr_constant_int32(g, 0));
}

static mr_output sum_of_squares(mr_graph *g, mr_output x)
{
    return mr_sum(g, mr_square(g, x), mr_constant_ints(g, MR_INTS(0, 1)));
}

TEST(sparse_gradients_are_rows)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable table = mr_get_variable(g, "table", MR_SHAPE(5, 3)),
                dense = mr_get_variable(g, "dense", MR_SHAPE(5, 3));
    mr_output loss = mr_add(g, sum_of_squares(g, gather(g, table, 1, 3)), sum_of_squares(g, gather(g, table, 3, 3)));
    loss = mr_add(g, loss, sum_of_squares(g, gather(g, dense, 0, 1)));
    loss = mr_add(g, loss, sum_of_squares(g, dense.value));
    mr_output gradients[2], values = {0}, indices = {0};
    mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(table.ref, dense.ref), nullptr, gradients);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK(!mr_gradient_rows(g, gradients[1], &values, &indices)); /* read in both ways */
    CHECK(mr_gradient_rows(g, gradients[0], &values, &indices));
    CHECK(!mr_gradient_rows(g, values, &values, &indices));
    CHECK(mr_output_shape(indices).dims[0] == 4 && mr_output_shape(values).dims[0] == 4);

    /* The dense sum has the rows added up. */
    mr_session *session = nullptr;
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    mr_tensor results[4] = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(gradients[0], values, indices, table.value), results,
                            nullptr, 0, &error));
    const float *sum = mr_tensor_floats(&results[0]), *w = mr_tensor_floats(&results[3]);
    for (int row = 0; row < 5; row++)
        for (int i = 0; i < 3; i++) {
            const float times = row == 1 ? 2 : row == 3 ? 6 : 0;
            CHECK_NEAR(sum[row * 3 + i], times * w[row * 3 + i], 1e-5);
        }
    for (int i = 0; i < 4; i++) mr_tensor_deinit(&results[i]);
    mr_session_free(session);
    mr_graph_free(g);
}

/* One step computes no dense gradient, also after clipping by the global norm. */
TEST(sparse_gradients_are_applied_as_rows)
{
    for (int clips = 0; clips < 2; clips++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_session *session = nullptr;
        mr_variable table = mr_get_variable(g, "table", MR_SHAPE(1000, 4));
        mr_output loss =
            mr_add(g, sum_of_squares(g, gather(g, table, 7, 7)), sum_of_squares(g, gather(g, table, 9, 7)));
        mr_gradients_and_variables list = mr_compute_gradients(g, loss);
        if (clips) mr_clip_by_global_norm(g, list, 0.1f);
        mr_node *train = mr_apply_gradients(g, mr_gradient_descent(.learning_rate = 0.1f), list, (mr_output){0});
        mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        mr_session_trace(session, true);
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error));
        mr_node_time times[256];
        const int32_t count = mr_session_trace_times(session, times, 256);
        bool scatters = false;
        for (int32_t i = 0; i < count; i++) {
            CHECK(strcmp(times[i].op, "UnsortedSegmentSum") != 0);
            scatters |= strcmp(times[i].op, "ScatterSub") == 0;
        }
        CHECK(scatters);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

/* Gathering from a handle has the gradient of gathering from the value. */
TEST(sparse_gradients_of_handles_are_those_of_values)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable tables[2];
    for (int i = 0; i < 2; i++)
        tables[i] = mr_get_variable(g, i == 0 ? "a" : "b", MR_SHAPE(4, 3), .initializer = {.kind = MR_INIT_ONES},
                                    .use_resource = true);
    mr_output ids = mr_constant_int32s(g, MR_SHAPE(2, 2), (int32_t[]){3, 0, 3, 1}, nullptr);
    mr_output first = mr_resource_gather(g, tables[0].ref, ids, MR_FLOAT);
    mr_output again = mr_resource_gather_nd(g, tables[0].ref, ids, MR_FLOAT);
    mr_output value = mr_gather(g, tables[1].value, ids), nd = mr_gather_nd(g, tables[1].value, ids);
    mr_output weights =
        mr_constant_floats(g, MR_SHAPE(2, 2, 3), (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, nullptr);
    mr_output pair = mr_constant_floats(g, MR_SHAPE(2), (float[]){20, 30}, nullptr);
    mr_output ys[] = {mr_mul(g, first, weights), mr_mul(g, again, pair), mr_mul(g, value, weights),
                      mr_mul(g, nd, pair)};
    mr_output gradients[2], values, indices;
    mr_gradients(g, MR_OUTPUTS_OF(ys, 4), MR_OUTPUTS(tables[0].ref, tables[1].ref), nullptr, gradients);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK(!mr_gradient_rows(g, gradients[0], &values, &indices)); /* GatherNd's is dense */
    mr_session *session = nullptr;
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    mr_tensor results[2] = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS_OF(gradients, 2), results, nullptr, 0, &error));
    static const float expected[12] = {4, 5, 6, 10, 11, 12, 0, 0, 0, 1 + 7 + 20, 2 + 8 + 30, 3 + 9};
    for (int i = 0; i < 2; i++) {
        CHECK(mr_tensor_count(&results[i]) == 12);
        for (int j = 0; j < 12; j++) CHECK_NEAR(mr_tensor_floats(&results[i])[j], expected[j], 0);
        mr_tensor_deinit(&results[i]);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(sparse_gradients_of_embeddings_are_rows)
{
    for (int i = 0; i < 12; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_variable table = mr_get_variable(g, "table", MR_SHAPE(9, 2), .use_resource = i % 2 != 0);
        mr_output indices =
            mr_cast(g, mr_constant_int32s(g, MR_SHAPE(2, 2), (int32_t[]){0, 0, 1, 0}, nullptr), MR_INT64);
        mr_output ids = mr_constant_ints(g, MR_INTS(3, 5)), weights = {0}, values, rows;
        if (i / 2 % 2 != 0) weights = mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 2}, nullptr);
        mr_gradients_and_variables list = mr_compute_gradients(
            g, mr_l2_loss(g, mr_embedding_lookup_sparse(g, mr_variable_parts(g, table), indices, ids, weights,
                                                        .combiner = (mr_combiner)(i / 4))));
        CHECK_OK(mr_graph_status(g, &error));
        CHECK(list.count == 1 && mr_gradient_rows(g, list.items[0].gradient, &values, &rows));
        mr_graph_free(g);
    }
}
