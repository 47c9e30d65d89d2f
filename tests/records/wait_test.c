/* mr_record_reader_wait: a program that reads a pipe is not kept waiting longer than it wants. */
#include "records/io/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <millrace/record.h>
#include <sys/wait.h>
#include <unistd.h>

/* The bytes of a pipe arrive one after the other. */
TEST(wait_reports_when_a_record_has_arrived)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_record_reader *reader = nullptr;
    mr_string record;
    const char *path = test_path("waited.tfrecord");
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < 3; i++) CHECK_OK(mr_record_writer_append(writer, "record", 6, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    char *bytes = nullptr;
    size_t size_bytes = 0;
    int pipes[2];
    bool is_ready = false;
    CHECK_OK(mr_file_read_all(path, 1 << 20, &bytes, &size_bytes, &error));
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    CHECK_OK(mr_record_reader_wait(reader, 0, &is_ready, &error));
    CHECK(is_ready);
    mr_record_reader_close(reader);

    CHECK_EQ(pipe(pipes), 0);
    char name[64];
    snprintf(name, sizeof name, "/dev/fd/%d", pipes[0]);
    CHECK_EQ(write(pipes[1], bytes, 12), 12);
    CHECK_OK(mr_record_reader_open(name, nullptr, &reader, &error));
    size_t each = size_bytes / 3;
    for (size_t i = 12; i < size_bytes; i++) {
        CHECK_OK(mr_record_reader_wait(reader, i % 9 == 0 ? 1 : 0, &is_ready, &error));
        CHECK_EQ(is_ready, i % each == 0);
        if (is_ready) CHECK_OK(mr_record_reader_next(reader, &record, &error));
        CHECK_EQ(write(pipes[1], bytes + i, 1), 1);
    }
    CHECK_OK(mr_record_reader_wait(reader, -1, &is_ready, &error));
    CHECK(is_ready);
    CHECK_OK(mr_record_reader_next(reader, &record, &error));
    CHECK(mr_string_equal(record, mr_string_from("record")));
    CHECK_EQ(mr_record_reader_number(reader), 2);
    CHECK_OK(mr_record_reader_wait(reader, 0, &is_ready, &error));
    CHECK(!is_ready);
    /* Records before the range are skipped, and nothing is waited for after it. */
    mr_record_reader *ranged = nullptr;
    CHECK_EQ(write(pipes[1], bytes, size_bytes), (ssize_t)size_bytes);
    const mr_record_reader_options range = {.size = sizeof range, .first = 2, .count = 1};
    CHECK_OK(mr_record_reader_open(name, &range, &ranged, &error));
    CHECK_OK(mr_record_reader_wait(ranged, 0, &is_ready, &error));
    CHECK(is_ready);
    CHECK_OK(mr_record_reader_next(ranged, &record, &error));
    CHECK_EQ(mr_record_reader_number(ranged), 2);
    CHECK_OK(mr_record_reader_wait(ranged, -1, &is_ready, &error));
    CHECK(is_ready);
    CHECK_STATUS(mr_record_reader_next(ranged, &record, &error), MR_OUT_OF_RANGE);
    mr_record_reader_close(ranged);
    CHECK_EQ(close(pipes[1]), 0);
    CHECK_OK(mr_record_reader_wait(reader, 0, &is_ready, &error));
    CHECK(is_ready);
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
    CHECK_EQ(close(pipes[0]), 0);
    free(bytes);
}

/* The bytes of a long record arrive in pieces: no piece is waited for longer than the timeout. */
TEST(wait_ends_inside_a_long_record)
{
    static const size_t pieces[] = {4096, 70'000, 300'000};
    for (int way = 0; way < 6; way++) {
        mr_error error = {0};
        mr_record_writer *writer = nullptr;
        mr_record_reader *reader = nullptr;
        const mr_record_writer_options options = {.size = sizeof options,
                                                  .compression = way % 2 ? MR_COMPRESSION_GZIP : MR_COMPRESSION_NONE};
        const char *path = test_path("long.tfrecord");
        static char long_record[2'500'000];
        uint32_t state = (uint32_t)test_seed() + (uint32_t)way;
        for (size_t i = 0; i < sizeof long_record; i++) long_record[i] = (char)((state = state * 1664525 + 1) >> 24);
        CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
        CHECK_OK(mr_record_writer_append(writer, "first", 5, &error));
        CHECK_OK(mr_record_writer_append(writer, long_record, sizeof long_record, &error));
        CHECK_OK(mr_record_writer_close(writer, &error));
        char *bytes = nullptr, name[64];
        size_t size_bytes = 0, piece = pieces[way / 2];
        int pipes[2];
        bool is_ready = false;
        mr_string record;
        CHECK_OK(mr_file_read_all(path, 4 << 20, &bytes, &size_bytes, &error));
        CHECK_EQ(pipe(pipes), 0);
        CHECK(fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
        snprintf(name, sizeof name, "/dev/fd/%d", pipes[0]);
        CHECK_EQ(write(pipes[1], bytes, 4096), 4096);
        CHECK_OK(mr_record_reader_open(name, nullptr, &reader, &error));
        CHECK_OK(mr_record_reader_wait(reader, 0, &is_ready, &error));
        CHECK(is_ready);
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        CHECK(mr_string_equal(record, mr_string_from("first")));
        for (size_t i = 4096; i < size_bytes; i += piece) {
            CHECK_OK(mr_record_reader_wait(reader, i % 3 == 0 ? 1 : 0, &is_ready, &error));
            CHECK(!is_ready);
            size_t part = piece < size_bytes - i ? piece : size_bytes - i;
            CHECK_EQ(write(pipes[1], bytes + i, part), (ssize_t)part);
        }
        CHECK_OK(mr_record_reader_wait(reader, 0, &is_ready, &error));
        CHECK(is_ready);
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        CHECK(record.size_bytes == sizeof long_record && memcmp(record.data, long_record, sizeof long_record) == 0);
        CHECK_EQ(close(pipes[1]), 0);
        CHECK_OK(mr_record_reader_wait(reader, -1, &is_ready, &error));
        CHECK(is_ready);
        CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
        mr_record_reader_close(reader);
        CHECK_EQ(close(pipes[0]), 0);
        free(bytes);
    }
}

/* Bytes arrive as fast as they are read. */
TEST(wait_ends_in_time_while_bytes_arrive)
{
    int pipes[2];
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    bool is_ready = true;
    char name[64];
    static char zeros[1 << 16];
    const uint64_t length = MR_RECORD_SIZE_MAX;
    CHECK_EQ(pipe(pipes), 0);
    uint32_t crc = mr_crc32c_mask(mr_crc32c(0, &length, sizeof length));
    CHECK_EQ(write(pipes[1], &length, sizeof length), (ssize_t)sizeof length);
    CHECK_EQ(write(pipes[1], &crc, sizeof crc), (ssize_t)sizeof crc);
    pid_t child = fork();
    if (child == 0) { /* ends with SIGPIPE */
        close(pipes[0]);
        while (write(pipes[1], zeros, sizeof zeros) > 0) {}
        _exit(0);
    }
    close(pipes[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", pipes[0]);
    CHECK_OK(mr_record_reader_open(name, nullptr, &reader, &error));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_record_reader_wait(reader, 5, &is_ready, &error));
        CHECK(!is_ready);
    }
    mr_record_reader_close(reader);
    close(pipes[0]);
    CHECK_EQ(waitpid(child, nullptr, 0), child);
}
