/* Metrics of tf.compat.v1.metrics: values over all batches since their variables were initialized.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1));
 * mr_output predictions = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1));
 * mr_metric accuracy = mr_metric_accuracy(g, labels, predictions);
 * mr_node *reset = mr_initialize_variables(g, MR_METRIC_VARIABLES, "reset"); // before each evaluation
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * // for each batch: run accuracy.update; afterwards: run accuracy.value
 * printf("%s %s\n", mr_node_name(reset), mr_node_name(accuracy.value.node));
 * mr_graph_free(g);
 * ```
 *
 * Each metric has local variables in the collections "local_variables" and "metric_variables", which have
 * TensorFlow's names: accuracy/total, accuracy/count. 0 / 0 is 0. Options follow the rules of variables.h; an option
 * that a metric does not have is an error. */
#ifndef MILLRACE_METRICS_H
#define MILLRACE_METRICS_H

#include <millrace/variables.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The collection of the variables of all metrics. */
#define MR_METRIC_VARIABLES "metric_variables"

typedef struct mr_metric {
    mr_output value;  /* over all batches so far */
    mr_output update; /* adds a batch, and returns the new value */
} mr_metric;

/* The height of a strip of the area: the mean of its two sides, the lower one, or the higher one. Careful interpolation
 * is the mean for the ROC curve; for precision and recall it interpolates the positives instead of their quotient. */
typedef enum mr_auc_summation {
    MR_AUC_TRAPEZOIDAL = 0,
    MR_AUC_MINORING,
    MR_AUC_MAJORING,
    MR_AUC_CAREFUL_INTERPOLATION,
} mr_auc_summation;

typedef struct mr_metric_options {
    size_t size; /* of this struct (api.h) */
    /* Weights of the elements: a scalar, or of the values' rank with sizes of 1 or theirs. Default: 1. */
    mr_output weights;
    int32_t threshold_count;       /* of AUC and the two …_at_…: default 200, at least 2, at most 1,000,000 */
    bool is_precision_recall;      /* of AUC: the curve of precision and recall, instead of the ROC curve */
    mr_auc_summation summation;    /* of AUC */
    const char *values_collection; /* a collection to which value is added; default: none */
    const char *updates_collection;
    const char *name; /* of the scope; default: TensorFlow's */
    /* Of AUC: the thresholds in any order, 0 to 1, to which one below 0 and one above 1 are added; excludes
     * threshold_count. Default: threshold_count of them at equal distances. */
    mr_floats thresholds;
} mr_metric_options;
#define MR_METRIC_DEFAULTS .threshold_count = MR_COUNT_UNSET

/* ---- Means over all elements ---- */

MR_API mr_metric mr_metric_mean_(mr_graph *graph, mr_output values, const mr_metric_options *options);
/* The same for each element of the batch: value has the shape of values, which must be known. */
MR_API mr_metric mr_metric_mean_tensor_(mr_graph *graph, mr_output values, const mr_metric_options *options);
/* Share of the values below the threshold. */
MR_API mr_metric mr_metric_percentage_below_(mr_graph *graph, mr_output values, float threshold,
                                             const mr_metric_options *options);
#define mr_metric_mean(graph, values, ...)                                                                             \
    MR_WITH_SIZE_(mr_metric_mean_((graph), (values), &options_), mr_metric_options, MR_METRIC_DEFAULTS, __VA_ARGS__)
#define mr_metric_mean_tensor(graph, values, ...)                                                                      \
    MR_WITH_SIZE_(mr_metric_mean_tensor_((graph), (values), &options_), mr_metric_options, MR_METRIC_DEFAULTS,         \
                  __VA_ARGS__)
#define mr_metric_percentage_below(graph, values, threshold, ...)                                                      \
    MR_WITH_SIZE_(mr_metric_percentage_below_((graph), (values), (threshold), &options_), mr_metric_options,           \
                  MR_METRIC_DEFAULTS, __VA_ARGS__)

/* ---- Of labels and predictions, of one shape ---- */

/* Share of the predictions that equal their labels. */
MR_API mr_metric mr_metric_accuracy_(mr_graph *graph, mr_output labels, mr_output predictions,
                                     const mr_metric_options *options);
MR_API mr_metric mr_metric_mean_absolute_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                const mr_metric_options *options);
MR_API mr_metric mr_metric_mean_squared_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                               const mr_metric_options *options);
MR_API mr_metric mr_metric_root_mean_squared_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                    const mr_metric_options *options);
/* Counts, and their quotients, of labels and predictions that are cast to bool. */
MR_API mr_metric mr_metric_true_positives_(mr_graph *graph, mr_output labels, mr_output predictions,
                                           const mr_metric_options *options);
MR_API mr_metric mr_metric_true_negatives_(mr_graph *graph, mr_output labels, mr_output predictions,
                                           const mr_metric_options *options);
MR_API mr_metric mr_metric_false_positives_(mr_graph *graph, mr_output labels, mr_output predictions,
                                            const mr_metric_options *options);
MR_API mr_metric mr_metric_false_negatives_(mr_graph *graph, mr_output labels, mr_output predictions,
                                            const mr_metric_options *options);
MR_API mr_metric mr_metric_precision_(mr_graph *graph, mr_output labels, mr_output predictions,
                                      const mr_metric_options *options);
MR_API mr_metric mr_metric_recall_(mr_graph *graph, mr_output labels, mr_output predictions,
                                   const mr_metric_options *options);
/* The area under a curve, approximated at thresholds between 0 and 1. predictions: 0 to 1, of any shape; a run with
 * others fails, as for the metrics at thresholds below. */
MR_API mr_metric mr_metric_auc_(mr_graph *graph, mr_output labels, mr_output predictions,
                                const mr_metric_options *options);
#define MR_METRIC_(function, graph, labels, predictions, ...)                                                          \
    MR_WITH_SIZE_(function((graph), (labels), (predictions), &options_), mr_metric_options, MR_METRIC_DEFAULTS,        \
                  __VA_ARGS__)
#define mr_metric_accuracy(graph, labels, predictions, ...)                                                            \
    MR_METRIC_(mr_metric_accuracy_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_mean_absolute_error(graph, labels, predictions, ...)                                                 \
    MR_METRIC_(mr_metric_mean_absolute_error_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_mean_squared_error(graph, labels, predictions, ...)                                                  \
    MR_METRIC_(mr_metric_mean_squared_error_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_root_mean_squared_error(graph, labels, predictions, ...)                                             \
    MR_METRIC_(mr_metric_root_mean_squared_error_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_true_positives(graph, labels, predictions, ...)                                                      \
    MR_METRIC_(mr_metric_true_positives_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_true_negatives(graph, labels, predictions, ...)                                                      \
    MR_METRIC_(mr_metric_true_negatives_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_false_positives(graph, labels, predictions, ...)                                                     \
    MR_METRIC_(mr_metric_false_positives_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_false_negatives(graph, labels, predictions, ...)                                                     \
    MR_METRIC_(mr_metric_false_negatives_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_precision(graph, labels, predictions, ...)                                                           \
    MR_METRIC_(mr_metric_precision_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_recall(graph, labels, predictions, ...)                                                              \
    MR_METRIC_(mr_metric_recall_, graph, labels, predictions, __VA_ARGS__)
#define mr_metric_auc(graph, labels, predictions, ...)                                                                 \
    MR_METRIC_(mr_metric_auc_, graph, labels, predictions, __VA_ARGS__)

/* The mean of |labels - predictions| / normalizer; where the normalizer is 0, 0. */
MR_API mr_metric mr_metric_mean_relative_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                mr_output normalizer, const mr_metric_options *options);
/* The mean of 1 - the sum of labels * predictions over the axis. */
MR_API mr_metric mr_metric_mean_cosine_distance_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t axis,
                                                 const mr_metric_options *options);
/* The mean over the classes of intersection / union; update returns the confusion matrix. labels, predictions: integers
 * from 0 to class_count - 1 */
MR_API mr_metric mr_metric_mean_iou_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t class_count,
                                     const mr_metric_options *options);
/* The mean over the classes of their accuracies; update returns those of the classes. */
MR_API mr_metric mr_metric_mean_per_class_accuracy_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                    int32_t class_count, const mr_metric_options *options);
/* Precisions or recalls at each threshold, a vector: predictions larger than it are positive. */
MR_API mr_metric mr_metric_precision_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                    mr_floats thresholds, const mr_metric_options *options);
MR_API mr_metric mr_metric_recall_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                 mr_floats thresholds, const mr_metric_options *options);
/* Counts at each threshold, vectors. */
MR_API mr_metric mr_metric_true_positives_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                         mr_floats thresholds, const mr_metric_options *options);
MR_API mr_metric mr_metric_true_negatives_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                         mr_floats thresholds, const mr_metric_options *options);
MR_API mr_metric mr_metric_false_positives_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                          mr_floats thresholds, const mr_metric_options *options);
MR_API mr_metric mr_metric_false_negatives_at_thresholds_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                          mr_floats thresholds, const mr_metric_options *options);
/* The sensitivity at the threshold whose specificity is nearest to the given one, 0 to 1; and the other way round. */
MR_API mr_metric mr_metric_sensitivity_at_specificity_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                       float specificity, const mr_metric_options *options);
MR_API mr_metric mr_metric_specificity_at_sensitivity_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                       float sensitivity, const mr_metric_options *options);
#define MR_METRIC_OF_(function, graph, labels, predictions, argument, ...)                                             \
    MR_WITH_SIZE_(function((graph), (labels), (predictions), (argument), &options_), mr_metric_options,                \
                  MR_METRIC_DEFAULTS, __VA_ARGS__)
#define mr_metric_mean_relative_error(graph, labels, predictions, normalizer, ...)                                     \
    MR_METRIC_OF_(mr_metric_mean_relative_error_, graph, labels, predictions, normalizer, __VA_ARGS__)
#define mr_metric_mean_cosine_distance(graph, labels, predictions, axis, ...)                                          \
    MR_METRIC_OF_(mr_metric_mean_cosine_distance_, graph, labels, predictions, axis, __VA_ARGS__)
#define mr_metric_mean_iou(graph, labels, predictions, class_count, ...)                                               \
    MR_METRIC_OF_(mr_metric_mean_iou_, graph, labels, predictions, class_count, __VA_ARGS__)
#define mr_metric_mean_per_class_accuracy(graph, labels, predictions, class_count, ...)                                \
    MR_METRIC_OF_(mr_metric_mean_per_class_accuracy_, graph, labels, predictions, class_count, __VA_ARGS__)
#define mr_metric_precision_at_thresholds(graph, labels, predictions, thresholds, ...)                                 \
    MR_METRIC_OF_(mr_metric_precision_at_thresholds_, graph, labels, predictions, thresholds, __VA_ARGS__)
#define mr_metric_recall_at_thresholds(graph, labels, predictions, thresholds, ...)                                    \
    MR_METRIC_OF_(mr_metric_recall_at_thresholds_, graph, labels, predictions, thresholds, __VA_ARGS__)
#define mr_metric_true_positives_at_thresholds(graph, labels, predictions, thresholds, ...)                            \
    MR_METRIC_OF_(mr_metric_true_positives_at_thresholds_, graph, labels, predictions, thresholds, __VA_ARGS__)
#define mr_metric_true_negatives_at_thresholds(graph, labels, predictions, thresholds, ...)                            \
    MR_METRIC_OF_(mr_metric_true_negatives_at_thresholds_, graph, labels, predictions, thresholds, __VA_ARGS__)
#define mr_metric_false_positives_at_thresholds(graph, labels, predictions, thresholds, ...)                           \
    MR_METRIC_OF_(mr_metric_false_positives_at_thresholds_, graph, labels, predictions, thresholds, __VA_ARGS__)
#define mr_metric_false_negatives_at_thresholds(graph, labels, predictions, thresholds, ...)                           \
    MR_METRIC_OF_(mr_metric_false_negatives_at_thresholds_, graph, labels, predictions, thresholds, __VA_ARGS__)
#define mr_metric_sensitivity_at_specificity(graph, labels, predictions, specificity, ...)                             \
    MR_METRIC_OF_(mr_metric_sensitivity_at_specificity_, graph, labels, predictions, specificity, __VA_ARGS__)
#define mr_metric_specificity_at_sensitivity(graph, labels, predictions, sensitivity, ...)                             \
    MR_METRIC_OF_(mr_metric_specificity_at_sensitivity_, graph, labels, predictions, sensitivity, __VA_ARGS__)

/* ---- Of the k best classes ---- */

typedef struct mr_metric_at_k_options {
    size_t size; /* of this struct (api.h) */
    /* Weights of the rows: a scalar, or of the rank of the labels without their last dimension, with sizes of 1 or
     * theirs. Default: 1. */
    mr_output weights;
    /* Of sparse labels, whose values are the argument `labels`: int64 [count, rank], sorted by row, and int64 [rank].
     * Default: dense labels. */
    mr_output label_indices, label_shape;
    int32_t class_id;              /* of recall and precision: only this class counts; default: all */
    int32_t k;                     /* of the two …_at_top_k: a part of the default names, at least 1; default: "k" */
    const char *values_collection; /* a collection to which value is added; default: none */
    const char *updates_collection;
    const char *name; /* of the scope; default: TensorFlow's, as recall_at_3, precision_at_3_class2, recall_at_k */
} mr_metric_at_k_options;
#define MR_METRIC_AT_K_DEFAULTS .class_id = MR_COUNT_UNSET, .k = MR_COUNT_UNSET

/* The share of the labels that are among the k best predictions, and the share of the k best predictions that are
 * labels, over all rows: double scalars, NaN before the first update and while there is nothing to divide by. A class
 * counts once in a row. The variables are true_positive_at_3 and false_negative_at_3 or false_positive_at_3.
 * labels       int64: [..., classes of the row], or [...] for one class in each row; sparse: the values, [count].
 *              Classes that are not predicted are missed by recall, and do not matter for precision.
 * predictions  floating-point scores [..., classes], of rank 2 or more
 * k            1 to the number of classes
 * TensorFlow's sparse_precision_at_k and sparse_average_precision_at_k are old names of precision_at_k and
 * average_precision_at_k. */
MR_API mr_metric mr_metric_recall_at_k_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t k,
                                        const mr_metric_at_k_options *options);
MR_API mr_metric mr_metric_precision_at_k_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t k,
                                           const mr_metric_at_k_options *options);
/* The same with the ids of the best classes. predictions: int32 or int64, [..., k] */
MR_API mr_metric mr_metric_recall_at_top_k_(mr_graph *graph, mr_output labels, mr_output predictions,
                                            const mr_metric_at_k_options *options);
MR_API mr_metric mr_metric_precision_at_top_k_(mr_graph *graph, mr_output labels, mr_output predictions,
                                               const mr_metric_at_k_options *options);
/* The mean over the rows of their average precision: the sum of the precisions at 1 to k, at those places where the
 * prediction is a label, divided by the number of labels, at most k. A double scalar, 0 before the first update. As in
 * TensorFlow, it is NaN once a row without labels was added; labels outside of the classes are no labels if they are
 * dense, but one label if they are sparse. k of sparse labels: at most 65536 */
MR_API mr_metric mr_metric_average_precision_at_k_(mr_graph *graph, mr_output labels, mr_output predictions, int32_t k,
                                                   const mr_metric_at_k_options *options);
#define MR_METRIC_AT_K_(function, graph, labels, predictions, k_best, ...)                                             \
    MR_WITH_SIZE_(function((graph), (labels), (predictions), (k_best), &options_), mr_metric_at_k_options,             \
                  MR_METRIC_AT_K_DEFAULTS, __VA_ARGS__)
#define mr_metric_recall_at_k(graph, labels, predictions, k_best, ...)                                                 \
    MR_METRIC_AT_K_(mr_metric_recall_at_k_, graph, labels, predictions, k_best, __VA_ARGS__)
#define mr_metric_precision_at_k(graph, labels, predictions, k_best, ...)                                              \
    MR_METRIC_AT_K_(mr_metric_precision_at_k_, graph, labels, predictions, k_best, __VA_ARGS__)
#define mr_metric_average_precision_at_k(graph, labels, predictions, k_best, ...)                                      \
    MR_METRIC_AT_K_(mr_metric_average_precision_at_k_, graph, labels, predictions, k_best, __VA_ARGS__)
#define mr_metric_recall_at_top_k(graph, labels, predictions, ...)                                                     \
    MR_WITH_SIZE_(mr_metric_recall_at_top_k_((graph), (labels), (predictions), &options_), mr_metric_at_k_options,     \
                  MR_METRIC_AT_K_DEFAULTS, __VA_ARGS__)
#define mr_metric_precision_at_top_k(graph, labels, predictions, ...)                                                  \
    MR_WITH_SIZE_(mr_metric_precision_at_top_k_((graph), (labels), (predictions), &options_), mr_metric_at_k_options,  \
                  MR_METRIC_AT_K_DEFAULTS, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
