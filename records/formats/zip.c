/* The zip reader. The directory of the members is stored at the end of the file, after them. Values that do not fit
 * into its 32-bit fields are stored in zip64 records. All numbers are checked against the file before they are used. */
#include "records/io/input_file.h"

#include "base/arguments.h"
#include "base/bytes.h"
#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static constexpr uint64_t END_BYTES = 22, END64_BYTES = 56, LOCATOR_BYTES = 20, ENTRY_BYTES = 46, LOCAL_BYTES = 30;
static constexpr uint64_t COMMENT_BYTES_MAX = 65'535;
static constexpr uint64_t DIRECTORY_BYTES_MAX = (uint64_t)256 << 20;
static constexpr size_t PIECE_BYTES = (size_t)256 << 10;

static mr_status fail_zip(const mr_input_file *file, mr_status status, const char *reason, mr_error *error)
{
    return mr_fail(error, status, "%s: %s", mr_input_file_name(file), reason);
}

typedef struct directory {
    uint64_t offset, size_bytes, count;
} directory;

/* Reads the zip64 end record. A locator immediately before the usual end record points to it. */
static mr_status read_end64(const mr_input_file *file, uint64_t end_offset, directory *directory, mr_error *error)
{
    unsigned char locator[LOCATOR_BYTES], record[END64_BYTES];
    if (end_offset < LOCATOR_BYTES) return MR_OK;
    MR_TRY(mr_input_file_read_all(file, end_offset - LOCATOR_BYTES, locator, sizeof(locator), error));
    if (mr_load_le32(locator) != 0x07064b50) return MR_OK;
    uint64_t offset = mr_load_le64(locator + 8);
    if (offset > end_offset - LOCATOR_BYTES || end_offset - LOCATOR_BYTES - offset < END64_BYTES)
        return fail_zip(file, MR_DATA_LOSS, "the zip64 directory is outside the file", error);
    MR_TRY(mr_input_file_read_all(file, offset, record, sizeof(record), error));
    if (mr_load_le32(record) != 0x06064b50)
        return fail_zip(file, MR_DATA_LOSS, "the zip64 directory is damaged", error);
    if (mr_load_le32(record + 16) != 0 || mr_load_le32(record + 20) != 0 ||
        mr_load_le64(record + 24) != mr_load_le64(record + 32))
        return fail_zip(file, MR_UNIMPLEMENTED, "multi-disk zip files are not supported", error);
    directory->count = mr_load_le64(record + 32);
    directory->size_bytes = mr_load_le64(record + 40);
    directory->offset = mr_load_le64(record + 48);
    return MR_OK;
}

/* Searches for the end record from the end of the file, since a comment of unknown length may follow it. */
static mr_status find_directory(const mr_input_file *file, directory *directory, mr_error *error)
{
    uint64_t size = mr_input_file_size(file), tail = END_BYTES + COMMENT_BYTES_MAX;
    if (tail > size) tail = size;
    unsigned char *bytes = malloc(tail + 1);
    if (bytes == nullptr) return mr_fail_memory(error, tail);
    mr_status status = mr_input_file_read_all(file, size - tail, bytes, tail, error);
    unsigned char *end = nullptr;
    for (uint64_t i = tail; status == MR_OK && end == nullptr && i >= END_BYTES; i--) {
        unsigned char *here = bytes + i - END_BYTES;
        if (mr_load_le32(here) == 0x06054b50 && mr_load_le16(here + 20) == tail - i) end = here;
    }
    if (status == MR_OK && end == nullptr)
        status = fail_zip(file, MR_DATA_LOSS, "no zip directory at the end; is the file truncated?", error);
    if (status == MR_OK) {
        *directory = (struct directory){mr_load_le32(end + 16), mr_load_le32(end + 12), mr_load_le16(end + 10)};
        if (mr_load_le16(end + 4) != mr_load_le16(end + 6) || mr_load_le16(end + 8) != mr_load_le16(end + 10))
            status = fail_zip(file, MR_UNIMPLEMENTED, "multi-disk zip files are not supported", error);
    }
    uint64_t end_offset = end != nullptr ? size - tail + (uint64_t)(end - bytes) : 0;
    free(bytes);
    MR_TRY(status);
    MR_TRY(read_end64(file, end_offset, directory, error));
    if (directory->offset > end_offset || directory->size_bytes > end_offset - directory->offset)
        return fail_zip(file, MR_DATA_LOSS, "the directory is outside the file", error);
    if (directory->count > directory->size_bytes / ENTRY_BYTES || directory->size_bytes > DIRECTORY_BYTES_MAX)
        return fail_zip(file, MR_DATA_LOSS, "invalid directory size", error);
    return MR_OK;
}

/* zip64's extra field contains 64-bit numbers in this order, each only if its 32-bit field has all bits set. */
static bool take_extra64(mr_zip_member *member, const unsigned char *extra, size_t size)
{
    uint64_t *wanted[] = {&member->size_bytes, &member->compressed_bytes, &member->header_offset};
    for (size_t at = 0; at + 4 <= size;) {
        size_t length = mr_load_le16(extra + at + 2);
        if (length > size - at - 4) return false;
        const unsigned char *next = extra + at + 4, *end = next + length;
        for (size_t i = 0; mr_load_le16(extra + at) == 1 && i < 3; i++) {
            if (*wanted[i] != UINT32_MAX) continue;
            if (end - next < 8) return false;
            *wanted[i] = mr_load_le64(next);
            next += 8;
        }
        at += 4 + length;
        assert(next <= end && at <= size);
    }
    return true;
}

static mr_status take_entry(const mr_input_file *file, const unsigned char *entry, size_t room, mr_zip *zip,
                            size_t *used, mr_error *error)
{
    if (room < ENTRY_BYTES || mr_load_le32(entry) != 0x02014b50)
        return fail_zip(file, MR_DATA_LOSS, "the directory is damaged", error);
    size_t name = mr_load_le16(entry + 28), extra = mr_load_le16(entry + 30), comment = mr_load_le16(entry + 32);
    if (room - ENTRY_BYTES < name + extra + comment)
        return fail_zip(file, MR_DATA_LOSS, "the directory is damaged", error);
    mr_zip_member member = {.header_offset = mr_load_le32(entry + 42),
                            .size_bytes = mr_load_le32(entry + 24),
                            .compressed_bytes = mr_load_le32(entry + 20),
                            .crc32 = mr_load_le32(entry + 16),
                            .method = mr_load_le16(entry + 10)};
    if (mr_load_le16(entry + 8) & 1)
        return fail_zip(file, MR_UNIMPLEMENTED, "encrypted members are not supported", error);
    if (memchr(entry + ENTRY_BYTES, '\0', name) != nullptr || !take_extra64(&member, entry + ENTRY_BYTES + name, extra))
        return fail_zip(file, MR_DATA_LOSS, "the directory is damaged", error);
    member.name = malloc(name + 1);
    if (member.name == nullptr) return mr_fail_memory(error, name);
    memcpy(member.name, entry + ENTRY_BYTES, name);
    member.name[name] = '\0';
    zip->members[zip->count++] = member;
    *used = ENTRY_BYTES + name + extra + comment;
    assert(*used <= room);
    return MR_OK;
}

mr_status mr_zip_open(const mr_input_file *file, mr_zip *zip, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(zip, error);
    directory directory = {0};
    *zip = (mr_zip){0};
    MR_TRY(find_directory(file, &directory, error));
    unsigned char *bytes = malloc((size_t)directory.size_bytes + 1);
    zip->members = calloc((size_t)directory.count + 1, sizeof(mr_zip_member));
    mr_status status =
        bytes != nullptr && zip->members != nullptr ? MR_OK : mr_fail_memory(error, (size_t)directory.size_bytes);
    if (status == MR_OK)
        status = mr_input_file_read_all(file, directory.offset, bytes, (size_t)directory.size_bytes, error);
    size_t at = 0;
    for (uint64_t i = 0; i < directory.count && status == MR_OK; i++) {
        size_t used = 0;
        status = take_entry(file, bytes + at, (size_t)directory.size_bytes - at, zip, &used, error);
        at += used;
        assert(at <= directory.size_bytes);
    }
    free(bytes);
    if (status != MR_OK) mr_zip_deinit(zip);
    return status;
}

void mr_zip_deinit(mr_zip *zip)
{
    if (zip == nullptr) return;
    for (int64_t i = 0; i < zip->count; i++) free(zip->members[i].name);
    free(zip->members);
    *zip = (mr_zip){0};
}

static mr_status checksum(const mr_input_file *file, uint32_t *crc, mr_error *error)
{
    unsigned char *piece = malloc(PIECE_BYTES);
    if (piece == nullptr) return mr_fail_memory(error, PIECE_BYTES);
    mr_status status = MR_OK;
    *crc = 0;
    for (uint64_t at = 0, size = mr_input_file_size(file); at < size && status == MR_OK;) {
        size_t count = size - at < PIECE_BYTES ? (size_t)(size - at) : PIECE_BYTES;
        status = mr_input_file_read_all(file, at, piece, count, error);
        if (status == MR_OK) *crc = (uint32_t)crc32(*crc, piece, (unsigned)count);
        at += count;
    }
    free(piece);
    return status;
}

/* name: file and member, for messages. */
static mr_status extract(const mr_input_file *file, const mr_zip_member *member, const char *name, mr_input_file **part,
                         mr_error *error)
{
    unsigned char local[LOCAL_BYTES];
    uint64_t size = mr_input_file_size(file), crc_size = 0;
    uint32_t crc = 0;
    if (member->method != 0 && member->method != 8)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: zip compression method %d is not supported", name, member->method);
    if (member->header_offset > size || size - member->header_offset < LOCAL_BYTES)
        return mr_fail(error, MR_DATA_LOSS, "%s: the member is outside the file", name);
    MR_TRY(mr_input_file_read_all(file, member->header_offset, local, sizeof(local), error));
    if (mr_load_le32(local) != 0x04034b50)
        return mr_fail(error, MR_DATA_LOSS, "%s: the member's header is damaged", name);
    uint64_t offset = member->header_offset + LOCAL_BYTES + mr_load_le16(local + 26) + mr_load_le16(local + 28);
    if (offset > size || member->compressed_bytes > size - offset)
        return mr_fail(error, MR_DATA_LOSS, "%s: the member is outside the file", name);
    if (member->method == 0) {
        if (member->compressed_bytes != member->size_bytes)
            return mr_fail(error, MR_DATA_LOSS, "%s: the member is stored, but its two sizes differ", name);
        MR_TRY(mr_input_file_part(file, offset, member->size_bytes, name, part, error));
        mr_status status = checksum(*part, &crc, error);
        if (status != MR_OK) return status;
    } else {
        MR_TRY(mr_input_file_inflate(file, offset, member->compressed_bytes, MR_DEFLATE_RAW, member->size_bytes, name,
                                     part, &crc, error));
    }
    crc_size = mr_input_file_size(*part);
    if (crc_size != member->size_bytes)
        return mr_fail(error, MR_DATA_LOSS, "%s: inflates to %" PRIu64 " bytes, the directory has %" PRIu64, name,
                       crc_size, member->size_bytes);
    if (crc != member->crc32)
        return mr_fail(error, MR_DATA_LOSS, "%s: checksum is %08x, the directory has %08x", name, crc, member->crc32);
    return MR_OK;
}

mr_status mr_zip_extract(const mr_input_file *file, const mr_zip_member *member, mr_input_file **part, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(member, error);
    MR_REFUSE_NULL(part, error);
    const char *directory = mr_input_file_name(file);
    size_t directory_size = strlen(directory), name_size = strlen(member->name);
    char *name = malloc(directory_size + name_size + 3);
    *part = nullptr;
    if (name == nullptr) return mr_fail_memory(error, directory_size + name_size);
    memcpy(name, directory, directory_size);
    memcpy(name + directory_size, ": ", 2);
    memcpy(name + directory_size + 2, member->name, name_size + 1);
    mr_status status = extract(file, member, name, part, error);
    free(name);
    if (status != MR_OK) {
        mr_input_file_close(*part);
        *part = nullptr;
    }
    return status;
}
