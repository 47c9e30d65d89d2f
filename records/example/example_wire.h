/* The protocol buffer wire format, limited to the messages of an Example: a cursor over untrusted bytes.
 *
 *     Example  { 1: Features }            Features { 1: map entry, repeated }
 *     entry    { 1: name  2: Feature }    Feature  { 1: BytesList | 2: FloatList | 3: Int64List }
 *     a list   { 1: value, repeated; floats and integers packed or not }
 *
 * Readers return false on damage and leave the cursor at its position. */
#ifndef MR_RECORDS_EXAMPLE_WIRE_H
#define MR_RECORDS_EXAMPLE_WIRE_H

#include "base/bytes.h"

#include <millrace/example.h>

#include <string.h>

/* A tag of field number and wire type. All tags of an Example fit in one byte. */
#define MR_TAG_VARINT(field) ((unsigned char)((field) << 3))
#define MR_TAG_BYTES(field) ((unsigned char)((field) << 3 | 2))
#define MR_TAG_FIXED32(field) ((unsigned char)((field) << 3 | 5))

typedef struct mr_wire {
    const unsigned char *next, *end;
} mr_wire;

static inline mr_wire mr_wire_of(mr_string bytes)
{
    const unsigned char *begin = (const unsigned char *)bytes.data;
    return (mr_wire){begin, begin ? begin + bytes.size_bytes : nullptr};
}

static inline size_t mr_wire_left(const mr_wire *wire)
{
    return (size_t)(wire->end - wire->next);
}

/* Reads a varint of at most ten bytes. Bits above 64 are dropped, as in protobuf. */
static inline bool mr_wire_varint(mr_wire *wire, uint64_t *value)
{
    const unsigned char *next = wire->next;
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70 && next < wire->end; shift += 7) {
        unsigned char byte = *next++;
        if (shift < 64) result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            wire->next = next;
            *value = result;
            return true;
        }
    }
    return false;
}

/* Reads the varint at next. Returns the byte after it, or null. Not inlined, so that callers, which rarely need it,
 * keep their cursors in registers. */
const unsigned char *mr_wire_long_varint(const unsigned char *next, const unsigned char *end, uint64_t *value);

/* Reads a length and as many bytes; bytes may be wire itself. Lengths have 32 bits; higher bits are dropped, as in
 * protobuf. */
static inline bool mr_wire_bytes(mr_wire *wire, mr_wire *bytes)
{
    const unsigned char *next = wire->next, *end = wire->end;
    if (next == end) return false;
    uint64_t length = *next++;
    if (length >= 0x80) {
        if (next < end && *next < 0x80) {
            length = (length & 0x7f) | (uint64_t)*next++ << 7;
        } else {
            uint64_t value;
            next = mr_wire_long_varint(next - 1, end, &value);
            if (!next) return false;
            length = value & UINT32_MAX;
        }
    }
    if (length > (size_t)(end - next)) return false;
    wire->next = next + length;
    *bytes = (mr_wire){next, next + length};
    return true;
}

static inline bool mr_wire_tag(mr_wire *wire, unsigned char tag)
{
    if (wire->next == wire->end || *wire->next != tag) return false;
    wire->next++;
    return true;
}

/* Skips the field at the cursor, including its tag. Groups and the tag 0 are errors. */
bool mr_wire_skip(mr_wire *wire);

/* The bytes of a name and of its Feature. */
typedef struct mr_wire_entry {
    mr_wire name, feature;
} mr_wire_entry;

/* Reads the fields of a map entry in any order: the slow path of mr_wire_entry_read. */
bool mr_wire_entry_fields(mr_wire body, mr_wire_entry *entry);

/* Reads the fields of a map entry: exactly two, in any order. Anything else is an error, as in TensorFlow. */
static inline bool mr_wire_entry_read(mr_wire *features, mr_wire_entry *entry)
{
    mr_wire body, name, feature;
    if (!mr_wire_tag(features, MR_TAG_BYTES(1)) || !mr_wire_bytes(features, &body)) return false;
    mr_wire at = body;
    if (mr_wire_tag(&at, MR_TAG_BYTES(1)) && mr_wire_bytes(&at, &name) && mr_wire_tag(&at, MR_TAG_BYTES(2)) &&
        mr_wire_bytes(&at, &feature)) {
        *entry = (mr_wire_entry){name, feature};
        return at.next == at.end;
    }
    return mr_wire_entry_fields(body, entry);
}

/* Reads the kind of a Feature from its first tag. `feature` is then the list preceded by its length. An empty Feature
 * is MR_FEATURE_NONE. */
static inline bool mr_wire_kind(mr_wire *feature, mr_feature_kind *kind)
{
    *kind = MR_FEATURE_NONE;
    if (feature->next == feature->end) return true;
    switch (*feature->next) {
    case MR_TAG_BYTES(1):
        *kind = MR_FEATURE_BYTES;
        break;
    case MR_TAG_BYTES(2):
        *kind = MR_FEATURE_FLOAT;
        break;
    case MR_TAG_BYTES(3):
        *kind = MR_FEATURE_INT64;
        break;
    default:
        return false;
    }
    feature->next++;
    return true;
}

/* ---- Lists: the bytes inside a BytesList, FloatList or Int64List ---- */

/* Counts the values of a list. False: the list is damaged. */
bool mr_wire_count(mr_feature_kind kind, mr_wire list, size_t *count);
/* Reads exactly the values that mr_wire_count counted. */
void mr_wire_strings(mr_wire list, mr_string *values);
void mr_wire_floats(mr_wire list, size_t count, float *values);
void mr_wire_int64s(mr_wire list, size_t count, int64_t *values);

static inline void mr_wire_packed_floats(const unsigned char *bytes, size_t count, float *values)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(values, bytes, 4 * count);
#else
    for (size_t i = 0; i < count; i++, bytes += 4) {
        uint32_t bits = mr_load_le32(bytes);
        memcpy(&values[i], &bits, 4);
    }
#endif
}

const char *mr_feature_kind_name(mr_feature_kind kind);

#endif
