/* Opening the index of a record file: loads the stored one if it belongs to the file, otherwise builds it from the
 * file's headers. */
#include "base/arguments.h"
#include "records/record/record_format.h"
#include "records/record/record_index.h"
#include "records/record/record_stream.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mr_status mr_index_source_open(const char *path, mr_index_source *source, mr_file_stamp *stamp,
                               mr_compression *compression, mr_error *error)
{
    *source = (mr_index_source){.path = path, .descriptor = -1};
    struct stat about;
    /* A pipe must not be opened here: opening and closing it would end it for its writer. */
    if (stat(path, &about) == 0 && S_ISFIFO(about.st_mode))
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: records cannot be read by number: the file is a pipe", path);
    MR_TRY(mr_file_open(path, &source->descriptor, error));
    unsigned char start[MR_RECORD_HEADER_BYTES];
    size_t held = 0;
    mr_status status = MR_OK;
    if (fstat(source->descriptor, &about) != 0)
        status = mr_file_fail(error, errno, "read", path);
    else if (!S_ISREG(about.st_mode))
        status = mr_fail(error, MR_UNIMPLEMENTED, "%s: records cannot be read by number: not a regular file", path);
    else
        status = mr_file_read_at(source->descriptor, path, 0, start, sizeof(start), &held, error);
    if (status != MR_OK) {
        (void)close(source->descriptor);
        return status;
    }
    *stamp = mr_file_stamp_from(&about);
    *compression = mr_record_compression_of(start, held);
    source->size_bytes = stamp->size_bytes;
    return MR_OK;
}

static mr_status build(const mr_index_source *source, const mr_file_stamp *stamp, mr_compression compression,
                       mr_record_index *index, mr_error *error)
{
    *index = (mr_record_index){.origin = index->origin,
                               .compression = compression,
                               .file_size_bytes = stamp->size_bytes,
                               .file_modified_ns = stamp->modified_ns};
    uint64_t count;
    mr_status status = compression == MR_COMPRESSION_NONE ? mr_index_build_plain(source, &count, index, error)
                                                          : mr_index_build_compressed(source, &count, index, error);
    if (status == MR_OK) status = mr_index_sample(source, &index->file_checksum, error);
    assert(status != MR_OK || (index->offsets != nullptr && index->count == count));
    if (status != MR_OK) mr_record_index_deinit(index);
    return status;
}

/* Compares the loaded index of a plain file with every header, and replaces it if it is stale: if a file is rewritten
 * with the same size, the samples may be the same. */
static mr_status check_loaded(const mr_index_source *source, const mr_file_stamp *stamp, mr_record_index *index,
                              mr_error *error)
{
    assert(index->offsets != nullptr && index->compression == MR_COMPRESSION_NONE && index->origin == MR_INDEX_LOADED);
    mr_record_index built = {0};
    mr_status status = build(source, stamp, MR_COMPRESSION_NONE, &built, error);
    if (status == MR_OK && built.count == index->count &&
        memcmp(built.offsets, index->offsets, (index->count + 1) * sizeof(uint64_t)) == 0) {
        mr_record_index_deinit(&built);
        return MR_OK;
    }
    mr_record_index_deinit(index);
    *index = built;
    index->origin = MR_INDEX_STALE;
    return status;
}

mr_status mr_record_index_open(const char *path, mr_record_index *index, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(index, error);
    *index = (mr_record_index){0};
    mr_index_source source;
    mr_file_stamp stamp;
    mr_compression compression;
    MR_TRY(mr_index_source_open(path, &source, &stamp, &compression, error));
    bool is_suspicious = compression == MR_COMPRESSION_NONE && mr_record_index_is_older(path, &stamp);
    mr_status status = mr_record_index_load(&source, &stamp, index, error);
    if (status == MR_OK && is_suspicious && index->compression == MR_COMPRESSION_NONE) {
        status = check_loaded(&source, &stamp, index, error);
    } else if (status == MR_NOT_FOUND) {
        if (compression == MR_COMPRESSION_NONE)
            status = build(&source, &stamp, compression, index, error);
        else
            status = mr_fail(error, MR_UNIMPLEMENTED,
                             "%s: records cannot be read by number: the file is compressed and %s", path,
                             index->origin == MR_INDEX_STALE     ? "its index is stale"
                             : index->origin == MR_INDEX_DAMAGED ? "its index is damaged"
                                                                 : "has no index");
    }
    (void)close(source.descriptor);
    if (status != MR_OK) *index = (mr_record_index){.origin = index->origin};
    assert(status != MR_OK || index->offsets != nullptr);
    return status;
}

mr_status mr_record_index_build(const char *path, int32_t threads, mr_record_index *index, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(index, error);
    *index = (mr_record_index){.origin = MR_INDEX_BUILT};
    mr_index_source source;
    mr_file_stamp stamp;
    mr_compression compression;
    MR_TRY(mr_index_source_open(path, &source, &stamp, &compression, error));
    source.threads = threads;
    mr_status status = build(&source, &stamp, compression, index, error);
    (void)close(source.descriptor);
    return status;
}
