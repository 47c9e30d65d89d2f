/* Declarations common to the files of recurrent networks. */
#ifndef MR_GRAPH_TRAIN_RNN_CELL_H
#define MR_GRAPH_TRAIN_RNN_CELL_H

#include "graph/train/layers.h"
#include <millrace/rnn.h>

constexpr int32_t MR_RNN_STATES_MAX = 256, MR_RNN_DEPTH_MAX = 64;

/* What a state is besides [batch, size] of zeros. */
typedef struct mr_rnn_state {
    bool is_time;       /* an int32 scalar: the number of steps before this one */
    bool is_alignments; /* of an attention mechanism */
    bool is_first;      /* a zero state has a 1 at first: alignments that move forward */
    mr_output size;     /* an int32 scalar, if the cell's functions have the size -1: known when the graph runs */
    mr_output initial;  /* in a zero state; null: zeros */
    /* Of alignments: a zero state must have the batch size of the memory. */
    mr_output memory, memory_batch; /* the latter null: its size is known */
} mr_rnn_state;

struct mr_rnn_cell {
    mr_graph *graph;
    mr_rnn_cell_functions functions; /* copied */
    const mr_rnn_state *states;      /* as many as functions.state_count; memory of the graph */
    void *context;
    bool is_wrapper; /* no variable scope of its own */
    bool has_memory; /* state 0 is the c of an LSTM, which dropout leaves */
    bool is_built;
    int32_t depth; /* of the cells inside of it, at most MR_RNN_DEPTH_MAX: a call is recursive */
    int64_t input_size;
    mr_dtype dtype;
};

/* As mr_rnn_cell_new.
 * states      copied; null: none differs from zeros of a known size
 * is_wrapper  the cell calls others and has no variable scope of its own */
mr_rnn_cell *mr_rnn_cell_make(mr_graph *graph, const mr_rnn_cell_functions *functions, const mr_rnn_state *states,
                              void *context, bool is_wrapper);
/* Creates the cell's variables, in the current variable scope; if it has them, checks that they fit the input. Records
 * an error and returns false otherwise. */
bool mr_rnn_cell_build(mr_graph *graph, mr_rnn_cell *cell, int64_t input_size, mr_dtype dtype);
/* The shape of a state for a batch of that size; -1: any. */
mr_shape mr_rnn_state_shape(const mr_rnn_cell *cell, int32_t index, int64_t batch);
/* Each state must be [batch, size] of the dtype of a cell that is built. Records an error and returns false
 * otherwise. */
bool mr_rnn_check_states(mr_graph *graph, const mr_rnn_cell *cell, const mr_output *states);
/* Memory of the graph; records an error if there is none. */
void *mr_rnn_alloc(mr_graph *graph, size_t size_bytes);

#endif
