/* Stages of datasets that call functions of the graph. */
#include "graph/data/dataset.h"

#include "base/options.h"
#include "pipeline/scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The number of captured tensors: all inputs but the dataset and the `last` ones. */
static int32_t captured(const mr_kernel_call *call, int32_t last)
{
    assert(call->node->input_count >= 1 + last);
    return call->node->input_count - 1 - last;
}

/* ---- map ---- */

/* A function with side effects or random numbers is called in order, one element at a time. If it fails with
 * OutOfRange, the sequence ends: generators of TensorFlow 1.4 to 1.12 are functions in Python that do. */
static mr_status map_in_order(void *function, const mr_element *, const mr_element *input, mr_element *,
                              mr_element *output, mr_error *error)
{
    return mr_data_function_map(function, input, nullptr, output, error);
}

static mr_status map_dataset(mr_kernel_call *call, mr_dataset *input, const mr_element_spec *spec, int32_t last,
                             mr_dataset **mapped, mr_error *error)
{
    mr_data_function *f;
    MR_TRY(mr_data_function_new(call, "f", 1, captured(call, last), &f, error));
    if (mr_data_function_is_stateful(f)) {
        mr_element none = {0};
        *mapped =
            mr_dataset_scan(mr_dataset_ref(input), &none, map_in_order, f, spec, .release = mr_data_function_free);
        if (!mr_attr_bool_or(call->node->attrs, "preserve_cardinality", false))
            *mapped = mr_dataset_scan_can_end(*mapped);
    } else {
        *mapped =
            mr_dataset_map(mr_dataset_ref(input), mr_data_function_map, f, spec, .release = mr_data_function_free);
    }
    return MR_OK;
}

static mr_status map_windows(mr_kernel_call *call, const mr_element_spec *spec, int32_t last, bool flat,
                             mr_error *error)
{
    mr_data_function *f;
    mr_dataset *mapped;
    MR_TRY(mr_data_function_new(call, "f", 1, captured(call, last), &f, error));
    MR_TRY(mr_data_windows_map(call, f, spec, flat, &mapped, error));
    return mr_data_output(call, mapped, error);
}

static bool has_variants(const mr_element_spec *spec)
{
    bool has = false;
    for (int32_t i = 0; i < spec->count; i++) has |= spec->dtypes[i] == MR_VARIANT;
    return has;
}

static mr_status map(mr_kernel_call *call, int32_t last, mr_error *error)
{
    mr_dataset *input, *mapped;
    mr_element_spec spec;
    MR_TRY(mr_data_spec(call, &spec, error));
    if (mr_data_input_windows(call, 0) && !has_variants(&spec)) return map_windows(call, &spec, last, false, error);
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(map_dataset(call, input, &spec, last, &mapped, error));
    return mr_data_output(call, mapped, error);
}

static mr_status map_one(mr_kernel_call *call, mr_error *error)
{
    return map(call, 0, error);
}

static mr_status map_parallel(mr_kernel_call *call, mr_error *error)
{
    return map(call, 1, error);
}

/* The attrs state the structure of batches; that of an element has one dimension less. */
static mr_status map_and_batch(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input, *mapped;
    mr_element_spec spec;
    int64_t size;
    bool drops;
    int32_t last = call->node->input_count;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_int(call, last - 3, "batch_size", &size, error));
    MR_TRY(mr_data_bool(call, last - 1, "drop_remainder", &drops, error));
    if (size <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "batch_size must be greater than zero.");
    MR_TRY(mr_data_spec(call, &spec, error));
    for (int32_t i = 0; i < spec.count; i++) {
        mr_shape *shape = &spec.shapes[i];
        if (shape->rank == 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output_shapes has a scalar for a batch");
        if (shape->rank < 0) continue;
        for (int32_t d = 1; d < shape->rank; d++) shape->dims[d - 1] = shape->dims[d];
        shape->dims[--shape->rank] = 0;
    }
    MR_TRY(map_dataset(call, input, &spec, 3, &mapped, error));
    return mr_data_output(call, mr_data_batch(mapped, size, drops), error);
}

/* ---- filter ---- */

static mr_status filter_first(mr_kernel_call *call, int32_t last, mr_error *error)
{
    mr_dataset *input;
    mr_data_function *f;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_function_new(call, "predicate", 1, captured(call, last), &f, error));
    return mr_data_output(call,
                          mr_dataset_filter(mr_dataset_ref(input), mr_data_function_test, f,
                                            .num_parallel_calls = mr_data_function_is_stateful(f),
                                            .release = mr_data_function_free),
                          error);
}

static mr_status filter(mr_kernel_call *call, mr_error *error)
{
    return filter_first(call, 0, error);
}

static mr_status filter_parallel(mr_kernel_call *call, mr_error *error)
{
    return filter_first(call, 1, error);
}

static mr_status last_is_true(void *, const mr_element *input, bool *keep, mr_error *)
{
    *keep = mr_tensor_bools(&input->tensors[input->count - 1])[0];
    return MR_OK;
}

static mr_status without_last(void *, const mr_element *input, mr_random *, mr_element *output, mr_error *)
{
    for (int32_t i = 0; i < input->count - 1; i++) output->tensors[i] = mr_tensor_ref(&input->tensors[i]);
    output->count = input->count - 1;
    return MR_OK;
}

static mr_status filter_by_last(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    MR_TRY(mr_data_input(call, 0, &input, error));
    mr_element_spec spec = *mr_dataset_spec(input);
    int32_t last = spec.count - 1;
    if (last < 1 || spec.dtypes[last] != MR_BOOL || spec.shapes[last].rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "the last of several components must be a scalar of type bool");
    spec.count = last;
    mr_dataset *kept = mr_dataset_filter(mr_dataset_ref(input), last_is_true, nullptr);
    return mr_data_output(call, mr_dataset_map(kept, without_last, nullptr, &spec, .own_input = true), error);
}

static mr_status take_while(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_data_function *f;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_function_new(call, "predicate", 1, captured(call, 0), &f, error));
    return mr_data_output(
        call, mr_dataset_take_while(mr_dataset_ref(input), mr_data_function_test, f, .release = mr_data_function_free),
        error);
}

/* ---- Datasets of datasets ---- */

static mr_status flat_map(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_data_function *f;
    mr_element_spec spec;
    MR_TRY(mr_data_spec(call, &spec, error));
    if (mr_data_input_windows(call, 0)) return map_windows(call, &spec, 0, true, error);
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_function_new(call, "f", 1, captured(call, 0), &f, error));
    return mr_data_output(call,
                          mr_dataset_flat_map(mr_dataset_ref(input), mr_data_function_dataset, f, &spec,
                                              .release = mr_data_function_free),
                          error);
}

/* The most datasets that are open at the same time: each needs threads and memory. */
constexpr int64_t CYCLE_MAX = 1 << 16;

/* last: number of inputs after the captured ones, of which the first two are cycle_length and block_length. */
static mr_status interleave(mr_kernel_call *call, int32_t last, bool parallel, mr_error *error)
{
    mr_dataset *input;
    mr_data_function *f;
    mr_element_spec spec;
    int64_t cycle, block;
    int32_t first = call->node->input_count - last;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_int(call, first, "cycle_length", &cycle, error));
    MR_TRY(mr_data_int(call, first + 1, "block_length", &block, error));
    if (cycle == -1) cycle = 0; /* tuned */
    if (cycle < 0 || (cycle == 0 && !parallel))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "cycle_length must be greater than zero.");
    cycle = cycle < CYCLE_MAX ? cycle : CYCLE_MAX;
    if (block <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "block_length must be greater than zero.");
    MR_TRY(mr_data_spec(call, &spec, error));
    MR_TRY(mr_data_function_new(call, "f", 1, captured(call, last), &f, error));
    return mr_data_output(call,
                          mr_dataset_interleave(mr_dataset_ref(input), mr_data_function_dataset, f, &spec,
                                                .cycle_length = cycle, .block_length = block,
                                                .release = mr_data_function_free),
                          error);
}

static mr_status interleave_one(mr_kernel_call *call, mr_error *error)
{
    return interleave(call, 2, false, error);
}

/* The order is the same as without threads; TensorFlow's may be sloppy. */
static mr_status interleave_parallel(mr_kernel_call *call, mr_error *error)
{
    static const struct {
        const char *op;
        int32_t last;
    } forms[] = {
        {"ParallelInterleaveDataset", 5},   {"ExperimentalParallelInterleaveDataset", 5},
        {"ParallelInterleaveDatasetV2", 3}, {"ParallelInterleaveDatasetV3", 3},
        {"ParallelInterleaveDatasetV4", 5}, {"LegacyParallelInterleaveDatasetV2", 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(forms[i].op, call->node->op) == 0) return interleave(call, forms[i].last, true, error);
    return mr_kernel_fail(call->node, error, MR_INTERNAL, "unknown form of interleave");
}

/* ---- scan ---- */

/* Captured state of a scan: the function returns the next state, then the output. */
typedef struct scanning {
    mr_data_function *function;
    int32_t state_count, output_count;
} scanning;

static void scanning_free(void *context)
{
    scanning *s = context;
    mr_data_function_free(s->function);
    free(s);
}

static mr_status scan_next(void *context, const mr_element *state, const mr_element *input, mr_element *next_state,
                           mr_element *output, mr_error *error)
{
    const scanning *s = context;
    mr_tensor results[2 * MR_COMPONENTS_MAX] = {0};
    MR_TRY(mr_data_function_call(s->function, state, input, results, s->state_count + s->output_count, error));
    for (int32_t i = 0; i < s->state_count; i++) next_state->tensors[i] = results[i];
    for (int32_t i = 0; i < s->output_count; i++) output->tensors[i] = results[s->state_count + i];
    next_state->count = s->state_count;
    output->count = s->output_count;
    return MR_OK;
}

static mr_status scan(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_element_spec spec;
    const mr_attr *types = mr_attrs_find(call->node->attrs, "Tstate");
    int32_t count = types ? types->count : 0;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_spec(call, &spec, error));
    if (count > MR_COMPONENTS_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "a state of more than %d tensors",
                              MR_COMPONENTS_MAX);
    scanning *s = calloc(1, sizeof *s);
    if (!s) return mr_fail_memory(error, sizeof *s);
    *s = (scanning){.state_count = count, .output_count = spec.count};
    mr_status status = mr_data_function_new(call, "f", 1 + count, captured(call, 0) - count, &s->function, error);
    if (status != MR_OK) {
        free(s);
        return status;
    }
    mr_element initial = {.count = count, .tensors = call->inputs + 1};
    return mr_data_output(
        call, mr_dataset_scan(mr_dataset_ref(input), &initial, scan_next, s, &spec, .release = scanning_free), error);
}

static const mr_kernel kernels[] = {
    {.op = "MapDataset", .run = map_one},
    {.op = "ParallelMapDataset", .run = map_parallel},
    {.op = "ParallelMapDatasetV2", .run = map_parallel},
    {.op = "MapAndBatchDataset", .run = map_and_batch},
    {.op = "FilterDataset", .run = filter},
    {.op = "ParallelFilterDataset", .run = filter_parallel},
    {.op = "FilterByLastComponentDataset", .run = filter_by_last},
    {.op = "TakeWhileDataset", .run = take_while},
    {.op = "FlatMapDataset", .run = flat_map},
    {.op = "InterleaveDataset", .run = interleave_one},
    {.op = "ParallelInterleaveDataset", .run = interleave_parallel},
    {.op = "ParallelInterleaveDatasetV2", .run = interleave_parallel},
    {.op = "ParallelInterleaveDatasetV3", .run = interleave_parallel},
    {.op = "ParallelInterleaveDatasetV4", .run = interleave_parallel},
    {.op = "LegacyParallelInterleaveDatasetV2", .run = interleave_parallel},
    {.op = "ScanDataset", .run = scan},
    {.op = "MapAndBatchDatasetV2", .run = map_and_batch},
};
const mr_kernel_table mr_data_kernels_functions = {kernels, sizeof kernels / sizeof kernels[0]};
