/* The parts of the index: its bytes, and the ways in which it is made. */
#ifndef MR_RECORDS_RECORD_INDEX_H
#define MR_RECORDS_RECORD_INDEX_H

#include "records/io/file.h"

#include <millrace/record.h>

/* ---- record_index.c ---- */

/* Appends a record of length bytes behind the last one; {0} is an empty index, but offsets is then null.
 * capacity  of offsets, kept by the caller, 0 to begin */
mr_status mr_record_index_append(mr_record_index *index, uint64_t *capacity, uint64_t length, mr_error *error);
/* Appends a point; capacity as above. */
mr_status mr_record_index_append_point(mr_record_index *index, uint64_t *capacity, mr_record_point point,
                                       mr_error *error);

/* Reads the index from the bytes of its file.
 * stamp     the record file as it is now
 * checksum  of mr_index_sample, of the record file as it is now
 * errors    MR_DATA_LOSS: it is not to be trusted, and index->origin says why; MR_RESOURCE_EXHAUSTED: no memory. Nothing is
 *           owned then */
mr_status mr_record_index_decode(const void *bytes, size_t size_bytes, const mr_file_stamp *stamp, uint32_t checksum,
                                 mr_record_index *index);

/* ---- index_hop.c ---- */

/* A plain file that is hopped over. */
typedef struct mr_hop {
    int descriptor;
    const char *path;
    uint64_t size_bytes;
    int32_t threads; /* at most; 0: one for each processor */
} mr_hop;
/* count  of all records
 * index  offsets and count are filled; null: the records are only counted, in constant memory */
mr_status mr_index_hop(const mr_hop *hop, uint64_t *count, mr_record_index *index, mr_error *error);

/* ---- index_sample.c ---- */

/* CRC32C of the bytes at a few places of the file, all of them where it is small. With the size it identifies the file.
 * file  size_bytes is its size now */
mr_status mr_index_sample(const mr_hop *file, uint32_t *checksum, mr_error *error);
/* Compares the headers of a few records, the first and the last among them, with the index. Compressed files: MR_OK.
 * errors  MR_DATA_LOSS when they disagree */
mr_status mr_index_agrees(const mr_hop *file, const mr_record_index *index);

/* ---- index_hop.c, errors ---- */

/* The sentences about a header that does not hold, and about a file that ends too early. */
mr_status mr_index_bad_header(const char *path, uint64_t record, uint64_t offset, const void *header, mr_error *error);
mr_status mr_index_cut_short(const char *path, uint64_t record, uint64_t offset, uint64_t length, uint64_t left,
                             mr_error *error);

/* ---- index_inflate.c ---- */

/* The same for a compressed file, which is read from its beginning; index also gets the points. */
mr_status mr_index_inflate(const mr_hop *file, uint64_t *count, mr_record_index *index, mr_error *error);

/* ---- dali_index.c ---- */

/* The text of DALI's index; path for messages. offsets, count and file_size_bytes are filled. */
mr_status mr_dali_index_parse(const char *path, const char *text, size_t size_bytes, mr_record_index *index,
                              mr_error *error);

#endif
