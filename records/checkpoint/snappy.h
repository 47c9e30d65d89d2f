/* Snappy's block format, which compresses the blocks of V1 checkpoints. Only decompression. */
#ifndef MR_RECORDS_SNAPPY_H
#define MR_RECORDS_SNAPPY_H

#include <millrace/tensor.h>

/* The size of the decompressed bytes. False if the beginning is damaged, or if so many bytes cannot result. */
bool mr_snappy_size(mr_string compressed, size_t *size_bytes);
/* Decompresses into size_bytes at target, which mr_snappy_size returned. False if the bytes are damaged. */
bool mr_snappy_decompress(mr_string compressed, void *target, size_t size_bytes);

#endif
