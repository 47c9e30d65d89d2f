/* Attention, decoders, beam search and raw networks: what is refused, and in which words. */
#include "tests/test.h"
#include <millrace/millrace.h>

enum { BATCH = 3, TIME = 4, FEATURES = 5, UNITS = 6, IDS = 7 };

static void check_refused(mr_graph *g, const char *part)
{
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, part);
    mr_graph_free(g);
}

static mr_output floats(mr_graph *g, mr_shape shape)
{
    return mr_placeholder(g, MR_FLOAT, .shape = shape);
}

static mr_output lengths(mr_graph *g)
{
    return mr_constant_int32s(g, MR_SHAPE(BATCH), (int32_t[]){2, 4, 1}, nullptr);
}

static mr_variable table(mr_graph *g)
{
    return mr_get_variable(g, "embedding", MR_SHAPE(IDS, FEATURES));
}

static mr_output zeros(mr_graph *g)
{
    return mr_constant_int32s(g, MR_SHAPE(BATCH), (int32_t[]){0, 0, 0}, nullptr);
}

/* ---- Mistakes ---- */

TEST(attention_refuses_what_does_not_fit)
{
    for (int i = 0; i < 14; i++) {
        mr_graph *g = mr_graph_new(), *other = mr_graph_new();
        mr_output memory = floats(g, MR_SHAPE(BATCH, TIME, FEATURES));
        mr_attention *attention = mr_bahdanau_attention(g, UNITS, memory);
        mr_rnn_cell *cell = mr_gru_cell(g, UNITS);
        const char *text = nullptr;
        switch (i) {
        case 0:
            text = "bahdanau_attention: num_units is 0, but must be at least 1";
            mr_bahdanau_attention(g, 0, memory);
            break;
        case 1:
            text = "luong_attention needs an input of 3 dimensions";
            mr_luong_attention(g, UNITS, floats(g, MR_SHAPE(BATCH, FEATURES)));
            break;
        case 2:
            text = "luong_attention: normalize has no effect on this attention";
            mr_luong_attention(g, UNITS, memory, .normalize = true);
            break;
        case 3:
            text = "bahdanau_attention: scale has no effect on this attention";
            mr_bahdanau_attention(g, UNITS, memory, .scale = true);
            break;
        case 4:
            text = "score_mask_value has no effect without memory_sequence_length";
            mr_bahdanau_attention(g, UNITS, memory, .score_mask_value = 0);
            break;
        case 5:
            text = "memory_sequence_length is float[3,4,5], but must be int32[batch] or int64[batch]";
            mr_bahdanau_attention(g, UNITS, memory, .memory_sequence_length = memory);
            break;
        case 6:
            text = "attention_wrapper: there is no cell";
            mr_attention_wrapper(g, nullptr, attention);
            break;
        case 7:
            text = "attention_wrapper: there is no attention";
            mr_attention_wrapper(g, cell, nullptr);
            break;
        case 8:
            text = "attention_wrapper: attention_layer_size is -1, but must be at least 0";
            mr_attention_wrapper(g, cell, attention, .attention_layer_size = -1);
            break;
        case 9:
            text = "num_units of luong_attention is 2, but must be the output size of the cell, 6";
            mr_graph_push_variable_scope(g, "second");
            attention = mr_luong_attention(g, 2, memory);
            mr_graph_pop_variable_scope(g);
            mr_attention_wrapper(g, cell, attention);
            break;
        case 10:
            text = "the cell or the attention belongs to another graph";
            mr_attention_wrapper(g, mr_gru_cell(other, UNITS), attention);
            break;
        case 11:
            text = "the input is double, but the memory float";
            mr_dynamic_rnn(g, mr_attention_wrapper(g, cell, attention),
                           mr_placeholder(g, MR_DOUBLE, .shape = MR_SHAPE(BATCH, 2, 2)), nullptr);
            break;
        case 12:
            text = "the memory is int32";
            mr_luong_attention(g, UNITS, mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(1, 2, 3)));
            break;
        default:
            text = "luong_attention needs an input of 3 dimensions";
            mr_luong_attention(g, UNITS, (mr_output){0});
        }
        check_refused(g, text);
        mr_graph_free(other);
    }
}

TEST(monotonic_attention_refuses_what_does_not_fit)
{
    for (int i = 0; i < 5; i++) {
        mr_graph *g = mr_graph_new();
        mr_output memory = floats(g, MR_SHAPE(BATCH, TIME, FEATURES));
        const char *text = nullptr;
        switch (i) {
        case 0:
            text = "probability_fn has no effect on monotonic attention";
            mr_luong_attention(g, UNITS, memory, .monotonic = MR_MONOTONIC_HARD,
                               .probability_fn = mr_activation_softmax);
            break;
        case 1:
            text = "sigmoid_noise has no effect without monotonic";
            mr_luong_attention(g, UNITS, memory, .sigmoid_noise = 1);
            break;
        case 2:
            text = "score_bias_init has no effect without monotonic";
            mr_bahdanau_attention(g, UNITS, memory, .score_bias_init = 1);
            break;
        case 3:
            text = "sigmoid_noise must be finite and at least 0";
            mr_bahdanau_attention(g, UNITS, memory, .monotonic = MR_MONOTONIC_PARALLEL, .sigmoid_noise = -1);
            break;
        default:
            text = "bahdanau_attention: unknown monotonic 7";
            mr_bahdanau_attention(g, UNITS, memory, .monotonic = (mr_monotonic)7);
        }
        check_refused(g, text);
    }
}

TEST(decoders_refuse_what_does_not_fit)
{
    static const char *const texts[] = {
        "training_helper needs an input of 3 dimensions",
        "training_helper: there are no lengths of the inputs",
        "training_helper: lengths is float[3,4,5], but must be int32[batch] or int64[batch]",
        "greedy_embedding_helper: the embedding has no variable",
        "greedy_embedding_helper: start_tokens must be int32[batch]",
        "greedy_embedding_helper: there are no start_tokens",
        "sample_embedding_helper: softmax_temperature is 0, but must be above 0",
        "scheduled_embedding_training_helper: sampling_probability is int32[3], but must be float[] or float[batch]",
        "the embedding has 5 features, but the inputs 2",
        "basic_decoder: there is no helper",
        "basic_decoder: there is no cell",
        "basic_decoder: there is no initial_state",
        "length_penalty_weight has no effect without beam search",
        "dynamic_decode: there is no decoder",
        "dynamic_decode: maximum_iterations must be at least 0",
        "dynamic_decode: maximum_iterations and maximum_iterations_output are both set",
        "decoder: dynamic_decode: alignment_history needs a cell with an attention_wrapper",
        "decoder: basic_decoder: state 0 of initial_state has the shape [2,6], but must have [3,6]",
        "units is required",
        "activity_regularizer has no effect",
        "scheduled_output_training_helper: the output has 6 features, but the input 5",
        "basic_decoder: state 0 of initial_state is no output of the graph",
        "dynamic_decode: parallel_iterations must be at least 1",
        "seed has no effect, as no ids are drawn",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_output x = floats(g, MR_SHAPE(BATCH, TIME, FEATURES)), state = floats(g, MR_SHAPE(BATCH, UNITS));
        mr_output narrow = floats(g, MR_SHAPE(BATCH, TIME, 2)), few = floats(g, MR_SHAPE(2, UNITS)), none = {0};
        mr_output p = mr_constant_float(g, 0.5f);
        mr_variable embedding = table(g);
        mr_variables words = {&embedding, i != 3};
        mr_rnn_cell *cell = mr_gru_cell(g, UNITS);
        mr_helper *helper = mr_training_helper(g, x, lengths(g));
        mr_decoder *decoder = mr_basic_decoder(g, cell, helper, &state);
        if (i == 0) mr_training_helper(g, state, lengths(g));
        if (i == 1) mr_training_helper(g, x, none);
        if (i == 2) mr_training_helper(g, x, x);
        if (i == 3) mr_greedy_embedding_helper(g, words, zeros(g), 1);
        if (i == 4) mr_greedy_embedding_helper(g, words, state, 1);
        if (i == 5) mr_greedy_embedding_helper(g, words, none, 1);
        if (i == 6) mr_sample_embedding_helper(g, words, zeros(g), 1, .softmax_temperature = 0);
        if (i == 7) mr_scheduled_embedding_training_helper(g, x, lengths(g), words, zeros(g));
        if (i == 8) mr_scheduled_embedding_training_helper(g, narrow, lengths(g), words, p);
        if (i == 9) mr_basic_decoder(g, cell, nullptr, &state);
        if (i == 10) mr_basic_decoder(g, nullptr, helper, &state);
        if (i == 11) mr_basic_decoder(g, cell, helper, nullptr);
        if (i == 12) mr_basic_decoder(g, cell, helper, &state, .length_penalty_weight = 1);
        if (i == 13) mr_dynamic_decode(g, nullptr, nullptr);
        if (i == 14) mr_dynamic_decode(g, decoder, nullptr, .maximum_iterations = -1);
        if (i == 15)
            mr_dynamic_decode(g, decoder, nullptr, .maximum_iterations = 1,
                              .maximum_iterations_output = mr_constant_int32(g, 1));
        if (i == 16) mr_dynamic_decode(g, decoder, nullptr, .alignment_history = true);
        if (i == 17) mr_dynamic_decode(g, mr_basic_decoder(g, cell, helper, &few), nullptr);
        if (i == 18) mr_output_layer_new(g, .name = "x");
        if (i == 19) mr_output_layer_new(g, .units = 2, .activity_regularizer = {.l2 = 1});
        if (i == 20) mr_basic_decoder(g, cell, mr_scheduled_output_training_helper(g, x, lengths(g), p), &state);
        if (i == 21) mr_dynamic_decode(g, mr_basic_decoder(g, cell, helper, &none), nullptr);
        if (i == 22) mr_dynamic_decode(g, decoder, nullptr, .parallel_iterations = 0);
        if (i == 23) mr_scheduled_output_training_helper(g, x, lengths(g), p, .seed = 3);
        check_refused(g, texts[i]);
    }
}

static void set_wrong(void *context, mr_graph *g, mr_helper_step *step)
{
    const int *what = context;
    step->finished = *what == 4 ? mr_constant_bool(g, true) : mr_equal(g, zeros(g), zeros(g));
    if (*what != 5) step->inputs = floats(g, MR_SHAPE(BATCH, *what == 6 ? 2 : FEATURES));
}

static mr_output sample_wrong(void *context, mr_graph *g, mr_helper_step *step)
{
    (void)context;
    (void)g;
    return step->outputs;
}

TEST(custom_helpers_are_checked)
{
    static const char *const texts[] = {
        "mr_helper_functions: features must be at least 1",
        "mr_helper_functions: dtype must be float, double or half",
        "mr_helper_functions: initialize is missing",
        "mr_helper_functions: batch must be at least 0",
        "custom_helper: initialize has set finished to bool[], but it must be bool[3]",
        "custom_helper: initialize has not set inputs, which must be float[3,5]",
        "custom_helper: initialize has set inputs to float[3,2], but it must be float[3,5]",
        "custom_helper: sample has set the sample ids to float[3,6], but it must be int32[3]",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_output state = floats(g, MR_SHAPE(BATCH, UNITS));
        const mr_helper_functions functions = {.size = sizeof functions,
                                               .batch = i == 3 ? -1 : BATCH,
                                               .features = i == 0 ? 0 : FEATURES,
                                               .dtype = i == 1 ? MR_INT32 : MR_FLOAT,
                                               .initialize = i == 2 ? nullptr : set_wrong,
                                               .sample = sample_wrong,
                                               .next_inputs = set_wrong};
        mr_helper *helper = mr_custom_helper(g, &functions, &i);
        mr_dynamic_decode(g, mr_basic_decoder(g, mr_gru_cell(g, UNITS), helper, &state), nullptr);
        check_refused(g, texts[i]);
    }
}

TEST(beam_search_refuses_what_does_not_fit)
{
    static const char *const texts[] = {
        "beam_search_decoder: beam_width is 0, but must be at least 1",
        "beam_search_decoder: length_penalty_weight is nan, but must be finite",
        "beam_search_decoder: there are no start_tokens",
        "dynamic_decode: impute_finished has no effect on beam search",
        "dynamic_decode: alignment_history has no effect on beam search",
        "state 0 of initial_state has the shape [3,6], but must have [6,6]; initial_state needs mr_tile_batch",
        "tile_batch: multiplier is 0, but must be at least 1",
        "tile_batch: the value must have 1 to",
        "beam_gather_tree: step_ids is int32[3], but must be int32[time,batch,beam]",
        "beam_width is 2000000000, which is too many for outputs of size 6",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_variable embedding = table(g);
        mr_variables words = {&embedding, 1};
        mr_rnn_cell *cell = mr_gru_cell(g, UNITS);
        mr_output state = floats(g, MR_SHAPE(i == 5 ? BATCH : 2 * BATCH, UNITS)), start = zeros(g), none = {0};
        mr_decoder *decoder = mr_beam_search_decoder(g, cell, words, start, 1, &state, 2);
        if (i == 0) mr_beam_search_decoder(g, cell, words, start, 1, &state, 0);
        if (i == 1) mr_beam_search_decoder(g, cell, words, start, 1, &state, 2, .length_penalty_weight = NAN);
        if (i == 2) mr_beam_search_decoder(g, cell, words, none, 1, &state, 2);
        if (i == 3) mr_dynamic_decode(g, decoder, nullptr, .impute_finished = true);
        if (i == 4) mr_dynamic_decode(g, decoder, nullptr, .alignment_history = true);
        if (i == 5) mr_dynamic_decode(g, decoder, nullptr);
        if (i == 6) mr_tile_batch(g, state, 0);
        if (i == 7) mr_tile_batch(g, mr_constant_float(g, 1), 2);
        if (i == 8) mr_beam_gather_tree(g, start, start, start, 1);
        if (i == 9) mr_beam_search_decoder(g, cell, words, start, 1, &state, 2000000000);
        check_refused(g, texts[i]);
    }
}

static void say_nothing(void *context, mr_graph *g, mr_raw_rnn_step *step)
{
    const int *what = context;
    if (*what > 0) step->finished = mr_constant_bool(g, true);
    if (*what > 1) step->finished = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH)), mr_constant_bool(g, true));
    if (*what > 2) step->input = floats(g, MR_SHAPE(BATCH, FEATURES));
    if (*what > 3) step->states[0] = floats(g, MR_SHAPE(BATCH, FEATURES));
}

TEST(raw_networks_refuse_what_does_not_fit)
{
    static const char *const texts[] = {
        "rnn: raw_rnn: the loop function must set finished to bool[batch]",
        "rnn: raw_rnn: the loop function must set finished to bool[batch]",
        "rnn: raw_rnn: the loop function must set input",
        "rnn: raw_rnn: the loop function must set all states",
        "rnn: state 0 of the cell gru_cell is float[3,5], not float[?,6]",
        "raw_rnn: there is no loop function",
        "raw_rnn: there is no cell",
        "raw_rnn: loop_state_count must be 0 to 64",
        "raw_rnn: loop_state has no effect without loop_state_count",
        "raw_rnn: parallel_iterations must be at least 1",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_rnn_cell *cell = mr_gru_cell(g, UNITS);
        mr_output own = {0};
        if (i < 5) mr_raw_rnn(g, cell, say_nothing, &i, nullptr);
        if (i == 5) mr_raw_rnn(g, cell, nullptr, nullptr, nullptr);
        if (i == 6) mr_raw_rnn(g, nullptr, say_nothing, &i, nullptr);
        if (i == 7) mr_raw_rnn(g, cell, say_nothing, &i, nullptr, .loop_state_count = 65);
        if (i == 8) mr_raw_rnn(g, cell, say_nothing, &i, nullptr, .loop_state = &own);
        if (i == 9) mr_raw_rnn(g, cell, say_nothing, &i, nullptr, .parallel_iterations = 0);
        check_refused(g, texts[i]);
    }
}

static void build_all(mr_graph *g)
{
    mr_output memory = floats(g, MR_SHAPE(BATCH, TIME, FEATURES)), states[4];
    mr_attention *attention = mr_bahdanau_attention(g, UNITS, memory, .memory_sequence_length = lengths(g),
                                                    .normalize = true, .monotonic = MR_MONOTONIC_PARALLEL);
    mr_rnn_cell *cell = mr_attention_wrapper(g, mr_gru_cell(g, UNITS), attention, .attention_layer_size = 2);
    mr_rnn_cell_zero_state(g, cell, mr_constant_int32(g, BATCH), MR_FLOAT, states);
    mr_output_layer *layer = mr_output_layer_new(g, .units = IDS, .name = "projection");
    mr_helper *helper = mr_training_helper(g, memory, lengths(g));
    mr_decoder *decoder = mr_basic_decoder(g, cell, helper, states, .output_layer = layer);
    (void)mr_dynamic_decode(g, decoder, states, .alignment_history = true, .impute_finished = true);
    mr_variable words = table(g);
    mr_output state = floats(g, MR_SHAPE(2 * BATCH, UNITS));
    decoder = mr_beam_search_decoder(g, mr_gru_cell(g, UNITS), MR_VARIABLES(words), zeros(g), 1, &state, 2);
    (void)mr_dynamic_decode(g, decoder, &state, .maximum_iterations = 3);
    int right = 4;
    (void)mr_raw_rnn(g, mr_gru_cell(g, FEATURES), say_nothing, &right, nullptr);
}

/* If any allocation fails, the graph reports it. */
TEST(seq2seq_any_allocation_may_fail)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_status status = MR_UNKNOWN;
    mr_graph *first = mr_graph_new(); /* the registry of operators is allocated once */
    build_all(first);
    mr_graph_free(first);
    for (long long number = 1; status != MR_OK; number++) {
        CHECK(number < 20000);
        mr_graph *g = mr_graph_new();
        test_fail_allocation(test_allocations() + number);
        build_all(g);
        test_fail_allocation(0);
        mr_error error = {0};
        status = mr_graph_status(g, &error);
        if (status != MR_OK && status != MR_RESOURCE_EXHAUSTED)
            test_fail(__FILE__, __LINE__, "allocation %lld: %s", number, error.message);
        mr_graph_free(g);
    }
}
