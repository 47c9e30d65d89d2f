/* queue-training: reads training data as programs of 2016 did. Threads take the names of files from a queue, read and
 * parse the records, and fill another queue, which shuffles them into batches; a coordinator stops all of them.
 *
 *     queue-training [STEPS]
 *
 * Writes files of records of flowers to a temporary directory, learns to tell the species, and prints the loss and the
 * accuracy of batches, then how much was read. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES = 4, RECORDS = 250, THREADS = 2, BATCH = 100, FEATURES = 4, SPECIES = 3 };

/* ---- Flowers ---- */

/* A number from 0 to less than 1, from a linear congruential generator. */
static float draw(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / (1 << 24);
}

/* Length and width of sepals and petals, and the species. */
static void grow(float *features, int64_t *species)
{
    static const float means[SPECIES][FEATURES] = {{5, 3.4f, 1.5f, 0.2f}, {5.9f, 2.8f, 4.3f, 1.3f}, {6.6f, 3, 5.5f, 2}};
    *species = (int64_t)(draw() * SPECIES);
    for (int i = 0; i < FEATURES; i++) features[i] = means[*species][i] + 0.7f * (draw() + draw() - 1);
}

static mr_status write_file(const char *path, mr_error *error)
{
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    MR_TRY(mr_record_writer_open(path, nullptr, &writer, error));
    mr_status status = MR_OK;
    for (int i = 0; i < RECORDS && status == MR_OK; i++) {
        float features[FEATURES];
        int64_t species;
        mr_string record = {0};
        grow(features, &species);
        mr_example_add_float_list(&encoder, "features", features, FEATURES);
        mr_example_add_int64(&encoder, "species", species);
        status = mr_example_finish(&encoder, &record, error);
        if (status == MR_OK) status = mr_record_writer_append(writer, record.data, record.size_bytes, error);
    }
    mr_example_encoder_deinit(&encoder);
    if (status == MR_OK) return mr_record_writer_close(writer, error);
    mr_record_writer_discard(writer);
    return status;
}

/* ---- Input ---- */

typedef struct input {
    mr_coordinator *coordinator;
    mr_queue *paths, *batches;
    mr_reader *reader;
    mr_example_parser *parser;
} input;

/* Reads the next flower. Several threads do so at a time. */
static mr_status read_flower(void *context, mr_element *flower, mr_error *error)
{
    const input *in = context;
    mr_tensor key = {0}, record = {0};
    MR_TRY(mr_reader_read(in->reader, in->paths, &key, &record, error));
    mr_status status = mr_example_parse(in->parser, mr_tensor_strings(&record), 1, true, flower->tensors, error);
    const mr_string at = mr_tensor_strings(&key)[0]; /* the file and the offset in it */
    if (status == MR_OK)
        flower->count = 2;
    else
        status = mr_fail_prefix(error, status, "%.*s", (int)at.size_bytes, at.data);
    mr_tensor_deinit(&key);
    mr_tensor_deinit(&record);
    return status;
}

/* string_input_producer, a reader, and shuffle_batch of tf.train. The files are read again and again. */
static mr_status open_input(input *in, const char *const *paths, mr_error *error)
{
    const mr_feature features[] = {{.name = "features", .dtype = MR_FLOAT, .shape = MR_SHAPE(FEATURES)},
                                   {.name = "species", .dtype = MR_INT64, .shape = MR_SCALAR}};
    const mr_element_spec flower = {
        .count = 2, .dtypes = {MR_FLOAT, MR_INT64}, .shapes = {MR_SHAPE(FEATURES), MR_SCALAR}};
    const mr_train_batch_options *options = MR_OPTIONS(mr_train_batch_options, .batch_size = BATCH, .shuffle = true,
                                                       .capacity = 500, .min_after_dequeue = 200);
    mr_producer producers[THREADS];
    for (int i = 0; i < THREADS; i++) producers[i] = (mr_producer){.produce = read_flower, .context = in};
    MR_TRY(mr_coordinator_new(&in->coordinator, error));
    MR_TRY(mr_string_input_producer(paths, FILES, nullptr, in->coordinator, &in->paths, error));
    MR_TRY(mr_reader_new(MR_READER_TF_RECORD, nullptr, &in->reader, error));
    MR_TRY(mr_example_parser_new(features, 2, &in->parser, error));
    return mr_train_batch(producers, THREADS, &flower, options, in->coordinator, &in->batches, error);
}

/* Stops the threads, and returns the first error of one of them. */
static mr_status close_input(input *in, mr_error *error)
{
    mr_status status = MR_OK;
    if (in->coordinator != nullptr) {
        mr_coordinator_request_stop(in->coordinator, nullptr);
        status = mr_coordinator_join(in->coordinator, -1, error);
    }
    mr_coordinator_free(in->coordinator);
    mr_queue_unref(in->paths);
    mr_queue_unref(in->batches);
    mr_reader_free(in->reader);
    mr_example_parser_free(in->parser);
    return status;
}

/* ---- Training ---- */

typedef struct model {
    mr_output features, species, loss, accuracy; /* float [BATCH, FEATURES], int64 [BATCH], scalars */
    mr_node *train, *init;
} model;

static model build(mr_graph *g)
{
    model m = {0};
    m.features = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(BATCH, FEATURES), .name = "features");
    m.species = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(BATCH), .name = "species");
    mr_output hidden = mr_layer_dense(g, m.features, .units = 16, .activation = mr_activation_relu);
    mr_output logits = mr_layer_dense(g, hidden, .units = SPECIES);
    m.loss = mr_loss_sparse_softmax_cross_entropy(g, m.species, logits);
    m.accuracy = mr_accuracy(g, m.species, logits);
    m.train = mr_minimize(g, mr_adam(.learning_rate = 0.01f), m.loss, (mr_output){0});
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

static mr_status learn(mr_session *session, const model *m, input *in, int steps, mr_error *error)
{
    mr_element flowers = {0};
    mr_tensor results[2] = {0};
    mr_status status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->init, 1, error);
    for (int step = 1; step <= steps && status == MR_OK; step++) {
        status = mr_train_batch_next(in->batches, &flowers, error);
        if (status != MR_OK) break;
        mr_feeds feeds = MR_FEEDS({m->features, flowers.tensors[0]}, {m->species, flowers.tensors[1]});
        status = mr_session_run(session, feeds, MR_OUTPUTS(m->loss, m->accuracy), results, &m->train, 1, error);
        if (status == MR_OK && (step % 100 == 0 || step == steps))
            printf("step %d  loss %.4f  accuracy %.0f %%\n", step, (double)mr_tensor_floats(&results[0])[0],
                   100 * (double)mr_tensor_floats(&results[1])[0]);
        for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    }
    mr_element_deinit(&flowers);
    if (status == MR_OK)
        printf("read: %lld records, %lld complete files\n", (long long)mr_reader_records_produced(in->reader),
               (long long)mr_reader_work_units_completed(in->reader));
    return status;
}

static mr_status train(const char *const *paths, int steps, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    input in = {0};
    mr_graph_set_seed(g, 1);
    model m = build(g);
    mr_status status = mr_session_new(g, nullptr, &session, error);
    for (int i = 0; i < FILES && status == MR_OK; i++) status = write_file(paths[i], error);
    if (status == MR_OK) status = open_input(&in, paths, error);
    if (status == MR_OK) status = learn(session, &m, &in, steps, error);
    /* If a thread fails, the queue of batches ends; the reason is the error of the thread. */
    mr_status stopped = close_input(&in, error);
    mr_session_free(session);
    mr_graph_free(g);
    return stopped != MR_OK ? stopped : status;
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 500;
    if (argc > 2 || *end != '\0' || steps < 1 || steps > 1000000)
        return fprintf(stderr, "usage: queue-training [STEPS]\n"), 2;
    char directory[1024], texts[FILES][1100];
    const char *paths[FILES], *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/flowers-XXXXXX", parent != nullptr ? parent : "/tmp");
    if (mkdtemp(directory) == nullptr) return fprintf(stderr, "queue-training: cannot create %s: %m\n", directory), 1;
    for (int i = 0; i < FILES; i++) {
        snprintf(texts[i], sizeof texts[i], "%s/%05d-of-%05d.tfrecord", directory, i, FILES);
        paths[i] = texts[i];
    }
    mr_error error = {0};
    mr_status status = train(paths, (int)steps, &error);
    for (int i = 0; i < FILES; i++) unlink(paths[i]);
    rmdir(directory);
    if (status != MR_OK) fprintf(stderr, "queue-training: %s\n", error.message);
    return status == MR_OK ? 0 : 1;
}
