/* Writer of seekable GZIP: one ordinary GZIP stream whose segments can be decompressed independently.
 *
 * A segment contains complete records. Each segment is compressed separately and ends with a full flush (an empty
 * stored block, byte-aligned), so that no segment refers to another and all threads can compress segments concurrently.
 * The last segment is followed by an empty final block and the trailer. */
#ifndef MR_RECORDS_GZIP_SEGMENTS_H
#define MR_RECORDS_GZIP_SEGMENTS_H

#include "records/io/file.h"

#include <millrace/record.h>

typedef struct mr_gzip_segments mr_gzip_segments;

/* level    1…9
 * segment  uncompressed bytes; a segment ends at the first record boundary at or after this size
 * threads  at least 1, including the caller */
mr_status mr_gzip_segments_new(int level, size_t segment_bytes, int threads, mr_gzip_segments **segments,
                               mr_error *error);
void mr_gzip_segments_free(mr_gzip_segments *segments);

/* Appends bytes to the current record. */
mr_status mr_gzip_segments_put(mr_gzip_segments *segments, const void *bytes, size_t size_bytes, mr_error *error);
/* Ends the current record, and its segment if that has reached its size. Segments are compressed and written when there
 * is one for each thread; flush compresses and writes all of them immediately.
 * index     receives a point for each segment that is written; null: none
 * capacity  of its points */
mr_status mr_gzip_segments_end_record(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                      uint64_t *capacity, mr_error *error);
mr_status mr_gzip_segments_flush(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                 uint64_t *capacity, mr_error *error);
/* Flushes and writes the end of the stream. */
mr_status mr_gzip_segments_finish(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                  uint64_t *capacity, mr_error *error);

#endif
