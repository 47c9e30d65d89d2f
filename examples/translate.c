/* translate: learns to "translate" a sequence of digits into the same digits backwards. An encoder reads the digits; a
 * decoder writes the translation and attends to what the encoder has read.
 *
 *     translate [STEPS]
 *
 * Prints the loss, then some translations of digits that the model has not seen, and how many of them are right. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, LENGTH_MAX = 8, TIME = LENGTH_MAX + 1, UNITS = 48, BEAMS = 3 };
enum { START = 10, END = 11, WORDS = 12 }; /* digits are the words 0 to 9 */

/* ---- Digits ---- */

typedef struct batch {
    mr_tensor source, lengths, target; /* int32 [BATCH, LENGTH_MAX], [BATCH], [BATCH, TIME]; padded with END */
} batch;

static mr_status new_batch(batch *b, mr_error *error)
{
    MR_TRY(mr_tensor_init(&b->source, MR_INT32, MR_SHAPE(BATCH, LENGTH_MAX), error));
    MR_TRY(mr_tensor_init(&b->lengths, MR_INT32, MR_SHAPE(BATCH), error));
    return mr_tensor_init(&b->target, MR_INT32, MR_SHAPE(BATCH, TIME), error);
}

static void free_batch(batch *b)
{
    mr_tensor_deinit(&b->source);
    mr_tensor_deinit(&b->lengths);
    mr_tensor_deinit(&b->target);
}

/* A number below the limit, from a linear congruential generator. */
static int32_t draw(int32_t limit)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((state >> 33) % (uint64_t)limit);
}

static void fill_batch(batch *b)
{
    int32_t *source = mr_tensor_int32s(&b->source), *target = mr_tensor_int32s(&b->target);
    for (int i = 0; i < BATCH; i++, source += LENGTH_MAX, target += TIME) {
        const int length = 1 + draw(LENGTH_MAX);
        mr_tensor_int32s(&b->lengths)[i] = length;
        for (int t = 0; t < TIME; t++) target[t] = END;
        for (int t = 0; t < LENGTH_MAX; t++) source[t] = t < length ? draw(10) : END;
        for (int t = 0; t < length; t++) target[t] = source[length - 1 - t];
    }
}

/* ---- The model ---- */

typedef struct model {
    mr_output source, lengths, target; /* as of a batch */
    mr_output loss, translation;       /* translation: int32 [BATCH, time, BEAMS] */
    mr_node *init, *train;
} model;

/* A decoder's cell, and its states before the first word. Each example of the memory may stand for several beams. */
static mr_rnn_cell *attend(mr_graph *g, mr_output memory, mr_output lengths, mr_output encoded, int32_t examples,
                           mr_output *states)
{
    /* Entered again by its name: the second attention has the memory_layer of the first one. */
    mr_graph_push_variable_scope(g, "memory");
    mr_attention *attention = mr_bahdanau_attention(g, UNITS, memory, .memory_sequence_length = lengths);
    mr_graph_pop_variable_scope(g);
    mr_rnn_cell *cell = mr_attention_wrapper(g, mr_gru_cell(g, UNITS), attention, .attention_layer_size = UNITS,
                                             .initial_cell_state = &encoded);
    mr_rnn_cell_zero_state(g, cell, mr_constant_int32(g, examples), MR_FLOAT, states);
    return cell;
}

/* The words before those of the target. */
static mr_output shift(mr_graph *g, mr_output target, mr_output start)
{
    mr_output from = mr_constant_ints(g, MR_INTS(0, 0)), all_but_last = mr_constant_ints(g, MR_INTS(BATCH, TIME - 1));
    mr_output first = mr_expand_dims(g, start, mr_constant_int32(g, 1));
    return mr_concat_v2(g, MR_OUTPUTS(first, mr_slice(g, target, from, all_but_last)), mr_constant_int32(g, 1));
}

/* 1 for each word of the target and for the END after it, 0 for the padding. */
static mr_output weigh(mr_graph *g, mr_output lengths)
{
    mr_output steps = mr_range(g, mr_constant_int32(g, 0), mr_constant_int32(g, TIME), mr_constant_int32(g, 1));
    mr_output counts = mr_less_equal(g, steps, mr_expand_dims(g, lengths, mr_constant_int32(g, 1)));
    return mr_cast(g, counts, MR_FLOAT);
}

static model build(mr_graph *g)
{
    model m = {0};
    m.source = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(BATCH, LENGTH_MAX), .name = "source");
    m.lengths = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(BATCH), .name = "lengths");
    m.target = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(BATCH, TIME), .name = "target");
    /* What trains and what translates has the same variables. */
    mr_graph_push_variable_scope(g, "translate", .reuse = MR_AUTO_REUSE);

    mr_variable embedding = mr_get_variable(g, "embedding", MR_SHAPE(WORDS, UNITS));
    mr_variables words = MR_VARIABLES(embedding);
    mr_output_layer *layer = mr_output_layer_new(g, .units = WORDS);
    mr_output encoded, states[4];
    mr_output memory = mr_dynamic_rnn(g, mr_gru_cell(g, UNITS), mr_embedding_lookup(g, words, m.source), &encoded,
                                      .sequence_length = m.lengths, .name = "encoder");

    mr_output start = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH)), mr_constant_int32(g, START));
    mr_output all = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH)), mr_constant_int32(g, TIME));
    mr_rnn_cell *cell = attend(g, memory, m.lengths, encoded, BATCH, states);
    mr_output inputs = mr_embedding_lookup(g, words, shift(g, m.target, start));
    mr_decoder *teacher = mr_basic_decoder(g, cell, mr_training_helper(g, inputs, all), states, .output_layer = layer);
    mr_decoded taught = mr_dynamic_decode(g, teacher, nullptr, .name = "decoder");
    m.loss = mr_sequence_loss(g, taught.rnn_output, m.target, weigh(g, m.lengths));
    m.train = mr_minimize(g, mr_adam(.learning_rate = 3e-3f), m.loss, (mr_output){0});

    cell = attend(g, mr_tile_batch(g, memory, BEAMS), mr_tile_batch(g, m.lengths, BEAMS),
                  mr_tile_batch(g, encoded, BEAMS), BATCH * BEAMS, states);
    mr_decoder *search = mr_beam_search_decoder(g, cell, words, start, END, states, BEAMS, .output_layer = layer);
    mr_decoded found = mr_dynamic_decode(g, search, nullptr, .maximum_iterations = TIME, .name = "decoder");
    m.translation = found.predicted_ids;

    mr_graph_pop_variable_scope(g);
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* ---- Training and translation ---- */

static mr_status run(mr_session *session, const model *m, const batch *b, mr_output fetch, mr_node *target,
                     mr_tensor *result, mr_error *error)
{
    const mr_feed feeds[] = {{m->source, b->source}, {m->lengths, b->lengths}, {m->target, b->target}};
    return mr_session_run(session, (mr_feeds){feeds, 3}, MR_OUTPUTS(fetch), result, &target, target != nullptr, error);
}

/* Writes the digits before END, each `stride` words after the one before. */
static void write_digits(char *text, const int32_t *words, int64_t count, int64_t stride)
{
    for (int64_t t = 0; t < count && words[t * stride] < 10; t++) *text++ = (char)('0' + words[t * stride]);
    *text = '\0';
}

/* Prints the first translations, and how many of all are right. */
static void print_translations(batch *b, mr_tensor *translation)
{
    const int64_t steps = translation->shape.dims[1];
    int right = 0;
    for (int i = 0; i < BATCH; i++) {
        char source[TIME + 1], best[TIME + 1], expected[TIME + 1];
        write_digits(source, mr_tensor_int32s(&b->source) + i * LENGTH_MAX, LENGTH_MAX, 1);
        write_digits(best, mr_tensor_int32s(translation) + i * steps * BEAMS, steps, BEAMS); /* the first beam */
        write_digits(expected, mr_tensor_int32s(&b->target) + i * TIME, TIME, 1);
        right += strcmp(best, expected) == 0;
        if (i < 5) printf("%8s -> %s\n", source, best);
    }
    printf("right: %d of %d\n", right, BATCH);
}

static mr_status learn(mr_session *session, const model *m, batch *b, int steps, mr_error *error)
{
    mr_tensor result = {0};
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->init, 1, error));
    for (int step = 1; step <= steps; step++) {
        fill_batch(b);
        MR_TRY(run(session, m, b, m->loss, m->train, &result, error));
        if (step % 100 == 0) printf("step %d  loss %.4f\n", step, (double)mr_tensor_floats(&result)[0]);
        mr_tensor_deinit(&result);
    }
    fill_batch(b);
    MR_TRY(run(session, m, b, m->translation, nullptr, &result, error));
    print_translations(b, &result);
    mr_tensor_deinit(&result);
    return MR_OK;
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 1000;
    if (argc > 2 || *end != '\0' || steps < 1 || steps > 1000000)
        return fprintf(stderr, "usage: translate [STEPS]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    batch b = {0};
    mr_graph_set_seed(g, 1);
    model m = build(g);
    mr_status status = mr_session_new(g, nullptr, &session, &error);
    if (status == MR_OK) status = new_batch(&b, &error);
    if (status == MR_OK) status = learn(session, &m, &b, (int)steps, &error);
    if (status != MR_OK) fprintf(stderr, "translate: %s\n", error.message);
    free_batch(&b);
    mr_session_free(session);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
