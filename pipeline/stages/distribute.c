/* distribute: one worker's part of every global batch.
 *
 * Step k consists of the elements k·G … k·G + G − 1 of the input, and worker i of n has the i-th n-th of them. The
 * elements of a step are therefore a function of the step alone, and a state, which is the step, is valid for any
 * number of workers. Implemented by three datasets: an order stage that selects the worker's elements, a batch, and,
 * for the mask, work that marks the rows that fill up the last step. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <string.h>

typedef struct distribute_settings {
    mr_batch_settings batch; /* first member, because the engine reads it; size is the worker's */
    int64_t global, worker;
    int64_t count; /* elements of the input, or MR_INFINITE */
    mr_distribute_policy policy;
} distribute_settings;

/* Excludes the worker and the number of workers: a state is valid for all of them. */
static uint64_t distribute_digest(const mr_dataset *dataset)
{
    const distribute_settings *s = dataset->settings;
    return mr_digest((uint64_t)s->global, (uint64_t)s->policy);
}

static mr_status distribute_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    return mr_stage_begin(stage->input, iteration, error);
}

/* The input's element at one of this worker's positions. After the end of the data it starts again from the
 * beginning. */
static uint64_t element_of(const distribute_settings *s, uint64_t position)
{
    uint64_t size = (uint64_t)s->batch.size;
    assert(size > 0 && s->global >= s->batch.size && s->worker * s->batch.size < s->global);
    uint64_t element = position / size * (uint64_t)s->global + (uint64_t)s->worker * size + position % size;
    return s->count > 0 ? element % (uint64_t)s->count : element;
}

static mr_status distribute_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    const distribute_settings *s = stage->dataset->settings;
    if (mr_stage_ended(stage)) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    MR_TRY(mr_stage_seek(stage->input, element_of(s, stage->position), error));
    return mr_order_pull(stage, item, error);
}

static mr_status distribute_prepare(mr_stage *stage, mr_error *error)
{
    return stage->is_seekable
               ? MR_OK
               : mr_fail(error, MR_INVALID_ARGUMENT,
                         "distribute: the input must have an index (records, slices, range; optionally with shuffle, "
                         "repeat, take and skip)");
}

static const mr_stage_functions distribute_functions = {
    .begin = distribute_begin, .next = distribute_next, .seek = mr_stage_seek_simple};

static const mr_dataset_kind order_kind = {.name = "distribute",
                                           .role = MR_ROLE_ORDER,
                                           .digest = distribute_digest,
                                           .stage_size_bytes = sizeof(mr_stage),
                                           .functions = &distribute_functions,
                                           .prepare = distribute_prepare};
static const mr_dataset_kind batch_kind = {
    .name = "distribute_batch", .role = MR_ROLE_BATCH, .digest = distribute_digest};

/* Appends a component: 1 for each row with an element of its own, 0 for rows that fill up the last step. */
static mr_status mask_work(const mr_work *work, uint64_t epoch, uint64_t number, mr_workspace *workspace,
                           mr_error *error)
{
    (void)epoch;
    const distribute_settings *s = work->dataset->settings;
    mr_tensor mask = {0};
    MR_TRY(mr_tensor_init(&mask, MR_BOOL, MR_SHAPE(s->batch.size), error));
    bool *rows = mask.data;
    for (int64_t r = 0; r < s->batch.size; r++) {
        uint64_t element = number * (uint64_t)s->global + (uint64_t)(s->worker * s->batch.size + r);
        rows[r] = s->count < 0 || element < (uint64_t)s->count;
    }
    assert(workspace->count + 1 == work->dataset->spec.count);
    mr_value_take(&workspace->values[workspace->count++], &mask);
    return MR_OK;
}

static const mr_dataset_kind mask_kind = {
    .name = "distribute_mask", .role = MR_ROLE_WORK, .digest = distribute_digest, .work = mask_work};

static mr_dataset *add(const mr_dataset_kind *kind, mr_dataset *input, const distribute_settings *settings)
{
    mr_dataset *dataset = mr_dataset_new(kind, input, sizeof *settings);
    if (mr_dataset_is_unallocated(dataset)) return dataset;
    *(distribute_settings *)dataset->settings = *settings;
    dataset->share =
        mr_digest(mr_digest((uint64_t)settings->global, (uint64_t)settings->batch.size), (uint64_t)settings->worker);
    return dataset;
}

mr_dataset *mr_dataset_distribute(mr_dataset *input, int64_t global_batch, int64_t workers, int64_t worker,
                                  mr_distribute_policy policy)
{
    bool is_possible = workers >= 1 && worker >= 0 && worker < workers && global_batch >= workers &&
                       global_batch % workers == 0 && global_batch / workers <= MR_BATCH_MAX;
    int64_t count = input == nullptr ? 0 : input->count;
    distribute_settings settings = {.batch = {.size = is_possible ? global_batch / workers : 1, .drop_remainder = true},
                                    .global = global_batch,
                                    .worker = worker,
                                    .count = count,
                                    .policy = policy};
    mr_dataset *dataset = add(&order_kind, input, &settings);
    if (mr_dataset_failed(dataset)) return dataset;
    if (!is_possible)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "distribute: worker %lld of %lld with global_batch %lld: it must be a multiple of "
                               "workers",
                               (long long)worker, (long long)workers, (long long)global_batch);
    if (policy < MR_DISTRIBUTE_PAD || policy > MR_DISTRIBUTE_MASK)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "distribute: unknown policy %d", (int)policy);
    if (count == MR_CARDINALITY_UNKNOWN)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "distribute: the length of the input must be known");
    int64_t steps = count;
    if (count >= 0) {
        steps = count / global_batch + (policy != MR_DISTRIBUTE_DROP && count % global_batch > 0);
        dataset->count = steps * settings.batch.size;
    }
    dataset = add(&batch_kind, dataset, &settings);
    if (mr_dataset_failed(dataset)) return dataset;
    mr_error error = {0};
    dataset->count = steps;
    if (mr_spec_batch(&dataset->spec, settings.batch.size, &error) != MR_OK)
        return mr_dataset_fail(dataset, error.status, "distribute: %s", error.message);
    if (policy != MR_DISTRIBUTE_MASK) return dataset;
    dataset = add(&mask_kind, dataset, &settings);
    if (mr_dataset_failed(dataset)) return dataset;
    mr_element_spec *spec = &dataset->spec;
    if (spec->count == MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "distribute: more than %d components", MR_COMPONENTS_MAX);
    spec->dtypes[spec->count] = MR_BOOL;
    spec->shapes[spec->count] = MR_SHAPE(settings.batch.size);
    spec->names[spec->count++] = "mask";
    return dataset;
}
