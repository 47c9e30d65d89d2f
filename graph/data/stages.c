/* Stages of datasets without functions, and what is asked of a dataset. */
#include "graph/data/dataset.h"
#include "graph/state/serialized.h"

#include "base/options.h"
#include "base/rights.h"
#include "pipeline/pipeline.h"

#include <string.h>

/* A stage with one number. */
typedef mr_dataset *(*stage_builder)(mr_dataset *input, int64_t number);

static mr_status stage(mr_kernel_call *call, const char *name, stage_builder build, mr_error *error)
{
    mr_dataset *input;
    int64_t number;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_int(call, 1, name, &number, error));
    return mr_data_output(call, build(mr_dataset_ref(input), number), error);
}

static mr_status repeat(mr_kernel_call *call, mr_error *error)
{
    return stage(call, "count", mr_dataset_repeat, error);
}

static mr_status take(mr_kernel_call *call, mr_error *error)
{
    return stage(call, "count", mr_dataset_take, error);
}

static mr_status skip(mr_kernel_call *call, mr_error *error)
{
    return stage(call, "count", mr_dataset_skip, error);
}

static mr_status assert_cardinality(mr_kernel_call *call, mr_error *error)
{
    return stage(call, "cardinality", mr_dataset_assert_cardinality, error);
}

/* -1: tuned. TensorFlow makes as many elements ahead; more than 1,000,000 have no effect here. */
static mr_dataset *prefetch_elements(mr_dataset *input, int64_t depth)
{
    constexpr int64_t DEPTH_MAX = 1000000;
    return mr_dataset_prefetch(input, (int32_t)(depth < 0 ? 0 : depth > DEPTH_MAX ? DEPTH_MAX : depth));
}

static mr_status prefetch(mr_kernel_call *call, mr_error *error)
{
    int64_t depth;
    MR_TRY(mr_data_int(call, 1, "buffer_size", &depth, error));
    if (depth < -1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning");
    return stage(call, "buffer_size", prefetch_elements, error);
}

static mr_status shard(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    int64_t count, index;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_int(call, 1, "num_shards", &count, error));
    MR_TRY(mr_data_int(call, 2, "index", &index, error));
    return mr_data_output(call, mr_dataset_shard(mr_dataset_ref(input), count, index), error);
}

/* A batch size that is too large for one batch means "all elements": it becomes their number, if that is known. */
static int64_t reachable_size(const mr_dataset *input, int64_t size, bool drop_remainder)
{
    int64_t count = mr_dataset_cardinality(input);
    if (size <= MR_BATCH_MAX || count < 0 || count >= MR_BATCH_MAX) return size;
    if (drop_remainder) return count + 1;
    return count > 0 ? count : 1;
}

/* A batch has memory for all its elements from the start, a window takes them one by one. */
mr_dataset *mr_data_batch(mr_dataset *input, int64_t size, bool drop_remainder)
{
    size = reachable_size(input, size, drop_remainder);
    if (size <= MR_BATCH_MAX) return mr_dataset_batch(input, size, .drop_remainder = drop_remainder);
    return mr_dataset_window(input, nullptr, nullptr, nullptr, .window_size = size, .drop_remainder = drop_remainder);
}

static mr_status batch(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    int64_t size;
    bool drops = false;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_int(call, 1, "batch_size", &size, error));
    if (size <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Batch size must be greater than zero.");
    int32_t last = call->node->input_count - 1;
    if (last >= 2) MR_TRY(mr_data_bool(call, last, "drop_remainder", &drops, error));
    return mr_data_output(call, mr_data_batch(mr_dataset_ref(input), size, drops), error);
}

/* Inputs: the dataset, the batch size, a shape for each component, a value for each component, and whether to drop. */
static mr_status padded_batch(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    int64_t size;
    bool drops = false, has_drop = strcmp(call->node->op, "PaddedBatchDatasetV2") == 0;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_int(call, 1, "batch_size", &size, error));
    if (size <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Batch size must be greater than zero.");
    int32_t count = (call->node->input_count - 2 - has_drop) / 2;
    if (has_drop) MR_TRY(mr_data_bool(call, call->node->input_count - 1, "drop_remainder", &drops, error));
    if (count != mr_dataset_spec(input)->count || count > MR_COMPONENTS_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Number of padded shapes (%d) must match the number of components in the input dataset's "
                              "elements (%d)",
                              (int)count, (int)mr_dataset_spec(input)->count);
    mr_shape shapes[MR_COMPONENTS_MAX] = {0};
    mr_tensor values[MR_COMPONENTS_MAX] = {0};
    for (int32_t i = 0; i < count; i++) {
        const mr_tensor *shape = &call->inputs[2 + i];
        if (shape->shape.rank != 1 || shape->shape.dims[0] > MR_RANK_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "a padded shape must be a vector");
        shapes[i].rank = (int32_t)shape->shape.dims[0];
        for (int32_t d = 0; d < shapes[i].rank; d++) shapes[i].dims[d] = mr_tensor_int64s(shape)[d];
        values[i] = call->inputs[2 + count + i];
    }
    return mr_data_output(call,
                          mr_dataset_padded_batch(mr_dataset_ref(input), reachable_size(input, size, drops),
                                                  .padded_shapes = shapes, .padding_values = values,
                                                  .drop_remainder = drops),
                          error);
}

static mr_status unbatch(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    MR_TRY(mr_data_input(call, 0, &input, error));
    return mr_data_output(call, mr_dataset_unbatch(mr_dataset_ref(input)), error);
}

static mr_status unique(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    MR_TRY(mr_data_input(call, 0, &input, error));
    return mr_data_output(call, mr_dataset_unique(mr_dataset_ref(input)), error);
}

static mr_status ignore_errors(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    MR_TRY(mr_data_input(call, 0, &input, error));
    return mr_data_output(call, mr_dataset_ignore_errors(mr_dataset_ref(input)), error);
}

static mr_status pass(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    MR_TRY(mr_data_input(call, 0, &input, error));
    return mr_data_output(call, mr_dataset_ref(input), error);
}

static mr_status cache(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_string path;
    mr_arena arena = {0};
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_string(call, 1, "filename", &path, error));
    if (path.size_bytes == 0) return mr_data_output(call, mr_dataset_cache(mr_dataset_ref(input), nullptr), error);
    if (memchr(path.data, 0, path.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filename contains a NUL byte");
    const char *text = mr_arena_strndup(&arena, path.data, path.size_bytes);
    mr_status status = text ? mr_kernel_check_write(call, text, error) : mr_fail_memory(error, path.size_bytes);
    if (status == MR_OK) status = mr_data_output(call, mr_dataset_cache(mr_dataset_ref(input), text), error);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status concatenate(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *first, *second;
    MR_TRY(mr_data_input(call, 0, &first, error));
    MR_TRY(mr_data_input(call, 1, &second, error));
    return mr_data_output(call, mr_dataset_concatenate(mr_dataset_ref(first), mr_dataset_ref(second)), error);
}

static mr_status zip(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *inputs[MR_COMPONENTS_MAX];
    int32_t count = call->node->input_count;
    if (count > MR_COMPONENTS_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "more than %d datasets", MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < count; i++) MR_TRY(mr_data_input(call, i, &inputs[i], error));
    for (int32_t i = 0; i < count; i++) inputs[i] = mr_dataset_ref(inputs[i]);
    return mr_data_output(call, mr_dataset_zip(inputs, count), error);
}

/* Inputs: the dataset of choices, and those to choose from. */
static mr_status choose(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *choices, *inputs[MR_COMPONENTS_MAX];
    int32_t count = call->node->input_count - 1;
    if (count > MR_COMPONENTS_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "more than %d datasets", MR_COMPONENTS_MAX);
    MR_TRY(mr_data_input(call, 0, &choices, error));
    const mr_element_spec *spec = mr_dataset_spec(choices);
    if (spec->count != 1 || spec->dtypes[0] != MR_INT64 || spec->shapes[0].rank > 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The selector input must be a dataset of scalar int64 elements.");
    for (int32_t i = 0; i < count; i++) MR_TRY(mr_data_input(call, 1 + i, &inputs[i], error));
    for (int32_t i = 0; i < count; i++) inputs[i] = mr_dataset_ref(inputs[i]);
    bool stops = mr_attr_bool_or(call->node->attrs, "stop_on_empty_dataset", false);
    return mr_data_output(
        call, mr_dataset_choose_from_datasets(inputs, count, mr_dataset_ref(choices), .stop_on_empty_dataset = stops),
        error);
}

/* ---- Questions ---- */

static mr_status single_element(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_element element = {0};
    MR_TRY(mr_data_input(call, 0, &input, error));
    const mr_element_spec *spec = mr_dataset_spec(input);
    bool fits = spec->count == call->node->output_count;
    for (int32_t i = 0; fits && i < spec->count; i++)
        fits = spec->dtypes[i] == call->node->output_dtypes[i] ||
               (spec->dtypes[i] == MR_STRING && call->node->output_dtypes[i] == MR_VARIANT);
    if (!fits) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the dataset's elements have other types");
    MR_TRY(mr_dataset_get_single_element(input, &element, error));
    mr_status status = MR_OK;
    for (int32_t i = 0; i < element.count && status == MR_OK; i++) {
        status = mr_serialized_to_graph(&element.tensors[i], call->node->output_dtypes[i], error);
        call->outputs[i] = mr_tensor_ref(&element.tensors[i]);
    }
    mr_element_deinit(&element);
    return status;
}

static mr_status cardinality(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    MR_TRY(mr_data_input(call, 0, &input, error));
    return mr_tensor_init_int64(&call->outputs[0], mr_dataset_cardinality(input), error);
}

static const mr_kernel kernels[] = {
    {.op = "RepeatDataset", .run = repeat},
    {.op = "TakeDataset", .run = take},
    {.op = "SkipDataset", .run = skip},
    {.op = "ShardDataset", .run = shard},
    {.op = "PrefetchDataset", .run = prefetch},
    {.op = "BatchDataset", .run = batch},
    {.op = "BatchDatasetV2", .run = batch},
    {.op = "ParallelBatchDataset", .run = batch},
    {.op = "PaddedBatchDataset", .run = padded_batch},
    {.op = "PaddedBatchDatasetV2", .run = padded_batch},
    {.op = "UnbatchDataset", .run = unbatch},
    {.op = "UniqueDataset", .run = unique},
    {.op = "IgnoreErrorsDataset", .run = ignore_errors},
    {.op = "CacheDataset", .run = cache},
    {.op = "CacheDatasetV2", .run = cache},
    {.op = "ConcatenateDataset", .run = concatenate},
    {.op = "ZipDataset", .run = zip},
    {.op = "AssertCardinalityDataset", .run = assert_cardinality},
    {.op = "OptionsDataset", .run = pass},
    {.op = "ModelDataset", .run = pass},
    {.op = "OptimizeDataset", .run = pass},
    {.op = "RewriteDataset", .run = pass},
    {.op = "MaxIntraOpParallelismDataset", .run = pass},
    {.op = "PrivateThreadPoolDataset", .run = pass},
    {.op = "ThreadPoolDataset", .run = pass},
    {.op = "NonSerializableDataset", .run = pass},
    {.op = "DatasetToSingleElement", .run = single_element},
    {.op = "DatasetCardinality", .run = cardinality},
    {.op = "DirectedInterleaveDataset", .run = choose},
    {.op = "OptimizeDatasetV2", .run = pass},
    {.op = "FinalizeDataset", .run = pass},
    {.op = "WrapDatasetVariant", .run = pass},
    {.op = "UnwrapDatasetVariant", .run = pass},
    {.op = "AssertNextDataset", .run = pass},
    {.op = "LatencyStatsDataset", .run = pass},
    {.op = "BytesProducedStatsDataset", .run = pass},
};
const mr_kernel_table mr_data_kernels_stages = {kernels, sizeof kernels / sizeof kernels[0]};
