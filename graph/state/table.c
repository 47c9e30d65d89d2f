/* Lookup tables: maps from keys to values, of the dtypes that TensorFlow registers.
 *
 * A table has one list of entries, in the order of insertion, and an index of hashes with linear probing. Removed
 * entries stay in the list, marked, until the index is rebuilt. Strings of keys and values are copied to the heap.
 * Every operation holds the table's mutex until it ends; it takes no other lock.
 *
 * Kinds differ in what may be inserted: a HashTable only when it is initialized, once; a dense table has keys of any
 * size, two of which (empty and deleted) are not keys. */
#include "graph/state/table.h"

#include "base/mutex.h"
#include "kernels/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Elements ---- */

static size_t key_bytes(const mr_table_state *table)
{
    return mr_dtype_size(table->key_dtype) * (size_t)table->key_size;
}

static size_t value_bytes(const mr_table_state *table)
{
    return mr_dtype_size(table->value_dtype) * (size_t)table->value_size;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size_bytes)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size_bytes; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* Keys are integers or strings. */
static uint64_t hash_key(const mr_table_state *table, const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    if (table->key_dtype != MR_STRING) return hash_bytes(hash, key, key_bytes(table));
    for (int64_t i = 0; i < table->key_size; i++) {
        mr_string text = ((const mr_string *)key)[i];
        hash = hash_bytes(hash ^ text.size_bytes, text.data, text.size_bytes);
    }
    return hash;
}

/* Numbers as C compares them: a NaN equals nothing. */
static bool equal_elements(mr_dtype dtype, int64_t count, const char *a, const char *b)
{
    if (dtype == MR_STRING) {
        for (int64_t i = 0; i < count; i++)
            if (!mr_string_equal(((const mr_string *)a)[i], ((const mr_string *)b)[i])) return false;
        return true;
    }
    if (dtype == MR_FLOAT) {
        for (int64_t i = 0; i < count; i++)
            if (!(((const float *)a)[i] == ((const float *)b)[i])) return false;
        return true;
    }
    if (dtype == MR_DOUBLE) {
        for (int64_t i = 0; i < count; i++)
            if (!(((const double *)a)[i] == ((const double *)b)[i])) return false;
        return true;
    }
    return memcmp(a, b, mr_dtype_size(dtype) * (size_t)count) == 0;
}

static void free_elements(mr_dtype dtype, int64_t count, char *elements)
{
    for (int64_t i = 0; dtype == MR_STRING && i < count; i++) free((char *)((mr_string *)elements)[i].data);
}

/* Copies elements; strings to memory of their own. The target's elements are not released. */
static mr_status copy_elements(mr_dtype dtype, int64_t count, char *target, const char *source, mr_error *error)
{
    if (dtype != MR_STRING) {
        if (count > 0) memcpy(target, source, mr_dtype_size(dtype) * (size_t)count);
        return MR_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        mr_string from = ((const mr_string *)source)[i];
        char *bytes = malloc(from.size_bytes + 1);
        if (bytes == nullptr) {
            free_elements(dtype, i, target);
            return mr_fail_memory(error, from.size_bytes);
        }
        if (from.size_bytes > 0) memcpy(bytes, from.data, from.size_bytes);
        bytes[from.size_bytes] = '\0';
        ((mr_string *)target)[i] = (mr_string){bytes, from.size_bytes};
    }
    return MR_OK;
}

/* ---- The index ---- */

static char *key_at(const mr_table_state *table, int64_t entry)
{
    return table->keys + (size_t)entry * key_bytes(table);
}

static char *value_at(const mr_table_state *table, int64_t entry)
{
    return table->values + (size_t)entry * value_bytes(table);
}

/* The entry of a key, or -1. *slot is then where the index would refer to it. */
static int64_t find_entry(const mr_table_state *table, const char *key, uint64_t hash, size_t *slot)
{
    *slot = 0;
    if (table->slot_count == 0) return -1;
    assert((table->slot_count & (table->slot_count - 1)) == 0);
    assert((size_t)table->entry_count < table->slot_count); /* so that the search ends */
    for (size_t at = hash & (table->slot_count - 1);; at = (at + 1) & (table->slot_count - 1)) {
        int64_t entry = table->slots[at] - 1;
        *slot = at;
        if (entry < 0) return -1;
        if (!table->removed[entry] && table->hashes[entry] == hash &&
            equal_elements(table->key_dtype, table->key_size, key_at(table, entry), key))
            return entry;
    }
}

static void clear(mr_table_state *table)
{
    for (int64_t i = 0; i < table->entry_count; i++) {
        if (table->removed[i]) continue;
        free_elements(table->key_dtype, table->key_size, key_at(table, i));
        free_elements(table->value_dtype, table->value_size, value_at(table, i));
    }
    if (table->slots) memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    table->entry_count = table->live_count = 0;
}

static void compact(mr_table_state *table)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < table->entry_count; i++) {
        if (table->removed[i]) continue;
        if (kept != i) {
            memcpy(key_at(table, kept), key_at(table, i), key_bytes(table));
            memcpy(value_at(table, kept), value_at(table, i), value_bytes(table));
            table->hashes[kept] = table->hashes[i];
            table->removed[kept] = false;
        }
        kept++;
    }
    assert(kept == table->live_count);
    table->entry_count = kept;
}

static bool grow_array(void *array, int64_t count, size_t size_bytes)
{
    void **items = array, *larger = reallocarray(*items, (size_t)count, size_bytes ? size_bytes : 1);
    if (larger) *items = larger;
    return larger != nullptr;
}

/* Makes room for one more entry. */
static mr_status make_room(mr_table_state *table, mr_error *error)
{
    assert(table->live_count <= table->entry_count && table->entry_count <= table->capacity);
    if (table->entry_count < table->capacity) return MR_OK;
    compact(table);
    int64_t wanted =
        table->entry_count < table->capacity / 2 ? table->capacity : MR_MAX((int64_t)16, 2 * table->capacity);
    size_t slots = 2 * (size_t)wanted;
    int64_t *index = calloc(slots, sizeof *index);
    if (!index || !grow_array(&table->keys, wanted, key_bytes(table)) ||
        !grow_array(&table->values, wanted, value_bytes(table)) ||
        !grow_array(&table->hashes, wanted, sizeof *table->hashes) ||
        !grow_array(&table->removed, wanted, sizeof *table->removed)) {
        /* Entries have moved, so the old index is refilled. */
        free(index);
        index = table->slots;
        slots = table->slot_count;
        if (index) memset(index, 0, slots * sizeof *index);
        wanted = -1;
    } else {
        free(table->slots);
        table->capacity = wanted;
    }
    table->slots = index;
    table->slot_count = slots;
    assert(index != nullptr || table->entry_count == 0);
    for (int64_t i = 0; i < table->entry_count; i++) {
        size_t at = table->hashes[i] & (slots - 1);
        while (index[at]) at = (at + 1) & (slots - 1);
        index[at] = i + 1;
    }
    return wanted < 0 && table->entry_count >= table->capacity ? mr_fail_memory(error, key_bytes(table)) : MR_OK;
}

/* ---- Operations on one key; the caller holds the mutex ---- */

/* An element for an error. */
static const char *show(mr_dtype dtype, const char *element, char text[96])
{
    char number[MR_NUMBER_TEXT_SIZE] = "?";
    mr_string shown = {number, 1};
    if (dtype == MR_STRING)
        shown = *(const mr_string *)element;
    else if (dtype == MR_INT64)
        shown.size_bytes = (size_t)snprintf(number, sizeof number, "%" PRId64, *(const int64_t *)element);
    else if (dtype == MR_INT32)
        shown.size_bytes = (size_t)snprintf(number, sizeof number, "%" PRId32, *(const int32_t *)element);
    else if (dtype == MR_FLOAT)
        shown.size_bytes = (size_t)mr_text_from_float(*(const float *)element, number);
    else if (dtype == MR_DOUBLE)
        shown.size_bytes = (size_t)mr_text_from_double(*(const double *)element, number);
    else if (dtype == MR_BOOL)
        number[0] = *(const bool *)element ? '1' : '0';
    snprintf(text, 96, "%.*s", (int)MR_MIN(shown.size_bytes, (size_t)90), shown.data ? shown.data : "");
    return text;
}

static mr_status fail_different(const mr_table_state *table, const char *key, const char *before, const char *value,
                                mr_error *error)
{
    char texts[3][96];
    return mr_fail(error, MR_FAILED_PRECONDITION,
                   "HashTable has different value for same key. Key %s has %s and trying to add value %s",
                   show(table->key_dtype, key, texts[0]), show(table->value_dtype, before, texts[1]),
                   show(table->value_dtype, value, texts[2]));
}

static mr_status insert(mr_table_state *table, const char *key, const char *value, bool keeps_first, mr_error *error)
{
    assert(mr_mutex_is_held(&table->mutex));
    uint64_t hash = hash_key(table, key);
    size_t slot;
    int64_t entry = find_entry(table, key, hash, &slot);
    if (entry >= 0 && keeps_first) {
        if (equal_elements(table->value_dtype, table->value_size, value_at(table, entry), value)) return MR_OK;
        return fail_different(table, key, value_at(table, entry), value, error);
    }
    if (entry >= 0) {
        char *before = value_at(table, entry);
        char *copy = malloc(value_bytes(table) + 1);
        if (!copy) return mr_fail_memory(error, value_bytes(table));
        mr_status status = copy_elements(table->value_dtype, table->value_size, copy, value, error);
        if (status == MR_OK) {
            free_elements(table->value_dtype, table->value_size, before);
            memcpy(before, copy, value_bytes(table));
        }
        free(copy);
        return status;
    }
    MR_TRY(make_room(table, error));
    (void)find_entry(table, key, hash, &slot);
    assert(table->slots[slot] == 0 && table->entry_count < table->capacity);
    entry = table->entry_count;
    MR_TRY(copy_elements(table->key_dtype, table->key_size, key_at(table, entry), key, error));
    mr_status status = copy_elements(table->value_dtype, table->value_size, value_at(table, entry), value, error);
    if (status != MR_OK) {
        free_elements(table->key_dtype, table->key_size, key_at(table, entry));
        return status;
    }
    table->hashes[entry] = hash;
    table->removed[entry] = false;
    table->slots[slot] = entry + 1;
    table->entry_count++;
    table->live_count++;
    return MR_OK;
}

static void remove_key(mr_table_state *table, const char *key)
{
    size_t slot;
    int64_t entry = find_entry(table, key, hash_key(table, key), &slot);
    if (entry < 0) return;
    free_elements(table->key_dtype, table->key_size, key_at(table, entry));
    free_elements(table->value_dtype, table->value_size, value_at(table, entry));
    assert(table->live_count > 0);
    table->removed[entry] = true;
    table->live_count--;
}

/* ---- Operations on tensors ---- */

static mr_status check_key(const mr_table_state *table, const char *key, mr_error *error)
{
    if (table->empty_key.data && equal_elements(table->key_dtype, table->key_size, key, table->empty_key.data))
        return mr_fail(error, MR_INVALID_ARGUMENT, "Using the empty_key as a table key is not allowed");
    if (table->deleted_key.data && equal_elements(table->key_dtype, table->key_size, key, table->deleted_key.data))
        return mr_fail(error, MR_INVALID_ARGUMENT, "Using the deleted_key as a table key is not allowed");
    return MR_OK;
}

static mr_status insert_all(mr_table_state *table, const mr_tensor *keys, const mr_tensor *values, bool clears,
                            mr_error *error)
{
    int64_t count = table->key_size > 0 ? mr_tensor_count(keys) / table->key_size : 0;
    mr_status status = MR_OK;
    if (clears) clear(table);
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        const char *key = (const char *)keys->data + (size_t)i * key_bytes(table);
        const char *value = (const char *)values->data + (size_t)i * value_bytes(table);
        /* An exported dense table has its empty buckets among its keys. */
        if (clears && check_key(table, key, nullptr) != MR_OK) continue;
        status = check_key(table, key, error);
        if (status == MR_OK) status = insert(table, key, value, table->kind == MR_TABLE_HASH, error);
    }
    return status;
}

mr_status mr_table_insert(mr_table_state *table, const mr_tensor *keys, const mr_tensor *values, bool clears,
                          mr_error *error)
{
    pthread_mutex_lock(&table->mutex);
    mr_status status = insert_all(table, keys, values, clears, error);
    pthread_mutex_unlock(&table->mutex);
    return status;
}

mr_status mr_table_initialize(mr_table_state *table, const mr_tensor *keys, const mr_tensor *values, mr_error *error)
{
    mr_status status = MR_OK;
    pthread_mutex_lock(&table->mutex);
    if (!table->is_initialized)
        status = insert_all(table, keys, values, false, error);
    else if (mr_tensor_count(keys) != table->live_count)
        status = mr_fail(error, MR_FAILED_PRECONDITION, "Table was already initialized with different data.");
    table->is_initialized |= status == MR_OK;
    pthread_mutex_unlock(&table->mutex);
    return status;
}

bool mr_table_is_ready(mr_table_state *table)
{
    pthread_mutex_lock(&table->mutex);
    bool is_ready = table->kind != MR_TABLE_HASH || table->is_initialized;
    pthread_mutex_unlock(&table->mutex);
    return is_ready;
}

mr_status mr_table_remove(mr_table_state *table, const mr_tensor *keys, mr_error *error)
{
    int64_t count = table->key_size > 0 ? mr_tensor_count(keys) / table->key_size : 0;
    mr_status status = MR_OK;
    pthread_mutex_lock(&table->mutex);
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        const char *key = (const char *)keys->data + (size_t)i * key_bytes(table);
        status = check_key(table, key, error);
        if (status == MR_OK) remove_key(table, key);
    }
    pthread_mutex_unlock(&table->mutex);
    return status;
}

mr_status mr_table_find_values(mr_table_state *table, const mr_tensor *keys, const mr_tensor *defaults,
                               bool has_default_for_each, char *target, mr_arena *arena, mr_error *error)
{
    int64_t count = table->key_size > 0 ? mr_tensor_count(keys) / table->key_size : 0;
    size_t size = value_bytes(table);
    mr_status status = MR_OK;
    pthread_mutex_lock(&table->mutex);
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        const char *key = (const char *)keys->data + (size_t)i * key_bytes(table);
        size_t slot;
        status = check_key(table, key, error);
        if (status != MR_OK) break;
        int64_t entry = find_entry(table, key, hash_key(table, key), &slot);
        const char *value = entry >= 0 ? value_at(table, entry)
                                       : (const char *)defaults->data + (has_default_for_each ? (size_t)i * size : 0);
        if (size > 0) memcpy(target + (size_t)i * size, value, size);
        /* Another thread may replace the entry's strings as soon as the mutex is released. */
        for (int64_t j = 0; table->value_dtype == MR_STRING && j < table->value_size && status == MR_OK; j++) {
            mr_string *text = (mr_string *)(target + (size_t)i * size) + j;
            text->data = mr_arena_copy(arena, text->data ? text->data : "", text->size_bytes);
            if (!text->data) status = mr_fail_memory(error, text->size_bytes);
        }
    }
    pthread_mutex_unlock(&table->mutex);
    return status;
}

/* Copies one list of entries, in the order of insertion, to an output. */
static mr_status put_list(const mr_table_state *table, mr_kernel_call *call, int index, mr_shape shape, bool are_keys,
                          mr_error *error)
{
    mr_sink sink;
    size_t size = are_keys ? key_bytes(table) : value_bytes(table), at = 0;
    MR_TRY(mr_sink_init(call, index, shape, &sink, error));
    for (int64_t i = 0; i < table->entry_count; i++) {
        if (table->removed[i]) continue;
        if (size > 0) memcpy((char *)sink.data + at, are_keys ? key_at(table, i) : value_at(table, i), size);
        at += size;
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

mr_status mr_table_export(mr_table_state *table, mr_kernel_call *call, mr_shape key_shape, mr_shape value_shape,
                          mr_error *error)
{
    pthread_mutex_lock(&table->mutex);
    key_shape.dims[0] = value_shape.dims[0] = table->live_count;
    mr_status status = put_list(table, call, 0, key_shape, true, error);
    if (status == MR_OK) status = put_list(table, call, 1, value_shape, false, error);
    pthread_mutex_unlock(&table->mutex);
    return status;
}

int64_t mr_table_count(mr_table_state *table)
{
    pthread_mutex_lock(&table->mutex);
    int64_t count = table->kind == MR_TABLE_HASH && !table->is_initialized ? 0 : table->live_count;
    pthread_mutex_unlock(&table->mutex);
    return count;
}

static void table_deinit(mr_resource *resource)
{
    mr_table_state *table = (mr_table_state *)resource;
    clear(table);
    free(table->slots);
    free(table->keys);
    free(table->values);
    free(table->hashes);
    free(table->removed);
    mr_tensor_deinit(&table->empty_key);
    mr_tensor_deinit(&table->deleted_key);
    pthread_mutex_destroy(&table->mutex);
}

static void table_reset(mr_resource *resource)
{
    mr_table_state *table = (mr_table_state *)resource;
    pthread_mutex_lock(&table->mutex);
    clear(table);
    table->is_initialized = false;
    pthread_mutex_unlock(&table->mutex);
}

const mr_resource_class mr_table_class = {
    .name = "table", .size_bytes = sizeof(mr_table_state), .deinit = table_deinit, .reset = table_reset};
