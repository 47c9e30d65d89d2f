/* window: windows of consecutive elements, each of which a function turns into a dataset.
 *
 * Window w has the elements w·shift, w·shift + stride, … The elements from its first one on are in a queue (ring); when
 * the window is done, those before the next window are removed. The log records their origins. */
#include "pipeline/inner.h"
#include "pipeline/replay_log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct window_settings {
    mr_window_function function;
    void *context;
    mr_window_options options;
} window_settings;

typedef struct buffered_item {
    mr_item item;
    uint64_t origin;
} buffered_item;

typedef struct window_stage {
    mr_stage stage;
    mr_run run;
    mr_inner inner;
    uint64_t window;      /* number of the current window, or the next */
    uint64_t first;       /* number of the queue's first element, not counting failed ones */
    buffered_item *queue; /* owned; at most span entries */
    uint64_t count, capacity;
    mr_item *picked; /* owned array of one window's items, which are borrowed; of the same capacity */
    bool input_ended;
    mr_replay_log replay;
} window_stage;

static const window_settings *settings_of(const window_stage *self)
{
    return self->stage.dataset->settings;
}

static uint64_t window_digest(const mr_dataset *dataset)
{
    const mr_window_options *o = &((const window_settings *)dataset->settings)->options;
    return mr_digest(mr_digest(mr_digest((uint64_t)o->window_size, (uint64_t)o->shift), (uint64_t)o->stride),
                     o->drop_remainder);
}

/* Distance from the first element of a window to the end of its last one. Windows may be larger than any input. */
static uint64_t span_of(const mr_window_options *o)
{
    assert(o->window_size >= 1 && o->stride >= 1 && o->shift >= 1);
    uint64_t span = 0;
    bool is_larger = __builtin_mul_overflow((uint64_t)(o->window_size - 1), (uint64_t)o->stride, &span);
    return is_larger || span >= MR_POSITION_MAX ? MR_POSITION_MAX : span + 1;
}

static uint64_t start_of(const window_stage *self)
{
    uint64_t start = 0;
    bool is_larger = __builtin_mul_overflow(self->window, (uint64_t)settings_of(self)->options.shift, &start);
    return is_larger ? UINT64_MAX : start;
}

/* Memory for each element besides its tensors: its entry in the queue, and in the dataset of a window. */
constexpr size_t ENTRY_BYTES = sizeof(buffered_item) + sizeof(mr_item) + sizeof(mr_tensor);

static void let_go(window_stage *self, mr_item *item)
{
    mr_stage_release(&self->stage, ENTRY_BYTES);
    mr_item_release(&self->stage, item);
    mr_item_deinit(item);
}

static mr_status keep(window_stage *self, mr_item *item, mr_error *error)
{
    mr_status status = mr_stage_keep(&self->stage, ENTRY_BYTES, error);
    if (status != MR_OK) {
        mr_item_deinit(item);
        return status;
    }
    status = mr_item_keep(&self->stage, item, error);
    if (status != MR_OK) mr_stage_release(&self->stage, ENTRY_BYTES);
    return status;
}

static mr_status reserve(window_stage *self, uint64_t count, mr_error *error)
{
    if (count <= self->capacity) return MR_OK;
    uint64_t capacity = 2 * self->capacity + 64;
    if (capacity < count) capacity = count;
    buffered_item *queue = realloc(self->queue, capacity * sizeof *queue);
    if (queue == nullptr) return mr_fail_memory(error, capacity * sizeof *queue);
    self->queue = queue;
    mr_item *picked = realloc(self->picked, capacity * sizeof *picked);
    if (picked == nullptr) return mr_fail_memory(error, capacity * sizeof *picked);
    self->picked = picked;
    self->capacity = capacity;
    return MR_OK;
}

static void drop_first(window_stage *self, uint64_t count)
{
    assert(count <= self->count && self->count <= span_of(&settings_of(self)->options));
    for (uint64_t i = 0; i < count; i++) {
        mr_replay_log_release(&self->replay, self->queue[i].origin);
        let_go(self, &self->queue[i].item);
    }
    self->count -= count;
    memmove(self->queue, self->queue + count, self->count * sizeof *self->queue);
    self->first += count;
}

static void empty(window_stage *self)
{
    mr_inner_close(&self->inner);
    assert(self->count <= span_of(&settings_of(self)->options));
    for (uint64_t i = 0; i < self->count; i++) let_go(self, &self->queue[i].item);
    self->count = 0;
    self->first = self->window = 0;
    self->input_ended = self->stage.is_too_large = false;
    mr_replay_log_clear(&self->replay);
}

static mr_status window_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    empty((window_stage *)stage);
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    return mr_stage_begin(stage->children[0], iteration, error);
}

/* Fills the queue from the window's first element to its last, or to the end of the input. */
static mr_status fill(window_stage *self, mr_error *error)
{
    const mr_window_options *o = &settings_of(self)->options;
    mr_stage *input = self->stage.children[0];
    uint64_t start = start_of(self), span = span_of(o);
    if (self->first < start) drop_first(self, start - self->first < self->count ? start - self->first : self->count);
    while (!self->input_ended && (self->first < start || self->count < span)) {
        mr_item item = {0};
        MR_TRY(mr_replay_log_step(&self->replay, input, error));
        uint64_t origin = input->position;
        mr_status status = mr_stage_next(input, &item, error);
        if (status == MR_OUT_OF_RANGE) {
            self->input_ended = true;
            break;
        }
        if (status != MR_OK) {
            if (input->position != origin) self->stage.position++;
            return status;
        }
        if (self->first < start) {
            self->first++;
            mr_item_deinit(&item);
            continue;
        }
        assert(self->first == start && self->count < span);
        status = reserve(self, self->count + 1, error);
        if (status != MR_OK) {
            mr_item_deinit(&item);
            return status;
        }
        MR_TRY(keep(self, &item, error));
        self->queue[self->count++] = (buffered_item){item, origin};
        mr_replay_log_retain(&self->replay, origin);
    }
    assert(self->count == 0 || self->first == start);
    assert(self->input_ended || self->count == span);
    return MR_OK;
}

/* Creates the dataset of the window in the queue. */
static mr_status open_window(window_stage *self, mr_error *error)
{
    const window_settings *s = settings_of(self);
    const mr_dataset *dataset = self->stage.dataset;
    int64_t count = 0;
    assert(!self->inner.is_open && self->count > 0);
    for (uint64_t i = 0; i < self->count && count < s->options.window_size; i += (uint64_t)s->options.stride)
        self->picked[count++] = self->queue[i].item;
    assert(count >= 1 && count <= s->options.window_size);
    mr_dataset *window = mr_dataset_of_items(&dataset->input->spec, self->picked, count), *made = nullptr;
    mr_status status = MR_OK;
    if (s->function == nullptr)
        made = mr_dataset_batch(window, count);
    else
        status = s->function(s->context, window, &made, error);
    if (status == MR_OK && made == nullptr) status = mr_inner_fail_absent(error);
    if (status != MR_OK) {
        mr_dataset_free(made);
        return mr_stage_fail_prefix(&self->stage, "window", self->window, status, error);
    }
    return mr_inner_open(&self->inner, made, &self->run, self->stage.run, &dataset->spec, self->stage.purpose,
                         mr_digest(self->stage.iteration, self->window), error);
}

static mr_status window_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    window_stage *self = (window_stage *)stage;
    const mr_window_options *o = &settings_of(self)->options;
    for (;;) {
        if (self->inner.is_open) {
            mr_status status = mr_inner_next(&self->inner, stage, item, error);
            if (status != MR_OUT_OF_RANGE) return status;
            mr_inner_close(&self->inner);
            self->window++;
        }
        MR_TRY(fill(self, error));
        if (self->count == 0 || (o->drop_remainder && self->count < span_of(o)))
            return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
        mr_status status = open_window(self, error);
        if (status == MR_OK) continue;
        /* This window is lost; the following ones still come. */
        self->window++;
        stage->position++;
        return status;
    }
}

static mr_status window_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    window_stage *self = (window_stage *)stage;
    uint64_t base = 0;
    assert(!self->inner.is_open || self->count > 0);
    MR_TRY(mr_replay_log_save(&self->replay, stage->children[0], state, &base, error));
    MR_TRY(mr_state_put(state, self->window, error));
    MR_TRY(mr_state_put(state, self->first, error));
    MR_TRY(mr_state_put(state, self->input_ended, error));
    MR_TRY(mr_state_put(state, self->count, error));
    for (uint64_t i = 0; i < self->count; i++) MR_TRY(mr_state_put(state, self->queue[i].origin - base, error));
    MR_TRY(mr_state_put(state, self->inner.is_open, error));
    return self->inner.is_open ? mr_stage_save(self->inner.pipeline.top, state, error) : MR_OK;
}

static mr_status restore_queue(window_stage *self, mr_state_reader *reader, mr_error *error)
{
    mr_stage *input = self->stage.children[0];
    const mr_window_options *o = &settings_of(self)->options;
    uint64_t base = 0, end = 0, count = 0, shift = (uint64_t)o->shift;
    MR_TRY(mr_replay_log_restore(&self->replay, input, reader, &base, &end, error));
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX / shift + 1, &self->window, error));
    MR_TRY(mr_state_get_below(reader, self->window * shift, &self->first, error));
    /* The previous window began at the start of the queue, or after it. */
    if (self->window * shift - self->first > shift) return mr_state_refuse(error);
    MR_TRY(mr_state_get_bool(reader, &self->input_ended, error));
    MR_TRY(mr_state_get_count(reader, span_of(o), &count, error));
    assert(self->count == 0 && count <= span_of(o));
    mr_replay_item *wanted = calloc(count + 1, sizeof *wanted);
    if (wanted == nullptr) return mr_fail_memory(error, count * sizeof *wanted);
    mr_status status = MR_OK;
    if (count > 0) status = reserve(self, count, error);
    if (status == MR_OK && count > 0) memset(self->queue, 0, count * sizeof *self->queue);
    for (uint64_t i = 0; i < count && status == MR_OK; i++) {
        uint64_t origin = 0;
        status = mr_state_get_below(reader, end - base, &origin, error);
        self->queue[i] = (buffered_item){.origin = base + origin};
        wanted[i] = (mr_replay_item){base + origin, &self->queue[i].item};
    }
    if (status == MR_OK) status = mr_replay_log_refill(&self->replay, input, end, wanted, count, error);
    for (uint64_t i = 0; i < count && i < self->capacity; i++) {
        if (status == MR_OK) status = keep(self, &self->queue[i].item, error);
        if (status == MR_OK)
            self->count = i + 1;
        else
            mr_item_deinit(&self->queue[i].item);
    }
    free(wanted);
    return status;
}

static mr_status window_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    window_stage *self = (window_stage *)stage;
    bool is_open = false;
    empty(self);
    MR_TRY(restore_queue(self, reader, error));
    MR_TRY(mr_state_get_bool(reader, &is_open, error));
    if (!is_open) return MR_OK;
    if (self->count == 0) return mr_state_refuse(error);
    MR_TRY(open_window(self, error));
    return mr_stage_restore(self->inner.pipeline.top, reader, error);
}

static mr_status window_prepare(mr_stage *stage, mr_error *error)
{
    window_stage *self = (window_stage *)stage;
    (void)error;
    mr_inner_run_init(&self->run, stage, false);
    self->replay.stage = stage;
    self->replay.interval = span_of(&settings_of(self)->options);
    return MR_OK;
}

static void window_deinit(mr_stage *stage)
{
    window_stage *self = (window_stage *)stage;
    empty(self);
    mr_replay_log_deinit(&self->replay);
    free(self->queue);
    free(self->picked);
}

static void settings_deinit(mr_dataset *dataset)
{
    const window_settings *s = dataset->settings;
    if (s->options.release != nullptr) s->options.release(s->context);
}

static const mr_stage_functions window_functions = {.begin = window_begin,
                                                    .next = window_next,
                                                    .seek = mr_stage_seek_forward,
                                                    .deinit = window_deinit,
                                                    .save = window_save,
                                                    .restore = window_restore};

static const mr_dataset_kind window_kind = {.name = "window",
                                            .role = MR_ROLE_STREAM,
                                            .digest = window_digest,
                                            .stage_size_bytes = sizeof(window_stage),
                                            .functions = &window_functions,
                                            .prepare = window_prepare,
                                            .deinit = settings_deinit};

mr_dataset *mr_dataset_window_(mr_dataset *input, mr_window_function function, void *context,
                               const mr_element_spec *spec, const mr_window_options *given)
{
    mr_window_options options;
    input = MR_DATASET_READ(mr_window_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&window_kind, input, sizeof(window_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        if (options.release != nullptr) options.release(context);
        return dataset;
    }
    window_settings *s = dataset->settings;
    *s = (window_settings){function, context, options};
    if (s->options.shift == 0) s->options.shift = options.window_size;
    if (s->options.stride == 0) s->options.stride = 1;
    if (mr_dataset_failed(dataset)) return dataset;
    if (options.window_size < 1 || s->options.shift < 1 || s->options.stride < 1)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "window: invalid size %lld, shift %lld or stride %lld",
                               (long long)options.window_size, (long long)options.shift, (long long)options.stride);
    dataset->count = MR_CARDINALITY_UNKNOWN;
    mr_error error = {0};
    if (function == nullptr)
        return mr_spec_batch(&dataset->spec, -1, &error) == MR_OK
                   ? dataset
                   : mr_dataset_fail(dataset, error.status, "window: %s", error.message);
    return mr_dataset_take_spec(dataset, spec);
}
