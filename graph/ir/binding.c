/* Bindings: objects that C code attached to nodes, in a list, because there are few. */
#include "graph/ir/graph.h"

mr_status mr_graph_bind(mr_graph *graph, const mr_node *node, void *object, void (*release)(void *object),
                        mr_error *error)
{
    mr_binding *made = MR_ARENA_NEW(&graph->arena, mr_binding, 1);
    if (!made) return mr_fail_memory(error, sizeof *made);
    *made = (mr_binding){.node = node, .object = object, .release = release, .next = graph->bindings};
    graph->bindings = made;
    return MR_OK;
}

void *mr_graph_bound(const mr_node *node, void (*release)(void *object))
{
    for (const mr_binding *at = node->graph->bindings; at; at = at->next)
        if (at->node == node && at->release == release) return at->object;
    return nullptr;
}

void mr_graph_release_bindings(mr_graph *graph)
{
    for (mr_binding *at = graph->bindings; at; at = at->next) at->release(at->object);
    graph->bindings = nullptr;
}
