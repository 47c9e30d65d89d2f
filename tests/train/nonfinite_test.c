/* A loss that is not finite: the step ends before it updates variables, the error names the step and the first tensor
 * that is not finite, and earlier checkpoints are unchanged. */
#include "tests/test.h"

#include <millrace/millrace.h>

typedef enum fault { NONE, BAD_DATA, OVERFLOW, LOG_OF_ZERO } fault;

typedef struct model {
    mr_graph *graph;
    mr_node *train;
    mr_output loss;
    mr_variable w;
} model;

/* loss = mean((w x)^2) over batches of 40 rows of 3; row `bad_row` is NaN. */
static model build(fault kind, int bad_row, float learning_rate)
{
    mr_error error = {0};
    model m = {.graph = mr_graph_new()};
    mr_graph *g = m.graph;
    float rows[40 * 3];
    for (int i = 0; i < 40 * 3; i++) rows[i] = (float)(i % 7) * 0.1f + 0.1f;
    for (int i = 0; kind == BAD_DATA && i < 3; i++) rows[3 * bad_row + i] = nanf("");
    mr_tensor component = {0};
    CHECK_OK(mr_tensor_init_copy(&component, MR_FLOAT, MR_SHAPE(40, 3), rows, &error));
    mr_dataset *d = mr_dataset_batch(mr_dataset_repeat(mr_dataset_from_slices(&component, 1), MR_INFINITE), 4);
    mr_output batch;
    mr_graph_iterator(g, "data", d, nullptr, &batch);
    mr_dataset_free(d);
    mr_tensor_deinit(&component);
    m.w = mr_get_variable(g, "w", MR_SHAPE(3), (mr_initializer){.kind = MR_INIT_ONES});
    mr_output h = mr_layer_dropout(g, batch, .rate = 0.2f, .training = true, .seed = 5);
    h = mr_mul(g, h, m.w.value, .name = "product");
    if (kind == LOG_OF_ZERO)
        h = mr_mul(g, mr_log(g, mr_sub(g, h, h), .name = "log"), mr_constant_float(g, 0), .name = "zeroed");
    m.loss = mr_mean(g, mr_square(g, h, .name = "square"), mr_constant_ints(g, MR_INTS(0, 1)), .name = "loss");
    m.train = mr_minimize(g, mr_gradient_descent(.learning_rate = learning_rate), m.loss, mr_global_step(g).ref);
    CHECK_OK(mr_graph_status(g, &error));
    return m;
}

static mr_status run(const model *m, const char *directory, int64_t stop, bool go_on, mr_error *error)
{
    const mr_session_options session = {.size = sizeof session, .threads = 2};
    *error = (mr_error){0};
    return mr_training_run(m->graph, m->train,
                           MR_TRAINING_OPTIONS(.checkpoint_dir = directory, .last_step = stop,
                                               .save_checkpoint_steps = 2, .save_summaries_steps = 0, .max_to_keep = 3,
                                               .loss = m->loss, .continue_on_nan_loss = go_on, .session = &session),
                           error);
}

static int64_t latest_step(const char *directory)
{
    mr_error error = {0};
    char path[4096];
    CHECK_OK(mr_latest_checkpoint(directory, path, sizeof path, &error));
    return strtoll(strrchr(path, '-') + 1, nullptr, 10);
}

/* Every variable of every checkpoint is finite. */
static void check_checkpoints(const char *directory, int64_t step)
{
    mr_error error = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s/model.ckpt-%lld", directory, (long long)step);
    mr_checkpoint_reader *reader = nullptr;
    mr_tensor value = {0};
    CHECK_OK(mr_checkpoint_reader_open(path, &reader, &error));
    CHECK_OK(mr_checkpoint_read(reader, "w", &value, &error));
    for (int i = 0; i < 3; i++) CHECK(isfinite(mr_tensor_floats(&value)[i]));
    mr_tensor_deinit(&value);
    mr_checkpoint_reader_close(reader);
}

TEST(nonfinite_data_stop_the_training_and_are_named)
{
    mr_error error = {0};
    model m = build(BAD_DATA, 26, 0.01f); /* in the seventh batch */
    CHECK_STATUS(run(&m, test_path("run"), 100, false, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message,
                   "step 7: loss:0 is not finite; the first tensor that is not finite is data_1:0: NaN at "
                   "element 6 of [4,3]");
    CHECK_CONTAINS(error.message, "run/model.ckpt-6");
    CHECK_EQ(latest_step(test_path("run")), 6);
    for (int64_t step = 2; step <= 6; step += 2) check_checkpoints(test_path("run"), step);
    mr_graph_free(m.graph);
}

TEST(nonfinite_operators_are_named)
{
    mr_error error = {0};
    model m = build(LOG_OF_ZERO, 0, 0.01f);
    CHECK_STATUS(run(&m, test_path("run"), 100, false, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message,
                   "step 1: loss:0 is not finite; the first tensor that is not finite is log:0: -inf at element");
    CHECK_CONTAINS(error.message, "and the first with a NaN is zeroed:0: NaN at element");
    mr_graph_free(m.graph);
}

/* With a learning rate that is too large, the loss grows until a square overflows, from one step to the next. */
TEST(nonfinite_divergence_keeps_earlier_checkpoints)
{
    mr_error error = {0};
    model m = build(NONE, 0, 1e6f);
    CHECK_STATUS(run(&m, test_path("run"), 100, false, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "is not finite; the first tensor that is not finite is square:0: inf at element");
    check_checkpoints(test_path("run"), latest_step(test_path("run")));
    mr_graph_free(m.graph);
}

/* The variables of the session are those from before the step, and random operators and data do not advance twice. */
TEST(nonfinite_step_leaves_the_variables_as_they_were)
{
    mr_error error = {0};
    model m = build(BAD_DATA, 9, 0.01f); /* in the third batch */
    mr_training *training = nullptr;
    CHECK_OK(mr_training_new(m.graph, MR_TRAINING_OPTIONS(.loss = m.loss), &training, &error));
    mr_tensor before = {0}, after = {0};
    for (int i = 0; i < 2; i++)
        CHECK_OK(mr_training_step(training, m.train, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &error));
    CHECK_OK(mr_session_read_variable(mr_training_session(training), m.w.ref, &before, &error));
    CHECK_STATUS(mr_training_step(training, m.train, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_OK(mr_session_read_variable(mr_training_session(training), m.w.ref, &after, &error));
    CHECK(memcmp(before.data, after.data, 3 * sizeof(float)) == 0);
    CHECK_EQ(mr_training_global_step(training), 2);
    CHECK_OK(mr_training_step(training, m.train, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &error)); /* the next batch */
    CHECK_EQ(mr_training_global_step(training), 3);
    mr_tensor_deinit(&before);
    mr_tensor_deinit(&after);
    mr_training_free(training);
    mr_graph_free(m.graph);
}

TEST(nonfinite_loss_can_be_ignored_but_is_not_saved)
{
    mr_error error = {0};
    model m = build(BAD_DATA, 26, 0.01f);
    CHECK_STATUS(run(&m, test_path("run"), 12, true, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "saving step 12: the variable w is not finite: NaN at element");
    CHECK_EQ(latest_step(test_path("run")), 6);
    check_checkpoints(test_path("run"), 6);
    mr_graph_free(m.graph);
}

/* Without `loss`, steps are not checked, but no checkpoint with such values is written. */
TEST(nonfinite_variables_are_not_saved)
{
    mr_error error = {0};
    model m = build(BAD_DATA, 26, 0.01f);
    CHECK_STATUS(mr_training_run(m.graph, m.train,
                                 MR_TRAINING_OPTIONS(.checkpoint_dir = test_path("run"), .last_step = 100,
                                                     .save_checkpoint_steps = 2, .max_to_keep = 2),
                                 &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "saving step 8: the variable w is not finite");
    CHECK_EQ(latest_step(test_path("run")), 6);
    mr_graph_free(m.graph);
}

/* A variable that is not trained may contain an infinity on purpose, for example as the initial best loss. */
TEST(nonfinite_untrained_variables_may_be_infinite)
{
    mr_error error = {0};
    model m = build(NONE, 0, 0.01f);
    mr_variable best = mr_variable_new(m.graph, "best", mr_constant_float(m.graph, INFINITY), .trainable = false);
    CHECK(best.ref.node != nullptr);
    CHECK_OK(run(&m, test_path("run"), 4, false, &error));
    CHECK_EQ(latest_step(test_path("run")), 4);
    mr_graph_free(m.graph);
}

TEST(nonfinite_feeds_are_named)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2), .name = "x");
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), (mr_initializer){.kind = MR_INIT_ONES});
    mr_output loss = mr_loss_mean_squared_error(g, x, w.value);
    mr_node *train = mr_minimize(g, mr_adam(), loss, mr_global_step(g).ref);
    mr_training *training = nullptr;
    CHECK_OK(mr_training_new(g, MR_TRAINING_OPTIONS(.loss = loss), &training, &error));
    mr_tensor value = {0};
    CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(2), (float[]){1, INFINITY}, &error));
    CHECK_STATUS(mr_training_step(training, train, MR_FEEDS({x, value}), (mr_outputs){0}, nullptr, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the first tensor that is not finite is the feed of x:0: inf at element 1 of [2]");
    mr_tensor_deinit(&value);
    mr_training_free(training);
    mr_graph_free(g);
}
