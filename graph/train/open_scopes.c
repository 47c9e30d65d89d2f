/* See open_scopes.h. */
#include "graph/train/open_scopes.h"
#include "graph/ir/flow.h"
#include "graph/train/variable_store.h"

#include <assert.h>

static mr_open_scopes open_scopes(const mr_graph *graph)
{
    return (mr_open_scopes){.names = graph->scopes.count,
                            .variables = graph->variable_store != nullptr ? graph->variable_store->frame_count : 0,
                            .devices = graph->device_count,
                            .colocations = graph->colocation_count,
                            .controls = graph->control_frame_count,
                            .overrides = graph->override_count};
}

mr_callback mr_callback_begin(mr_graph *graph)
{
    const mr_callback callback = {.before = open_scopes(graph), .floor = graph->floor, .flow = graph->flow};
    graph->floor = callback.before;
    return callback;
}

/* What is open; null: nothing. The causes come first: a loop is a name scope too, so is a variable scope, and a
 * colocation scope is a device scope. */
static const char *find_open(const mr_graph *graph, const mr_callback *callback)
{
    const mr_open_scopes *before = &callback->before, after = open_scopes(graph);
    if (graph->flow != callback->flow && after.controls == before->controls) return "a conditional or a loop";
    if (after.variables > before->variables) return "a variable scope";
    if (after.colocations > before->colocations) return "a colocation scope";
    if (after.controls > before->controls) return "a scope of control dependencies";
    if (after.overrides > before->overrides) return "a gradient override";
    if (after.devices > before->devices) return "a device scope";
    return after.names > before->names ? "a name scope" : nullptr;
}

bool mr_callback_end(mr_graph *graph, const mr_callback *callback, const char *owner, const char *function)
{
    const mr_open_scopes *before = &callback->before;
    const char *open = find_open(graph, callback);
    assert(graph->scopes.count >= before->names && graph->device_count >= before->devices);
    assert(graph->control_frame_count >= before->controls && graph->override_count >= before->overrides);
    graph->scopes.count = before->names;
    if (graph->variable_store != nullptr) graph->variable_store->frame_count = before->variables;
    graph->device_count = before->devices;
    graph->colocation_count = before->colocations;
    graph->control_frame_count = before->controls;
    graph->override_count = before->overrides;
    graph->flow = callback->flow;
    graph->floor = callback->floor;
    if (open != nullptr && mr_graph_status(graph, nullptr) == MR_OK)
        (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION, "%s: %s has left %s open", owner, function, open);
    return mr_graph_status(graph, nullptr) == MR_OK;
}
