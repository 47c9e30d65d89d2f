/* The record index: the offset of each record, so that records can be read in any order. Stored in path + ".index":
 *
 *     8  "MRINDEX3"
 *     8  size of the record file          all numbers little-endian
 *     8  count of records
 *     8  count of points
 *     4  compression: 0 none, 1 GZIP, 2 ZLIB
 *     4  CRC32C of samples of the record file: 8 evenly spaced windows of 512 bytes, the first at byte 0, the last at
 *        the end; of files up to 4,096 bytes, all bytes
 *     4  length of each record's data, count times
 *    16  record and offset of each point, for seekable GZIP
 *     4  masked CRC32C of everything before
 *
 * Size and samples determine whether the index belongs to the current record file, even after both are copied. Some
 * headers are compared too; all headers of a plain file that was modified after its index. If they do not match, the
 * index is ignored. Two indexes of the same file are byte-identical. */
#include "records/record/record_index.h"

#include "base/arguments.h"
#include "base/status.h"
#include "records/record/record_format.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr char MAGIC[8] = {'M', 'R', 'I', 'N', 'D', 'E', 'X', '3'};
static constexpr size_t HEAD_BYTES = 40;
static constexpr size_t POINT_BYTES = 16;
static constexpr uint64_t AROUND_BYTES = MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
/* Maximum compression ratio of deflate. */
static constexpr uint64_t INFLATION_MAX = 1032;

static_assert(MR_RECORD_SIZE_MAX <= UINT32_MAX);

mr_status mr_record_index_append(mr_record_index *index, uint64_t *capacity, uint64_t length, mr_error *error)
{
    assert(length <= MR_RECORD_SIZE_MAX);
    if (index->count + 2 > *capacity) {
        uint64_t grown = *capacity ? *capacity * 2 : 1024;
        uint64_t *offsets = realloc(index->offsets, grown * sizeof(uint64_t));
        if (offsets == nullptr) return mr_fail_memory(error, grown * sizeof(uint64_t));
        if (*capacity == 0) offsets[0] = 0;
        index->offsets = offsets;
        *capacity = grown;
    }
    assert(index->offsets != nullptr && index->count + 1 < *capacity);
    index->offsets[index->count + 1] = index->offsets[index->count] + AROUND_BYTES + length;
    index->count++;
    return MR_OK;
}

mr_status mr_record_index_append_point(mr_record_index *index, uint64_t *capacity, mr_record_point point,
                                       mr_error *error)
{
    assert(index->point_count <= *capacity &&
           (index->point_count == 0 || index->points[index->point_count - 1].record < point.record));
    if (index->point_count == *capacity) {
        uint64_t grown = *capacity ? *capacity * 2 : 64;
        mr_record_point *points = realloc(index->points, grown * sizeof(mr_record_point));
        if (points == nullptr) return mr_fail_memory(error, grown * sizeof(mr_record_point));
        index->points = points;
        *capacity = grown;
    }
    index->points[index->point_count++] = point;
    return MR_OK;
}

void mr_record_index_deinit(mr_record_index *index)
{
    if (index == nullptr) return;
    free(index->offsets);
    free(index->points);
    *index = (mr_record_index){0};
}

/* path + ".index", owned; null if out of memory. */
static char *index_path(const char *path)
{
    char *name = nullptr;
    return asprintf(&name, "%s.index", path) < 0 ? nullptr : name;
}

/* ---- Write ---- */

static void encode(const mr_record_index *index, unsigned char *bytes, size_t size)
{
    memcpy(bytes, MAGIC, sizeof(MAGIC));
    mr_store_le64(bytes + 8, index->file_size_bytes);
    mr_store_le64(bytes + 16, index->count);
    mr_store_le64(bytes + 24, index->point_count);
    mr_store_le32(bytes + 32, (uint32_t)index->compression);
    mr_store_le32(bytes + 36, index->file_checksum);
    unsigned char *next = bytes + HEAD_BYTES;
    for (uint64_t i = 0; i < index->count; i++, next += 4)
        mr_store_le32(next, (uint32_t)(index->offsets[i + 1] - index->offsets[i] - AROUND_BYTES));
    for (uint64_t i = 0; i < index->point_count; i++, next += POINT_BYTES) {
        mr_store_le64(next, index->points[i].record);
        mr_store_le64(next + 8, index->points[i].offset);
    }
    mr_store_le32(next, mr_crc32c_mask(mr_crc32c(0, bytes, size - 4)));
    assert(next + 4 == bytes + size);
}

mr_status mr_record_index_write(const char *path, const mr_record_index *index, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(index, error);
    size_t size = HEAD_BYTES + 4 * index->count + POINT_BYTES * index->point_count + 4;
    char *name = index_path(path);
    unsigned char *bytes = malloc(size);
    mr_status status = MR_OK;
    if (name != nullptr && bytes != nullptr) {
        encode(index, bytes, size);
        /* An index that is incomplete after a power failure is detected as damaged and rebuilt. */
        status = mr_file_write_no_sync(name, bytes, size, error);
    } else {
        status = mr_fail_memory(error, size);
    }
    free(bytes);
    free(name);
    return status;
}

/* ---- Load ---- */

/* Converts lengths to count + 1 offsets; false if the sum is not possible for this file. */
static bool decode_offsets(const unsigned char *lengths, uint64_t count, uint64_t *offsets)
{
    uint64_t offset = 0;
    for (uint64_t i = 0; i < count; i++) {
        offsets[i] = offset;
        uint32_t length = mr_load_le32(lengths + 4 * i);
        if (length > MR_RECORD_SIZE_MAX) return false;
        offset += AROUND_BYTES + length;
    }
    offsets[count] = offset;
    return true;
}

/* Both numbers must be ascending, start at record 0, and be inside the file. */
static bool decode_points(const unsigned char *bytes, mr_record_index *index)
{
    for (uint64_t i = 0; i < index->point_count; i++) {
        mr_record_point point = {mr_load_le64(bytes + POINT_BYTES * i), mr_load_le64(bytes + POINT_BYTES * i + 8)};
        bool is_ascending =
            i == 0 ? point.record == 0
                   : point.record > index->points[i - 1].record && point.offset > index->points[i - 1].offset;
        if (!is_ascending || point.record >= index->count || point.offset >= index->file_size_bytes) return false;
        index->points[i] = point;
    }
    return true;
}

mr_status mr_record_index_decode(const void *data, size_t size, const mr_file_stamp *stamp, uint32_t checksum,
                                 mr_record_index *index)
{
    const unsigned char *bytes = data;
    *index = (mr_record_index){.origin = MR_INDEX_DAMAGED};
    if (size < HEAD_BYTES + 4 || memcmp(bytes, MAGIC, sizeof(MAGIC) - 1) != 0) return MR_DATA_LOSS;
    if (mr_load_le32(bytes + size - 4) != mr_crc32c_mask(mr_crc32c(0, bytes, size - 4))) return MR_DATA_LOSS;
    index->origin = MR_INDEX_STALE;
    if (bytes[7] != MAGIC[7]) return MR_DATA_LOSS;
    index->origin = MR_INDEX_DAMAGED;
    uint64_t room = size - HEAD_BYTES - 4, count = mr_load_le64(bytes + 16), point_count = mr_load_le64(bytes + 24);
    uint32_t compression = mr_load_le32(bytes + 32);
    if (count > room / 4 || point_count > room / POINT_BYTES || 4 * count + POINT_BYTES * point_count != room)
        return MR_DATA_LOSS;
    if (compression > MR_COMPRESSION_ZLIB) return MR_DATA_LOSS;
    if (point_count > 0 && compression != MR_COMPRESSION_GZIP) return MR_DATA_LOSS;
    index->origin = MR_INDEX_STALE;
    if (mr_load_le64(bytes + 8) != stamp->size_bytes || mr_load_le32(bytes + 36) != checksum) return MR_DATA_LOSS;

    mr_record_index loaded = {.count = count,
                              .offsets = malloc((count + 1) * sizeof(uint64_t)),
                              .file_size_bytes = stamp->size_bytes,
                              .file_modified_ns = stamp->modified_ns,
                              .file_checksum = checksum,
                              .compression = (mr_compression)compression,
                              .point_count = point_count,
                              .points = point_count ? calloc(point_count, sizeof(mr_record_point)) : nullptr};
    bool has_memory = loaded.offsets != nullptr && (loaded.points != nullptr || point_count == 0);
    bool is_valid = has_memory && decode_offsets(bytes + HEAD_BYTES, count, loaded.offsets) &&
                    (compression != MR_COMPRESSION_NONE || loaded.offsets[count] == stamp->size_bytes) &&
                    decode_points(bytes + HEAD_BYTES + 4 * count, &loaded);
    if (!is_valid) {
        mr_record_index_deinit(&loaded);
        index->origin = MR_INDEX_DAMAGED;
        return has_memory ? MR_DATA_LOSS : MR_RESOURCE_EXHAUSTED;
    }
    assert(loaded.offsets[0] == 0 && (point_count == 0 || loaded.points[0].record == 0));
    *index = loaded;
    return MR_OK;
}

mr_status mr_record_index_load(const mr_index_source *file, const mr_file_stamp *stamp, mr_record_index *index,
                               mr_error *error)
{
    *index = (mr_record_index){.origin = MR_INDEX_BUILT};
    char *name = index_path(file->path);
    char *bytes = nullptr;
    size_t size = 0;
    mr_file_stamp index_stamp = {0};
    mr_status status = name != nullptr ? MR_NOT_FOUND : MR_RESOURCE_EXHAUSTED;
    if (name != nullptr && mr_file_stamp_of(name, &index_stamp, nullptr) == MR_OK) {
        /* No record is shorter than 16 bytes, so this is the maximum size of an index of this file, including
         * points. */
        uint64_t most = stamp->size_bytes / 2 + (stamp->size_bytes < SIZE_MAX / INFLATION_MAX
                                                     ? stamp->size_bytes * INFLATION_MAX / AROUND_BYTES * 4
                                                     : stamp->size_bytes);
        uint32_t checksum = 0;
        most += HEAD_BYTES + 4;
        index->origin = MR_INDEX_STALE;
        if (index_stamp.size_bytes <= most) {
            index->origin = MR_INDEX_DAMAGED;
            status = mr_file_read_regular(name, most, &bytes, &size, nullptr);
        }
        if (status == MR_OK) status = mr_index_sample(file, &checksum, nullptr);
        if (status == MR_OK) status = mr_record_index_decode(bytes, size, stamp, checksum, index);
        if (status == MR_OK && (status = mr_index_agrees(file, index)) != MR_OK) {
            mr_record_index_deinit(index);
            index->origin = status == MR_DATA_LOSS ? MR_INDEX_STALE : MR_INDEX_DAMAGED;
        }
    }
    free(bytes);
    free(name);
    if (status == MR_RESOURCE_EXHAUSTED) return mr_fail_memory(error, (size_t)index_stamp.size_bytes);
    return status == MR_OK ? MR_OK : MR_NOT_FOUND;
}

bool mr_record_index_load_count(const mr_index_source *file, uint64_t *count)
{
    unsigned char piece[4096];
    uint64_t offset = 0, stored_count = 0, points = 0;
    uint32_t crc = 0, stored = 0, checksum = 0;
    size_t held = 0, got = 0;
    int descriptor = -1;
    char *name = index_path(file->path);
    bool is_valid = name != nullptr && mr_file_open_regular(name, &descriptor, nullptr) == MR_OK &&
                    mr_index_sample(file, &checksum, nullptr) == MR_OK;
    /* The last four bytes of a piece are kept for the next one, because they may be the checksum. */
    do {
        assert(held == 0 || held == 4);
        is_valid = is_valid && mr_file_read_at(descriptor, name, offset, piece + held, sizeof(piece) - held, &got,
                                               nullptr) == MR_OK;
        if (!is_valid || held + got < 4) break;
        if (offset == 0) {
            is_valid = got >= HEAD_BYTES + 4 && memcmp(piece, MAGIC, sizeof(MAGIC)) == 0 &&
                       mr_load_le64(piece + 8) == file->size_bytes && mr_load_le32(piece + 36) == checksum;
            stored_count = mr_load_le64(piece + 16);
            points = mr_load_le64(piece + 24);
        }
        offset += got;
        crc = mr_crc32c(crc, piece, held + got - 4);
        stored = mr_load_le32(piece + held + got - 4);
        memmove(piece, piece + held + got - 4, 4);
        held = 4;
    } while (is_valid && got > 0);
    if (descriptor >= 0) (void)close(descriptor);
    free(name);
    if (!is_valid || offset == 0 || stored != mr_crc32c_mask(crc) || stored_count > offset / 4 ||
        points > offset / POINT_BYTES || HEAD_BYTES + 4 * stored_count + POINT_BYTES * points + 4 != offset)
        return false;
    *count = stored_count;
    return true;
}

bool mr_record_index_is_older(const char *path, const mr_file_stamp *stamp)
{
    char *name = index_path(path);
    mr_file_stamp index_stamp = {0};
    bool is_known = name != nullptr && mr_file_stamp_of(name, &index_stamp, nullptr) == MR_OK;
    free(name);
    return is_known && index_stamp.modified_ns < stamp->modified_ns;
}
