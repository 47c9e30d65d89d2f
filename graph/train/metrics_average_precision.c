/* Average precision of the k best classes, as in TensorFlow's metrics_impl.py. */
#include "graph/train/metrics_at_k.h"
#include <millrace/ops.h>

/* SparseConcat has an input for each of the k copies of sparse labels. */
constexpr int32_t K_MAX_SPARSE = 1 << 16;

/* Replaces labels for which there is no prediction by -1. */
static mr_output without_large(mr_graph *graph, mr_output labels, mr_output predictions)
{
    mr_output last = mr_constant_ints(graph, MR_INTS(-1)), zero = mr_constant_ints(graph, MR_INTS(0));
    mr_output sizes = mr_shape_of(graph, predictions, .out_type = MR_INT64);
    mr_output classes = mr_strided_slice(graph, sizes, last, zero, mr_constant_ints(graph, MR_INTS(1)),
                                         .shrink_axis_mask = 1, .end_mask = 1);
    mr_output none = mr_constant_int64(graph, -1);
    return mr_select_v2(graph, mr_greater_equal(graph, labels, classes), none, labels);
}

/* The labels once for each of the k predictions of their row: [..., k, n]. */
static mr_class_ids repeat_labels(mr_graph *graph, mr_class_ids labels, int32_t k)
{
    mr_output axis = mr_constant_int32(graph, 0);
    mr_output one = mr_reshape(graph, mr_constant_int64(graph, 1), mr_constant_ints(graph, MR_INTS(1)));
    if (labels.indices.node == nullptr) {
        mr_output times = mr_reshape(graph, mr_constant_int64(graph, k), mr_constant_ints(graph, MR_INTS(1)));
        mr_output sizes = mr_shape_of(graph, labels.values, .out_type = MR_INT64);
        mr_output ones = mr_ones_like(graph, mr_at_k_leading(graph, sizes));
        mr_output expanded = mr_expand_dims(graph, labels.values, mr_constant_int32(graph, -2));
        mr_output multiples = mr_concat_v2(graph, MR_OUTPUTS(ones, times, one), axis);
        return (mr_class_ids){.values = mr_tile(graph, expanded, multiples)};
    }
    mr_output last =
        mr_strided_slice(graph, labels.shape, mr_constant_ints(graph, MR_INTS(-1)), mr_constant_ints(graph, MR_INTS(0)),
                         mr_constant_ints(graph, MR_INTS(1)), .end_mask = 1);
    mr_output shape = mr_concat_v2(graph, MR_OUTPUTS(mr_at_k_leading(graph, labels.shape), one, last), axis);
    mr_sparse_reshape_outputs row = mr_sparse_reshape(graph, labels.indices, labels.shape, shape);
    if (k == 1) return (mr_class_ids){labels.values, row.output_indices, row.output_shape};
    mr_output *copies = MR_ARENA_NEW(&graph->arena, mr_output, 3 * (size_t)k);
    if (copies == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for %d copies of the labels", k);
        return (mr_class_ids){.values = mr_graph_failed_output(graph)};
    }
    for (int32_t i = 0; i < k; i++) {
        copies[i] = row.output_indices;
        copies[k + i] = labels.values;
        copies[2 * k + i] = row.output_shape;
    }
    mr_outputs indices = {copies, k}, values = {copies + k, k}, shapes = {copies + 2 * k, k};
    mr_sparse_concat_outputs all = mr_sparse_concat(graph, indices, values, shapes, .concat_dim = -2);
    return (mr_class_ids){all.output_values, all.output_indices, all.output_shape};
}

/* The number of labels of each row, at most k: double. Of dense labels, duplicates count and negative ones do not; of
 * sparse labels it is the other way round. */
static mr_output relevant_count(mr_graph *graph, mr_class_ids labels, int32_t k)
{
    mr_output count;
    if (labels.indices.node != nullptr) {
        count = mr_minimum(graph, mr_class_ids_size(graph, labels), mr_constant_int32(graph, k));
    } else {
        mr_output is_label = mr_greater_equal(graph, labels.values, mr_constant_int64(graph, 0));
        count = mr_sum(graph, mr_cast(graph, is_label, MR_INT64), mr_constant_ints(graph, MR_INTS(-1)));
        count = mr_minimum(graph, count, mr_constant_int64(graph, k));
    }
    return mr_cast(graph, count, MR_DOUBLE);
}

/* The sum of the precisions at each prediction that is a label, divided by the number of labels: double [...]. */
static mr_output average_precision(mr_graph *graph, const mr_at_k *metric, int32_t k)
{
    mr_output last = mr_constant_int32(graph, -1);
    mr_class_ids each = {.values = mr_expand_dims(graph, metric->top, last)};
    mr_output is_relevant = mr_class_ids_count(graph, "intersection", each, repeat_labels(graph, metric->labels, k));
    mr_output hits = mr_cumsum(graph, is_relevant, last);
    mr_output ranks = mr_cumsum(graph, mr_ones_like(graph, is_relevant), last);
    mr_output precisions = mr_mul(graph, mr_real_div(graph, hits, ranks), is_relevant);
    mr_output sum = mr_sum(graph, precisions, mr_constant_ints(graph, MR_INTS(-1)));
    return mr_real_div(graph, sum, relevant_count(graph, metric->labels, k));
}

/* A sum over all batches; its variable has the name of its scope. */
static mr_metric accumulate(mr_graph *graph, const char *name, mr_output sum)
{
    mr_graph_push_scope(graph, name);
    mr_variable total = mr_metric_variable(graph, nullptr, MR_SCALAR, MR_DOUBLE);
    mr_metric result = {total.value, mr_assign_add(graph, total.ref, sum, .name = "update")};
    mr_graph_pop_scope(graph);
    return result;
}

static mr_metric average_precision_at_k(mr_graph *graph, mr_at_k *metric, mr_output predictions, int32_t k)
{
    metric->labels.values = without_large(graph, metric->labels.values, predictions);
    mr_graph_push_scope(graph, "average_precision");
    mr_output precisions = average_precision(graph, metric, k);
    mr_graph_pop_scope(graph);
    mr_output weights = mr_at_k_weights(graph, metric, precisions), number;
    if (weights.node != nullptr) {
        weights = mr_mul(graph, weights, mr_ones_like(graph, precisions));
        precisions = mr_mul(graph, precisions, weights);
        number = mr_metric_sum(graph, weights);
    } else {
        number = mr_cast(graph, mr_size(graph, precisions), MR_DOUBLE);
    }
    /* TensorFlow's "max" is the second name of its scope: an operator there is named "Max". */
    mr_metric max = accumulate(graph, "max_1", number);
    mr_metric total = accumulate(graph, "total", mr_metric_sum(graph, precisions));
    return (mr_metric){
        mr_div_no_nan(graph, total.value, max.value, .name = "mean"),
        mr_div_no_nan(graph, total.update, max.update, .name = mr_train_own_name(graph)),
    };
}

mr_metric mr_metric_average_precision_at_k_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t k,
                                            const mr_metric_at_k_options *given)
{
    mr_at_k metric = {0};
    mr_metric result = {0};
    bool is_good = mr_at_k_begin(graph, "average_precision", labels, predictions, k, 0, given, &metric);
    if (is_good && metric.labels.indices.node != nullptr && k > K_MAX_SPARSE) {
        (void)mr_graph_fail(graph, MR_UNIMPLEMENTED, "k is %d, but may be at most %d with sparse labels", k,
                            K_MAX_SPARSE);
        is_good = false;
    }
    if (is_good) result = average_precision_at_k(graph, &metric, predictions, k);
    return mr_metric_end(graph, result, &metric.common);
}
