/* flat_map and interleave: create a dataset from each element of the input, and deliver the elements of these datasets.
 *
 * The slots of the cycle are visited in order. A slot delivers block_length elements, then the next slot follows. A
 * slot whose dataset has ended is skipped, and opens the input's next element on the next visit, as in TensorFlow.
 * flat_map is a cycle of one slot. The state contains, for each open slot, the input's state before its element, and
 * the inner pipeline's state. */
#include "pipeline/inner.h"

#include <assert.h>
#include <stdlib.h>

typedef struct flat_map_settings {
    mr_dataset_function function;
    void *context;
    void (*release)(void *context);
    int64_t cycle_length, block_length;
    bool parallel;
} flat_map_settings;

typedef struct slot {
    mr_inner inner;
    uint64_t element; /* number of the input's element */
    mr_state before;  /* the input's state before it; empty if the input is seekable */
} slot;

typedef struct flat_map_stage {
    mr_stage stage;
    mr_run run; /* of the inner pipelines: run by the caller, or by one thread each */
    slot *slots;
    int64_t slot_count;
    int64_t current; /* slot that delivers next */
    int64_t given;   /* elements of the current block delivered so far */
    bool input_ended;
    size_t counted_bytes; /* memory of slots and saved states */
} flat_map_stage;

static const flat_map_settings *settings_of(const mr_stage *stage)
{
    return stage->dataset->settings;
}

static uint64_t flat_map_digest(const mr_dataset *dataset)
{
    const flat_map_settings *s = dataset->settings;
    return mr_digest((uint64_t)s->cycle_length, (uint64_t)s->block_length);
}

static void close_slots(flat_map_stage *self)
{
    for (int64_t i = 0; i < self->slot_count; i++) mr_inner_close(&self->slots[i].inner);
    self->current = self->given = 0;
    self->input_ended = false;
}

static mr_status flat_map_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    close_slots((flat_map_stage *)stage);
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    return mr_stage_begin(stage->children[0], iteration, error);
}

/* Opens a pipeline for the input's element in the slot. */
static mr_status make_with(flat_map_stage *self, slot *slot, const mr_item *item, mr_error *error)
{
    const flat_map_settings *s = settings_of(&self->stage);
    mr_dataset *made = nullptr;
    assert(!slot->inner.is_open && item->payload != nullptr);
    mr_element element = mr_payload_view(item->payload);
    mr_status status = s->function(s->context, &element, &made, error);
    if (status == MR_OUT_OF_RANGE) status = mr_fail_out_of_range(error);
    if (status == MR_OK && made == nullptr) status = mr_inner_fail_absent(error);
    if (status != MR_OK) {
        mr_dataset_free(made);
        return status;
    }
    return mr_inner_open(&slot->inner, made, &self->run, self->stage.run, &self->stage.dataset->spec,
                         self->stage.purpose, mr_digest(self->stage.iteration, slot->element), error);
}

static mr_status open_with(flat_map_stage *self, slot *slot, const mr_item *item, mr_error *error)
{
    return mr_stage_fail_prefix(&self->stage, "element", slot->element, make_with(self, slot, item, error), error);
}

/* Takes the input's next element into the slot. errors: MR_OUT_OF_RANGE if there is none */
static mr_status open_slot(flat_map_stage *self, slot *slot, mr_error *error)
{
    mr_stage *input = self->stage.children[0];
    mr_item item = {0};
    assert(!self->input_ended && !slot->inner.is_open);
    slot->element = input->position;
    mr_state_clear(&slot->before);
    if (!input->is_seekable) {
        size_t before_bytes = slot->before.capacity_bytes;
        MR_TRY(mr_stage_save(input, &slot->before, error));
        mr_stage_keep_unlimited(&self->stage, &self->counted_bytes,
                                self->counted_bytes + slot->before.capacity_bytes - before_bytes);
    }
    MR_TRY(mr_stage_next(input, &item, error));
    mr_status status = open_with(self, slot, &item, error);
    mr_item_deinit(&item);
    return status;
}

static void step(flat_map_stage *self)
{
    assert(self->current >= 0 && self->current < self->slot_count);
    self->current = (self->current + 1) % self->slot_count;
    self->given = 0;
}

static mr_status flat_map_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    flat_map_stage *self = (flat_map_stage *)stage;
    const flat_map_settings *s = settings_of(stage);
    for (int64_t idle = 0; idle <= self->slot_count;) {
        assert(self->current < self->slot_count && self->given < s->block_length);
        slot *slot = &self->slots[self->current];
        if (!slot->inner.is_open) {
            mr_status status = self->input_ended ? MR_OUT_OF_RANGE : open_slot(self, slot, error);
            if (status == MR_OUT_OF_RANGE) {
                self->input_ended = true;
                step(self);
                idle++;
                continue;
            }
            if (status != MR_OK) {
                if (stage->children[0]->position != slot->element) stage->position++;
                return status;
            }
        }
        assert(slot->inner.is_open);
        uint64_t before = stage->position;
        mr_status status = mr_inner_next(&slot->inner, stage, item, error);
        if (status == MR_OUT_OF_RANGE) {
            /* The slot takes the input's next element on the next visit, as in TensorFlow. */
            mr_inner_close(&slot->inner);
            step(self);
            idle = 0;
            continue;
        }
        if (stage->position != before && ++self->given == s->block_length) step(self);
        return status;
    }
    return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
}

/* ---- The state ---- */

static mr_status save_slot(flat_map_stage *self, slot *slot, mr_state *state, mr_error *error)
{
    MR_TRY(mr_state_put(state, slot->inner.is_open, error));
    if (!slot->inner.is_open) return MR_OK;
    MR_TRY(mr_state_put(state, slot->element, error));
    if (!self->stage.children[0]->is_seekable)
        MR_TRY(mr_state_put_bytes(state, slot->before.bytes, slot->before.size_bytes, error));
    return mr_stage_save(slot->inner.pipeline.top, state, error);
}

static mr_status flat_map_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    flat_map_stage *self = (flat_map_stage *)stage;
    MR_TRY(mr_state_put(state, (uint64_t)self->current, error));
    MR_TRY(mr_state_put(state, (uint64_t)self->given, error));
    MR_TRY(mr_state_put(state, self->input_ended, error));
    for (int64_t i = 0; i < self->slot_count; i++) MR_TRY(save_slot(self, &self->slots[i], state, error));
    return mr_stage_save(stage->children[0], state, error);
}

/* Creates the slot's dataset again from the input's element. */
static mr_status restore_slot(flat_map_stage *self, slot *slot, mr_state_reader *reader, mr_error *error)
{
    mr_stage *input = self->stage.children[0];
    bool is_open = false;
    MR_TRY(mr_state_get_bool(reader, &is_open, error));
    if (!is_open) return MR_OK;
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &slot->element, error));
    assert(!slot->inner.is_open);
    mr_state_clear(&slot->before);
    if (input->is_seekable) {
        MR_TRY(mr_stage_begin(input, self->stage.iteration, error));
        MR_TRY(mr_stage_seek(input, slot->element, error));
    } else {
        const void *bytes = nullptr;
        size_t size_bytes = 0;
        MR_TRY(mr_state_get_bytes(reader, &bytes, &size_bytes, error));
        mr_state_reader before = {bytes, (const unsigned char *)bytes + size_bytes};
        MR_TRY(mr_stage_restore(input, &before, error));
        MR_TRY(mr_stage_save(input, &slot->before, error));
    }
    mr_item item = {0};
    if (input->position != slot->element) return mr_state_refuse(error);
    MR_TRY(mr_state_found(mr_stage_next(input, &item, error), error));
    mr_status status = open_with(self, slot, &item, error);
    mr_item_deinit(&item);
    MR_TRY(status);
    return mr_stage_restore(slot->inner.pipeline.top, reader, error);
}

static mr_status flat_map_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    flat_map_stage *self = (flat_map_stage *)stage;
    uint64_t current = 0, given = 0;
    bool input_ended = false;
    close_slots(self);
    MR_TRY(mr_state_get_below(reader, (uint64_t)self->slot_count - 1, &current, error));
    MR_TRY(mr_state_get_below(reader, (uint64_t)settings_of(stage)->block_length - 1, &given, error));
    MR_TRY(mr_state_get_bool(reader, &input_ended, error));
    self->current = (int64_t)current;
    self->given = (int64_t)given;
    for (int64_t i = 0; i < self->slot_count; i++) MR_TRY(restore_slot(self, &self->slots[i], reader, error));
    self->input_ended = input_ended;
    return mr_stage_restore(stage->children[0], reader, error);
}

/* ---- As a stage ---- */

static mr_status flat_map_prepare(mr_stage *stage, mr_error *error)
{
    flat_map_stage *self = (flat_map_stage *)stage;
    const flat_map_settings *s = settings_of(stage);
    mr_inner_run_init(&self->run, stage, s->parallel);
    assert(s->cycle_length >= 1 && s->block_length >= 1);
    self->slot_count = s->cycle_length;
    self->slots = calloc((size_t)self->slot_count, sizeof *self->slots);
    if (self->slots == nullptr) {
        self->slot_count = 0;
        return mr_fail_memory(error, (size_t)s->cycle_length * sizeof *self->slots);
    }
    mr_stage_keep_unlimited(stage, &self->counted_bytes, (size_t)s->cycle_length * sizeof *self->slots);
    return MR_OK;
}

static void flat_map_deinit(mr_stage *stage)
{
    flat_map_stage *self = (flat_map_stage *)stage;
    close_slots(self);
    for (int64_t i = 0; i < self->slot_count; i++) mr_state_deinit(&self->slots[i].before);
    free(self->slots);
}

static const mr_stage_functions flat_map_functions = {.begin = flat_map_begin,
                                                      .next = flat_map_next,
                                                      .seek = mr_stage_seek_forward,
                                                      .deinit = flat_map_deinit,
                                                      .save = flat_map_save,
                                                      .restore = flat_map_restore};

static void settings_deinit(mr_dataset *dataset)
{
    const flat_map_settings *s = dataset->settings;
    if (s->release != nullptr) s->release(s->context);
}

static const mr_dataset_kind flat_map_kind = {.name = "flat_map",
                                              .role = MR_ROLE_STREAM,
                                              .digest = flat_map_digest,
                                              .stage_size_bytes = sizeof(flat_map_stage),
                                              .functions = &flat_map_functions,
                                              .prepare = flat_map_prepare,
                                              .deinit = settings_deinit};
static const mr_dataset_kind interleave_kind = {.name = "interleave",
                                                .role = MR_ROLE_STREAM,
                                                .digest = flat_map_digest,
                                                .stage_size_bytes = sizeof(flat_map_stage),
                                                .functions = &flat_map_functions,
                                                .prepare = flat_map_prepare,
                                                .deinit = settings_deinit};

static mr_dataset *make(const mr_dataset_kind *kind, mr_dataset *input, const mr_element_spec *spec,
                        const flat_map_settings *settings)
{
    constexpr int64_t CYCLE_MAX = 1 << 16;
    mr_dataset *dataset = mr_dataset_new(kind, input, sizeof *settings);
    if (mr_dataset_is_unallocated(dataset)) {
        if (settings->release != nullptr) settings->release(settings->context);
        return dataset;
    }
    *(flat_map_settings *)dataset->settings = *settings;
    if (mr_dataset_failed(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, settings->function != nullptr, "function"))) return dataset;
    if (settings->cycle_length < 1 || settings->cycle_length > CYCLE_MAX || settings->block_length < 1)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: invalid cycle_length %lld or block_length %lld",
                               kind->name, (long long)settings->cycle_length, (long long)settings->block_length);
    dataset->count = MR_CARDINALITY_UNKNOWN;
    dataset->is_heavy |= settings->parallel;
    return mr_dataset_take_spec(dataset, spec);
}

mr_dataset *mr_dataset_flat_map_(mr_dataset *input, mr_dataset_function function, void *context,
                                 const mr_element_spec *spec, const mr_function_options *given)
{
    mr_function_options options;
    input = MR_DATASET_READ(mr_function_options, &options, input, given);
    mr_dataset *dataset =
        make(&flat_map_kind, input, spec,
             &(flat_map_settings){function, context, options.release, .cycle_length = 1, .block_length = 1});
    return mr_dataset_refuse(dataset, options.num_parallel_calls != 0, "num_parallel_calls",
                             "one dataset is open at a time");
}

mr_dataset *mr_dataset_interleave_(mr_dataset *input, mr_dataset_function function, void *context,
                                   const mr_element_spec *spec, const mr_interleave_options *given)
{
    mr_interleave_options options;
    input = MR_DATASET_READ(mr_interleave_options, &options, input, given);
    constexpr int64_t CYCLE_TUNED = 16;
    return make(&interleave_kind, input, spec,
                &(flat_map_settings){function, context, options.release,
                                     .cycle_length = options.cycle_length == 0 ? CYCLE_TUNED : options.cycle_length,
                                     .block_length = options.block_length == 0 ? 1 : options.block_length,
                                     .parallel = options.parallel});
}
