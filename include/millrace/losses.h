/* Losses of tf.compat.v1.losses, with its names and values, and those of tf.nn for many classes and for sequences.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1));
 * mr_output logits = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 10));
 * mr_output loss = mr_loss_sparse_softmax_cross_entropy(g, labels, logits);
 *
 * mr_output inputs = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 64));
 * mr_output words = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1, 1));
 * mr_variable weights = mr_get_variable(g, "weights", MR_SHAPE(50000, 64));
 * mr_variable biases = mr_get_variable(g, "biases", MR_SHAPE(50000), .initializer = {.kind = MR_INIT_ZEROS});
 * mr_output losses = mr_nce_loss(g, MR_VARIABLES(weights), MR_VARIABLES(biases), words, inputs, .num_sampled = 64,
 *                                .num_classes = 50000);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s and %s\n", mr_node_name(loss.node), mr_node_name(losses.node));
 * mr_graph_free(g);
 * ```
 *
 * Options follow the rules of variables.h. */
#ifndef MILLRACE_LOSSES_H
#define MILLRACE_LOSSES_H

#include <millrace/layers.h>

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
typedef struct mr_loss_sum_options {
    size_t size; /* of this struct (api.h) */
    /* A regular expression that matches the beginning of the names of the losses that are added: "tower_0/" for a
     * scope. Default: all */
    const char *scope;
    bool no_regularization; /* of the total: without the regularization losses */
    const char *name;       /* of the node; default "total_loss", "total_regularization_loss" */
} mr_loss_sum_options;
/* Sum of the regularization losses, a scalar; 0 if there are none (tf.losses.get_regularization_loss). */
MR_API mr_output mr_loss_regularization_(mr_graph *graph, const mr_loss_sum_options *options);
#define mr_loss_regularization(graph, ...)                                                                             \
    MR_WITH_SIZE_(mr_loss_regularization_((graph), &options_), mr_loss_sum_options, __VA_ARGS__)
/* Sum of the graph's losses and regularization losses (tf.losses.get_total_loss).
 * errors  there are none, or none that match */
MR_API mr_output mr_loss_total_(mr_graph *graph, const mr_loss_sum_options *options);
#define mr_loss_total(graph, ...) MR_WITH_SIZE_(mr_loss_total_((graph), &options_), mr_loss_sum_options, __VA_ARGS__)
/* Fraction of rows whose largest logit is the label: a float scalar. */
MR_API mr_output mr_accuracy(mr_graph *graph, mr_output labels, mr_output logits);

/* ---- Losses for many classes, of which each run samples a few (tf.nn) ----
 *
 * They return a loss for each example, [batch], which is in no collection: mr_mean and mr_minimize follow. Only the
 * rows of the true and the sampled classes are read, and the gradients of weights and biases are these rows
 * (mr_gradient_rows), so the cost of a step does not depend on num_classes. These losses are for training; an
 * evaluation computes all logits, inputs * transpose(weights) + biases. If that concatenates the parts of weights, the
 * losses need MR_PARTITION_DIV. */

/* The outputs of a candidate sampler: mr_uniform_candidate_sampler, mr_log_uniform_candidate_sampler,
 * mr_learned_unigram_candidate_sampler, mr_fixed_unigram_candidate_sampler, mr_all_candidate_sampler (ops.h). */
typedef struct mr_sampled_values {
    mr_output sampled_candidates;     /* int64 or int32 [num_sampled] */
    mr_output true_expected_count;    /* float [batch, num_true] */
    mr_output sampled_expected_count; /* float [num_sampled] */
} mr_sampled_values;

typedef struct mr_sampled_loss_options {
    size_t size;         /* of this struct (api.h) */
    int64_t num_sampled; /* required: classes that a run samples for all examples, 1 to INT32_MAX */
    int64_t num_classes; /* required: at least 1, at most the rows of weights */
    int64_t num_true;    /* true classes of an example: default 1, 1 to INT32_MAX */
    /* Default: mr_log_uniform_candidate_sampler with .unique = true: smaller labels must be the more frequent ones. It
     * needs num_sampled <= num_classes. */
    mr_sampled_values sampled_values;
    bool subtract_log_q; /* subtract the logarithm of the expected counts from the logits; default true */
    /* Ignore sampled classes that are true classes of the example. Default true for sampled softmax, false for NCE. */
    bool remove_accidental_hits;
    mr_partition_strategy partition_strategy; /* of weights and biases with several parts */
    int64_t seed; /* of the default sampler; 0: derived from the graph's; without effect with sampled_values */
    const char *name;
} mr_sampled_loss_options;
#define MR_NCE_LOSS_DEFAULTS .num_true = 1, .subtract_log_q = true
#define MR_SAMPLED_SOFTMAX_LOSS_DEFAULTS .num_true = 1, .subtract_log_q = true, .remove_accidental_hits = true

/* The softmax cross entropy between the true classes, each with the probability 1 / num_true, and the sampled ones
 * (tf.nn.sampled_softmax_loss). Its scope is "sampled_softmax_loss".
 * weights  floating [num_classes, dim], one or several parts along dimension 0. A partitioned variable stands for its
 *          parts. A tensor t is (mr_variable){.value = t}
 * biases   floating [num_classes], one or several parts
 * labels   int64 or int32 [batch, num_true]: 0 to num_classes - 1
 * inputs   floating [batch, dim]; weights and biases of another dtype are cast to this one */
MR_API mr_output mr_sampled_softmax_loss_(mr_graph *graph, mr_variables weights, mr_variables biases, mr_output labels,
                                          mr_output inputs, const mr_sampled_loss_options *options);
#define mr_sampled_softmax_loss(graph, weights, biases, labels, inputs, ...)                                           \
    MR_WITH_SIZE_(mr_sampled_softmax_loss_((graph), (weights), (biases), (labels), (inputs), &options_),               \
                  mr_sampled_loss_options, MR_SAMPLED_SOFTMAX_LOSS_DEFAULTS, __VA_ARGS__)
/* Noise-contrastive estimation: the sum of the sigmoid cross entropies of the true classes, each with the label
 * 1 / num_true, and of the sampled ones, with the label 0 (tf.nn.nce_loss). Its scope is "nce_loss". */
MR_API mr_output mr_nce_loss_(mr_graph *graph, mr_variables weights, mr_variables biases, mr_output labels,
                              mr_output inputs, const mr_sampled_loss_options *options);
#define mr_nce_loss(graph, weights, biases, labels, inputs, ...)                                                       \
    MR_WITH_SIZE_(mr_nce_loss_((graph), (weights), (biases), (labels), (inputs), &options_), mr_sampled_loss_options,  \
                  MR_NCE_LOSS_DEFAULTS, __VA_ARGS__)

/* ---- Losses of sequences ---- */

/* The loss of each row, [rows], instead of the sparse softmax cross entropy.
 * labels  int32 or int64 [rows]
 * logits  [rows, classes] */
typedef mr_output (*mr_softmax_loss_function)(void *context, mr_graph *graph, mr_output labels, mr_output logits);

typedef struct mr_sequence_loss_options {
    size_t size; /* of this struct (api.h) */
    /* Sum over time or over the batch, and divide by the sum of the weights along it; default true */
    bool average_across_timesteps, average_across_batch;
    /* Sum over time or over the batch, and divide by the number of weights along it that are not 0. An error together
     * with an average: set these to false. */
    bool sum_over_timesteps, sum_over_batch;
    mr_softmax_loss_function softmax_loss_function; /* called once, by mr_sequence_loss; default: described above */
    void *softmax_loss_context;                     /* its first argument */
    const char *name;                               /* of the scope; default "sequence_loss" */
} mr_sequence_loss_options;
#define MR_SEQUENCE_LOSS_DEFAULTS .average_across_timesteps = true, .average_across_batch = true
/* The weighted cross entropy of sequences (tf.contrib.seq2seq.sequence_loss): a scalar; [batch] if only time is
 * reduced, [time] if only the batch is, [batch, time] if neither is. It is in no collection. 0 / 0 is 0.
 * logits   floating [batch, time, classes]
 * targets  int32 or int64 [batch, time]: 0 to classes - 1
 * weights  of the dtype of logits, [batch, time]: 0 for steps past the end of a sequence */
MR_API mr_output mr_sequence_loss_(mr_graph *graph, mr_output logits, mr_output targets, mr_output weights,
                                   const mr_sequence_loss_options *options);
#define mr_sequence_loss(graph, logits, targets, weights, ...)                                                         \
    MR_WITH_SIZE_(mr_sequence_loss_((graph), (logits), (targets), (weights), &options_), mr_sequence_loss_options,     \
                  MR_SEQUENCE_LOSS_DEFAULTS, __VA_ARGS__)

/* ---- Connectionist temporal classification (tf.nn.ctc_loss) ---- */

/* A sparse tensor (tf.SparseTensor). */
typedef struct mr_sparse_output {
    mr_output indices;     /* int64 [n, rank], in row-major order */
    mr_output values;      /* [n] */
    mr_output dense_shape; /* int64 [rank] */
} mr_sparse_output;
#define MR_SPARSE_OUTPUT(indices, values, dense_shape) MR_VALUE_(mr_sparse_output, (indices), (values), (dense_shape))

typedef struct mr_ctc_loss_options {
    size_t size;                            /* of this struct (api.h) */
    bool preprocess_collapse_repeated;      /* merge repeated labels first */
    bool ctc_merge_repeated;                /* merge repeated classes of the alignments; default true */
    bool ignore_longer_outputs_than_inputs; /* such sequences have the loss 0; otherwise they fail the run */
    bool time_major;                        /* inputs are [time, batch, classes]; default true */
    const char *name;                       /* of the node; default "CTCLoss" */
} mr_ctc_loss_options;
#define MR_CTC_LOSS_DEFAULTS .ctc_merge_repeated = true, .time_major = true
/* The negative log probability of each sequence of labels, [batch] (tf.nn.ctc_loss). It is in no collection. It has a
 * gradient, but no second one.
 * labels           int32 values, at least one for each example; indices are [batch, position]. dense_shape is not read,
 *                  and may be {0}
 * inputs           half, bfloat16, float or double [time, batch, classes]: logits. The last class is the blank. [batch,
 *                  time, classes] without time_major
 * sequence_length  int32 [batch]: 0 to time */
MR_API mr_output mr_ctc_loss_(mr_graph *graph, mr_sparse_output labels, mr_output inputs, mr_output sequence_length,
                              const mr_ctc_loss_options *options);
#define mr_ctc_loss(graph, labels, inputs, sequence_length, ...)                                                       \
    MR_WITH_SIZE_(mr_ctc_loss_((graph), (labels), (inputs), (sequence_length), &options_), mr_ctc_loss_options,        \
                  MR_CTC_LOSS_DEFAULTS, __VA_ARGS__)

typedef struct mr_ctc_decoder_options {
    size_t size;         /* of this struct (api.h) */
    bool merge_repeated; /* merge repeated classes; default true */
    int64_t beam_width;  /* of the beam search: at least top_paths; default 100 */
    int64_t top_paths;   /* of the beam search: at least 1; default 1 */
    const char *name;    /* of the node; default "CTCGreedyDecoder", "CTCBeamSearchDecoder" */
} mr_ctc_decoder_options;
#define MR_CTC_DECODER_DEFAULTS .merge_repeated = true, .beam_width = MR_COUNT_UNSET, .top_paths = MR_COUNT_UNSET
/* Takes the most probable class of each step, without blanks (tf.nn.ctc_greedy_decoder). Returns the negative sum of
 * the largest logits of each sequence, [batch, 1].
 * inputs           float or double [time, batch, classes]
 * sequence_length  int32 [batch]
 * decoded          receives the labels: int64 values of the shape [batch, longest sequence] */
MR_API mr_output mr_ctc_greedy_decoder_(mr_graph *graph, mr_output inputs, mr_output sequence_length,
                                        mr_sparse_output *decoded, const mr_ctc_decoder_options *options);
#define mr_ctc_greedy_decoder(graph, inputs, sequence_length, decoded, ...)                                            \
    MR_WITH_SIZE_(mr_ctc_greedy_decoder_((graph), (inputs), (sequence_length), (decoded), &options_),                  \
                  mr_ctc_decoder_options, MR_CTC_DECODER_DEFAULTS, __VA_ARGS__)
/* Searches for the most probable labels (tf.nn.ctc_beam_search_decoder). Returns their log probabilities,
 * [batch, top_paths].
 * decoded  receives top_paths sparse tensors, the most probable labels first */
MR_API mr_output mr_ctc_beam_search_decoder_(mr_graph *graph, mr_output inputs, mr_output sequence_length,
                                             mr_sparse_output *decoded, const mr_ctc_decoder_options *options);
#define mr_ctc_beam_search_decoder(graph, inputs, sequence_length, decoded, ...)                                       \
    MR_WITH_SIZE_(mr_ctc_beam_search_decoder_((graph), (inputs), (sequence_length), (decoded), &options_),             \
                  mr_ctc_decoder_options, MR_CTC_DECODER_DEFAULTS, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
