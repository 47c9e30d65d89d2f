/* The lists of an Example in wire format. As in TensorFlow's parser, the first tag of a list of numbers determines
 * whether it is packed; of a packed list only the first chunk is read, and the bytes after it are ignored. */
#include "records/example/example_wire.h"

#include <assert.h>

const unsigned char *mr_wire_long_varint(const unsigned char *next, const unsigned char *end, uint64_t *value)
{
    mr_wire wire = {next, end};
    return mr_wire_varint(&wire, value) ? wire.next : nullptr;
}

bool mr_wire_entry_fields(mr_wire body, mr_wire_entry *entry)
{
    *entry = (mr_wire_entry){0};
    for (int i = 0; i < 2; i++) {
        uint64_t tag;
        if (!mr_wire_varint(&body, &tag)) return false;
        mr_wire *field = (uint32_t)tag == MR_TAG_BYTES(1)   ? &entry->name
                         : (uint32_t)tag == MR_TAG_BYTES(2) ? &entry->feature
                                                            : nullptr;
        if (field == nullptr || !mr_wire_bytes(&body, field)) return false;
    }
    return body.next == body.end;
}

bool mr_wire_skip(mr_wire *wire)
{
    mr_wire at = *wire, ignored;
    uint64_t tag, value;
    if (!mr_wire_varint(&at, &tag) || (uint32_t)tag == 0) return false;
    bool is_good = false;
    switch (tag & 7) {
    case 0:
        is_good = mr_wire_varint(&at, &value);
        break;
    case 1:
    case 5: {
        size_t size = (tag & 7) == 1 ? 8 : 4;
        is_good = mr_wire_left(&at) >= size;
        if (is_good) at.next += size;
        break;
    }
    case 2:
        is_good = mr_wire_bytes(&at, &ignored);
        break;
    default:
        break; /* groups, and two undefined wire types */
    }
    if (is_good) *wire = at;
    return is_good;
}

static constexpr uint64_t UPPER_BITS = 0x8080808080808080;

/* Loads fewer than 8 bytes into a word; the other bytes are 0. */
static inline uint64_t load_few(const unsigned char *bytes, size_t size)
{
    assert(size < 8);
    if (size >= 4) return mr_load_le32(bytes) | (uint64_t)mr_load_le32(bytes + size - 4) << 8 * (size - 4);
    if (size == 0) return 0;
    return bytes[0] | (uint64_t)bytes[size / 2] << 8 * (size / 2) | (uint64_t)bytes[size - 1] << 8 * (size - 1);
}

/* Counts varints by their last bytes, whose upper bit is clear, one word at a time. No varint is longer than ten bytes;
 * `open` counts the bytes of an unfinished one. */
static bool count_varints(mr_wire list, size_t *count)
{
    size_t found = 0;
    unsigned open = 0;
    for (size_t left = mr_wire_left(&list); left > 0;) {
        size_t size = left < 8 ? left : 8;
        uint64_t ends = left < 8 ? load_few(list.next, left) | UPPER_BITS << 8 * left : mr_load_le64(list.next);
        ends = ~ends & UPPER_BITS;
        list.next += size;
        left -= size;
        if (ends == 0) {
            open += (unsigned)size;
            if (open >= 10) return false;
            continue;
        }
        if (open + (unsigned)__builtin_ctzll(ends) / 8 >= 10) return false;
        found += (size_t)__builtin_popcountll(ends);
        open = (unsigned)size - 1 - (63 - (unsigned)__builtin_clzll(ends)) / 8;
    }
    *count = found;
    return open == 0;
}

static bool count_numbers(mr_wire list, bool is_float, size_t *count)
{
    *count = 0;
    if (list.next == list.end) return true;
    if (*list.next == MR_TAG_BYTES(1)) {
        mr_wire packed;
        list.next++;
        if (!mr_wire_bytes(&list, &packed)) return false;
        *count = mr_wire_left(&packed) / 4;
        return is_float ? mr_wire_left(&packed) % 4 == 0 : count_varints(packed, count);
    }
    while (list.next < list.end) {
        uint64_t value;
        if (is_float) {
            if (!mr_wire_tag(&list, MR_TAG_FIXED32(1)) || mr_wire_left(&list) < 4) return false;
            list.next += 4;
        } else if (!mr_wire_tag(&list, MR_TAG_VARINT(1)) || !mr_wire_varint(&list, &value)) {
            return false;
        }
        ++*count;
    }
    return true;
}

static bool count_strings(mr_wire list, size_t *count)
{
    mr_wire value;
    for (*count = 0; list.next < list.end; ++*count)
        if (!mr_wire_tag(&list, MR_TAG_BYTES(1)) || !mr_wire_bytes(&list, &value)) return false;
    return true;
}

bool mr_wire_count(mr_feature_kind kind, mr_wire list, size_t *count)
{
    switch (kind) {
    case MR_FEATURE_BYTES:
        return count_strings(list, count);
    case MR_FEATURE_FLOAT:
        return count_numbers(list, true, count);
    case MR_FEATURE_INT64:
        return count_numbers(list, false, count);
    case MR_FEATURE_NONE:
        break;
    }
    *count = 0;
    return true;
}

void mr_wire_strings(mr_wire list, mr_string *values)
{
    mr_wire value;
    while (list.next < list.end) {
        if (!mr_wire_tag(&list, MR_TAG_BYTES(1)) || !mr_wire_bytes(&list, &value)) {
            assert(false && "counted before" != nullptr);
            return;
        }
        *values++ = (mr_string){(const char *)value.next, mr_wire_left(&value)};
    }
}

void mr_wire_floats(mr_wire list, size_t count, float *values)
{
    if (count == 0) return;
    if (*list.next == MR_TAG_BYTES(1)) {
        mr_wire packed = {0};
        list.next++;
        (void)mr_wire_bytes(&list, &packed);
        assert(packed.next != nullptr && mr_wire_left(&packed) == 4 * count);
        mr_wire_packed_floats(packed.next, count, values);
        return;
    }
    assert(mr_wire_left(&list) == 5 * count);
    for (size_t i = 0; i < count; i++) mr_wire_packed_floats(list.next + 5 * i + 1, 1, &values[i]);
}

/* The lower seven bits of each byte, made contiguous. */
static inline uint64_t join_septets(uint64_t word)
{
    assert((word & UPPER_BITS) == 0);
    word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
    word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
    return (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
}

/* Decodes packed varints that count_varints has checked. Their lengths are unpredictable, so there is no branch on the
 * length except for varints of more than 8 bytes. */
static void packed_int64s(mr_wire packed, size_t count, int64_t *values)
{
    for (size_t i = 0; i < count; i++) {
        size_t left = mr_wire_left(&packed);
        uint64_t word = left < 8 ? load_few(packed.next, left) : mr_load_le64(packed.next), ends = ~word & UPPER_BITS;
        if (ends == 0) {
            uint64_t value = 0;
            (void)mr_wire_varint(&packed, &value);
            values[i] = (int64_t)value;
            continue;
        }
        /* All bits up to the end of the varint. */
        values[i] = (int64_t)join_septets(word & (ends ^ (ends - 1)) & ~UPPER_BITS);
        packed.next += (unsigned)__builtin_ctzll(ends) / 8 + 1;
    }
    assert(packed.next == packed.end);
}

void mr_wire_int64s(mr_wire list, size_t count, int64_t *values)
{
    if (count == 0) return;
    if (*list.next == MR_TAG_BYTES(1)) {
        mr_wire packed = {0};
        list.next++;
        (void)mr_wire_bytes(&list, &packed);
        packed_int64s(packed, count, values);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        list.next++;
        (void)mr_wire_varint(&list, &value);
        values[i] = (int64_t)value;
    }
}

const char *mr_feature_kind_name(mr_feature_kind kind)
{
    switch (kind) {
    case MR_FEATURE_NONE:
        return "none";
    case MR_FEATURE_BYTES:
        return "bytes";
    case MR_FEATURE_FLOAT:
        return "float";
    case MR_FEATURE_INT64:
        return "int64";
    }
    return "unknown";
}
