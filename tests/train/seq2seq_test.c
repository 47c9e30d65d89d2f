/* Attention, decoders and beam search: what is refused, and in which words; and random cases against plain C. */
#include "base/random.h"
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

TEST(decoders_refuse_what_does_not_fit)
{
    static const char *const texts[] = {
        "a helper needs an input of 3 dimensions",
        "a helper needs the lengths of its inputs",
        "lengths is float[3,4,5], but must be int32[batch] or int64[batch]",
        "greedy_embedding_helper: the embedding has no variable",
        "greedy_embedding_helper: start_tokens must be int32[batch]",
        "greedy_embedding_helper: there are no start_tokens",
        "sample_embedding_helper: softmax_temperature is 0, but must be above 0",
        "sampling_probability is int32[3], but must be a float scalar",
        "the embedding has 5 features, but the inputs 2",
        "basic_decoder: there is no helper",
        "basic_decoder: there is no cell",
        "basic_decoder: there is no initial_state",
        "length_penalty_weight has no effect without beam search",
        "dynamic_decode: there is no decoder",
        "dynamic_decode: maximum_iterations must be at least 0",
        "dynamic_decode: maximum_iterations and maximum_iterations_output are both set",
        "decoder: alignment_history needs a cell with an attention_wrapper",
        "decoder: state 0 has the shape [2,6], but must have [3,6]",
        "units is required",
        "activity_regularizer has no effect",
        "scheduled_output_training_helper: the output has 6 features, but the input 5",
        "state 0 of the cell gru_cell",
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

TEST(beam_search_refuses_what_does_not_fit)
{
    static const char *const texts[] = {
        "beam_search_decoder: beam_width is 0, but must be at least 1",
        "beam_search_decoder: length_penalty_weight is nan, but must be finite",
        "beam_search_decoder: there are no start_tokens",
        "dynamic_decode: impute_finished has no effect on beam search",
        "dynamic_decode: alignment_history has no effect on beam search",
        "decoder: state 0 has the shape [3,6], but must have [6,6]",
        "tile_batch: multiplier is 0, but must be at least 1",
        "tile_batch: the value must have 1 to",
        "beam_gather_tree: step_ids and parent_ids must be int32[time,batch,beam]",
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

/* ---- Values ---- */

static void run(mr_graph *g, const mr_output *fetches, int32_t count, mr_tensor *results)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){fetches, count}, results, nullptr, 0, &error));
    mr_session_free(session);
}

static void deinit(mr_tensor *tensors, int32_t count)
{
    for (int32_t i = 0; i < count; i++) mr_tensor_deinit(&tensors[i]);
}

static float number(mr_random *random)
{
    return (float)mr_random_below(random, 2001) / 1000 - 1;
}

/* One step of a cell that returns its input: the alignments are those of the keys that fit it. */
static mr_output same(void *context, mr_graph *g, mr_output input, const mr_output *states, mr_output *next)
{
    const int64_t *size = context;
    next[0] = mr_identity(g, states[0]);
    return mr_slice(g, input, mr_constant_ints(g, MR_INTS(0, 0)), mr_constant_ints(g, MR_INTS(-1, *size)));
}

/* Luong attention whose memory layer is the identity. */
TEST(attention_is_the_mean_of_the_memory_by_fit)
{
    mr_random random = mr_random_at(test_seed(), 1, 0, 0);
    for (int round = 0; round < 20; round++) {
        mr_graph *g = mr_graph_new();
        const int64_t batch = 1 + mr_random_below(&random, 3), time = 1 + mr_random_below(&random, 6);
        int64_t depth = 1 + mr_random_below(&random, 4);
        float memory[3 * 6 * 4] = {0}, query[3 * 4] = {0};
        int32_t ends[3];
        for (int64_t i = 0; i < batch * time * depth; i++) memory[i] = number(&random);
        for (int64_t i = 0; i < batch * depth; i++) query[i] = number(&random);
        for (int64_t i = 0; i < batch; i++) ends[i] = (int32_t)(1 + mr_random_below(&random, (uint64_t)time));
        const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                                 .state_count = 1,
                                                 .state_sizes = (int64_t[]){1},
                                                 .output_size = depth,
                                                 .default_name = "same",
                                                 .call = same};
        mr_graph_push_variable_scope(g, "test", .initializer = {.kind = MR_INIT_IDENTITY});
        mr_attention *attention =
            mr_luong_attention(g, (int32_t)depth, mr_constant_floats(g, MR_SHAPE(batch, time, depth), memory, nullptr),
                               .memory_sequence_length = mr_constant_int32s(g, MR_SHAPE(batch), ends, nullptr));
        mr_rnn_cell *cell = mr_attention_wrapper(g, mr_rnn_cell_new(g, &functions, &depth), attention);
        CHECK(mr_rnn_cell_state_count(cell) == 4 && mr_rnn_cell_state_size(cell, 1) == depth &&
              mr_rnn_cell_state_size(cell, 2) == 0 && mr_rnn_cell_state_size(cell, 3) == time);
        mr_output states[4];
        mr_rnn_cell_zero_state(g, cell, mr_constant_int32(g, (int32_t)batch), MR_FLOAT, states);
        mr_output output =
            mr_rnn_cell_call(g, cell, mr_constant_floats(g, MR_SHAPE(batch, depth), query, nullptr), states, states);
        mr_graph_pop_variable_scope(g);
        mr_tensor results[3] = {0};
        run(g, (mr_output[]){output, states[2], states[3]}, 3, results);
        CHECK_EQ(*(const int32_t *)results[1].data, 1);
        for (int64_t b = 0; b < batch; b++) {
            double sum = 0, mean[4] = {0};
            for (int64_t t = 0; t < ends[b]; t++) {
                double fit = 0;
                for (int64_t d = 0; d < depth; d++)
                    fit += (double)query[b * depth + d] * (double)memory[(b * time + t) * depth + d];
                sum += exp(fit);
                for (int64_t d = 0; d < depth; d++) mean[d] += exp(fit) * (double)memory[(b * time + t) * depth + d];
            }
            for (int64_t d = 0; d < depth; d++)
                CHECK_NEAR((double)mr_tensor_floats(&results[0])[b * depth + d], mean[d] / sum, 1e-5);
            for (int64_t t = ends[b]; t < time; t++)
                CHECK_NEAR((double)mr_tensor_floats(&results[2])[b * time + t], 0, 0);
        }
        deinit(results, 3);
        mr_graph_free(g);
    }
}

/* Beams in plain C: those of one example, as arrays of ids. */
typedef struct beam {
    double log_prob, score;
    int32_t ids[8], length, last;
    bool ended;
} beam;

static int by_score(const void *a, const void *b)
{
    const beam *x = a, *y = b;
    return x->score < y->score ? 1 : x->score > y->score ? -1 : 0;
}

/* The next word depends on the last one and on the step, so that no two sequences are equally good: the logits are
 * table[last][next] (1 + step / 10). Returns the number of steps. */
static int search(const float *logits, int ids, int width, double penalty, int start, int end, int steps, beam *beams)
{
    beam all[6 * 6];
    int count = 1, step = 0;
    beams[0] = (beam){.last = start};
    for (; step < steps; step++) {
        int found = 0, live = 0;
        for (int i = 0; i < count; i++) live += !beams[i].ended;
        if (live == 0) break;
        for (int i = 0; i < count; i++) {
            const double scale = 1 + 0.1 * step;
            double sum = 0;
            for (int k = 0; k < ids; k++) sum += exp(scale * (double)logits[beams[i].last * ids + k]);
            for (int k = 0; k < ids; k++) {
                if (beams[i].ended && k != end) continue;
                beam next = beams[i];
                if (!next.ended) next.log_prob += scale * (double)logits[next.last * ids + k] - log(sum);
                const int scored = next.length + (!next.ended && k != end);
                next.score = next.log_prob / pow((5.0 + scored) / 6, penalty);
                next.length += !next.ended;
                next.ended = next.ended || k == end;
                next.ids[step] = next.last = k;
                all[found++] = next;
            }
        }
        qsort(all, (size_t)found, sizeof *all, by_score);
        count = found < width ? found : width;
        memcpy(beams, all, (size_t)count * sizeof *beams);
    }
    return step;
}

static mr_output logits_of(void *context, mr_graph *g, mr_output input, const mr_output *states, mr_output *next)
{
    (void)context;
    next[0] = mr_add_v2(g, states[0], mr_constant_float(g, 0.1f));
    return mr_mul(g, input, mr_add_v2(g, states[0], mr_constant_float(g, 1)));
}

TEST(beam_search_finds_what_plain_search_finds)
{
    mr_random random = mr_random_at(test_seed(), 2, 0, 0);
    for (int round = 0; round < 40; round++) {
        mr_graph *g = mr_graph_new();
        mr_error error = {0};
        const int ids = 2 + (int)mr_random_below(&random, 5), width = 1 + (int)mr_random_below(&random, 6);
        const int end = (int)mr_random_below(&random, (uint64_t)ids), start = (end + 1) % ids;
        const float penalty = (float)mr_random_below(&random, 3);
        mr_tensor logits = {0}, results[5] = {0};
        CHECK_OK(mr_tensor_init(&logits, MR_FLOAT, MR_SHAPE(ids, ids), &error));
        for (int i = 0; i < ids * ids; i++) mr_tensor_floats(&logits)[i] = 2 * number(&random);
        mr_variable words = mr_get_variable(g, "table", MR_SHAPE(ids, ids),
                                            .initializer = {.kind = MR_INIT_CONSTANT, .values = &logits});
        const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                                 .state_count = 1,
                                                 .state_sizes = (int64_t[]){1},
                                                 .output_size = ids,
                                                 .default_name = "table_cell",
                                                 .call = logits_of};
        mr_rnn_cell *cell = mr_rnn_cell_new(g, &functions, nullptr);
        mr_output state = mr_constant_floats(g, MR_SHAPE(width), (float[6]){0}, nullptr);
        state = mr_expand_dims(g, state, mr_constant_int32(g, 1));
        mr_output first = mr_constant_int32s(g, MR_SHAPE(1), (int32_t[]){start}, nullptr);
        mr_decoder *decoder = mr_beam_search_decoder(g, cell, MR_VARIABLES(words), first, end, &state, width,
                                                     .length_penalty_weight = penalty);
        mr_decoded d = mr_dynamic_decode(g, decoder, nullptr, .maximum_iterations = 6);
        run(g, (mr_output[]){d.predicted_ids, d.log_probs, d.scores, d.sequence_lengths}, 4, results);
        beam beams[6] = {0};
        const int steps = search(mr_tensor_floats(&logits), ids, width, (double)penalty, start, end, 6, beams);
        CHECK(results[0].shape.dims[1] == steps && results[0].shape.dims[2] == width);
        for (int i = 0; i < width && beams[i].length > 0; i++) {
            CHECK_NEAR((double)mr_tensor_floats(&results[1])[i], beams[i].log_prob, 1e-4);
            CHECK_NEAR((double)mr_tensor_floats(&results[2])[(steps - 1) * width + i], beams[i].score, 1e-4);
            CHECK_EQ(mr_tensor_int32s(&results[3])[i], beams[i].length);
            for (int t = 0; t < beams[i].length; t++)
                CHECK_EQ(mr_tensor_int32s(&results[0])[t * width + i], beams[i].ids[t]);
            for (int t = beams[i].length; t < steps; t++) CHECK_EQ(mr_tensor_int32s(&results[0])[t * width + i], end);
        }
        deinit(results, 4);
        mr_tensor_deinit(&logits);
        mr_graph_free(g);
    }
}

TEST(beams_are_followed_from_their_ends)
{
    mr_random random = mr_random_at(test_seed(), 4, 0, 0);
    for (int round = 0; round < 20; round++) {
        mr_graph *g = mr_graph_new();
        const int time = (int)mr_random_below(&random, 6), batch = 1 + (int)mr_random_below(&random, 3);
        const int width = 1 + (int)mr_random_below(&random, 4), end = 2, all = time * batch * width;
        int32_t ids[5 * 3 * 4] = {0}, parents[5 * 3 * 4] = {0}, longest[3] = {0}, expected[5 * 3 * 4] = {0};
        for (int i = 0; i < all; i++) {
            ids[i] = (int32_t)mr_random_below(&random, 6);
            parents[i] = (int32_t)mr_random_below(&random, (uint64_t)width);
            expected[i] = end;
        }
        for (int b = 0; b < batch; b++) {
            longest[b] = (int32_t)mr_random_below(&random, (uint64_t)time + 3); /* may be past the steps */
            for (int beam = 0; beam < width; beam++) {
                bool is_ended = false;
                for (int t = (longest[b] < time ? longest[b] : time) - 1, at = beam; t >= 0; t--) {
                    expected[(t * batch + b) * width + beam] = ids[(t * batch + b) * width + at];
                    at = parents[(t * batch + b) * width + at];
                }
                for (int t = 0; t < time; t++) {
                    int32_t *id = &expected[(t * batch + b) * width + beam];
                    if (is_ended) *id = end;
                    is_ended = is_ended || *id == end;
                }
            }
        }
        const mr_shape shape = MR_SHAPE(time, batch, width);
        mr_output tree = mr_beam_gather_tree(g, mr_constant_int32s(g, shape, ids, nullptr),
                                             mr_constant_int32s(g, shape, parents, nullptr),
                                             mr_constant_int32s(g, MR_SHAPE(batch), longest, nullptr), end);
        mr_tensor result = {0};
        run(g, &tree, 1, &result);
        CHECK_EQ(mr_tensor_count(&result), all);
        for (int i = 0; i < all; i++) CHECK_EQ(mr_tensor_int32s(&result)[i], expected[i]);
        mr_tensor_deinit(&result);
        mr_graph_free(g);
    }
}

/* ---- Networks ---- */

/* A decoder with a training helper is a network over time, as is raw_rnn with a function that reads the inputs. */
typedef struct reader {
    mr_output inputs, lengths; /* [time, batch, features] */
} reader;

static void read_inputs(void *context, mr_graph *g, mr_raw_rnn_step *step)
{
    const reader *r = context;
    mr_output last = mr_constant_int32(g, TIME - 1);
    if (step->output.node == nullptr) {
        mr_output zero = mr_constant_floats(g, MR_SHAPE(BATCH, UNITS), (float[BATCH * UNITS]){0}, nullptr);
        step->states[0] = step->states[1] = zero;
        step->loop_state[0] = mr_constant_float(g, 1);
    } else {
        step->loop_state[0] = mr_add_v2(g, step->loop_state[0], step->loop_state[0]);
    }
    step->finished = mr_greater_equal(g, step->time, r->lengths);
    step->input = mr_gather_v2(g, r->inputs, mr_minimum(g, step->time, last), mr_constant_int32(g, 0));
}

TEST(decoders_and_raw_networks_are_dynamic_networks)
{
    mr_random random = mr_random_at(test_seed(), 3, 0, 0);
    mr_graph *g = mr_graph_new();
    float values[BATCH * TIME * FEATURES];
    for (int i = 0; i < BATCH * TIME * FEATURES; i++) values[i] = number(&random);
    mr_output x = mr_constant_floats(g, MR_SHAPE(BATCH, TIME, FEATURES), values, nullptr), ends = lengths(g);
    mr_output plain[2], decoded[2], raw[2], doubled, states[2];
    mr_rnn_cell *cell = mr_lstm_cell(g, UNITS);
    mr_output outputs = mr_dynamic_rnn(g, cell, x, plain, .sequence_length = ends);
    mr_rnn_cell_zero_state(g, cell, mr_constant_int32(g, BATCH), MR_FLOAT, states);
    mr_decoder *decoder = mr_basic_decoder(g, cell, mr_training_helper(g, x, ends), states);
    mr_decoded d = mr_dynamic_decode(g, decoder, decoded, .impute_finished = true);
    reader r = {mr_transpose(g, x, mr_constant_ints(g, MR_INTS(1, 0, 2))), ends};
    mr_output emitted = mr_raw_rnn(g, cell, read_inputs, &r, raw, .loop_state_count = 1, .loop_state = &doubled);
    emitted = mr_transpose(g, emitted, mr_constant_ints(g, MR_INTS(1, 0, 2)));
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 2);
    mr_output of_raw, of_plain, of_decoded, kernel = mr_graph_variable(g, MR_GLOBAL_VARIABLES, 0).value;
    const mr_output *from[] = {&outputs, &d.rnn_output, &emitted};
    mr_output *gradients[] = {&of_plain, &of_decoded, &of_raw};
    for (int i = 0; i < 3; i++) {
        mr_output loss = mr_sum(g, mr_square(g, *from[i]), mr_constant_ints(g, MR_INTS(0, 1, 2)));
        mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(kernel), nullptr, gradients[i]);
    }
    mr_tensor results[11] = {0};
    run(g,
        (mr_output[]){outputs, d.rnn_output, emitted, plain[0], decoded[0], raw[0], of_plain, of_decoded, of_raw,
                      d.sequence_lengths, doubled},
        11, results);
    for (int i = 0; i < 9; i += 3)
        for (int k = 1; k < 3; k++) {
            CHECK_EQ(mr_tensor_count(&results[i]), mr_tensor_count(&results[i + k]));
            for (int64_t j = 0; j < mr_tensor_count(&results[i]); j++)
                CHECK_NEAR((double)mr_tensor_floats(&results[i + k])[j], (double)mr_tensor_floats(&results[i])[j],
                           1e-5);
        }
    for (int b = 0; b < BATCH; b++) CHECK_EQ(mr_tensor_int32s(&results[9])[b], ((int[]){2, 4, 1})[b]);
    CHECK_NEAR((double)mr_tensor_floats(&results[10])[0], 16, 0); /* doubled in each of 4 steps */
    deinit(results, 11);
    mr_graph_free(g);
}
