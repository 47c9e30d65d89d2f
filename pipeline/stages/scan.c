/* scan: passes a state from element to element. And reduce, a scan of which only the last state is used. */
#include "pipeline/scan.h"
#include "base/arguments.h"
#include "base/element.h"

#include <assert.h>

typedef struct scan_settings {
    mr_scan_function function;
    void *context;
    mr_function_options options;
    int32_t count;
    mr_tensor *initial; /* owned */
    bool can_end;
} scan_settings;

typedef struct scan_stage {
    mr_stage stage;
    mr_element state, next_state, output; /* the latter two are empty between elements */
    size_t counted_bytes;
    bool has_ended; /* the function has ended the sequence */
} scan_stage;

static uint64_t scan_digest(const mr_dataset *dataset)
{
    const scan_settings *s = dataset->settings;
    uint64_t digest = mr_digest(s->can_end ? 11 : 10, (uint64_t)s->count);
    for (int32_t i = 0; i < s->count; i++) digest = mr_digest_tensor(digest, &s->initial[i]);
    return digest;
}

static void count_state(scan_stage *self)
{
    size_t size_bytes = 0;
    for (int32_t i = 0; i < self->state.count; i++) size_bytes += mr_tensor_held_bytes(&self->state.tensors[i]);
    mr_stage_keep_unlimited(&self->stage, &self->counted_bytes, size_bytes);
}

static mr_status scan_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    scan_stage *self = (scan_stage *)stage;
    const scan_settings *s = stage->dataset->settings;
    MR_TRY(mr_element_reserve(&self->state, MR_COMPONENTS_MAX, error));
    for (int32_t i = 0; i < s->count; i++) self->state.tensors[i] = mr_tensor_ref(&s->initial[i]);
    self->state.count = s->count;
    self->has_ended = false;
    return mr_stream_begin(stage, iteration, error);
}

static mr_status check_scanned(const scan_stage *self, mr_error *error)
{
    /* The dtypes of the state are fixed, shapes may change. */
    mr_element_spec states = {.count = self->state.count};
    for (int32_t i = 0; i < states.count; i++) {
        states.dtypes[i] = self->state.tensors[i].dtype;
        states.shapes[i] = MR_SHAPE_UNKNOWN;
    }
    mr_status status = mr_element_check(&states, &self->next_state, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "the next state");
    return mr_element_check(&self->stage.dataset->spec, &self->output, error);
}

static mr_status scan_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    scan_stage *self = (scan_stage *)stage;
    const scan_settings *s = stage->dataset->settings;
    mr_item taken = {0};
    mr_element *output = &self->output;
    if (self->has_ended) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    MR_TRY(mr_element_offer(&self->next_state, error));
    MR_TRY(mr_element_offer(output, error));
    MR_TRY(mr_stream_pull(stage, &taken, error));
    assert(self->state.count == s->count && taken.payload != nullptr);
    mr_element input = mr_payload_view(taken.payload);
    mr_status status = s->function(s->context, &self->state, &input, &self->next_state, output, error);
    if (status == MR_OUT_OF_RANGE && s->can_end) {
        mr_item_deinit(&taken);
        mr_element_clear_all(&self->next_state);
        mr_element_clear_all(output);
        self->has_ended = true;
        return status;
    }
    if (status == MR_OK) status = check_scanned(self, error);
    status = mr_stage_fail_prefix(stage, "element", taken.number, status, error);
    mr_item_deinit(&taken);
    mr_payload *payload = status == MR_OK ? mr_payload_new(output->count) : nullptr;
    if (status == MR_OK && payload == nullptr) status = mr_fail_memory(error, sizeof *payload);
    if (status != MR_OK) {
        mr_element_clear_all(&self->next_state);
        mr_element_clear_all(output);
        stage->position++;
        return status;
    }
    for (int32_t i = 0; i < output->count; i++) {
        payload->tensors[i] = output->tensors[i];
        output->tensors[i] = (mr_tensor){0};
    }
    output->count = 0;
    mr_element before = self->state;
    self->state = self->next_state;
    self->next_state = before;
    mr_element_clear(&self->next_state);
    assert(self->state.count == s->count && payload->count == stage->dataset->spec.count);
    count_state(self);
    *item = (mr_item){.payload = payload};
    mr_stream_number(stage, item);
    return MR_OK;
}

static mr_status scan_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    const scan_stage *self = (const scan_stage *)stage;
    assert(self->state.count == ((const scan_settings *)stage->dataset->settings)->count);
    for (int32_t i = 0; i < self->state.count; i++) MR_TRY(mr_state_put_tensor(state, &self->state.tensors[i], error));
    if (((const scan_settings *)stage->dataset->settings)->can_end) MR_TRY(mr_state_put(state, self->has_ended, error));
    return mr_stage_save(stage->children[0], state, error);
}

static mr_status scan_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    scan_stage *self = (scan_stage *)stage;
    const scan_settings *s = stage->dataset->settings;
    MR_TRY(mr_element_reserve(&self->state, MR_COMPONENTS_MAX, error));
    for (int32_t i = 0; i < s->count; i++) {
        MR_TRY(mr_state_get_tensor(reader, &self->state.tensors[i], error));
        self->state.count = i + 1;
        if (self->state.tensors[i].dtype != s->initial[i].dtype) return mr_state_refuse(error);
    }
    self->has_ended = false;
    if (s->can_end) MR_TRY(mr_state_get_bool(reader, &self->has_ended, error));
    return mr_stage_restore(stage->children[0], reader, error);
}

static void scan_stage_deinit(mr_stage *stage)
{
    scan_stage *self = (scan_stage *)stage;
    mr_element_deinit(&self->state);
    mr_element_deinit(&self->next_state);
    mr_element_deinit(&self->output);
}

static void scan_deinit(mr_dataset *dataset)
{
    const scan_settings *s = dataset->settings;
    for (int32_t i = 0; i < s->count; i++) mr_tensor_deinit(&s->initial[i]);
    if (s->options.release != nullptr) s->options.release(s->context);
}

static const mr_stage_functions scan_functions = {.begin = scan_begin,
                                                  .next = scan_next,
                                                  .seek = mr_stage_seek_forward,
                                                  .deinit = scan_stage_deinit,
                                                  .save = scan_save,
                                                  .restore = scan_restore};

static const mr_dataset_kind scan_kind = {.name = "scan",
                                          .role = MR_ROLE_STREAM,
                                          .digest = scan_digest,
                                          .stage_size_bytes = sizeof(scan_stage),
                                          .functions = &scan_functions,
                                          .deinit = scan_deinit};

mr_dataset *mr_dataset_scan_(mr_dataset *input, const mr_element *initial, mr_scan_function function, void *context,
                             const mr_element_spec *spec, const mr_function_options *given)
{
    mr_function_options options;
    input = MR_DATASET_READ(mr_function_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&scan_kind, input, sizeof(scan_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        if (options.release != nullptr) options.release(context);
        return dataset;
    }
    scan_settings *s = dataset->settings;
    *s = (scan_settings){function, context, options};
    if (mr_dataset_failed(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, initial != nullptr, "initial"))) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, function != nullptr, "function"))) return dataset;
    (void)mr_dataset_refuse(dataset, options.num_parallel_calls != 0, "num_parallel_calls",
                            "the function is called in order");
    if (initial->count < 0 || initial->count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "scan: the state has %d components, expected 0 to %d",
                               initial->count, MR_COMPONENTS_MAX);
    if (mr_dataset_failed(
            mr_dataset_require(dataset, initial->count == 0 || initial->tensors != nullptr, "initial.tensors")))
        return dataset;
    for (int32_t i = 0; i < initial->count; i++)
        if (!mr_tensor_is_complete(&initial->tensors[i]))
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                                   "scan: component %d of the state has no elements in "
                                   "host memory",
                                   i);
    s->initial = MR_ARENA_NEW(&dataset->arena, mr_tensor, (size_t)initial->count + 1);
    if (s->initial == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "scan: no memory");
    for (int32_t i = 0; i < initial->count; i++) s->initial[i] = mr_tensor_ref(&initial->tensors[i]);
    s->count = initial->count;
    return mr_dataset_take_spec(dataset, spec);
}

mr_dataset *mr_dataset_scan_can_end(mr_dataset *scan)
{
    if (mr_dataset_failed(scan)) return scan;
    assert(scan->kind == &scan_kind);
    ((scan_settings *)scan->settings)->can_end = true;
    scan->count = MR_CARDINALITY_UNKNOWN;
    return scan;
}

mr_status mr_dataset_reduce(mr_dataset *dataset, mr_element *state, mr_reduce_function function, void *context,
                            mr_error *error)
{
    mr_iterator *iterator = nullptr;
    mr_element input = {0}, next = {0};
    if (state == nullptr || function == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "reduce: %s is null", state == nullptr ? "state" : "function");
    MR_TRY(mr_iterator_new(dataset, nullptr, &iterator, error));
    mr_status status;
    while ((status = mr_iterator_next(iterator, &input, error)) == MR_OK) {
        status = mr_element_offer(&next, error);
        if (status == MR_OK) status = function(context, state, &input, &next, error);
        if (status == MR_OUT_OF_RANGE) status = mr_fail_out_of_range(error);
        if (status == MR_OK && (next.count < 0 || next.count > next.capacity))
            status = mr_fail(error, MR_INVALID_ARGUMENT, "reduce: the function returned a state of %d components",
                             next.count);
        if (status != MR_OK) {
            mr_element_clear_all(&next);
            break;
        }
        mr_element before = *state;
        *state = next;
        next = before;
        mr_element_clear(&next);
    }
    mr_element_deinit(&input);
    mr_element_deinit(&next);
    mr_iterator_free(iterator);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

mr_status mr_dataset_get_single_element(mr_dataset *dataset, mr_element *element, mr_error *error)
{
    MR_REFUSE_NULL(element, error);
    mr_iterator *iterator = nullptr;
    mr_element more = {0};
    mr_element_deinit(element);
    /* No element is read that is not needed. */
    MR_TRY(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = 1), &iterator, error));
    mr_status status = mr_iterator_next(iterator, element, error);
    if (status == MR_OUT_OF_RANGE)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "get_single_element: the dataset is empty");
    if (status == MR_OK) {
        mr_status after = mr_iterator_next(iterator, &more, error);
        if (after == MR_OK)
            status = mr_fail(error, MR_INVALID_ARGUMENT, "get_single_element: the dataset has more than one element");
        else if (after != MR_OUT_OF_RANGE)
            status = after;
    }
    mr_element_deinit(&more);
    if (status != MR_OK) mr_element_deinit(element);
    mr_iterator_free(iterator);
    return status;
}
