/* The checkpoint reader. Open reads the complete index and checks each entry by itself. Read checks an entry against
 * the sizes of the data files before it allocates memory, and the bytes against their checksum.
 *
 * The tables of a V1 checkpoint contain the data. Its tensors are items whose entries have only slices. */
#include "proto/bundle.pb-c.h"
#include "proto/proto.h"
#include "records/checkpoint/checkpoint_part.h"
#include "records/checkpoint/table.h"
#include "records/io/file.h"
#include <millrace/record.h>

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

constexpr int32_t SHARDS_MAX = 99999;
/* Maximum number of slices of a tensor; they are compared pairwise for overlaps. */
constexpr size_t SLICES_MAX = 4096;
constexpr size_t PIECE_BYTES = 1 << 20;
constexpr int32_t BUNDLE_VERSION = 1;

typedef struct item {
    const char *key;
    mr_dtype dtype;
    mr_shape shape;           /* unknown rank if it has more than MR_RANK_MAX dimensions */
    Mr__BundleEntryProto *at; /* in the arena */
} item;

typedef struct shard {
    bool is_open;
    bool is_newer; /* than the index; the index is always written after the data */
    int descriptor;
    uint64_t size_bytes;
    char *path; /* owned */
} shard;

struct mr_checkpoint_reader {
    mr_arena arena;
    mr_table table;
    mr_table *v1; /* owned; the tables of a V1 checkpoint, which has no other table; null: V2 */
    int32_t v1_count;
    char *path; /* owned; the index file, for errors */
    char *prefix;
    item *items; /* sorted like the table, without the slices */
    int32_t count;
    shard *shards;
    int32_t shard_count;
};

/* ---- Open ---- */

static mr_status damaged(const mr_checkpoint_reader *reader, const char *key, const char *reason, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "%s: key %.200s: %s", reader->path, key, reason);
}

static mr_status read_header(mr_checkpoint_reader *reader, mr_error *error)
{
    if (reader->table.count == 0 || reader->table.entries[0].key.size_bytes != 0)
        return mr_fail(error, MR_DATA_LOSS, "%s: not a checkpoint index: the table has no header", reader->path);
    Mr__BundleHeaderProto *header;
    mr_status status =
        mr_proto_unpack_as(bundle_header_proto, reader->table.entries[0].value, &reader->arena, &header, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "%s", reader->path);
    if (header->endianness != 0)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: written on a big-endian machine, which is not supported",
                       reader->path);
    if (header->version != nullptr && header->version->min_consumer > BUNDLE_VERSION)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: requires a reader of version %d, this one is version %d",
                       reader->path, header->version->min_consumer, BUNDLE_VERSION);
    if (header->num_shards < 1 || header->num_shards > SHARDS_MAX)
        return mr_fail(error, MR_DATA_LOSS, "%s: invalid number of data files in the header (%d)", reader->path,
                       header->num_shards);
    reader->shard_count = header->num_shards;
    assert(reader->shards == nullptr && reader->shard_count >= 1);
    reader->shards = calloc((size_t)header->num_shards, sizeof *reader->shards);
    return reader->shards != nullptr ? MR_OK : mr_fail_memory(error, (size_t)header->num_shards * sizeof(shard));
}

static mr_status read_shape(const mr_checkpoint_reader *reader, item *made, mr_error *error)
{
    const Mr__TensorShapeProto *shape = made->at->shape;
    made->shape = MR_SCALAR;
    if (shape == nullptr) return MR_OK;
    if (shape->unknown_rank) return damaged(reader, made->key, "the shape has no rank", error);
    for (size_t i = 0; i < shape->n_dim; i++) {
        if (shape->dim[i]->size < 0) return damaged(reader, made->key, "the shape has an unknown size", error);
        if (i < MR_RANK_MAX) made->shape.dims[i] = shape->dim[i]->size;
    }
    made->shape.rank = shape->n_dim > MR_RANK_MAX ? -1 : (int32_t)shape->n_dim;
    if (made->shape.rank >= 0 && mr_shape_count(made->shape) < 0)
        return damaged(reader, made->key, "the shape has too many elements", error);
    return MR_OK;
}

static mr_status read_items(mr_checkpoint_reader *reader, mr_error *error)
{
    const mr_table *table = &reader->table;
    reader->items = calloc(table->count, sizeof *reader->items);
    if (reader->items == nullptr) return mr_fail_memory(error, table->count * sizeof *reader->items);
    for (size_t i = 1; i < table->count; i++) {
        mr_string key = table->entries[i].key;
        if (key.data[0] == '\0') continue; /* a slice; found through the entry of its tensor */
        if (memchr(key.data, '\0', key.size_bytes) != nullptr)
            return damaged(reader, key.data, "the name contains a NUL byte", error);
        item *made = &reader->items[reader->count];
        assert((size_t)reader->count < table->count);
        made->key = key.data;
        mr_status status =
            mr_proto_unpack_as(bundle_entry_proto, table->entries[i].value, &reader->arena, &made->at, error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "%s: key %.200s", reader->path, key.data);
        int32_t dtype = made->at->dtype;
        made->dtype = dtype > 0 && dtype < MR_DTYPE_COUNT ? (mr_dtype)dtype : MR_DTYPE_INVALID;
        MR_TRY(read_shape(reader, made, error));
        reader->count++;
    }
    return MR_OK;
}

/* ---- Open a V1 checkpoint ---- */

/* Adds the slices that another file has of the same tensor. */
static mr_status join_v1_items(mr_checkpoint_reader *reader, item *made, const item *other, mr_error *error)
{
    Mr__BundleEntryProto *entry = made->at;
    size_t before = entry->n_slices, count = before + other->at->n_slices;
    if (reader->v1_count == 1) return damaged(reader, made->key, "occurs twice", error);
    if (made->dtype != other->dtype || !mr_shape_equal(made->shape, other->shape))
        return damaged(reader, made->key, "the files have different types or shapes", error);
    Mr__TensorSliceProto **slices = MR_ARENA_NEW(&reader->arena, Mr__TensorSliceProto *, count);
    if (slices == nullptr) return mr_fail_memory(error, count * sizeof *slices);
    for (size_t i = 0; i < count; i++) slices[i] = i < before ? entry->slices[i] : other->at->slices[i - before];
    entry->slices = slices;
    entry->n_slices = count;
    return MR_OK;
}

static mr_status read_v1_item(mr_checkpoint_reader *reader, const Mr__SavedSliceMeta *meta, mr_error *error)
{
    item *made = &reader->items[reader->count];
    made->key = meta->name;
    made->at = MR_ARENA_NEW(&reader->arena, Mr__BundleEntryProto, 1);
    if (made->at == nullptr) return mr_fail_memory(error, sizeof *made->at);
    mr__bundle_entry_proto__init(made->at);
    made->at->dtype = meta->type;
    made->at->shape = meta->shape;
    made->dtype = meta->type > 0 && meta->type < MR_DTYPE_COUNT ? (mr_dtype)meta->type : MR_DTYPE_INVALID;
    made->at->slices = meta->slice;
    made->at->n_slices = meta->n_slice;
    MR_TRY(read_shape(reader, made, error));
    if (meta->n_slice == 0) return damaged(reader, made->key, "no slices", error);
    reader->count++;
    return MR_OK;
}

static mr_status read_v1_items(mr_checkpoint_reader *reader, const mr_table *table, mr_error *error)
{
    Mr__SavedTensorSlices *head;
    if (table->count == 0 || table->entries[0].key.size_bytes != 0)
        return mr_fail(error, MR_DATA_LOSS, "%s: not a checkpoint: the table has no header", reader->path);
    mr_status status = mr_proto_unpack_as(saved_tensor_slices, table->entries[0].value, &reader->arena, &head, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "%s", reader->path);
    size_t count = head->meta != nullptr ? head->meta->n_tensor : 0;
    if (count > INT32_MAX / 2 - (size_t)reader->count)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: too many keys", reader->path);
    item *larger = realloc(reader->items, ((size_t)reader->count + count + 1) * sizeof *larger);
    if (larger == nullptr) return mr_fail_memory(error, count * sizeof *larger);
    reader->items = larger;
    for (size_t i = 0; i < count; i++) {
        reader->items[reader->count] = (item){0};
        MR_TRY(read_v1_item(reader, head->meta->tensor[i], error));
    }
    return MR_OK;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const item *)a)->key, ((const item *)b)->key);
}

static mr_status open_v1(mr_checkpoint_reader *reader, char **paths, int32_t count, mr_error *error)
{
    reader->v1 = calloc((size_t)count, sizeof *reader->v1);
    if (reader->v1 == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *reader->v1);
    reader->v1_count = count;
    for (int32_t i = 0; i < count; i++) {
        MR_TRY(mr_table_read(paths[i], &reader->v1[i], error));
        MR_TRY(read_v1_items(reader, &reader->v1[i], error));
    }
    if (reader->count == 0) return MR_OK;
    item *items = reader->items;
    assert(items != nullptr);
    qsort(items, (size_t)reader->count, sizeof *items, compare_items);
    int32_t kept = 0;
    for (int32_t i = 0; i < reader->count; i++) {
        item *last = kept > 0 ? &items[kept - 1] : nullptr;
        if (last != nullptr && compare_items(last, &items[i]) == 0)
            MR_TRY(join_v1_items(reader, last, &items[i], error));
        else
            items[kept++] = items[i];
    }
    reader->count = kept;
    return MR_OK;
}

/* Opens a V1 checkpoint if path is one and no V2 checkpoint; *is_v1 tells whether it is. */
static mr_status try_v1(mr_checkpoint_reader *reader, const char *path, bool *is_v1, mr_error *error)
{
    char **paths = nullptr;
    int32_t count = 0;
    mr_status status = MR_OK;
    *is_v1 = false;
    if (mr_file_exists(reader->path)) return MR_OK;
    status = mr_checkpoint_v1_files(path, &paths, &count, error);
    if (status == MR_OK && count > 0) {
        *is_v1 = true;
        free(reader->path);
        reader->path = strdup(path);
        status = reader->path != nullptr ? open_v1(reader, paths, count, error) : mr_fail_memory(error, strlen(path));
    }
    for (int32_t i = 0; i < count; i++) free(paths[i]);
    free(paths);
    return status;
}

static mr_status open_index(mr_checkpoint_reader *reader, const char *path, mr_error *error)
{
    bool is_v1;
    reader->path = mr_checkpoint_index_path(path);
    reader->prefix = strdup(path);
    if (reader->path == nullptr || reader->prefix == nullptr) return mr_fail_memory(error, strlen(path));
    MR_TRY(try_v1(reader, path, &is_v1, error));
    if (is_v1) return MR_OK;
    MR_TRY(mr_table_read(reader->path, &reader->table, error));
    if (reader->table.count > INT32_MAX)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: too many keys", reader->path);
    MR_TRY(read_header(reader, error));
    return read_items(reader, error);
}

mr_status mr_checkpoint_reader_open(const char *path, mr_checkpoint_reader **reader, mr_error *error)
{
    if (path == nullptr || reader == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_reader_open: %s is null",
                       path == nullptr ? "path" : "reader");
    *reader = nullptr;
    struct stat about;
    char latest[PATH_MAX];
    if (!mr_checkpoint_exists(path) && stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        MR_TRY(mr_latest_checkpoint(path, latest, sizeof latest, error));
        path = latest;
    }
    *reader = calloc(1, sizeof **reader);
    if (*reader == nullptr) return mr_fail_memory(error, sizeof **reader);
    mr_status status = open_index(*reader, path, error);
    if (status == MR_OK) return MR_OK;
    mr_checkpoint_reader_close(*reader);
    *reader = nullptr;
    return status;
}

void mr_checkpoint_reader_close(mr_checkpoint_reader *reader)
{
    if (reader == nullptr) return;
    for (int32_t i = 0; reader->shards != nullptr && i < reader->shard_count; i++) {
        if (reader->shards[i].is_open) close(reader->shards[i].descriptor);
        free(reader->shards[i].path);
    }
    free(reader->shards);
    free(reader->items);
    free(reader->path);
    free(reader->prefix);
    for (int32_t i = 0; i < reader->v1_count; i++) mr_table_deinit(&reader->v1[i]);
    free(reader->v1);
    mr_table_deinit(&reader->table);
    mr_arena_deinit(&reader->arena);
    free(reader);
}

/* ---- Lookup ---- */

int32_t mr_checkpoint_count(const mr_checkpoint_reader *reader)
{
    return reader == nullptr ? 0 : reader->count;
}

const char *mr_checkpoint_key(const mr_checkpoint_reader *reader, int32_t index, mr_dtype *dtype, mr_shape *shape)
{
    if (reader == nullptr || index < 0 || index >= reader->count) return nullptr;
    if (dtype != nullptr) *dtype = reader->items[index].dtype;
    if (shape != nullptr) *shape = reader->items[index].shape;
    return reader->items[index].key;
}

static const item *find(const mr_checkpoint_reader *reader, const char *key)
{
    int32_t low = 0, high = reader->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = strcmp(reader->items[middle].key, key);
        if (order == 0) return &reader->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return nullptr;
}

int32_t mr_checkpoint_shard_count(const mr_checkpoint_reader *reader)
{
    return reader->shard_count;
}

bool mr_checkpoint_has(const mr_checkpoint_reader *reader, const char *key)
{
    return reader != nullptr && key != nullptr && find(reader, key) != nullptr;
}

/* ---- Bytes ---- */

static bool is_newer(const struct stat *data, const char *index_path)
{
    struct stat index;
    if (stat(index_path, &index) != 0) return false;
    const struct timespec *a = &data->st_mtim, *b = &index.st_mtim;
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* A possible reason of data that does not fit the index. */
static const char *interruption(const shard *file)
{
    return file->is_newer ? "; the data file is newer than its index; perhaps a save over this checkpoint was "
                            "interrupted"
                          : "";
}

/* Opens the data file of an entry on first use, and checks that the entry's bytes are inside it. */
static mr_status open_shard(mr_checkpoint_reader *reader, const char *key, const Mr__BundleEntryProto *entry,
                            shard **result, mr_error *error)
{
    if (entry->shard_id < 0 || entry->shard_id >= reader->shard_count)
        return damaged(reader, key, "invalid data file number", error);
    shard *file = *result = &reader->shards[entry->shard_id];
    if (!file->is_open) {
        free(file->path);
        file->path = mr_checkpoint_data_path(reader->prefix, entry->shard_id, reader->shard_count);
        if (file->path == nullptr) return mr_fail_memory(error, strlen(reader->prefix));
        MR_TRY(mr_file_open_regular(file->path, &file->descriptor, error));
        file->is_open = true;
        struct stat about;
        file->size_bytes = fstat(file->descriptor, &about) == 0 && about.st_size > 0 ? (uint64_t)about.st_size : 0;
        file->is_newer = is_newer(&about, reader->path);
    }
    assert(file->is_open && file->path != nullptr);
    if (entry->offset < 0 || entry->size < 0 || (uint64_t)entry->offset > file->size_bytes ||
        (uint64_t)entry->size > file->size_bytes - (uint64_t)entry->offset)
        return mr_fail(error, MR_DATA_LOSS,
                       "%s: key %.200s: %" PRId64 " bytes at byte %" PRId64 " extend past the end of %s (%" PRIu64
                       " bytes)%s",
                       reader->path, key, entry->size, entry->offset, file->path, file->size_bytes, interruption(file));
    return MR_OK;
}

static mr_status read_bytes(const shard *file, const char *key, const Mr__BundleEntryProto *entry, char *target,
                            uint32_t *crc, mr_error *error)
{
    assert(file->is_open && entry->offset >= 0 && entry->size >= 0);
    size_t size_bytes = (size_t)entry->size;
    *crc = 0;
    for (size_t offset = 0; offset < size_bytes; offset += PIECE_BYTES) {
        size_t piece = size_bytes - offset < PIECE_BYTES ? size_bytes - offset : PIECE_BYTES, done = 0;
        MR_TRY(mr_file_read_at(file->descriptor, file->path, (uint64_t)entry->offset + offset, target + offset, piece,
                               &done, error));
        if (done != piece)
            return mr_fail(error, MR_DATA_LOSS, "%s: key %.200s: the file ends at byte %" PRIu64, file->path, key,
                           (uint64_t)entry->offset + offset + done);
        *crc = mr_crc32c(*crc, target + offset, piece);
    }
    return MR_OK;
}

static mr_status check(const shard *file, const char *key, const Mr__BundleEntryProto *entry, uint32_t crc,
                       mr_error *error)
{
    if (mr_crc32c_mask(crc) == entry->crc32c) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "%s: key %.200s: checksum is %08x, the index has %08x%s", file->path, key,
                   mr_crc32c_mask(crc), entry->crc32c, interruption(file));
}

static mr_status read_numbers(mr_checkpoint_reader *reader, const char *key, const Mr__BundleEntryProto *entry,
                              mr_dtype dtype, mr_shape shape, mr_tensor *value, mr_error *error)
{
    shard *file;
    uint32_t crc;
    uint64_t size_bytes;
    MR_TRY(open_shard(reader, key, entry, &file, error));
    if (__builtin_mul_overflow((uint64_t)mr_shape_count(shape), mr_dtype_size(dtype), &size_bytes) ||
        size_bytes != (uint64_t)entry->size)
        return damaged(reader, key, "the size does not match type and shape", error);
    MR_TRY(mr_tensor_init(value, dtype, shape, error));
    mr_status status = read_bytes(file, key, entry, value->data, &crc, error);
    if (status == MR_OK) status = check(file, key, entry, crc, error);
    if (status != MR_OK) mr_tensor_deinit(value);
    /* A bool in memory must be 0 or 1, whatever the file contains. */
    if (status == MR_OK && dtype == MR_BOOL) {
        uint8_t *bytes = value->data;
        for (uint64_t i = 0; i < size_bytes; i++) bytes[i] = bytes[i] != 0;
    }
    return status;
}

/* Finds count strings in the bytes of a string tensor. `crc` receives the checksum to compare with the entry's. */
static mr_status split_strings(const mr_checkpoint_reader *reader, const char *key, const char *bytes,
                               size_t size_bytes, mr_string *strings, int64_t count, uint32_t *crc, mr_error *error)
{
    size_t offset = 0;
    *crc = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t length = 0;
        uint8_t byte = 0x80;
        for (unsigned shift = 0; byte >= 0x80 && shift < 64 && offset < size_bytes; shift += 7) {
            byte = (uint8_t)bytes[offset++];
            length |= (uint64_t)(byte & 0x7f) << shift;
        }
        if (byte >= 0x80 || length > size_bytes) return damaged(reader, key, "invalid string length", error);
        uint32_t short_length = (uint32_t)length;
        *crc = length <= UINT32_MAX ? mr_crc32c(*crc, &short_length, sizeof short_length)
                                    : mr_crc32c(*crc, &length, sizeof length);
        strings[i].size_bytes = (size_t)length;
    }
    assert(offset <= size_bytes);
    uint32_t stored, computed = mr_crc32c_mask(*crc);
    if (size_bytes - offset < sizeof stored) return damaged(reader, key, "the string lengths are truncated", error);
    memcpy(&stored, bytes + offset, sizeof stored);
    if (stored != computed) return damaged(reader, key, "the checksum of the string lengths does not match", error);
    offset += sizeof stored;
    *crc = mr_crc32c(*crc, &stored, sizeof stored);
    *crc = mr_crc32c(*crc, bytes + offset, size_bytes - offset);
    for (int64_t i = 0; i < count; i++) {
        if (strings[i].size_bytes > size_bytes - offset)
            return damaged(reader, key, "a string extends past the end", error);
        strings[i].data = bytes + offset;
        offset += strings[i].size_bytes;
    }
    return offset == size_bytes ? MR_OK : damaged(reader, key, "unexpected bytes after the strings", error);
}

/* The elements and the file's bytes share one buffer. */
static mr_status read_strings(mr_checkpoint_reader *reader, const char *key, const Mr__BundleEntryProto *entry,
                              mr_shape shape, mr_tensor *value, mr_error *error)
{
    shard *file;
    uint32_t crc;
    int64_t count = mr_shape_count(shape);
    assert(count >= 0);
    MR_TRY(open_shard(reader, key, entry, &file, error));
    if (count > entry->size) return damaged(reader, key, "more strings than bytes", error);
    size_t head_bytes = (size_t)count * sizeof(mr_string);
    mr_buffer *buffer;
    MR_TRY(mr_buffer_new(head_bytes + (size_t)entry->size, &buffer, error));
    mr_string *strings = mr_buffer_data(buffer);
    char *bytes = (char *)strings + head_bytes;
    mr_status status = read_bytes(file, key, entry, bytes, &crc, error);
    if (status == MR_OK) status = split_strings(reader, key, bytes, (size_t)entry->size, strings, count, &crc, error);
    if (status == MR_OK) status = check(file, key, entry, crc, error);
    if (status == MR_OK)
        *value = (mr_tensor){.dtype = MR_STRING, .shape = shape, .buffer = buffer, .data = strings};
    else
        mr_buffer_unref(buffer);
    return status;
}

static mr_status read_entry(mr_checkpoint_reader *reader, const char *key, const Mr__BundleEntryProto *entry,
                            mr_dtype dtype, mr_shape shape, mr_tensor *value, mr_error *error)
{
    if (dtype == MR_STRING) return read_strings(reader, key, entry, shape, value, error);
    return read_numbers(reader, key, entry, dtype, shape, value, error);
}

/* ---- Slices ---- */

static mr_status slice_of(const mr_checkpoint_reader *reader, const item *parent, const Mr__TensorSliceProto *message,
                          mr_checkpoint_slice *slice, mr_shape *shape, mr_error *error)
{
    if (message->n_extent != (size_t)parent->shape.rank)
        return damaged(reader, parent->key, "the rank of a slice differs from the tensor's", error);
    slice->rank = parent->shape.rank;
    for (int32_t i = 0; i < slice->rank; i++) {
        const Mr__TensorSliceProto__Extent *extent = message->extent[i];
        bool has_length = extent->has_length_case == MR__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
        slice->starts[i] = extent->start;
        slice->lengths[i] = has_length ? extent->length : -1;
    }
    if (mr_checkpoint_slice_shape(slice, parent->shape, shape, error) != MR_OK)
        return mr_fail_prefix(error, MR_DATA_LOSS, "%s: key %.200s", reader->path, parent->key);
    return MR_OK;
}

static bool overlap(const mr_checkpoint_slice *a, const mr_checkpoint_slice *b)
{
    for (int32_t i = 0; i < a->rank; i++) {
        bool before = a->lengths[i] >= 0 && a->starts[i] + a->lengths[i] <= b->starts[i];
        bool after = b->lengths[i] >= 0 && b->starts[i] + b->lengths[i] <= a->starts[i];
        if (before || after) return false;
    }
    return true;
}

/* Checks that the slices cover each element of the tensor exactly once. */
static mr_status check_slices(mr_checkpoint_reader *reader, const item *parent, mr_checkpoint_slice *slices,
                              mr_shape *shapes, mr_error *error)
{
    int64_t covered = 0, count = mr_shape_count(parent->shape);
    for (size_t i = 0; i < parent->at->n_slices; i++) {
        MR_TRY(slice_of(reader, parent, parent->at->slices[i], &slices[i], &shapes[i], error));
        int64_t own = mr_shape_count(shapes[i]);
        if (own > count - covered) return damaged(reader, parent->key, "the slices overlap", error);
        covered += own;
        assert(own >= 0 && covered <= count);
        for (size_t j = 0; j < i; j++)
            if (own > 0 && mr_shape_count(shapes[j]) > 0 && overlap(&slices[i], &slices[j]))
                return damaged(reader, parent->key, "the slices overlap", error);
    }
    return covered == count ? MR_OK : damaged(reader, parent->key, "the slices do not cover the tensor", error);
}

static mr_status read_v1_part(mr_checkpoint_reader *reader, const item *parent, mr_string key, mr_shape shape,
                              mr_arena *arena, mr_tensor *part, mr_error *error)
{
    for (int32_t i = 0; i < reader->v1_count; i++) {
        const mr_table_entry *found = mr_table_find(&reader->v1[i], key);
        if (found == nullptr) continue;
        mr_status status = mr_checkpoint_v1_decode(found->value, parent->dtype, shape, arena, part, error);
        return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s: key %.200s", reader->path, parent->key);
    }
    return damaged(reader, parent->key, "a slice is missing", error);
}

static mr_status read_part(mr_checkpoint_reader *reader, const item *parent, const mr_checkpoint_slice *slice,
                           mr_shape shape, mr_arena *arena, mr_tensor *part, mr_error *error)
{
    mr_string key;
    Mr__BundleEntryProto *entry;
    MR_TRY(mr_checkpoint_slice_key(parent->key, slice, arena, &key, error));
    if (reader->v1 != nullptr) return read_v1_part(reader, parent, key, shape, arena, part, error);
    const mr_table_entry *found = mr_table_find(&reader->table, key);
    if (found == nullptr) return damaged(reader, parent->key, "a slice is missing", error);
    mr_status status = mr_proto_unpack_as(bundle_entry_proto, found->value, arena, &entry, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "%s: key %.200s: a slice", reader->path, parent->key);
    item own = {.key = parent->key, .at = entry};
    MR_TRY(read_shape(reader, &own, error));
    if (entry->dtype != (int32_t)parent->dtype || !mr_shape_equal(own.shape, shape) || entry->n_slices > 0)
        return damaged(reader, parent->key, "the entry of a slice has a different type or shape", error);
    return read_entry(reader, parent->key, entry, parent->dtype, shape, part, error);
}

/* Reads all slices. parts has an element for each slice, initially empty; the caller releases them. */
static mr_status read_parts(mr_checkpoint_reader *reader, const item *parent, mr_arena *arena, mr_tensor *parts,
                            mr_tensor *value, mr_error *error)
{
    size_t count = parent->at->n_slices;
    mr_checkpoint_slice *slices = MR_ARENA_NEW(arena, mr_checkpoint_slice, count);
    mr_shape *shapes = MR_ARENA_NEW(arena, mr_shape, count);
    if (slices == nullptr || shapes == nullptr) return mr_fail_memory(error, count * sizeof *slices);
    MR_TRY(check_slices(reader, parent, slices, shapes, error));
    for (size_t i = 0; i < count; i++)
        MR_TRY(read_part(reader, parent, &slices[i], shapes[i], arena, &parts[i], error));
    assert(mr_dtype_size(parent->dtype) > 0);
    mr_tensor full;
    MR_TRY(mr_tensor_init(&full, parent->dtype, parent->shape, error));
    for (size_t i = 0; i < count; i++)
        mr_checkpoint_slice_copy(&slices[i], parent->shape, mr_dtype_size(parent->dtype), full.data, parts[i].data,
                                 true);
    if (parent->dtype != MR_STRING) {
        *value = full;
        return MR_OK;
    }
    /* The elements borrow the parts' bytes, so copy them. */
    mr_status status = mr_tensor_init_strings(value, parent->shape, full.data, error);
    mr_tensor_deinit(&full);
    return status;
}

static mr_status read_slices(mr_checkpoint_reader *reader, const item *parent, mr_tensor *value, mr_error *error)
{
    size_t count = parent->at->n_slices;
    if (count > SLICES_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: key %.200s: more than %zu slices", reader->path, parent->key,
                       SLICES_MAX);
    mr_arena arena = {0};
    mr_tensor *parts = calloc(count, sizeof *parts);
    if (parts == nullptr) return mr_fail_memory(error, count * sizeof *parts);
    mr_status status = read_parts(reader, parent, &arena, parts, value, error);
    for (size_t i = 0; i < count; i++) mr_tensor_deinit(&parts[i]);
    free(parts);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Read ---- */

static mr_status find_readable(const mr_checkpoint_reader *reader, const char *key, const item **found, mr_error *error)
{
    *found = find(reader, key);
    if (*found == nullptr) return mr_fail(error, MR_NOT_FOUND, "%s: key %.200s not found", reader->path, key);
    if (mr_dtype_size((*found)->dtype) == 0)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: key %.200s has type %s (%d), which is not supported", reader->path,
                       key, mr_dtype_name((*found)->dtype), (*found)->at->dtype);
    if ((*found)->shape.rank < 0)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: key %.200s has more than %d dimensions", reader->path, key,
                       MR_RANK_MAX);
    return MR_OK;
}

mr_status mr_checkpoint_read(mr_checkpoint_reader *reader, const char *key, mr_tensor *value, mr_error *error)
{
    const item *found;
    if (reader == nullptr || key == nullptr || value == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_checkpoint_read: %s is null",
                       reader == nullptr ? "reader"
                       : key == nullptr  ? "key"
                                         : "value");
    *value = (mr_tensor){0};
    MR_TRY(find_readable(reader, key, &found, error));
    if (found->at->n_slices > 0) return read_slices(reader, found, value, error);
    return read_entry(reader, key, found->at, found->dtype, found->shape, value, error);
}

/* Copies the slices that are stored. */
static mr_status copy_slices(mr_checkpoint_reader *reader, const item *from, mr_checkpoint_writer *writer,
                             mr_error *error)
{
    mr_status status = MR_OK;
    for (size_t i = 0; status == MR_OK && i < from->at->n_slices; i++) {
        mr_arena arena = {0};
        mr_checkpoint_slice slice;
        mr_shape shape;
        mr_tensor part = {0};
        status = slice_of(reader, from, from->at->slices[i], &slice, &shape, error);
        if (status == MR_OK) status = read_part(reader, from, &slice, shape, &arena, &part, error);
        if (status == MR_OK) status = mr_checkpoint_write_slice(writer, from->key, from->shape, &slice, &part, error);
        mr_tensor_deinit(&part);
        mr_arena_deinit(&arena);
    }
    return status;
}

mr_status mr_checkpoint_copy(mr_checkpoint_reader *reader, const char *key, mr_checkpoint_writer *writer,
                             mr_error *error)
{
    const item *found;
    MR_TRY(find_readable(reader, key, &found, error));
    if (found->at->n_slices > 0 && reader->v1 == nullptr) return copy_slices(reader, found, writer, error);
    mr_tensor value;
    MR_TRY(mr_checkpoint_read(reader, key, &value, error));
    mr_status status = mr_checkpoint_write(writer, key, &value, error);
    mr_tensor_deinit(&value);
    return status;
}

mr_status mr_checkpoint_read_slice(mr_checkpoint_reader *reader, const char *key, const mr_shape *full,
                                   const mr_checkpoint_slice *slice, mr_tensor *value, mr_error *error)
{
    const item *found;
    mr_shape shape;
    *value = (mr_tensor){0};
    MR_TRY(find_readable(reader, key, &found, error));
    if (full && !mr_shape_equal(*full, found->shape)) {
        char wanted[MR_SHAPE_TEXT_SIZE], stored[MR_SHAPE_TEXT_SIZE];
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "tensor_name = %.200s; shape in shape_and_slice spec %s does not match the shape stored in "
                       "checkpoint: %s",
                       key, mr_shape_text(*full, wanted, sizeof wanted),
                       mr_shape_text(found->shape, stored, sizeof stored));
    }
    if (mr_checkpoint_slice_shape(slice, found->shape, &shape, error) != MR_OK)
        return mr_fail_prefix(error, MR_INVALID_ARGUMENT, "%s: key %.200s", reader->path, key);
    mr_tensor complete, part;
    MR_TRY(mr_checkpoint_read(reader, key, &complete, error));
    assert(complete.dtype == found->dtype && mr_shape_equal(complete.shape, found->shape));
    mr_status status = mr_tensor_init(&part, found->dtype, shape, error);
    if (status == MR_OK) {
        mr_checkpoint_slice_copy(slice, found->shape, mr_dtype_size(found->dtype), complete.data, part.data, false);
        if (found->dtype == MR_STRING) {
            status = mr_tensor_init_strings(value, shape, part.data, error);
            mr_tensor_deinit(&part);
        } else {
            *value = part;
        }
    }
    mr_tensor_deinit(&complete);
    return status;
}
