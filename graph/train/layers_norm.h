/* Declarations common to batch normalization and batch renormalization. */
#ifndef MR_GRAPH_TRAIN_LAYERS_NORM_H
#define MR_GRAPH_TRAIN_LAYERS_NORM_H

#include "graph/train/layers.h"

/* A batch normalization layer, checked, with its variables. */
typedef struct mr_batch_norm {
    mr_graph *graph;
    const mr_batch_normalization_layer *layer;
    float momentum, renorm_momentum;
    mr_shape shape; /* of the input */
    int32_t axis;   /* of the channels */
    bool is_last;   /* axis is the last dimension */
    bool fused;
    int32_t virtual_size; /* elements of a virtual batch; 0: the batch is not divided */
    mr_dtype dtype;       /* of the input */
    mr_variable gamma, beta, moving_mean, moving_variance, moving_std, renorm_mean, renorm_std;
} mr_batch_norm;

/* moving -= (moving - batch) * (1 - momentum).
 * momentum_output  replaces momentum unless it is {0} */
mr_output mr_batch_norm_move(mr_graph *graph, mr_variable moving, mr_output batch, float momentum,
                             mr_output momentum_output);
/* Corrects scale and offset so that the result is normalized with the moving averages, within the limits, and moves
 * the averages. mean and variance are the batch's. */
void mr_batch_renorm(const mr_batch_norm *norm, mr_output mean, mr_output variance, mr_output *scale,
                     mr_output *offset);
/* Mean and variance over the axes, as tf.nn.moments; not squeezed: they keep sizes of 1. */
void mr_train_moments(mr_graph *graph, mr_output input, const int32_t *axes, int32_t count, bool squeeze,
                      mr_output *mean, mr_output *variance);
/* (input - mean) / sqrt(variance + epsilon) * scale + offset, as tf.nn.batch_normalization. scale, offset: {0} for
 * none. */
mr_output mr_train_normalize(mr_graph *graph, mr_output input, mr_output mean, mr_output variance, mr_output offset,
                             mr_output scale, float epsilon);

#endif
