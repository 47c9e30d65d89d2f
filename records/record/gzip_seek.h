/* Random access to the records of seekable GZIP files. */
#ifndef MR_RECORDS_GZIP_SEEK_H
#define MR_RECORDS_GZIP_SEEK_H

#include <millrace/record.h>

typedef struct mr_gzip_seek mr_gzip_seek;

/* path, index  borrowed, must outlive seek; the index has points */
mr_status mr_gzip_seek_new(const char *path, const mr_record_index *index, mr_gzip_seek **seek, mr_error *error);
void mr_gzip_seek_free(mr_gzip_seek *seek);

/* Decompresses size_bytes from the start of record `number`, or fewer at the end of the file; *done is their number.
 * descriptor  of the file at path
 * errors   MR_DATA_LOSS if the stream is damaged or does not match the index
 * memory   64 KiB and a zlib window for each concurrent reader
 * threads  safe from any thread. Reads of ascending numbers continue where the previous record ended */
mr_status mr_gzip_seek_read(mr_gzip_seek *seek, int descriptor, uint64_t number, void *bytes, size_t size_bytes,
                            size_t *done, mr_error *error);

/* The last point at or before a record. */
uint64_t mr_record_index_point(const mr_record_index *index, uint64_t record);

#endif
