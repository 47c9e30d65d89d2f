/* Writes a graph with every metric, with and without weights, for metrics_oracle.py.
 *
 *     metrics_graph FILE
 *
 * Prints a line for each: metric, 1 if it has weights, and the names of value and update. */
#include <millrace/millrace.h>
#include <stdio.h>

static mr_graph *g;

static void show(const char *metric, bool has_weights, mr_metric m)
{
    char names[2][MR_OUTPUT_NAME_SIZE];
    printf("%s %d %s %s\n", metric, has_weights, mr_output_name(m.value, names[0], sizeof names[0]),
           mr_output_name(m.update, names[1], sizeof names[1]));
}

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: metrics_graph FILE\n"), 2;
    g = mr_graph_new();
    mr_output labels = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(8), .name = "labels");
    mr_output scores = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(8), .name = "scores");
    mr_output flags = mr_placeholder(g, MR_BOOL, .shape = MR_SHAPE(8), .name = "flags");
    mr_output guesses = mr_placeholder(g, MR_BOOL, .shape = MR_SHAPE(8), .name = "guesses");
    mr_output classes = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(8), .name = "classes");
    mr_output guessed = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(8), .name = "guessed");
    mr_output given = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(8), .name = "weights");
    mr_floats thresholds = MR_FLOATS(0.2f, 0.5f, 0.9f);
    for (int k = 0; k < 2; k++) {
        mr_output w = k == 1 ? given : (mr_output){0};
        show("mean", k, mr_metric_mean(g, scores, .weights = w));
        show("mean_tensor", k, mr_metric_mean_tensor(g, scores, .weights = w));
        show("percentage_below", k, mr_metric_percentage_below(g, scores, 0.4f, .weights = w));
        show("accuracy", k, mr_metric_accuracy(g, classes, guessed, .weights = w));
        show("mean_absolute_error", k, mr_metric_mean_absolute_error(g, labels, scores, .weights = w));
        show("mean_squared_error", k, mr_metric_mean_squared_error(g, labels, scores, .weights = w));
        show("root_mean_squared_error", k, mr_metric_root_mean_squared_error(g, labels, scores, .weights = w));
        show("mean_relative_error", k, mr_metric_mean_relative_error(g, labels, scores, labels, .weights = w));
        if (k == 0) show("mean_cosine_distance", k, mr_metric_mean_cosine_distance(g, labels, scores, 0));
        show("true_positives", k, mr_metric_true_positives(g, flags, guesses, .weights = w));
        show("true_negatives", k, mr_metric_true_negatives(g, flags, guesses, .weights = w));
        show("false_positives", k, mr_metric_false_positives(g, flags, guesses, .weights = w));
        show("false_negatives", k, mr_metric_false_negatives(g, flags, guesses, .weights = w));
        show("precision", k, mr_metric_precision(g, flags, guesses, .weights = w));
        show("recall", k, mr_metric_recall(g, flags, guesses, .weights = w));
        show("auc", k, mr_metric_auc(g, flags, scores, .weights = w));
        show("auc_pr", k, mr_metric_auc(g, flags, scores, .weights = w, .is_precision_recall = true));
        show("auc_minoring", k,
             mr_metric_auc(g, flags, scores, .weights = w, .summation = MR_AUC_MINORING, .threshold_count = 7));
        show("auc_majoring", k, mr_metric_auc(g, flags, scores, .weights = w, .summation = MR_AUC_MAJORING));
        show("auc_careful", k,
             mr_metric_auc(g, flags, scores, .weights = w, .summation = MR_AUC_CAREFUL_INTERPOLATION));
        show("auc_careful_pr", k,
             mr_metric_auc(g, flags, scores, .weights = w, .is_precision_recall = true,
                           .summation = MR_AUC_CAREFUL_INTERPOLATION));
        show("auc_thresholds", k,
             mr_metric_auc(g, flags, scores, .weights = w, .thresholds = MR_FLOATS(0.5f, 1, 0.1f)));
        show("precision_at_thresholds", k,
             mr_metric_precision_at_thresholds(g, flags, scores, thresholds, .weights = w));
        show("recall_at_thresholds", k, mr_metric_recall_at_thresholds(g, flags, scores, thresholds, .weights = w));
        show("true_positives_at_thresholds", k,
             mr_metric_true_positives_at_thresholds(g, flags, scores, thresholds, .weights = w));
        show("true_negatives_at_thresholds", k,
             mr_metric_true_negatives_at_thresholds(g, flags, scores, thresholds, .weights = w));
        show("false_positives_at_thresholds", k,
             mr_metric_false_positives_at_thresholds(g, flags, scores, thresholds, .weights = w));
        show("false_negatives_at_thresholds", k,
             mr_metric_false_negatives_at_thresholds(g, flags, scores, thresholds, .weights = w));
        show("sensitivity_at_specificity", k,
             mr_metric_sensitivity_at_specificity(g, flags, scores, 0.7f, .weights = w));
        show("specificity_at_sensitivity", k,
             mr_metric_specificity_at_sensitivity(g, flags, scores, 0.6f, .weights = w));
        show("mean_iou", k, mr_metric_mean_iou(g, classes, guessed, 4, .weights = w));
        show("mean_per_class_accuracy", k, mr_metric_mean_per_class_accuracy(g, classes, guessed, 4, .weights = w));
    }
    mr_initialize_variables(g, MR_METRIC_VARIABLES, "reset");
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
