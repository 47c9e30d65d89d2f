/* Constraints of variables: projected after each update of an optimizer. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <millrace/ops.h>

static int calls;

/* At most 1 in each element. */
static mr_output at_most_1(mr_graph *g, mr_output value)
{
    calls++;
    return mr_minimum(g, value, mr_constant_float(g, 1));
}

static mr_output at_least_2(mr_graph *g, mr_output value)
{
    calls++;
    return mr_maximum(g, value, mr_constant_float(g, 2));
}

static mr_output wrong_shape(mr_graph *g, mr_output value)
{
    (void)value;
    return mr_constant_float(g, 1);
}

static mr_output open_scope(mr_graph *g, mr_output value)
{
    mr_graph_push_scope(g, "left");
    return value;
}

static mr_output nothing(mr_graph *g, mr_output value)
{
    (void)g;
    (void)value;
    return (mr_output){0};
}

/* Runs steps that add 1 to each element; the values of the variable after them. */
static void run_steps(mr_graph *g, mr_variable v, const mr_optimizer *optimizer, int steps, float *values)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor result = {0};
    mr_output sum = mr_sum(g, mr_neg(g, v.value), mr_constant_ints(g, MR_INTS(0)));
    mr_node *train = mr_minimize(g, optimizer, sum, (mr_output){0});
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    for (int i = 0; i < steps; i++)
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(v.value), &result, nullptr, 0, &error));
    memcpy(values, mr_tensor_floats(&result), (size_t)mr_tensor_count(&result) * sizeof *values);
    mr_tensor_deinit(&result);
    mr_session_free(session);
}

TEST(constraint_projects_after_each_update)
{
    for (int kind = 0; kind < 8; kind++) {
        const bool is_resource = kind % 2 == 1, is_partitioned = kind / 2 % 2 == 1, is_adam = kind / 4 == 1;
        mr_graph *g = mr_graph_new();
        float values[3] = {0};
        calls = 0;
        mr_variable v = mr_get_variable(
            g, "v", MR_SHAPE(3), .initializer = {.kind = MR_INIT_CONSTANT, .scale = -0.5f}, .use_resource = is_resource,
            .partitioner = {.kind = is_partitioned ? MR_PARTITION_FIXED_SIZE : MR_PARTITION_DEFAULT,
                            .parts_max = is_partitioned ? 2 : 0},
            .constraint = at_most_1);
        CHECK_EQ(calls, 0); /* nothing is projected without an optimizer */
        run_steps(g, v, is_adam ? mr_adam(.learning_rate = 1) : mr_gradient_descent(.learning_rate = 1), 3, values);
        CHECK_EQ(calls, is_partitioned ? 2 : 1);
        for (int i = 0; i < 3; i++) CHECK_NEAR(values[i], 1, 0);
        mr_graph_free(g);
    }
}

TEST(constraint_is_a_default_of_scopes)
{
    mr_error error = {0};
    float values[3] = {0};
    mr_graph *g = mr_graph_new();
    (void)mr_graph_push_variable_scope(g, "outer", .constraint = at_most_1);
    (void)mr_graph_push_variable_scope(g, "inner");
    mr_variable v = mr_get_variable(g, "v", MR_SHAPE(3), (mr_initializer){.kind = MR_INIT_ZEROS});
    mr_variable own =
        mr_get_variable(g, "own", MR_SHAPE(3), .initializer = {.kind = MR_INIT_ZEROS}, .constraint = at_least_2);
    mr_graph_pop_variable_scope(g);
    mr_graph_pop_variable_scope(g);
    calls = 0;
    run_steps(g, (mr_variable){.value = mr_concat_v2(g, MR_OUTPUTS(v.value, own.value), mr_constant_int32(g, 0))},
              mr_gradient_descent(.learning_rate = 4), 1, (float[6]){0});
    CHECK_EQ(calls, 2);
    CHECK_OK(mr_graph_status(g, &error));
    mr_graph_free(g);
    g = mr_graph_new();
    v = mr_variable_new(g, "v", mr_constant_floats(g, MR_SHAPE(3), (float[]){0, 0, 0}, nullptr),
                        .constraint = at_least_2);
    run_steps(g, v, mr_momentum(.learning_rate = 0.25f, .momentum = 0.9f), 1, values);
    CHECK_NEAR(values[2], 2, 0);
    mr_graph_free(g);
}

TEST(constraint_of_layers)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 4, 4, 2));
    mr_output y = mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 2, .kernel_constraint = at_most_1,
                                  .bias_constraint = at_most_1);
    y = mr_layer_separable_conv2d(g, y, .filters = 2, .kernel_size = 2, .depthwise_constraint = at_most_1,
                                  .pointwise_constraint = at_most_1, .bias_constraint = at_most_1);
    y = mr_layer_batch_normalization(g, y, .training = true, .beta_constraint = at_most_1,
                                     .gamma_constraint = at_most_1);
    y = mr_layer_prelu(g, y, .alpha_constraint = at_most_1);
    y = mr_layer_dense(g, mr_layer_flatten(g, y), .units = 1, .kernel_constraint = at_most_1,
                       .bias_constraint = at_most_1);
    calls = 0;
    (void)mr_minimize(g, mr_adam(), mr_mean(g, y, mr_constant_ints(g, MR_INTS(0, 1))), (mr_output){0});
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(calls, 10);
    CHECK(mr_graph_find(g, "Adam/update_dense/kernel/Minimum") != nullptr);
    mr_graph_free(g);
}

static void check_refused(mr_constraint constraint, bool is_sparse, mr_status expected, const char *part)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable v =
        mr_get_variable(g, "v", MR_SHAPE(3), .initializer = {.kind = MR_INIT_ZEROS}, .constraint = constraint);
    mr_output rows =
        is_sparse ? mr_gather_v2(g, v.value, mr_constant_ints(g, MR_INTS(1)), mr_constant_int32(g, 0)) : v.value;
    (void)mr_minimize(g, mr_gradient_descent(.learning_rate = 1), mr_sum(g, rows, mr_constant_ints(g, MR_INTS(0))),
                      (mr_output){0});
    CHECK_STATUS(mr_graph_status(g, &error), expected);
    CHECK_CONTAINS(error.message, part);
    mr_graph_free(g);
}

TEST(constraint_mistakes_are_refused)
{
    check_refused(at_most_1, true, MR_INVALID_ARGUMENT, "v has a constraint, but its gradient is sparse");
    check_refused(wrong_shape, false, MR_INVALID_ARGUMENT, "v");
    check_refused(open_scope, false, MR_FAILED_PRECONDITION, "v: constraint");
    check_refused(nothing, false, MR_INVALID_ARGUMENT, "v");
}

/* ---- Names of optimizers ---- */

TEST(optimizer_name_is_that_of_its_slots)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable v = mr_get_variable(g, "v", MR_SHAPE(3), (mr_initializer){.kind = MR_INIT_ONES});
    mr_output loss = mr_sum(g, v.value, mr_constant_ints(g, MR_INTS(0)));
    char name[] = "Mine";
    const mr_optimizer *mine = mr_loss_scale_optimizer(g, mr_adam(.name = name), .fixed_loss_scale = 2);
    memcpy(name, "Gone", 4); /* it was copied */
    mr_node *train = mr_minimize(g, mine, loss, (mr_output){0});
    (void)mr_minimize(g, mr_adam(), loss, (mr_output){0});
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_STR(mr_node_name(train), "Mine");
    CHECK(mr_graph_find(g, "v/Mine") != nullptr && mr_graph_find(g, "v/Mine_1") != nullptr);
    CHECK(mr_graph_find(g, "v/Adam") != nullptr && mr_graph_find(g, "v/Adam_1") != nullptr);
    CHECK_STR(mr_node_name(mr_optimizer_slot(g, mine, v, "v").ref.node), "v/Mine_1");
    CHECK_STR(mr_node_name(mr_optimizer_slot(g, mr_adam(), v, "m").ref.node), "v/Adam");
    CHECK(mr_optimizer_slot(g, mr_adam(.name = "Other"), v, "m").ref.node == nullptr);
    (void)mr_minimize(g, mr_adam(.name = "not valid!"), loss, (mr_output){0});
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "\"not valid!\" is not a valid name");
    mr_graph_free(g);
}
