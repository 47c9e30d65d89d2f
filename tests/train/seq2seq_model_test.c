/* Attention, beam search, the loss of sequences and raw networks: random cases against plain C and dynamic_rnn. */
#include "base/random.h"
#include "tests/test.h"
#include <millrace/millrace.h>

enum { BATCH = 3, TIME = 4, FEATURES = 5, UNITS = 6 };

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

TEST(a_parent_that_is_no_beam_is_an_error)
{
    mr_error error = {0};
    for (int32_t parent = -1; parent <= 2; parent++) {
        mr_graph *g = mr_graph_new();
        mr_session *session = nullptr;
        mr_tensor result = {0};
        const int32_t parents[] = {0, 0, 0, 0, parent, 0, 0, 0};
        mr_output ids = mr_constant_int32s(g, MR_SHAPE(2, 2, 2), (int32_t[8]){0}, nullptr);
        mr_output tree = mr_beam_gather_tree(g, ids, mr_constant_int32s(g, MR_SHAPE(2, 2, 2), parents, nullptr),
                                             mr_constant_int32s(g, MR_SHAPE(2), (int32_t[]){2, 2}, nullptr), 1);
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_STATUS(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(tree), &result, nullptr, 0, &error),
                     parent == -1 || parent == 2 ? MR_INVALID_ARGUMENT : MR_OK);
        mr_tensor_deinit(&result);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

/* With 3 ids that are equally probable, each loss is ln 3 times its weight. */
TEST(sequence_loss_is_reduced_as_it_is_asked)
{
    mr_graph *g = mr_graph_new();
    const float no_weight[] = {2, 1, 0, 0, 1, 0}, logits[2 * 3 * 3] = {0};
    mr_output x = mr_constant_floats(g, MR_SHAPE(2, 3, 3), logits, nullptr);
    mr_output ids = mr_constant_int32s(g, MR_SHAPE(2, 3), (int32_t[]){0, 1, 2, 0, 1, 2}, nullptr);
    mr_output weights = mr_constant_floats(g, MR_SHAPE(2, 3), no_weight, nullptr);
    const mr_output losses[] = {
        mr_sequence_loss(g, x, ids, weights),
        mr_sequence_loss(g, x, ids, weights, .average_across_timesteps = false, .average_across_batch = false,
                         .sum_over_timesteps = true, .sum_over_batch = true),
        mr_sequence_loss(g, x, ids, weights, .average_across_batch = false),
        mr_sequence_loss(g, x, ids, weights, .average_across_timesteps = false, .average_across_batch = false,
                         .sum_over_batch = true),
        mr_sequence_loss(g, x, ids, weights, .average_across_timesteps = false, .average_across_batch = false),
    };
    static const float expected[5][6] = {{1}, {4.0f / 3}, {1, 1}, {2, 1, 0}, {2, 1, 0, 0, 1, 0}};
    static const int counts[] = {1, 1, 2, 3, 6};
    mr_tensor results[5] = {0};
    run(g, losses, 5, results);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(mr_tensor_count(&results[i]), counts[i]);
        for (int k = 0; k < counts[i]; k++)
            CHECK_NEAR((double)mr_tensor_floats(&results[i])[k], log(3) * (double)expected[i][k], 1e-5);
    }
    deinit(results, 5);
    mr_graph_free(g);
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

/* The same as a helper, whose sample ids are the steps. */
static void read_at(const reader *r, mr_graph *g, mr_helper_step *step, mr_output time)
{
    step->finished = mr_greater_equal(g, time, r->lengths);
    step->inputs =
        mr_gather_v2(g, r->inputs, mr_minimum(g, time, mr_constant_int32(g, TIME - 1)), mr_constant_int32(g, 0));
}

static void read_first(void *context, mr_graph *g, mr_helper_step *step)
{
    CHECK(step->outputs.node == nullptr && step->states == nullptr);
    read_at(context, g, step, step->time);
}

static mr_output sample_time(void *context, mr_graph *g, mr_helper_step *step)
{
    (void)context;
    return mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH)), step->time);
}

static void read_next(void *context, mr_graph *g, mr_helper_step *step)
{
    CHECK(step->outputs.node != nullptr && step->states != nullptr && step->sample_ids.node != nullptr);
    read_at(context, g, step, mr_add_v2(g, step->time, mr_constant_int32(g, 1)));
}

TEST(decoders_and_raw_networks_are_dynamic_networks)
{
    mr_random random = mr_random_at(test_seed(), 3, 0, 0);
    mr_graph *g = mr_graph_new();
    float values[BATCH * TIME * FEATURES];
    for (int i = 0; i < BATCH * TIME * FEATURES; i++) values[i] = number(&random);
    mr_output x = mr_constant_floats(g, MR_SHAPE(BATCH, TIME, FEATURES), values, nullptr);
    static const int32_t ends[BATCH] = {2, 4, 1};
    mr_output lengths = mr_constant_int32s(g, MR_SHAPE(BATCH), ends, nullptr);
    mr_output plain[2], decoded[2], custom[2], raw[2], doubled, states[2];
    mr_rnn_cell *cell = mr_lstm_cell(g, UNITS);
    mr_output outputs = mr_dynamic_rnn(g, cell, x, plain, .sequence_length = lengths);
    mr_rnn_cell_zero_state(g, cell, mr_constant_int32(g, BATCH), MR_FLOAT, states);
    mr_decoder *decoder = mr_basic_decoder(g, cell, mr_training_helper(g, x, lengths), states);
    mr_decoded d = mr_dynamic_decode(g, decoder, decoded, .impute_finished = true);
    reader r = {mr_transpose(g, x, mr_constant_ints(g, MR_INTS(1, 0, 2))), lengths};
    const mr_helper_functions functions = {.size = sizeof functions,
                                           .features = FEATURES,
                                           .dtype = MR_FLOAT,
                                           .initialize = read_first,
                                           .sample = sample_time,
                                           .next_inputs = read_next};
    decoder = mr_basic_decoder(g, cell, mr_custom_helper(g, &functions, &r), states);
    mr_decoded own = mr_dynamic_decode(g, decoder, custom, .impute_finished = true);
    mr_output emitted = mr_raw_rnn(g, cell, read_inputs, &r, raw, .loop_state_count = 1, .loop_state = &doubled);
    emitted = mr_transpose(g, emitted, mr_constant_ints(g, MR_INTS(1, 0, 2)));
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 2);
    mr_output kernel = mr_graph_variable(g, MR_GLOBAL_VARIABLES, 0).value, fetches[19], gradients[2];
    const mr_output from[] = {outputs, d.rnn_output, own.rnn_output, emitted};
    const mr_output ends_at[] = {plain[0], decoded[0], custom[0], raw[0]};
    for (int i = 0; i < 4; i++) {
        mr_output loss = mr_sum(g, mr_square(g, from[i]), mr_constant_ints(g, MR_INTS(0, 1, 2)));
        mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(kernel, x), nullptr, gradients);
        fetches[i] = from[i];
        fetches[4 + i] = ends_at[i];
        fetches[8 + i] = gradients[0];
        fetches[12 + i] = gradients[1];
    }
    for (int32_t i = 0; i < mr_graph_node_count(g); i++) { /* handles are the same in all iterations: not kept */
        const mr_node *node = mr_graph_node(g, i);
        if (strcmp(mr_node_op(node), "StackPushV2") == 0) CHECK(mr_output_dtype(mr_node_input(node, 1)) != MR_RESOURCE);
    }
    mr_tensor results[19] = {0};
    fetches[16] = d.sequence_lengths;
    fetches[17] = doubled;
    fetches[18] = own.sample_id;
    run(g, fetches, 19, results);
    for (int i = 0; i < 16; i++) {
        const mr_tensor *expected = &results[i - i % 4];
        CHECK_EQ(mr_tensor_count(&results[i]), mr_tensor_count(expected));
        for (int64_t k = 0; k < mr_tensor_count(expected); k++)
            CHECK_NEAR((double)((const float *)results[i].data)[k], (double)((const float *)expected->data)[k], 1e-5);
    }
    for (int b = 0; b < BATCH; b++) {
        CHECK_EQ(mr_tensor_int32s(&results[16])[b], ends[b]);
        for (int t = 0; t < TIME; t++) CHECK_EQ(mr_tensor_int32s(&results[18])[b * TIME + t], t < ends[b] ? t : 0);
    }
    CHECK_NEAR((double)mr_tensor_floats(&results[17])[0], 16, 0); /* doubled in each of 4 steps */
    deinit(results, 19);
    mr_graph_free(g);
}

/* An attending cell, alone, in wrappers and in a stack. Its sizes are known when it is built, or when it runs. */
static void decode_sizes(int kind, bool is_known, mr_tensor *results)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_set_seed(g, 5);
    const mr_shape known = MR_SHAPE(BATCH, TIME, FEATURES), unknown = MR_SHAPE(-1, -1, FEATURES);
    mr_output x = mr_placeholder(g, MR_DOUBLE, .shape = is_known ? known : unknown);
    mr_output ends = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(is_known ? BATCH : -1)), states[8];
    mr_attention *attention = mr_bahdanau_attention(g, UNITS, x, .memory_sequence_length = ends);
    mr_rnn_cell *cell = mr_attention_wrapper(g, mr_lstm_cell(g, 3), attention, .attention_layer_size = FEATURES);
    mr_rnn_cell *cells[] = {cell, mr_gru_cell(g, 2)};
    if (kind == 1) cell = mr_multi_rnn_cell(g, (mr_rnn_cells){cells, 2});
    if (kind == 2) cell = mr_residual_wrapper(g, mr_device_wrapper(g, cell, "/cpu:0"));
    if (kind == 3) cell = mr_dropout_wrapper(g, cell, .state_keep_prob = 0.5f, .input_keep_prob = 0.5f, .seed = 2);
    mr_output batch =
        mr_squeeze(g, mr_slice(g, mr_shape_of(g, x), mr_constant_ints(g, MR_INTS(0)), mr_constant_ints(g, MR_INTS(1))));
    mr_rnn_cell_zero_state(g, cell, batch, MR_DOUBLE, states);
    mr_decoder *decoder = mr_basic_decoder(g, cell, mr_training_helper(g, x, ends), states);
    mr_decoded d = mr_dynamic_decode(g, decoder, states, .alignment_history = true);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_session *session = nullptr;
    mr_tensor values = {0}, lengths = {0};
    CHECK_OK(mr_tensor_init(&values, MR_DOUBLE, known, &error));
    CHECK_OK(mr_tensor_init_copy(&lengths, MR_INT64, MR_SHAPE(BATCH), (int64_t[]){2, 4, 1}, &error));
    for (int i = 0; i < BATCH * TIME * FEATURES; i++) ((double *)values.data)[i] = i % 7 / 3.0 - 1;
    const mr_feed feeds[] = {{x, values}, {ends, lengths}};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, (mr_feeds){feeds, 2}, MR_OUTPUTS(d.rnn_output, d.alignment_history, states[3]),
                            results, nullptr, 0, &error));
    mr_tensor_deinit(&values);
    mr_tensor_deinit(&lengths);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(decoders_of_sizes_that_are_known_or_not_are_equal)
{
    for (int kind = 0; kind < 4; kind++) {
        mr_tensor known[3] = {0}, unknown[3] = {0};
        decode_sizes(kind, true, known);
        decode_sizes(kind, false, unknown);
        CHECK_EQ(mr_tensor_count(&known[0]), BATCH * TIME * (kind == 1 ? 2 : FEATURES));
        CHECK_EQ(*(const int32_t *)known[2].data, TIME);
        CHECK(known[1].shape.rank == 3 && known[1].shape.dims[0] == TIME && known[1].shape.dims[1] == BATCH);
        for (int i = 0; i < 2 && kind < 3; i++) /* dropout draws by the number of the node */
            for (int64_t k = 0; k < mr_tensor_count(&known[i]); k++)
                CHECK_NEAR(((const double *)known[i].data)[k], ((const double *)unknown[i].data)[k], 1e-9);
        for (int64_t k = 0; k < TIME * BATCH; k++) { /* the alignments of a step sum to 1 */
            double sum = 0;
            for (int t = 0; t < TIME; t++) sum += ((const double *)known[1].data)[k * TIME + t];
            CHECK_NEAR(sum, 1, 1e-9);
        }
        deinit(known, 3);
        deinit(unknown, 3);
    }
}
