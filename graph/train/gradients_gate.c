/* Gates: gradients that are used when all of them are computed, as tf.tuple. */
#include "graph/ir/sparse_rows.h"
#include "graph/train/gradients.h"
#include <millrace/ops.h>

/* The output after the gate. */
static mr_output gated(mr_graph *graph, mr_output output)
{
    const mr_sparse_rows *found = mr_graph_find_rows(graph, output);
    if (found == nullptr) return mr_identity(graph, output, .name = "control_dependency");
    mr_sparse_rows rows = *found;
    rows.values = mr_identity(graph, rows.values, .name = "control_dependency");
    rows.dense = mr_unsorted_segment_sum(graph, rows.values, rows.indices, rows.count);
    mr_graph_note_rows(graph, rows);
    return rows.dense;
}

void mr_gradients_gate(mr_graph *graph, mr_output *outputs, int32_t count)
{
    int32_t given = 0;
    if (mr_graph_status(graph, nullptr) != MR_OK) return;
    for (int32_t i = 0; i < count; i++) given += outputs[i].node != nullptr;
    if (given == 0) return;
    mr_graph_push_scope(graph, "tuple");
    mr_node_builder builder = mr_node_begin(graph, "NoOp", "group_deps");
    for (int32_t i = 0; i < count; i++) {
        if (outputs[i].node == nullptr) continue;
        const mr_sparse_rows *rows = mr_graph_find_rows(graph, outputs[i]);
        mr_node_add_control_input(&builder, rows != nullptr ? rows->values.node : outputs[i].node);
        if (rows != nullptr) mr_node_add_control_input(&builder, rows->indices.node);
    }
    mr_node *gate = mr_node_finish(&builder).node;
    mr_graph_push_control_dependencies(graph, &gate, 1);
    for (int32_t i = 0; i < count; i++)
        if (outputs[i].node != nullptr) outputs[i] = gated(graph, outputs[i]);
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_scope(graph);
}
