/* Images and labels are drawn once and fed in each step, so that every device gets the same data. */
#include "tests/cuda/model.h"

#include "base/random.h"

#include <stdio.h>
#include <time.h>

typedef struct model {
    mr_output images, labels, loss;
    mr_node *train, *init;
} model;

static mr_output block(mr_graph *g, mr_output h, int32_t filters, int32_t stride)
{
    h = mr_layer_conv2d(g, h, .filters = filters, .kernel_size = 3, .same = true, .strides = stride, .use_bias = false,
                        .weight_decay = 1e-4f);
    h = mr_layer_batch_normalization(g, h, .training = true);
    return mr_activation_relu(g, h);
}

static model build(mr_graph *g, model_size size)
{
    model m = {0};
    mr_graph_set_seed(g, 7);
    m.images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(size.batch, size.side, size.side, 3));
    m.labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(size.batch));
    mr_output h = block(g, m.images, size.filters, 1);
    h = mr_layer_max_pool(g, h, .pool_size = 2);
    h = block(g, h, 2 * size.filters, 2);
    h = mr_layer_average_pool(g, h, .pool_size = 2);
    h = block(g, h, 4 * size.filters, 1);
    h = mr_layer_global_average_pool(g, h);
    h = mr_layer_dropout(g, h, .rate = 0.25f, .training = true, .seed = 3);
    mr_output logits = mr_layer_dense(g, h, .units = size.classes, .weight_decay = 1e-4f);
    (void)mr_loss_sparse_softmax_cross_entropy(g, m.labels, logits);
    m.loss = mr_loss_total(g);
    m.train = mr_minimize(g, mr_adam(.learning_rate = 1e-3f), m.loss, mr_global_step(g).ref);
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

static mr_status draw(model_size size, mr_tensor *images, mr_tensor *labels, mr_error *error)
{
    mr_random random = mr_random_at(5, 0, 0, 0);
    MR_TRY(mr_tensor_init(images, MR_FLOAT, MR_SHAPE(size.batch, size.side, size.side, 3), error));
    MR_TRY(mr_tensor_init(labels, MR_INT64, MR_SHAPE(size.batch), error));
    for (int64_t i = 0; i < mr_tensor_count(images); i++)
        mr_tensor_floats(images)[i] = (float)mr_random_range(&random, -1, 1);
    for (int64_t i = 0; i < size.batch; i++)
        mr_tensor_int64s(labels)[i] = (int64_t)mr_random_below(&random, (uint64_t)size.classes);
    return MR_OK;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static mr_status run_steps(mr_session *session, const model *m, const mr_tensor *images, const mr_tensor *labels,
                           int32_t steps, float *losses, double *seconds, mr_error *error)
{
    double begin = now();
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->init, 1, error));
    for (int32_t i = 0; i < steps; i++) {
        mr_tensor loss = {0};
        if (i == 2) begin = now();
        MR_TRY(mr_session_run(session, MR_FEEDS({m->images, *images}, {m->labels, *labels}), MR_OUTPUTS(m->loss), &loss,
                              &m->train, 1, error));
        losses[i] = mr_tensor_floats(&loss)[0];
        mr_tensor_deinit(&loss);
    }
    if (seconds) *seconds = now() - begin;
    return MR_OK;
}

mr_status model_train(model_size size, const char *device, int32_t steps, float *losses, double *seconds, char *notes,
                      size_t notes_size, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_tensor images = {0}, labels = {0};
    mr_session_options options = {.size = sizeof options, .device = device, .log_device_placement = notes != nullptr};
    model m = build(g, size);
    mr_status status = draw(size, &images, &labels, error);
    if (status == MR_OK) status = mr_session_new(g, &options, &session, error);
    if (status == MR_OK) status = run_steps(session, &m, &images, &labels, steps, losses, seconds, error);
    if (session && notes) snprintf(notes, notes_size, "%s", mr_session_log(session));
    mr_session_free(session);
    mr_graph_free(g);
    mr_tensor_deinit(&images);
    mr_tensor_deinit(&labels);
    return status;
}
