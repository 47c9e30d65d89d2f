/* Records written and read back: plain, compressed, in order, with small buffers, through a pipe; matching of path
 * patterns. */
#include "tests/records/record_data.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_all(const char *path, int count, size_t size_max, mr_record_reader_options options)
{
    options.size = sizeof options;
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    CHECK_OK(mr_record_reader_open(path, &options, &reader, &error));
    mr_string record;
    uint64_t offset = 0;
    for (int i = 0; i < count; i++) {
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        record_check(record, i, size_max);
        CHECK_EQ(mr_record_reader_number(reader), i);
        CHECK_EQ(mr_record_reader_offset(reader), offset);
        offset += 16 + record.size_bytes;
    }
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    CHECK_EQ(mr_record_reader_lost(reader), 0);
    mr_record_reader_close(reader);
}

TEST(records_come_back_as_written)
{
    const mr_compression compressions[] = {MR_COMPRESSION_NONE, MR_COMPRESSION_GZIP, MR_COMPRESSION_ZLIB};
    for (int i = 0; i < 3; i++) {
        const char *path = test_path("a.tfrecord");
        record_write(path, 500, 3000, (mr_record_writer_options){.compression = compressions[i]});
        check_all(path, 500, 3000, (mr_record_reader_options){0});
        check_all(path, 500, 3000, (mr_record_reader_options){.buffer_bytes = 1});
        check_all(path, 500, 3000, (mr_record_reader_options){.buffer_bytes = 5000, .skip_checksums = true});
    }
}

TEST(records_longer_than_the_buffer_are_complete)
{
    const char *path = test_path("long.tfrecord");
    for (int i = 0; i < 3; i++) {
        record_write(path, 6, 3'000'000, (mr_record_writer_options){.compression = (mr_compression)i, .level = i > 0});
        check_all(path, 6, 3'000'000, (mr_record_reader_options){0});
    }
}

TEST(records_an_empty_file_has_none)
{
    const char *path = test_path("empty");
    for (int i = 0; i < 3; i++) {
        record_write(path, 0, 1, (mr_record_writer_options){.compression = (mr_compression)i});
        check_all(path, 0, 1, (mr_record_reader_options){0});
    }
    file_save(path, "", 0);
    check_all(path, 0, 1, (mr_record_reader_options){0});
}

TEST(records_several_gzip_members_are_one_file)
{
    const char *a = test_path("a.gz"), *b = test_path("b.gz");
    record_write(a, 20, 100, (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP});
    size_t size;
    unsigned char *bytes = file_load(a, &size);
    FILE *file = fopen(b, "wb");
    for (int i = 0; i < 3; i++) fwrite(bytes, 1, size, file);
    fclose(file);
    free(bytes);
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    CHECK_OK(mr_record_reader_open(b, nullptr, &reader, &error));
    mr_string record;
    for (int i = 0; i < 60; i++) {
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        record_check(record, i % 20, 100);
    }
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
}

TEST(records_are_read_from_a_pipe)
{
    const char *path = test_path("p.tfrecord");
    for (int i = 0; i < 3; i++) {
        record_write(path, 300, 900, (mr_record_writer_options){.compression = (mr_compression)i});
        int ends[2];
        CHECK_EQ(pipe2(ends, 0), 0);
        pid_t child = fork();
        if (child == 0) {
            /* Odd piece sizes, so that headers arrive in parts. */
            size_t size;
            unsigned char *bytes = file_load(path, &size);
            for (size_t at = 0; at < size;) {
                size_t piece = size - at < 777 ? size - at : 777;
                ssize_t written = write(ends[1], bytes + at, piece);
                if (written <= 0) _exit(1);
                at += (size_t)written;
            }
            _exit(0);
        }
        close(ends[1]);
        CHECK_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
        close(ends[0]);
        check_all("-", 300, 900, (mr_record_reader_options){.buffer_bytes = 4096});
    }
}

TEST(records_only_gzip_can_be_seekable)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    const mr_record_writer_options wrong[] = {
        {.seek_bytes = 4096},
        {.compression = MR_COMPRESSION_ZLIB, .seek_bytes = 4096},
        {.compression = MR_COMPRESSION_GZIP, .seek_bytes = (size_t)2 << 30},
        {.compression = MR_COMPRESSION_GZIP, .seek_bytes = 4096, .level = 10},
    };
    for (int i = 0; i < 4; i++) {
        mr_record_writer_options options = wrong[i];
        options.size = sizeof options;
        CHECK_STATUS(mr_record_writer_open(test_path("x"), &options, &writer, &error), MR_INVALID_ARGUMENT);
        CHECK(access(test_path("x"), F_OK) != 0);
    }
}

TEST(records_foreign_formats_are_named)
{
    const struct {
        const char *bytes, *name;
    } formats[] = {{"\x28\xb5\x2f\xfd........", "Zstandard"}, {"BZh91AY&SY..", "bzip2"}, {"PK\x03\x04.......", "ZIP"}};
    for (int i = 0; i < 3; i++) {
        mr_error error = {0};
        mr_record_reader *reader = nullptr;
        file_save(test_path("f"), formats[i].bytes, strlen(formats[i].bytes));
        CHECK_STATUS(mr_record_reader_open(test_path("f"), nullptr, &reader, &error), MR_UNIMPLEMENTED);
        CHECK_CONTAINS(error.message, formats[i].name);
    }
}

TEST(records_a_file_that_is_no_file_is_one_sentence)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    CHECK_STATUS(mr_record_reader_open(test_path("none"), nullptr, &reader, &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "no such file");
    CHECK_STATUS(mr_record_reader_open(test_directory(), nullptr, &reader, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "directory");
}

TEST(records_atomic_writer_shows_only_complete_files)
{
    mr_error error = {0};
    const char *path = test_path("t.tfrecord");
    file_save(path, "old", 3);
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .atomic = true), &writer, &error));
    CHECK_OK(mr_record_writer_append(writer, "abc", 3, &error));
    CHECK_OK(mr_record_writer_flush(writer, true, &error));
    size_t size;
    free(file_load(path, &size));
    CHECK_EQ(size, 3);
    mr_record_writer_discard(writer);
    free(file_load(path, &size));
    CHECK_EQ(size, 3);
    CHECK(access(test_path("t.tfrecord.partial"), F_OK) != 0);

    CHECK_OK(mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .atomic = true), &writer, &error));
    CHECK_OK(mr_record_writer_append(writer, "abc", 3, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    free(file_load(path, &size));
    CHECK_EQ(size, 19);
    CHECK(access(test_path("t.tfrecord.partial"), F_OK) != 0);
}

TEST(records_a_flushed_writer_can_be_read)
{
    for (int i = 0; i < 3; i++) {
        mr_error error = {0};
        const char *path = test_path("flushed");
        mr_record_writer *writer = nullptr;
        CHECK_OK(mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .compression = (mr_compression)i),
                                       &writer, &error));
        CHECK_OK(mr_record_writer_append(writer, "abc", 3, &error));
        CHECK_OK(mr_record_writer_flush(writer, false, &error));
        mr_record_reader *reader = nullptr;
        mr_string record;
        CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        CHECK_EQ(record.size_bytes, 3);
        mr_record_reader_close(reader);
        CHECK_OK(mr_record_writer_close(writer, &error));
    }
}

TEST(records_a_full_disk_is_one_sentence)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    if (access("/dev/full", W_OK) != 0) test_skip("needs /dev/full");
    CHECK_OK(mr_record_writer_open("/dev/full", nullptr, &writer, &error));
    static char bytes[1 << 20];
    mr_status status = mr_record_writer_append(writer, bytes, sizeof bytes, &error);
    CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
    CHECK_STR(error.message, "cannot write /dev/full: the disk is full");
    error = (mr_error){0};
    CHECK_STATUS(mr_record_writer_append(writer, bytes, 1, &error), MR_RESOURCE_EXHAUSTED);
    CHECK_STATUS(mr_record_writer_close(writer, &error), MR_RESOURCE_EXHAUSTED);
}

TEST(records_patterns_are_names_globs_and_shards)
{
    mr_error error = {0};
    char **paths;
    int32_t count;
    for (int i = 0; i < 3; i++) {
        file_save(test_path("d-%05d-of-00003.tfrecord", i), "", 0);
        file_save(test_path("d-%05d-of-00003.tfrecord.index", i), "", 0);
    }
    file_save(test_path("odd[name]*"), "", 0);
    CHECK_OK(mr_paths_match(test_path("d-*"), &paths, &count, &error));
    CHECK_EQ(count, 3);
    CHECK_STR(paths[1], test_path("d-00001-of-00003.tfrecord"));
    mr_paths_free(paths, count);
    CHECK_OK(mr_paths_match(test_path("d@3.tfrecord"), &paths, &count, &error));
    CHECK_EQ(count, 3);
    CHECK_STR(paths[2], test_path("d-00002-of-00003.tfrecord"));
    mr_paths_free(paths, count);
    CHECK_OK(mr_paths_match(test_path("odd[name]*"), &paths, &count, &error));
    CHECK_EQ(count, 1);
    mr_paths_free(paths, count);
    CHECK_STATUS(mr_paths_match(test_path("d@4.tfrecord"), &paths, &count, &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "4 of 4 files are missing");
    CHECK_STATUS(mr_paths_match(test_path("nothing*"), &paths, &count, &error), MR_NOT_FOUND);
}

/* Files that cannot be checked for a temporary reason are not reported as missing. */
TEST(records_patterns_without_open_files_left_say_so)
{
    mr_error error = {0};
    char **paths;
    int32_t count;
    struct rlimit before, none;
    file_save(test_path("d.tfrecord"), "", 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    mr_status status = mr_paths_match(test_path("d*"), &paths, &count, &error);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
}
