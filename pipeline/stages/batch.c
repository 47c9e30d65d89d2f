/* batch, padded, ragged and sparse batches, and prefetch: settings of the engine, which implements them
 * (engine/engine.h). */
#include "pipeline/pipeline.h"
#include "pipeline/to_device.h"

#include <assert.h>

static uint64_t batch_digest(const mr_dataset *dataset)
{
    const mr_batch_settings *s = dataset->settings;
    assert(s->size >= 1 && s->size <= MR_BATCH_MAX && (s->pads != nullptr) == (s->pad_count > 0));
    uint64_t digest = mr_digest((uint64_t)s->size, s->drop_remainder);
    for (int32_t i = 0; i < s->pad_count; i++) {
        const mr_pad *pad = &s->pads[i];
        digest = mr_digest(mr_digest(digest, (uint64_t)pad->join), (uint64_t)pad->ragged_rank);
        if (pad->join == MR_JOIN_RAGGED) digest = mr_digest(digest, (uint64_t)pad->splits_dtype);
        digest = mr_digest_tensor(mr_digest_shape(digest, pad->shape), &pad->value);
    }
    return digest;
}

static void batch_deinit(mr_dataset *dataset)
{
    const mr_batch_settings *s = dataset->settings;
    for (int32_t i = 0; i < s->pad_count; i++) {
        mr_tensor value = s->pads[i].value;
        mr_tensor_deinit(&value);
    }
}

static const mr_dataset_kind batch_kind = {
    .name = "batch", .role = MR_ROLE_BATCH, .digest = batch_digest, .deinit = batch_deinit};
static const mr_dataset_kind padded_kind = {
    .name = "padded_batch", .role = MR_ROLE_BATCH, .digest = batch_digest, .deinit = batch_deinit};
static const mr_dataset_kind prefetch_kind = {.name = "prefetch", .role = MR_ROLE_PREFETCH};

static const mr_dataset_kind ragged_kind = {
    .name = "dense_to_ragged_batch", .role = MR_ROLE_BATCH, .digest = batch_digest, .deinit = batch_deinit};
static const mr_dataset_kind sparse_kind = {
    .name = "dense_to_sparse_batch", .role = MR_ROLE_BATCH, .digest = batch_digest, .deinit = batch_deinit};

static mr_dataset *make(const mr_dataset_kind *kind, mr_dataset *input, int64_t size, bool drop_remainder)
{
    mr_dataset *dataset = mr_dataset_new(kind, input, sizeof(mr_batch_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    *(mr_batch_settings *)dataset->settings = (mr_batch_settings){.size = size, .drop_remainder = drop_remainder};
    if (size < 1 || size > MR_BATCH_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: size is %lld, expected 1 to %d", kind->name,
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

mr_dataset *mr_dataset_batch_(mr_dataset *input, int64_t size, const mr_batch_options *given)
{
    mr_batch_options options;
    input = MR_DATASET_READ(mr_batch_options, &options, input, given);
    mr_dataset *dataset = make(&batch_kind, input, size, options.drop_remainder);
    return mr_dataset_failed(dataset) ? dataset : batch_spec(dataset);
}

/* Validates the shape that component i is padded to. Its known sizes must fit. */
static mr_status pad_shape(const mr_dataset *dataset, int32_t i, const mr_shape *wanted, mr_shape *shape,
                           mr_error *error)
{
    const mr_shape *known = &dataset->spec.shapes[i];
    *shape = wanted != nullptr ? *wanted : *known;
    if (shape->rank > MR_RANK_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "component %d: the padded shape has %d dimensions", i, shape->rank);
    for (int32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] < -1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d: the padded shape has size %lld in dimension %d",
                           i, (long long)shape->dims[d], d);
    if (shape->rank < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "component %d has an unknown number of dimensions: set padded_shapes", i);
    if (known->rank >= 0 && known->rank != shape->rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "component %d has %d dimensions, its padded shape has %d", i,
                       known->rank, shape->rank);
    for (int32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] >= 0 && known->rank >= 0 && known->dims[d] > shape->dims[d])
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "component %d has size %lld in dimension %d, larger than the padded size %lld", i,
                           (long long)known->dims[d], d, (long long)shape->dims[d]);
    return MR_OK;
}

mr_dataset *mr_dataset_padded_batch_(mr_dataset *input, int64_t size, const mr_padded_batch_options *given)
{
    mr_padded_batch_options options;
    input = MR_DATASET_READ(mr_padded_batch_options, &options, input, given);
    mr_dataset *dataset = make(&padded_kind, input, size, options.drop_remainder);
    if (mr_dataset_failed(dataset)) return dataset;
    mr_element_spec *spec = &dataset->spec;
    mr_pad *pads = MR_ARENA_NEW(&dataset->arena, mr_pad, (size_t)spec->count + 1);
    if (pads == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "padded_batch: no memory");
    ((mr_batch_settings *)dataset->settings)->pads = pads;
    ((mr_batch_settings *)dataset->settings)->pad_count = spec->count;
    for (int32_t i = 0; i < spec->count; i++) {
        mr_error error = {0};
        pads[i].join = MR_JOIN_PADDED;
        if (pad_shape(dataset, i, options.padded_shapes == nullptr ? nullptr : &options.padded_shapes[i],
                      &pads[i].shape, &error) != MR_OK)
            return mr_dataset_fail(dataset, error.status, "padded_batch: %s", error.message);
        if (options.padding_values == nullptr) continue;
        if (options.padding_values[i].dtype != spec->dtypes[i] || mr_tensor_count(&options.padding_values[i]) != 1 ||
            !mr_tensor_is_complete(&options.padding_values[i]))
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                                   "padded_batch: component %d: the padding value must be one %s", i,
                                   mr_dtype_name(spec->dtypes[i]));
        pads[i].value = mr_tensor_ref(&options.padding_values[i]);
    }
    for (int32_t i = 0; i < spec->count; i++) spec->shapes[i] = pads[i].shape;
    return batch_spec(dataset);
}

/* ---- Ragged and sparse ---- */

/* One more than the last dimension of unknown size; 0 if all sizes are known, or the rank is not. */
static int32_t ragged_rank_of(const mr_shape *shape)
{
    for (int32_t d = shape->rank - 1; d >= 0; d--)
        if (shape->dims[d] < 0) return d + 1;
    return 0;
}

static void put(mr_element_spec *spec, mr_dtype dtype, mr_shape shape, const char *name)
{
    if (spec->count < MR_COMPONENTS_MAX) {
        spec->dtypes[spec->count] = dtype;
        spec->shapes[spec->count] = shape;
        spec->names[spec->count] = name;
    }
    spec->count++;
}

/* Adds the component's values and row splits, as mr_feature_tensor_spec describes MR_RAGGED. */
static void put_ragged(mr_element_spec *spec, const mr_pad *pad, mr_dtype dtype, int64_t size, const char *name)
{
    assert(pad->ragged_rank >= 1 && pad->ragged_rank <= pad->shape.rank);
    mr_shape values = {.rank = 1 + pad->shape.rank - pad->ragged_rank, .dims = {-1}};
    for (int32_t d = 1; d < values.rank; d++) values.dims[d] = pad->shape.dims[pad->ragged_rank + d - 1];
    put(spec, dtype, values, name);
    for (int32_t level = 0; level < pad->ragged_rank; level++)
        put(spec, pad->splits_dtype, MR_SHAPE(level == 0 && size >= 0 ? size + 1 : -1), name);
}

static mr_dataset *take_parts(mr_dataset *dataset, const mr_element_spec *spec)
{
    if (spec->count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: %d components, expected 1 to %d", dataset->kind->name,
                               spec->count, MR_COMPONENTS_MAX);
    dataset->spec = *spec;
    return dataset;
}

mr_dataset *mr_dataset_dense_to_ragged_batch_(mr_dataset *input, int64_t size, const mr_ragged_batch_options *given)
{
    mr_ragged_batch_options options;
    input = MR_DATASET_READ(mr_ragged_batch_options, &options, input, given);
    mr_dataset *dataset = make(&ragged_kind, input, size, options.drop_remainder);
    if (mr_dataset_failed(dataset)) return dataset;
    mr_dtype splits_dtype = options.row_splits_dtype == 0 ? MR_INT64 : options.row_splits_dtype;
    if (splits_dtype != MR_INT64 && splits_dtype != MR_INT32)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "dense_to_ragged_batch: row_splits_dtype is %s, expected int64 or int32",
                               mr_dtype_name(splits_dtype));
    const mr_element_spec *elements = &input->spec;
    mr_pad *pads = MR_ARENA_NEW(&dataset->arena, mr_pad, (size_t)elements->count);
    if (pads == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "dense_to_ragged_batch: no memory");
    mr_batch_settings *s = dataset->settings;
    s->pads = pads;
    s->pad_count = elements->count;
    mr_element_spec plain = *elements, parts = {0};
    mr_error error = {0};
    if (mr_spec_batch(&plain, options.drop_remainder ? size : -1, &error) != MR_OK)
        return mr_dataset_fail(dataset, error.status, "dense_to_ragged_batch: %s", error.message);
    for (int32_t i = 0; i < elements->count; i++) {
        int32_t ragged_rank = ragged_rank_of(&elements->shapes[i]);
        pads[i] = (mr_pad){.join = ragged_rank > 0 ? MR_JOIN_RAGGED : MR_JOIN_EQUAL,
                           .shape = elements->shapes[i],
                           .ragged_rank = ragged_rank,
                           .splits_dtype = splits_dtype};
        if (ragged_rank > 0)
            put_ragged(&parts, &pads[i], elements->dtypes[i], options.drop_remainder ? size : -1, elements->names[i]);
        else
            put(&parts, elements->dtypes[i], plain.shapes[i], elements->names[i]);
    }
    return take_parts(dataset, &parts);
}

mr_dataset *mr_dataset_dense_to_sparse_batch_(mr_dataset *input, int64_t size, mr_shape row_shape,
                                              const mr_batch_options *given)
{
    mr_batch_options options;
    input = MR_DATASET_READ(mr_batch_options, &options, input, given);
    mr_dataset *dataset = make(&sparse_kind, input, size, options.drop_remainder);
    if (mr_dataset_failed(dataset)) return dataset;
    const mr_element_spec *elements = &input->spec;
    if (elements->count != 1)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "dense_to_sparse_batch: elements have %d components, expected 1", elements->count);
    if (row_shape.rank < 0 || row_shape.rank >= MR_RANK_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "dense_to_sparse_batch: row_shape has %d dimensions, expected 0 to %d", row_shape.rank,
                               MR_RANK_MAX - 1);
    for (int32_t d = 0; d < row_shape.rank; d++)
        if (row_shape.dims[d] < -1)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                                   "dense_to_sparse_batch: row_shape has size %lld in dimension %d",
                                   (long long)row_shape.dims[d], d);
    mr_pad *pad = MR_ARENA_NEW(&dataset->arena, mr_pad, 1);
    if (pad == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "dense_to_sparse_batch: no memory");
    *pad = (mr_pad){.join = MR_JOIN_SPARSE, .shape = row_shape};
    mr_batch_settings *s = dataset->settings;
    s->pads = pad;
    s->pad_count = 1;
    mr_element_spec parts = {0};
    const char *name = elements->names[0];
    put(&parts, MR_INT64, MR_SHAPE(-1, row_shape.rank + 1), name);
    put(&parts, elements->dtypes[0], MR_SHAPE(-1), name);
    put(&parts, MR_INT64, MR_SHAPE(row_shape.rank + 1), name);
    return take_parts(dataset, &parts);
}

mr_dataset *mr_dataset_prefetch(mr_dataset *input, int32_t depth)
{
    if (!mr_dataset_failed(input) && mr_dataset_final(input) != nullptr)
        return mr_dataset_to_device_deeper(input, depth);
    mr_dataset *dataset = mr_dataset_new(&prefetch_kind, input, sizeof(mr_prefetch_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    if (depth < 0)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "prefetch: depth is %d, expected at least 0", depth);
    ((mr_prefetch_settings *)dataset->settings)->depth = depth;
    dataset->is_heavy = true;
    return dataset;
}
