/* Sequence to sequence: attention, decoders and beam search, as tf.contrib.seq2seq, and tf.nn.raw_rnn. The variables
 * have TensorFlow's names, so that checkpoints can be exchanged in both directions.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output source = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(16, -1)); // words, [batch, time]
 * mr_output target = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(16, -1));
 * mr_output source_lengths = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(16));
 * mr_output target_lengths = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(16));
 * mr_variable words = mr_get_variable(g, "embedding", MR_SHAPE(1000, 64));
 *
 * mr_output encoded, inputs = mr_embedding_lookup(g, MR_VARIABLES(words), source);
 * mr_output memory = mr_dynamic_rnn(g, mr_gru_cell(g, 64), inputs, &encoded, .sequence_length = source_lengths);
 *
 * mr_attention *attention = mr_luong_attention(g, 64, memory, .memory_sequence_length = source_lengths);
 * mr_rnn_cell *cell = mr_attention_wrapper(g, mr_gru_cell(g, 64), attention, .attention_layer_size = 64,
 *                                          .initial_cell_state = &encoded);
 * mr_output state[4]; // of the GRU; attention, time, alignments
 * mr_rnn_cell_zero_state(g, cell, mr_constant_int32(g, 16), MR_FLOAT, state);
 * mr_output_layer *layer = mr_output_layer_new(g, .units = 1000);
 *
 * inputs = mr_embedding_lookup(g, MR_VARIABLES(words), target);
 * mr_helper *helper = mr_training_helper(g, inputs, target_lengths);
 * mr_decoder *decoder = mr_basic_decoder(g, cell, helper, state, .output_layer = layer);
 * mr_decoded trained = mr_dynamic_decode(g, decoder, nullptr); // trained.rnn_output: logits, [batch, time, 1000]
 *
 * mr_output start = mr_fill(g, mr_constant_ints(g, MR_INTS(16)), mr_constant_int32(g, 1));
 * helper = mr_greedy_embedding_helper(g, MR_VARIABLES(words), start, 2);
 * decoder = mr_basic_decoder(g, cell, helper, state, .output_layer = layer);
 * mr_decoded greedy = mr_dynamic_decode(g, decoder, nullptr, .maximum_iterations = 50);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s, %s\n", mr_node_name(trained.rnn_output.node), mr_node_name(greedy.sample_id.node));
 * mr_graph_free(g);
 * ```
 *
 * Objects (attention mechanisms, helpers, layers, decoders) belong to the graph. An object that could not be created is
 * null; what is built with it fails with the first error, which is recorded in the graph. Options follow the rules of
 * variables.h. */
#ifndef MILLRACE_SEQ2SEQ_H
#define MILLRACE_SEQ2SEQ_H

#include <millrace/losses.h>
#include <millrace/rnn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Attention ---- */

typedef struct mr_attention mr_attention;

/* Attention that only moves forward: what is before the place of the step before is not attended to again
 * (BahdanauMonotonicAttention and LuongMonotonicAttention of tf.contrib.seq2seq). */
typedef enum mr_monotonic {
    MR_MONOTONIC_NONE = 0,
    MR_MONOTONIC_PARALLEL, /* the alignments are the probabilities that it stops at each place; for training */
    /* It stops at the first place, from that of the step before on, whose score is greater than 0, or nowhere: then all
     * alignments are 0. Has no gradient. */
    MR_MONOTONIC_HARD,
} mr_monotonic;

typedef struct mr_attention_options {
    size_t size;                      /* of this struct (api.h) */
    mr_output memory_sequence_length; /* int32 or int64 [batch]: memory past it is not attended to; at least 1 each */
    bool normalize;               /* of Bahdanau: weight normalization, with the variables attention_g, attention_b */
    bool scale;                   /* of Luong: the score is multiplied by the variable attention_g */
    mr_activation probability_fn; /* of a score [batch, time]; default: softmax; mr_activation_hardmax */
    float score_mask_value;       /* of the score past memory_sequence_length; default -infinity */
    /* The scopes are bahdanau_monotonic_attention and luong_monotonic_attention, with the variable
     * attention_score_bias. Not with probability_fn. */
    mr_monotonic monotonic;
    float sigmoid_noise;        /* of monotonic attention: the standard deviation of noise; default 0, at least 0 */
    int64_t sigmoid_noise_seed; /* 0: derived from the graph's */
    float score_bias_init;      /* of monotonic attention: the initial value of attention_score_bias; default 0 */
} mr_attention_options;
#define MR_ATTENTION_DEFAULTS .score_mask_value = -__builtin_inff()

/* Additive attention. The memory's keys are computed here, once, with the variable memory_layer/kernel of the current
 * variable scope; the others are created with the cell, in CELL/bahdanau_attention: query_layer/kernel, attention_v. A
 * second mechanism in the same scope has memory_layer_1/kernel, also in a scope that reuses variables: to share the
 * variable, enter a scope of a name for each of them.
 * num_units  of query and keys; at least 1
 * memory     [batch, time, depth], depth known: the outputs of an encoder
 * errors     at run time, MR_INVALID_ARGUMENT if a length is less than 1, or if there is not one for each example */
MR_API mr_attention *mr_bahdanau_attention_(mr_graph *graph, int32_t num_units, mr_output memory,
                                            const mr_attention_options *options);
#define mr_bahdanau_attention(graph, num_units, memory, ...)                                                           \
    MR_WITH_SIZE_(mr_bahdanau_attention_((graph), (num_units), (memory), &options_), mr_attention_options,             \
                  MR_ATTENTION_DEFAULTS, __VA_ARGS__)
/* Multiplicative attention.
 * num_units  of the keys: the output size of the cell */
MR_API mr_attention *mr_luong_attention_(mr_graph *graph, int32_t num_units, mr_output memory,
                                         const mr_attention_options *options);
#define mr_luong_attention(graph, num_units, memory, ...)                                                              \
    MR_WITH_SIZE_(mr_luong_attention_((graph), (num_units), (memory), &options_), mr_attention_options,                \
                  MR_ATTENTION_DEFAULTS, __VA_ARGS__)
/* 1 at the first maximum of each vector along the last dimension, 0 elsewhere; has no gradient
 * (tf.contrib.seq2seq.hardmax). */
MR_API mr_output mr_activation_hardmax(mr_graph *graph, mr_output input);

typedef struct mr_attention_wrapper_options {
    size_t size;                  /* of this struct (api.h) */
    int32_t attention_layer_size; /* the attention is a dense layer of output and context; 0: the context; at least 0 */
    mr_ints attention_layer_sizes; /* of mr_multi_attention_wrapper: one for each, at least 1; default: the contexts */
    bool output_attention;         /* the output is the attention, not the cell's output; default true */
    /* The states of the cell in mr_rnn_cell_zero_state, as many as it has, of the memory's batch; default: zeros. */
    const mr_output *initial_cell_state;
    const char *name; /* default "attention_wrapper" */
    mr_reuse reuse;
} mr_attention_wrapper_options;
#define MR_ATTENTION_WRAPPER_DEFAULTS .output_attention = true
/* A cell that attends to a memory. Its input is concatenated with the attention of the step before. The attention is
 * computed from the cell's output and the memory: weighted by the alignments, the memory's mean is the context.
 * States: those of the cell; then the attention; the time, an int32 scalar; the alignments, [batch, memory time].
 * cell    its output is the query
 * errors  MR_INVALID_ARGUMENT if the batch of the memory is not that of the input or of the initial state; at run time
 *         if the sizes are not known before */
MR_API mr_rnn_cell *mr_attention_wrapper_(mr_graph *graph, mr_rnn_cell *cell, mr_attention *attention,
                                          const mr_attention_wrapper_options *options);
#define mr_attention_wrapper(graph, cell, attention, ...)                                                              \
    MR_WITH_SIZE_(mr_attention_wrapper_((graph), (cell), (attention), &options_), mr_attention_wrapper_options,        \
                  MR_ATTENTION_WRAPPER_DEFAULTS, __VA_ARGS__)

/* Attention mechanisms: MR_ATTENTIONS(a, b). */
#define MR_ATTENTIONS_MAX 8
typedef mr_attention *mr_attention_pointer;
typedef struct mr_attentions {
    const mr_attention_pointer *items; /* borrowed */
    int32_t count;
} mr_attentions;
#define MR_ATTENTIONS(...) MR_LIST_(mr_attentions, mr_attention_pointer, __VA_ARGS__)
/* The same with several mechanisms (AttentionWrapper with a list): the attention is the concatenation of theirs.
 * States: those of the cell; then the attention; the time; the alignments of each mechanism.
 * attentions  1 to MR_ATTENTIONS_MAX, of one dtype */
MR_API mr_rnn_cell *mr_multi_attention_wrapper_(mr_graph *graph, mr_rnn_cell *cell, mr_attentions attentions,
                                                const mr_attention_wrapper_options *options);
#define mr_multi_attention_wrapper(graph, cell, attentions, ...)                                                       \
    MR_WITH_SIZE_(mr_multi_attention_wrapper_((graph), (cell), (attentions), &options_), mr_attention_wrapper_options, \
                  MR_ATTENTION_WRAPPER_DEFAULTS, __VA_ARGS__)

/* ---- Helpers: the inputs of a decoder ----
 *
 * embedding     one variable, or the parts of one: mr_variable_parts(g, v); [ids, features]
 * start_tokens  int32 [batch]: the ids of the first inputs
 * end_token     the id that ends a sequence
 * lengths       int32 or int64 [batch]: where the sequences end; one for each example, at most the time of the inputs.
 *               Otherwise MR_INVALID_ARGUMENT; at run time where the inputs end, or if sizes are not known before */

typedef struct mr_helper mr_helper;

typedef struct mr_training_helper_options {
    size_t size;     /* of this struct (api.h) */
    bool time_major; /* inputs are [time, batch, features] */
} mr_training_helper_options;
/* The inputs are given. sample_id is the most probable id.
 * inputs  [batch, time, features], features known */
MR_API mr_helper *mr_training_helper_(mr_graph *graph, mr_output inputs, mr_output lengths,
                                      const mr_training_helper_options *options);
#define mr_training_helper(graph, inputs, lengths, ...)                                                                \
    MR_WITH_SIZE_(mr_training_helper_((graph), (inputs), (lengths), &options_), mr_training_helper_options, __VA_ARGS__)

/* The input is the embedding of the id with the greatest output. */
MR_API mr_helper *mr_greedy_embedding_helper(mr_graph *graph, mr_variables embedding, mr_output start_tokens,
                                             int32_t end_token);

typedef struct mr_sample_embedding_helper_options {
    size_t size;               /* of this struct (api.h) */
    float softmax_temperature; /* the outputs are divided by it; default 1; greater than 0 */
    int64_t seed;              /* 0: derived from the graph's */
} mr_sample_embedding_helper_options;
#define MR_SAMPLE_EMBEDDING_HELPER_DEFAULTS .softmax_temperature = 1
/* The input is the embedding of an id that is drawn with the softmax of the outputs. */
MR_API mr_helper *mr_sample_embedding_helper_(mr_graph *graph, mr_variables embedding, mr_output start_tokens,
                                              int32_t end_token, const mr_sample_embedding_helper_options *options);
#define mr_sample_embedding_helper(graph, embedding, start_tokens, end_token, ...)                                     \
    MR_WITH_SIZE_(mr_sample_embedding_helper_((graph), (embedding), (start_tokens), (end_token), &options_),           \
                  mr_sample_embedding_helper_options, MR_SAMPLE_EMBEDDING_HELPER_DEFAULTS, __VA_ARGS__)

typedef struct mr_scheduled_helper_options {
    size_t size;             /* of this struct (api.h) */
    bool time_major;         /* inputs are [time, batch, features] */
    int64_t seed;            /* of the ids; 0: derived from the graph's */
    int64_t scheduling_seed; /* of the choice between given and drawn; 0: derived from the graph's */
} mr_scheduled_helper_options;
/* The inputs are given, but each one is replaced, with sampling_probability, by the embedding of an id that is drawn
 * with the softmax of the outputs. sample_id is that id, or -1.
 * sampling_probability  float [] or [batch], 0 to 1; only a constant is checked */
MR_API mr_helper *mr_scheduled_embedding_training_helper_(mr_graph *graph, mr_output inputs, mr_output lengths,
                                                          mr_variables embedding, mr_output sampling_probability,
                                                          const mr_scheduled_helper_options *options);
#define mr_scheduled_embedding_training_helper(graph, inputs, lengths, embedding, sampling_probability, ...)           \
    MR_WITH_SIZE_(mr_scheduled_embedding_training_helper_((graph), (inputs), (lengths), (embedding),                   \
                                                          (sampling_probability), &options_),                          \
                  mr_scheduled_helper_options, __VA_ARGS__)
/* The inputs are given, but each one is replaced, with sampling_probability, by the output of the step before, which
 * must have the size of an input. sample_id is 1 where it is replaced, or 0. */
MR_API mr_helper *mr_scheduled_output_training_helper_(mr_graph *graph, mr_output inputs, mr_output lengths,
                                                       mr_output sampling_probability,
                                                       const mr_scheduled_helper_options *options);
#define mr_scheduled_output_training_helper(graph, inputs, lengths, sampling_probability, ...)                         \
    MR_WITH_SIZE_(                                                                                                     \
        mr_scheduled_output_training_helper_((graph), (inputs), (lengths), (sampling_probability), &options_),         \
        mr_scheduled_helper_options, __VA_ARGS__)

/* What the functions of a custom helper get, and what they set. */
typedef struct mr_helper_step {
    mr_output time;       /* int32 scalar: the number of steps before this one */
    mr_output outputs;    /* of the step, [batch, output size]; null before the first step */
    mr_output sample_ids; /* of the step, int32 [batch]; null before it is sampled */
    mr_output *states;    /* of the cell after the step; may be replaced; null before the first step */
    mr_output finished;   /* to be set: bool [batch], which sequences end before the next step */
    mr_output inputs;     /* to be set: of the next step, [batch, features] */
} mr_helper_step;
typedef struct mr_helper_functions {
    size_t size;      /* of this struct (api.h) */
    int64_t batch;    /* of the inputs; 0: known when the graph runs; at least 0 */
    int64_t features; /* required, at least 1 */
    mr_dtype dtype;   /* required: of the inputs */
    /* Sets finished and inputs of the first step. Required. */
    void (*initialize)(void *context, mr_graph *graph, mr_helper_step *step);
    /* Returns the sample ids, int32 [batch]. Null: those of the greatest outputs. */
    mr_output (*sample)(void *context, mr_graph *graph, mr_helper_step *step);
    /* Sets finished and inputs of the next step. Required. */
    void (*next_inputs)(void *context, mr_graph *graph, mr_helper_step *step);
} mr_helper_functions;
/* A helper of the caller's (tf.contrib.seq2seq.CustomHelper). Each decoding calls initialize before its loop, the other
 * functions once in it. They must close the scopes that they open, and only those; this holds for all functions of the
 * caller's.
 * context  of the functions; borrowed; must exist as long as decoders are built
 * errors   MR_INVALID_ARGUMENT for values of another dtype or shape; MR_FAILED_PRECONDITION for scopes left open */
MR_API mr_helper *mr_custom_helper(mr_graph *graph, const mr_helper_functions *functions, void *context);

/* ---- Decoders ---- */

/* A dense layer whose variables are created where it is used first, and shared by all uses (tf.layers.Dense). */
typedef struct mr_output_layer mr_output_layer;
/* layer  as for mr_layer_dense, without activity_regularizer */
MR_API mr_output_layer *mr_output_layer_new_(mr_graph *graph, const mr_dense_layer *layer);
#define mr_output_layer_new(graph, ...)                                                                                \
    MR_WITH_SIZE_(mr_output_layer_new_((graph), &options_), mr_dense_layer, MR_DENSE_LAYER_DEFAULTS, __VA_ARGS__)

typedef struct mr_decoder mr_decoder;

typedef struct mr_decoder_options {
    size_t size;                   /* of this struct (api.h) */
    mr_output_layer *output_layer; /* applied to the cell's outputs; default: none */
    /* Of beam search: scores are divided by ((5 + length) / 6) ^ length_penalty_weight; default 0; finite. */
    float length_penalty_weight;
} mr_decoder_options;

/* The inputs of each step are those of the helper (tf.contrib.seq2seq.BasicDecoder).
 * initial_state  as many as the cell has states; copied */
MR_API mr_decoder *mr_basic_decoder_(mr_graph *graph, mr_rnn_cell *cell, mr_helper *helper,
                                     const mr_output *initial_state, const mr_decoder_options *options);
#define mr_basic_decoder(graph, cell, helper, initial_state, ...)                                                      \
    MR_WITH_SIZE_(mr_basic_decoder_((graph), (cell), (helper), (initial_state), &options_), mr_decoder_options,        \
                  __VA_ARGS__)

/* Keeps the beam_width best sequences of each example (tf.contrib.seq2seq.BeamSearchDecoder).
 * start_tokens   int32 [batch]
 * initial_state  of batch * beam_width examples: those of mr_tile_batch; a cell that attends needs a tiled memory
 * beam_width     at least 1 */
MR_API mr_decoder *mr_beam_search_decoder_(mr_graph *graph, mr_rnn_cell *cell, mr_variables embedding,
                                           mr_output start_tokens, int32_t end_token, const mr_output *initial_state,
                                           int32_t beam_width, const mr_decoder_options *options);
#define mr_beam_search_decoder(graph, cell, embedding, start_tokens, end_token, initial_state, beam_width, ...)        \
    MR_WITH_SIZE_(mr_beam_search_decoder_((graph), (cell), (embedding), (start_tokens), (end_token), (initial_state),  \
                                          (beam_width), &options_),                                                    \
                  mr_decoder_options, __VA_ARGS__)
/* Repeats each element of the batch: a, a, b, b.
 * value       [batch, …], of known rank
 * multiplier  at least 1 */
MR_API mr_output mr_tile_batch(mr_graph *graph, mr_output value, int32_t multiplier);
/* Follows the beams from their ends (tf.contrib.seq2seq.gather_tree). Returns the ids of each beam: int32
 * [time, batch, beam].
 * step_ids, parent_ids  int32 [time, batch, beam]: of each step, the id, and the beam of the step before
 * lengths               int32 [batch]: of the longest beam; ids past it are end_token
 * end_token             what follows the first end_token of a beam is end_token; any value
 * errors                MR_INVALID_ARGUMENT for another dtype, rank or size, at run time if the sizes are not known
 *                       before, and if a parent is not one of the beams */
MR_API mr_output mr_beam_gather_tree(mr_graph *graph, mr_output step_ids, mr_output parent_ids, mr_output lengths,
                                     int32_t end_token);

/* What a decoder returns; what it does not return is null. Without output_time_major, time is the second dimension. */
typedef struct mr_decoded {
    mr_output rnn_output;        /* [batch, time, output size]: of the output layer, if there is one */
    mr_output sample_id;         /* int32 [batch, time] */
    mr_output predicted_ids;     /* of beam search: int32 [batch, time, beam], the best beam first */
    mr_output scores;            /* of beam search: [batch, time, beam] of each step */
    mr_output parent_ids;        /* of beam search: int32 [batch, time, beam] of each step */
    mr_output log_probs;         /* of beam search: [batch, beam], of the complete sequences */
    mr_output sequence_lengths;  /* int32 [batch], of beam search [batch, beam]: with the end token */
    mr_output alignment_history; /* [time, batch, memory time] */
    /* Of each attention mechanism, if the cell has several; the first one is alignment_history. */
    mr_output alignment_histories[MR_ATTENTIONS_MAX];
} mr_decoded;

typedef struct mr_dynamic_decode_options {
    size_t size; /* of this struct (api.h) */
    bool output_time_major;
    /* Past its end, outputs of a sequence are zeros and its states do not change. Not of beam search. */
    bool impute_finished;
    bool alignment_history;              /* keep the alignments of an attention_wrapper; not of beam search */
    int32_t maximum_iterations;          /* steps, at least 0; default: until all sequences have ended */
    mr_output maximum_iterations_output; /* the same, an int32 scalar; less than 0 is 0 */
    int32_t parallel_iterations;         /* default 32, at least 1 */
    bool swap_memory;                    /* as in mr_while_loop_options */
    const char *name;                    /* of the variable scope; default "decoder", made unique */
} mr_dynamic_decode_options;
#define MR_ITERATIONS_UNSET (-2147483647 - 1)
#define MR_DYNAMIC_DECODE_DEFAULTS .maximum_iterations = MR_ITERATIONS_UNSET, .parallel_iterations = 32
/* Runs the decoder until all sequences have ended (tf.contrib.seq2seq.dynamic_decode).
 * final   receives the states after the last step, as many as the cell has; those of beam search are
 *         [batch, beam, …]; null: not needed
 * errors  MR_INVALID_ARGUMENT if the batch of the initial state is not that of the inputs, of beam search times
 *         beam_width; at run time if the sizes are not known before. MR_UNIMPLEMENTED at run time if there is no step
 *         and the batch has no fixed size */
MR_API mr_decoded mr_dynamic_decode_(mr_graph *graph, mr_decoder *decoder, mr_output *final,
                                     const mr_dynamic_decode_options *options);
#define mr_dynamic_decode(graph, decoder, final, ...)                                                                  \
    MR_WITH_SIZE_(mr_dynamic_decode_((graph), (decoder), (final), &options_), mr_dynamic_decode_options,               \
                  MR_DYNAMIC_DECODE_DEFAULTS, __VA_ARGS__)

/* ---- Raw networks ---- */

/* What the loop function of a raw network gets, and what it sets. Before the first step, time is 0, `output` is null,
 * and all that it sets has its initial value. After each step, time is the number of steps done. */
typedef struct mr_raw_rnn_step {
    mr_output time;        /* an int32 scalar */
    mr_output output;      /* of the cell, [batch, output size] */
    mr_output *states;     /* of the cell; may be replaced; before the first step: to be set */
    mr_output *loop_state; /* of the function, loop_state_count of any shape; to be set, if there are any */
    mr_output finished;    /* to be set: bool [batch], which sequences end before the next step */
    mr_output input;       /* to be set: of the next step, [batch, features] */
    /* What the network returns of the step, [batch, …]; default: the cell's output. Before the first step: any value of
     * this dtype and shape. */
    mr_output emit;
} mr_raw_rnn_step;
typedef void (*mr_raw_rnn_loop)(void *context, mr_graph *graph, mr_raw_rnn_step *step);

typedef struct mr_raw_rnn_options {
    size_t size;                 /* of this struct (api.h) */
    int32_t loop_state_count;    /* default 0, at most 64 */
    mr_output *loop_state;       /* receives the function's state after the last step; null: not needed */
    int32_t parallel_iterations; /* default 32, at least 1 */
    bool swap_memory;            /* as in mr_while_loop_options */
    const char *name;            /* of the variable scope; default "rnn" */
} mr_raw_rnn_options;
#define MR_RAW_RNN_DEFAULTS .parallel_iterations = 32
/* Runs the cell in a loop whose inputs and end are the loop function's (tf.nn.raw_rnn). The function is called twice:
 * before the loop and in it. Past the end of a sequence, what it emits is zeros and its states do not change. Returns
 * what is emitted, [time, batch, …] (emit_ta.stack()).
 * context  of the function; borrowed for the call
 * final    receives the states of the cell after the last step of each example; null: not needed */
MR_API mr_output mr_raw_rnn_(mr_graph *graph, mr_rnn_cell *cell, mr_raw_rnn_loop loop, void *context, mr_output *final,
                             const mr_raw_rnn_options *options);
#define mr_raw_rnn(graph, cell, loop, context, final, ...)                                                             \
    MR_WITH_SIZE_(mr_raw_rnn_((graph), (cell), (loop), (context), (final), &options_), mr_raw_rnn_options,             \
                  MR_RAW_RNN_DEFAULTS, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
