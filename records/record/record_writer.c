/* The record writer: appends records to a file. Records are collected in a buffer; long ones are written directly from
 * the caller's memory.
 *
 * Closing an atomic writer proceeds in this order: sync the data, write the index under its final name, rename the
 * file. Anyone who sees the file therefore also sees its index. An index without its file is stale and not used. */
#include "base/arguments.h"
#include "base/options.h"
#include "base/status.h"
#include "records/io/file.h"
#include "records/record/gzip_segments.h"
#include "records/record/record_format.h"
#include "records/record/record_index.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static constexpr size_t BUFFER_BYTES = (size_t)256 << 10;
/* A segment of this size plus the longest record is less than the 4 GiB that zlib accepts in one call. */
static constexpr size_t SEEK_BYTES_MAX = (size_t)1 << 30;

struct mr_record_writer {
    mr_file_output output;
    mr_record_writer_options options;
    uint64_t count, size_bytes;
    mr_record_index index;
    uint64_t index_capacity, point_capacity;
    z_stream *deflater;         /* owned; null for plain and seekable files */
    mr_gzip_segments *segments; /* owned; of seekable files */
    mr_error fault;             /* the first failure; nothing is written after it */
    size_t used;
    unsigned char buffer[BUFFER_BYTES];
};

static mr_status start_deflater(mr_record_writer *writer, mr_error *error)
{
    assert(writer->deflater == nullptr && writer->segments == nullptr &&
           writer->options.compression != MR_COMPRESSION_NONE);
    int level = writer->options.level ? writer->options.level : 6;
    if (level < 1 || level > 9)
        return mr_fail(error, MR_INVALID_ARGUMENT, "compression level %d (expected 1 to 9)", level);
    if (writer->options.seek_bytes > 0) {
        if (writer->options.compression != MR_COMPRESSION_GZIP || writer->options.seek_bytes > SEEK_BYTES_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "seek_bytes requires GZIP and is at most %zu", SEEK_BYTES_MAX);
        int threads = writer->options.threads > 1 ? writer->options.threads : 1;
        return mr_gzip_segments_new(level, writer->options.seek_bytes, threads, &writer->segments, error);
    }
    z_stream *deflater = calloc(1, sizeof(*deflater));
    if (deflater == nullptr) return mr_fail_memory(error, sizeof(*deflater));
    /* 15: maximum window; + 16: a GZIP header. */
    int window_bits = writer->options.compression == MR_COMPRESSION_GZIP ? 16 + 15 : 15;
    if (deflateInit2(deflater, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(deflater);
        return mr_fail_memory(error, sizeof(*deflater));
    }
    writer->deflater = deflater;
    return MR_OK;
}

static void free_writer(mr_record_writer *writer)
{
    if (writer->deflater != nullptr) {
        (void)deflateEnd(writer->deflater);
        free(writer->deflater);
    }
    mr_gzip_segments_free(writer->segments);
    mr_record_index_deinit(&writer->index);
    free(writer);
}

/* The index is computed from the file, which is read again for its samples. */
static mr_status check_indexable(mr_record_writer *writer, mr_error *error)
{
    struct stat about;
    if (fstat(writer->output.descriptor, &about) != 0 || S_ISREG(about.st_mode)) return MR_OK;
    mr_status status =
        mr_fail(error, MR_INVALID_ARGUMENT, "%s: not a regular file, so it cannot have an index", writer->output.path);
    mr_file_output_discard(&writer->output);
    return status;
}

mr_status mr_record_writer_open(const char *path, const mr_record_writer_options *options, mr_record_writer **writer,
                                mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(writer, error);
    mr_record_writer *opened = calloc(1, sizeof(*opened));
    if (opened == nullptr) return mr_fail_memory(error, sizeof(*opened));
    mr_status status = MR_OPTIONS_READ(mr_record_writer_options, &opened->options, options, error);
    if (status != MR_OK) {
        free_writer(opened);
        return status;
    }
    opened->index.compression = opened->options.compression;
    if (opened->options.compression < MR_COMPRESSION_NONE || opened->options.compression > MR_COMPRESSION_ZLIB)
        status =
            mr_fail(error, MR_INVALID_ARGUMENT, "%s: unknown compression %d", path, (int)opened->options.compression);
    else if (opened->options.threads < 0)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%s: threads is %d, but must be at least 0", path,
                         (int)opened->options.threads);
    else if (opened->options.compression != MR_COMPRESSION_NONE)
        status = start_deflater(opened, error);
    else if (opened->options.seek_bytes > 0)
        status =
            mr_fail(error, MR_INVALID_ARGUMENT, "%s: seek_bytes requires GZIP: plain files are always seekable", path);
    else if (opened->options.level != 0)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%s: level %d has no effect without compression", path,
                         opened->options.level);
    if (status == MR_OK && opened->options.no_lock && opened->options.atomic)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%s: no_lock has no effect with atomic", path);
    opened->output.no_lock = opened->options.no_lock;
    if (status == MR_OK) status = mr_file_output_open(&opened->output, path, opened->options.atomic, error);
    if (status == MR_OK && opened->options.index) status = check_indexable(opened, error);
    if (status != MR_OK) {
        free_writer(opened);
        return status;
    }
    *writer = opened;
    return MR_OK;
}

/* Keeps the first failure, so that no record follows an incomplete one. */
static mr_status keep(mr_record_writer *writer, mr_status status, mr_error *problem, mr_error *error)
{
    if (status == MR_OK) return MR_OK;
    assert(problem->status == status && writer->fault.status == MR_OK);
    writer->fault = *problem;
    if (error != nullptr) *error = *problem;
    return status;
}

static mr_status drain(mr_record_writer *writer, mr_error *error)
{
    assert(writer->used <= BUFFER_BYTES);
    size_t used = writer->used;
    writer->used = 0;
    return mr_file_output_write(&writer->output, writer->buffer, used, error);
}

/* Compresses bytes into the buffer. flush: Z_NO_FLUSH, Z_SYNC_FLUSH or Z_FINISH. */
static mr_status compress_bytes(mr_record_writer *writer, const void *bytes, size_t size_bytes, int flush,
                                mr_error *error)
{
    z_stream *deflater = writer->deflater;
    const unsigned char *next = bytes;
    for (;;) {
        uInt piece = size_bytes < (1u << 30) ? (uInt)size_bytes : 1u << 30;
        deflater->next_in = (Bytef *)next;
        deflater->avail_in = piece;
        int mode = piece == size_bytes ? flush : Z_NO_FLUSH;
        int result;
        do {
            if (writer->used == BUFFER_BYTES) MR_TRY(drain(writer, error));
            deflater->next_out = writer->buffer + writer->used;
            deflater->avail_out = (uInt)(BUFFER_BYTES - writer->used);
            result = deflate(deflater, mode);
            assert(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR);
            assert(deflater->avail_out <= BUFFER_BYTES);
            writer->used = BUFFER_BYTES - deflater->avail_out;
        } while (deflater->avail_in > 0 || deflater->avail_out == 0 || (mode == Z_FINISH && result == Z_OK));
        assert(deflater->avail_in == 0 && piece <= size_bytes);
        next += piece;
        size_bytes -= piece;
        if (size_bytes == 0) return MR_OK;
    }
}

static mr_status put(mr_record_writer *writer, const void *bytes, size_t size_bytes, mr_error *error)
{
    assert(!(writer->segments != nullptr && writer->deflater != nullptr));
    if (writer->segments != nullptr) return mr_gzip_segments_put(writer->segments, bytes, size_bytes, error);
    if (writer->deflater != nullptr) return compress_bytes(writer, bytes, size_bytes, Z_NO_FLUSH, error);
    if (size_bytes > BUFFER_BYTES - writer->used) {
        MR_TRY(drain(writer, error));
        if (size_bytes >= BUFFER_BYTES / 2) return mr_file_output_write(&writer->output, bytes, size_bytes, error);
    }
    assert(size_bytes <= BUFFER_BYTES - writer->used);
    memcpy(writer->buffer + writer->used, bytes, size_bytes);
    writer->used += size_bytes;
    return MR_OK;
}

static mr_status append(mr_record_writer *writer, const void *bytes, size_t size_bytes, mr_error *error)
{
    assert(size_bytes <= MR_RECORD_SIZE_MAX && writer->fault.status == MR_OK);
    unsigned char header[MR_RECORD_HEADER_BYTES], footer[MR_RECORD_FOOTER_BYTES];
    mr_store_le64(header, size_bytes);
    mr_store_le32(header + 8, mr_crc32c_mask(mr_crc32c(0, header, 8)));
    mr_store_le32(footer, mr_crc32c_mask(mr_crc32c(0, bytes, size_bytes)));
    MR_TRY(put(writer, header, sizeof(header), error));
    if (size_bytes > 0) MR_TRY(put(writer, bytes, size_bytes, error));
    MR_TRY(put(writer, footer, sizeof(footer), error));
    if (writer->options.index)
        MR_TRY(mr_record_index_append(&writer->index, &writer->index_capacity, size_bytes, error));
    if (writer->segments != nullptr)
        MR_TRY(mr_gzip_segments_end_record(writer->segments, &writer->output,
                                           writer->options.index ? &writer->index : nullptr, &writer->point_capacity,
                                           error));
    writer->count++;
    assert(!writer->options.index || writer->index.count == writer->count);
    writer->size_bytes += sizeof(header) + size_bytes + sizeof(footer);
    return MR_OK;
}

mr_status mr_record_writer_append(mr_record_writer *writer, const void *bytes, size_t size_bytes, mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    if (size_bytes > MR_RECORD_SIZE_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: record %" PRIu64 " has %zu bytes (expected at most %" PRIu64 ")", writer->output.path,
                       writer->count, size_bytes, MR_RECORD_SIZE_MAX);
    if (writer->fault.status != MR_OK) return mr_fail(error, writer->fault.status, "%s", writer->fault.message);
    mr_error problem = {0};
    return keep(writer, append(writer, bytes, size_bytes, &problem), &problem, error);
}

mr_status mr_record_writer_append_many(mr_record_writer *writer, const void *bytes, const uint64_t *sizes, size_t count,
                                       mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    assert(count == 0 || (bytes != nullptr && sizes != nullptr));
    const char *next = bytes;
    for (size_t i = 0; i < count; i++) {
        MR_TRY(mr_record_writer_append(writer, next, sizes[i], error));
        next += sizes[i];
    }
    return MR_OK;
}

static mr_status flush(mr_record_writer *writer, int mode, bool sync, mr_error *error)
{
    assert(mode == Z_FINISH || mode == Z_SYNC_FLUSH);
    if (writer->segments != nullptr) {
        mr_record_index *index = writer->options.index ? &writer->index : nullptr;
        MR_TRY(mode == Z_FINISH
                   ? mr_gzip_segments_finish(writer->segments, &writer->output, index, &writer->point_capacity, error)
                   : mr_gzip_segments_flush(writer->segments, &writer->output, index, &writer->point_capacity, error));
    }
    if (writer->deflater != nullptr) MR_TRY(compress_bytes(writer, "", 0, mode, error));
    MR_TRY(drain(writer, error));
    return sync ? mr_file_output_sync(&writer->output, error) : MR_OK;
}

mr_status mr_record_writer_flush(mr_record_writer *writer, bool sync, mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    if (writer->fault.status != MR_OK) return mr_fail(error, writer->fault.status, "%s", writer->fault.message);
    mr_error problem = {0};
    return keep(writer, flush(writer, Z_SYNC_FLUSH, sync, &problem), &problem, error);
}

uint64_t mr_record_writer_count(const mr_record_writer *writer)
{
    if (writer == nullptr) return 0;
    return writer->count;
}

uint64_t mr_record_writer_size(const mr_record_writer *writer)
{
    if (writer == nullptr) return 0;
    return writer->size_bytes;
}

static mr_status write_index(mr_record_writer *writer, mr_error *error)
{
    assert(writer->used == 0 && writer->index.count == writer->count);
    mr_file_stamp stamp;
    MR_TRY(mr_file_output_stamp(&writer->output, &stamp, error));
    writer->index.file_size_bytes = stamp.size_bytes;
    writer->index.file_modified_ns = stamp.modified_ns;
    mr_index_source file = {.path = writer->output.partial, .size_bytes = stamp.size_bytes};
    MR_TRY(mr_file_open(file.path, &file.descriptor, error));
    mr_status status = mr_index_sample(&file, &writer->index.file_checksum, error);
    (void)close(file.descriptor);
    MR_TRY(status);
    return mr_record_index_write(writer->output.path, &writer->index, error);
}

mr_status mr_record_writer_close(mr_record_writer *writer, mr_error *error)
{
    MR_REFUSE_NULL(writer, error);
    mr_status status = writer->fault.status;
    if (status != MR_OK)
        (void)mr_fail(error, status, "%s", writer->fault.message);
    else
        status = flush(writer, Z_FINISH, writer->options.atomic, error);
    if (status == MR_OK && writer->options.index) status = write_index(writer, error);
    if (status == MR_OK)
        status = mr_file_output_commit(&writer->output, error);
    else
        mr_file_output_discard(&writer->output);
    free_writer(writer);
    return status;
}

void mr_record_writer_discard(mr_record_writer *writer)
{
    if (writer == nullptr) return;
    mr_file_output_discard(&writer->output);
    free_writer(writer);
}
