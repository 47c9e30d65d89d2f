/* Little-endian numbers in byte strings, at any alignment. */
#ifndef MR_BASE_BYTES_H
#define MR_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t mr_load_le16(const void *bytes)
{
    const unsigned char *b = bytes;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t mr_load_le32(const void *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

static inline uint64_t mr_load_le64(const void *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static inline void mr_store_le32(void *bytes, uint32_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    memcpy(bytes, &value, sizeof value);
}

static inline void mr_store_le64(void *bytes, uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    memcpy(bytes, &value, sizeof value);
}

#endif
