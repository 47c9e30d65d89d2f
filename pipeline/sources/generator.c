/* generator and random: sources without files. */
#include "pipeline/generator.h"
#include "base/element.h"

#include <assert.h>

typedef struct generator_settings {
    mr_generator generator;
    void *context;
    mr_open_in_stage open_in_stage; /* instead of generator.open; may be null */
} generator_settings;

typedef struct generator_stage {
    mr_stage stage;
    void *state;
    mr_element output; /* empty between elements */
    bool is_open, has_ended;
} generator_stage;

static const generator_settings *settings_of(const mr_stage *stage)
{
    return stage->dataset->settings;
}

static void close_generator(generator_stage *self)
{
    const generator_settings *s = settings_of(&self->stage);
    if (self->is_open && s->generator.close != nullptr) s->generator.close(s->context, self->state);
    self->state = nullptr;
    self->is_open = self->has_ended = false;
}

static mr_status generator_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    close_generator((generator_stage *)stage);
    return mr_stage_begin_simple(stage, iteration, error);
}

static mr_status open_generator(generator_stage *self, mr_error *error)
{
    const generator_settings *s = settings_of(&self->stage);
    if (self->is_open) return MR_OK;
    mr_status status = MR_OK;
    if (s->open_in_stage != nullptr)
        status = s->open_in_stage(s->context, &self->stage, &self->state, error);
    else if (s->generator.open != nullptr)
        status = s->generator.open(s->context, self->stage.iteration, &self->state, error);
    MR_TRY(mr_stage_fail_prefix(&self->stage, "iteration", self->stage.iteration, status, error));
    self->is_open = true;
    return MR_OK;
}

static mr_status generator_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    generator_stage *self = (generator_stage *)stage;
    const generator_settings *s = settings_of(stage);
    if (self->has_ended) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    mr_element *element = &self->output;
    MR_TRY(mr_element_offer(element, error));
    MR_TRY(open_generator(self, error));
    assert(self->is_open && !self->has_ended);
    mr_status status = s->generator.next(s->context, self->state, element, error);
    if (status == MR_OUT_OF_RANGE) {
        mr_element_clear_all(element);
        self->has_ended = true;
        return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    }
    uint64_t number = stage->position;
    if (!stage->is_too_large && status != MR_CANCELLED) stage->position++;
    if (status == MR_OK) status = mr_element_check(&stage->dataset->spec, element, error);
    status = mr_stage_fail_prefix(stage, "element", number, status, error);
    mr_payload *payload = status == MR_OK ? mr_payload_new(element->count) : nullptr;
    if (status == MR_OK && payload == nullptr) status = mr_fail_memory(error, sizeof *payload);
    if (status != MR_OK) {
        mr_element_clear_all(element);
        return status;
    }
    assert(element->count == stage->dataset->spec.count);
    for (int32_t i = 0; i < element->count; i++) {
        payload->tensors[i] = element->tensors[i];
        element->tensors[i] = (mr_tensor){0};
    }
    element->count = 0;
    *item = (mr_item){.epoch = stage->iteration, .number = number, .payload = payload};
    mr_count(&stage->counters->elements, 1);
    return MR_OK;
}

static mr_status generator_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    generator_stage *self = (generator_stage *)stage;
    const generator_settings *s = settings_of(stage);
    if (s->generator.skip == nullptr) return mr_stage_seek_forward(stage, position, error);
    if (position < stage->position) MR_TRY(generator_begin(stage, stage->iteration, error));
    MR_TRY(open_generator(self, error));
    assert(self->is_open && position >= stage->position);
    mr_status status = s->generator.skip(s->context, self->state, position - stage->position, error);
    if (status != MR_OK && status != MR_OUT_OF_RANGE) return status;
    self->has_ended = status == MR_OUT_OF_RANGE;
    stage->position = position;
    return MR_OK;
}

/* The state is the position, but to seek, the preceding elements must be produced or skipped again. */
static mr_status generator_prepare(mr_stage *stage, mr_error *error)
{
    (void)error;
    stage->is_seekable = false;
    return MR_OK;
}

static void generator_stage_deinit(mr_stage *stage)
{
    generator_stage *self = (generator_stage *)stage;
    close_generator(self);
    mr_element_deinit(&self->output);
}

static void generator_deinit(mr_dataset *dataset)
{
    const generator_settings *s = dataset->settings;
    if (s->generator.release != nullptr) s->generator.release(s->context);
}

static mr_status generator_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    (void)reader;
    uint64_t position = stage->position;
    MR_TRY(generator_begin(stage, stage->iteration, error));
    MR_TRY(generator_seek(stage, position, error));
    return stage->position == position ? MR_OK : mr_state_refuse(error);
}

static const mr_stage_functions generator_functions = {.begin = generator_begin,
                                                       .next = generator_next,
                                                       .seek = generator_seek,
                                                       .deinit = generator_stage_deinit,
                                                       .save = mr_stage_save_nothing,
                                                       .restore = generator_restore};

static const mr_dataset_kind generator_kind = {.name = "generator",
                                               .role = MR_ROLE_SOURCE,
                                               .stage_size_bytes = sizeof(generator_stage),
                                               .functions = &generator_functions,
                                               .prepare = generator_prepare,
                                               .describe = mr_describe_element,
                                               .deinit = generator_deinit};

mr_dataset *mr_dataset_generator(const mr_generator *generator, void *context, const mr_element_spec *spec)
{
    if (generator == nullptr) return mr_dataset_new_failed("generator: generator is null");
    mr_dataset *dataset = mr_dataset_new(&generator_kind, nullptr, sizeof(generator_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        if (generator->release != nullptr) generator->release(context);
        return dataset;
    }
    *(generator_settings *)dataset->settings = (generator_settings){.generator = *generator, .context = context};
    dataset->count = MR_CARDINALITY_UNKNOWN;
    if (generator->next == nullptr) return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "generator: next is null");
    return mr_dataset_take_spec(dataset, spec);
}

mr_dataset *mr_dataset_generator_open_in_stage(mr_dataset *generator, mr_open_in_stage open)
{
    if (mr_dataset_is_unallocated(generator)) return generator;
    assert(generator->kind == &generator_kind);
    ((generator_settings *)generator->settings)->open_in_stage = open;
    return generator;
}

/* ---- random ---- */

typedef struct random_settings {
    uint64_t seed;
} random_settings;

typedef struct random_stage {
    mr_stage stage;
    uint64_t seed;
} random_stage;

static uint64_t random_digest(const mr_dataset *dataset)
{
    return ((const random_settings *)dataset->settings)->seed;
}

static mr_status random_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    const random_settings *s = stage->dataset->settings;
    ((random_stage *)stage)->seed = mr_stage_seed(stage->run, s->seed, stage->purpose);
    return mr_stage_begin_simple(stage, iteration, error);
}

/* The item's number is the random number itself. */
static mr_status random_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    (void)error;
    mr_random random = mr_random_at(((random_stage *)stage)->seed, stage->iteration, stage->position++, stage->purpose);
    *item = (mr_item){.epoch = stage->iteration, .number = mr_random_next32(&random)};
    mr_count(&stage->counters->elements, 1);
    return MR_OK;
}

static mr_status random_read(const mr_dataset *dataset, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    (void)dataset, (void)error;
    mr_value *value = &workspace->values[0];
    workspace->count = 1;
    value->dtype = MR_INT64;
    value->shape = MR_SCALAR;
    value->integer = (int64_t)number;
    value->data = &value->integer;
    return MR_OK;
}

static const mr_stage_functions random_functions = {
    .begin = random_begin, .next = random_next, .seek = mr_stage_seek_simple};

static const mr_dataset_kind random_kind = {.name = "random",
                                            .role = MR_ROLE_SOURCE,
                                            .digest = random_digest,
                                            .stage_size_bytes = sizeof(random_stage),
                                            .functions = &random_functions,
                                            .read = random_read,
                                            .describe = mr_describe_element};

mr_dataset *mr_dataset_random(uint64_t seed)
{
    mr_dataset *dataset = mr_dataset_new(&random_kind, nullptr, sizeof(random_settings));
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    ((random_settings *)dataset->settings)->seed = seed;
    dataset->count = MR_INFINITE;
    dataset->spec = (mr_element_spec){.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    return dataset;
}
