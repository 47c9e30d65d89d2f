/* An index whose file was rewritten in place between the samples, with the same size: checks which records are returned
 * and which are not. */
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <fcntl.h>
#include <sys/stat.h>

/* 200 records of 1,000 bytes with two short ones, of 100 and 300 bytes, at number 53. The samples and the compared
 * headers do not detect a change of their order. */
static constexpr int COUNT = 200, ODD = 53;

static size_t length_of(int number, bool is_rewritten)
{
    if (number == ODD) return is_rewritten ? 300 : 100;
    if (number == ODD + 1) return is_rewritten ? 100 : 300;
    return 1000;
}

static void write_version(const char *path, bool is_rewritten, bool has_index)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    unsigned char bytes[1000];
    CHECK_OK(mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .index = has_index), &writer, &error));
    for (int i = 0; i < COUNT; i++) {
        record_fill(i, bytes, sizeof bytes);
        CHECK_OK(mr_record_writer_append(writer, bytes, length_of(i, is_rewritten), &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
}

/* The index of the first version with the file of the second. If the file is newer, every header is compared. */
static void rewrite(const char *path, bool is_newer)
{
    write_version(path, false, true);
    write_version(path, true, false);
    const struct timespec time = {.tv_sec = is_newer ? 2'000'000'000 : 1'000'000'000}, times[2] = {time, time};
    CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
    mr_error error = {0};
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(path, &index, &error));
    /* MR_INDEX_LOADED: the limitation that record.h documents */
    CHECK_EQ(index.origin, is_newer ? MR_INDEX_STALE : MR_INDEX_LOADED);
    mr_record_index_deinit(&index);
}

TEST(record_read_by_a_wrong_index_fails_with_advice)
{
    const char *path = test_path("r.tfrecord");
    mr_error error = {0};
    mr_record_file *file = nullptr;
    mr_string record;
    char bytes[2000];
    rewrite(path, false);
    CHECK_OK(mr_record_file_open(path, &file, &error));
    for (int i = 0; i < COUNT; i++) {
        mr_status status = mr_record_file_read(file, (uint64_t)i, bytes, &record, &error);
        if (i == ODD || i == ODD + 1) {
            CHECK_STATUS(status, MR_DATA_LOSS);
            CHECK_CONTAINS(error.message, "r.tfrecord: record 53");
            CHECK_CONTAINS(error.message, "tfrecord-cat --repair-index");
            break;
        }
        CHECK_OK(status);
        CHECK_EQ(record.size_bytes, 1000);
    }
    for (int i = ODD + 2; i < COUNT; i++) CHECK_OK(mr_record_file_read(file, (uint64_t)i, bytes, &record, &error));
    mr_record_file_close(file);
}

/* The index is used to find the start of a range only if a record starts there; otherwise the file is read from its
 * beginning. */
TEST(record_range_does_not_trust_a_wrong_index)
{
    const char *path = test_path("r.tfrecord");
    rewrite(path, false);
    for (uint64_t first = 0; first <= (uint64_t)COUNT; first++) {
        mr_error error = {0};
        mr_record_reader *reader = nullptr;
        mr_string record;
        CHECK_OK(mr_record_reader_open(path, MR_OPTIONS(mr_record_reader_options, .first = first, .count = 2), &reader,
                                       &error));
        for (uint64_t i = first; i < first + 2 && i < (uint64_t)COUNT; i++) {
            CHECK_OK(mr_record_reader_next(reader, &record, &error));
            CHECK_EQ(mr_record_reader_number(reader), i);
            CHECK_EQ(record.size_bytes, length_of((int)i, true));
        }
        CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
        mr_record_reader_close(reader);
    }
}

TEST(cat_index_compares_an_index_that_is_older_than_its_file)
{
    const char *path = test_path("r.tfrecord");
    rewrite(path, true);
    CHECK_EQ(program_run("tfrecord-cat --raw --record 53 %s", path)->exit_code, 0);
    CHECK_CONTAINS(program_run("tfrecord-cat --index %s", path)->output, "rebuilt, the index was stale");
    CHECK_CONTAINS(program_run("tfrecord-cat --repair-index %s", path)->output, "the index is correct");
    CHECK_CONTAINS(program_run("tfrecord-cat --index %s", path)->output, "the index is up to date");
    CHECK_EQ(program_run("tfrecord-cat --raw --record 53 %s", path)->exit_code, 0);
    rewrite(path, true);
    CHECK_CONTAINS(program_run("tfrecord-cat --repair-index %s", path)->output, "rebuilt, the index was stale");
    rewrite(path, false);
    const program_result *result = program_run("tfrecord-cat --raw --record 53 %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "--repair-index");
    CHECK_CONTAINS(program_run("tfrecord-cat --index %s", path)->output, "the index is up to date");
    CHECK_CONTAINS(program_run("tfrecord-cat --repair-index %s", path)->output, "rebuilt, the index was wrong");
}

/* An index stays valid when a record is overwritten with one of the same length. */
TEST(record_overwritten_in_place_is_served_as_it_is_now)
{
    const char *path = test_path("r.tfrecord");
    mr_error error = {0};
    mr_record_file *file = nullptr;
    mr_string record;
    char bytes[2000];
    size_t size;
    write_version(path, false, true);
    const char *other = strdup(test_path("other.tfrecord"));
    record_write(other, 0, 1, (mr_record_writer_options){0});
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open(other, nullptr, &writer, &error));
    memset(bytes, 'x', 1000);
    CHECK_OK(mr_record_writer_append(writer, bytes, 1000, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    unsigned char *one = file_load(other, &size);
    FILE *stream = fopen(path, "r+b");
    CHECK(stream != nullptr && fseek(stream, 10 * 1016, SEEK_SET) == 0);
    CHECK_EQ(fwrite(one, 1, size, stream), size);
    CHECK_EQ(fclose(stream), 0);
    CHECK_OK(mr_record_file_open(path, &file, &error));
    CHECK_OK(mr_record_file_read(file, 10, bytes, &record, &error));
    CHECK(record.size_bytes == 1000 && record.data[999] == 'x');
    mr_record_file_close(file);
    free(one);
    free((char *)other);
}

TEST(record_calls_refuse_numbers_and_counts_out_of_range)
{
    const char *path = test_path("r.tfrecord");
    mr_error error = {0};
    mr_record_file *file = nullptr;
    mr_record_totals totals = {.records = 7};
    mr_string record;
    char bytes[2000];
    write_version(path, false, true);
    static const int32_t counts[] = {-1, INT32_MIN};
    for (size_t i = 0; i < 2; i++) {
        CHECK_STATUS(mr_record_scan(&path, counts[i], nullptr, &totals, &error), MR_INVALID_ARGUMENT);
        CHECK_EQ(totals.records, 0);
    }
    CHECK_STATUS(mr_record_scan(nullptr, 1, nullptr, &totals, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_record_scan(nullptr, 0, nullptr, &totals, &error));
    CHECK_OK(mr_record_file_open(path, &file, &error));
    static const uint64_t beyond[] = {COUNT, COUNT + 1, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        CHECK_EQ(mr_record_file_record_size(file, beyond[i]), 0);
        CHECK_EQ(mr_record_file_offset(file, beyond[i]), mr_record_file_offset(file, COUNT));
        CHECK_STATUS(mr_record_file_read(file, beyond[i], bytes, &record, &error), MR_OUT_OF_RANGE);
        mr_record_file_prefetch(file, beyond[i]);
    }
    mr_record_file_close(file);
}
