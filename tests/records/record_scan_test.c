/* Scans of all records of files by several threads: all ways of reading return the same records, in order, and the
 * callbacks are called as documented. */
#include "tests/records/record_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks that batches arrive in order, one at a time, and contain the records that record_write wrote. */
typedef struct expected {
    int counts[8]; /* records of each file */
    size_t sizes[8];
    int32_t file; /* the file expected next */
    uint64_t next;
    atomic_int works;
    atomic_int inside; /* number of concurrent calls of take */
    int ended;
    int takes, take_max; /* the call of take that fails */
    int work_number;     /* work fails at this record of file 0; 0: never */
    atomic_int results;
} expected;

static mr_status work(void *context, mr_record_batch *batch, mr_error *error)
{
    expected *e = context;
    atomic_fetch_add(&e->works, 1);
    CHECK(batch->count > 0 && batch->result == nullptr);
    for (size_t i = 0; i < batch->count; i++) {
        record_check(batch->records[i], (int)(batch->first + i), e->sizes[batch->file]);
        if (e->work_number && batch->file == 0 && batch->first + i == (uint64_t)e->work_number)
            return mr_fail(error, MR_CANCELLED, "work does not like record %d", e->work_number);
    }
    batch->result = malloc(8);
    atomic_fetch_add(&e->results, 1);
    return MR_OK;
}

static mr_status take(void *context, const mr_record_batch *batch, mr_error *error)
{
    expected *e = context;
    CHECK_EQ(atomic_fetch_add(&e->inside, 1), 0);
    while (e->next == (uint64_t)e->counts[e->file]) {
        e->file++;
        e->next = 0;
    }
    CHECK_EQ(batch->file, e->file);
    CHECK_EQ(batch->first, e->next);
    CHECK_EQ(mr_record_batch_offset(batch, 0), record_begin((int)batch->first, e->sizes[e->file]));
    CHECK(batch->result != nullptr);
    free(batch->result);
    atomic_fetch_sub(&e->results, 1);
    e->next += batch->count;
    atomic_fetch_sub(&e->inside, 1);
    if (++e->takes == e->take_max) return mr_fail(error, MR_CANCELLED, "enough");
    return MR_OK;
}

static void discard(void *context, void *result)
{
    expected *e = context;
    free(result);
    atomic_fetch_sub(&e->results, 1);
}

static mr_status file_done(void *context, int32_t file, const mr_record_totals *totals, const mr_error *error)
{
    expected *e = context;
    CHECK_EQ(error->status, MR_OK);
    CHECK_EQ(file, e->ended++);
    CHECK_EQ(totals->records, e->counts[file]);
    CHECK_EQ(totals->lost, 0);
    return MR_OK;
}

static const mr_record_scan_options checking = {.size = sizeof checking,
                                                .work = work,
                                                .take = take,
                                                .discard = discard,
                                                .file_done = file_done,
                                                .block_bytes = 4096};

static void scan_files(const char *const *paths, int32_t count, expected *e, mr_record_scan_options options)
{
    mr_error error = {0};
    mr_record_totals totals;
    uint64_t records = 0;
    for (int32_t i = 0; i < count; i++) records += (uint64_t)e->counts[i];
    for (int threads = 1; threads <= 5; threads += 2) {
        options.threads = threads;
        options.context = e;
        e->file = 0;
        e->next = 0;
        e->ended = 0;
        CHECK_OK(mr_record_scan(paths, count, &options, &totals, &error));
        CHECK_EQ(totals.records, records);
        CHECK_EQ(e->ended, count);
        CHECK_EQ(e->results, 0);
    }
}

TEST(scan_returns_all_records_in_order)
{
    char names[6][512];
    const char *paths[6];
    expected e = {0};
    /* Empty, short records, one record, long records (of which only headers are read in order), longer than a block,
     * GZIP. */
    const int counts[] = {0, 2000, 1, 12, 9, 700};
    const size_t sizes[] = {10, 200, 30, 100'000, 9'000, 300};
    for (int i = 0; i < 6; i++) {
        snprintf(names[i], sizeof names[i], "%s", test_path("%d.tfrecord", i));
        paths[i] = names[i];
        e.counts[i] = counts[i];
        e.sizes[i] = sizes[i];
        record_write(names[i], counts[i], sizes[i],
                     (mr_record_writer_options){.compression = i == 5 ? MR_COMPRESSION_GZIP : MR_COMPRESSION_NONE});
    }
    mr_record_scan_options options = checking;
    scan_files(paths, 6, &e, options);
    options.direct = true;
    scan_files(paths, 6, &e, options);
    options.direct = false;
    options.block_bytes = 0;
    scan_files(paths, 6, &e, options);
    options.block_bytes = 70'000;
    options.skip_checksums = true;
    scan_files(paths, 6, &e, options);
}

TEST(scan_reads_the_standard_input)
{
    const char *path = test_path("in.tfrecord"), *input = "-";
    record_write(path, 900, 400, (mr_record_writer_options){0});
    for (int threads = 1; threads < 4; threads++) {
        expected e = {.counts = {900}, .sizes = {400}};
        int descriptor = open(path, O_RDONLY | O_CLOEXEC);
        CHECK_EQ(dup2(descriptor, STDIN_FILENO), STDIN_FILENO);
        close(descriptor);
        mr_record_scan_options options = checking;
        options.threads = threads;
        options.context = &e;
        mr_error error = {0};
        CHECK_OK(mr_record_scan(&input, 1, &options, nullptr, &error));
        CHECK_EQ(e.ended, 1);
    }
}

TEST(scan_counts_without_callbacks)
{
    const char *path = test_path("c.tfrecord");
    record_write(path, 5000, 100, (mr_record_writer_options){0});
    mr_error error = {0};
    mr_record_totals totals;
    CHECK_OK(mr_record_scan(&path, 1, nullptr, &totals, &error));
    CHECK_EQ(totals.records, 5000);
    CHECK_EQ(totals.size_bytes + 16 * 5000, record_begin(5000, 100));
    CHECK_OK(mr_record_scan(nullptr, 0, nullptr, &totals, &error));
    CHECK_EQ(totals.records, 0);
}

TEST(scan_ends_where_a_callback_stops_it)
{
    const char *path = test_path("e.tfrecord");
    record_write(path, 3000, 100, (mr_record_writer_options){0});
    for (int threads = 1; threads < 5; threads++) {
        mr_error error = {0};
        expected e = {.counts = {3000}, .sizes = {100}, .take_max = 7};
        mr_record_scan_options options = checking;
        options.threads = threads;
        options.context = &e;
        CHECK_STATUS(mr_record_scan(&path, 1, &options, nullptr, &error), MR_CANCELLED);
        CHECK_STR(error.message, "enough");
        CHECK_EQ(e.takes, 7);
        CHECK_EQ(e.ended, 0);
        CHECK_EQ(e.results, 0);

        /* Batches before the one for which work fails are delivered, and none after it. */
        expected refused = {.counts = {3000}, .sizes = {100}, .work_number = 2000};
        options.context = &refused;
        mr_record_totals totals;
        CHECK_STATUS(mr_record_scan(&path, 1, &options, &totals, &error), MR_CANCELLED);
        CHECK_CONTAINS(error.message, "record 2000");
        CHECK(refused.next <= 2000 && refused.next >= 1900 && totals.records == refused.next);
        CHECK_EQ(refused.results, 0);
    }
}

typedef struct told {
    int files, failed, damages;
    mr_status statuses[4];
    uint64_t records[4];
    char message[MR_ERROR_SIZE];
} told;

static mr_status tell_done(void *context, int32_t file, const mr_record_totals *totals, const mr_error *error)
{
    told *t = context;
    CHECK_EQ(file, t->files);
    t->statuses[t->files] = error->status;
    t->records[t->files++] = totals->records;
    if (error->status != MR_OK) memcpy(t->message, error->message, sizeof t->message);
    return MR_OK;
}

TEST(scan_continues_after_unreadable_files)
{
    const char *good = test_path("g.tfrecord"), *bad = test_path("b.tfrecord"), *text = test_path("t.tfrecord");
    record_write(good, 500, 100, (mr_record_writer_options){0});
    record_write(bad, 500, 100, (mr_record_writer_options){0});
    file_save(text, "BZh91AY&SY and so on", 20);
    size_t size;
    unsigned char *bytes = file_load(bad, &size);
    bytes[record_begin(300, 100) + 12] ^= 1;
    file_save(bad, bytes, size);
    free(bytes);
    const char *paths[] = {bad, "/nonexistent/x", text, good};
    mr_error error = {0};
    for (int threads = 1; threads < 4; threads++) {
        told t = {0};
        mr_record_scan_options options = {
            .size = sizeof options, .threads = threads, .block_bytes = 4096, .context = &t, .file_done = tell_done};
        mr_record_totals totals;
        CHECK_OK(mr_record_scan(paths, 4, &options, &totals, &error));
        CHECK_EQ(t.files, 4);
        CHECK_EQ(t.statuses[0], MR_DATA_LOSS);
        CHECK_EQ(t.records[0], 300);
        CHECK_EQ(t.statuses[1], MR_NOT_FOUND);
        CHECK_EQ(t.statuses[2], MR_UNIMPLEMENTED);
        CHECK_EQ(t.statuses[3], MR_OK);
        CHECK_EQ(t.records[3], 500);
        CHECK_EQ(totals.records, 800);
        CHECK_EQ(totals.lost, 1);
        /* Without file_done the scan returns the first failure. */
        options.file_done = nullptr;
        CHECK_STATUS(mr_record_scan(paths, 4, &options, &totals, &error), MR_DATA_LOSS);
        CHECK_CONTAINS(error.message, "b.tfrecord: record 300 at byte ");
        CHECK_EQ(totals.records, 300);
    }
}

static void count_damage(void *context, const mr_record_damage *damage, const mr_error *error)
{
    ((told *)context)->damages++;
}

TEST(scan_keeps_the_budget_over_all_files)
{
    const char *path = test_path("d.tfrecord"), *paths[] = {path, path, path};
    record_write(path, 400, 100, (mr_record_writer_options){0});
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    bytes[record_begin(101, 100) - 1] ^= 1;
    bytes[record_begin(200, 100) + 2] ^= 1;
    file_save(path, bytes, size);
    free(bytes);
    mr_error error = {0};
    mr_record_totals totals;
    told t = {0};
    mr_record_scan_options options = {.size = sizeof options,
                                      .threads = 3,
                                      .block_bytes = 4096,
                                      .damage = MR_DAMAGE_SKIP,
                                      .damage_max = 6,
                                      .context = &t,
                                      .damaged = count_damage};
    CHECK_OK(mr_record_scan(paths, 3, &options, &totals, &error));
    CHECK_EQ(totals.lost, 6);
    CHECK_EQ(t.damages, 6);
    CHECK_EQ(totals.records, 3 * 398);
    options.damage_max = 3;
    CHECK_STATUS(mr_record_scan(paths, 3, &options, &totals, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "damaged range 4, at most 3 are allowed");
    CHECK_EQ(totals.lost, 4);
    CHECK_EQ(totals.records, 398 + 199);
}

static mr_status add_sizes(void *context, mr_record_batch *batch, mr_error *error)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < batch->count; i++) sum += batch->records[i].size_bytes;
    atomic_fetch_add((atomic_uint_fast64_t *)context, sum);
    return MR_OK;
}

TEST(scan_reports_out_of_memory)
{
    long long before = test_allocations();
    if (before < 0) test_skip("allocations are not counted here");
    const char *path = test_path("m.tfrecord"), *damaged = test_path("n.tfrecord"), *paths[] = {path, damaged};
    record_write(path, 300, 200, (mr_record_writer_options){0});
    record_write(damaged, 300, 200, (mr_record_writer_options){0});
    size_t size;
    unsigned char *bytes = file_load(damaged, &size);
    for (int i = 20; i < 300; i += 30) bytes[record_begin(i, 200) + (i % 60 ? 1 : 14)] ^= 1;
    file_save(damaged, bytes, size);
    free(bytes);
    int failures = 0;
    for (int n = 1; n < 300; n++) {
        mr_error error = {0};
        mr_record_totals totals;
        atomic_uint_fast64_t sum = 0;
        const mr_record_scan_options options = {.size = sizeof options,
                                                .threads = n % 2 + 1,
                                                .block_bytes = 4096,
                                                .damage = MR_DAMAGE_SKIP,
                                                .context = &sum,
                                                .work = add_sizes};
        test_fail_allocation(test_allocations() + n);
        mr_status status = mr_record_scan(paths, 2, &options, &totals, &error);
        test_fail_allocation(0);
        if (status == MR_OK) {
            CHECK_EQ(totals.size_bytes, sum);
            CHECK_EQ(totals.records + totals.lost, 600);
            continue;
        }
        CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
        CHECK(error.message[0] != 0);
        failures++;
    }
    CHECK(failures > 10 && failures < 290);
}
