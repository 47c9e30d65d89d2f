/* Internal functions of mr_input_file, for the formats: parts of files, and decompression. */
#ifndef MR_RECORDS_INPUT_FILE_H
#define MR_RECORDS_INPUT_FILE_H

#include <millrace/formats.h>

typedef enum mr_deflate_form { MR_DEFLATE_RAW, MR_DEFLATE_GZIP } mr_deflate_form;

/* Creates a view of a part of file, which must outlive it; name is for messages. */
mr_status mr_input_file_part(const mr_input_file *file, uint64_t offset, uint64_t size_bytes, const char *name,
                             mr_input_file **part, mr_error *error);
/* Decompresses size_bytes at offset into an unnamed temporary file of at most result_max bytes. *crc32 is that of the
 * result. */
mr_status mr_input_file_inflate(const mr_input_file *file, uint64_t offset, uint64_t size_bytes, mr_deflate_form form,
                                uint64_t result_max, const char *name, mr_input_file **part, uint32_t *crc32,
                                mr_error *error);
/* Creates an empty unnamed file, and appends bytes to it. Only the creator may append, before any other thread
 * reads. */
mr_status mr_input_file_nameless(const char *name, mr_input_file **file, mr_error *error);
mr_status mr_input_file_append(mr_input_file *file, const void *bytes, size_t size_bytes, mr_error *error);
/* As mr_file_prefetch. */
void mr_input_file_prefetch(const mr_input_file *file, uint64_t offset, uint64_t size_bytes);
/* Reads exactly size_bytes.
 * errors  MR_DATA_LOSS if the file ends early: "FILE: truncated at byte N" */
mr_status mr_input_file_read_all(const mr_input_file *file, uint64_t offset, void *bytes, size_t size_bytes,
                                 mr_error *error);

#endif
