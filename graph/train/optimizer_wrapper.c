/* See optimizer_wrapper.h. */
#include "graph/train/optimizer_wrapper.h"
#include "base/options.h"
#include "graph/ir/flow.h"

#include <assert.h>
#include <string.h>

/* The names of the list, which the caller need not keep. */
static bool copy_names(mr_graph *graph, mr_names *list)
{
    if (list->count <= 0 || list->items == nullptr) return true; /* checked when the optimizer is applied */
    const char **items = MR_ARENA_NEW(&graph->arena, const char *, (size_t)list->count);
    if (items == nullptr) return false;
    for (int32_t i = 0; i < list->count; i++) {
        items[i] = list->items[i] != nullptr ? mr_arena_strdup(&graph->arena, list->items[i]) : nullptr;
        if (items[i] == nullptr && list->items[i] != nullptr) return false;
    }
    list->items = items;
    return true;
}

static bool copy_text(mr_graph *graph, const char **text)
{
    if (*text == nullptr) return true;
    *text = mr_arena_strdup(&graph->arena, *text);
    return *text != nullptr;
}

void *mr_optimizer_wrapper_new(mr_graph *graph, size_t size, const mr_optimizer_wrapper_kind *kind,
                               const mr_optimizer *inner)
{
    assert(size >= sizeof(mr_optimizer_wrapper));
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return nullptr;
    mr_error error = {0};
    mr_optimizer copy;
    mr_status status = inner != nullptr ? MR_OPTIONS_READ(mr_optimizer, &copy, inner, &error)
                                        : mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer is null");
    if (status == MR_OK && copy.wrapper != nullptr && copy.wrapper->graph != graph)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer belongs to another graph");
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s: %s", kind->name, error.message);
        return nullptr;
    }
    mr_optimizer_wrapper *wrapper = mr_arena_alloc(&graph->arena, size);
    if (wrapper == nullptr || !copy_names(graph, &copy.skip_list) || !copy_text(graph, &copy.name) ||
        !copy_text(graph, &copy.accum_name) || !copy_text(graph, &copy.linear_name)) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer");
        return nullptr;
    }
    memset(wrapper, 0, size);
    wrapper->kind = kind;
    wrapper->graph = graph;
    wrapper->inner = copy;
    wrapper->optimizer = *MR_OPTIMIZER_(MR_WRAPPED_OPTIMIZER, .wrapper = wrapper);
    return wrapper;
}

void *mr_optimizer_wrapper_of(mr_graph *graph, const mr_optimizer *optimizer, const mr_optimizer_wrapper_kind *kind,
                              const char *function)
{
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return nullptr;
    mr_error error = {0};
    mr_optimizer copy;
    mr_status status = optimizer != nullptr ? MR_OPTIONS_READ(mr_optimizer, &copy, optimizer, &error)
                                            : mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer is null");
    if (status == MR_OK && (copy.wrapper == nullptr || copy.wrapper->kind != kind))
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer is none of %s", kind->name);
    if (status == MR_OK && copy.wrapper->graph != graph)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer belongs to another graph");
    if (status == MR_OK) return copy.wrapper;
    (void)mr_graph_fail(graph, status, "%s: %s", function, error.message);
    return nullptr;
}

mr_flow_context *mr_optimizer_lift(mr_graph *graph)
{
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    return mr_flow_enter(graph, nullptr);
}

void mr_optimizer_lift_end(mr_graph *graph, mr_flow_context *before)
{
    (void)mr_flow_enter(graph, before);
    mr_graph_pop_control_dependencies(graph);
}
