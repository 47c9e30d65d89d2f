/* The node builder: begin, inputs and attrs, finish. During construction a node is in no array. An error is recorded in
 * the graph, and the remaining calls then have no effect.
 *
 * Each call that adds inputs is one group. If the number of groups equals the operator's number of inputs, the groups
 * determine which inputs are lists, and N and T are deduced from them. */
#include "graph/ir/flow.h"
#include "graph/ir/function.h"
#include "graph/ir/signature.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct building {
    mr_node node; /* first: the builder points to this node */
    int32_t group_count;
    int32_t *groups; /* number of inputs in each */
} building;

static void fail(mr_node_builder *builder, mr_status status, mr_error *error)
{
    if (builder->node != nullptr)
        status = mr_fail_prefix(error, status, "%s (%s)", builder->node->name, builder->node->op);
    mr_graph_record(builder->graph, status, error);
    builder->node = nullptr;
}

/* Sets the name, and the device of the scope. The nodes of control scopes are added when the inputs are known. */
static mr_status name_node(mr_graph *graph, mr_node *node, const char *name, mr_error *error)
{
    size_t length = strlen(name);
    if (length > 1 && name[length - 1] == '/') {
        node->name = mr_arena_strndup(&graph->arena, name, length - 1);
        if (node->name != nullptr) MR_TRY(mr_graph_mark_name(graph, node->name, error));
    } else if (!(*mr_graph_scope(graph) == '\0' ? mr_node_name_is_valid(name) : mr_scope_name_is_valid(name)) ||
               length == 0) {
        return mr_fail(error, MR_INVALID_ARGUMENT, "\"%s\" is not a valid node name", name);
    } else {
        node->name = mr_graph_unique_name(graph, name);
    }
    if (node->name == nullptr || *node->name == '\0') return mr_fail_memory(error, length);
    node->device = mr_graph_scope_device(graph);
    return MR_OK;
}

mr_node_builder mr_node_begin(mr_graph *graph, const char *op, const char *name)
{
    mr_node_builder builder = {.graph = graph};
    if (graph == nullptr || graph->status != MR_OK) return builder;
    mr_error error = {0};
    if (op == nullptr) {
        mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_node_begin: op is null");
        return builder;
    }
    if (graph->is_choosing_device) {
        mr_graph_fail(graph, MR_FAILED_PRECONDITION, "a device function cannot add nodes");
        return builder;
    }
    if (graph->is_finalized) {
        mr_graph_fail(graph, MR_FAILED_PRECONDITION, "the graph is finalized: %s cannot be added",
                      name != nullptr ? name : op);
        return builder;
    }
    const mr_op_def *def = mr_op_find(op);
    building *made = MR_ARENA_NEW(&graph->arena, building, 1);
    if (made == nullptr) {
        fail(&builder, mr_fail_memory(&error, sizeof *made), &error);
        return builder;
    }
    made->node =
        (mr_node){.graph = graph, .id = -1, .def = def, .op = def != nullptr ? def->op->name : op, .device = ""};
    if (def == nullptr) {
        mr_graph_fail(graph, MR_NOT_FOUND, "unknown operator %s", op);
        return builder;
    }
    mr_status status = name_node(graph, &made->node, name != nullptr ? name : op, &error);
    builder.node = &made->node;
    if (status != MR_OK) {
        made->node.name = name != nullptr ? name : op;
        fail(&builder, status, &error);
    }
    return builder;
}

/* ---- Inputs ---- */

mr_status mr_node_append_input(mr_node *node, mr_output input, mr_error *error)
{
    mr_output *inputs = mr_graph_grow(node->graph, node->inputs, node->input_count, sizeof *inputs);
    if (inputs == nullptr) return mr_fail_memory(error, sizeof *inputs);
    node->inputs = inputs;
    node->inputs[node->input_count++] = input;
    return MR_OK;
}

mr_status mr_node_append_control(mr_node *node, mr_node *before, mr_error *error)
{
    for (int32_t i = 0; i < node->control_count; i++)
        if (node->controls[i] == before) return MR_OK;
    mr_node **controls = mr_graph_grow(node->graph, node->controls, node->control_count, sizeof *controls);
    if (controls == nullptr) return mr_fail_memory(error, sizeof *controls);
    node->controls = controls;
    node->controls[node->control_count++] = before;
    return MR_OK;
}

void mr_node_add_control(mr_node *node, mr_node *before)
{
    if (node == nullptr || before == nullptr || node->id < 0 || before->id < 0) return;
    mr_error error = {0};
    mr_status status = node->graph->is_finalized
                           ? mr_fail(&error, MR_FAILED_PRECONDITION, "%s: the graph is finalized", node->name)
                           : mr_node_append_control(node, before, &error);
    if (status != MR_OK) mr_graph_record(node->graph, status, &error);
    __atomic_fetch_add(&node->graph->version, 1, __ATOMIC_RELAXED);
}

static mr_status check_input(const mr_node *node, mr_output input, mr_error *error)
{
    if (input.node == nullptr) {
        const char *name = mr_graph_missing_name(node->graph, input);
        if (name != nullptr)
            return mr_fail(error, MR_NOT_FOUND, "input %d: the graph has no output %s", node->input_count, name);
        return mr_fail(error, MR_INVALID_ARGUMENT, "input %d is not an output of a graph", node->input_count);
    }
    if (input.node->graph != node->graph)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input %d, %s, belongs to another graph", node->input_count,
                       input.node->name);
    if (input.index < 0 || input.index >= input.node->output_count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input %d is output %d of %s (%s), which has %d outputs",
                       node->input_count, input.index, input.node->name, input.node->op, input.node->output_count);
    return MR_OK;
}

void mr_node_add_input_list(mr_node_builder *builder, mr_outputs inputs)
{
    if (builder == nullptr || builder->node == nullptr) return;
    mr_error error = {0};
    mr_status status = MR_OK;
    if (inputs.count < 0 || (inputs.items == nullptr && inputs.count > 0))
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "a list of %d inputs at %s", inputs.count,
                         inputs.items == nullptr ? "null" : "an address");
    for (int32_t i = 0; i < inputs.count && status == MR_OK; i++) {
        status = check_input(builder->node, inputs.items[i], &error);
        if (status != MR_OK) break;
        mr_flow_context *flow = builder->graph->flow;
        mr_output inside = inputs.items[i];
        if (flow != nullptr) inside = flow->capture(flow, inside, builder->node->name);
        status = mr_graph_status(builder->graph, &error);
        if (status == MR_OK) status = mr_node_append_input(builder->node, inside, &error);
    }
    building *made = (building *)builder->node;
    int32_t *groups = mr_graph_grow(builder->graph, made->groups, made->group_count, sizeof *groups);
    if (groups == nullptr && status == MR_OK) status = mr_fail_memory(&error, sizeof *groups);
    if (status != MR_OK) {
        fail(builder, status, &error);
        return;
    }
    made->groups = groups;
    groups[made->group_count++] = inputs.count;
}

void mr_node_add_input(mr_node_builder *builder, mr_output input)
{
    mr_node_add_input_list(builder, (mr_outputs){&input, 1});
}

void mr_node_add_control_input(mr_node_builder *builder, mr_node *before)
{
    mr_error error = {0};
    if (builder == nullptr || builder->node == nullptr || before == nullptr || before->id < 0) return;
    mr_status status = mr_node_append_control(builder->node, before, &error);
    if (status != MR_OK) fail(builder, status, &error);
}

void mr_node_set_device(mr_node_builder *builder, const char *device)
{
    mr_error error = {0};
    if (builder == nullptr || builder->node == nullptr || device == nullptr) return;
    const char *merged = mr_device_name_merge(&builder->graph->arena, "", device, &error);
    if (merged == nullptr)
        fail(builder, error.status, &error);
    else
        builder->node->device = merged;
}

/* ---- Attrs ---- */

static void set(mr_node_builder *builder, const char *name, mr_attr_kind kind, bool is_list, int32_t count,
                mr_attr_value *values)
{
    if (builder == nullptr || builder->node == nullptr) return;
    mr_error error = {0};
    if (name == nullptr) {
        fail(builder, mr_fail(&error, MR_INVALID_ARGUMENT, "the name of an attr is null"), &error);
        return;
    }
    mr_attr attr = {.name = name, .kind = kind, .is_list = is_list, .count = count, .values = values}, copy = {0};
    mr_status status = mr_attr_copy(builder->graph, &attr, &copy, &error);
    if (status == MR_OK) status = mr_node_put_attr(builder->node, copy, &error);
    if (status != MR_OK) fail(builder, status, &error);
}

static void set_one(mr_node_builder *builder, const char *name, mr_attr_kind kind, mr_attr_value value)
{
    set(builder, name, kind, false, 1, &value);
}

/* Memory for the values of a list during the copy. */
static mr_attr_value *list_values(mr_node_builder *builder, int32_t count)
{
    if (builder == nullptr || builder->node == nullptr) return nullptr;
    if (count < 0) {
        mr_error negative = {0};
        fail(builder, mr_fail(&negative, MR_INVALID_ARGUMENT, "an attr is a list of %d values", (int)count), &negative);
        return nullptr;
    }
    mr_arena_reset(&builder->graph->scratch);
    mr_attr_value *values = MR_ARENA_NEW(&builder->graph->scratch, mr_attr_value, (size_t)count + 1);
    mr_error error = {0};
    if (values == nullptr) fail(builder, mr_fail_memory(&error, (size_t)count * sizeof *values), &error);
    return values;
}

void mr_node_set_int(mr_node_builder *builder, const char *attr, int64_t value)
{
    set_one(builder, attr, MR_ATTR_INT, (mr_attr_value){.integer = value});
}

void mr_node_set_float(mr_node_builder *builder, const char *attr, float value)
{
    set_one(builder, attr, MR_ATTR_FLOAT, (mr_attr_value){.number = value});
}

void mr_node_set_bool(mr_node_builder *builder, const char *attr, bool value)
{
    set_one(builder, attr, MR_ATTR_BOOL, (mr_attr_value){.boolean = value});
}

void mr_node_set_dtype(mr_node_builder *builder, const char *attr, mr_dtype value)
{
    if (value != MR_DTYPE_INVALID) set_one(builder, attr, MR_ATTR_TYPE, (mr_attr_value){.type = (int32_t)value});
}

void mr_node_set_shape(mr_node_builder *builder, const char *attr, mr_shape value)
{
    if (value.rank >= -1) set_one(builder, attr, MR_ATTR_SHAPE, (mr_attr_value){.shape = value});
}

void mr_node_set_string(mr_node_builder *builder, const char *attr, const char *value)
{
    if (value != nullptr) set_one(builder, attr, MR_ATTR_STRING, (mr_attr_value){.string = mr_string_from(value)});
}

void mr_node_set_tensor(mr_node_builder *builder, const char *attr, const mr_tensor *value)
{
    if (value != nullptr) set_one(builder, attr, MR_ATTR_TENSOR, (mr_attr_value){.tensor = *value});
}

void mr_node_set_function(mr_node_builder *builder, const char *attr, const char *function)
{
    if (function != nullptr) set_one(builder, attr, MR_ATTR_FUNCTION, (mr_attr_value){.function = {.name = function}});
}

void mr_node_set_instance(mr_node_builder *builder, const char *attr, const char *function, const mr_attrs *attrs)
{
    set_one(builder, attr, MR_ATTR_FUNCTION, (mr_attr_value){.function = {.name = function, .attrs = attrs}});
}

void mr_node_set_functions(mr_node_builder *builder, const char *attr, mr_strings list)
{
    mr_attr_value *values = list.items == nullptr ? nullptr : list_values(builder, list.count);
    if (values == nullptr) return;
    for (int32_t i = 0; i < list.count; i++) {
        values[i].function.name =
            mr_arena_strndup(&builder->graph->scratch, list.items[i].data, list.items[i].size_bytes);
        if (values[i].function.name == nullptr) return;
    }
    set(builder, attr, MR_ATTR_FUNCTION, true, list.count, values);
}

void mr_node_set_ints(mr_node_builder *builder, const char *attr, mr_ints list)
{
    mr_attr_value *values = list.items == nullptr ? nullptr : list_values(builder, list.count);
    if (values == nullptr) return;
    for (int32_t i = 0; i < list.count; i++) values[i].integer = list.items[i];
    set(builder, attr, MR_ATTR_INT, true, list.count, values);
}

void mr_node_set_floats(mr_node_builder *builder, const char *attr, mr_floats list)
{
    mr_attr_value *values = list.items == nullptr ? nullptr : list_values(builder, list.count);
    if (values == nullptr) return;
    for (int32_t i = 0; i < list.count; i++) values[i].number = list.items[i];
    set(builder, attr, MR_ATTR_FLOAT, true, list.count, values);
}

void mr_node_set_dtypes(mr_node_builder *builder, const char *attr, mr_dtypes list)
{
    mr_attr_value *values = list.items == nullptr ? nullptr : list_values(builder, list.count);
    if (values == nullptr) return;
    for (int32_t i = 0; i < list.count; i++) values[i].type = (int32_t)list.items[i];
    set(builder, attr, MR_ATTR_TYPE, true, list.count, values);
}

void mr_node_set_shapes(mr_node_builder *builder, const char *attr, mr_shapes list)
{
    mr_attr_value *values = list.items == nullptr ? nullptr : list_values(builder, list.count);
    if (values == nullptr) return;
    for (int32_t i = 0; i < list.count; i++) values[i].shape = list.items[i];
    set(builder, attr, MR_ATTR_SHAPE, true, list.count, values);
}

void mr_node_set_strings(mr_node_builder *builder, const char *attr, mr_strings list)
{
    mr_attr_value *values = list.items == nullptr ? nullptr : list_values(builder, list.count);
    if (values == nullptr) return;
    for (int32_t i = 0; i < list.count; i++) values[i].string = list.items[i];
    set(builder, attr, MR_ATTR_STRING, true, list.count, values);
}

/* ---- Finishing ---- */

static mr_status deduce_type(mr_node *node, const char *attr, mr_dtype dtype, mr_error *error)
{
    if (dtype == MR_DTYPE_INVALID || mr_attrs_find(&node->attrs, attr) != nullptr) return MR_OK;
    return mr_node_put_value(node, attr, MR_ATTR_TYPE, (mr_attr_value){.type = (int32_t)dtype}, error);
}

static mr_status deduce_types(mr_node *node, const char *attr, int32_t first, int32_t count, mr_error *error)
{
    if (mr_attrs_find(&node->attrs, attr) != nullptr) return MR_OK;
    mr_attr list = {.name = attr, .kind = MR_ATTR_TYPE, .is_list = true, .count = count};
    list.values = MR_ARENA_NEW(&node->graph->arena, mr_attr_value, (size_t)count + 1);
    if (list.values == nullptr) return mr_fail_memory(error, sizeof *list.values);
    for (int32_t i = 0; i < count; i++) list.values[i].type = (int32_t)mr_output_dtype(node->inputs[first + i]);
    return mr_node_put_attr(node, list, error);
}

/* Deduces type and number attrs from the inputs, by group. The first argument with a type attr sets it; mr_node_resolve
 * then reports other arguments that differ. */
static mr_status deduce(building *made, mr_error *error)
{
    mr_node *node = &made->node;
    const mr_op_def *def = node->def;
    int32_t first = 0;
    if (made->group_count != def->input_count) return MR_OK;
    for (int32_t i = 0; i < def->input_count; i++) {
        const mr_op_argument *argument = &def->inputs[i];
        int32_t count = made->groups[i];
        if (argument->number_attr != nullptr && mr_attrs_find(&node->attrs, argument->number_attr) == nullptr)
            MR_TRY(
                mr_node_put_value(node, argument->number_attr, MR_ATTR_INT, (mr_attr_value){.integer = count}, error));
        if (argument->types_attr != nullptr)
            MR_TRY(deduce_types(node, argument->types_attr, first, count, error));
        else if (argument->type_attr != nullptr && count > 0)
            MR_TRY(deduce_type(node, argument->type_attr, mr_output_dtype(node->inputs[first]), error));
        first += count;
    }
    return MR_OK;
}

static bool is_input(const mr_node *node, const mr_node *candidate)
{
    for (int32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i].node == candidate) return true;
    return false;
}

/* Adds control edges from the enclosing frames: none for a frame that an input already runs inside, and none to a node
 * that is an input. */
static mr_status add_frame_controls(mr_node *node, mr_error *error)
{
    const mr_graph *graph = node->graph;
    int32_t outermost = graph->control_frame_count;
    while (outermost > 0 && !graph->control_frames[outermost - 1].clears) outermost--;
    for (int32_t i = outermost; i < graph->control_frame_count; i++) {
        const mr_control_frame *frame = &graph->control_frames[i];
        bool is_dominated = false;
        for (int32_t j = 0; j < node->input_count; j++) is_dominated |= node->inputs[j].node->id >= frame->first_id;
        for (int32_t j = 0; j < frame->count && !is_dominated; j++)
            if (!is_input(node, frame->nodes[j])) MR_TRY(mr_node_append_control(node, frame->nodes[j], error));
    }
    return MR_OK;
}

mr_output mr_node_finish(mr_node_builder *builder)
{
    if (builder == nullptr) return (mr_output){0};
    mr_node *node = builder->node;
    if (node == nullptr) return mr_graph_failed_output(builder->graph);
    mr_error error = {0};
    mr_status status = node->graph->is_finalized ? mr_fail(&error, MR_FAILED_PRECONDITION, "the graph is finalized")
                                                 : deduce((building *)node, &error);
    if (status == MR_OK) status = mr_node_resolve(node, &error);
    if (status == MR_OK) status = mr_node_place(node, &error);
    if (status == MR_OK) status = mr_node_override_gradient(node, &error);
    if (status == MR_OK) status = add_frame_controls(node, &error);
    if (status == MR_OK && node->graph->flow != nullptr) status = node->graph->flow->complete(node, &error);
    if (status == MR_OK) status = mr_node_infer(node, &error);
    if (status == MR_OK) status = mr_graph_append(builder->graph, node, &error);
    if (status != MR_OK) {
        fail(builder, status, &error);
        return mr_graph_failed_output(builder->graph);
    }
    builder->node = nullptr;
    return (mr_output){.node = node};
}
