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

/* ---- Layers (tf.compat.v1.layers) ---- */

typedef mr_output (*mr_activation)(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_relu(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_sigmoid(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_tanh(mr_graph *graph, mr_output input);

/* input  [batch, height, width, channels], channels known */
typedef struct mr_conv2d_layer {
    size_t size;                       /* of this struct (api.h) */
    int32_t filters;                   /* required, at least 1 */
    int32_t kernel_size;               /* required, at least 1: size of the kernel, kernel x kernel */
    int32_t strides;                   /* default 1, at least 1 */
    bool same;                         /* padding SAME; default: VALID */
    bool use_bias;                     /* default true */
    mr_initializer kernel_initializer; /* of the kernel; the bias is initialized with zeros */
    float weight_decay; /* adds weight_decay * sum(kernel^2) / 2 to the regularization losses; default 0, at least 0 */
    mr_activation activation; /* default: none */
    const char *name;         /* default "conv2d" */
} mr_conv2d_layer;
#define MR_CONV2D_LAYER_DEFAULTS .strides = 1, .use_bias = true
MR_API mr_output mr_layer_conv2d_(mr_graph *graph, mr_output input, const mr_conv2d_layer *layer);
#define mr_layer_conv2d(graph, input, ...)                                                                             \
    MR_WITH_SIZE_(mr_layer_conv2d_((graph), (input), &options_), mr_conv2d_layer, MR_CONV2D_LAYER_DEFAULTS, __VA_ARGS__)

/* input  [batch, features], features known */
typedef struct mr_dense_layer {
    size_t size;                       /* of this struct (api.h) */
    int32_t units;                     /* required, at least 1 */
    bool use_bias;                     /* default true */
    mr_initializer kernel_initializer; /* of the kernel; the bias is initialized with zeros */
    float weight_decay;                /* as in mr_conv2d_layer */
    mr_activation activation;          /* default: none */
    const char *name;                  /* default "dense" */
} mr_dense_layer;
#define MR_DENSE_LAYER_DEFAULTS .use_bias = true
MR_API mr_output mr_layer_dense_(mr_graph *graph, mr_output input, const mr_dense_layer *layer);
#define mr_layer_dense(graph, input, ...)                                                                              \
    MR_WITH_SIZE_(mr_layer_dense_((graph), (input), &options_), mr_dense_layer, MR_DENSE_LAYER_DEFAULTS, __VA_ARGS__)

/* input  [batch, height, width, channels], channels known */
typedef struct mr_batch_normalization_layer {
    size_t size; /* of this struct (api.h) */
    /* True: use batch statistics, and update the moving averages through the collection "update_ops". Default false. */
    int32_t training;
    float momentum;   /* of the moving averages; default 0.99, 0 to 1; an error if training is omitted */
    float epsilon;    /* default 0.001, at least 0 */
    const char *name; /* default "batch_normalization" */
} mr_batch_normalization_layer;
#define MR_BATCH_NORMALIZATION_LAYER_DEFAULTS .training = MR_TRAINING_UNSET, .momentum = MR_UNSET, .epsilon = 0.001f
MR_API mr_output mr_layer_batch_normalization_(mr_graph *graph, mr_output input,
                                               const mr_batch_normalization_layer *layer);
#define mr_layer_batch_normalization(graph, input, ...)                                                                \
    MR_WITH_SIZE_(mr_layer_batch_normalization_((graph), (input), &options_), mr_batch_normalization_layer,            \
                  MR_BATCH_NORMALIZATION_LAYER_DEFAULTS, __VA_ARGS__)

/* input  [batch, height, width, channels] */
typedef struct mr_pool_layer {
    size_t size;       /* of this struct (api.h) */
    int32_t pool_size; /* required, at least 1: windows are pool_size x pool_size */
    int32_t strides;   /* at least 1; 0: pool_size */
    bool same;         /* padding SAME; default: VALID */
    const char *name;  /* default "max_pooling2d" and "average_pooling2d" */
} mr_pool_layer;
MR_API mr_output mr_layer_max_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
MR_API mr_output mr_layer_average_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
#define mr_layer_max_pool(graph, input, ...)                                                                           \
    MR_WITH_SIZE_(mr_layer_max_pool_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
#define mr_layer_average_pool(graph, input, ...)                                                                       \
    MR_WITH_SIZE_(mr_layer_average_pool_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
/* Mean over height and width: [batch, channels]. */
MR_API mr_output mr_layer_global_average_pool(mr_graph *graph, mr_output input);
MR_API mr_output mr_layer_flatten(mr_graph *graph, mr_output input);
typedef struct mr_dropout_layer {
    size_t size;      /* of this struct (api.h) */
    float rate;       /* fraction of the elements that is dropped in training; default 0.5, 0 to less than 1 */
    int32_t training; /* default false: the input is returned unchanged; if omitted, rate and seed are errors */
    int64_t seed;     /* 0: derived from the graph's; MR_SEED_ZERO: 0 */
    const char *name; /* default "dropout" */
} mr_dropout_layer;
#define MR_DROPOUT_LAYER_DEFAULTS .rate = MR_UNSET, .training = MR_TRAINING_UNSET
MR_API mr_output mr_layer_dropout_(mr_graph *graph, mr_output input, const mr_dropout_layer *layer);
#define mr_layer_dropout(graph, input, ...)                                                                            \
    MR_WITH_SIZE_(mr_layer_dropout_((graph), (input), &options_), mr_dropout_layer, MR_DROPOUT_LAYER_DEFAULTS,         \
                  __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
