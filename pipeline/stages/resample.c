/* rejection_resample: drops elements at random, so that the remaining ones have the requested class distribution.
 *
 * An element of class c is kept with probability target(c) / initial(c), scaled so that the largest is 1. If the
 * initial distribution is not given, it is estimated from the elements so far, counting each class once more. The draw
 * is a function of (seed, iteration, element); the counts are part of the state. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct resample_settings {
    mr_key_function class_of;
    void *context;
    mr_resample_options options;
    int32_t class_count;
    double *target, *initial; /* in the arena; initial may be null: estimated */
} resample_settings;

typedef struct resample_stage {
    mr_stage stage;
    uint64_t seed;
    uint64_t taken;   /* elements taken from the input */
    uint64_t *counts; /* how many of these each class has */
} resample_stage;

static uint64_t resample_digest(const mr_dataset *dataset)
{
    const resample_settings *s = dataset->settings;
    size_t size_bytes = (size_t)s->class_count * sizeof *s->target;
    uint64_t digest = mr_digest_bytes(mr_digest(9, s->options.seed), s->target, size_bytes);
    return s->initial == nullptr ? digest : mr_digest_bytes(digest, s->initial, size_bytes);
}

static void reset(resample_stage *self)
{
    const resample_settings *s = self->stage.dataset->settings;
    self->seed = mr_stage_seed(self->stage.run, s->options.seed, self->stage.purpose);
    self->taken = 0;
    for (int32_t c = 0; c < s->class_count; c++) self->counts[c] = 0;
}

static mr_status resample_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    reset((resample_stage *)stage);
    return mr_stream_begin(stage, iteration, error);
}

static double part_of(const resample_stage *self, int32_t class)
{
    const resample_settings *s = self->stage.dataset->settings;
    assert(class >= 0 && class < s->class_count && self->counts[class] <= self->taken);
    if (s->initial != nullptr) return s->initial[class];
    return ((double)self->counts[class] + 1) / ((double)self->taken + s->class_count);
}

/* target / initial of the class; 0 for a class that does not occur according to initial. */
static double ratio_of(const resample_stage *self, int32_t class)
{
    const resample_settings *s = self->stage.dataset->settings;
    double part = part_of(self, class);
    /* Very small probabilities would make the quotient infinite. */
    return part > 0 ? fmin(s->target[class] / part, DBL_MAX) : 0;
}

/* Whether an element of the class is kept. */
static bool stays(const resample_stage *self, int32_t class)
{
    const resample_settings *s = self->stage.dataset->settings;
    double most = 0;
    for (int32_t c = 0; c < s->class_count; c++) most = fmax(most, ratio_of(self, c));
    mr_random random = mr_random_at(self->seed, self->stage.iteration, self->taken, self->stage.purpose);
    return mr_random_unit(&random) * most < ratio_of(self, class);
}

/* Inserts the class before the element's components. */
static mr_status put_class(mr_stage *stage, mr_item *item, int64_t class, mr_error *error)
{
    mr_payload *payload = mr_payload_new(stage->dataset->spec.count);
    if (payload == nullptr) return mr_fail_memory(error, sizeof *payload);
    mr_status status = mr_tensor_init_int64(&payload->tensors[0], class, error);
    if (status != MR_OK) {
        free(payload);
        return status;
    }
    assert(item->payload->count + 1 == payload->count);
    for (int32_t i = 0; i < item->payload->count; i++) {
        payload->tensors[i + 1] = item->payload->tensors[i];
        item->payload->tensors[i] = (mr_tensor){0};
    }
    mr_item_deinit(item);
    item->payload = payload;
    return MR_OK;
}

static mr_status resample_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    resample_stage *self = (resample_stage *)stage;
    const resample_settings *s = stage->dataset->settings;
    for (;;) {
        MR_TRY(mr_stream_pull(stage, item, error));
        int64_t class = 0;
        mr_element element = mr_payload_view(item->payload);
        mr_status status = s->class_of(s->context, &element, &class, error);
        if (status == MR_OK && (class < 0 || class >= s->class_count))
            status = mr_fail(error, MR_INVALID_ARGUMENT, "the class is %lld, expected less than %d", (long long)class,
                             s->class_count);
        status = mr_stage_fail_prefix(stage, "element", item->number, status, error);
        bool is_kept = status == MR_OK && stays(self, (int32_t)class);
        self->taken++;
        assert(status != MR_OK || (class >= 0 && class < s->class_count));
        if (status == MR_OK) self->counts[class]++;
        if (is_kept) status = put_class(stage, item, class, error);
        if (is_kept && status == MR_OK) {
            mr_stream_number(stage, item);
            return MR_OK;
        }
        mr_item_deinit(item);
        if (status != MR_OK) {
            stage->position++;
            return status;
        }
    }
}

static mr_status resample_save(mr_stage *stage, mr_state *state, mr_error *error)
{
    const resample_stage *self = (const resample_stage *)stage;
    const resample_settings *s = stage->dataset->settings;
    MR_TRY(mr_state_put(state, self->taken, error));
    for (int32_t c = 0; c < s->class_count; c++) MR_TRY(mr_state_put(state, self->counts[c], error));
    return mr_stage_save(stage->children[0], state, error);
}

static mr_status resample_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error)
{
    resample_stage *self = (resample_stage *)stage;
    const resample_settings *s = stage->dataset->settings;
    reset(self);
    MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &self->taken, error));
    /* Elements that failed have no class. */
    uint64_t left = self->taken;
    for (int32_t c = 0; c < s->class_count; c++) {
        MR_TRY(mr_state_get_below(reader, left, &self->counts[c], error));
        left -= self->counts[c];
    }
    return mr_stage_restore(stage->children[0], reader, error);
}

static mr_status resample_prepare(mr_stage *stage, mr_error *error)
{
    const resample_settings *s = stage->dataset->settings;
    uint64_t *counts = calloc((size_t)s->class_count, sizeof *counts);
    ((resample_stage *)stage)->counts = counts;
    return counts == nullptr ? mr_fail_memory(error, (size_t)s->class_count * sizeof *counts) : MR_OK;
}

static void resample_deinit(mr_stage *stage)
{
    free(((resample_stage *)stage)->counts);
}

static void settings_deinit(mr_dataset *dataset)
{
    const resample_settings *s = dataset->settings;
    if (s->options.release != nullptr) s->options.release(s->context);
}

static const mr_stage_functions resample_functions = {.begin = resample_begin,
                                                      .next = resample_next,
                                                      .seek = mr_stage_seek_forward,
                                                      .deinit = resample_deinit,
                                                      .save = resample_save,
                                                      .restore = resample_restore};

static const mr_dataset_kind resample_kind = {.name = "rejection_resample",
                                              .role = MR_ROLE_STREAM,
                                              .digest = resample_digest,
                                              .stage_size_bytes = sizeof(resample_stage),
                                              .functions = &resample_functions,
                                              .prepare = resample_prepare,
                                              .deinit = settings_deinit};

static bool are_parts(const double *parts, int32_t count)
{
    double sum = 0;
    assert(parts != nullptr);
    for (int32_t i = 0; i < count; i++) {
        if (!(parts[i] >= 0) || !isfinite(parts[i])) return false;
        sum += parts[i];
    }
    return fabs(sum - 1) < 1e-6;
}

mr_dataset *mr_dataset_rejection_resample_(mr_dataset *input, mr_key_function class_of, void *context,
                                           const double *target, int32_t class_count, const mr_resample_options *given)
{
    mr_resample_options options;
    input = MR_DATASET_READ(mr_resample_options, &options, input, given);
    constexpr int32_t CLASSES_MAX = 1 << 20;
    mr_dataset *dataset = mr_dataset_new(&resample_kind, input, sizeof(resample_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        if (options.release != nullptr) options.release(context);
        return dataset;
    }
    resample_settings *s = dataset->settings;
    *s = (resample_settings){.class_of = class_of, .context = context, .options = options};
    if (mr_dataset_failed(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, class_of != nullptr, "class_of"))) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, target != nullptr, "target"))) return dataset;
    if (class_count < 1 || class_count > CLASSES_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "rejection_resample: invalid number of classes: %d",
                               class_count);
    if (!are_parts(target, class_count) ||
        (options.initial_dist != nullptr && !are_parts(options.initial_dist, class_count)))
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "rejection_resample: the distribution does not add up to 1");
    size_t size_bytes = (size_t)class_count * sizeof *target;
    s->class_count = class_count;
    s->target = mr_arena_copy(&dataset->arena, target, size_bytes);
    if (options.initial_dist != nullptr) s->initial = mr_arena_copy(&dataset->arena, options.initial_dist, size_bytes);
    if (s->target == nullptr || (options.initial_dist != nullptr && s->initial == nullptr))
        return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "rejection_resample: no memory");
    mr_element_spec *spec = &dataset->spec;
    if (spec->count == MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "rejection_resample: more than %d components",
                               MR_COMPONENTS_MAX);
    mr_spec_put_first(spec, MR_INT64, MR_SCALAR);
    dataset->count = MR_CARDINALITY_UNKNOWN;
    return dataset;
}
