/* Layers, learning rate decays, and the training loop: what it saves, where it resumes, and that a resumed run equals
 * the uninterrupted one bit for bit, also after a kill. */
#include "tests/kill.h"

#include <millrace/millrace.h>

TEST(layers_are_named_as_tensorflows)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 8, 8, 3));
    mr_output h = mr_layer_conv2d(g, x, .filters = 4, .kernel_size = 3, .same = true);
    h = mr_layer_conv2d(g, h, .filters = 4, .kernel_size = 3, .same = true, .weight_decay = 0.1f);
    h = mr_layer_batch_normalization(g, h, .training = true);
    h = mr_layer_dropout(g, mr_layer_flatten(g, mr_layer_max_pool(g, h, .pool_size = 2)), .rate = 0.5f,
                         .training = true);
    h = mr_layer_dense(g, h, .units = 10, .name = "logits");
    CHECK_OK(mr_graph_status(g, &error));
    static const char *const names[] = {
        "conv2d/kernel/read",
        "conv2d/bias/Assign",
        "conv2d_1/kernel",
        "conv2d_1/Conv2D",
        "conv2d_1/BiasAdd",
        "conv2d_1/kernel/Regularizer/l2_regularizer",
        "flatten/Reshape",
        "batch_normalization/gamma",
        "batch_normalization/moving_variance",
        "max_pooling2d/MaxPool",
        "dropout/dropout/SelectV2",
        "batch_normalization/AssignMovingAvg_1",
        "logits/MatMul",
        "logits/bias/Initializer/zeros",
        "conv2d/kernel/Initializer/random_uniform/RandomUniform",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mr_graph_find(g, names[i]) == nullptr) test_fail(__FILE__, __LINE__, "there is no %s", names[i]);
    CHECK(mr_shape_equal(mr_output_shape(h), MR_SHAPE(-1, 10)));
    CHECK_EQ(mr_graph_collection_count(g, MR_UPDATE_OPS), 2);
    CHECK_EQ(mr_graph_collection_count(g, MR_REGULARIZATION_LOSSES), 1);
    CHECK_EQ(mr_graph_variable_count(g, MR_TRAINABLE_VARIABLES), 8);
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 10);
    mr_graph_free(g);
}

TEST(layers_say_what_does_not_fit)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_push_scope(g, "tower");
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 8));
    mr_output h = mr_layer_conv2d(g, x, .filters = 4, .kernel_size = 3, .same = true);
    mr_minimize(g, mr_adam(.learning_rate = 1), mr_loss_mean_squared_error(g, h, h), (mr_output){0});
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "tower/conv2d");
    CHECK_CONTAINS(error.message, "[?,8]");
    mr_graph_free(g);
}

static float value_of(mr_graph *g, mr_output output)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor result = {0};
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(output), &result, nullptr, 0, &error));
    float value = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    mr_session_free(session);
    return value;
}

TEST(learning_rates_decay_as_in_tensorflow)
{
    mr_graph *g = mr_graph_new();
    mr_output step = mr_constant_int64(g, 30);
    CHECK_NEAR(value_of(g, mr_exponential_decay(g, 0.1f, step, 20, 0.5f, false)), 0.1 * pow(0.5, 1.5), 1e-7);
    CHECK_NEAR(value_of(g, mr_exponential_decay(g, 0.1f, step, 20, 0.5f, true)), 0.05, 1e-7);
    CHECK_NEAR(value_of(g, mr_cosine_decay(g, 0.1f, step, 60, 0)), 0.05, 1e-7);
    CHECK_NEAR(value_of(g, mr_cosine_decay(g, 0.1f, step, 20, 0.1f)), 0.01, 1e-7);
    mr_graph_free(g);
}

/* A run with everything that must be resumed: shuffled data, dropout, Adam's slots, batch normalization. */
static mr_status train(const char *directory, int64_t stop, int64_t save_checkpoint_steps, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_graph_set_seed(g, 3);
    float images[40 * 36];
    int64_t labels[40];
    for (int i = 0; i < 40 * 36; i++) images[i] = (float)((i * 37 + i * i) % 101) / 50 - 1;
    for (int i = 0; i < 40; i++) labels[i] = i * i % 3;
    mr_tensor components[2];
    MR_TRY(mr_tensor_init_copy(&components[0], MR_FLOAT, MR_SHAPE(40, 6, 6, 1), images, error));
    MR_TRY(mr_tensor_init_copy(&components[1], MR_INT64, MR_SHAPE(40), labels, error));
    mr_dataset *d = mr_dataset_from_slices(components, 2);
    d = mr_dataset_batch(mr_dataset_repeat(mr_dataset_shuffle(d, .seed = 5), MR_INFINITE), 8, .drop_remainder = true);
    d = mr_dataset_prefetch(d, 2);
    mr_output batch[2] = {0};
    mr_graph_iterator(g, "data", d, nullptr, batch);
    mr_output h = mr_layer_conv2d(g, batch[0], .filters = 4, .kernel_size = 3, .same = true);
    h = mr_layer_batch_normalization(g, h, .training = true);
    h = mr_layer_dropout(g, mr_layer_flatten(g, mr_relu(g, h)), .rate = 0.4f, .training = true);
    mr_output loss = mr_loss_sparse_softmax_cross_entropy(g, batch[1], mr_layer_dense(g, h, .units = 3));
    mr_summary_scalar(g, "loss", loss);
    mr_node *update = mr_minimize(g, mr_adam(.learning_rate = 0.01f), loss, mr_global_step(g).ref);
    const mr_session_options session = {.size = sizeof session, .threads = 2};
    mr_status status =
        mr_training_run(g, update,
                        MR_TRAINING_OPTIONS(.checkpoint_dir = directory, .last_step = stop,
                                            .save_checkpoint_steps = save_checkpoint_steps, .save_summaries_steps = 5,
                                            .loss = loss, .session = &session),
                        error);
    mr_dataset_free(d);
    mr_tensor_deinit(&components[0]);
    mr_tensor_deinit(&components[1]);
    mr_graph_free(g);
    return status;
}

/* Compares every variable of two checkpoints bit for bit. */
static void check_equal(const char *a, const char *b)
{
    mr_error error = {0};
    mr_checkpoint_reader *first = nullptr, *second = nullptr;
    CHECK_OK(mr_checkpoint_reader_open(a, &first, &error));
    CHECK_OK(mr_checkpoint_reader_open(b, &second, &error));
    CHECK_EQ(mr_checkpoint_count(first), mr_checkpoint_count(second));
    CHECK(mr_checkpoint_count(first) > 20);
    for (int32_t i = 0; i < mr_checkpoint_count(first); i++) {
        mr_dtype dtype = MR_DTYPE_INVALID;
        const char *key = mr_checkpoint_key(first, i, &dtype, nullptr);
        mr_tensor x = {0}, y = {0};
        CHECK_OK(mr_checkpoint_read(first, key, &x, &error));
        CHECK_OK(mr_checkpoint_read(second, key, &y, &error));
        bool same = dtype == MR_STRING ? mr_string_equal(mr_tensor_strings(&x)[0], mr_tensor_strings(&y)[0])
                                       : memcmp(x.data, y.data, mr_tensor_size_bytes(&x)) == 0;
        if (!same) test_fail(__FILE__, __LINE__, "%s differs between %s and %s", key, a, b);
        mr_tensor_deinit(&x);
        mr_tensor_deinit(&y);
    }
    mr_checkpoint_reader_close(first);
    mr_checkpoint_reader_close(second);
}

TEST(training_resumed_equals_unbroken)
{
    mr_error error = {0};
    CHECK_OK(train(test_path("whole"), 23, 100, &error));
    CHECK_OK(train(test_path("parts"), 7, 100, &error));
    CHECK_OK(train(test_path("parts"), 16, 4, &error));
    CHECK_OK(train(test_path("parts"), 23, 100, &error));
    check_equal(test_path("whole/model.ckpt-23"), test_path("parts/model.ckpt-23"));
    CHECK_OK(train(test_path("parts"), 23, 100, &error)); /* nothing left to do */
}

TEST(training_survives_being_killed)
{
    mr_error error = {0};
    CHECK_OK(train(test_path("whole"), 60, 100, &error));
    for (int round = 0; round < 8; round++) {
        int watch = kill_watch(test_path("killed")), how = 0;
        pid_t child = fork();
        if (child == 0) {
            mr_status status = train(test_path("killed"), 60, 1, &error);
            _exit(status == MR_OK ? 0 : 1);
        }
        (void)kill_at_change(child, watch, (int)((test_seed() * 7919 + (uint64_t)round * 104729) % 150), &how);
        CHECK(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
    }
    CHECK_OK(train(test_path("killed"), 60, 1, &error));
    check_equal(test_path("whole/model.ckpt-60"), test_path("killed/model.ckpt-60"));
}

static void collect(void *context, const char *text)
{
    strncat(context, text, 4000 - strlen(context));
}

TEST(training_tells_of_its_progress)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ONES});
    mr_output loss = mr_square(g, w.value);
    mr_node *update = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.25f), loss, mr_global_step(g).ref);
    char text[4096] = "";
    CHECK_OK(mr_training_run(g, update,
                             MR_TRAINING_OPTIONS(.last_step = 3, .loss = loss, .progress = collect,
                                                 .progress_context = text, .unit = "widgets", .units_per_step = 10),
                             &error));
    CHECK_CONTAINS(text, "step 3/3  loss 0.0625");
    CHECK_CONTAINS(text, "widgets/s\n");
    mr_graph_free(g);
}

TEST(training_ends_with_the_data)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_dataset *d = mr_dataset_range(0, 5, 1);
    mr_output element;
    mr_graph_iterator(g, "numbers", d, nullptr, &element);
    mr_variable sum = mr_get_variable(g, "sum", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ZEROS});
    mr_node *add = mr_assign_add(g, sum.ref, mr_cast(g, element, MR_FLOAT)).node;
    mr_training *training = nullptr;
    CHECK_OK(mr_training_new(g, MR_TRAINING_OPTIONS(.checkpoint_dir = test_path("run")), &training, &error));
    mr_status status = MR_OK;
    while (status == MR_OK) status = mr_training_step(training, add, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &error);
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    CHECK_EQ(mr_training_global_step(training), 5);
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(mr_training_session(training), sum.ref, &value, &error));
    CHECK_NEAR(mr_tensor_floats(&value)[0], 10, 0);
    mr_tensor_deinit(&value);
    char latest[4096];
    CHECK_OK(mr_latest_checkpoint(test_path("run"), latest, sizeof latest, &error));
    CHECK_CONTAINS(latest, "model.ckpt-5");
    mr_training_free(training);
    mr_dataset_free(d);
    mr_graph_free(g);
}
