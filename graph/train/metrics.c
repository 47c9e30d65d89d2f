/* Means, and what all metrics have in common, as in TensorFlow's metrics_impl.py. */
#include "graph/train/metrics.h"
#include "base/options.h"
#include <millrace/ops.h>

#include <math.h>
#include <string.h>

/* Limits the memory of variables and of a batch, which have elements for each threshold. */
constexpr int32_t THRESHOLDS_MAX = 1'000'000;

bool mr_metric_begin(mr_graph *graph, const char *name, const mr_metric_options *given, int choices,
                     mr_metric_options *options)
{
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_metric_options, options, given, &error);
    mr_graph_push_scope(graph, status == MR_OK && options->name != nullptr ? options->name : name);
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s", error.message);
        return false;
    }
    const char *useless = nullptr;
    if (options->threshold_count != MR_COUNT_UNSET && (choices & MR_METRIC_HAS_THRESHOLDS) == 0)
        useless = "threshold_count";
    if (options->is_precision_recall && (choices & MR_METRIC_HAS_CURVE) == 0) useless = "is_precision_recall";
    if (options->summation != MR_AUC_TRAPEZOIDAL && (choices & MR_METRIC_HAS_CURVE) == 0) useless = "summation";
    if (options->thresholds.count != 0 && (choices & MR_METRIC_HAS_CURVE) == 0) useless = "the option thresholds";
    if (useless != nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s has no effect for this metric", useless);
    if (options->threshold_count != MR_COUNT_UNSET && options->thresholds.count != 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "threshold_count has no effect with thresholds");
    if ((unsigned)options->summation > MR_AUC_CAREFUL_INTERPOLATION)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "summation %d is not one of mr_auc_summation",
                            (int)options->summation);
    if (options->threshold_count == MR_COUNT_UNSET) options->threshold_count = 200;
    if (options->threshold_count > THRESHOLDS_MAX)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "threshold_count is %d, but must be at most %d",
                            (int)options->threshold_count, (int)THRESHOLDS_MAX);
    return mr_train_check_count(graph, "threshold_count", options->threshold_count, 2) &&
           mr_graph_status(graph, nullptr) == MR_OK;
}

mr_metric mr_metric_end(mr_graph *graph, mr_metric metric, const mr_metric_options *options)
{
    if (mr_graph_status(graph, nullptr) != MR_OK)
        metric = (mr_metric){mr_graph_failed_output(graph), mr_graph_failed_output(graph)};
    if (options->values_collection != nullptr)
        mr_graph_add_to_collection(graph, options->values_collection, metric.value);
    if (options->updates_collection != nullptr)
        mr_graph_add_to_collection(graph, options->updates_collection, metric.update);
    mr_graph_pop_scope(graph);
    return metric;
}

mr_variable mr_metric_variable(mr_graph *graph, const char *name, mr_shape shape, mr_dtype dtype)
{
    mr_tensor zeros = {0};
    mr_error error = {0};
    if (graph == nullptr) return (mr_variable){0};
    mr_status status = mr_tensor_init(&zeros, dtype, shape, &error);
    if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    if (status == MR_OK && mr_tensor_size_bytes(&zeros) > 0) memset(zeros.data, 0, mr_tensor_size_bytes(&zeros));
    const char *scope = mr_graph_scope(graph), *inner;
    if (name != nullptr) {
        inner = mr_arena_printf(&graph->arena, "%s%s%s/Initializer/", scope, *scope != '\0' ? "/" : "", name);
    } else {
        inner = mr_arena_printf(&graph->arena, "%s/Initializer/", scope);
        name = mr_train_own_name(graph);
    }
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    mr_graph_push_scope(graph, inner != nullptr ? inner : name);
    mr_output initial = mr_constant(graph, &zeros, "zeros");
    mr_graph_pop_scope(graph);
    mr_graph_pop_control_dependencies(graph);
    mr_tensor_deinit(&zeros);
    mr_variable variable = mr_variable_new(graph, name, initial, .local = true);
    if (mr_graph_status(graph, nullptr) != MR_OK) return variable;
    status = mr_graph_add_variable(graph, MR_METRIC_VARIABLES, variable, false, (mr_string){0}, &error);
    if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    return variable;
}

mr_output mr_metric_cast(mr_graph *graph, mr_output value, mr_dtype dtype)
{
    bool is_good = mr_graph_status(graph, nullptr) == MR_OK && value.node != nullptr && value.node->id >= 0;
    return is_good && mr_output_dtype(value) != dtype ? mr_cast(graph, value, dtype) : value;
}

mr_output mr_metric_weights(mr_graph *graph, const mr_metric_options *options, mr_output values)
{
    if (options->weights.node == nullptr) return (mr_output){0};
    mr_output weights = mr_loss_check_weights(graph, options->weights, values);
    mr_output ones = mr_metric_cast(graph, mr_ones_like(graph, values), MR_FLOAT);
    return mr_mul(graph, weights, ones);
}

mr_output mr_metric_sum(mr_graph *graph, mr_output values)
{
    return mr_sum(graph, values, mr_loss_axes(graph, values, 0));
}

void mr_metric_match(mr_graph *graph, mr_output *labels, mr_output *predictions)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return;
    mr_output *both[2] = {labels, predictions};
    for (int i = 0; i < 2; i++) {
        mr_shape own = mr_output_shape(*both[i]), other = mr_output_shape(*both[1 - i]);
        if (own.rank >= 1 && other.rank >= 0 && own.rank == other.rank + 1 && own.dims[own.rank - 1] == 1)
            *both[i] = mr_squeeze(graph, *both[i], .squeeze_dims = MR_INTS(-1));
    }
    if (mr_graph_status(graph, nullptr) != MR_OK) return;
    char texts[2][MR_SHAPE_TEXT_SIZE];
    mr_shape of_labels = mr_output_shape(*labels), of_predictions = mr_output_shape(*predictions);
    if (!mr_shape_compatible(of_labels, of_predictions))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "labels have shape %s, but predictions %s",
                            mr_shape_text(of_labels, texts[0], sizeof texts[0]),
                            mr_shape_text(of_predictions, texts[1], sizeof texts[1]));
}

/* ---- Means ---- */

/* total / count; 0 if count is 0 */
static mr_output quotient(mr_graph *graph, mr_output total, mr_output count, const char *name)
{
    mr_output zero = mr_constant_float(graph, 0);
    return mr_div_no_nan(graph, total, mr_maximum(graph, count, zero), .name = name);
}

/* has_shape: keep a mean for each element */
static mr_metric mean(mr_graph *graph, mr_output values, const mr_metric_options *options, bool has_shape)
{
    values = mr_metric_cast(graph, values, MR_FLOAT);
    mr_shape shape = has_shape && mr_graph_status(graph, nullptr) == MR_OK ? mr_output_shape(values) : MR_SCALAR;
    if (mr_shape_count(shape) < 0) {
        char text[MR_SHAPE_TEXT_SIZE];
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the shape %s of the values is not fully known",
                            mr_shape_text(shape, text, sizeof text));
        shape = MR_SCALAR;
    }
    mr_variable total = mr_metric_variable(graph, has_shape ? "total_tensor" : "total", shape, MR_FLOAT);
    mr_variable count = mr_metric_variable(graph, has_shape ? "count_tensor" : "count", shape, MR_FLOAT);
    mr_output weights = mr_metric_weights(graph, options, values), number;
    if (weights.node != nullptr) {
        values = mr_mul(graph, values, weights);
        number = has_shape ? weights : mr_metric_sum(graph, weights);
    } else {
        number = has_shape ? mr_ones_like(graph, values) : mr_cast(graph, mr_size(graph, values), MR_FLOAT);
    }
    mr_output add_total = mr_assign_add(graph, total.ref, has_shape ? values : mr_metric_sum(graph, values));
    mr_output add_count = mr_assign_add(graph, count.ref, number);
    return (mr_metric){quotient(graph, total.value, count.value, "value"),
                       quotient(graph, add_total, add_count, "update_op")};
}

mr_metric mr_metric_mean_of(mr_graph *graph, mr_output values, const mr_metric_options *options)
{
    return mean(graph, values, options, false);
}

mr_metric mr_metric_mean_(mr_graph *graph, mr_output values, const mr_metric_options *given)
{
    mr_metric_options options = {0};
    (void)mr_metric_begin(graph, "mean", given, 0, &options);
    return mr_metric_end(graph, mean(graph, values, &options, false), &options);
}

mr_metric mr_metric_mean_tensor_(mr_graph *graph, mr_output values, const mr_metric_options *given)
{
    mr_metric_options options = {0};
    (void)mr_metric_begin(graph, "mean", given, 0, &options);
    return mr_metric_end(graph, mean(graph, values, &options, true), &options);
}

mr_metric mr_metric_percentage_below_(mr_graph *graph, mr_output values, float threshold,
                                      const mr_metric_options *given)
{
    mr_metric_options options = {0};
    (void)mr_metric_begin(graph, "percentage_below_threshold", given, 0, &options);
    values = mr_metric_cast(graph, values, MR_FLOAT);
    mr_output is_below = mr_less(graph, values, mr_constant_float(graph, threshold));
    return mr_metric_end(graph, mean(graph, is_below, &options, false), &options);
}

/* Begins a metric of labels and predictions of one shape, both as float. */
static void begin(mr_graph *graph, const char *name, const mr_metric_options *given, mr_metric_options *options,
                  mr_output *labels, mr_output *predictions)
{
    (void)mr_metric_begin(graph, name, given, 0, options);
    mr_metric_match(graph, labels, predictions);
    *labels = mr_metric_cast(graph, *labels, MR_FLOAT);
    *predictions = mr_metric_cast(graph, *predictions, MR_FLOAT);
}

mr_metric mr_metric_accuracy_(mr_graph *graph, mr_output labels, mr_output predictions, const mr_metric_options *given)
{
    mr_metric_options options = {0};
    bool is_good = mr_metric_begin(graph, "accuracy", given, 0, &options);
    mr_metric_match(graph, &labels, &predictions);
    if (is_good) labels = mr_metric_cast(graph, labels, mr_output_dtype(predictions));
    return mr_metric_end(graph, mean(graph, mr_equal(graph, predictions, labels), &options, false), &options);
}

mr_metric mr_metric_mean_absolute_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                         const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, "mean_absolute_error", given, &options, &labels, &predictions);
    mr_output error = mr_abs(graph, mr_sub(graph, predictions, labels));
    return mr_metric_end(graph, mean(graph, error, &options, false), &options);
}

mr_metric mr_metric_mean_squared_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                        const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, "mean_squared_error", given, &options, &labels, &predictions);
    mr_output error = mr_squared_difference(graph, predictions, labels);
    return mr_metric_end(graph, mean(graph, error, &options, false), &options);
}

mr_metric mr_metric_root_mean_squared_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                             const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, "root_mean_squared_error", given, &options, &labels, &predictions);
    mr_metric m = mean(graph, mr_squared_difference(graph, predictions, labels), &options, false);
    m = (mr_metric){mr_sqrt(graph, m.value), mr_sqrt(graph, m.update)};
    return mr_metric_end(graph, m, &options);
}

mr_metric mr_metric_mean_relative_error_(mr_graph *graph, mr_output labels, mr_output predictions, mr_output normalizer,
                                         const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, "mean_relative_error", given, &options, &labels, &predictions);
    normalizer = mr_metric_cast(graph, normalizer, MR_FLOAT);
    mr_metric_match(graph, &normalizer, &predictions);
    mr_output is_zero = mr_equal(graph, normalizer, mr_constant_float(graph, 0)), none = mr_zeros_like(graph, labels);
    mr_output error = mr_real_div(graph, mr_abs(graph, mr_sub(graph, labels, predictions)), normalizer);
    error = mr_select(graph, is_zero, none, error);
    return mr_metric_end(graph, mean(graph, error, &options, false), &options);
}

mr_metric mr_metric_mean_cosine_distance_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t axis,
                                          const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, "mean_cosine_distance", given, &options, &labels, &predictions);
    mr_output products = mr_mul(graph, predictions, labels), axes = mr_constant_ints(graph, MR_INTS(axis));
    mr_metric m = mean(graph, mr_sum(graph, products, axes, .keep_dims = true), &options, false);
    mr_output one = mr_constant_float(graph, 1);
    m = (mr_metric){mr_sub(graph, one, m.value), mr_sub(graph, one, m.update)};
    return mr_metric_end(graph, m, &options);
}
