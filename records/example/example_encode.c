/* The encoder of Examples, without protobuf objects. Each add serializes its Feature immediately into one buffer;
 * finish sorts the entries by name and writes the enclosing messages, so that equal Examples have equal bytes. */
#include "records/example/example_encode.h"

#include "base/arguments.h"
#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static size_t varint_size(uint64_t value)
{
    /* Seven bits for each byte; 0 takes one byte. */
    return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

static unsigned char *put_varint(unsigned char *next, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) *next++ = (unsigned char)(value | 0x80);
    *next++ = (unsigned char)value;
    return next;
}

unsigned char *mr_encoded_put_head(unsigned char *next, int field, size_t size)
{
    *next++ = MR_TAG_BYTES(field);
    return put_varint(next, size);
}

size_t mr_encoded_field_size(size_t size)
{
    return 1 + varint_size(size) + size;
}

unsigned char *mr_encoded_reserve(mr_encoded_bytes *target, size_t size)
{
    assert(target->size <= target->capacity);
    if (size > SIZE_MAX / 4 - target->size) return nullptr;
    if (target->size + size > target->capacity) {
        size_t grown = target->capacity * 2 > target->size + size ? target->capacity * 2 : target->size + size;
        if (grown < 1024) grown = 1024;
        unsigned char *data = realloc(target->data, grown);
        if (data == nullptr) return nullptr;
        target->data = data;
        target->capacity = grown;
    }
    return target->data + target->size;
}

/* The state of an encoder that could not allocate its own, until finish has reported it. Never written. */
static const struct mr_example_state no_memory = {
    .fault = {.status = MR_RESOURCE_EXHAUSTED, .message = "out of memory for the encoder"}};

struct mr_example_state *mr_encoded_state(struct mr_example_state **state)
{
    if (*state == nullptr) *state = calloc(1, sizeof(**state));
    if (*state == nullptr) *state = (struct mr_example_state *)&no_memory;
    return *state;
}

/* Adds an entry, stores its name and reserves feature_size bytes after it; null if this or an earlier add failed. */
static mr_encoded *add_entry(struct mr_example_state **holder, const char *name, size_t feature_size)
{
    struct mr_example_state *state = mr_encoded_state(holder);
    if (state->fault.status != MR_OK) return nullptr;
    if (state->count == state->capacity) {
        size_t grown = state->capacity ? state->capacity * 2 : 16;
        mr_encoded *entries = realloc(state->entries, grown * sizeof(mr_encoded));
        if (entries == nullptr) {
            (void)mr_fail_memory(&state->fault, grown * sizeof(mr_encoded));
            return nullptr;
        }
        state->entries = entries;
        state->capacity = grown;
    }
    size_t name_size = strlen(name);
    unsigned char *next = mr_encoded_reserve(&state->parts, name_size + feature_size);
    if (next == nullptr) {
        (void)mr_fail_memory(&state->fault, name_size + feature_size);
        return nullptr;
    }
    memcpy(next, name, name_size);
    assert(state->entries != nullptr && state->count < state->capacity);
    mr_encoded *created = &state->entries[state->count++];
    *created = (mr_encoded){.name_offset = state->parts.size,
                            .name_size = name_size,
                            .feature_offset = state->parts.size + name_size,
                            .feature_size = feature_size};
    state->parts.size += name_size + feature_size;
    return created;
}

/* Begins a feature whose list has list_size bytes: writes the name and the start of the Feature, and reserves the
 * list. */
static unsigned char *begin(struct mr_example_state **holder, const char *name, mr_feature_kind kind, size_t list_size)
{
    if (list_size > MR_EXAMPLE_SIZE_MAX) {
        struct mr_example_state *state = mr_encoded_state(holder);
        if (state->fault.status == MR_OK)
            (void)mr_fail(&state->fault, MR_INVALID_ARGUMENT,
                          "feature \"%s\" has %zu bytes, more than an Example may have", name, list_size);
        return nullptr;
    }
    const mr_encoded *entry = add_entry(holder, name, mr_encoded_field_size(list_size));
    return entry != nullptr ? mr_encoded_put_head((*holder)->parts.data + entry->feature_offset, (int)kind, list_size)
                            : nullptr;
}

void mr_encoded_add_name(struct mr_example_state **state, const char *name)
{
    mr_encoded *entry = add_entry(state, name, 0);
    if (entry != nullptr) entry->feature_size = MR_ENCODED_NO_STEP;
}

void mr_encoded_add_bytes(struct mr_example_state **state, const char *name, const mr_string *values, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count && size <= MR_EXAMPLE_SIZE_MAX; i++)
        size =
            values[i].size_bytes <= MR_EXAMPLE_SIZE_MAX ? size + mr_encoded_field_size(values[i].size_bytes) : SIZE_MAX;
    unsigned char *next = begin(state, name, MR_FEATURE_BYTES, size);
    for (size_t i = 0; next != nullptr && i < count; i++) {
        next = mr_encoded_put_head(next, 1, values[i].size_bytes);
        if (values[i].size_bytes > 0) memcpy(next, values[i].data, values[i].size_bytes);
        next += values[i].size_bytes;
    }
    assert(next == nullptr || next == (*state)->parts.data + (*state)->parts.size);
}

void mr_encoded_add_int64s(struct mr_example_state **state, const char *name, const int64_t *values, size_t count)
{
    size_t packed = 0;
    for (size_t i = 0; i < count; i++) packed += varint_size((uint64_t)values[i]);
    unsigned char *next = begin(state, name, MR_FEATURE_INT64, count ? mr_encoded_field_size(packed) : 0);
    if (next == nullptr || count == 0) return;
    next = mr_encoded_put_head(next, 1, packed);
    for (size_t i = 0; i < count; i++) next = put_varint(next, (uint64_t)values[i]);
    assert(next == (*state)->parts.data + (*state)->parts.size);
}

void mr_encoded_add_floats(struct mr_example_state **state, const char *name, const float *values, size_t count)
{
    size_t packed = count <= MR_EXAMPLE_SIZE_MAX / 4 ? 4 * count : MR_EXAMPLE_SIZE_MAX;
    unsigned char *next = begin(state, name, MR_FEATURE_FLOAT, count ? mr_encoded_field_size(packed) : 0);
    if (next == nullptr || count == 0) return;
    next = mr_encoded_put_head(next, 1, packed);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        for (int j = 0; j < 4; j++) *next++ = (unsigned char)(bits >> 8 * j);
    }
    assert(next == (*state)->parts.data + (*state)->parts.size);
}

/* ---- Assembly ---- */

static int compare(const void *a, const void *b, void *context)
{
    const mr_encoded *x = a, *y = b;
    int order = mr_encoded_compare_names(context, x, y);
    return order ? order : (x->name_offset > y->name_offset) - (x->name_offset < y->name_offset);
}

int mr_encoded_compare_names(const struct mr_example_state *state, const mr_encoded *a, const mr_encoded *b)
{
    size_t shorter = a->name_size < b->name_size ? a->name_size : b->name_size;
    int order = memcmp(state->parts.data + a->name_offset, state->parts.data + b->name_offset, shorter);
    return order ? order : (a->name_size > b->name_size) - (a->name_size < b->name_size);
}

void mr_encoded_sort(struct mr_example_state *state)
{
    if (state->count > 1) qsort_r(state->entries, state->count, sizeof(mr_encoded), compare, state);
}

static size_t entry_size(const mr_encoded *entry)
{
    return mr_encoded_field_size(entry->name_size) + mr_encoded_field_size(entry->feature_size);
}

mr_status mr_encoded_features_size(const struct mr_example_state *state, size_t *size_bytes, mr_error *error)
{
    if (state->fault.status != MR_OK) return mr_fail(error, state->fault.status, "%s", state->fault.message);
    *size_bytes = 0;
    for (size_t i = 0; i < state->count; i++) {
        const mr_encoded *at = &state->entries[i];
        if (i > 0 && mr_encoded_compare_names(state, at - 1, at) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%.*s\" was added twice",
                           (int)(at->name_size < 100 ? at->name_size : 100),
                           (const char *)state->parts.data + at->name_offset);
        *size_bytes += mr_encoded_field_size(entry_size(at));
    }
    return MR_OK;
}

unsigned char *mr_encoded_put_features(const struct mr_example_state *state, unsigned char *next)
{
    const unsigned char *parts = state->parts.data;
    for (size_t i = 0; i < state->count; i++) {
        const mr_encoded *at = &state->entries[i];
        assert(at->name_offset + at->name_size <= state->parts.size);
        next = mr_encoded_put_head(next, 1, entry_size(at));
        next = mr_encoded_put_head(next, 1, at->name_size);
        memcpy(next, parts + at->name_offset, at->name_size);
        next = mr_encoded_put_head(next + at->name_size, 2, at->feature_size);
        memcpy(next, parts + at->feature_offset, at->feature_size);
        next += at->feature_size;
    }
    return next;
}

static mr_status assemble(struct mr_example_state *state, mr_error *error)
{
    size_t features_size = 0;
    mr_encoded_sort(state);
    MR_TRY(mr_encoded_features_size(state, &features_size, error));
    size_t size = mr_encoded_field_size(features_size);
    if (size > MR_EXAMPLE_SIZE_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the Example has %zu bytes, more than the limit of %zu", size,
                       (size_t)MR_EXAMPLE_SIZE_MAX);
    state->record.size = 0;
    unsigned char *next = mr_encoded_reserve(&state->record, size);
    if (next == nullptr) return mr_fail_memory(error, size);
    next = mr_encoded_put_features(state, mr_encoded_put_head(next, 1, features_size));
    state->record.size = size;
    assert(next == state->record.data + size);
    return MR_OK;
}

void mr_encoded_clear(struct mr_example_state **holder)
{
    struct mr_example_state *state = *holder;
    if (state == &no_memory) {
        *holder = nullptr;
        return;
    }
    state->parts.size = 0;
    state->count = 0;
    state->fault = (mr_error){0};
}

void mr_encoded_free(struct mr_example_state *state)
{
    if (state == nullptr || state == &no_memory) return;
    free(state->parts.data);
    free(state->record.data);
    free(state->entries);
    free(state);
}

/* ---- Examples ---- */

mr_status mr_example_finish(mr_example_encoder *encoder, mr_string *record, mr_error *error)
{
    MR_REFUSE_NULL(encoder, error);
    MR_REFUSE_NULL(record, error);
    struct mr_example_state *state = mr_encoded_state(&encoder->state);
    mr_status status = assemble(state, error);
    if (status == MR_OK) *record = (mr_string){(const char *)state->record.data, state->record.size};
    mr_encoded_clear(&encoder->state);
    return status;
}

void mr_example_encoder_deinit(mr_example_encoder *encoder)
{
    if (encoder == nullptr) return;
    mr_encoded_free(encoder->state);
    *encoder = (mr_example_encoder){0};
}

void mr_example_add_bytes_list(mr_example_encoder *encoder, const char *name, const mr_string *values, size_t count)
{
    if (encoder == nullptr) return;
    mr_encoded_add_bytes(&encoder->state, name, values, count);
}

void mr_example_add_int64_list(mr_example_encoder *encoder, const char *name, const int64_t *values, size_t count)
{
    if (encoder == nullptr) return;
    mr_encoded_add_int64s(&encoder->state, name, values, count);
}

void mr_example_add_float_list(mr_example_encoder *encoder, const char *name, const float *values, size_t count)
{
    if (encoder == nullptr) return;
    mr_encoded_add_floats(&encoder->state, name, values, count);
}

void mr_example_add_bytes(mr_example_encoder *encoder, const char *name, mr_string value)
{
    if (encoder == nullptr) return;
    mr_encoded_add_bytes(&encoder->state, name, &value, 1);
}

void mr_example_add_int64(mr_example_encoder *encoder, const char *name, int64_t value)
{
    if (encoder == nullptr) return;
    mr_encoded_add_int64s(&encoder->state, name, &value, 1);
}

void mr_example_add_float(mr_example_encoder *encoder, const char *name, float value)
{
    if (encoder == nullptr) return;
    mr_encoded_add_floats(&encoder->state, name, &value, 1);
}
