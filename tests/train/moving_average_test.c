/* Averages of a training are restored into the variables of an evaluation. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <string.h>

typedef struct model {
    mr_graph *graph;
    mr_variable w, frozen;
} model;

static model build(bool use_resource)
{
    model m = {.graph = mr_graph_new()};
    m.w =
        mr_get_variable(m.graph, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES}, .use_resource = use_resource);
    m.frozen = mr_get_variable(m.graph, "frozen", MR_SCALAR, .initializer = {.kind = MR_INIT_CONSTANT, .scale = 3},
                               .trainable = false);
    return m;
}

static int32_t find(mr_variables_to_restore list, const char *key)
{
    int32_t at = list.count - 1;
    while (at >= 0 && strcmp(list.keys[at], key) != 0) at--;
    return at;
}

static void check_value(mr_session *session, mr_variable variable, float expected)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(session, variable.ref, &value, &error));
    CHECK_NEAR((double)mr_tensor_floats(&value)[0], (double)expected, 1e-6);
    mr_tensor_deinit(&value);
}

/* w is 1, then 5; its average with decay 0.75 is then 2. */
static void train(bool use_resource, const char *path)
{
    mr_error error = {0};
    model m = build(use_resource);
    mr_graph *g = m.graph;
    mr_session *session = nullptr;
    mr_node *assigned = mr_variable_assign(g, m.w, mr_constant_floats(g, MR_SHAPE(2), (float[]){5, 5}, nullptr)).node;
    mr_graph_push_control_dependencies(g, &assigned, 1);
    mr_node *update = mr_moving_average(g, &m.w, 1, nullptr, .decay = 0.75f);
    mr_graph_pop_control_dependencies(g);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_saver *saver = mr_saver_new(g);
    /* The average itself is not in the list: its key is that of w. */
    const mr_variables_to_restore list = mr_moving_average_variables_to_restore(g, nullptr);
    CHECK_EQ(list.count, 2);
    CHECK(list.variables[find(list, "w/ExponentialMovingAverage")].node == m.w.ref.node);
    CHECK(list.variables[find(list, "frozen")].node == m.frozen.ref.node);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &update, 1, &error));
    CHECK_OK(mr_saver_save(saver, session, path, -1, &error));
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(moving_averages_are_restored_into_variables)
{
    for (int use_resource = 0; use_resource < 2; use_resource++) {
        mr_error error = {0};
        mr_session *session = nullptr;
        const char *path = test_path("average");
        train(use_resource == 1, path);
        model m = build(use_resource == 1);
        const mr_variables_to_restore list = mr_moving_average_variables_to_restore(m.graph, nullptr);
        CHECK_EQ(list.count, 2);
        mr_saver *saver =
            mr_saver_new(m.graph, .variables = list.variables, .keys = list.keys, .variable_count = list.count);
        CHECK_OK(mr_graph_status(m.graph, &error));
        CHECK_OK(mr_session_new(m.graph, nullptr, &session, &error));
        CHECK_OK(mr_saver_restore(saver, session, path, &error));
        check_value(session, m.w, 2);
        check_value(session, m.frozen, 3);
        mr_session_free(session);
        mr_saver_free(saver);
        mr_graph_free(m.graph);
    }
}

TEST(variables_to_restore_have_other_names_and_may_be_none)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    CHECK_EQ(mr_moving_average_variables_to_restore(g, nullptr).count, 0);
    CHECK_EQ(mr_moving_average_variables_to_restore(nullptr, nullptr).count, 0);
    mr_graph_free(g);
    model m = build(false);
    CHECK(find(mr_moving_average_variables_to_restore(m.graph, "mine"), "w/mine") >= 0);
    CHECK_EQ(mr_moving_average_variables_to_restore(m.graph, "").count, 0);
    CHECK_STATUS(mr_graph_status(m.graph, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the name of the averages is empty");
    mr_graph_free(m.graph);
}

/* ---- Of values that are not variables ---- */

static double average_after(bool zero_debias, mr_dtype dtype, int runs)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2), .name = "x");
    mr_output y = mr_cast(g, x, dtype, .name = "y");
    mr_variable average;
    mr_node *update =
        mr_moving_average_of(g, MR_OUTPUTS(y), &average, .decay = 0.75f, .name = "Mean", .zero_debias = zero_debias);
    mr_output read = mr_cast(g, average.value, MR_DOUBLE);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_session *session = nullptr;
    mr_tensor value = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_STR(mr_node_name(average.ref.node), "y/Mean");
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), zero_debias ? 3 : 1);
    CHECK_EQ(mr_graph_variable_count(g, MR_TRAINABLE_VARIABLES), 0);
    CHECK_EQ(mr_graph_variable_count(g, MR_MOVING_AVERAGE_VARIABLES), 0);
    CHECK_EQ(mr_graph_find(g, "y/Mean/biased") != nullptr, zero_debias);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    for (int i = 0; i < runs; i++) {
        mr_tensor fed = {0};
        CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(2), &error));
        mr_tensor_floats(&fed)[0] = mr_tensor_floats(&fed)[1] = (float)(4 * (i + 1));
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), (mr_outputs){0}, nullptr, &update, 1, &error));
        mr_tensor_deinit(&fed);
    }
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(read), &value, nullptr, 0, &error));
    const double result = ((const double *)mr_tensor_data(&value))[1];
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
    return result;
}

TEST(values_that_are_no_variables_have_averages)
{
    static const mr_dtype dtypes[] = {MR_HALF, MR_BFLOAT16, MR_FLOAT, MR_DOUBLE};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const double tolerance = i < 2 ? 0.05 : 1e-6;
        CHECK_NEAR(average_after(false, dtypes[i], 1), 1, tolerance);            /* 0.25 * 4 */
        CHECK_NEAR(average_after(false, dtypes[i], 2), 2.75, tolerance);         /* 0.75 * 1 + 0.25 * 8 */
        CHECK_NEAR(average_after(true, dtypes[i], 1), 4, tolerance);             /* 1 / 0.25 */
        CHECK_NEAR(average_after(true, dtypes[i], 2), 2.75 / 0.4375, tolerance); /* 1 - 0.75 ^ 2 */
    }
}

static void check_no_average(mr_graph *g, const char *part)
{
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, part);
    mr_graph_free(g);
}

TEST(wrong_averages_are_refused)
{
    mr_graph *other = mr_graph_new();
    const mr_output foreign = mr_constant_float(other, 1);
#define REFUSE(part, expression)                                                                                       \
    {                                                                                                                  \
        mr_graph *g = mr_graph_new();                                                                                  \
        const mr_output one = mr_constant_float(g, 1);                                                                 \
        (void)one;                                                                                                     \
        (void)(expression);                                                                                            \
        check_no_average(g, part);                                                                                     \
    }
    REFUSE("needs variables or outputs", mr_moving_average_of(g, (mr_outputs){0}, nullptr, .decay = 0.5f))
    REFUSE("needs variables or outputs", mr_moving_average_of(g, MR_OUTPUTS_OF(&one, -1), nullptr, .decay = 0.5f))
    REFUSE("decay of a moving average is required", mr_moving_average_of(g, MR_OUTPUTS(one), nullptr))
    REFUSE("decay is 1", mr_moving_average_of(g, MR_OUTPUTS(one), nullptr, .decay = 1))
    REFUSE("output 1 is not one of the graph",
           mr_moving_average_of(g, MR_OUTPUTS(one, (mr_output){0}), nullptr, .decay = 0.5f))
    REFUSE("output 0 is not one of the graph", mr_moving_average_of(g, MR_OUTPUTS(foreign), nullptr, .decay = 0.5f))
    REFUSE("is int32, not floating point",
           mr_moving_average_of(g, MR_OUTPUTS(mr_constant_int32(g, 1)), nullptr, .decay = 0.5f))
    REFUSE(
        "whose shape [?] is not known",
        mr_moving_average_of(g, MR_OUTPUTS(mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1))), nullptr, .decay = 0.5f))
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SCALAR);
    (void)mr_moving_average(g, &w, 1, nullptr, .decay = 0.5f, .zero_debias = true);
    check_no_average(g, "zero_debias has no effect");
    CHECK(mr_moving_average_of(nullptr, MR_OUTPUTS(foreign), nullptr, .decay = 0.5f) == nullptr);
    CHECK(mr_moving_average(nullptr, &w, 1, nullptr, .decay = 0.5f) == nullptr);
    mr_graph_free(other);
}

TEST(moving_average_refuses_variables_that_are_not_floating_point)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable i = mr_get_variable(g, "i", MR_SHAPE(2), .dtype = MR_INT32), average;
    mr_node *update = mr_moving_average(g, &i, 1, &average, .decay = 0.5f);
    CHECK(update != nullptr);
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the variable i, which is int32, not floating point");
    /* The averages of a failed graph are passed on by later builders. */
    CHECK(mr_add_v2(g, average.value, average.value).node != nullptr);
    CHECK(average.initializer != nullptr);
    mr_graph_free(g);
}

TEST(moving_average_without_a_name_or_of_another_graph_is_an_error)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new(), *other = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2)), average;
    (void)mr_moving_average(g, &w, 1, &average, .decay = 0.5f, .name = "");
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the name of a moving average is empty");
    CHECK(average.value.node != nullptr);
    (void)mr_moving_average(other, &w, 1, &average, .decay = 0.5f);
    CHECK_STATUS(mr_graph_status(other, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "in another graph");
    mr_graph_free(other);
    mr_graph_free(g);
}

TEST(moving_average_of_a_variable_twice_updates_one_average_twice)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(1), .initializer = {.kind = MR_INIT_ONES});
    const mr_variable twice[] = {w, w};
    mr_variable averages[2];
    mr_node *update = mr_moving_average(g, twice, 2, averages, .decay = 0.5f);
    CHECK(averages[0].ref.node == averages[1].ref.node);
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 2);
    CHECK_EQ(mr_graph_variable_count(g, MR_MOVING_AVERAGE_VARIABLES), 1);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_session *session = nullptr;
    mr_tensor value = {0};
    const float five = 5;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(1), &five, &error));
    CHECK_OK(mr_session_write_variable(session, w.ref, &value, &error));
    mr_tensor_deinit(&value);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &update, 1, &error));
    CHECK_OK(mr_session_read_variable(session, averages[0].ref, &value, &error));
    CHECK_NEAR(mr_tensor_floats(&value)[0], 5,
               1e-6); /* 1 + 2 + 2: both updates use the same average, as in TensorFlow */
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
}
