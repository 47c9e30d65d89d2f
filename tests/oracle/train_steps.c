/* Trains a small network for 50 steps with the named optimizer, for train_oracle.py, which imports the MetaGraphDef,
 * restores the first checkpoint and takes the same steps with TensorFlow.
 *
 *     train_steps DIRECTORY adam|momentum|nesterov|descent
 *
 * Writes DIRECTORY/model.ckpt-0 and -50. Prints the loss of each step, and the names of the variables and the train
 * op. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 8, SIZE = 12, CHANNELS = 3, CLASSES = 5, STEPS = 50 };

typedef struct model {
    mr_output x, y, loss;
    mr_node *train;
} model;

static model build(mr_graph *g, const char *kind)
{
    model m = {0};
    m.x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, SIZE, SIZE, CHANNELS), .name = "x");
    m.y = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1), .name = "y");
    mr_output h = mr_layer_conv2d(g, m.x, .filters = 8, .kernel_size = 3, .same = true,
                                  .activation = mr_activation_relu, .weight_decay = 1e-2f);
    h = mr_relu(g, mr_layer_batch_normalization(g, h, .training = true)); /* without ReLU, beta would have no effect */
    h = mr_layer_max_pool(g, h, .pool_size = 2);
    h = mr_layer_conv2d(g, h, .filters = 6, .kernel_size = 3, .strides = 2, .use_bias = false);
    h = mr_layer_batch_normalization(g, h, .training = true, .momentum = 0.9f);
    h = mr_layer_average_pool(g, h, .pool_size = 2);
    h = mr_layer_dropout(g, mr_layer_flatten(g, h), .training = false, .rate = 0.5f);
    mr_output logits = mr_layer_dense(g, h, .units = CLASSES);
    mr_loss_sparse_softmax_cross_entropy(g, m.y, logits);
    m.loss = mr_loss_total(g);
    mr_variable step = mr_global_step(g);
    mr_output rate = mr_exponential_decay(g, 0.02f, step.value, 20, 0.8f, false);
    mr_optimizer optimizer = *mr_gradient_descent(.learning_rate_output = rate);
    if (strcmp(kind, "adam") == 0) optimizer = *mr_adam(.learning_rate_output = rate);
    if (strcmp(kind, "momentum") == 0) optimizer = *mr_momentum(.learning_rate_output = rate, .momentum = 0.9f);
    if (strcmp(kind, "nesterov") == 0)
        optimizer = *mr_momentum(.learning_rate_output = rate, .momentum = 0.9f, .nesterov = true);
    m.train = mr_minimize(g, &optimizer, m.loss, step.ref);
    return m;
}

static mr_status run(mr_graph *g, const char *directory, const char *kind, mr_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/model.ckpt", directory);
    mr_graph_set_seed(g, 42);
    model m = build(g, kind);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_saver *saver = mr_saver_new(g);
    mr_session *session = nullptr;
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    MR_TRY(mr_saver_save(saver, session, path, 0, error));
    mr_tensor x = {0}, y = {0}, loss = {0};
    MR_TRY(mr_tensor_init(&x, MR_FLOAT, MR_SHAPE(BATCH, SIZE, SIZE, CHANNELS), error));
    MR_TRY(mr_tensor_init(&y, MR_INT64, MR_SHAPE(BATCH), error));
    for (int64_t step = 0; step < STEPS; step++) {
        for (int64_t i = 0; i < mr_tensor_count(&x); i++)
            mr_tensor_floats(&x)[i] = (float)((i * i * 31 + i * 7919 + step * 104729) % 1000) / 500 - 1;
        for (int64_t i = 0; i < BATCH; i++) mr_tensor_int64s(&y)[i] = (i + step) % CLASSES;
        MR_TRY(mr_session_run(session, MR_FEEDS({m.x, x}, {m.y, y}), MR_OUTPUTS(m.loss), &loss, &m.train, 1, error));
        printf("loss %.9g\n", (double)mr_tensor_floats(&loss)[0]);
        mr_tensor_deinit(&loss);
    }
    MR_TRY(mr_saver_save(saver, session, path, STEPS, error));
    printf("train %s\nfetch %s\n", mr_node_name(m.train), mr_node_name(m.loss.node));
    for (int32_t i = 0; i < mr_graph_variable_count(g, MR_GLOBAL_VARIABLES); i++)
        printf("variable %s\n", mr_node_name(mr_graph_variable(g, MR_GLOBAL_VARIABLES, i).ref.node));
    mr_tensor_deinit(&x);
    mr_tensor_deinit(&y);
    mr_saver_free(saver);
    mr_session_free(session);
    return MR_OK;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_status status = run(g, argv[1], argv[2], &error);
    if (status != MR_OK) fprintf(stderr, "train_steps: %s\n", error.message);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
