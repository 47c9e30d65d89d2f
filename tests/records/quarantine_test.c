/* The quarantine contains every damaged byte once, with its position. Readers of a range return the range's records. */
#include "tests/records/record_data.h"

#include <millrace/example.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static constexpr int COUNT = 200;
static constexpr size_t LONGEST = 300;

/* Damages data, a header and the end of the file. */
static const char *make_damaged(size_t *size)
{
    const char *path = test_path("damaged.tfrecord");
    record_write(path, COUNT, LONGEST, (mr_record_writer_options){0});
    unsigned char *bytes = file_load(path, size);
    bytes[record_begin(21, LONGEST) - 2] ^= 1;
    bytes[record_begin(50, LONGEST) + 9] ^= 1;
    bytes[record_begin(120, LONGEST) + 3] ^= 0x80;
    *size -= 10;
    file_save(path, bytes, *size);
    free(bytes);
    return path;
}

/* Reads the quarantine and compares its bytes with the file's. */
static void check_quarantine(const char *quarantine, const char *path, int pieces, uint64_t size_bytes)
{
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record, text, kind, file;
    int64_t offset, number;
    int count = 0;
    uint64_t sum = 0;
    CHECK_OK(mr_record_reader_open(quarantine, nullptr, &reader, &error));
    mr_status status;
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) {
        CHECK_OK(mr_example_get_bytes(record, "bytes", &text, &error));
        CHECK_OK(mr_example_get_bytes(record, "kind", &kind, &error));
        CHECK_OK(mr_example_get_bytes(record, "file", &file, &error));
        CHECK_OK(mr_example_get_int64(record, "offset", &offset, &error));
        CHECK_OK(mr_example_get_int64(record, "record", &number, &error));
        CHECK(mr_string_equal(file, mr_string_from(path)));
        CHECK((size_t)offset + text.size_bytes <= size);
        CHECK(memcmp(bytes + offset, text.data, text.size_bytes) == 0);
        sum += text.size_bytes;
        count++;
    }
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    CHECK_EQ(count, pieces);
    CHECK_EQ(sum, size_bytes);
    mr_record_reader_close(reader);
    free(bytes);
}

static uint64_t read_all(const char *path, mr_record_quarantine *quarantine, size_t buffer_bytes)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status;
    uint64_t good = 0;
    const mr_record_reader_options options = {
        .size = sizeof options, .damage = MR_DAMAGE_SKIP, .quarantine = quarantine, .buffer_bytes = buffer_bytes};
    CHECK_OK(mr_record_reader_open(path, &options, &reader, &error));
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) good += 16 + record.size_bytes;
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    CHECK_EQ(mr_record_reader_lost(reader), 4);
    mr_record_reader_close(reader);
    return good;
}

TEST(quarantine_contains_lost_bytes_once)
{
    size_t size;
    const char *path = make_damaged(&size), *side = test_path("side.tfrecord");
    mr_error error = {0};
    for (int run = 0; run < 2; run++) {
        mr_record_quarantine *quarantine = nullptr;
        CHECK_OK(mr_record_quarantine_open(side, &quarantine, &error));
        uint64_t good = 0;
        for (int epoch = 0; epoch < 3; epoch++) good = read_all(path, quarantine, epoch == 1 ? 1 : 0);
        /* In the second run all ranges are known from the first. */
        CHECK_EQ(mr_record_quarantine_count(quarantine), run == 0 ? 4 : 0);
        CHECK_EQ(mr_record_quarantine_size(quarantine), run == 0 ? size - good : 0);
        CHECK_OK(mr_record_quarantine_close(quarantine, &error));
        check_quarantine(side, path, 4, size - good);
    }
    size_t report_size;
    char *report = (char *)file_load(test_path("side.tfrecord.txt"), &report_size);
    report[report_size] = 0;
    CHECK_CONTAINS(report, "bad data, ");
    CHECK_CONTAINS(report, "record 50 at byte ");
    CHECK_CONTAINS(report, "truncated, ");
    int lines = 0;
    for (char *at = report; (at = strchr(at, '\n')); at++) lines++;
    CHECK_EQ(lines, 4);
    free(report);
}

TEST(quarantine_is_the_same_from_many_threads)
{
    size_t size;
    const char *path = make_damaged(&size), *side = test_path("side.tfrecord");
    mr_error error = {0};
    mr_record_quarantine *quarantine = nullptr;
    CHECK_OK(mr_record_quarantine_open(side, &quarantine, &error));
    const mr_record_scan_options options = {
        .size = sizeof options, .threads = 3, .block_bytes = 4096, .damage = MR_DAMAGE_SKIP, .quarantine = quarantine};
    mr_record_totals totals;
    CHECK_OK(mr_record_scan(&path, 1, &options, &totals, &error));
    CHECK_EQ(totals.lost, 4);
    CHECK_EQ(mr_record_quarantine_count(quarantine), 4);
    CHECK_OK(mr_record_quarantine_close(quarantine, &error));
    check_quarantine(side, path, 4, totals.lost_bytes);
}

TEST(quarantine_writes_long_ranges_in_pieces)
{
    const char *path = test_path("long.tfrecord"), *side = test_path("side.tfrecord");
    record_write(path, 3, 3'000'000, (mr_record_writer_options){0});
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    bytes[record_begin(1, 3'000'000) + 5'000] ^= 1;
    file_save(path, bytes, size);
    free(bytes);
    mr_error error = {0};
    mr_record_quarantine *quarantine = nullptr;
    CHECK_OK(mr_record_quarantine_open(side, &quarantine, &error));
    mr_record_reader *reader = nullptr;
    mr_string record;
    CHECK_OK(mr_record_reader_open(
        path, MR_OPTIONS(mr_record_reader_options, .damage = MR_DAMAGE_SKIP, .quarantine = quarantine), &reader,
        &error));
    while (mr_record_reader_next(reader, &record, &error) == MR_OK);
    mr_record_reader_close(reader);
    CHECK_OK(mr_record_quarantine_close(quarantine, &error));
    size_t lost = 16 + record_size(1, 3'000'000);
    check_quarantine(side, path, (int)((lost + (1 << 20) - 1) >> 20), lost);
}

TEST(quarantine_that_cannot_be_written_is_an_error)
{
    size_t size;
    const char *path = make_damaged(&size);
    mr_error error = {0};
    mr_record_quarantine *quarantine = nullptr;
    CHECK_STATUS(mr_record_quarantine_open(test_path("none/side"), &quarantine, &error), MR_NOT_FOUND);
    if (access("/dev/full", W_OK) != 0) test_skip("no /dev/full");
    CHECK_EQ(symlink("/dev/full", test_path("full")), 0);
    CHECK_OK(mr_record_quarantine_open(test_path("full"), &quarantine, &error));
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status;
    CHECK_OK(mr_record_reader_open(
        path, MR_OPTIONS(mr_record_reader_options, .damage = MR_DAMAGE_SKIP, .quarantine = quarantine), &reader,
        &error));
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK);
    CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
    CHECK_CONTAINS(error.message, "the disk is full");
    mr_record_reader_close(reader);
    CHECK_OK(mr_record_quarantine_close(quarantine, &error));
}

/* ---- Ranges ---- */

static void check_range(const char *path, uint64_t first, uint64_t count)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status;
    uint64_t next = first, end = count ? first + count : COUNT;
    if (end > (uint64_t)COUNT) end = COUNT;
    CHECK_OK(mr_record_reader_open(
        path, MR_OPTIONS(mr_record_reader_options, .first = first, .count = count, .buffer_bytes = 4096), &reader,
        &error));
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) {
        CHECK_EQ(mr_record_reader_number(reader), next);
        CHECK_EQ(mr_record_reader_offset(reader), record_begin((int)next, LONGEST));
        record_check(record, (int)next++, LONGEST);
    }
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    CHECK_EQ(next, first < (uint64_t)COUNT ? end : first);
    mr_record_reader_close(reader);
}

TEST(reader_reads_a_range)
{
    for (int way = 0; way < 3; way++) {
        const char *path = test_path("range%d.tfrecord", way);
        record_write(path, COUNT, LONGEST,
                     (mr_record_writer_options){.index = way == 1,
                                                .compression = way == 2 ? MR_COMPRESSION_GZIP : MR_COMPRESSION_NONE});
        const uint64_t ranges[][2] = {{0, 0}, {0, 1}, {7, 50}, {199, 1}, {199, 0}, {150, 1000}, {200, 5}, {5000, 1}};
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) check_range(path, ranges[i][0], ranges[i][1]);
    }
}

TEST(reader_reads_a_range_after_damage)
{
    size_t size;
    const char *path = make_damaged(&size);
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    CHECK_OK(mr_record_reader_open(
        path, MR_OPTIONS(mr_record_reader_options, .damage = MR_DAMAGE_SKIP, .first = 60, .count = 3), &reader,
        &error));
    for (int i = 60; i < 63; i++) {
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        record_check(record, i, LONGEST);
    }
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
}

TEST(reader_continues_after_out_of_memory)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    size_t size;
    const char *damaged = make_damaged(&size), *packed = test_path("z.tfrecord"), *side = test_path("side.tfrecord");
    record_write(packed, COUNT, LONGEST, (mr_record_writer_options){.compression = MR_COMPRESSION_ZLIB});
    for (int way = 0; way < 2; way++) {
        int failures = 0;
        for (int n = 1; n < 80; n++) {
            mr_error error = {0};
            mr_record_quarantine *quarantine = nullptr;
            mr_record_reader *reader = nullptr;
            mr_string record;
            uint64_t records = 0;
            test_fail_allocation(test_allocations() + n);
            mr_status status = mr_record_quarantine_open(side, &quarantine, &error);
            const mr_record_reader_options options = {.size = sizeof options,
                                                      .damage = MR_DAMAGE_SKIP,
                                                      .quarantine = quarantine,
                                                      .buffer_bytes = 4096,
                                                      .first = 3};
            if (status == MR_OK) status = mr_record_reader_open(way ? packed : damaged, &options, &reader, &error);
            for (; status == MR_OK; records++) status = mr_record_reader_next(reader, &record, &error);
            test_fail_allocation(0);
            CHECK(status == MR_OUT_OF_RANGE || status == MR_RESOURCE_EXHAUSTED);
            failures += status == MR_RESOURCE_EXHAUSTED;
            if (status == MR_OUT_OF_RANGE) CHECK_EQ(records, way ? COUNT - 3 + 1 : COUNT - 4 - 3 + 1);
            mr_record_reader_close(reader);
            CHECK_OK(mr_record_quarantine_close(quarantine, &error));
            (void)unlink(side);
        }
        CHECK(failures > 5 && failures < 70);
    }
}
