/* Digests of datasets and of their sources (digest.h). */
#include "pipeline/digest.h"

#include "pipeline/pipeline.h"

#include <assert.h>
#include <millrace/record.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The finalizer of SplitMix64: every input bit affects every output bit. */
uint64_t mr_digest(uint64_t digest, uint64_t value)
{
    uint64_t x = digest * 0x9e3779b97f4a7c15u + value + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t mr_digest_bytes(uint64_t digest, const void *bytes, size_t size_bytes)
{
    const unsigned char *from = bytes;
    digest = mr_digest(digest, size_bytes);
    for (size_t i = 0; i < size_bytes; i++) digest = (digest ^ from[i]) * 0x100000001b3u;
    return mr_digest(digest, size_bytes);
}

uint64_t mr_digest_float(uint64_t digest, float number)
{
    return mr_digest_bytes(digest, &number, sizeof number);
}

uint64_t mr_digest_text(uint64_t digest, const char *text)
{
    return text == nullptr ? mr_digest(digest, UINT64_MAX) : mr_digest_bytes(digest, text, strlen(text));
}

uint64_t mr_digest_shape(uint64_t digest, mr_shape shape)
{
    assert(shape.rank <= MR_RANK_MAX);
    digest = mr_digest(digest, (uint64_t)shape.rank);
    for (int32_t d = 0; d < shape.rank; d++) digest = mr_digest(digest, (uint64_t)shape.dims[d]);
    return digest;
}

uint64_t mr_digest_tensor(uint64_t digest, const mr_tensor *tensor)
{
    digest = mr_digest_shape(mr_digest(digest, (uint64_t)tensor->dtype), tensor->shape);
    int64_t count = mr_tensor_count(tensor);
    if (count <= 0 || tensor->data == nullptr) return digest;
    if (tensor->dtype != MR_STRING) return mr_digest(digest, mr_crc32c(0, tensor->data, mr_tensor_size_bytes(tensor)));
    const mr_string *strings = mr_tensor_strings(tensor);
    for (int64_t i = 0; i < count; i++) {
        digest = mr_digest(digest, strings[i].size_bytes);
        digest = mr_digest(digest, mr_crc32c(0, strings[i].data, strings[i].size_bytes));
    }
    return digest;
}

static uint64_t digest_feature(uint64_t digest, const mr_feature *f)
{
    digest = mr_digest(mr_digest_text(digest, f->name), (uint64_t)f->dtype);
    digest = mr_digest_shape(mr_digest(digest, (uint64_t)f->form), f->shape);
    digest = mr_digest(digest, f->default_value != nullptr);
    if (f->default_value != nullptr) digest = mr_digest_tensor(digest, f->default_value);
    digest = mr_digest_text(digest, f->value_key);
    for (int32_t d = 0; f->index_keys != nullptr && d < f->shape.rank; d++)
        digest = mr_digest_text(digest, f->index_keys[d]);
    digest = mr_digest(digest, (uint64_t)f->partition_count);
    for (int32_t i = 0; i < f->partition_count; i++) {
        digest = mr_digest_text(mr_digest(digest, (uint64_t)f->partitions[i].kind), f->partitions[i].key);
        digest = mr_digest(digest, (uint64_t)f->partitions[i].length);
    }
    digest = mr_digest(digest, f->splits_dtype == 0 ? MR_INT64 : (uint64_t)f->splits_dtype);
    return mr_digest(mr_digest(digest, f->already_sorted), f->allow_missing);
}

uint64_t mr_digest_features(uint64_t digest, const mr_feature *features, int32_t count)
{
    digest = mr_digest(digest, (uint64_t)count);
    for (int32_t i = 0; i < count; i++) digest = digest_feature(digest, &features[i]);
    return digest;
}

/* ---- Files ---- */

/* A file is read completely up to its share of TOTAL_BYTES, within these limits; of a larger file, blocks are read. */
constexpr size_t BLOCK_BYTES = (size_t)64 << 10, TOTAL_BYTES = (size_t)64 << 20;
constexpr size_t FILE_BYTES_MIN = 2 * BLOCK_BYTES, FILE_BYTES_MAX = 64 * BLOCK_BYTES;

/* Reads evenly spaced blocks, including the first and the last one. */
static mr_status digest_blocks(uint64_t *digest, const mr_input_file *file, uint64_t count, unsigned char *block,
                               mr_error *error)
{
    uint64_t size_bytes = mr_input_file_size(file);
    bool is_complete = count * BLOCK_BYTES >= size_bytes;
    uint64_t distance = is_complete ? BLOCK_BYTES : (size_bytes - BLOCK_BYTES) / (count - 1);
    for (uint64_t i = 0; i < count; i++) {
        size_t done = 0;
        uint64_t offset = !is_complete && i + 1 == count ? size_bytes - BLOCK_BYTES : i * distance;
        MR_TRY(mr_input_file_read(file, offset, block, BLOCK_BYTES, &done, error));
        *digest = mr_digest(*digest, mr_crc32c(0, block, done));
    }
    return MR_OK;
}

mr_status mr_digest_file(uint64_t *digest, const mr_input_file *file, size_t file_count, mr_error *error)
{
    assert(file_count > 0);
    size_t most_bytes = TOTAL_BYTES / file_count;
    if (most_bytes < FILE_BYTES_MIN) most_bytes = FILE_BYTES_MIN;
    if (most_bytes > FILE_BYTES_MAX) most_bytes = FILE_BYTES_MAX;
    uint64_t size_bytes = mr_input_file_size(file);
    uint64_t blocks = (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
    if (blocks > most_bytes / BLOCK_BYTES) blocks = most_bytes / BLOCK_BYTES;
    *digest = mr_digest(*digest, size_bytes);
    unsigned char *block = malloc(BLOCK_BYTES);
    if (block == nullptr) return mr_fail_memory(error, BLOCK_BYTES);
    mr_status status = digest_blocks(digest, file, blocks, block, error);
    free(block);
    return status;
}

mr_status mr_digest_paths(uint64_t *digest, const char *const *paths, int32_t count, mr_error *error)
{
    *digest = mr_digest(*digest, (uint64_t)count);
    for (int32_t i = 0; i < count; i++) {
        struct stat about;
        /* A pipe must not be opened here: closing it would end it for its writer. */
        bool is_readable = stat(paths[i], &about) != 0 || S_ISREG(about.st_mode);
        *digest = mr_digest(*digest, is_readable);
        if (!is_readable) continue;
        mr_input_file *file = nullptr;
        MR_TRY(mr_input_file_open(paths[i], false, &file, error));
        mr_status status = mr_digest_file(digest, file, (size_t)count, error);
        mr_input_file_close(file);
        MR_TRY(status);
    }
    return MR_OK;
}

/* ---- Datasets ---- */

/* Structure of the elements. With distribute, sizes that depend on the number of workers are left out. */
static uint64_t digest_spec(uint64_t digest, const mr_dataset *dataset)
{
    const mr_element_spec *spec = &dataset->spec;
    digest = mr_digest(digest, (uint64_t)spec->count);
    for (int32_t i = 0; i < spec->count; i++) {
        digest = mr_digest(digest, (uint64_t)spec->dtypes[i]);
        digest = dataset->share != 0 ? mr_digest(digest, (uint64_t)spec->shapes[i].rank)
                                     : mr_digest_shape(digest, spec->shapes[i]);
    }
    return digest;
}

/* Two concurrent calls compute the same value. 0 means not computed yet. */
static mr_status digest_content(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    *content = atomic_load_explicit(dataset->content, memory_order_relaxed);
    if (*content != 0) return MR_OK;
    MR_TRY(dataset->kind->digest_content(dataset, content, error));
    if (*content == 0) *content = 1;
    atomic_store_explicit(dataset->content, *content, memory_order_relaxed);
    return MR_OK;
}

/* Prefetch depth and destination do not affect elements, states or random numbers. */
mr_status mr_dataset_digest(const mr_dataset *dataset, uint64_t *digest, mr_error *error)
{
    *digest = 0;
    for (; dataset != nullptr; dataset = dataset->input) {
        const mr_dataset_kind *kind = dataset->kind;
        assert(dataset->failure == nullptr && dataset->spec.count > 0);
        if (kind->role == MR_ROLE_OPTIONS && dataset->version != 0) *digest = mr_digest(*digest, dataset->version);
        if (kind->role == MR_ROLE_PREFETCH || kind->role == MR_ROLE_OPTIONS || kind->role == MR_ROLE_TO_DEVICE)
            continue;
        *digest = digest_spec(mr_digest_text(*digest, kind->name), dataset);
        if (kind->digest != nullptr) *digest = mr_digest(*digest, kind->digest(dataset));
        if (dataset->function_settings != 0) *digest = mr_digest(*digest, dataset->function_settings);
        if (kind->digest_content != nullptr) {
            uint64_t content = 0;
            MR_TRY(digest_content(dataset, &content, error));
            *digest = mr_digest(*digest, content);
        }
        for (int32_t i = 0; i < dataset->more_count; i++) {
            uint64_t more = 0;
            MR_TRY(mr_dataset_digest(dataset->more[i], &more, error));
            *digest = mr_digest(*digest, more);
        }
    }
    return MR_OK;
}
