/* Slices of partitioned variables: their text form, their key, and their position in the complete tensor.
 *
 * The key is TensorFlow's ordered code, whose byte order is the order of the numbers and names it encodes. An unsigned
 * number is its length followed by its big-endian bytes. A name is escaped and terminated by 00 01. A signed number
 * encodes its length in unary in its leading bits. */
#include "records/checkpoint/checkpoint_part.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *mr_checkpoint_data_path(const char *prefix, int32_t shard, int32_t shard_count)
{
    char *path = nullptr;
    return asprintf(&path, "%s.data-%05d-of-%05d", prefix, shard, shard_count) < 0 ? nullptr : path;
}

char *mr_checkpoint_index_path(const char *prefix)
{
    char *path = nullptr;
    return asprintf(&path, "%s.index", prefix) < 0 ? nullptr : path;
}

/* ---- Text: "10 4 0,5:-" ---- */

static bool take_number(const char **at, const char *end, int64_t *number)
{
    int64_t value = 0;
    const char *begin = *at;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, **at - '0', &value))
            return false;
    *number = value;
    return *at > begin;
}

static bool take_extent(const char **at, const char *end, int64_t *start, int64_t *length)
{
    if (*at < end && **at == '-') {
        (*at)++;
        *start = 0;
        *length = -1;
        return true;
    }
    if (!take_number(at, end, start) || *at == end || **at != ',') return false;
    (*at)++;
    return take_number(at, end, length) && *length > 0;
}

mr_status mr_checkpoint_slice_parse(mr_string text, bool *is_slice, mr_shape *full, mr_checkpoint_slice *slice,
                                    mr_error *error)
{
    *is_slice = text.size_bytes > 0;
    *full = MR_SCALAR;
    *slice = (mr_checkpoint_slice){0};
    if (!*is_slice) return MR_OK;
    const char *at = text.data, *end = text.data + text.size_bytes;
    bool good = true;
    int32_t rank = 0;
    const char *last_space = memrchr(text.data, ' ', text.size_bytes);
    if (last_space == nullptr) last_space = at;
    for (; good && at < last_space; at++, rank++)
        good = rank < MR_RANK_MAX && take_number(&at, last_space, &full->dims[rank]) && *at == ' ';
    assert(!good || rank <= MR_RANK_MAX);
    full->rank = slice->rank = good ? rank : 0;
    for (int32_t i = 0; good && i < rank; i++) {
        good = (i == 0 || (at < end && *at++ == ':')) && take_extent(&at, end, &slice->starts[i], &slice->lengths[i]);
    }
    mr_shape ignored;
    if (good && rank > 0 && at == end && mr_checkpoint_slice_shape(slice, *full, &ignored, nullptr) == MR_OK)
        return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "invalid shape and slice \"%.*s\" (expected, for example, \"10 4 0,5:-\")",
                   (int)(text.size_bytes < 200 ? text.size_bytes : 200), text.data);
}

/* ---- Position ---- */

mr_status mr_checkpoint_slice_shape(const mr_checkpoint_slice *slice, mr_shape full, mr_shape *shape, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (slice->rank != full.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a slice of rank %d does not match the shape %s", slice->rank,
                       mr_shape_text(full, text, sizeof text));
    *shape = full;
    for (int32_t i = 0; i < full.rank; i++) {
        int64_t start = slice->starts[i], length = slice->lengths[i];
        if (length == -1 && start == 0) continue;
        if (start < 0 || length < 0 || start > full.dims[i] || length > full.dims[i] - start)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "a slice of %" PRId64 " elements from %" PRId64
                           " in dimension %d is not inside the shape %s",
                           length, start, i, mr_shape_text(full, text, sizeof text));
        shape->dims[i] = length;
    }
    return MR_OK;
}

void mr_checkpoint_slice_copy(const mr_checkpoint_slice *slice, mr_shape full, size_t element_bytes, char *tensor,
                              char *part, bool into_tensor)
{
    mr_shape shape;
    if (mr_checkpoint_slice_shape(slice, full, &shape, nullptr) != MR_OK || mr_shape_count(shape) <= 0) return;
    int32_t last = full.rank - 1;
    size_t row_bytes = (size_t)(last < 0 ? 1 : shape.dims[last]) * element_bytes;
    int64_t index[MR_RANK_MAX] = {0};
    for (;;) {
        int64_t offset = 0;
        for (int32_t i = 0; i <= last; i++) offset = offset * full.dims[i] + slice->starts[i] + index[i];
        assert(offset >= 0);
        char *row = tensor + (size_t)offset * element_bytes;
        memcpy(into_tensor ? row : part, into_tensor ? part : row, row_bytes);
        part += row_bytes;
        int32_t i = last - 1;
        while (i >= 0 && ++index[i] == shape.dims[i]) index[i--] = 0;
        if (i < 0) return;
    }
}

/* ---- Key ---- */

static size_t put_number(uint8_t *target, uint64_t number)
{
    uint8_t count = 0;
    for (uint64_t rest = number; rest > 0; rest >>= 8) count++;
    assert(count <= sizeof number);
    target[0] = count;
    for (uint8_t i = 0; i < count; i++) target[1 + i] = (uint8_t)(number >> (8 * (count - 1 - i)));
    return 1 + (size_t)count;
}

static size_t put_signed(uint8_t *target, int64_t number)
{
    uint64_t magnitude = number < 0 ? ~(uint64_t)number : (uint64_t)number;
    int bits = magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude);
    size_t count = (size_t)bits / 7 + 1;
    uint8_t sign = number < 0 ? 0xff : 0, digits[10] = {sign, sign};
    for (int i = 0; i < 8; i++) digits[2 + i] = (uint8_t)((uint64_t)number >> (8 * (7 - i)));
    assert(count >= 1 && count <= sizeof digits);
    memcpy(target, digits + 10 - count, count);
    /* `count` ones, then a zero, in the leading bits; inverted if the number is negative. */
    uint32_t header = 0xffffu << (16 - count) & 0xffff;
    target[0] ^= (uint8_t)(header >> 8);
    if (count > 1) target[1] ^= (uint8_t)header;
    return count;
}

mr_status mr_checkpoint_slice_key(const char *name, const mr_checkpoint_slice *slice, mr_arena *arena, mr_string *key,
                                  mr_error *error)
{
    size_t length = strlen(name), capacity = 2 * length + 16 + 20 * (size_t)slice->rank;
    uint8_t *bytes = mr_arena_alloc(arena, capacity);
    if (bytes == nullptr) return mr_fail_memory(error, capacity);
    size_t size_bytes = put_number(bytes, 0);
    for (size_t i = 0; i < length; i++) {
        bytes[size_bytes++] = (uint8_t)name[i];
        if ((uint8_t)name[i] == 0xff) bytes[size_bytes++] = 0;
    }
    bytes[size_bytes++] = 0;
    bytes[size_bytes++] = 1;
    size_bytes += put_number(bytes + size_bytes, (uint64_t)slice->rank);
    for (int32_t i = 0; i < slice->rank; i++) {
        size_bytes += put_signed(bytes + size_bytes, slice->starts[i]);
        size_bytes += put_signed(bytes + size_bytes, slice->lengths[i]);
    }
    assert(size_bytes <= capacity);
    *key = (mr_string){(const char *)bytes, size_bytes};
    return MR_OK;
}
