/* map: the user's function on each element. Before batch it gets single elements, after batch whole batches. Components
 * are handed over as tensors of their own, so that the function may keep or pass on a share of them. */
#include "pipeline/pipeline.h"

#include <string.h>

typedef struct map_settings {
    mr_map_function function;
    void *context;
    mr_map_options options;
} map_settings;

static uint64_t map_digest(const mr_dataset *dataset)
{
    const map_settings *s = dataset->settings;
    return mr_digest(s->options.seed, (uint64_t)dataset->spec.count);
}

/* What the function made must be what its dataset promised. */
static mr_status check_output(const mr_element_spec *spec, const mr_element *output, mr_error *error)
{
    if (output->count != spec->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the function made %d components, its spec has %d", output->count,
                       spec->count);
    for (int32_t i = 0; i < spec->count; i++) {
        const mr_tensor *tensor = &output->tensors[i];
        if (tensor->dtype != spec->dtypes[i])
            return mr_fail(error, MR_INVALID_ARGUMENT, "the function made component %d of %s, its spec says %s", i,
                           mr_dtype_name(tensor->dtype), mr_dtype_name(spec->dtypes[i]));
        if (!mr_shape_compatible(tensor->shape, spec->shapes[i])) {
            char made[MR_SHAPE_TEXT_SIZE], promised[MR_SHAPE_TEXT_SIZE];
            return mr_fail(error, MR_INVALID_ARGUMENT, "the function made component %d of shape %s, its spec says %s",
                           i, mr_shape_text(tensor->shape, made, sizeof made),
                           mr_shape_text(spec->shapes[i], promised, sizeof promised));
        }
    }
    return MR_OK;
}

static mr_status map_work(const mr_work *work, uint64_t epoch, uint64_t number, mr_lane *lane, mr_error *error)
{
    const map_settings *s = work->dataset->settings;
    mr_element input, output;
    input.count = output.count = 0;
    mr_status status = MR_OK;
    for (int32_t i = 0; i < lane->count && status == MR_OK; i++) {
        input.tensors[i] = (mr_tensor){0};
        status = mr_value_to_tensor(&lane->values[i], &input.tensors[i], error);
        input.count = i + 1;
    }
    lane->count = 0;
    if (status == MR_OK) {
        memset(output.tensors, 0, (size_t)work->dataset->spec.count * sizeof *output.tensors);
        mr_random random = mr_random_at(work->seed, epoch, number, work->purpose);
        status = s->function(s->context, &input, &random, &output, error);
        /* The end of a sequence is not the function's to say. */
        if (status == MR_OUT_OF_RANGE) {
            mr_error reason = error == nullptr ? (mr_error){0} : *error;
            status = mr_fail(error, MR_INVALID_ARGUMENT, "the function returned OUT_OF_RANGE: %s", reason.message);
        }
        if (status == MR_OK) status = check_output(&work->dataset->spec, &output, error);
    }
    mr_element_deinit(&input);
    if (status != MR_OK) {
        if (output.count > 0) mr_element_deinit(&output);
        return status;
    }
    lane->count = output.count;
    for (int32_t i = 0; i < output.count; i++) mr_value_take(&lane->values[i], &output.tensors[i]);
    return MR_OK;
}

static void map_deinit(mr_dataset *dataset)
{
    const map_settings *s = dataset->settings;
    if (s->options.release != nullptr) s->options.release(s->context);
}

static const mr_dataset_kind map_kind = {
    .name = "map", .role = MR_ROLE_WORK, .digest = map_digest, .work = map_work, .deinit = map_deinit};

mr_dataset *mr_dataset_map_(mr_dataset *input, mr_map_function function, void *context, const mr_element_spec *spec,
                            const mr_map_options *options)
{
    mr_dataset *dataset = mr_dataset_new(&map_kind, input, sizeof(map_settings));
    if (dataset == nullptr) {
        if (options->release != nullptr) options->release(context);
        return nullptr;
    }
    *(map_settings *)dataset->settings = (map_settings){function, context, *options};
    if (mr_dataset_failed(dataset)) return dataset;
    if (spec->count < 1 || spec->count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "map: a spec of %d components, where 1 to %d may be",
                               spec->count, MR_COMPONENTS_MAX);
    dataset->spec = *spec;
    dataset->is_heavy = true;
    dataset->seed = options->seed;
    for (int32_t i = 0; i < spec->count; i++) {
        if (mr_dtype_size(spec->dtypes[i]) == 0)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "map: component %d of the spec has dtype %s", i,
                                   mr_dtype_name(spec->dtypes[i]));
        if (spec->names[i] == nullptr) continue;
        dataset->spec.names[i] = mr_arena_strdup(&dataset->arena, spec->names[i]);
        if (dataset->spec.names[i] == nullptr) return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "map: no memory");
    }
    return dataset;
}

int32_t mr_map_threads(const mr_dataset *dataset)
{
    return dataset->kind == &map_kind ? ((const map_settings *)dataset->settings)->options.threads : 0;
}
