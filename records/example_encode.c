/* Examples written without protobuf objects. Each add serialises its Feature at once into one buffer; finish sorts the
 * entries by name and puts the messages around them, so that equal Examples have equal bytes. */
#include "base/arena.h"
#include "records/example_wire.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

typedef struct entry {
    size_t name_offset, name_size;
    size_t feature_offset, feature_size;
} entry;

/* Bytes that grow. */
typedef struct bytes {
    unsigned char *data;
    size_t size, capacity;
} bytes;

struct mr_example_state {
    bytes parts; /* names and serialised Features, as they were added */
    bytes record;
    entry *entries;
    size_t count, capacity;
    mr_error fault;
};

static size_t varint_size(uint64_t value)
{
    /* Seven bits a byte; 0 has one. */
    return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

static unsigned char *put_varint(unsigned char *next, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) *next++ = (unsigned char)(value | 0x80);
    *next++ = (unsigned char)value;
    return next;
}

/* Tag and length of a field of size bytes. */
static unsigned char *put_head(unsigned char *next, int field, size_t size)
{
    *next++ = MR_TAG_BYTES(field);
    return put_varint(next, size);
}

static size_t field_size(size_t size)
{
    return 1 + varint_size(size) + size;
}

/* Room for size more bytes, or null. */
static unsigned char *reserve(bytes *target, size_t size)
{
    if (size > SIZE_MAX / 4 - target->size) return nullptr;
    if (target->size + size > target->capacity) {
        size_t grown = target->capacity * 2 > target->size + size ? target->capacity * 2 : target->size + size;
        if (grown < 1024) grown = 1024;
        unsigned char *data = realloc(target->data, grown);
        if (!data) return nullptr;
        target->data = data;
        target->capacity = grown;
    }
    return target->data + target->size;
}

static struct mr_example_state *state_of(mr_example_encoder *encoder)
{
    if (!encoder->state) encoder->state = calloc(1, sizeof(*encoder->state));
    return encoder->state;
}

/* Begins a feature whose list has list_size bytes: writes the name and the Feature's head, and gives room for the list.
 * Null when the encoder has failed before or fails now. */
static unsigned char *begin(mr_example_encoder *encoder, const char *name, mr_feature_kind kind, size_t list_size)
{
    struct mr_example_state *state = state_of(encoder);
    /* Without a state finish reports that there is no memory. */
    if (!state || state->fault.status != MR_OK) return nullptr;
    if (list_size > MR_EXAMPLE_SIZE_MAX) {
        (void)mr_fail(&state->fault, MR_INVALID_ARGUMENT, "feature \"%s\" has %zu bytes, and no Example is that long",
                      name, list_size);
        return nullptr;
    }
    if (state->count == state->capacity) {
        size_t grown = state->capacity ? state->capacity * 2 : 16;
        entry *entries = realloc(state->entries, grown * sizeof(entry));
        if (!entries) {
            (void)mr_fail_memory(&state->fault, grown * sizeof(entry));
            return nullptr;
        }
        state->entries = entries;
        state->capacity = grown;
    }
    size_t name_size = strlen(name), feature_size = field_size(list_size);
    unsigned char *next = reserve(&state->parts, name_size + feature_size);
    if (!next) {
        (void)mr_fail_memory(&state->fault, name_size + feature_size);
        return nullptr;
    }
    memcpy(next, name, name_size);
    state->entries[state->count++] = (entry){.name_offset = state->parts.size,
                                             .name_size = name_size,
                                             .feature_offset = state->parts.size + name_size,
                                             .feature_size = feature_size};
    state->parts.size += name_size + feature_size;
    return put_head(next + name_size, (int)kind, list_size);
}

void mr_example_add_bytes_list(mr_example_encoder *encoder, const char *name, const mr_string *values, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count && size <= MR_EXAMPLE_SIZE_MAX; i++)
        size = values[i].size_bytes <= MR_EXAMPLE_SIZE_MAX ? size + field_size(values[i].size_bytes) : SIZE_MAX;
    unsigned char *next = begin(encoder, name, MR_FEATURE_BYTES, size);
    for (size_t i = 0; next && i < count; i++) {
        next = put_head(next, 1, values[i].size_bytes);
        if (values[i].size_bytes > 0) memcpy(next, values[i].data, values[i].size_bytes);
        next += values[i].size_bytes;
    }
}

void mr_example_add_int64_list(mr_example_encoder *encoder, const char *name, const int64_t *values, size_t count)
{
    size_t packed = 0;
    for (size_t i = 0; i < count; i++) packed += varint_size((uint64_t)values[i]);
    unsigned char *next = begin(encoder, name, MR_FEATURE_INT64, count ? field_size(packed) : 0);
    if (!next || count == 0) return;
    next = put_head(next, 1, packed);
    for (size_t i = 0; i < count; i++) next = put_varint(next, (uint64_t)values[i]);
}

void mr_example_add_float_list(mr_example_encoder *encoder, const char *name, const float *values, size_t count)
{
    size_t packed = count <= MR_EXAMPLE_SIZE_MAX / 4 ? 4 * count : MR_EXAMPLE_SIZE_MAX;
    unsigned char *next = begin(encoder, name, MR_FEATURE_FLOAT, count ? field_size(packed) : 0);
    if (!next || count == 0) return;
    next = put_head(next, 1, packed);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        for (int j = 0; j < 4; j++) *next++ = (unsigned char)(bits >> 8 * j);
    }
}

void mr_example_add_bytes(mr_example_encoder *encoder, const char *name, mr_string value)
{
    mr_example_add_bytes_list(encoder, name, &value, 1);
}

void mr_example_add_int64(mr_example_encoder *encoder, const char *name, int64_t value)
{
    mr_example_add_int64_list(encoder, name, &value, 1);
}

void mr_example_add_float(mr_example_encoder *encoder, const char *name, float value)
{
    mr_example_add_float_list(encoder, name, &value, 1);
}

static int compare(const void *a, const void *b, void *context)
{
    const entry *x = a, *y = b;
    const unsigned char *parts = context;
    size_t shorter = x->name_size < y->name_size ? x->name_size : y->name_size;
    int order = memcmp(parts + x->name_offset, parts + y->name_offset, shorter);
    return order ? order : (x->name_size > y->name_size) - (x->name_size < y->name_size);
}

static size_t entry_size(const entry *entry)
{
    return field_size(entry->name_size) + field_size(entry->feature_size);
}

static mr_status assemble(struct mr_example_state *state, mr_error *error)
{
    if (state->fault.status != MR_OK) return mr_fail(error, state->fault.status, "%s", state->fault.message);
    const unsigned char *parts = state->parts.data;
    if (state->count > 1) qsort_r(state->entries, state->count, sizeof(entry), compare, state->parts.data);
    size_t features_size = 0;
    for (size_t i = 0; i < state->count; i++) {
        const entry *at = &state->entries[i];
        if (i > 0 && compare(at - 1, at, state->parts.data) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%.*s\" was added twice",
                           (int)(at->name_size < 100 ? at->name_size : 100), (const char *)parts + at->name_offset);
        features_size += field_size(entry_size(at));
    }
    size_t size = field_size(features_size);
    if (size > MR_EXAMPLE_SIZE_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the Example has %zu bytes, and %zu is the most", size,
                       (size_t)MR_EXAMPLE_SIZE_MAX);
    state->record.size = 0;
    unsigned char *next = reserve(&state->record, size);
    if (!next) return mr_fail_memory(error, size);
    next = put_head(next, 1, features_size);
    for (size_t i = 0; i < state->count; i++) {
        const entry *at = &state->entries[i];
        next = put_head(next, 1, entry_size(at));
        next = put_head(next, 1, at->name_size);
        memcpy(next, parts + at->name_offset, at->name_size);
        next = put_head(next + at->name_size, 2, at->feature_size);
        memcpy(next, parts + at->feature_offset, at->feature_size);
        next += at->feature_size;
    }
    state->record.size = size;
    assert(next == state->record.data + size);
    return MR_OK;
}

mr_status mr_example_finish(mr_example_encoder *encoder, mr_string *record, mr_error *error)
{
    struct mr_example_state *state = state_of(encoder);
    if (!state) return mr_fail_memory(error, sizeof(*state));
    mr_status status = assemble(state, error);
    state->parts.size = 0;
    state->count = 0;
    state->fault = (mr_error){0};
    if (status == MR_OK) *record = (mr_string){(const char *)state->record.data, state->record.size};
    return status;
}

void mr_example_encoder_deinit(mr_example_encoder *encoder)
{
    if (encoder->state) {
        free(encoder->state->parts.data);
        free(encoder->state->record.data);
        free(encoder->state->entries);
        free(encoder->state);
    }
    *encoder = (mr_example_encoder){0};
}
