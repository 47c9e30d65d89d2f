/* Counting records: from the index if there is a valid one, otherwise from the headers, or by reading a stream. */
#include "base/arguments.h"
#include "records/record/record_index.h"

#include <string.h>
#include <unistd.h>

/* For input without an index or a seekable file: standard input and pipes. */
static mr_status count_stream(const char *path, uint64_t *count, mr_error *error)
{
    mr_record_reader *reader = nullptr;
    MR_TRY(mr_record_reader_open(path, MR_OPTIONS(mr_record_reader_options, .skip_checksums = true), &reader, error));
    mr_string record;
    mr_status status;
    uint64_t counted = 0;
    mr_error problem = {0};
    while ((status = mr_record_reader_next(reader, &record, &problem)) == MR_OK) counted++;
    mr_record_reader_close(reader);
    if (status != MR_OUT_OF_RANGE) return mr_fail(error, status, "%s", problem.message);
    *count = counted;
    return MR_OK;
}

mr_status mr_record_count(const char *path, int32_t threads, uint64_t *count, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(count, error);
    mr_index_source source;
    mr_file_stamp stamp;
    mr_compression compression;
    *count = 0;
    if (strcmp(path, "-") == 0) return count_stream(path, count, error);
    mr_error problem = {0};
    mr_status status = mr_index_source_open(path, &source, &stamp, &compression, &problem);
    if (status == MR_UNIMPLEMENTED) return count_stream(path, count, error);
    if (status != MR_OK) return mr_fail(error, status, "%s", problem.message);
    source.threads = threads;
    bool is_suspicious = compression == MR_COMPRESSION_NONE && mr_record_index_is_older(path, &stamp);
    if (!is_suspicious && mr_record_index_load_count(&source, count))
        status = MR_OK;
    else if (compression == MR_COMPRESSION_NONE)
        status = mr_index_build_plain(&source, count, nullptr, error);
    else
        status = mr_index_build_compressed(&source, count, nullptr, error);
    (void)close(source.descriptor);
    return status;
}
