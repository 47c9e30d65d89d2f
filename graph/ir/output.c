/* The accessors of nodes and outputs. */
#include "graph/ir/graph.h"

#include <stdio.h>
#include <string.h>

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
    if (text != nullptr && size_bytes > 0)
        (void)snprintf(text, size_bytes, "%s:%d", mr_node_name(output.node), output.index);
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
    if (node == nullptr || node->def == nullptr || argument == nullptr) return range;
    for (int32_t i = 0; i < node->def->output_count; i++) {
        const mr_op_argument *output = &node->def->outputs[i];
        if (mr_argument_count(output, &node->attrs, &range.count, nullptr) != MR_OK) break;
        if (strcmp(output->name, argument) == 0) return range;
        range.first += range.count;
    }
    return (mr_output_range){.node = (mr_node *)node};
}
