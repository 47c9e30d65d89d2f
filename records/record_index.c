/* The index: where each record lies, so that records can be drawn in any order.
 *
 * It is made by hopping over the headers, which reads 12 bytes for each long record and every byte of short ones, and
 * kept in path + ".index":
 *
 *     8  "MRINDEX1"
 *     8  size of the record file          all numbers little-endian
 *     8  its time of change, in ns
 *     8  count of records
 *     4  length of each record's data, count times
 *     4  masked CRC32C of all before
 *
 * Size and time tell whether it belongs to the file as it is now; if not, it is as if it were not there. */
#include "records/record_index.h"

#include "base/arena.h"
#include "records/file.h"
#include "records/record_format.h"
#include "records/record_stream.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static constexpr char MAGIC[8] = {'M', 'R', 'I', 'N', 'D', 'E', 'X', '1'};
static constexpr size_t HEAD_BYTES = 32;
static constexpr uint64_t AROUND_BYTES = MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
/* Short records are hopped over inside pieces of this size; behind a longer record only its header is read. */
static constexpr size_t PIECE_BYTES = (size_t)256 << 10;

static_assert(MR_RECORD_SIZE_MAX <= UINT32_MAX);

mr_status mr_record_index_append(mr_record_index *index, uint64_t *capacity, uint64_t length, mr_error *error)
{
    assert(length <= MR_RECORD_SIZE_MAX);
    if (index->count + 2 > *capacity) {
        uint64_t grown = *capacity ? *capacity * 2 : 1024;
        uint64_t *offsets = realloc(index->offsets, grown * sizeof(uint64_t));
        if (!offsets) return mr_fail_memory(error, grown * sizeof(uint64_t));
        if (*capacity == 0) offsets[0] = 0;
        index->offsets = offsets;
        *capacity = grown;
    }
    index->offsets[index->count + 1] = index->offsets[index->count] + AROUND_BYTES + length;
    index->count++;
    return MR_OK;
}

void mr_record_index_deinit(mr_record_index *index)
{
    free(index->offsets);
    *index = (mr_record_index){0};
}

/* path + ".index", owned; null without memory. */
static char *index_path(const char *path)
{
    char *name = nullptr;
    return asprintf(&name, "%s.index", path) < 0 ? nullptr : name;
}

/* ---- Write ---- */

mr_status mr_record_index_write(const char *path, const mr_record_index *index, mr_error *error)
{
    size_t size = HEAD_BYTES + 4 * index->count + 4;
    char *name = index_path(path);
    unsigned char *bytes = malloc(size);
    mr_status status = MR_OK;
    if (name && bytes) {
        memcpy(bytes, MAGIC, sizeof(MAGIC));
        mr_store_le64(bytes + 8, index->file_size_bytes);
        mr_store_le64(bytes + 16, (uint64_t)index->file_modified_ns);
        mr_store_le64(bytes + 24, index->count);
        for (uint64_t i = 0; i < index->count; i++)
            mr_store_le32(bytes + HEAD_BYTES + 4 * i,
                          (uint32_t)(index->offsets[i + 1] - index->offsets[i] - AROUND_BYTES));
        mr_store_le32(bytes + size - 4, mr_crc32c_mask(mr_crc32c(0, bytes, size - 4)));
        status = mr_file_write_whole(name, bytes, size, error);
    } else {
        status = mr_fail_memory(error, size);
    }
    free(bytes);
    free(name);
    return status;
}

/* ---- Load ---- */

/* Takes the index from its file's bytes. stamp: the record file as it is now. False: it is not to be trusted, and
 * index->origin says why. */
static bool decode(const unsigned char *bytes, size_t size, const mr_file_stamp *stamp, mr_record_index *index)
{
    index->origin = MR_INDEX_DAMAGED;
    if (size < HEAD_BYTES + 4 || memcmp(bytes, MAGIC, sizeof(MAGIC)) != 0) return false;
    if (mr_load_le32(bytes + size - 4) != mr_crc32c_mask(mr_crc32c(0, bytes, size - 4))) return false;
    uint64_t count = mr_load_le64(bytes + 24);
    if (count != (size - HEAD_BYTES - 4) / 4 || (size - HEAD_BYTES - 4) % 4 != 0) return false;
    index->origin = MR_INDEX_STALE;
    if (mr_load_le64(bytes + 8) != stamp->size_bytes || (int64_t)mr_load_le64(bytes + 16) != stamp->modified_ns)
        return false;
    uint64_t *offsets = malloc((count + 1) * sizeof(uint64_t));
    if (!offsets) return false;
    uint64_t offset = 0;
    for (uint64_t i = 0; i < count; i++) {
        offsets[i] = offset;
        offset += AROUND_BYTES + mr_load_le32(bytes + HEAD_BYTES + 4 * i);
    }
    offsets[count] = offset;
    if (offset != stamp->size_bytes) {
        free(offsets);
        index->origin = MR_INDEX_DAMAGED;
        return false;
    }
    *index = (mr_record_index){.count = count,
                               .offsets = offsets,
                               .file_size_bytes = stamp->size_bytes,
                               .file_modified_ns = stamp->modified_ns,
                               .origin = MR_INDEX_LOADED};
    return true;
}

/* True when there is a fresh index; otherwise index->origin says what there was instead. */
static bool load(const char *path, const mr_file_stamp *stamp, mr_record_index *index)
{
    index->origin = MR_INDEX_MADE;
    char *name = index_path(path);
    char *bytes = nullptr;
    size_t size = 0;
    bool is_loaded = false;
    if (name && mr_file_exists(name)) {
        /* No record is shorter than 16 bytes, so no index of this file is longer than this. */
        size_t size_max = HEAD_BYTES + 4 + stamp->size_bytes / AROUND_BYTES * 4;
        if (mr_file_read_whole(name, size_max, &bytes, &size, nullptr) == MR_OK)
            is_loaded = decode((const unsigned char *)bytes, size, stamp, index);
        else
            index->origin = MR_INDEX_STALE;
    }
    free(bytes);
    free(name);
    return is_loaded;
}

/* ---- Make ---- */

/* A piece of the file in memory. */
typedef struct piece {
    int descriptor;
    const char *path;
    unsigned char *bytes;
    uint64_t offset;
    size_t size_bytes;
} piece;

/* The 12 bytes at offset, or null when the file ends before; hop: what lay between this header and the one before. */
static mr_status header_at(piece *piece, uint64_t offset, uint64_t hop, const unsigned char **header, mr_error *error)
{
    if (offset < piece->offset || offset + MR_RECORD_HEADER_BYTES > piece->offset + piece->size_bytes) {
        size_t want = hop >= PIECE_BYTES / 8 ? (size_t)MR_RECORD_HEADER_BYTES : PIECE_BYTES;
        piece->offset = offset;
        MR_TRY(mr_file_read_at(piece->descriptor, piece->path, offset, piece->bytes, want, &piece->size_bytes, error));
    }
    *header = offset + MR_RECORD_HEADER_BYTES <= piece->offset + piece->size_bytes
                  ? piece->bytes + (offset - piece->offset)
                  : nullptr;
    return MR_OK;
}

static mr_status bad_header(const char *path, uint64_t number, uint64_t offset, const void *header, mr_error *error)
{
    if (mr_crc32c_mask(mr_crc32c(0, header, 8)) == mr_load_le32((const char *)header + 8))
        return mr_fail(error, MR_DATA_LOSS,
                       "%s: record %" PRIu64 " at byte %" PRIu64 ": the header says %" PRIu64
                       " bytes, and no record is that long",
                       path, number, offset, mr_load_le64(header));
    return mr_fail(error, MR_DATA_LOSS,
                   "%s: record %" PRIu64 " at byte %" PRIu64 ": the length's checksum does not hold%s", path, number,
                   offset, offset == 0 ? "; is this a TFRecord file?" : "");
}

static mr_status hop_over(piece *piece, mr_record_index *index, mr_error *error)
{
    const char *path = piece->path;
    uint64_t capacity = 0, offset = 0, hop = 0, size = index->file_size_bytes;
    while (offset < size) {
        const unsigned char *header;
        MR_TRY(header_at(piece, offset, hop, &header, error));
        uint64_t left = size - offset, length = 0;
        if (offset == 0) {
            size_t held = piece->size_bytes;
            if (mr_record_compression_of(piece->bytes, held) != MR_COMPRESSION_NONE)
                return mr_fail(error, MR_UNIMPLEMENTED, "%s: is compressed, so its records cannot be read by number",
                               path);
        }
        if (!header || left < MR_RECORD_HEADER_BYTES)
            return mr_fail(error, MR_DATA_LOSS,
                           "%s: record %" PRIu64 " at byte %" PRIu64 ": cut short: %" PRIu64
                           " of 12 header bytes are there",
                           path, index->count, offset, left);
        if (!mr_record_header_holds(header, &length)) return bad_header(path, index->count, offset, header, error);
        if (AROUND_BYTES + length > left)
            return mr_fail(error, MR_DATA_LOSS,
                           "%s: record %" PRIu64 " at byte %" PRIu64 ": cut short: the header says %" PRIu64
                           " bytes and a checksum, %" PRIu64 " bytes are there",
                           path, index->count, offset, length, left - MR_RECORD_HEADER_BYTES);
        MR_TRY(mr_record_index_append(index, &capacity, length, error));
        hop = AROUND_BYTES + length;
        offset += hop;
    }
    if (index->offsets) return MR_OK;
    index->offsets = calloc(1, sizeof(uint64_t));
    return index->offsets ? MR_OK : mr_fail_memory(error, sizeof(uint64_t));
}

mr_status mr_record_index_open(const char *path, mr_record_index *index, mr_error *error)
{
    *index = (mr_record_index){0};
    piece piece = {.path = path};
    MR_TRY(mr_file_open(path, &piece.descriptor, error));
    struct stat about;
    mr_file_stamp stamp;
    mr_status status = MR_OK;
    if (fstat(piece.descriptor, &about) != 0)
        status = mr_file_fail(error, errno, "read", path);
    else if (!S_ISREG(about.st_mode))
        status =
            mr_fail(error, MR_UNIMPLEMENTED, "%s: is not a plain file, so its records cannot be read by number", path);
    if (status == MR_OK) {
        stamp = mr_file_stamp_from(&about);
        if (!load(path, &stamp, index)) {
            index->file_size_bytes = stamp.size_bytes;
            index->file_modified_ns = stamp.modified_ns;
            piece.bytes = calloc(1, PIECE_BYTES);
            status = piece.bytes ? hop_over(&piece, index, error) : mr_fail_memory(error, PIECE_BYTES);
        }
    }
    free(piece.bytes);
    (void)close(piece.descriptor);
    if (status != MR_OK) mr_record_index_deinit(index);
    return status;
}
