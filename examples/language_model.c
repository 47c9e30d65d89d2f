/* language-model: trains a language model of words, two layers of LSTM cells, as TensorFlow's PTB tutorial ("small").
 *
 *     language-model TEXT [EPOCHS [UNITS]]
 *
 * TEXT contains words separated by spaces; the end of a line is the word <eos>. The last tenth is kept for the test.
 * Prints the perplexity of every epoch: how many words the model hesitates between. */
#include <math.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 20, STEPS = 20, LAYERS = 2, STATES = 2 * LAYERS, VOCABULARY_MAX = 10000 };

/* ---- Words ---- */

typedef struct text {
    int32_t *words; /* numbers of words; the most frequent one is 0 */
    int64_t count;
    int32_t vocabulary; /* number of different words; rare ones share the last number */
} text;

typedef struct entry {
    const char *word;
    int64_t count, at;
} entry;

static int by_word(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->word, ((const entry *)b)->word);
}

static int by_count(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->word, y->word);
}

/* Splits the bytes, which are changed, into words. */
static int64_t split(char *bytes, const char **words)
{
    int64_t count = 0;
    for (char *at = bytes; *at != '\0';) {
        const size_t length = strcspn(at, " \n");
        const char end = at[length];
        if (length > 0) words[count++] = at;
        if (end == '\n') words[count++] = "<eos>";
        at[length] = '\0';
        at += length + (end != '\0');
    }
    return count;
}

/* Numbers the words by how frequent they are. */
static bool number(const char **words, int64_t count, text *t)
{
    entry *all = malloc((size_t)(count + 1) * sizeof *all), *known = malloc((size_t)(count + 1) * sizeof *known);
    t->words = malloc((size_t)(count + 1) * sizeof *t->words);
    if (!all || !known || !t->words) return free(all), free(known), false;
    for (int64_t i = 0; i < count; i++) all[i] = (entry){words[i], 1, i};
    qsort(all, (size_t)count, sizeof *all, by_word);
    int64_t kinds = 0;
    for (int64_t i = 0; i < count; i++)
        if (i > 0 && strcmp(all[i].word, all[i - 1].word) == 0)
            known[kinds - 1].count++;
        else
            known[kinds++] = (entry){all[i].word, 1, i}; /* at: its first place in `all` */
    qsort(known, (size_t)kinds, sizeof *known, by_count);
    t->vocabulary = (int32_t)(kinds < VOCABULARY_MAX ? kinds : VOCABULARY_MAX);
    for (int64_t kind = 0; kind < kinds; kind++)
        for (int64_t i = known[kind].at; i < known[kind].at + known[kind].count; i++)
            t->words[all[i].at] = (int32_t)(kind < t->vocabulary ? kind : t->vocabulary - 1);
    t->count = count;
    free(all);
    free(known);
    return true;
}

static mr_status read_text(const char *path, text *t, mr_error *error)
{
    mr_input_file *file = nullptr;
    MR_TRY(mr_input_file_open(path, false, &file, error));
    size_t size = (size_t)mr_input_file_size(file), done = 0;
    char *bytes = calloc(1, size + 1);
    const char **words = malloc((size + 1) * sizeof *words);
    mr_status status = bytes && words ? mr_input_file_read(file, 0, bytes, size, &done, error)
                                      : mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory", path);
    if (status == MR_OK && !number(words, split(bytes, words), t))
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory", path);
    if (status == MR_OK && t->count < 20 * BATCH * (STEPS + 1))
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%s has %lld words; at least %d are needed", path,
                         (long long)t->count, 20 * BATCH * (STEPS + 1));
    free(words);
    free(bytes);
    mr_input_file_close(file);
    return status;
}

/* ---- The model ---- */

typedef struct model {
    mr_output words, next, rate, loss; /* loss: of a word */
    mr_output before[STATES], after[STATES];
    mr_node *init, *train;
} model;

static model build(mr_graph *g, int32_t vocabulary, int32_t units)
{
    model m = {0};
    m.words = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(BATCH, STEPS), .name = "words");
    m.next = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(BATCH, STEPS), .name = "next");
    m.rate = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "rate");
    for (int i = 0; i < STATES; i++) m.before[i] = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(BATCH, units));
    mr_graph_push_variable_scope(g, "Model", .initializer = {.kind = MR_INIT_UNIFORM, .scale = 0.1f});

    mr_variable embedding = mr_get_variable(g, "embedding", MR_SHAPE(vocabulary, units));
    mr_output inputs = mr_embedding_lookup(g, MR_VARIABLES(embedding), m.words);
    mr_rnn_cell *layers[LAYERS];
    for (int i = 0; i < LAYERS; i++) layers[i] = mr_basic_lstm_cell(g, units, .forget_bias = 0);
    mr_rnn_cell *cell = mr_multi_rnn_cell(g, (mr_rnn_cells){layers, LAYERS});
    mr_output outputs = mr_dynamic_rnn(g, cell, inputs, m.after, .initial_state = m.before, .name = "RNN");

    mr_variable w = mr_get_variable(g, "softmax_w", MR_SHAPE(units, vocabulary));
    mr_variable b = mr_get_variable(g, "softmax_b", MR_SHAPE(vocabulary));
    mr_output flat = mr_reshape(g, outputs, mr_constant_ints(g, MR_INTS(-1, units)));
    mr_output logits = mr_bias_add(g, mr_mat_mul(g, flat, w.value), b.value);
    m.loss = mr_loss_sparse_softmax_cross_entropy(g, mr_reshape(g, m.next, mr_constant_ints(g, MR_INTS(-1))), logits);

    mr_output cost = mr_mul(g, m.loss, mr_constant_float(g, STEPS));
    mr_gradients_and_variables list = mr_compute_gradients(g, cost);
    mr_clip_by_global_norm(g, list, 5);
    m.train = mr_apply_gradients(g, mr_gradient_descent(.learning_rate_output = m.rate), list, (mr_output){0});
    mr_graph_pop_variable_scope(g);
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* ---- Epochs ---- */

/* Reads words [begin, end) in BATCH rows side by side; the states go on from one batch to the next. rate 0: a test.
 * Returns the perplexity. */
static mr_status epoch(mr_session *session, const model *m, const text *t, int64_t begin, int64_t end, int32_t units,
                       float rate, double *perplexity, mr_error *error)
{
    const int64_t row = (end - begin) / BATCH, batches = (row - 1) / STEPS;
    mr_tensor words = {0}, next = {0}, rates = {0}, states[STATES] = {0}, results[STATES + 1] = {0};
    double sum = 0;
    mr_status status = mr_tensor_init(&words, MR_INT32, MR_SHAPE(BATCH, STEPS), error);
    if (status == MR_OK) status = mr_tensor_init(&next, MR_INT64, MR_SHAPE(BATCH, STEPS), error);
    if (status == MR_OK) status = mr_tensor_init_copy(&rates, MR_FLOAT, MR_SCALAR, &rate, error);
    for (int i = 0; i < STATES && status == MR_OK; i++) {
        status = mr_tensor_init(&states[i], MR_FLOAT, MR_SHAPE(BATCH, units), error);
        if (status == MR_OK) memset(states[i].data, 0, (size_t)(BATCH * units) * sizeof(float));
    }
    for (int64_t batch = 0; batch < batches && status == MR_OK; batch++) {
        for (int64_t i = 0; i < BATCH * STEPS; i++) {
            const int64_t at = begin + i / STEPS * row + batch * STEPS + i % STEPS;
            mr_tensor_int32s(&words)[i] = t->words[at];
            mr_tensor_int64s(&next)[i] = t->words[at + 1];
        }
        mr_feed feeds[3 + STATES] = {{m->words, words}, {m->next, next}, {m->rate, rates}};
        mr_output fetches[STATES + 1] = {m->loss};
        for (int i = 0; i < STATES; i++) {
            feeds[3 + i] = (mr_feed){m->before[i], states[i]};
            fetches[1 + i] = m->after[i];
        }
        status = mr_session_run(session, (mr_feeds){feeds, 3 + STATES}, MR_OUTPUTS_OF(fetches, STATES + 1), results,
                                &m->train, rate > 0, error);
        if (status != MR_OK) break;
        sum += (double)mr_tensor_floats(&results[0])[0];
        mr_tensor_deinit(&results[0]);
        for (int i = 0; i < STATES; i++) {
            mr_tensor_deinit(&states[i]);
            states[i] = results[1 + i];
        }
    }
    *perplexity = exp(sum / (double)batches);
    mr_tensor_deinit(&words);
    mr_tensor_deinit(&next);
    mr_tensor_deinit(&rates);
    for (int i = 0; i < STATES; i++) mr_tensor_deinit(&states[i]);
    return status;
}

static mr_status train(mr_graph *g, const text *t, int epochs, int32_t units, mr_error *error)
{
    mr_graph_set_seed(g, 1);
    model m = build(g, t->vocabulary, units);
    mr_session *session = nullptr;
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m.init, 1, error));
    const int64_t test = t->count / 10 * 9;
    double perplexity = 0;
    printf("%lld words, %d of them different\n", (long long)t->count, t->vocabulary);
    for (int i = 0; i < epochs; i++) {
        const float rate = i < 4 ? 1 : powf(0.5f, (float)(i - 3));
        MR_TRY(epoch(session, &m, t, 0, test, units, rate, &perplexity, error));
        printf("epoch %d  rate %.3f  perplexity %.2f\n", i + 1, (double)rate, perplexity);
    }
    MR_TRY(epoch(session, &m, t, test, t->count, units, 0, &perplexity, error));
    printf("test perplexity: %.2f\n", perplexity);
    mr_session_free(session);
    return MR_OK;
}

/* A number from 1 to 10,000; 0: the argument is not one. */
static int number_of(int argc, char **argv, int index, int usual)
{
    if (argc <= index) return usual;
    char *end;
    const long value = strtol(argv[index], &end, 10);
    return *end == '\0' && value >= 1 && value <= 10000 ? (int)value : 0;
}

int main(int argc, char **argv)
{
    const int epochs = number_of(argc, argv, 2, 13), units = number_of(argc, argv, 3, 200);
    if (argc < 2 || argc > 4 || argv[1][0] == '-' || epochs < 1 || units < 1)
        return fprintf(stderr, "usage: language-model TEXT [EPOCHS [UNITS]]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    text t = {0};
    mr_status status = read_text(argv[1], &t, &error);
    if (status == MR_OK) status = train(g, &t, epochs, units, &error);
    free(t.words);
    if (status != MR_OK) fprintf(stderr, "language-model: %s\n", error.message);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
