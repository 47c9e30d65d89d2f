/* zip, concatenate and enumerate: elements of several inputs side by side or in sequence, or with their numbers. */
#include "pipeline/pipeline.h"

#include <stdlib.h>

#include <assert.h>
#include <string.h>

static uint64_t no_digest(const mr_dataset *dataset)
{
    return (uint64_t)dataset->more_count;
}

/* ---- zip ---- */

static mr_status zip_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    for (int32_t i = 0; i < stage->child_count; i++) MR_TRY(mr_stage_begin(stage->children[i], iteration, error));
    return MR_OK;
}

/* All inputs are advanced, even after one has failed, so that they stay aligned. The end of one input ends all of them.
 * So does running out of memory, after which an input's position is unknown. */
static mr_status zip_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    mr_payload *payload = mr_payload_new(stage->dataset->spec.count);
    if (payload == nullptr) return mr_fail_memory(error, sizeof *payload);
    *item = (mr_item){.epoch = stage->iteration, .number = stage->position, .payload = payload};
    mr_status status = MR_OK;
    int32_t filled = 0;
    for (int32_t i = 0; i < stage->child_count; i++) {
        mr_stage *child = stage->children[i];
        mr_item part = {0};
        mr_status found = mr_stage_next(child, &part, status == MR_OK ? error : nullptr);
        if (found == MR_OUT_OF_RANGE || found == MR_CANCELLED || found == MR_RESOURCE_EXHAUSTED) {
            const char *why = found == MR_RESOURCE_EXHAUSTED ? "out of memory" : "end of sequence";
            if (status != MR_OK && error != nullptr) (void)mr_fail(error, found, "%s", why);
            mr_item_deinit(item);
            return found;
        }
        if (status == MR_OK) status = found;
        if (found != MR_OK) continue;
        assert(filled + part.payload->count <= payload->count);
        for (int32_t c = 0; c < part.payload->count; c++) {
            payload->tensors[filled++] = part.payload->tensors[c];
            part.payload->tensors[c] = (mr_tensor){0};
        }
        mr_item_deinit(&part);
    }
    stage->position++;
    if (status != MR_OK) {
        mr_item_deinit(item);
        return status;
    }
    assert(filled == payload->count);
    mr_count(&stage->counters->elements, 1);
    return MR_OK;
}

static const mr_stage_functions zip_functions = {.begin = zip_begin, .next = zip_next, .seek = mr_stage_seek_forward};

static const mr_dataset_kind zip_kind = {.name = "zip",
                                         .role = MR_ROLE_STREAM,
                                         .digest = no_digest,
                                         .stage_size_bytes = sizeof(mr_stage),
                                         .functions = &zip_functions};

static int64_t shorter(int64_t a, int64_t b)
{
    if (a == MR_INFINITE) return b;
    if (b == MR_INFINITE) return a;
    if (a < 0 || b < 0) return MR_CARDINALITY_UNKNOWN;
    return a < b ? a : b;
}

mr_dataset *mr_dataset_zip(mr_dataset *const *inputs, int32_t count)
{
    if (count < 1 || inputs == nullptr) return mr_dataset_new_failed("zip: %d datasets", inputs == nullptr ? 0 : count);
    mr_dataset *dataset = mr_dataset_new_of(&zip_kind, inputs, count, 0);
    if (mr_dataset_failed(dataset)) return dataset;
    for (int32_t i = 0; i < dataset->more_count; i++) {
        const mr_dataset *input = dataset->more[i];
        dataset->count = shorter(dataset->count, input->count);
        for (int32_t c = 0; c < input->spec.count; c++) {
            int32_t to = dataset->spec.count;
            if (to == MR_COMPONENTS_MAX)
                return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "zip: more than %d components", MR_COMPONENTS_MAX);
            dataset->spec.dtypes[to] = input->spec.dtypes[c];
            dataset->spec.shapes[to] = input->spec.shapes[c];
            dataset->spec.names[to] = input->spec.names[c];
            dataset->spec.count++;
        }
    }
    return dataset;
}

/* ---- concatenate ---- */

typedef struct concatenate_stage {
    mr_stage stage;
    int32_t current; /* input being read */
} concatenate_stage;

static mr_status concatenate_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    ((concatenate_stage *)stage)->current = 0;
    return zip_begin(stage, iteration, error);
}

static mr_status concatenate_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    concatenate_stage *self = (concatenate_stage *)stage;
    for (;;) {
        assert(self->current >= 0 && self->current < stage->child_count);
        mr_stage *child = stage->children[self->current];
        uint64_t before = child->position;
        mr_status status = mr_stage_next(child, item, error);
        if (status == MR_OUT_OF_RANGE && self->current + 1 < stage->child_count) {
            self->current++;
            continue;
        }
        if (status == MR_OK) {
            item->epoch = stage->iteration;
            item->number = stage->position;
            mr_count(&stage->counters->elements, 1);
        }
        if (child->position != before) stage->position++;
        return status;
    }
}

/* Skips inputs of known length without reading them. */
static mr_status concatenate_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    concatenate_stage *self = (concatenate_stage *)stage;
    if (!stage->is_seekable) return mr_stage_seek_forward(stage, position, error);
    uint64_t left = position;
    for (self->current = 0; self->current + 1 < stage->child_count; self->current++) {
        int64_t count = stage->children[self->current]->count;
        if (count < 0 || left < (uint64_t)count) break;
        left -= (uint64_t)count;
    }
    assert(self->current < stage->child_count && left <= position);
    for (int32_t i = self->current + 1; i < stage->child_count; i++)
        MR_TRY(mr_stage_seek(stage->children[i], 0, error));
    MR_TRY(mr_stage_seek(stage->children[self->current], left, error));
    stage->position = position - left + stage->children[self->current]->position;
    return MR_OK;
}

static mr_status concatenate_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    MR_TRY(mr_state_put(state, (uint64_t)((concatenate_stage *)stage)->current, error));
    for (int32_t i = 0; i < stage->child_count; i++) MR_TRY(mr_stage_save(stage->children[i], state, error));
    return MR_OK;
}

static mr_status concatenate_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    uint64_t current = 0;
    MR_TRY(mr_state_get_below(reader, (uint64_t)stage->child_count - 1, &current, error));
    ((concatenate_stage *)stage)->current = (int32_t)current;
    for (int32_t i = 0; i < stage->child_count; i++) MR_TRY(mr_stage_restore(stage->children[i], reader, error));
    return MR_OK;
}

/* Seekable if all inputs are, and all but the last have a known length. */
static mr_status concatenate_prepare(mr_stage *stage, mr_error *error)
{
    (void)error;
    stage->is_seekable = true;
    for (int32_t i = 0; i < stage->child_count; i++) {
        const mr_stage *child = stage->children[i];
        if (!child->is_seekable || (i + 1 < stage->child_count && child->count == MR_CARDINALITY_UNKNOWN))
            stage->is_seekable = false;
    }
    return MR_OK;
}

static const mr_stage_functions concatenate_functions = {.begin = concatenate_begin,
                                                         .next = concatenate_next,
                                                         .seek = concatenate_seek,
                                                         .save = concatenate_save,
                                                         .restore = concatenate_restore};

static const mr_dataset_kind concatenate_kind = {.name = "concatenate",
                                                 .role = MR_ROLE_STREAM,
                                                 .digest = no_digest,
                                                 .stage_size_bytes = sizeof(concatenate_stage),
                                                 .functions = &concatenate_functions,
                                                 .prepare = concatenate_prepare};

/* A loop that concatenates many datasets makes a deep tree. From this depth on, a concatenation becomes its inputs. */
static int32_t input_count(const mr_dataset *dataset)
{
    constexpr int32_t NESTED_MAX = 16;
    bool is_flattened =
        !mr_dataset_failed(dataset) && dataset->kind == &concatenate_kind && dataset->depth >= NESTED_MAX;
    return is_flattened ? 1 + dataset->more_count : 1;
}

/* Consumes the dataset. */
static int32_t add_inputs(mr_dataset *dataset, mr_dataset **inputs)
{
    int32_t count = input_count(dataset);
    inputs[0] = dataset;
    if (count == 1) return 1;
    inputs[0] = mr_dataset_ref(dataset->input);
    for (int32_t i = 1; i < count; i++) inputs[i] = mr_dataset_ref(dataset->more[i - 1]);
    mr_dataset_free(dataset);
    return count;
}

static mr_dataset *concatenate(mr_dataset *first, mr_dataset *second)
{
    mr_dataset *few[2], **inputs = few;
    int32_t count = input_count(first) + input_count(second);
    if (count > 2) inputs = malloc((size_t)count * sizeof *inputs);
    if (inputs == nullptr) {
        mr_dataset_free(second);
        return mr_dataset_fail(mr_dataset_new(&concatenate_kind, first, 0), MR_RESOURCE_EXHAUSTED,
                               "concatenate: no memory");
    }
    int32_t added = add_inputs(first, inputs);
    added += add_inputs(second, inputs + added);
    assert(added == count);
    mr_dataset *dataset = mr_dataset_new_of(&concatenate_kind, inputs, count, 0);
    if (inputs != few) free(inputs);
    return dataset;
}

mr_dataset *mr_dataset_concatenate(mr_dataset *first, mr_dataset *second)
{
    mr_dataset *kept[2] = {mr_dataset_ref(first), mr_dataset_ref(second)};
    mr_dataset *dataset = concatenate(first, second);
    mr_error error = {0};
    if (!mr_dataset_failed(dataset)) {
        dataset->spec = first->spec; /* the names are those of its first input */
        int64_t a = first->count, b = second->count;
        if (mr_spec_join(&dataset->spec, &second->spec, &error) != MR_OK)
            (void)mr_dataset_fail(dataset, error.status, "concatenate: %s", error.message);
        else if (a == MR_INFINITE || b == MR_INFINITE)
            dataset->count = MR_INFINITE;
        else if (a < 0 || b < 0)
            dataset->count = MR_CARDINALITY_UNKNOWN;
        else if (__builtin_add_overflow(a, b, &dataset->count) || (uint64_t)dataset->count > MR_POSITION_MAX)
            (void)mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "concatenate: %lld + %lld elements are too many",
                                  (long long)a, (long long)b);
    }
    mr_dataset_free(kept[0]);
    mr_dataset_free(kept[1]);
    return dataset;
}

/* ---- enumerate ---- */

typedef struct enumerate_settings {
    int64_t start;
} enumerate_settings;

static uint64_t enumerate_digest(const mr_dataset *dataset)
{
    return (uint64_t)((const enumerate_settings *)dataset->settings)->start;
}

static mr_status enumerate_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    mr_stage *child = stage->children[0];
    uint64_t before = child->position, number = stage->position;
    assert(stage->child_count == 1);
    mr_item part = {0};
    mr_status status = mr_stage_next(child, &part, error);
    if (child->position != before) stage->position++;
    if (status != MR_OK) return status;
    int64_t start = ((const enumerate_settings *)stage->dataset->settings)->start, index;
    if (__builtin_add_overflow(start, number, &index)) {
        mr_item_deinit(&part);
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%lld + %llu is larger than any int64", (long long)start,
                         (unsigned long long)number);
        return mr_stage_fail_prefix(stage, "element", number, status, error);
    }
    mr_payload *payload = mr_payload_new(stage->dataset->spec.count);
    status = payload == nullptr ? mr_fail_memory(error, sizeof *payload)
                                : mr_tensor_init_copy(&payload->tensors[0], MR_INT64, MR_SCALAR, &index, error);
    *item = (mr_item){.epoch = stage->iteration, .number = number, .payload = payload};
    if (status == MR_OK) {
        assert(part.payload->count + 1 == payload->count);
        for (int32_t c = 0; c < part.payload->count; c++) {
            payload->tensors[c + 1] = part.payload->tensors[c];
            part.payload->tensors[c] = (mr_tensor){0};
        }
        mr_count(&stage->counters->elements, 1);
    } else {
        mr_item_deinit(item);
    }
    mr_item_deinit(&part);
    return status;
}

static mr_status enumerate_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    MR_TRY(mr_stage_seek(stage->children[0], position, error));
    stage->position = stage->children[0]->position;
    return MR_OK;
}

static mr_status enumerate_prepare(mr_stage *stage, mr_error *error)
{
    (void)error;
    stage->is_seekable = stage->children[0]->is_seekable;
    return MR_OK;
}

static const mr_stage_functions enumerate_functions = {
    .begin = zip_begin, .next = enumerate_next, .seek = enumerate_seek};

static const mr_dataset_kind enumerate_kind = {.name = "enumerate",
                                               .role = MR_ROLE_STREAM,
                                               .digest = enumerate_digest,
                                               .stage_size_bytes = sizeof(mr_stage),
                                               .functions = &enumerate_functions,
                                               .prepare = enumerate_prepare};

mr_dataset *mr_dataset_enumerate(mr_dataset *input, int64_t start)
{
    mr_dataset *dataset = mr_dataset_new(&enumerate_kind, input, sizeof(enumerate_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    ((enumerate_settings *)dataset->settings)->start = start;
    mr_element_spec *spec = &dataset->spec;
    if (spec->count == MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "enumerate: more than %d components", MR_COMPONENTS_MAX);
    mr_spec_put_first(spec, MR_INT64, MR_SCALAR);
    return dataset;
}
