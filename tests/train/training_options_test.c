/* The options of the training loop: each one has an effect when changed alone, and errors name invalid ones. */
#include "tests/test.h"

#include <dirent.h>
#include <millrace/millrace.h>

typedef struct model {
    mr_graph *graph;
    mr_node *train;
    mr_output loss;
} model;

/* The data has ten elements; a run of more steps reaches the end. */
static model build(void)
{
    model m = {.graph = mr_graph_new()};
    mr_graph *g = m.graph;
    mr_dataset *d = mr_dataset_range(0, 10, 1);
    mr_output number = {0};
    mr_graph_iterator(g, "numbers", d, nullptr, &number);
    mr_dataset_free(d);
    mr_variable w = mr_get_variable(g, "w", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ONES});
    m.loss = mr_square(g, mr_sub(g, w.value, mr_cast(g, number, MR_FLOAT)), .name = "loss");
    mr_summary_scalar(g, "loss", m.loss);
    m.train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.01f), m.loss, mr_global_step(g).ref);
    return m;
}

static void collect(void *context, const char *text)
{
    strncat(context, text, 4000 - strlen(context));
}

/* The number of files in the directory whose names contain `part`. */
static int files(const char *directory, const char *part)
{
    int count = 0;
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries != nullptr && (entry = readdir(entries)) != nullptr;)
        count += strstr(entry->d_name, part) != nullptr;
    if (entries != nullptr) closedir(entries);
    return count;
}

/* Runs with these options and last_step 6; stores the progress report in *text. */
#define RUN(directory, text, ...)                                                                                      \
    do {                                                                                                               \
        mr_error error = {0};                                                                                          \
        model m = build();                                                                                             \
        *(text) = '\0';                                                                                                \
        CHECK_OK(mr_training_run(m.graph, m.train,                                                                     \
                                 MR_TRAINING_OPTIONS(.checkpoint_dir = (directory), .last_step = 6, .loss = m.loss,    \
                                                     .progress = collect, .progress_context = (text), __VA_ARGS__),    \
                                 &error));                                                                             \
        mr_graph_free(m.graph);                                                                                        \
    } while (0)

#define REFUSE(part, ...)                                                                                              \
    do {                                                                                                               \
        mr_error error = {0};                                                                                          \
        model m = build();                                                                                             \
        mr_training *training = nullptr;                                                                               \
        CHECK_STATUS(mr_training_new(m.graph, MR_TRAINING_OPTIONS(__VA_ARGS__), &training, &error),                    \
                     MR_INVALID_ARGUMENT);                                                                             \
        CHECK_CONTAINS(error.message, part);                                                                           \
        CHECK(training == nullptr);                                                                                    \
        mr_graph_free(m.graph);                                                                                        \
    } while (0)

TEST(training_options_have_an_effect_each_alone)
{
    char text[4096];
    RUN(test_path("a"), text, .is_terminal = false);
    CHECK_EQ(files(test_path("a"), ".index"), 2); /* steps 0 and 6 */
    CHECK_EQ(files(test_path("a"), "tfevents"), 1);
    CHECK_CONTAINS(text, "step 6/6");
    CHECK_CONTAINS(text, " steps/s");
    CHECK(strchr(text, '\r') == nullptr);
    RUN(test_path("b"), text, .save_checkpoint_steps = 2);
    CHECK_EQ(files(test_path("b"), ".index"), 4);
    RUN(test_path("c"), text, .save_checkpoint_steps = 0);
    CHECK_EQ(files(test_path("c"), ".index"), 2);
    RUN(test_path("d"), text, .save_checkpoint_steps = 1);
    CHECK_EQ(files(test_path("d"), ".index"), 5);
    RUN(test_path("e"), text, .save_checkpoint_steps = 1, .max_to_keep = 0);
    CHECK_EQ(files(test_path("e"), ".index"), 7);
    RUN(test_path("f"), text, .save_checkpoint_steps = 1, .max_to_keep = 1);
    CHECK_EQ(files(test_path("f"), ".index"), 1);
    RUN(nullptr, text, .is_terminal = true);
    CHECK(strchr(text, '\r') != nullptr);
    RUN(nullptr, text, .unit = "widgets", .units_per_step = 3);
    CHECK_CONTAINS(text, " widgets/s");
    RUN(nullptr, text, .last_step = 3);
    CHECK_CONTAINS(text, "step 3/3");
    RUN(nullptr, text, .last_step = 0);
    CHECK_CONTAINS(text, "nothing left to do");
    RUN(nullptr, text, .last_step = MR_INFINITE);
    CHECK_CONTAINS(text, "step 10");
    RUN(nullptr, text, .progress = nullptr);
    CHECK_STR(text, "");
    RUN(nullptr, text, .loss = {0});
    CHECK(strstr(text, "loss") == nullptr);
}

static int64_t event_bytes(const char *directory)
{
    DIR *entries = opendir(directory);
    CHECK(entries != nullptr);
    int64_t size = 0;
    for (struct dirent *entry; (entry = readdir(entries)) != nullptr;) {
        if (strstr(entry->d_name, "tfevents") == nullptr) continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        FILE *file = fopen(path, "rb");
        CHECK(file != nullptr);
        fseek(file, 0, SEEK_END);
        size += ftell(file);
        fclose(file);
    }
    closedir(entries);
    return size;
}

TEST(training_summaries_are_written_at_the_interval)
{
    char text[4096];
    RUN(test_path("never"), text, .save_summaries_steps = 0);
    RUN(test_path("default"), text, .is_terminal = false);
    RUN(test_path("often"), text, .save_summaries_steps = 1);
    CHECK(event_bytes(test_path("never")) < event_bytes(test_path("default")));
    CHECK(event_bytes(test_path("default")) < event_bytes(test_path("often")));
}

TEST(training_options_that_are_wrong_are_named)
{
    REFUSE("training: last_step is -2", .last_step = -2);
    REFUSE("training: save_checkpoint_steps is -1", .checkpoint_dir = "run", .save_checkpoint_steps = -1);
    REFUSE("training: save_summaries_steps is -1", .checkpoint_dir = "run", .save_summaries_steps = -1);
    REFUSE("training: max_to_keep is -1", .checkpoint_dir = "run", .max_to_keep = -1);
    REFUSE("training: units_per_step is 0", .progress = collect, .units_per_step = 0);
    const mr_session_options session = {.size = sizeof session, .threads = -1};
    REFUSE("training: session.threads is -1", .session = &session);
    REFUSE("training: checkpoint_dir is empty", .checkpoint_dir = "");
    REFUSE("continue_on_nan_loss has no effect without loss", .continue_on_nan_loss = true);
    REFUSE("restart_data has no effect without checkpoint_dir", .restart_data = true);
    REFUSE("save_checkpoint_steps has no effect without checkpoint_dir", .save_checkpoint_steps = 1000);
    REFUSE("save_summaries_steps has no effect without checkpoint_dir", .save_summaries_steps = 0);
    REFUSE("max_to_keep has no effect without checkpoint_dir", .max_to_keep = 5);
    REFUSE("is_terminal has no effect without progress", .is_terminal = true);
    REFUSE("unit has no effect without progress", .unit = "images");
    REFUSE("units_per_step has no effect without progress", .units_per_step = 1);
    mr_graph *other = mr_graph_new();
    REFUSE("the loss belongs to another graph", .loss = mr_constant_float(other, 1));
    mr_graph_free(other);
}

/* Resumes at step 4 on data that has changed from 10 to 20 elements. */
TEST(training_restarts_the_data_on_request)
{
    char text[4096];
    RUN(test_path("run"), text, .last_step = 4);
    mr_error error = {0};
    for (int restart = 0; restart < 2; restart++) {
        mr_graph *g = mr_graph_new();
        mr_dataset *d = mr_dataset_range(100, 120, 1);
        mr_output number = {0};
        mr_graph_iterator(g, "numbers", d, nullptr, &number);
        mr_dataset_free(d);
        mr_variable w = mr_get_variable(g, "w", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ONES});
        mr_output loss = mr_square(g, mr_sub(g, w.value, mr_cast(g, number, MR_FLOAT)), .name = "loss");
        mr_node *train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.01f), loss, mr_global_step(g).ref);
        mr_training *training = nullptr;
        mr_status status = mr_training_new(
            g, MR_TRAINING_OPTIONS(.checkpoint_dir = test_path("run"), .restart_data = restart), &training, &error);
        CHECK_STATUS(status, restart ? MR_OK : MR_FAILED_PRECONDITION);
        mr_tensor first = {0};
        if (restart) {
            CHECK_EQ(mr_training_global_step(training), 4);
            CHECK_OK(mr_training_step(training, train, MR_NO_FEEDS, MR_OUTPUTS(number), &first, &error));
            CHECK_EQ(mr_tensor_int64s(&first)[0], 100);
        } else {
            CHECK_CONTAINS(error.message, "restart_data keeps the variables of this checkpoint");
        }
        mr_tensor_deinit(&first);
        mr_training_free(training);
        mr_graph_free(g);
    }
}
