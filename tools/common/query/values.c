/* Lists on the wire: values with tags, or packed numbers in the first chunk, as the first tag indicates. */
#include "common/query/values.h"

#include <string.h>

/* Reads at most ten bytes; false at the end of the bytes. */
static bool take_varint(values *values, uint64_t *number)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70 && values->next < values->end; shift += 7) {
        unsigned char byte = *values->next++;
        if (shift < 64) result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte >= 0x80) continue;
        *number = result;
        return true;
    }
    values->next = values->end;
    return false;
}

/* Reads a length and that many bytes. */
static bool take_bytes(values *values, mr_string *bytes)
{
    uint64_t length;
    if (!take_varint(values, &length)) return false;
    length &= UINT32_MAX;
    if (length > (size_t)(values->end - values->next)) {
        values->next = values->end;
        return false;
    }
    *bytes = (mr_string){(const char *)values->next, length};
    values->next += length;
    return true;
}

values values_of(const mr_feature_view *feature)
{
    const unsigned char *begin = (const unsigned char *)feature->list.data;
    values values = {begin, begin ? begin + feature->list.size_bytes : nullptr, feature->kind, false};
    bool is_number = feature->kind == MR_FEATURE_FLOAT || feature->kind == MR_FEATURE_INT64;
    if (!is_number || values.next == values.end || *values.next != 0x0a) return values;
    mr_string chunk;
    values.next++;
    if (!take_bytes(&values, &chunk)) return values;
    begin = (const unsigned char *)chunk.data;
    return (struct values){begin, begin + chunk.size_bytes, feature->kind, true};
}

/* Reads a float at the cursor. */
static bool take_float(values *values, float *number)
{
    if (values->end - values->next < 4) {
        values->next = values->end;
        return false;
    }
    const unsigned char *b = values->next;
    uint32_t bits = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    memcpy(number, &bits, 4);
    values->next += 4;
    return true;
}

bool values_next(values *values, value *value)
{
    static const unsigned char tags[] = {0, 0x0a, 0x0d, 0x08};
    if (values->kind == MR_FEATURE_NONE || values->next == values->end) return false;
    if (!values->is_packed && *values->next++ != tags[values->kind]) {
        values->next = values->end;
        return false;
    }
    value->kind = values->kind;
    if (values->kind == MR_FEATURE_BYTES) return take_bytes(values, &value->bytes);
    if (values->kind == MR_FEATURE_FLOAT) return take_float(values, &value->number);
    uint64_t number;
    if (!take_varint(values, &number)) return false;
    value->integer = (int64_t)number;
    return true;
}
