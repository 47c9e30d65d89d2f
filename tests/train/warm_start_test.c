/* Initializers that restore: keys, scopes, parts, kinds of variables, and what is refused. */
#include "tests/test.h"
#include <millrace/millrace.h>

/* A checkpoint with old/w [4, 3] = 0 … 11, old/sub/b [3] = 100 … 102, step = 7. */
static const char *old_checkpoint(void)
{
    mr_error error = {0};
    mr_checkpoint_writer *writer = nullptr;
    const char *path = test_path("old.ckpt");
    mr_tensor w = {0}, b = {0}, step = {0};
    CHECK_OK(mr_tensor_init(&w, MR_FLOAT, MR_SHAPE(4, 3), &error));
    CHECK_OK(mr_tensor_init(&b, MR_FLOAT, MR_SHAPE(3), &error));
    CHECK_OK(mr_tensor_init(&step, MR_INT64, MR_SCALAR, &error));
    for (int i = 0; i < 12; i++) mr_tensor_floats(&w)[i] = (float)i;
    for (int i = 0; i < 3; i++) mr_tensor_floats(&b)[i] = 100 + (float)i;
    *(int64_t *)mr_tensor_data(&step) = 7;
    CHECK_OK(mr_checkpoint_writer_open(path, &writer, &error));
    CHECK_OK(mr_checkpoint_write(writer, "old/w", &w, &error));
    CHECK_OK(mr_checkpoint_write(writer, "old/sub/b", &b, &error));
    CHECK_OK(mr_checkpoint_write(writer, "step", &step, &error));
    CHECK_OK(mr_checkpoint_writer_close(writer, &error));
    mr_tensor_deinit(&w);
    mr_tensor_deinit(&b);
    mr_tensor_deinit(&step);
    return path;
}

typedef struct model {
    mr_graph *g;
    mr_variable w, b, other;
} model;

/* new/w in parts, new/sub/b, and a variable that is in no scope. */
static model build(int32_t parts, bool is_resource)
{
    model m = {.g = mr_graph_new()};
    const mr_initializer ones = {.kind = MR_INIT_ONES};
    const mr_partitioner partitioner = {.kind = parts > 1 ? MR_PARTITION_FIXED_SIZE : MR_PARTITION_DEFAULT,
                                        .parts_max = parts > 1 ? parts : 0};
    m.w = mr_get_variable(m.g, "new/w", MR_SHAPE(4, 3), .initializer = ones, .partitioner = partitioner,
                          .use_resource = is_resource);
    m.b = mr_get_variable(m.g, "new/sub/b", MR_SHAPE(3), .initializer = ones, .use_resource = is_resource);
    m.other = mr_get_variable(m.g, "other", MR_SHAPE(2), .initializer = ones);
    return m;
}

static void check_values(model m, float first_w, float first_b)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor values[3] = {0};
    mr_node *init = mr_initialize_variables(m.g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_OK(mr_session_new(m.g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(m.w.value, m.b.value, m.other.value), values, nullptr, 0,
                            &error));
    for (int i = 0; i < 12; i++) CHECK_EQ(mr_tensor_floats(&values[0])[i], first_w < 0 ? 1.0f : first_w + (float)i);
    for (int i = 0; i < 3; i++) CHECK_EQ(mr_tensor_floats(&values[1])[i], first_b < 0 ? 1.0f : first_b + (float)i);
    for (int i = 0; i < 2; i++) CHECK_EQ(mr_tensor_floats(&values[2])[i], 1.0f);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&values[i]);
    mr_session_free(session);
}

TEST(init_from_checkpoint_assigns_scopes_and_names)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    for (int32_t parts = 1; parts <= 4; parts += 3)
        for (int resource = 0; resource < 2; resource++) {
            model m = build(parts, resource == 1);
            CHECK_OK(mr_init_from_checkpoint(m.g, path, MR_ASSIGNMENTS({.from = "old/", .to = "new/"}), &error));
            check_values(m, 0, 100);
            mr_graph_free(m.g);
            m = build(parts, resource == 1);
            CHECK_OK(mr_init_from_checkpoint(
                m.g, path, MR_ASSIGNMENTS({.from = "old/w", .variable = m.w}, {.from = "old/sub/b", .to = "new/sub/b"}),
                &error));
            check_values(m, 0, 100);
            mr_graph_free(m.g);
            m = build(parts, resource == 1);
            CHECK_OK(
                mr_init_from_checkpoint(m.g, path, MR_ASSIGNMENTS({.from = "old/sub/", .to = "new/sub/"}), &error));
            check_values(m, -1, 100);
            mr_graph_free(m.g);
        }
}

TEST(init_from_checkpoint_adds_tensorflows_nodes)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    model m = build(2, false);
    mr_graph_push_scope(m.g, "here");
    CHECK_OK(mr_init_from_checkpoint(m.g, path, MR_ASSIGNMENTS({.from = "old/", .to = "new/"}), &error));
    mr_graph_pop_scope(m.g);
    CHECK(mr_graph_find(m.g, "here/checkpoint_initializer") != nullptr);
    CHECK(mr_graph_find(m.g, "here/checkpoint_initializer_2/tensor_names") != nullptr);
    const mr_node *restore = mr_graph_find(m.g, "here/checkpoint_initializer_1");
    CHECK_STR(mr_node_op(restore), "RestoreV2");
    CHECK_STR(mr_node_device(restore), "/device:CPU:0");
    const mr_variable part = mr_graph_variable(m.g, MR_GLOBAL_VARIABLES, 0);
    CHECK_STR(mr_node_op(part.initial_value.node), "RestoreV2");
    CHECK_STR(mr_node_op(part.initializer), "Assign");
    mr_node *init = mr_variables_initializer(m.g, MR_VARIABLES(m.b), nullptr);
    CHECK(mr_node_control(init, 0) != m.b.initializer);
    mr_graph_free(m.g);
}

TEST(init_from_checkpoint_refuses_what_does_not_exist)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    const struct {
        mr_assignment assignment;
        mr_status status;
        const char *message;
    } cases[] = {
        {{.from = "old/v", .to = "new/w"},
         MR_NOT_FOUND,
         "has no key old/v, from which new/w is initialized; the nearest are old/w"},
        {{.from = "old/w", .to = "new/v"}, MR_NOT_FOUND, "there is no variable new/v; the nearest are new/w"},
        {{.from = "old/", .to = "now/"}, MR_NOT_FOUND, "no variable is in the scope now/"},
        {{.from = "old/sub/", .to = "new/"}, MR_NOT_FOUND, "has no key old/sub/sub/b"},
        {{.from = "/", .to = "/"}, MR_NOT_FOUND, "has no key new/sub/b"},
        {{.from = "old/", .to = "new/w"}, MR_INVALID_ARGUMENT, "\"old/\" is assigned to \"new/w\", but a scope"},
        {{.from = "old/w", .to = "new/"}, MR_INVALID_ARGUMENT, "can only be assigned to a scope"},
        {{.from = "old/sub/b", .to = "new/w"},
         MR_INVALID_ARGUMENT,
         "new/w is float [4,3] in the graph, but old/sub/b is float [3]"},
        {{.from = "step", .to = "new/w"}, MR_INVALID_ARGUMENT, "but step is int64 []"},
        {{.from = "step"}, MR_INVALID_ARGUMENT, "step is assigned to nothing"},
        {{.to = "new/w"}, MR_INVALID_ARGUMENT, "an assignment has no key"},
    };
    model m = build(1, false);
    const int32_t before = mr_graph_node_count(m.g);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_STATUS(mr_init_from_checkpoint(m.g, path, (mr_assignments){&cases[i].assignment, 1}, &error),
                     cases[i].status);
        if (strstr(error.message, cases[i].message) == nullptr)
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, error.message);
        CHECK_EQ(mr_graph_node_count(m.g), before);
    }
    CHECK_STATUS(mr_init_from_checkpoint(m.g, path, (mr_assignments){0}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_init_from_checkpoint(nullptr, path, (mr_assignments){0}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_init_from_checkpoint(m.g, test_path("none"), (mr_assignments){&cases[0].assignment, 1}, &error),
                 MR_NOT_FOUND);
    CHECK_OK(mr_graph_status(m.g, &error));
    mr_graph_free(m.g);
}

TEST(warm_start_selects_variables)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    const mr_previous_names names = MR_PREVIOUS_NAMES({"new/w", "old/w"}, {"new/sub/b", "old/sub/b"});
    model m = build(3, true);
    CHECK_OK(mr_warm_start(m.g, path, MR_OPTIONS(mr_warm_start_options, .pattern = "new/.*", .previous_names = names),
                           &error));
    check_values(m, 0, 100);
    mr_graph_free(m.g);
    m = build(1, false);
    CHECK_OK(mr_warm_start(m.g, path,
                           MR_OPTIONS(mr_warm_start_options, .variables = MR_VARIABLES(m.b),
                                      .previous_names = MR_PREVIOUS_NAMES({"new/sub/b", "old/sub/b"})),
                           &error));
    check_values(m, -1, 100);
    CHECK_STATUS(mr_warm_start(m.g, path, nullptr, &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_warm_start(m.g, path, MR_OPTIONS(mr_warm_start_options, .pattern = "w"), &error), MR_NOT_FOUND);
    CHECK_STR(error.message, "warm_start: pattern w selects no variable");
    CHECK_STATUS(mr_warm_start(m.g, path, MR_OPTIONS(mr_warm_start_options, .pattern = "("), &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_warm_start(m.g, path,
                               MR_OPTIONS(mr_warm_start_options, .names = MR_NAMES("new/sub/b"),
                                          .previous_names = MR_PREVIOUS_NAMES({"new/sub/c", "old/sub/b"})),
                               &error),
                 MR_NOT_FOUND);
    CHECK(strstr(error.message, "previous_names has new/sub/c, which is not among the variables; there is new/sub/b"));
    mr_graph_free(m.g);
}

TEST(init_from_checkpoint_takes_a_directory_and_monitored_sessions_use_it)
{
    mr_error error = {0};
    model old = build(2, false), m = build(1, true);
    mr_session *session = nullptr;
    mr_node *init = mr_initialize_variables(old.g, MR_GLOBAL_VARIABLES, nullptr);
    mr_saver *saver = mr_saver_new(old.g);
    mr_output change =
        mr_variable_assign(old.g, old.b, mr_constant_floats(old.g, MR_SHAPE(3), (float[]){5, 6, 7}, "v"));
    mr_tensor value = {0};
    CHECK_OK(mr_session_new(old.g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &change.node, 1, &error));
    CHECK_STATUS(mr_init_from_checkpoint(m.g, test_path("run"), MR_ASSIGNMENTS({.from = "/", .to = "/"}), &error),
                 MR_NOT_FOUND);
    CHECK_OK(mr_saver_save(saver, session, test_path("run/model"), 3, &error));
    CHECK_OK(mr_init_from_checkpoint(m.g, test_path("run"), MR_ASSIGNMENTS({.from = "/", .to = "/"}), &error));
    mr_monitored_session *monitored = nullptr;
    CHECK_OK(mr_monitored_session_new(m.g, nullptr, &monitored, &error));
    CHECK_OK(mr_monitored_session_run(monitored, MR_NO_FEEDS, MR_OUTPUTS(m.b.value), &value, nullptr, 0, &error));
    for (int i = 0; i < 3; i++) CHECK_EQ(mr_tensor_floats(&value)[i], 5 + i);
    CHECK_OK(mr_monitored_session_close(monitored, MR_OK, &error));
    mr_tensor_deinit(&value);
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(old.g);
    mr_graph_free(m.g);
}
