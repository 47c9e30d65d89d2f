/* Export of one scope, of fewer savers and of fewer attrs in a MetaGraphDef, and the import of such files. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <string.h>

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

/* x and "ab/v" are outside of the scope "a"; "a/y" reads x, and "a/q" runs after it. */
static mr_graph *build(void)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 3), .name = "x");
    (void)mr_get_variable(g, "ab/v", MR_SCALAR, .initializer = {.kind = MR_INIT_ONES});
    mr_graph_push_variable_scope(g, "a");
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(3, 2), .initializer = {.kind = MR_INIT_ONES});
    mr_output y = mr_mat_mul(g, x, w.value, .name = "y");
    mr_graph_push_control_dependencies(g, &x.node, 1);
    mr_output q = mr_identity(g, y, .name = "q");
    mr_graph_pop_control_dependencies(g);
    mr_graph_pop_variable_scope(g);
    mr_graph_add_to_collection(g, "mine", x);
    mr_graph_add_to_collection(g, "mine", q);
    return g;
}

static void run_scope(mr_graph *g, mr_output x, const char *result)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor value = {0};
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(
        mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(mr_graph_find_output(g, result)), &value, nullptr, 0, &error));
    CHECK(mr_tensor_floats(&value)[1] == 6 && x.node != nullptr);
    mr_tensor_deinit(&value);
    mr_session_free(session);
}

TEST(one_scope_is_exported_and_imported)
{
    mr_error error = {0};
    mr_graph *g = build();
    for (int i = 0; i < 2; i++) {
        mr_tensor meta = exported(g, MR_OPTIONS(mr_meta_export_options, .export_scope = i == 0 ? "a" : "a/"));
        mr_graph *copy = mr_graph_new();
        mr_output x = mr_constant_floats(copy, MR_SHAPE(1, 3), (float[]){1, 2, 3}, "given");
        CHECK_STATUS(import(copy, &meta, nullptr, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "input $unbound_inputs_x must be mapped");
        const mr_import_mapping map[] = {{"$unbound_inputs_x", x}, {"^$unbound_inputs_x", x}};
        const mr_meta_import_options options = {
            .size = sizeof options, .prefix = i == 1 ? "again" : nullptr, .input_map = map, .input_map_count = 2};
        CHECK_OK(import(copy, &meta, &options, &error));
        CHECK_EQ(mr_graph_variable_count(copy, MR_GLOBAL_VARIABLES), 1);
        CHECK_STR(mr_node_name(mr_graph_variable(copy, MR_GLOBAL_VARIABLES, 0).ref.node), i == 1 ? "again/w" : "w");
        CHECK_EQ(mr_graph_collection_count(copy, "mine"), 1);
        CHECK_STR(mr_node_name(mr_graph_collection_item(copy, "mine", 0).node), i == 1 ? "again/q" : "q");
        CHECK(mr_graph_find(copy, "v") == nullptr && mr_graph_find(copy, "ab/v") == nullptr);
        run_scope(copy, x, i == 1 ? "again/q" : "q");
        mr_graph_free(copy);
        mr_tensor_deinit(&meta);
    }
    mr_graph_free(g);
}

TEST(scopes_that_do_not_exist_are_refused)
{
    mr_error error = {0};
    mr_tensor meta = {0};
    mr_graph *g = build();
    CHECK_STATUS(
        mr_graph_export_meta_with(g, MR_OPTIONS(mr_meta_export_options, .export_scope = "none"), &meta, &error),
        MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "no node in the scope none");
    CHECK_STATUS(mr_graph_export_meta_with(g, MR_OPTIONS(mr_meta_export_options, .export_scope = ""), &meta, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_graph_export_meta_with(g, MR_OPTIONS(mr_meta_export_options, .export_scope = "///"), &meta, &error),
                 MR_INVALID_ARGUMENT);
    CHECK(meta.data == nullptr);
    mr_graph_free(g);
}

/* A loop in a scope runs, and has a gradient, after it was exported alone. */
TEST(a_scope_with_a_loop_has_gradients)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new(), *copy = mr_graph_new();
    mr_graph_push_scope(g, "outer");
    mr_output x = mr_constant_floats(g, MR_SCALAR, (float[]){3}, "x");
    mr_output start[] = {mr_constant_int32(g, 0), x}, now[2], end[2];
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS_OF(start, 2), now);
    mr_while_loop_body(loop, mr_less(g, now[0], mr_constant_int32(g, 2)), now);
    mr_output next[] = {mr_add_v2(g, now[0], mr_constant_int32(g, 1)), mr_square(g, now[1])};
    mr_while_loop_end(loop, MR_OUTPUTS_OF(next, 2), end);
    (void)mr_identity(g, end[1], .name = "y");
    mr_graph_pop_scope(g);
    CHECK_OK(mr_graph_status(g, &error));
    mr_tensor meta = exported(g, MR_OPTIONS(mr_meta_export_options, .export_scope = "outer")), value = {0};
    CHECK_OK(import(copy, &meta, nullptr, &error));
    mr_output gradient, from = mr_graph_find_output(copy, "x"), to = mr_graph_find_output(copy, "y");
    mr_gradients(copy, MR_OUTPUTS(to), MR_OUTPUTS(from), nullptr, &gradient);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(copy, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(gradient), &value, nullptr, 0, &error));
    CHECK_NEAR((double)mr_tensor_floats(&value)[0], 108, 1e-3); /* 4 x^3 */
    mr_tensor_deinit(&value);
    mr_tensor_deinit(&meta);
    mr_session_free(session);
    mr_graph_free(copy);
    mr_graph_free(g);
}

static int32_t count_nodes(const mr_tensor *meta, const char *part)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    int32_t count = 0;
    CHECK_OK(import(g, meta, nullptr, &error));
    for (int32_t i = 0; i < mr_graph_node_count(g); i++)
        count += strstr(mr_node_name(mr_graph_node(g, i)), part) != nullptr;
    mr_graph_free(g);
    return count;
}

TEST(extraneous_savers_are_cleared)
{
    mr_graph *g = build();
    mr_saver_free(mr_saver_new(g, .name = "first"));
    mr_saver_free(mr_saver_new(g, .name = "second")); /* the one of the SaverDef */
    mr_tensor all = exported(g, nullptr);
    mr_tensor less = exported(g, MR_OPTIONS(mr_meta_export_options, .clear_extraneous_savers = true));
    CHECK(count_nodes(&all, "first/") > 5);
    CHECK_EQ(count_nodes(&less, "first/"), 0);
    CHECK_EQ(count_nodes(&less, "second/"), count_nodes(&all, "second/"));
    mr_tensor_deinit(&all);
    mr_tensor_deinit(&less);
    mr_graph_free(g);
}

TEST(default_attrs_are_stripped)
{
    mr_error error = {0};
    mr_graph *g = build(), *copy = mr_graph_new();
    mr_tensor all = exported(g, nullptr);
    mr_tensor less = exported(g, MR_OPTIONS(mr_meta_export_options, .strip_default_attrs = true));
    const mr_string large = mr_tensor_strings(&all)[0], small = mr_tensor_strings(&less)[0];
    CHECK(small.size_bytes < large.size_bytes);
    CHECK_OK(import(copy, &less, nullptr, &error));
    mr_tensor again = exported(copy, nullptr);
    CHECK(mr_string_equal(mr_tensor_strings(&again)[0], large)); /* the defaults are filled in again */
    mr_tensor_deinit(&again);
    mr_tensor_deinit(&all);
    mr_tensor_deinit(&less);
    mr_graph_free(copy);
    mr_graph_free(g);
}

TEST(graphs_are_written_with_options_as_text)
{
    mr_error error = {0};
    mr_tensor text = {0};
    mr_graph *g = build();
    const mr_meta_export_options options = {.size = sizeof options, .export_scope = "a"};
    CHECK_OK(mr_graph_write_file_with(g, test_path("a.meta"), MR_GRAPH_FILE_META_TEXT, &options, &error));
    CHECK_OK(mr_gfile_read(test_path("a.meta"), &text, &error));
    const mr_string bytes = mr_tensor_strings(&text)[0];
    CHECK(memmem(bytes.data, bytes.size_bytes, "\"$unbound_inputs_x\"", 19) != nullptr);
    CHECK(memmem(bytes.data, bytes.size_bytes, "ab/v", 4) == nullptr);
    mr_tensor_deinit(&text);
    CHECK_STATUS(mr_graph_write_file_with(g, test_path("b"), MR_GRAPH_FILE_TEXT, &options, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "no effect on a GraphDef");
    CHECK_OK(mr_graph_write_file_with(g, test_path("b"), MR_GRAPH_FILE_TEXT, nullptr, &error));
    mr_graph_free(g);
}
