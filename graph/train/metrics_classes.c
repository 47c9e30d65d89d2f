/* Metrics of several classes. */
#include "graph/train/metrics.h"
#include <millrace/ops.h>

static bool begin(mr_graph *graph, const char *name, const mr_metric_options *given, mr_metric_options *options,
                  int32_t class_count, mr_output *labels, mr_output *predictions)
{
    (void)mr_metric_begin(graph, name, given, 0, options);
    mr_metric_match(graph, labels, predictions);
    bool is_good = mr_train_check_count(graph, "class_count", class_count, 1);
    mr_output flat = mr_constant_ints(graph, MR_INTS(-1));
    mr_output weights = is_good ? mr_metric_weights(graph, options, *predictions) : (mr_output){0};
    options->weights = weights.node != nullptr ? mr_reshape(graph, weights, flat) : (mr_output){0};
    *labels = mr_reshape(graph, mr_metric_cast(graph, *labels, MR_INT64), flat);
    *predictions = mr_reshape(graph, mr_metric_cast(graph, *predictions, MR_INT64), flat);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* The number of pairs (label, prediction): [class_count, class_count], double. */
static mr_output confusion(mr_graph *graph, mr_output labels, mr_output predictions, int32_t class_count,
                           mr_output weights)
{
    mr_output ones = mr_cast(graph, mr_ones_like(graph, predictions), MR_DOUBLE);
    if (weights.node != nullptr) ones = mr_mul(graph, ones, mr_cast(graph, weights, MR_DOUBLE));
    mr_output indices = mr_pack(graph, MR_OUTPUTS(labels, predictions), .axis = 1);
    mr_output shape = mr_cast(graph, mr_constant_ints(graph, MR_INTS(class_count, class_count)), MR_INT64);
    return mr_scatter_nd(graph, indices, ones, shape);
}

static mr_output mean_iou(mr_graph *graph, mr_output matrix)
{
    mr_output first = mr_constant_ints(graph, MR_INTS(0)), second = mr_constant_ints(graph, MR_INTS(1));
    mr_output zero = mr_constant_float(graph, 0);
    mr_output by_column = mr_cast(graph, mr_sum(graph, matrix, first), MR_FLOAT);
    mr_output by_row = mr_cast(graph, mr_sum(graph, matrix, second), MR_FLOAT);
    mr_output both = mr_cast(graph, mr_diag_part(graph, matrix), MR_FLOAT);
    mr_output either = mr_sub(graph, mr_add_v2(graph, by_column, by_row), both);
    mr_output valid = mr_sum(graph, mr_cast(graph, mr_not_equal(graph, either, zero), MR_FLOAT), first);
    mr_output ones = mr_ones_like(graph, either);
    either = mr_select(graph, mr_greater(graph, either, zero), either, ones);
    mr_output sum = mr_sum(graph, mr_real_div(graph, both, either), first);
    return mr_div_no_nan(graph, sum, valid, .name = "mean_iou");
}

mr_metric mr_metric_mean_iou_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t class_count,
                              const mr_metric_options *given)
{
    mr_metric_options options = {0};
    mr_metric result = {0};
    if (begin(graph, "mean_iou", given, &options, class_count, &labels, &predictions)) {
        mr_variable total =
            mr_metric_variable(graph, "total_confusion_matrix", MR_SHAPE(class_count, class_count), MR_DOUBLE);
        mr_output pairs = confusion(graph, labels, predictions, class_count, options.weights);
        result = (mr_metric){mean_iou(graph, total.value), mr_assign_add(graph, total.ref, pairs)};
    }
    return mr_metric_end(graph, result, &options);
}

mr_metric mr_metric_mean_per_class_accuracy_(mr_graph *graph, mr_output labels, mr_output predictions,
                                             int32_t class_count, const mr_metric_options *given)
{
    mr_metric_options options = {0};
    mr_metric result = {0};
    if (begin(graph, "mean_accuracy", given, &options, class_count, &labels, &predictions)) {
        mr_variable total = mr_metric_variable(graph, "total", MR_SHAPE(class_count), MR_FLOAT);
        mr_variable right = mr_metric_variable(graph, "count", MR_SHAPE(class_count), MR_FLOAT);
        mr_output ones = mr_cast(graph, mr_ones_like(graph, labels), MR_FLOAT), zero = mr_constant_float(graph, 0);
        mr_output hits = mr_cast(graph, mr_equal(graph, labels, predictions), MR_FLOAT);
        if (options.weights.node != nullptr) {
            ones = mr_mul(graph, ones, options.weights);
            hits = mr_mul(graph, hits, options.weights);
        }
        mr_output add_total = mr_scatter_add(graph, total.ref, labels, ones);
        mr_output add_right = mr_scatter_add(graph, right.ref, labels, hits);
        mr_output of_classes = mr_div_no_nan(graph, right.value, mr_maximum(graph, total.value, zero));
        result.value = mr_mean(graph, of_classes, mr_constant_ints(graph, MR_INTS(0)), .name = "mean_accuracy");
        result.update = mr_div_no_nan(graph, add_right, mr_maximum(graph, add_total, zero), .name = "update_op");
    }
    return mr_metric_end(graph, result, &options);
}
