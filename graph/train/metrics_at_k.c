/* Recall and precision of the k best classes, as in TensorFlow's metrics_impl.py. */
#include "graph/train/metrics_at_k.h"
#include "base/options.h"
#include <millrace/ops.h>

#include <inttypes.h>

/* ---- Options ---- */

static const char *make_suffix(mr_graph *graph, int64_t k, int64_t class_id)
{
    const char *suffix = "k";
    if (graph == nullptr) return suffix;
    if (k != MR_COUNT_UNSET) suffix = mr_arena_printf(&graph->arena, "%" PRId64, k);
    if (class_id != MR_COUNT_UNSET && suffix != nullptr)
        suffix = mr_arena_printf(&graph->arena, "%s_class%" PRId64, suffix, class_id);
    return suffix != nullptr ? suffix : "k";
}

/* The name with "_at_" and the suffix. */
static const char *at_k_name(mr_graph *graph, const char *name, const mr_at_k *metric)
{
    if (graph == nullptr) return name;
    const char *full = mr_arena_printf(&graph->arena, "%s_at_%s", name, metric->suffix);
    return full != nullptr ? full : name;
}

static bool begin_scope(mr_graph *graph, const char *name, int32_t k, int choices, const mr_metric_at_k_options *given,
                        mr_metric_at_k_options *options, mr_at_k *metric)
{
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_metric_at_k_options, options, given, &error);
    bool has_indices = (choices & MR_AT_K_HAS_INDICES) != 0, has_class_id = (choices & MR_AT_K_HAS_CLASS_ID) != 0;
    *metric = (mr_at_k){.class_id = has_class_id && status == MR_OK ? options->class_id : MR_COUNT_UNSET};
    metric->suffix = make_suffix(graph, has_indices && status == MR_OK ? options->k : k, metric->class_id);
    const mr_metric_options common = {.size = sizeof common,
                                      MR_METRIC_DEFAULTS,
                                      .weights = options->weights,
                                      .values_collection = options->values_collection,
                                      .updates_collection = options->updates_collection,
                                      .name = options->name};
    if (!mr_metric_begin(graph, at_k_name(graph, name, metric), &common, 0, &metric->common)) return false;
    if (status != MR_OK)
        (void)mr_graph_fail(graph, status, "%s", error.message);
    else if (options->class_id != MR_COUNT_UNSET && !has_class_id)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "class_id has no effect for this metric");
    else if (options->k != MR_COUNT_UNSET && !has_indices)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the option k has no effect for this metric");
    else if (!has_indices)
        (void)mr_train_check_count(graph, "k", k, 1);
    else if (options->k != MR_COUNT_UNSET)
        (void)mr_train_check_count(graph, "k", options->k, 1);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* ---- Predictions and labels ---- */

static bool refuse_shape(mr_graph *graph, const char *what, mr_output value, const char *expected)
{
    char text[MR_SHAPE_TEXT_SIZE];
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s have shape %s, expected %s", what,
                        mr_shape_text(mr_output_shape(value), text, sizeof text), expected);
    return false;
}

static bool refuse_dtype(mr_graph *graph, const char *what, mr_output value, const char *expected)
{
    if (value.node == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "there are no %s", what);
    else
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s have dtype %s, expected %s", what,
                            mr_dtype_name(mr_output_dtype(value)), expected);
    return false;
}

/* Sets metric->top. */
static bool find_top(mr_graph *graph, mr_output predictions, int32_t k, bool has_indices, mr_at_k *metric)
{
    mr_dtype dtype = mr_output_dtype(predictions);
    mr_shape shape = mr_output_shape(predictions);
    if (has_indices ? dtype != MR_INT32 && dtype != MR_INT64 : !mr_train_is_floating(dtype))
        return refuse_dtype(graph, "predictions", predictions,
                            has_indices ? "class ids of int32 or int64" : "floating-point scores of the classes");
    if (shape.rank == 0 || shape.rank == 1)
        return refuse_shape(graph, "predictions", predictions, has_indices ? "[..., k]" : "[..., classes]");
    int64_t classes = shape.rank > 0 ? shape.dims[shape.rank - 1] : -1;
    if (!has_indices && classes >= 0 && classes < k) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "k is %" PRId32 ", but predictions have only %" PRId64 " classes", k, classes);
        return false;
    }
    metric->top = has_indices ? predictions : mr_top_kv2(graph, predictions, mr_constant_int32(graph, k)).indices;
    metric->top = mr_metric_cast(graph, metric->top, MR_INT64);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* The shape with a 1 at the end, cut to the rank of top: labels of one class without the last dimension get it. */
static mr_output expanded_shape(mr_graph *graph, mr_output shape, mr_output top)
{
    mr_output one = mr_constant_int64(graph, 1), flat = mr_constant_ints(graph, MR_INTS(1));
    mr_output longer =
        mr_concat_v2(graph, MR_OUTPUTS(shape, mr_reshape(graph, one, flat)), mr_constant_int32(graph, 0));
    mr_output rank = mr_reshape(graph, mr_rank(graph, top), flat);
    return mr_slice(graph, longer, mr_constant_ints(graph, MR_INTS(0)), rank);
}

static bool expand_sparse(mr_graph *graph, mr_at_k *metric)
{
    mr_class_ids *labels = &metric->labels;
    if (labels->shape.node == nullptr || labels->indices.node == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "sparse labels need both label_indices and label_shape");
        return false;
    }
    if (mr_output_dtype(labels->indices) != MR_INT64)
        return refuse_dtype(graph, "label_indices", labels->indices, "int64");
    if (mr_output_dtype(labels->shape) != MR_INT64) return refuse_dtype(graph, "label_shape", labels->shape, "int64");
    mr_shape values = mr_output_shape(labels->values), indices = mr_output_shape(labels->indices);
    mr_shape shape = mr_output_shape(labels->shape);
    if (values.rank >= 0 && values.rank != 1)
        return refuse_shape(graph, "the values of sparse labels", labels->values, "[count]");
    if (indices.rank >= 0 && indices.rank != 2)
        return refuse_shape(graph, "label_indices", labels->indices, "[count, rank]");
    if (shape.rank >= 0 && shape.rank != 1) return refuse_shape(graph, "label_shape", labels->shape, "[rank]");
    int64_t rank = indices.rank == 2 && indices.dims[1] >= 0 ? indices.dims[1] : shape.rank == 1 ? shape.dims[0] : -1;
    int32_t rank_of_top = mr_output_shape(metric->top).rank;
    if (rank >= 0 && rank == rank_of_top) return true;
    if (rank >= 0 && rank_of_top >= 0 && rank + 1 != rank_of_top) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "sparse labels have rank %" PRId64 ", but predictions have rank %" PRId32
                            ": expected the same rank, or one less",
                            rank, rank_of_top);
        return false;
    }
    mr_output longer = expanded_shape(graph, labels->shape, metric->top);
    mr_sparse_reshape_outputs expanded = mr_sparse_reshape(graph, labels->indices, labels->shape, longer);
    labels->indices = expanded.output_indices;
    labels->shape = expanded.output_shape;
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static bool expand_dense(mr_graph *graph, mr_at_k *metric)
{
    mr_output *labels = &metric->labels.values;
    mr_shape shape = mr_output_shape(*labels), top = mr_output_shape(metric->top);
    bool fits = shape.rank < 0 || top.rank < 0 || shape.rank == top.rank || shape.rank + 1 == top.rank;
    for (int32_t i = 0; fits && shape.rank >= 0 && i < top.rank - 1; i++)
        fits = shape.dims[i] < 0 || top.dims[i] < 0 || shape.dims[i] == top.dims[i];
    if (!fits) {
        char texts[2][MR_SHAPE_TEXT_SIZE];
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "labels have shape %s, but the best classes %s: they may differ in the last dimension only",
                            mr_shape_text(shape, texts[0], sizeof texts[0]),
                            mr_shape_text(top, texts[1], sizeof texts[1]));
        return false;
    }
    if (shape.rank >= 0 && shape.rank + 1 == top.rank)
        *labels = mr_expand_dims(graph, *labels, mr_constant_int32(graph, -1));
    else if (shape.rank < 0 || top.rank < 0)
        *labels = mr_reshape(graph, *labels,
                             expanded_shape(graph, mr_shape_of(graph, *labels, .out_type = MR_INT64), metric->top));
    return mr_graph_status(graph, nullptr) == MR_OK;
}

bool mr_at_k_begin(mr_graph *graph, const char *name, mr_output labels, mr_output predictions, int32_t k, int choices,
                   const mr_metric_at_k_options *given, mr_at_k *metric)
{
    mr_metric_at_k_options options = {0};
    if (!begin_scope(graph, name, k, choices, given, &options, metric)) return false;
    if (!find_top(graph, predictions, k, (choices & MR_AT_K_HAS_INDICES) != 0, metric)) return false;
    if (mr_output_dtype(labels) != MR_INT64) return refuse_dtype(graph, "labels", labels, "class ids of int64");
    metric->labels = (mr_class_ids){labels, options.label_indices, options.label_shape};
    bool is_sparse = options.label_indices.node != nullptr || options.label_shape.node != nullptr;
    return is_sparse ? expand_sparse(graph, metric) : expand_dense(graph, metric);
}

/* ---- Sets of class ids ---- */

mr_output mr_at_k_leading(mr_graph *graph, mr_output vector)
{
    mr_output begin = mr_constant_ints(graph, MR_INTS(0)), end = mr_constant_ints(graph, MR_INTS(-1));
    return mr_strided_slice(graph, vector, begin, end, mr_constant_ints(graph, MR_INTS(1)), .begin_mask = 1);
}

/* Those ids that equal class_id, as a sparse tensor. */
static mr_class_ids select_class(mr_graph *graph, mr_class_ids ids, int64_t class_id)
{
    mr_output wanted = mr_constant_int64(graph, class_id), zero = mr_constant_int32(graph, 0);
    if (ids.indices.node != nullptr) {
        mr_output rows = mr_where(graph, mr_equal(graph, ids.values, wanted));
        rows = mr_reshape(graph, rows, mr_constant_ints(graph, MR_INTS(-1)));
        mr_output values = mr_gather_v2(graph, ids.values, rows, zero);
        return (mr_class_ids){values, mr_gather_v2(graph, ids.indices, rows, zero), ids.shape};
    }
    mr_output shape = mr_shape_of(graph, ids.values, .out_type = MR_INT64);
    mr_output one = mr_reshape(graph, mr_constant_int64(graph, 1), mr_constant_ints(graph, MR_INTS(1)));
    mr_output column = mr_concat_v2(graph, MR_OUTPUTS(mr_at_k_leading(graph, shape), one), zero);
    mr_output filled = mr_fill(graph, column, wanted);
    mr_dense_to_dense_set_operation_outputs found =
        mr_dense_to_dense_set_operation(graph, filled, ids.values, .set_operation = "intersection");
    return (mr_class_ids){found.result_values, found.result_indices, shape};
}

mr_output mr_class_ids_size(mr_graph *graph, mr_class_ids ids)
{
    return mr_set_size(graph, ids.indices, ids.values, ids.shape);
}

mr_output mr_class_ids_count(mr_graph *graph, const char *operation, mr_class_ids predicted, mr_class_ids labels)
{
    mr_class_ids found;
    if (predicted.indices.node != nullptr) {
        mr_sparse_to_sparse_set_operation_outputs result =
            mr_sparse_to_sparse_set_operation(graph, predicted.indices, predicted.values, predicted.shape,
                                              labels.indices, labels.values, labels.shape, .set_operation = operation);
        found = (mr_class_ids){result.result_values, result.result_indices, result.result_shape};
    } else if (labels.indices.node != nullptr) {
        mr_dense_to_sparse_set_operation_outputs result = mr_dense_to_sparse_set_operation(
            graph, predicted.values, labels.indices, labels.values, labels.shape, .set_operation = operation);
        found = (mr_class_ids){result.result_values, result.result_indices, result.result_shape};
    } else {
        mr_dense_to_dense_set_operation_outputs result =
            mr_dense_to_dense_set_operation(graph, predicted.values, labels.values, .set_operation = operation);
        found = (mr_class_ids){result.result_values, result.result_indices, result.result_shape};
    }
    return mr_cast(graph, mr_class_ids_size(graph, found), MR_DOUBLE);
}

mr_output mr_at_k_weights(mr_graph *graph, const mr_at_k *metric, mr_output counts)
{
    mr_output weights = metric->common.weights;
    if (weights.node == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return (mr_output){0};
    mr_shape shape = mr_output_shape(metric->top);
    if (shape.rank > 0) {
        shape.rank--; /* the set operation has checked that the counts have this shape */
        mr_output_set_shape(counts, shape);
    }
    mr_node *check = mr_loss_check_weights(graph, weights, counts).node;
    mr_graph_push_control_dependencies(graph, &check, 1);
    mr_output checked = mr_cast(graph, weights, MR_DOUBLE);
    mr_graph_pop_control_dependencies(graph);
    return checked;
}

/* ---- Recall and precision ---- */

/* A sum over all batches; its variable has the name of its scope. */
static mr_metric count(mr_graph *graph, const char *name, const char *operation, const mr_at_k *metric)
{
    mr_class_ids predicted = {.values = metric->top}, labels = metric->labels;
    mr_graph_push_scope(graph, at_k_name(graph, name, metric));
    if (metric->class_id != MR_COUNT_UNSET) {
        labels = select_class(graph, labels, metric->class_id);
        predicted = select_class(graph, predicted, metric->class_id);
    }
    mr_output found = mr_class_ids_count(graph, operation, predicted, labels);
    mr_output weights = mr_at_k_weights(graph, metric, found);
    if (weights.node != nullptr) found = mr_mul(graph, found, weights);
    mr_output sum = mr_metric_sum(graph, found);
    mr_variable total = mr_metric_variable(graph, nullptr, MR_SCALAR, MR_DOUBLE);
    mr_metric result = {total.value, mr_assign_add(graph, total.ref, sum, .name = "update")};
    mr_graph_pop_scope(graph);
    return result;
}

/* true positives / (true positives + others) */
static mr_metric share(mr_graph *graph, bool is_recall, mr_output labels, mr_output predictions, int32_t k, int choices,
                       const mr_metric_at_k_options *given)
{
    mr_at_k metric = {0};
    mr_metric result = {0};
    if (mr_at_k_begin(graph, is_recall ? "recall" : "precision", labels, predictions, k, choices | MR_AT_K_HAS_CLASS_ID,
                      given, &metric)) {
        mr_metric hits = count(graph, "true_positive", "intersection", &metric);
        mr_metric others =
            is_recall ? count(graph, "false_negative", "b-a", &metric) : count(graph, "false_positive", "a-b", &metric);
        result.value = mr_real_div(graph, hits.value, mr_add_v2(graph, hits.value, others.value),
                                   .name = mr_train_own_name(graph));
        result.update = mr_real_div(graph, hits.update, mr_add_v2(graph, hits.update, others.update), .name = "update");
    }
    return mr_metric_end(graph, result, &metric.common);
}

mr_metric mr_metric_recall_at_k_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t k,
                                 const mr_metric_at_k_options *options)
{
    return share(graph, true, labels, predictions, k, 0, options);
}

mr_metric mr_metric_recall_at_top_k_(mr_graph *graph, mr_output labels, mr_output predictions,
                                     const mr_metric_at_k_options *options)
{
    return share(graph, true, labels, predictions, MR_COUNT_UNSET, MR_AT_K_HAS_INDICES, options);
}

mr_metric mr_metric_precision_at_k_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t k,
                                    const mr_metric_at_k_options *options)
{
    return share(graph, false, labels, predictions, k, 0, options);
}

mr_metric mr_metric_precision_at_top_k_(mr_graph *graph, mr_output labels, mr_output predictions,
                                        const mr_metric_at_k_options *options)
{
    return share(graph, false, labels, predictions, MR_COUNT_UNSET, MR_AT_K_HAS_INDICES, options);
}
