/* Protocol buffer wire format, as far as an Example has it: a cursor over hostile bytes.
 *
 *     Example  { 1: Features }            Features { 1: map entry, repeated }
 *     entry    { 1: name  2: Feature }    Feature  { 1: BytesList | 2: FloatList | 3: Int64List }
 *     a list   { 1: value, repeated; floats and integers packed or not }
 *
 * Readers return false and leave the cursor where the damage is. */
#ifndef MR_RECORDS_EXAMPLE_WIRE_H
#define MR_RECORDS_EXAMPLE_WIRE_H

#include <millrace/example.h>

#include <string.h>

/* A tag of field number and wire type, one byte: all of an Example's are. */
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

/* At most ten bytes; what is above 64 bits is dropped, as protobuf does. */
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

/* A length and that many bytes; bytes may be wire itself. The length is 32 bits; what is above them is dropped, as protobuf does. */
static inline bool mr_wire_bytes(mr_wire *wire, mr_wire *bytes)
{
    mr_wire at = *wire;
    uint64_t length;
    if (at.next < at.end && *at.next < 0x80)
        length = *at.next++;
    else if (!mr_wire_varint(&at, &length))
        return false;
    length &= UINT32_MAX;
    if (length > mr_wire_left(&at)) return false;
    wire->next = at.next + length;
    *bytes = (mr_wire){at.next, at.next + length};
    return true;
}

static inline bool mr_wire_tag(mr_wire *wire, unsigned char tag)
{
    if (wire->next == wire->end || *wire->next != tag) return false;
    wire->next++;
    return true;
}

/* Skips the field at the cursor, tag included. Groups and the tag 0 are damage. */
bool mr_wire_skip(mr_wire *wire);

/* One name and its Feature, as bytes. */
typedef struct mr_wire_entry {
    mr_wire name, feature;
} mr_wire_entry;

/* The fields of a map entry: exactly two, in any order; anything else is damage, as in TensorFlow. */
static inline bool mr_wire_entry_read(mr_wire *features, mr_wire_entry *entry)
{
    mr_wire body;
    if (!mr_wire_tag(features, MR_TAG_BYTES(1)) || !mr_wire_bytes(features, &body)) return false;
    *entry = (mr_wire_entry){0};
    for (int i = 0; i < 2; i++) {
        uint64_t tag;
        if (body.next < body.end && *body.next < 0x80)
            tag = *body.next++;
        else if (!mr_wire_varint(&body, &tag))
            return false;
        mr_wire *field = (uint32_t)tag == MR_TAG_BYTES(1)   ? &entry->name
                         : (uint32_t)tag == MR_TAG_BYTES(2) ? &entry->feature
                                                            : nullptr;
        if (!field || !mr_wire_bytes(&body, field)) return false;
    }
    return body.next == body.end;
}

/* The kind of a Feature, by its first tag; the rest of its bytes is then the list with its length. Empty: NONE. */
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

/* How many values a list has; false: damaged. */
bool mr_wire_count(mr_feature_kind kind, mr_wire list, size_t *count);
/* The values of a list that mr_wire_count has seen: exactly that many. */
void mr_wire_strings(mr_wire list, mr_string *values);
void mr_wire_floats(mr_wire list, size_t count, float *values);
void mr_wire_int64s(mr_wire list, size_t count, int64_t *values);

const char *mr_feature_kind_name(mr_feature_kind kind);

#endif
