/* The on-disk format of a record, shared by reader, writer and index:
 *
 *     8  length of the data, little-endian
 *     4  masked CRC32C of those 8 bytes
 *     …  the data
 *     4  masked CRC32C of the data */
#ifndef MR_RECORDS_RECORD_FORMAT_H
#define MR_RECORDS_RECORD_FORMAT_H

#include "base/bytes.h"

#include <millrace/record.h>

static_assert(MR_RECORD_SIZE_MAX < SIZE_MAX / 2, "a record fits in memory");

/* The masked CRC32C of a short string, optimized because millions of records need it: inlined if the target processor
 * has a CRC32C instruction. */
static inline uint32_t mr_record_crc(const void *bytes, size_t size_bytes)
{
#if defined(__SSE4_2__)
    constexpr size_t SHORT_BYTES = 128;
    if (size_bytes <= SHORT_BYTES) {
        const char *next = bytes;
        uint64_t crc = UINT32_MAX;
        for (; size_bytes >= 8; size_bytes -= 8, next += 8) crc = __builtin_ia32_crc32di(crc, mr_load_le64(next));
        for (; size_bytes > 0; size_bytes--, next++) crc = __builtin_ia32_crc32qi((uint32_t)crc, (unsigned char)*next);
        uint32_t result = ~(uint32_t)crc;
        return (result >> 15 | result << 17) + 0xa282ead8u;
    }
#endif
    return mr_crc32c_mask(mr_crc32c(0, bytes, size_bytes));
}

/* Whether 12 bytes are a valid header: the length's checksum matches and the length is within the limit. */
static inline bool mr_record_header_is_valid(const void *header, uint64_t *length)
{
    *length = mr_load_le64(header);
    return *length <= MR_RECORD_SIZE_MAX && mr_record_crc(header, 8) == mr_load_le32((const char *)header + 8);
}

#endif
