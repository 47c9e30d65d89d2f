/* Graphs: the array of nodes, the first error, and the accessors of nodes and outputs.
 *
 * After an error, builders return an output of graph->failed, a node that is in no array and that every builder
 * accepts. */
#include "graph/ir/graph.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mr_graph *mr_graph_new(void)
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
    mr_graph_release_bindings(graph);
    for (mr_held_tensor *held = graph->held; held != nullptr; held = held->next) mr_tensor_deinit(&held->tensor);
    mr_name_table_deinit(&graph->ids);
    mr_name_table_deinit(&graph->taken);
    mr_arena_deinit(&graph->scratch);
    mr_arena_deinit(&graph->arena);
    free(graph);
}

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

/* ---- Errors ---- */

mr_status mr_graph_status(const mr_graph *graph, mr_error *error)
{
    if (graph == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the graph is null: out of memory");
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
    graph->version++;
    return MR_OK;
}

void mr_graph_truncate(mr_graph *graph, int32_t node_count)
{
    while (graph->node_count > node_count) graph->nodes[--graph->node_count]->id = -1;
    mr_name_table_deinit(&graph->ids);
    for (int32_t i = 0; i < node_count; i++) (void)mr_name_table_set(&graph->ids, graph->nodes[i]->name, i, nullptr);
    graph->version++;
}

mr_node *mr_graph_find(const mr_graph *graph, const char *name)
{
    int32_t id = name == nullptr ? -1 : mr_name_table_get(&graph->ids, name, -1);
    return id < 0 || id >= graph->node_count ? nullptr : graph->nodes[id];
}

/* The result for a name that was not found. Each name is stored once; beyond the limit, or without memory, the result
 * has no name. */
static mr_output missing_output(mr_graph *graph, const char *name)
{
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
    return graph->node_count;
}

mr_node *mr_graph_node(const mr_graph *graph, int32_t index)
{
    return index < 0 || index >= graph->node_count ? nullptr : graph->nodes[index];
}

mr_graph *mr_node_graph(const mr_node *node)
{
    return node == nullptr ? nullptr : node->graph;
}

const char *mr_node_name(const mr_node *node)
{
    return node == nullptr ? "" : node->name;
}

const char *mr_node_op(const mr_node *node)
{
    return node == nullptr ? "" : node->op;
}

const char *mr_node_device(const mr_node *node)
{
    return node == nullptr ? "" : node->device;
}

int32_t mr_node_input_count(const mr_node *node)
{
    return node == nullptr ? 0 : node->input_count;
}

mr_output mr_node_input(const mr_node *node, int32_t index)
{
    return node == nullptr || index < 0 || index >= node->input_count ? (mr_output){0} : node->inputs[index];
}

int32_t mr_node_control_count(const mr_node *node)
{
    return node == nullptr ? 0 : node->control_count;
}

mr_node *mr_node_control(const mr_node *node, int32_t index)
{
    return node == nullptr || index < 0 || index >= node->control_count ? nullptr : node->controls[index];
}

int32_t mr_node_output_count(const mr_node *node)
{
    return node == nullptr ? 0 : node->output_count;
}

void mr_node_add_control(mr_node *node, mr_node *before)
{
    if (node == nullptr || before == nullptr || node->id < 0 || before->id < 0) return;
    mr_error error = {0};
    mr_status status = mr_node_append_control(node, before, &error);
    if (status != MR_OK) mr_graph_record(node->graph, status, &error);
    node->graph->version++;
}

/* ---- Outputs ---- */

static const mr_node_output *find_output(mr_output output)
{
    bool exists = output.node != nullptr && output.index >= 0 && output.index < output.node->output_count;
    return exists ? &output.node->outputs[output.index] : nullptr;
}

mr_dtype mr_output_dtype(mr_output output)
{
    const mr_node_output *found = find_output(output);
    return found == nullptr ? MR_DTYPE_INVALID : found->dtype;
}

bool mr_output_is_ref(mr_output output)
{
    const mr_node_output *found = find_output(output);
    return found != nullptr && found->is_ref;
}

mr_shape mr_output_shape(mr_output output)
{
    const mr_node_output *found = find_output(output);
    return found == nullptr ? MR_SHAPE_UNKNOWN : found->shape;
}

void mr_output_set_shape(mr_output output, mr_shape shape)
{
    mr_error error = {0};
    if (find_output(output) == nullptr) return;
    mr_node_output *target = &output.node->outputs[output.index];
    mr_status status = mr_shape_merge(target->shape, shape, &target->shape, &error);
    if (status != MR_OK) {
        status = mr_fail_prefix(&error, status, "%s: setting the shape of output %d", output.node->name, output.index);
        mr_graph_record(output.node->graph, status, &error);
    }
}

char *mr_output_name(mr_output output, char *text, size_t size_bytes)
{
    if (size_bytes > 0) (void)snprintf(text, size_bytes, "%s:%d", mr_node_name(output.node), output.index);
    return text;
}

mr_output mr_output_at(mr_output_range range, int32_t index)
{
    if (range.node == nullptr) return (mr_output){0};
    if (range.node->id < 0) return mr_graph_failed_output(range.node->graph);
    if (index < 0 || index >= range.count)
        return mr_graph_fail(range.node->graph, MR_INVALID_ARGUMENT, "%s: output %d of a list of %d", range.node->name,
                             index, range.count);
    return (mr_output){range.node, range.first + index};
}

mr_output_range mr_node_output_range(const mr_node *node, const char *argument)
{
    mr_output_range range = {.node = (mr_node *)node};
    if (node == nullptr || node->def == nullptr) return range;
    for (int32_t i = 0; i < node->def->output_count; i++) {
        const mr_op_argument *output = &node->def->outputs[i];
        if (mr_argument_count(output, &node->attrs, &range.count, nullptr) != MR_OK) break;
        if (strcmp(output->name, argument) == 0) return range;
        range.first += range.count;
    }
    return (mr_output_range){.node = (mr_node *)node};
}

/* ---- Seeds: tensorflow/python/framework/random_seed.py ---- */

/* Reduces to [0, 2^31), as Python's remainder does. */
static int64_t truncate_seed(int64_t seed)
{
    return seed & INT32_MAX;
}

void mr_graph_set_seed(mr_graph *graph, int64_t seed)
{
    graph->has_seed = true;
    graph->seed = truncate_seed(seed);
}

void mr_graph_seed_pair(mr_graph *graph, const int64_t *op_seed, int64_t *seed, int64_t *seed2)
{
    constexpr int64_t default_seed = 87654321;
    if (graph->has_seed) {
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
