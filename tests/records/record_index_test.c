/* The index: built with the file or later, loaded, stale, damaged; records read by number with it. */
#include "tests/records/record_data.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static constexpr int COUNT = 200;
static constexpr size_t SIZE_MAX_HERE = 500;

static void check_index(const char *path, int count, mr_index_origin origin)
{
    mr_error error = {0};
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(path, &index, &error));
    CHECK_EQ(index.origin, origin);
    CHECK_EQ(index.count, count);
    uint64_t counted = 0;
    CHECK_OK(mr_record_count(path, 1, &counted, &error));
    CHECK_EQ(counted, count);
    for (int i = 0; i <= count; i++) CHECK_EQ(index.offsets[i], record_begin(i, SIZE_MAX_HERE));
    mr_record_index_deinit(&index);
}

TEST(index_written_with_the_file_is_loaded)
{
    const char *path = test_path("a.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){.index = true, .atomic = true});
    check_index(path, COUNT, MR_INDEX_LOADED);
    CHECK_EQ(unlink(test_path("a.tfrecord.index")), 0);
    check_index(path, COUNT, MR_INDEX_BUILT);
}

TEST(index_of_an_empty_file_has_no_records)
{
    const char *path = test_path("e.tfrecord");
    record_write(path, 0, SIZE_MAX_HERE, (mr_record_writer_options){.index = true});
    check_index(path, 0, MR_INDEX_LOADED);
    CHECK_EQ(unlink(test_path("e.tfrecord.index")), 0);
    check_index(path, 0, MR_INDEX_BUILT);
}

TEST(index_hops_over_long_records)
{
    const char *path = test_path("l.tfrecord");
    record_write(path, 30, 300'000, (mr_record_writer_options){0});
    mr_error error = {0};
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(path, &index, &error));
    CHECK_EQ(index.count, 30);
    for (int i = 0; i <= 30; i++) CHECK_EQ(index.offsets[i], record_begin(i, 300'000));
    mr_record_index_deinit(&index);
}

TEST(index_of_another_version_is_stale)
{
    const char *path = test_path("s.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){.index = true});
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    file_save(path, bytes, record_begin(50, SIZE_MAX_HERE));
    check_index(path, 50, MR_INDEX_STALE);
    /* The same size with other records. */
    file_save(path, bytes, size);
    check_index(path, COUNT, MR_INDEX_LOADED);
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){0});
    check_index(path, COUNT, MR_INDEX_LOADED);
    bytes[size - 2] ^= 1;
    file_save(path, bytes, size);
    check_index(path, COUNT, MR_INDEX_STALE);
    free(bytes);
}

/* A plain copy has other timestamps and is the same file. */
TEST(index_survives_copying)
{
    char path[1024], copy[1024];
    snprintf(path, sizeof path, "%s", test_path("c.tfrecord"));
    snprintf(copy, sizeof copy, "%s", test_path("copy.tfrecord"));
    for (int count = 0; count <= 1000; count = count * 3 + 1) {
        record_write(path, count, SIZE_MAX_HERE, (mr_record_writer_options){.index = true});
        size_t size, index_size, again_size;
        unsigned char *bytes = file_load(path, &size);
        unsigned char *index = file_load(test_path("c.tfrecord.index"), &index_size);
        file_save(copy, bytes, size);
        file_save(test_path("copy.tfrecord.index"), index, index_size);
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1'000'000'000}};
        CHECK_EQ(utimensat(0, copy, times, 0), 0);
        check_index(copy, count, MR_INDEX_LOADED);

        record_write(path, count, SIZE_MAX_HERE, (mr_record_writer_options){.index = true});
        unsigned char *again = file_load(test_path("c.tfrecord.index"), &again_size);
        CHECK_EQ(again_size, index_size);
        CHECK(memcmp(again, index, index_size) == 0);
        free(again);
        free(index);
        free(bytes);
    }
}

/* Two files of the same size: exchanged records are detected where a sample is taken; elsewhere no record is returned
 * in place of another. */
TEST(index_of_another_file_never_returns_a_wrong_record)
{
    const char *path = test_path("o.tfrecord"), *index_name = test_path("o.tfrecord.index");
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){.index = true});
    size_t size, index_size;
    unsigned char *bytes = file_load(path, &size), *index = file_load(index_name, &index_size);
    unsigned char *other = malloc(size), *record = malloc(SIZE_MAX_HERE + 16);
    int stale = 0, loaded = 0;
    for (int i = 0; i + 1 < COUNT; i++) {
        uint64_t a = record_begin(i, SIZE_MAX_HERE), b = record_begin(i + 1, SIZE_MAX_HERE),
                 c = record_begin(i + 2, SIZE_MAX_HERE);
        if (b - a == c - b) continue;
        memcpy(other, bytes, size);
        memcpy(other + a, bytes + b, c - b);
        memcpy(other + a + (c - b), bytes + a, b - a);
        file_save(path, other, size);
        file_save(index_name, index, index_size);
        mr_error error = {0};
        mr_record_file *file = nullptr;
        mr_record_index opened = {0};
        CHECK_OK(mr_record_index_open(path, &opened, &error));
        if (opened.origin == MR_INDEX_STALE) stale++;
        if (opened.origin == MR_INDEX_LOADED) loaded++;
        bool is_stale = opened.origin == MR_INDEX_STALE;
        mr_record_index_deinit(&opened);
        CHECK_OK(mr_record_file_open(path, &file, &error));
        for (int k = 0; k < 2; k++) {
            mr_string read = {0};
            mr_status status = mr_record_file_read(file, (uint64_t)(i + k), record, &read, &error);
            CHECK_EQ(status, is_stale ? MR_OK : MR_DATA_LOSS);
            if (status == MR_OK) CHECK_EQ(read.size_bytes, (k == 0 ? c - b : b - a) - 16);
        }
        mr_record_file_close(file);
    }
    CHECK(stale > 5);
    CHECK(loaded > 5);
    free(record);
    free(other);
    free(index);
    free(bytes);
}

TEST(index_damaged_anywhere_is_not_trusted)
{
    const char *path = test_path("d.tfrecord"), *name = test_path("d.tfrecord.index");
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){.index = true});
    size_t size;
    unsigned char *bytes = file_load(name, &size);
    for (size_t at = 0; at < size; at += 5) {
        bytes[at] ^= 0x10;
        file_save(name, bytes, size);
        bytes[at] ^= 0x10;
        check_index(path, COUNT, MR_INDEX_DAMAGED);
    }
    file_save(name, bytes, size / 2);
    check_index(path, COUNT, MR_INDEX_DAMAGED);
    file_save(name, "", 0);
    check_index(path, COUNT, MR_INDEX_DAMAGED);
    free(bytes);
}

TEST(index_of_a_damaged_or_compressed_file_is_refused)
{
    mr_error error = {0};
    mr_record_index index = {0};
    const char *path = test_path("x.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){0});
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    file_save(path, bytes, size - 1);
    CHECK_STATUS(mr_record_index_open(path, &index, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "record 199");
    bytes[record_begin(7, SIZE_MAX_HERE)] ^= 1;
    file_save(path, bytes, size);
    CHECK_STATUS(mr_record_index_open(path, &index, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "record 7 ");
    free(bytes);
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP});
    CHECK_STATUS(mr_record_index_open(path, &index, &error), MR_UNIMPLEMENTED);
}

static void *read_backwards(void *file)
{
    static constexpr size_t ROOM = SIZE_MAX_HERE + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
    mr_error error = {0};
    unsigned char bytes[ROOM];
    mr_string record;
    for (int i = COUNT - 1; i >= 0; i--) {
        CHECK_EQ(mr_record_file_record_size(file, (uint64_t)i), record_size(i, SIZE_MAX_HERE));
        CHECK_OK(mr_record_file_read(file, (uint64_t)i, bytes, &record, &error));
        record_check(record, i, SIZE_MAX_HERE);
    }
    return nullptr;
}

TEST(record_file_is_read_by_number_from_any_thread)
{
    mr_error error = {0};
    const char *path = test_path("r.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){.index = true});
    mr_record_file *file = nullptr;
    CHECK_OK(mr_record_file_open(path, &file, &error));
    CHECK_EQ(mr_record_file_count(file), COUNT);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, read_backwards, file), 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], nullptr);
    mr_string record;
    CHECK_STATUS(mr_record_file_read(file, COUNT, nullptr, &record, &error), MR_OUT_OF_RANGE);
    mr_record_file_close(file);
}

TEST(record_file_detects_later_damage)
{
    mr_error error = {0};
    const char *path = test_path("b.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){.index = true});
    mr_record_file *file = nullptr;
    CHECK_OK(mr_record_file_open(path, &file, &error));
    size_t size;
    unsigned char *bytes = file_load(path, &size), room[SIZE_MAX_HERE + 16];
    bytes[record_begin(4, SIZE_MAX_HERE) + 13] ^= 1;
    bytes[record_begin(5, SIZE_MAX_HERE) + 1] ^= 1;
    file_save(path, bytes, record_begin(100, SIZE_MAX_HERE));
    free(bytes);
    mr_string record;
    CHECK_OK(mr_record_file_read(file, 6, room, &record, &error));
    CHECK_STATUS(mr_record_file_read(file, 4, room, &record, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "record 4 at byte");
    CHECK_STATUS(mr_record_file_read(file, 5, room, &record, &error), MR_DATA_LOSS);
    CHECK_STATUS(mr_record_file_read(file, 150, room, &record, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "shrunk");
    mr_record_file_close(file);
}

/* If the index is valid, the count comes from it, however large it is. */
TEST(index_has_the_count_without_reading_headers)
{
    mr_error error = {0};
    const char *path = test_path("n.tfrecord");
    for (int count = 1000; count < 1040; count += 3) {
        record_write(path, count, 3, (mr_record_writer_options){.index = true});
        /* Between two samples, so that only the index still has the count. */
        FILE *file = fopen(path, "r+b");
        CHECK_EQ(fseek(file, 1000, SEEK_SET), 0);
        fputs("surely these are not records", file);
        CHECK_EQ(fclose(file), 0);
        /* All headers would be compared with an index that is older than its file. */
        const struct timespec old[2] = {{.tv_sec = 1'000'000'000}, {.tv_sec = 1'000'000'000}};
        CHECK_EQ(utimensat(AT_FDCWD, path, old, 0), 0);
        uint64_t counted = 0;
        CHECK_OK(mr_record_count(path, 1, &counted, &error));
        CHECK_EQ(counted, count);
        CHECK_EQ(truncate(test_path("n.tfrecord.index"), 40 + 4 * count), 0);
        CHECK_STATUS(mr_record_count(path, 1, &counted, &error), MR_DATA_LOSS);
    }
}
