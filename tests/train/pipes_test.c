/* Pipes with the names of files that are opened because of their names: refused, where opening them would block. */
#include "tests/train/monitored.h"

#include <sys/stat.h>
#include <unistd.h>

static void check_refused(mr_status status, const mr_error *error)
{
    if (status == MR_OK) test_fail(__FILE__, __LINE__, "a pipe was read");
    CHECK_CONTAINS(error->message, "is not a regular file");
}

/* Replaces a file by a pipe. */
static void make_pipe(const char *path)
{
    (void)unlink(path);
    CHECK_EQ(mkfifo(path, 0600), 0);
}

TEST(pipes_instead_of_checkpoints_are_refused)
{
    mr_error error = {0};
    char latest[1024];
    model m = build();
    mr_saver *saver = mr_saver_new(m.graph);
    mr_node *init = mr_initialize_variables(m.graph, MR_GLOBAL_VARIABLES, "init");
    mr_session *session = nullptr;
    mr_monitored_session *monitored = nullptr;
    CHECK_OK(mr_session_new(m.graph, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_saver_save(saver, session, test_path("run/c"), 1, &error));
    make_pipe(test_path("run/c-1.data-00000-of-00001"));
    check_refused(mr_saver_restore(saver, session, test_path("run/c-1"), &error), &error);
    make_pipe(test_path("run/c-1.index"));
    check_refused(mr_saver_restore(saver, session, test_path("run/c-1"), &error), &error);
    make_pipe(test_path("run/checkpoint"));
    check_refused(mr_latest_checkpoint(test_path("run"), latest, sizeof latest, &error), &error);
    check_refused(mr_monitored_session_new(m.graph,
                                           MR_OPTIONS(mr_monitored_session_options, .checkpoint_dir = test_path("run")),
                                           &monitored, &error),
                  &error);
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(m.graph);
}

TEST(pipes_in_saved_models_are_refused)
{
    mr_error error = {0};
    mr_model *model = nullptr;
    CHECK_EQ(mkdir(test_path("model"), 0700), 0);
    make_pipe(test_path("model/saved_model.pb"));
    check_refused(mr_model_open(test_path("model"), nullptr, &model, &error), &error);
}

/* An index is optional: the records are read without it. */
TEST(pipes_instead_of_indexes_are_ignored)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    const mr_record_writer_options options = {.size = sizeof options, .index = true};
    CHECK_OK(mr_record_writer_open(test_path("a.tfrecord"), &options, &writer, &error));
    CHECK_OK(mr_record_writer_append(writer, "abc", 3, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    make_pipe(test_path("a.tfrecord.index"));
    mr_dataset *data = mr_dataset_shuffle(mr_dataset_records(test_path("a.tfrecord")), .seed = 1);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(data, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(data);
}
