/* Variables by name: scopes, reuse, partitions, resource variables, and the sentences for mistakes. */
#include "tests/test.h"

#include <millrace/millrace.h>

static void check_name(mr_variable variable, const char *expected)
{
    if (strcmp(mr_node_name(variable.ref.node), expected) != 0)
        test_fail(__FILE__, __LINE__, "%s, not %s", mr_node_name(variable.ref.node), expected);
}

TEST(variables_are_named_by_variable_scopes_only)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_push_scope(g, "name");
    check_name(mr_get_variable(g, "v", MR_SHAPE(2)), "v");
    mr_graph_push_variable_scope(g, "a");
    CHECK(strcmp(mr_graph_scope(g), "name/a") == 0);
    check_name(mr_get_variable(g, "v", MR_SHAPE(2)), "a/v");
    const mr_variable_scope *inner = mr_graph_push_variable_scope(g, "b");
    CHECK(strcmp(mr_variable_scope_name(inner), "a/b") == 0);
    CHECK(strcmp(mr_variable_scope_name_scope(inner), "name/a/b") == 0);
    check_name(mr_get_variable(g, "v", MR_SHAPE(2)), "a/b/v");
    mr_graph_pop_variable_scope(g);
    mr_graph_pop_variable_scope(g);
    mr_graph_pop_scope(g);
    mr_graph_push_variable_scope(g, nullptr, .scope = inner);
    CHECK(strcmp(mr_graph_scope(g), "b") == 0);
    check_name(mr_get_variable(g, "w", MR_SHAPE(2)), "a/b/w");
    mr_graph_pop_variable_scope(g);
    mr_graph_push_variable_scope(g, "plain", .no_auxiliary_name_scope = true);
    CHECK(*mr_graph_scope(g) == '\0');
    check_name(mr_get_variable(g, "w", MR_SHAPE(2)), "plain/w");
    mr_graph_pop_variable_scope(g);
    CHECK(*mr_variable_scope_name(mr_graph_variable_scope(g)) == '\0');
    CHECK_OK(mr_graph_status(g, &error));
    mr_graph_free(g);
}

TEST(variables_in_scopes_with_default_names_are_new)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    static const char *const expected[] = {"d/v", "d_1/v", "d_2/v"};
    for (int i = 0; i < 3; i++) {
        mr_graph_push_variable_scope(g, nullptr, .default_name = "d");
        check_name(mr_get_variable(g, "v", MR_SHAPE(1)), expected[i]);
        mr_graph_pop_variable_scope(g);
    }
    /* Names inside a scope start again with the next scope of its name. */
    for (int i = 0; i < 2; i++) {
        mr_graph_push_variable_scope(g, "outer", .reuse = MR_AUTO_REUSE);
        mr_graph_push_variable_scope(g, nullptr, .default_name = "d");
        check_name(mr_get_variable(g, "v", MR_SHAPE(1)), "outer/d/v");
        mr_graph_pop_variable_scope(g);
        mr_graph_pop_variable_scope(g);
    }
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 4);
    mr_graph_free(g);
}

static mr_variable halved(void *context, const mr_variable_request *request)
{
    ++*(int *)context;
    mr_variable_request smaller = *request;
    smaller.shape.dims[0] /= 2;
    return mr_variable_request_get(&smaller);
}

TEST(variables_take_what_the_scope_has)
{
    mr_error error = {0};
    int calls = 0;
    mr_graph *g = mr_graph_new();
    mr_graph_push_variable_scope(g, "s", .initializer = {.kind = MR_INIT_ONES}, .regularizer = {.l2 = 0.5f},
                                 .dtype = MR_DOUBLE, .use_resource = true, .caching_device = "/cpu:0");
    mr_variable v = mr_get_variable(g, "v", MR_SHAPE(4));
    CHECK(mr_variable_is_resource(v) && mr_variable_dtype_of(v) == MR_DOUBLE);
    CHECK(mr_graph_find(g, "s/v/Initializer/ones") != nullptr);
    CHECK(mr_graph_find(g, "s/v/Regularizer/l2_regularizer") != nullptr);
    CHECK(strcmp(mr_node_device(v.value.node), "/device:CPU:0") == 0);
    mr_graph_pop_variable_scope(g);
    mr_variable own = mr_get_variable(g, "own", MR_SHAPE(4), .dtype = MR_INT32, .use_resource = false,
                                      .initializer = {.kind = MR_INIT_ZEROS}, .trainable = false,
                                      .collections = MR_NAMES(MR_LOCAL_VARIABLES, "mine"));
    CHECK(!mr_variable_is_resource(own) && mr_variable_dtype_of(own) == MR_INT32);
    mr_graph_push_variable_scope(g, "outer", .custom_getter = halved, .getter_context = &calls);
    mr_graph_push_variable_scope(g, "inner", .custom_getter = halved, .getter_context = &calls);
    mr_variable quarter = mr_get_variable(g, "v", MR_SHAPE(8));
    CHECK(mr_shape_equal(mr_variable_shape_of(quarter), MR_SHAPE(2)));
    CHECK_EQ(calls, 2);
    mr_graph_pop_variable_scope(g);
    mr_graph_pop_variable_scope(g);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_graph_variable_count(g, MR_LOCAL_VARIABLES), 1);
    CHECK_EQ(mr_graph_collection_count(g, "mine"), 1);
    mr_graph_free(g);
}

static mr_output in_scope(mr_graph *g, mr_variable_scope_options options, const char *name, mr_shape shape)
{
    options.size = sizeof options;
    (void)mr_graph_push_variable_scope_(g, "s", &options);
    mr_variable variable = mr_get_variable(g, name, shape);
    mr_graph_pop_variable_scope(g);
    return variable.value;
}

static mr_output twice(mr_graph *g, mr_reuse reuse, mr_shape shape, mr_dtype dtype)
{
    (void)in_scope(g, (mr_variable_scope_options){.use_resource = MR_INHERIT}, "w", MR_SHAPE(2));
    mr_graph_push_variable_scope(g, "s", .reuse = reuse);
    mr_variable variable = mr_get_variable(g, "w", shape, .dtype = dtype);
    mr_graph_pop_variable_scope(g);
    return variable.value;
}

static mr_output partitioned_twice(mr_graph *g, int32_t first, int32_t second)
{
    mr_partitioner partitioner = {.kind = MR_PARTITION_FIXED_SIZE, .parts_max = first};
    (void)mr_get_variable(g, "w", MR_SHAPE(6), .partitioner = first > 0 ? partitioner : (mr_partitioner){0});
    mr_graph_reuse_variables(g);
    partitioner.parts_max = second;
    return mr_get_variable(g, "w", MR_SHAPE(6), .partitioner = second > 0 ? partitioner : (mr_partitioner){0}).value;
}

#define WRONG(X)                                                                                                       \
    X("Variable s/w already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?",   \
      twice(g, MR_REUSE_NONE, MR_SHAPE(2), MR_FLOAT))                                                                  \
    X("Variable w does not exist, or was not created with tf.get_variable(). Did you mean to set "                     \
      "reuse=tf.AUTO_REUSE in VarScope?",                                                                              \
      (mr_graph_reuse_variables(g), mr_get_variable(g, "w", MR_SHAPE(2)).value))                                       \
    X("Trying to share variable s/w, but specified shape [3] and found shape [2].",                                    \
      twice(g, MR_REUSE, MR_SHAPE(3), MR_FLOAT))                                                                       \
    X("Trying to share variable s/w, but specified dtype int32 and found dtype float.",                                \
      twice(g, MR_AUTO_REUSE, MR_SHAPE(2), MR_INT32))                                                                  \
    X("variable w: its shape [?,2] is not fully known", mr_get_variable(g, "w", MR_SHAPE(-1, 2)).value)                \
    X("variable : a name is required", mr_get_variable(g, "", MR_SHAPE(2)).value)                                      \
    X("use_resource must be true", mr_get_variable(g, "w", MR_SHAPE(2), .use_resource = 5).value)                      \
    X("trainable must be true", mr_get_variable(g, "w", MR_SHAPE(2), .trainable = 2).value)                            \
    X("l1 and l2 of the regularizer", mr_get_variable(g, "w", MR_SHAPE(2), .regularizer = {.l1 = -1}).value)           \
    X("any_shape has no effect", mr_get_variable(g, "w", MR_SHAPE(2), .any_shape = true).value)                        \
    X("value is required", mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_VALUE}).value)         \
    X("value has another dtype",                                                                                       \
      mr_get_variable(g, "w", MR_SCALAR, .dtype = MR_DOUBLE,                                                           \
                      .initializer = {.kind = MR_INIT_VALUE, .value = mr_constant_float(g, 1)})                        \
          .value)                                                                                                      \
    X("variable w has shape [3], but its initial value has []",                                                        \
      mr_get_variable(g, "w", MR_SHAPE(3), .initializer = {.kind = MR_INIT_VALUE, .value = mr_constant_float(g, 1)})   \
          .value)                                                                                                      \
    X("mean has no effect", mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.mean = 1, .seed = 1}).value)         \
    X("min must be less than max",                                                                                     \
      mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_UNIFORM, .min = 2, .max = 1}).value)        \
    X("does not compute values of the variable's dtype",                                                               \
      mr_get_variable(g, "w", MR_SHAPE(2), .dtype = MR_INT32, .initializer = {.kind = MR_INIT_HE_NORMAL}).value)       \
    X("needs at least 2 dimensions",                                                                                   \
      mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ORTHOGONAL}).value)                         \
    X("must be a matrix", mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_IDENTITY}).value)       \
    X("more inputs than outputs",                                                                                      \
      mr_get_variable(g, "w", MR_SHAPE(3, 4, 2), .initializer = {.kind = MR_INIT_DELTA_ORTHOGONAL}).value)             \
    X("sizes must be equal",                                                                                           \
      mr_get_variable(g, "w", MR_SHAPE(3, 2, 2, 4), .initializer = {.kind = MR_INIT_CONVOLUTION_ORTHOGONAL}).value)    \
    X("parts_max is required",                                                                                         \
      mr_get_variable(g, "w", MR_SHAPE(2), .partitioner = {.kind = MR_PARTITION_FIXED_SIZE}).value)                    \
    X("size_bytes is required",                                                                                        \
      mr_get_variable(g, "w", MR_SHAPE(2), .partitioner = {.kind = MR_PARTITION_AXIS_SIZE}).value)                     \
    X("does not have this axis",                                                                                       \
      mr_get_variable(g, "w", MR_SHAPE(2),                                                                             \
                      .partitioner = {.kind = MR_PARTITION_FIXED_SIZE, .axis = 1, .parts_max = 2})                     \
          .value)                                                                                                      \
    X("an unpartitioned version of the variable was found: w", partitioned_twice(g, 0, 2))                             \
    X("specified 3 partitions and found 2", partitioned_twice(g, 2, 3))                                                \
    X("variable scope : a name, a default_name or a scope is required",                                                \
      (mr_graph_push_variable_scope(g, nullptr), (mr_output){0}))                                                      \
    X("reuse has no effect with a default_name",                                                                       \
      (mr_graph_push_variable_scope(g, nullptr, .default_name = "d", .reuse = MR_REUSE), (mr_output){0}))              \
    X("getter_context has no effect", (mr_graph_push_variable_scope(g, "s", .getter_context = g), (mr_output){0}))     \
    X("w is no single variable",                                                                                       \
      mr_variable_assign(                                                                                              \
          g, mr_get_variable(g, "w", MR_SHAPE(2), .partitioner = {.kind = MR_PARTITION_FIXED_SIZE, .parts_max = 2}),   \
          mr_constant_float(g, 1)))

static void check_wrong(const char *part, const char *text, mr_graph *g)
{
    mr_error error = {0};
    mr_status status = mr_graph_status(g, &error);
    if (status != MR_INVALID_ARGUMENT || strstr(error.message, part) == nullptr)
        test_fail(__FILE__, __LINE__, "%s: %s: \"%s\", not \"%s\"", text, mr_status_name(status), error.message, part);
    mr_graph_free(g);
}

TEST(variables_that_cannot_be_are_explained)
{
#define REFUSE(part, expression)                                                                                       \
    {                                                                                                                  \
        mr_graph *g = mr_graph_new();                                                                                  \
        (void)(expression);                                                                                            \
        check_wrong(part, #expression, g);                                                                             \
    }
    WRONG(REFUSE)
}

static float run_scalar(mr_session *session, mr_output fetch)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(fetch), &value, nullptr, 0, &error));
    float result = value.dtype == MR_FLOAT ? mr_tensor_floats(&value)[0] : (float)mr_tensor_int32s(&value)[0];
    mr_tensor_deinit(&value);
    return result;
}

/* Both kinds of variables, with the same functions. */
static void check_updates(bool use_resource)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable v = mr_get_variable(g, "v", MR_SHAPE(3), .initializer = {.kind = MR_INIT_CONSTANT, .scale = 2},
                                    .use_resource = use_resource);
    mr_variable n = mr_get_variable(g, "n", MR_SCALAR, .dtype = MR_INT32, .use_resource = use_resource);
    mr_output first = mr_constant_int32(g, 0), twos = mr_constant_floats(g, MR_SHAPE(3), (float[]){2, 2, 2}, nullptr);
    mr_output zero = mr_constant_ints(g, MR_INTS(0));
    mr_output gradient = {0}, loss = mr_l2_loss(g, mr_variable_read_value(g, v));
    mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(v.ref), nullptr, &gradient);
    struct {
        mr_output update;
        float expected;
    } steps[] = {
        {mr_sum(g, gradient, zero), 6},
        {mr_sum(g, mr_variable_assign(g, v, twos), zero), 6},
        {mr_sum(g, mr_variable_assign_add(g, v, twos), zero), 12},
        {mr_sum(g, mr_variable_assign_sub(g, v, mr_mul(g, twos, twos)), zero), 0},
        {mr_sum(g, mr_variable_scatter(g, v, MR_SCATTER_ADD, first, mr_constant_float(g, 5)), zero), 5},
        {mr_sum(g, mr_variable_scatter(g, v, MR_SCATTER_MIN, first, mr_constant_float(g, 3)), zero), 3},
        {mr_variable_count_up_to(g, n, 2), 0},
        {mr_variable_count_up_to(g, n, 2), 1},
    };
    mr_output missing = mr_report_uninitialized_variables(g, (mr_variables){0}, nullptr);
    mr_output safe = mr_sum(g, mr_variable_initialized_value(g, v), zero);
    mr_output ready = mr_assert_variables_initialized(g, (mr_variables){0});
    mr_node *init = mr_variables_initializer(g, MR_VARIABLES(v, n), nullptr);
    mr_session *session = nullptr;
    mr_tensor names = {0}, rank = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(missing), &names, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_count(&names), 2);
    CHECK(mr_string_equal(mr_tensor_strings(&names)[1], MR_STR("n")));
    mr_tensor_deinit(&names);
    CHECK(run_scalar(session, safe) == 6);
    CHECK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(ready), &rank, nullptr, 0, &error) == MR_FAILED_PRECONDITION);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        float value = run_scalar(session, steps[i].update);
        if (value != steps[i].expected)
            test_fail(__FILE__, __LINE__, "step %zu (resource %d): %g, not %g", i, use_resource, (double)value,
                      (double)steps[i].expected);
    }
    mr_tensor value = {0};
    CHECK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(steps[7].update), &value, nullptr, 0, &error) ==
          MR_OUT_OF_RANGE);
    CHECK(run_scalar(session, safe) == 3);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(missing), &names, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_count(&names), 0);
    mr_tensor_deinit(&names);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variables_of_both_kinds_are_updated_the_same_way)
{
    check_updates(false);
    check_updates(true);
}

TEST(variables_in_parts_have_the_values_of_one)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    float elements[14];
    for (int i = 0; i < 14; i++) elements[i] = (float)i;
    mr_output given = mr_constant_floats(g, MR_SHAPE(7, 2), elements, nullptr);
    mr_variable v = mr_get_variable(g, "v", MR_SHAPE(7, 2), .initializer = {.kind = MR_INIT_VALUE, .value = given},
                                    .partitioner = {.kind = MR_PARTITION_MIN_MAX, .parts_max = 3, .size_bytes = 8});
    mr_variables parts = mr_variable_parts(g, v);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(parts.count, 3);
    CHECK(mr_shape_equal(mr_variable_shape_of(parts.items[0]), MR_SHAPE(3, 2)));
    CHECK(mr_shape_equal(mr_variable_shape_of(parts.items[2]), MR_SHAPE(2, 2)));
    check_name(parts.items[1], "v/part_1");
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_session *session = nullptr;
    mr_tensor value = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(v.value), &value, nullptr, 0, &error));
    CHECK(memcmp(mr_tensor_floats(&value), elements, sizeof elements) == 0);
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Five steps of an optimizer, for a variable of either kind. */
static void train_kind(const mr_optimizer *optimizer, bool use_resource, float result[3])
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_tensor elements = {0}, value = {0};
    CHECK_OK(mr_tensor_init_copy(&elements, MR_FLOAT, MR_SHAPE(3), (float[]){1, -2, 3}, &error));
    mr_variable v = mr_get_variable(g, "v", MR_SHAPE(3), .use_resource = use_resource,
                                    .initializer = {.kind = MR_INIT_CONSTANT, .values = &elements});
    mr_output loss = mr_l2_loss(g, mr_mul(g, v.value, v.value));
    mr_node *train = mr_minimize(g, optimizer, loss, mr_global_step(g).ref);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    for (int i = 0; i < 5; i++)
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(v.value), &value, nullptr, 0, &error));
    memcpy(result, mr_tensor_floats(&value), 3 * sizeof *result);
    mr_tensor_deinit(&value);
    mr_tensor_deinit(&elements);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variables_of_both_kinds_are_trained_the_same_way)
{
    const mr_optimizer optimizers[] = {
        *mr_gradient_descent(.learning_rate = 0.01f),
        *mr_momentum(.learning_rate = 0.01f, .momentum = 0.9f),
        *mr_adam(.learning_rate = 0.01f),
    };
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        float reference[3], resource[3];
        train_kind(&optimizers[i], false, reference);
        train_kind(&optimizers[i], true, resource);
        CHECK(reference[0] != 1 && memcmp(reference, resource, sizeof reference) == 0);
    }
}

TEST(assignments_have_options)
{
    for (int use_resource = 0; use_resource < 2; use_resource++) {
        mr_error error = {0};
        mr_session *session = nullptr;
        mr_tensor value = {0}, def = {0};
        mr_graph *g = mr_graph_new();
        mr_variable w = mr_get_variable(g, "w", MR_SCALAR, .use_resource = use_resource == 1);
        const mr_output two = mr_constant_float(g, 2);
        const mr_variable_assign_options named = {
            .size = sizeof named, .name = "mine", .use_locking = use_resource == 0};
        mr_output set = mr_variable_assign_with(g, w, two, &named);
        mr_graph_push_control_dependencies(g, &set.node, 1);
        mr_output more = mr_variable_assign_add_with(g, w, two, &named);
        mr_graph_push_control_dependencies(g, &more.node, 1);
        mr_output less = mr_variable_assign_sub_with(g, w, mr_constant_float(g, 0.5f), nullptr);
        mr_graph_pop_control_dependencies(g);
        mr_graph_pop_control_dependencies(g);
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(less), &value, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&value)[0] == 3.5f);
        CHECK_STR(mr_node_op(mr_graph_find(g, "mine")), use_resource == 1 ? "AssignVariableOp" : "Assign");
        CHECK_STR(mr_node_op(mr_graph_find(g, "mine_1")), use_resource == 1 ? "AssignAddVariableOp" : "AssignAdd");
        CHECK_OK(mr_graph_export(g, &def, &error));
        mr_tensor_deinit(&def);
        mr_tensor_deinit(&value);
        mr_session_free(session);
        if (use_resource == 1) {
            (void)mr_variable_assign_with(g, w, two, MR_OPTIONS(mr_variable_assign_options, .use_locking = true));
            CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
            CHECK_CONTAINS(error.message, "use_locking has no effect on a resource variable");
        } else {
            (void)mr_variable_assign_with(g, (mr_variable){0}, two, nullptr);
            CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
            CHECK_CONTAINS(error.message, "mr_variable_assign: the variable is no single variable");
        }
        mr_graph_free(g);
        CHECK(mr_variable_assign_sub_with(nullptr, w, two, nullptr).node == nullptr);
    }
}
