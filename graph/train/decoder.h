/* Decoders: what the loop of dynamic_decode.c, the decoders and their helpers share. */
#ifndef MR_GRAPH_TRAIN_DECODER_H
#define MR_GRAPH_TRAIN_DECODER_H

#include "graph/train/rnn_cell.h"
#include <millrace/seq2seq.h>

/* Of beam search: log_probs, finished and lengths follow the states of the cell. */
constexpr int32_t MR_DECODER_STATES_MAX = MR_RNN_STATES_MAX + 3, MR_DECODER_RESULTS_MAX = 3;

/* What one step gets from the step before. */
typedef struct mr_decoder_values {
    mr_output states[MR_DECODER_STATES_MAX];
    mr_output inputs;   /* [batch, features] */
    mr_output finished; /* bool [batch], of beam search [batch, beam] */
} mr_decoder_values;

/* A result of each step. */
typedef struct mr_decoder_result {
    mr_dtype dtype;
    mr_shape shape;
} mr_decoder_result;

struct mr_decoder {
    mr_graph *graph;
    const char *what; /* the function that has created it, for messages */
    mr_rnn_cell *cell;
    mr_output_layer *layer;        /* null: none */
    const mr_output *cell_initial; /* the caller's states */
    void *own;                     /* the helper, or what beam search needs */
    bool is_beam_search;
    int64_t batch, features; /* of the inputs; batch -1: known when the graph runs */
    mr_dtype dtype;
    int32_t state_count, result_count;
    mr_decoder_result results[MR_DECODER_RESULTS_MAX];
    /* Sets the values before the first step. The cell and the layer are built. */
    void (*begin)(mr_decoder *decoder, mr_decoder_values *values);
    /* Replaces the values by those of the next step. */
    void (*step)(mr_decoder *decoder, mr_output time, mr_decoder_values *values, mr_output *results);
    /* results  of all steps, [time, …]; values: the last ones */
    void (*end)(mr_decoder *decoder, const mr_output *results, mr_decoder_values *values, mr_decoded *decoded);
};

/* Checks what decoders have in common, and allocates one; null after an error of the graph. The caller sets its
 * functions, results and the batch. */
mr_decoder *mr_decoder_new(mr_graph *graph, const char *what, mr_rnn_cell *cell, const mr_output *initial_state,
                           mr_output_layer *layer);
/* The shape of a state, as the loop keeps it. */
mr_shape mr_decoder_state_shape(const mr_decoder *decoder, int32_t index);
/* The size of an output of the cell and the layer. */
int64_t mr_decoder_output_size(const mr_decoder *decoder);
/* The cell's output, through the layer, and its next states. */
mr_output mr_decoder_call(mr_decoder *decoder, mr_decoder_values *values);

/* As mr_beam_gather_tree, of valid arguments. */
mr_output mr_beam_tree(mr_graph *graph, mr_output step_ids, mr_output parent_ids, mr_output lengths, int32_t end_token);

/* ---- Helpers ---- */

/* Parts of an embedding, copied into memory of the graph, with what a look-up returns. */
typedef struct mr_decoder_embedding {
    mr_variables table;
    int64_t features;
    mr_dtype dtype;
} mr_decoder_embedding;
/* Records an error and returns false if the table is not a matrix, or start_tokens are not int32 [batch].
 * what  of the message */
bool mr_decoder_read_embedding(mr_graph *graph, const char *what, mr_variables table, mr_output start_tokens,
                               mr_decoder_embedding *embedding);
mr_output mr_decoder_look_up(mr_graph *graph, const mr_decoder_embedding *embedding, mr_output ids);
/* `done` if all sequences have ended, otherwise the embedding of the ids. */
mr_output mr_decoder_next_inputs(mr_graph *graph, mr_output finished, mr_output done,
                                 const mr_decoder_embedding *embedding, mr_output ids);

mr_graph *mr_helper_graph(const mr_helper *helper);
int64_t mr_helper_batch(const mr_helper *helper);
int64_t mr_helper_features(const mr_helper *helper);
mr_dtype mr_helper_dtype(const mr_helper *helper);
/* Whether the inputs are of the size of the outputs; records an error otherwise. */
bool mr_helper_check_outputs(const mr_helper *helper, int64_t output_size);
void mr_helper_begin(mr_helper *helper, mr_decoder_values *values);
/* int32 [batch] */
mr_output mr_helper_sample(mr_helper *helper, mr_output time, mr_output outputs, mr_decoder_values *values);
void mr_helper_next(mr_helper *helper, mr_output time, mr_output outputs, mr_output ids, mr_decoder_values *values);

#endif
