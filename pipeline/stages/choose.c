/* sample_from and choose_from: each element comes from one of several inputs, chosen by a random number or by another
 * dataset. */
#include "base/options.h"
#include "pipeline/pipeline.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct choose_settings {
    int32_t count;
    double *weights; /* one for each input, with a finite sum; null: choices decide */
    uint64_t unused; /* bit mask of inputs of weight 0 */
    mr_sample_options options;
} choose_settings;

typedef struct choose_stage {
    mr_stage stage;
    uint64_t seed;
    uint64_t draws; /* so far, including draws of inputs that had ended */
    uint64_t ended; /* bit mask of inputs that have ended or are never drawn */
} choose_stage;

constexpr int32_t INPUTS_MAX = 64;

static const choose_settings *settings_of(const choose_stage *self)
{
    return self->stage.dataset->settings;
}

static uint64_t choose_digest(const mr_dataset *dataset)
{
    const choose_settings *s = dataset->settings;
    uint64_t digest = mr_digest(mr_digest(s->options.seed, s->options.stop_on_empty_dataset), (uint64_t)s->count);
    return s->weights == nullptr ? digest : mr_digest_bytes(digest, s->weights, (size_t)s->count * sizeof *s->weights);
}

/* The bit of an input. */
static uint64_t all_inputs(const choose_settings *s)
{
    assert(s->count >= 1 && s->count <= INPUTS_MAX);
    return s->count == INPUTS_MAX ? UINT64_MAX : ((uint64_t)1 << s->count) - 1;
}

static void take_seed(choose_stage *self)
{
    self->seed = mr_stage_seed(self->stage.run, settings_of(self)->options.seed, self->stage.purpose);
}

static mr_status choose_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    choose_stage *self = (choose_stage *)stage;
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    take_seed(self);
    self->draws = 0;
    self->ended = settings_of(self)->unused;
    for (int32_t i = 0; i < stage->child_count; i++) MR_TRY(mr_stage_begin(stage->children[i], iteration, error));
    return MR_OK;
}

/* Draws one of the inputs that have not ended, with the probabilities of their weights. One draw, however small the
 * remaining weights are. */
static int32_t draw(choose_stage *self)
{
    const choose_settings *s = settings_of(self);
    double total = 0, sum = 0;
    int32_t last = 0;
    for (int32_t i = 0; i < s->count; i++)
        if ((self->ended >> i & 1) == 0) total += s->weights[i];
    mr_random random = mr_random_at(self->seed, self->stage.iteration, self->draws++, self->stage.purpose);
    double target = mr_random_unit(&random) * total;
    for (int32_t i = 0; i < s->count; i++) {
        if (self->ended >> i & 1) continue;
        last = i;
        sum += s->weights[i];
        if (target < sum) break;
    }
    return last;
}

/* Determines the next input. errors: MR_OUT_OF_RANGE when the choices have ended */
static mr_status choose(choose_stage *self, int32_t *chosen, mr_error *error)
{
    const choose_settings *s = settings_of(self);
    if (s->weights != nullptr) {
        *chosen = draw(self);
        return MR_OK;
    }
    mr_item choice = {0};
    assert(self->stage.child_count == s->count + 1);
    MR_TRY(mr_stage_next(self->stage.children[s->count], &choice, error));
    int64_t number = mr_tensor_int64s(&choice.payload->tensors[0])[0];
    mr_item_deinit(&choice);
    if (number < 0 || number >= s->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "choose_from: the choice is %lld, expected less than %d",
                       (long long)number, s->count);
    *chosen = (int32_t)number;
    return MR_OK;
}

static mr_status choose_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    choose_stage *self = (choose_stage *)stage;
    const choose_settings *s = settings_of(self);
    uint64_t all = all_inputs(s);
    assert((self->ended & ~all) == 0 && (self->ended & s->unused) == s->unused);
    while (self->ended != all) {
        int32_t chosen = 0;
        /* An infinite number of choices may name inputs that have ended. */
        if (mr_run_is_cancelled(stage->run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        mr_status status = choose(self, &chosen, error);
        if (status != MR_OK && status != MR_OUT_OF_RANGE && status != MR_CANCELLED) stage->position++;
        MR_TRY(status);
        assert(chosen >= 0 && chosen < s->count);
        if (self->ended >> chosen & 1) continue;
        mr_stage *child = stage->children[chosen];
        uint64_t before = child->position;
        status = mr_stage_next(child, item, error);
        if (child->position != before) stage->position++;
        if (status == MR_OK) {
            item->epoch = stage->iteration;
            item->number = stage->position - 1;
            mr_count(&stage->counters->elements, 1);
        }
        if (status != MR_OUT_OF_RANGE) return status;
        self->ended = s->options.stop_on_empty_dataset ? all : self->ended | (uint64_t)1 << chosen;
    }
    return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
}

static mr_status choose_save(mr_stage *stage, mr_state *target, mr_error *error)
{
    const choose_stage *self = (const choose_stage *)stage;
    MR_TRY(mr_state_put(target, self->draws, error));
    MR_TRY(mr_state_put(target, self->ended, error));
    for (int32_t i = 0; i < stage->child_count; i++) MR_TRY(mr_stage_save(stage->children[i], target, error));
    return MR_OK;
}

static mr_status choose_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    choose_stage *self = (choose_stage *)stage;
    take_seed(self);
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &self->draws, error));
    MR_TRY(mr_state_get_below(reader, all_inputs(settings_of(self)), &self->ended, error));
    if ((self->ended & settings_of(self)->unused) != settings_of(self)->unused) return mr_state_refuse(error);
    for (int32_t i = 0; i < stage->child_count; i++) MR_TRY(mr_stage_restore(stage->children[i], reader, error));
    return MR_OK;
}

static const mr_stage_functions choose_functions = {.begin = choose_begin,
                                                    .next = choose_next,
                                                    .seek = mr_stage_seek_forward,
                                                    .save = choose_save,
                                                    .restore = choose_restore};

static const mr_dataset_kind sample_kind = {.name = "sample_from",
                                            .role = MR_ROLE_STREAM,
                                            .digest = choose_digest,
                                            .stage_size_bytes = sizeof(choose_stage),
                                            .functions = &choose_functions};
static const mr_dataset_kind choose_kind = {.name = "choose_from",
                                            .role = MR_ROLE_STREAM,
                                            .digest = choose_digest,
                                            .stage_size_bytes = sizeof(choose_stage),
                                            .functions = &choose_functions};

static mr_dataset *make(const mr_dataset_kind *kind, mr_dataset *const *inputs, int32_t count, int32_t more,
                        const mr_sample_options *options)
{
    if (count < 1 || count > INPUTS_MAX) {
        for (int32_t i = 0; i < count + more; i++) mr_dataset_free(inputs[i]);
        return mr_dataset_new_failed("%s: %d datasets, expected 1 to %d", kind->name, count, INPUTS_MAX);
    }
    mr_dataset *dataset = mr_dataset_new_of(kind, inputs, count + more, sizeof(choose_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    *(choose_settings *)dataset->settings = (choose_settings){.count = count, .options = *options};
    dataset->count = MR_CARDINALITY_UNKNOWN;
    for (int32_t i = 1; i < count; i++) {
        mr_error error = {0};
        if (mr_spec_join(&dataset->spec, &inputs[i]->spec, &error) != MR_OK)
            return mr_dataset_fail(dataset, error.status, "%s: dataset %d: %s", kind->name, i, error.message);
    }
    return dataset;
}

mr_dataset *mr_dataset_sample_from_datasets_(mr_dataset *const *inputs, const double *weights, int32_t count,
                                             const mr_sample_options *given)
{
    mr_sample_options options;
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_sample_options, &options, given, &error);
    mr_dataset *dataset = make(&sample_kind, inputs, inputs == nullptr ? 0 : count, 0, &options);
    if (mr_dataset_failed(dataset)) return dataset;
    if (status != MR_OK) return mr_dataset_fail_with(dataset, &error);
    choose_settings *s = dataset->settings;
    s->weights = MR_ARENA_NEW(&dataset->arena, double, (size_t)count);
    if (s->weights == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "sample_from: no memory");
    double sum = 0;
    for (int32_t i = 0; i < count; i++) {
        double weight = weights == nullptr ? 1 : weights[i];
        if (!isfinite(weight) || weight < 0)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "sample_from: weight %d is invalid: %g", i, weight);
        s->weights[i] = weight;
        sum += weight;
        if (weight == 0) s->unused |= (uint64_t)1 << i;
    }
    if (!isfinite(sum))
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "sample_from: the weights add up to %g", sum);
    return dataset;
}

mr_dataset *mr_dataset_choose_from_datasets_(mr_dataset *const *inputs, int32_t count, mr_dataset *choices,
                                             const mr_sample_options *given)
{
    mr_sample_options options;
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_sample_options, &options, given, &error);
    mr_dataset *all[INPUTS_MAX + 1];
    int32_t taken = inputs == nullptr || count < 0 ? 0 : count > INPUTS_MAX ? INPUTS_MAX : count;
    for (int32_t i = taken; inputs != nullptr && i < count; i++) mr_dataset_free(inputs[i]);
    if (taken > 0) memcpy(all, inputs, (size_t)taken * sizeof *all);
    all[taken] = choices;
    mr_dataset *dataset = make(&choose_kind, all, taken, 1, &options);
    if (mr_dataset_failed(dataset)) return dataset;
    if (status != MR_OK) return mr_dataset_fail_with(dataset, &error);
    if (count > INPUTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "choose_from: %d datasets, expected 1 to %d", count,
                               INPUTS_MAX);
    (void)mr_dataset_refuse(dataset, options.seed != 0, "seed", "choices determine the inputs");
    const mr_element_spec *spec = &choices->spec;
    if (spec->count != 1 || spec->dtypes[0] != MR_INT64 || spec->shapes[0].rank != 0)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "choose_from: choices must be int64 scalars");
    return dataset;
}
