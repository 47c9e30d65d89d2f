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

/* How the table is read. */
typedef enum table_kind { NO_TABLE, TABLE, RESOURCE_TABLE } table_kind;
typedef enum change {
    UNCHANGED,
    CLIP_EACH,
    CLIP_AXES,
    CLIP_ALL,
    CLIP_GIVEN,
    CLIP_AVERAGE,
    AVERAGE,
    ONE_VARIABLE, /* b alone */
    GRAD_LOSS,
    COLOCATE,
    DECAYED, /* the learning rate is computed from the step */
    AVERAGE_LOSS,
    AVERAGE_DEBIASED, /* of the loss, too */
} change;

/* Rows of a table that the model averages: those that x selects, and others for each example. */
static mr_output looked_up(mr_graph *g, mr_output x, mr_variable table)
{
    mr_output axis = mr_constant_int32(g, 0);
    mr_output places = mr_floor(g, mr_mul(g, mr_abs(g, x), mr_constant_float(g, 5.9f)));
    mr_output first = mr_gather_v2(g, table.value, mr_cast(g, places, MR_INT32), axis);
    mr_output fixed = mr_constant_int32s(g, MR_SHAPE(5), (int32_t[]){0, 4, 4, 1, 5}, "fixed");
    mr_output second = mr_gather_v2(g, table.value, fixed, axis);
    return mr_add(g, mr_mean(g, first, mr_constant_ints(g, MR_INTS(1))), second);
}

static mr_variable make_table(mr_graph *g, bool is_resource)
{
    mr_error error = {0};
    mr_tensor values = {0};
    if (mr_tensor_init(&values, MR_FLOAT, MR_SHAPE(6, 2), &error) != MR_OK) return (mr_variable){0};
    for (int i = 0; i < 12; i++) mr_tensor_floats(&values)[i] = (float)(i * 7 % 12) / 10 - 0.5f;
    return mr_get_variable(g, "w", MR_SHAPE(6, 2), .use_resource = is_resource,
                           .initializer = {.kind = MR_INIT_CONSTANT, .values = &values});
}

static int write_model(const char *directory, const char *name, const mr_optimizer *optimizer, change how,
                       table_kind kind)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 3), .name = "x");
    mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "y");
    const float first[] = {0.5f, -0.3f, 0.1f, 0.9f, -0.7f, 0.2f};
    mr_variable w = kind != NO_TABLE ? make_table(g, kind == RESOURCE_TABLE)
                                     : mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(3, 2), first, "first"));
    mr_variable b = mr_variable_new(g, "b", mr_constant_floats(g, MR_SHAPE(2), (float[]){0.1f, -0.1f}, "second"));
    const mr_variable variables[] = {w, b};
    mr_output product = kind != NO_TABLE ? looked_up(g, x, w) : mr_mat_mul(g, x, w.value);
    mr_output out = mr_tanh(g, mr_bias_add(g, product, b.value));
    mr_output loss = mr_loss_mean_squared_error(g, y, out);
    mr_output step = mr_global_step(g).ref;
    const mr_variables only = how == ONE_VARIABLE ? (mr_variables){&b, 1} : (mr_variables){0};
    const mr_output grad_loss = how == GRAD_LOSS ? mr_constant_float(g, 0.4f) : (mr_output){0};
    mr_gradients_and_variables list = mr_compute_gradients(g, loss, .variables = only, .grad_loss = grad_loss,
                                                           .colocate_gradients_with_ops = how == COLOCATE);
    for (int32_t i = 0; i < list.count && (how == CLIP_EACH || how == CLIP_AVERAGE); i++)
        list.items[i].gradient = how == CLIP_EACH ? mr_clip_by_norm(g, list.items[i].gradient, 0.1f)
                                                  : mr_clip_by_average_norm(g, list.items[i].gradient, 0.01f);
    for (int32_t i = 0; i < list.count && how == CLIP_AXES; i++)
        list.items[i].gradient = mr_clip_by_norm(g, list.items[i].gradient, 0.05f, .axes = MR_INTS(-1));
    if (how == CLIP_GIVEN) mr_clip_by_global_norm(g, list, 0.15f, .use_norm = mr_constant_float(g, 0.5f));
    if (how == CLIP_ALL) mr_clip_by_global_norm(g, list, 0.15f);
    mr_optimizer decayed = *optimizer;
    if (how == DECAYED) {
        decayed.learning_rate = MR_UNSET;
        decayed.learning_rate_output =
            mr_exponential_decay(g, optimizer->learning_rate, mr_global_step(g).value, 4, 0.7f, false);
    }
    mr_node *train = mr_apply_gradients(g, &decayed, list, step);
    if (how == AVERAGE_LOSS || how == AVERAGE_DEBIASED) {
        mr_graph_push_control_dependencies(g, &train, 1);
        train = mr_moving_average_of(g, MR_OUTPUTS(loss), nullptr, .decay = 0.9f, .num_updates = step,
                                     .zero_debias = how == AVERAGE_DEBIASED);
        mr_graph_pop_control_dependencies(g);
    }
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
    const mr_output rate = mr_mul(g, mr_constant_float(g, 0.125f), mr_constant_float(g, 2));
    const mr_decay_options computed = {.size = sizeof computed, .learning_rate_output = rate};
    const mr_decay_options named = {.size = sizeof named, .learning_rate_output = rate, .name = "named_rate"};
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
        mr_noisy_linear_cosine_decay(g, 0.5f, s, 10, .initial_variance = 0),
        mr_noisy_linear_cosine_decay(g, 0.5f, s, 10, .seed = 7),
        mr_noisy_linear_cosine_decay(g, 0.5f, s, 20, .initial_variance = 0.1f, .variance_decay = 0.3f, .periods = 2,
                                     .alpha = 0.1f, .beta = 0.01f, .seed = 8),
        mr_exponential_decay_with(g, MR_UNSET, s, 10, 0.9f, false, &named),
        mr_natural_exp_decay_with(g, MR_UNSET, s, 10, 0.3f, false, &computed),
        mr_inverse_time_decay_with(g, MR_UNSET, s, 10, 0.3f, false, &computed),
        mr_polynomial_decay_with(g, MR_UNSET, s, 10, 0.01f, 2, false, &computed),
        mr_cosine_decay_with(g, MR_UNSET, s, 10, 0.1f, &computed),
        mr_cosine_decay_restarts_with(g, MR_UNSET, s, 10, 2, 1, 0, &computed),
        mr_linear_cosine_decay_with(g, MR_UNSET, s, 10, 0.5f, 0, 0.001f, &computed),
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

/* The model with a matrix, with a table, and with a table that is a resource variable. */
static int write_models(const char *directory, const char *name, const mr_optimizer *optimizer, change how)
{
    char rows[64], resource[64];
    snprintf(rows, sizeof rows, "%s_rows", name);
    snprintf(resource, sizeof resource, "%s_resource", name);
    int failed = write_model(directory, name, optimizer, how, NO_TABLE);
    failed |= write_model(directory, rows, optimizer, how, TABLE);
    return failed | write_model(directory, resource, optimizer, how, RESOURCE_TABLE);
}

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: optimizers_graph DIRECTORY\n"), 2;
    const char *d = argv[1];
    int failed = write_models(d, "descent", mr_gradient_descent(.learning_rate = 0.3f), UNCHANGED);
    failed |= write_models(d, "only", mr_adam(.learning_rate = 0.02f), ONE_VARIABLE);
    failed |= write_models(d, "weighted", mr_gradient_descent(.learning_rate = 0.3f), GRAD_LOSS);
    failed |= write_models(d, "colocated", mr_gradient_descent(.learning_rate = 0.3f), COLOCATE);
    failed |= write_models(d, "momentum", mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f), UNCHANGED);
    failed |=
        write_models(d, "nesterov", mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true), UNCHANGED);
    failed |= write_models(d, "adam", mr_adam(.learning_rate = 0.02f), UNCHANGED);
    failed |= write_models(d, "lazy", mr_lazy_adam(.learning_rate = 0.02f), UNCHANGED);
    failed |= write_models(d, "adamw", mr_adam_w(.learning_rate = 0.02f, .weight_decay = 0.01f), UNCHANGED);
    failed |= write_models(d, "adagrad", mr_adagrad(.learning_rate = 0.2f), UNCHANGED);
    failed |=
        write_models(d, "adagrad2", mr_adagrad(.learning_rate = 0.2f, .initial_accumulator_value = 0.5f), UNCHANGED);
    failed |= write_models(d, "adadelta", mr_adadelta(.learning_rate = 1, .decay = 0.8f, .epsilon = 1e-4f), UNCHANGED);
    failed |= write_models(d, "rmsprop", mr_rms_prop(.learning_rate = 0.02f), UNCHANGED);
    failed |=
        write_models(d, "rmsprop2", mr_rms_prop(.learning_rate = 0.02f, .momentum = 0.5f, .decay = 0.7f), UNCHANGED);
    failed |=
        write_models(d, "centered", mr_rms_prop(.learning_rate = 0.02f, .centered = true, .epsilon = 1e-3f), UNCHANGED);
    failed |= write_models(d, "ftrl", mr_ftrl(.learning_rate = 0.3f), UNCHANGED);
    failed |= write_models(d, "ftrl2", mr_ftrl(.learning_rate = 0.3f, .l1 = 0.01f, .l2 = 0.02f), UNCHANGED);
    failed |= write_models(
        d, "ftrl3", mr_ftrl(.learning_rate = 0.3f, .l2_shrinkage = 0.02f, .learning_rate_power = -0.6f), UNCHANGED);
    failed |= write_models(d, "adagradda", mr_adagrad_da(.learning_rate = 0.3f, .l1 = 0.001f, .l2 = 0.002f), UNCHANGED);
    failed |= write_models(d, "proximal", mr_proximal_gradient_descent(.learning_rate = 0.3f, .l1 = 0.01f, .l2 = 0.02f),
                           UNCHANGED);
    failed |=
        write_models(d, "proximal2", mr_proximal_adagrad(.learning_rate = 0.2f, .l1 = 0.01f, .l2 = 0.02f), UNCHANGED);
    failed |= write_models(d, "lars", mr_lars(.learning_rate = 0.3f), UNCHANGED);
    failed |= write_models(d, "lars2",
                           mr_lars(.learning_rate = 0.5f, .momentum = 0.5f, .eeta = 0.1f, .epsilon = 0.01f,
                                   .weight_decay = 0.3f, .nesterov = true, .skip_list = MR_NAMES("no", "b:")),
                           UNCHANGED);
    failed |= write_models(d, "momentumw",
                           mr_momentum_w(.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f), UNCHANGED);
    failed |= write_models(d, "amsgrad", mr_amsgrad(.learning_rate = 0.1f, .beta2 = 0.7f), UNCHANGED);
    failed |= write_models(d, "adamax", mr_ada_max(.learning_rate = 0.02f), UNCHANGED);
    failed |= write_models(d, "powersign", mr_power_sign(.learning_rate = 0.1f), UNCHANGED);
    failed |= write_models(d, "powersign2", mr_power_sign(.learning_rate = 0.1f, .base = 3, .beta = 0.5f), UNCHANGED);
    failed |= write_models(d, "addsign", mr_add_sign(), UNCHANGED);
    failed |= write_models(d, "addsign2", mr_add_sign(.learning_rate = 0.2f, .alpha = 0.7f, .beta = 0.5f), UNCHANGED);
    failed |= write_models(d, "clip", mr_gradient_descent(.learning_rate = 0.3f), CLIP_EACH);
    failed |= write_models(d, "clip_axes", mr_gradient_descent(.learning_rate = 0.3f), CLIP_AXES);
    failed |= write_models(d, "clip_given", mr_gradient_descent(.learning_rate = 0.3f), CLIP_GIVEN);
    failed |= write_models(d, "named", mr_adam(.learning_rate = 0.02f, .name = "Mine"), UNCHANGED);
    failed |= write_models(d, "clip_all", mr_gradient_descent(.learning_rate = 0.3f), CLIP_ALL);
    failed |= write_models(d, "clip_average", mr_gradient_descent(.learning_rate = 0.3f), CLIP_AVERAGE);
    failed |= write_models(d, "average", mr_adam(.learning_rate = 0.02f), AVERAGE);
    failed |= write_models(d, "average_loss", mr_adam(.learning_rate = 0.02f), AVERAGE_LOSS);
    failed |= write_models(d, "average_debiased", mr_adam(.learning_rate = 0.02f), AVERAGE_DEBIASED);
    failed |= write_models(d, "ftrl_named", mr_ftrl(.learning_rate = 0.3f, .accum_name = "acc", .linear_name = "lin"),
                           UNCHANGED);
    failed |= write_models(d, "ftrl_accum", mr_ftrl(.learning_rate = 0.3f, .accum_name = "acc"), UNCHANGED);
    failed |=
        write_models(d, "locked_descent", mr_gradient_descent(.learning_rate = 0.3f, .use_locking = true), UNCHANGED);
    failed |= write_models(d, "locked_adam", mr_adam(.learning_rate = 0.02f, .use_locking = true), UNCHANGED);
    failed |= write_models(d, "locked_momentum",
                           mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f, .use_locking = true), UNCHANGED);
    failed |= write_models(d, "locked_rmsprop", mr_rms_prop(.learning_rate = 0.02f, .use_locking = true), UNCHANGED);
    const struct {
        const char *name;
        const mr_optimizer *optimizer;
    } decayed[] = {
        {"decayed_descent", mr_gradient_descent(.learning_rate = 0.3f)},
        {"decayed_momentum", mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f)},
        {"decayed_nesterov", mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true)},
        {"decayed_adam", mr_adam(.learning_rate = 0.02f)},
        {"decayed_adagrad", mr_adagrad(.learning_rate = 0.2f)},
        {"decayed_adadelta", mr_adadelta(.learning_rate = 1, .decay = 0.8f, .epsilon = 1e-4f)},
        {"decayed_rmsprop", mr_rms_prop(.learning_rate = 0.02f)},
        {"decayed_centered", mr_rms_prop(.learning_rate = 0.02f, .centered = true, .epsilon = 1e-3f)},
        {"decayed_ftrl", mr_ftrl(.learning_rate = 0.3f)},
        {"decayed_ftrl3", mr_ftrl(.learning_rate = 0.3f, .l2_shrinkage = 0.02f, .learning_rate_power = -0.6f)},
        {"decayed_adagradda", mr_adagrad_da(.learning_rate = 0.3f, .l1 = 0.001f, .l2 = 0.002f)},
        {"decayed_proximal", mr_proximal_gradient_descent(.learning_rate = 0.3f, .l1 = 0.01f, .l2 = 0.02f)},
        {"decayed_proximal2", mr_proximal_adagrad(.learning_rate = 0.2f, .l1 = 0.01f, .l2 = 0.02f)},
    };
    for (size_t i = 0; i < sizeof decayed / sizeof *decayed; i++)
        failed |= write_models(d, decayed[i].name, decayed[i].optimizer, DECAYED);
    return failed | write_rates(d);
}
