/* mnist-softmax: classifies digits with one matrix (softmax regression) that is fed batch by batch.
 *
 *     mnist-softmax [DIRECTORY]
 *
 * DIRECTORY contains MNIST's four idx files; without it, digits are drawn by the program. */
#include "tools/common/digits.h"

#include <millrace/millrace.h>
#include <stdio.h>

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

/* One run over a batch: a training step, or only the accuracy. */
static mr_status run(mr_session *session, const model *m, const digits *d, int64_t index, int64_t size, bool training,
                     float *value, mr_error *error)
{
    mr_tensor images = {0}, labels = {0}, result = {0};
    MR_TRY(digits_batch(d, index, size, &images, &labels, error));
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
    MR_TRY(directory ? digits_read(&training, directory, "train", error) : digits_draw(&training, 6000, 1, error));
    MR_TRY(directory ? digits_read(&test, directory, "t10k", error) : digits_draw(&test, 1000, 2, error));

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
    digits_deinit(&training);
    digits_deinit(&test);
    return MR_OK;
}

int main(int argc, char **argv)
{
    if (argc > 2 || (argc > 1 && argv[1][0] == '-')) return fprintf(stderr, "usage: mnist-softmax [DIRECTORY]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_status status = train(g, argc > 1 ? argv[1] : nullptr, &error);
    if (status != MR_OK) fprintf(stderr, "mnist-softmax: %s\n", error.message);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
