/* Writes a graph with every loss, reduction and kind of weights for losses_oracle.py.
 *
 *     losses_graph FILE
 *
 * Prints a line for each: loss, reduction, weights, shape (known or unknown) and the name of the output. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <string.h>

typedef mr_output (*loss_function)(mr_graph *graph, mr_output labels, mr_output predictions,
                                   const mr_loss_options *options);

static const struct {
    const char *name;
    loss_function function;
    bool is_sparse, is_softmax;
} losses[] = {
    {"absolute_difference", mr_loss_absolute_difference_},
    {"cosine_distance", mr_loss_cosine_distance_},
    {"hinge_loss", mr_loss_hinge_},
    {"huber_loss", mr_loss_huber_},
    {"log_loss", mr_loss_log_},
    {"mean_squared_error", mr_loss_mean_squared_error_},
    {"mean_pairwise_squared_error", mr_loss_mean_pairwise_squared_error_},
    {"sigmoid_cross_entropy", mr_loss_sigmoid_cross_entropy_},
    {"softmax_cross_entropy", mr_loss_softmax_cross_entropy_, .is_softmax = true},
    {"sparse_softmax_cross_entropy", mr_loss_sparse_softmax_cross_entropy_, .is_sparse = true, .is_softmax = true},
};

static const char *const weights_names[] = {"none", "scalar", "row", "zero", "full"};

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: losses_graph FILE\n"), 2;
    mr_graph *g = mr_graph_new();
    mr_output labels[2], predictions[2], classes[2], weights[2][5] = {0};
    for (int k = 0; k < 2; k++) {
        mr_shape matrix = k == 0 ? MR_SHAPE(4, 3) : MR_SHAPE_UNKNOWN, vector = k == 0 ? MR_SHAPE(4) : MR_SHAPE_UNKNOWN;
        char name[32];
        snprintf(name, sizeof name, "labels%d", k);
        labels[k] = mr_placeholder(g, MR_FLOAT, .shape = matrix, .name = name);
        snprintf(name, sizeof name, "predictions%d", k);
        predictions[k] = mr_placeholder(g, MR_FLOAT, .shape = matrix, .name = name);
        snprintf(name, sizeof name, "classes%d", k);
        classes[k] = mr_placeholder(g, MR_INT64, .shape = k == 0 ? vector : MR_SHAPE(-1), .name = name);
        weights[k][1] = mr_constant_float(g, 0.5f);
        weights[k][2] = mr_constant_floats(g, MR_SHAPE(4, 1), (float[]){1, 0, 2, 0.5f}, nullptr);
        weights[k][3] = mr_constant_float(g, 0);
        weights[k][4] =
            mr_placeholder(g, MR_FLOAT, .shape = k == 0 ? MR_SHAPE(4, 3) : MR_SHAPE_UNKNOWN, .name = "full");
    }
    mr_output row = mr_constant_floats(g, MR_SHAPE(4), (float[]){1, 0, 2, 0.5f}, nullptr);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        for (int reduction = 0; reduction <= MR_REDUCTION_SUM_OVER_BATCH_SIZE; reduction++)
            for (int w = 0; w < 5; w++)
                for (int k = 0; k < 2; k++) {
                    bool is_pairwise = strcmp(losses[i].name, "mean_pairwise_squared_error") == 0;
                    bool is_cosine = strcmp(losses[i].name, "cosine_distance") == 0;
                    if ((is_pairwise && (reduction != 0 || w == 4)) || (w == 4 && (losses[i].is_softmax || is_cosine)))
                        continue;
                    mr_loss_options o = {.size = sizeof o, MR_LOSS_DEFAULTS};
                    o.reduction = (mr_reduction)reduction;
                    o.weights = w == 2 && losses[i].is_softmax ? row : weights[k][w];
                    if (is_cosine) o.axis = 1;
                    if (strstr(losses[i].name, "huber") != nullptr) o.delta = 0.7f;
                    if (losses[i].is_softmax ? !losses[i].is_sparse : strstr(losses[i].name, "sigmoid") != nullptr)
                        o.label_smoothing = 0.1f;
                    mr_output loss =
                        losses[i].function(g, losses[i].is_sparse ? classes[k] : labels[k], predictions[k], &o);
                    char name[MR_OUTPUT_NAME_SIZE];
                    printf("%s %d %s %d %s\n", losses[i].name, reduction, weights_names[w], k,
                           mr_output_name(loss, name, sizeof name));
                }
    char name[MR_OUTPUT_NAME_SIZE];
    mr_graph_add_to_collection(g, MR_REGULARIZATION_LOSSES, mr_constant_floats(g, MR_SCALAR, (float[]){3}, "huber"));
    const mr_output totals[] = {mr_loss_total(g, .scope = "(absolute_difference|log_loss|huber)[/:]"),
                                mr_loss_total(g, .scope = "huber(_loss)?[/:]"),
                                mr_loss_total(g, .scope = "huber(_loss)?[/:]", .no_regularization = true),
                                mr_loss_regularization(g, .scope = "hub")};
    for (int i = 0; i < 4; i++) printf("total %d none 0 %s\n", i, mr_output_name(totals[i], name, sizeof name));
    mr_error error = {0};
    mr_tensor def = {0};
    if (mr_graph_export_meta(g, &def, &error) != MR_OK) return fprintf(stderr, "%s\n", error.message), 1;
    FILE *file = fopen(argv[1], "wb");
    const mr_string *bytes = mr_tensor_data(&def);
    if (file == nullptr || fwrite(bytes->data, 1, bytes->size_bytes, file) != bytes->size_bytes) return 1;
    fclose(file);
    mr_tensor_deinit(&def);
    mr_graph_free(g);
    return 0;
}
