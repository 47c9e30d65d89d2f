/* batch and prefetch: settings of the engine, which does both (engine.h). */
#include "pipeline/pipeline.h"

static uint64_t batch_digest(const mr_dataset *dataset)
{
    const mr_batch_settings *s = dataset->settings;
    return mr_digest((uint64_t)s->size, s->drop_remainder);
}

static const mr_dataset_kind batch_kind = {.name = "batch", .role = MR_ROLE_BATCH, .digest = batch_digest};
static const mr_dataset_kind prefetch_kind = {.name = "prefetch", .role = MR_ROLE_PREFETCH};

mr_dataset *mr_dataset_batch_(mr_dataset *input, int64_t size, const mr_batch_options *options)
{
    mr_dataset *dataset = mr_dataset_new(&batch_kind, input, sizeof(mr_batch_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    *(mr_batch_settings *)dataset->settings = (mr_batch_settings){size, options->drop_remainder};
    if (size < 1 || size > MR_BATCH_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "batch: %lld elements, where 1 to %d may be",
                               (long long)size, MR_BATCH_MAX);
    for (int32_t i = 0; i < dataset->spec.count; i++) {
        mr_shape *shape = &dataset->spec.shapes[i];
        if (shape->rank < 0) continue;
        if (shape->rank == MR_RANK_MAX)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "batch: component %d already has %d dimensions", i,
                                   MR_RANK_MAX);
        for (int32_t d = shape->rank; d > 0; d--) shape->dims[d] = shape->dims[d - 1];
        shape->dims[0] = options->drop_remainder ? size : -1;
        shape->rank++;
    }
    if (input->count >= 0) dataset->count = input->count / size + (!options->drop_remainder && input->count % size > 0);
    return dataset;
}

mr_dataset *mr_dataset_prefetch(mr_dataset *input, int32_t depth)
{
    mr_dataset *dataset = mr_dataset_new(&prefetch_kind, input, sizeof(mr_prefetch_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    if (depth < 0) return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "prefetch: a depth of %d", depth);
    ((mr_prefetch_settings *)dataset->settings)->depth = depth;
    dataset->is_heavy = true;
    return dataset;
}
