/* Attention mechanisms: what attention.c and attention_wrapper.c share. */
#ifndef MR_GRAPH_TRAIN_ATTENTION_H
#define MR_GRAPH_TRAIN_ATTENTION_H

#include "graph/train/batch_check.h"
#include "graph/train/rnn_cell.h"
#include <millrace/seq2seq.h>

struct mr_attention {
    mr_graph *graph;
    bool is_luong, normalize, scale;
    mr_monotonic monotonic;
    float sigmoid_noise, score_bias_init;
    int64_t sigmoid_noise_seed;
    int32_t num_units;
    mr_activation probability_fn;
    float score_mask_value;
    mr_dtype dtype;
    mr_output values; /* [batch, time, depth]: the memory, with zeros past its lengths */
    mr_output keys;   /* [batch, time, num_units] */
    mr_output mask;   /* bool [batch, time]; null: all of the memory counts */
    mr_output time;   /* an int32 scalar: the memory's */
    mr_output batch;  /* likewise */
    int64_t depth, time_static;
};

/* The variables that belong to the cell which attends. */
typedef struct mr_attention_weights {
    mr_variable query_kernel, v, g, b, score_bias;
} mr_attention_weights;

/* Creates the variables in the current variable scope. */
void mr_attention_build(mr_graph *graph, const mr_attention *attention, int64_t query_size,
                        mr_attention_weights *weights);
/* Returns the alignments, [batch, time].
 * query     [batch, query size]
 * previous  the alignments of the step before */
mr_output mr_attention_align(mr_graph *graph, const mr_attention *attention, const mr_attention_weights *weights,
                             mr_output query, mr_output previous);
/* The same for the scores of monotonic attention. */
mr_output mr_attention_monotonic(mr_graph *graph, const mr_attention *attention, mr_output score, mr_output previous);
/* Records an error and returns false unless lengths are int32 or int64 [batch].
 * what, option  for the message */
bool mr_attention_check_lengths(mr_graph *graph, const char *what, const char *option, mr_output lengths);
/* The memory's batch size. */
mr_batch_size mr_attention_batch(const mr_attention *attention);

#endif
