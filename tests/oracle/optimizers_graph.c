/* Writes graphs for optimizers_oracle.py: a small model for each optimizer, and one graph with learning rates, clipping
 * and norms.
 *
 *     optimizers_graph DIRECTORY
 *
 * Prints a line for each: the file's name, and names of nodes and outputs. */
#include <millrace/millrace.h>
#include <stdio.h>

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

typedef enum change { UNCHANGED, CLIP_EACH, CLIP_ALL, CLIP_AVERAGE, AVERAGE } change;

static int write_model(const char *directory, const char *name, const mr_optimizer *optimizer, change how)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 3), .name = "x");
    mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "y");
    mr_variable w = mr_variable_new(
        g, "w", mr_constant_floats(g, MR_SHAPE(3, 2), (float[]){0.5f, -0.3f, 0.1f, 0.9f, -0.7f, 0.2f}, "first"));
    mr_variable b = mr_variable_new(g, "b", mr_constant_floats(g, MR_SHAPE(2), (float[]){0.1f, -0.1f}, "second"));
    const mr_variable variables[] = {w, b};
    mr_output out = mr_tanh(g, mr_bias_add(g, mr_mat_mul(g, x, w.value), b.value));
    mr_output loss = mr_loss_mean_squared_error(g, y, out);
    mr_output step = mr_global_step(g).ref;
    mr_gradients_and_variables list = mr_compute_gradients(g, loss);
    for (int32_t i = 0; i < list.count && (how == CLIP_EACH || how == CLIP_AVERAGE); i++)
        list.items[i].gradient = how == CLIP_EACH ? mr_clip_by_norm(g, list.items[i].gradient, 0.1f)
                                                  : mr_clip_by_average_norm(g, list.items[i].gradient, 0.01f);
    if (how == CLIP_ALL) mr_clip_by_global_norm(g, list, 0.15f);
    mr_node *train = mr_apply_gradients(g, optimizer, list, step);
    if (how == AVERAGE) {
        mr_graph_push_control_dependencies(g, &train, 1);
        train = mr_moving_average(g, variables, 2, nullptr, .decay = 0.9f, .num_updates = step);
        mr_graph_pop_control_dependencies(g);
    }
    mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    printf("%s %s %s\n", name, mr_node_name(train), mr_node_name(loss.node));
    int failed = write_graph(g, directory, name);
    mr_graph_free(g);
    return failed;
}

static int write_rates(const char *directory)
{
    mr_graph *g = mr_graph_new();
    mr_output s = mr_placeholder(g, MR_INT64, .shape = MR_SCALAR, .name = "step");
    const mr_output rates[] = {
        mr_exponential_decay(g, 0.5f, s, 10, 0.9f, false),
        mr_exponential_decay(g, 0.5f, s, 10, 0.9f, true),
        mr_natural_exp_decay(g, 0.5f, s, 10, 0.3f, false),
        mr_natural_exp_decay(g, 0.5f, s, 10, 0.3f, true),
        mr_inverse_time_decay(g, 0.5f, s, 10, 0.3f, false),
        mr_inverse_time_decay(g, 0.5f, s, 10, 0.3f, true),
        mr_polynomial_decay(g, 0.5f, s, 10, 0.01f, 2, false),
        mr_polynomial_decay(g, 0.5f, s, 10, 0.01f, 0.5f, true),
        mr_piecewise_constant(g, s, MR_INTS(5, 12), MR_FLOATS(0.5f, 0.2f, 0.1f)),
        mr_cosine_decay(g, 0.5f, s, 10, 0.1f),
        mr_cosine_decay_restarts(g, 0.5f, s, 10, 2, 1, 0),
        mr_cosine_decay_restarts(g, 0.5f, s, 7, 1, 0.5f, 0.1f),
        mr_cosine_decay_restarts(g, 0.5f, s, 7, 1.5f, 0.5f, 0.1f),
        mr_linear_cosine_decay(g, 0.5f, s, 10, 0.5f, 0, 0.001f),
        mr_linear_cosine_decay(g, 0.5f, s, 20, 2, 0.1f, 0.01f),
    };
    printf("rates");
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        char name[MR_OUTPUT_NAME_SIZE];
        printf(" %s", mr_output_name(rates[i], name, sizeof name));
    }
    printf("\n");
    int failed = write_graph(g, directory, "rates");
    mr_graph_free(g);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: optimizers_graph DIRECTORY\n"), 2;
    const char *d = argv[1];
    int failed = write_model(d, "descent", mr_gradient_descent(.learning_rate = 0.3f), UNCHANGED);
    failed |= write_model(d, "momentum", mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f), UNCHANGED);
    failed |=
        write_model(d, "nesterov", mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true), UNCHANGED);
    failed |= write_model(d, "adam", mr_adam(.learning_rate = 0.02f), UNCHANGED);
    failed |= write_model(d, "adagrad", mr_adagrad(.learning_rate = 0.2f), UNCHANGED);
    failed |=
        write_model(d, "adagrad2", mr_adagrad(.learning_rate = 0.2f, .initial_accumulator_value = 0.5f), UNCHANGED);
    failed |= write_model(d, "adadelta", mr_adadelta(.learning_rate = 1, .decay = 0.8f, .epsilon = 1e-4f), UNCHANGED);
    failed |= write_model(d, "rmsprop", mr_rms_prop(.learning_rate = 0.02f), UNCHANGED);
    failed |=
        write_model(d, "rmsprop2", mr_rms_prop(.learning_rate = 0.02f, .momentum = 0.5f, .decay = 0.7f), UNCHANGED);
    failed |=
        write_model(d, "centered", mr_rms_prop(.learning_rate = 0.02f, .centered = true, .epsilon = 1e-3f), UNCHANGED);
    failed |= write_model(d, "ftrl", mr_ftrl(.learning_rate = 0.3f), UNCHANGED);
    failed |= write_model(d, "ftrl2", mr_ftrl(.learning_rate = 0.3f, .l1 = 0.01f, .l2 = 0.02f), UNCHANGED);
    failed |= write_model(
        d, "ftrl3", mr_ftrl(.learning_rate = 0.3f, .l2_shrinkage = 0.02f, .learning_rate_power = -0.6f), UNCHANGED);
    failed |= write_model(d, "adagradda", mr_adagrad_da(.learning_rate = 0.3f, .l1 = 0.001f, .l2 = 0.002f), UNCHANGED);
    failed |= write_model(d, "proximal", mr_proximal_gradient_descent(.learning_rate = 0.3f, .l1 = 0.01f, .l2 = 0.02f),
                          UNCHANGED);
    failed |=
        write_model(d, "proximal2", mr_proximal_adagrad(.learning_rate = 0.2f, .l1 = 0.01f, .l2 = 0.02f), UNCHANGED);
    failed |= write_model(d, "clip", mr_gradient_descent(.learning_rate = 0.3f), CLIP_EACH);
    failed |= write_model(d, "clip_all", mr_gradient_descent(.learning_rate = 0.3f), CLIP_ALL);
    failed |= write_model(d, "clip_average", mr_gradient_descent(.learning_rate = 0.3f), CLIP_AVERAGE);
    failed |= write_model(d, "average", mr_adam(.learning_rate = 0.02f), AVERAGE);
    return failed | write_rates(d);
}
