/* The tar reader. A tar file is a sequence of members, each a header of 512 bytes and the contents padded to a multiple
 * of 512, followed by two blocks of zeros.
 *
 * Concatenated archives are supported: after the zeros the next archive is read.
 *
 * Values that do not fit into a header are stored in extra members before it: pax's 'x' ("30 path=…\n" lines), or GNU's
 * 'L' with a long name. Numbers are octal text, or binary if their first bit is set. */
#include "records/io/input_file.h"

#include "base/arguments.h"
#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t BLOCK_BYTES = 512;
/* Maximum size of a pax header or a GNU long name. */
static constexpr uint64_t EXTRA_BYTES_MAX = (uint64_t)1 << 20;

struct mr_tar_reader {
    const mr_input_file *file;
    uint64_t offset;                   /* of the next header */
    char *name;                        /* owned; name of the last member */
    char *extra;                       /* owned; bytes of a pax header or long name */
    bool has_name, has_size, has_time; /* set if such a member specified it for the next member */
    uint64_t size_bytes;
    int64_t modified_ns;
    uint32_t archive; /* number of archives that have ended */
};

mr_status mr_tar_reader_new(const mr_input_file *file, uint64_t offset, mr_tar_reader **reader, mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    *reader = calloc(1, sizeof(**reader));
    if (*reader == nullptr) return mr_fail_memory(error, sizeof(**reader));
    (*reader)->file = file;
    (*reader)->offset = offset;
    return MR_OK;
}

void mr_tar_reader_free(mr_tar_reader *reader)
{
    if (reader == nullptr) return;
    free(reader->name);
    free(reader->extra);
    free(reader);
}

static mr_status fail_at(const mr_tar_reader *reader, mr_status status, uint64_t offset, const char *reason,
                         mr_error *error)
{
    return mr_fail(error, status, "%s: the tar header at byte %" PRIu64 " %s", mr_input_file_name(reader->file), offset,
                   reason);
}

/* ---- Fields ---- */

/* Parses octal text after spaces, terminated by a space, a NUL or the end of the field; or binary, as GNU writes large
 * numbers. */
static bool parse_number(const unsigned char *field, size_t size, int64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    if (field[0] & 0x80) {
        bool is_negative = field[0] == 0xff;
        if (!is_negative && field[0] != 0x80) return false;
        for (i = 1; i < size; i++) {
            unsigned char top = is_negative ? 0xff : 0;
            if (i + 8 < size && field[i] != top) return false;
            value = value << 8 | field[i];
        }
        *number = (int64_t)value;
        return (*number < 0) == is_negative;
    }
    while (i < size && field[i] == ' ') i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
        if (value >> 60) return false;
        value = value << 3 | (uint64_t)(field[i] - '0');
    }
    if (i < size && field[i] != ' ' && field[i] != '\0') return false;
    *number = (int64_t)value;
    return true;
}

/* The checksum is the sum of the header's bytes, with its own field read as spaces. Some old programs summed signed
 * bytes. */
static bool is_checksum_valid(const unsigned char *header)
{
    int64_t stored, sum = 0, signed_sum = 0;
    if (!parse_number(header + 148, 8, &stored)) return false;
    for (size_t i = 0; i < BLOCK_BYTES; i++) {
        unsigned char byte = i >= 148 && i < 156 ? ' ' : header[i];
        sum += byte;
        signed_sum += (signed char)byte;
    }
    return stored == sum || stored == signed_sum;
}

static mr_status set_name(mr_tar_reader *reader, const char *prefix, size_t prefix_size, const char *name, size_t size,
                          mr_error *error)
{
    char *joined = malloc(prefix_size + size + 2);
    if (joined == nullptr) return mr_fail_memory(error, size);
    char *next = joined;
    if (prefix_size > 0) {
        memcpy(next, prefix, prefix_size);
        next += prefix_size;
        *next++ = '/';
    }
    memcpy(next, name, size);
    next[size] = '\0';
    free(reader->name);
    reader->name = joined;
    return MR_OK;
}

static mr_status name_from_header(mr_tar_reader *reader, const unsigned char *header, mr_error *error)
{
    const char *name = (const char *)header, *prefix = (const char *)header + 345;
    /* GNU's header has other fields at the position of ustar's prefix. */
    bool is_ustar = memcmp(header + 257, "ustar\0", 6) == 0;
    return set_name(reader, prefix, is_ustar ? strnlen(prefix, 155) : 0, name, strnlen(name, 100), error);
}

/* ---- Extended headers ---- */

static mr_status read_extra(mr_tar_reader *reader, uint64_t offset, uint64_t size, mr_error *error)
{
    if (size > EXTRA_BYTES_MAX)
        return fail_at(reader, MR_DATA_LOSS, offset, "has a name or extended header larger than 1 MiB", error);
    char *grown = realloc(reader->extra, (size_t)size + 1);
    if (grown == nullptr) return mr_fail_memory(error, (size_t)size);
    reader->extra = grown;
    grown[size] = '\0';
    return mr_input_file_read_all(reader->file, offset + BLOCK_BYTES, grown, (size_t)size, error);
}

/* "1700000000.25" */
static bool parse_time(const char *text, size_t size, int64_t *time_ns)
{
    bool is_negative = size > 0 && *text == '-';
    int64_t seconds = 0, part = 0, scale = 1'000'000'000;
    size_t i = is_negative;
    for (; i < size && text[i] != '.'; i++) {
        if (text[i] < '0' || text[i] > '9' || seconds > 9'000'000'000) return false;
        seconds = seconds * 10 + (text[i] - '0');
    }
    if (seconds > 9'000'000'000) return false;
    for (i++; i < size && scale > 1; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        scale /= 10;
        part += (text[i] - '0') * scale;
    }
    *time_ns = (seconds * 1'000'000'000 + part) * (is_negative ? -1 : 1);
    return true;
}

static mr_status take_note(mr_tar_reader *reader, bool is_global, uint64_t offset, mr_string key, mr_string value,
                           mr_error *error)
{
    if (key.size_bytes >= 10 && memcmp(key.data, "GNU.sparse", 10) == 0)
        return fail_at(reader, MR_UNIMPLEMENTED, offset, "is of a sparse file, which is not supported", error);
    if (mr_string_equal(key, MR_STR("path"))) {
        if (is_global || value.size_bytes == 0 || memchr(value.data, '\0', value.size_bytes) != nullptr)
            return fail_at(reader, MR_DATA_LOSS, offset, "has an invalid name", error);
        reader->has_name = true;
        return set_name(reader, "", 0, value.data, value.size_bytes, error);
    }
    if (mr_string_equal(key, MR_STR("size"))) {
        uint64_t size = 0;
        bool good = value.size_bytes > 0 && value.size_bytes <= 18 && !is_global;
        for (size_t i = 0; good && i < value.size_bytes; i++) {
            good = value.data[i] >= '0' && value.data[i] <= '9';
            size = size * 10 + (uint64_t)(value.data[i] - '0');
        }
        if (!good) return fail_at(reader, MR_DATA_LOSS, offset, "has an invalid size", error);
        reader->has_size = true;
        reader->size_bytes = size;
    }
    if (mr_string_equal(key, MR_STR("mtime")) && !is_global)
        reader->has_time = parse_time(value.data, value.size_bytes, &reader->modified_ns);
    return MR_OK;
}

/* Reads lines of the form "LENGTH KEY=VALUE\n"; LENGTH is the length of the complete line. */
static mr_status read_notes(mr_tar_reader *reader, bool is_global, uint64_t offset, uint64_t size, mr_error *error)
{
    MR_TRY(read_extra(reader, offset, size, error));
    const char *text = reader->extra;
    for (size_t at = 0; at < size;) {
        size_t length = 0, i = at;
        while (i < size && text[i] >= '0' && text[i] <= '9' && length <= size)
            length = length * 10 + (size_t)(text[i++] - '0');
        /* Some writers pad with NUL. */
        if (i == at && text[i] == '\0') break;
        const char *equals = nullptr;
        bool good = i > at && i < size && text[i] == ' ' && length <= size - at && length > i - at + 2 &&
                    text[at + length - 1] == '\n';
        if (good) equals = memchr(text + i + 1, '=', at + length - 1 - (i + 1));
        if (equals == nullptr) return fail_at(reader, MR_DATA_LOSS, offset, "has an invalid extended header", error);
        mr_string key = {text + i + 1, (size_t)(equals - (text + i + 1))};
        mr_string value = {equals + 1, (size_t)(text + at + length - 1 - (equals + 1))};
        MR_TRY(take_note(reader, is_global, offset, key, value, error));
        at += length;
        assert(at <= size);
    }
    return MR_OK;
}

static mr_status read_long_name(mr_tar_reader *reader, uint64_t offset, uint64_t size, mr_error *error)
{
    MR_TRY(read_extra(reader, offset, size, error));
    size_t length = strnlen(reader->extra, (size_t)size);
    if (length == 0) return fail_at(reader, MR_DATA_LOSS, offset, "has an invalid name", error);
    reader->has_name = true;
    return set_name(reader, "", 0, reader->extra, length, error);
}

/* ---- Headers ---- */

typedef struct header {
    uint64_t offset, size_bytes;
    int64_t modified_s;
    char type;
} header;

static bool is_zero(const unsigned char *block)
{
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        if (block[i]) return false;
    return true;
}

/* Skips the zeros at the end of an archive. Returns MR_OUT_OF_RANGE if nothing follows them. */
static mr_status skip_zeros(mr_tar_reader *reader, mr_error *error)
{
    unsigned char blocks[32 * 512];
    for (;;) {
        size_t done = 0, at = 0;
        MR_TRY(mr_input_file_read(reader->file, reader->offset, blocks, sizeof(blocks), &done, error));
        while (at < done && blocks[at] == 0) at++;
        if (done == 0) return mr_fail(error, MR_OUT_OF_RANGE, "no more members");
        reader->offset += at < done ? at / BLOCK_BYTES * BLOCK_BYTES : done;
        if (at < done) return MR_OK;
    }
}

static bool is_announced(const mr_tar_reader *reader)
{
    return reader->has_name || reader->has_size || reader->has_time;
}

/* Reads the header at reader->offset, or after the zeros there, and sets the offset to it. Returns MR_OUT_OF_RANGE at
 * the end of the file, and at the end of an archive if an extended header is not followed by its member. */
static mr_status read_header(mr_tar_reader *reader, unsigned char *block, header *header, mr_error *error)
{
    size_t done = 0;
    int64_t size;
    MR_TRY(mr_input_file_read(reader->file, reader->offset, block, BLOCK_BYTES, &done, error));
    if (done == 0 && reader->offset > 0) return mr_fail(error, MR_OUT_OF_RANGE, "no more members");
    if (done < BLOCK_BYTES) return fail_at(reader, MR_DATA_LOSS, reader->offset, "is truncated", error);
    bool follows_end = is_zero(block);
    if (follows_end) {
        if (is_announced(reader)) return mr_fail(error, MR_OUT_OF_RANGE, "no more members");
        MR_TRY(skip_zeros(reader, error));
        reader->archive++;
        MR_TRY(mr_input_file_read(reader->file, reader->offset, block, BLOCK_BYTES, &done, error));
        if (done < BLOCK_BYTES) return fail_at(reader, MR_DATA_LOSS, reader->offset, "is truncated", error);
    }
    uint64_t offset = reader->offset;
    if (!is_checksum_valid(block))
        return fail_at(reader, MR_DATA_LOSS, offset,
                       follows_end ? "follows the end of an archive and is invalid"
                       : offset    ? "is damaged"
                                   : "has a wrong checksum; is this a tar file?",
                       error);
    *header = (struct header){.offset = offset, .type = (char)block[156]};
    if (!parse_number(block + 124, 12, &size) || size < 0)
        return fail_at(reader, MR_DATA_LOSS, offset, "has an invalid size", error);
    header->size_bytes = (uint64_t)size;
    if (!parse_number(block + 136, 12, &header->modified_s)) header->modified_s = 0;
    return MR_OK;
}

static mr_status check_room(const mr_tar_reader *reader, const header *header, uint64_t size, mr_error *error)
{
    assert(header->offset + BLOCK_BYTES <= mr_input_file_size(reader->file));
    uint64_t there = mr_input_file_size(reader->file) - header->offset - BLOCK_BYTES;
    if (size <= there) return MR_OK;
    return fail_at(reader, MR_DATA_LOSS, header->offset, "is of a member longer than the rest of the file", error);
}

static uint64_t padded(uint64_t size)
{
    return (size + BLOCK_BYTES - 1) & ~(uint64_t)(BLOCK_BYTES - 1);
}

static mr_tar_kind kind_of(char type)
{
    switch (type) {
    case '0':
    case '\0':
    case '7': /* contiguous file */
        return MR_TAR_FILE;
    case '1':
    case '2':
        return MR_TAR_LINK;
    case '5':
    case 'D': /* GNU: a directory with the names of its contents */
        return MR_TAR_DIRECTORY;
    default:
        return MR_TAR_OTHER;
    }
}

static mr_status take_member(mr_tar_reader *reader, const header *header, const unsigned char *block,
                             mr_tar_member *member, mr_error *error)
{
    if (!reader->has_name) MR_TRY(name_from_header(reader, block, error));
    member->name = reader->name;
    member->kind = kind_of(header->type);
    size_t length = strlen(reader->name);
    if (member->kind == MR_TAR_FILE && length > 0 && reader->name[length - 1] == '/') member->kind = MR_TAR_DIRECTORY;
    /* Links and devices may specify a size, but have no contents. */
    bool has_bytes = header->type != '1' && header->type != '2' && header->type != '3' && header->type != '4' &&
                     header->type != '5' && header->type != '6';
    uint64_t size = !has_bytes ? 0 : reader->has_size ? reader->size_bytes : header->size_bytes;
    MR_TRY(check_room(reader, header, size, error));
    member->offset = header->offset + BLOCK_BYTES;
    member->size_bytes = member->kind == MR_TAR_FILE ? size : 0;
    bool has_time = header->modified_s <= 9'000'000'000 && header->modified_s >= -9'000'000'000;
    member->modified_ns = has_time ? header->modified_s * 1'000'000'000 : 0;
    if (reader->has_time) member->modified_ns = reader->modified_ns;
    reader->offset = member->offset + padded(size);
    assert(reader->offset >= member->offset && member->size_bytes <= size);
    reader->has_name = reader->has_size = reader->has_time = false;
    return MR_OK;
}

mr_status mr_tar_reader_next(mr_tar_reader *reader, mr_tar_member *member, mr_error *error)
{
    MR_REFUSE_NULL(reader, error);
    MR_REFUSE_NULL(member, error);
    unsigned char block[BLOCK_BYTES];
    header header;
    *member = (mr_tar_member){};
    for (bool is_first = true;; is_first = false) {
        mr_status status = read_header(reader, block, &header, error);
        if (status == MR_OUT_OF_RANGE && is_announced(reader))
            return fail_at(reader, MR_DATA_LOSS, reader->offset, "is missing after an extended header", error);
        MR_TRY(status);
        if (is_first) *member = (mr_tar_member){.header_offset = header.offset, .archive = reader->archive};
        switch (header.type) {
        case 'x':
        case 'g':
        case 'X': /* Solaris extended header */
            MR_TRY(check_room(reader, &header, header.size_bytes, error));
            MR_TRY(read_notes(reader, header.type == 'g', header.offset, header.size_bytes, error));
            break;
        case 'L':
            MR_TRY(check_room(reader, &header, header.size_bytes, error));
            MR_TRY(read_long_name(reader, header.offset, header.size_bytes, error));
            break;
        case 'K': /* GNU: long name of a link's target */
        case 'V': /* volume label */
            MR_TRY(check_room(reader, &header, header.size_bytes, error));
            break;
        case 'S':
            return fail_at(reader, MR_UNIMPLEMENTED, header.offset, "is of a sparse file, which is not supported",
                           error);
        case 'M':
            return fail_at(reader, MR_UNIMPLEMENTED, header.offset,
                           "continues a file of another volume, which is not supported", error);
        default:
            return take_member(reader, &header, block, member, error);
        }
        reader->offset = header.offset + BLOCK_BYTES + padded(header.size_bytes);
    }
}
