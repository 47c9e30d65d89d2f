/* records: the serialized records of TFRecord files. If all files have an index, or can be scanned, they form a source
 * with numbers, counted across the files. A record of a compressed file can only be reached through those before it: if
 * there is such a file, all files are read as one stream. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <millrace/record.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct records_settings {
    int32_t count;
    const char **paths;
    mr_record_file **files; /* null for a stream */
    uint64_t *firsts;       /* count + 1: number of each file's first record */
    bool leaves_damaged;    /* a stream that continues with the next file after an error */
} records_settings;

/* Hashes the offset of each record: distinguishes files that differ only between the blocks that are read. */
static mr_status records_digest(const mr_dataset *dataset, uint64_t *content, mr_error *error)
{
    const records_settings *s = dataset->settings;
    uint64_t digest = 3;
    for (int32_t i = 0; s->files != nullptr && i < s->count; i++) {
        uint64_t count = mr_record_file_count(s->files[i]);
        digest = mr_digest(digest, count);
        for (uint64_t k = 0; k < count; k++) digest = mr_digest(digest, mr_record_file_record_size(s->files[i], k));
    }
    *content = digest;
    return mr_digest_paths(content, s->paths, s->count, error);
}

/* Index of the file that contains a record: the last one whose first record is not after it. */
static int32_t file_of(const records_settings *s, uint64_t number)
{
    int32_t low = 0, high = s->count;
    assert(s->files != nullptr && s->count > 0 && number < s->firsts[s->count]);
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (s->firsts[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    assert(s->firsts[low] <= number && number < s->firsts[low + 1]);
    return low;
}

static mr_status records_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    const records_settings *s = dataset->settings;
    int32_t file = file_of(s, number);
    uint64_t local = number - s->firsts[file];
    assert(local < mr_record_file_count(s->files[file]));
    mr_value *value = &workspace->values[0];
    workspace->count = 1;
    value->dtype = MR_STRING;
    value->shape = MR_SCALAR;
    value->data = &value->string;
    uint64_t size_bytes = mr_record_file_record_size(s->files[file], local);
    if (size_bytes > MR_RECORD_SIZE_MAX)
        return mr_fail(error, MR_DATA_LOSS, "%s: record %llu: %llu bytes exceed the maximum size of a record",
                       s->paths[file], (unsigned long long)local, (unsigned long long)size_bytes);
    MR_TRY(
        mr_workspace_reserve(workspace, (size_t)size_bytes + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES, error));
    return mr_record_file_read(s->files[file], local, workspace->bytes, &value->string, error);
}

static void records_read_ahead(const mr_dataset *dataset, uint64_t number)
{
    const records_settings *s = dataset->settings;
    assert(s->files != nullptr);
    int32_t file = file_of(s, number);
    mr_record_file_prefetch(s->files[file], number - s->firsts[file]);
}

static void records_describe(const mr_dataset *dataset, uint64_t number, char *text, size_t size_bytes)
{
    const records_settings *s = dataset->settings;
    if (s->files == nullptr) {
        snprintf(text, size_bytes, "record %llu of the stream", (unsigned long long)number);
        return;
    }
    int32_t file = file_of(s, number);
    snprintf(text, size_bytes, "%s: record %llu", s->paths[file], (unsigned long long)(number - s->firsts[file]));
}

static void records_deinit(mr_dataset *dataset)
{
    records_settings *s = dataset->settings;
    for (int32_t i = 0; s->files != nullptr && i < s->count; i++) mr_record_file_close(s->files[i]);
}

/* ---- The stage: numbers, or a stream ---- */

typedef struct records_stage {
    mr_stage stage;
    mr_record_reader *reader; /* of file; null between files */
    int32_t file;
} records_stage;

static mr_status records_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    records_stage *self = (records_stage *)stage;
    mr_record_reader_close(self->reader);
    self->reader = nullptr;
    self->file = 0;
    return mr_stage_begin_simple(stage, iteration, error);
}

static mr_status stream_next(records_stage *self, mr_item *item, mr_error *error)
{
    const records_settings *s = self->stage.dataset->settings;
    mr_string record = {0};
    assert(s->files == nullptr && self->file >= 0 && self->file <= s->count);
    for (;;) {
        if (self->file >= s->count) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
        if (self->reader == nullptr) MR_TRY(mr_record_reader_open(s->paths[self->file], nullptr, &self->reader, error));
        mr_status status = mr_record_reader_next(self->reader, &record, error);
        if (status == MR_OK) break;
        if (status != MR_OUT_OF_RANGE && !s->leaves_damaged) return status;
        mr_record_reader_close(self->reader);
        self->reader = nullptr;
        self->file++;
        if (status == MR_OUT_OF_RANGE) continue;
        self->stage.position++; /* the error takes the place of an element */
        return status;
    }
    mr_payload *payload = mr_payload_new(1);
    if (payload == nullptr) return mr_fail_memory(error, sizeof *payload);
    *item = (mr_item){.epoch = self->stage.iteration, .number = self->stage.position, .payload = payload};
    mr_status status = mr_tensor_init_string(&payload->tensors[0], record, error);
    if (status != MR_OK) {
        mr_item_deinit(item);
        return status;
    }
    mr_count(&self->stage.counters->elements, 1);
    mr_count(&self->stage.counters->bytes, record.size_bytes);
    self->stage.position++;
    return MR_OK;
}

static mr_status records_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    const records_settings *s = stage->dataset->settings;
    if (s->files != nullptr) return mr_numbers_functions.next(stage, item, error);
    uint64_t start_ns = mr_now_ns();
    mr_status status = stream_next((records_stage *)stage, item, error);
    mr_count(&stage->counters->busy_ns, mr_now_ns() - start_ns);
    return status;
}

static mr_status records_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    const records_settings *s = stage->dataset->settings;
    return s->files != nullptr ? mr_stage_seek_simple(stage, position, error)
                               : mr_stage_seek_forward(stage, position, error);
}

static void records_stage_deinit(mr_stage *stage)
{
    mr_record_reader_close(((records_stage *)stage)->reader);
}

static const mr_stage_functions records_functions = {
    .begin = records_begin, .next = records_next, .seek = records_seek, .deinit = records_stage_deinit};

static const mr_dataset_kind records_kind = {.name = "records",
                                             .role = MR_ROLE_SOURCE,
                                             .digest_content = records_digest,
                                             .stage_size_bytes = sizeof(records_stage),
                                             .functions = &records_functions,
                                             .read = records_read,
                                             .read_ahead = records_read_ahead,
                                             .describe = records_describe,
                                             .deinit = records_deinit};

/* ---- Builders ---- */

static void close_files(records_settings *s, int32_t count)
{
    assert(s->files != nullptr && count <= s->count);
    for (int32_t i = 0; i < count; i++) mr_record_file_close(s->files[i]);
    s->files = nullptr;
}

static mr_status open_files(mr_dataset *dataset, records_settings *s, mr_error *error)
{
    s->files = MR_ARENA_NEW(&dataset->arena, mr_record_file *, (size_t)s->count);
    s->firsts = MR_ARENA_NEW(&dataset->arena, uint64_t, (size_t)s->count + 1);
    if (s->files == nullptr || s->firsts == nullptr) {
        s->files = nullptr;
        return mr_fail_memory(error, (size_t)s->count * 16);
    }
    for (int32_t i = 0; i < s->count; i++) {
        mr_error reason = {0};
        mr_status status = mr_record_file_open(s->paths[i], &s->files[i], &reason);
        if (status == MR_OK) {
            s->firsts[i + 1] = s->firsts[i] + mr_record_file_count(s->files[i]);
            continue;
        }
        close_files(s, i);
        if (status != MR_UNIMPLEMENTED) return mr_fail(error, status, "records: %s", reason.message);
        dataset->count = MR_CARDINALITY_UNKNOWN;
        return MR_OK;
    }
    dataset->count = (int64_t)s->firsts[s->count];
    return MR_OK;
}

static mr_dataset *record_files(const char *const *paths, int32_t count, bool is_stream)
{
    mr_dataset *dataset = mr_dataset_new(&records_kind, nullptr, sizeof(records_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    records_settings *s = dataset->settings;
    dataset->spec = (mr_element_spec){.count = 1, .dtypes = {MR_STRING}, .shapes = {MR_SCALAR}};
    dataset->is_heavy = true;
    if (count < 1) return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "records: no files");
    if (mr_dataset_failed(mr_dataset_require(dataset, paths != nullptr, "paths"))) return dataset;
    s->paths = MR_ARENA_NEW(&dataset->arena, const char *, (size_t)count);
    for (int32_t i = 0; s->paths != nullptr && i < count; i++) {
        if (mr_dataset_failed(mr_dataset_require(dataset, paths[i] != nullptr, "a path"))) return dataset;
        s->paths[i] = mr_arena_strdup(&dataset->arena, paths[i]);
        if (s->paths[i] == nullptr) s->paths = nullptr;
    }
    if (s->paths == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "records: no memory");
    s->count = count;
    if (is_stream) {
        s->leaves_damaged = true;
        dataset->count = MR_CARDINALITY_UNKNOWN;
        return dataset;
    }
    mr_error error = {0};
    return open_files(dataset, s, &error) == MR_OK ? dataset : mr_dataset_fail_with(dataset, &error);
}

mr_dataset *mr_dataset_record_files(const char *const *paths, int32_t count)
{
    return record_files(paths, count, false);
}

mr_dataset *mr_dataset_record_stream(const char *const *paths, int32_t count)
{
    return record_files(paths, count, true);
}

mr_dataset *mr_dataset_records(const char *pattern)
{
    char **paths = nullptr;
    int32_t count = 0;
    mr_error error = {0};
    if (mr_paths_match(pattern, &paths, &count, &error) != MR_OK) {
        mr_dataset *dataset = mr_dataset_new(&records_kind, nullptr, sizeof(records_settings));
        return mr_dataset_fail_with(dataset, &error);
    }
    mr_dataset *dataset = mr_dataset_record_files((const char *const *)paths, count);
    mr_paths_free(paths, count);
    return dataset;
}
