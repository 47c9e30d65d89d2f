/* Large files are indexed in sections by several threads; DALI's index is read and written. */
#include "tests/records/record_data.h"

#include <sys/stat.h>
#include <unistd.h>

static void append(mr_record_writer *writer, const void *bytes, size_t size)
{
    mr_error error = {0};
    CHECK_OK(mr_record_writer_append(writer, bytes, size, &error));
}

/* Records of all sizes; some contain a complete record file, in which every section starts. */
static uint64_t write_large(const char *path)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    record_write(test_path("inner"), 60'000, 900, (mr_record_writer_options){0});
    size_t inner_size;
    unsigned char *inner = file_load(test_path("inner"), &inner_size);
    CHECK(inner_size > 20 << 20);
    CHECK_OK(mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .index = true), &writer, &error));
    for (int i = 0; i < 10'000; i++) append(writer, inner, (size_t)i % 300);
    for (int i = 0; i < 4; i++) append(writer, inner, inner_size);
    append(writer, inner + 7, inner_size - 9);
    for (int i = 0; i < 3000; i++) append(writer, inner + i, (size_t)i * 7 % 20'000);
    uint64_t count = mr_record_writer_count(writer);
    CHECK_OK(mr_record_writer_close(writer, &error));
    free(inner);
    return count;
}

TEST(index_sections_that_begin_in_data_are_corrected)
{
    mr_error error = {0};
    const char *path = test_path("large.tfrecord");
    uint64_t count = write_large(path), counted = 0;
    mr_record_index written = {0}, made = {0};
    CHECK_OK(mr_record_index_open(path, &written, &error));
    CHECK_EQ(written.origin, MR_INDEX_LOADED);
    CHECK(written.file_size_bytes > 130 << 20);
    CHECK_EQ(unlink(test_path("large.tfrecord.index")), 0);
    for (int threads = 0; threads < 5; threads++) {
        CHECK_OK(mr_record_index_build(path, threads, &made, &error));
        CHECK_EQ(made.count, count);
        CHECK(memcmp(made.offsets, written.offsets, (count + 1) * sizeof(uint64_t)) == 0);
        mr_record_index_deinit(&made);
        CHECK_OK(mr_record_count(path, threads, &counted, &error));
        CHECK_EQ(counted, count);
    }
    CHECK_OK(mr_record_index_check(path, 3, &written, &error));

    /* An error in the last section is reported with the correct record number. */
    FILE *file = fopen(path, "r+b");
    uint64_t victim = count - 2000;
    CHECK_EQ(fseek(file, (long)written.offsets[victim] + 9, SEEK_SET), 0);
    int byte = fgetc(file);
    CHECK_EQ(fseek(file, (long)written.offsets[victim] + 9, SEEK_SET), 0);
    CHECK(fputc(byte ^ 1, file) != EOF);
    CHECK_EQ(fclose(file), 0);
    char expected[64];
    snprintf(expected, sizeof expected, "record %llu at byte %llu", (unsigned long long)victim,
             (unsigned long long)written.offsets[victim]);
    for (int threads = 1; threads < 5; threads++) {
        CHECK_STATUS(mr_record_index_build(path, threads, &made, &error), MR_DATA_LOSS);
        CHECK_CONTAINS(error.message, expected);
        CHECK_STATUS(mr_record_count(path, threads, &counted, &error), MR_DATA_LOSS);
        CHECK_STATUS(mr_record_index_check(path, threads, &written, &error), MR_DATA_LOSS);
        CHECK_CONTAINS(error.message, expected);
    }
    mr_record_index_deinit(&written);
}

/* The expected lines were written by tfrecord2idx for this file. */
TEST(index_in_dalis_form_is_tfrecord2idxs)
{
    mr_error error = {0};
    const char *path = test_path("d.tfrecord"), *name = test_path("d.idx");
    record_write(path, 6, 500, (mr_record_writer_options){0});
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_build(path, 1, &index, &error));
    CHECK_OK(mr_dali_index_write(name, &index, &error));
    size_t size;
    unsigned char *text = file_load(name, &size);
    text[size] = '\0';
    CHECK_STR((char *)text, "0 16\n16 503\n519 489\n1008 16\n1024 461\n1485 447\n");
    mr_record_index read = {0};
    CHECK_OK(mr_dali_index_read(name, &read, &error));
    CHECK_EQ(read.count, 6);
    CHECK(memcmp(read.offsets, index.offsets, 7 * sizeof(uint64_t)) == 0);
    CHECK_OK(mr_record_index_check(path, 1, &read, &error));
    CHECK_EQ(read.file_modified_ns, index.file_modified_ns);

    /* Once written, it is loaded as the file's own index. */
    CHECK_OK(mr_record_index_write(path, &read, &error));
    mr_record_index_deinit(&read);
    CHECK_OK(mr_record_index_open(path, &read, &error));
    CHECK_EQ(read.origin, MR_INDEX_LOADED);
    mr_record_index_deinit(&read);
    mr_record_index_deinit(&index);
    free(text);
}

TEST(index_in_dalis_form_is_not_believed)
{
    mr_error error = {0};
    const char *name = test_path("x.idx");
    const struct {
        const char *text, *reason;
    } wrong[] = {
        {"0 16\n16 503\n400 270\n", "line 3: starts at byte 400, but the previous record ends at 519"},
        {"0 16\n16 15\n", "line 2: invalid record size 15"},
        {"0 16\nsixteen 16\n", "line 2 is not OFFSET SIZE"},
        {"0 16 7\n", "line 1 is not OFFSET SIZE"},
        {"0  \n", "line 1 is not OFFSET SIZE"},
        {"\n", "line 1 is not OFFSET SIZE"},
        {"0 99999999999999999999999\n", "line 1 is not OFFSET SIZE"},
        {"0 9999999999\n", "line 1: invalid record size"},
        {"1 16\n", "line 1: starts at byte 1"},
    };
    mr_record_index index = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        file_save(name, wrong[i].text, strlen(wrong[i].text));
        CHECK_STATUS(mr_dali_index_read(name, &index, &error), MR_DATA_LOSS);
        CHECK_CONTAINS(error.message, wrong[i].reason);
        CHECK(index.offsets == nullptr);
    }
    file_save(name, "0 16\r\n16 20", 11);
    CHECK_OK(mr_dali_index_read(name, &index, &error));
    CHECK_EQ(index.count, 2);
    mr_record_index_deinit(&index);
    file_save(name, "", 0);
    CHECK_OK(mr_dali_index_read(name, &index, &error));
    CHECK_EQ(index.count, 0);
    mr_record_index_deinit(&index);

    /* An index of another file is detected by its size or its headers. */
    const char *path = test_path("y.tfrecord");
    record_write(path, 6, 500, (mr_record_writer_options){0});
    file_save(name, "0 16\n16 503\n519 489\n", 20);
    CHECK_OK(mr_dali_index_read(name, &index, &error));
    CHECK_STATUS(mr_record_index_check(path, 2, &index, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "the index specifies 1008");
    mr_record_index_deinit(&index);
    file_save(name, "0 16\n16 503\n519 505\n1024 461\n1485 447\n", 38);
    CHECK_OK(mr_dali_index_read(name, &index, &error));
    CHECK_STATUS(mr_record_index_check(path, 2, &index, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "record 2 at byte 519");
    mr_record_index_deinit(&index);
}
