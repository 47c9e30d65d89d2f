/* Collections: named lists. A list of variables keeps the contents of each variable's VariableDef. */
#include "graph/ir/graph.h"

#include <assert.h>
#include <string.h>

mr_collection *mr_graph_find_collection(const mr_graph *graph, const char *name)
{
    if (graph == nullptr) return nullptr;
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

bool mr_collection_holds_variables(const char *name)
{
    static const char *const names[] = {MR_GLOBAL_VARIABLES, MR_TRAINABLE_VARIABLES,      MR_LOCAL_VARIABLES,
                                        MR_MODEL_VARIABLES,  MR_MOVING_AVERAGE_VARIABLES, MR_METRIC_VARIABLES};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

void mr_graph_add_to_collection(mr_graph *graph, const char *name, mr_output item)
{
    if (graph == nullptr || graph->status != MR_OK) return;
    if (name == nullptr) {
        mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_graph_add_to_collection: collection is null");
        return;
    }
    if (graph->is_finalized) {
        mr_graph_fail(graph, MR_FAILED_PRECONDITION, "collection %s: the graph is finalized", name);
        return;
    }
    if (item.node == nullptr || item.node->id < 0) {
        mr_graph_fail(graph, MR_INVALID_ARGUMENT, "collection %s: an item is not an output", name);
        return;
    }
    mr_collection *collection =
        mr_collection_holds_variables(name) ? nullptr : mr_graph_make_collection(graph, name, MR_COLLECTION_OUTPUTS);
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

int32_t mr_graph_collection_key_count(const mr_graph *graph)
{
    return graph == nullptr ? 0 : graph->collection_count;
}

const char *mr_graph_collection_key(const mr_graph *graph, int32_t index)
{
    return index < 0 || index >= mr_graph_collection_key_count(graph) ? nullptr : graph->collections[index].name;
}

void mr_graph_clear_collection(mr_graph *graph, const char *name)
{
    if (graph == nullptr || graph->status != MR_OK) return;
    if (name == nullptr || graph->is_finalized) {
        (void)mr_graph_fail(graph, name == nullptr ? MR_INVALID_ARGUMENT : MR_FAILED_PRECONDITION,
                            "mr_graph_clear_collection: %s",
                            name == nullptr ? "collection is null" : "the graph is finalized");
        return;
    }
    mr_collection *cleared = mr_graph_find_collection(graph, name);
    if (cleared == nullptr) return;
    const int32_t index = (int32_t)(cleared - graph->collections);
    assert(index >= 0 && index < graph->collection_count);
    graph->collection_count--;
    memmove(cleared, cleared + 1, (size_t)(graph->collection_count - index) * sizeof *cleared);
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

/* True if the variable was created as a trainable one. */
static bool is_trainable(const mr_graph *graph, mr_variable variable)
{
    const mr_collection *trainable = mr_graph_find_collection(graph, MR_TRAINABLE_VARIABLES);
    for (int32_t i = 0; trainable != nullptr && i < trainable->count; i++)
        if (trainable->variables[i].ref.node == variable.ref.node) return true;
    return false;
}

void mr_graph_add_variable_to_collection(mr_graph *graph, const char *name, mr_variable variable)
{
    if (graph == nullptr || graph->status != MR_OK) return;
    if (name == nullptr || !mr_collection_holds_variables(name) || variable.ref.node == nullptr) {
        mr_graph_add_to_collection(graph, name, variable.ref);
        return;
    }
    mr_error error = {0};
    if (graph->is_finalized) {
        mr_graph_fail(graph, MR_FAILED_PRECONDITION, "collection %s: the graph is finalized", name);
        return;
    }
    bool trainable = strcmp(name, MR_TRAINABLE_VARIABLES) == 0 || is_trainable(graph, variable);
    mr_status status = mr_graph_add_variable(graph, name, variable, trainable, (mr_string){0}, &error);
    if (status != MR_OK) mr_graph_record(graph, status, &error);
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
