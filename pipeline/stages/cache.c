/* cache and snapshot: store the elements of the first pass in memory or in a file (cache_file.h), for later passes.
 *
 * In memory, elements are stored by their position in the input. If one is missing, because the first pass did not
 * start at its beginning (a restored state) or the element failed, the input begins again as in the first pass and the
 * element is taken from it. The state is therefore the position and, during the first pass, the input's state.
 *
 * The file is written in a complete pass, by one stage at a time; other stages compute the elements. If the file cannot
 * be read any further, the rest of the pass is computed, and the next pass replaces the file. */
#include "pipeline/stages/cache_file.h"
#include "records/io/file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cache_settings {
    const char *path; /* null: memory */
    bool is_snapshot, gzip;
} cache_settings;

typedef struct cache_stage {
    mr_stage stage;
    uint64_t first_iteration; /* the iteration that is stored */
    bool has_first;           /* first_iteration is known */
    bool has_begun;           /* the input is in that iteration */
    /* Memory: */
    mr_payload **kept; /* owned; null: missing */
    uint64_t capacity;
    uint64_t total;   /* elements of a pass; UINT64_MAX: not known yet */
    mr_error failure; /* why the cache does not fit into the budget */
    /* File: */
    char *path; /* owned; null: not known yet, or in memory */
    mr_cache_file disk;
    bool is_damaged;   /* the file can be opened but is damaged, and must be replaced */
    size_t room_bytes; /* memory of the array, as counted in the budget */
} cache_stage;

static const cache_settings *settings_of(const cache_stage *self)
{
    return self->stage.dataset->settings;
}

static uint64_t cache_digest(const mr_dataset *dataset)
{
    return ((const cache_settings *)dataset->settings)->path != nullptr;
}

/* ---- Memory ---- */

/* Counts the item's tensors in the budget here, wherever the item goes afterwards. */
static mr_payload *ref_payload(const mr_payload *payload)
{
    assert(payload->count > 0);
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
    mr_stage_release_all(&self->stage);
    self->room_bytes = 0;
}

/* Reserves size_bytes of the budget. If they are not available, the cache has failed permanently. */
static mr_status take_room(cache_stage *self, size_t size_bytes, mr_error *error)
{
    mr_error reason = {0};
    mr_status status = mr_stage_keep(&self->stage, size_bytes, &reason);
    if (status == MR_OK) return MR_OK;
    (void)mr_fail(&self->failure, status, "%s; use a cache file", reason.message);
    if (error != nullptr) *error = self->failure;
    return status;
}

static mr_status grow(cache_stage *self, uint64_t number, mr_error *error)
{
    if (number < self->capacity) return MR_OK;
    constexpr uint64_t CAPACITY_MAX = SIZE_MAX / sizeof *self->kept;
    if (number > CAPACITY_MAX / 2)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "cache: too many elements for memory: %llu",
                       (unsigned long long)number);
    uint64_t capacity = number + number / 2 + 64;
    assert(capacity > number && capacity <= CAPACITY_MAX);
    MR_TRY(take_room(self, (capacity - self->capacity) * sizeof *self->kept, error));
    mr_payload **kept = realloc(self->kept, capacity * sizeof *kept);
    if (kept == nullptr) {
        mr_stage_release(&self->stage, (capacity - self->capacity) * sizeof *kept);
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
    assert(number < self->capacity);
    if (self->kept[number] != nullptr) return MR_OK;
    MR_TRY(mr_payload_settle(payload, error));
    size_t size_bytes = mr_payload_bytes(payload);
    MR_TRY(take_room(self, size_bytes, error));
    self->kept[number] = ref_payload(payload);
    assert(self->capacity <= SIZE_MAX / sizeof *self->kept);
    if (self->kept[number] == nullptr) {
        mr_stage_release(&self->stage, size_bytes);
        return mr_fail_memory(error, sizeof *payload);
    }
    payload->is_kept = true;
    return MR_OK;
}

/* The input must be at number, or before it. */
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
        item->payload = ref_payload(self->kept[number]);
        return item->payload == nullptr ? mr_fail_memory(error, sizeof *item->payload) : MR_OK;
    }
    MR_TRY(go_to(self, number, error));
    for (;;) {
        uint64_t position = input->position;
        assert(self->has_begun && position <= number);
        mr_status status = mr_stage_next(input, item, error);
        if (status == MR_OUT_OF_RANGE) self->total = position;
        if (status == MR_OK) status = keep(self, position, item->payload, error);
        if (status == MR_RESOURCE_EXHAUSTED) self->has_begun = false; /* until then the input stays failed */
        if (position == number || input->position == position) {
            if (status != MR_OK) mr_item_deinit(item);
            return status;
        }
        mr_item_deinit(item);
        if (status == MR_OUT_OF_RANGE || status == MR_CANCELLED || status == MR_RESOURCE_EXHAUSTED) return status;
    }
}

/* ---- The file ---- */

/* Determines the file's name and whether millrace generated it. */
static mr_status name_file(cache_stage *self, mr_error *error)
{
    const cache_settings *s = settings_of(self);
    const mr_dataset *dataset = self->stage.dataset;
    uint64_t digest = 0;
    assert(s->path != nullptr);
    if (self->path != nullptr) return MR_OK;
    MR_TRY(mr_dataset_digest(dataset->input, &digest, error));
    /* Workers have the same states, but different elements: the digest includes the share. */
    if (dataset->share != 0) digest = mr_digest(digest, dataset->share);
    int made = s->is_snapshot ? asprintf(&self->path, "%s/%016llx.tfrecord%s", s->path, (unsigned long long)digest,
                                         s->gzip ? ".gz" : "")
                              : asprintf(&self->path, "%s", s->path);
    if (made < 0) {
        self->path = nullptr;
        return mr_fail_memory(error, strlen(s->path));
    }
    self->disk = (mr_cache_file){
        .path = self->path, .digest = digest, .components = dataset->spec.count, .is_ours = s->is_snapshot};
    return MR_OK;
}

static void count_room(cache_stage *self)
{
    mr_stage_keep_unlimited(&self->stage, &self->room_bytes, mr_cache_file_bytes(&self->disk));
}

/* Opens the file if it is valid. A missing or invalid file is not an error. */
static mr_status open_file(cache_stage *self, mr_error *error)
{
    mr_error reason = {0};
    MR_TRY(name_file(self, error));
    if (self->disk.file != nullptr || self->is_damaged) return MR_OK;
    mr_status status = mr_cache_file_open(&self->disk, &reason);
    count_room(self);
    if (status == MR_OK || status == MR_NOT_FOUND || status == MR_ABORTED) return MR_OK;
    if (status != MR_DATA_LOSS) return mr_fail(error, status, "%s", reason.message);
    mr_stage_warn(&self->stage, "%s; it is replaced", reason.message);
    return MR_OK;
}

/* Becomes the writer, unless there is another one, or one has just finished. */
static mr_status begin_writing(cache_stage *self, mr_error *error)
{
    const cache_settings *s = settings_of(self);
    assert(self->stage.position == 0 && self->disk.file == nullptr && self->disk.writer == nullptr);
    mr_error reason = {0};
    if (s->is_snapshot) MR_TRY(mr_file_make_directories(s->path, error));
    mr_status status = mr_cache_file_begin(&self->disk, s->gzip, &reason);
    if (status == MR_ABORTED) return MR_OK;
    if (status != MR_OK) return mr_fail(error, status, "%s", reason.message);
    MR_TRY(open_file(self, error));
    if (self->disk.file != nullptr) mr_cache_file_discard(&self->disk);
    return MR_OK;
}

/* The pass is complete: completes the file. */
static mr_status finish_writing(cache_stage *self, mr_error *error)
{
    assert(self->disk.writer != nullptr && self->disk.file == nullptr);
    MR_TRY(mr_cache_file_finish(&self->disk, error));
    assert(self->disk.writer == nullptr);
    self->is_damaged = false;
    return open_file(self, error);
}

/* The input's next element; also written to the file, if this stage is the writer. If an element fails, the file is
 * abandoned. */
static mr_status compute_next(cache_stage *self, mr_item *item, mr_error *error)
{
    mr_stage *input = self->stage.children[0];
    if (!self->has_begun) {
        MR_TRY(mr_stage_begin(input, self->first_iteration, error));
        self->has_begun = true;
        if (self->stage.position > 0) MR_TRY(mr_stage_seek(input, self->stage.position, error));
    }
    assert(self->disk.file == nullptr);
    mr_status status = mr_stage_next(input, item, error);
    if (status == MR_OUT_OF_RANGE && self->disk.writer != nullptr) {
        MR_TRY(finish_writing(self, error));
        return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    }
    if (status == MR_OK && self->disk.writer != nullptr) {
        status = mr_cache_file_append(&self->disk, item->payload, error);
        count_room(self);
    }
    if (status != MR_OK) {
        mr_item_deinit(item);
        mr_cache_file_discard(&self->disk);
    }
    return status;
}

static mr_status file_next(cache_stage *self, mr_item *item, mr_error *error)
{
    assert(self->path != nullptr);
    if (self->disk.file == nullptr && self->disk.writer == nullptr && self->stage.position == 0)
        MR_TRY(begin_writing(self, error));
    if (self->disk.file != nullptr) {
        mr_error reason = {0};
        mr_status status =
            mr_cache_file_read(&self->disk, self->stage.position, &self->stage.dataset->spec, &item->payload, &reason);
        count_room(self);
        if (status == MR_OK) return MR_OK;
        if (status != MR_DATA_LOSS) return mr_fail(error, status, "%s", reason.message);
        mr_stage_warn(&self->stage, "%s; the cache is replaced", reason.message);
        mr_cache_file_close(&self->disk);
        self->is_damaged = true;
        self->has_begun = false;
        if (self->stage.position == 0) MR_TRY(begin_writing(self, error));
    }
    return compute_next(self, item, error);
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
    mr_cache_file_discard(&self->disk);
    self->has_begun = false;
    self->first_iteration = iteration;
    return open_file(self, error);
}

static mr_status cache_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    if (stage->is_too_large) {
        if (error != nullptr) *error = self->failure;
        return MR_RESOURCE_EXHAUSTED;
    }
    bool is_memory = settings_of(self)->path == nullptr;
    mr_status status = is_memory ? memory_next(self, item, error) : file_next(self, item, error);
    /* The input begins again for an element that failed in an earlier pass. Only the input's position shows whether the
     * element has failed again. */
    bool is_computed = self->disk.file == nullptr && self->has_begun;
    bool has_failed = is_computed && stage->children[0]->position > stage->position;
    if (stage->is_too_large) has_failed = false;
    assert(status != MR_OK || item->payload != nullptr);
    if (status == MR_OK)
        mr_stream_number(stage, item);
    else if (has_failed && status != MR_OUT_OF_RANGE)
        stage->position++;
    return status;
}

static mr_status cache_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    bool is_read = self->disk.file != nullptr;
    uint64_t total = is_read ? self->disk.count : self->total;
    if (!is_read && (settings_of(self)->path != nullptr || total == UINT64_MAX))
        return mr_stage_seek_forward(stage, position, error);
    assert(total != UINT64_MAX);
    stage->position = position < total ? position : total;
    return MR_OK;
}

/* The input's state is saved only if the next element comes from the input. */
static mr_status cache_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    mr_stage *input = stage->children[0];
    bool goes_on = self->disk.file == nullptr && self->has_begun && input->position == stage->position &&
                   self->total == UINT64_MAX;
    MR_TRY(mr_state_put(state, self->first_iteration, error));
    MR_TRY(mr_state_put(state, self->total + 1, error));
    MR_TRY(mr_state_put(state, goes_on, error));
    return goes_on ? mr_stage_save(input, state, error) : MR_OK;
}

static mr_status cache_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    cache_stage *self = (cache_stage *)stage;
    uint64_t goes_on = 0, total = 0;
    forget(self);
    mr_cache_file_discard(&self->disk);
    MR_TRY(mr_state_get(reader, &self->first_iteration, error));
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &total, error));
    MR_TRY(mr_state_get_below(reader, 1, &goes_on, error));
    if (total > 0 && (stage->position > total - 1 || goes_on != 0)) return mr_state_refuse(error);
    self->total = total - 1;
    self->has_first = true;
    if (settings_of(self)->path != nullptr) MR_TRY(open_file(self, error));
    if (goes_on == 0) return MR_OK;
    MR_TRY(mr_stage_restore(stage->children[0], reader, error));
    if (stage->children[0]->position != stage->position) return mr_state_refuse(error);
    self->has_begun = true;
    return MR_OK;
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
    mr_cache_file_deinit(&self->disk);
    free(self->path);
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
    if (path[0] == '\0')
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: %s is an empty string", kind->name,
                               s->is_snapshot ? "directory" : "path");
    s->path = mr_arena_strdup(&dataset->arena, path);
    return s->path != nullptr ? dataset : mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "%s: no memory", kind->name);
}

mr_dataset *mr_dataset_cache(mr_dataset *input, const char *path)
{
    return make(&cache_kind, input, path, false);
}

mr_dataset *mr_dataset_snapshot_(mr_dataset *input, const char *directory, const mr_dataset_snapshot_options *given)
{
    mr_dataset_snapshot_options options;
    input = MR_DATASET_READ(mr_dataset_snapshot_options, &options, input, given);
    return make(&snapshot_kind, input, directory, options.gzip);
}
