/* Variables, built as by tf.compat.v1.Variable: NAME (VariableV2), NAME/Assign and NAME/read, where the latter two are
 * colocated with the first by the attr "_class"; resource variables: NAME (VarHandleOp),
 * NAME/IsInitialized/VarIsInitializedOp, NAME/Assign and NAME/Read/ReadVariableOp. */
#include "base/options.h"
#include "graph/ir/graph.h"

#include <string.h>

/* Colocates the node with the variable: loc:@NAME. */
static void colocate(mr_node_builder *builder, const mr_node *variable)
{
    const char *location = mr_arena_printf(&builder->graph->arena, "loc:@%s", variable->name);
    if (location == nullptr) return;
    mr_node_set_strings(builder, "_class", MR_STRINGS(mr_string_from(location)));
    mr_node_set_device(builder, variable->device);
}

/* ---- The nodes ---- */

typedef struct parts {
    const char *name; /* "SCOPE/w/": the variable's own */
    mr_output initial;
    mr_dtype dtype;
    mr_shape shape;
    const mr_variable_options *options;
} parts;

static mr_output make_ref(mr_graph *graph, const parts *p)
{
    mr_node_builder builder = mr_node_begin(graph, p->options->use_resource ? "VarHandleOp" : "VariableV2", p->name);
    mr_node_set_shape(&builder, "shape", p->shape);
    mr_node_set_dtype(&builder, "dtype", p->dtype);
    if (p->options->use_resource && builder.node != nullptr)
        mr_node_set_string(&builder, "shared_name", mr_graph_scope(graph));
    return mr_node_finish(&builder);
}

static mr_output make_assign(mr_graph *graph, mr_output ref, const parts *p)
{
    mr_node_builder builder = mr_node_begin(graph, p->options->use_resource ? "AssignVariableOp" : "Assign", "Assign");
    mr_node_add_input(&builder, ref);
    mr_node_add_input(&builder, p->initial);
    bool validates = !p->options->any_shape && mr_output_shape(p->initial).rank >= 0;
    if (!p->options->use_resource) mr_node_set_bool(&builder, "use_locking", true);
    if (!p->options->use_resource || !validates) mr_node_set_bool(&builder, "validate_shape", validates);
    return mr_node_finish(&builder);
}

static mr_output make_read(mr_graph *graph, mr_output ref, const parts *p)
{
    bool is_resource = p->options->use_resource;
    mr_node_builder builder =
        mr_node_begin(graph, is_resource ? "ReadVariableOp" : "Identity", is_resource ? "Read/ReadVariableOp" : "read");
    mr_node_add_input(&builder, ref);
    if (is_resource) mr_node_set_dtype(&builder, "dtype", p->dtype);
    if (builder.node != nullptr && p->options->caching_device != nullptr)
        mr_node_set_device(&builder, p->options->caching_device);
    else if (builder.node != nullptr && !is_resource)
        colocate(&builder, ref.node);
    return mr_node_finish(&builder);
}

static void make_is_initialized(mr_graph *graph, mr_output handle)
{
    mr_node_builder builder = mr_node_begin(graph, "VarIsInitializedOp", "IsInitialized/VarIsInitializedOp");
    mr_node_add_input(&builder, handle);
    (void)mr_node_finish(&builder);
}

/* ---- The variable ---- */

static bool is_named(const mr_names *names, const char *name)
{
    for (int32_t i = 0; i < names->count; i++)
        if (names->items[i] != nullptr && strcmp(names->items[i], name) == 0) return true;
    return false;
}

/* Adds the variable to its collections, "trainable_variables" last. */
static void collect(mr_graph *graph, mr_variable variable, const mr_variable_options *options, mr_string slice)
{
    mr_names names = options->collections;
    if (names.count == 0) names = options->local ? MR_NAMES(MR_LOCAL_VARIABLES) : MR_NAMES(MR_GLOBAL_VARIABLES);
    bool trainable = options->trainable && !options->local;
    mr_error error = {0};
    mr_status status = MR_OK;
    for (int32_t i = 0; i < names.count && status == MR_OK; i++) {
        if (names.items[i] != nullptr && mr_collection_holds_variables(names.items[i]))
            status = mr_graph_add_variable(graph, names.items[i], variable, trainable, slice, &error);
        else
            mr_graph_add_to_collection(graph, names.items[i], variable.ref);
    }
    if (status == MR_OK && trainable && !is_named(&names, MR_TRAINABLE_VARIABLES))
        status = mr_graph_add_variable(graph, MR_TRAINABLE_VARIABLES, variable, trainable, slice, &error);
    if (status != MR_OK) mr_graph_record(graph, status, &error);
}

static void constrain(mr_graph *graph, const mr_node *ref, mr_constraint constraint)
{
    mr_constrained *all = mr_graph_grow(graph, graph->constrained, graph->constrained_count, sizeof *all);
    if (all == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a constraint");
        return;
    }
    graph->constrained = all;
    all[graph->constrained_count++] = (mr_constrained){ref, constraint};
}

mr_constraint mr_variable_constraint(const mr_graph *graph, const mr_node *ref)
{
    for (int32_t i = 0; i < graph->constrained_count; i++)
        if (graph->constrained[i].ref == ref) return graph->constrained[i].constraint;
    return nullptr;
}

static mr_output given_value(mr_graph *graph, const void *context)
{
    (void)graph;
    return *(const mr_output *)context;
}

/* Variables are created outside of control scopes: their values may be read before the nodes of these scopes run. */
mr_variable mr_variable_build(mr_graph *graph, const char *name, mr_initial_function initial, const void *context,
                              const mr_variable_options *options, mr_string slice)
{
    mr_output failed = mr_graph_failed_output(graph);
    mr_variable variable = {.ref = failed, .value = failed, .initializer = failed.node, .initial_value = failed};
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    mr_graph_push_scope(graph, name != nullptr ? name : "Variable");
    parts p = {.name = mr_arena_printf(&graph->arena, "%s/", mr_graph_scope(graph)), .options = options};
    if (p.name == nullptr) (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a variable");
    if (graph->status == MR_OK) {
        if (initial != given_value) mr_graph_push_scope(graph, "Initializer");
        p.initial = initial(graph, context);
        if (initial != given_value) mr_graph_pop_scope(graph);
        p.dtype = mr_output_dtype(p.initial);
        p.shape = options->any_shape ? MR_SHAPE_UNKNOWN : mr_output_shape(p.initial);
        variable.initial_value = p.initial;
        variable.ref = make_ref(graph, &p);
        if (options->use_resource) make_is_initialized(graph, variable.ref);
        variable.initializer = make_assign(graph, variable.ref, &p).node;
        variable.value = make_read(graph, variable.ref, &p);
    }
    mr_graph_pop_scope(graph);
    mr_graph_pop_control_dependencies(graph);
    if (graph->status == MR_OK) collect(graph, variable, options, slice);
    if (graph->status == MR_OK && options->constraint != nullptr)
        constrain(graph, variable.ref.node, options->constraint);
    return variable;
}

mr_variable mr_variable_new_(mr_graph *graph, const char *name, mr_output initial, const mr_variable_options *given)
{
    static const mr_variable_options defaults = {.size = sizeof defaults, MR_VARIABLE_DEFAULTS};
    mr_variable_options options;
    mr_error error = {0};
    mr_output failed = mr_graph_failed_output(graph);
    mr_variable variable = {.ref = failed, .value = failed, .initializer = failed.node, .initial_value = failed};
    if (graph == nullptr || graph->status != MR_OK) return variable;
    mr_status status = MR_OPTIONS_READ(mr_variable_options, &options, given != nullptr ? given : &defaults, &error);
    if (status == MR_OK && options.local && options.collections.count > 0)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "variable %s: local has no effect with collections",
                         name != nullptr ? name : "Variable");
    if (status != MR_OK) {
        mr_graph_record(graph, status, &error);
        return variable;
    }
    return mr_variable_build(graph, name, given_value, &initial, &options, (mr_string){0});
}

mr_node *mr_group(mr_graph *graph, mr_node *const *nodes, int32_t count, const char *name)
{
    if (count < 0 || (nodes == nullptr && count > 0))
        return graph == nullptr ? nullptr
                                : mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_group: %d nodes at %s", count,
                                                nodes == nullptr ? "null" : "an address")
                                      .node;
    mr_node_builder builder = mr_node_begin(graph, "NoOp", name != nullptr ? name : "group_deps");
    for (int32_t i = 0; i < count; i++) mr_node_add_control_input(&builder, nodes[i]);
    return mr_node_finish(&builder).node;
}

mr_node *mr_initialize_variables(mr_graph *graph, const char *collection, const char *name)
{
    mr_node_builder builder = mr_node_begin(graph, "NoOp", name != nullptr ? name : "init");
    int32_t count = graph == nullptr ? 0 : mr_graph_variable_count(graph, collection);
    for (int32_t i = 0; i < count; i++)
        mr_node_add_control_input(&builder, mr_graph_variable(graph, collection, i).initializer);
    return mr_node_finish(&builder).node;
}
