/* Merged summaries: of a list, or of those of a collection whose names match a pattern. */
#include "base/options.h"
#include "graph/train/name_filter.h"
#include "graph/train/summary.h"
#include <millrace/ops.h>

static mr_output merge(mr_graph *graph, mr_outputs summaries, const mr_summary_merge_options *options)
{
    const char *name = options->name != nullptr ? mr_summary_clean(graph, options->name) : nullptr;
    mr_graph_push_scope(graph, name != nullptr ? name : "Merge");
    mr_output merged = mr_merge_summary(graph, summaries, .name = name); /* as in TensorFlow, "name/name" */
    mr_graph_pop_scope(graph);
    for (int32_t i = 0; i < options->collections.count; i++)
        mr_graph_add_to_collection(graph, options->collections.items[i], merged);
    return merged;
}

static bool read_options(mr_graph *graph, const mr_summary_merge_options *given, mr_summary_merge_options *options)
{
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_summary_merge_options, options, given, &error);
    const char *name = options->name != nullptr ? options->name : "Merge";
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s: %s", name, error.message);
    for (int32_t i = 0; i < options->collections.count; i++)
        if (options->collections.items[i] == nullptr || *options->collections.items[i] == '\0')
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: a name in collections is empty", name);
    if (options->name != nullptr && *mr_summary_clean(graph, options->name) == '\0')
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the name of a merge of summaries is empty");
    return mr_graph_status(graph, nullptr) == MR_OK;
}

mr_output mr_summary_merge_(mr_graph *graph, mr_outputs summaries, const mr_summary_merge_options *given)
{
    mr_summary_merge_options options;
    if (!read_options(graph, given, &options)) return mr_graph_failed_output(graph);
    const char *name = options.name != nullptr ? options.name : "Merge";
    const char *useless = options.key != nullptr ? "key" : options.scope != nullptr ? "scope" : nullptr;
    if (useless != nullptr)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s has no effect for a list of summaries", name, useless);
    if (summaries.count < 1 || summaries.items == nullptr)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: the list of summaries is empty", name);
    return merge(graph, summaries, &options);
}

mr_output mr_summary_merge_all_(mr_graph *graph, const mr_summary_merge_options *given)
{
    mr_summary_merge_options options;
    if (!read_options(graph, given, &options)) return mr_graph_failed_output(graph);
    const char *name = options.name != nullptr ? options.name : "Merge";
    if (options.collections.count != 0)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: collections have no effect for a merge of all", name);
    const char *key = options.key != nullptr ? options.key : MR_SUMMARIES;
    int32_t count = mr_graph_collection_count(graph, key);
    if (count == 0) return (mr_output){0};
    mr_output *items = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)count);
    if (items == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for %d summaries", count);
    for (int32_t i = 0; i < count; i++) items[i] = mr_graph_collection_item(graph, key, i);
    count = mr_train_filter_names(graph, items, count, options.scope);
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    return count > 0 ? merge(graph, MR_OUTPUTS_OF(items, count), &options) : (mr_output){0};
}
