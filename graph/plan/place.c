/* Place: chooses a device and a kernel for each node.
 *
 * A node is placed on the device it requests, otherwise on the session's default device, otherwise on the CPU. Without
 * a GPU kernel it is placed on the CPU, with a note, unless the options forbid this. A node that takes a variable is
 * placed with the variable. A variable is placed on a GPU only if every node of the graph that takes it has a kernel
 * there. */
#include "graph/plan/plan.h"
#include "graph/state/iterator.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static mr_status no_kernel(const mr_node *node, const char *device, mr_error *error)
{
    char types[256];
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s): No OpKernel was registered to support Op '%s'%s on %s",
                   node->name, node->op, node->op, mr_attrs_types_text(&node->attrs, types, sizeof types), device);
}

/* The device that a node requests; the CPU, with a note, if it is not available. */
static mr_status asked_device(const mr_plan_context *context, const mr_node *node, mr_device **device, mr_error *error)
{
    const char *text = node->device[0] ? node->device : context->options->device;
    mr_device_kind kind = MR_DEVICE_CPU;
    int index = 0;
    *device = context->cpu;
    /* Imported graphs request devices of all kinds; the kinds that do not exist here are mapped to the CPU. */
    if (mr_device_parse(text, &kind, &index, nullptr) != MR_OK || kind == MR_DEVICE_CPU) return MR_OK;
    mr_error reason = {0};
    mr_device *gpu = context->open_gpu(context->session, index, &reason);
    if (gpu)
        *device = gpu;
    else if (context->options->no_soft_placement)
        return mr_fail(error, reason.status, "%s (%s) requests %s: %s", node->name, node->op, text, reason.message);
    return MR_OK;
}

/* True if every node of the graph that takes the handle of `owner` has a GPU kernel. */
static bool gpu_serves_takers(const mr_graph *graph, const mr_node *owner, const mr_node **why)
{
    for (int32_t i = 0; i < graph->node_count; i++) {
        const mr_node *node = graph->nodes[i];
        if (!node->def) continue;
        for (int32_t j = 0, input = 0; j < node->def->input_count; j++) {
            const mr_op_argument *argument = &node->def->inputs[j];
            int32_t count = 0;
            mr_error ignored = {0};
            if (mr_argument_count(argument, &node->attrs, &count, &ignored) != MR_OK) break;
            for (int32_t k = 0; k < count && input < node->input_count; k++, input++) {
                mr_output from = node->inputs[input];
                bool takes = argument->is_ref || from.node->outputs[from.index].dtype == MR_RESOURCE;
                for (int hops = 0; takes && hops < 64 && from.node != owner && from.node->input_count > 0; hops++)
                    from = from.node->inputs[0];
                if (!takes || from.node != owner) continue;
                if (mr_kernel_find(mr_op_kernel_name(node->def->op), MR_DEVICE_GPU, &node->attrs)) continue;
                *why = node;
                return false;
            }
        }
    }
    return true;
}

/* The device for a resource: the one that its node requests, unless something that takes the resource cannot run there.
 */
static mr_status resource_device(const mr_plan_context *context, const mr_node *node, const mr_state_row *row,
                                 mr_device **device, mr_error *error)
{
    MR_TRY(asked_device(context, node, device, error));
    if ((*device)->kind == MR_DEVICE_CPU) return MR_OK;
    const mr_node *why = nullptr;
    mr_dtype dtype = mr_attr_type_or(&node->attrs, "dtype", MR_DTYPE_INVALID);
    bool can = row->on_gpu && dtype != MR_STRING && dtype != MR_DTYPE_INVALID;
    if (can && gpu_serves_takers(context->graph, node, &why)) return MR_OK;
    if (context->options->no_soft_placement)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) requests %s, which has no kernel for %s", node->name,
                       node->op, (*device)->name, why ? why->name : "it");
    if (why)
        context->note(context->session, "%s (%s) is on the CPU: there is no GPU kernel for %s (%s), which takes it",
                      node->name, node->op, why->name, why->op);
    *device = context->cpu;
    return MR_OK;
}

mr_status mr_plan_resource(const mr_plan_context *context, const mr_node *node, mr_resource **resource, mr_error *error)
{
    const mr_state_row *row = mr_state_find(node->op);
    mr_device *device = nullptr;
    if (!row) return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) names no resource", node->name, node->op);
    MR_TRY(resource_device(context, node, row, &device, error));
    mr_status status = row->make(context->resources, node, device, resource, error);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s (%s)", node->name, node->op);
}

/* The first value that names the same reference variable. Only a shared name can be that of several nodes. */
static int32_t first_named(mr_planner *planner, const mr_node *node, int32_t value)
{
    const void *variable = planner->values[value].constant.data;
    planner->has_shared_names |= mr_attr_string_or(&node->attrs, "shared_name", "").size_bytes > 0;
    for (int32_t i = 0; planner->has_shared_names && i < planner->value_count; i++) {
        const mr_plan_value *v = &planner->values[i];
        if (i != value && v->is_ref && v->kind == MR_VALUE_CONSTANT && v->constant.data == variable) return v->named;
    }
    return value;
}

/* Places a node that names a resource, and makes its output, a handle, a constant. */
static mr_status place_resource(mr_planner *planner, mr_plan_node *placed, mr_error *error)
{
    mr_resource *resource;
    assert(!placed->device && !placed->kernel);
    MR_TRY(mr_plan_resource(planner->context, placed->node, &resource, error));
    mr_device *device = planner->context->cpu;
    if (resource->class == &mr_variable_class) device = ((mr_variable_state *)resource)->device;
    placed->device = device;
    for (int32_t i = 0; i < placed->output_count; i++) {
        mr_plan_value *value = &planner->values[placed->first_output + i];
        value->kind = MR_VALUE_CONSTANT;
        assert(!value->constant.data); /* a value becomes a constant only once */
        value->constant = mr_tensor_of_resource(value->dtype, resource);
        if (value->is_ref) value->named = first_named(planner, placed->node, placed->first_output + i);
        value->home = device->kind == MR_DEVICE_CPU ? nullptr : device;
    }
    return MR_OK;
}

static void log_place(const mr_plan_context *context, const mr_plan_node *placed)
{
    if (context->options->log_device_placement)
        context->note(context->session, "%s (%s): %s", placed->node->name, placed->node->op, placed->device->name);
}

/* The device of the variable that the node takes, or null if it takes none. */
static mr_device *taken_device(const mr_planner *planner, const mr_plan_node *node)
{
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_plan_value *value = &planner->values[node->inputs[i]];
        if (!node->input_is_ref[i] && value->dtype != MR_RESOURCE) continue;
        int32_t handle = mr_plan_handle(planner, node->inputs[i]);
        if (handle < 0 || !planner->values[handle].constant.data) continue;
        assert(planner->nodes[planner->values[handle].producer].device); /* resources are placed first */
        return planner->nodes[planner->values[handle].producer].device;
    }
    return nullptr;
}

/* The elements of a pipeline may be on a GPU already. */
static mr_device *elements_device(const mr_planner *planner, const mr_plan_node *node)
{
    if (node->input_count == 0 || !mr_node_has_flag(node->node, MR_OP_GET_NEXT)) return nullptr;
    int32_t handle = mr_plan_handle(planner, node->inputs[0]);
    const mr_resource *resource = handle >= 0 ? planner->values[handle].constant.data : nullptr;
    if (!resource || resource->class != &mr_iterator_class) return nullptr;
    return ((const mr_iterator_state *)resource)->home;
}

static mr_status place_node(mr_planner *planner, mr_plan_node *placed, mr_error *error)
{
    const mr_plan_context *context = planner->context;
    const mr_node *node = placed->node;
    mr_device *asked, *taken = taken_device(planner, placed);
    MR_TRY(asked_device(context, node, &asked, error));
    mr_device *device = taken ? taken : asked;
    const char *op = mr_node_has_flag(node, MR_OP_CALL) ? "StatefulPartitionedCall"
                     : node->def                        ? mr_op_kernel_name(node->def->op)
                                                        : node->op;
    placed->kernel = mr_kernel_find(op, device->kind, &node->attrs);
    if (!placed->kernel && device->kind != MR_DEVICE_CPU && !taken) {
        if (context->options->no_soft_placement) return no_kernel(node, device->name, error);
        context->note(context->session, "%s has no GPU kernel: %s runs on the CPU", node->op, node->name);
        device = context->cpu;
        placed->kernel = mr_kernel_find(op, device->kind, &node->attrs);
    }
    assert(!placed->kernel || placed->kernel->device == device->kind);
    placed->device = device;
    placed->outputs_at = elements_device(planner, placed);
    if (device->kind != MR_DEVICE_CPU || placed->outputs_at) planner->uses_gpu = true;
    return MR_OK;
}

mr_status mr_plan_place(mr_planner *planner, mr_error *error)
{
    for (int32_t i = 0; i < planner->node_count; i++) {
        mr_plan_node *node = &planner->nodes[i];
        if (!mr_state_find(node->node->op)) continue;
        MR_TRY(place_resource(planner, node, error));
        log_place(planner->context, node);
    }
    for (int32_t i = 0; i < planner->node_count; i++) {
        mr_plan_node *node = &planner->nodes[i];
        if (node->device) continue;
        MR_TRY(place_node(planner, node, error));
        assert(node->device);
        log_place(planner->context, node);
    }
    return MR_OK;
}

mr_status mr_plan_check_kernels(const mr_planner *planner, mr_error *error)
{
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        if (!node->live || node->kernel || node->is_copy) continue;
        bool constant = node->output_count > 0;
        for (int32_t j = 0; j < node->output_count; j++)
            constant &= planner->values[node->first_output + j].kind == MR_VALUE_CONSTANT;
        if (!constant)
            return no_kernel(node->node, node->device->kind == MR_DEVICE_CPU ? "the CPU" : node->device->name, error);
    }
    return MR_OK;
}
