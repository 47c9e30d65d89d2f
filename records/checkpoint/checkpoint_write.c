/* The checkpoint writer. Its output is identical to that of TensorFlow's BundleWriter: tensors are stored in the data
 * file in the order they are added, entries in the index are sorted.
 *
 * Both files are written under temporary names. Close flushes the data to disk and renames it, then the index, so that
 * an index under its final name always has its data. */
#include "proto/bundle.pb-c.h"
#include "proto/proto.h"
#include "records/checkpoint/checkpoint_part.h"
#include "records/checkpoint/table.h"
#include "records/io/file.h"
#include <millrace/record.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t BUFFER_BYTES = 1 << 18;

/* An entry of the index. The entry of a partitioned tensor has no bytes of its own, only a growing list of slices. */
typedef struct entry {
    mr_string key;
    mr_dtype dtype;
    mr_shape shape;
    uint64_t offset, size_bytes;
    uint32_t checksum; /* masked */
    int32_t slice_count, slice_capacity;
    mr_checkpoint_slice *slices;
} entry;

struct mr_checkpoint_writer {
    mr_arena arena;
    char *index_path; /* owned */
    mr_file_output data;
    uint64_t offset; /* in the data file, buffered bytes included */
    char *buffer;    /* BUFFER_BYTES, owned */
    size_t buffered;
    entry **entries; /* sorted by key; owned array, entries in the arena */
    size_t count, capacity;
    bool failed; /* a write failed; close returns an error */
};

/* ---- Open ---- */

static mr_status open_files(mr_checkpoint_writer *writer, const char *path, mr_error *error)
{
    writer->buffer = malloc(BUFFER_BYTES);
    writer->index_path = mr_checkpoint_index_path(path);
    char *data_path = mr_checkpoint_data_path(path, 0, 1), *directory = strdup(path);
    mr_status status = MR_OK;
    if (writer->buffer == nullptr || writer->index_path == nullptr || data_path == nullptr || directory == nullptr) {
        status = mr_fail_memory(error, BUFFER_BYTES);
    } else {
        char *slash = strrchr(directory, '/');
        if (slash != nullptr && slash != directory) {
            *slash = '\0';
            status = mr_file_make_directories(directory, error);
        }
        if (status == MR_OK) status = mr_file_output_open(&writer->data, data_path, true, error);
    }
    free(directory);
    free(data_path);
    return status;
}

mr_status mr_checkpoint_writer_open(const char *path, mr_checkpoint_writer **writer, mr_error *error)
{
    if (path == nullptr || writer == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_writer_open: %s is null",
                       path == nullptr ? "path" : "writer");
    *writer = nullptr;
    const char *slash = strrchr(path, '/');
    if (*path == '\0' || (slash != nullptr && slash[1] == '\0'))
        return mr_fail(error, MR_INVALID_ARGUMENT, "\"%s\": a checkpoint needs a name", path);
    *writer = calloc(1, sizeof **writer);
    if (*writer == nullptr) return mr_fail_memory(error, sizeof **writer);
    mr_status status = open_files(*writer, path, error);
    if (status == MR_OK) return MR_OK;
    mr_checkpoint_writer_discard(*writer);
    *writer = nullptr;
    return status;
}

void mr_checkpoint_writer_discard(mr_checkpoint_writer *writer)
{
    if (writer == nullptr) return;
    mr_file_output_discard(&writer->data);
    for (size_t i = 0; i < writer->count; i++) free(writer->entries[i]->slices);
    free(writer->entries);
    free(writer->buffer);
    free(writer->index_path);
    mr_arena_deinit(&writer->arena);
    free(writer);
}

/* ---- Data ---- */

static mr_status flush(mr_checkpoint_writer *writer, mr_error *error)
{
    assert(writer->buffered <= BUFFER_BYTES);
    size_t size_bytes = writer->buffered;
    writer->buffered = 0;
    return size_bytes == 0 ? MR_OK : mr_file_output_write(&writer->data, writer->buffer, size_bytes, error);
}

static mr_status put(mr_checkpoint_writer *writer, const void *bytes, size_t size_bytes, mr_error *error)
{
    assert(writer->buffered <= BUFFER_BYTES && writer->buffered <= writer->offset);
    if (size_bytes > BUFFER_BYTES - writer->buffered) MR_TRY(flush(writer, error));
    writer->offset += size_bytes;
    if (size_bytes >= BUFFER_BYTES) return mr_file_output_write(&writer->data, bytes, size_bytes, error);
    assert(size_bytes <= BUFFER_BYTES - writer->buffered);
    if (size_bytes > 0) memcpy(writer->buffer + writer->buffered, bytes, size_bytes);
    writer->buffered += size_bytes;
    return MR_OK;
}

/* The checksum of the lengths covers them as 4-byte numbers (8-byte numbers from 4 GiB on), not as the varints in the
 * file. */
static mr_status put_strings(mr_checkpoint_writer *writer, const mr_string *strings, int64_t count, uint32_t *crc,
                             mr_error *error)
{
    *crc = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t length = strings[i].size_bytes;
        uint8_t digits[10];
        size_t digit_count = 0;
        for (; length >= 0x80; length >>= 7) digits[digit_count++] = (uint8_t)(length | 0x80);
        digits[digit_count++] = (uint8_t)length;
        assert(digit_count <= sizeof digits);
        MR_TRY(put(writer, digits, digit_count, error));
        length = strings[i].size_bytes;
        uint32_t short_length = (uint32_t)length;
        if (length <= UINT32_MAX)
            *crc = mr_crc32c(*crc, &short_length, sizeof short_length);
        else
            *crc = mr_crc32c(*crc, &length, sizeof length);
    }
    uint32_t masked = mr_crc32c_mask(*crc);
    MR_TRY(put(writer, &masked, sizeof masked, error));
    *crc = mr_crc32c(*crc, &masked, sizeof masked);
    for (int64_t i = 0; i < count; i++) {
        MR_TRY(put(writer, strings[i].data, strings[i].size_bytes, error));
        *crc = mr_crc32c(*crc, strings[i].data, strings[i].size_bytes);
    }
    return MR_OK;
}

/* ---- Entries ---- */

/* The index of the key, or of its insertion point. */
static size_t find(const mr_checkpoint_writer *writer, mr_string key, bool *found)
{
    size_t low = 0, high = writer->count;
    /* The Saver adds keys in order, so check the end first. */
    if (high > 0 && mr_table_compare(writer->entries[high - 1]->key, key) < 0) low = high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mr_table_compare(writer->entries[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low <= writer->count);
    *found = low < writer->count && mr_table_compare(writer->entries[low]->key, key) == 0;
    return low;
}

static mr_status insert(mr_checkpoint_writer *writer, size_t index, mr_string key, entry **inserted, mr_error *error)
{
    assert(index <= writer->count && writer->count <= writer->capacity);
    if (writer->count == writer->capacity) {
        size_t capacity = writer->capacity == 0 ? 64 : 2 * writer->capacity;
        entry **larger = realloc(writer->entries, capacity * sizeof *larger);
        if (larger == nullptr) return mr_fail_memory(error, capacity * sizeof *larger);
        writer->entries = larger;
        writer->capacity = capacity;
    }
    entry *item = MR_ARENA_NEW(&writer->arena, entry, 1);
    char *copy = mr_arena_strndup(&writer->arena, key.data, key.size_bytes);
    if (item == nullptr || copy == nullptr) return mr_fail_memory(error, key.size_bytes);
    item->key = (mr_string){copy, key.size_bytes};
    memmove(writer->entries + index + 1, writer->entries + index, (writer->count - index) * sizeof *writer->entries);
    writer->entries[index] = item;
    assert(index == 0 || mr_table_compare(writer->entries[index - 1]->key, item->key) < 0);
    writer->count++;
    *inserted = item;
    return MR_OK;
}

static mr_status check_value(const mr_checkpoint_writer *writer, const char *key, const mr_tensor *value,
                             mr_error *error)
{
    if (writer->failed) return mr_fail(error, MR_FAILED_PRECONDITION, "%s: an earlier write failed", writer->data.path);
    if (key[0] == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "%s: a key is empty", writer->data.path);
    if (strlen(key) > MR_TABLE_KEY_MAX / 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: key %.100s… is longer than %d bytes", writer->data.path, key,
                       MR_TABLE_KEY_MAX / 4);
    if (mr_dtype_size(value->dtype) == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: key %s: a value of type %s cannot be saved", writer->data.path,
                       key, mr_dtype_name(value->dtype));
    return MR_OK;
}

/* Writes the bytes and adds the entry. */
static mr_status write_entry(mr_checkpoint_writer *writer, mr_string key, const char *name, const mr_tensor *value,
                             mr_error *error)
{
    bool found;
    size_t index = find(writer, key, &found);
    if (found) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: key %s is written twice", writer->data.path, name);
    uint64_t offset = writer->offset;
    uint32_t crc = 0;
    int64_t count = mr_tensor_count(value);
    writer->failed = true;
    if (value->dtype == MR_STRING) {
        MR_TRY(put_strings(writer, mr_tensor_strings(value), count, &crc, error));
    } else {
        size_t size_bytes = mr_tensor_size_bytes(value);
        MR_TRY(put(writer, value->data, size_bytes, error));
        crc = mr_crc32c(0, value->data, size_bytes);
    }
    entry *item;
    MR_TRY(insert(writer, index, key, &item, error));
    writer->failed = false;
    assert(writer->offset >= offset);
    item->dtype = value->dtype;
    item->shape = value->shape;
    item->offset = offset;
    item->size_bytes = writer->offset - offset;
    item->checksum = mr_crc32c_mask(crc);
    return MR_OK;
}

mr_status mr_checkpoint_write(mr_checkpoint_writer *writer, const char *key, const mr_tensor *value, mr_error *error)
{
    if (writer == nullptr || key == nullptr || value == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_write: %s is null",
                       writer == nullptr ? "writer"
                       : key == nullptr  ? "key"
                                         : "value");
    MR_TRY(check_value(writer, key, value, error));
    return write_entry(writer, mr_string_from(key), key, value, error);
}

/* The entry of the complete tensor, created with its first slice. */
static mr_status parent_entry(mr_checkpoint_writer *writer, const char *key, mr_shape full, mr_dtype dtype,
                              entry **parent, mr_error *error)
{
    bool found;
    size_t index = find(writer, mr_string_from(key), &found);
    if (!found) {
        MR_TRY(insert(writer, index, mr_string_from(key), parent, error));
        (*parent)->dtype = dtype;
        (*parent)->shape = full;
        return MR_OK;
    }
    *parent = writer->entries[index];
    if ((*parent)->slice_count == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: key %s is written both complete and in slices",
                       writer->data.path, key);
    if ((*parent)->dtype != dtype || !mr_shape_equal((*parent)->shape, full))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: key %s: the slices have different types or shapes",
                       writer->data.path, key);
    return MR_OK;
}

static mr_status append_slice(entry *parent, const mr_checkpoint_slice *slice, mr_error *error)
{
    assert(parent->slice_count >= 0 && parent->slice_count <= parent->slice_capacity);
    if (parent->slice_count == parent->slice_capacity) {
        int32_t capacity = parent->slice_capacity == 0 ? 8 : 2 * parent->slice_capacity;
        mr_checkpoint_slice *larger = realloc(parent->slices, (size_t)capacity * sizeof *larger);
        if (larger == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
        parent->slices = larger;
        parent->slice_capacity = capacity;
    }
    parent->slices[parent->slice_count++] = *slice;
    return MR_OK;
}

mr_status mr_checkpoint_write_slice(mr_checkpoint_writer *writer, const char *key, mr_shape full,
                                    const mr_checkpoint_slice *slice, const mr_tensor *value, mr_error *error)
{
    MR_TRY(check_value(writer, key, value, error));
    mr_shape shape;
    if (mr_shape_count(full) < 0 || mr_checkpoint_slice_shape(slice, full, &shape, error) != MR_OK)
        return mr_fail_prefix(error, MR_INVALID_ARGUMENT, "%s: key %s", writer->data.path, key);
    if (!mr_shape_equal(shape, value->shape)) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: key %s: the slice has shape %s, but the value has shape %s",
                       writer->data.path, key, mr_shape_text(shape, a, sizeof a),
                       mr_shape_text(value->shape, b, sizeof b));
    }
    entry *parent;
    mr_string slice_key;
    MR_TRY(mr_checkpoint_slice_key(key, slice, &writer->arena, &slice_key, error));
    MR_TRY(parent_entry(writer, key, full, value->dtype, &parent, error));
    MR_TRY(append_slice(parent, slice, error));
    return write_entry(writer, slice_key, key, value, error);
}

/* ---- Close ---- */

/* Packs the messages of an entry, in an arena that is reused for the next entry. */
static mr_status pack_shape(mr_shape shape, mr_arena *arena, Mr__TensorShapeProto *message, mr_error *error)
{
    size_t rank = (size_t)shape.rank;
    Mr__TensorShapeProto__Dim *dims = MR_ARENA_NEW(arena, Mr__TensorShapeProto__Dim, rank);
    Mr__TensorShapeProto__Dim **list = MR_ARENA_NEW(arena, Mr__TensorShapeProto__Dim *, rank);
    if (dims == nullptr || list == nullptr) return mr_fail_memory(error, rank * sizeof *dims);
    mr__tensor_shape_proto__init(message);
    for (size_t i = 0; i < rank; i++) {
        mr__tensor_shape_proto__dim__init(&dims[i]);
        dims[i].size = shape.dims[i];
        list[i] = &dims[i];
    }
    message->n_dim = rank;
    message->dim = list;
    return MR_OK;
}

static mr_status pack_slice(const mr_checkpoint_slice *slice, mr_arena *arena, Mr__TensorSliceProto **packed,
                            mr_error *error)
{
    size_t rank = (size_t)slice->rank;
    Mr__TensorSliceProto *message = MR_ARENA_NEW(arena, Mr__TensorSliceProto, 1);
    Mr__TensorSliceProto__Extent *extents = MR_ARENA_NEW(arena, Mr__TensorSliceProto__Extent, rank);
    Mr__TensorSliceProto__Extent **list = MR_ARENA_NEW(arena, Mr__TensorSliceProto__Extent *, rank);
    if (message == nullptr || extents == nullptr || list == nullptr) return mr_fail_memory(error, sizeof *message);
    mr__tensor_slice_proto__init(message);
    for (size_t i = 0; i < rank; i++) {
        mr__tensor_slice_proto__extent__init(&extents[i]);
        list[i] = &extents[i];
        if (slice->lengths[i] == -1) continue;
        extents[i].start = slice->starts[i];
        extents[i].has_length_case = MR__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
        extents[i].length = slice->lengths[i];
    }
    message->n_extent = rank;
    message->extent = list;
    *packed = message;
    return MR_OK;
}

static mr_status pack_entry(const entry *item, mr_arena *arena, mr_string *bytes, mr_error *error)
{
    assert(item->slice_count == 0 || item->size_bytes == 0);
    Mr__BundleEntryProto message = MR__BUNDLE_ENTRY_PROTO__INIT;
    Mr__TensorShapeProto shape;
    MR_TRY(pack_shape(item->shape, arena, &shape, error));
    message.dtype = item->dtype;
    message.shape = &shape;
    message.offset = (int64_t)item->offset;
    message.size = (int64_t)item->size_bytes;
    message.crc32c = item->checksum;
    message.n_slices = (size_t)item->slice_count;
    message.slices = MR_ARENA_NEW(arena, Mr__TensorSliceProto *, message.n_slices);
    if (message.slices == nullptr) return mr_fail_memory(error, message.n_slices * sizeof *message.slices);
    for (int32_t i = 0; i < item->slice_count; i++)
        MR_TRY(pack_slice(&item->slices[i], arena, &message.slices[i], error));
    return mr_proto_pack(&message, arena, bytes, error);
}

static mr_status write_index(mr_checkpoint_writer *writer, mr_table_builder *builder, mr_arena *arena, mr_error *error)
{
    Mr__BundleHeaderProto header = MR__BUNDLE_HEADER_PROTO__INIT;
    Mr__VersionDef version = MR__VERSION_DEF__INIT;
    mr_string bytes;
    version.producer = 1;
    header.num_shards = 1;
    header.version = &version;
    MR_TRY(mr_proto_pack(&header, arena, &bytes, error));
    mr_table_add(builder, (mr_string){"", 0}, bytes);
    for (size_t i = 0; i < writer->count; i++) {
        mr_arena_reset(arena);
        MR_TRY(pack_entry(writer->entries[i], arena, &bytes, error));
        mr_table_add(builder, writer->entries[i]->key, bytes);
    }
    MR_TRY(mr_table_finish(builder, &bytes, error));
    return mr_file_write_all(writer->index_path, bytes.data, bytes.size_bytes, error);
}

static mr_status close_files(mr_checkpoint_writer *writer, mr_error *error)
{
    if (writer->failed) return mr_fail(error, MR_FAILED_PRECONDITION, "%s: an earlier write failed", writer->data.path);
    MR_TRY(flush(writer, error));
    assert(writer->buffered == 0 && writer->data.size_bytes == writer->offset);
    MR_TRY(mr_file_output_commit(&writer->data, error));
    mr_table_builder builder = {0};
    mr_arena arena = {0};
    mr_status status = write_index(writer, &builder, &arena, error);
    mr_arena_deinit(&arena);
    mr_table_builder_deinit(&builder);
    return status;
}

mr_status mr_checkpoint_writer_close(mr_checkpoint_writer *writer, mr_error *error)
{
    if (writer == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_writer_close: writer is null");
    mr_status status = close_files(writer, error);
    mr_checkpoint_writer_discard(writer);
    return status;
}
