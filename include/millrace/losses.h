/* Losses of tf.compat.v1.losses, with its names and values.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1));
 * mr_output logits = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 10));
 * mr_output loss = mr_loss_sparse_softmax_cross_entropy(g, labels, logits);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(loss.node));
 * mr_graph_free(g);
 * ```
 *
 * Options follow the rules of variables.h. */
#ifndef MILLRACE_LOSSES_H
#define MILLRACE_LOSSES_H

#include <millrace/variables.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the losses of the elements become one loss. */
typedef enum mr_reduction {
    MR_REDUCTION_SUM_BY_NONZERO_WEIGHTS = 0, /* the sum, divided by the number of elements whose weight is not 0 */
    MR_REDUCTION_NONE,                       /* the weighted losses of the elements */
    MR_REDUCTION_SUM,
    MR_REDUCTION_MEAN,                /* the sum, divided by the sum of the weights */
    MR_REDUCTION_SUM_OVER_BATCH_SIZE, /* the sum, divided by the number of elements */
} mr_reduction;

typedef struct mr_loss_options {
    size_t size; /* of this struct (api.h) */
    /* Weights of the elements: a scalar, or of the rank of the losses with sizes of 1 or theirs. Default: 1. A shape
     * that is not known until the run is checked there. */
    mr_output weights;
    mr_reduction reduction;
    float label_smoothing;  /* of the sigmoid and softmax cross entropy: default 0, 0 to less than 1 */
    float delta;            /* of Huber: where the loss becomes linear; default 1, at least 0 */
    float epsilon;          /* of the log loss: added to avoid the logarithm of 0; default 1e-7, at least 0 */
    int32_t axis;           /* of the cosine distance: required */
    const char *collection; /* default "losses"; "": none */
    const char *name;       /* of the scope; default: TensorFlow's */
} mr_loss_options;
#define MR_LOSS_DEFAULTS .label_smoothing = MR_UNSET, .delta = MR_UNSET, .epsilon = MR_UNSET, .axis = MR_COUNT_UNSET

/* Each loss takes labels and predictions (or logits) of one shape, and returns a scalar, or the losses of the elements
 * with MR_REDUCTION_NONE. It is added to the collection. 0 / 0 is 0: the loss of an empty batch is 0. */

/* |predictions - labels| */
MR_API mr_output mr_loss_absolute_difference_(mr_graph *graph, mr_output labels, mr_output predictions,
                                              const mr_loss_options *options);
/* 1 - sum of predictions * labels over the axis; both must have unit length. */
MR_API mr_output mr_loss_cosine_distance_(mr_graph *graph, mr_output labels, mr_output predictions,
                                          const mr_loss_options *options);
/* max(0, 1 - (2 labels - 1) logits), labels 0 or 1 */
MR_API mr_output mr_loss_hinge_(mr_graph *graph, mr_output labels, mr_output logits, const mr_loss_options *options);
/* error^2 / 2 if |error| <= delta, else delta |error| - delta^2 / 2 */
MR_API mr_output mr_loss_huber_(mr_graph *graph, mr_output labels, mr_output predictions,
                                const mr_loss_options *options);
/* -labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon) */
MR_API mr_output mr_loss_log_(mr_graph *graph, mr_output labels, mr_output predictions, const mr_loss_options *options);
/* (predictions - labels)^2 */
MR_API mr_output mr_loss_mean_squared_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                             const mr_loss_options *options);
/* The squared differences of the differences between all pairs of elements of a row, with a mean over the batch.
 * Weights are scalars or of one element for each row; there is no other reduction. */
MR_API mr_output mr_loss_mean_pairwise_squared_error_(mr_graph *graph, mr_output labels, mr_output predictions,
                                                      const mr_loss_options *options);
/* The cross entropy of independent classes; labels 0 to 1. */
MR_API mr_output mr_loss_sigmoid_cross_entropy_(mr_graph *graph, mr_output labels, mr_output logits,
                                                const mr_loss_options *options);
/* The cross entropy of exclusive classes along the last dimension; labels are probabilities. No gradient flows into the
 * labels. */
MR_API mr_output mr_loss_softmax_cross_entropy_(mr_graph *graph, mr_output labels, mr_output logits,
                                                const mr_loss_options *options);
/* The same for labels that are the numbers of classes: int32 or int64, of the logits' shape without the last
 * dimension. */
MR_API mr_output mr_loss_sparse_softmax_cross_entropy_(mr_graph *graph, mr_output labels, mr_output logits,
                                                       const mr_loss_options *options);
#define MR_LOSS_(function, graph, labels, predictions, ...)                                                            \
    MR_WITH_SIZE_(function((graph), (labels), (predictions), &options_), mr_loss_options, MR_LOSS_DEFAULTS, __VA_ARGS__)
#define mr_loss_absolute_difference(graph, labels, predictions, ...)                                                   \
    MR_LOSS_(mr_loss_absolute_difference_, graph, labels, predictions, __VA_ARGS__)
#define mr_loss_cosine_distance(graph, labels, predictions, ...)                                                       \
    MR_LOSS_(mr_loss_cosine_distance_, graph, labels, predictions, __VA_ARGS__)
#define mr_loss_hinge(graph, labels, logits, ...) MR_LOSS_(mr_loss_hinge_, graph, labels, logits, __VA_ARGS__)
#define mr_loss_huber(graph, labels, predictions, ...) MR_LOSS_(mr_loss_huber_, graph, labels, predictions, __VA_ARGS__)
#define mr_loss_log(graph, labels, predictions, ...) MR_LOSS_(mr_loss_log_, graph, labels, predictions, __VA_ARGS__)
#define mr_loss_mean_squared_error(graph, labels, predictions, ...)                                                    \
    MR_LOSS_(mr_loss_mean_squared_error_, graph, labels, predictions, __VA_ARGS__)
#define mr_loss_mean_pairwise_squared_error(graph, labels, predictions, ...)                                           \
    MR_LOSS_(mr_loss_mean_pairwise_squared_error_, graph, labels, predictions, __VA_ARGS__)
#define mr_loss_sigmoid_cross_entropy(graph, labels, logits, ...)                                                      \
    MR_LOSS_(mr_loss_sigmoid_cross_entropy_, graph, labels, logits, __VA_ARGS__)
#define mr_loss_softmax_cross_entropy(graph, labels, logits, ...)                                                      \
    MR_LOSS_(mr_loss_softmax_cross_entropy_, graph, labels, logits, __VA_ARGS__)
#define mr_loss_sparse_softmax_cross_entropy(graph, labels, logits, ...)                                               \
    MR_LOSS_(mr_loss_sparse_softmax_cross_entropy_, graph, labels, logits, __VA_ARGS__)

/* Weighs and reduces losses of your own, which it adds to the collection (tf.losses.compute_weighted_loss). */
MR_API mr_output mr_loss_weighted_(mr_graph *graph, mr_output losses, const mr_loss_options *options);
#define mr_loss_weighted(graph, losses, ...)                                                                           \
    MR_WITH_SIZE_(mr_loss_weighted_((graph), (losses), &options_), mr_loss_options, MR_LOSS_DEFAULTS, __VA_ARGS__)
/* Sum of the regularization losses, a scalar; 0 if there are none (tf.losses.get_regularization_loss). */
MR_API mr_output mr_loss_regularization(mr_graph *graph);
/* Sum of the graph's losses and regularization losses (tf.losses.get_total_loss). */
MR_API mr_output mr_loss_total(mr_graph *graph);
/* Fraction of rows whose largest logit is the label: a float scalar. */
MR_API mr_output mr_accuracy(mr_graph *graph, mr_output labels, mr_output logits);

#ifdef __cplusplus
}
#endif
#endif
