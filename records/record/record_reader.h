/* A reader that begins somewhere, for those who know where records are. */
#ifndef MR_RECORDS_RECORD_READER_H
#define MR_RECORDS_RECORD_READER_H

#include <millrace/record.h>

/* As mr_record_reader_open, over a descriptor of a seekable plain file, from a record's header on.
 * descriptor  the reader closes it, also when this fails
 * number      of that record; options' range is not looked at */
mr_status mr_record_reader_open_at(int descriptor, const char *path, uint64_t offset, uint64_t number,
                                   const mr_record_reader_options *options, mr_record_reader **reader, mr_error *error);

/* As mr_record_reader_open, but the range's first record is gone to by reading all before it: of a compressed file the
 * stream's own checksum is then checked too. */
mr_status mr_record_reader_open_through(const char *path, const mr_record_reader_options *options,
                                        mr_record_reader **reader, mr_error *error);

#endif
