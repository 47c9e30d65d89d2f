/* Two writers of one path: an atomic output has one writer at a time, in this process and in others, and the file left
 * by a killed process does not prevent later writes. */
#include "records/io/file.h"
#include "tests/test.h"

#include <millrace/record.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const mr_record_writer_options atomically = {.size = sizeof atomically, .index = true, .atomic = true};

static void write_records(const char *path, const char *text, int count)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open(path, &atomically, &writer, &error));
    for (int i = 0; i < count; i++) CHECK_OK(mr_record_writer_append(writer, text, strlen(text), &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
}

static void check_records(const char *path, const char *text, uint64_t count)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    for (uint64_t i = 0; i < count; i++) {
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        CHECK(mr_string_equal(record, mr_string_from(text)));
    }
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
}

TEST(two_writers_of_one_path_are_one)
{
    mr_error error = {0};
    mr_record_writer *one = nullptr, *other = nullptr;
    const char *path = test_path("one.tfrecord");
    write_records(path, "before", 3);
    CHECK_OK(mr_record_writer_open(path, &atomically, &one, &error));
    CHECK_OK(mr_record_writer_append(one, "first", 5, &error));
    CHECK_STATUS(mr_record_writer_open(path, &atomically, &other, &error), MR_ABORTED);
    CHECK_CONTAINS(error.message, "one.tfrecord");
    CHECK_STATUS(mr_file_write_all(path, "x", 1, &error), MR_ABORTED);
    check_records(path, "before", 3);
    CHECK_OK(mr_record_writer_close(one, &error));
    check_records(path, "first", 1);
    /* After one is discarded, the next can open it. */
    CHECK_OK(mr_record_writer_open(path, &atomically, &one, &error));
    mr_record_writer_discard(one);
    write_records(path, "second", 2);
    check_records(path, "second", 2);
    CHECK(!mr_file_exists(test_path("one.tfrecord.partial")));
}

TEST(two_direct_writers_of_one_path_are_one)
{
    mr_error error = {0};
    mr_record_writer *one = nullptr, *other = nullptr;
    const char *path = test_path("direct.tfrecord");
    CHECK_OK(mr_record_writer_open(path, nullptr, &one, &error));
    CHECK_OK(mr_record_writer_append(one, "first", 5, &error));
    CHECK_OK(mr_record_writer_flush(one, false, &error));
    CHECK_STATUS(mr_record_writer_open(path, nullptr, &other, &error), MR_ABORTED);
    CHECK_CONTAINS(error.message, "direct.tfrecord: another writer has it open");
    check_records(path, "first", 1);
    /* A program that has locked the file itself. */
    const mr_record_writer_options unlocked = {.size = sizeof unlocked, .no_lock = true},
                                   useless = {.size = sizeof useless, .no_lock = true, .atomic = true};
    CHECK_STATUS(mr_record_writer_open(path, &useless, &other, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_record_writer_open(path, &unlocked, &other, &error));
    mr_record_writer_discard(other);
    CHECK_STATUS(mr_record_writer_open(path, nullptr, &other, &error), MR_ABORTED);
    /* A child process does not keep the lock. */
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(pause());
    CHECK_OK(mr_record_writer_close(one, &error));
    CHECK_OK(mr_record_writer_open(path, nullptr, &other, &error));
    CHECK_OK(mr_record_writer_append(other, "second", 6, &error));
    CHECK_OK(mr_record_writer_close(other, &error));
    check_records(path, "second", 1);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, nullptr, 0), child);
    /* A device has any number of writers. */
    CHECK_OK(mr_record_writer_open("/dev/null", nullptr, &one, &error));
    CHECK_OK(mr_record_writer_open("/dev/null", nullptr, &other, &error));
    CHECK_OK(mr_record_writer_close(one, &error));
    CHECK_OK(mr_record_writer_close(other, &error));
}

TEST(append_many_appends_each)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_record_reader *reader = nullptr;
    mr_string record;
    const char *path = test_path("many.tfrecord");
    CHECK_OK(mr_record_writer_open(path, &atomically, &writer, &error));
    CHECK_OK(mr_record_writer_append_many(writer, nullptr, nullptr, 0, &error));
    CHECK_OK(mr_record_writer_append_many(writer, "abbb", (uint64_t[]){1, 0, 3}, 3, &error));
    CHECK_STATUS(mr_record_writer_append_many(writer, "ab", (uint64_t[]){1, MR_RECORD_SIZE_MAX + 1, 1}, 3, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_record_writer_count(writer), 4);
    CHECK_OK(mr_record_writer_close(writer, &error));
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        CHECK(mr_string_equal(record, mr_string_from((const char *[]){"a", "", "bbb", "a"}[i])));
    }
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
}

TEST(two_writers_in_processes_leave_a_complete_file)
{
    mr_error error = {0};
    const char *path = strdup(test_path("many.tfrecord"));
    for (int round = 0; round < 20; round++) {
        pid_t children[4];
        for (int i = 0; i < 4; i++) {
            children[i] = fork();
            CHECK(children[i] >= 0);
            if (children[i] != 0) continue;
            mr_record_writer *writer = nullptr;
            mr_status status = mr_record_writer_open(path, &atomically, &writer, &error);
            for (int k = 0; status == MR_OK && k < 40; k++) status = mr_record_writer_append(writer, "same", 4, &error);
            /* One of the writers is killed before it closes the file. */
            if (i == 3 && round % 2 == 0) (void)kill(getpid(), SIGKILL);
            if (status == MR_OK) status = mr_record_writer_close(writer, &error);
            _exit(status == MR_OK ? 0 : status == MR_ABORTED ? 1 : 2);
        }
        int written = 0, failed = 0;
        for (int i = 0; i < 4; i++) {
            int state = 0;
            CHECK(waitpid(children[i], &state, 0) == children[i]);
            written += state == 0;
            failed += WIFEXITED(state) && WEXITSTATUS(state) == 2;
        }
        CHECK_EQ(failed, 0);
        if (written > 0) check_records(path, "same", 40);
    }
    write_records(path, "last", 5);
    check_records(path, "last", 5);
    free((void *)path);
}
