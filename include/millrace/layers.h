/* Layers of tf.compat.v1.layers: their scopes, variables and operators have the same names, so that checkpoints can be
 * exchanged in both directions.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 28, 28, 1));
 * mr_output h = mr_layer_conv2d(g, images, .filters = 16, .kernel_size = 3, .activation = mr_activation_relu);
 * h = mr_layer_flatten(g, mr_layer_max_pool(g, h, .pool_size = 2));
 * mr_output logits = mr_layer_dense(g, h, .units = 10);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(logits.node));
 * mr_graph_free(g);
 * ```
 *
 * Options follow the rules of variables.h. */
#ifndef MILLRACE_LAYERS_H
#define MILLRACE_LAYERS_H

#include <millrace/variables.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Activations (tf.nn) ---- */

/* A function of each element, or of each vector along the last dimension, of the dtypes of TensorFlow's operator.
 * Options of layers and cells take such a function, one of the caller's too: one with another slope calls
 * mr_leaky_relu of ops.h. */
typedef mr_output (*mr_activation)(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_relu(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_sigmoid(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_tanh(mr_graph *graph, mr_output input);
/* min(max(x, 0), 6) */
MR_API mr_output mr_activation_relu6(mr_graph *graph, mr_output input);
/* x, or 0.2 x where x is negative */
MR_API mr_output mr_activation_leaky_relu(mr_graph *graph, mr_output input);
/* [relu(x), relu(-x)], concatenated along the last dimension, which becomes twice as large */
MR_API mr_output mr_activation_crelu(mr_graph *graph, mr_output input);
/* x, or e^x - 1 where x is negative */
MR_API mr_output mr_activation_elu(mr_graph *graph, mr_output input);
/* ELU scaled such that mean 0 and variance 1 are kept */
MR_API mr_output mr_activation_selu(mr_graph *graph, mr_output input);
/* x sigmoid(x), also called SiLU */
MR_API mr_output mr_activation_swish(mr_graph *graph, mr_output input);
/* ln(1 + e^x) */
MR_API mr_output mr_activation_softplus(mr_graph *graph, mr_output input);
/* ln(sigmoid(x)), without overflow: -softplus(-x) */
MR_API mr_output mr_activation_log_sigmoid(mr_graph *graph, mr_output input);
/* x / (1 + |x|) */
MR_API mr_output mr_activation_softsign(mr_graph *graph, mr_output input);
/* min(max(0.2 x + 0.5, 0), 1), as tf.keras.backend.hard_sigmoid */
MR_API mr_output mr_activation_hard_sigmoid(mr_graph *graph, mr_output input);
/* Of each vector along the last dimension. */
MR_API mr_output mr_activation_softmax(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_log_softmax(mr_graph *graph, mr_output input);
/* input * weights + biases, and relu of it (tf.nn.xw_plus_b, tf.nn.relu_layer), without variables of their own.
 * input    [batch, features]
 * weights  [features, units]
 * biases   [units] */
MR_API mr_output mr_xw_plus_b(mr_graph *graph, mr_output input, mr_output weights, mr_output biases);
MR_API mr_output mr_relu_layer(mr_graph *graph, mr_output input, mr_output weights, mr_output biases);

/* ---- Layers (tf.compat.v1.layers) ---- */

/* Options that several layers have, with one meaning:
 *   not_trainable   do not add the variables to "trainable_variables"
 *   name         of the layer's scopes; default: the layer's own name, "dense", made unique with "_1", "_2", …
 *   reuse        as in mr_graph_push_variable_scope: MR_REUSE and MR_AUTO_REUSE share the variables of a layer of this
 *                name
 *   *_constraint    projects the variable after each update of an optimizer; default: the variable scope's
 *   activation   applied to the result; default: none
 *   *_initializer   default: as TensorFlow's; a kernel's is the variable scope's, then Glorot uniform
 *   *_regularizer   adds to "regularization_losses"; default: none. activity_regularizer: of the result, divided by
 *                   the size of the batch
 *   channels_first  the channels are dimension 1, not the last one; default false
 *   same            padding SAME; default: VALID
 * A size for each dimension has a plain form for equal sizes, .kernel_size = 3, and a list, .kernel_sizes =
 * MR_INTS(3, 5). One of them is set. */

/* ---- Dense ---- */

/* input  [batch, …, features], features known; of more than 2 dimensions: each vector along the last one */
typedef struct mr_dense_layer {
    size_t size;                       /* of this struct (api.h) */
    int32_t units;                     /* required, at least 1 */
    bool use_bias;                     /* default true */
    mr_initializer kernel_initializer; /* of the kernel */
    float weight_decay;                /* adds weight_decay * sum(kernel^2) / 2 to the regularization losses; default 0,
                                          at least 0; kernel_regularizer.l2 does the same */
    mr_activation activation;
    const char *name;                /* default "dense" */
    mr_initializer bias_initializer; /* default: zeros */
    mr_regularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    bool not_trainable;
    mr_reuse reuse;
    mr_constraint kernel_constraint, bias_constraint;
} mr_dense_layer;
#define MR_DENSE_LAYER_DEFAULTS .use_bias = true
MR_API mr_output mr_layer_dense_(mr_graph *graph, mr_output input, const mr_dense_layer *layer);
#define mr_layer_dense(graph, input, ...)                                                                              \
    MR_WITH_SIZE_(mr_layer_dense_((graph), (input), &options_), mr_dense_layer, MR_DENSE_LAYER_DEFAULTS, __VA_ARGS__)

/* ---- PReLU (tf.keras.layers.PReLU) ---- */

/* x, or alpha x where x is negative; alpha is a variable with the shape of one example.
 * input  [batch, …], all but the batch known */
typedef struct mr_prelu_layer {
    size_t size;         /* of this struct (api.h) */
    mr_ints shared_axes; /* dimensions along which alpha is the same, 1 to rank - 1: 1, 2 for images; default: none */
    mr_initializer alpha_initializer; /* default: zeros */
    mr_regularizer alpha_regularizer;
    bool not_trainable;
    const char *name; /* default "p_re_lu" */
    mr_reuse reuse;
    mr_constraint alpha_constraint;
} mr_prelu_layer;
MR_API mr_output mr_layer_prelu_(mr_graph *graph, mr_output input, const mr_prelu_layer *layer);
#define mr_layer_prelu(graph, input, ...)                                                                              \
    MR_WITH_SIZE_(mr_layer_prelu_((graph), (input), &options_), mr_prelu_layer, __VA_ARGS__)

/* ---- Convolutions ----
 *
 * conv1d  [batch, length, channels]; conv2d  [batch, height, width, channels]; conv3d  [batch, depth, height, width,
 * channels]. With channels_first the channels are dimension 1. Their number must be known. */

typedef struct mr_conv_layer {
    size_t size;         /* of this struct (api.h) */
    int32_t filters;     /* required, at least 1 */
    int32_t kernel_size; /* required, at least 1, unless kernel_sizes is set */
    int32_t strides;     /* default 1, at least 1 */
    bool same;
    bool use_bias;                     /* default true */
    mr_initializer kernel_initializer; /* of the kernel */
    float weight_decay;                /* as in mr_dense_layer */
    mr_activation activation;
    const char *name; /* default "conv1d", "conv2d", "conv3d"; "conv2d_transpose", "conv3d_transpose" */
    mr_ints kernel_sizes;
    mr_ints strides_each;
    int32_t dilation_rate; /* 0: 1; at least 1; only where strides are 1, and not of a transposed convolution */
    mr_ints dilation_rates;
    bool channels_first;
    mr_initializer bias_initializer; /* default: zeros */
    mr_regularizer kernel_regularizer, bias_regularizer, activity_regularizer;
    bool not_trainable;
    mr_reuse reuse;
    mr_constraint kernel_constraint, bias_constraint;
} mr_conv_layer;
typedef mr_conv_layer mr_conv2d_layer;
#define MR_CONV_LAYER_DEFAULTS .strides = 1, .use_bias = true
#define MR_CONV2D_LAYER_DEFAULTS MR_CONV_LAYER_DEFAULTS
MR_API mr_output mr_layer_conv1d_(mr_graph *graph, mr_output input, const mr_conv_layer *layer);
MR_API mr_output mr_layer_conv2d_(mr_graph *graph, mr_output input, const mr_conv_layer *layer);
MR_API mr_output mr_layer_conv3d_(mr_graph *graph, mr_output input, const mr_conv_layer *layer);
#define mr_layer_conv1d(graph, input, ...)                                                                             \
    MR_WITH_SIZE_(mr_layer_conv1d_((graph), (input), &options_), mr_conv_layer, MR_CONV_LAYER_DEFAULTS, __VA_ARGS__)
#define mr_layer_conv2d(graph, input, ...)                                                                             \
    MR_WITH_SIZE_(mr_layer_conv2d_((graph), (input), &options_), mr_conv_layer, MR_CONV_LAYER_DEFAULTS, __VA_ARGS__)
#define mr_layer_conv3d(graph, input, ...)                                                                             \
    MR_WITH_SIZE_(mr_layer_conv3d_((graph), (input), &options_), mr_conv_layer, MR_CONV_LAYER_DEFAULTS, __VA_ARGS__)
/* The transposed convolution ("deconvolution"): its result is as large as the input of a convolution with these options
 * whose result is as large as this input. */
MR_API mr_output mr_layer_conv2d_transpose_(mr_graph *graph, mr_output input, const mr_conv_layer *layer);
MR_API mr_output mr_layer_conv3d_transpose_(mr_graph *graph, mr_output input, const mr_conv_layer *layer);
#define mr_layer_conv2d_transpose(graph, input, ...)                                                                   \
    MR_WITH_SIZE_(mr_layer_conv2d_transpose_((graph), (input), &options_), mr_conv_layer, MR_CONV_LAYER_DEFAULTS,      \
                  __VA_ARGS__)
#define mr_layer_conv3d_transpose(graph, input, ...)                                                                   \
    MR_WITH_SIZE_(mr_layer_conv3d_transpose_((graph), (input), &options_), mr_conv_layer, MR_CONV_LAYER_DEFAULTS,      \
                  __VA_ARGS__)

/* Each channel by itself ("depthwise_kernel"), then, unless the layer is depthwise, 1 x 1 over all channels
 * ("pointwise_kernel"). */
typedef struct mr_separable_conv_layer {
    size_t size;              /* of this struct (api.h) */
    int32_t filters;          /* required, at least 1; of a depthwise layer it has no effect */
    int32_t kernel_size;      /* required, at least 1, unless kernel_sizes is set */
    int32_t strides;          /* default 1, at least 1; equal in both dimensions */
    int32_t depth_multiplier; /* channels for each input channel: default 1, at least 1 */
    bool same;
    bool use_bias; /* default true */
    mr_activation activation;
    const char *name; /* default "separable_conv1d", "separable_conv2d", "depthwise_conv2d" */
    mr_ints kernel_sizes;
    int32_t dilation_rate; /* 0: 1; at least 1; only where strides are 1 */
    bool channels_first;   /* of two dimensions */
    mr_initializer depthwise_initializer, pointwise_initializer;
    mr_initializer bias_initializer; /* default: zeros */
    mr_regularizer depthwise_regularizer, pointwise_regularizer, bias_regularizer, activity_regularizer;
    bool not_trainable;
    mr_reuse reuse;
    mr_constraint depthwise_constraint, pointwise_constraint, bias_constraint;
} mr_separable_conv_layer;
#define MR_SEPARABLE_CONV_LAYER_DEFAULTS .strides = 1, .depth_multiplier = 1, .use_bias = true
MR_API mr_output mr_layer_separable_conv1d_(mr_graph *graph, mr_output input, const mr_separable_conv_layer *layer);
MR_API mr_output mr_layer_separable_conv2d_(mr_graph *graph, mr_output input, const mr_separable_conv_layer *layer);
MR_API mr_output mr_layer_depthwise_conv2d_(mr_graph *graph, mr_output input, const mr_separable_conv_layer *layer);
#define mr_layer_separable_conv1d(graph, input, ...)                                                                   \
    MR_WITH_SIZE_(mr_layer_separable_conv1d_((graph), (input), &options_), mr_separable_conv_layer,                    \
                  MR_SEPARABLE_CONV_LAYER_DEFAULTS, __VA_ARGS__)
#define mr_layer_separable_conv2d(graph, input, ...)                                                                   \
    MR_WITH_SIZE_(mr_layer_separable_conv2d_((graph), (input), &options_), mr_separable_conv_layer,                    \
                  MR_SEPARABLE_CONV_LAYER_DEFAULTS, __VA_ARGS__)
/* tf.keras.layers.DepthwiseConv2D */
#define mr_layer_depthwise_conv2d(graph, input, ...)                                                                   \
    MR_WITH_SIZE_(mr_layer_depthwise_conv2d_((graph), (input), &options_), mr_separable_conv_layer,                    \
                  MR_SEPARABLE_CONV_LAYER_DEFAULTS, __VA_ARGS__)

/* ---- Normalization ---- */

/* input  of 2 to 5 dimensions; the size of axis known */
typedef struct mr_batch_normalization_layer {
    size_t size; /* of this struct (api.h) */
    /* True: use batch statistics, and update the moving averages through the collection "update_ops". Default false. */
    int32_t training;
    float momentum;        /* of the moving averages; default 0.99, 0 to 1; an error if training is omitted */
    float epsilon;         /* default 0.001, at least 0 */
    const char *name;      /* default "batch_normalization" */
    mr_output is_training; /* the same as training, as a bool scalar; set either this or training */
    int32_t axis;          /* of the channels; default -1: the last dimension */
    bool no_center;        /* without beta */
    bool no_scale;         /* without gamma */
    /* One operator for all: true, false, or MR_INHERIT, the default: if the input has 4 dimensions and axis is 1 or
     * 3. */
    int32_t fused;
    bool renorm;                                 /* batch renormalization */
    float renorm_rmin, renorm_rmax, renorm_dmax; /* limits of its corrections; default: none */
    float renorm_momentum;                       /* default 0.99, 0 to 1 */
    mr_initializer beta_initializer;             /* default: zeros */
    mr_initializer gamma_initializer;            /* default: ones */
    mr_initializer moving_mean_initializer;      /* default: zeros */
    mr_initializer moving_variance_initializer;  /* default: ones */
    mr_regularizer beta_regularizer, gamma_regularizer;
    bool not_trainable;
    mr_reuse reuse;
    mr_constraint beta_constraint, gamma_constraint;
    /* Statistics of parts of the batch with so many elements each ("ghost batches"). The batch is a multiple of it; of
     * n parts, part i has the elements i, i + n, i + 2n, …. The averages move by the mean of the parts' statistics. The
     * variables have one dimension more than the input. Default: statistics of the batch. Not with fused */
    int32_t virtual_batch_size;
} mr_batch_normalization_layer;
#define MR_BATCH_NORMALIZATION_LAYER_DEFAULTS                                                                          \
    .training = MR_TRAINING_UNSET, .momentum = MR_UNSET, .epsilon = 0.001f, .axis = -1, .fused = MR_INHERIT,           \
    .renorm_rmin = MR_UNSET, .renorm_rmax = MR_UNSET, .renorm_dmax = MR_UNSET, .renorm_momentum = MR_UNSET
MR_API mr_output mr_layer_batch_normalization_(mr_graph *graph, mr_output input,
                                               const mr_batch_normalization_layer *layer);
#define mr_layer_batch_normalization(graph, input, ...)                                                                \
    MR_WITH_SIZE_(mr_layer_batch_normalization_((graph), (input), &options_), mr_batch_normalization_layer,            \
                  MR_BATCH_NORMALIZATION_LAYER_DEFAULTS, __VA_ARGS__)

/* Normalizes each element of the batch over all its other dimensions; gamma and beta have the last dimension's size
 * (tf.contrib.layers.layer_norm).
 * input  of at least 2 dimensions, the size of the last one known */
typedef struct mr_layer_norm_layer {
    size_t size;    /* of this struct (api.h) */
    bool no_center; /* without beta */
    bool no_scale;  /* without gamma */
    mr_activation activation;
    const char *name; /* default "LayerNorm" */
    bool not_trainable;
    mr_reuse reuse;
} mr_layer_norm_layer;
MR_API mr_output mr_layer_layer_norm_(mr_graph *graph, mr_output input, const mr_layer_norm_layer *layer);
#define mr_layer_layer_norm(graph, input, ...)                                                                         \
    MR_WITH_SIZE_(mr_layer_layer_norm_((graph), (input), &options_), mr_layer_norm_layer, __VA_ARGS__)

/* ---- Pooling: max_pool and average_pool of images, and of 1 and 3 dimensions ---- */

typedef struct mr_pool_layer {
    size_t size;       /* of this struct (api.h) */
    int32_t pool_size; /* required, at least 1, unless pool_sizes is set */
    int32_t strides;   /* at least 1; 0: pool_size */
    bool same;
    const char *name; /* default "max_pooling2d", "average_pooling2d", … */
    mr_ints pool_sizes;
    mr_ints strides_each;
    bool channels_first;
} mr_pool_layer;
MR_API mr_output mr_layer_max_pool1d_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
MR_API mr_output mr_layer_max_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
MR_API mr_output mr_layer_max_pool3d_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
MR_API mr_output mr_layer_average_pool1d_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
MR_API mr_output mr_layer_average_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
MR_API mr_output mr_layer_average_pool3d_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
#define mr_layer_max_pool1d(graph, input, ...)                                                                         \
    MR_WITH_SIZE_(mr_layer_max_pool1d_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
#define mr_layer_max_pool(graph, input, ...)                                                                           \
    MR_WITH_SIZE_(mr_layer_max_pool_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
#define mr_layer_max_pool3d(graph, input, ...)                                                                         \
    MR_WITH_SIZE_(mr_layer_max_pool3d_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
#define mr_layer_average_pool1d(graph, input, ...)                                                                     \
    MR_WITH_SIZE_(mr_layer_average_pool1d_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
#define mr_layer_average_pool(graph, input, ...)                                                                       \
    MR_WITH_SIZE_(mr_layer_average_pool_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
#define mr_layer_average_pool3d(graph, input, ...)                                                                     \
    MR_WITH_SIZE_(mr_layer_average_pool3d_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
/* Mean and maximum over all dimensions but the batch and the channels, which are last: [batch, channels]. */
MR_API mr_output mr_layer_global_average_pool(mr_graph *graph, mr_output input);
MR_API mr_output mr_layer_global_max_pool(mr_graph *graph, mr_output input);

/* ---- Others ---- */

typedef struct mr_flatten_layer {
    size_t size; /* of this struct (api.h) */
    /* The input is [batch, channels, …], of a known rank of at least 3; the result is in the order of an input whose
     * channels are last. */
    bool channels_first;
    const char *name; /* default "flatten" */
} mr_flatten_layer;
/* [batch, …] to [batch, size of the rest] */
MR_API mr_output mr_layer_flatten_(mr_graph *graph, mr_output input, const mr_flatten_layer *layer);
#define mr_layer_flatten(graph, input, ...)                                                                            \
    MR_WITH_SIZE_(mr_layer_flatten_((graph), (input), &options_), mr_flatten_layer, __VA_ARGS__)
typedef struct mr_dropout_layer {
    size_t size;           /* of this struct (api.h) */
    float rate;            /* fraction of the elements that is dropped in training; default 0.5, 0 to less than 1 */
    int32_t training;      /* default false: the input is returned unchanged; if omitted, rate and seed are errors */
    int64_t seed;          /* 0: derived from the graph's; MR_SEED_ZERO: 0 */
    const char *name;      /* default "dropout" */
    mr_output is_training; /* the same as training, as a bool scalar; set either this or training */
    mr_ints
        noise_shape; /* shape of what is drawn, broadcast to the input's; -1: the input's size; default: the input's */
} mr_dropout_layer;
#define MR_DROPOUT_LAYER_DEFAULTS .rate = MR_UNSET, .training = MR_TRAINING_UNSET
MR_API mr_output mr_layer_dropout_(mr_graph *graph, mr_output input, const mr_dropout_layer *layer);
#define mr_layer_dropout(graph, input, ...)                                                                            \
    MR_WITH_SIZE_(mr_layer_dropout_((graph), (input), &options_), mr_dropout_layer, MR_DROPOUT_LAYER_DEFAULTS,         \
                  __VA_ARGS__)

/* ---- Embeddings (tf.nn.embedding_lookup) ---- */

/* Which of several parts has the row of an id. */
typedef enum mr_partition_strategy {
    MR_PARTITION_MOD = 0, /* part id % parts */
    MR_PARTITION_DIV,     /* consecutive ranges, as the parts of mr_get_variable */
} mr_partition_strategy;
typedef enum mr_combiner { MR_COMBINER_MEAN = 0, MR_COMBINER_SUM, MR_COMBINER_SQRTN } mr_combiner;
typedef struct mr_embedding_options {
    size_t size; /* of this struct (api.h) */
    mr_partition_strategy partition_strategy;
    float max_norm;       /* rows with a larger norm are scaled down to it; greater than 0; 0: no limit */
    mr_combiner combiner; /* of a sparse lookup */
    const char *name;     /* default "embedding_lookup", "embedding_lookup_sparse" */
} mr_embedding_options;
/* Returns the rows of the table with these ids: shape of ids + shape of a row.
 * table  one variable, or the parts of one: mr_variable_parts(g, v)
 * ids    int32 or int64 */
MR_API mr_output mr_embedding_lookup_(mr_graph *graph, mr_variables table, mr_output ids,
                                      const mr_embedding_options *options);
#define mr_embedding_lookup(graph, table, ids, ...)                                                                    \
    MR_WITH_SIZE_(mr_embedding_lookup_((graph), (table), (ids), &options_), mr_embedding_options, __VA_ARGS__)
/* Combines the rows of the ids of each element of the batch: mean, sum, or sum / sqrt(number of ids), weighted.
 * indices, values  of a SparseTensor of ids: [n, rank] and [n], sorted by row; a row without ids gets zeros, or no
 *                  result if it is after the last row with ids
 * weights          {0}: 1; the values of a SparseTensor with the same indices */
MR_API mr_output mr_embedding_lookup_sparse_(mr_graph *graph, mr_variables table, mr_output indices, mr_output values,
                                             mr_output weights, const mr_embedding_options *options);
#define mr_embedding_lookup_sparse(graph, table, indices, values, weights, ...)                                        \
    MR_WITH_SIZE_(mr_embedding_lookup_sparse_((graph), (table), (indices), (values), (weights), &options_),            \
                  mr_embedding_options, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
