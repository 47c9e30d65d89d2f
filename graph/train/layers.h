/* Declarations common to the files of layers. */
#ifndef MR_GRAPH_TRAIN_LAYERS_H
#define MR_GRAPH_TRAIN_LAYERS_H

#include "graph/train/variable_store.h"
#include <millrace/layers.h>

/* Copies the options of a layer (base/options.h); false after an error of the graph. */
bool mr_layer_read(mr_graph *graph, void *layer, size_t size, const void *given, const char *type);
#define MR_LAYER_READ(type, graph, layer, given) mr_layer_read((graph), (layer), sizeof(type), (given), #type)

/* Opens the layer's variable scope and name scope, as the class Layer of tf.layers; mr_graph_pop_variable_scope ends
 * it. */
void mr_layer_begin(mr_graph *graph, const char *name, const char *default_name, mr_reuse reuse);

/* What is common to the variables of a layer. */
typedef struct mr_layer_weight {
    const char *name;
    mr_shape shape;
    mr_dtype dtype;
    mr_initializer initializer;
    mr_initializer_kind default_kind; /* replaces MR_INIT_DEFAULT */
    mr_regularizer regularizer;
    mr_constraint constraint;
    bool trainable;
} mr_layer_weight;
mr_variable mr_layer_variable(mr_graph *graph, const mr_layer_weight *weight);
/* The variable's value for an operator called `consumer`: a resource variable is read there. */
mr_output mr_layer_value(mr_graph *graph, mr_variable variable, const char *consumer);

/* What follows the product with the kernel: bias, activation, and the regularization of the result. */
typedef struct mr_layer_end {
    bool use_bias, trainable;
    int64_t units;
    mr_initializer bias_initializer;
    mr_regularizer bias_regularizer, activity_regularizer;
    mr_constraint bias_constraint;
    mr_activation activation;
    int32_t rank;        /* spatial dimensions; 0: dense */
    bool channels_first; /* with rank */
} mr_layer_end;
/* Creates the bias: before the layer's operators, as in TensorFlow. */
mr_variable mr_layer_bias(mr_graph *graph, const mr_layer_end *end, mr_dtype dtype);
mr_output mr_layer_add_bias(mr_graph *graph, mr_output output, const mr_layer_end *end, mr_variable bias);
mr_output mr_layer_finish(mr_graph *graph, mr_output output, const mr_layer_end *end);

/* The size of a dimension. Records an error and returns 1 if rank or size do not fit.
 * rank  0: any of at least 2 */
int64_t mr_layer_channels(mr_graph *graph, mr_output input, int32_t rank, int32_t axis, const char *layer);
/* A size for each dimension, from the plain form or the list. Records an error and returns false if both or neither are
 * set, if a size is less than 1, or if the list has another length.
 * plain        0: not set
 * plain_unset  used if neither is set; 0: one is required */
bool mr_layer_sizes(mr_graph *graph, const char *option, int32_t plain, const char *list_option, mr_ints list,
                    int32_t rank, int32_t plain_unset, int64_t *sizes);
/* training must be a bool, or be omitted; then `option`, which only has an effect in training, must be null. Not with
 * is_training. */
bool mr_layer_check_training(mr_graph *graph, int32_t training, mr_output is_training, const char *option);
/* weight_decay and l2 of the kernel's regularizer are one option: adds the former to the latter. */
bool mr_layer_settle_decay(mr_graph *graph, float weight_decay, mr_regularizer *regularizer);
/* A list for an operator's attr: value for batch and channels, sizes for the spatial dimensions. */
mr_ints mr_layer_attr(int64_t *items, const int64_t *sizes, int32_t rank, bool channels_first);

/* ---- Dilated convolutions by SpaceToBatchND and BatchToSpaceND, as tf.nn.convolution ---- */

typedef struct mr_dilation {
    int32_t rank;
    int64_t kernel[3], rates[3];
    bool same, channels_first;
    mr_output block, crops; /* of BatchToSpaceND */
} mr_dilation;
/* Divides the input into interleaved images, whose convolution without dilation and with padding VALID is the dilated
 * one. */
mr_output mr_dilation_begin(mr_graph *graph, mr_dilation *dilation, mr_output input);
mr_output mr_dilation_end(mr_graph *graph, const mr_dilation *dilation, mr_output output);

#endif
