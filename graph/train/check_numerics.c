/* Checks of all numbers of a graph, as tf.add_check_numerics_ops. */
#include "graph/train/train.h"
#include <millrace/ops.h>

static bool is_checked(mr_output output)
{
    const mr_dtype dtype = mr_output_dtype(output);
    return dtype == MR_HALF || dtype == MR_FLOAT || dtype == MR_DOUBLE;
}

/* A check of the output that runs after the check before it; so the first bad number is the one that is reported. */
static mr_node *add_check(mr_graph *graph, mr_output output, mr_node *before)
{
    const char *message = mr_arena_printf(&graph->arena, "%s:%d", output.node->name, (int)output.index);
    if (message == nullptr)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a check of %s", output.node->name).node;
    mr_graph_push_control_dependencies(graph, &before, before != nullptr ? 1 : 0);
    mr_node *check = mr_check_numerics(graph, output, .message = message).node;
    mr_graph_pop_control_dependencies(graph);
    return check;
}

mr_node *mr_add_check_numerics_ops(mr_graph *graph)
{
    if (graph == nullptr) return nullptr;
    const int32_t count = mr_graph_node_count(graph);
    mr_node *last = nullptr;
    for (int32_t i = 0; i < count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        mr_node *node = graph->nodes[i];
        for (int32_t j = 0; j < node->output_count; j++) {
            if (!is_checked((mr_output){node, j})) continue;
            if (node->flow != nullptr || mr_node_flow(node) != MR_FLOW_NONE)
                return mr_graph_fail(
                           graph, MR_INVALID_ARGUMENT,
                           "checks of numerics: %s is in a conditional or a loop, whose nodes cannot be checked",
                           node->name)
                    .node;
            last = add_check(graph, (mr_output){node, j}, last);
        }
    }
    return mr_group(graph, &last, last != nullptr ? 1 : 0, "group_deps");
}
