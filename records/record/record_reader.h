/* Internal functions of the record reader, for callers that know where records start. */
#ifndef MR_RECORDS_RECORD_READER_H
#define MR_RECORDS_RECORD_READER_H

#include <millrace/record.h>

/* As mr_record_reader_open, for a descriptor of a seekable plain file, starting at a record's header.
 * descriptor  closed by the reader, also if this fails
 * number      of that record; the range in options is ignored */
mr_status mr_record_reader_open_at(int descriptor, const char *path, uint64_t offset, uint64_t number,
                                   const mr_record_reader_options *options, mr_record_reader **reader, mr_error *error);

/* As mr_record_reader_open, but reaches the first record of the range by reading all records before it, so that the
 * checksum of a compressed stream is verified too. */
mr_status mr_record_reader_open_through(const char *path, const mr_record_reader_options *options,
                                        mr_record_reader **reader, mr_error *error);

#endif
