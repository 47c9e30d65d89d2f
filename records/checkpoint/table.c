/* The table reader. The complete file is in memory, so values are views; only keys are assembled. Compressed blocks,
 * which V1 checkpoints have, are decompressed into the arena.
 *
 * Every number in the file is untrusted. Three bytes can define a key with a long shared prefix, so the total size of
 * the keys is limited to a multiple of the file's size. */
#include "records/checkpoint/table.h"

#include "base/bytes.h"
#include "records/checkpoint/snappy.h"
#include "records/io/file.h"
#include <millrace/record.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t FOOTER_BYTES = 48, TRAILER_BYTES = 5, HANDLES_BYTES = 40;
constexpr uint64_t MAGIC = 0xdb4775248b80fb57;
constexpr size_t KEYS_FACTOR = 64, KEYS_SLACK = 1 << 20;

/* A range of the file; `begin` is its offset, which errors report. */
typedef struct cursor {
    const char *name;
    const uint8_t *bytes;
    size_t begin, end;
} cursor;

static mr_status damaged(const cursor *at, const char *reason, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "%s: damaged table at byte %zu: %s", at->name, at->begin, reason);
}

static bool take_varint(cursor *at, uint64_t *value)
{
    assert(at->begin <= at->end);
    *value = 0;
    for (unsigned shift = 0; shift < 64 && at->begin < at->end; shift += 7) {
        uint8_t byte = at->bytes[at->begin++];
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* Replaces a block by its decompressed bytes, in the arena. */
static mr_status decompress(cursor *block, mr_arena *arena, mr_error *error)
{
    size_t size_bytes = 0;
    mr_string compressed = {(const char *)block->bytes + block->begin, block->end - block->begin};
    if (!mr_snappy_size(compressed, &size_bytes) || size_bytes < 4)
        return damaged(block, "a compressed block has a bad size", error);
    uint8_t *bytes = mr_arena_alloc(arena, size_bytes);
    if (bytes == nullptr) return mr_fail_memory(error, size_bytes);
    if (!mr_snappy_decompress(compressed, bytes, size_bytes))
        return damaged(block, "a compressed block cannot be decompressed", error);
    *block = (cursor){block->name, bytes, 0, size_bytes};
    return MR_OK;
}

/* Reads a handle (offset, size) of a block in the file and returns the block without the restarts, after checking the
 * checksum.
 * offset, end  of the block in the file */
static mr_status take_block(const cursor *file, cursor *handle, mr_arena *arena, cursor *block, size_t *block_offset,
                            size_t *block_end, mr_error *error)
{
    uint64_t offset = 0, size_bytes = 0;
    cursor at = *handle;
    if (!take_varint(handle, &offset) || !take_varint(handle, &size_bytes))
        return damaged(&at, "a block handle is truncated", error);
    size_t end = file->end;
    if (offset > end || size_bytes > end - offset || end - offset - size_bytes < TRAILER_BYTES || size_bytes < 4)
        return damaged(&at, "a block is outside the file", error);
    *block_offset = (size_t)offset;
    *block_end = (size_t)(offset + size_bytes);
    *block = (cursor){file->name, file->bytes, *block_offset, *block_end};
    const uint8_t *trailer = block->bytes + block->end;
    uint32_t stored = mr_load_le32(trailer + 1);
    uint32_t computed = mr_crc32c_mask(mr_crc32c(0, block->bytes + offset, (size_t)size_bytes + 1));
    if (stored != computed)
        return mr_fail(error, MR_DATA_LOSS, "%s: block at byte %zu: checksum is %08x, the file has %08x", block->name,
                       block->begin, computed, stored);
    if (trailer[0] > 1)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: block at byte %zu has an unknown kind of compression (%d)",
                       block->name, block->begin, trailer[0]);
    if (trailer[0] == 1) MR_TRY(decompress(block, arena, error));
    assert(block->end - block->begin >= 4);
    uint32_t restarts = mr_load_le32(block->bytes + block->end - 4);
    if (restarts > (block->end - block->begin - 4) / 4)
        return damaged(block, "the restarts extend past the end of the block", error);
    block->end -= 4 + 4 * (size_t)restarts;
    return MR_OK;
}

/* Reads one entry of a block. `key` contains the previous key and receives this one. */
static mr_status take_entry(cursor *block, char *key, size_t *key_bytes, mr_string *value, mr_error *error)
{
    assert(block->begin <= block->end && *key_bytes <= MR_TABLE_KEY_MAX);
    uint64_t shared = 0, rest = 0, value_bytes = 0;
    cursor at = *block;
    if (!take_varint(block, &shared) || !take_varint(block, &rest) || !take_varint(block, &value_bytes))
        return damaged(&at, "an entry is truncated", error);
    if (shared > *key_bytes)
        return damaged(&at, "the shared prefix of an entry is longer than the previous key", error);
    if (rest > block->end - block->begin || value_bytes > block->end - block->begin - rest)
        return damaged(&at, "an entry extends past the end of the block", error);
    if (shared + rest > MR_TABLE_KEY_MAX) return damaged(&at, "a key is too long", error);
    memcpy(key + shared, block->bytes + block->begin, (size_t)rest);
    *key_bytes = (size_t)(shared + rest);
    *value = (mr_string){(const char *)block->bytes + block->begin + rest, (size_t)value_bytes};
    block->begin += (size_t)(rest + value_bytes);
    return MR_OK;
}

int mr_table_compare(mr_string a, mr_string b)
{
    size_t shorter = a.size_bytes < b.size_bytes ? a.size_bytes : b.size_bytes;
    int order = shorter == 0 ? 0 : memcmp(a.data, b.data, shorter);
    if (order != 0) return order;
    return a.size_bytes < b.size_bytes ? -1 : a.size_bytes > b.size_bytes;
}

/* Appends an entry to a growing array, which is not stored in the arena while it grows. */
static mr_status append(mr_table *table, size_t *capacity, mr_string key, mr_string value, cursor at, mr_error *error)
{
    assert(table->count <= *capacity && key.size_bytes <= MR_TABLE_KEY_MAX);
    if (table->count > 0 && mr_table_compare(table->entries[table->count - 1].key, key) >= 0)
        return damaged(&at, "keys are out of order", error);
    if (table->count == *capacity) {
        size_t larger = *capacity == 0 ? 64 : *capacity * 2;
        mr_table_entry *entries = realloc(table->entries, larger * sizeof *entries);
        if (entries == nullptr) return mr_fail_memory(error, larger * sizeof *entries);
        table->entries = entries;
        *capacity = larger;
    }
    char *copy = mr_arena_strndup(&table->arena, key.data, key.size_bytes);
    if (copy == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: the keys need too much memory", at.name);
    table->entries[table->count++] = (mr_table_entry){{copy, key.size_bytes}, value};
    return MR_OK;
}

static mr_status read_blocks(cursor file, cursor index, char *key, char *index_key, mr_table *table, mr_error *error)
{
    size_t capacity = 0, index_key_bytes = 0, offset, end, done = 0;
    cursor entries;
    MR_TRY(take_block(&file, &index, &table->arena, &entries, &offset, &end, error));
    while (entries.begin < entries.end) {
        mr_string handle_bytes;
        MR_TRY(take_entry(&entries, index_key, &index_key_bytes, &handle_bytes, error));
        size_t handle_begin = (size_t)((const uint8_t *)handle_bytes.data - entries.bytes);
        cursor handle = {entries.name, entries.bytes, handle_begin, handle_begin + handle_bytes.size_bytes}, block;
        MR_TRY(take_block(&file, &handle, &table->arena, &block, &offset, &end, error));
        /* Blocks must be in file order, so that no block is read twice. */
        if (offset < done) return damaged(&handle, "the blocks are out of order", error);
        done = end;
        size_t key_bytes = 0;
        while (block.begin < block.end) {
            cursor at = block;
            mr_string value;
            MR_TRY(take_entry(&block, key, &key_bytes, &value, error));
            MR_TRY(append(table, &capacity, (mr_string){key, key_bytes}, value, at, error));
        }
    }
    return MR_OK;
}

static mr_status parse(mr_string bytes, const char *name, mr_table *table, mr_error *error)
{
    cursor all = {name, (const uint8_t *)bytes.data, 0, bytes.size_bytes};
    if (bytes.size_bytes < FOOTER_BYTES) return damaged(&all, "the file is too short", error);
    const uint8_t *footer = all.bytes + all.end - FOOTER_BYTES;
    uint64_t magic = (uint64_t)mr_load_le32(footer + 40) | (uint64_t)mr_load_le32(footer + 44) << 32;
    if (magic != MAGIC) {
        all.begin = all.end - 8;
        return damaged(&all, "wrong magic number in the last 8 bytes", error);
    }
    cursor handles = {name, all.bytes, all.end - FOOTER_BYTES, all.end};
    uint64_t ignored = 0; /* the meta index: offset, size */
    if (!take_varint(&handles, &ignored) || !take_varint(&handles, &ignored) ||
        handles.begin > all.end - FOOTER_BYTES + HANDLES_BYTES)
        return damaged(&handles, "bad footer", error);
    table->arena.limit_bytes = KEYS_FACTOR * bytes.size_bytes + KEYS_SLACK;
    char *keys = malloc(2 * MR_TABLE_KEY_MAX);
    if (keys == nullptr) return mr_fail_memory(error, 2 * MR_TABLE_KEY_MAX);
    mr_status status = read_blocks(all, handles, keys, keys + MR_TABLE_KEY_MAX, table, error);
    free(keys);
    return status;
}

mr_status mr_table_parse(mr_string bytes, const char *name, mr_table *table, mr_error *error)
{
    *table = (mr_table){0};
    mr_status status = parse(bytes, name, table, error);
    if (status != MR_OK) mr_table_deinit(table);
    return status;
}

mr_status mr_table_read(const char *path, mr_table *table, mr_error *error)
{
    char *file = nullptr;
    size_t size_bytes = 0;
    *table = (mr_table){0};
    MR_TRY(mr_file_read_regular(path, MR_TABLE_SIZE_MAX, &file, &size_bytes, error));
    mr_status status = mr_table_parse((mr_string){file, size_bytes}, path, table, error);
    if (status != MR_OK)
        free(file);
    else
        table->file = file;
    return status;
}

void mr_table_deinit(mr_table *table)
{
    mr_arena_deinit(&table->arena);
    free(table->entries);
    free(table->file);
    *table = (mr_table){0};
}

const mr_table_entry *mr_table_find(const mr_table *table, mr_string key)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        assert(middle < high);
        int order = mr_table_compare(table->entries[middle].key, key);
        if (order == 0) return &table->entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return nullptr;
}
