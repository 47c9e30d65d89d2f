/* Seekable GZIP, written: one ordinary GZIP stream that can be entered at its segments.
 *
 * A segment is whole records. Each is deflated by itself and ends with a full flush — an empty stored block, on a whole
 * byte — so that no segment refers to another, and they may be deflated by as many threads as there are. Behind the
 * last one comes an empty final block and the trailer. */
#ifndef MR_RECORDS_GZIP_SEGMENTS_H
#define MR_RECORDS_GZIP_SEGMENTS_H

#include "records/io/file.h"

#include <millrace/record.h>

typedef struct mr_gzip_segments mr_gzip_segments;

/* level    1…9
 * segment  bytes of records, at the first boundary behind which a segment ends
 * threads  at least 1, the caller's included */
mr_status mr_gzip_segments_new(int level, size_t segment_bytes, int threads, mr_gzip_segments **segments,
                               mr_error *error);
void mr_gzip_segments_free(mr_gzip_segments *segments);

/* Bytes of the present record. */
mr_status mr_gzip_segments_put(mr_gzip_segments *segments, const void *bytes, size_t size_bytes, mr_error *error);
/* Ends the present record: its segment too when that is long enough. Segments are deflated and written when there is one
 * for each thread, or with flush all at once.
 * index  gets a point for each segment that is written; null: none
 * capacity  of its points */
mr_status mr_gzip_segments_end_record(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                      uint64_t *capacity, mr_error *error);
mr_status mr_gzip_segments_flush(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                 uint64_t *capacity, mr_error *error);
/* Flushes and writes the end of the stream. */
mr_status mr_gzip_segments_finish(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                  uint64_t *capacity, mr_error *error);

#endif
