/* map: applies the user's function to each element; after batch, to complete batches. The function borrows the
 * components where they are stored. For results of known size it is given memory: a row of the batch itself, if the
 * results are not changed afterwards. A function that uses this memory causes no allocation. */
#include "base/element.h"
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

/* Passes the components borrowed, or, with own_input, as owned tensors, which `release` releases. */
static mr_status lend(const map_settings *s, mr_workspace *workspace, mr_element *input, mr_error *error)
{
    if (!s->options.own_input) {
        *input = mr_workspace_view(workspace);
        return MR_OK;
    }
    *input = (mr_element){.tensors = workspace->input};
    for (int32_t i = 0; i < workspace->count; i++) {
        input->tensors[i] = (mr_tensor){0};
        MR_TRY(mr_value_to_tensor(&workspace->values[i], &input->tensors[i], error));
        input->count = i + 1;
    }
    return MR_OK;
}

static void release(const map_settings *s, const mr_element *input)
{
    for (int32_t i = 0; s->options.own_input && i < input->count; i++) mr_tensor_deinit(&input->tensors[i]);
}

/* Provides memory for results of known size. */
static mr_status offer(const mr_work *work, mr_workspace *workspace, mr_element *output, mr_error *error)
{
    const mr_element_spec *spec = &work->dataset->spec;
    MR_TRY(mr_element_offer(output, error));
    for (int32_t i = 0; i < spec->count; i++) {
        output->tensors[i] = (mr_tensor){0};
        if (spec->dtypes[i] == MR_STRING || spec->dtypes[i] == MR_VARIANT) continue;
        if (mr_shape_count(spec->shapes[i]) < 0) continue;
        void *room = work->is_last ? workspace->rows[i] : nullptr;
        if (room == nullptr) room = mr_arena_alloc(&workspace->scratch, mr_spec_row_bytes(spec, i) + 1);
        if (room == nullptr) return mr_fail_memory(error, mr_spec_row_bytes(spec, i));
        output->tensors[i] = (mr_tensor){spec->dtypes[i], spec->shapes[i], nullptr, room};
    }
    return MR_OK;
}

/* A result may reference a borrowed scalar stored in a value that the results replace: copies it to the scratch
 * memory. */
static mr_status settle(mr_workspace *workspace, mr_tensor *tensor, mr_error *error)
{
    const char *data = tensor->data, *values = (const char *)workspace->values;
    if (tensor->buffer != nullptr || data < values || data >= values + sizeof workspace->values) return MR_OK;
    tensor->data = mr_arena_copy(&workspace->scratch, data, mr_dtype_size(tensor->dtype));
    return tensor->data != nullptr ? MR_OK : mr_fail_memory(error, mr_dtype_size(tensor->dtype));
}

/* Makes the results the workspace's values, and releases the input. */
static mr_status take(const mr_work *work, mr_workspace *workspace, mr_element *output, mr_error *error)
{
    for (int32_t i = 0; i < output->count; i++) MR_TRY(settle(workspace, &output->tensors[i], error));
    for (int32_t i = 0; i < workspace->count; i++) mr_value_deinit(&workspace->values[i]);
    for (int32_t i = 0; i < output->count; i++) {
        bool is_in_place =
            work->is_last && workspace->rows[i] != nullptr && output->tensors[i].data == workspace->rows[i];
        mr_value_take(&workspace->values[i], &output->tensors[i]);
        workspace->values[i].is_in_row = is_in_place;
    }
    workspace->count = output->count;
    output->count = 0;
    return MR_OK;
}

static mr_status map_work(const mr_work *work, uint64_t epoch, uint64_t number, mr_workspace *workspace,
                          mr_error *error)
{
    const map_settings *s = work->dataset->settings;
    mr_element input = {0}, *output = &workspace->output;
    mr_status status = lend(s, workspace, &input, error);
    if (status == MR_OK) status = offer(work, workspace, output, error);
    if (status == MR_OK) {
        mr_random random = mr_random_at(work->seed, epoch, number, work->purpose);
        status = s->function(s->context, &input, &random, output, error);
        /* A user function must not end the sequence. */
        if (status == MR_OUT_OF_RANGE) status = mr_fail_out_of_range(error);
        if (status == MR_OK) status = mr_element_check(&work->dataset->spec, output, error);
    }
    if (status == MR_OK) status = take(work, workspace, output, error);
    if (status != MR_OK) mr_element_clear_all(output);
    release(s, &input);
    return status;
}

static void map_deinit(mr_dataset *dataset)
{
    const map_settings *s = dataset->settings;
    if (s->options.release != nullptr) s->options.release(s->context);
}

static const mr_dataset_kind map_kind = {
    .name = "map", .role = MR_ROLE_WORK, .digest = map_digest, .work = map_work, .deinit = map_deinit};

mr_dataset *mr_dataset_map_(mr_dataset *input, mr_map_function function, void *context, const mr_element_spec *spec,
                            const mr_map_options *given)
{
    mr_map_options options;
    input = MR_DATASET_READ(mr_map_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&map_kind, input, sizeof(map_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        if (options.release != nullptr) options.release(context);
        return dataset;
    }
    *(map_settings *)dataset->settings = (map_settings){function, context, options};
    if (mr_dataset_failed(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, function != nullptr, "function"))) return dataset;
    if (mr_dataset_failed(mr_dataset_check_threads(dataset, options.num_parallel_calls))) return dataset;
    dataset->is_heavy = true;
    dataset->seed = options.seed;
    return mr_dataset_take_spec(dataset, spec);
}

int32_t mr_map_threads(const mr_dataset *dataset)
{
    return dataset->kind == &map_kind ? ((const map_settings *)dataset->settings)->options.num_parallel_calls : 0;
}
