/* unique: drops elements that have occurred before. Its state is its position: to restore, all values must be seen
 * again anyway. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct seen {
    uint64_t hash;
    char *bytes; /* owned; null: the entry is free */
    size_t size_bytes;
} seen;

typedef struct unique_stage {
    mr_stage stage;
    seen *table; /* owned; open addressing */
    size_t count, capacity;
} unique_stage;

/* Overhead of an allocation. */
constexpr size_t ALLOCATION_BYTES = 24;

static void forget(unique_stage *self)
{
    for (size_t i = 0; i < self->capacity; i++) free(self->table[i].bytes);
    assert((self->table == nullptr) == (self->capacity == 0));
    free(self->table);
    self->table = nullptr;
    self->count = self->capacity = 0;
    self->stage.is_too_large = false;
    mr_stage_release_all(&self->stage);
}

static mr_status unique_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    forget((unique_stage *)stage);
    return mr_stream_begin(stage, iteration, error);
}

static seen *find(const unique_stage *self, uint64_t hash, mr_string bytes)
{
    assert(self->capacity > 0 && (self->capacity & (self->capacity - 1)) == 0 && self->count < self->capacity);
    size_t at = (size_t)hash & (self->capacity - 1);
    for (;; at = (at + 1) & (self->capacity - 1)) {
        seen *s = &self->table[at];
        if (s->bytes == nullptr) return s;
        if (s->hash == hash && s->size_bytes == bytes.size_bytes && memcmp(s->bytes, bytes.data, bytes.size_bytes) == 0)
            return s;
    }
}

static mr_status grow(unique_stage *self, mr_error *error)
{
    assert(self->count <= self->capacity);
    if (self->count * 2 < self->capacity) return MR_OK;
    size_t capacity = self->capacity == 0 ? 64 : 2 * self->capacity;
    MR_TRY(mr_stage_keep(&self->stage, capacity * sizeof(seen), error));
    unique_stage larger = {.table = calloc(capacity, sizeof(seen)), .capacity = capacity};
    if (larger.table == nullptr) {
        mr_stage_release(&self->stage, capacity * sizeof(seen));
        return mr_fail_memory(error, capacity * sizeof(seen));
    }
    for (size_t i = 0; i < self->capacity; i++) {
        const seen *s = &self->table[i];
        if (s->bytes != nullptr) *find(&larger, s->hash, (mr_string){s->bytes, s->size_bytes}) = *s;
    }
    free(self->table);
    mr_stage_release(&self->stage, self->capacity * sizeof(seen));
    self->table = larger.table;
    self->capacity = capacity;
    assert(self->count * 2 < self->capacity);
    return MR_OK;
}

/* Whether the value is new; inserts it then. */
static mr_status remember(unique_stage *self, const mr_tensor *tensor, bool *is_new, mr_error *error)
{
    mr_string value = tensor->dtype == MR_STRING ? mr_tensor_strings(tensor)[0]
                                                 : (mr_string){tensor->data, mr_dtype_size(tensor->dtype)};
    MR_TRY(grow(self, error));
    uint64_t hash = mr_digest_bytes(0, value.data, value.size_bytes);
    seen *entry = find(self, hash, value);
    *is_new = entry->bytes == nullptr;
    if (!*is_new) return MR_OK;
    MR_TRY(mr_stage_keep(&self->stage, value.size_bytes + ALLOCATION_BYTES, error));
    char *bytes = malloc(value.size_bytes + 1);
    if (bytes == nullptr) {
        mr_stage_release(&self->stage, value.size_bytes + ALLOCATION_BYTES);
        return mr_fail_memory(error, value.size_bytes);
    }
    if (value.size_bytes > 0) memcpy(bytes, value.data, value.size_bytes);
    assert(entry >= self->table && entry < self->table + self->capacity && entry->bytes == nullptr);
    *entry = (seen){hash, bytes, value.size_bytes};
    self->count++;
    return MR_OK;
}

static mr_status unique_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    for (;;) {
        bool is_new = false;
        MR_TRY(mr_stream_pull(stage, item, error));
        mr_status status = remember((unique_stage *)stage, &item->payload->tensors[0], &is_new, error);
        if (status == MR_OK && is_new) {
            mr_stream_number(stage, item);
            return MR_OK;
        }
        mr_item_deinit(item);
        MR_TRY(status);
    }
}

static void unique_deinit(mr_stage *stage)
{
    forget((unique_stage *)stage);
}

static const mr_stage_functions unique_functions = {.begin = unique_begin,
                                                    .next = unique_next,
                                                    .seek = mr_stage_seek_forward,
                                                    .deinit = unique_deinit,
                                                    .save = mr_stage_save_nothing,
                                                    .restore = mr_stage_restore_forward};

static const mr_dataset_kind unique_kind = {
    .name = "unique", .role = MR_ROLE_STREAM, .stage_size_bytes = sizeof(unique_stage), .functions = &unique_functions};

mr_dataset *mr_dataset_unique(mr_dataset *input)
{
    mr_dataset *dataset = mr_dataset_new(&unique_kind, input, 0);
    if (mr_dataset_failed(dataset)) return dataset;
    const mr_element_spec *spec = &dataset->spec;
    bool is_known = spec->count == 1 &&
                    (spec->dtypes[0] == MR_INT32 || spec->dtypes[0] == MR_INT64 || spec->dtypes[0] == MR_STRING) &&
                    spec->shapes[0].rank == 0;
    dataset->count = MR_CARDINALITY_UNKNOWN;
    return is_known ? dataset
                    : mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                                      "unique: elements must be one scalar of int32, int64 or string");
}
