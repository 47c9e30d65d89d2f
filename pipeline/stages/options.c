/* options: settings of a dataset for its iterators. It has no stage; a dataset inherits the options of its inputs
 * (dataset.c). */
#include "pipeline/pipeline.h"

static const mr_dataset_kind options_kind = {.name = "options", .role = MR_ROLE_OPTIONS};

mr_dataset *mr_dataset_with_options_(mr_dataset *input, const mr_dataset_options *given)
{
    mr_dataset_options options;
    input = MR_DATASET_READ(mr_dataset_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&options_kind, input, 0);
    if (mr_dataset_failed(dataset)) return dataset;
    if (options.threads < 0 || options.threads > MR_THREADS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "options: threads is %d, expected 0 to %d",
                               options.threads, MR_THREADS_MAX);
    mr_dataset_options_merge(&dataset->options, &options);
    dataset->version = options.version;
    return dataset;
}

const mr_dataset_options *mr_dataset_options_of(const mr_dataset *dataset)
{
    static const mr_dataset_options none = {.size = sizeof none};
    return dataset == nullptr ? &none : &dataset->options;
}
