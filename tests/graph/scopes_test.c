/* Device functions, colocation, overridden gradients, finalized graphs, and imports with mapped inputs. */
#include "tests/test.h"

#include <millrace/millrace.h>

static const char *device_of(mr_output output)
{
    return mr_node_device(output.node);
}

/* ---- Device functions ---- */

typedef struct chooser {
    const char *op, *device;
    int calls;
} chooser;

static const char *choose(void *context, const mr_node *node)
{
    chooser *c = context;
    c->calls++;
    return strcmp(mr_node_op(node), c->op) == 0 ? c->device : nullptr;
}

TEST(device_functions_choose)
{
    mr_graph *g = mr_graph_new();
    chooser squares = {"Square", "/device:CPU:3"};
    mr_output x = mr_placeholder(g, MR_FLOAT);
    mr_graph_push_device(g, "/job:a");
    mr_graph_push_device_function(g, choose, &squares);
    mr_output a = mr_square(g, x), b = mr_neg(g, x);
    CHECK_STR(device_of(a), "/job:a/device:CPU:3");
    CHECK_STR(device_of(b), "/job:a");
    mr_graph_push_device(g, "/device:GPU:1"); /* the function replaces it */
    CHECK_STR(device_of(mr_square(g, x)), "/job:a/device:CPU:3");
    CHECK_STR(device_of(mr_neg(g, x)), "/job:a/device:GPU:1");
    mr_graph_push_device(g, nullptr); /* nothing outside counts */
    CHECK_STR(device_of(mr_square(g, x)), "");
    mr_graph_push_device(g, "/cpu:2");
    CHECK_STR(device_of(mr_square(g, x)), "/device:CPU:2");
    for (int i = 0; i < 5; i++) mr_graph_pop_device(g);
    CHECK_EQ(squares.calls, 4);
    CHECK_STR(device_of(mr_square(g, x)), "");
    mr_error error = {0};
    CHECK_OK(mr_graph_status(g, &error));
    chooser bad = {"Square", "/nonsense:x:y"};
    mr_graph_push_device_function(g, choose, &bad);
    mr_square(g, x);
    CHECK_EQ(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "nonsense");
    mr_graph_pop_device(g);
    mr_graph_free(g);
}

/* ---- Colocation ---- */

static const char *groups_of(mr_output output)
{
    static char text[256];
    mr_error error = {0};
    mr_tensor bytes = {0};
    *text = '\0';
    CHECK_OK(mr_graph_export(mr_node_graph(output.node), &bytes, &error));
    /* The groups as they are in the GraphDef, of the last node: "loc:@" occurs nowhere else. */
    const mr_string all = mr_tensor_strings(&bytes)[0];
    const char *at = nullptr;
    for (size_t i = 0; i + 5 < all.size_bytes; i++) {
        if (memcmp(all.data + i, mr_node_name(output.node), strlen(mr_node_name(output.node)) + 0) == 0 && i > 1 &&
            all.data[i - 1] == (char)strlen(mr_node_name(output.node)) && all.data[i - 2] == 10)
            at = all.data + i;
        if (at != nullptr && memcmp(all.data + i, "loc:@", 5) == 0) {
            const size_t size = (unsigned char)all.data[i - 1], used = strlen(text);
            snprintf(text + used, sizeof text - used, "%s%.*s", used > 0 ? " " : "", (int)size - 5, all.data + i + 5);
        }
    }
    mr_tensor_deinit(&bytes);
    return text;
}

TEST(colocated_nodes_have_the_group_and_the_device)
{
    mr_graph *g = mr_graph_new();
    mr_error error = {0};
    mr_output x = mr_placeholder(g, MR_FLOAT, .name = "x");
    mr_graph_push_device(g, "/device:CPU:1");
    mr_output a = mr_square(g, x, .name = "a");
    mr_graph_pop_device(g);
    mr_graph_push_device(g, "/device:CPU:7");
    mr_graph_push_colocation(g, a.node);
    mr_output b = mr_square(g, x, .name = "b");
    CHECK_STR(device_of(b), "/device:CPU:1");
    CHECK_STR(groups_of(b), "a");
    mr_graph_push_colocation(g, x.node); /* no device: that of the next one */
    mr_output c = mr_square(g, x, .name = "c");
    CHECK_STR(device_of(c), "/device:CPU:1");
    CHECK_STR(groups_of(c), "a x");
    mr_graph_push_colocation(g, nullptr);
    mr_output d = mr_square(g, x, .name = "d");
    CHECK_STR(device_of(d), "");
    CHECK_STR(groups_of(d), "");
    mr_graph_pop_colocation(g);
    mr_graph_pop_colocation(g);
    mr_graph_push_colocation(g, b.node); /* whose group is that of a */
    mr_output e = mr_square(g, x, .name = "e");
    CHECK_STR(groups_of(e), "a");
    mr_graph_pop_colocation(g);
    mr_graph_pop_colocation(g);
    CHECK_STR(device_of(mr_square(g, x)), "/device:CPU:7");
    mr_graph_pop_device(g);
    CHECK_OK(mr_graph_status(g, &error));
    mr_graph *other = mr_graph_new();
    mr_graph_push_colocation(other, a.node);
    CHECK_EQ(mr_graph_status(other, &error), MR_INVALID_ARGUMENT);
    mr_graph_pop_colocation(other);
    mr_graph_free(other);
    mr_graph_free(g);
}

/* ---- Gradients ---- */

/* Passes 10 times the gradient. */
static void tenfold(void *context, mr_graph *graph, mr_node *node, const mr_output *grad_outputs,
                    mr_output *grad_inputs)
{
    ++*(int *)context;
    CHECK_EQ(mr_node_input_count(node), 1);
    grad_inputs[0] = mr_mul(graph, grad_outputs[0], mr_constant_float(graph, 10));
}

static float slope(mr_graph *g, mr_output y, mr_output x, float at)
{
    mr_error error = {0};
    mr_output gradient = {0};
    mr_tensor value = {0}, result = {0};
    mr_session *session = nullptr;
    mr_gradients(g, MR_OUTPUTS(y), MR_OUTPUTS(x), nullptr, &gradient);
    CHECK_OK(mr_tensor_init_float(&value, at, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, value}), MR_OUTPUTS(gradient), &result, nullptr, 0, &error));
    float number = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&value);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    return number;
}

TEST(overridden_gradients_are_used)
{
    mr_graph *g = mr_graph_new();
    int calls = 0;
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_graph_register_gradient(g, "Tenfold", tenfold, &calls);
    mr_graph_push_gradient_override(g, "Square", "Tenfold");
    mr_output y = mr_square(g, mr_neg(g, x));
    mr_graph_push_gradient_override(g, "Square", "Identity"); /* that of another operator */
    mr_output z = mr_square(g, x);
    mr_graph_pop_gradient_override(g);
    mr_graph_pop_gradient_override(g);
    mr_output plain = mr_square(g, x);
    CHECK(slope(g, y, x, 3) == -10);
    CHECK_EQ(calls, 1);
    CHECK(slope(g, z, x, 3) == 1);
    CHECK(slope(g, plain, x, 3) == 6);
    /* An operator without a gradient of its own. */
    mr_graph_register_gradient(g, "Floor", tenfold, &calls);
    mr_error error = {0};
    if (mr_graph_status(g, &error) == MR_OK) CHECK(slope(g, mr_floor(g, x), x, 3) >= 0);
    mr_graph_free(g);
}

static void check_refused(const char *op, const char *gradient, const char *message)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR), slope_of_x = {0};
    mr_graph_push_gradient_override(g, op, gradient);
    mr_output y = mr_square(g, x);
    mr_graph_pop_gradient_override(g);
    mr_gradients(g, MR_OUTPUTS(y), MR_OUTPUTS(x), nullptr, &slope_of_x);
    CHECK(mr_graph_status(g, &error) != MR_OK);
    CHECK_STR(error.message, message);
    mr_graph_free(g);
}

TEST(gradients_that_do_not_fit_are_refused)
{
    check_refused("Square", "Nowhere", "gradients: the gradient Nowhere of node Square (Square) is not registered");
    check_refused(
        "Square", "MatMul",
        "gradients: the gradient MatMul of node Square (Square) needs an operator with other inputs or attrs");
    check_refused("Square", "LeakyRelu",
                  "gradients: the gradient LeakyRelu of node Square (Square) needs an operator with other inputs or "
                  "attrs");
    check_refused("Square", "", "mr_graph_push_gradient_override: the gradient is missing");
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_register_gradient(g, "Mine", tenfold, nullptr);
    CHECK_OK(mr_graph_status(g, &error));
    mr_graph_register_gradient(g, "Mine", tenfold, nullptr);
    CHECK_EQ(mr_graph_status(g, &error), MR_ALREADY_EXISTS);
    mr_graph_free(g);
    g = mr_graph_new();
    mr_graph_register_gradient(g, "Square", tenfold, nullptr);
    CHECK_EQ(mr_graph_status(g, &error), MR_ALREADY_EXISTS);
    mr_graph_free(g);
}

static void returns_integers(void *, mr_graph *graph, mr_node *, const mr_output *, mr_output *grad_inputs)
{
    grad_inputs[0] = mr_constant_int32(graph, 1);
}

static void returns_nothing_of_the_graph(void *context, mr_graph *, mr_node *, const mr_output *,
                                         mr_output *grad_inputs)
{
    grad_inputs[0] = *(mr_output *)context;
}

TEST(what_registered_gradients_return_is_checked)
{
    mr_graph *other = mr_graph_new();
    mr_output foreign = mr_constant_float(other, 1);
    for (int i = 0; i < 2; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_graph_register_gradient(g, "Odd", i == 0 ? returns_integers : returns_nothing_of_the_graph, &foreign);
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR), slope_of_x = {0};
        mr_graph_push_gradient_override(g, "Square", "Odd");
        mr_output y = mr_square(g, x);
        mr_graph_pop_gradient_override(g);
        mr_gradients(g, MR_OUTPUTS(y), MR_OUTPUTS(x), nullptr, &slope_of_x);
        CHECK_EQ(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "the gradient Odd of node Square (Square) returned for input 0");
        mr_graph_free(g);
    }
    mr_graph_free(other);
}

static const char *builds(void *, const mr_node *node)
{
    mr_constant_float(mr_node_graph(node), 2);
    return "/cpu:0";
}

TEST(device_functions_cannot_add_nodes)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_push_device_function(g, builds, nullptr);
    mr_constant_float(g, 1);
    CHECK_EQ(mr_graph_status(g, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "a device function cannot add nodes");
    mr_graph_pop_device(g);
    mr_graph_free(g);
}

TEST(what_is_inside_ends_first)
{
    for (int i = 0; i < 3; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output yes = mr_constant_bool(g, true), one = mr_constant_float(g, 1), value[1] = {0};
        if (i == 0) {
            mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(one), value);
            mr_while_loop_body(loop, mr_less(g, value[0], mr_constant_float(g, 3)), value);
            (void)mr_cond_begin(g, yes);
            mr_output next = mr_add_v2(g, value[0], one);
            mr_while_loop_end(loop, MR_OUTPUTS(next), value);
        } else {
            mr_cond *outer = mr_cond_begin(g, yes);
            if (i == 1) (void)mr_cond_begin(g, yes);
            mr_cond_else(outer, MR_OUTPUTS(one));
            if (i == 2) (void)mr_cond_begin(g, yes);
            mr_cond_end(outer, MR_OUTPUTS(one), value);
        }
        CHECK_EQ(mr_graph_status(g, &error), MR_FAILED_PRECONDITION);
        CHECK_CONTAINS(error.message, "a conditional, a loop or a scope inside has not ended");
        mr_graph_free(g);
    }
}

/* ---- Finalized graphs ---- */

TEST(finalized_graphs_do_not_change)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 2);
    mr_output y = mr_square(g, x);
    mr_tensor bytes = {0}, result = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_graph_export(g, &bytes, &error));
    CHECK(!mr_graph_is_finalized(g));
    mr_graph_finalize(g);
    CHECK(mr_graph_is_finalized(g));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(y), &result, nullptr, 0, &error));
    mr_tensor_deinit(&result);
    const mr_string text = mr_tensor_strings(&bytes)[0];
    CHECK_EQ(mr_graph_import(g, text.data, text.size_bytes, "again", &error), MR_FAILED_PRECONDITION);
    CHECK_OK(mr_graph_status(g, &error));
    mr_square(g, x, .name = "late");
    CHECK_EQ(mr_graph_status(g, &error), MR_FAILED_PRECONDITION);
    CHECK_STR(error.message, "the graph is finalized: late cannot be added");
    mr_session_free(session);
    mr_tensor_deinit(&bytes);
    mr_graph_free(g);
}

TEST(finalized_graphs_take_no_meta_graphs_and_no_collection_items)
{
    mr_error error = {0};
    for (int kind = 0; kind < 3; kind++) {
        mr_graph *g = mr_graph_new();
        mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2));
        mr_tensor bytes = {0};
        CHECK_OK(mr_graph_export_meta(g, &bytes, &error));
        const int32_t count = mr_graph_node_count(g);
        const mr_string meta = mr_tensor_strings(&bytes)[0];
        mr_graph_finalize(g);
        CHECK_STATUS(mr_graph_import_meta_with(g, meta.data, meta.size_bytes,
                                               MR_OPTIONS(mr_meta_import_options, .prefix = "again"), &error),
                     MR_FAILED_PRECONDITION);
        CHECK_EQ(mr_graph_node_count(g), count);
        CHECK_OK(mr_graph_status(g, &error));
        if (kind == 0) mr_graph_add_to_collection(g, "mine", w.value);
        if (kind == 1) mr_graph_add_variable_to_collection(g, MR_MODEL_VARIABLES, w);
        if (kind == 2) mr_graph_add_variable_to_collection(g, "mine", w);
        CHECK_STATUS(mr_graph_status(g, &error), MR_FAILED_PRECONDITION);
        CHECK_CONTAINS(error.message, "the graph is finalized");
        CHECK_EQ(mr_graph_collection_count(g, "mine") + mr_graph_collection_count(g, MR_MODEL_VARIABLES), 0);
        mr_tensor_deinit(&bytes);
        mr_graph_free(g);
    }
}

/* ---- Imports ---- */

TEST(imports_map_inputs_and_return_elements)
{
    mr_error error = {0};
    mr_graph *inner = mr_graph_new();
    mr_output x = mr_placeholder(inner, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_node *noop = mr_no_op(inner, .name = "first");
    mr_graph_push_control_dependencies(inner, &noop, 1);
    mr_output y = mr_square(inner, x, .name = "y");
    mr_graph_pop_control_dependencies(inner);
    mr_add_v2(inner, y, x, .name = "z");
    mr_tensor bytes = {0};
    CHECK_OK(mr_graph_export(inner, &bytes, &error));
    const mr_string text = mr_tensor_strings(&bytes)[0];

    mr_graph *g = mr_graph_new();
    mr_output five = mr_constant_float(g, 5), found[3];
    mr_node *barrier = mr_no_op(g, .name = "barrier");
    const mr_import_mapping map[] = {{"x", five}, {"^first", {barrier, 0}}};
    CHECK_OK(
        mr_graph_import_with(g, text.data, text.size_bytes,
                             MR_OPTIONS(mr_graph_import_options, .prefix = "in", .input_map = map, .input_map_count = 2,
                                        .return_elements = MR_NAMES("z:0", "y", "x"), .returned = found),
                             &error));
    CHECK_STR(mr_node_name(found[0].node), "in/z");
    CHECK_STR(mr_node_name(found[1].node), "in/y");
    CHECK(mr_node_control(found[1].node, 0) == barrier);
    CHECK(mr_node_input(found[1].node, 0).node == five.node);
    mr_session *session = nullptr;
    mr_tensor result = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(found[0]), &result, nullptr, 0, &error));
    CHECK(mr_tensor_floats(&result)[0] == 30);
    mr_tensor_deinit(&result);
    mr_session_free(session);

    const mr_import_mapping unused = {"x:1", five}, foreign = {"x", x}, empty = {"x", {0}}, nameless = {nullptr, five};
    const mr_import_mapping wrong = {"x", mr_constant_int32(g, 1)};
#define REFUSE(text_, ...)                                                                                             \
    do {                                                                                                               \
        CHECK_EQ(mr_graph_import_with(g, text.data, text.size_bytes,                                                   \
                                      MR_OPTIONS(mr_graph_import_options, .prefix = "no", __VA_ARGS__), &error),       \
                 MR_INVALID_ARGUMENT);                                                                                 \
        CHECK_CONTAINS(error.message, text_);                                                                          \
        CHECK(mr_graph_find(g, "no/z") == nullptr);                                                                    \
    } while (0)
    REFUSE("mr_graph_import_with: input_map is not a list", .input_map_count = 1);
    REFUSE("\"x:1\" is mapped, but no node of the graph has this input", .input_map = &unused, .input_map_count = 1);
    REFUSE("the output for x belongs to another graph", .input_map = &foreign, .input_map_count = 1);
    REFUSE("mapping 0 has no output", .input_map = &empty, .input_map_count = 1);
    REFUSE("mapping 0 has no name", .input_map = &nameless, .input_map_count = 1);
    REFUSE("node y (Square)", .input_map = &wrong, .input_map_count = 1);
    REFUSE("the graph has no \"q\" to be returned", .return_elements = MR_NAMES("q"), .returned = found);
    REFUSE("the graph has no \"z:1\" to be returned", .return_elements = MR_NAMES("z:1"), .returned = found);
    REFUSE("the graph has no \"z:x\" to be returned", .return_elements = MR_NAMES("z:x"), .returned = found);
    REFUSE("returned is null", .return_elements = MR_NAMES("z"));
    mr_tensor_deinit(&bytes);
    mr_graph_free(g);
    mr_graph_free(inner);
}

/* ---- Checks of numbers ---- */

TEST(check_numerics_names_the_first_bad_number)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2), .name = "x");
    mr_output root = mr_sqrt(g, x, .name = "root");
    mr_output sum = mr_sum(g, root, mr_constant_ints(g, MR_INTS(0)), .name = "sum");
    mr_node *checks = mr_add_check_numerics_ops(g);
    CHECK_OK(mr_graph_status(g, &error));
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    const float values[][2] = {{1, 4}, {1, -4}, {INFINITY, 1}};
    for (int i = 0; i < 3; i++) {
        mr_tensor value = {0}, result = {0};
        CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(2), values[i], &error));
        mr_status status = mr_session_run(session, MR_FEEDS({x, value}), MR_OUTPUTS(sum), &result, &checks, 1, &error);
        CHECK_EQ(status, i == 0 ? MR_OK : MR_INVALID_ARGUMENT);
        if (i == 1) CHECK_CONTAINS(error.message, "root:0 : Tensor had NaN values");
        if (i == 2) CHECK_CONTAINS(error.message, "x:0 : Tensor had Inf values");
        mr_tensor_deinit(&value);
        mr_tensor_deinit(&result);
    }
    mr_session_free(session);
    mr_graph_free(g);
    g = mr_graph_new();
    CHECK(mr_add_check_numerics_ops(g) != nullptr); /* of nothing */
    CHECK_OK(mr_graph_status(g, &error));
    mr_graph_free(g);
}
