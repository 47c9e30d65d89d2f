/* The ways in which mr_crc32c may compute, for tests and benches: each gives what the plain one gives. */
#ifndef MR_RECORDS_CRC32C_H
#define MR_RECORDS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

typedef struct mr_crc32c_variant {
    const char *name;
    uint32_t (*run)(uint32_t crc, const void *bytes, size_t size_bytes);
    bool (*is_supported)(void); /* by this processor, and allowed by MILLRACE_CPU */
} mr_crc32c_variant;

/* Slowest first. Static. */
extern const mr_crc32c_variant mr_crc32c_variants[];
extern const int mr_crc32c_variant_count;

#endif
