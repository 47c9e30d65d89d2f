/* Making an index piece by piece, for the writer. */
#ifndef MR_RECORDS_RECORD_INDEX_H
#define MR_RECORDS_RECORD_INDEX_H

#include <millrace/record.h>

/* Appends a record of length bytes behind the last one; {0} is an empty index, but offsets is then null.
 * capacity  of offsets, kept by the caller, 0 to begin */
mr_status mr_record_index_append(mr_record_index *index, uint64_t *capacity, uint64_t length, mr_error *error);

#endif
