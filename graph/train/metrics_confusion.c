/* Metrics of true and false positives and negatives, of predictions that are right or wrong or that exceed thresholds,
 * and of confusion matrices. */
#include "graph/train/metrics.h"
#include <millrace/ops.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static mr_output number(mr_graph *graph, float value)
{
    return mr_constant_float(graph, value);
}

static mr_output sum2(mr_graph *graph, mr_output a, mr_output b)
{
    return mr_add_v2(graph, a, b);
}

/* ---- Counts ---- */

typedef enum outcome { TRUE_POSITIVES, FALSE_NEGATIVES, TRUE_NEGATIVES, FALSE_POSITIVES, OUTCOME_COUNT } outcome;
constexpr int ALL_OUTCOMES = (1 << OUTCOME_COUNT) - 1;
static const char *const outcome_names[] = {"true_positives", "false_negatives", "true_negatives", "false_positives"};

/* What value and update have in common: a function of four numbers, or vectors of them. */
typedef struct outcomes {
    mr_output of[OUTCOME_COUNT];
} outcomes;

static bool is_label_positive(outcome kind)
{
    return kind == TRUE_POSITIVES || kind == FALSE_NEGATIVES;
}

static bool is_prediction_positive(outcome kind)
{
    return kind == TRUE_POSITIVES || kind == FALSE_POSITIVES;
}

static void begin(mr_graph *graph, const char *name, const mr_metric_options *given, int choices,
                  mr_metric_options *options, mr_output *labels, mr_output *predictions)
{
    (void)mr_metric_begin(graph, name, given, choices, options);
    mr_metric_match(graph, labels, predictions);
    *labels = mr_metric_cast(graph, *labels, MR_BOOL);
}

/* Counts inside of a scope of its own; labels and predictions are bool. */
static mr_metric count(mr_graph *graph, outcome kind, mr_output labels, mr_output predictions,
                       const mr_metric_options *options)
{
    mr_output is_label = is_label_positive(kind) ? labels : mr_logical_not(graph, labels);
    mr_output is_prediction = is_prediction_positive(kind) ? predictions : mr_logical_not(graph, predictions);
    mr_output hits = mr_metric_cast(graph, mr_logical_and(graph, is_label, is_prediction), MR_FLOAT);
    mr_output weights = mr_metric_weights(graph, options, hits);
    if (weights.node != nullptr) hits = mr_mul(graph, hits, weights);
    mr_variable total = mr_metric_variable(graph, "count", MR_SCALAR, MR_FLOAT);
    return (mr_metric){mr_identity(graph, total.value),
                       mr_assign_add(graph, total.ref, mr_metric_sum(graph, hits), .name = "update_op")};
}

static mr_metric count_outcome(mr_graph *graph, outcome kind, mr_output labels, mr_output predictions,
                               const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, outcome_names[kind], given, 0, &options, &labels, &predictions);
    predictions = mr_metric_cast(graph, predictions, MR_BOOL);
    return mr_metric_end(graph, count(graph, kind, labels, predictions, &options), &options);
}

mr_metric mr_metric_true_positives_(mr_graph *graph, mr_output labels, mr_output predictions,
                                    const mr_metric_options *options)
{
    return count_outcome(graph, TRUE_POSITIVES, labels, predictions, options);
}

mr_metric mr_metric_true_negatives_(mr_graph *graph, mr_output labels, mr_output predictions,
                                    const mr_metric_options *options)
{
    return count_outcome(graph, TRUE_NEGATIVES, labels, predictions, options);
}

mr_metric mr_metric_false_positives_(mr_graph *graph, mr_output labels, mr_output predictions,
                                     const mr_metric_options *options)
{
    return count_outcome(graph, FALSE_POSITIVES, labels, predictions, options);
}

mr_metric mr_metric_false_negatives_(mr_graph *graph, mr_output labels, mr_output predictions,
                                     const mr_metric_options *options)
{
    return count_outcome(graph, FALSE_NEGATIVES, labels, predictions, options);
}

/* true positives / (true positives + the other outcome) */
static mr_metric share(mr_graph *graph, const char *name, outcome other, mr_output labels, mr_output predictions,
                       const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, name, given, 0, &options, &labels, &predictions);
    predictions = mr_metric_cast(graph, predictions, MR_BOOL);
    mr_metric counts[2], result = {0};
    for (int i = 0; i < 2; i++) {
        outcome kind = i == 0 ? TRUE_POSITIVES : other;
        mr_graph_push_scope(graph, outcome_names[kind]);
        counts[i] = count(graph, kind, labels, predictions, &options);
        mr_graph_pop_scope(graph);
    }
    result.value =
        mr_div_no_nan(graph, counts[0].value, sum2(graph, counts[0].value, counts[1].value), .name = "value");
    result.update =
        mr_div_no_nan(graph, counts[0].update, sum2(graph, counts[0].update, counts[1].update), .name = "update_op");
    return mr_metric_end(graph, result, &options);
}

mr_metric mr_metric_precision_(mr_graph *graph, mr_output labels, mr_output predictions,
                               const mr_metric_options *options)
{
    return share(graph, "precision", FALSE_POSITIVES, labels, predictions, options);
}

mr_metric mr_metric_recall_(mr_graph *graph, mr_output labels, mr_output predictions, const mr_metric_options *options)
{
    return share(graph, "recall", FALSE_NEGATIVES, labels, predictions, options);
}

/* ---- Counts at thresholds ---- */

/* A run fails unless all predictions are at least, or at most, the limit. */
static mr_node *require(mr_graph *graph, mr_output predictions, bool at_least, float limit)
{
    mr_graph_push_scope(graph, at_least ? "assert_greater_equal" : "assert_less_equal");
    mr_output bound = number(graph, limit);
    mr_output fits = at_least ? mr_greater_equal(graph, predictions, bound) : mr_less_equal(graph, predictions, bound);
    mr_output all = mr_all(graph, mr_reshape(graph, fits, mr_constant_ints(graph, MR_INTS(-1))),
                           mr_constant_ints(graph, MR_INTS(0)));
    mr_output text = mr_constant_string(graph, "predictions must be in [0, 1]");
    mr_node *check = mr_assert(graph, all, MR_OUTPUTS(text, predictions));
    mr_graph_pop_scope(graph);
    return check;
}

/* The predictions as float, which are checked first. */
static mr_output checked_probabilities(mr_graph *graph, mr_output predictions)
{
    mr_output numbers = mr_metric_cast(graph, predictions, MR_FLOAT);
    mr_node *checks[] = {require(graph, numbers, true, 0), require(graph, numbers, false, 1)};
    if (mr_graph_status(graph, nullptr) != MR_OK) return numbers;
    mr_graph_push_control_dependencies(graph, checks, 2);
    numbers = mr_identity(graph, numbers);
    mr_graph_pop_control_dependencies(graph);
    return numbers;
}

/* Counts the outcomes of predictions > threshold, a vector of one number for each threshold.
 * kinds  a bit for each outcome that is counted */
static void count_at(mr_graph *graph, int kinds, mr_output labels, mr_output predictions, mr_floats thresholds,
                     const mr_metric_options *options, outcomes *values, outcomes *updates)
{
    *values = *updates = (outcomes){0};
    if (thresholds.count < 1 || thresholds.items == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "there are no thresholds");
    if (mr_graph_status(graph, nullptr) != MR_OK) {
        for (int i = 0; i < OUTCOME_COUNT; i++) values->of[i] = updates->of[i] = mr_graph_failed_output(graph);
        return;
    }
    mr_output row = mr_constant_ints(graph, MR_INTS(1, -1)), flat = mr_constant_ints(graph, MR_INTS(-1));
    mr_output probabilities = checked_probabilities(graph, predictions);
    mr_output predicted = mr_reshape(graph, probabilities, row);
    mr_output labelled = mr_reshape(graph, labels, row);
    mr_output limits = mr_constant_floats(graph, MR_SHAPE(thresholds.count, 1), thresholds.items, "thresholds");
    mr_output is_positive = mr_greater(graph, predicted, limits), weights = {0};
    if (options->weights.node != nullptr) {
        weights = mr_metric_weights(graph, options, probabilities);
        weights = mr_reshape(graph, mr_reshape(graph, weights, flat), row);
    }
    mr_output axis = mr_constant_ints(graph, MR_INTS(1));
    for (int kind = 0; kind < OUTCOME_COUNT; kind++) {
        if ((kinds >> kind & 1) == 0) continue;
        mr_output is_label = is_label_positive(kind) ? labelled : mr_logical_not(graph, labelled);
        mr_output is_prediction = is_prediction_positive(kind) ? is_positive : mr_logical_not(graph, is_positive);
        mr_output hits = mr_metric_cast(graph, mr_logical_and(graph, is_label, is_prediction), MR_FLOAT);
        if (weights.node != nullptr) hits = mr_mul(graph, hits, weights);
        mr_variable total = mr_metric_variable(graph, outcome_names[kind], MR_SHAPE(thresholds.count), MR_FLOAT);
        values->of[kind] = mr_identity(graph, total.value);
        updates->of[kind] = mr_assign_add(graph, total.ref, mr_sum(graph, hits, axis));
    }
}

/* 0, 1 and count - 2 thresholds between, the outer ones a little outside. */
static mr_floats make_thresholds(mr_graph *graph, int32_t count)
{
    if (graph == nullptr || count < 2) return (mr_floats){0}; /* after an error of the options */
    float *items = MR_ARENA_NEW(&graph->arena, float, (size_t)count);
    if (items == nullptr) return (mr_floats){0};
    items[0] = -1e-7f;
    for (int32_t i = 1; i + 1 < count; i++) items[i] = (float)(i * 1.0 / (count - 1));
    items[count - 1] = (float)(1.0 + 1e-7);
    return (mr_floats){items, count};
}

static int compare_floats(const void *a, const void *b)
{
    float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

/* The given thresholds in order, between the outer ones. None after an error of the graph. */
static mr_floats sort_thresholds(mr_graph *graph, mr_floats given)
{
    bool is_good = given.count > 0 && given.count <= INT32_MAX - 2 && given.items != nullptr;
    for (int32_t i = 0; is_good && i < given.count; i++)
        if (!mr_train_check_range(graph, "a threshold", given.items[i], 0, 1, true)) return (mr_floats){0};
    if (!is_good) return (mr_floats){0};
    mr_floats all = make_thresholds(graph, given.count + 2);
    if (all.count == 0) return all;
    float *items = MR_ARENA_NEW(&graph->arena, float, (size_t)all.count);
    if (items == nullptr) return (mr_floats){0};
    items[0] = all.items[0];
    memcpy(items + 1, given.items, (size_t)given.count * sizeof *items);
    items[all.count - 1] = all.items[all.count - 1];
    qsort(items + 1, (size_t)given.count, sizeof *items, compare_floats);
    return (mr_floats){items, all.count};
}

/* a / (a + b + epsilon) */
static mr_output rate(mr_graph *graph, mr_output a, mr_output b, float epsilon)
{
    return mr_real_div(graph, a, sum2(graph, sum2(graph, a, b), number(graph, epsilon)));
}

static mr_metric share_at(mr_graph *graph, const char *name, outcome other, mr_output labels, mr_output predictions,
                          mr_floats thresholds, const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, name, given, 0, &options, &labels, &predictions);
    outcomes v, u;
    count_at(graph, 1 << TRUE_POSITIVES | 1 << other, labels, predictions, thresholds, &options, &v, &u);
    mr_metric result = {rate(graph, v.of[TRUE_POSITIVES], v.of[other], 1e-7f),
                        rate(graph, u.of[TRUE_POSITIVES], u.of[other], 1e-7f)};
    return mr_metric_end(graph, result, &options);
}

mr_metric mr_metric_precision_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                             mr_floats thresholds, const mr_metric_options *options)
{
    return share_at(graph, "precision_at_thresholds", FALSE_POSITIVES, labels, predictions, thresholds, options);
}

mr_metric mr_metric_recall_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                          mr_floats thresholds, const mr_metric_options *options)
{
    return share_at(graph, "recall_at_thresholds", FALSE_NEGATIVES, labels, predictions, thresholds, options);
}

static mr_metric count_outcome_at(mr_graph *graph, outcome kind, mr_output labels, mr_output predictions,
                                  mr_floats thresholds, const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, outcome_names[kind], given, 0, &options, &labels, &predictions);
    outcomes v, u;
    count_at(graph, 1 << kind, labels, predictions, thresholds, &options, &v, &u);
    return mr_metric_end(graph, (mr_metric){v.of[kind], u.of[kind]}, &options);
}

mr_metric mr_metric_true_positives_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                  mr_floats thresholds, const mr_metric_options *options)
{
    return count_outcome_at(graph, TRUE_POSITIVES, labels, predictions, thresholds, options);
}

mr_metric mr_metric_true_negatives_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                  mr_floats thresholds, const mr_metric_options *options)
{
    return count_outcome_at(graph, TRUE_NEGATIVES, labels, predictions, thresholds, options);
}

mr_metric mr_metric_false_positives_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                   mr_floats thresholds, const mr_metric_options *options)
{
    return count_outcome_at(graph, FALSE_POSITIVES, labels, predictions, thresholds, options);
}

mr_metric mr_metric_false_negatives_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                   mr_floats thresholds, const mr_metric_options *options)
{
    return count_outcome_at(graph, FALSE_NEGATIVES, labels, predictions, thresholds, options);
}

/* Element `index` of the vector. */
static mr_output element(mr_graph *graph, mr_output vector, mr_output index)
{
    return mr_gather_v2(graph, vector, index, mr_constant_int32(graph, 0));
}

static mr_output sensitivity_of(mr_graph *graph, const outcomes *o, float specificity)
{
    mr_output found = rate(graph, o->of[TRUE_NEGATIVES], o->of[FALSE_POSITIVES], 1e-7f);
    mr_output distance = mr_abs(graph, mr_sub(graph, found, number(graph, specificity)));
    mr_output at = mr_arg_min(graph, distance, mr_constant_int32(graph, 0), .output_type = MR_INT64);
    return rate(graph, element(graph, o->of[TRUE_POSITIVES], at), element(graph, o->of[FALSE_NEGATIVES], at), 1e-7f);
}

/* The last threshold of those that are nearest. */
static mr_output specificity_of(mr_graph *graph, const outcomes *o, float sensitivity)
{
    mr_output zero = mr_constant_int32(graph, 0), axis = mr_constant_ints(graph, MR_INTS(0));
    mr_output found = rate(graph, o->of[TRUE_POSITIVES], o->of[FALSE_NEGATIVES], 1e-7f);
    mr_output distance = mr_abs(graph, mr_sub(graph, found, number(graph, sensitivity)));
    mr_output is_nearest = mr_equal(graph, distance, mr_min(graph, distance, axis));
    mr_output order = mr_cumsum(graph, mr_metric_cast(graph, is_nearest, MR_INT64), zero);
    mr_output at = mr_arg_max(graph, order, zero, .output_type = MR_INT64);
    return rate(graph, element(graph, o->of[TRUE_NEGATIVES], at), element(graph, o->of[FALSE_POSITIVES], at), 1e-7f);
}

static mr_metric at_other(mr_graph *graph, bool is_sensitivity, mr_output labels, mr_output predictions, float other,
                          const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, is_sensitivity ? "sensitivity_at_specificity" : "specificity_at_sensitivity", given,
          MR_METRIC_HAS_THRESHOLDS, &options, &labels, &predictions);
    bool is_good = mr_train_check_range(graph, is_sensitivity ? "specificity" : "sensitivity", other, 0, 1, true);
    outcomes v, u;
    mr_floats thresholds = is_good ? make_thresholds(graph, options.threshold_count) : (mr_floats){0};
    count_at(graph, ALL_OUTCOMES, labels, predictions, thresholds, &options, &v, &u);
    mr_output (*of)(mr_graph *, const outcomes *, float) = is_sensitivity ? sensitivity_of : specificity_of;
    return mr_metric_end(graph, (mr_metric){of(graph, &v, other), of(graph, &u, other)}, &options);
}

mr_metric mr_metric_sensitivity_at_specificity_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                float specificity, const mr_metric_options *options)
{
    return at_other(graph, true, labels, predictions, specificity, options);
}

mr_metric mr_metric_specificity_at_sensitivity_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                float sensitivity, const mr_metric_options *options)
{
    return at_other(graph, false, labels, predictions, sensitivity, options);
}

/* (a + epsilon) / (a + b + epsilon) */
static mr_output curve_rate(mr_graph *graph, mr_output a, mr_output b, bool is_raised)
{
    mr_output epsilon = number(graph, 1e-6f), above = is_raised ? sum2(graph, a, epsilon) : a;
    return mr_real_div(graph, above, sum2(graph, sum2(graph, a, b), epsilon));
}

/* The two sides of each strip between thresholds. */
typedef struct sides {
    mr_output left, right;
} sides;

static sides sides_of(mr_graph *graph, mr_output values, int32_t threshold_count)
{
    mr_output size = mr_constant_ints(graph, MR_INTS(threshold_count - 1));
    mr_output zero = mr_constant_ints(graph, MR_INTS(0)), one = mr_constant_ints(graph, MR_INTS(1));
    return (sides){mr_slice(graph, values, zero, size), mr_slice(graph, values, one, size)};
}

/* Within a strip, true positives increase linearly with all positives, so that precision is
 * slope + intercept / positives (Davis and Goadrich 2006, section 4). */
static mr_output interpolated_area_of(mr_graph *graph, const outcomes *o, int32_t count)
{
    mr_output zero = number(graph, 0), hits = o->of[TRUE_POSITIVES];
    sides tp = sides_of(graph, hits, count), p = sides_of(graph, sum2(graph, hits, o->of[FALSE_POSITIVES]), count);
    mr_output labels = sides_of(graph, sum2(graph, hits, o->of[FALSE_NEGATIVES]), count).right;
    mr_output gained = mr_sub(graph, tp.left, tp.right);
    mr_output width = mr_maximum(graph, mr_sub(graph, p.left, p.right), zero);
    mr_output slope = mr_div_no_nan(graph, gained, width, .name = "prec_slope");
    mr_output intercept = mr_sub(graph, tp.right, mr_mul(graph, slope, p.right));
    mr_output is_positive = mr_logical_and(graph, mr_greater(graph, p.left, zero), mr_greater(graph, p.right, zero));
    mr_output ratio = mr_div_no_nan(graph, p.left, mr_maximum(graph, p.right, zero), .name = "recall_relative_ratio");
    ratio = mr_select(graph, is_positive, ratio, mr_ones_like(graph, p.right));
    mr_output area = mr_add_v2(graph, gained, mr_mul(graph, intercept, mr_log(graph, ratio)));
    area =
        mr_div_no_nan(graph, mr_mul(graph, slope, area), mr_maximum(graph, labels, zero), .name = "pr_auc_increment");
    return mr_metric_sum(graph, area);
}

static mr_output area_of(mr_graph *graph, const outcomes *o, const mr_metric_options *options)
{
    if (options->is_precision_recall && options->summation == MR_AUC_CAREFUL_INTERPOLATION)
        return interpolated_area_of(graph, o, options->threshold_count);
    mr_output recall = curve_rate(graph, o->of[TRUE_POSITIVES], o->of[FALSE_NEGATIVES], true), x, y, height;
    if (options->is_precision_recall) {
        x = recall;
        y = curve_rate(graph, o->of[TRUE_POSITIVES], o->of[FALSE_POSITIVES], true);
    } else {
        x = curve_rate(graph, o->of[FALSE_POSITIVES], o->of[TRUE_NEGATIVES], false);
        y = recall;
    }
    sides of_x = sides_of(graph, x, options->threshold_count), of_y = sides_of(graph, y, options->threshold_count);
    if (options->summation == MR_AUC_MINORING)
        height = mr_minimum(graph, of_y.left, of_y.right);
    else if (options->summation == MR_AUC_MAJORING)
        height = mr_maximum(graph, of_y.left, of_y.right);
    else
        height = mr_real_div(graph, sum2(graph, of_y.left, of_y.right), number(graph, 2));
    return mr_metric_sum(graph, mr_mul(graph, mr_sub(graph, of_x.left, of_x.right), height));
}

mr_metric mr_metric_auc_(mr_graph *graph, mr_output labels, mr_output predictions, const mr_metric_options *given)
{
    mr_metric_options options = {0};
    begin(graph, "auc", given, MR_METRIC_HAS_THRESHOLDS | MR_METRIC_HAS_CURVE, &options, &labels, &predictions);
    outcomes v, u;
    mr_floats thresholds = {0};
    if (mr_graph_status(graph, nullptr) == MR_OK)
        thresholds = options.thresholds.count != 0 ? sort_thresholds(graph, options.thresholds)
                                                   : make_thresholds(graph, options.threshold_count);
    options.threshold_count = thresholds.count;
    count_at(graph, ALL_OUTCOMES, labels, predictions, thresholds, &options, &v, &u);
    return mr_metric_end(graph, (mr_metric){area_of(graph, &v, &options), area_of(graph, &u, &options)}, &options);
}
