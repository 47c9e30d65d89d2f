/* Input files: random access to the bytes of a file, of a part of one, or of memory. Compressed data does not allow
 * this, so it is first decompressed into an unnamed temporary file, which the system removes when its descriptor is
 * closed, even if the process crashes. */
#include "records/io/input_file.h"

#include "base/arguments.h"
#include "base/status.h"
#include "records/io/file.h"
#include "records/io/open_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static constexpr size_t PIECE_BYTES = (size_t)256 << 10;

struct mr_input_file {
    mr_open_file *source;        /* owned: a named file; or null */
    int descriptor;              /* owned: an unnamed file; or -1 */
    const char *bytes;           /* borrowed; or null */
    const mr_input_file *parent; /* borrowed; or null */
    uint64_t offset;             /* in parent */
    uint64_t size_bytes;
    int64_t modified_ns;
    char name[];
};

static mr_status new_file(const char *name, mr_input_file **file, mr_error *error)
{
    size_t length = strlen(name);
    mr_input_file *created = calloc(1, sizeof(*created) + length + 1);
    if (created == nullptr) return mr_fail_memory(error, sizeof(*created) + length);
    created->descriptor = -1;
    memcpy(created->name, name, length + 1);
    *file = created;
    return MR_OK;
}

void mr_input_file_close(mr_input_file *file)
{
    if (file == nullptr) return;
    mr_open_file_free(file->source);
    if (file->descriptor >= 0) (void)close(file->descriptor);
    free(file);
}

uint64_t mr_input_file_size(const mr_input_file *file)
{
    if (file == nullptr) return 0;
    return file->size_bytes;
}

int64_t mr_input_file_modified_ns(const mr_input_file *file)
{
    if (file == nullptr) return 0;
    return file->modified_ns;
}

const char *mr_input_file_name(const mr_input_file *file)
{
    return file->name;
}

mr_status mr_input_file_from(mr_string bytes, const char *name, mr_input_file **file, mr_error *error)
{
    MR_REFUSE_NULL(name, error);
    MR_REFUSE_NULL(file, error);
    MR_TRY(new_file(name, file, error));
    (*file)->bytes = bytes.data != nullptr ? bytes.data : "";
    (*file)->size_bytes = bytes.size_bytes;
    return MR_OK;
}

mr_status mr_input_file_part(const mr_input_file *file, uint64_t offset, uint64_t size_bytes, const char *name,
                             mr_input_file **part, mr_error *error)
{
    assert(offset <= file->size_bytes && size_bytes <= file->size_bytes - offset);
    MR_TRY(new_file(name, part, error));
    (*part)->parent = file;
    (*part)->offset = offset;
    (*part)->size_bytes = size_bytes;
    (*part)->modified_ns = file->modified_ns;
    return MR_OK;
}

mr_status mr_input_file_read(const mr_input_file *file, uint64_t offset, void *bytes, size_t size_bytes, size_t *done,
                             mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(done, error);
    assert((file->source != nullptr) + (file->descriptor >= 0) + (file->bytes != nullptr) + (file->parent != nullptr) ==
           1);
    *done = 0;
    if (offset >= file->size_bytes) return MR_OK;
    if (size_bytes > file->size_bytes - offset) size_bytes = (size_t)(file->size_bytes - offset);
    if (file->parent != nullptr)
        return mr_input_file_read(file->parent, file->offset + offset, bytes, size_bytes, done, error);
    if (file->source != nullptr) {
        int descriptor;
        MR_TRY(mr_open_file_acquire(file->source, &descriptor, error));
        mr_status status = mr_file_read_at(descriptor, file->name, offset, bytes, size_bytes, done, error);
        mr_open_file_release(file->source);
        return status;
    }
    if (file->descriptor >= 0)
        return mr_file_read_at(file->descriptor, file->name, offset, bytes, size_bytes, done, error);
    memcpy(bytes, file->bytes + offset, size_bytes);
    *done = size_bytes;
    return MR_OK;
}

void mr_input_file_prefetch(const mr_input_file *file, uint64_t offset, uint64_t size_bytes)
{
    for (; file->parent != nullptr; file = file->parent) offset += file->offset;
    int descriptor = file->descriptor;
    if (file->source != nullptr && mr_open_file_acquire(file->source, &descriptor, nullptr) != MR_OK) return;
    if (descriptor >= 0) mr_file_prefetch(descriptor, offset, size_bytes);
    if (file->source != nullptr) mr_open_file_release(file->source);
}

mr_status mr_input_file_read_all(const mr_input_file *file, uint64_t offset, void *bytes, size_t size_bytes,
                                 mr_error *error)
{
    size_t done = 0;
    MR_TRY(mr_input_file_read(file, offset, bytes, size_bytes, &done, error));
    assert(done <= size_bytes);
    if (done == size_bytes) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "%s: truncated at byte %" PRIu64, file->name, offset + done);
}

/* ---- Decompression ---- */

static mr_status open_nameless(int *descriptor, mr_error *error)
{
    const char *directory = getenv("TMPDIR");
    if (directory == nullptr || !*directory) directory = "/var/tmp";
    *descriptor = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*descriptor >= 0) return MR_OK;
    /* For file systems without O_TMPFILE. */
    char path[4096];
    size_t length = strlen(directory);
    static const char name[] = "/millrace-XXXXXX";
    if (length + sizeof(name) > sizeof(path)) return mr_file_fail(error, ENAMETOOLONG, "create a file in", directory);
    memcpy(path, directory, length);
    memcpy(path + length, name, sizeof(name));
    *descriptor = mkostemp(path, O_CLOEXEC);
    if (*descriptor < 0) return mr_file_fail(error, errno, "create a file in", directory);
    (void)unlink(path);
    return MR_OK;
}

mr_status mr_input_file_nameless(const char *name, mr_input_file **file, mr_error *error)
{
    MR_TRY(new_file(name, file, error));
    mr_status status = open_nameless(&(*file)->descriptor, error);
    if (status == MR_OK) return MR_OK;
    mr_input_file_close(*file);
    *file = nullptr;
    return status;
}

mr_status mr_input_file_append(mr_input_file *file, const void *bytes, size_t size_bytes, mr_error *error)
{
    assert(file->descriptor >= 0 && file->source == nullptr && file->parent == nullptr);
    for (size_t done = 0; done < size_bytes;) {
        ssize_t got = write(file->descriptor, (const char *)bytes + done, size_bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return mr_file_fail(error, errno, "write a temporary copy of", file->name);
        done += (size_t)got;
    }
    file->size_bytes += size_bytes;
    return MR_OK;
}

typedef struct inflation {
    const mr_input_file *file;
    const char *name;
    uint64_t offset, end; /* of the input that has not been read */
    uint64_t result_max;
    uint32_t crc;
    mr_deflate_form form;
    z_stream zlib;
    unsigned char input[PIECE_BYTES], output[PIECE_BYTES];
} inflation;

/* A raw stream is a member of a ZIP file, whose size is in the ZIP directory. Unlike GZIP it has no padding and no
 * second member. */
static mr_status fail_trailing(const inflation *work, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "%s: extra bytes after the end of the compressed data", work->name);
}

/* Consumes one piece of input. *is_done: the stream has ended; for GZIP the next member may follow. */
static mr_status inflate_piece(inflation *work, mr_input_file *result, bool *is_done, mr_error *error)
{
    do {
        work->zlib.next_out = work->output;
        work->zlib.avail_out = (unsigned)sizeof(work->output);
        int code = inflate(&work->zlib, Z_NO_FLUSH);
        if (code == Z_MEM_ERROR) return mr_fail_memory(error, sizeof(*work));
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return mr_fail(error, MR_DATA_LOSS, "%s: damaged compressed data near byte %" PRIu64 "%s%s", work->name,
                           work->offset - work->zlib.avail_in, work->zlib.msg != nullptr ? ": " : "",
                           work->zlib.msg != nullptr ? work->zlib.msg : "");
        size_t produced = sizeof(work->output) - work->zlib.avail_out;
        assert(result->size_bytes <= work->result_max);
        if (produced > work->result_max - result->size_bytes)
            return mr_fail(error, MR_DATA_LOSS, "%s: decompresses to more than %" PRIu64 " bytes", work->name,
                           work->result_max);
        work->crc = (uint32_t)crc32(work->crc, work->output, (unsigned)produced);
        MR_TRY(mr_input_file_append(result, work->output, produced, error));
        if (code == Z_STREAM_END) {
            *is_done = true;
            if (work->zlib.avail_in == 0) return MR_OK;
            if (work->form == MR_DEFLATE_RAW) return fail_trailing(work, error);
            *is_done = false;
            /* Zero bytes after the last member are padding. */
            while (work->zlib.avail_in > 0 && *work->zlib.next_in == 0) work->zlib.next_in++, work->zlib.avail_in--;
            if (work->zlib.avail_in == 0) *is_done = true;
            if (inflateReset(&work->zlib) != Z_OK) return mr_fail_memory(error, sizeof(*work));
        } else if (produced == 0 && work->zlib.avail_in == 0) {
            return MR_OK;
        }
    } while (work->zlib.avail_in > 0 || work->zlib.avail_out == 0);
    return MR_OK;
}

static mr_status inflate_all(inflation *work, mr_input_file *result, mr_error *error)
{
    bool is_done = false;
    while (work->offset < work->end) {
        /* A member ended with the previous piece, so another member or padding follows. */
        if (is_done && work->form == MR_DEFLATE_RAW) return fail_trailing(work, error);
        size_t size =
            work->end - work->offset < sizeof(work->input) ? (size_t)(work->end - work->offset) : sizeof(work->input);
        MR_TRY(mr_input_file_read_all(work->file, work->offset, work->input, size, error));
        if (is_done) {
            size_t zeros = 0;
            while (zeros < size && work->input[zeros] == 0) zeros++;
            work->offset += zeros;
            if (zeros > 0) continue;
            if (inflateReset(&work->zlib) != Z_OK) return mr_fail_memory(error, sizeof(*work));
            is_done = false;
        }
        work->offset += size;
        assert(work->offset <= work->end);
        work->zlib.next_in = work->input;
        work->zlib.avail_in = (unsigned)size;
        MR_TRY(inflate_piece(work, result, &is_done, error));
    }
    if (!is_done) return mr_fail(error, MR_DATA_LOSS, "%s: the compressed data is truncated", work->name);
    return MR_OK;
}

mr_status mr_input_file_inflate(const mr_input_file *file, uint64_t offset, uint64_t size_bytes, mr_deflate_form form,
                                uint64_t result_max, const char *name, mr_input_file **part, uint32_t *crc,
                                mr_error *error)
{
    assert(offset <= file->size_bytes && size_bytes <= file->size_bytes - offset);
    *part = nullptr;
    inflation *work = calloc(1, sizeof(*work));
    if (work == nullptr) return mr_fail_memory(error, sizeof(*work));
    work->file = file;
    work->name = name;
    work->offset = offset;
    work->end = offset + size_bytes;
    work->result_max = result_max;
    work->form = form;
    mr_input_file *created = nullptr;
    mr_status status = mr_input_file_nameless(name, &created, error);
    if (status == MR_OK && inflateInit2(&work->zlib, form == MR_DEFLATE_RAW ? -15 : 15 + 16) != Z_OK)
        status = mr_fail_memory(error, sizeof(*work));
    if (status == MR_OK) {
        status = inflate_all(work, created, error);
        (void)inflateEnd(&work->zlib);
    }
    if (status == MR_OK) {
        created->modified_ns = file->modified_ns;
        *crc = work->crc;
        *part = created;
    } else {
        mr_input_file_close(created);
    }
    free(work);
    return status;
}

/* ---- Opening ---- */

static mr_status gunzip_file(mr_input_file **file, mr_error *error)
{
    unsigned char magic[3];
    size_t done;
    MR_TRY(mr_input_file_read(*file, 0, magic, sizeof(magic), &done, error));
    if (done < sizeof(magic) || magic[0] != 0x1f || magic[1] != 0x8b || magic[2] != 8) return MR_OK;
    mr_input_file *inflated = nullptr;
    uint32_t crc;
    MR_TRY(mr_input_file_inflate(*file, 0, (*file)->size_bytes, MR_DEFLATE_GZIP, INT64_MAX, (*file)->name, &inflated,
                                 &crc, error));
    mr_input_file_close(*file);
    *file = inflated;
    return MR_OK;
}

mr_status mr_input_file_open(const char *path, bool gunzip, mr_input_file **file, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(file, error);
    struct stat about;
    *file = nullptr;
    mr_input_file *created = nullptr;
    MR_TRY(new_file(path, &created, error));
    mr_status status = mr_open_file_new(path, false, &created->source, &about, error);
    if (status == MR_OK && !S_ISREG(about.st_mode))
        status = mr_fail(error, MR_INVALID_ARGUMENT,
                         "%s: not a regular file, so it cannot be read at arbitrary offsets", path);
    if (status == MR_OK) {
        mr_file_stamp stamp = mr_file_stamp_from(&about);
        created->size_bytes = stamp.size_bytes;
        created->modified_ns = stamp.modified_ns;
        if (gunzip) status = gunzip_file(&created, error);
    }
    if (status != MR_OK) {
        mr_input_file_close(created);
        return status;
    }
    *file = created;
    return MR_OK;
}
