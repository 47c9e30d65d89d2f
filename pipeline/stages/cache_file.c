/* Cache files: reading and writing (cache_file.h). */
#include "pipeline/stages/cache_file.h"

#include "records/io/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "millrace cache 2", end_magic[] = "millrace cache end";
/* The first and the last record. */
constexpr uint64_t FRAME_RECORDS = 2;

void mr_cache_file_close(mr_cache_file *cache)
{
    mr_record_file_close(cache->file);
    cache->file = nullptr;
    cache->count = 0;
}

void mr_cache_file_deinit(mr_cache_file *cache)
{
    mr_cache_file_close(cache);
    mr_cache_file_discard(cache);
    mr_state_deinit(&cache->record);
    free(cache->bytes);
    *cache = (mr_cache_file){0};
}

size_t mr_cache_file_bytes(const mr_cache_file *cache)
{
    return cache->record.capacity_bytes + cache->capacity_bytes;
}

/* ---- Read ---- */

static mr_status read_record(mr_cache_file *cache, uint64_t number, mr_state_reader *reader, mr_error *error)
{
    assert(cache->file != nullptr && number < mr_record_file_count(cache->file));
    uint64_t data_bytes = mr_record_file_record_size(cache->file, number);
    if (data_bytes > MR_RECORD_SIZE_MAX)
        return mr_fail(error, MR_DATA_LOSS, "%s: record %llu is too long", cache->path, (unsigned long long)number);
    size_t size_bytes = (size_t)data_bytes + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
    if (size_bytes > cache->capacity_bytes) {
        free(cache->bytes);
        cache->capacity_bytes = 0;
        cache->bytes = malloc(size_bytes + size_bytes / 2);
        if (cache->bytes == nullptr) return mr_fail_memory(error, size_bytes);
        cache->capacity_bytes = size_bytes + size_bytes / 2;
    }
    mr_string record = {0};
    MR_TRY(mr_record_file_read(cache->file, number, cache->bytes, &record, error));
    const unsigned char *bytes = (const unsigned char *)record.data;
    *reader = (mr_state_reader){bytes, bytes + record.size_bytes};
    return MR_OK;
}

static bool starts_with(mr_state_reader *reader, const char *text, size_t size_bytes)
{
    const void *bytes = nullptr;
    size_t found_bytes = 0;
    return mr_state_get_bytes(reader, &bytes, &found_bytes, nullptr) == MR_OK && found_bytes == size_bytes &&
           memcmp(bytes, text, size_bytes) == 0;
}

/* Checks the first and last records. MR_DATA_LOSS: the file is incomplete, or belongs to another input. */
static mr_status check(mr_cache_file *cache, mr_error *error)
{
    mr_state_reader reader = {0};
    uint64_t digest = 0, components = 0, count = 0, records = mr_record_file_count(cache->file);
    if (records < FRAME_RECORDS) return mr_fail(error, MR_DATA_LOSS, "%s: the cache is truncated", cache->path);
    MR_TRY(read_record(cache, 0, &reader, error));
    if (!starts_with(&reader, magic, sizeof magic))
        return mr_fail(error, MR_DATA_LOSS, "%s: not a cache of this version", cache->path);
    mr_status status = mr_state_get(&reader, &digest, nullptr);
    if (status == MR_OK) status = mr_state_get(&reader, &components, nullptr);
    if (status != MR_OK || digest != cache->digest || components != (uint64_t)cache->components)
        return mr_fail(error, MR_DATA_LOSS, "%s: the cache belongs to another pipeline or to other data", cache->path);
    MR_TRY(read_record(cache, records - 1, &reader, error));
    if (!starts_with(&reader, end_magic, sizeof end_magic) || mr_state_get(&reader, &count, nullptr) != MR_OK ||
        count != records - FRAME_RECORDS)
        return mr_fail(error, MR_DATA_LOSS, "%s: the cache is truncated", cache->path);
    cache->count = count;
    return MR_OK;
}

/* Whether the file may be replaced: it is empty, or starts like a cache of any version, with up to half of the magic
 * damaged. The magic follows the record's header and its own length. */
static bool looks_like_cache(const char *path)
{
    constexpr size_t BEFORE = MR_RECORD_HEADER_BYTES + 1;
    char bytes[BEFORE + sizeof magic] = {0};
    int descriptor = -1;
    size_t done = 0, equal = 0;
    if (mr_file_open(path, &descriptor, nullptr) != MR_OK) return false;
    mr_status status = mr_file_read_at(descriptor, path, 0, bytes, sizeof bytes, &done, nullptr);
    (void)close(descriptor);
    for (size_t i = 0; i < sizeof magic && BEFORE + i < done; i++) equal += bytes[BEFORE + i] == magic[i];
    return status == MR_OK && (done == 0 || equal > sizeof magic / 2);
}

mr_status mr_cache_file_open(mr_cache_file *cache, mr_error *error)
{
    assert(cache->file == nullptr);
    struct stat about;
    mr_error reason = {0};
    if (!mr_file_exists(cache->path)) return mr_fail(error, MR_NOT_FOUND, "%s: no such cache", cache->path);
    mr_status status = mr_record_file_open(cache->path, &cache->file, &reason);
    if (status == MR_OK) status = check(cache, &reason);
    if (status == MR_OK) return MR_OK;
    mr_cache_file_close(cache);
    /* Another writer has renamed its file in the meantime. */
    if (status == MR_NOT_FOUND) status = MR_ABORTED;
    bool is_unreadable = status == MR_DATA_LOSS || status == MR_UNIMPLEMENTED || status == MR_INVALID_ARGUMENT;
    if (!is_unreadable) return mr_fail(error, status, "%s", reason.message);
    bool is_file = stat(cache->path, &about) == 0 && S_ISREG(about.st_mode);
    if (is_file && (cache->is_ours || looks_like_cache(cache->path)))
        return mr_fail(error, MR_DATA_LOSS, "%s", reason.message);
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: not a cache of a pipeline; move the file or use another path",
                   cache->path);
}

mr_status mr_cache_file_read(mr_cache_file *cache, uint64_t number, const mr_element_spec *spec, mr_payload **payload,
                             mr_error *error)
{
    assert(spec->count == cache->components);
    mr_state_reader reader = {0};
    if (number >= cache->count) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    MR_TRY(read_record(cache, number + 1, &reader, error));
    mr_payload *read = mr_payload_new(spec->count);
    if (read == nullptr) return mr_fail_memory(error, sizeof *read);
    mr_status status = MR_OK;
    for (int32_t i = 0; i < spec->count && status == MR_OK; i++) {
        mr_tensor *tensor = &read->tensors[i];
        status = mr_state_get_tensor(&reader, tensor, error);
        bool fits = tensor->dtype == spec->dtypes[i] && mr_shape_compatible(tensor->shape, spec->shapes[i]);
        if (status == MR_INVALID_ARGUMENT || (status == MR_OK && !fits))
            status = mr_fail(error, MR_DATA_LOSS, "%s: element %llu does not have the pipeline's structure",
                             cache->path, (unsigned long long)number);
    }
    mr_item item = {.payload = read};
    if (status == MR_OK)
        *payload = read;
    else
        mr_item_deinit(&item);
    return status;
}

/* ---- Write ---- */

static mr_status append(mr_cache_file *cache, mr_error *error)
{
    assert(cache->writer != nullptr);
    return mr_record_writer_append(cache->writer, cache->record.bytes, cache->record.size_bytes, error);
}

static mr_status append_head(mr_cache_file *cache, mr_error *error)
{
    mr_state_clear(&cache->record);
    MR_TRY(mr_state_put_bytes(&cache->record, magic, sizeof magic, error));
    MR_TRY(mr_state_put(&cache->record, cache->digest, error));
    MR_TRY(mr_state_put(&cache->record, (uint64_t)cache->components, error));
    return append(cache, error);
}

mr_status mr_cache_file_begin(mr_cache_file *cache, bool gzip, mr_error *error)
{
    assert(cache->writer == nullptr && cache->file == nullptr);
    mr_record_writer_options options = {.size = sizeof options, .index = true, .atomic = true};
    if (gzip) {
        options.compression = MR_COMPRESSION_GZIP;
        options.seek_bytes = MR_RECORD_SEEK_BYTES;
    }
    MR_TRY(mr_record_writer_open(cache->path, &options, &cache->writer, error));
    mr_status status = append_head(cache, error);
    if (status != MR_OK) mr_cache_file_discard(cache);
    return status;
}

mr_status mr_cache_file_append(mr_cache_file *cache, const mr_payload *payload, mr_error *error)
{
    assert(payload->count == cache->components);
    mr_state_clear(&cache->record);
    for (int32_t i = 0; i < payload->count; i++)
        MR_TRY(mr_state_put_tensor(&cache->record, &payload->tensors[i], error));
    return append(cache, error);
}

mr_status mr_cache_file_finish(mr_cache_file *cache, mr_error *error)
{
    assert(cache->writer != nullptr && mr_record_writer_count(cache->writer) >= 1);
    mr_state_clear(&cache->record);
    mr_status status = mr_state_put_bytes(&cache->record, end_magic, sizeof end_magic, error);
    if (status == MR_OK) status = mr_state_put(&cache->record, mr_record_writer_count(cache->writer) - 1, error);
    if (status == MR_OK) status = append(cache, error);
    mr_record_writer *writer = cache->writer;
    cache->writer = nullptr;
    assert(cache->file == nullptr);
    if (status == MR_OK) return mr_record_writer_close(writer, error);
    mr_record_writer_discard(writer);
    return status;
}

void mr_cache_file_discard(mr_cache_file *cache)
{
    mr_record_writer_discard(cache->writer);
    cache->writer = nullptr;
}
