/* Seekable GZIP, read at any record. */
#ifndef MR_RECORDS_GZIP_SEEK_H
#define MR_RECORDS_GZIP_SEEK_H

#include <millrace/record.h>

typedef struct mr_gzip_seek mr_gzip_seek;

/* path, index  borrowed as long as it lives; the index has points */
mr_status mr_gzip_seek_new(const char *path, const mr_record_index *index, mr_gzip_seek **seek, mr_error *error);
void mr_gzip_seek_free(mr_gzip_seek *seek);

/* Inflates size_bytes from where record `number` begins, or as many as there are: *done says how many.
 * descriptor  of the file at path
 * errors   MR_DATA_LOSS where the stream is damaged or is not as the index says
 * memory   64 KiB and zlib's window for each thread that reads at once
 * threads  safe from any thread. Numbers that rise are read on from where the last record ended */
mr_status mr_gzip_seek_read(mr_gzip_seek *seek, int descriptor, uint64_t number, void *bytes, size_t size_bytes,
                            size_t *done, mr_error *error);

/* The last point at or before a record. */
uint64_t mr_record_index_point(const mr_record_index *index, uint64_t record);

#endif
