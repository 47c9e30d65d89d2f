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
    for (int i = 0; i < 12; i++) CHECK(mr_tensor_floats(&values[0])[i] == (first_w < 0 ? 1.0f : first_w + (float)i));
    for (int i = 0; i < 3; i++) CHECK(mr_tensor_floats(&values[1])[i] == (first_b < 0 ? 1.0f : first_b + (float)i));
    for (int i = 0; i < 2; i++) CHECK(mr_tensor_floats(&values[2])[i] == 1.0f);
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
    CHECK_CONTAINS(error.message, "warm_start: pattern (: ");
    CHECK_CONTAINS(error.message, "Invalid pattern: (, error: missing )");
    CHECK_STATUS(mr_warm_start(m.g, path, MR_OPTIONS(mr_warm_start_options, .pattern = "new)(/w"), &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_warm_start(m.g, path,
                               MR_OPTIONS(mr_warm_start_options, .pattern = "new/w",
                                          .previous_names = MR_PREVIOUS_NAMES({"new/w", "old/w"}, {"new/w", "old/v"})),
                               &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "warm_start: previous_names has new/w twice");
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
    for (int i = 0; i < 3; i++) CHECK(mr_tensor_floats(&value)[i] == 5 + i);
    CHECK_OK(mr_monitored_session_close(monitored, MR_OK, &error));
    mr_tensor_deinit(&value);
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(old.g);
    mr_graph_free(m.g);
}

/* ---- Vocabularies ---- */

/* Rows of the checkpoint's old/w by word: a 0, b 1, c 2, d 3. */
static const char *words(const char *name, const char *text)
{
    FILE *file = fopen(test_path("%s", name), "w");
    CHECK(file != nullptr);
    CHECK(fputs(text, file) >= 0 && fclose(file) == 0);
    return test_path("%s", name);
}

static void check_rows(mr_graph *g, mr_variable v, const float *expected)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor value = {0};
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(v.value), &value, nullptr, 0, &error));
    for (int64_t i = 0; i < mr_tensor_count(&value); i++) CHECK(mr_tensor_floats(&value)[i] == expected[i]);
    mr_tensor_deinit(&value);
    mr_session_free(session);
}

TEST(warm_start_finds_rows_by_their_words)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    const mr_vocab_info info = {.name = "new/w",
                                .new_vocab = words("new.txt", "d\nnew\na\nb\nunused\n"),
                                .new_vocab_size = 4,
                                .num_oov_buckets = 2,
                                .old_vocab = words("old.txt", "a\nb\nc\nd\n"),
                                .backup_initializer = {.kind = MR_INIT_CONSTANT, .scale = -1}};
    const float rows[] = {9, 10, 11, -1, -1, -1, 0, 1, 2, 3, 4, 5, -1, -1, -1, -1, -1, -1};
    for (int32_t parts = 1; parts <= 6; parts++)
        for (int resource = 0; resource < 2; resource++) {
            mr_graph *g = mr_graph_new();
            const mr_partitioner partitioner = {.kind = parts > 1 ? MR_PARTITION_FIXED_SIZE : MR_PARTITION_DEFAULT,
                                                .parts_max = parts > 1 ? parts : 0};
            mr_variable w =
                mr_get_variable(g, "new/w", MR_SHAPE(6, 3), .partitioner = partitioner, .use_resource = resource);
            mr_get_variable(g, "new/b", MR_SHAPE(3), .use_resource = resource);
            CHECK_OK(mr_warm_start(
                g, path,
                MR_OPTIONS(mr_warm_start_options,
                           .previous_names = MR_PREVIOUS_NAMES({"new/w", "old/w"}, {"new/b", "old/sub/b"}),
                           .vocab_infos = {&info, 1}),
                &error));
            check_rows(g, w, rows);
            mr_graph_free(g);
        }
}

TEST(warm_start_finds_columns_by_their_words)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    const mr_vocab_info info = {.name = "new/w",
                                .new_vocab = words("new.txt", "c\nnew\na\n"),
                                .new_vocab_size = 3,
                                .num_oov_buckets = 1,
                                .old_vocab = words("old.txt", "a\nb\nc\n"),
                                .axis = 1};
    const float rows[] = {2, 0, 0, 0, 5, 0, 3, 0, 8, 0, 6, 0, 11, 0, 9, 0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "new/w", MR_SHAPE(4, 4));
    CHECK_OK(mr_warm_start(g, path,
                           MR_OPTIONS(mr_warm_start_options, .previous_names = MR_PREVIOUS_NAMES({"new/w", "old/w"}),
                                      .vocab_infos = {&info, 1}),
                           &error));
    check_rows(g, w, rows);
    mr_graph_free(g);
}

TEST(warm_start_uses_the_first_words_of_the_old_vocabulary)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    const mr_vocab_info info = {.name = "old/w",
                                .new_vocab = words("new.txt", "b\nc\n"),
                                .new_vocab_size = 2,
                                .old_vocab = words("old.txt", "a\nb\nc\nd\n"),
                                .old_vocab_size = 2};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "old/w", MR_SHAPE(2, 3));
    CHECK_OK(mr_warm_start(g, path, MR_OPTIONS(mr_warm_start_options, .vocab_infos = {&info, 1}), &error));
    check_rows(g, w, (float[]){3, 4, 5, 0, 0, 0});
    mr_graph_free(g);
}

TEST(warm_start_refuses_vocabularies_that_do_not_fit)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    const mr_vocab_info good = {.name = "old/w",
                                .new_vocab = words("new.txt", "a\nb\nc\nd\n"),
                                .new_vocab_size = 4,
                                .old_vocab = words("old.txt", "a\nb\nc\nd\n")};
    mr_vocab_info bad[15];
    for (int i = 0; i < 15; i++) bad[i] = good;
    const char *const messages[15] = {
        "vocab_infos has other, which is not among the variables; there is old/w",
        "vocab_infos of old/w: new_vocab is missing",
        "old_vocab is missing",
        "new_vocab_size must be at least 1",
        "num_oov_buckets must be at least 0",
        "old_vocab_size must be at least 0",
        "axis must be 0 or 1",
        "old_vocab_size has no effect on axis 1",
        "backup_initializer: it must be zeros, ones, constant, uniform, normal or truncated normal",
        "axis 0 of old/w is 4, but new_vocab_size + num_oov_buckets is 5",
        "axis 1 of old/w is 3, but new_vocab_size + num_oov_buckets is 4",
        "backup_initializer: scale is required by this kind",
        "a name of vocab_infos is null",
        "backup_initializer: min must be less than max",
        "has no key gone",
    };
    bad[0].name = "other";
    bad[1].new_vocab = nullptr;
    bad[2].old_vocab = "";
    bad[3].new_vocab_size = 0;
    bad[4].num_oov_buckets = -1;
    bad[5].old_vocab_size = -1;
    bad[6].axis = 2;
    bad[7].axis = 1;
    bad[7].old_vocab_size = 2;
    bad[8].backup_initializer.kind = MR_INIT_GLOROT_UNIFORM;
    bad[9].num_oov_buckets = 1;
    bad[10].axis = 1;
    bad[11].backup_initializer.kind = MR_INIT_NORMAL;
    bad[12].name = nullptr;
    bad[13].backup_initializer = (mr_initializer){.kind = MR_INIT_UNIFORM, .min = 2, .max = 1};
    mr_graph *g = mr_graph_new();
    (void)mr_get_variable(g, "old/w", MR_SHAPE(4, 3));
    const int32_t before = mr_graph_node_count(g);
    for (int i = 0; i < 15; i++) {
        const mr_previous_names none = {0}, gone = MR_PREVIOUS_NAMES({"old/w", "gone"});
        CHECK(mr_warm_start(g, path,
                            MR_OPTIONS(mr_warm_start_options, .vocab_infos = {&bad[i], 1},
                                       .previous_names = i == 14 ? gone : none),
                            &error) != MR_OK);
        CHECK_CONTAINS(error.message, messages[i]);
        CHECK_EQ(mr_graph_node_count(g), before);
    }
    const mr_vocab_info twice[] = {good, good};
    CHECK_STATUS(mr_warm_start(g, path, MR_OPTIONS(mr_warm_start_options, .vocab_infos = {twice, 2}), &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "vocab_infos has old/w twice");
    (void)mr_get_variable(g, "old/sub/b", MR_SHAPE(3));
    bad[0] = good;
    bad[0].name = "old/sub/b";
    CHECK_STATUS(mr_warm_start(g, path, MR_OPTIONS(mr_warm_start_options, .vocab_infos = {bad, 1}), &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "old/sub/b is float [3], but a variable with a vocabulary must be a float matrix");
    mr_graph_free(g);
}

TEST(warm_start_refuses_options_of_the_new_elements_without_effect)
{
    mr_error error = {0};
    const char *path = old_checkpoint();
    mr_tensor one = {0};
    CHECK_OK(mr_tensor_init_float(&one, 1, &error));
    const struct {
        mr_initializer initializer;
        const char *message;
    } cases[] = {
        {{.scale = 3}, "scale has no effect for this kind"},
        {{.kind = MR_INIT_ZEROS, .scale = 3}, "scale has no effect for this kind"},
        {{.kind = MR_INIT_ZEROS, .seed = 3}, "seed has no effect"},
        {{.seed = 3}, "seed has no effect"},
        {{.kind = MR_INIT_ZEROS, .mean = 1}, "mean has no effect"},
        {{.kind = MR_INIT_ZEROS, .min = -1, .max = 1}, "min and max have no effect"},
        {{.kind = MR_INIT_ZEROS, .mode = MR_FAN_OUT}, "mode and distribution have no effect"},
        {{.kind = MR_INIT_ZEROS, .values = &one}, "values has no effect"},
        {{.kind = MR_INIT_ONES, .scale = 3}, "scale has no effect"},
        {{.kind = MR_INIT_CONSTANT, .scale = 3, .seed = 1}, "seed has no effect"},
        {{.kind = MR_INIT_CONSTANT, .values = &one}, "it cannot have values"},
        {{.kind = MR_INIT_NORMAL, .scale = 1, .min = -1, .max = 1}, "min and max have no effect"},
        {{.kind = MR_INIT_UNIFORM, .scale = 1, .mean = 1}, "mean has no effect"},
        {{.kind = MR_INIT_UNIFORM, .scale = 1, .min = 20, .max = 21}, "scale has no effect"},
    };
    mr_graph *g = mr_graph_new();
    (void)mr_get_variable(g, "old/w", MR_SHAPE(4, 3));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const mr_vocab_info info = {.name = "old/w",
                                    .new_vocab = "new.txt",
                                    .new_vocab_size = 4,
                                    .old_vocab = "old.txt",
                                    .backup_initializer = cases[i].initializer};
        CHECK_STATUS(mr_warm_start(g, path, MR_OPTIONS(mr_warm_start_options, .vocab_infos = {&info, 1}), &error),
                     MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "vocab_infos of old/w: backup_initializer: ");
        CHECK_CONTAINS(error.message, cases[i].message);
    }
    mr_graph_free(g);
    mr_tensor_deinit(&one);
}

TEST(warm_start_names_a_short_vocabulary)
{
    mr_error error = {0};
    const mr_vocab_info info = {.name = "old/w",
                                .new_vocab = words("short.txt", "a\nb\n"),
                                .new_vocab_size = 4,
                                .old_vocab = words("old.txt", "a\nb\nc\nd\n")};
    mr_graph *g = mr_graph_new();
    (void)mr_get_variable(g, "old/w", MR_SHAPE(4, 3));
    CHECK_OK(mr_warm_start(g, old_checkpoint(), MR_OPTIONS(mr_warm_start_options, .vocab_infos = {&info, 1}), &error));
    mr_session *session = nullptr;
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "short.txt has 2 words, but the words from 0 on, 4 of them, are read");
    mr_session_free(session);
    mr_graph_free(g);
}
