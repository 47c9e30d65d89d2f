/* Lists of an Example on the wire. As TensorFlow's parser does, the first tag of a list of numbers says whether it is
 * packed; of a packed list the first chunk is the list, and nothing behind it is looked at. */
#include "records/example_wire.h"

#include <assert.h>

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
        break; /* groups, and two types that do not exist */
    }
    if (is_good) *wire = at;
    return is_good;
}

/* Varints end where a byte's upper bit is clear, and none is longer than ten bytes. */
static bool count_varints(mr_wire list, size_t *count)
{
    size_t found = 0;
    const unsigned char *next = list.next;
    while (list.end - next >= 8) {
        uint64_t word;
        memcpy(&word, next, 8);
        uint64_t ends = ~word & 0x8080808080808080;
        if (ends == 0) break;
        found += (size_t)__builtin_popcountll(ends);
        next += 8;
        /* The word may end inside a varint; step back to its first byte so that its length is seen whole. */
        while (next > list.next && next[-1] >= 0x80) next--;
    }
    mr_wire rest = {next, list.end};
    uint64_t value;
    while (rest.next < rest.end) {
        if (!mr_wire_varint(&rest, &value)) return false;
        found++;
    }
    *count = found;
    return true;
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
            assert(false && "counted before");
            return;
        }
        *values++ = (mr_string){(const char *)value.next, mr_wire_left(&value)};
    }
}

static float float_at(const unsigned char *bytes)
{
    uint32_t bits = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

void mr_wire_floats(mr_wire list, size_t count, float *values)
{
    if (count == 0) return;
    if (*list.next == MR_TAG_BYTES(1)) {
        mr_wire packed = {0};
        list.next++;
        (void)mr_wire_bytes(&list, &packed);
        assert(packed.next != nullptr && mr_wire_left(&packed) == 4 * count);
        for (size_t i = 0; i < count; i++) values[i] = float_at(packed.next + 4 * i);
        return;
    }
    assert(mr_wire_left(&list) == 5 * count);
    for (size_t i = 0; i < count; i++) values[i] = float_at(list.next + 5 * i + 1);
}

void mr_wire_int64s(mr_wire list, size_t count, int64_t *values)
{
    if (count == 0) return;
    bool is_packed = *list.next == MR_TAG_BYTES(1);
    mr_wire varints = list;
    if (is_packed) {
        varints.next++;
        (void)mr_wire_bytes(&varints, &varints);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        if (!is_packed) varints.next++;
        if (varints.next < varints.end && *varints.next < 0x80)
            value = *varints.next++;
        else
            (void)mr_wire_varint(&varints, &value);
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
