/* Writes graphs for optimizer_wrappers_oracle.py: a small model under each wrapper.
 *
 *     optimizer_wrappers_graph DIRECTORY
 *
 * Prints a line for each: the file's name, the step, the loss, and what the wrapper adds. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <string.h>

static int write_graph(mr_graph *g, const char *directory, const char *name)
{
    mr_error error = {0};
    mr_tensor def = {0};
    char path[4096];
    if (mr_graph_export_meta(g, &def, &error) != MR_OK) return fprintf(stderr, "%s: %s\n", name, error.message), 1;
    snprintf(path, sizeof path, "%s/%s.meta", directory, name);
    FILE *file = fopen(path, "wb");
    const mr_string *bytes = mr_tensor_data(&def);
    if (file == nullptr || fwrite(bytes->data, 1, bytes->size_bytes, file) != bytes->size_bytes) return 1;
    fclose(file);
    mr_tensor_deinit(&def);
    return 0;
}

/* A table whose rows x selects, and a bias. scale multiplies the loss: not finite in some steps. */
typedef struct model {
    mr_graph *graph;
    mr_output loss, step;
} model;

static model build(bool is_resource)
{
    mr_error error = {0};
    model m = {.graph = mr_graph_new()};
    mr_graph *g = m.graph;
    mr_output x = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1), .name = "x");
    mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "y");
    mr_output scale = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "scale");
    mr_tensor values = {0};
    if (mr_tensor_init(&values, MR_FLOAT, MR_SHAPE(6, 2), &error) != MR_OK) return m;
    for (int i = 0; i < 12; i++) mr_tensor_floats(&values)[i] = (float)(i * 7 % 12) / 10 - 0.5f;
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(6, 2), .use_resource = is_resource,
                                    .initializer = {.kind = MR_INIT_CONSTANT, .values = &values});
    mr_variable b =
        mr_get_variable(g, "b", MR_SHAPE(2), .use_resource = is_resource, .initializer = {.kind = MR_INIT_ZEROS});
    mr_output rows = mr_gather_v2(g, w.value, x, mr_constant_int32(g, 0));
    mr_output loss = mr_loss_mean_squared_error(g, y, mr_tanh(g, mr_bias_add(g, rows, b.value)));
    m.loss = mr_mul(g, loss, scale);
    m.step = mr_global_step(g).ref;
    return m;
}

static int finish(const model *m, const char *directory, const char *name, mr_node *train, const char *more)
{
    mr_initialize_variables(m->graph, MR_GLOBAL_VARIABLES, "init");
    mr_initialize_variables(m->graph, MR_LOCAL_VARIABLES, "init_local");
    printf("%s %s %s%s%s\n", name, mr_node_name(train), mr_node_name(m->loss.node), *more != '\0' ? " " : "", more);
    int failed = write_graph(m->graph, directory, name);
    mr_graph_free(m->graph);
    return failed;
}

static int write_averages(const char *directory, bool is_resource)
{
    model m = build(is_resource);
    const mr_optimizer *optimizer = mr_moving_average_optimizer(
        m.graph, mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f), .average_decay = 0.9f, .num_updates = m.step);
    mr_node *train = mr_minimize(m.graph, optimizer, m.loss, m.step);
    mr_saver *saver = mr_swapping_saver(m.graph, optimizer, .write_meta_graph = false);
    int failed = finish(&m, directory, is_resource ? "average_resource" : "average", train, "");
    mr_saver_free(saver);
    return failed;
}

static int write_scaled(const char *directory, bool is_resource, bool is_fixed)
{
    model m = build(is_resource);
    char name[64];
    const mr_optimizer *adam = mr_adam(.learning_rate = 0.02f);
    const mr_optimizer *optimizer =
        is_fixed ? mr_loss_scale_optimizer(m.graph, adam, .fixed_loss_scale = 64)
                 : mr_loss_scale_optimizer(m.graph, adam, .initial_loss_scale = 8, .increment_period = 3);
    mr_node *train = mr_minimize(m.graph, optimizer, m.loss, m.step);
    snprintf(name, sizeof name, "%s%s", is_fixed ? "fixed" : "dynamic", is_resource ? "_resource" : "");
    return finish(&m, directory, name, train, "");
}

static int write_replicas(const char *directory, bool is_resource, int aggregate)
{
    model m = build(is_resource);
    char name[64], more[1024];
    const mr_variable b = mr_graph_variable(m.graph, MR_TRAINABLE_VARIABLES, 1);
    const mr_moving_average_options averages = {.size = sizeof averages, .decay = 0.8f};
    const bool is_averaged = aggregate == 3;
    const mr_optimizer *optimizer = mr_sync_replicas_optimizer(
        m.graph, mr_adam(.learning_rate = 0.02f), .replicas_to_aggregate = aggregate, .total_num_replicas = 1,
        .variables_to_average = {&b, is_averaged}, .variable_averages = is_averaged ? &averages : nullptr);
    mr_node *train = mr_minimize(m.graph, optimizer, m.loss, m.step);
    mr_sync_replicas_nodes nodes = mr_sync_replicas_nodes_of(m.graph, optimizer);
    mr_node *tokens = mr_sync_replicas_init_tokens(m.graph, optimizer, aggregate - 1);
    snprintf(name, sizeof name, "replicas%d%s", aggregate, is_resource ? "_resource" : "");
    snprintf(more, sizeof more, "%s %s %s", mr_node_name(nodes.chief_init), mr_node_name(tokens),
             mr_node_name(nodes.sync));
    return finish(&m, directory, name, train, more);
}

/* A model that uses its weights several times: each sum of gradients is built by the method. */
static int write_sums(const char *directory, const char *name, mr_aggregation_method method, mr_gate_gradients gate)
{
    model m = build(false);
    mr_graph *g = m.graph;
    mr_output b = mr_graph_variable(g, MR_TRAINABLE_VARIABLES, 1).value, axis = mr_constant_ints(g, MR_INTS(0));
    for (int i = 0; i < 3; i++) m.loss = mr_add_v2(g, m.loss, mr_sum(g, i < 2 ? mr_square(g, b) : mr_sin(g, b), axis));
    const mr_optimizer *momentum = mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f);
    mr_gradients_and_variables list =
        mr_optimizer_compute_gradients(g, momentum, m.loss, .aggregation_method = method, .gate_gradients = gate);
    mr_graph_push_control_dependencies(g, &m.loss.node, 1); /* reads the weights before they change */
    mr_node *train = mr_apply_gradients(g, momentum, list, m.step);
    mr_graph_pop_control_dependencies(g);
    return finish(&m, directory, name, train, "");
}

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: optimizer_wrappers_graph DIRECTORY\n"), 2;
    int failed = 0;
    for (int resource = 0; resource < 2; resource++) {
        failed |= write_averages(argv[1], resource != 0);
        failed |= write_scaled(argv[1], resource != 0, true);
        failed |= write_scaled(argv[1], resource != 0, false);
        failed |= write_replicas(argv[1], resource != 0, 1);
        failed |= write_replicas(argv[1], resource != 0, 3);
    }
    failed |= write_sums(argv[1], "sums0", MR_AGGREGATION_ADD_N, MR_GATE_OP);
    failed |= write_sums(argv[1], "sums1", MR_AGGREGATION_EXPERIMENTAL_TREE, MR_GATE_NONE);
    failed |= write_sums(argv[1], "sums2", MR_AGGREGATION_EXPERIMENTAL_ACCUMULATE_N, MR_GATE_GRAPH);
    return failed;
}
