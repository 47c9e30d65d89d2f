/* Decoders and attention: batch sizes that differ, limits, arguments, several attentions. */
#include "tests/train/refused.h"

#include <string.h>

enum { BATCH = 3, TIME = 4, FEATURES = 5, UNITS = 6, IDS = 7, WIDTH = 2 };

static mr_output ints(mr_graph *g, int64_t count)
{
    return mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(count));
}

/* ---- Batch sizes ---- */

typedef struct decoding {
    mr_graph *g;
    mr_output x, lengths, memory, ends, state, start; /* placeholders */
    mr_decoded decoded;
} decoding;

/* A decoder of placeholders whose batch is known or not. is_beam: beam search */
static decoding decode(bool is_beam, const int64_t *batches)
{
    decoding d = {.g = mr_graph_new()};
    mr_graph *g = d.g;
    mr_output states[4];
    d.x = floats(g, MR_SHAPE(batches[0], TIME, FEATURES));
    d.lengths = ints(g, batches[1]);
    d.memory = floats(g, MR_SHAPE(batches[2], TIME, FEATURES));
    d.ends = ints(g, batches[3]);
    d.state = floats(g, MR_SHAPE(batches[4], UNITS));
    d.start = ints(g, batches[0]);
    mr_attention *attention = mr_luong_attention(g, UNITS, d.memory, .memory_sequence_length = d.ends);
    mr_rnn_cell *cell = mr_attention_wrapper(g, mr_gru_cell(g, UNITS), attention, .attention_layer_size = UNITS,
                                             .initial_cell_state = &d.state);
    mr_output batch = mr_squeeze(
        g, mr_slice(g, mr_shape_of(g, d.x), mr_constant_ints(g, MR_INTS(0)), mr_constant_ints(g, MR_INTS(1))));
    if (is_beam) batch = mr_mul(g, batch, mr_constant_int32(g, WIDTH));
    if (batches[0] >= 0) batch = mr_constant_int32(g, (int32_t)batches[0] * (is_beam ? WIDTH : 1));
    mr_rnn_cell_zero_state(g, cell, batch, MR_FLOAT, states);
    mr_decoder *decoder = nullptr;
    if (is_beam) {
        mr_variable words = mr_get_variable(g, "words", MR_SHAPE(IDS, FEATURES));
        mr_output_layer *layer = mr_output_layer_new(g, .units = IDS);
        decoder =
            mr_beam_search_decoder(g, cell, MR_VARIABLES(words), d.start, 1, states, WIDTH, .output_layer = layer);
    } else {
        decoder = mr_basic_decoder(g, cell, mr_training_helper(g, d.x, d.lengths), states);
    }
    d.decoded = mr_dynamic_decode(g, decoder, nullptr, .maximum_iterations = TIME);
    return d;
}

static mr_tensor zeros(mr_dtype dtype, mr_shape shape)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init(&tensor, dtype, shape, &error));
    memset(tensor.data, 0, mr_tensor_size_bytes(&tensor));
    for (int64_t i = 0; dtype == MR_INT32 && i < mr_tensor_count(&tensor); i++) ((int32_t *)tensor.data)[i] = TIME;
    return tensor;
}

/* Feeds the batches, and returns the status of the run. */
static mr_status run_decoding(const decoding *d, bool is_beam, const int64_t *batches, mr_error *found)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor result = {0};
    mr_node *init = mr_initialize_variables(d->g, MR_GLOBAL_VARIABLES, "init");
    mr_feed feeds[] = {{d->x, zeros(MR_FLOAT, MR_SHAPE(batches[0], TIME, FEATURES))},
                       {d->lengths, zeros(MR_INT32, MR_SHAPE(batches[1]))},
                       {d->memory, zeros(MR_FLOAT, MR_SHAPE(batches[2], TIME, FEATURES))},
                       {d->ends, zeros(MR_INT32, MR_SHAPE(batches[3]))},
                       {d->state, zeros(MR_FLOAT, MR_SHAPE(batches[4], UNITS))},
                       {d->start, zeros(MR_INT32, MR_SHAPE(batches[0]))}};
    CHECK_OK(mr_session_new(d->g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    const mr_output fetch = is_beam ? d->decoded.log_probs : d->decoded.rnn_output;
    const mr_status status =
        mr_session_run(session, (mr_feeds){feeds, 6}, MR_OUTPUTS(fetch), &result, nullptr, 0, found);
    for (int i = 0; i < 6; i++) mr_tensor_deinit(&feeds[i].value);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    return status;
}

/* Which of the batches differs: inputs, lengths, memory, its lengths, the initial state. */
static const char *const basic_texts[] = {
    nullptr,
    "training_helper: the batch size",
    "attention_wrapper: the batch size",
    "luong_attention: the batch size",
    "attention_wrapper: the batch size",
};

TEST(decoders_check_batch_sizes_that_are_known)
{
    for (int wrong = 0; wrong < 5; wrong++) {
        int64_t batches[] = {BATCH, BATCH, BATCH, BATCH, BATCH};
        if (wrong > 0) batches[wrong] = 2;
        if (wrong == 2) batches[3] = 2; /* the lengths of the memory fit it */
        const decoding d = decode(false, batches);
        if (wrong > 0)
            check_refused(d.g, basic_texts[wrong]);
        else
            mr_graph_free(d.g);
    }
}

TEST(decoders_check_batch_sizes_when_they_run)
{
    const int64_t unknown[] = {-1, -1, -1, -1, -1};
    for (int wrong = 0; wrong < 5; wrong++) {
        mr_error error = {0};
        int64_t batches[] = {BATCH, BATCH, BATCH, BATCH, BATCH};
        if (wrong > 0) batches[wrong] = 2;
        if (wrong == 2) batches[3] = 2;
        const decoding d = decode(false, unknown);
        CHECK_OK(mr_graph_status(d.g, &error));
        const mr_status status = run_decoding(&d, false, batches, &error);
        if (wrong == 0) CHECK_OK(status);
        if (wrong > 0) {
            CHECK_STATUS(status, MR_INVALID_ARGUMENT);
            CHECK_CONTAINS(error.message, basic_texts[wrong]);
        }
        mr_graph_free(d.g);
    }
}

TEST(beam_search_needs_what_tile_batch_has_repeated)
{
    const int64_t unknown[] = {-1, -1, -1, -1, -1};
    for (int wrong = 0; wrong < 4; wrong++) {
        const int64_t all = BATCH * WIDTH;
        const int64_t memory = wrong == 1 || wrong == 3 ? BATCH : all, state = wrong == 2 || wrong == 3 ? BATCH : all;
        const int64_t batches[] = {BATCH, BATCH, memory, memory, state};
        mr_error error = {0};
        decoding d = decode(true, batches);
        if (wrong > 0)
            check_refused(d.g, "mr_tile_batch");
        else
            mr_graph_free(d.g);
        d = decode(true, unknown);
        CHECK_OK(mr_graph_status(d.g, &error));
        const mr_status status = run_decoding(&d, true, batches, &error);
        if (wrong == 0) CHECK_OK(status);
        if (wrong > 0) {
            CHECK_STATUS(status, MR_INVALID_ARGUMENT);
            CHECK_CONTAINS(error.message, "mr_tile_batch");
        }
        mr_graph_free(d.g);
    }
}

TEST(the_initial_state_of_an_attention_wrapper_is_checked)
{
    static const char *const texts[] = {
        "attention_wrapper: initial_cell_state 1 is float[3,5], but must be float[?,6]",
        "attention_wrapper: initial_cell_state 1 is int32[3], but must be float[?,6]",
        "attention_wrapper: initial_cell_state 1 is no output of the graph; the cell has 2 states",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_output states[2] = {floats(g, MR_SHAPE(BATCH, UNITS)), {0}};
        if (i == 0) states[1] = floats(g, MR_SHAPE(BATCH, FEATURES));
        if (i == 1) states[1] = ints(g, BATCH);
        mr_attention *attention = mr_bahdanau_attention(g, UNITS, floats(g, MR_SHAPE(BATCH, TIME, FEATURES)));
        mr_attention_wrapper(g, mr_lstm_cell(g, UNITS), attention, .initial_cell_state = states);
        check_refused(g, texts[i]);
    }
}

/* ---- Limits ---- */

TEST(decoding_ends_with_an_error_where_the_inputs_end)
{
    for (int longer = 0; longer < 2; longer++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_session *session = nullptr;
        mr_output state = mr_constant_floats(g, MR_SHAPE(BATCH, UNITS), (float[BATCH * UNITS]){0}, nullptr);
        mr_output x =
            mr_constant_floats(g, MR_SHAPE(BATCH, TIME, FEATURES), (float[BATCH * TIME * FEATURES]){0}, nullptr);
        mr_output lengths = mr_constant_int32s(g, MR_SHAPE(BATCH), (int32_t[]){1, TIME + longer, 2}, nullptr);
        mr_decoder *decoder = mr_basic_decoder(g, mr_gru_cell(g, UNITS), mr_training_helper(g, x, lengths), &state);
        mr_decoded d = mr_dynamic_decode(g, decoder, nullptr);
        mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
        mr_tensor result = {0};
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(d.rnn_output), &result, nullptr, 0, &error),
                     longer ? MR_INVALID_ARGUMENT : MR_OK);
        mr_tensor_deinit(&result);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

TEST(no_iterations_are_no_steps)
{
    for (int i = 0; i < 4; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_session *session = nullptr;
        mr_output state = mr_constant_floats(g, MR_SHAPE(BATCH, UNITS), (float[BATCH * UNITS]){0}, nullptr), final;
        mr_output x =
            mr_constant_floats(g, MR_SHAPE(BATCH, TIME, FEATURES), (float[BATCH * TIME * FEATURES]){0}, nullptr);
        mr_output lengths = mr_constant_int32s(g, MR_SHAPE(BATCH), (int32_t[]){4, 2, 1}, nullptr);
        mr_decoder *decoder = mr_basic_decoder(g, mr_gru_cell(g, UNITS), mr_training_helper(g, x, lengths), &state);
        mr_decoded d = {0};
        if (i == 0) d = mr_dynamic_decode(g, decoder, &final);
        if (i == 1) d = mr_dynamic_decode(g, decoder, &final, .maximum_iterations = 0);
        if (i == 2) d = mr_dynamic_decode(g, decoder, &final, .maximum_iterations_output = mr_constant_int32(g, -3));
        if (i == 3) d = mr_dynamic_decode(g, decoder, &final, .maximum_iterations = 2);
        mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
        mr_tensor results[3] = {0};
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(d.rnn_output, d.sequence_lengths, final), results,
                                nullptr, 0, &error));
        const int steps[] = {4, 0, 0, 2};
        CHECK_EQ(results[0].shape.dims[0], BATCH);
        CHECK_EQ(results[0].shape.dims[1], steps[i]);
        const int32_t ends[] = {4, 2, 1};
        for (int b = 0; b < BATCH; b++)
            CHECK_EQ(mr_tensor_int32s(&results[1])[b], ends[b] < steps[i] ? ends[b] : steps[i]);
        for (int k = 0; k < 3; k++) mr_tensor_deinit(&results[k]);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

TEST(sampling_probabilities_are_probabilities)
{
    const float wrong[] = {-0.1f, 1.5f, NAN};
    for (int i = 0; i < 3; i++) {
        mr_graph *g = mr_graph_new();
        mr_scheduled_output_training_helper(g, floats(g, MR_SHAPE(BATCH, TIME, UNITS)), ints(g, BATCH),
                                            mr_constant_float(g, wrong[i]));
        check_refused(g, ", but must be in [0, 1]");
    }
    mr_graph *g = mr_graph_new();
    mr_error error = {0};
    mr_output each = mr_constant_floats(g, MR_SHAPE(BATCH), (float[]){0, 1, 0.5f}, nullptr);
    mr_output x = floats(g, MR_SHAPE(BATCH, TIME, UNITS));
    CHECK(mr_scheduled_output_training_helper(g, x, ints(g, BATCH), each) != nullptr);
    CHECK_OK(mr_graph_status(g, &error));
    mr_scheduled_output_training_helper(g, floats(g, MR_SHAPE(2, TIME, UNITS)), ints(g, 2), each);
    check_refused(g, "sampling_probability is float[3], but must be float[] or float[batch]");
}

/* ---- beam_gather_tree ---- */

TEST(gather_tree_checks_its_arguments)
{
    static const char *const texts[] = {
        "step_ids is no output of the graph",
        "parent_ids is int32[3], but must be int32[time,batch,beam]",
        "lengths is int32[4,3,2], but must be int32[batch]",
        "step_ids is int32[4,3,2], but parent_ids int32[4,3,1]",
        "the batch size of step_ids is 3, but that of lengths is 4",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_output ids = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(TIME, BATCH, 2)), none = {0};
        mr_output few = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(TIME, BATCH, 1));
        mr_beam_gather_tree(g, i == 0 ? none : ids,
                            i == 1   ? ints(g, 3)
                            : i == 3 ? few
                                     : ids,
                            i == 2 ? ids : ints(g, i == 4 ? 4 : BATCH), 1);
        check_refused(g, texts[i]);
    }
}

static mr_status follow(mr_shape ids, mr_shape parents, int64_t lengths, int32_t end, mr_tensor *result,
                        mr_error *found)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_output first = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1, -1, -1));
    mr_output second = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1, -1, -1)), third = ints(g, -1);
    mr_output tree = mr_beam_gather_tree(g, first, second, third, end);
    mr_feed feeds[] = {
        {first, zeros(MR_INT32, ids)}, {second, zeros(MR_INT32, parents)}, {third, zeros(MR_INT32, MR_SHAPE(lengths))}};
    memset(feeds[1].value.data, 0, mr_tensor_size_bytes(&feeds[1].value));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    const mr_status status = mr_session_run(session, (mr_feeds){feeds, 3}, MR_OUTPUTS(tree), result, nullptr, 0, found);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&feeds[i].value);
    mr_session_free(session);
    mr_graph_free(g);
    return status;
}

TEST(gather_tree_checks_sizes_when_it_runs)
{
    mr_error error = {0};
    mr_tensor result = {0};
    CHECK_OK(follow(MR_SHAPE(TIME, BATCH, 2), MR_SHAPE(TIME, BATCH, 2), BATCH, -1, &result, &error));
    CHECK_EQ(mr_tensor_count(&result), TIME * BATCH * 2);
    for (int i = 0; i < TIME * BATCH * 2; i++) CHECK_EQ(mr_tensor_int32s(&result)[i], TIME);
    mr_tensor_deinit(&result);
    const mr_shape empty[] = {MR_SHAPE(TIME, BATCH, 0), MR_SHAPE(0, BATCH, 2), MR_SHAPE(TIME, 0, 2)};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(follow(empty[i], empty[i], empty[i].dims[1], 1, &result, &error));
        CHECK_EQ(mr_tensor_count(&result), 0);
        mr_tensor_deinit(&result);
    }
    CHECK_STATUS(follow(MR_SHAPE(TIME, BATCH, 2), MR_SHAPE(TIME, BATCH, 1), BATCH, 1, &result, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "beam_gather_tree: the shapes of step_ids and of parent_ids differ");
    CHECK_STATUS(follow(MR_SHAPE(TIME, BATCH, 2), MR_SHAPE(TIME, BATCH, 2), 2, 1, &result, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "beam_gather_tree: the batch sizes of step_ids and of lengths differ");
}

/* ---- Beam search without steps ---- */

static mr_status search_nothing(int64_t batch, int32_t steps, mr_tensor *ids, mr_error *found)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_output start = ints(g, batch), state = floats(g, MR_SHAPE(batch < 0 ? -1 : batch * WIDTH, UNITS));
    mr_variable words = mr_get_variable(g, "words", MR_SHAPE(IDS, FEATURES));
    mr_output_layer *layer = mr_output_layer_new(g, .units = IDS);
    mr_decoder *decoder = mr_beam_search_decoder(g, mr_gru_cell(g, UNITS), MR_VARIABLES(words), start, 1, &state, WIDTH,
                                                 .output_layer = layer);
    mr_decoded d = mr_dynamic_decode(g, decoder, nullptr, .maximum_iterations = steps);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_feed feeds[] = {{start, zeros(MR_INT32, MR_SHAPE(BATCH))},
                       {state, zeros(MR_FLOAT, MR_SHAPE(BATCH * WIDTH, UNITS))}};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    const mr_status status =
        mr_session_run(session, (mr_feeds){feeds, 2}, MR_OUTPUTS(d.predicted_ids), ids, nullptr, 0, found);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&feeds[i].value);
    mr_session_free(session);
    mr_graph_free(g);
    return status;
}

TEST(beam_search_of_no_steps_finds_nothing)
{
    mr_error error = {0};
    mr_tensor ids = {0};
    CHECK_OK(search_nothing(BATCH, 0, &ids, &error));
    CHECK_EQ(ids.shape.rank, 3);
    CHECK_EQ(ids.shape.dims[0] * 100 + ids.shape.dims[1] * 10 + ids.shape.dims[2], BATCH * 100 + WIDTH);
    mr_tensor_deinit(&ids);
    CHECK_OK(search_nothing(-1, 2, &ids, &error));
    CHECK_EQ(ids.shape.dims[1], 2);
    mr_tensor_deinit(&ids);
    CHECK_STATUS(search_nothing(-1, 0, &ids, &error), MR_UNIMPLEMENTED);
}

/* ---- Several attentions ---- */

TEST(several_attentions_are_checked)
{
    static const char *const texts[] = {
        "attention_wrapper: there are no attentions",
        "attention_wrapper: there is no attention",
        "attention_wrapper: there are 1 attention_layer_sizes for 2 attentions",
        "attention_wrapper: attention_layer_sizes[1] is 0, but must be 1 to 2147483647",
        "attention_layer_size has no effect on a list of attentions; attention_layer_sizes has",
        "attention_layer_sizes has no effect on one attention; attention_layer_size has",
        "attention_wrapper: there are more than 8 attentions",
        "attention_wrapper: the attentions have different dtypes",
        "attention_wrapper: the batch size of the memory is 2, but that of initial_cell_state 0 is 3",
        "the items of attention_layer_sizes are null",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_output memory = floats(g, MR_SHAPE(BATCH, TIME, FEATURES)), state = floats(g, MR_SHAPE(BATCH, UNITS));
        mr_output other = mr_placeholder(g, MR_DOUBLE, .shape = MR_SHAPE(BATCH, TIME, FEATURES));
        mr_attention *a = mr_bahdanau_attention(g, UNITS, memory), *b = mr_luong_attention(g, UNITS, memory);
        mr_attention *many[9] = {a, a, a, a, a, a, a, a, a};
        const mr_attentions nine = {many, 9};
        mr_rnn_cell *cell = mr_gru_cell(g, UNITS);
        if (i == 0) mr_multi_attention_wrapper(g, cell, (mr_attentions){0});
        if (i == 1) mr_multi_attention_wrapper(g, cell, MR_ATTENTIONS(a, nullptr));
        if (i == 2) mr_multi_attention_wrapper(g, cell, MR_ATTENTIONS(a, b), .attention_layer_sizes = MR_INTS(3));
        if (i == 3) mr_multi_attention_wrapper(g, cell, MR_ATTENTIONS(a, b), .attention_layer_sizes = MR_INTS(3, 0));
        if (i == 4) mr_multi_attention_wrapper(g, cell, MR_ATTENTIONS(a, b), .attention_layer_size = 3);
        if (i == 5) mr_attention_wrapper(g, cell, a, .attention_layer_sizes = MR_INTS(3));
        if (i == 6) mr_multi_attention_wrapper(g, cell, nine);
        if (i == 7) {
            mr_attention *wide = mr_luong_attention(g, UNITS, other);
            mr_multi_attention_wrapper(g, cell, MR_ATTENTIONS(a, wide));
        }
        if (i == 8) {
            mr_attention *few = mr_luong_attention(g, UNITS, floats(g, MR_SHAPE(2, TIME, FEATURES)));
            mr_multi_attention_wrapper(g, cell, MR_ATTENTIONS(a, few), .initial_cell_state = &state);
        }
        if (i == 9) mr_multi_attention_wrapper(g, cell, MR_ATTENTIONS(a, b), .attention_layer_sizes = {nullptr, 2});
        check_refused(g, texts[i]);
    }
}

TEST(several_attentions_have_states_and_variables_of_their_own)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output memory = floats(g, MR_SHAPE(BATCH, TIME, FEATURES)), other = floats(g, MR_SHAPE(BATCH, 9, 2)), states[6];
    mr_attention *a = mr_bahdanau_attention(g, 3, memory), *b = mr_bahdanau_attention(g, 4, other);
    mr_rnn_cell *cell = mr_multi_attention_wrapper(g, mr_lstm_cell(g, UNITS), MR_ATTENTIONS(a, b),
                                                   .attention_layer_sizes = MR_INTS(5, 8));
    const int64_t sizes[] = {UNITS, UNITS, 13, 0, TIME, 9};
    CHECK_EQ(mr_rnn_cell_state_count(cell), 6);
    CHECK_EQ(mr_rnn_cell_output_size(cell), 13);
    for (int i = 0; i < 6; i++) CHECK_EQ(mr_rnn_cell_state_size(cell, i), sizes[i]);
    mr_rnn_cell_zero_state(g, cell, mr_constant_int32(g, BATCH), MR_FLOAT, states);
    mr_decoder *decoder = mr_basic_decoder(g, cell, mr_training_helper(g, memory, ints(g, BATCH)), states);
    mr_decoded d = mr_dynamic_decode(g, decoder, states, .alignment_history = true);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_output_shape(d.alignment_histories[0]).dims[2], TIME);
    CHECK_EQ(mr_output_shape(d.alignment_histories[1]).dims[2], 9);
    CHECK(d.alignment_histories[2].node == nullptr && d.alignment_history.node == d.alignment_histories[0].node);
    static const char *const names[] = {
        "memory_layer/kernel",
        "memory_layer_1/kernel",
        "decoder/attention_wrapper/bahdanau_attention/query_layer/kernel",
        "decoder/attention_wrapper/attention_layer/kernel",
        "decoder/attention_wrapper/bahdanau_attention_1/attention_v",
        "decoder/attention_wrapper/attention_layer_1/kernel",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) CHECK(mr_graph_find(g, names[i]) != nullptr);
    mr_graph_free(g);
}

/* ---- Embeddings ---- */

TEST(embeddings_of_helpers_are_checked)
{
    static const char *const texts[] = {
        "greedy_embedding_helper: the embedding must be float, double or half",
        "greedy_embedding_helper: the parts of the embedding have different dtypes or features",
        "greedy_embedding_helper: the embedding must be [ids, features], features known",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_variable parts[] = {mr_get_variable(g, "a", MR_SHAPE(IDS, FEATURES)),
                               mr_get_variable(g, "b", MR_SHAPE(IDS, 2)),
                               mr_get_variable(g, "c", MR_SHAPE(IDS, FEATURES), .dtype = MR_INT32),
                               mr_get_variable(g, "d", MR_SHAPE(IDS))};
        const mr_variables lists[] = {{parts + 2, 1}, {parts, 2}, {parts + 3, 1}};
        mr_greedy_embedding_helper(g, lists[i], ints(g, BATCH), 1);
        check_refused(g, texts[i]);
    }
}
