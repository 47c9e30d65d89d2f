/* Collections: named lists. A list of variables keeps the contents of each variable's VariableDef. */
#include "graph/ir/graph.h"

#include <string.h>

mr_collection *mr_graph_find_collection(const mr_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->collection_count && name != nullptr; i++)
        if (strcmp(graph->collections[i].name, name) == 0) return &graph->collections[i];
    return nullptr;
}

mr_collection *mr_graph_make_collection(mr_graph *graph, const char *name, mr_collection_kind kind)
{
    mr_collection *found = mr_graph_find_collection(graph, name);
    if (found != nullptr) return found->kind == kind ? found : nullptr;
    mr_collection *collections = mr_graph_grow(graph, graph->collections, graph->collection_count, sizeof *collections);
    const char *copy = mr_arena_strdup(&graph->arena, name);
    if (collections == nullptr || copy == nullptr) return nullptr;
    graph->collections = collections;
    collections[graph->collection_count] = (mr_collection){.name = copy, .kind = kind};
    return &collections[graph->collection_count++];
}

static bool is_variable_list(const char *name)
{
    return strcmp(name, MR_GLOBAL_VARIABLES) == 0 || strcmp(name, MR_TRAINABLE_VARIABLES) == 0 ||
           strcmp(name, MR_LOCAL_VARIABLES) == 0;
}

void mr_graph_add_to_collection(mr_graph *graph, const char *name, mr_output item)
{
    if (graph == nullptr || graph->status != MR_OK) return;
    if (name == nullptr) {
        mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_graph_add_to_collection: collection is null");
        return;
    }
    if (item.node == nullptr || item.node->id < 0) {
        mr_graph_fail(graph, MR_INVALID_ARGUMENT, "collection %s: an item is not an output", name);
        return;
    }
    mr_collection *collection =
        is_variable_list(name) ? nullptr : mr_graph_make_collection(graph, name, MR_COLLECTION_OUTPUTS);
    mr_output *outputs =
        collection == nullptr ? nullptr : mr_graph_grow(graph, collection->outputs, collection->count, sizeof *outputs);
    if (outputs == nullptr) {
        mr_graph_fail(graph, MR_INVALID_ARGUMENT, "collection %s does not take outputs", name);
        return;
    }
    collection->outputs = outputs;
    outputs[collection->count++] = item;
}

int32_t mr_graph_collection_count(const mr_graph *graph, const char *name)
{
    const mr_collection *collection = mr_graph_find_collection(graph, name);
    return collection == nullptr ? 0 : collection->count;
}

mr_output mr_graph_collection_item(const mr_graph *graph, const char *name, int32_t index)
{
    const mr_collection *collection = mr_graph_find_collection(graph, name);
    if (collection == nullptr || index < 0 || index >= collection->count) return (mr_output){0};
    if (collection->kind == MR_COLLECTION_VARIABLES) return collection->variables[index].ref;
    mr_output item = collection->kind == MR_COLLECTION_OUTPUTS ? collection->outputs[index] : (mr_output){0};
    if (item.index < 0) item.index = 0;
    return item;
}

/* ---- Variables ---- */

mr_status mr_graph_add_variable(mr_graph *graph, const char *name, mr_variable variable, bool trainable, mr_string rest,
                                mr_error *error)
{
    mr_collection *collection = mr_graph_make_collection(graph, name, MR_COLLECTION_VARIABLES);
    if (collection == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "collection %s does not hold variables", name);
    mr_variable *variables = mr_graph_grow(graph, collection->variables, collection->count, sizeof *variables);
    bool *flags = mr_graph_grow(graph, collection->trainable, collection->count, sizeof *flags);
    mr_string *rests = mr_graph_grow(graph, collection->rest, collection->count, sizeof *rests);
    if (variables == nullptr || flags == nullptr || rests == nullptr) return mr_fail_memory(error, sizeof *variables);
    collection->rest = rests;
    rests[collection->count] = rest;
    collection->variables = variables;
    collection->trainable = flags;
    variables[collection->count] = variable;
    flags[collection->count++] = trainable;
    return MR_OK;
}

int32_t mr_graph_variable_count(const mr_graph *graph, const char *name)
{
    const mr_collection *collection = mr_graph_find_collection(graph, name);
    return collection == nullptr || collection->kind != MR_COLLECTION_VARIABLES ? 0 : collection->count;
}

mr_variable mr_graph_variable(const mr_graph *graph, const char *name, int32_t index)
{
    bool exists = index >= 0 && index < mr_graph_variable_count(graph, name);
    return exists ? mr_graph_find_collection(graph, name)->variables[index] : (mr_variable){0};
}
