/* The table writer. It makes the same choices as TensorFlow's builder, so that equal entries produce equal bytes:
 * blocks of 256 KiB without compression, a restart every 16 entries (every entry in the index), and in the index the
 * shortest key that separates two blocks. */
#include "records/checkpoint/table.h"

#include "base/bytes.h"

#include <millrace/record.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t BLOCK_BYTES = 262144;
constexpr size_t HANDLES_BYTES = 40;

static void put(mr_table_bytes *bytes, const void *data, size_t size_bytes)
{
    assert(bytes->size_bytes <= bytes->capacity_bytes);
    if (bytes->failed || size_bytes == 0) return;
    if (size_bytes > bytes->capacity_bytes - bytes->size_bytes) {
        size_t capacity = bytes->capacity_bytes * 2 + size_bytes + 64;
        char *larger = realloc(bytes->data, capacity);
        if (larger == nullptr) {
            bytes->failed = true;
            return;
        }
        bytes->data = larger;
        bytes->capacity_bytes = capacity;
    }
    memcpy(bytes->data + bytes->size_bytes, data, size_bytes);
    bytes->size_bytes += size_bytes;
}

static void put_varint(mr_table_bytes *bytes, uint64_t value)
{
    uint8_t digits[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) digits[count++] = (uint8_t)(value | 0x80);
    digits[count++] = (uint8_t)value;
    assert(count <= sizeof digits);
    put(bytes, digits, count);
}

static void put32(mr_table_bytes *bytes, uint32_t value)
{
    uint8_t digits[4];
    mr_store_le32(digits, value);
    put(bytes, digits, 4);
}

static mr_string view(const mr_table_bytes *bytes)
{
    return (mr_string){bytes->data != nullptr ? bytes->data : "", bytes->size_bytes};
}

static size_t shared_prefix(mr_string a, mr_string b)
{
    size_t count = 0;
    while (count < a.size_bytes && count < b.size_bytes && a.data[count] == b.data[count]) count++;
    return count;
}

/* An empty block has one restart, at 0. */
static void begin_block(mr_table_block *block, int32_t restart_interval)
{
    assert(restart_interval > 0);
    block->bytes.size_bytes = block->restarts.size_bytes = block->last_key.size_bytes = 0;
    block->restart_interval = restart_interval;
    block->since_restart = 0;
    put32(&block->restarts, 0);
}

static void add_to_block(mr_table_block *block, mr_string key, mr_string value)
{
    assert(block->since_restart <= block->restart_interval && block->restarts.size_bytes % 4 == 0);
    size_t shared = 0;
    if (block->since_restart < block->restart_interval) {
        shared = shared_prefix(view(&block->last_key), key);
    } else {
        put32(&block->restarts, (uint32_t)block->bytes.size_bytes);
        block->since_restart = 0;
    }
    assert(shared <= key.size_bytes);
    put_varint(&block->bytes, shared);
    put_varint(&block->bytes, key.size_bytes - shared);
    put_varint(&block->bytes, value.size_bytes);
    put(&block->bytes, key.data + shared, key.size_bytes - shared);
    put(&block->bytes, value.data, value.size_bytes);
    block->last_key.size_bytes = shared;
    put(&block->last_key, key.data + shared, key.size_bytes - shared);
    block->since_restart++;
}

/* Writes the block with its restarts, compression byte and checksum to the file. */
static void end_block(mr_table_builder *builder, mr_table_block *block, uint64_t *offset, uint64_t *size_bytes)
{
    mr_table_bytes *file = &builder->file;
    *offset = file->size_bytes;
    put(file, block->bytes.data, block->bytes.size_bytes);
    put(file, block->restarts.data, block->restarts.size_bytes);
    put32(file, (uint32_t)(block->restarts.size_bytes / 4));
    *size_bytes = file->size_bytes - *offset;
    put(file, "", 1);
    file->failed |= block->bytes.failed || block->restarts.failed || block->last_key.failed;
    if (file->failed) return;
    assert(file->size_bytes == *offset + *size_bytes + 1);
    put32(file, mr_crc32c_mask(mr_crc32c(0, file->data + *offset, (size_t)*size_bytes + 1)));
}

static void add_to_index(mr_table_builder *builder, mr_string key)
{
    mr_table_bytes handle = {0};
    put_varint(&handle, builder->pending_offset);
    put_varint(&handle, builder->pending_size_bytes);
    add_to_block(&builder->index, key, view(&handle));
    builder->file.failed |= handle.failed;
    free(handle.data);
    builder->index_is_pending = false;
}

/* Replaces the last key by the shortest key that is not before it and is before `next`. */
static void part_blocks(mr_table_builder *builder, mr_string next)
{
    assert(builder->index_is_pending);
    mr_table_bytes *last = &builder->data.last_key;
    size_t shared = shared_prefix(view(last), next);
    if (shared < last->size_bytes && shared < next.size_bytes) {
        uint8_t byte = (uint8_t)last->data[shared];
        if (byte < 0xff && byte + 1 < (uint8_t)next.data[shared]) {
            last->data[shared] = (char)(byte + 1);
            last->size_bytes = shared + 1;
        }
    }
    assert(mr_table_compare(view(last), next) < 0);
    add_to_index(builder, view(last));
}

/* Replaces the last key of the table by a short key that is not before it. */
static void end_index(mr_table_builder *builder)
{
    assert(builder->index_is_pending);
    mr_table_bytes *last = &builder->data.last_key;
    for (size_t i = 0; i < last->size_bytes; i++) {
        uint8_t byte = (uint8_t)last->data[i];
        if (byte == 0xff) continue;
        last->data[i] = (char)(byte + 1);
        last->size_bytes = i + 1;
        break;
    }
    add_to_index(builder, view(last));
}

/* Writes the data block and keeps its last key for the index. */
static void flush(mr_table_builder *builder)
{
    assert(!builder->index_is_pending && builder->data.bytes.size_bytes > 0);
    end_block(builder, &builder->data, &builder->pending_offset, &builder->pending_size_bytes);
    builder->index_is_pending = true;
}

static void begin(mr_table_builder *builder)
{
    if (builder->index.restart_interval != 0) return;
    begin_block(&builder->data, 16);
    begin_block(&builder->index, 1);
}

void mr_table_add(mr_table_builder *builder, mr_string key, mr_string value)
{
    begin(builder);
    mr_table_block *data = &builder->data;
    bool is_first = data->bytes.size_bytes == 0 && !builder->index_is_pending && builder->file.size_bytes == 0;
    if (!is_first && mr_table_compare(view(&data->last_key), key) >= 0) builder->out_of_order = true;
    if (builder->file.failed || builder->out_of_order) return;
    if (builder->index_is_pending) {
        part_blocks(builder, key);
        begin_block(data, 16);
    }
    add_to_block(data, key, value);
    if (data->bytes.size_bytes + data->restarts.size_bytes + 4 >= BLOCK_BYTES) flush(builder);
}

mr_status mr_table_finish(mr_table_builder *builder, mr_string *bytes, mr_error *error)
{
    begin(builder);
    if (builder->out_of_order) return mr_fail(error, MR_INTERNAL, "keys of a table were added out of order");
    if (!builder->index_is_pending && builder->data.bytes.size_bytes > 0) flush(builder);
    mr_table_bytes handles = {0};
    mr_table_block meta = {0};
    uint64_t offset = 0, size_bytes = 0;
    begin_block(&meta, 1);
    end_block(builder, &meta, &offset, &size_bytes);
    put_varint(&handles, offset);
    put_varint(&handles, size_bytes);
    if (builder->index_is_pending) end_index(builder);
    end_block(builder, &builder->index, &offset, &size_bytes);
    put_varint(&handles, offset);
    put_varint(&handles, size_bytes);
    static const char zeros[HANDLES_BYTES];
    assert(handles.size_bytes <= HANDLES_BYTES);
    put(&builder->file, handles.data, handles.size_bytes);
    put(&builder->file, zeros, HANDLES_BYTES - handles.size_bytes);
    put(&builder->file, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
    bool failed = builder->file.failed || handles.failed;
    free(handles.data);
    free(meta.restarts.data);
    if (failed) return mr_fail_memory(error, builder->file.size_bytes);
    *bytes = view(&builder->file);
    return MR_OK;
}

void mr_table_builder_deinit(mr_table_builder *builder)
{
    free(builder->file.data);
    mr_table_block *blocks[] = {&builder->data, &builder->index};
    for (size_t i = 0; i < 2; i++) {
        free(blocks[i]->bytes.data);
        free(blocks[i]->restarts.data);
        free(blocks[i]->last_key.data);
    }
    *builder = (mr_table_builder){0};
}
