/* Fuzz target: record indexes, and indexing of compressed files.
 *
 * The low two bits of the first byte select what the rest is. 0: an index file; bit 2 repairs its checksum, and bit 3
 * makes the size and checksum of the record file match it. 1: an index in DALI's text format. 2 or 3: a compressed
 * file, which is indexed and whose records are then all read by number. */
#include "records/record/gzip_seek.h"
#include "records/record/record_format.h"
#include "records/record/record_index.h"

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

static void check_offsets(const mr_record_index *index)
{
    need(index->offsets != nullptr && index->offsets[0] == 0);
    for (uint64_t i = 0; i < index->count; i++) need(index->offsets[i + 1] >= index->offsets[i] + 16);
    for (uint64_t i = 0; i < index->point_count; i++) {
        need(index->points[i].record < index->count);
        need(i == 0 || index->points[i].record > index->points[i - 1].record);
        need(mr_record_index_point(index, index->points[i].record) == i);
    }
}

static void decode(uint8_t choice, const uint8_t *bytes, size_t size_bytes)
{
    mr_file_stamp stamp = {.size_bytes = 100, .modified_ns = 5};
    mr_record_index index = {0};
    uint8_t *copy = malloc(size_bytes + 1);
    memcpy(copy, bytes, size_bytes);
    if ((choice & 4) && size_bytes >= 4)
        mr_store_le32(copy + size_bytes - 4, mr_crc32c_mask(mr_crc32c(0, copy, size_bytes - 4)));
    if ((choice & 8) && size_bytes >= 24) stamp.size_bytes = mr_load_le64(copy + 8);
    uint32_t checksum = (choice & 8) && size_bytes >= 40 ? mr_load_le32(copy + 36) : 7;
    if (mr_record_index_decode(copy, size_bytes, &stamp, checksum, &index) == MR_OK) {
        check_offsets(&index);
        need(index.compression != MR_COMPRESSION_NONE || index.offsets[index.count] == stamp.size_bytes);
    } else {
        need(index.offsets == nullptr && index.points == nullptr);
    }
    mr_record_index_deinit(&index);
    free(copy);
}

static void parse_dali(const uint8_t *bytes, size_t size_bytes)
{
    mr_record_index index = {0};
    char *copy = malloc(size_bytes + 1);
    memcpy(copy, bytes, size_bytes);
    if (mr_dali_index_parse("x.idx", copy, size_bytes, &index, nullptr) == MR_OK) {
        check_offsets(&index);
        need(index.count <= size_bytes / 4 + 1);
    }
    mr_record_index_deinit(&index);
    free(copy);
}

static void read_all(int descriptor, const char *path, const mr_record_index *index)
{
    mr_gzip_seek *seek = nullptr;
    if (index->point_count == 0 || mr_gzip_seek_new(path, index, &seek, nullptr) != MR_OK) return;
    for (uint64_t i = index->count; i-- > 0;) {
        size_t size = (size_t)(index->offsets[i + 1] - index->offsets[i]), done;
        unsigned char *room = malloc(size);
        uint64_t length;
        /* Records found by sequential decompression can also be read by number. */
        need(mr_gzip_seek_read(seek, descriptor, i, room, size, &done, nullptr) == MR_OK && done == size);
        need(mr_record_header_is_valid(room, &length) && length + 16 == size);
        free(room);
    }
    mr_gzip_seek_free(seek);
}

static void make(const uint8_t *bytes, size_t size_bytes)
{
    int descriptor = memfd_create("index-fuzz", MFD_CLOEXEC);
    need(descriptor >= 0 && write(descriptor, bytes, size_bytes) == (ssize_t)size_bytes);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    mr_record_index index = {0};
    uint64_t count = 0;
    mr_status made = mr_record_index_build(path, 1, &index, nullptr),
              counted = mr_record_count(path, 1, &count, nullptr);
    need((made == MR_OK) == (counted == MR_OK));
    if (made == MR_OK) {
        need(count == index.count);
        check_offsets(&index);
        read_all(descriptor, path, &index);
    }
    mr_record_index_deinit(&index);
    close(descriptor);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    if (size_bytes == 0) return 0;
    uint8_t choice = *bytes++;
    size_bytes--;
    switch (choice & 3) {
    case 0:
        decode(choice, bytes, size_bytes);
        break;
    case 1:
        parse_dali(bytes, size_bytes);
        break;
    default:
        make(bytes, size_bytes);
        break;
    }
    return 0;
}
