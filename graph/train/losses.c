/* The losses of tf.compat.v1.losses: formulas, names and order of operations are TensorFlow's. */
#include "graph/train/losses.h"
#include "base/options.h"
#include "graph/train/name_filter.h"
#include <millrace/ops.h>

#include <assert.h>
#include <stdlib.h>

/* Records an error unless both can have the same shape. */
static void check_shapes(mr_graph *graph, mr_output labels, mr_output predictions)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return;
    char texts[2][MR_SHAPE_TEXT_SIZE];
    mr_shape of_labels = mr_output_shape(labels), of_predictions = mr_output_shape(predictions);
    if (!mr_shape_compatible(of_labels, of_predictions))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "labels have shape %s, but predictions %s",
                            mr_shape_text(of_labels, texts[0], sizeof texts[0]),
                            mr_shape_text(of_predictions, texts[1], sizeof texts[1]));
}

static mr_output as_float(mr_graph *graph, mr_output value)
{
    bool is_good = mr_graph_status(graph, nullptr) == MR_OK && value.node != nullptr;
    return is_good && mr_output_dtype(value) != MR_FLOAT ? mr_cast(graph, value, MR_FLOAT) : value;
}

/* A scalar of the other operand's dtype. */
static mr_output number(mr_graph *graph, float value, mr_output like)
{
    mr_output constant = mr_constant_float(graph, value);
    bool is_good = mr_graph_status(graph, nullptr) == MR_OK;
    return is_good && mr_output_dtype(like) != MR_FLOAT ? mr_cast(graph, constant, mr_output_dtype(like)) : constant;
}

/* Begins a loss of labels and predictions, both as float. */
static void begin(mr_graph *graph, const char *name, const mr_loss_options *given, int choices,
                  mr_loss_options *options, mr_output *labels, mr_output *predictions)
{
    (void)mr_loss_begin(graph, name, given, choices, options);
    *predictions = as_float(graph, *predictions);
    *labels = as_float(graph, *labels);
    check_shapes(graph, *labels, *predictions);
}

mr_output mr_loss_weighted_(mr_graph *graph, mr_output losses, const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    (void)mr_loss_begin(graph, "weighted_loss", given, 0, &options);
    return mr_loss_end(graph, losses, &options);
}

mr_output mr_loss_absolute_difference_(mr_graph *graph, mr_output labels, mr_output predictions,
                                       const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    begin(graph, "absolute_difference", given, 0, &options, &labels, &predictions);
    return mr_loss_end(graph, mr_abs(graph, mr_sub(graph, predictions, labels)), &options);
}

mr_output mr_loss_cosine_distance_(mr_graph *graph, mr_output labels, mr_output predictions,
                                   const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    begin(graph, "cosine_distance_loss", given, MR_LOSS_HAS_AXIS, &options, &labels, &predictions);
    mr_output products = mr_mul(graph, predictions, labels), axis = mr_constant_ints(graph, MR_INTS(options.axis));
    mr_output sum = mr_sum(graph, products, axis, .keep_dims = true);
    return mr_loss_end(graph, mr_sub(graph, mr_constant_float(graph, 1), sum), &options);
}

mr_output mr_loss_hinge_(mr_graph *graph, mr_output labels, mr_output logits, const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    begin(graph, "hinge_loss", given, 0, &options, &labels, &logits);
    mr_output ones = mr_ones_like(graph, labels);
    labels = mr_sub(graph, mr_mul(graph, mr_constant_float(graph, 2), labels), ones);
    return mr_loss_end(graph, mr_relu(graph, mr_sub(graph, ones, mr_mul(graph, labels, logits))), &options);
}

mr_output mr_loss_huber_(mr_graph *graph, mr_output labels, mr_output predictions, const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    begin(graph, "huber_loss", given, MR_LOSS_HAS_DELTA, &options, &labels, &predictions);
    mr_output delta = mr_constant_float(graph, options.delta), half = mr_constant_float(graph, 0.5f);
    mr_output error = mr_abs(graph, mr_sub(graph, predictions, labels));
    mr_output quadratic = mr_minimum(graph, error, delta), linear = mr_sub(graph, error, quadratic);
    mr_output near = mr_mul(graph, half, mr_mul(graph, quadratic, quadratic));
    return mr_loss_end(graph, mr_add_v2(graph, near, mr_mul(graph, delta, linear)), &options);
}

mr_output mr_loss_log_(mr_graph *graph, mr_output labels, mr_output predictions, const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    begin(graph, "log_loss", given, MR_LOSS_HAS_EPSILON, &options, &labels, &predictions);
    mr_output epsilon = mr_constant_float(graph, options.epsilon), one = mr_constant_float(graph, 1);
    mr_output of_one = mr_neg(graph, mr_mul(graph, labels, mr_log(graph, mr_add_v2(graph, predictions, epsilon))));
    mr_output rest = mr_log(graph, mr_add_v2(graph, mr_sub(graph, one, predictions), epsilon));
    mr_output of_zero = mr_mul(graph, mr_sub(graph, one, labels), rest);
    return mr_loss_end(graph, mr_sub(graph, of_one, of_zero), &options);
}

mr_output mr_loss_mean_squared_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                      const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    begin(graph, "mean_squared_error", given, 0, &options, &labels, &predictions);
    return mr_loss_end(graph, mr_squared_difference(graph, predictions, labels), &options);
}

mr_output mr_loss_mean_pairwise_squared_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                               const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    begin(graph, "mean_pairwise_squared_error", given, MR_LOSS_HAS_NO_REDUCTION, &options, &labels, &predictions);
    mr_output weights = options.weights.node != nullptr ? options.weights : mr_constant_float(graph, 1);
    weights = mr_loss_check_weights(graph, weights, labels);
    mr_output difference = mr_sub(graph, predictions, labels), rows = mr_loss_axes(graph, difference, 1);
    mr_output zero = mr_constant_float(graph, 0), one = mr_constant_float(graph, 1), two = mr_constant_float(graph, 2);
    mr_output squares = mr_sum(graph, mr_square(graph, difference), rows, .keep_dims = true);
    mr_output count = mr_loss_num_present(graph, difference, weights, true), less = mr_sub(graph, count, one);
    mr_output first = mr_div_no_nan(graph, squares, mr_maximum(graph, less, zero), .name = "value");
    mr_output sum = mr_sum(graph, difference, rows, .keep_dims = true);
    mr_output pairs = mr_maximum(graph, mr_mul(graph, count, less), zero);
    mr_output second = mr_div_no_nan(graph, mr_square(graph, sum), pairs, .name = "value");
    mr_output terms = mr_sub(graph, mr_mul(graph, two, first), mr_mul(graph, two, second));
    mr_output weighted = mr_mul(graph, terms, weights);
    mr_output loss = mr_sum(graph, weighted, mr_loss_axes(graph, weighted, 0));
    mr_output any = mr_greater(graph, mr_sum(graph, count, mr_loss_axes(graph, count, 0)), zero);
    loss = mr_select(graph, any, loss, mr_zeros_like(graph, loss), .name = "value");
    if (*options.collection != '\0') mr_graph_add_to_collection(graph, options.collection, loss);
    mr_graph_pop_scope(graph);
    return loss;
}

mr_output mr_loss_sigmoid(mr_graph *graph, mr_output labels, mr_output logits, const char *scope)
{
    mr_graph_push_scope(graph, scope);
    mr_output zeros = mr_zeros_like(graph, logits), is_positive = mr_greater_equal(graph, logits, zeros);
    mr_output rectified = mr_select(graph, is_positive, logits, zeros);
    mr_output negative = mr_select(graph, is_positive, mr_neg(graph, logits), logits);
    mr_output linear = mr_sub(graph, rectified, mr_mul(graph, logits, labels));
    mr_output loss = mr_add_v2(graph, linear, mr_log1p(graph, mr_exp(graph, negative)));
    mr_graph_pop_scope(graph);
    return loss;
}

mr_output mr_loss_sigmoid_cross_entropy_(mr_graph *graph, mr_output labels, mr_output logits,
                                         const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    bool is_good = mr_loss_begin(graph, "sigmoid_cross_entropy_loss", given, MR_LOSS_HAS_SMOOTHING, &options);
    if (is_good && mr_output_dtype(labels) != mr_output_dtype(logits))
        labels = mr_cast(graph, labels, mr_output_dtype(logits));
    check_shapes(graph, labels, logits);
    if (options.label_smoothing > 0) {
        labels = mr_mul(graph, labels, number(graph, 1 - options.label_smoothing, labels));
        labels = mr_add_v2(graph, labels, number(graph, 0.5f * options.label_smoothing, labels));
    }
    return mr_loss_end(graph, mr_loss_sigmoid(graph, labels, logits, "xentropy"), &options);
}

/* The vector of all sizes but the last one. */
static mr_output leading_sizes(mr_graph *graph, mr_output value)
{
    mr_output sizes = mr_shape_of(graph, value), zero = mr_constant_ints(graph, MR_INTS(0));
    mr_output count = mr_sub(graph, mr_rank(graph, value), mr_constant_int32(graph, 1));
    return mr_slice(graph, sizes, zero, mr_reshape(graph, count, mr_constant_ints(graph, MR_INTS(1))));
}

mr_output mr_loss_matrix(mr_graph *graph, mr_output value)
{
    mr_shape shape = mr_output_shape(value);
    if (shape.rank > 0 && shape.dims[shape.rank - 1] >= 0)
        return mr_reshape(graph, value, mr_constant_ints(graph, MR_INTS(-1, shape.dims[shape.rank - 1])));
    mr_output last = mr_sub(graph, mr_rank(graph, value), mr_constant_int32(graph, 1));
    mr_output one = mr_constant_ints(graph, MR_INTS(1)), begin = mr_reshape(graph, last, one);
    mr_output size = mr_slice(graph, mr_shape_of(graph, value), begin, one);
    mr_output rows = mr_constant_ints(graph, MR_INTS(-1)), axis = mr_constant_int32(graph, 0);
    return mr_reshape(graph, value, mr_concat_v2(graph, MR_OUTPUTS(rows, size), axis));
}

mr_output mr_loss_softmax_cross_entropy_(mr_graph *graph, mr_output labels, mr_output logits,
                                         const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    bool is_good = mr_loss_begin(graph, "softmax_cross_entropy_loss", given, MR_LOSS_HAS_SMOOTHING, &options);
    if (is_good && mr_output_dtype(labels) != mr_output_dtype(logits))
        labels = mr_cast(graph, labels, mr_output_dtype(logits));
    check_shapes(graph, labels, logits);
    is_good = mr_graph_status(graph, nullptr) == MR_OK;
    if (is_good && options.label_smoothing > 0) {
        mr_output last = mr_constant_ints(graph, MR_INTS(-1)), one = mr_constant_ints(graph, MR_INTS(1));
        mr_output classes =
            mr_strided_slice(graph, mr_shape_of(graph, labels), last, mr_constant_ints(graph, MR_INTS(0)), one,
                             .shrink_axis_mask = 1, .end_mask = 1);
        classes = mr_cast(graph, classes, mr_output_dtype(logits));
        labels = mr_mul(graph, labels, number(graph, 1 - options.label_smoothing, labels));
        mr_output share = mr_real_div(graph, number(graph, options.label_smoothing, labels), classes);
        labels = mr_add_v2(graph, labels, share);
    }
    labels = mr_stop_gradient(graph, labels, .name = "labels_stop_gradient");
    mr_shape shape = is_good ? mr_output_shape(logits) : MR_SCALAR;
    if (shape.rank == 2) {
        mr_output loss = mr_softmax_cross_entropy_with_logits(graph, logits, labels, .name = "xentropy").loss;
        return mr_loss_end(graph, loss, &options);
    }
    mr_graph_push_scope(graph, "xentropy");
    mr_output loss =
        mr_softmax_cross_entropy_with_logits(graph, mr_loss_matrix(graph, logits), mr_loss_matrix(graph, labels)).loss;
    loss = mr_reshape(graph, loss, leading_sizes(graph, logits));
    mr_graph_pop_scope(graph);
    return mr_loss_end(graph, loss, &options);
}

mr_output mr_loss_sparse_softmax_cross_entropy_(mr_graph *graph, mr_output labels, mr_output logits,
                                                const mr_loss_options *given)
{
    mr_loss_options options = {.collection = ""};
    bool is_good = mr_loss_begin(graph, "sparse_softmax_cross_entropy_loss", given, 0, &options);
    mr_shape shape = is_good ? mr_output_shape(logits) : MR_SCALAR,
             of_labels = is_good ? mr_output_shape(labels) : shape;
    if (is_good && of_labels.rank >= 1 && of_labels.rank == shape.rank && of_labels.dims[of_labels.rank - 1] == 1) {
        labels = mr_squeeze(graph, labels, .squeeze_dims = MR_INTS(-1)); /* [batch, 1], as TensorFlow accepts it */
        of_labels.rank--;
    }
    if (!is_good || shape.rank == 2 || (shape.rank < 0 && of_labels.rank == 1)) {
        mr_output loss =
            mr_sparse_softmax_cross_entropy_with_logits(graph, logits, labels, .name = "xentropy/xentropy").loss;
        return mr_loss_end(graph, loss, &options);
    }
    mr_graph_push_scope(graph, "xentropy");
    mr_output flat = mr_reshape(graph, labels, mr_constant_ints(graph, MR_INTS(-1)));
    mr_output loss = mr_sparse_softmax_cross_entropy_with_logits(graph, mr_loss_matrix(graph, logits), flat).loss;
    loss = mr_reshape(graph, loss, mr_shape_of(graph, labels));
    mr_graph_pop_scope(graph);
    return mr_loss_end(graph, loss, &options);
}

/* ---- Sums of collections ---- */

static bool read_sum_options(mr_graph *graph, const mr_loss_sum_options *given, mr_loss_sum_options *options,
                             const char *name)
{
    mr_error error = {0};
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return false;
    mr_status status = MR_OPTIONS_READ(mr_loss_sum_options, options, given, &error);
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s: %s", name, error.message);
    if (status == MR_OK && options->name == nullptr) options->name = name;
    return status == MR_OK;
}

/* Appends the collection's items of the scope. */
static int32_t add_items(mr_graph *graph, mr_output *items, int32_t count, const char *collection, const char *scope)
{
    const int32_t added = mr_graph_collection_count(graph, collection);
    for (int32_t i = 0; i < added; i++) items[count + i] = mr_graph_collection_item(graph, collection, i);
    return count + mr_train_filter_names(graph, items + count, added, scope);
}

/* {0}: there are none. */
static mr_output sum_of(mr_graph *graph, bool has_losses, bool has_regularization, const mr_loss_sum_options *options)
{
    int32_t count = 0;
    const int32_t most =
        mr_graph_collection_count(graph, MR_LOSSES) + mr_graph_collection_count(graph, MR_REGULARIZATION_LOSSES);
    mr_output *terms = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)most + 1);
    if (terms == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for %d losses", most);
    if (has_losses) count = add_items(graph, terms, count, MR_LOSSES, options->scope);
    if (has_regularization) count = add_items(graph, terms, count, MR_REGULARIZATION_LOSSES, options->scope);
    assert(count <= most);
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    if (count == 0) return (mr_output){0};
    if (count == 1) return mr_identity(graph, terms[0], .name = options->name);
    return mr_add_n(graph, MR_OUTPUTS_OF(terms, count), .name = options->name);
}

mr_output mr_loss_total_(mr_graph *graph, const mr_loss_sum_options *given)
{
    mr_loss_sum_options options;
    if (!read_sum_options(graph, given, &options, "total_loss")) return mr_graph_failed_output(graph);
    const mr_output total = sum_of(graph, true, !options.no_regularization, &options);
    if (total.node != nullptr) return total;
    return mr_graph_fail(graph, MR_FAILED_PRECONDITION, "the graph has no losses%s%s",
                         options.scope != nullptr ? " in the scope " : "",
                         options.scope != nullptr ? options.scope : "");
}

mr_output mr_loss_regularization_(mr_graph *graph, const mr_loss_sum_options *given)
{
    mr_loss_sum_options options;
    if (!read_sum_options(graph, given, &options, "total_regularization_loss")) return mr_graph_failed_output(graph);
    if (options.no_regularization)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "%s: no_regularization has no effect for the regularization losses", options.name);
    const mr_output total = sum_of(graph, false, true, &options);
    return total.node != nullptr ? total : mr_constant_float(graph, 0);
}

mr_output mr_accuracy(mr_graph *graph, mr_output labels, mr_output logits)
{
    mr_graph_push_scope(graph, "accuracy");
    mr_output best = mr_arg_max(graph, logits, mr_constant_int32(graph, 1), .output_type = MR_INT64);
    if (mr_output_dtype(labels) != MR_INT64) labels = mr_cast(graph, labels, MR_INT64);
    mr_output hits = mr_cast(graph, mr_equal(graph, best, labels), MR_FLOAT);
    mr_output value = mr_mean(graph, hits, mr_constant_ints(graph, MR_INTS(0)), .name = "value");
    mr_graph_pop_scope(graph);
    return value;
}
