/* Gradients that the program registers, and scopes in which operators get them; finalized graphs. */
#include "graph/ir/graph.h"

#include <string.h>

#define GRADIENT_ATTR "_gradient_op_type"

const mr_custom_gradient *mr_graph_custom_gradient(const mr_graph *graph, const char *name)
{
    for (int32_t i = 0; i < graph->custom_gradient_count; i++)
        if (strcmp(graph->custom_gradients[i].name, name) == 0) return &graph->custom_gradients[i];
    return nullptr;
}

void mr_graph_register_gradient(mr_graph *graph, const char *name, mr_custom_gradient_function function, void *context)
{
    if (graph == nullptr || graph->status != MR_OK) return;
    const mr_op_def *known = name != nullptr ? mr_op_find(name) : nullptr;
    if (name == nullptr || *name == '\0' || function == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_graph_register_gradient: %s is missing",
                            function == nullptr ? "the function" : "the name");
    } else if (mr_graph_custom_gradient(graph, name) != nullptr || (known != nullptr && known->gradient != nullptr)) {
        (void)mr_graph_fail(graph, MR_ALREADY_EXISTS, "there is a gradient named %s already", name);
    } else {
        mr_custom_gradient *all =
            mr_graph_grow(graph, graph->custom_gradients, graph->custom_gradient_count, sizeof *all);
        const char *copy = mr_arena_strdup(&graph->arena, name);
        if (all == nullptr || copy == nullptr) {
            (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a gradient");
            return;
        }
        graph->custom_gradients = all;
        all[graph->custom_gradient_count++] = (mr_custom_gradient){copy, function, context};
    }
}

void mr_graph_push_gradient_override(mr_graph *graph, const char *op, const char *gradient)
{
    if (graph == nullptr) return;
    mr_gradient_override *all = mr_graph_grow(graph, graph->overrides, graph->override_count, sizeof *all);
    const char *from = mr_arena_strdup(&graph->arena, op != nullptr ? op : "");
    const char *to = mr_arena_strdup(&graph->arena, gradient != nullptr ? gradient : "");
    if (all == nullptr || from == nullptr || to == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a gradient");
        return;
    }
    if (*from == '\0' || *to == '\0')
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_graph_push_gradient_override: %s is missing",
                            *from == '\0' ? "the operator" : "the gradient");
    graph->overrides = all;
    all[graph->override_count++] = (mr_gradient_override){from, to};
}

void mr_graph_pop_gradient_override(mr_graph *graph)
{
    if (graph == nullptr) return;
    if (mr_graph_check_open(graph, graph->override_count, graph->floor.overrides, "mr_graph_pop_gradient_override",
                            "gradient override"))
        graph->override_count--;
}

mr_status mr_node_override_gradient(mr_node *node, mr_error *error)
{
    const mr_graph *graph = node->graph;
    for (int32_t i = graph->override_count; i-- > 0;) {
        if (strcmp(graph->overrides[i].op, node->op) != 0) continue;
        mr_attr_value *value = MR_ARENA_NEW(&node->graph->arena, mr_attr_value, 1);
        if (value == nullptr) return mr_fail_memory(error, sizeof *value);
        value->string = mr_string_from(graph->overrides[i].gradient);
        return mr_node_put_attr(
            node, (mr_attr){.name = GRADIENT_ATTR, .kind = MR_ATTR_STRING, .values = value, .count = 1}, error);
    }
    return MR_OK;
}

const char *mr_node_gradient_name(const mr_node *node)
{
    const mr_attr *attr = mr_attrs_find(&node->attrs, GRADIENT_ATTR);
    if (attr == nullptr || attr->kind != MR_ATTR_STRING || attr->is_list || attr->count != 1) return node->op;
    const mr_string name = attr->values[0].string;
    const char *copy = mr_arena_strndup(&node->graph->arena, name.data, name.size_bytes);
    return copy != nullptr ? copy : node->op;
}

void mr_graph_finalize(mr_graph *graph)
{
    if (graph == nullptr) return;
    graph->is_finalized = true;
}

bool mr_graph_is_finalized(const mr_graph *graph)
{
    if (graph == nullptr) return false;
    return graph->is_finalized;
}
