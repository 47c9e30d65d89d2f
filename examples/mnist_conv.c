/* mnist-conv: classifies digits with a small convolutional network that is fed batch by batch.
 *
 *     mnist-conv [DIRECTORY]
 *
 * DIRECTORY contains MNIST's four idx files; without it, digits are drawn by the program. Whether dropout is active is
 * also fed, so that one graph serves training and testing. */
#include "tools/common/digits.h"

#include <millrace/millrace.h>
#include <stdio.h>

typedef struct model {
    mr_output images, labels, loss, accuracy, keep;
    mr_node *train, *init;
} model;

static model build(mr_graph *g)
{
    model m = {0};
    m.images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 784), .name = "images");
    m.labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1), .name = "labels");
    mr_output h = mr_reshape(g, m.images, mr_constant_ints(g, MR_INTS(-1, 28, 28, 1)));
    h = mr_layer_conv2d(g, h, .filters = 12, .kernel_size = 5, .same = true, .activation = mr_activation_relu);
    h = mr_layer_max_pool(g, h, .pool_size = 2);
    h = mr_layer_conv2d(g, h, .filters = 24, .kernel_size = 5, .same = true, .activation = mr_activation_relu);
    h = mr_layer_max_pool(g, h, .pool_size = 2);
    h = mr_layer_dense(g, mr_layer_flatten(g, h), .units = 64, .activation = mr_activation_relu);

    /* Dropout with a fed keep probability; 1 disables it. */
    m.keep = mr_placeholder_with_default(g, mr_constant_float(g, 1.0f), .shape = MR_SCALAR, .name = "keep");
    mr_output unit = mr_random_uniform(g, mr_shape_of(g, h), MR_FLOAT, .seed = 1, .seed2 = 1);
    mr_output kept = mr_cast(g, mr_less(g, unit, m.keep), MR_FLOAT);
    h = mr_real_div(g, mr_mul(g, h, kept), m.keep);

    mr_output logits = mr_layer_dense(g, h, .units = 10);
    m.loss = mr_loss_sparse_softmax_cross_entropy(g, m.labels, logits);
    m.accuracy = mr_accuracy(g, m.labels, logits);
    m.train = mr_minimize(g, mr_adam(.learning_rate = 2e-3f), m.loss, (mr_output){0});
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

static mr_status step(mr_session *session, const model *m, const digits *d, int64_t index, float *loss, mr_error *error)
{
    mr_tensor images = {0}, labels = {0}, keep = {0}, result = {0};
    MR_TRY(digits_batch(d, index, 50, &images, &labels, error));
    MR_TRY(mr_tensor_init_float(&keep, 0.6f, error));
    mr_feeds feeds = MR_FEEDS({m->images, images}, {m->labels, labels}, {m->keep, keep});
    MR_TRY(mr_session_run(session, feeds, MR_OUTPUTS(m->loss), &result, &m->train, 1, error));
    *loss = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&keep);
    mr_tensor_deinit(&labels);
    mr_tensor_deinit(&images);
    return MR_OK;
}

static mr_status test(mr_session *session, const model *m, const digits *d, double *accuracy, mr_error *error)
{
    int64_t batches = d->count / 100;
    *accuracy = 0;
    for (int64_t i = 0; i < batches; i++) {
        mr_tensor images = {0}, labels = {0}, result = {0};
        MR_TRY(digits_batch(d, i, 100, &images, &labels, error));
        mr_feeds feeds = MR_FEEDS({m->images, images}, {m->labels, labels});
        MR_TRY(mr_session_run(session, feeds, MR_OUTPUTS(m->accuracy), &result, nullptr, 0, error));
        *accuracy += (double)mr_tensor_floats(&result)[0] / (double)batches;
        mr_tensor_deinit(&result);
        mr_tensor_deinit(&labels);
        mr_tensor_deinit(&images);
    }
    return MR_OK;
}

static mr_status train(mr_graph *g, const char *directory, mr_error *error)
{
    digits training = {0}, testing = {0};
    MR_TRY(directory ? digits_read(&training, directory, "train", error) : digits_draw(&training, 6000, 1, error));
    MR_TRY(directory ? digits_read(&testing, directory, "t10k", error) : digits_draw(&testing, 1000, 2, error));

    mr_graph_set_seed(g, 1);
    model m = build(g);
    mr_session *session = nullptr;
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m.init, 1, error));

    float loss = 0;
    double accuracy = 0;
    for (int i = 1; i <= 240; i++) {
        MR_TRY(step(session, &m, &training, i, &loss, error));
        if (i % 60 == 0) printf("step %3d  loss %.4f\n", i, (double)loss);
    }
    MR_TRY(test(session, &m, &testing, &accuracy, error));
    printf("test accuracy: %.1f %%\n", 100 * accuracy);

    mr_session_free(session);
    digits_deinit(&training);
    digits_deinit(&testing);
    return MR_OK;
}

int main(int argc, char **argv)
{
    if (argc > 2 || (argc > 1 && argv[1][0] == '-')) return fprintf(stderr, "usage: mnist-conv [DIRECTORY]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_status status = train(g, argc > 1 ? argv[1] : nullptr, &error);
    if (status != MR_OK) fprintf(stderr, "mnist-conv: %s\n", error.message);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
