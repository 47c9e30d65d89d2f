/* A block is the size of its contents as a varint, then elements: literal bytes, or copies of up to 64 bytes that were
 * decompressed earlier. */
#include "records/checkpoint/snappy.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* The largest number of bytes that an element of 3 bytes produces. */
constexpr size_t COPY_MAX = 64;

static size_t take_size(mr_string compressed, size_t *size_bytes)
{
    uint64_t size = 0;
    for (size_t i = 0; i < 5 && i < compressed.size_bytes; i++) {
        uint8_t byte = (uint8_t)compressed.data[i];
        size |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *size_bytes = (size_t)size;
            return size <= UINT32_MAX ? i + 1 : 0;
        }
    }
    return 0;
}

bool mr_snappy_size(mr_string compressed, size_t *size_bytes)
{
    size_t used = take_size(compressed, size_bytes);
    return used > 0 && *size_bytes / COPY_MAX <= (compressed.size_bytes - used);
}

/* Reads a little-endian number of `count` bytes. */
static bool take(const uint8_t **at, const uint8_t *end, size_t count, size_t *number)
{
    if ((size_t)(end - *at) < count) return false;
    *number = 0;
    for (size_t i = 0; i < count; i++) *number |= (size_t)*(*at)++ << (8 * i);
    return true;
}

static bool take_literal(const uint8_t **at, const uint8_t *end, uint8_t tag, size_t *length)
{
    *length = tag >> 2;
    if (*length >= 60 && !take(at, end, *length - 59, length)) return false;
    *length += 1;
    return true;
}

static bool take_copy(const uint8_t **at, const uint8_t *end, uint8_t tag, size_t *length, size_t *offset)
{
    static const size_t offset_bytes[] = {0, 1, 2, 4};
    size_t kind = tag & 3;
    if (!take(at, end, offset_bytes[kind], offset)) return false;
    *length = kind == 1 ? 4 + (tag >> 2 & 7) : (size_t)(tag >> 2) + 1;
    if (kind == 1) *offset |= (size_t)(tag >> 5) << 8;
    return true;
}

bool mr_snappy_decompress(mr_string compressed, void *target, size_t size_bytes)
{
    const uint8_t *at = (const uint8_t *)compressed.data, *end = at + compressed.size_bytes;
    uint8_t *bytes = target;
    size_t done = 0, size = 0, used = take_size(compressed, &size);
    if (used == 0 || size != size_bytes) return false;
    at += used;
    while (at < end) {
        uint8_t tag = *at++;
        size_t length, offset;
        assert(done <= size_bytes);
        if ((tag & 3) == 0) {
            if (!take_literal(&at, end, tag, &length) || length > (size_t)(end - at) || length > size_bytes - done)
                return false;
            memcpy(bytes + done, at, length);
            at += length;
        } else {
            if (!take_copy(&at, end, tag, &length, &offset) || offset == 0 || offset > done ||
                length > size_bytes - done)
                return false;
            /* The source may overlap the target: bytes that this copy writes are then copied again. */
            for (size_t i = 0; i < length; i++) bytes[done + i] = bytes[done + i - offset];
        }
        done += length;
    }
    return done == size_bytes;
}
