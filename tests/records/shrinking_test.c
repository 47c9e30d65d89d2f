/* A file that is truncated while it is read: the returned records are correct, the truncation is reported, and nothing
 * crashes. */
#include "tests/records/record_data.h"

#include <unistd.h>

static constexpr int COUNT = 3000;
static constexpr size_t SIZE_MAX_HERE = 3000;

typedef struct reading {
    const char *path;
    size_t cut; /* where the file is truncated after its first record was returned */
    int count;
    bool is_told;
} reading;

static void take(reading *r, mr_string record)
{
    record_check(record, r->count, SIZE_MAX_HERE);
    if (r->count++ == 0) CHECK_EQ(truncate(r->path, (off_t)r->cut), 0);
}

static void take_damage(void *context, const mr_record_damage *damage, const mr_error *problem)
{
    reading *r = context;
    CHECK_CONTAINS(problem->message, "truncated");
    CHECK(!r->is_told);
    r->is_told = true;
}

static mr_status take_batch(void *context, const mr_record_batch *batch, mr_error *error)
{
    for (size_t i = 0; i < batch->count; i++) take(context, batch->records[i]);
    return MR_OK;
}

static void read_in_order(reading *r)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    mr_status status;
    const mr_record_reader_options options = {
        .size = sizeof options, .buffer_bytes = 4096, .damage = MR_DAMAGE_SKIP, .damaged = take_damage, .context = r};
    CHECK_OK(mr_record_reader_open(r->path, &options, &reader, &error));
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) take(r, record);
    if (!r->is_told) {
        CHECK_STATUS(status, MR_ABORTED);
        CHECK_CONTAINS(error.message, "has shrunk while it was being read");
        status = mr_record_reader_next(reader, &record, &error);
    }
    /* The truncation is reported once. */
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
}

static void read_with_threads(reading *r, int threads)
{
    mr_error error = {0};
    const mr_record_scan_options options = {.size = sizeof options,
                                            .threads = threads,
                                            .block_bytes = 4096,
                                            .damage = MR_DAMAGE_SKIP,
                                            .context = r,
                                            .take = take_batch,
                                            .damaged = take_damage};
    mr_status status = mr_record_scan(&r->path, 1, &options, nullptr, &error);
    if (r->is_told) return;
    CHECK_STATUS(status, MR_ABORTED);
    CHECK_CONTAINS(error.message, "was changed while it was being read");
}

TEST(shrinking_files_are_reported)
{
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("file"));
    for (int way = 0; way < 3; way++) {
        for (int place = 0; place < 4; place++) {
            record_write(path, COUNT, SIZE_MAX_HERE, (mr_record_writer_options){0});
            const size_t cuts[] = {0, record_begin(1500, SIZE_MAX_HERE), record_begin(1500, SIZE_MAX_HERE) + 5,
                                   record_begin(1501, SIZE_MAX_HERE) - 7};
            reading r = {.path = path, .cut = cuts[place]};
            if (way == 0)
                read_in_order(&r);
            else
                read_with_threads(&r, way == 1 ? 1 : 3);
            /* Records that were read before the truncation are returned too. */
            CHECK(r.count >= 1 && r.count < (place == 0 ? 500 : 2000));
        }
    }
}

TEST(shrinking_files_are_not_those_that_grow)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record;
    record_write(test_path("whole"), 20, 300, (mr_record_writer_options){0});
    size_t size, half = record_begin(10, 300);
    unsigned char *bytes = file_load(test_path("whole"), &size);
    file_save(test_path("file"), bytes, half);
    CHECK_OK(mr_record_reader_open(test_path("file"), nullptr, &reader, &error));
    CHECK_OK(mr_record_reader_next(reader, &record, &error));
    file_save(test_path("file"), bytes, size);
    int count = 1;
    mr_status status;
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) count++;
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    CHECK(count >= 10);
    mr_record_reader_close(reader);
    free(bytes);
}
