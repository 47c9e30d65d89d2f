/* Builds a small recurrent model of each kind for rnn_oracle.py, which builds the same models with TensorFlow. */
#include "tests/oracle/model_cases.h"

enum { TIME = 7, FEATURES = 4, UNITS = 5, BATCH = 6 };

static mr_output sequences(model *m)
{
    return m->x = mr_placeholder(m->g, MR_FLOAT, .shape = MR_SHAPE(-1, TIME, FEATURES), .name = "x");
}

static mr_output lengths(model *m, bool is_wide)
{
    mr_output value = mr_constant_int32s(m->g, MR_SHAPE(BATCH), (int32_t[]){3, 7, 1, 0, 5, 6}, "lengths");
    return is_wide ? mr_cast(m->g, value, MR_INT64) : value;
}

/* Adds the states to the outputs, so that the loss depends on both. */
static mr_output with_states(model *m, mr_output outputs, const mr_output *states, int32_t count)
{
    mr_output sum = mr_mean(m->g, mr_square(m->g, outputs), mr_constant_ints(m->g, MR_INTS(0, 1, 2)));
    for (int32_t i = 0; i < count; i++)
        sum = mr_add_v2(m->g, sum, mr_mean(m->g, mr_square(m->g, states[i]), mr_constant_ints(m->g, MR_INTS(0, 1))));
    return sum;
}

static mr_output dynamic(model *m, mr_rnn_cell *cell)
{
    mr_output states[8];
    mr_output outputs = mr_dynamic_rnn(m->g, cell, sequences(m), states);
    return with_states(m, outputs, states, mr_rnn_cell_state_count(cell));
}

static mr_output dynamic_lengths(model *m, mr_rnn_cell *cell, bool time_major)
{
    mr_output states[8], x = sequences(m);
    if (time_major) x = mr_transpose(m->g, x, mr_constant_ints(m->g, MR_INTS(1, 0, 2)));
    mr_output outputs = mr_dynamic_rnn(m->g, cell, x, states, .sequence_length = lengths(m, time_major),
                                       .time_major = time_major, .name = "own");
    return with_states(m, outputs, states, mr_rnn_cell_state_count(cell));
}

static mr_output stack(model *m, bool is_long)
{
    mr_rnn_cell *cells[3];
    cells[0] = mr_basic_lstm_cell(m->g, UNITS, .forget_bias = 0);
    cells[1] = mr_gru_cell(m->g, UNITS);
    cells[2] = mr_residual_wrapper(m->g, mr_basic_lstm_cell(m->g, UNITS));
    return dynamic(m, mr_multi_rnn_cell(m->g, (mr_rnn_cells){cells, is_long ? 3 : 2}));
}

static mr_output initial(model *m)
{
    mr_output x = sequences(m), states[2];
    mr_rnn_cell *cell = mr_lstm_cell(m->g, UNITS);
    mr_output first = mr_squeeze(
        m->g, mr_slice(m->g, x, mr_constant_ints(m->g, MR_INTS(0, 0, 0)), mr_constant_ints(m->g, MR_INTS(-1, 1, -1))),
        .squeeze_dims = MR_INTS(1));
    mr_output dense = mr_layer_dense(m->g, first, .units = UNITS, .activation = mr_activation_tanh);
    mr_output begin[] = {dense, dense};
    mr_output outputs = mr_dynamic_rnn(m->g, cell, x, states, .initial_state = begin);
    return with_states(m, outputs, states, 2);
}

static mr_output twice(model *m)
{
    mr_output x = sequences(m), states[2], again[2];
    mr_graph_push_variable_scope(m->g, "model");
    mr_output one = mr_dynamic_rnn(m->g, mr_basic_lstm_cell(m->g, UNITS), x, states);
    mr_output two = mr_dynamic_rnn(m->g, mr_basic_lstm_cell(m->g, 3), one, again, .name = "second");
    mr_graph_pop_variable_scope(m->g);
    return with_states(m, two, states, 2);
}

static mr_output of_steps(model *m, mr_rnn_cell *cell, bool has_lengths)
{
    mr_output outputs[TIME], states[4];
    mr_output_range steps = mr_unpack(m->g, sequences(m), .num = TIME, .axis = 1);
    mr_output inputs[TIME];
    for (int32_t i = 0; i < TIME; i++) inputs[i] = mr_output_at(steps, i);
    mr_static_rnn(m->g, cell, MR_OUTPUTS_OF(inputs, TIME), outputs, states,
                  .sequence_length = has_lengths ? lengths(m, false) : (mr_output){0});
    return with_states(m, mr_pack(m->g, MR_OUTPUTS_OF(outputs, TIME)), states, mr_rnn_cell_state_count(cell));
}

static mr_output both(model *m, bool has_lengths)
{
    mr_output outputs[2], states[3], x = sequences(m);
    mr_rnn_cell *forward = mr_basic_lstm_cell(m->g, UNITS), *backward = mr_gru_cell(m->g, UNITS);
    mr_bidirectional_dynamic_rnn(m->g, forward, backward, x, outputs, states,
                                 .sequence_length = has_lengths ? lengths(m, false) : (mr_output){0});
    mr_output all = mr_concat_v2(m->g, MR_OUTPUTS(outputs[0], outputs[1]), mr_constant_int32(m->g, 2));
    return with_states(m, mr_layer_dense(m->g, all, .units = 2), states, 3);
}

static mr_output both_static(model *m, bool has_lengths)
{
    mr_output outputs[TIME], states[4], inputs[TIME];
    mr_output_range steps = mr_unpack(m->g, sequences(m), .num = TIME, .axis = 1);
    for (int32_t i = 0; i < TIME; i++) inputs[i] = mr_output_at(steps, i);
    mr_rnn_cell *forward = mr_lstm_cell(m->g, UNITS), *backward = mr_lstm_cell(m->g, 3);
    mr_static_bidirectional_rnn(m->g, forward, backward, MR_OUTPUTS_OF(inputs, TIME), outputs, states,
                                .sequence_length = has_lengths ? lengths(m, false) : (mr_output){0});
    return with_states(m, mr_pack(m->g, MR_OUTPUTS_OF(outputs, TIME)), states, 4);
}

/* A cell of the caller's: the state is a running average of a dense layer. */
static mr_variable custom_kernel;

static void custom_build(void *context, mr_graph *g, int64_t input_size, mr_dtype dtype)
{
    (void)context;
    (void)dtype;
    custom_kernel = mr_get_variable(g, "weights", MR_SHAPE(input_size, UNITS));
}

static mr_output custom_call(void *context, mr_graph *g, mr_output input, const mr_output *states, mr_output *next)
{
    (void)context;
    mr_output half = mr_constant_float(g, 0.5f), value = mr_mat_mul(g, input, custom_kernel.value);
    next[0] = mr_mul(g, half, mr_add_v2(g, states[0], mr_tanh(g, value)));
    return mr_mul(g, next[0], value);
}

static mr_output custom(model *m)
{
    const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                             .state_count = 1,
                                             .state_sizes = (int64_t[]){UNITS},
                                             .output_size = UNITS,
                                             .default_name = "average_cell",
                                             .build = custom_build,
                                             .call = custom_call};
    return dynamic_lengths(m, mr_rnn_cell_new(m->g, &functions, nullptr), false);
}

/* The sum of the input's features is added to each output, which is halved. */
static mr_output residual(void *context, mr_graph *g, mr_output input, mr_output output)
{
    (void)context;
    mr_output sum = mr_sum(g, input, mr_constant_ints(g, MR_INTS(1)), .keep_dims = true);
    return mr_add_v2(g, sum, mr_mul(g, output, mr_constant_float(g, 0.5f)));
}

static bool drops_none(void *context, int32_t index)
{
    (void)context;
    return index < 0;
}

static bool drops_c(void *context, int32_t index)
{
    (void)context;
    return index == 0;
}

#define G m->g
#define CASES(C)                                                                                                       \
    C(basic, dynamic(m, mr_basic_rnn_cell(G, UNITS)))                                                                  \
    C(basic_relu, dynamic(m, mr_basic_rnn_cell(G, UNITS, .activation = mr_activation_relu, .name = "own")))            \
    C(gru, dynamic(m, mr_gru_cell(G, UNITS)))                                                                          \
    C(gru_initialized, dynamic(m, mr_gru_cell(G, UNITS, .bias_initializer = {.kind = MR_INIT_CONSTANT, .scale = 0.3f}, \
                                              .kernel_initializer = {.kind = MR_INIT_UNIFORM, .scale = 0.2f})))        \
    C(basic_lstm, dynamic(m, mr_basic_lstm_cell(G, UNITS)))                                                            \
    C(basic_lstm_options,                                                                                              \
      dynamic(m, mr_basic_lstm_cell(G, UNITS, .forget_bias = 0, .activation = mr_activation_relu)))                    \
    C(lstm, dynamic(m, mr_lstm_cell(G, UNITS)))                                                                        \
    C(lstm_peepholes, dynamic(m, mr_lstm_cell(G, UNITS, .use_peepholes = true, .cell_clip = 0.3f)))                    \
    C(lstm_projection, dynamic(m, mr_lstm_cell(G, UNITS, .num_proj = 3, .proj_clip = 0.05f, .use_peepholes = true,     \
                                               .initializer = {.kind = MR_INIT_UNIFORM, .scale = 0.4f})))              \
    C(layer_norm_lstm, dynamic(m, mr_layer_norm_lstm_cell(G, UNITS, .norm_shift = 0.1f)))                              \
    C(stack, stack(m, false))                                                                                          \
    C(stack_residual, stack(m, true))                                                                                  \
    C(device, dynamic(m, mr_device_wrapper(G, mr_gru_cell(G, UNITS), "/cpu:0")))                                       \
    C(dropout_1, dynamic(m, mr_dropout_wrapper(G, mr_gru_cell(G, UNITS), .output_keep = mr_constant_float(G, 1))))     \
    C(dropout_same, dynamic(m, mr_dropout_wrapper(G, mr_lstm_cell(G, UNITS), .output_keep_prob = 0.7f,                 \
                                                  .variational_recurrent = true)))                                     \
    C(residual_function,                                                                                               \
      dynamic(m, mr_residual_wrapper_with(G, mr_lstm_cell(G, UNITS),                                                   \
                                          MR_OPTIONS(mr_residual_wrapper_options, .residual = residual))))             \
    C(dropout_none,                                                                                                    \
      dynamic(m, mr_dropout_wrapper(G, mr_lstm_cell(G, UNITS), .state_keep_prob = 0.5f, .drops_state = drops_none)))   \
    C(dropout_c,                                                                                                       \
      dynamic(m, mr_dropout_wrapper(G, mr_lstm_cell(G, UNITS), .state_keep_prob = 0.5f, .drops_state = drops_c)))      \
    C(dropout, dynamic(m, mr_dropout_wrapper(G, mr_lstm_cell(G, UNITS), .input_keep_prob = 0.5f,                       \
                                             .output_keep_prob = 0.7f, .state_keep_prob = 0.9f)))                      \
    C(lengths_lstm, dynamic_lengths(m, mr_lstm_cell(G, UNITS), false))                                                 \
    C(lengths_gru_time, dynamic_lengths(m, mr_gru_cell(G, UNITS), true))                                               \
    C(initial_state, initial(m))                                                                                       \
    C(two_networks, twice(m))                                                                                          \
    C(static_lstm, of_steps(m, mr_basic_lstm_cell(G, UNITS), false))                                                   \
    C(static_lengths, of_steps(m, mr_gru_cell(G, UNITS), true))                                                        \
    C(bidirectional, both(m, false))                                                                                   \
    C(bidirectional_lengths, both(m, true))                                                                            \
    C(bidirectional_static, both_static(m, false))                                                                     \
    C(bidirectional_static_lengths, both_static(m, true))                                                              \
    C(custom, custom(m))

MODEL_MAIN(CASES)
