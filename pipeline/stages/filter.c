/* filter: work that drops elements. The predicate runs concurrently on the engine's threads. And ignore_errors, which
 * the engine implements. */
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct filter_settings {
    mr_predicate predicate;
    void *context;
    mr_function_options options;
} filter_settings;

static mr_status filter_work(const mr_work *work, uint64_t epoch, uint64_t number, mr_workspace *workspace,
                             mr_error *error)
{
    (void)epoch;
    (void)number;
    const filter_settings *s = work->dataset->settings;
    bool stays = false;
    assert(workspace->count > 0 && !workspace->is_dropped);
    mr_element element = mr_workspace_view(workspace);
    mr_status status = s->predicate(s->context, &element, &stays, error);
    if (status == MR_OUT_OF_RANGE) return mr_fail_out_of_range(error);
    workspace->is_dropped = status == MR_OK && !stays;
    return status;
}

static void filter_deinit(mr_dataset *dataset)
{
    const filter_settings *s = dataset->settings;
    if (s->options.release != nullptr) s->options.release(s->context);
}

static const mr_dataset_kind filter_kind = {
    .name = "filter", .role = MR_ROLE_WORK, .work = filter_work, .drops = true, .deinit = filter_deinit};

mr_dataset *mr_dataset_filter_(mr_dataset *input, mr_predicate predicate, void *context,
                               const mr_function_options *given)
{
    mr_function_options options;
    input = MR_DATASET_READ(mr_function_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&filter_kind, input, sizeof(filter_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        if (options.release != nullptr) options.release(context);
        return dataset;
    }
    *(filter_settings *)dataset->settings = (filter_settings){predicate, context, options};
    if (mr_dataset_failed(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, predicate != nullptr, "predicate"))) return dataset;
    if (mr_dataset_failed(mr_dataset_check_threads(dataset, options.num_parallel_calls))) return dataset;
    dataset->count = MR_CARDINALITY_UNKNOWN;
    dataset->is_heavy = true;
    return dataset;
}

int32_t mr_filter_threads(const mr_dataset *dataset)
{
    return dataset->kind == &filter_kind ? ((const filter_settings *)dataset->settings)->options.num_parallel_calls : 0;
}

/* ---- ignore_errors ---- */

static uint64_t ignore_digest(const mr_dataset *dataset)
{
    const mr_ignore_settings *s = dataset->settings;
    return mr_digest((uint64_t)s->budget, s->ignores != nullptr);
}

static const mr_dataset_kind ignore_kind = {.name = "ignore_errors", .role = MR_ROLE_IGNORE, .digest = ignore_digest};

mr_dataset *mr_dataset_ignore_errors_(mr_dataset *input, const mr_ignore_errors_options *given)
{
    mr_ignore_errors_options options;
    input = MR_DATASET_READ(mr_ignore_errors_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&ignore_kind, input, sizeof(mr_ignore_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    if (options.errors_max < 0)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "ignore_errors: errors_max is %lld, expected at least 0",
                               (long long)options.errors_max);
    (void)mr_dataset_refuse(dataset, options.ignores == nullptr && options.context != nullptr, "context",
                            "ignores is null");
    mr_ignore_settings *settings = dataset->settings;
    *settings = (mr_ignore_settings){.budget = options.errors_max == 0 ? -1 : options.errors_max,
                                     .ignores = options.ignores,
                                     .context = options.context};
    dataset->count = MR_CARDINALITY_UNKNOWN;
    return dataset;
}
