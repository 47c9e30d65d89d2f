/* Internal functions of the record index: its encoding, and the ways to build it. */
#ifndef MR_RECORDS_RECORD_INDEX_H
#define MR_RECORDS_RECORD_INDEX_H

#include "records/io/file.h"

#include <millrace/record.h>

/* A record file whose index is loaded or built. */
typedef struct mr_index_source {
    int descriptor;
    const char *path;
    uint64_t size_bytes;
    int32_t threads; /* maximum; 0: one for each processor */
} mr_index_source;

/* ---- record_index.c: in memory and as a file ---- */

/* Appends a record of length bytes. {0} is an empty index, whose offsets are null.
 * capacity  of offsets, kept by the caller, initially 0 */
mr_status mr_record_index_append(mr_record_index *index, uint64_t *capacity, uint64_t length, mr_error *error);
/* Appends a point; capacity is as above. */
mr_status mr_record_index_append_point(mr_record_index *index, uint64_t *capacity, mr_record_point point,
                                       mr_error *error);

/* Decodes the contents of an index file.
 * stamp     the current size and time of the record file
 * checksum  mr_index_sample of the current record file
 * errors    MR_DATA_LOSS: the index is invalid, and index->origin is the reason; MR_RESOURCE_EXHAUSTED: out of memory.
 *           Nothing is owned in these cases */
mr_status mr_record_index_decode(const void *bytes, size_t size_bytes, const mr_file_stamp *stamp, uint32_t checksum,
                                 mr_record_index *index);

/* Loads the stored index if it is valid; otherwise MR_NOT_FOUND, and index->origin is the reason.
 * errors  MR_RESOURCE_EXHAUSTED: out of memory */
mr_status mr_record_index_load(const mr_index_source *file, const mr_file_stamp *stamp, mr_record_index *index,
                               mr_error *error);
/* Loads only the count, in constant memory: the complete index is verified, but not kept. False if it is not valid. */
bool mr_record_index_load_count(const mr_index_source *file, uint64_t *count);
/* Whether the record file was modified after its index. */
bool mr_record_index_is_older(const char *path, const mr_file_stamp *stamp);

/* ---- index_open.c ---- */

/* Opens a record file that can have an index, and detects its compression. The caller closes the descriptor. */
mr_status mr_index_source_open(const char *path, mr_index_source *file, mr_file_stamp *stamp,
                               mr_compression *compression, mr_error *error);

/* ---- index_plain.c ---- */

/* Finds all records of a plain file.
 * count  of all records
 * index  receives offsets and count; null: the records are only counted, in constant memory */
mr_status mr_index_build_plain(const mr_index_source *source, uint64_t *count, mr_record_index *index, mr_error *error);

/* ---- index_sample.c ---- */

/* CRC32C of samples of the file, or of the complete file if it is small. Together with the size it identifies the file.
 * file  size_bytes is the current size */
mr_status mr_index_sample(const mr_index_source *file, uint32_t *checksum, mr_error *error);
/* Compares the headers of some records, including the first and the last, with the index. Compressed files: MR_OK.
 * errors  MR_DATA_LOSS if they do not match */
mr_status mr_index_agrees(const mr_index_source *file, const mr_record_index *index);

/* ---- index_compressed.c ---- */

/* As mr_index_build_plain for a compressed file, which is read from its beginning; index also receives the points. */
mr_status mr_index_build_compressed(const mr_index_source *file, uint64_t *count, mr_record_index *index,
                                    mr_error *error);

/* ---- dali_index.c ---- */

/* Parses the text of DALI's index; path is for messages. Sets offsets, count and file_size_bytes. */
mr_status mr_dali_index_parse(const char *path, const char *text, size_t size_bytes, mr_record_index *index,
                              mr_error *error);

#endif
