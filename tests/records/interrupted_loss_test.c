/* A quarantine that cannot be written interrupts a search in the middle of a damaged range. The reader then continues
 * with the same range: it is one loss, and no record after it is lost or invented. */
#include "tests/records/record_data.h"

#include <unistd.h>

static constexpr int COUNT = 3000, BAD = 100;
static constexpr size_t LONGEST = 4000;

/* Zeroes about 4 MiB from record BAD on: several pieces of the quarantine. Returns the number of the first record after
 * them. */
static int make_damaged(const char *path)
{
    size_t size, begin = record_begin(BAD, LONGEST), end = begin + ((size_t)4 << 20);
    record_write(path, COUNT, LONGEST, (mr_record_writer_options){0});
    unsigned char *bytes = file_load(path, &size);
    CHECK(end < size);
    memset(bytes + begin, 0xa5, end - begin);
    file_save(path, bytes, size);
    free(bytes);
    int next = BAD;
    while (record_begin(next, LONGEST) < end) next++;
    return next;
}

TEST(interrupted_loss_is_one_loss)
{
    const char *path = test_path("d.tfrecord");
    int next = make_damaged(path), failures = 0;
    mr_error error = {0};
    mr_record_quarantine *quarantine = nullptr;
    mr_record_reader *reader = nullptr;
    mr_string record;
    if (access("/dev/full", W_OK) != 0) test_skip("there is no /dev/full");
    CHECK_EQ(symlink("/dev/full", test_path("q")), 0);
    CHECK_OK(mr_record_quarantine_open(test_path("q"), &quarantine, &error));
    const mr_record_reader_options options = {
        .size = sizeof options, .damage = MR_DAMAGE_SKIP, .quarantine = quarantine};
    CHECK_OK(mr_record_reader_open(path, &options, &reader, &error));
    for (int number = 0; failures < 20;) {
        mr_status status = mr_record_reader_next(reader, &record, &error);
        if (status == MR_OUT_OF_RANGE) {
            CHECK_EQ(number, COUNT);
            break;
        }
        if (status != MR_OK) {
            CHECK_STATUS(status, MR_RESOURCE_EXHAUSTED);
            CHECK_EQ(number, BAD);
            failures++;
            continue;
        }
        if (number == BAD) number = next;
        record_check(record, number++, LONGEST);
    }
    CHECK(failures >= 4 && failures <= 6);
    CHECK_EQ(mr_record_reader_lost(reader), 1);
    mr_record_damage damage = mr_record_reader_damage(reader);
    CHECK_EQ(damage.offset, record_begin(BAD, LONGEST));
    CHECK_EQ(damage.offset + damage.size_bytes, record_begin(next, LONGEST));
    CHECK_EQ(damage.record, BAD);
    mr_record_reader_close(reader);
    CHECK_EQ(mr_record_quarantine_count(quarantine), 1);
    CHECK_OK(mr_record_quarantine_close(quarantine, &error));
}
