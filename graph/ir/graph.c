/* Graphs: the array of nodes, and seeds.
 *
 * After an error, builders return an output of graph->failed, a node that is in no array and that every builder
 * accepts. */
#include "graph/ir/graph.h"
#include "graph/ir/function_def.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mr_graph *mr_graph_create(void)
{
    mr_graph *graph = calloc(1, sizeof *graph);
    if (graph == nullptr) return nullptr;
    graph->failed = MR_ARENA_NEW(&graph->arena, mr_node, 1);
    if (graph->failed == nullptr) {
        mr_graph_free(graph);
        return nullptr;
    }
    *graph->failed = (mr_node){.graph = graph, .id = -1, .name = "", .op = "", .device = ""};
    graph->producer = 1645; /* TensorFlow 2.15 */
    graph->min_consumer = 0;
    return graph;
}

void mr_graph_free(mr_graph *graph)
{
    if (graph == nullptr) return;
    mr_graph_forget_default(graph);
    mr_graph_release_bindings(graph);
    for (mr_held_tensor *held = graph->held; held != nullptr; held = held->next) mr_tensor_deinit(&held->tensor);
    mr_name_table_deinit(&graph->ids);
    mr_name_table_deinit(&graph->taken);
    mr_name_table_deinit(&graph->variable_names);
    if (graph->functions != nullptr && !graph->borrows_functions) {
        mr_name_table_deinit(&graph->functions->names);
        mr_name_table_deinit(&graph->functions->gradients);
    }
    mr_arena_deinit(&graph->scratch);
    mr_arena_deinit(&graph->arena);
    free(graph);
}

/* ---- Nodes ---- */

mr_status mr_graph_append(mr_graph *graph, mr_node *node, mr_error *error)
{
    if (mr_name_table_get(&graph->ids, node->name, -1) >= 0)
        return mr_fail(error, MR_ALREADY_EXISTS, "duplicate node %s", node->name);
    mr_node **nodes = mr_graph_grow(graph, graph->nodes, graph->node_count, sizeof *nodes);
    if (nodes == nullptr) return mr_fail_memory(error, sizeof *nodes);
    graph->nodes = nodes;
    MR_TRY(mr_name_table_set(&graph->ids, node->name, graph->node_count, error));
    node->id = graph->node_count;
    graph->nodes[graph->node_count++] = node;
    __atomic_fetch_add(&graph->version, 1, __ATOMIC_RELAXED);
    return MR_OK;
}

void mr_graph_truncate(mr_graph *graph, int32_t node_count)
{
    while (graph->node_count > node_count) graph->nodes[--graph->node_count]->id = -1;
    mr_name_table_deinit(&graph->ids);
    for (int32_t i = 0; i < node_count; i++) (void)mr_name_table_set(&graph->ids, graph->nodes[i]->name, i, nullptr);
    __atomic_fetch_add(&graph->version, 1, __ATOMIC_RELAXED);
}

mr_node *mr_graph_find(const mr_graph *graph, const char *name)
{
    int32_t id = graph == nullptr || name == nullptr ? -1 : mr_name_table_get(&graph->ids, name, -1);
    return id < 0 || id >= graph->node_count ? nullptr : graph->nodes[id];
}

/* The result for a name that was not found. Each name is stored once; beyond the limit, or without memory, the result
 * has no name. */
static mr_output missing_output(mr_graph *graph, const char *name)
{
    if (graph == nullptr) return (mr_output){0};
    int32_t i = 0;
    while (i < graph->missing_count && strcmp(graph->missing[i], name) != 0) i++;
    if (i == MR_MISSING_MAX) return (mr_output){0};
    if (i == graph->missing_count) {
        graph->missing[i] = mr_arena_strdup(&graph->arena, name);
        if (graph->missing[i] == nullptr) return (mr_output){0};
        graph->missing_count++;
    }
    return (mr_output){.index = -1 - i};
}

const char *mr_graph_missing_name(const mr_graph *graph, mr_output output)
{
    bool is_missing = output.node == nullptr && output.index < 0 && -1 - output.index < graph->missing_count;
    return is_missing ? graph->missing[-1 - output.index] : nullptr;
}

static mr_output find_by_name(const mr_graph *graph, const char *name)
{
    const char *colon = name == nullptr ? nullptr : strrchr(name, ':');
    mr_output output = {0};
    if (colon == nullptr) {
        output.node = mr_graph_find(graph, name);
    } else {
        char *end = nullptr;
        long index = strtol(colon + 1, &end, 10);
        char plain[1024];
        size_t length = (size_t)(colon - name);
        if (end == colon + 1 || *end != '\0' || index < 0 || index > INT32_MAX || length >= sizeof plain)
            return (mr_output){0};
        memcpy(plain, name, length);
        plain[length] = '\0';
        output = (mr_output){mr_graph_find(graph, plain), (int32_t)index};
    }
    bool exists = output.node != nullptr && output.index < output.node->output_count;
    return exists ? output : (mr_output){0};
}

mr_output mr_graph_find_output(const mr_graph *graph, const char *name)
{
    mr_output output = find_by_name(graph, name);
    return output.node != nullptr || name == nullptr ? output : missing_output((mr_graph *)graph, name);
}

int32_t mr_graph_node_count(const mr_graph *graph)
{
    if (graph == nullptr) return 0;
    return graph->node_count;
}

mr_node *mr_graph_node(const mr_graph *graph, int32_t index)
{
    if (graph == nullptr) return nullptr;
    return index < 0 || index >= graph->node_count ? nullptr : graph->nodes[index];
}

/* ---- Seeds: tensorflow/python/framework/random_seed.py ---- */

/* Reduces to [0, 2^31), as Python's remainder does. */
static int64_t truncate_seed(int64_t seed)
{
    return seed & INT32_MAX;
}

void mr_graph_set_seed(mr_graph *graph, int64_t seed)
{
    if (graph == nullptr) return;
    graph->has_seed = true;
    graph->seed = truncate_seed(seed);
}

void mr_graph_seed_pair(mr_graph *graph, const int64_t *op_seed, int64_t *seed, int64_t *seed2)
{
    constexpr int64_t default_seed = 87654321;
    int64_t none, none2;
    if (seed == nullptr) seed = &none;
    if (seed2 == nullptr) seed2 = &none2;
    if (graph != nullptr && graph->has_seed) {
        *seed = graph->seed;
        *seed2 = op_seed != nullptr ? truncate_seed(*op_seed) : graph->seed_count++;
    } else if (op_seed != nullptr) {
        *seed = default_seed;
        *seed2 = truncate_seed(*op_seed);
    } else {
        *seed = *seed2 = 0;
        return;
    }
    /* The operators interpret (0, 0) as "no seed". */
    if (*seed == 0 && *seed2 == 0) *seed2 = INT32_MAX;
}
