/* Seekable GZIP: files are ordinary GZIP streams, can be read from every entry point and by record number, and do not
 * depend on the number of threads. Indexes of compressed files: built, stale, damaged. */
#include "tests/records/record_data.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static constexpr int COUNT = 400;
static constexpr size_t SIZE_MAX_HERE = 900;
static constexpr size_t SEEK_BYTES = 4096;

static const mr_record_writer_options seekable = {.size = sizeof seekable,
                                                  .compression = MR_COMPRESSION_GZIP,
                                                  .index = true,
                                                  .atomic = true,
                                                  .seek_bytes = SEEK_BYTES};

static void check_same(const char *a, const char *b)
{
    size_t a_size, b_size;
    unsigned char *a_bytes = file_load(a, &a_size), *b_bytes = file_load(b, &b_size);
    CHECK_EQ(a_size, b_size);
    CHECK(memcmp(a_bytes, b_bytes, a_size) == 0);
    free(a_bytes);
    free(b_bytes);
}

static void check_same_index(const mr_record_index *a, const mr_record_index *b)
{
    CHECK_EQ(a->count, b->count);
    CHECK(memcmp(a->offsets, b->offsets, (a->count + 1) * sizeof(uint64_t)) == 0);
    CHECK_EQ(a->file_size_bytes, b->file_size_bytes);
    CHECK_EQ(a->file_modified_ns, b->file_modified_ns);
    CHECK_EQ(a->compression, b->compression);
    CHECK_EQ(a->point_count, b->point_count);
    CHECK(a->point_count == 0 || memcmp(a->points, b->points, a->point_count * sizeof(mr_record_point)) == 0);
}

TEST(seekable_gzip_is_one_ordinary_stream)
{
    const char *plain = test_path("plain"), *path = test_path("s.tfrecord");
    record_write(plain, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){0});
    record_write(path, COUNT, SIZE_MAX_HERE, seekable);
    size_t size, packed_size;
    unsigned char *expected = file_load(plain, &size), *packed = file_load(path, &packed_size);
    unsigned char *bytes = malloc(size + 1);
    /* One member whose checksum and length are correct, verified by zlib. */
    z_stream zlib = {.next_in = packed, .avail_in = (uInt)packed_size, .next_out = bytes, .avail_out = (uInt)size + 1};
    CHECK_EQ(inflateInit2(&zlib, 16 + 15), Z_OK);
    CHECK_EQ(inflate(&zlib, Z_FINISH), Z_STREAM_END);
    CHECK_EQ(zlib.total_out, size);
    CHECK_EQ(zlib.avail_in, 0);
    inflateEnd(&zlib);
    CHECK(memcmp(bytes, expected, size) == 0);
    free(bytes);
    free(packed);
    free(expected);
}

TEST(seekable_gzip_is_the_same_at_any_number_of_threads)
{
    mr_record_writer_options options = seekable;
    record_write(test_path("1"), COUNT, SIZE_MAX_HERE, options);
    for (options.threads = 2; options.threads < 6; options.threads++) {
        record_write(test_path("n"), COUNT, SIZE_MAX_HERE, options);
        check_same(test_path("1"), test_path("n"));
    }
}

TEST(seekable_gzip_is_entered_at_every_point)
{
    mr_error error = {0};
    const char *path = test_path("p.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, seekable);
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(path, &index, &error));
    CHECK_EQ(index.origin, MR_INDEX_LOADED);
    CHECK_EQ(index.count, COUNT);
    CHECK(index.point_count > 20);
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    for (uint64_t i = 0; i < index.point_count; i++) {
        mr_record_point point = index.points[i];
        uint64_t next = i + 1 < index.point_count ? index.points[i + 1].record : index.count;
        CHECK(index.offsets[next] - index.offsets[point.record] < SEEK_BYTES + SIZE_MAX_HERE + 16);
        unsigned char record[SIZE_MAX_HERE + 16];
        z_stream zlib = {.next_in = bytes + point.offset,
                         .avail_in = (uInt)(size - point.offset),
                         .next_out = record,
                         .avail_out = (uInt)(16 + record_size((int)point.record, SIZE_MAX_HERE))};
        CHECK_EQ(inflateInit2(&zlib, -15), Z_OK);
        CHECK(inflate(&zlib, Z_SYNC_FLUSH) >= Z_OK);
        CHECK_EQ(zlib.avail_out, 0);
        inflateEnd(&zlib);
        record_check((mr_string){(char *)record + 12, record_size((int)point.record, SIZE_MAX_HERE)}, (int)point.record,
                     SIZE_MAX_HERE);
    }
    free(bytes);
    mr_record_index_deinit(&index);
}

typedef struct reading {
    mr_record_file *file;
    int step;
} reading;

static void *read_in_steps(void *context)
{
    const reading *reading = context;
    mr_error error = {0};
    unsigned char bytes[SIZE_MAX_HERE + 16];
    mr_string record;
    for (int i = 0, number = 0; i < COUNT; i++, number = (number + reading->step) % COUNT) {
        CHECK_EQ(mr_record_file_record_size(reading->file, (uint64_t)number), record_size(number, SIZE_MAX_HERE));
        CHECK_OK(mr_record_file_read(reading->file, (uint64_t)number, bytes, &record, &error));
        record_check(record, number, SIZE_MAX_HERE);
    }
    return nullptr;
}

TEST(seekable_gzip_is_read_by_number_from_any_thread)
{
    mr_error error = {0};
    const char *path = test_path("r.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, seekable);
    mr_record_file *file = nullptr;
    CHECK_OK(mr_record_file_open(path, &file, &error));
    CHECK_EQ(mr_record_file_count(file), COUNT);
    CHECK_EQ(mr_record_file_compression(file), MR_COMPRESSION_GZIP);
    reading readings[] = {{file, 1}, {file, COUNT - 1}, {file, 37}, {file, 111}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, read_in_steps, &readings[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], nullptr);
    mr_record_file_close(file);

    record_write(path, COUNT, SIZE_MAX_HERE,
                 (mr_record_writer_options){.compression = MR_COMPRESSION_GZIP, .index = true});
    CHECK_STATUS(mr_record_file_open(path, &file, &error), MR_UNIMPLEMENTED);
    CHECK_CONTAINS(error.message, "not seekable");
    record_write(path, 0, SIZE_MAX_HERE, seekable);
    CHECK_OK(mr_record_file_open(path, &file, &error));
    CHECK_EQ(mr_record_file_count(file), 0);
    mr_record_file_close(file);
}

/* Damage in one segment loses only records of that segment. */
TEST(seekable_gzip_that_is_damaged_is_noticed)
{
    mr_error error = {0};
    const char *path = test_path("n.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, seekable);
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(path, &index, &error));
    mr_record_file *file = nullptr;
    CHECK_OK(mr_record_file_open(path, &file, &error));
    size_t size;
    unsigned char *bytes = file_load(path, &size), room[SIZE_MAX_HERE + 16];
    CHECK(index.point_count > 8);
    for (int i = 0; i < 60; i++) bytes[index.points[3].offset + (size_t)i] ^= 0x5a;
    file_save(path, bytes, index.points[index.point_count - 2].offset + 9);
    int bad = 0;
    for (uint64_t i = index.count; i-- > 0;) {
        mr_string record;
        mr_status status = mr_record_file_read(file, i, room, &record, &error);
        bool is_hit = (i >= index.points[3].record && i < index.points[4].record) ||
                      i >= index.points[index.point_count - 2].record;
        CHECK(status == MR_OK || (status == MR_DATA_LOSS && is_hit));
        if (status == MR_OK) record_check(record, (int)i, SIZE_MAX_HERE);
        bad += status != MR_OK;
    }
    CHECK(bad > 3);
    mr_record_file_close(file);
    mr_record_index_deinit(&index);
    free(bytes);
}

TEST(seekable_index_that_is_lost_is_made_again)
{
    mr_error error = {0};
    const char *path = test_path("l.tfrecord");
    mr_record_index written = {0}, made = {0};
    for (int count = 0; count < COUNT; count = count * 3 + 1) {
        record_write(path, count, SIZE_MAX_HERE, seekable);
        CHECK_OK(mr_record_index_open(path, &written, &error));
        CHECK_EQ(written.origin, MR_INDEX_LOADED);
        CHECK_OK(mr_record_index_build(path, 1, &made, &error));
        check_same_index(&written, &made);
        mr_record_index_deinit(&made);
        CHECK_EQ(unlink(test_path("l.tfrecord.index")), 0);
        CHECK_STATUS(mr_record_index_open(path, &made, &error), MR_UNIMPLEMENTED);
        CHECK_EQ(made.origin, MR_INDEX_BUILT);
        CHECK_CONTAINS(error.message, "has no index");
        mr_record_index_deinit(&written);
    }
}

TEST(seekable_index_that_is_stale_or_damaged_is_not_used)
{
    mr_error error = {0};
    const char *path = test_path("t.tfrecord"), *name = test_path("t.tfrecord.index");
    record_write(path, COUNT, SIZE_MAX_HERE, seekable);
    mr_record_index index = {0};
    size_t size;
    unsigned char *bytes = file_load(name, &size);
    for (size_t at = 0; at < size; at += 11) {
        bytes[at] ^= 0x04;
        file_save(name, bytes, size);
        bytes[at] ^= 0x04;
        CHECK_STATUS(mr_record_index_open(path, &index, &error), MR_UNIMPLEMENTED);
        CHECK_EQ(index.origin, MR_INDEX_DAMAGED);
    }
    file_save(name, bytes, size);
    free(bytes);
    CHECK_OK(mr_record_index_open(path, &index, &error));
    mr_record_index_deinit(&index);
    /* The last byte of the stream's length. */
    bytes = file_load(path, &size);
    bytes[size - 1] ^= 1;
    file_save(path, bytes, size);
    free(bytes);
    CHECK_STATUS(mr_record_index_open(path, &index, &error), MR_UNIMPLEMENTED);
    CHECK_EQ(index.origin, MR_INDEX_STALE);
}

/* Flushes that are not points: the following data refers to earlier data. */
TEST(seekable_points_are_not_seen_where_there_are_none)
{
    mr_error error = {0};
    const char *path = test_path("f.tfrecord");
    mr_record_writer *writer = nullptr;
    mr_record_writer_options options = {.size = sizeof options, .compression = MR_COMPRESSION_GZIP};
    CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
    char text[300];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(mr_record_writer_append(writer, text, sizeof text, &error));
        if (i % 5 == 4) CHECK_OK(mr_record_writer_flush(writer, false, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_build(path, 1, &index, &error));
    CHECK_EQ(index.count, 50);
    CHECK_EQ(index.offsets[50], 50 * 316);
    CHECK_EQ(index.point_count, 0);
    mr_record_index_deinit(&index);
}

TEST(seekable_index_of_any_compressed_file_has_the_offsets)
{
    mr_error error = {0};
    const char *path = test_path("z.tfrecord");
    for (mr_compression compression = MR_COMPRESSION_GZIP; compression <= MR_COMPRESSION_ZLIB; compression++) {
        record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){.compression = compression, .index = true});
        mr_record_index index = {0}, made = {0};
        CHECK_OK(mr_record_index_open(path, &index, &error));
        CHECK_EQ(index.point_count, 0);
        CHECK_OK(mr_record_index_build(path, 1, &made, &error));
        for (int i = 0; i <= COUNT; i++) {
            CHECK_EQ(index.offsets[i], record_begin(i, SIZE_MAX_HERE));
            CHECK_EQ(made.offsets[i], index.offsets[i]);
        }
        mr_record_index_deinit(&made);
        mr_record_index_deinit(&index);
    }
}

TEST(seekable_index_of_a_damaged_stream_is_refused)
{
    mr_error error = {0};
    const char *path = test_path("d.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, seekable);
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    mr_record_index index = {0};
    for (size_t cut = 11; cut < size; cut += size / 40) {
        file_save(path, bytes, cut);
        CHECK_STATUS(mr_record_index_build(path, 1, &index, &error), MR_DATA_LOSS);
        CHECK(index.offsets == nullptr);
        CHECK_CONTAINS(error.message, "truncated");
    }
    /* A byte that cannot start a block: three ones. */
    bytes[10] |= 7;
    file_save(path, bytes, size);
    CHECK_STATUS(mr_record_index_build(path, 1, &index, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "record 0");
    free(bytes);
}

TEST(seekable_records_are_counted_in_every_form)
{
    mr_error error = {0};
    const char *path = test_path("c.tfrecord");
    const mr_record_writer_options forms[] = {
        {0},
        {.index = true},
        {.compression = MR_COMPRESSION_GZIP},
        {.compression = MR_COMPRESSION_ZLIB},
        {.compression = MR_COMPRESSION_GZIP, .index = true, .seek_bytes = SEEK_BYTES},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        record_write(path, COUNT, SIZE_MAX_HERE, forms[i]);
        uint64_t count = 0;
        CHECK_OK(mr_record_count(path, 0, &count, &error));
        CHECK_EQ(count, COUNT);
        (void)unlink(test_path("c.tfrecord.index"));
    }
    CHECK_EQ(mkfifo(test_path("pipe"), 0600), 0);
    if (fork() == 0) {
        record_write(test_path("pipe"), COUNT, SIZE_MAX_HERE, (mr_record_writer_options){0});
        _exit(0);
    }
    uint64_t count = 0;
    CHECK_OK(mr_record_count(test_path("pipe"), 0, &count, &error));
    CHECK_EQ(count, COUNT);
    CHECK_STATUS(mr_record_count(test_path("nothing"), 0, &count, &error), MR_NOT_FOUND);
}

TEST(seekable_writer_flushes_between_records)
{
    mr_error error = {0};
    const char *path = test_path("w.tfrecord");
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open(
        path, MR_OPTIONS(mr_record_writer_options, .compression = MR_COMPRESSION_GZIP, .seek_bytes = 1 << 20), &writer,
        &error));
    unsigned char bytes[SIZE_MAX_HERE];
    for (int i = 0; i < 9; i++) {
        record_fill(i, bytes, record_size(i, SIZE_MAX_HERE));
        CHECK_OK(mr_record_writer_append(writer, bytes, record_size(i, SIZE_MAX_HERE), &error));
        if (i % 3 == 2) CHECK_OK(mr_record_writer_flush(writer, false, &error));
    }
    /* All flushed records can be read, although the stream has not ended. */
    mr_record_reader *reader = nullptr;
    mr_string record;
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    for (int i = 0; i < 9; i++) {
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        record_check(record, i, SIZE_MAX_HERE);
    }
    mr_record_reader_close(reader);
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_build(path, 1, &index, &error));
    CHECK_EQ(index.count, 9);
    CHECK_EQ(index.point_count, 3);
    mr_record_index_deinit(&index);
}

TEST(seekable_writer_on_a_full_disk_leaves_nothing)
{
    mr_error error = {0};
    struct rlimit limit = {.rlim_cur = 20'000, .rlim_max = RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    mr_record_writer_options options = seekable;
    for (options.threads = 1; options.threads < 4; options.threads++) {
        mr_record_writer *writer = nullptr;
        CHECK_OK(mr_record_writer_open(test_path("full"), &options, &writer, &error));
        mr_status status = MR_OK;
        unsigned char bytes[SIZE_MAX_HERE];
        for (int i = 0; i < COUNT && status == MR_OK; i++) {
            record_fill(i, bytes, SIZE_MAX_HERE);
            status = mr_record_writer_append(writer, bytes, SIZE_MAX_HERE, &error);
        }
        CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
        CHECK_STATUS(mr_record_writer_close(writer, &error), MR_RESOURCE_EXHAUSTED);
        CHECK(access(test_path("full"), F_OK) != 0);
        CHECK(access(test_path("full.partial"), F_OK) != 0);
        CHECK(access(test_path("full.index"), F_OK) != 0);
    }
}

/* Writes, builds the index, counts; the n-th allocation fails. */
static mr_status everything(const char *path, mr_error *error)
{
    mr_record_writer *writer = nullptr;
    mr_record_writer_options options = seekable;
    options.threads = 2;
    MR_TRY(mr_record_writer_open(path, &options, &writer, error));
    unsigned char bytes[SIZE_MAX_HERE];
    mr_status status = MR_OK;
    for (int i = 0; i < 40 && status == MR_OK; i++) {
        record_fill(i, bytes, SIZE_MAX_HERE);
        status = mr_record_writer_append(writer, bytes, SIZE_MAX_HERE, error);
    }
    mr_status closed = mr_record_writer_close(writer, error);
    if (closed != MR_OK) return closed;
    CHECK_STATUS(status, MR_OK);
    mr_record_index index = {0};
    MR_TRY(mr_record_index_build(path, 1, &index, error));
    CHECK_EQ(index.count, 40);
    mr_record_index_deinit(&index);
    return MR_OK;
}

TEST(seekable_every_allocation_may_fail)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    const char *path = test_path("m.tfrecord");
    int failures = 0;
    for (int n = 1;; n++) {
        mr_error error = {0};
        long long before = test_allocations();
        test_fail_allocation(before + n);
        mr_status status = everything(path, &error);
        long long used = test_allocations() - before;
        test_fail_allocation(0);
        if (used < n) break;
        if (status == MR_OK) continue;
        CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
        CHECK(error.message[0] != '\0');
        failures++;
    }
    CHECK(failures > 10);
}
