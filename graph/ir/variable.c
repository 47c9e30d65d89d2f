/* Variables, built as by tf.compat.v1.Variable: NAME (VariableV2), NAME/Assign and NAME/read, where the latter two are
 * colocated with the first by the attr "_class". */
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

static mr_output make_ref(mr_graph *graph, mr_output initial, const char *name)
{
    mr_node_builder builder = mr_node_begin(graph, "VariableV2", name);
    mr_node_set_shape(&builder, "shape", mr_output_shape(initial));
    mr_node_set_dtype(&builder, "dtype", mr_output_dtype(initial));
    return mr_node_finish(&builder);
}

static mr_output make_assign(mr_graph *graph, mr_output ref, mr_output initial)
{
    mr_node_builder builder = mr_node_begin(graph, "Assign", nullptr);
    mr_node_add_input(&builder, ref);
    mr_node_add_input(&builder, initial);
    mr_node_set_bool(&builder, "use_locking", true);
    mr_node_set_bool(&builder, "validate_shape", mr_output_shape(initial).rank >= 0);
    return mr_node_finish(&builder);
}

static mr_output make_read(mr_graph *graph, mr_output ref)
{
    mr_node_builder builder = mr_node_begin(graph, "Identity", "read");
    mr_node_add_input(&builder, ref);
    if (builder.node != nullptr) colocate(&builder, ref.node);
    return mr_node_finish(&builder);
}

/* Variables are created outside of control scopes: their values may be read before the nodes of these scopes run. */
mr_variable mr_variable_new_(mr_graph *graph, const char *name, mr_output initial, const mr_variable_options *given)
{
    static const mr_variable_options defaults = {.size = sizeof defaults, MR_VARIABLE_DEFAULTS};
    mr_variable_options options;
    mr_error error = {0};
    mr_output failed = mr_graph_failed_output(graph);
    mr_variable variable = {.ref = failed, .value = failed, .initializer = failed.node, .initial_value = failed};
    if (graph == nullptr || graph->status != MR_OK) return variable;
    mr_status status = MR_OPTIONS_READ(mr_variable_options, &options, given != nullptr ? given : &defaults, &error);
    if (status != MR_OK) {
        mr_graph_record(graph, status, &error);
        return variable;
    }
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    mr_graph_push_scope(graph, name != nullptr ? name : "Variable");
    const char *own = mr_arena_printf(&graph->arena, "%s/", mr_graph_scope(graph));
    if (own != nullptr && graph->status == MR_OK) {
        variable.initial_value = initial;
        variable.ref = make_ref(graph, initial, own);
        variable.initializer = make_assign(graph, variable.ref, initial).node;
        variable.value = make_read(graph, variable.ref);
    }
    mr_graph_pop_scope(graph);
    mr_graph_pop_control_dependencies(graph);
    if (graph->status != MR_OK) return variable;
    const char *collection = options.local ? MR_LOCAL_VARIABLES : MR_GLOBAL_VARIABLES;
    bool trainable = options.trainable && !options.local;
    status = mr_graph_add_variable(graph, collection, variable, trainable, (mr_string){0}, &error);
    if (status == MR_OK && trainable)
        status = mr_graph_add_variable(graph, MR_TRAINABLE_VARIABLES, variable, trainable, (mr_string){0}, &error);
    if (status != MR_OK) mr_graph_record(graph, status, &error);
    return variable;
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
