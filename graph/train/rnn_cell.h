/* Declarations common to the files of recurrent networks. */
#ifndef MR_GRAPH_TRAIN_RNN_CELL_H
#define MR_GRAPH_TRAIN_RNN_CELL_H

#include "graph/train/layers.h"
#include <millrace/rnn.h>

constexpr int32_t MR_RNN_STATES_MAX = 256, MR_RNN_DEPTH_MAX = 64;

struct mr_rnn_cell {
    mr_graph *graph;
    mr_rnn_cell_functions functions; /* copied */
    void *context;
    bool is_wrapper; /* no variable scope of its own */
    bool has_memory; /* state 0 is the c of an LSTM, which dropout leaves */
    bool is_built;
    int32_t depth; /* of the cells inside of it, at most MR_RNN_DEPTH_MAX: a call is recursive */
    int64_t input_size;
    mr_dtype dtype;
};

/* As mr_rnn_cell_new for a cell that calls others: it has no variable scope unless its functions have a name. */
mr_rnn_cell *mr_rnn_cell_new_wrapper(mr_graph *graph, const mr_rnn_cell_functions *functions, void *context);
/* Creates the cell's variables, in the current variable scope; if it has them, checks that they fit the input. Records
 * an error and returns false otherwise. */
bool mr_rnn_cell_build(mr_graph *graph, mr_rnn_cell *cell, int64_t input_size, mr_dtype dtype);
/* Each state must be [batch, size] of the dtype of a cell that is built. Records an error and returns false
 * otherwise. */
bool mr_rnn_check_states(mr_graph *graph, const mr_rnn_cell *cell, const mr_output *states);
/* Memory of the graph; records an error if there is none. */
void *mr_rnn_alloc(mr_graph *graph, size_t size_bytes);

#endif
