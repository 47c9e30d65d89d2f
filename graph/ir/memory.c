/* What every part of a graph uses: its memory, its first error and the current scope. */
#include "graph/ir/graph.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

void *mr_graph_grow(mr_graph *graph, void *items, int32_t count, size_t element_size_bytes)
{
    bool is_full = count == 0 || (count >= 4 && (count & (count - 1)) == 0);
    if (!is_full) return items;
    if (count > INT32_MAX / 2) return nullptr;
    size_t capacity = count == 0 ? 4 : 2 * (size_t)count;
    void *larger = mr_arena_alloc_array(&graph->arena, capacity, element_size_bytes);
    if (larger != nullptr && count > 0) memcpy(larger, items, (size_t)count * element_size_bytes);
    return larger;
}

mr_status mr_graph_keep_tensor(mr_graph *graph, const mr_tensor *tensor, mr_tensor *held, mr_error *error)
{
    mr_held_tensor *holder = MR_ARENA_NEW(&graph->arena, mr_held_tensor, 1);
    if (holder == nullptr) return mr_fail_memory(error, sizeof *holder);
    holder->tensor = mr_tensor_ref(tensor);
    holder->next = graph->held;
    graph->held = holder;
    *held = holder->tensor;
    return MR_OK;
}

/* ---- Errors ---- */

const char *mr_graph_scope(const mr_graph *graph)
{
    if (graph == nullptr) return "";
    return graph->scopes.count == 0 ? "" : graph->scopes.items[graph->scopes.count - 1];
}

mr_status mr_graph_status(const mr_graph *graph, mr_error *error)
{
    if (graph == nullptr)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED,
                       "the graph is null: mr_graph_new had no memory, or was not called");
    if (graph->status == MR_OK) return MR_OK;
    return mr_fail(error, graph->status, "%s", graph->error_message != nullptr ? graph->error_message : "no memory");
}

mr_output mr_graph_failed_output(const mr_graph *graph)
{
    return (mr_output){.node = graph == nullptr ? nullptr : graph->failed};
}

mr_output mr_graph_record(mr_graph *graph, mr_status status, const mr_error *error)
{
    assert(status != MR_OK);
    if (graph->status == MR_OK) {
        graph->status = status;
        graph->error_message = mr_arena_strdup(&graph->arena, error->message);
    }
    return mr_graph_failed_output(graph);
}

mr_output mr_graph_fail(mr_graph *graph, mr_status status, const char *format, ...)
{
    mr_error error = {0};
    va_list args;
    va_start(args, format);
    mr_status failed = mr_fail_va(&error, status, format, args);
    va_end(args);
    if (graph == nullptr) return (mr_output){0};
    const char *scope = mr_graph_scope(graph);
    if (*scope != '\0') failed = mr_fail_prefix(&error, failed, "%s", scope);
    return mr_graph_record(graph, failed, &error);
}
