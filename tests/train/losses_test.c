/* Losses: mistakes get one clear sentence; weights of unknown shape are checked when the graph runs. */
#include "tests/test.h"

#include <millrace/millrace.h>

static void check_refused(mr_graph *g, const char *part)
{
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, part);
    const char *colon = strchr(error.message, ':'); /* the scope is named once */
    CHECK(colon == nullptr || strncmp(colon + 2, error.message, (size_t)(colon - error.message + 1)) != 0);
    mr_graph_free(g);
}

static mr_output rows(mr_graph *g)
{
    return mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(4, 3));
}

TEST(losses_say_what_does_not_fit)
{
    mr_graph *g = mr_graph_new();
    mr_loss_huber(g, rows(g), mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(4, 2)));
    check_refused(g, "huber_loss: labels have shape [4,3], but predictions [4,2]");

    g = mr_graph_new();
    mr_loss_mean_squared_error(g, rows(g), rows(g), .delta = 1);
    check_refused(g, "mean_squared_error: delta has no effect for this loss");

    g = mr_graph_new();
    mr_loss_cosine_distance(g, rows(g), rows(g));
    check_refused(g, "cosine_distance_loss: the option axis is required");

    g = mr_graph_new();
    mr_loss_sigmoid_cross_entropy(g, rows(g), rows(g), .label_smoothing = 1);
    check_refused(g, "label_smoothing");

    g = mr_graph_new();
    mr_loss_absolute_difference(g, rows(g), rows(g), .weights = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(4)));
    check_refused(g, "absolute_difference: weights of shape [4] do not fit values of shape [4,3]");

    g = mr_graph_new();
    mr_loss_absolute_difference(g, rows(g), rows(g), .reduction = (mr_reduction)9);
    check_refused(g, "reduction 9");
}

TEST(losses_check_weights_of_unknown_shape_in_the_run)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output values = mr_constant_floats(g, MR_SHAPE(2, 2), (float[]){1, 2, 3, 4}, nullptr);
    mr_output weights = mr_placeholder(g, MR_FLOAT, .name = "weights");
    mr_output loss = mr_loss_weighted(g, values, .weights = weights, .reduction = MR_REDUCTION_SUM, .collection = "");
    CHECK_EQ(mr_graph_collection_count(g, MR_LOSSES), 0);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    const mr_shape shapes[] = {MR_SCALAR, MR_SHAPE(2, 1), MR_SHAPE(1, 1), MR_SHAPE(2), MR_SHAPE(1, 2, 2)};
    for (int i = 0; i < 5; i++) {
        mr_tensor fed = {0}, result = {0};
        CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, shapes[i], &error));
        for (int64_t j = 0; j < mr_shape_count(shapes[i]); j++) mr_tensor_floats(&fed)[j] = 1;
        mr_status status =
            mr_session_run(session, MR_FEEDS({weights, fed}), MR_OUTPUTS(loss), &result, nullptr, 0, &error);
        CHECK_EQ(status, i < 3 ? MR_OK : MR_INVALID_ARGUMENT);
        if (status == MR_OK) CHECK_NEAR(mr_tensor_floats(&result)[0], 10, 0);
        if (status != MR_OK) CHECK_CONTAINS(error.message, "weights can not be broadcast to values");
        mr_tensor_deinit(&fed);
        mr_tensor_deinit(&result);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* ---- Sums ---- */

static double value_of(mr_graph *g, mr_output output)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor result = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(output), &result, nullptr, 0, &error));
    const double value = (double)mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    mr_session_free(session);
    return value;
}

TEST(losses_are_summed_by_scope)
{
    mr_graph *g = mr_graph_new();
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "tower_%d", i);
        mr_graph_push_scope(g, name);
        mr_graph_add_to_collection(g, i % 2 == 0 ? MR_LOSSES : MR_REGULARIZATION_LOSSES,
                                   mr_constant_float(g, (float)(1 << i)));
        mr_graph_pop_scope(g);
    }
    CHECK_NEAR(value_of(g, mr_loss_total(g)), 4095, 0);
    CHECK_NEAR(value_of(g, mr_loss_total(g, .no_regularization = true)), 1365, 0);
    CHECK_NEAR(value_of(g, mr_loss_regularization(g)), 2730, 0);
    CHECK_NEAR(value_of(g, mr_loss_total(g, .scope = "tower_1/")), 2, 0);
    CHECK_NEAR(value_of(g, mr_loss_total(g, .scope = "tower_1")), 2 + 1024 + 2048, 0); /* and tower_10, tower_11 */
    CHECK_NEAR(value_of(g, mr_loss_total(g, .scope = "")), 4095, 0);
    CHECK_NEAR(value_of(g, mr_loss_regularization(g, .scope = "tower_[35]/")), 8 + 32, 0);
    CHECK_NEAR(value_of(g, mr_loss_regularization(g, .scope = "owe")), 0, 0); /* only at the beginning */
    CHECK_STR(mr_node_name(mr_loss_total(g, .name = "own").node), "own");
    CHECK_STR(mr_node_name(mr_loss_regularization(g, .scope = "tower_3", .name = "other").node), "other");
    mr_loss_total(g, .scope = "none");
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(g, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "the graph has no losses in the scope none");
    mr_graph_free(g);
    g = mr_graph_new();
    mr_graph_add_to_collection(g, MR_LOSSES, mr_constant_float(g, 1));
    mr_loss_total(g, .scope = "(");
    check_refused(g, "is not a regular expression");
    g = mr_graph_new();
    mr_loss_regularization(g, .no_regularization = true);
    check_refused(g, "no_regularization has no effect");
}
