#include "graph/ir/sparse_rows.h"
#include "graph/ir/graph.h"

#include <assert.h>

void mr_graph_note_rows(mr_graph *graph, mr_sparse_rows rows)
{
    if (graph->status != MR_OK) return;
    assert(rows.dense.node != nullptr && rows.values.node != nullptr && rows.indices.node != nullptr);
    assert(mr_graph_find_rows(graph, rows.dense) == nullptr);
    mr_sparse_rows *all = mr_graph_grow(graph, graph->sparse_rows, graph->sparse_rows_count, sizeof *all);
    if (all == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a gradient");
        return;
    }
    graph->sparse_rows = all;
    all[graph->sparse_rows_count++] = rows;
}

const mr_sparse_rows *mr_graph_find_rows(const mr_graph *graph, mr_output dense)
{
    for (int32_t i = 0; graph != nullptr && dense.node != nullptr && i < graph->sparse_rows_count; i++)
        if (graph->sparse_rows[i].dense.node == dense.node && graph->sparse_rows[i].dense.index == dense.index)
            return &graph->sparse_rows[i];
    return nullptr;
}

bool mr_gradient_rows(const mr_graph *graph, mr_output gradient, mr_output *values, mr_output *indices)
{
    const mr_sparse_rows *rows = mr_graph_find_rows(graph, gradient);
    if (rows == nullptr) return false;
    *values = rows->values;
    *indices = rows->indices;
    return true;
}
