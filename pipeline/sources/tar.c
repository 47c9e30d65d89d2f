/* tar: webdataset samples. The headers of all tar files are read once, when the dataset is built; of each complete
 * sample, the locations of its parts are stored. Samples therefore have numbers, and can be shuffled without
 * reading. */
#include "pipeline/pipeline.h"
#include "records/io/input_file.h"

#include <assert.h>
#include <millrace/formats.h>
#include <millrace/record.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

constexpr uint64_t MEMBER_BYTES_MAX = (uint64_t)1 << 30;

/* One component of a sample. */
typedef struct part {
    uint64_t offset, size_bytes;
} part;

typedef struct sample {
    const char *key; /* in the arena */
    int32_t file;
} sample;

typedef struct tar_settings {
    mr_input_file **files; /* owned */
    int32_t file_count;
    char **extensions; /* "jpg;jpeg" … */
    int32_t extension_count;
    sample *samples; /* owned */
    part *parts;     /* owned; extension_count for each sample */
    uint64_t count, capacity;
} tar_settings;

static uint64_t tar_digest(const mr_dataset *dataset)
{
    const tar_settings *s = dataset->settings;
    uint64_t digest = mr_digest(7, (uint64_t)s->extension_count);
    for (int32_t i = 0; i < s->extension_count; i++) digest = mr_digest_text(digest, s->extensions[i]);
    return digest;
}

static mr_status tar_digest_content(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    const tar_settings *s = dataset->settings;
    *content = mr_digest(7, s->count);
    for (uint64_t i = 0; i < s->count; i++) {
        *content = mr_digest(mr_digest_text(*content, s->samples[i].key), (uint64_t)s->samples[i].file);
        const part *parts = &s->parts[i * (uint64_t)s->extension_count];
        for (int32_t p = 0; p < s->extension_count; p++)
            *content = mr_digest(mr_digest(*content, parts[p].offset), parts[p].size_bytes);
    }
    for (int32_t i = 0; i < s->file_count; i++)
        MR_TRY(mr_digest_file(content, s->files[i], (size_t)s->file_count, error));
    return MR_OK;
}

static void take_string(mr_value *value, const char *bytes, size_t size_bytes)
{
    value->dtype = MR_STRING;
    value->shape = MR_SCALAR;
    value->string = (mr_string){bytes, size_bytes};
    value->data = &value->string;
}

static mr_status tar_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    const tar_settings *s = dataset->settings;
    assert(number < s->count && s->samples[number].file < s->file_count);
    const sample *sample = &s->samples[number];
    const part *parts = &s->parts[number * (uint64_t)s->extension_count];
    const mr_input_file *file = s->files[sample->file];
    uint64_t size_bytes = 0;
    for (int32_t i = 0; i < s->extension_count; i++) size_bytes += parts[i].size_bytes;
    if (size_bytes > MEMBER_BYTES_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the sample is too large (%llu bytes)",
                       (unsigned long long)size_bytes);
    MR_TRY(mr_workspace_reserve(workspace, (size_t)size_bytes + 1, error));
    char *to = workspace->bytes;
    workspace->count = s->extension_count + 1;
    assert(workspace->count == dataset->spec.count && workspace->count <= MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < s->extension_count; i++) {
        size_t done = 0;
        MR_TRY(mr_input_file_read(file, parts[i].offset, to, (size_t)parts[i].size_bytes, &done, error));
        if (done != parts[i].size_bytes)
            return mr_fail(error, MR_DATA_LOSS, "%s: truncated while it was read", mr_input_file_name(file));
        take_string(&workspace->values[i], to, done);
        to += done;
    }
    take_string(&workspace->values[s->extension_count], sample->key, strlen(sample->key));
    return MR_OK;
}

static void tar_read_ahead(const mr_dataset *dataset, uint64_t number)
{
    const tar_settings *s = dataset->settings;
    assert(number < s->count);
    const part *parts = &s->parts[number * (uint64_t)s->extension_count];
    for (int32_t i = 0; i < s->extension_count; i++)
        mr_input_file_prefetch(s->files[s->samples[number].file], parts[i].offset, parts[i].size_bytes);
}

static void tar_describe(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    const tar_settings *s = dataset->settings;
    snprintf(text, size_bytes, "%s: %s", mr_input_file_name(s->files[s->samples[number].file]), s->samples[number].key);
}

static void tar_deinit(mr_dataset *dataset)
{
    tar_settings *s = dataset->settings;
    for (int32_t i = 0; i < s->file_count; i++) mr_input_file_close(s->files[i]);
    free(s->samples);
    free(s->parts);
}

static const mr_dataset_kind tar_kind = {.name = "tar",
                                         .role = MR_ROLE_SOURCE,
                                         .digest = tar_digest,
                                         .digest_content = tar_digest_content,
                                         .stage_size_bytes = sizeof(mr_stage),
                                         .functions = &mr_numbers_functions,
                                         .read = tar_read,
                                         .read_ahead = tar_read_ahead,
                                         .describe = tar_describe,
                                         .deinit = tar_deinit};

/* ---- Building samples from headers ---- */

/* The sample whose members are being collected. */
typedef struct gathering {
    char *key;        /* owned; null: none yet */
    uint32_t archive; /* in which the key was found: the same key in another archive is another sample */
    part parts[MR_COMPONENTS_MAX];
    int32_t ranks[MR_COMPONENTS_MAX]; /* which spelling of an extension was found; −1: none */
} gathering;

/* Index of the extension in "jpg;jpeg;png"; −1: not found. */
static int32_t spelling_of(const char *spellings, const char *extension)
{
    size_t length = strlen(extension);
    for (int32_t rank = 0;; rank++) {
        size_t span = strcspn(spellings, ";");
        if (span == length && strncasecmp(spellings, extension, span) == 0) return rank;
        if (spellings[span] == '\0') return -1;
        spellings += span + 1;
    }
}

static mr_status finish(mr_dataset *dataset, gathering *g, mr_error *error)
{
    tar_settings *s = dataset->settings;
    bool is_complete = g->key != nullptr;
    for (int32_t i = 0; i < s->extension_count; i++) is_complete &= g->ranks[i] >= 0;
    if (is_complete) {
        size_t extensions = (size_t)s->extension_count;
        if (s->count == s->capacity) {
            uint64_t capacity = 2 * s->capacity + 64;
            sample *samples = realloc(s->samples, capacity * sizeof *samples);
            if (samples != nullptr) s->samples = samples;
            part *parts = realloc(s->parts, capacity * extensions * sizeof *parts);
            if (parts != nullptr) s->parts = parts;
            if (samples == nullptr || parts == nullptr) return mr_fail_memory(error, capacity * sizeof *samples);
            s->capacity = capacity;
        }
        const char *key = mr_arena_strdup(&dataset->arena, g->key);
        if (key == nullptr) return mr_fail_memory(error, strlen(g->key));
        assert(s->count < s->capacity && s->file_count > 0);
        s->samples[s->count] = (sample){key, s->file_count - 1};
        memcpy(&s->parts[s->count++ * extensions], g->parts, extensions * sizeof(part));
    }
    free(g->key);
    g->key = nullptr;
    for (int32_t i = 0; i < s->extension_count; i++) g->ranks[i] = -1;
    return MR_OK;
}

static mr_status take_member(mr_dataset *dataset, gathering *g, const mr_tar_member *member, mr_error *error)
{
    tar_settings *s = dataset->settings;
    const char *slash = strrchr(member->name, '/');
    const char *base = slash == nullptr ? member->name : slash + 1, *dot = strchr(base, '.');
    if (member->kind != MR_TAR_FILE || dot == nullptr) return MR_OK;
    size_t length = (size_t)(dot - member->name);
    bool is_same = g->key != nullptr && g->archive == member->archive && strlen(g->key) == length &&
                   memcmp(g->key, member->name, length) == 0;
    if (!is_same) {
        MR_TRY(finish(dataset, g, error));
        g->archive = member->archive;
        g->key = strndup(member->name, length);
        if (g->key == nullptr) return mr_fail_memory(error, length);
    }
    for (int32_t i = 0; i < s->extension_count; i++) {
        int32_t rank = spelling_of(s->extensions[i], dot + 1);
        if (rank < 0 || (g->ranks[i] >= 0 && g->ranks[i] <= rank)) continue;
        assert(g->key != nullptr && rank >= 0);
        g->ranks[i] = rank;
        g->parts[i] = (part){member->offset, member->size_bytes};
    }
    return MR_OK;
}

static mr_status add_tar(mr_dataset *dataset, const char *path, mr_error *error)
{
    tar_settings *s = dataset->settings;
    mr_input_file *file = nullptr;
    mr_tar_reader *reader = nullptr;
    mr_tar_member member;
    gathering g = {0};
    MR_TRY(mr_input_file_open(path, true, &file, error));
    s->files[s->file_count++] = file;
    for (int32_t i = 0; i < s->extension_count; i++) g.ranks[i] = -1;
    mr_status status = mr_tar_reader_new(file, 0, &reader, error);
    while (status == MR_OK && (status = mr_tar_reader_next(reader, &member, error)) == MR_OK)
        status = take_member(dataset, &g, &member, error);
    if (status == MR_OUT_OF_RANGE) status = finish(dataset, &g, error);
    free(g.key);
    mr_tar_reader_free(reader);
    return status;
}

mr_dataset *mr_dataset_tar(const char *pattern, const char *const *extensions, int32_t count)
{
    mr_dataset *dataset = mr_dataset_new(&tar_kind, nullptr, sizeof(tar_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    tar_settings *s = dataset->settings;
    char **paths = nullptr;
    int32_t path_count = 0;
    mr_error error = {0};
    if (count < 1 || count >= MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "tar: %d extensions, expected 1 to %d", count,
                               MR_COMPONENTS_MAX - 1);
    if (mr_dataset_failed(mr_dataset_require(dataset, extensions != nullptr, "extensions"))) return dataset;
    s->extensions = MR_ARENA_NEW(&dataset->arena, char *, (size_t)count);
    for (int32_t i = 0; s->extensions != nullptr && i < count; i++) {
        if (mr_dataset_failed(mr_dataset_require(dataset, extensions[i] != nullptr, "an extension"))) return dataset;
        s->extensions[i] = mr_arena_strdup(&dataset->arena, extensions[i]);
        if (s->extensions[i] == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "tar: no memory");
        dataset->spec.names[i] = s->extensions[i];
        dataset->spec.dtypes[i] = MR_STRING;
        dataset->spec.shapes[i] = MR_SCALAR;
    }
    dataset->spec.names[count] = "__key__";
    dataset->spec.dtypes[count] = MR_STRING;
    dataset->spec.shapes[count] = MR_SCALAR;
    dataset->spec.count = count + 1;
    dataset->is_heavy = true;
    mr_status status = mr_paths_match(pattern, &paths, &path_count, &error);
    if (status == MR_OK) {
        s->files = MR_ARENA_NEW(&dataset->arena, mr_input_file *, (size_t)path_count);
        if (s->files == nullptr || s->extensions == nullptr) status = mr_fail_memory(&error, (size_t)path_count * 8);
    }
    s->extension_count = count;
    for (int32_t i = 0; i < path_count && status == MR_OK; i++) status = add_tar(dataset, paths[i], &error);
    mr_paths_free(paths, path_count);
    dataset->count = (int64_t)s->count;
    return status == MR_OK ? dataset : mr_dataset_fail(dataset, status, "tar: %s", error.message);
}
