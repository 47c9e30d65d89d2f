/* cache and snapshot: elements of the first pass, kept for the later ones in memory or in a record file.
 *
 * In memory, elements are kept by their position in the input. Where one is missing, because the first pass was not begun
 * at its beginning (a restored place) or the element failed, the input is begun again as in the first pass and taken
 * there. So the place is the position and, during the first pass, the input's.
 *
 * The file's first record says what the others are: a magic, the digest of the input and the number of components. Each
 * of the others is an element: its tensors as in a place. */
#include "pipeline/pipeline.h"
#include "records/file.h"

#include <millrace/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cache_settings {
    const char *path; /* null: memory */
    bool is_snapshot, gzip;
} cache_settings;

typedef struct cache_stage {
    mr_stage stage;
    uint64_t first_iteration; /* that was, or is, kept */
    bool has_first;           /* first_iteration is known */
    bool has_begun;           /* the input has begun, in that iteration */
    /* Memory: */
    mr_payload **kept; /* owned; null: missing */
    uint64_t capacity;
    uint64_t total;   /* elements of a pass; UINT64_MAX: not yet known */
    mr_error failure; /* why it is too large */
    /* File: */
    mr_record_file *file;     /* that is read; null: there is none yet */
    mr_record_writer *writer; /* that is written; null: none */
    mr_place element;         /* the record that is made */
    char *bytes;              /* the record that is read */
    size_t bytes_capacity;
    size_t room_bytes; /* of these two, as the budget has them */
} cache_stage;

static const char magic[] = "millrace cache 1";

static const cache_settings *settings_of(const cache_stage *self)
{
    return self->stage.dataset->settings;
}

static uint64_t cache_digest(const mr_dataset *dataset)
{
    return ((const cache_settings *)dataset->settings)->path != nullptr;
}

/* ---- Memory ---- */

/* Its tensors are counted here, wherever it goes. */
static mr_payload *share(const mr_payload *payload)
{
    mr_payload *made = mr_payload_new(payload->count);
    for (int32_t i = 0; made != nullptr && i < payload->count; i++)
        made->tensors[i] = mr_tensor_ref(&payload->tensors[i]);
    if (made != nullptr) made->is_kept = true;
    return made;
}

static void forget(cache_stage *self)
{
    for (uint64_t i = 0; i < self->capacity; i++) {
        mr_item item = {.payload = self->kept[i]};
        mr_item_deinit(&item);
    }
    free(self->kept);
    self->kept = nullptr;
    self->capacity = 0;
    self->total = UINT64_MAX;
    self->has_begun = false;
    self->stage.is_too_large = false;
    mr_stage_forget(&self->stage);
    self->room_bytes = 0;
}

/* Room for so many bytes. Where the budget has none the cache has failed for good. */
static mr_status take_room(cache_stage *self, size_t size_bytes, mr_error *error)
{
    mr_error reason = {0};
    mr_status status = mr_stage_keep(&self->stage, size_bytes, &reason);
    if (status == MR_OK) return MR_OK;
    (void)mr_fail(&self->failure, status, "%s; cache to a file instead", reason.message);
    if (error != nullptr) *error = self->failure;
    return status;
}

static mr_status grow(cache_stage *self, uint64_t number, mr_error *error)
{
    if (number < self->capacity) return MR_OK;
    uint64_t capacity = number + number / 2 + 64;
    MR_TRY(take_room(self, (capacity - self->capacity) * sizeof *self->kept, error));
    mr_payload **kept = realloc(self->kept, capacity * sizeof *kept);
    if (kept == nullptr) {
        mr_stage_let_go(&self->stage, (capacity - self->capacity) * sizeof *kept);
        return mr_fail_memory(error, capacity * sizeof *kept);
    }
    memset(kept + self->capacity, 0, (capacity - self->capacity) * sizeof *kept);
    self->kept = kept;
    self->capacity = capacity;
    return MR_OK;
}

static mr_status keep(cache_stage *self, uint64_t number, mr_payload *payload, mr_error *error)
{
    MR_TRY(grow(self, number, error));
    if (self->kept[number] != nullptr) return MR_OK;
    MR_TRY(mr_payload_settle(payload, error));
    size_t size_bytes = mr_payload_bytes(payload);
    MR_TRY(take_room(self, size_bytes, error));
    self->kept[number] = share(payload);
    if (self->kept[number] == nullptr) {
        mr_stage_let_go(&self->stage, size_bytes);
        return mr_fail_memory(error, sizeof *payload);
    }
    payload->is_kept = true;
    return MR_OK;
}

/* The input stands at number or before it. */
static mr_status go_to(cache_stage *self, uint64_t number, mr_error *error)
{
    mr_stage *input = self->stage.children[0];
    if (!self->has_begun || input->position > number) {
        self->has_begun = false;
        MR_TRY(mr_stage_begin(input, self->first_iteration, error));
        self->has_begun = true;
    }
    return MR_OK;
}

static mr_status memory_next(cache_stage *self, mr_item *item, mr_error *error)
{
    mr_stage *input = self->stage.children[0];
    uint64_t number = self->stage.position;
    if (number >= self->total) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    if (number < self->capacity && self->kept[number] != nullptr) {
        item->payload = share(self->kept[number]);
        return item->payload == nullptr ? mr_fail_memory(error, sizeof *item->payload) : MR_OK;
    }
    MR_TRY(go_to(self, number, error));
    for (;;) {
        uint64_t position = input->position;
        mr_status status = mr_stage_next(input, item, error);
        if (status == MR_OUT_OF_RANGE) self->total = position;
        if (status == MR_OK) status = keep(self, position, item->payload, error);
        if (status == MR_RESOURCE_EXHAUSTED) self->has_begun = false; /* the input stays failed till then */
        if (position == number || input->position == position) {
            if (status != MR_OK) mr_item_deinit(item);
            return status;
        }
        mr_item_deinit(item);
        if (status == MR_OUT_OF_RANGE || status == MR_CANCELLED || status == MR_RESOURCE_EXHAUSTED) return status;
    }
}

/* ---- The file ---- */

static char *file_path(const cache_stage *self)
{
    const cache_settings *s = settings_of(self);
    char *path = nullptr;
    int made = s->is_snapshot
                   ? asprintf(&path, "%s/%016llx.tfrecord%s", s->path,
                              (unsigned long long)mr_dataset_digest(self->stage.dataset->input), s->gzip ? ".gz" : "")
                   : asprintf(&path, "%s", s->path);
    return made < 0 ? nullptr : path;
}

/* What one record takes. */
static void count_room(cache_stage *self)
{
    mr_stage_must_keep(&self->stage, &self->room_bytes, self->bytes_capacity + self->element.capacity_bytes);
}

static mr_status put_head(cache_stage *self, mr_error *error)
{
    mr_place_clear(&self->element);
    MR_TRY(mr_place_put_bytes(&self->element, magic, sizeof magic, error));
    MR_TRY(mr_place_put(&self->element, mr_dataset_digest(self->stage.dataset->input), error));
    return mr_place_put(&self->element, (uint64_t)self->stage.dataset->spec.count, error);
}

static mr_status read_record(cache_stage *self, uint64_t number, mr_place_reader *reader, mr_error *error)
{
    size_t size_bytes =
        (size_t)mr_record_file_record_size(self->file, number) + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
    if (size_bytes > self->bytes_capacity) {
        free(self->bytes);
        self->bytes_capacity = 0;
        self->bytes = malloc(size_bytes + size_bytes / 2);
        if (self->bytes == nullptr) return mr_fail_memory(error, size_bytes);
        self->bytes_capacity = size_bytes + size_bytes / 2;
        count_room(self);
    }
    mr_string record = {0};
    MR_TRY(mr_record_file_read(self->file, number, self->bytes, &record, error));
    *reader =
        (mr_place_reader){(const unsigned char *)record.data, (const unsigned char *)record.data + record.size_bytes};
    return MR_OK;
}

static mr_status check_head(cache_stage *self, const char *path, mr_error *error)
{
    mr_place_reader reader = {0};
    const void *bytes = nullptr;
    size_t size_bytes = 0;
    uint64_t digest = 0, count = 0;
    mr_status status = mr_record_file_count(self->file) > 0 ? read_record(self, 0, &reader, error) : MR_DATA_LOSS;
    if (status == MR_OK) status = mr_place_get_bytes(&reader, &bytes, &size_bytes, error);
    if (status != MR_OK || size_bytes != sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s is no cache of a pipeline; move it away or choose another path",
                       path);
    MR_TRY(mr_place_get(&reader, &digest, error));
    MR_TRY(mr_place_get(&reader, &count, error));
    if (digest != mr_dataset_digest(self->stage.dataset->input) || count != (uint64_t)self->stage.dataset->spec.count)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s is the cache of another pipeline; remove it or choose another path", path);
    return MR_OK;
}

static mr_status open_file(cache_stage *self, mr_error *error)
{
    char *path = file_path(self);
    if (path == nullptr) return mr_fail_memory(error, 0);
    mr_status status = MR_OK;
    if (mr_file_exists(path)) {
        status = mr_record_file_open(path, &self->file, error);
        if (status == MR_OK) status = check_head(self, path, error);
        if (status != MR_OK) {
            mr_record_file_free(self->file);
            self->file = nullptr;
        }
    }
    free(path);
    return status;
}

static mr_status open_writer(cache_stage *self, mr_error *error)
{
    const cache_settings *s = settings_of(self);
    char *path = file_path(self);
    if (path == nullptr) return mr_fail_memory(error, 0);
    mr_record_writer_options options = {.index = true, .atomic = true};
    if (s->gzip) {
        options.compression = MR_COMPRESSION_GZIP;
        options.seek_bytes = MR_RECORD_SEEK_BYTES;
    }
    mr_status status = s->is_snapshot ? mr_file_make_directories(s->path, error) : MR_OK;
    if (status == MR_OK) status = mr_record_writer_open(path, &options, &self->writer, error);
    if (status == MR_OK) status = put_head(self, error);
    if (status == MR_OK)
        status = mr_record_writer_append(self->writer, self->element.bytes, self->element.size_bytes, error);
    free(path);
    return status;
}

static mr_status write_element(cache_stage *self, const mr_payload *payload, mr_error *error)
{
    mr_place_clear(&self->element);
    for (int32_t i = 0; i < payload->count; i++)
        MR_TRY(mr_place_put_tensor(&self->element, &payload->tensors[i], error));
    count_room(self);
    return mr_record_writer_append(self->writer, self->element.bytes, self->element.size_bytes, error);
}

static void stop_writing(cache_stage *self)
{
    mr_record_writer_abandon(self->writer);
    self->writer = nullptr;
}

static mr_status read_element(cache_stage *self, mr_item *item, mr_error *error)
{
    uint64_t number = self->stage.position;
    mr_place_reader reader = {0};
    if (number + 1 >= mr_record_file_count(self->file)) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    MR_TRY(read_record(self, number + 1, &reader, error));
    const mr_element_spec *spec = &self->stage.dataset->spec;
    item->payload = mr_payload_new(spec->count);
    if (item->payload == nullptr) return mr_fail_memory(error, sizeof *item->payload);
    mr_status status = MR_OK;
    for (int32_t i = 0; i < spec->count && status == MR_OK; i++) {
        status = mr_place_get_tensor(&reader, &item->payload->tensors[i], error);
        if (status == MR_OK && item->payload->tensors[i].dtype != spec->dtypes[i])
            status = mr_fail(error, MR_DATA_LOSS, "%s: element %llu is not of the pipeline's dtypes",
                             mr_record_file_path(self->file), (unsigned long long)number);
    }
    if (status != MR_OK) mr_item_deinit(item);
    return status;
}

/* Elements of the first pass go on up, and into the file. One that fails leaves the file unfinished. */
static mr_status file_next(cache_stage *self, mr_item *item, mr_error *error)
{
    mr_stage *input = self->stage.children[0];
    if (self->file != nullptr) return read_element(self, item, error);
    if (self->stage.position == 0 && self->writer == nullptr) MR_TRY(open_writer(self, error));
    if (!self->has_begun) {
        MR_TRY(mr_stage_begin(input, self->first_iteration, error));
        self->has_begun = true;
        if (self->stage.position > 0) MR_TRY(mr_stage_seek(input, self->stage.position, error));
    }
    mr_status status = mr_stage_next(input, item, error);
    if (status == MR_OUT_OF_RANGE && self->writer != nullptr) {
        mr_record_writer *writer = self->writer;
        self->writer = nullptr;
        MR_TRY(mr_record_writer_close(writer, error));
        MR_TRY(open_file(self, error));
        return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    }
    if (status == MR_OK && self->writer != nullptr) status = write_element(self, item->payload, error);
    if (status != MR_OK) {
        mr_item_deinit(item);
        stop_writing(self);
    }
    return status;
}

/* ---- As a stage ---- */

static mr_status cache_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    if (settings_of(self)->path == nullptr) {
        if (!self->has_first) self->first_iteration = iteration;
        self->has_first = true;
        return MR_OK;
    }
    stop_writing(self);
    self->has_begun = false;
    self->first_iteration = iteration;
    return self->file == nullptr ? open_file(self, error) : MR_OK;
}

static mr_status cache_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    if (stage->is_too_large) {
        if (error != nullptr) *error = self->failure;
        return MR_RESOURCE_EXHAUSTED;
    }
    bool is_memory = settings_of(self)->path == nullptr, is_read = self->file != nullptr;
    mr_status status = is_memory ? memory_next(self, item, error) : file_next(self, item, error);
    /* The input begins again for an element that failed in an earlier pass: it is where it stands that tells whether it
     * has failed again. */
    bool has_failed =
        is_read ? status == MR_DATA_LOSS : self->has_begun && stage->children[0]->position > stage->position;
    if (stage->is_too_large) has_failed = false;
    if (status == MR_OK)
        mr_stream_number(stage, item);
    else if (has_failed && status != MR_OUT_OF_RANGE)
        stage->position++;
    return status;
}

static mr_status cache_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    uint64_t total = self->file != nullptr ? mr_record_file_count(self->file) - 1 : self->total;
    if (self->file == nullptr && (settings_of(self)->path != nullptr || total == UINT64_MAX))
        return mr_stage_seek_forward(stage, position, error);
    stage->position = position < total ? position : total;
    return MR_OK;
}

/* The input's place is of use when the next element comes from it. */
static mr_status cache_save(mr_stage *stage, mr_place *place, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    mr_stage *input = stage->children[0];
    bool goes_on =
        self->file == nullptr && self->has_begun && input->position == stage->position && self->total == UINT64_MAX;
    MR_TRY(mr_place_put(place, self->first_iteration, error));
    MR_TRY(mr_place_put(place, self->total + 1, error));
    MR_TRY(mr_place_put(place, goes_on, error));
    return goes_on ? mr_stage_save(input, place, error) : MR_OK;
}

static mr_status cache_restore(mr_stage *stage, mr_place_reader *reader, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    uint64_t goes_on = 0, total = 0;
    forget(self);
    stop_writing(self);
    MR_TRY(mr_place_get(reader, &self->first_iteration, error));
    MR_TRY(mr_place_get(reader, &total, error));
    MR_TRY(mr_place_get_below(reader, 1, &goes_on, error));
    self->total = total - 1;
    self->has_first = true;
    if (settings_of(self)->path != nullptr && self->file == nullptr) MR_TRY(open_file(self, error));
    if (goes_on == 0) return MR_OK;
    self->has_begun = true;
    return mr_stage_restore(stage->children[0], reader, error);
}

static mr_status cache_prepare(mr_stage *stage, mr_error *error)
{
    (void)error;
    ((cache_stage *)stage)->total = UINT64_MAX;
    return MR_OK;
}

static void cache_deinit(mr_stage *stage)
{
    cache_stage *self = (cache_stage *)stage;
    forget(self);
    stop_writing(self);
    mr_record_file_free(self->file);
    mr_place_deinit(&self->element);
    free(self->bytes);
}

static const mr_stage_functions cache_functions = {.begin = cache_begin,
                                                   .next = cache_next,
                                                   .seek = cache_seek,
                                                   .deinit = cache_deinit,
                                                   .save = cache_save,
                                                   .restore = cache_restore};

static const mr_dataset_kind cache_kind = {.name = "cache",
                                           .role = MR_ROLE_STREAM,
                                           .digest = cache_digest,
                                           .stage_size_bytes = sizeof(cache_stage),
                                           .functions = &cache_functions,
                                           .prepare = cache_prepare};
static const mr_dataset_kind snapshot_kind = {.name = "snapshot",
                                              .role = MR_ROLE_STREAM,
                                              .digest = cache_digest,
                                              .stage_size_bytes = sizeof(cache_stage),
                                              .functions = &cache_functions,
                                              .prepare = cache_prepare};

static mr_dataset *make(const mr_dataset_kind *kind, mr_dataset *input, const char *path, bool gzip)
{
    mr_dataset *dataset = mr_dataset_new(kind, input, sizeof(cache_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    cache_settings *s = dataset->settings;
    s->is_snapshot = kind == &snapshot_kind;
    s->gzip = gzip;
    if (s->is_snapshot && mr_dataset_failed(mr_dataset_require(dataset, path != nullptr, "directory"))) return dataset;
    if (path == nullptr) return dataset;
    s->path = mr_arena_strdup(&dataset->arena, path);
    return s->path != nullptr ? dataset : mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "%s: no memory", kind->name);
}

mr_dataset *mr_dataset_cache(mr_dataset *input, const char *path)
{
    return make(&cache_kind, input, path, false);
}

mr_dataset *mr_dataset_snapshot_(mr_dataset *input, const char *folder, const mr_dataset_snapshot_options *options)
{
    static const mr_dataset_snapshot_options defaults = {0};
    if (options == nullptr) options = &defaults;
    return make(&snapshot_kind, input, folder, options->gzip);
}
