/* Fuzz target: record files. Each is read in order with either damage policy, scanned in blocks, indexed, and read by
 * number.
 *
 * The first byte selects the options. Bit 0: the damage policy; bit 1: a tiny buffer; bit 2: repair the checksums of
 * headers, at positions that the data determines, so that wrong lengths with valid checksums are tested too. */
#include "records/record/record_format.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

/* The result of one way of reading: a hash of everything found, in order, and numbers of records, losses and bytes. */
typedef struct found {
    uint64_t hash, records, lost, bytes;
} found;

static void mix(found *found, uint64_t value)
{
    found->hash = (found->hash ^ value) * 1099511628211u;
}

static void take_record(found *found, mr_string record, uint64_t number, uint64_t offset)
{
    need(number == found->records + found->lost);
    found->records++;
    found->bytes += MR_RECORD_HEADER_BYTES + record.size_bytes + MR_RECORD_FOOTER_BYTES;
    mix(found, offset);
    mix(found, mr_crc32c(0, record.data, record.size_bytes));
}

static void take_damage(void *context, const mr_record_damage *damage, const mr_error *error)
{
    found *found = context;
    need(damage->record == found->records + found->lost && error->message[0]);
    found->lost++;
    found->bytes += damage->size_bytes;
    mix(found, damage->offset);
    mix(found, (uint64_t)damage->kind);
}

static mr_status take_batch(void *context, const mr_record_batch *batch, mr_error *error)
{
    for (size_t i = 0; i < batch->count; i++)
        take_record(context, batch->records[i], batch->first + i, mr_record_batch_offset(batch, i));
    return MR_OK;
}

static bool read_in_order(const char *path, uint8_t choice, size_t size_bytes, found *found)
{
    mr_record_reader *reader = nullptr;
    mr_record_reader_options options = {.size = sizeof options,
                                        .damage = choice & 1 ? MR_DAMAGE_SKIP : MR_DAMAGE_STOP,
                                        .buffer_bytes = choice & 2 ? 1 : 0,
                                        .buffer_count = 1,
                                        .damaged = take_damage,
                                        .context = found};
    if (mr_record_reader_open(path, &options, &reader, nullptr) != MR_OK) return false;
    mr_string record;
    mr_status status;
    size_t calls = 0;
    /* Each call consumes at least one byte, so the loop ends. Compressed files expand to at most 1032 times their
     * size. */
    while ((status = mr_record_reader_next(reader, &record, nullptr)) != MR_OUT_OF_RANGE) {
        need(status == MR_OK || status == MR_DATA_LOSS);
        need(calls++ <= size_bytes * 1100 + 10);
        if (status == MR_OK)
            take_record(found, record, mr_record_reader_number(reader), mr_record_reader_offset(reader));
        else
            found->lost++;
    }
    need(mr_record_reader_lost(reader) == found->lost);
    bool is_plain = mr_record_reader_compression(reader) == MR_COMPRESSION_NONE;
    mr_record_reader_close(reader);
    return is_plain;
}

/* A scan with one thread must find the same as the reader. In a plain file every byte belongs to a record or to a
 * damaged range. */
static void read_in_blocks(const char *path, uint8_t choice, size_t size_bytes)
{
    found by_reader = {0}, by_scan = {0};
    bool is_plain = read_in_order(path, choice, size_bytes, &by_reader);
    if (!(choice & 1)) return;
    const mr_record_scan_options options = {.size = sizeof options,
                                            .threads = 1,
                                            .damage = MR_DAMAGE_SKIP,
                                            .block_bytes = 4096,
                                            .context = &by_scan,
                                            .take = take_batch,
                                            .damaged = take_damage};
    mr_record_totals totals;
    if (mr_record_scan(&path, 1, &options, &totals, nullptr) != MR_OK) return;
    need(totals.records == by_scan.records && totals.lost == by_scan.lost);
    need(by_scan.hash == by_reader.hash && by_scan.records == by_reader.records && by_scan.lost == by_reader.lost);
    if (is_plain) need(by_scan.bytes == size_bytes && by_reader.bytes == size_bytes);
}

static void read_by_number(const char *path)
{
    mr_record_file *file = nullptr;
    if (mr_record_file_open(path, &file, nullptr) != MR_OK) return;
    for (uint64_t i = mr_record_file_count(file); i-- > 0;) {
        mr_string record;
        void *room = malloc(mr_record_file_record_size(file, i) + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES);
        mr_status status = mr_record_file_read(file, i, room, &record, nullptr);
        need(status == MR_OK || status == MR_DATA_LOSS);
        free(room);
    }
    mr_record_file_close(file);
}

/* Writes a valid checksum after every eight bytes that can be a length of at most about 2 GiB. */
static void mend(uint8_t *bytes, size_t size_bytes)
{
    for (size_t i = 0; i + MR_RECORD_HEADER_BYTES <= size_bytes; i++) {
        if (mr_load_le32(bytes + i + 4) != 0 || bytes[i + 3] > 0x80) continue;
        mr_store_le32(bytes + i + 8, mr_crc32c_mask(mr_crc32c(0, bytes + i, 8)));
        i += MR_RECORD_HEADER_BYTES;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    if (size_bytes == 0) return 0;
    uint8_t choice = *bytes++;
    size_bytes--;
    uint8_t *copy = malloc(size_bytes + 1);
    need(copy != nullptr);
    memcpy(copy, bytes, size_bytes);
    if (choice & 4) mend(copy, size_bytes);
    int descriptor = memfd_create("record-fuzz", MFD_CLOEXEC);
    need(descriptor >= 0 && write(descriptor, copy, size_bytes) == (ssize_t)size_bytes);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    read_in_blocks(path, choice, size_bytes);
    read_by_number(path);
    close(descriptor);
    free(copy);
    return 0;
}
