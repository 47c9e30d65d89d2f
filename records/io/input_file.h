/* What the formats need of an input file beyond its public face: parts, and inflating. */
#ifndef MR_RECORDS_INPUT_FILE_H
#define MR_RECORDS_INPUT_FILE_H

#include <millrace/formats.h>

typedef enum mr_deflate_form { MR_DEFLATE_RAW, MR_DEFLATE_GZIP } mr_deflate_form;

/* A part of file, which must outlive it; name is for messages. */
mr_status mr_input_file_part(const mr_input_file *file, uint64_t offset, uint64_t size_bytes, const char *name,
                             mr_input_file **part, mr_error *error);
/* What size_bytes at offset come to, in a file without a name. At most result_max bytes; *crc32 is of the result. */
mr_status mr_input_file_inflate(const mr_input_file *file, uint64_t offset, uint64_t size_bytes, mr_deflate_form form,
                                uint64_t result_max, const char *name, mr_input_file **part, uint32_t *crc32,
                                mr_error *error);
/* An empty file without a name, and bytes at its end: by whoever made it, before others read. */
mr_status mr_input_file_nameless(const char *name, mr_input_file **file, mr_error *error);
mr_status mr_input_file_append(mr_input_file *file, const void *bytes, size_t size_bytes, mr_error *error);
/* As mr_file_prefetch. */
void mr_input_file_prefetch(const mr_input_file *file, uint64_t offset, uint64_t size_bytes);
/* Reads exactly size_bytes. errors: MR_DATA_LOSS when the file ends before: "FILE: cut short at byte N" */
mr_status mr_input_file_read_all(const mr_input_file *file, uint64_t offset, void *bytes, size_t size_bytes,
                                 mr_error *error);

#endif
