/* Random access to records: one pread for each record, whose checksums are all verified. Reads share only the
 * descriptor and the index, so any number of threads may read concurrently. Seekable GZIP is decompressed by
 * gzip_seek.c. */
#include "base/arguments.h"
#include "base/status.h"
#include "records/io/file.h"
#include "records/io/open_file.h"
#include "records/record/gzip_seek.h"
#include "records/record/record_format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct mr_record_file {
    char *path;
    mr_open_file *source;
    mr_record_index index;
    mr_gzip_seek *seek; /* owned; null for plain files */
};

mr_status mr_record_file_open(const char *path, mr_record_file **file, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(file, error);
    mr_record_file *opened = calloc(1, sizeof(*opened));
    char *name = strdup(path);
    if (opened == nullptr || name == nullptr) {
        free(opened);
        free(name);
        return mr_fail_memory(error, sizeof(*opened));
    }
    opened->path = name;
    struct stat about;
    mr_status status = mr_record_index_open(path, &opened->index, error);
    if (status == MR_OK) status = mr_open_file_new(path, true, &opened->source, &about, error);
    if (status == MR_OK && opened->index.compression != MR_COMPRESSION_NONE) {
        if (opened->index.count > 0 && opened->index.point_count == 0)
            status = mr_fail(error, MR_UNIMPLEMENTED,
                             "%s: records cannot be read by number: the file is compressed and not seekable", path);
        else
            status = mr_gzip_seek_new(name, &opened->index, &opened->seek, error);
    }
    if (status == MR_OK) {
        /* The index was opened by name, but the bytes are read by descriptor. */
        mr_file_stamp stamp = mr_file_stamp_from(&about);
        if (stamp.size_bytes != opened->index.file_size_bytes || stamp.modified_ns != opened->index.file_modified_ns)
            status = mr_fail(error, MR_ABORTED, "%s: the file was changed while it was being opened", path);
    }
    if (status != MR_OK) {
        mr_record_file_close(opened);
        return status;
    }
    *file = opened;
    return MR_OK;
}

void mr_record_file_close(mr_record_file *file)
{
    if (file == nullptr) return;
    mr_gzip_seek_free(file->seek);
    mr_open_file_free(file->source);
    mr_record_index_deinit(&file->index);
    free(file->path);
    free(file);
}

uint64_t mr_record_file_count(const mr_record_file *file)
{
    if (file == nullptr) return 0;
    return file->index.count;
}

const char *mr_record_file_path(const mr_record_file *file)
{
    if (file == nullptr) return nullptr;
    return file->path;
}

mr_compression mr_record_file_compression(const mr_record_file *file)
{
    if (file == nullptr) return 0;
    return file->index.compression;
}

uint64_t mr_record_file_offset(const mr_record_file *file, uint64_t number)
{
    if (file == nullptr) return 0;
    return file->index.offsets[number < file->index.count ? number : file->index.count];
}

uint64_t mr_record_file_record_size(const mr_record_file *file, uint64_t number)
{
    if (file == nullptr) return 0;
    if (number >= file->index.count) return 0;
    assert(file->index.offsets[number + 1] - file->index.offsets[number] >=
           MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES);
    return file->index.offsets[number + 1] - file->index.offsets[number] - MR_RECORD_HEADER_BYTES -
           MR_RECORD_FOOTER_BYTES;
}

void mr_record_file_prefetch(const mr_record_file *file, uint64_t number)
{
    if (file == nullptr) return;
    if (number >= file->index.count || file->seek != nullptr) return;
    uint64_t data_bytes = mr_record_file_record_size(file, number);
    int descriptor;
    if (mr_open_file_acquire(file->source, &descriptor, nullptr) != MR_OK) return;
    mr_file_prefetch(descriptor, file->index.offsets[number],
                     MR_RECORD_HEADER_BYTES + data_bytes + MR_RECORD_FOOTER_BYTES);
    mr_open_file_release(file->source);
}

mr_status mr_record_file_read(const mr_record_file *file, uint64_t number, void *bytes, mr_string *record,
                              mr_error *error)
{
    MR_REFUSE_NULL(file, error);
    MR_REFUSE_NULL(record, error);
    if (number >= file->index.count)
        return mr_fail(error, MR_OUT_OF_RANGE,
                       "%s: record %" PRIu64 " does not exist: the number of records is %" PRIu64, file->path, number,
                       file->index.count);
    uint64_t offset = file->index.offsets[number], length = mr_record_file_record_size(file, number), stored_length;
    assert(length <= MR_RECORD_SIZE_MAX);
    assert((file->seek != nullptr) == (file->index.compression != MR_COMPRESSION_NONE));
    size_t total_bytes = MR_RECORD_HEADER_BYTES + (size_t)length + MR_RECORD_FOOTER_BYTES, done;
    int descriptor;
    MR_TRY(mr_open_file_acquire(file->source, &descriptor, error));
    mr_status status = file->seek != nullptr
                           ? mr_gzip_seek_read(file->seek, descriptor, number, bytes, total_bytes, &done, error)
                           : mr_file_read_at(descriptor, file->path, offset, bytes, total_bytes, &done, error);
    mr_open_file_release(file->source);
    MR_TRY(status);
    if (done < total_bytes)
        return mr_fail(error, MR_DATA_LOSS,
                       "%s: record %" PRIu64 " at byte %" PRIu64 ": truncated: the file has shrunk since it was opened",
                       file->path, number, offset);
    if (!mr_record_header_is_valid(bytes, &stored_length) || stored_length != length)
        return mr_fail(error, MR_DATA_LOSS,
                       "%s: record %" PRIu64 " at byte %" PRIu64 ": the index has a record of %" PRIu64
                       " bytes here, the file does not%s",
                       file->path, number, offset, length,
                       file->index.origin == MR_INDEX_LOADED
                           ? "; if the file was rewritten, tfrecord-cat --repair-index rebuilds the index"
                           : "");
    const char *data = (const char *)bytes + MR_RECORD_HEADER_BYTES;
    uint32_t computed = mr_crc32c_mask(mr_crc32c(0, data, length)), stored = mr_load_le32(data + length);
    if (computed != stored)
        return mr_fail(error, MR_DATA_LOSS,
                       "%s: record %" PRIu64 " at byte %" PRIu64
                       ": data checksum mismatch (computed %08x, stored %08x)",
                       file->path, number, offset, computed, stored);
    *record = (mr_string){data, length};
    return MR_OK;
}
