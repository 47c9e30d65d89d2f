/* Options of importing and exporting MetaGraphDefs: a prefix, no devices, some collections. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <millrace/ops.h>

static mr_graph *build(void)
{
    mr_graph *g = mr_graph_new();
    mr_graph_push_device(g, "/cpu:0");
    mr_variable w =
        mr_get_variable(g, "w", MR_SHAPE(4, 2), .partitioner = {.kind = MR_PARTITION_FIXED_SIZE, .parts_max = 2});
    mr_output loss = mr_sum(g, w.value, mr_constant_ints(g, MR_INTS(0, 1)), .name = "loss");
    mr_graph_pop_device(g);
    mr_graph_add_to_collection(g, MR_LOSSES, loss);
    mr_saver_free(mr_saver_new(g));
    return g;
}

static mr_tensor exported(const mr_graph *g, const mr_meta_export_options *options)
{
    mr_error error = {0};
    mr_tensor meta = {0};
    CHECK_OK(mr_graph_export_meta_with(g, options, &meta, &error));
    return meta;
}

static mr_status import(mr_graph *g, const mr_tensor *meta, const mr_meta_import_options *options, mr_error *error)
{
    const mr_string bytes = mr_tensor_strings(meta)[0];
    return mr_graph_import_meta_with(g, bytes.data, bytes.size_bytes, options, error);
}

TEST(meta_import_under_a_prefix_restores)
{
    mr_error error = {0};
    mr_graph *g = build(), *copy = mr_graph_new();
    mr_tensor meta = exported(g, nullptr), path = {0}, value = {0};
    mr_session *session = nullptr;
    mr_saver *saver = mr_saver_new(g);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_saver_save(saver, session, test_path("m"), -1, &error));
    CHECK_OK(
        mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(mr_graph_find_output(g, "loss")), &value, nullptr, 0, &error));
    const double expected = (double)mr_tensor_floats(&value)[0];
    mr_tensor_deinit(&value);
    mr_saver_free(saver);
    mr_session_free(session);
    /* Twice: the second prefix is made unique. */
    const mr_meta_import_options *options = MR_OPTIONS(mr_meta_import_options, .prefix = "a/b", .clear_devices = true);
    CHECK_OK(import(copy, &meta, options, &error));
    CHECK_OK(import(copy, &meta, options, &error));
    CHECK_EQ(mr_graph_variable_count(copy, MR_GLOBAL_VARIABLES), 4);
    CHECK_STR(mr_node_name(mr_graph_variable(copy, MR_GLOBAL_VARIABLES, 0).ref.node), "a/b/w/part_0");
    CHECK_STR(mr_node_name(mr_graph_variable(copy, MR_GLOBAL_VARIABLES, 3).ref.node), "a/b_1/w/part_1");
    CHECK_STR(mr_node_name(mr_graph_collection_item(copy, MR_LOSSES, 1).node), "a/b_1/loss");
    for (int32_t i = 0; i < mr_graph_node_count(copy); i++) CHECK_STR(mr_node_device(mr_graph_node(copy, i)), "");
    CHECK_OK(mr_session_new(copy, nullptr, &session, &error));
    CHECK_OK(mr_tensor_init_string(&path, mr_string_from(test_path("m")), &error));
    mr_node *restore = mr_graph_find(copy, "a/b_1/save/restore_all");
    CHECK_OK(mr_session_run(session, MR_FEEDS({mr_graph_find_output(copy, "a/b_1/save/Const"), path}), (mr_outputs){0},
                            nullptr, &restore, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(mr_graph_find_output(copy, "a/b_1/loss")), &value, nullptr,
                            0, &error));
    CHECK_NEAR(mr_tensor_floats(&value)[0], expected, 0);
    mr_tensor_deinit(&value);
    mr_tensor_deinit(&path);
    mr_tensor_deinit(&meta);
    mr_session_free(session);
    mr_graph_free(copy);
    mr_graph_free(g);
}

/* Two imports of a loop have frames of their own, so that one run can run both; and gradients. */
TEST(meta_import_of_loops_under_prefixes)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new(), *copy = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x"), v[2], last[2];
    mr_while_loop *loop =
        mr_while_loop_begin(g, MR_OUTPUTS(mr_constant_int32(g, 0), mr_constant_float(g, 1)), v, .name = "loop");
    mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_int32(g, 3)), v);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), mr_mul(g, v[1], x)), last);
    (void)mr_identity(g, last[1], .name = "cube");
    mr_tensor meta = exported(g, nullptr), fed[2] = {0}, values[4] = {0};
    CHECK_OK(import(copy, &meta, MR_OPTIONS(mr_meta_import_options, .prefix = "a"), &error));
    CHECK_OK(import(copy, &meta, MR_OPTIONS(mr_meta_import_options, .prefix = "b"), &error));
    const mr_output xs[] = {mr_graph_find_output(copy, "a/x"), mr_graph_find_output(copy, "b/x")};
    const mr_output cubes[] = {mr_graph_find_output(copy, "a/cube"), mr_graph_find_output(copy, "b/cube")};
    mr_output slopes[2] = {0};
    for (int i = 0; i < 2; i++) {
        mr_gradients(copy, MR_OUTPUTS(cubes[i]), MR_OUTPUTS(xs[i]), nullptr, &slopes[i]);
        CHECK_OK(mr_tensor_init_copy(&fed[i], MR_FLOAT, MR_SCALAR, &(float){2 + (float)i}, &error));
    }
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(copy, nullptr, &session, &error));
    for (int run = 0; run < 20; run++) {
        CHECK_OK(mr_session_run(session, MR_FEEDS({xs[0], fed[0]}, {xs[1], fed[1]}),
                                MR_OUTPUTS(cubes[0], cubes[1], slopes[0], slopes[1]), values, nullptr, 0, &error));
        const double expected[] = {8, 27, 12, 27};
        for (int i = 0; i < 4; i++) {
            CHECK_NEAR(mr_tensor_floats(&values[i])[0], expected[i], 0);
            mr_tensor_deinit(&values[i]);
        }
    }
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&fed[i]);
    mr_tensor_deinit(&meta);
    mr_session_free(session);
    mr_graph_free(copy);
    mr_graph_free(g);
}

TEST(meta_export_leaves_out_devices_and_collections)
{
    mr_error error = {0};
    mr_graph *g = build(), *copy = mr_graph_new();
    mr_tensor meta = exported(
        g, MR_OPTIONS(mr_meta_export_options, .clear_devices = true, .collections = MR_NAMES(MR_LOSSES, "none")));
    CHECK_STR(mr_node_device(mr_graph_find(g, "loss")), "/device:CPU:0"); /* the graph keeps them */
    CHECK_OK(import(copy, &meta, nullptr, &error));
    CHECK_STR(mr_node_device(mr_graph_find(copy, "loss")), "");
    CHECK_EQ(mr_graph_collection_key_count(copy), 1);
    CHECK_STR(mr_graph_collection_key(copy, 0), MR_LOSSES);
    mr_tensor_deinit(&meta);
    mr_graph_free(copy);
    mr_graph_free(g);
}

TEST(meta_options_that_are_wrong_are_named)
{
    mr_error error = {0};
    mr_graph *g = build(), *copy = mr_graph_new();
    mr_tensor meta = exported(g, nullptr), none = {0};
    CHECK_STATUS(import(copy, &meta, MR_OPTIONS(mr_meta_import_options, .prefix = "not valid!"), &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "\"not valid!\" is not a valid prefix");
    CHECK_EQ(mr_graph_node_count(copy), 0);
    CHECK_OK(import(copy, &meta, MR_OPTIONS(mr_meta_import_options, .prefix = ""), &error));
    CHECK(mr_graph_find(copy, "loss") != nullptr);
    CHECK_STATUS(
        mr_graph_export_meta_with(g, MR_OPTIONS(mr_meta_export_options, .collections = {nullptr, 2}), &none, &error),
        MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "collections is not a list");
    mr_tensor_deinit(&meta);
    mr_graph_free(copy);
    mr_graph_free(g);
}

/* Every damaged byte of a file is refused, or imported; nothing is left after an error. */
TEST(meta_import_under_a_prefix_survives_damage)
{
    mr_error error = {0};
    mr_graph *g = build();
    mr_tensor meta = exported(g, nullptr);
    const mr_string bytes = mr_tensor_strings(&meta)[0];
    char *copy = malloc(bytes.size_bytes);
    CHECK(copy != nullptr);
    uint64_t state = test_seed();
    for (int i = 0; i < 400; i++) {
        memcpy(copy, bytes.data, bytes.size_bytes);
        state = state * 6364136223846793005u + 1442695040888963407u;
        copy[(state >> 33) % bytes.size_bytes] ^= (char)(1 << (state >> 61));
        mr_graph *target = mr_graph_new();
        const mr_status status = mr_graph_import_meta_with(target, copy, bytes.size_bytes,
                                                           MR_OPTIONS(mr_meta_import_options, .prefix = "in"), &error);
        if (status != MR_OK) CHECK_EQ(mr_graph_node_count(target), 0);
        mr_graph_free(target);
    }
    free(copy);
    mr_tensor_deinit(&meta);
    mr_graph_free(g);
}
