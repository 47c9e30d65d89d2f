/* Options of mr_optimizer_compute_gradients: gates, aggregation, variables, the gradient of the loss; and mistakes. */
#include "graph/ir/graph.h"
#include "tests/test.h"
#include <millrace/millrace.h>

#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, IDS = 3, USES_MAX = 6 };

/* The loss: w is used several times, with factors; rows of a table once, or twice. */
typedef struct model {
    mr_graph *graph;
    mr_variable w, table;
    mr_output loss;
    double factor;
    int uses;
    int32_t ids[IDS];
} model;

static model build(unsigned seed)
{
    model m = {.graph = mr_graph_new(), .uses = 1 + (int)(rand_r(&seed) % USES_MAX)};
    mr_graph *g = m.graph;
    m.w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
    m.table = mr_get_variable(g, "table", MR_SHAPE(ROWS, 2), .initializer = {.kind = MR_INIT_ONES},
                              .use_resource = seed % 2 == 0);
    mr_output sum = mr_constant_float(g, 0), axis = mr_constant_ints(g, MR_INTS(0));
    for (int i = 0; i < m.uses; i++) {
        const float factor = (float)(rand_r(&seed) % 7) - 3;
        m.factor += (double)factor;
        sum = mr_add_v2(g, sum, mr_mul(g, mr_sum(g, m.w.value, axis), mr_constant_float(g, factor)));
    }
    for (int i = 0; i < IDS; i++) m.ids[i] = (int32_t)(rand_r(&seed) % ROWS);
    mr_output ids = mr_constant_int32s(g, MR_SHAPE(IDS), m.ids, "ids");
    mr_output rows = mr_gather_v2(g, m.table.value, ids, mr_constant_int32(g, 0));
    m.loss = mr_add_v2(g, sum, mr_sum(g, rows, mr_constant_ints(g, MR_INTS(0, 1))), .name = "loss");
    return m;
}

static int count_nodes(const mr_graph *g, const char *op)
{
    int count = 0;
    for (int32_t i = 0; i < mr_graph_node_count(g); i++) count += strcmp(mr_node_op(mr_graph_node(g, i)), op) == 0;
    return count;
}

/* Scaled by the gradient of the loss. */
static void check_values(const model *m, mr_gradients_and_variables list, double scale)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor values[2] = {0};
    mr_node *init = mr_initialize_variables(m->graph, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_graph_status(m->graph, &error));
    CHECK_EQ(list.count, 2);
    CHECK_OK(mr_session_new(m->graph, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(list.items[0].gradient, list.items[1].gradient), values,
                            nullptr, 0, &error));
    for (int i = 0; i < 2; i++) CHECK_NEAR(mr_tensor_floats(&values[0])[i], m->factor * scale, 1e-5);
    double rows[ROWS] = {0};
    for (int i = 0; i < IDS; i++) rows[m->ids[i]] += scale;
    for (int i = 0; i < ROWS * 2; i++) CHECK_NEAR(mr_tensor_floats(&values[1])[i], rows[i / 2], 1e-5);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&values[i]);
    mr_session_free(session);
}

TEST(compute_gradients_has_the_same_values_with_each_gate_and_method)
{
    const mr_optimizer *descent = mr_gradient_descent(.learning_rate = 1);
    for (unsigned seed = 1; seed <= 45; seed++) {
        model m = build(seed);
        const mr_gate_gradients gate = (mr_gate_gradients)(seed % 3);
        const mr_aggregation_method method = (mr_aggregation_method)(seed / 3 % 3);
        mr_gradients_and_variables list = mr_optimizer_compute_gradients(
            m.graph, descent, m.loss, .gate_gradients = gate, .aggregation_method = method);
        const int sums = count_nodes(m.graph, "AddN");
        CHECK_EQ(sums, method == MR_AGGREGATION_ADD_N ? m.uses > 1 : m.uses - 1);
        mr_output values = {0}, indices = {0};
        CHECK(mr_gradient_rows(m.graph, list.items[1].gradient, &values, &indices));
        check_values(&m, list, 1);
        mr_graph_free(m.graph);
    }
}

TEST(compute_gradients_gates_the_graph)
{
    model m = build(3);
    mr_gradients_and_variables list = mr_optimizer_compute_gradients(m.graph, mr_gradient_descent(.learning_rate = 1),
                                                                     m.loss, .gate_gradients = MR_GATE_GRAPH);
    CHECK_STATUS(mr_graph_status(m.graph, nullptr), MR_OK);
    CHECK_STR(mr_node_name(list.items[0].gradient.node), "tuple/control_dependency");
    mr_graph_free(m.graph);
}

TEST(compute_gradients_takes_variables_and_the_gradient_of_the_loss)
{
    model m = build(5);
    const mr_optimizer *scaled =
        mr_loss_scale_optimizer(m.graph, mr_gradient_descent(.learning_rate = 1), .fixed_loss_scale = 16);
    mr_gradients_and_variables list =
        mr_optimizer_compute_gradients(m.graph, scaled, m.loss, .variables = MR_VARIABLES(m.w, m.table),
                                       .grad_loss = mr_constant_float(m.graph, 3), .gate_gradients = MR_GATE_OP);
    check_values(&m, list, 3);
    list = mr_optimizer_compute_gradients(m.graph, scaled, m.loss, .variables = MR_VARIABLES(m.table));
    CHECK_EQ(list.count, 1);
    CHECK(list.items[0].variable.ref.node == m.table.ref.node);
    mr_graph_free(m.graph);
}

#define CHECK_MISTAKE(text, ...)                                                                                       \
    do {                                                                                                               \
        mr_error error_ = {0};                                                                                         \
        model m = build(1);                                                                                            \
        mr_optimizer_compute_gradients(m.graph, mr_adam(), m.loss, __VA_ARGS__);                                       \
        CHECK_STATUS(mr_graph_status(m.graph, &error_), MR_INVALID_ARGUMENT);                                          \
        CHECK_CONTAINS(error_.message, text);                                                                          \
        mr_graph_free(m.graph);                                                                                        \
    } while (0)

TEST(compute_gradients_reports_mistakes)
{
    model other = build(2);
    CHECK_MISTAKE("unknown gate_gradients", .gate_gradients = (mr_gate_gradients)3);
    CHECK_MISTAKE("unknown aggregation_method", .aggregation_method = (mr_aggregation_method)7);
    CHECK_MISTAKE("grad_loss is no output of this graph", .grad_loss = other.loss);
    CHECK_MISTAKE("grad_loss is no output of this graph", .grad_loss = {m.loss.node, 1});
    CHECK_MISTAKE("is int32 [], but the loss loss is float []; the dtype must be the same",
                  .grad_loss = mr_constant_int32(m.graph, 2));
    CHECK_MISTAKE("is float [2], but the loss loss is float []",
                  .grad_loss = mr_constant_floats(m.graph, MR_SHAPE(2), (float[]){1, 2}, "two"));
    CHECK_MISTAKE("the variable w is in the list of variables twice, at 0 and 2",
                  .variables = MR_VARIABLES(m.w, m.table, m.w));
    CHECK_MISTAKE("the list of variables is not valid", .variables = {.count = -1});
    CHECK_MISTAKE("the list of variables is not valid", .variables = {.count = 1});
    CHECK_MISTAKE("variable 1 is not a variable of the graph", .variables = MR_VARIABLES(m.w, other.w));
    mr_optimizer_compute_gradients(other.graph, nullptr, other.loss);
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(other.graph, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the optimizer is null");
    mr_graph_free(other.graph);
}

/* The loss w * w is float [2], or of unknown shape. */
static mr_status minimize_with(bool is_known, mr_shape gradient, bool gradient_is_known, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
    mr_output loss = mr_mul(g, w.value, w.value);
    if (!is_known) loss = mr_reshape(g, loss, mr_placeholder(g, MR_INT32));
    mr_output grad_loss =
        gradient_is_known ? mr_placeholder(g, MR_FLOAT, .shape = gradient) : mr_placeholder(g, MR_FLOAT);
    (void)mr_minimize(g, mr_gradient_descent(.learning_rate = 1), loss, (mr_output){0}, .grad_loss = grad_loss);
    const mr_status status = mr_graph_status(g, error);
    mr_graph_free(g);
    return status;
}

TEST(compute_gradients_compares_known_shapes_of_the_loss_and_its_gradient)
{
    mr_error error = {0};
    CHECK_OK(minimize_with(true, MR_SHAPE(2), true, &error));
    CHECK_OK(minimize_with(true, MR_SHAPE(-1), true, &error));
    CHECK_OK(minimize_with(true, MR_SCALAR, false, &error));
    CHECK_OK(minimize_with(false, MR_SHAPE(2), true, &error));
    CHECK_OK(minimize_with(true, MR_SCALAR, true, &error));
    CHECK_OK(minimize_with(true, MR_SHAPE(1), true, &error));
    CHECK_STATUS(minimize_with(true, MR_SHAPE(3), true, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "compute_gradients: grad_loss ");
    const mr_shape others[] = {MR_SHAPE(1, 2), MR_SHAPE(-1, 2)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_STATUS(minimize_with(true, others[i], true, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "(Mul) has shape [");
        CHECK_CONTAINS(error.message, "but the input w/read has [2]");
    }
}

/* As TensorFlow: [1] for a sum. */
TEST(compute_gradients_takes_one_element_for_one_element)
{
    model m = build(5);
    const int32_t none = 0;
    mr_gradients_and_variables list = mr_compute_gradients(
        m.graph, mr_sum(m.graph, mr_identity(m.graph, m.loss), mr_constant_int32s(m.graph, MR_SHAPE(0), &none, "axes")),
        .grad_loss = mr_constant_floats(m.graph, MR_SHAPE(1), (float[]){3}, "three"));
    CHECK_STATUS(mr_graph_status(m.graph, nullptr), MR_OK);
    check_values(&m, list, 3);
    mr_graph_free(m.graph);
}

/* ---- mr_minimize ---- */

static void take_step(const model *m, mr_node *train, float *values)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor results[2] = {0};
    mr_node *init = mr_initialize_variables(m->graph, MR_GLOBAL_VARIABLES, nullptr);
    const mr_output refs[] = {m->w.ref, m->table.ref};
    CHECK_OK(mr_graph_status(m->graph, &error));
    CHECK_OK(mr_session_new(m->graph, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(mr_session_read_variable(session, refs[i], &results[i], &error));
        values[i] = mr_tensor_floats(&results[i])[(i == 1 ? m->ids[0] : 0) * 2];
        mr_tensor_deinit(&results[i]);
    }
    mr_session_free(session);
}

TEST(minimize_updates_only_the_variables_of_its_list)
{
    for (int which = 0; which < 3; which++) {
        float values[2];
        model m = build(5);
        int uses = 0;
        for (int i = 0; i < IDS; i++) uses += m.ids[i] == m.ids[0];
        const mr_variables list = which == 0 ? (mr_variables){0} : (mr_variables){which == 1 ? &m.w : &m.table, 1};
        mr_node *train = mr_minimize(m.graph, mr_gradient_descent(.learning_rate = 1), m.loss, (mr_output){0},
                                     .variables = list, .grad_loss = mr_constant_float(m.graph, 2));
        take_step(&m, train, values);
        CHECK_NEAR((double)values[0], which == 2 ? 1 : 1 - 2 * m.factor, 1e-5);
        CHECK_NEAR((double)values[1], which == 1 ? 1 : 1 - 2 * uses, 1e-5);
        mr_graph_free(m.graph);
    }
}

TEST(minimize_reports_a_loss_that_does_not_depend_on_the_list)
{
    mr_error error = {0};
    model m = build(3);
    mr_variable other = mr_get_variable(m.graph, "other", MR_SHAPE(2));
    (void)mr_minimize(m.graph, mr_adam(), m.loss, (mr_output){0}, .variables = MR_VARIABLES(other));
    CHECK_STATUS(mr_graph_status(m.graph, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the loss loss does not depend on any of the 1 given variables");
    mr_graph_free(m.graph);
    m = build(3);
    mr_variable parts = mr_get_variable(m.graph, "parts", MR_SHAPE(2),
                                        .partitioner = {.kind = MR_PARTITION_FIXED_SIZE, .parts_max = 2});
    (void)mr_compute_gradients(m.graph, m.loss, .variables = MR_VARIABLES(m.w, parts));
    CHECK_STATUS(mr_graph_status(m.graph, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "variable 1 is partitioned; its parts are variables: mr_variable_parts");
    mr_graph_free(m.graph);
}

/* The nodes of a gradient function have the colocation group of the operator. */
TEST(compute_gradients_colocates_gradients_with_operators)
{
    for (int colocate = 0; colocate < 2; colocate++) {
        mr_graph *g = mr_graph_new();
        mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2, 2));
        mr_graph_push_device(g, "/cpu:0");
        mr_output product = mr_mat_mul(g, w.value, w.value, .name = "product");
        mr_graph_pop_device(g);
        mr_output loss = mr_sum(g, product, mr_constant_ints(g, MR_INTS(0, 1)), .name = "loss");
        mr_compute_gradients(g, loss, .colocate_gradients_with_ops = colocate);
        CHECK_STATUS(mr_graph_status(g, nullptr), MR_OK);
        const mr_node *node = mr_graph_find(g, "gradients/product_grad/MatMul");
        CHECK(node != nullptr);
        const mr_attr *attr = mr_attrs_find(&node->attrs, "_class");
        CHECK_EQ(attr != nullptr, colocate);
        if (attr != nullptr) CHECK_STR(attr->values[0].string.data, "loc:@product");
        mr_graph_free(g);
    }
}
