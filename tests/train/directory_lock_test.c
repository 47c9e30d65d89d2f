/* Two runs with one checkpoint directory: the second one fails and changes nothing. */
#include "tests/test.h"

#include <millrace/millrace.h>

#include <sys/wait.h>
#include <unistd.h>

typedef struct model {
    mr_graph *graph;
    mr_node *train;
} model;

static model build(void)
{
    model m = {.graph = mr_graph_new()};
    mr_variable w = mr_get_variable(m.graph, "w", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ONES});
    mr_output loss = mr_square(m.graph, w.value);
    m.train = mr_minimize(m.graph, mr_gradient_descent(.learning_rate = 0.01f), loss, mr_global_step(m.graph).ref);
    return m;
}

static mr_status begin(model *m, mr_training **training, mr_error *error)
{
    return mr_training_new(m->graph, MR_TRAINING_OPTIONS(.checkpoint_dir = test_path("run"), .last_step = 3), training,
                           error);
}

TEST(training_directory_belongs_to_one_run)
{
    mr_error error = {0};
    model first = build(), second = build();
    mr_training *one = nullptr, *two = nullptr;
    CHECK_OK(begin(&first, &one, &error));
    CHECK_STATUS(begin(&second, &two, &error), MR_ABORTED);
    CHECK(two == nullptr);
    CHECK_CONTAINS(error.message, "run: another training run is using this directory");
    CHECK_OK(mr_training_step(one, first.train, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &error));
    CHECK_OK(mr_training_save(one, &error));
    char latest[4096];
    CHECK_OK(mr_latest_checkpoint(test_path("run"), latest, sizeof latest, &error));
    CHECK_CONTAINS(latest, "model.ckpt-1");
    mr_training_free(one);
    CHECK_OK(begin(&second, &two, &error));
    CHECK_EQ(mr_training_global_step(two), 1);
    mr_training_free(two);
    mr_graph_free(first.graph);
    mr_graph_free(second.graph);
}

/* The lock ends with the process, so that a killed run can be resumed. */
TEST(training_directory_is_free_after_a_crash)
{
    mr_error error = {0};
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        model m = build();
        mr_training *training = nullptr;
        _exit(begin(&m, &training, &error) == MR_OK ? 0 : 1);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    model m = build();
    mr_training *training = nullptr;
    CHECK_OK(begin(&m, &training, &error));
    mr_training_free(training);
    mr_graph_free(m.graph);
}
