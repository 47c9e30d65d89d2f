/* mnist-softmax: classifies digits with one matrix (softmax regression) that is fed batch by batch.
 *
 *     mnist-softmax DIRECTORY
 *
 * DIRECTORY contains MNIST's four idx files; `digits --out DIRECTORY` creates a small substitute. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>

static constexpr int64_t PIXELS = 28 * 28;

typedef struct digits {
    int64_t count;
    mr_tensor images; /* float [count, 784], 0 … 1 */
    mr_tensor labels; /* int64 [count] */
} digits;

/* Reads an idx file after its header: `count` items of item_bytes each. The caller frees the items. */
static mr_status read_idx(const char *directory, const char *name, size_t header_bytes, size_t item_bytes,
                          unsigned char **items, int64_t *count, mr_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-ubyte", directory, name);
    mr_input_file *file = nullptr;
    MR_TRY(mr_input_file_open(path, false, &file, error));
    uint64_t size = mr_input_file_size(file);
    *count = size < header_bytes ? 0 : (int64_t)((size - header_bytes) / item_bytes);
    size_t size_bytes = (size_t)*count * item_bytes, done = 0;
    *items = malloc(size_bytes + 1);
    mr_status status = *items != nullptr ? mr_input_file_read(file, header_bytes, *items, size_bytes, &done, error)
                                         : mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory", path);
    if (status == MR_OK && (*count == 0 || done != size_bytes))
        status = mr_fail(error, MR_DATA_LOSS, "%s: not an idx file of MNIST", path);
    mr_input_file_close(file);
    return status;
}

/* prefix  "train" or "t10k" */
static mr_status read_digits(digits *d, const char *directory, const char *prefix, mr_error *error)
{
    char images_name[32], labels_name[32];
    snprintf(images_name, sizeof images_name, "%s-images-idx3", prefix);
    snprintf(labels_name, sizeof labels_name, "%s-labels-idx1", prefix);
    unsigned char *images = nullptr, *labels = nullptr;
    int64_t label_count = 0;
    mr_status status = read_idx(directory, images_name, 16, PIXELS, &images, &d->count, error);
    if (status == MR_OK) status = read_idx(directory, labels_name, 8, 1, &labels, &label_count, error);
    if (status == MR_OK && label_count != d->count)
        status = mr_fail(error, MR_DATA_LOSS, "%s: %lld images, %lld labels", directory, (long long)d->count,
                         (long long)label_count);
    if (status == MR_OK) status = mr_tensor_init(&d->images, MR_FLOAT, MR_SHAPE(d->count, PIXELS), error);
    if (status == MR_OK) status = mr_tensor_init(&d->labels, MR_INT64, MR_SHAPE(d->count), error);
    for (int64_t i = 0; status == MR_OK && i < d->count * PIXELS; i++)
        mr_tensor_floats(&d->images)[i] = (float)images[i] / 255;
    for (int64_t i = 0; status == MR_OK && i < d->count; i++) mr_tensor_int64s(&d->labels)[i] = labels[i];
    free(images);
    free(labels);
    return status;
}

/* Returns batch `index` of `size` digits, starting over after the last full batch. The caller deinits both tensors. */
static mr_status batch(const digits *d, int64_t index, int64_t size, mr_tensor *images, mr_tensor *labels,
                       mr_error *error)
{
    int64_t batches = d->count / size;
    int64_t begin = batches > 0 ? index % batches * size : 0, end = batches > 0 ? begin + size : d->count;
    MR_TRY(mr_tensor_rows(&d->images, begin, end, images, error));
    return mr_tensor_rows(&d->labels, begin, end, labels, error);
}

typedef struct model {
    mr_output images, labels, loss, accuracy;
    mr_node *train, *init;
} model;

static model build(mr_graph *g)
{
    model m = {0};
    m.images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 784), .name = "images");
    m.labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1), .name = "labels");
    mr_output logits = mr_layer_dense(g, m.images, .units = 10);
    m.loss = mr_loss_sparse_softmax_cross_entropy(g, m.labels, logits);
    m.accuracy = mr_accuracy(g, m.labels, logits);
    m.train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.5f), m.loss, (mr_output){0});
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* One run with a batch: a training step, or only the accuracy. */
static mr_status run(mr_session *session, const model *m, const digits *d, int64_t index, int64_t size, bool training,
                     float *value, mr_error *error)
{
    mr_tensor images = {0}, labels = {0}, result = {0};
    MR_TRY(batch(d, index, size, &images, &labels, error));
    mr_feeds feeds = MR_FEEDS({m->images, images}, {m->labels, labels});
    mr_outputs fetch = MR_OUTPUTS(training ? m->loss : m->accuracy);
    mr_status status = mr_session_run(session, feeds, fetch, &result, &m->train, training ? 1 : 0, error);
    if (status == MR_OK) *value = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&images);
    mr_tensor_deinit(&labels);
    return status;
}

static mr_status train(mr_graph *g, const char *directory, mr_error *error)
{
    digits training = {0}, test = {0};
    MR_TRY(read_digits(&training, directory, "train", error));
    MR_TRY(read_digits(&test, directory, "t10k", error));

    mr_graph_set_seed(g, 1);
    model m = build(g);
    mr_session *session = nullptr;
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m.init, 1, error));

    float value = 0;
    for (int step = 1; step <= 1000; step++) {
        MR_TRY(run(session, &m, &training, step, 100, true, &value, error));
        if (step % 250 == 0) printf("step %4d  loss %.4f\n", step, (double)value);
    }
    MR_TRY(run(session, &m, &test, 0, test.count, false, &value, error));
    printf("test accuracy: %.1f %%\n", 100 * (double)value);

    mr_session_free(session);
    mr_tensor_deinit(&training.images);
    mr_tensor_deinit(&training.labels);
    mr_tensor_deinit(&test.images);
    mr_tensor_deinit(&test.labels);
    return MR_OK;
}

int main(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') return fprintf(stderr, "usage: mnist-softmax DIRECTORY\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_status status = train(g, argv[1], &error);
    if (status != MR_OK) fprintf(stderr, "mnist-softmax: %s\n", error.message);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
