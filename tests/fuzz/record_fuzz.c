/* Record files from hostile bytes: read in order under both policies, indexed, read by number.
 *
 * The first byte chooses: bit 0 the policy, bit 1 a tiny buffer; bit 2 mends the header checksums at places that the data
 * itself names, so that lengths that lie are reached too. */
#include "records/record_format.h"

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

static void read_in_order(const char *path, uint8_t choice, size_t size_bytes)
{
    mr_record_reader *reader = nullptr;
    mr_record_reader_options options = {.damage = choice & 1 ? MR_DAMAGE_SKIP : MR_DAMAGE_STOP,
                                        .buffer_bytes = choice & 2 ? 1 : 0};
    if (mr_record_reader_open(path, &options, &reader, nullptr) != MR_OK) return;
    mr_string record;
    mr_status status;
    size_t calls = 0;
    /* Each call takes at least a byte away, so this ends: for compressed files after what they hold, at most 1032 times. */
    while ((status = mr_record_reader_next(reader, &record, nullptr)) != MR_OUT_OF_RANGE) {
        need(status == MR_OK || status == MR_DATA_LOSS);
        need(calls++ <= size_bytes * 1100 + 10);
        if (status == MR_OK)
            need(mr_crc32c(0, record.data, record.size_bytes) == mr_crc32c(0, record.data, record.size_bytes));
    }
    mr_record_reader_free(reader);
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
    mr_record_file_free(file);
}

/* Every place whose eight bytes have zeros above gets the checksum that makes it a header. */
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
    read_in_order(path, choice, size_bytes);
    read_by_number(path);
    close(descriptor);
    free(copy);
    return 0;
}
