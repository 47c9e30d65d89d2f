/* Where nodes are placed: device scopes, functions that choose devices, and colocation with other nodes. */
#include "graph/ir/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- Device scopes ---- */

static void push_frame(mr_graph *graph, mr_device_frame frame)
{
    mr_device_frame *frames = mr_graph_grow(graph, graph->devices, graph->device_count, sizeof *frames);
    if (frames == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a device scope");
        return;
    }
    graph->devices = frames;
    frames[graph->device_count++] = frame;
}

void mr_graph_push_device(mr_graph *graph, const char *device)
{
    if (graph == nullptr) return;
    if (device == nullptr) {
        push_frame(graph, (mr_device_frame){.merged = ""});
        return;
    }
    mr_error error = {0};
    const char *outer = mr_graph_scope_device(graph);
    const bool is_chosen = graph->device_count > 0 && graph->devices[graph->device_count - 1].merged == nullptr;
    const char *merged = mr_device_name_merge(&graph->arena, outer, device, &error);
    if (merged == nullptr) {
        mr_graph_record(graph, error.status, &error);
        merged = outer;
    }
    push_frame(graph, (mr_device_frame){is_chosen ? nullptr : merged, .own = merged});
}

void mr_graph_push_device_function(mr_graph *graph, mr_device_function function, void *context)
{
    if (graph == nullptr) return;
    if (function == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_graph_push_device_function: function is null");
    push_frame(graph, (mr_device_frame){.own = "", .function = function, .context = context});
}

void mr_graph_pop_device(mr_graph *graph)
{
    if (graph == nullptr) return;
    if (mr_graph_check_open(graph, graph->device_count, graph->floor.devices, "mr_graph_pop_device", "device scope"))
        graph->device_count--;
}

const char *mr_graph_scope_device(const mr_graph *graph)
{
    const char *merged = graph->device_count > 0 ? graph->devices[graph->device_count - 1].merged : nullptr;
    return merged != nullptr ? merged : "";
}

/* From the innermost scope outwards, as in TensorFlow: a name adds what the device lacks, a function replaces it. */
static mr_status choose_device(mr_node *node, mr_error *error)
{
    const mr_graph *graph = node->graph;
    if (graph->device_count == 0 || graph->devices[graph->device_count - 1].merged != nullptr) return MR_OK;
    for (int32_t i = graph->device_count; i-- > 0 && graph->devices[i].own != nullptr;) {
        const mr_device_frame *frame = &graph->devices[i];
        const char *given = frame->own;
        if (frame->function != nullptr) {
            node->graph->is_choosing_device = true;
            given = frame->function(frame->context, node);
            node->graph->is_choosing_device = false;
            if (graph->status != MR_OK) return mr_graph_status(graph, error);
        }
        if (given == nullptr) continue;
        const bool replaces = frame->function != nullptr;
        const char *merged =
            mr_device_name_merge(&node->graph->arena, replaces ? "" : given, replaces ? given : node->device, error);
        if (merged == nullptr) return error->status;
        node->device = merged;
    }
    return MR_OK;
}

/* ---- Colocation ---- */

void mr_graph_push_colocation(mr_graph *graph, const mr_node *node)
{
    if (graph == nullptr) return;
    mr_colocation_frame *frames = mr_graph_grow(graph, graph->colocations, graph->colocation_count, sizeof *frames);
    if (frames == nullptr || (node != nullptr && node->graph != graph)) {
        (void)mr_graph_fail(graph, frames == nullptr ? MR_RESOURCE_EXHAUSTED : MR_INVALID_ARGUMENT, "%s",
                            frames == nullptr ? "no memory for a colocation scope"
                                              : "mr_graph_push_colocation: the node belongs to another graph");
        return;
    }
    graph->colocations = frames;
    frames[graph->colocation_count++] = (mr_colocation_frame){node};
    push_frame(graph, (mr_device_frame){.merged = ""}); /* device scopes around it do not count */
}

void mr_graph_pop_colocation(mr_graph *graph)
{
    if (graph == nullptr) return;
    if (!mr_graph_check_open(graph, graph->colocation_count, graph->floor.colocations, "mr_graph_pop_colocation",
                             "colocation scope"))
        return;
    graph->colocation_count--;
    mr_graph_pop_device(graph);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(((const mr_attr_value *)a)->string.data, ((const mr_attr_value *)b)->string.data);
}

/* The colocation groups of the node: those in its "_class", or its own. */
static mr_status add_groups(const mr_node *reference, mr_attr *list, mr_error *error)
{
    const mr_attr *own = mr_attrs_find(&reference->attrs, "_class");
    bool has_own = own != nullptr && own->kind == MR_ATTR_STRING && own->count > 0;
    const char *name = has_own ? "" : mr_arena_printf(&reference->graph->arena, "loc:@%s", reference->name);
    if (name == nullptr) return mr_fail_memory(error, 64);
    for (int32_t i = 0; i < (has_own ? own->count : 1); i++) {
        mr_attr_value *values = mr_graph_grow(reference->graph, list->values, list->count, sizeof *values);
        if (values == nullptr) return mr_fail_memory(error, sizeof *values);
        list->values = values;
        values[list->count++].string = has_own ? own->values[i].string : mr_string_from(name);
    }
    return MR_OK;
}

/* As in TensorFlow, a node is placed beside the variables that it takes as references. */
static mr_status add_references(mr_node *node, mr_attr *list, mr_error *error)
{
    int32_t at = 0;
    for (int32_t i = 0; i < node->def->input_count; i++) {
        int32_t count = 0;
        MR_TRY(mr_argument_count(&node->def->inputs[i], &node->attrs, &count, error));
        for (int32_t j = 0; j < count; j++, at++) {
            if (!node->def->inputs[i].is_ref) continue;
            const mr_node *reference = node->inputs[at].node;
            if (list->count == 0 || *node->device == '\0') node->device = reference->device;
            MR_TRY(add_groups(reference, list, error));
        }
    }
    return MR_OK;
}

static mr_status add_scopes(mr_node *node, mr_attr *list, mr_error *error)
{
    const mr_graph *graph = node->graph;
    bool is_placed = list->count > 0 && *node->device != '\0';
    for (int32_t i = graph->colocation_count; i-- > 0 && graph->colocations[i].node != nullptr;) {
        const mr_node *beside = graph->colocations[i].node;
        if (!is_placed && *beside->device != '\0') {
            node->device = beside->device;
            is_placed = true;
        }
        MR_TRY(add_groups(beside, list, error));
    }
    return MR_OK;
}

mr_status mr_node_place(mr_node *node, mr_error *error)
{
    mr_attr list = {.name = "_class", .kind = MR_ATTR_STRING, .is_list = true};
    MR_TRY(choose_device(node, error));
    MR_TRY(add_references(node, &list, error));
    MR_TRY(add_scopes(node, &list, error));
    if (list.count == 0 || mr_attrs_find(&node->attrs, "_class") != nullptr) return MR_OK;
    qsort(list.values, (size_t)list.count, sizeof *list.values, compare_strings);
    int32_t kept = 1;
    for (int32_t i = 1; i < list.count; i++)
        if (!mr_string_equal(list.values[i].string, list.values[kept - 1].string)) list.values[kept++] = list.values[i];
    list.count = kept;
    return mr_node_put_attr(node, list, error);
}
