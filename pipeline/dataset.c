/* Datasets: descriptions of pipelines. A tree of reference-counted nodes; each has its settings in its own arena. A
 * node is immutable once its builder has returned it, so any number of iterators may read it concurrently. */
#include "base/options.h"
#include "pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Shared by all builders that run out of memory, so that a null dataset is always a mistake of the caller. */
static const mr_dataset_kind unallocated_kind = {.name = "unallocated", .role = MR_ROLE_SOURCE};
static mr_error no_memory = {.status = MR_RESOURCE_EXHAUSTED, .message = "a dataset: no memory"};
static mr_dataset unallocated = {.kind = &unallocated_kind,
                                 .references = 1,
                                 .count = MR_CARDINALITY_UNKNOWN,
                                 .failure = &no_memory,
                                 .options = {.size = sizeof(mr_dataset_options)}};

bool mr_dataset_is_unallocated(const mr_dataset *dataset)
{
    return dataset == &unallocated;
}

void mr_dataset_options_merge(mr_dataset_options *options, const mr_dataset_options *later)
{
    if (later->threads > 0) options->threads = later->threads;
    if (later->budget_bytes > 0) options->budget_bytes = later->budget_bytes;
}

const mr_dataset *mr_dataset_without_options(const mr_dataset *dataset)
{
    while (dataset->kind->role == MR_ROLE_OPTIONS) dataset = dataset->input;
    return dataset;
}

const mr_dataset *mr_dataset_final(const mr_dataset *dataset)
{
    for (; dataset != nullptr; dataset = dataset->input) {
        if (dataset->kind->is_final) return dataset;
        if (dataset->kind->role != MR_ROLE_OPTIONS) return nullptr;
    }
    return nullptr;
}

static mr_dataset *check_size(mr_dataset *dataset)
{
    if (dataset->depth >= MR_STAGES_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: more than %d datasets in a chain",
                               dataset->kind->name, MR_STAGES_MAX);
    if (dataset->total > MR_DATASETS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: more than %d datasets in a pipeline",
                               dataset->kind->name, MR_DATASETS_MAX);
    return dataset;
}

/* Elements on a device are for the consumer, not for stages on the host. */
static void check_final(mr_dataset *dataset, const mr_dataset *input)
{
    const mr_dataset *final = mr_dataset_final(input);
    if (final == nullptr || (dataset->kind->role == MR_ROLE_OPTIONS && !dataset->kind->is_final)) return;
    (void)mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: cannot follow %s, which must be the last dataset",
                          dataset->kind->name, final->kind->name);
}

mr_dataset *mr_dataset_new(const mr_dataset_kind *kind, mr_dataset *input, size_t settings_size_bytes)
{
    mr_dataset *dataset = calloc(1, sizeof *dataset);
    bool is_complete = dataset != nullptr;
    if (is_complete && settings_size_bytes > 0) {
        dataset->settings = mr_arena_alloc(&dataset->arena, settings_size_bytes);
        is_complete = dataset->settings != nullptr;
    }
    if (is_complete && kind->digest_content != nullptr) {
        dataset->content = MR_ARENA_NEW(&dataset->arena, _Atomic uint64_t, 1);
        is_complete = dataset->content != nullptr;
    }
    if (dataset != nullptr && !is_complete) {
        mr_arena_deinit(&dataset->arena);
        free(dataset);
        dataset = nullptr;
    }
    if (dataset == nullptr) {
        mr_dataset_free(input);
        return mr_dataset_ref(&unallocated);
    }
    dataset->kind = kind;
    dataset->options.size = sizeof dataset->options;
    atomic_init(&dataset->references, 1);
    dataset->input = input;
    dataset->total = 1 + (input != nullptr ? input->total : 0);
    if (input == nullptr && kind->role == MR_ROLE_SOURCE) return dataset;
    if (input == nullptr)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: the input dataset is null", kind->name);
    dataset->spec = input->spec;
    dataset->count = input->count;
    dataset->depth = input->depth + 1;
    dataset->is_heavy = input->is_heavy;
    dataset->share = input->share;
    dataset->options = input->options;
    if (input->failure != nullptr) return mr_dataset_fail_with(dataset, input->failure);
    check_final(dataset, input);
    return check_size(dataset);
}

mr_dataset *mr_dataset_new_of(const mr_dataset_kind *kind, mr_dataset *const *inputs, int32_t count,
                              size_t settings_size_bytes)
{
    assert(count >= 1);
    mr_dataset *dataset = mr_dataset_new(kind, inputs[0], settings_size_bytes);
    mr_dataset **more = nullptr;
    if (!mr_dataset_is_unallocated(dataset) && count > 1) {
        more = MR_ARENA_NEW(&dataset->arena, mr_dataset *, (size_t)count - 1);
        dataset->more = more;
    }
    if (mr_dataset_is_unallocated(dataset) || (count > 1 && more == nullptr)) {
        for (int32_t i = 1; i < count; i++) mr_dataset_free(inputs[i]);
        return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "%s: no memory", kind->name);
    }
    for (int32_t i = 1; i < count; i++) {
        mr_dataset *input = inputs[i];
        if (input == nullptr) {
            (void)mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: input dataset %d is null", kind->name, i);
            continue;
        }
        more[dataset->more_count++] = input;
        dataset->is_heavy |= input->is_heavy;
        if (input->share != 0) dataset->share = mr_digest(dataset->share, input->share);
        mr_dataset_options_merge(&dataset->options, &input->options);
        if (input->failure != nullptr) (void)mr_dataset_fail_with(dataset, input->failure);
        check_final(dataset, input);
        if (input->depth + 1 > dataset->depth) dataset->depth = input->depth + 1;
        if (dataset->total <= MR_DATASETS_MAX) dataset->total += input->total;
    }
    return check_size(dataset);
}

mr_dataset *mr_dataset_fail_with(mr_dataset *dataset, const mr_error *error)
{
    assert(error->status != MR_OK);
    if (dataset->failure != nullptr) return dataset;
    /* Without memory for the message only the status is kept; the error is then a static one. */
    dataset->failure = mr_arena_copy(&dataset->arena, error, sizeof *error);
    if (dataset->failure == nullptr) dataset->failure = &no_memory;
    return dataset;
}

static mr_dataset *fail_va(mr_dataset *dataset, mr_status status, const char *format, va_list args)
{
    mr_error error = {0};
    (void)mr_fail_va(&error, status, format, args);
    return mr_dataset_fail_with(dataset, &error);
}

mr_dataset *mr_dataset_fail(mr_dataset *dataset, mr_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mr_dataset *failed = fail_va(dataset, status, format, args);
    va_end(args);
    return failed;
}

mr_dataset *mr_dataset_require(mr_dataset *dataset, bool is_present, const char *argument)
{
    if (is_present) return dataset;
    return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: %s is null", dataset->kind->name, argument);
}

mr_dataset *mr_dataset_refuse(mr_dataset *dataset, bool is_set, const char *option, const char *reason)
{
    if (!is_set) return dataset;
    return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: %s has no effect: %s", dataset->kind->name, option,
                           reason);
}

mr_dataset *mr_dataset_check_threads(mr_dataset *dataset, int32_t threads)
{
    if (threads >= 0 && threads <= MR_THREADS_MAX) return dataset;
    return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: num_parallel_calls is %d, expected 0 to %d",
                           dataset->kind->name, threads, MR_THREADS_MAX);
}

mr_dataset *mr_dataset_new_failed(const char *format, ...)
{
    static const mr_dataset_kind kind = {.name = "failed", .role = MR_ROLE_SOURCE};
    va_list args;
    va_start(args, format);
    mr_dataset *failed = fail_va(mr_dataset_new(&kind, nullptr, 0), MR_INVALID_ARGUMENT, format, args);
    va_end(args);
    return failed;
}

mr_dataset *mr_dataset_read_options(mr_dataset *input, void *options, size_t size, const void *given, const char *type)
{
    mr_error error = {0};
    if (mr_options_read(options, size, given, type, &error) == MR_OK || mr_dataset_failed(input)) return input;
    mr_dataset_free(input);
    return mr_dataset_new_failed("%s", error.message);
}

mr_dataset *mr_dataset_ref(mr_dataset *dataset)
{
    assert(dataset == nullptr || atomic_load_explicit(&dataset->references, memory_order_relaxed) > 0);
    if (dataset != nullptr) atomic_fetch_add_explicit(&dataset->references, 1, memory_order_relaxed);
    return dataset;
}

void mr_dataset_free(mr_dataset *dataset)
{
    while (dataset != nullptr && atomic_fetch_sub_explicit(&dataset->references, 1, memory_order_acq_rel) == 1) {
        mr_dataset *input = dataset->input;
        assert(atomic_load_explicit(&dataset->references, memory_order_relaxed) == 0);
        if (dataset->kind->deinit != nullptr) dataset->kind->deinit(dataset);
        for (int32_t i = 0; i < dataset->more_count; i++) mr_dataset_free(dataset->more[i]);
        mr_arena_deinit(&dataset->arena);
        free(dataset);
        dataset = input;
    }
}

mr_status mr_dataset_status(const mr_dataset *dataset, mr_error *error)
{
    if (dataset == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "the dataset is null");
    if (dataset->failure == nullptr) return MR_OK;
    return mr_fail(error, dataset->failure->status, "%s", dataset->failure->message);
}

const mr_element_spec *mr_dataset_spec(const mr_dataset *dataset)
{
    static const mr_element_spec none = {0};
    return dataset == nullptr ? &none : &dataset->spec;
}

int64_t mr_dataset_cardinality(const mr_dataset *dataset)
{
    return mr_dataset_failed(dataset) ? MR_CARDINALITY_UNKNOWN : dataset->count;
}

/* Whether the rank is known and valid and each size is at least -1, or the rank is unknown. */
static bool is_shape(mr_shape shape)
{
    if (shape.rank < -1 || shape.rank > MR_RANK_MAX) return false;
    for (int32_t d = 0; d < shape.rank; d++)
        if (shape.dims[d] < -1) return false;
    return true;
}

mr_dataset *mr_dataset_take_spec(mr_dataset *dataset, const mr_element_spec *spec)
{
    const char *kind = dataset->kind->name;
    if (mr_dataset_failed(mr_dataset_require(dataset, spec != nullptr, "spec"))) return dataset;
    assert(spec != nullptr);
    if (spec->count < 1 || spec->count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: the spec has %d components, expected 1 to %d", kind,
                               spec->count, MR_COMPONENTS_MAX);
    dataset->spec = *spec;
    for (int32_t i = 0; i < spec->count; i++) {
        if (mr_dtype_size(spec->dtypes[i]) == 0 && spec->dtypes[i] != MR_VARIANT)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "%s: component %d of the spec has dtype %s", kind, i,
                                   mr_dtype_name(spec->dtypes[i]));
        if (!is_shape(spec->shapes[i]))
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                                   "%s: component %d of the spec has %d dimensions or a size below -1", kind, i,
                                   spec->shapes[i].rank);
        if (spec->names[i] == nullptr) continue;
        dataset->spec.names[i] = mr_arena_strdup(&dataset->arena, spec->names[i]);
        if (dataset->spec.names[i] == nullptr)
            return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "%s: no memory", kind);
    }
    return dataset;
}
