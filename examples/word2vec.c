/* word2vec: learns a vector for each word of a text from the words around it (skip-gram, noise-contrastive estimation).
 *
 *     word2vec [STEPS [TEXT]]
 *
 * TEXT contains words separated by white space. Default: sentences of a small invented language, in which words of one
 * kind (numbers, colors, animals, …) have the same place. Prints the loss, then frequent words and the words whose
 * vectors are nearest to theirs: in the invented language, those of the same kind. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 128, DIMENSIONS = 32, WINDOW = 2, SAMPLED = 8, SHOWN = 12, NEAREST = 3 };

/* ---- Text ---- */

/* A number below the limit, from a linear congruential generator. */
static int64_t draw(int64_t limit)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

/* Writes sentences like "six black cats steal plums". */
static mr_status invent_text(char **text, mr_error *error)
{
    enum { KINDS = 5, WORDS = 4, SENTENCES = 3000, WORD_SIZE = 8 };
    static const char words[KINDS][WORDS][WORD_SIZE] = {
        {"two", "three", "four", "six"},  {"red", "green", "black", "white"},   {"cats", "dogs", "birds", "mice"},
        {"eat", "steal", "find", "hide"}, {"plums", "apples", "pears", "nuts"},
    };
    char *end = *text = malloc(SENTENCES * KINDS * WORD_SIZE + 1);
    if (end == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    for (int i = 0; i < SENTENCES * KINDS; i++)
        end += snprintf(end, WORD_SIZE + 1, "%s ", words[i % KINDS][draw(WORDS)]);
    return MR_OK;
}

static mr_status read_text(const char *path, char **text, mr_error *error)
{
    mr_input_file *file = nullptr;
    MR_TRY(mr_input_file_open(path, true, &file, error));
    size_t size = (size_t)mr_input_file_size(file), done = 0;
    *text = calloc(1, size + 1);
    mr_status status = *text != nullptr ? mr_input_file_read(file, 0, *text, size, &done, error)
                                        : mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory", path);
    mr_input_file_close(file);
    return status;
}

/* ---- Words ---- */

typedef struct word {
    const char *text;
    int64_t count, at; /* occurrences; the number of the word in the text, or of its first occurrence in sorted order */
} word;

typedef struct corpus {
    int32_t *ids; /* of each word of the text; the most frequent word has id 0 */
    word *vocabulary;
    int64_t length;
    int32_t size; /* of the vocabulary */
} corpus;

static int by_text(const void *a, const void *b)
{
    return strcmp(((const word *)a)->text, ((const word *)b)->text);
}

static int by_count(const void *a, const void *b)
{
    const word *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->text, y->text);
}

/* Splits the text, which is changed and stays in use. Ids are by frequency, as the sampler of the loss expects. */
static mr_status read_words(char *text, corpus *c, mr_error *error)
{
    const size_t words_max = strlen(text) / 2 + 1;
    word *all = malloc(words_max * sizeof *all);
    c->vocabulary = malloc(words_max * sizeof *c->vocabulary);
    c->ids = malloc(words_max * sizeof *c->ids);
    if (!all || !c->vocabulary || !c->ids) return free(all), mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    static const char spaces[] = " \t\r\n";
    for (char *at = text + strspn(text, spaces); *at != '\0'; at += strspn(at, spaces)) {
        all[c->length] = (word){at, 1, c->length};
        c->length++;
        at += strcspn(at, spaces);
        if (*at != '\0') *at++ = '\0';
    }
    qsort(all, (size_t)c->length, sizeof *all, by_text);
    for (int64_t i = 0; i < c->length; i++)
        if (i > 0 && strcmp(all[i].text, all[i - 1].text) == 0)
            c->vocabulary[c->size - 1].count++;
        else
            c->vocabulary[c->size++] = (word){all[i].text, 1, i};
    qsort(c->vocabulary, (size_t)c->size, sizeof *c->vocabulary, by_count);
    for (int32_t id = 0; id < c->size; id++)
        for (int64_t i = 0; i < c->vocabulary[id].count; i++) c->ids[all[c->vocabulary[id].at + i].at] = id;
    free(all);
    return c->size >= SHOWN ? MR_OK
                            : mr_fail(error, MR_INVALID_ARGUMENT,
                                      "the text has %d different words; at least %d are needed", c->size, SHOWN);
}

/* ---- The model ---- */

typedef struct model {
    mr_output centers, contexts, loss; /* a word, and one near it: int32 [BATCH] and [BATCH, 1] */
    mr_output nearest;                 /* int32 [SHOWN, 1 + NEAREST]: the ids of each word itself, and of its nearest */
    mr_node *init, *train;
} model;

static model build(mr_graph *g, int32_t size)
{
    model m = {0};
    m.centers = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(BATCH), .name = "centers");
    m.contexts = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(BATCH, 1), .name = "contexts");
    mr_variable vectors = mr_get_variable(g, "vectors", MR_SHAPE(size, DIMENSIONS),
                                          .initializer = {.kind = MR_INIT_UNIFORM, .scale = 0.5f});
    mr_variable weights = mr_get_variable(g, "weights", MR_SHAPE(size, DIMENSIONS));
    mr_variable biases = mr_get_variable(g, "biases", MR_SHAPE(size), .initializer = {.kind = MR_INIT_ZEROS});
    mr_output inputs = mr_embedding_lookup(g, MR_VARIABLES(vectors), m.centers);
    mr_output losses = mr_nce_loss(g, MR_VARIABLES(weights), MR_VARIABLES(biases), m.contexts, inputs,
                                   .num_sampled = SAMPLED, .num_classes = size);
    m.loss = mr_mean(g, losses, mr_constant_int32(g, 0));
    m.train = mr_minimize(g, mr_adagrad(.learning_rate = 0.5f), m.loss, (mr_output){0});

    /* The cosine of the angle between each of the first words and all words. */
    mr_output squares = mr_sum(g, mr_square(g, vectors.value), mr_constant_int32(g, 1), .keep_dims = true);
    mr_output units = mr_mul(g, vectors.value, mr_rsqrt(g, squares));
    mr_output shown = mr_slice(g, units, mr_constant_ints(g, MR_INTS(0, 0)), mr_constant_ints(g, MR_INTS(SHOWN, -1)));
    mr_output cosines = mr_mat_mul(g, shown, units, .transpose_b = true);
    m.nearest = mr_top_kv2(g, cosines, mr_constant_int32(g, 1 + NEAREST), .sorted = true).indices;
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* ---- Training ---- */

/* Draws words of the text, and for each of them one of the words around it. */
static void fill_batch(const corpus *c, mr_tensor *centers, mr_tensor *contexts)
{
    for (int i = 0; i < BATCH; i++) {
        const int64_t distance = 1 + draw(WINDOW), first = draw(c->length - distance), backward = draw(2);
        mr_tensor_int32s(centers)[i] = c->ids[first + backward * distance];
        mr_tensor_int32s(contexts)[i] = c->ids[first + (1 - backward) * distance];
    }
}

static mr_status learn(mr_session *session, const model *m, const corpus *c, long steps, mr_error *error)
{
    mr_tensor centers = {0}, contexts = {0}, result = {0};
    mr_status status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->init, 1, error);
    if (status == MR_OK) status = mr_tensor_init(&centers, MR_INT32, MR_SHAPE(BATCH), error);
    if (status == MR_OK) status = mr_tensor_init(&contexts, MR_INT32, MR_SHAPE(BATCH, 1), error);
    for (long step = 1; step <= steps && status == MR_OK; step++) {
        fill_batch(c, &centers, &contexts);
        mr_feeds feeds = MR_FEEDS({m->centers, centers}, {m->contexts, contexts});
        status = mr_session_run(session, feeds, MR_OUTPUTS(m->loss), &result, &m->train, 1, error);
        if (status == MR_OK && (step == 1 || step % 500 == 0))
            printf("step %4ld  loss %.3f\n", step, (double)mr_tensor_floats(&result)[0]);
        mr_tensor_deinit(&result);
    }
    mr_tensor_deinit(&centers);
    mr_tensor_deinit(&contexts);
    return status;
}

static mr_status print_nearest(mr_session *session, const model *m, const corpus *c, mr_error *error)
{
    mr_tensor ids = {0};
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(m->nearest), &ids, nullptr, 0, error));
    for (int32_t i = 0; i < SHOWN * (1 + NEAREST); i++)
        printf(i % (1 + NEAREST) == 0         ? "%12s:"
               : i % (1 + NEAREST) == NEAREST ? " %s\n"
                                              : " %s",
               c->vocabulary[mr_tensor_int32s(&ids)[i]].text);
    mr_tensor_deinit(&ids);
    return MR_OK;
}

int main(int argc, char **argv)
{
    char *end = "", *text = nullptr;
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 3000;
    if (argc > 3 || *end != '\0' || steps < 1 || steps > 10000000)
        return fprintf(stderr, "usage: word2vec [STEPS [TEXT]]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    corpus c = {0};
    model m = {0};
    mr_status status = argc > 2 ? read_text(argv[2], &text, &error) : invent_text(&text, &error);
    if (status == MR_OK) status = read_words(text, &c, &error);
    if (status == MR_OK) {
        mr_graph_set_seed(g, 1);
        m = build(g, c.size);
        status = mr_session_new(g, nullptr, &session, &error);
    }
    if (status == MR_OK) status = learn(session, &m, &c, steps, &error);
    if (status == MR_OK) status = print_nearest(session, &m, &c, &error);
    if (status != MR_OK) fprintf(stderr, "word2vec: %s\n", error.message);
    mr_session_free(session);
    mr_graph_free(g);
    free(c.ids);
    free(c.vocabulary);
    free(text);
    return status == MR_OK ? 0 : 1;
}
