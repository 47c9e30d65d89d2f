/* The cross entropy of sequences and connectionist temporal classification against scalar models, and mistakes with
 * their messages. The comparison with TensorFlow is tests/oracle/sampled_losses_oracle.py. */
#include "base/random.h"
#include "tests/test.h"

#include <millrace/millrace.h>

static mr_output constant(mr_graph *g, mr_shape shape, const double *values)
{
    float items[512];
    for (int64_t i = 0; i < mr_shape_count(shape); i++) items[i] = (float)values[i];
    return mr_constant_floats(g, shape, items, nullptr);
}

static double number(mr_random *random, double min, double max)
{
    const double value = min + (max - min) * (double)mr_random_below(random, 1 << 20) / (1 << 20);
    return (double)(float)value;
}

static int32_t below(mr_random *random, int32_t limit)
{
    return (int32_t)mr_random_below(random, (uint64_t)limit);
}

/* -log softmax(row)[class] */
static double cross_entropy(const double *row, int32_t classes, int32_t class)
{
    double sum = 0;
    for (int32_t i = 0; i < classes; i++) sum += exp(row[i]);
    return log(sum) - row[class];
}

static void run(mr_graph *g, const mr_output *fetches, int32_t count, mr_tensor *results)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS_OF(fetches, count), results, nullptr, 0, &error));
    mr_session_free(session);
}

/* ---- Sequences ---- */

enum { BATCH_MAX = 4, TIME_MAX = 5, CLASSES_MAX = 4 };

typedef struct sequences {
    bool averages, over_time, over_batch;
    int32_t batch, time, classes;
    double logits[BATCH_MAX * TIME_MAX * CLASSES_MAX], weights[BATCH_MAX * TIME_MAX];
    int32_t targets[BATCH_MAX * TIME_MAX];
} sequences;

static void draw_sequences(sequences *s, mr_random *random)
{
    *s = (sequences){.averages = below(random, 2) != 0,
                     .over_time = below(random, 3) != 0,
                     .over_batch = below(random, 3) != 0,
                     .batch = below(random, BATCH_MAX + 1),
                     .time = below(random, TIME_MAX + 1),
                     .classes = 1 + below(random, CLASSES_MAX)};
    const int32_t steps = s->batch * s->time;
    for (int32_t i = 0; i < steps; i++) {
        s->weights[i] = below(random, 3) == 0 ? 0 : number(random, 0.1, 2);
        s->targets[i] = below(random, s->classes);
    }
    for (int32_t i = 0; i < steps * s->classes; i++) s->logits[i] = number(random, -3, 3);
}

/* The loss at one position of the result, whose reduced dimensions are 0. */
static double expected_loss(const sequences *s, int32_t row, int32_t step)
{
    double sum = 0, total = 0;
    for (int32_t b = 0; b < s->batch; b++)
        for (int32_t t = 0; t < s->time; t++) {
            if ((!s->over_batch && b != row) || (!s->over_time && t != step)) continue;
            const int32_t at = b * s->time + t;
            sum += s->weights[at] * cross_entropy(s->logits + at * s->classes, s->classes, s->targets[at]);
            total += s->averages ? s->weights[at] : s->weights[at] != 0;
        }
    if (!s->over_time && !s->over_batch) return sum;
    return total != 0 ? sum / total : 0;
}

static void check_sequences(const sequences *s)
{
    mr_graph *g = mr_graph_new();
    const mr_shape steps = MR_SHAPE(s->batch, s->time);
    mr_output logits = constant(g, MR_SHAPE(s->batch, s->time, s->classes), s->logits);
    mr_output targets = mr_constant_int32s(g, steps, s->targets, nullptr), weights = constant(g, steps, s->weights);
    mr_output loss = mr_sequence_loss(
        g, logits, targets, weights, .average_across_timesteps = s->averages && s->over_time,
        .average_across_batch = s->averages && s->over_batch, .sum_over_timesteps = !s->averages && s->over_time,
        .sum_over_batch = !s->averages && s->over_batch);
    mr_tensor result = {0};
    run(g, &loss, 1, &result);
    const int32_t rows = s->over_batch ? 1 : s->batch, columns = s->over_time ? 1 : s->time;
    CHECK_EQ(mr_tensor_count(&result), rows * columns);
    CHECK_EQ(result.shape.rank, !s->over_batch + !s->over_time);
    for (int32_t i = 0; i < rows * columns; i++)
        CHECK_NEAR(mr_tensor_floats(&result)[i], expected_loss(s, i / columns, i % columns), 1e-5);
    mr_tensor_deinit(&result);
    mr_graph_free(g);
}

TEST(sequence_loss_matches_a_scalar_model)
{
    for (uint64_t i = 0; i < 200; i++) {
        mr_random random = mr_random_at(test_seed(), i, 0, 0x736571);
        sequences s;
        draw_sequences(&s, &random);
        check_sequences(&s);
    }
}

static mr_output halved(void *context, mr_graph *g, mr_output labels, mr_output logits)
{
    ++*(int *)context;
    CHECK_EQ(mr_output_shape(labels).rank, 1);
    mr_output loss = mr_sparse_softmax_cross_entropy_with_logits(g, logits, labels).loss;
    return mr_mul(g, loss, mr_constant_float(g, 0.5f));
}

TEST(sequence_loss_calls_the_function_for_the_softmax_loss)
{
    int calls = 0;
    mr_graph *g = mr_graph_new();
    mr_output logits = constant(g, MR_SHAPE(1, 2, 2), (const double[]){1, 2, 3, -1});
    mr_output targets = mr_constant_int32s(g, MR_SHAPE(1, 2), (const int32_t[]){0, 1}, nullptr);
    mr_output weights = constant(g, MR_SHAPE(1, 2), (const double[]){1, 3});
    mr_output losses[2] = {
        mr_sequence_loss(g, logits, targets, weights),
        mr_sequence_loss(g, logits, targets, weights, .softmax_loss_function = halved, .softmax_loss_context = &calls)};
    mr_tensor results[2] = {0};
    run(g, losses, 2, results);
    CHECK_EQ(calls, 1);
    CHECK_NEAR(mr_tensor_floats(&results[1])[0], mr_tensor_floats(&results[0])[0] / 2, 1e-6);
    mr_tensor_deinit(&results[0]);
    mr_tensor_deinit(&results[1]);
    mr_graph_free(g);
}

/* ---- Connectionist temporal classification ---- */

enum { STEPS_MAX = 5, SYMBOLS_MAX = 4, SEQUENCES_MAX = 3 };

typedef struct alignment {
    bool collapses, merges, time_major;
    int32_t steps, batch, symbols; /* the last symbol is the blank */
    int32_t lengths[SEQUENCES_MAX], label_counts[SEQUENCES_MAX], labels[SEQUENCES_MAX][STEPS_MAX];
    double logits[SEQUENCES_MAX][STEPS_MAX][SYMBOLS_MAX];
} alignment;

static void draw_alignment(alignment *a, mr_random *random)
{
    *a = (alignment){.collapses = below(random, 2) != 0,
                     .merges = below(random, 3) != 0,
                     .time_major = below(random, 2) != 0,
                     .steps = 1 + below(random, STEPS_MAX),
                     .batch = 1 + below(random, SEQUENCES_MAX),
                     .symbols = 2 + below(random, SYMBOLS_MAX - 1)};
    for (int32_t b = 0; b < a->batch; b++) {
        a->lengths[b] = 1 + below(random, a->steps);
        /* Each label may need a blank before it. */
        a->label_counts[b] = 1 + below(random, (a->lengths[b] + 1) / 2);
        for (int32_t i = 0; i < a->label_counts[b]; i++) a->labels[b][i] = below(random, a->symbols - 1);
        for (int32_t t = 0; t < a->steps; t++)
            for (int32_t c = 0; c < a->symbols; c++) a->logits[b][t][c] = number(random, -2, 2);
    }
}

/* Removes repetitions (of what precedes) and blanks from symbols. */
static int32_t collapse(const int32_t *symbols, int32_t count, int32_t blank, bool merges, int32_t *result)
{
    int32_t used = 0;
    for (int32_t i = 0; i < count; i++)
        if (symbols[i] != blank && (!merges || i == 0 || symbols[i] != symbols[i - 1])) result[used++] = symbols[i];
    return used;
}

/* The negative logarithm of the sum of the probabilities of all paths that collapse to the labels. */
static double path_loss(const alignment *a, int32_t b)
{
    int32_t labels[STEPS_MAX], path[STEPS_MAX] = {0}, found[STEPS_MAX];
    const int32_t count = collapse(a->labels[b], a->label_counts[b], -1, a->collapses, labels);
    double sum = 0;
    while (true) {
        double log_probability = 0;
        for (int32_t t = 0; t < a->lengths[b]; t++)
            log_probability -= cross_entropy(a->logits[b][t], a->symbols, path[t]);
        if (collapse(path, a->lengths[b], a->symbols - 1, a->merges, found) == count &&
            memcmp(found, labels, (size_t)count * sizeof *found) == 0)
            sum += exp(log_probability);
        int32_t t = 0;
        while (t < a->lengths[b] && ++path[t] == a->symbols) path[t++] = 0;
        if (t == a->lengths[b]) return -log(sum);
    }
}

static mr_output ids(mr_graph *g, mr_shape shape, const int64_t *values)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_INT64, shape, values, &error));
    mr_output output = mr_constant(g, &tensor, nullptr);
    mr_tensor_deinit(&tensor);
    return output;
}

static mr_sparse_output sparse_labels(mr_graph *g, const alignment *a)
{
    int64_t indices[2 * SEQUENCES_MAX * STEPS_MAX];
    int32_t values[SEQUENCES_MAX * STEPS_MAX], count = 0;
    for (int32_t b = 0; b < a->batch; b++)
        for (int32_t i = 0; i < a->label_counts[b]; i++) {
            indices[2 * count] = b;
            indices[2 * count + 1] = i;
            values[count++] = a->labels[b][i];
        }
    return MR_SPARSE_OUTPUT(ids(g, MR_SHAPE(count, 2), indices),
                            mr_constant_int32s(g, MR_SHAPE(count), values, nullptr), (mr_output){0});
}

static mr_output make_inputs(mr_graph *g, const alignment *a)
{
    double values[SEQUENCES_MAX * STEPS_MAX * SYMBOLS_MAX] = {0};
    int32_t count = 0;
    for (int32_t i = 0; i < a->steps * a->batch; i++) {
        const int32_t b = a->time_major ? i % a->batch : i / a->steps, t = a->time_major ? i / a->batch : i % a->steps;
        for (int32_t c = 0; c < a->symbols; c++) values[count++] = a->logits[b][t][c];
    }
    const mr_shape shape =
        a->time_major ? MR_SHAPE(a->steps, a->batch, a->symbols) : MR_SHAPE(a->batch, a->steps, a->symbols);
    return constant(g, shape, values);
}

static void check_slope(alignment *a, int32_t b, int32_t t, int32_t c, double gradient)
{
    double *logit = &a->logits[b][t][c], before = *logit, slope = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        *logit = before + sign * 1e-4;
        slope += sign * (t < a->lengths[b] ? path_loss(a, b) : 0) / 2e-4;
    }
    *logit = before;
    CHECK_NEAR(gradient, slope, 1e-4);
}

static void check_alignment(alignment *a)
{
    mr_graph *g = mr_graph_new();
    mr_tensor results[2] = {0};
    mr_output inputs = make_inputs(g, a), fetches[2];
    fetches[0] = mr_ctc_loss(
        g, sparse_labels(g, a), inputs, mr_constant_int32s(g, MR_SHAPE(a->batch), a->lengths, nullptr),
        .preprocess_collapse_repeated = a->collapses, .ctc_merge_repeated = a->merges, .time_major = a->time_major);
    mr_gradients(g, MR_OUTPUTS_OF(fetches, 1), MR_OUTPUTS_OF(&inputs, 1), nullptr, &fetches[1]);
    run(g, fetches, 2, results);
    for (int32_t b = 0; b < a->batch; b++) CHECK_NEAR(mr_tensor_floats(&results[0])[b], path_loss(a, b), 2e-5);
    for (int32_t i = 0; i < a->steps * a->batch; i++)
        for (int32_t c = 0; c < a->symbols; c++)
            check_slope(a, a->time_major ? i % a->batch : i / a->steps, a->time_major ? i / a->batch : i % a->steps, c,
                        (double)mr_tensor_floats(&results[1])[i * a->symbols + c]);
    mr_tensor_deinit(&results[0]);
    mr_tensor_deinit(&results[1]);
    mr_graph_free(g);
}

TEST(ctc_loss_sums_over_all_paths)
{
    for (uint64_t i = 0; i < 60; i++) {
        mr_random random = mr_random_at(test_seed(), i, 0, 0x637463);
        alignment a;
        draw_alignment(&a, &random);
        check_alignment(&a);
    }
}

/* Trains logits until both decoders return the labels. */
TEST(ctc_loss_trains_what_the_decoders_decode)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    const alignment a = {.batch = 2, .symbols = 4, .label_counts = {3, 2}, .labels = {{0, 0, 2}, {1, 2}}};
    mr_output lengths = mr_constant_int32s(g, MR_SHAPE(2), (const int32_t[]){7, 4}, nullptr);
    mr_variable logits = mr_get_variable(g, "logits", MR_SHAPE(7, 2, 4));
    mr_output losses = mr_ctc_loss(g, sparse_labels(g, &a), logits.value, lengths);
    mr_output loss = mr_mean(g, losses, mr_constant_ints(g, MR_INTS(0)));
    mr_node *step = mr_minimize(g, mr_gradient_descent(.learning_rate = 1), loss, (mr_output){0});
    mr_sparse_output greedy, beams[2];
    mr_ctc_greedy_decoder(g, logits.value, lengths, &greedy);
    mr_output scores =
        mr_ctc_beam_search_decoder(g, logits.value, lengths, beams, .top_paths = 2, .merge_repeated = false);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    for (int i = 0; i < 300; i++)
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &step, 1, &error));
    mr_tensor results[4] = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(loss, greedy.values, beams[0].values, scores), results,
                            nullptr, 0, &error));
    CHECK(mr_tensor_floats(&results[0])[0] < 0.1f);
    const int64_t expected[] = {0, 0, 2, 1, 2};
    for (int i = 1; i <= 2; i++) {
        CHECK_EQ(mr_tensor_count(&results[i]), 5);
        CHECK(memcmp(mr_tensor_data(&results[i]), expected, sizeof expected) == 0);
    }
    CHECK_EQ(mr_tensor_count(&results[3]), 4);
    for (int i = 0; i < 4; i++) mr_tensor_deinit(&results[i]);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(ctc_loss_takes_half_and_has_no_second_derivative)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 3, 0, 0x637463);
    alignment a;
    draw_alignment(&a, &random);
    mr_graph *g = mr_graph_new();
    mr_output inputs = make_inputs(g, &a), lengths = mr_constant_int32s(g, MR_SHAPE(a.batch), a.lengths, nullptr);
    mr_sparse_output labels = sparse_labels(g, &a);
    mr_ctc_loss_options o = {.size = sizeof o,
                             .preprocess_collapse_repeated = a.collapses,
                             .ctc_merge_repeated = a.merges,
                             .time_major = a.time_major};
    mr_output loss = mr_ctc_loss_(g, labels, mr_cast(g, inputs, MR_HALF), lengths, &o), slope, second;
    CHECK_EQ(mr_output_dtype(loss), MR_HALF);
    loss = mr_cast(g, loss, MR_FLOAT);
    mr_tensor result = {0};
    run(g, &loss, 1, &result);
    for (int32_t b = 0; b < a.batch; b++) CHECK_NEAR(mr_tensor_floats(&result)[b], path_loss(&a, b), 0.05);
    mr_tensor_deinit(&result);
    mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(inputs), nullptr, &slope);
    CHECK_OK(mr_graph_status(g, &error));
    mr_gradients(g, MR_OUTPUTS(slope), MR_OUTPUTS(inputs), nullptr, &second);
    CHECK(mr_graph_status(g, &error) != MR_OK);
    CHECK_CONTAINS(error.message, "ctc_loss has no second derivative");
    mr_graph_free(g);
}

/* ---- Mistakes ---- */

#define REFUSED(text, ...)                                                                                             \
    do {                                                                                                               \
        mr_error error = {0};                                                                                          \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 7, 4));                                        \
        mr_output y = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1, 7));                                           \
        mr_output w = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 7));                                           \
        mr_output n = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1)), used[] = {x, y, w, n};                       \
        (void)used;                                                                                                    \
        (void)(__VA_ARGS__);                                                                                           \
        CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);                                                 \
        CHECK_STR(error.message, text);                                                                                \
        mr_graph_free(g);                                                                                              \
    } while (0)

TEST(sequence_loss_says_what_is_wrong)
{
    REFUSED("sequence_loss: logits have shape [?,7], but must be [batch, time, classes]", mr_sequence_loss(g, w, y, w));
    REFUSED("sequence_loss: targets have shape [?,7,4], but must be [batch, time]", mr_sequence_loss(g, x, x, w));
    REFUSED("own: weights have shape <unknown>, but must be [batch, time]",
            mr_sequence_loss(g, x, y, mr_placeholder(g, MR_FLOAT), .name = "own"));
    REFUSED("sequence_loss: targets are float, but must be int32 or int64", mr_sequence_loss(g, x, w, w));
    REFUSED("sequence_loss: weights are int32, but logits float", mr_sequence_loss(g, x, y, y));
    REFUSED("sequence_loss: weights are required", mr_sequence_loss(g, x, y, (mr_output){0}));
    REFUSED("sequence_loss: targets have shape [?,6], but logits [?,7,4]",
            mr_sequence_loss(g, x, mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1, 6)), w));
    REFUSED("sequence_loss: sum_over_timesteps and average_across_timesteps are both true, but exclude each other",
            mr_sequence_loss(g, x, y, w, .sum_over_timesteps = true));
    REFUSED("sequence_loss: sum_over_batch and average_across_batch are both true, but exclude each other",
            mr_sequence_loss(g, x, y, w, .sum_over_batch = true, .average_across_timesteps = false));
    REFUSED("sequence_loss: softmax_loss_context has no effect without softmax_loss_function",
            mr_sequence_loss(g, x, y, w, .softmax_loss_context = g));
    CHECK(mr_sequence_loss_(nullptr, (mr_output){0}, (mr_output){0}, (mr_output){0}, nullptr).node == nullptr);
}

TEST(ctc_says_what_is_wrong)
{
    const mr_sparse_output none = {0};
    REFUSED("CTCLoss: labels need int64 indices and int32 values", mr_ctc_loss(g, none, x, n));
    REFUSED("CTCLoss: inputs must be half, bfloat16, float or double", mr_ctc_loss(g, none, y, n));
    REFUSED("CTCLoss: inputs must be half, bfloat16, float or double", mr_ctc_loss(g, none, (mr_output){0}, n));
    REFUSED("own: sequence_length must be int32", mr_ctc_loss(g, none, x, w, .name = "own"));
    REFUSED("CTCGreedyDecoder: inputs must be float or double", mr_ctc_greedy_decoder(g, y, n, nullptr));
    REFUSED("CTCGreedyDecoder: top_paths has no effect for this decoder",
            mr_ctc_greedy_decoder(g, x, n, nullptr, .top_paths = 1));
    REFUSED("CTCBeamSearchDecoder: top_paths is 3 and beam_width 2, but 1 <= top_paths <= beam_width <= 2147483647 is "
            "required",
            mr_ctc_beam_search_decoder(g, x, n, nullptr, .top_paths = 3, .beam_width = 2));
    REFUSED(
        "CTCBeamSearchDecoder: top_paths is 0 and beam_width 100, but 1 <= top_paths <= beam_width <= 2147483647 is "
        "required",
        mr_ctc_beam_search_decoder(g, x, n, nullptr, .top_paths = 0));
}
