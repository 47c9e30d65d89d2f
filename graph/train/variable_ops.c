/* What programs do with a variable, the same for references and resources. Nodes have the names that the methods of
 * tf.Variable and tf.ResourceVariable give them. */
#include "base/options.h"
#include "graph/train/variable_store.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool mr_variable_is_resource(mr_variable variable)
{
    return variable.ref.node != nullptr && mr_output_dtype(variable.ref) == MR_RESOURCE;
}

mr_dtype mr_variable_dtype_of(mr_variable variable)
{
    mr_output source =
        mr_variable_is_resource(variable) || variable.ref.node == nullptr ? variable.value : variable.ref;
    return source.node != nullptr ? mr_output_dtype(source) : MR_DTYPE_INVALID;
}

mr_shape mr_variable_shape_of(mr_variable variable)
{
    mr_output source =
        mr_variable_is_resource(variable) || variable.ref.node == nullptr ? variable.value : variable.ref;
    return source.node != nullptr ? mr_output_shape(source) : MR_SHAPE_UNKNOWN;
}

/* Records an error unless the variable has a reference or a handle: a partitioned one does not. */
static bool check_ref(mr_graph *graph, mr_variable variable, const char *what)
{
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (variable.ref.node != nullptr) return true;
    const char *name = variable.value.node != nullptr ? mr_node_name(variable.value.node) : "";
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "%s: %s is no single variable; apply it to each of mr_variable_parts", what,
                        *name != '\0' ? name : "the variable");
    return false;
}

mr_output mr_variable_read_value(mr_graph *graph, mr_variable variable)
{
    if (graph == nullptr) return (mr_output){0};
    if (variable.ref.node == nullptr && variable.value.node != nullptr) return mr_identity(graph, variable.value);
    if (!check_ref(graph, variable, "mr_variable_read_value")) return mr_graph_failed_output(graph);
    if (!mr_variable_is_resource(variable)) return mr_identity(graph, variable.ref);
    return mr_read_variable_op(graph, variable.ref, mr_variable_dtype_of(variable));
}

/* ---- Updates ---- */

/* The value after an update of a resource variable. */
static mr_output read_after(mr_graph *graph, mr_variable variable, mr_node *update)
{
    mr_graph_push_control_dependencies(graph, &update, 1);
    mr_output value = mr_read_variable_op(graph, variable.ref, mr_variable_dtype_of(variable));
    mr_graph_pop_control_dependencies(graph);
    return value;
}

/* One of the three updates of a complete variable. */
typedef struct assignment {
    const char *function, *op, *resource_op;
} assignment;
static const assignment assigning = {"mr_variable_assign", "Assign", "AssignVariableOp"};
static const assignment adding = {"mr_variable_assign_add", "AssignAdd", "AssignAddVariableOp"};
static const assignment subtracting = {"mr_variable_assign_sub", "AssignSub", "AssignSubVariableOp"};

static mr_output assign(mr_graph *graph, const assignment *how, mr_variable variable, mr_output value,
                        const mr_variable_assign_options *given)
{
    mr_variable_assign_options o;
    mr_error error = {0};
    if (!check_ref(graph, variable, how->function)) return mr_graph_failed_output(graph);
    const bool is_resource = mr_variable_is_resource(variable);
    mr_status status = MR_OPTIONS_READ(mr_variable_assign_options, &o, given, &error);
    if (status == MR_OK && o.use_locking && is_resource)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "use_locking has no effect on a resource variable");
    if (status != MR_OK) return mr_graph_fail(graph, status, "%s_with: %s", how->function, error.message);
    mr_node_builder builder = mr_node_begin(graph, is_resource ? how->resource_op : how->op, o.name);
    mr_node_add_input(&builder, variable.ref);
    mr_node_add_input(&builder, value);
    if (!is_resource && given != nullptr) mr_node_set_bool(&builder, "use_locking", o.use_locking);
    const mr_output update = mr_node_finish(&builder);
    return is_resource ? read_after(graph, variable, update.node) : update;
}

mr_output mr_variable_assign_with(mr_graph *graph, mr_variable variable, mr_output value,
                                  const mr_variable_assign_options *options)
{
    return assign(graph, &assigning, variable, value, options);
}

mr_output mr_variable_assign_add_with(mr_graph *graph, mr_variable variable, mr_output value,
                                      const mr_variable_assign_options *options)
{
    return assign(graph, &adding, variable, value, options);
}

mr_output mr_variable_assign_sub_with(mr_graph *graph, mr_variable variable, mr_output value,
                                      const mr_variable_assign_options *options)
{
    return assign(graph, &subtracting, variable, value, options);
}

mr_output mr_variable_assign(mr_graph *graph, mr_variable variable, mr_output value)
{
    return assign(graph, &assigning, variable, value, nullptr);
}

mr_output mr_variable_assign_add(mr_graph *graph, mr_variable variable, mr_output value)
{
    return assign(graph, &adding, variable, value, nullptr);
}

mr_output mr_variable_assign_sub(mr_graph *graph, mr_variable variable, mr_output value)
{
    return assign(graph, &subtracting, variable, value, nullptr);
}

mr_output mr_variable_scatter(mr_graph *graph, mr_variable variable, mr_scatter_kind kind, mr_output indices,
                              mr_output updates)
{
    static const char *const names[] = {"Update", "Add", "Sub", "Mul", "Div", "Min", "Max"};
    if (!check_ref(graph, variable, "mr_variable_scatter")) return mr_graph_failed_output(graph);
    if ((unsigned)kind > MR_SCATTER_MAX)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_variable_scatter: unknown kind %d", (int)kind);
    bool is_resource = mr_variable_is_resource(variable);
    const char *op = mr_arena_printf(&graph->arena, "%sScatter%s", is_resource ? "Resource" : "", names[kind]);
    if (op == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a name");
    mr_node_builder builder = mr_node_begin(graph, op, nullptr);
    mr_node_add_input(&builder, variable.ref);
    mr_node_add_input(&builder, indices);
    mr_node_add_input(&builder, updates);
    if (is_resource) mr_node_set_dtype(&builder, "dtype", mr_variable_dtype_of(variable));
    mr_output update = mr_node_finish(&builder);
    return is_resource ? read_after(graph, variable, update.node) : update;
}

mr_output mr_variable_count_up_to(mr_graph *graph, mr_variable variable, int64_t limit)
{
    if (!check_ref(graph, variable, "mr_variable_count_up_to")) return mr_graph_failed_output(graph);
    if (mr_variable_is_resource(variable))
        return mr_resource_count_up_to(graph, variable.ref, mr_variable_dtype_of(variable), .limit = limit);
    return mr_count_up_to(graph, variable.ref, .limit = limit);
}

/* ---- Initialization ---- */

mr_output mr_variable_is_initialized(mr_graph *graph, mr_variable variable)
{
    if (!check_ref(graph, variable, "mr_variable_is_initialized")) return mr_graph_failed_output(graph);
    if (mr_variable_is_resource(variable)) return mr_var_is_initialized_op(graph, variable.ref);
    return mr_is_variable_initialized(graph, variable.ref);
}

mr_output mr_variable_initialized_value(mr_graph *graph, mr_variable variable)
{
    if (!check_ref(graph, variable, "mr_variable_initialized_value")) return mr_graph_failed_output(graph);
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    mr_output value = mr_graph_failed_output(graph);
    mr_cond *cond = mr_cond_begin(graph, mr_variable_is_initialized(graph, variable));
    mr_cond_else(cond, MR_OUTPUTS(mr_variable_read_value(graph, variable)));
    mr_cond_end(cond, MR_OUTPUTS(variable.initial_value), &value);
    mr_graph_pop_control_dependencies(graph);
    return value;
}

/* The given variables, or all global and local ones. Null, with count -1, after an error. */
static mr_variables settle_variables(mr_graph *graph, mr_variables given)
{
    static const char *const lists[] = {MR_GLOBAL_VARIABLES, MR_LOCAL_VARIABLES};
    if (given.count > 0 && given.items != nullptr) return given;
    int32_t count = mr_graph_variable_count(graph, lists[0]) + mr_graph_variable_count(graph, lists[1]);
    mr_variable *all = MR_ARENA_NEW(&graph->arena, mr_variable, (size_t)count + 1);
    if (all == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for %d variables", count);
        return (mr_variables){nullptr, -1};
    }
    int32_t at = 0;
    for (size_t list = 0; list < 2; list++)
        for (int32_t i = 0; i < mr_graph_variable_count(graph, lists[list]); i++)
            all[at++] = mr_graph_variable(graph, lists[list], i);
    return (mr_variables){all, at};
}

static mr_output names_of(mr_graph *graph, mr_variables variables, const char *name)
{
    mr_string *names = MR_ARENA_NEW(&graph->arena, mr_string, (size_t)variables.count + 1);
    if (names == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for names of variables");
    for (int32_t i = 0; i < variables.count; i++)
        names[i] =
            mr_string_from(variables.items[i].ref.node != nullptr ? mr_node_name(variables.items[i].ref.node) : "");
    mr_tensor tensor = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init_strings(&tensor, MR_SHAPE(variables.count), names, &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    mr_output constant = mr_constant(graph, &tensor, name);
    mr_tensor_deinit(&tensor);
    return constant;
}

/* The elements of `values` whose mask is true (tf.boolean_mask of vectors). */
static mr_output mask_vector(mr_graph *graph, mr_output values, mr_output mask)
{
    mr_graph_push_scope(graph, "boolean_mask");
    mr_output where = mr_where(graph, mask, .name = "Where");
    mr_output indices = mr_squeeze(graph, where, .squeeze_dims = MR_INTS(1), .name = "Squeeze");
    mr_output axis = mr_constant_int32s(graph, MR_SCALAR, (int32_t[]){0}, "GatherV2/axis");
    mr_output kept = mr_gather_v2(graph, values, indices, axis, .name = "GatherV2");
    mr_graph_pop_scope(graph);
    return kept;
}

mr_output mr_report_uninitialized_variables(mr_graph *graph, mr_variables given, const char *name)
{
    if (graph == nullptr) return (mr_output){0};
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    mr_variables variables = settle_variables(graph, given);
    mr_output *ready =
        variables.count < 0 ? nullptr : MR_ARENA_NEW(&graph->arena, mr_output, (size_t)variables.count + 1);
    if (ready == nullptr) return mr_graph_failed_output(graph);
    mr_graph_push_scope(graph, name != nullptr ? name : "report_uninitialized_variables");
    mr_output result;
    if (variables.count == 0) {
        result = names_of(graph, variables, "Const");
    } else {
        for (int32_t i = 0; i < variables.count; i++) ready[i] = mr_variable_is_initialized(graph, variables.items[i]);
        mr_output mask = mr_logical_not(graph, mr_pack(graph, MR_OUTPUTS_OF(ready, variables.count), .name = "stack"));
        result = mask_vector(graph, names_of(graph, variables, "Const"), mask);
    }
    mr_graph_pop_scope(graph);
    return result;
}

mr_output mr_assert_variables_initialized(mr_graph *graph, mr_variables given)
{
    if (graph == nullptr) return (mr_output){0};
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    mr_variables variables = settle_variables(graph, given);
    if (variables.count <= 0) return mr_graph_failed_output(graph);
    mr_node **reads = MR_ARENA_NEW(&graph->arena, mr_node *, (size_t)variables.count);
    int32_t *ranks = MR_ARENA_NEW(&graph->arena, int32_t, (size_t)variables.count);
    if (reads == nullptr || ranks == nullptr)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for ranks of variables");
    /* The ranks are known; what matters is that each variable is read. */
    for (int32_t i = 0; i < variables.count; i++) {
        mr_output value = mr_variable_read_value(graph, variables.items[i]);
        reads[i] = value.node;
        ranks[i] = mr_output_shape(value).rank;
    }
    mr_graph_push_control_dependencies(graph, reads, variables.count);
    mr_output result = mr_constant_int32s(graph, MR_SHAPE(variables.count), ranks, "stack");
    mr_graph_pop_control_dependencies(graph);
    return result;
}

mr_node *mr_variables_initializer(mr_graph *graph, mr_variables variables, const char *name)
{
    mr_node_builder builder = mr_node_begin(graph, "NoOp", name != nullptr ? name : "init");
    for (int32_t i = 0; i < variables.count && variables.items != nullptr; i++) {
        mr_variables parts = mr_variable_parts(graph, variables.items[i]);
        for (int32_t j = 0; j < parts.count; j++)
            mr_node_add_control_input(&builder, mr_variable_initializer_of(graph, parts.items[j]));
    }
    return mr_node_finish(&builder).node;
}
