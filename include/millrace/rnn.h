/* Recurrent networks, as tf.nn.rnn_cell, tf.nn.dynamic_rnn and their relatives: the variables have TensorFlow's names,
 * so that checkpoints can be exchanged in both directions.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output words = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 20, 200)); // [batch, time, features]
 * mr_output lengths = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1));
 * mr_rnn_cell *layers[2];
 * for (int i = 0; i < 2; i++) layers[i] = mr_basic_lstm_cell(g, 200, .forget_bias = 0);
 * mr_rnn_cell *cell = mr_multi_rnn_cell(g, (mr_rnn_cells){layers, 2});
 *
 * mr_output final[4]; // c and h of each layer
 * mr_output outputs = mr_dynamic_rnn(g, cell, words, final, .sequence_length = lengths);
 * mr_output logits = mr_layer_dense(g, outputs, .units = 10000);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s, %d states\n", mr_node_name(logits.node), mr_rnn_cell_state_count(cell));
 * mr_graph_free(g);
 * ```
 *
 * Cells. A cell is created first; its variables are created where it is used first, in the variable scope that is
 * current there: rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel. Used again, it has the same variables. Cells belong
 * to the graph.
 *
 * States. A cell has one or more state tensors, each [batch, size]; only the attention wrappers of seq2seq.h have a
 * scalar. Where TensorFlow has nested tuples, there are arrays here, in the order of tf.nest.flatten: c before h of an
 * LSTM, the first cell before the second one. An array of states has mr_rnn_cell_state_count elements.
 *
 * Errors are recorded in the graph; results are then outputs that later builders pass on. Options follow the rules of
 * variables.h. */
#ifndef MILLRACE_RNN_H
#define MILLRACE_RNN_H

#include <millrace/layers.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_rnn_cell mr_rnn_cell;
typedef struct mr_rnn_cells {
    mr_rnn_cell *const *items;
    int32_t count;
} mr_rnn_cells;

/* 1 to 256; 0 of a cell that could not be created. */
MR_API int32_t mr_rnn_cell_state_count(const mr_rnn_cell *cell);
/* 0 of a scalar; -1: known when the graph runs. */
MR_API int64_t mr_rnn_cell_state_size(const mr_rnn_cell *cell, int32_t index);
MR_API int64_t mr_rnn_cell_output_size(const mr_rnn_cell *cell);
/* States of zeros.
 * batch_size  an int32 scalar
 * states      receives them */
MR_API void mr_rnn_cell_zero_state(mr_graph *graph, const mr_rnn_cell *cell, mr_output batch_size, mr_dtype dtype,
                                   mr_output *states);
/* One step; returns the output, [batch, output size].
 * input   [batch, features], features known
 * states  those before the step: float, as all cells compute in the dtype of the input
 * next    receives those after it; may be `states` */
MR_API mr_output mr_rnn_cell_call(mr_graph *graph, mr_rnn_cell *cell, mr_output input, const mr_output *states,
                                  mr_output *next);

/* ---- Cells (tf.nn.rnn_cell) ----
 *
 * units  at least 1 */

/* output = state = activation(W [input, state] + b) */
typedef struct mr_basic_rnn_cell_options {
    size_t size;              /* of this struct (api.h) */
    mr_activation activation; /* default: tanh */
    const char *name;         /* default "basic_rnn_cell" */
    mr_reuse reuse;
} mr_basic_rnn_cell_options;
MR_API mr_rnn_cell *mr_basic_rnn_cell_(mr_graph *graph, int32_t units, const mr_basic_rnn_cell_options *options);
#define mr_basic_rnn_cell(graph, units, ...)                                                                           \
    MR_WITH_SIZE_(mr_basic_rnn_cell_((graph), (units), &options_), mr_basic_rnn_cell_options, __VA_ARGS__)

/* The gated recurrent unit. */
typedef struct mr_gru_cell_options {
    size_t size;                       /* of this struct (api.h) */
    mr_activation activation;          /* default: tanh */
    mr_initializer kernel_initializer; /* default: the scope's */
    mr_initializer bias_initializer;   /* default: ones of the gates, zeros of the candidate */
    const char *name;                  /* default "gru_cell" */
    mr_reuse reuse;
} mr_gru_cell_options;
MR_API mr_rnn_cell *mr_gru_cell_(mr_graph *graph, int32_t units, const mr_gru_cell_options *options);
#define mr_gru_cell(graph, units, ...)                                                                                 \
    MR_WITH_SIZE_(mr_gru_cell_((graph), (units), &options_), mr_gru_cell_options, __VA_ARGS__)

/* The LSTM without options. States: c and h. */
typedef struct mr_basic_lstm_cell_options {
    size_t size;              /* of this struct (api.h) */
    float forget_bias;        /* default 1 */
    mr_activation activation; /* default: tanh */
    const char *name;         /* default "basic_lstm_cell" */
    mr_reuse reuse;
} mr_basic_lstm_cell_options;
#define MR_BASIC_LSTM_CELL_DEFAULTS .forget_bias = 1
MR_API mr_rnn_cell *mr_basic_lstm_cell_(mr_graph *graph, int32_t units, const mr_basic_lstm_cell_options *options);
#define mr_basic_lstm_cell(graph, units, ...)                                                                          \
    MR_WITH_SIZE_(mr_basic_lstm_cell_((graph), (units), &options_), mr_basic_lstm_cell_options,                        \
                  MR_BASIC_LSTM_CELL_DEFAULTS, __VA_ARGS__)

/* The LSTM with peepholes, clipping and projection. States: c [batch, units] and m [batch, projection or units]. */
typedef struct mr_lstm_cell_options {
    size_t size; /* of this struct (api.h) */
    bool use_peepholes;
    float cell_clip;            /* c is clipped to [-cell_clip, cell_clip]; 0: not; at least 0 */
    mr_initializer initializer; /* of the kernels and peepholes; default: the scope's */
    int32_t num_proj;           /* size of the output; 0: units; at least 0 */
    float proj_clip;            /* the projection is clipped; 0: not; at least 0; needs num_proj */
    float forget_bias;          /* default 1 */
    mr_activation activation;   /* default: tanh */
    const char *name;           /* default "lstm_cell" */
    mr_reuse reuse;
} mr_lstm_cell_options;
#define MR_LSTM_CELL_DEFAULTS .forget_bias = 1
MR_API mr_rnn_cell *mr_lstm_cell_(mr_graph *graph, int32_t units, const mr_lstm_cell_options *options);
#define mr_lstm_cell(graph, units, ...)                                                                                \
    MR_WITH_SIZE_(mr_lstm_cell_((graph), (units), &options_), mr_lstm_cell_options, MR_LSTM_CELL_DEFAULTS, __VA_ARGS__)

/* The LSTM with layer normalization of its gates and its state (tf.contrib.rnn.LayerNormBasicLSTMCell). */
typedef struct mr_layer_norm_lstm_cell_options {
    size_t size;              /* of this struct (api.h) */
    float forget_bias;        /* default 1 */
    mr_activation activation; /* default: tanh */
    bool no_layer_norm;
    float norm_gain, norm_shift; /* initial values of gamma and beta; default 1 and 0; no effect with no_layer_norm */
    float dropout_keep_prob;     /* of the candidate; default 1; greater than 0, at most 1 */
    int64_t dropout_prob_seed;   /* 0: derived from the graph's */
    const char *name;            /* default "layer_norm_basic_lstm_cell" */
    mr_reuse reuse;
} mr_layer_norm_lstm_cell_options;
#define MR_LAYER_NORM_LSTM_CELL_DEFAULTS .forget_bias = 1, .norm_gain = 1, .dropout_keep_prob = 1
MR_API mr_rnn_cell *mr_layer_norm_lstm_cell_(mr_graph *graph, int32_t units,
                                             const mr_layer_norm_lstm_cell_options *options);
#define mr_layer_norm_lstm_cell(graph, units, ...)                                                                     \
    MR_WITH_SIZE_(mr_layer_norm_lstm_cell_((graph), (units), &options_), mr_layer_norm_lstm_cell_options,              \
                  MR_LAYER_NORM_LSTM_CELL_DEFAULTS, __VA_ARGS__)

/* A cell of the caller's. */
typedef struct mr_rnn_cell_functions {
    size_t size;                /* of this struct (api.h) */
    int32_t state_count;        /* required, 1 to 256 */
    const int64_t *state_sizes; /* required: as many; copied */
    int64_t output_size;        /* required */
    const char *default_name;   /* required: of its variable scope */
    const char *name;           /* default: default_name, made unique */
    mr_reuse reuse;
    /* Creates the cell's variables, once, in its variable scope, before the first call; outside of the loop that calls
     * it. Null: it has none. */
    void (*build)(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype);
    /* required; as mr_rnn_cell_call */
    mr_output (*call)(void *context, mr_graph *graph, mr_output input, const mr_output *states, mr_output *next);
} mr_rnn_cell_functions;
/* context  of the functions; borrowed; must exist as long as the cell is called */
MR_API mr_rnn_cell *mr_rnn_cell_new(mr_graph *graph, const mr_rnn_cell_functions *functions, void *context);

/* ---- Wrappers ----
 *
 * Up to 64 cells can be inside of each other. */

/* Cells on top of each other; the output of one is the input of the next.
 * cells  at least one, each of them once; up to 256 states in all */
MR_API mr_rnn_cell *mr_multi_rnn_cell(mr_graph *graph, mr_rnn_cells cells);

/* Drops elements of the input, the output and the states, and scales the others. Probabilities are greater than 0, at
 * most 1. The state c of an LSTM is not dropped. Which elements are dropped differs from TensorFlow's choice for the
 * same seed. */
typedef struct mr_dropout_wrapper_options {
    size_t size;                                              /* of this struct (api.h) */
    float input_keep_prob, output_keep_prob, state_keep_prob; /* default 1 */
    mr_output input_keep, output_keep, state_keep;            /* instead, float scalars: a placeholder */
    int64_t seed;                                             /* 0: derived from the graph's */
    /* Drop the same elements in all steps of a run, and for all examples of the batch. */
    bool variational_recurrent;
    int64_t input_size; /* of variational_recurrent: required if the input is dropped: the number of its features */
    mr_dtype dtype;     /* of variational_recurrent: that of the input and the states; default MR_FLOAT */
    /* Whether elements of state `index` are dropped (dropout_state_filter_visitor), called for each state when the
     * wrapper is created; an error unless states are dropped. Default: of all states but the c of an LSTM and the
     * alignments of an attention. The time of an attention is never dropped. */
    bool (*drops_state)(void *context, int32_t index);
    void *drops_state_context;
} mr_dropout_wrapper_options;
#define MR_DROPOUT_WRAPPER_DEFAULTS .input_keep_prob = 1, .output_keep_prob = 1, .state_keep_prob = 1
MR_API mr_rnn_cell *mr_dropout_wrapper_(mr_graph *graph, mr_rnn_cell *cell, const mr_dropout_wrapper_options *options);
#define mr_dropout_wrapper(graph, cell, ...)                                                                           \
    MR_WITH_SIZE_(mr_dropout_wrapper_((graph), (cell), &options_), mr_dropout_wrapper_options,                         \
                  MR_DROPOUT_WRAPPER_DEFAULTS, __VA_ARGS__)
/* Adds the input to the output, which must be of its size. */
MR_API mr_rnn_cell *mr_residual_wrapper(mr_graph *graph, mr_rnn_cell *cell);
typedef struct mr_residual_wrapper_options {
    size_t size; /* of this struct (api.h) */
    /* Combines the input [batch, features] and the output of the cell [batch, output size]; the result has the output's
     * shape and dtype (residual_fn). Default: adds them */
    mr_output (*residual)(void *context, mr_graph *graph, mr_output input, mr_output output);
    void *context; /* of residual; borrowed; must exist as long as the cell is called */
} mr_residual_wrapper_options;
/* The same with options, which may be null. */
MR_API mr_rnn_cell *mr_residual_wrapper_with(mr_graph *graph, mr_rnn_cell *cell,
                                             const mr_residual_wrapper_options *options);
/* Runs the cell on a device. */
MR_API mr_rnn_cell *mr_device_wrapper(mr_graph *graph, mr_rnn_cell *cell, const char *device);

/* ---- Networks ---- */

typedef struct mr_rnn_options {
    size_t size;                    /* of this struct (api.h) */
    mr_output sequence_length;      /* int32 or int64 [batch]: past it, outputs are zeros and states do not change */
    const mr_output *initial_state; /* default: zeros */
    bool time_major;             /* inputs and outputs are [time, batch, features] instead of [batch, time, features] */
    int32_t parallel_iterations; /* of a dynamic network: default 32, at least 1 */
    bool swap_memory;            /* of a dynamic network: as in mr_while_loop_options */
    const char *name;            /* of the variable scope; default "rnn", "bidirectional_rnn" */
} mr_rnn_options;
#define MR_RNN_DEFAULTS .parallel_iterations = 32

/* Runs the cell in a loop over time, of any number of steps (tf.nn.dynamic_rnn). Returns the outputs of all steps, in
 * the form of the inputs.
 * final  receives the states after the last step of each example; null: not needed */
MR_API mr_output mr_dynamic_rnn_(mr_graph *graph, mr_rnn_cell *cell, mr_output inputs, mr_output *final,
                                 const mr_rnn_options *options);
#define mr_dynamic_rnn(graph, cell, inputs, final, ...)                                                                \
    MR_WITH_SIZE_(mr_dynamic_rnn_((graph), (cell), (inputs), (final), &options_), mr_rnn_options, MR_RNN_DEFAULTS,     \
                  __VA_ARGS__)

/* Runs the cell once for each input, without a loop (tf.nn.static_rnn).
 * inputs   at least one, each [batch, features]
 * outputs  receives as many, [batch, output size] */
MR_API void mr_static_rnn_(mr_graph *graph, mr_rnn_cell *cell, mr_outputs inputs, mr_output *outputs, mr_output *final,
                           const mr_rnn_options *options);
#define mr_static_rnn(graph, cell, inputs, outputs, final, ...)                                                        \
    MR_WITH_SIZE_(mr_static_rnn_((graph), (cell), (inputs), (outputs), (final), &options_), mr_rnn_options,            \
                  MR_RNN_DEFAULTS, __VA_ARGS__)

/* One network forward in time, in the variable scope "fw", and one backward, in "bw"
 * (tf.nn.bidirectional_dynamic_rnn). The sequences are reversed within their lengths.
 * outputs  receives the outputs of the forward and of the backward network
 * finals   receives the states of the forward, then of the backward network; null: not needed
 * options  initial_state: as finals */
MR_API void mr_bidirectional_dynamic_rnn_(mr_graph *graph, mr_rnn_cell *forward, mr_rnn_cell *backward,
                                          mr_output inputs, mr_output outputs[2], mr_output *finals,
                                          const mr_rnn_options *options);
#define mr_bidirectional_dynamic_rnn(graph, forward, backward, inputs, outputs, finals, ...)                           \
    MR_WITH_SIZE_(                                                                                                     \
        mr_bidirectional_dynamic_rnn_((graph), (forward), (backward), (inputs), (outputs), (finals), &options_),       \
        mr_rnn_options, MR_RNN_DEFAULTS, __VA_ARGS__)

/* The same without loops (tf.nn.static_bidirectional_rnn).
 * outputs  receives for each input the forward and the backward output, concatenated */
MR_API void mr_static_bidirectional_rnn_(mr_graph *graph, mr_rnn_cell *forward, mr_rnn_cell *backward,
                                         mr_outputs inputs, mr_output *outputs, mr_output *finals,
                                         const mr_rnn_options *options);
#define mr_static_bidirectional_rnn(graph, forward, backward, inputs, outputs, finals, ...)                            \
    MR_WITH_SIZE_(                                                                                                     \
        mr_static_bidirectional_rnn_((graph), (forward), (backward), (inputs), (outputs), (finals), &options_),        \
        mr_rnn_options, MR_RNN_DEFAULTS, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
