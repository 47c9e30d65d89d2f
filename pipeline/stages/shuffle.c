/* shuffle, implemented in two ways.
 *
 * Global: the input has a known length, and the buffer holds all of it (or has size 0, which means that). Position p is
 * the input's item number permutation(p), which is computed; nothing is stored.
 *
 * Buffered, as in TensorFlow: a buffer of B items. Step p delivers the item of a slot drawn at random, and stores the
 * input's next item there. The slot is a function of (seed, iteration, p), so the buffer's content at any p can be
 * computed without going there: slot s holds the item that came in at the last step before p that drew s. Walking
 * backwards through the steps finds all slots in about B ln B steps, for any p.
 *
 * An element that fails occupies a slot like any other, so that the content of slots does not depend on failures.
 *
 * If the input is not seekable, a log (log.h) records which of its elements are in the buffer; failures are then
 * reported immediately. */
#include "pipeline/replay_log.h"

#include <assert.h>
#include <stdlib.h>

constexpr int64_t BUFFER_MAX = (int64_t)1 << 28;

typedef struct shuffle_settings {
    int64_t buffer;
    uint64_t seed;
    bool reshuffle_each_iteration;
} shuffle_settings;

typedef struct shuffle_stage {
    mr_stage stage;
    bool is_global;
    uint64_t seed;
    mr_permutation permutation;
    /* Buffered: slots [0, live) hold items; is_full after the buffer has been filled for the first time. */
    mr_item *slots;
    uint64_t size, live;
    bool is_full, input_ended;
    /* If the input is seekable, from the first failure on: */
    mr_error **failures; /* owned; one for each slot; null: none */
    mr_error failure;    /* a preallocated one */
    /* If it is not seekable: */
    uint64_t *origins; /* one for each slot's item */
    mr_replay_log replay;
    uint64_t counted; /* slots counted in the budget */
} shuffle_stage;

static uint64_t shuffle_digest(const mr_dataset *dataset)
{
    const shuffle_settings *s = dataset->settings;
    return mr_digest(mr_digest((uint64_t)s->buffer, s->seed), s->reshuffle_each_iteration);
}

static uint64_t drawn_iteration(const shuffle_stage *self)
{
    const shuffle_settings *s = self->stage.dataset->settings;
    return s->reshuffle_each_iteration ? self->stage.iteration : 0;
}

/* The slot that step `position` draws from count slots. */
static uint64_t draw(const shuffle_stage *self, uint64_t position, uint64_t count)
{
    assert(!self->is_global && count > 0 && count <= self->size);
    mr_random random = mr_random_at(self->seed, drawn_iteration(self), position, self->stage.purpose);
    return mr_random_below(&random, count);
}

/* Slots are counted in the budget when they are first used, many at a time. */
static mr_status take_slots(shuffle_stage *self, uint64_t count, mr_error *error)
{
    constexpr uint64_t COUNTED = 4096;
    assert(count <= self->size && self->counted <= self->size);
    if (count <= self->counted) return MR_OK;
    uint64_t counted = self->size - count < COUNTED ? self->size : count + COUNTED;
    size_t slot_bytes = sizeof *self->slots + (self->origins != nullptr ? sizeof *self->origins : 0);
    MR_TRY(mr_stage_keep(&self->stage, (counted - self->counted) * slot_bytes, error));
    self->counted = counted;
    assert(self->counted >= count && self->counted <= self->size);
    return MR_OK;
}

static void empty(shuffle_stage *self)
{
    assert(self->live <= self->size);
    for (uint64_t i = 0; i < self->live; i++) {
        mr_item_release(&self->stage, &self->slots[i]);
        mr_item_deinit(&self->slots[i]);
    }
    for (uint64_t i = 0; self->failures != nullptr && i < self->live; i++) {
        free(self->failures[i]);
        self->failures[i] = nullptr;
    }
    self->live = 0;
    self->is_full = self->input_ended = self->stage.is_too_large = false;
    mr_replay_log_clear(&self->replay);
}

static mr_status shuffle_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    shuffle_stage *self = (shuffle_stage *)stage;
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    /* Not in prepare, because restoring a state changes the run's seed. */
    const shuffle_settings *s = stage->dataset->settings;
    self->seed = mr_stage_seed(stage->run, s->seed, stage->purpose);
    if (!self->is_global)
        empty(self);
    else if (stage->count > 0)
        self->permutation = mr_permutation_init((uint64_t)stage->count, self->seed, drawn_iteration(self));
    return mr_stage_begin(stage->input, iteration, error);
}

/* Stores the failure in self->failure instead of the slot's item. */
static mr_status keep_failure(shuffle_stage *self, mr_status status, mr_error **kept, mr_error *error)
{
    assert(status != MR_OK && status != MR_OUT_OF_RANGE && self->origins == nullptr);
    if (self->failures == nullptr) self->failures = calloc(self->size, sizeof *self->failures);
    *kept = self->failures == nullptr ? nullptr : malloc(sizeof **kept);
    if (*kept == nullptr) return mr_fail_memory(error, sizeof **kept);
    **kept = self->failure;
    (*kept)->status = status;
    return MR_OK;
}

/* The input's next item, or its failure. */
static mr_status take(shuffle_stage *self, mr_item *item, mr_error **kept, mr_error *error)
{
    mr_stage *input = self->stage.input;
    uint64_t before = input->position;
    *kept = nullptr;
    if (self->origins != nullptr) return mr_stage_next(input, item, error);
    mr_status status = mr_stage_next(input, item, &self->failure);
    if (status == MR_OK) return MR_OK;
    bool is_over = status == MR_OUT_OF_RANGE || status == MR_CANCELLED || status == MR_RESOURCE_EXHAUSTED;
    *item = (mr_item){0};
    if (!is_over && input->position != before) return keep_failure(self, status, kept, error);
    if (error != nullptr) *error = self->failure;
    return status;
}

/* Takes the input's next item for a slot; false at the end. */
static mr_status refill(shuffle_stage *self, mr_item *item, mr_error **kept, bool *is_filled, mr_error *error)
{
    *is_filled = false;
    *kept = nullptr;
    *item = (mr_item){0}; /* its previous item has been delivered */
    if (self->input_ended) return MR_OK;
    if (self->origins != nullptr) MR_TRY(mr_replay_log_step(&self->replay, self->stage.input, error));
    mr_status status = take(self, item, kept, error);
    if (status == MR_OUT_OF_RANGE) {
        self->input_ended = true;
        return MR_OK;
    }
    if (status == MR_OK && item->payload != nullptr) status = mr_item_keep(&self->stage, item, error);
    *is_filled = status == MR_OK;
    return status;
}

static void keep_origin(shuffle_stage *self, uint64_t slot, uint64_t origin)
{
    assert(slot < self->size);
    self->origins[slot] = origin;
    mr_replay_log_retain(&self->replay, origin);
}

static mr_status fill(shuffle_stage *self, mr_error *error)
{
    bool is_filled = true;
    while (self->live < self->size && is_filled) {
        if (mr_run_is_cancelled(self->stage.run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        MR_TRY(take_slots(self, self->live + 1, error));
        uint64_t origin = self->stage.input->position;
        mr_error *kept = nullptr;
        MR_TRY(refill(self, &self->slots[self->live], &kept, &is_filled, error));
        if (!is_filled) break;
        if (self->failures != nullptr) self->failures[self->live] = kept;
        if (self->origins != nullptr) keep_origin(self, self->live, origin);
        self->live++;
    }
    self->is_full = true;
    assert(self->live == self->size || self->input_ended);
    return MR_OK;
}

static mr_status buffered_next(shuffle_stage *self, mr_item *item, mr_error *error)
{
    if (!self->is_full) MR_TRY(fill(self, error));
    if (self->live == 0) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    uint64_t slot = draw(self, self->stage.position, self->live), origin = self->stage.input->position;
    bool is_filled = false;
    assert(slot < self->live && self->live <= self->size);
    mr_item fresh = {0};
    mr_error *kept = nullptr, *failure = nullptr;
    MR_TRY(refill(self, &fresh, &kept, &is_filled, error));
    *item = self->slots[slot];
    if (self->failures != nullptr) {
        failure = self->failures[slot];
        self->failures[slot] = kept;
    }
    if (self->origins != nullptr) mr_replay_log_release(&self->replay, self->origins[slot]);
    if (!is_filled) {
        assert(self->input_ended && kept == nullptr);
        fresh = self->slots[--self->live];
        if (self->origins != nullptr) self->origins[slot] = self->origins[self->live];
        if (self->failures != nullptr && slot != self->live) {
            self->failures[slot] = self->failures[self->live];
            self->failures[self->live] = nullptr;
        }
    } else if (self->origins != nullptr) {
        keep_origin(self, slot, origin);
    }
    if (is_filled || slot != self->live) self->slots[slot] = fresh;
    self->stage.position++;
    if (item->payload != nullptr) mr_item_release(&self->stage, item);
    if (failure == nullptr) return MR_OK;
    mr_status status = failure->status;
    if (error != nullptr) *error = *failure;
    free(failure);
    return status;
}

static mr_status shuffle_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    shuffle_stage *self = (shuffle_stage *)stage;
    if (self->is_global) {
        if (mr_stage_ended(stage)) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
        uint64_t number = mr_permutation_at(&self->permutation, stage->position);
        assert(number < (uint64_t)stage->count);
        MR_TRY(mr_stage_seek(stage->input, number, error));
        return mr_order_pull(stage, item, error);
    }
    uint64_t before = stage->position, input_before = stage->input->position;
    mr_status status = buffered_next(self, item, error);
    /* An element that failed below takes a position of its own. */
    bool has_failed = status != MR_OK && status != MR_OUT_OF_RANGE && !stage->is_too_large;
    if (has_failed && stage->position == before && stage->input->position != input_before) stage->position++;
    MR_TRY(status);
    mr_count(&stage->counters->elements, 1);
    return MR_OK;
}

/* ---- Seeking with a buffer ---- */

typedef struct origin {
    uint64_t position; /* of the input */
    uint64_t slot;
} origin;

static int compare_origins(const void *a, const void *b)
{
    uint64_t x = ((const origin *)a)->position, y = ((const origin *)b)->position;
    return x < y ? -1 : x > y;
}

/* Computes where each slot's item came from after `steps` steps, if each step brought an item in. */
static mr_status find_origins(const shuffle_stage *self, uint64_t steps, origin *origins, mr_error *error)
{
    uint64_t missing = self->size;
    for (uint64_t s = 0; s < self->size; s++) origins[s] = (origin){.position = UINT64_MAX, .slot = s};
    for (uint64_t step = steps; step-- > 0 && missing > 0;) {
        if (mr_run_is_cancelled(self->stage.run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        uint64_t slot = draw(self, step, self->size);
        assert(slot < self->size);
        origin *found = &origins[slot];
        if (found->position != UINT64_MAX) continue;
        found->position = step + self->size;
        missing--;
    }
    for (uint64_t s = 0; s < self->size; s++)
        if (origins[s].position == UINT64_MAX) origins[s].position = s;
    return MR_OK;
}

/* Restores the buffer after `steps` steps; the input must be longer than steps + size - 1. */
static mr_status jump(shuffle_stage *self, uint64_t steps, mr_error *error)
{
    assert(!self->is_global && self->origins == nullptr && self->stage.is_seekable);
    empty(self);
    MR_TRY(take_slots(self, self->size, error));
    origin *origins = calloc(self->size, sizeof *origins);
    if (origins == nullptr) return mr_fail_memory(error, self->size * sizeof *origins);
    mr_status status = find_origins(self, steps, origins, error);
    /* In the input's order, because seeking backwards may be expensive. */
    if (status == MR_OK) qsort(origins, self->size, sizeof *origins, compare_origins);
    for (uint64_t i = 0; i < self->size; i++) self->slots[i] = (mr_item){0};
    self->live = self->size;
    for (uint64_t i = 0; i < self->size && status == MR_OK; i++) {
        assert(i == 0 || origins[i - 1].position < origins[i].position);
        status = mr_stage_seek(self->stage.input, origins[i].position, error);
        mr_error *kept = nullptr;
        if (status == MR_OK) status = take(self, &self->slots[origins[i].slot], &kept, error);
        if (self->failures != nullptr) self->failures[origins[i].slot] = kept;
        if (status == MR_OK) status = mr_item_keep(&self->stage, &self->slots[origins[i].slot], error);
    }
    free(origins);
    if (status == MR_OK) status = mr_stage_seek(self->stage.input, steps + self->size, error);
    self->is_full = true;
    self->stage.position = steps;
    return status;
}

static mr_status shuffle_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    shuffle_stage *self = (shuffle_stage *)stage;
    if (self->is_global) return mr_stage_seek_simple(stage, position, error);
    if (stage->count >= 0 && position > (uint64_t)stage->count) position = (uint64_t)stage->count;
    bool is_near = position > stage->position && position - stage->position <= self->size;
    if (stage->is_seekable && stage->count != MR_CARDINALITY_UNKNOWN && !is_near) {
        /* Near the end the buffer empties: seek to where that begins, and step forward. */
        uint64_t steps = position;
        assert(stage->count < 0 || (uint64_t)stage->count >= self->size);
        if (stage->count >= 0 && steps > (uint64_t)stage->count - self->size)
            steps = (uint64_t)stage->count - self->size;
        MR_TRY(jump(self, steps, error));
    }
    return mr_stage_seek_forward(stage, position, error);
}

static mr_status shuffle_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    shuffle_stage *self = (shuffle_stage *)stage;
    uint64_t base = 0;
    assert(self->origins != nullptr && self->live <= self->size);
    MR_TRY(mr_replay_log_save(&self->replay, stage->input, state, &base, error));
    MR_TRY(mr_state_put(state, self->is_full, error));
    MR_TRY(mr_state_put(state, self->live, error));
    for (uint64_t i = 0; i < self->live; i++) MR_TRY(mr_state_put(state, self->origins[i] - base, error));
    return MR_OK;
}

static mr_status shuffle_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    shuffle_stage *self = (shuffle_stage *)stage;
    const shuffle_settings *s = stage->dataset->settings;
    uint64_t live = 0, base = 0, end = 0;
    bool is_full = false;
    assert(self->origins != nullptr && !self->is_global);
    self->seed = mr_stage_seed(stage->run, s->seed, stage->purpose);
    empty(self);
    MR_TRY(mr_replay_log_restore(&self->replay, stage->input, reader, &base, &end, error));
    MR_TRY(mr_state_get_bool(reader, &is_full, error));
    MR_TRY(mr_state_get_count(reader, self->size, &live, error));
    mr_replay_item *wanted = calloc(live + 1, sizeof *wanted);
    if (wanted == nullptr) return mr_fail_memory(error, live * sizeof *wanted);
    mr_status status = MR_OK;
    for (uint64_t i = 0; i < live; i++) self->slots[i] = (mr_item){0};
    for (uint64_t i = 0; i < live && status == MR_OK; i++) {
        status = mr_state_get_below(reader, end - base, &self->origins[i], error);
        self->origins[i] += base;
        wanted[i] = (mr_replay_item){self->origins[i], &self->slots[i]};
    }
    self->live = live;
    self->is_full = is_full;
    if (status == MR_OK) status = take_slots(self, live, error);
    if (status == MR_OK) status = mr_replay_log_refill(&self->replay, stage->input, end, wanted, live, error);
    for (uint64_t i = 0; i < live; i++) {
        if (status == MR_OK) status = mr_item_keep(stage, &self->slots[i], error);
        if (status != MR_OK) mr_item_deinit(&self->slots[i]);
    }
    free(wanted);
    return status;
}

static mr_status shuffle_prepare(mr_stage *stage, mr_error *error)
{
    shuffle_stage *self = (shuffle_stage *)stage;
    const shuffle_settings *s = stage->dataset->settings;
    self->replay.stage = stage;
    bool holds_all = stage->count >= 0 && (s->buffer == 0 || s->buffer >= stage->count);
    self->is_global = holds_all && stage->is_seekable;
    if (self->is_global) return MR_OK;
    self->size = !holds_all ? (uint64_t)s->buffer : stage->count > 0 ? (uint64_t)stage->count : 1;
    if (self->size > (uint64_t)BUFFER_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "shuffle: %llu elements without an index cannot be shuffled globally; set buffer_size",
                       (unsigned long long)self->size);
    assert(self->size > 0);
    if (!stage->is_seekable) {
        self->origins = calloc(self->size, sizeof *self->origins);
        if (self->origins == nullptr) return mr_fail_memory(error, self->size * sizeof *self->origins);
        self->replay.interval = self->size;
    }
    self->slots = calloc(self->size, sizeof *self->slots);
    return self->slots == nullptr ? mr_fail_memory(error, self->size * sizeof *self->slots) : MR_OK;
}

static void shuffle_deinit(mr_stage *stage)
{
    shuffle_stage *self = (shuffle_stage *)stage;
    if (self->slots != nullptr) empty(self);
    free(self->slots);
    free(self->failures);
    free(self->origins);
    mr_replay_log_deinit(&self->replay);
}

static const mr_stage_functions shuffle_functions = {.begin = shuffle_begin,
                                                     .next = shuffle_next,
                                                     .seek = shuffle_seek,
                                                     .deinit = shuffle_deinit,
                                                     .save = shuffle_save,
                                                     .restore = shuffle_restore};

static const mr_dataset_kind shuffle_kind = {.name = "shuffle",
                                             .role = MR_ROLE_ORDER,
                                             .digest = shuffle_digest,
                                             .stage_size_bytes = sizeof(shuffle_stage),
                                             .functions = &shuffle_functions,
                                             .prepare = shuffle_prepare};

mr_dataset *mr_dataset_shuffle_(mr_dataset *input, const mr_shuffle_options *given)
{
    static const mr_shuffle_options defaults = {.size = sizeof defaults, MR_SHUFFLE_DEFAULTS};
    mr_shuffle_options options;
    input = MR_DATASET_READ(mr_shuffle_options, &options, input, given != nullptr ? given : &defaults);
    mr_dataset *dataset = mr_dataset_new(&shuffle_kind, input, sizeof(shuffle_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    *(shuffle_settings *)dataset->settings =
        (shuffle_settings){options.buffer_size, options.seed, options.reshuffle_each_iteration};
    if (options.buffer_size < 0)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "shuffle: buffer_size is %lld, expected at least 0",
                               (long long)options.buffer_size);
    if (options.buffer_size == 0 && input->count == MR_INFINITE)
        return mr_dataset_fail(
            dataset, MR_INVALID_ARGUMENT,
            "shuffle: infinite data cannot be shuffled globally; use repeat after shuffle, or set buffer_size");
    if (options.buffer_size == 0 && input->count < 0)
        return mr_dataset_fail(
            dataset, MR_INVALID_ARGUMENT,
            "shuffle: data of unknown length (compressed records) cannot be shuffled globally; set buffer_size");
    if (options.buffer_size > BUFFER_MAX && !(input->count >= 0 && options.buffer_size >= input->count))
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "shuffle: buffer_size is %lld, expected at most %lld",
                               (long long)options.buffer_size, (long long)BUFFER_MAX);
    return dataset;
}
