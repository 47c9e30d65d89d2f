/* group_by_window: collects elements by key. When a key has a full window, a function creates a dataset from it, whose
 * elements come next.
 *
 * Groups are sorted by key, which is the order in which incomplete windows follow at the end, as in TensorFlow. The
 * elements of the current window are held until its dataset has ended, because a restored state may have to create it
 * again. */
#include "pipeline/inner.h"
#include "pipeline/replay_log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct group_settings {
    mr_key_function key;
    mr_group_function function;
    void *context;
    mr_group_options options;
} group_settings;

typedef struct group {
    int64_t key;
    mr_item *items;    /* owned */
    uint64_t *origins; /* owned */
    uint64_t count, capacity;
} group;

typedef struct group_stage {
    mr_stage stage;
    mr_run run;
    mr_inner inner;
    uint64_t window; /* windows started so far */
    group given;     /* whose window is being delivered */
    group *groups;   /* owned; sorted by key */
    uint64_t count, capacity;
    bool input_ended;
    size_t room_bytes; /* memory of groups, items and origins */
    mr_replay_log replay;
} group_stage;

static const group_settings *settings_of(const group_stage *self)
{
    return self->stage.dataset->settings;
}

static uint64_t group_digest(const mr_dataset *dataset)
{
    const mr_group_options *o = &((const group_settings *)dataset->settings)->options;
    return mr_digest(o->window_size_func != nullptr, o->window_size_func != nullptr ? 0 : (uint64_t)o->window_size);
}

static void count_room(group_stage *self, size_t more_bytes)
{
    mr_stage_keep_unlimited(&self->stage, &self->room_bytes, self->room_bytes + more_bytes);
}

/* Memory of an element in a group. */
constexpr size_t HELD_BYTES = sizeof(mr_item) + sizeof(uint64_t);

/* Frees the group. Does not update the log, which must not contain the group or is cleared by the caller. */
static void group_free(group_stage *self, group *group)
{
    assert(group->count <= group->capacity);
    for (uint64_t i = 0; i < group->count; i++) {
        mr_item_release(&self->stage, &group->items[i]);
        mr_item_deinit(&group->items[i]);
    }
    count_room(self, 0 - group->capacity * HELD_BYTES);
    free(group->items);
    free(group->origins);
    *group = (struct group){0};
}

static void group_clear(group_stage *self, group *group)
{
    for (uint64_t i = 0; i < group->count; i++) mr_replay_log_release(&self->replay, group->origins[i]);
    group_free(self, group);
}

static void empty(group_stage *self)
{
    assert(self->count <= self->capacity);
    mr_inner_close(&self->inner);
    group_free(self, &self->given);
    for (uint64_t i = 0; i < self->count; i++) group_free(self, &self->groups[i]);
    self->count = self->window = 0;
    self->input_ended = self->stage.is_too_large = false;
    mr_replay_log_clear(&self->replay);
}

static mr_status group_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    empty((group_stage *)stage);
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    return mr_stage_begin(stage->children[0], iteration, error);
}

/* The key's group; inserts a new one if there is none. */
static mr_status find_group(group_stage *self, int64_t key, group **found, mr_error *error)
{
    uint64_t low = 0, high = self->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (self->groups[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < self->count && self->groups[low].key == key) {
        *found = &self->groups[low];
        return MR_OK;
    }
    if (self->count == self->capacity) {
        uint64_t capacity = 2 * self->capacity + 8;
        group *groups = realloc(self->groups, capacity * sizeof *groups);
        if (groups == nullptr) return mr_fail_memory(error, capacity * sizeof *groups);
        count_room(self, (capacity - self->capacity) * sizeof *groups);
        self->groups = groups;
        self->capacity = capacity;
    }
    assert(low == 0 || self->groups[low - 1].key < key);
    assert(low == self->count || self->groups[low].key > key);
    *found = &self->groups[low];
    memmove(*found + 1, *found, (self->count++ - low) * sizeof **found);
    **found = (group){.key = key};
    return MR_OK;
}

static mr_status group_reserve(group_stage *self, group *group, uint64_t count, mr_error *error)
{
    assert(group->count <= group->capacity);
    if (count <= group->capacity) return MR_OK;
    uint64_t capacity = count + count / 2 + 4;
    mr_item *items = realloc(group->items, capacity * sizeof *items);
    if (items != nullptr) group->items = items;
    uint64_t *origins = realloc(group->origins, capacity * sizeof *origins);
    if (origins != nullptr) group->origins = origins;
    if (items == nullptr || origins == nullptr) return mr_fail_memory(error, capacity * sizeof *items);
    count_room(self, (capacity - group->capacity) * HELD_BYTES);
    group->capacity = capacity;
    return MR_OK;
}

/* Creates the dataset of the window in `given`. */
static mr_status open_window(group_stage *self, mr_error *error)
{
    const group_settings *s = settings_of(self);
    const mr_dataset *dataset = self->stage.dataset;
    const group *g = &self->given;
    assert(!self->inner.is_open && g->count > 0 && g->count <= g->capacity);
    mr_dataset *window = mr_dataset_of_items(&dataset->input->spec, g->items, (int64_t)g->count), *made = nullptr;
    mr_status status = s->function(s->context, g->key, window, &made, error);
    if (status == MR_OK && made == nullptr) status = mr_inner_fail_absent(error);
    if (status != MR_OK) {
        mr_dataset_free(made);
        return mr_stage_fail_prefix(&self->stage, "window", self->window, status, error);
    }
    return mr_inner_open(&self->inner, made, &self->run, self->stage.run, &dataset->spec, self->stage.purpose,
                         mr_digest(self->stage.iteration, self->window), error);
}

/* Moves the group from groups to `given`. */
static mr_status give(group_stage *self, group *group, mr_error *error)
{
    uint64_t index = (uint64_t)(group - self->groups);
    assert(index < self->count && self->given.items == nullptr);
    self->given = *group;
    memmove(group, group + 1, (--self->count - index) * sizeof *group);
    self->window++;
    mr_status status = open_window(self, error);
    if (status == MR_OK) return MR_OK;
    group_clear(self, &self->given);
    self->stage.position++;
    return status;
}

/* Takes one element. *full is its group if that now has a full window. */
static mr_status take(group_stage *self, group **full, mr_error *error)
{
    const group_settings *s = settings_of(self);
    mr_stage *input = self->stage.children[0];
    mr_item item = {0};
    int64_t key = 0;
    group *group = nullptr;
    MR_TRY(mr_replay_log_step(&self->replay, input, error));
    uint64_t origin = input->position;
    mr_status status = mr_stage_next(input, &item, error);
    if (status == MR_OUT_OF_RANGE) {
        self->input_ended = true;
        return MR_OK;
    }
    if (status == MR_OK) {
        mr_element element = mr_payload_view(item.payload);
        status = s->key(s->context, &element, &key, error);
        status = mr_stage_fail_prefix(&self->stage, "element", item.number, status, error);
    }
    if (status == MR_OK) status = find_group(self, key, &group, error);
    if (status == MR_OK) status = group_reserve(self, group, group->count + 1, error);
    if (status == MR_OK) status = mr_item_keep(&self->stage, &item, error);
    if (status != MR_OK) {
        if (input->position != origin && !self->stage.is_too_large) self->stage.position++;
        mr_item_deinit(&item);
        return status;
    }
    group->items[group->count] = item;
    group->origins[group->count++] = origin;
    mr_replay_log_retain(&self->replay, origin);
    int64_t size =
        s->options.window_size_func != nullptr ? s->options.window_size_func(s->context, key) : s->options.window_size;
    if (size < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "group_by_window: the window size is %lld for key %lld, expected at least 1", (long long)size,
                       (long long)key);
    assert(group >= self->groups && group < self->groups + self->count);
    if (group->count >= (uint64_t)size) *full = group;
    return MR_OK;
}

static mr_status group_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    group_stage *self = (group_stage *)stage;
    for (;;) {
        if (self->inner.is_open) {
            mr_status status = mr_inner_next(&self->inner, stage, item, error);
            if (status != MR_OUT_OF_RANGE) return status;
            mr_inner_close(&self->inner);
            group_clear(self, &self->given);
        }
        group *full = nullptr;
        while (full == nullptr && !self->input_ended) MR_TRY(take(self, &full, error));
        while (full == nullptr && self->count > 0) {
            /* A group is empty if its first element failed. */
            if (self->groups[0].count > 0)
                full = &self->groups[0];
            else
                memmove(self->groups, self->groups + 1, --self->count * sizeof *self->groups);
        }
        if (full == nullptr) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
        MR_TRY(give(self, full, error));
    }
}

/* ---- The state ---- */

static mr_status save_group(const group *group, uint64_t base, mr_state *state, mr_error *error)
{
    MR_TRY(mr_state_put(state, (uint64_t)group->key, error));
    MR_TRY(mr_state_put(state, group->count, error));
    for (uint64_t i = 0; i < group->count; i++) MR_TRY(mr_state_put(state, group->origins[i] - base, error));
    return MR_OK;
}

static mr_status group_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    group_stage *self = (group_stage *)stage;
    uint64_t base = 0;
    MR_TRY(mr_replay_log_save(&self->replay, stage->children[0], state, &base, error));
    MR_TRY(mr_state_put(state, self->window, error));
    MR_TRY(mr_state_put(state, self->input_ended, error));
    MR_TRY(mr_state_put(state, self->count, error));
    for (uint64_t i = 0; i < self->count; i++) MR_TRY(save_group(&self->groups[i], base, state, error));
    MR_TRY(mr_state_put(state, self->inner.is_open, error));
    if (!self->inner.is_open) return MR_OK;
    MR_TRY(save_group(&self->given, base, state, error));
    return mr_stage_save(self->inner.pipeline.top, state, error);
}

/* The group's numbers. Its items are retrieved by the log's refill. */
static mr_status restore_group(group_stage *self, mr_state_reader *reader, uint64_t base, uint64_t end, group *group,
                               mr_error *error)
{
    uint64_t key = 0, count = 0;
    MR_TRY(mr_state_get(reader, &key, error));
    MR_TRY(mr_state_get_count(reader, end - base, &count, error));
    assert(group->count == 0 && base <= end);
    MR_TRY(group_reserve(self, group, count, error));
    group->key = (int64_t)key;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t origin = 0;
        MR_TRY(mr_state_get_below(reader, end - base, &origin, error));
        group->origins[i] = base + origin;
        group->items[i] = (mr_item){0};
        group->count = i + 1;
    }
    return MR_OK;
}

static mr_status refill(group_stage *self, uint64_t end, mr_error *error)
{
    uint64_t total = self->given.count, next = 0;
    assert(!self->inner.is_open && self->count <= self->capacity);
    for (uint64_t i = 0; i < self->count; i++) total += self->groups[i].count;
    mr_replay_item *wanted = calloc(total + 1, sizeof *wanted);
    if (wanted == nullptr) return mr_fail_memory(error, total * sizeof *wanted);
    for (uint64_t i = 0; i <= self->count; i++) {
        group *group = i < self->count ? &self->groups[i] : &self->given;
        for (uint64_t k = 0; k < group->count; k++)
            wanted[next++] = (mr_replay_item){group->origins[k], &group->items[k]};
    }
    assert(next == total);
    mr_status status = mr_replay_log_refill(&self->replay, self->stage.children[0], end, wanted, total, error);
    for (uint64_t i = 0; i < total; i++) {
        if (status == MR_OK) status = mr_item_keep(&self->stage, wanted[i].item, error);
        if (status != MR_OK) mr_item_deinit(wanted[i].item);
    }
    free(wanted);
    return status;
}

/* The elements of a group must have its key: functions receive no keys that the key function has not returned. */
static mr_status check_keys(group_stage *self, const group *group, mr_error *error)
{
    const group_settings *s = settings_of(self);
    for (uint64_t i = 0; i < group->count; i++) {
        int64_t key = 0;
        assert(group->items[i].payload != nullptr);
        mr_element element = mr_payload_view(group->items[i].payload);
        mr_status status = s->key(s->context, &element, &key, error);
        if (status != MR_OK || key != group->key) return mr_state_refuse(error);
    }
    return MR_OK;
}

static mr_status group_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    group_stage *self = (group_stage *)stage;
    uint64_t base = 0, end = 0, count = 0;
    bool is_open = false;
    empty(self);
    MR_TRY(mr_replay_log_restore(&self->replay, stage->children[0], reader, &base, &end, error));
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &self->window, error));
    MR_TRY(mr_state_get_bool(reader, &self->input_ended, error));
    MR_TRY(mr_state_get_count(reader, end - base, &count, error));
    for (uint64_t i = 0; i < count; i++) {
        group read = {0}, *group = nullptr;
        mr_status status = restore_group(self, reader, base, end, &read, error);
        if (status == MR_OK) status = find_group(self, read.key, &group, error);
        if (status == MR_OK && group->items != nullptr) status = mr_state_refuse(error);
        if (status != MR_OK) {
            group_free(self, &read);
            return status;
        }
        *group = read;
    }
    MR_TRY(mr_state_get_bool(reader, &is_open, error));
    if (is_open) MR_TRY(restore_group(self, reader, base, end, &self->given, error));
    MR_TRY(refill(self, end, error));
    for (uint64_t i = 0; i < self->count; i++) MR_TRY(check_keys(self, &self->groups[i], error));
    if (!is_open) return MR_OK;
    MR_TRY(check_keys(self, &self->given, error));
    if (self->given.count == 0) return mr_state_refuse(error);
    MR_TRY(open_window(self, error));
    return mr_stage_restore(self->inner.pipeline.top, reader, error);
}

/* ---- As a stage ---- */

static mr_status group_prepare(mr_stage *stage, mr_error *error)
{
    (void)error;
    group_stage *self = (group_stage *)stage;
    constexpr uint64_t INTERVAL = 1024;
    mr_inner_run_init(&self->run, stage, false);
    self->replay.stage = stage;
    self->replay.interval = INTERVAL;
    return MR_OK;
}

static void group_deinit(mr_stage *stage)
{
    group_stage *self = (group_stage *)stage;
    empty(self);
    mr_replay_log_deinit(&self->replay);
    free(self->groups);
}

static void settings_deinit(mr_dataset *dataset)
{
    const group_settings *s = dataset->settings;
    if (s->options.release != nullptr) s->options.release(s->context);
}

static const mr_stage_functions group_functions = {.begin = group_begin,
                                                   .next = group_next,
                                                   .seek = mr_stage_seek_forward,
                                                   .deinit = group_deinit,
                                                   .save = group_save,
                                                   .restore = group_restore};

static const mr_dataset_kind group_kind = {.name = "group_by_window",
                                           .role = MR_ROLE_STREAM,
                                           .digest = group_digest,
                                           .stage_size_bytes = sizeof(group_stage),
                                           .functions = &group_functions,
                                           .prepare = group_prepare,
                                           .deinit = settings_deinit};

mr_dataset *mr_dataset_group_by_window_(mr_dataset *input, mr_key_function key, mr_group_function function,
                                        void *context, const mr_element_spec *spec, const mr_group_options *given)
{
    mr_group_options options;
    input = MR_DATASET_READ(mr_group_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&group_kind, input, sizeof(group_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        if (options.release != nullptr) options.release(context);
        return dataset;
    }
    *(group_settings *)dataset->settings = (group_settings){key, function, context, options};
    if (mr_dataset_failed(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, key != nullptr, "key"))) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, function != nullptr, "function"))) return dataset;
    if (options.window_size_func == nullptr && options.window_size < 1)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "group_by_window: window_size is %lld, expected at least 1",
                               (long long)options.window_size);
    (void)mr_dataset_refuse(dataset, options.window_size_func != nullptr && options.window_size != 0, "window_size",
                            "window_size_func is called for each key");
    dataset->count = MR_CARDINALITY_UNKNOWN;
    return mr_dataset_take_spec(dataset, spec);
}
