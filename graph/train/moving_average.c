/* Moving averages of variables and of other values, as tf.train.ExponentialMovingAverage. */
#include "base/options.h"
#include "graph/train/optimizer_wrapper.h"
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

#include <assert.h>
#include <math.h>

#define DEFAULT_NAME "ExponentialMovingAverage"

static mr_variable average_new(mr_graph *graph, mr_variable variable, const char *name)
{
    const char *own = mr_arena_printf(&graph->arena, "%s/%s", mr_node_name(variable.ref.node), name);
    struct mr_flow_context *before = mr_optimizer_lift(graph);
    mr_graph_push_scope(graph, "");
    mr_variable average = mr_variable_new(graph, own != nullptr ? own : name, variable.initial_value,
                                          .trainable = false, .use_resource = mr_variable_is_resource(variable));
    mr_graph_pop_scope(graph);
    mr_optimizer_lift_end(graph, before);
    return average;
}

/* min(decay, (1 + n) / (10 + n)) */
static mr_output decay_of(mr_graph *graph, const mr_moving_average_options *options)
{
    mr_output decay = mr_train_float(graph, "decay", options->decay), n = options->num_updates;
    if (n.node == nullptr) return decay;
    if (mr_output_dtype(n) != MR_FLOAT) n = mr_cast(graph, n, MR_FLOAT);
    mr_output above = mr_add_v2(graph, mr_constant_float(graph, 1), n);
    return mr_minimum(graph, decay, mr_real_div(graph, above, mr_add_v2(graph, mr_constant_float(graph, 10), n)));
}

/* Reads the options. Records an error and returns false if they are not valid. */
static bool read_options(mr_graph *graph, const mr_moving_average_options *given, bool has_items,
                         mr_moving_average_options *options)
{
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_moving_average_options, options, given, &error);
    if (status == MR_OK && !has_items)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "a moving average needs variables or outputs");
    if (status == MR_OK && options->name != nullptr && *options->name == '\0')
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "the name of a moving average is empty");
    if (status == MR_OK && isnan(options->decay))
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "the option decay of a moving average is required");
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    if (status != MR_OK || mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (options->name == nullptr) options->name = DEFAULT_NAME;
    mr_graph_push_scope(graph, options->name);
    const bool is_valid = mr_train_check_range(graph, "decay", options->decay, 0, 1, false);
    mr_graph_pop_scope(graph);
    return is_valid;
}

/* variable -= (variable - value) * share. Returns the variable's value after that. */
static mr_output move(mr_graph *graph, mr_variable variable, mr_output value, mr_output share)
{
    mr_output old = variable.value;
    if (mr_variable_is_resource(variable)) old = mr_variable_read_value(graph, variable);
    return mr_variable_assign_sub(graph, variable, mr_mul(graph, mr_sub(graph, old, value), share));
}

static mr_output in_dtype(mr_graph *graph, mr_output number, mr_dtype dtype)
{
    return mr_output_dtype(number) == dtype ? number : mr_cast(graph, number, dtype);
}

/* The averages after an error, which later builders pass on. */
static void set_failed(mr_graph *graph, mr_variable *averages, int32_t count)
{
    const mr_output failed = mr_graph_failed_output(graph);
    for (int32_t i = 0; averages != nullptr && i < count; i++)
        averages[i] = (mr_variable){failed, failed, failed.node, failed};
}

/* The first place of variables[index] in the list: a variable that is there twice has one average, updated twice. */
static int32_t first_of(const mr_variable *variables, int32_t index)
{
    int32_t first = 0;
    while (variables[first].ref.node != variables[index].ref.node) first++;
    assert(first <= index);
    return first;
}

static bool check_variable(mr_graph *graph, mr_variable variable)
{
    if (variable.ref.node == nullptr || variable.ref.node->id < 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "a moving average of what is not a variable");
    else if (mr_node_graph(variable.ref.node) != graph)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "a moving average of the variable %s, which is in another graph",
                            mr_node_name(variable.ref.node));
    else if (!mr_train_is_floating(mr_variable_dtype_of(variable)))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "a moving average of the variable %s, which is %s, not floating point",
                            mr_node_name(variable.ref.node), mr_dtype_name(mr_variable_dtype_of(variable)));
    return mr_graph_status(graph, nullptr) == MR_OK;
}

mr_node *mr_moving_average_(mr_graph *graph, const mr_variable *variables, int32_t count, mr_variable *averages,
                            const mr_moving_average_options *given)
{
    mr_moving_average_options options;
    mr_error error = {0};
    if (graph == nullptr) return nullptr;
    mr_node *failed = mr_graph_failed_output(graph).node;
    if (variables != nullptr) set_failed(graph, averages, count);
    if (!read_options(graph, given, count > 0 && variables != nullptr, &options) || variables == nullptr) return failed;
    if (options.zero_debias)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "zero_debias has no effect: the averages of variables begin with their initial values")
            .node;
    for (int32_t i = 0; i < count; i++)
        if (!check_variable(graph, variables[i])) return failed;
    mr_variable *made = MR_ARENA_NEW(&graph->arena, mr_variable, (size_t)count);
    mr_node **updates = MR_ARENA_NEW(&graph->arena, mr_node *, (size_t)count);
    if (made == nullptr || updates == nullptr)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for moving averages").node;
    for (int32_t i = 0; i < count; i++) {
        const int32_t first = first_of(variables, i);
        made[i] = first < i ? made[first] : average_new(graph, variables[i], options.name);
    }
    mr_graph_push_scope(graph, options.name);
    mr_output share = mr_sub(graph, mr_constant_float(graph, 1), decay_of(graph, &options));
    for (int32_t i = 0; i < count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        mr_graph_push_scope(graph, "AssignMovingAvg");
        const mr_output factor = in_dtype(graph, share, mr_output_dtype(made[i].value));
        /* Read here, where the control scope may order it after an update. */
        const mr_output value = mr_variable_read_value(graph, variables[i]);
        assert(mr_output_dtype(factor) == mr_output_dtype(made[i].value));
        updates[i] = move(graph, made[i], value, factor).node;
        mr_graph_pop_scope(graph);
        if (averages != nullptr) averages[i] = made[i];
    }
    const char *own = mr_train_own_name(graph);
    mr_node *all = mr_graph_status(graph, nullptr) == MR_OK ? mr_group(graph, updates, count, own) : failed;
    mr_graph_pop_scope(graph);
    for (int32_t i = 0; i < count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        if (first_of(variables, i) < i) continue;
        const mr_status status =
            mr_graph_add_variable(graph, MR_MOVING_AVERAGE_VARIABLES, variables[i], true, (mr_string){0}, &error);
        if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    }
    return mr_graph_status(graph, nullptr) == MR_OK ? all : failed;
}

/* ---- Of values that are not variables ---- */

/* Zeros of the shape and the dtype of `like`. */
static mr_variable zeros_new(mr_graph *graph, const char *name, mr_output like)
{
    struct mr_flow_context *before = mr_optimizer_lift(graph);
    mr_graph_push_scope(graph, "");
    mr_variable made =
        mr_train_slot(graph, name, (mr_variable){.value = like}, (mr_initializer){.kind = MR_INIT_ZEROS});
    mr_graph_pop_scope(graph);
    mr_optimizer_lift_end(graph, before);
    return made;
}

/* The variable "OWNER/name". */
static mr_variable part_new(mr_graph *graph, const mr_node *owner, const char *name, mr_output like)
{
    const char *full = mr_arena_printf(&graph->arena, "%s/%s", mr_node_name(owner), name);
    if (full == nullptr) (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for moving averages");
    return full != nullptr ? zeros_new(graph, full, like) : (mr_variable){0};
}

/* Of n values with the weight `share` each, the zeros at the beginning have the weight (1 - share) ^ n. */
static mr_output move_without_bias(mr_graph *graph, mr_variable average, mr_output value, mr_output share)
{
    const mr_output one = mr_train_scalar(graph, nullptr, mr_output_dtype(share), 1);
    const mr_variable biased = part_new(graph, average.ref.node, "biased", value);
    const mr_variable count = part_new(graph, average.ref.node, "local_step", share);
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    const mr_output sum = move(graph, biased, value, share);
    const mr_output n = mr_variable_assign_add(graph, count, one);
    const mr_output weight = mr_sub(graph, one, mr_pow(graph, mr_sub(graph, one, share), n));
    return mr_variable_assign(graph, average, mr_real_div(graph, sum, weight));
}

static bool check_output(mr_graph *graph, mr_output output, int32_t index)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (output.node == nullptr || mr_node_graph(output.node) != graph || output.node->id < 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "a moving average: output %d is not one of the graph",
                            (int)index);
    else if (!mr_train_is_floating(mr_output_dtype(output)))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "a moving average of %s, which is %s, not floating point",
                            mr_node_name(output.node), mr_dtype_name(mr_output_dtype(output)));
    else if (mr_shape_count(mr_output_shape(output)) < 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "a moving average of %s, whose shape %s is not known",
                            mr_node_name(output.node), mr_shape_text(mr_output_shape(output), text, sizeof text));
    return mr_graph_status(graph, nullptr) == MR_OK;
}

mr_node *mr_moving_average_of_(mr_graph *graph, mr_outputs outputs, mr_variable *averages,
                               const mr_moving_average_options *given)
{
    mr_moving_average_options options;
    const int32_t count = outputs.count;
    if (graph == nullptr) return nullptr;
    mr_node *failed = mr_graph_failed_output(graph).node;
    if (outputs.items != nullptr) set_failed(graph, averages, count);
    if (!read_options(graph, given, count > 0 && outputs.items != nullptr, &options) || outputs.items == nullptr)
        return failed;
    for (int32_t i = 0; i < count; i++)
        if (!check_output(graph, outputs.items[i], i)) return failed;
    mr_variable *made = MR_ARENA_NEW(&graph->arena, mr_variable, (size_t)count);
    mr_node **updates = MR_ARENA_NEW(&graph->arena, mr_node *, (size_t)count);
    if (made == nullptr || updates == nullptr)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for moving averages").node;
    for (int32_t i = 0; i < count; i++)
        made[i] = part_new(graph, outputs.items[i].node, options.name, outputs.items[i]);
    mr_graph_push_scope(graph, options.name);
    mr_output share = mr_sub(graph, mr_constant_float(graph, 1), decay_of(graph, &options));
    for (int32_t i = 0; i < count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        mr_graph_push_scope(graph, "AssignMovingAvg");
        const mr_output value = outputs.items[i], factor = in_dtype(graph, share, mr_output_dtype(value));
        updates[i] = options.zero_debias ? move_without_bias(graph, made[i], value, factor).node
                                         : move(graph, made[i], value, factor).node;
        mr_graph_pop_scope(graph);
        if (averages != nullptr) averages[i] = made[i];
    }
    const char *own = mr_train_own_name(graph);
    mr_node *all = mr_graph_status(graph, nullptr) == MR_OK ? mr_group(graph, updates, count, own) : failed;
    mr_graph_pop_scope(graph);
    return mr_graph_status(graph, nullptr) == MR_OK ? all : failed;
}

/* ---- Restoring ---- */

typedef struct to_restore {
    mr_graph *graph;
    mr_output *variables;
    const char **keys;
    int32_t count;
    mr_name_table names; /* of variables -> index */
    mr_name_table taken; /* keys -> index */
} to_restore;

/* Adds a variable unless it, or its key, is in the list. */
static mr_status add_variable(to_restore *list, mr_variable variable, const char *suffix, mr_error *error)
{
    if (variable.ref.node == nullptr) return MR_OK;
    const char *name = mr_node_name(variable.ref.node), *key = name;
    if (suffix != nullptr) key = mr_arena_printf(&list->graph->arena, "%s/%s", name, suffix);
    if (key == nullptr) return mr_fail_memory(error, 1);
    if (mr_name_table_get(&list->names, name, -1) >= 0 || mr_name_table_get(&list->taken, key, -1) >= 0) return MR_OK;
    list->variables[list->count] = variable.ref;
    list->keys[list->count] = key;
    MR_TRY(mr_name_table_set(&list->names, name, list->count, error));
    return mr_name_table_set(&list->taken, key, list->count++, error);
}

static mr_status add_collection(to_restore *list, const char *collection, const char *suffix, mr_error *error)
{
    const int32_t count = mr_graph_variable_count(list->graph, collection);
    for (int32_t i = 0; i < count; i++)
        MR_TRY(add_variable(list, mr_graph_variable(list->graph, collection, i), suffix, error));
    return MR_OK;
}

static mr_status fill(to_restore *list, const char *name, mr_error *error)
{
    mr_graph *graph = list->graph;
    const size_t count = (size_t)mr_graph_variable_count(graph, MR_TRAINABLE_VARIABLES) +
                         (size_t)mr_graph_variable_count(graph, MR_MOVING_AVERAGE_VARIABLES) +
                         (size_t)mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES);
    if (*name == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "variables_to_restore: the name of the averages is empty");
    list->variables = MR_ARENA_NEW(&graph->arena, mr_output, count + 1);
    list->keys = MR_ARENA_NEW(&graph->arena, const char *, count + 1);
    if (list->variables == nullptr || list->keys == nullptr) return mr_fail_memory(error, count);
    MR_TRY(add_collection(list, MR_TRAINABLE_VARIABLES, name, error));
    MR_TRY(add_collection(list, MR_MOVING_AVERAGE_VARIABLES, name, error));
    MR_TRY(add_collection(list, MR_GLOBAL_VARIABLES, nullptr, error));
    assert((size_t)list->count <= count);
    return MR_OK;
}

mr_variables_to_restore mr_moving_average_variables_to_restore(mr_graph *graph, const char *name)
{
    mr_error error = {0};
    to_restore list = {.graph = graph};
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return (mr_variables_to_restore){0};
    const mr_status status = fill(&list, name != nullptr ? name : DEFAULT_NAME, &error);
    mr_name_table_deinit(&list.names);
    mr_name_table_deinit(&list.taken);
    if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    if (status != MR_OK) return (mr_variables_to_restore){0};
    return (mr_variables_to_restore){list.variables, list.keys, list.count};
}
