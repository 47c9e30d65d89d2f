/* The checkpoints of a directory: the file that names them, their removal, and waiting for a new one. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void write_checkpoint(const char *path)
{
    mr_error error = {0};
    mr_checkpoint_writer *writer = nullptr;
    mr_tensor value = {0};
    CHECK_OK(mr_tensor_init_float(&value, 1, &error));
    CHECK_OK(mr_checkpoint_writer_open(path, &writer, &error));
    CHECK_OK(mr_checkpoint_write(writer, "w", &value, &error));
    CHECK_OK(mr_checkpoint_writer_close(writer, &error));
    mr_tensor_deinit(&value);
}

static void name_checkpoint(const char *path)
{
    mr_error error = {0};
    CHECK_OK(mr_checkpoint_list_write(test_directory(), nullptr, MR_NAMES(path), &error));
}

TEST(checkpoint_lists_are_written_and_read)
{
    mr_error error = {0};
    mr_checkpoint_list *list = nullptr;
    const char *a = test_path("a \"quoted\" name"), *b = test_path("b");
    CHECK_STATUS(mr_checkpoint_list_read(test_directory(), nullptr, &list, &error), MR_NOT_FOUND);
    CHECK(list == nullptr);
    CHECK_OK(mr_checkpoint_list_write(test_directory(), nullptr, MR_NAMES(a, b), &error));
    CHECK_OK(mr_checkpoint_list_write(test_directory(), "other", MR_NAMES(a), &error));
    CHECK_OK(mr_checkpoint_list_read(test_directory(), nullptr, &list, &error));
    CHECK_STR(list->latest, b);
    CHECK_EQ(list->paths.count, 2);
    CHECK_STR(list->paths.items[0], a);
    mr_checkpoint_list_free(list);
    CHECK_OK(mr_checkpoint_list_read(test_directory(), "other", &list, &error));
    CHECK_STR(list->latest, a);
    CHECK_EQ(list->paths.count, 1);
    mr_checkpoint_list_free(list);
    mr_checkpoint_list_free(nullptr);
}

TEST(checkpoint_lists_refuse_wrong_arguments)
{
    mr_error error = {0};
    mr_checkpoint_list *list = nullptr;
    const char *d = test_directory();
    CHECK_STATUS(mr_checkpoint_list_read(nullptr, nullptr, &list, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_list_read(d, "a/b", &list, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_list_read(d, "", &list, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_list_read(d, nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_list_write(nullptr, nullptr, MR_NAMES("a"), &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_list_write(d, "..", MR_NAMES("a"), &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_list_write(d, nullptr, (mr_names){0}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_list_write(d, nullptr, (mr_names){nullptr, 2}, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_list_write(d, nullptr, MR_NAMES("a", nullptr), &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "path 1 is null");
    CHECK_STATUS(mr_checkpoint_list_write(d, nullptr, MR_NAMES(""), &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "path 0 is empty");
    char path[8];
    CHECK_STATUS(mr_latest_checkpoint_in(nullptr, nullptr, path, sizeof path, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_latest_checkpoint_in(d, nullptr, nullptr, 0, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_latest_checkpoint_in(d, "x/y", path, sizeof path, &error), MR_INVALID_ARGUMENT);
    write_checkpoint(test_path("m"));
    name_checkpoint(test_path("m"));
    CHECK_STATUS(mr_latest_checkpoint(d, path, sizeof path, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "does not fit in 8 bytes");
}

TEST(checkpoints_exist_and_are_deleted)
{
    mr_error error = {0};
    double seconds = 0;
    const char *path = test_path("m-1");
    CHECK(!mr_checkpoint_exists(path) && !mr_checkpoint_exists(nullptr) && !mr_checkpoint_exists(""));
    CHECK_STATUS(mr_checkpoint_mtime(path, &seconds, &error), MR_NOT_FOUND);
    CHECK_STATUS(mr_checkpoint_mtime(nullptr, &seconds, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_mtime(path, nullptr, &error), MR_INVALID_ARGUMENT);
    write_checkpoint(path);
    CHECK_OK(mr_gfile_write(test_path("m-1.meta"), MR_STR("graph"), &error));
    CHECK_OK(mr_gfile_write(test_path("m-1.other"), MR_STR("graph"), &error));
    CHECK(mr_checkpoint_exists(path));
    CHECK_OK(mr_checkpoint_mtime(path, &seconds, &error));
    CHECK(seconds > (double)time(nullptr) - 60 && seconds < (double)time(nullptr) + 60);
    CHECK_STATUS(mr_checkpoint_delete(nullptr, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_delete("", nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_delete(path, "index", &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_delete(path, "a/b", &error), MR_INVALID_ARGUMENT);
    CHECK(mr_checkpoint_exists(path));
    CHECK_OK(mr_checkpoint_delete(path, "other", &error));
    CHECK(!mr_checkpoint_exists(path) && mr_gfile_exists(test_path("m-1.meta")));
    CHECK(!mr_gfile_exists(test_path("m-1.other")) && !mr_gfile_exists(test_path("m-1.data-00000-of-00001")));
    CHECK_OK(mr_checkpoint_delete(path, nullptr, &error)); /* again, and the graph */
    CHECK(!mr_gfile_exists(test_path("m-1.meta")));
}

TEST(a_directory_is_read_as_its_latest_checkpoint)
{
    mr_error error = {0};
    mr_checkpoint_reader *reader = nullptr;
    CHECK_STATUS(mr_checkpoint_reader_open(test_directory(), &reader, &error), MR_NOT_FOUND);
    CHECK(reader == nullptr);
    write_checkpoint(test_path("m-1"));
    name_checkpoint(test_path("m-1"));
    CHECK_OK(mr_checkpoint_reader_open(test_directory(), &reader, &error));
    CHECK(mr_checkpoint_has(reader, "w"));
    mr_checkpoint_reader_close(reader);
}

static void *write_later(void *)
{
    usleep(100'000);
    write_checkpoint(test_path("m-2"));
    name_checkpoint(test_path("m-2"));
    return nullptr;
}

TEST(new_checkpoints_are_waited_for)
{
    mr_error error = {0};
    char path[4096] = "";
    pthread_t thread;
    const mr_checkpoint_wait_options soon = {.size = sizeof soon, .interval_secs = 0.01, .timeout_secs = 0.05};
    const mr_checkpoint_wait_options later = {.size = sizeof later, .interval_secs = 0.01, .timeout_secs = 30};
    CHECK_STATUS(mr_checkpoint_wait(test_path("none"), nullptr, &soon, path, sizeof path, &error),
                 MR_DEADLINE_EXCEEDED);
    CHECK_CONTAINS(error.message, "no new checkpoint in 0.05 s");
    name_checkpoint(test_path("m-1")); /* which does not exist */
    CHECK_STATUS(mr_checkpoint_wait(test_directory(), nullptr, &soon, path, sizeof path, &error), MR_DEADLINE_EXCEEDED);
    write_checkpoint(test_path("m-1"));
    CHECK_OK(mr_checkpoint_wait(test_directory(), nullptr, nullptr, path, sizeof path, &error));
    CHECK_STR(path, test_path("m-1"));
    CHECK_STATUS(mr_checkpoint_wait(test_directory(), path, &soon, path, sizeof path, &error), MR_DEADLINE_EXCEEDED);
    CHECK_EQ(pthread_create(&thread, nullptr, write_later, nullptr), 0);
    CHECK_OK(mr_checkpoint_wait(test_directory(), path, &later, path, sizeof path, &error));
    CHECK_STR(path, test_path("m-2"));
    CHECK_EQ(pthread_join(thread, nullptr), 0);
}

TEST(waiting_refuses_wrong_arguments)
{
    mr_error error = {0};
    char path[8];
    const char *d = test_directory();
#define REFUSE(part, ...)                                                                                              \
    CHECK_STATUS(mr_checkpoint_wait(d, nullptr, MR_OPTIONS(mr_checkpoint_wait_options, __VA_ARGS__), path,             \
                                    sizeof path, &error),                                                              \
                 MR_INVALID_ARGUMENT);                                                                                 \
    CHECK_CONTAINS(error.message, part)
    REFUSE("interval_secs is -1", .interval_secs = -1);
    REFUSE("interval_secs is nan", .interval_secs = __builtin_nan(""));
    REFUSE("timeout_secs is inf", .timeout_secs = __builtin_inf());
    REFUSE("latest_filename \"a/b\"", .latest_filename = "a/b");
    CHECK_STATUS(mr_checkpoint_wait(nullptr, nullptr, nullptr, path, sizeof path, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_checkpoint_wait(d, nullptr, nullptr, nullptr, 0, &error), MR_INVALID_ARGUMENT);
    write_checkpoint(test_path("m-1"));
    name_checkpoint(test_path("m-1"));
    CHECK_STATUS(mr_checkpoint_wait(d, nullptr, nullptr, path, sizeof path, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "does not fit");
}
