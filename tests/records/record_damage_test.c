/* Damaged files: checks which records are lost and which are found again, and that every reader reaches the end. */
#include "tests/records/record_data.h"

static constexpr int COUNT = 40;
static constexpr size_t SIZE_MAX_HERE = 200;

typedef struct report {
    int count;
    mr_record_damage last;
    char message[MR_ERROR_SIZE];
} report;

static void note(void *context, const mr_record_damage *damage, const mr_error *error)
{
    report *report = context;
    report->count++;
    report->last = *damage;
    memcpy(report->message, error->message, sizeof report->message);
}

/* Reads with MR_DAMAGE_SKIP; sets seen[i] for each original record that is returned. */
static int read_what_is_left(const char *path, bool *seen, report *report, size_t buffer_bytes)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status;
    int came = 0, next = 0;
    memset(seen, 0, COUNT);
    CHECK_OK(mr_record_reader_open(path,
                                   MR_OPTIONS(mr_record_reader_options, .damage = MR_DAMAGE_SKIP, .damaged = note,
                                              .context = report, .buffer_bytes = buffer_bytes),
                                   &reader, &error));
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) {
        while (next < COUNT && mr_record_reader_offset(reader) > record_begin(next, SIZE_MAX_HERE)) next++;
        CHECK(next < COUNT);
        CHECK_EQ(mr_record_reader_offset(reader), record_begin(next, SIZE_MAX_HERE));
        record_check(record, next, SIZE_MAX_HERE);
        seen[next] = true;
        came++;
    }
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    CHECK_EQ(mr_record_reader_lost(reader), report->count);
    mr_record_reader_close(reader);
    return came;
}

static const char *make(void)
{
    const char *path = test_path("whole.tfrecord");
    record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){0});
    return path;
}

TEST(damage_one_flipped_bit_loses_one_record)
{
    size_t size;
    unsigned char *bytes = file_load(make(), &size);
    const char *path = test_path("flipped.tfrecord");
    uint32_t state = (uint32_t)test_seed();
    for (int round = 0; round < 300; round++) {
        state = state * 1664525 + 1013904223;
        size_t bit = (size_t)state % (size * 8);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        file_save(path, bytes, size);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        bool seen[COUNT];
        report report = {0};
        int came = read_what_is_left(path, seen, &report, round % 2 ? 1 : 0);
        CHECK_EQ(came, COUNT - 1);
        CHECK_EQ(report.count, 1);
        int hit = 0;
        while (hit + 1 < COUNT && record_begin(hit + 1, SIZE_MAX_HERE) <= bit / 8) hit++;
        CHECK(!seen[hit]);
        CHECK_EQ(report.last.record, hit);
        CHECK_EQ(report.last.offset, record_begin(hit, SIZE_MAX_HERE));
        CHECK_EQ(report.last.size_bytes, 16 + record_size(hit, SIZE_MAX_HERE));
        bool is_header = bit / 8 - report.last.offset < 12;
        CHECK_EQ(report.last.kind, is_header ? MR_DAMAGE_HEADER : MR_DAMAGE_DATA);
    }
    free(bytes);
}

TEST(damage_truncation_at_every_byte_loses_the_rest)
{
    size_t size;
    unsigned char *bytes = file_load(make(), &size);
    const char *path = test_path("cut.tfrecord");
    for (size_t cut = 0; cut < size; cut += cut < 600 ? 1 : 23) {
        file_save(path, bytes, cut);
        bool seen[COUNT];
        report report = {0};
        int whole = 0;
        while (record_begin(whole + 1, SIZE_MAX_HERE) <= cut) whole++;
        bool on_boundary = record_begin(whole, SIZE_MAX_HERE) == cut;
        CHECK_EQ(read_what_is_left(path, seen, &report, 0), whole);
        CHECK_EQ(report.count, on_boundary ? 0 : 1);
        if (!on_boundary) CHECK_EQ(report.last.kind, MR_DAMAGE_TRUNCATED);
    }
    free(bytes);
}

TEST(damage_stop_names_the_offset_and_continues)
{
    size_t size;
    unsigned char *bytes = file_load(make(), &size);
    bytes[record_begin(5, SIZE_MAX_HERE) + 12] ^= 1; /* data */
    bytes[record_begin(9, SIZE_MAX_HERE) + 3] ^= 1;  /* length */
    const char *path = test_path("stop.tfrecord");
    file_save(path, bytes, size);
    free(bytes);
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    for (int i = 0; i < COUNT; i++) {
        bool is_bad = i == 5 || i == 9;
        CHECK_EQ(mr_record_reader_next(reader, &record, &error), is_bad ? MR_DATA_LOSS : MR_OK);
        if (!is_bad) {
            record_check(record, i, SIZE_MAX_HERE);
            CHECK_EQ(mr_record_reader_number(reader), i);
            continue;
        }
        char where[100];
        snprintf(where, sizeof where, "stop.tfrecord: record %d at byte %zu: ", i, record_begin(i, SIZE_MAX_HERE));
        CHECK_CONTAINS(error.message, where);
    }
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
    CHECK_EQ(mr_record_reader_lost(reader), 2);
    mr_record_reader_close(reader);
}

TEST(damage_a_budget_is_kept)
{
    size_t size;
    unsigned char *bytes = file_load(make(), &size);
    for (int i = 10; i < 30; i += 5) bytes[record_begin(i + 1, SIZE_MAX_HERE) - 1] ^= 1;
    const char *path = test_path("budget.tfrecord");
    file_save(path, bytes, size);
    free(bytes);
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status;
    int came = 0;
    CHECK_OK(mr_record_reader_open(
        path, MR_OPTIONS(mr_record_reader_options, .damage = MR_DAMAGE_SKIP, .damage_max = 2), &reader, &error));
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) came++;
    CHECK_EQ(status, MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "at most 2 are allowed");
    CHECK_EQ(came, 18);
    mr_record_reader_close(reader);
}

/* Writes a header for that length, with a valid checksum. */
static void put_header(unsigned char *bytes, uint64_t length)
{
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(length >> 8 * i);
    uint32_t crc = mr_crc32c_mask(mr_crc32c(0, bytes, 8));
    for (int i = 0; i < 4; i++) bytes[8 + i] = (unsigned char)(crc >> 8 * i);
}

TEST(damage_a_huge_length_with_a_good_checksum_takes_no_memory)
{
    const uint64_t lengths[] = {1000,       (uint64_t)1 << 31, ((uint64_t)1 << 31) + 1, (uint64_t)1 << 40,
                                UINT64_MAX, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        unsigned char bytes[40] = {0};
        put_header(bytes, lengths[i]);
        const char *path = test_path("huge.tfrecord");
        file_save(path, bytes, sizeof bytes);
        mr_error error = {0};
        mr_record_reader *reader = nullptr;
        mr_string record;
        CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
        CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_DATA_LOSS);
        CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_OUT_OF_RANGE);
        mr_record_reader_close(reader);
    }
}

TEST(damage_a_file_full_of_false_headers_ends)
{
    /* Each header claims nearly the rest of the file as its record. */
    static unsigned char bytes[12 * 3000];
    for (size_t at = 0; at < sizeof bytes; at += 12) {
        size_t left = sizeof bytes - at;
        put_header(bytes + at, left > 100 ? left - 17 : 100);
    }
    bytes[0] ^= 1;
    const char *path = test_path("false.tfrecord");
    file_save(path, bytes, sizeof bytes);
    bool seen[COUNT];
    report report = {0};
    CHECK_EQ(read_what_is_left(path, seen, &report, 0), 0);
    CHECK_EQ(report.count, 1);
    CHECK_EQ(report.last.size_bytes, sizeof bytes);
}

TEST(damage_text_is_no_record_file)
{
    const char *path = test_path("text.tfrecord"), *text = "this is not a record file but some text, and it is long\n";
    file_save(path, text, strlen(text));
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    CHECK_STATUS(mr_record_reader_next(reader, &record, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "is this a TFRecord file?");
    mr_record_reader_close(reader);
}

TEST(damage_of_a_compressed_file_keeps_earlier_records)
{
    const char *path = test_path("c.tfrecord");
    for (int compression = 1; compression <= 2; compression++) {
        record_write(path, COUNT, SIZE_MAX_HERE,
                     (mr_record_writer_options){.compression = (mr_compression)compression});
        size_t size;
        unsigned char *bytes = file_load(path, &size);
        for (size_t cut = 20; cut < size; cut += 61) {
            const char *damaged = test_path("d.tfrecord");
            file_save(damaged, bytes, cut);
            bool seen[COUNT];
            report report = {0};
            CHECK(read_what_is_left(damaged, seen, &report, 0) <= COUNT);
            CHECK_EQ(report.count, 1);
            CHECK_EQ(report.last.kind, MR_DAMAGE_COMPRESSION);
        }
        free(bytes);
    }
}
