/* An index that is older than its file: a file that was rewritten with the same size may have the same samples, so
 * every header is compared. */
#include "tests/records/record_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static constexpr int RECORDS = 3000;
static constexpr size_t SIZE = 84; /* bytes of data; 100 with header and checksum */

/* Sets the modification time to `seconds` before now. */
static void set_age(const char *path, int64_t seconds)
{
    struct timespec now, times[2] = {{.tv_nsec = UTIME_OMIT}};
    CHECK_EQ(clock_gettime(CLOCK_REALTIME, &now), 0);
    times[1] = (struct timespec){.tv_sec = now.tv_sec - seconds};
    CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int64_t modified_ns(const char *path)
{
    struct stat about;
    CHECK_EQ(stat(path, &about), 0);
    return about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec;
}

/* Records of SIZE bytes with an index. If is_replaced, records 1400 and 1401 are then replaced by three of the same
 * total size, which no sample contains. */
static const char *write_file(const char *name, bool is_replaced, mr_compression compression, bool is_index_older)
{
    mr_error error = {0};
    const char *path = test_path("%s", name), *index = test_path("%s.index", name);
    const char *kept = test_path("%s.kept", name);
    unsigned char bytes[SIZE + 16];
    for (int round = 0; round < (is_replaced ? 2 : 1); round++) {
        mr_record_writer *writer = nullptr;
        mr_record_writer_options options = {.size = sizeof options, .index = round == 0, .compression = compression};
        if (compression != MR_COMPRESSION_NONE) options.seek_bytes = 4096;
        CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
        for (int i = 0; i < RECORDS; i++) {
            record_fill(i, bytes, sizeof bytes);
            static const size_t lengths[] = {40, 50, 62};
            for (int j = 0; round == 1 && i == 1400 && j < 3; j++)
                CHECK_OK(mr_record_writer_append(writer, bytes, lengths[j], &error));
            if (round == 0 || i < 1400 || i > 1401) CHECK_OK(mr_record_writer_append(writer, bytes, SIZE, &error));
        }
        CHECK_OK(mr_record_writer_close(writer, &error));
        if (round == 0) CHECK_EQ(rename(index, kept), 0);
    }
    CHECK_EQ(rename(kept, index), 0);
    set_age(path, 100);
    set_age(index, is_index_older ? 200 : 100);
    return path;
}

TEST(older_index_of_a_rewritten_file_is_stale)
{
    mr_error error = {0};
    mr_record_index index;
    const char *path = write_file("a", true, MR_COMPRESSION_NONE, true);
    CHECK_OK(mr_record_index_open(path, &index, &error));
    CHECK_EQ(index.origin, MR_INDEX_STALE);
    CHECK_EQ(index.count, RECORDS + 1);
    CHECK_EQ(index.offsets[1401] - index.offsets[1400], 56);
    CHECK_EQ(index.offsets[RECORDS + 1], index.file_size_bytes);
    mr_record_index_deinit(&index);
    uint64_t count = 0;
    CHECK_OK(mr_record_count(path, 1, &count, &error));
    CHECK_EQ(count, RECORDS + 1);
    mr_record_file *file = nullptr;
    CHECK_OK(mr_record_file_open(path, &file, &error));
    CHECK_EQ(mr_record_file_count(file), RECORDS + 1);
    mr_record_file_close(file);
}

/* The documented limit: time, size and samples are all as before. */
TEST(index_of_the_same_age_is_trusted)
{
    mr_error error = {0};
    mr_record_index index;
    CHECK_OK(mr_record_index_open(write_file("a", true, MR_COMPRESSION_NONE, false), &index, &error));
    CHECK_EQ(index.origin, MR_INDEX_LOADED);
    CHECK_EQ(index.count, RECORDS);
    mr_record_index_deinit(&index);
}

TEST(older_index_that_matches_is_used_and_kept)
{
    for (int c = 0; c < 2; c++) {
        mr_error error = {0};
        mr_record_index index;
        const char *path = write_file("a", false, c == 0 ? MR_COMPRESSION_NONE : MR_COMPRESSION_GZIP, true);
        int64_t before = modified_ns(test_path("a.index"));
        CHECK_OK(mr_record_index_open(path, &index, &error));
        CHECK_EQ(index.origin, MR_INDEX_LOADED);
        CHECK_EQ(index.count, RECORDS);
        CHECK_EQ(index.point_count > 0, c == 1);
        mr_record_index_deinit(&index);
        uint64_t count = 0;
        CHECK_OK(mr_record_count(path, 0, &count, &error));
        CHECK_EQ(count, RECORDS);
        CHECK_EQ(modified_ns(test_path("a.index")), before);
    }
}

/* A header that is invalid does not match either. */
TEST(older_index_of_a_file_with_a_bad_header_is_stale)
{
    mr_error error = {0};
    mr_record_index index;
    const char *path = write_file("a", false, MR_COMPRESSION_NONE, true);
    int descriptor = open(path, O_WRONLY);
    CHECK(descriptor >= 0 && pwrite(descriptor, "\xff", 1, 1400 * 100) == 1 && close(descriptor) == 0);
    CHECK_STATUS(mr_record_index_open(path, &index, &error), MR_DATA_LOSS);
    CHECK_EQ(index.origin, MR_INDEX_STALE);
    CHECK(index.offsets == nullptr);
    CHECK_CONTAINS(error.message, "record 1400 at byte 140000");
}
