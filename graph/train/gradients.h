/* Differentiation with the options of tf.gradients. */
#ifndef MR_GRAPH_TRAIN_GRADIENTS_H
#define MR_GRAPH_TRAIN_GRADIENTS_H

#include "graph/train/train.h"
#include <millrace/optimizers.h>

typedef struct mr_gradients_mode {
    mr_aggregation_method method; /* how the partial gradients of an output are added */
    bool gate_ops;                /* what an operator's gradient function returns is used when all of it is computed */
    bool colocate;                /* the gradient of an operator is colocated with it */
} mr_gradients_mode;
/* mr_gradients with options. */
void mr_gradients_with(mr_graph *graph, mr_outputs ys, mr_outputs xs, const mr_output *grad_ys,
                       const mr_gradients_mode *options, mr_output *gradients);
/* Replaces the outputs, {0} among them skipped, by ones that are available when all of them are (tf.tuple). Of sparse
 * gradients, their rows. */
void mr_gradients_gate(mr_graph *graph, mr_output *outputs, int32_t count);

#endif
