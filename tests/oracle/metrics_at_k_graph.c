/* Writes a graph with the metrics of the k best classes for metrics_at_k_oracle.py.
 *
 *     metrics_at_k_graph FILE
 *
 * Prints a line for each: metric, names of labels and predictions, k, class id, name of the weights (each "-" if there
 * is none), and the names of value and update. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <string.h>

static mr_graph *g;

typedef struct feed {
    const char *name;
    mr_output value;
    mr_output indices, shape; /* of a sparse tensor */
} feed;

static feed dense(const char *name, mr_dtype dtype, mr_shape shape)
{
    return (feed){.name = name, .value = mr_placeholder(g, dtype, .shape = shape, .name = name)};
}

static feed sparse(const char *name, int64_t rank)
{
    char part[64];
    feed f = {.name = name};
    (void)snprintf(part, sizeof part, "%s_values", name);
    f.value = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1), .name = part);
    (void)snprintf(part, sizeof part, "%s_indices", name);
    f.indices = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1, rank), .name = part);
    (void)snprintf(part, sizeof part, "%s_shape", name);
    f.shape = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(rank), .name = part);
    return f;
}

static void show_number(int32_t number)
{
    if (number == MR_COUNT_UNSET)
        printf("- ");
    else
        printf("%d ", number);
}

static void show(const char *metric, feed labels, feed predictions, int32_t k, int32_t class_id, feed weights)
{
    const mr_metric_at_k_options o = {.size = sizeof o,
                                      .weights = weights.value,
                                      .label_indices = labels.indices,
                                      .label_shape = labels.shape,
                                      .class_id = class_id,
                                      .k = strstr(metric, "top") != nullptr ? k : MR_COUNT_UNSET};
    mr_metric m = {0};
    mr_output l = labels.value, p = predictions.value;
    if (strcmp(metric, "recall_at_k") == 0) m = mr_metric_recall_at_k_(g, l, p, k, &o);
    if (strcmp(metric, "precision_at_k") == 0) m = mr_metric_precision_at_k_(g, l, p, k, &o);
    if (strcmp(metric, "average_precision_at_k") == 0) m = mr_metric_average_precision_at_k_(g, l, p, k, &o);
    if (strcmp(metric, "recall_at_top_k") == 0) m = mr_metric_recall_at_top_k_(g, l, p, &o);
    if (strcmp(metric, "precision_at_top_k") == 0) m = mr_metric_precision_at_top_k_(g, l, p, &o);
    char names[2][MR_OUTPUT_NAME_SIZE];
    printf("%s %s %s ", metric, labels.name, predictions.name);
    show_number(k);
    show_number(class_id);
    printf("%s %s %s\n", weights.name != nullptr ? weights.name : "-",
           mr_output_name(m.value, names[0], sizeof names[0]), mr_output_name(m.update, names[1], sizeof names[1]));
}

/* All metrics of these labels, with and without weights and classes. */
static void show_all(feed labels, feed scores, feed top, const feed *weights, int weight_count)
{
    static const int32_t classes[] = {MR_COUNT_UNSET, 0, 2, 9, -1};
    static const int32_t ks[] = {1, 3, 6};
    for (int w = 0; w < weight_count; w++) {
        for (int i = 0; i < 5; i++) {
            show("recall_at_k", labels, scores, ks[i % 3], classes[i], weights[w]);
            show("precision_at_k", labels, scores, ks[i % 3], classes[i], weights[w]);
            show("recall_at_top_k", labels, top, i % 2 == 0 ? MR_COUNT_UNSET : 3, classes[i], weights[w]);
            show("precision_at_top_k", labels, top, i % 2 == 0 ? MR_COUNT_UNSET : 3, classes[i], weights[w]);
        }
        /* TensorFlow has no average precision of predictions of unknown rank. */
        for (int i = 0; i < 3 && strcmp(scores.name, "any") != 0; i++)
            show("average_precision_at_k", labels, scores, ks[i], MR_COUNT_UNSET, weights[w]);
    }
}

static int write_graph(const char *path)
{
    mr_error error = {0};
    mr_tensor def = {0};
    if (mr_graph_export_meta(g, &def, &error) != MR_OK) return fprintf(stderr, "%s\n", error.message), 1;
    FILE *file = fopen(path, "wb");
    const mr_string *bytes = mr_tensor_data(&def);
    if (file == nullptr || fwrite(bytes->data, 1, bytes->size_bytes, file) != bytes->size_bytes) return 1;
    fclose(file);
    mr_tensor_deinit(&def);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: metrics_at_k_graph FILE\n"), 2;
    g = mr_graph_new();
    feed scores = dense("scores", MR_FLOAT, MR_SHAPE(4, 6)), top = dense("top", MR_INT32, MR_SHAPE(4, 3));
    const feed weights[] = {{0}, dense("weights", MR_DOUBLE, MR_SHAPE(4)), dense("weight", MR_FLOAT, MR_SCALAR)};
    show_all(dense("labels", MR_INT64, MR_SHAPE(4, 3)), scores, top, weights, 3);
    show_all(dense("single", MR_INT64, MR_SHAPE(4)), scores, top, weights, 2);
    show_all(sparse("some", 2), scores, top, weights, 2);
    show_all(sparse("few", 1), scores, top, weights, 1);

    feed scores3 = dense("scores3", MR_FLOAT, MR_SHAPE(2, 3, 6)), top3 = dense("top3", MR_INT64, MR_SHAPE(2, 3, 3));
    const feed weights3[] = {{0}, dense("weights3", MR_FLOAT, MR_SHAPE(2, 1))};
    show_all(dense("labels3", MR_INT64, MR_SHAPE(2, 3, 2)), scores3, top3, weights3, 2);
    show_all(dense("single3", MR_INT64, MR_SHAPE(2, 3)), scores3, top3, weights3, 2);
    show_all(sparse("some3", 3), scores3, top3, weights3, 2);

    feed rows = dense("rows", MR_FLOAT, MR_SHAPE(-1, -1)), any = dense("any", MR_FLOAT, MR_SHAPE_UNKNOWN);
    feed any_top = dense("any_top", MR_INT64, MR_SHAPE_UNKNOWN);
    const feed any_weights[] = {{0}, dense("any_weights", MR_FLOAT, MR_SHAPE_UNKNOWN)};
    feed any_labels = dense("any_labels", MR_INT64, MR_SHAPE_UNKNOWN);
    show_all(dense("row_labels", MR_INT64, MR_SHAPE(-1, -1)), rows, any_top, any_weights, 2);
    show_all(any_labels, rows, any_top, any_weights, 2);
    show_all(any_labels, any, any_top, any_weights, 2);
    show_all(dense("any_single", MR_INT64, MR_SHAPE_UNKNOWN), any, any_top, any_weights, 2);
    mr_initialize_variables(g, MR_METRIC_VARIABLES, "reset");
    int rc = write_graph(argv[1]);
    mr_graph_free(g);
    return rc;
}
