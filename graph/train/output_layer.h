/* The dense layer of a decoder: variables outside of the loop, the product inside. */
#ifndef MR_GRAPH_TRAIN_OUTPUT_LAYER_H
#define MR_GRAPH_TRAIN_OUTPUT_LAYER_H

#include "graph/train/layers.h"
#include <millrace/seq2seq.h>

struct mr_output_layer {
    mr_graph *graph;
    mr_dense_layer options; /* names copied */
    bool is_built;
    int64_t inputs;
    mr_dtype dtype;
    mr_variable kernel, bias;
};

/* Creates the variables, in the current variable scope; if the layer has them, checks that they fit. Records an error
 * and returns false otherwise. */
bool mr_output_layer_build(mr_output_layer *layer, int64_t inputs, mr_dtype dtype);
/* input: [batch, inputs] */
mr_output mr_output_layer_apply(const mr_output_layer *layer, mr_output input);

#endif
