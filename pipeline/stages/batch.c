/* batch and prefetch: settings of the engine, which does both (engine.h). */
#include "pipeline/pipeline.h"

static uint64_t batch_digest(const mr_dataset *dataset)
{
    const mr_batch_settings *s = dataset->settings;
    uint64_t digest = mr_digest((uint64_t)s->size, s->drop_remainder);
    for (int32_t i = 0; s->pads != nullptr && i < dataset->spec.count; i++) {
        const mr_pad *pad = &s->pads[i];
        for (int32_t d = 0; d < pad->shape.rank; d++) digest = mr_digest(digest, (uint64_t)pad->shape.dims[d]);
        if (pad->value.data == nullptr) continue;
        mr_string value = pad->value.dtype == MR_STRING ? mr_tensor_strings(&pad->value)[0]
                                                        : (mr_string){pad->value.data, mr_dtype_size(pad->value.dtype)};
        digest = mr_digest_bytes(digest, value.data, value.size_bytes);
    }
    return digest;
}

static void batch_deinit(mr_dataset *dataset)
{
    const mr_batch_settings *s = dataset->settings;
    for (int32_t i = 0; s->pads != nullptr && i < dataset->spec.count; i++) {
        mr_tensor value = s->pads[i].value;
        mr_tensor_deinit(&value);
    }
}

static const mr_dataset_kind batch_kind = {
    .name = "batch", .role = MR_ROLE_BATCH, .digest = batch_digest, .deinit = batch_deinit};
static const mr_dataset_kind padded_kind = {
    .name = "padded_batch", .role = MR_ROLE_BATCH, .digest = batch_digest, .deinit = batch_deinit};
static const mr_dataset_kind prefetch_kind = {.name = "prefetch", .role = MR_ROLE_PREFETCH};

static mr_dataset *make(const mr_dataset_kind *kind, mr_dataset *input, int64_t size, bool drop_remainder)
{
    mr_dataset *dataset = mr_dataset_new(kind, input, sizeof(mr_batch_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    *(mr_batch_settings *)dataset->settings = (mr_batch_settings){size, drop_remainder, nullptr};
    if (size < 1 || size > MR_BATCH_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: %lld elements, where 1 to %d may be", kind->name,
                               (long long)size, MR_BATCH_MAX);
    if (input->count >= 0) dataset->count = input->count / size + (!drop_remainder && input->count % size > 0);
    return dataset;
}

static mr_dataset *batch_spec(mr_dataset *dataset)
{
    const mr_batch_settings *s = dataset->settings;
    mr_error error = {0};
    if (mr_spec_batch(&dataset->spec, s->drop_remainder ? s->size : -1, &error) == MR_OK) return dataset;
    return mr_dataset_fail(dataset, error.status, "%s: %s", dataset->kind->name, error.message);
}

mr_dataset *mr_dataset_batch_(mr_dataset *input, int64_t size, const mr_batch_options *options)
{
    mr_dataset *dataset = make(&batch_kind, input, size, options->drop_remainder);
    return mr_dataset_failed(dataset) ? dataset : batch_spec(dataset);
}

/* What component i is padded to; the sizes that are known must fit. */
static mr_status pad_shape(const mr_dataset *dataset, int32_t i, const mr_shape *wanted, mr_shape *shape,
                           mr_error *error)
{
    const mr_shape *known = &dataset->spec.shapes[i];
    *shape = wanted != nullptr ? *wanted : *known;
    if (shape->rank < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "component %d has an unknown number of dimensions: say what to pad it to", i);
    if (known->rank >= 0 && known->rank != shape->rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "component %d has %d dimensions and is to be padded to %d", i,
                       known->rank, shape->rank);
    for (int32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] >= 0 && known->rank >= 0 && known->dims[d] > shape->dims[d])
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "component %d has size %lld in dimension %d, more than the %lld to pad it to", i,
                           (long long)known->dims[d], d, (long long)shape->dims[d]);
    return MR_OK;
}

mr_dataset *mr_dataset_padded_batch_(mr_dataset *input, int64_t size, const mr_padded_batch_options *options)
{
    mr_dataset *dataset = make(&padded_kind, input, size, options->drop_remainder);
    if (mr_dataset_failed(dataset)) return dataset;
    mr_element_spec *spec = &dataset->spec;
    mr_pad *pads = MR_ARENA_NEW(&dataset->arena, mr_pad, (size_t)spec->count + 1);
    if (pads == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "padded_batch: no memory");
    ((mr_batch_settings *)dataset->settings)->pads = pads;
    for (int32_t i = 0; i < spec->count; i++) {
        mr_error error = {0};
        if (pad_shape(dataset, i, options->shapes == nullptr ? nullptr : &options->shapes[i], &pads[i].shape, &error) !=
            MR_OK)
            return mr_dataset_fail(dataset, error.status, "padded_batch: %s", error.message);
        if (options->values == nullptr) continue;
        if (options->values[i].dtype != spec->dtypes[i] || mr_tensor_count(&options->values[i]) != 1)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                                   "padded_batch: component %d has to be padded with one value of %s", i,
                                   mr_dtype_name(spec->dtypes[i]));
        pads[i].value = mr_tensor_ref(&options->values[i]);
    }
    for (int32_t i = 0; i < spec->count; i++) spec->shapes[i] = pads[i].shape;
    return batch_spec(dataset);
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
