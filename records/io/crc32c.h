/* The implementations of mr_crc32c, for tests and benchmarks. All give the same results as the plain one. */
#ifndef MR_RECORDS_CRC32C_H
#define MR_RECORDS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

typedef struct mr_crc32c_variant {
    const char *name;
    uint32_t (*run)(uint32_t crc, const void *bytes, size_t size_bytes);
    bool (*is_supported)(void); /* by this processor, and not excluded by MILLRACE_CPU */
} mr_crc32c_variant;

/* Ordered from the slowest to the fastest. Static. */
extern const mr_crc32c_variant mr_crc32c_variants[];
extern const int mr_crc32c_variant_count;

#endif
