/* Builds small models with attention and decoders for seq2seq_oracle.py, which builds the same models with
 * TensorFlow. */
#include "tests/oracle/model_cases.h"

enum { TIME = 7, FEATURES = 4, UNITS = 5, BATCH = 6, IDS = 8, STEPS_MAX = 9, END = 2 };

static mr_output sequences(model *m)
{
    return m->x = mr_placeholder(m->g, MR_FLOAT, .shape = MR_SHAPE(-1, TIME, FEATURES), .name = "x");
}

static mr_output memory_lengths(model *m)
{
    return mr_constant_int32s(m->g, MR_SHAPE(BATCH), (int32_t[]){3, 7, 1, 2, 5, 6}, "memory_lengths");
}

static mr_output target_lengths(model *m)
{
    return mr_constant_int32s(m->g, MR_SHAPE(BATCH), (int32_t[]){5, 1, 0, 4, 3, 5}, "target_lengths");
}

static mr_output squares(model *m, mr_output value)
{
    mr_output flat = mr_reshape(m->g, value, mr_constant_ints(m->g, MR_INTS(-1)));
    if (mr_graph_status(m->g, nullptr) == MR_OK && mr_output_dtype(flat) != MR_FLOAT)
        flat = mr_mul(m->g, mr_cast(m->g, flat, MR_FLOAT), mr_constant_float(m->g, 0.1f));
    return mr_sum(m->g, mr_square(m->g, flat), mr_constant_ints(m->g, MR_INTS(0)));
}

static mr_output sum_of(model *m, const mr_output *values, int32_t count)
{
    mr_output sum = mr_constant_float(m->g, 0);
    for (int32_t i = 0; i < count; i++) sum = mr_add_v2(m->g, sum, squares(m, values[i]));
    return mr_mul(m->g, sum, mr_constant_float(m->g, 0.01f));
}

/* Everything that a decoder returns. */
static mr_output of_decoded(model *m, const mr_decoded *d, const mr_output *states, int32_t count)
{
    const mr_output all[] = {d->rnn_output, d->sample_id, d->sequence_lengths};
    mr_output sum = sum_of(m, all, 3);
    for (int32_t i = 0; i < MR_ATTENTIONS_MAX && d->alignment_histories[i].node != nullptr; i++)
        sum = mr_add_v2(m->g, sum, sum_of(m, &d->alignment_histories[i], 1));
    return mr_add_v2(m->g, sum, sum_of(m, states, count));
}

static mr_output encode(model *m, mr_output x, mr_output *final)
{
    return mr_dynamic_rnn(m->g, mr_gru_cell(m->g, UNITS), x, final, .name = "encoder");
}

static mr_output batch_of(model *m, mr_output x)
{
    return mr_strided_slice(m->g, mr_shape_of(m->g, x), mr_constant_ints(m->g, MR_INTS(0)),
                            mr_constant_ints(m->g, MR_INTS(1)), mr_constant_ints(m->g, MR_INTS(1)),
                            .shrink_axis_mask = 1);
}

/* An encoder and a decoder that attends to it; the inputs of both are x. */
static mr_output train_with(model *m, mr_rnn_cell *(*wrap)(model *, mr_output memory, const mr_output *encoded),
                            bool has_layer, bool impute, bool keeps_alignments)
{
    mr_output x = sequences(m), encoded, states[8];
    mr_output memory = encode(m, x, &encoded);
    mr_rnn_cell *cell = wrap(m, memory, &encoded);
    mr_rnn_cell_zero_state(m->g, cell, batch_of(m, x), MR_FLOAT, states);
    mr_output_layer *layer = has_layer ? mr_output_layer_new(m->g, .units = IDS) : nullptr;
    mr_helper *helper = mr_training_helper(m->g, x, target_lengths(m));
    mr_decoder *decoder = mr_basic_decoder(m->g, cell, helper, states, .output_layer = layer);
    mr_decoded d = mr_dynamic_decode(m->g, decoder, states, .impute_finished = impute, .output_time_major = impute,
                                     .alignment_history = keeps_alignments);
    return of_decoded(m, &d, states, mr_rnn_cell_state_count(cell));
}

static mr_rnn_cell *bahdanau(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_attention *attention = mr_bahdanau_attention(m->g, 3, memory);
    return mr_attention_wrapper(m->g, mr_basic_lstm_cell(m->g, UNITS), attention, .attention_layer_size = 6);
}

static mr_rnn_cell *normalized(model *m, mr_output memory, const mr_output *encoded)
{
    mr_attention *attention =
        mr_bahdanau_attention(m->g, 3, memory, .memory_sequence_length = memory_lengths(m), .normalize = true);
    return mr_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), attention, .attention_layer_size = 6,
                                .initial_cell_state = encoded, .name = "attention");
}

static mr_rnn_cell *luong(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_attention *attention = mr_luong_attention(m->g, UNITS, memory);
    return mr_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), attention, .output_attention = false);
}

static mr_rnn_cell *scaled(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_rnn_cell *cells[] = {mr_basic_lstm_cell(m->g, 3), mr_gru_cell(m->g, UNITS)};
    mr_output lengths = mr_cast(m->g, memory_lengths(m), MR_INT64);
    mr_attention *attention = mr_luong_attention(m->g, UNITS, memory, .memory_sequence_length = lengths, .scale = true,
                                                 .score_mask_value = -2);
    mr_rnn_cell *cell = mr_multi_rnn_cell(m->g, (mr_rnn_cells){cells, 2});
    return mr_attention_wrapper(m->g, cell, attention, .attention_layer_size = 2);
}

static mr_rnn_cell *hard(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_attention *attention = mr_luong_attention(m->g, UNITS, memory, .probability_fn = mr_activation_hardmax);
    return mr_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), attention, .attention_layer_size = 2);
}

static mr_rnn_cell *monotonic(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_attention *attention =
        mr_bahdanau_attention(m->g, 3, memory, .memory_sequence_length = memory_lengths(m), .normalize = true,
                              .monotonic = MR_MONOTONIC_PARALLEL, .score_bias_init = -0.5f);
    return mr_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), attention, .attention_layer_size = 6);
}

static mr_rnn_cell *monotonic_hard(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_attention *attention = mr_luong_attention(m->g, UNITS, memory, .scale = true, .monotonic = MR_MONOTONIC_HARD);
    return mr_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), attention, .attention_layer_size = 6);
}

static mr_rnn_cell *monotonic_noise(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_attention *attention = mr_luong_attention(m->g, UNITS, memory, .monotonic = MR_MONOTONIC_PARALLEL,
                                                 .sigmoid_noise = 1, .sigmoid_noise_seed = 3);
    return mr_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), attention, .attention_layer_size = 6);
}

static mr_rnn_cell *several(model *m, mr_output memory, const mr_output *encoded)
{
    mr_output lengths = memory_lengths(m);
    mr_attention *first = mr_bahdanau_attention(m->g, 3, memory, .memory_sequence_length = lengths, .normalize = true);
    mr_attention *second = mr_luong_attention(m->g, UNITS, memory, .scale = true);
    mr_attention *third = mr_bahdanau_attention(m->g, 4, memory, .monotonic = MR_MONOTONIC_PARALLEL);
    mr_attention *fourth = mr_bahdanau_attention(m->g, 2, memory, .memory_sequence_length = lengths);
    return mr_multi_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), MR_ATTENTIONS(first, second, third, fourth),
                                      .attention_layer_sizes = MR_INTS(6, 2, 3, 4), .initial_cell_state = encoded);
}

static mr_rnn_cell *several_contexts(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_attention *first = mr_luong_attention(m->g, UNITS, memory);
    mr_attention *second = mr_luong_attention(m->g, UNITS, memory, .memory_sequence_length = memory_lengths(m));
    return mr_multi_attention_wrapper(m->g, mr_basic_lstm_cell(m->g, UNITS), MR_ATTENTIONS(first, second),
                                      .output_attention = false);
}

static mr_rnn_cell *one_of_several(model *m, mr_output memory, const mr_output *encoded)
{
    (void)encoded;
    mr_attention *attention = mr_bahdanau_attention(m->g, 3, memory);
    return mr_multi_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), MR_ATTENTIONS(attention),
                                      .attention_layer_sizes = MR_INTS(6));
}

/* The attention below another cell, run by dynamic_rnn. */
static mr_output in_network(model *m)
{
    mr_output x = sequences(m), encoded, states[8];
    mr_output memory = encode(m, x, &encoded);
    mr_rnn_cell *cells[] = {bahdanau(m, memory, &encoded), mr_gru_cell(m->g, 3)};
    mr_rnn_cell *cell = mr_multi_rnn_cell(m->g, (mr_rnn_cells){cells, 2});
    mr_output outputs = mr_dynamic_rnn(m->g, cell, x, states, .sequence_length = target_lengths(m));
    return mr_add_v2(m->g, sum_of(m, &outputs, 1), sum_of(m, states, mr_rnn_cell_state_count(cell)));
}

typedef enum inference { GREEDY, SAMPLE, BEAM } inference;

static mr_variable embedding_of(model *m)
{
    return mr_get_variable(m->g, "embedding", MR_SHAPE(IDS, FEATURES),
                           .initializer = {.kind = MR_INIT_UNIFORM, .scale = 2});
}

static mr_output start_tokens(model *m)
{
    return mr_constant_int32s(m->g, MR_SHAPE(BATCH), (int32_t[]){1, 3, 4, 5, 6, 7}, "start");
}

static mr_output_layer *vocabulary(model *m)
{
    return mr_output_layer_new(m->g, .units = IDS, .use_bias = false, .name = "projection",
                               .kernel_initializer = {.kind = MR_INIT_UNIFORM, .scale = 2});
}

static mr_output infer(model *m, inference how)
{
    mr_output x = sequences(m), encoded, states[8];
    mr_output memory = encode(m, x, &encoded);
    mr_variable words = embedding_of(m);
    mr_rnn_cell *cell = normalized(m, memory, &encoded);
    mr_rnn_cell_zero_state(m->g, cell, batch_of(m, x), MR_FLOAT, states);
    mr_helper *helper = how == GREEDY ? mr_greedy_embedding_helper(m->g, MR_VARIABLES(words), start_tokens(m), END)
                                      : mr_sample_embedding_helper(m->g, MR_VARIABLES(words), start_tokens(m), END,
                                                                   .seed = 3, .softmax_temperature = 0.5f);
    mr_decoder *decoder = mr_basic_decoder(m->g, cell, helper, states, .output_layer = vocabulary(m));
    mr_decoded d = mr_dynamic_decode(m->g, decoder, states, .maximum_iterations = STEPS_MAX, .name = "own");
    return mr_mul(m->g, mr_constant_float(m->g, 0.1f), of_decoded(m, &d, states, 4));
}

/* A training decoder and a greedy one with the same cell and layer. */
static mr_output both(model *m)
{
    mr_output x = sequences(m), encoded, states[8], ends[8];
    mr_output memory = encode(m, x, &encoded);
    mr_variable words = embedding_of(m);
    mr_output_layer *layer = vocabulary(m);
    mr_rnn_cell *cell = scaled(m, memory, &encoded);
    mr_rnn_cell_zero_state(m->g, cell, batch_of(m, x), MR_FLOAT, states);
    mr_decoder *train =
        mr_basic_decoder(m->g, cell, mr_training_helper(m->g, x, target_lengths(m)), states, .output_layer = layer);
    mr_decoded first = mr_dynamic_decode(m->g, train, ends);
    mr_output sum = of_decoded(m, &first, ends, 6);
    mr_helper *greedy = mr_greedy_embedding_helper(m->g, MR_VARIABLES(words), start_tokens(m), END);
    mr_decoder *test = mr_basic_decoder(m->g, cell, greedy, states, .output_layer = layer);
    mr_decoded second = mr_dynamic_decode(m->g, test, ends, .impute_finished = true,
                                          .maximum_iterations_output = mr_constant_int32(m->g, STEPS_MAX));
    sum = mr_add_v2(m->g, sum, of_decoded(m, &second, ends, 6));
    return mr_mul(m->g, mr_constant_float(m->g, 0.1f), sum);
}

static mr_output scheduled(model *m, float probability, bool by_output)
{
    mr_output x = sequences(m), states[8], p = mr_constant_float(m->g, probability);
    mr_variable words = embedding_of(m);
    mr_rnn_cell *cell = mr_gru_cell(m->g, by_output ? FEATURES : UNITS);
    mr_rnn_cell_zero_state(m->g, cell, batch_of(m, x), MR_FLOAT, states);
    mr_helper *helper =
        by_output ? mr_scheduled_output_training_helper(m->g, x, target_lengths(m), p)
                  : mr_scheduled_embedding_training_helper(m->g, x, target_lengths(m), MR_VARIABLES(words), p);
    mr_decoder *decoder =
        mr_basic_decoder(m->g, cell, helper, states, .output_layer = by_output ? nullptr : vocabulary(m));
    mr_decoded d = mr_dynamic_decode(m->g, decoder, states);
    return of_decoded(m, &d, states, 1);
}

/* Each input is the output of the step before; the sequences end one after the other. */
static void feed_back(void *context, mr_graph *g, mr_raw_rnn_step *step)
{
    const mr_output *x = context; /* of the first step, and the lengths */
    mr_output zeros = mr_fill(g, mr_shape_of(g, x[0]), mr_constant_float(g, 0)), one = mr_constant_float(g, 1);
    mr_output output = step->output.node != nullptr ? step->output : zeros;
    mr_output sum = mr_sum(g, output, mr_constant_ints(g, MR_INTS(0, 1)));
    if (step->output.node == nullptr) step->states[0] = step->states[1] = zeros;
    step->loop_state[0] = mr_add_v2(g, step->output.node != nullptr ? step->loop_state[0] : one, sum);
    step->input = step->output.node != nullptr ? output : x[0];
    step->finished = mr_greater_equal(g, step->time, x[1]);
    mr_output first = mr_slice(g, output, mr_constant_ints(g, MR_INTS(0, 0)), mr_constant_ints(g, MR_INTS(-1, 2)));
    step->emit = mr_mul(g, first, mr_constant_float(g, 3));
}

static mr_output raw(model *m)
{
    mr_output x = sequences(m), states[2], sum;
    mr_output first = mr_squeeze(
        m->g, mr_slice(m->g, x, mr_constant_ints(m->g, MR_INTS(0, 0, 0)), mr_constant_ints(m->g, MR_INTS(-1, 1, -1))),
        .squeeze_dims = MR_INTS(1));
    mr_output context[] = {first, target_lengths(m)};
    mr_output emitted = mr_raw_rnn(m->g, mr_basic_lstm_cell(m->g, FEATURES), feed_back, context, states,
                                   .loop_state_count = 1, .loop_state = &sum);
    const mr_output all[] = {emitted, states[0], states[1], sum};
    return sum_of(m, all, 4);
}

/* The loss of ids that follow from x. */
static mr_output loss(model *m, const mr_sequence_loss_options *options)
{
    mr_output x = sequences(m), four = mr_constant_float(m->g, 4);
    mr_output logits = mr_layer_dense(m->g, x, .units = IDS);
    mr_output axis = mr_constant_int32(m->g, 2), first = mr_constant_ints(m->g, MR_INTS(2));
    mr_output ids = mr_arg_max(m->g, x, axis, .output_type = MR_INT32);
    mr_output weights = mr_floor(m->g, mr_mul(m->g, four, mr_max(m->g, x, first)));
    return sum_of(m, (mr_output[]){mr_sequence_loss_(m->g, logits, ids, weights, options)}, 1);
}
#define LOSS(...) loss(m, MR_OPTIONS(mr_sequence_loss_options, __VA_ARGS__))

static mr_output beams(model *m, int32_t width, float penalty)
{
    mr_output x = sequences(m), encoded, states[8];
    mr_output memory = encode(m, x, &encoded);
    mr_variable words = embedding_of(m);
    encoded = mr_tile_batch(m->g, encoded, width);
    mr_output lengths = mr_tile_batch(m->g, memory_lengths(m), width);
    mr_attention *attention = mr_bahdanau_attention(m->g, 3, mr_tile_batch(m->g, memory, width),
                                                    .memory_sequence_length = lengths, .normalize = true);
    mr_rnn_cell *cell = mr_attention_wrapper(m->g, mr_gru_cell(m->g, UNITS), attention, .attention_layer_size = 6,
                                             .initial_cell_state = &encoded);
    mr_rnn_cell_zero_state(m->g, cell, mr_constant_int32(m->g, BATCH * width), MR_FLOAT, states);
    mr_decoder *decoder = mr_beam_search_decoder(m->g, cell, MR_VARIABLES(words), start_tokens(m), END, states, width,
                                                 .output_layer = vocabulary(m), .length_penalty_weight = penalty);
    mr_decoded d = mr_dynamic_decode(m->g, decoder, states, .maximum_iterations = STEPS_MAX);
    mr_output position = mr_cast(m->g, mr_constant_ints(m->g, MR_INTS(1, 2, 3, 5, 7, 11, 13, 17, 19)), MR_FLOAT);
    mr_output factor =
        mr_slice(m->g, position, mr_constant_ints(m->g, MR_INTS(0)), mr_constant_ints(m->g, MR_INTS(width)));
    mr_output ids = mr_mul(m->g, mr_cast(m->g, d.predicted_ids, MR_FLOAT), factor);
    mr_output parents = mr_mul(m->g, mr_cast(m->g, d.parent_ids, MR_FLOAT), factor);
    const mr_output all[] = {ids, parents, d.sequence_lengths, d.log_probs, d.scores, states[0], states[1], states[3]};
    return mr_mul(m->g, mr_constant_float(m->g, 0.01f), sum_of(m, all, 8));
}

#define CASES(C)                                                                                                       \
    C(bahdanau, train_with(m, bahdanau, true, false, false))                                                           \
    C(bahdanau_imputed, train_with(m, bahdanau, true, true, true))                                                     \
    C(normalized, train_with(m, normalized, true, false, true))                                                        \
    C(luong, train_with(m, luong, false, false, false))                                                                \
    C(luong_imputed, train_with(m, luong, true, true, false))                                                          \
    C(scaled, train_with(m, scaled, true, false, false))                                                               \
    C(hardmax, train_with(m, hard, true, false, false))                                                                \
    C(monotonic, train_with(m, monotonic, true, false, true))                                                          \
    C(monotonic_hard, train_with(m, monotonic_hard, true, false, true))                                                \
    C(monotonic_noise, train_with(m, monotonic_noise, true, false, true))                                              \
    C(several, train_with(m, several, true, false, true))                                                              \
    C(several_imputed, train_with(m, several, true, true, false))                                                      \
    C(several_contexts, train_with(m, several_contexts, false, false, true))                                           \
    C(one_of_several, train_with(m, one_of_several, true, false, true))                                                \
    C(in_network, in_network(m))                                                                                       \
    C(greedy, infer(m, GREEDY))                                                                                        \
    C(sample, infer(m, SAMPLE))                                                                                        \
    C(train_and_greedy, both(m))                                                                                       \
    C(scheduled_embedding_0, scheduled(m, 0, false))                                                                   \
    C(scheduled_embedding, scheduled(m, 0.5f, false))                                                                  \
    C(scheduled_output_0, scheduled(m, 0, true))                                                                       \
    C(scheduled_output_1, scheduled(m, 1, true))                                                                       \
    C(raw, raw(m))                                                                                                     \
    C(loss, LOSS(.average_across_timesteps = true, .average_across_batch = true))                                      \
    C(loss_of_steps, LOSS(.average_across_batch = true))                                                               \
    C(loss_of_examples, LOSS(.sum_over_timesteps = true))                                                              \
    C(loss_sum, LOSS(.sum_over_timesteps = true, .sum_over_batch = true))                                              \
    C(beam_1, beams(m, 1, 0))                                                                                          \
    C(beam_3, beams(m, 3, 0))                                                                                          \
    C(beam_penalty, beams(m, 4, 1.5f))

MODEL_MAIN(CASES)
