/* Seekable GZIP read by several threads: records, numbers, offsets and damage are the same as with one reader. */
#include "tests/records/record_data.h"

#include <sys/stat.h>
#include <unistd.h>

static constexpr int COUNT = 3000;
static constexpr size_t SIZE_MAX_HERE = 900;

/* The result of a pass over a file, summed in a way that depends on the order. */
typedef struct seen {
    uint64_t records, lost, first_lost, last_offset;
    uint32_t crc;
} seen;

static void note(seen *seen, uint64_t number, uint64_t offset, mr_string record)
{
    uint64_t place[2] = {number, offset};
    seen->crc = mr_crc32c(mr_crc32c(seen->crc, place, sizeof place), record.data, record.size_bytes);
    seen->records++;
    seen->last_offset = offset;
}

static void note_loss(void *context, const mr_record_damage *damage, const mr_error *error)
{
    seen *seen = context;
    CHECK(error->message[0] != '\0');
    if (seen->lost++ == 0) seen->first_lost = damage->record;
}

static mr_status take(void *context, const mr_record_batch *batch, mr_error *error)
{
    for (size_t i = 0; i < batch->count; i++)
        note(context, batch->first + i, mr_record_batch_offset(batch, i), batch->records[i]);
    return MR_OK;
}

static seen read_in_order(const char *path)
{
    mr_error error = {0};
    seen seen = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    const mr_record_reader_options options = {
        .size = sizeof options, .damage = MR_DAMAGE_SKIP, .damaged = note_loss, .context = &seen};
    CHECK_OK(mr_record_reader_open(path, &options, &reader, &error));
    while (mr_record_reader_next(reader, &record, &error) == MR_OK)
        note(&seen, mr_record_reader_number(reader), mr_record_reader_offset(reader), record);
    mr_record_reader_close(reader);
    return seen;
}

static void check_scan(const char *path, int threads)
{
    mr_error error = {0};
    seen alone = read_in_order(path), together = {0};
    mr_record_totals totals;
    const mr_record_scan_options options = {.size = sizeof options,
                                            .threads = threads,
                                            .damage = MR_DAMAGE_SKIP,
                                            .damaged = note_loss,
                                            .take = take,
                                            .context = &together};
    CHECK_OK(mr_record_scan(&path, 1, &options, &totals, &error));
    CHECK_EQ(together.records, alone.records);
    CHECK_EQ(together.lost, alone.lost);
    CHECK_EQ(together.first_lost, alone.first_lost);
    CHECK_EQ(together.last_offset, alone.last_offset);
    CHECK_EQ(together.crc, alone.crc);
    CHECK_EQ(totals.records, alone.records);
    CHECK_EQ(totals.lost, alone.lost);
}

TEST(seekable_scan_equals_a_reader)
{
    const char *path = test_path("s.tfrecord");
    mr_record_writer_options options = {.size = sizeof options, .compression = MR_COMPRESSION_GZIP, .index = true};
    for (size_t seek = 1; seek < 1 << 20; seek *= 40) {
        options.seek_bytes = seek;
        record_write(path, COUNT, SIZE_MAX_HERE, options);
        for (int threads = 1; threads < 5; threads++) check_scan(path, threads);
    }
    for (int count = 0; count < 4; count++) {
        record_write(path, count, SIZE_MAX_HERE, options);
        check_scan(path, 2);
    }
}

TEST(seekable_scan_of_damage_tells_what_a_reader_tells)
{
    const char *path = test_path("d.tfrecord"), *name = test_path("d.tfrecord.index");
    mr_record_writer_options options = {
        .size = sizeof options, .compression = MR_COMPRESSION_GZIP, .index = true, .seek_bytes = 20'000};
    record_write(path, COUNT, SIZE_MAX_HERE, options);
    mr_error error = {0};
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(path, &index, &error));
    CHECK(index.point_count > 20);
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    uint32_t state = (uint32_t)test_seed() | 1;
    for (int i = 0; i < 40; i++) {
        state = state * 1664525 + 1013904223;
        size_t at = i % 5 == 0 ? size - 1 - state % 8 : 20 + state % (size - 30);
        bytes[at] ^= 0x11;
        file_save(path, bytes, i % 8 == 7 ? at + 1 : size);
        bytes[at] ^= 0x11;
        /* Store the index with the size and time of this version of the file, so that it is accepted. */
        mr_record_index written = index;
        mr_record_index now = {0};
        (void)mr_record_index_open(path, &now, nullptr);
        mr_record_index_deinit(&now);
        struct stat about;
        CHECK_EQ(stat(path, &about), 0);
        written.file_size_bytes = (uint64_t)about.st_size;
        written.file_modified_ns = (int64_t)about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec;
        while (written.points[written.point_count - 1].offset >= written.file_size_bytes) written.point_count--;
        CHECK_OK(mr_record_index_write(path, &written, &error));
        CHECK_EQ(access(name, F_OK), 0);
        check_scan(path, 1 + i % 4);
    }
    mr_record_index_deinit(&index);
    free(bytes);
}

TEST(seekable_range_is_entered_at_its_point)
{
    mr_error error = {0};
    const char *path = test_path("r.tfrecord");
    mr_record_writer_options options = {
        .size = sizeof options, .compression = MR_COMPRESSION_GZIP, .index = true, .seek_bytes = 20'000};
    record_write(path, COUNT, SIZE_MAX_HERE, options);
    /* Data before the range is not read and may even be damaged, between two of the index's samples. */
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    memset(bytes + 600, 0xff, size / 10);
    file_save(path, bytes, size);
    free(bytes);
    for (int first = COUNT / 2; first < COUNT + 3; first += 70) {
        mr_record_reader *reader = nullptr;
        mr_string record;
        CHECK_OK(mr_record_reader_open(path, MR_OPTIONS(mr_record_reader_options, .first = (uint64_t)first), &reader,
                                       &error));
        for (int i = first; i < COUNT; i++) {
            CHECK_OK(mr_record_reader_next(reader, &record, &error));
            CHECK_EQ(mr_record_reader_number(reader), i);
            if (i % 500 == 0) CHECK_EQ(mr_record_reader_offset(reader), record_begin(i, SIZE_MAX_HERE));
            record_check(record, i, SIZE_MAX_HERE);
        }
        CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
        mr_record_reader_close(reader);
    }
}
