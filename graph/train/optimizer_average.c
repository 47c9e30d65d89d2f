/* An optimizer that keeps averages of what it trains, as tf.contrib.opt.MovingAverageOptimizer. */
#include "base/options.h"
#include "graph/train/optimizer_wrapper.h"
#include <millrace/ops.h>

#include <math.h>
#include <string.h>

typedef struct averaging {
    mr_optimizer_wrapper base;
    float decay;
    mr_output num_updates;
    bool is_sequential;
    mr_variable *variables, *averages; /* null: not applied yet */
    int32_t count;
} averaging;

static mr_node *update_averages(averaging *a, mr_node *train)
{
    mr_graph *graph = a->base.graph;
    if (a->is_sequential) mr_graph_push_control_dependencies(graph, &train, 1);
    mr_node *update =
        mr_moving_average(graph, a->variables, a->count, a->averages, .decay = a->decay, .num_updates = a->num_updates);
    if (a->is_sequential) mr_graph_pop_control_dependencies(graph);
    return update;
}

static mr_node *apply(mr_optimizer_wrapper *wrapper, mr_gradients_and_variables list, mr_output global_step,
                      bool run_update_ops)
{
    averaging *a = (averaging *)wrapper;
    mr_graph *graph = wrapper->graph;
    mr_node *failed = mr_graph_failed_output(graph).node;
    mr_node *train = mr_optimizer_apply(graph, &wrapper->inner, list, global_step, run_update_ops);
    if (mr_graph_status(graph, nullptr) != MR_OK) return failed;
    if (a->variables != nullptr)
        return mr_graph_fail(graph, MR_FAILED_PRECONDITION, "%s: the optimizer has been applied already",
                             wrapper->kind->name)
            .node;
    a->variables = MR_ARENA_NEW(&graph->arena, mr_variable, (size_t)list.count + 1);
    a->averages = MR_ARENA_NEW(&graph->arena, mr_variable, (size_t)list.count + 1);
    if (a->variables == nullptr || a->averages == nullptr)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for moving averages").node;
    for (int32_t i = 0; i < list.count; i++)
        if (list.items[i].gradient.node != nullptr) a->variables[a->count++] = list.items[i].variable;
    mr_node *both[2] = {train, update_averages(a, train)};
    if (mr_graph_status(graph, nullptr) != MR_OK) return failed;
    return mr_group(graph, both, 2, "train_with_avg");
}

static const mr_optimizer_wrapper_kind averaging_kind = {"mr_moving_average_optimizer", .apply = apply};

const mr_optimizer *mr_moving_average_optimizer_(mr_graph *graph, const mr_optimizer *optimizer,
                                                 const mr_moving_average_optimizer_options *given)
{
    averaging *a = mr_optimizer_wrapper_new(graph, sizeof *a, &averaging_kind, optimizer);
    if (a == nullptr) return nullptr;
    mr_moving_average_optimizer_options options;
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_moving_average_optimizer_options, &options, given, &error);
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s", error.message);
        return nullptr;
    }
    a->decay = isnan(options.average_decay) ? 0.9999f : options.average_decay;
    a->num_updates = options.num_updates;
    a->is_sequential = options.sequential_update;
    mr_graph_push_scope(graph, "mr_moving_average_optimizer");
    const bool is_good = mr_train_check_range(graph, "average_decay", a->decay, 0, 1, false);
    mr_graph_pop_scope(graph);
    return is_good ? &a->base.optimizer : nullptr;
}

/* ---- The saver ---- */

static bool is_same(mr_output a, mr_output b)
{
    return a.node == b.node && a.index == b.index;
}

/* The average of a variable, the variable of an average, or the output itself. */
static mr_output swapped(const averaging *a, mr_output ref)
{
    for (int32_t i = 0; i < a->count; i++) {
        if (is_same(a->variables[i].ref, ref)) return a->averages[i].ref;
        if (is_same(a->averages[i].ref, ref)) return a->variables[i].ref;
    }
    return ref;
}

/* The variables to save and their keys, if the options do not have them. */
static bool settle_lists(mr_graph *graph, mr_saver_options *options)
{
    const bool all = options->variables == nullptr;
    if (all) options->variable_count = mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES);
    const size_t size = (size_t)(options->variable_count > 0 ? options->variable_count : 0);
    mr_output *refs = MR_ARENA_NEW(&graph->arena, mr_output, size + 1);
    const char **keys = MR_ARENA_NEW(&graph->arena, const char *, size + 1);
    if (refs == nullptr || keys == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a saver");
        return false;
    }
    for (int32_t i = 0; i < (int32_t)size; i++) {
        refs[i] = all ? mr_graph_variable(graph, MR_GLOBAL_VARIABLES, i).ref : options->variables[i];
        keys[i] = !all && options->keys != nullptr ? options->keys[i] : nullptr;
        if (keys[i] == nullptr && refs[i].node != nullptr) keys[i] = mr_node_name(refs[i].node);
    }
    options->variables = refs;
    options->keys = keys;
    return true;
}

mr_saver *mr_swapping_saver_(mr_graph *graph, const mr_optimizer *optimizer, const mr_saver_options *given)
{
    const averaging *a = mr_optimizer_wrapper_of(graph, optimizer, &averaging_kind, "mr_swapping_saver");
    mr_saver_options options;
    mr_error error = {0};
    if (graph == nullptr) return nullptr;
    mr_status status = MR_OPTIONS_READ(mr_saver_options, &options, given, &error);
    if (a != nullptr && status == MR_OK && a->averages == nullptr)
        status = mr_fail(&error, MR_FAILED_PRECONDITION,
                         "mr_swapping_saver: the optimizer has not been applied: call mr_minimize first");
    if (a != nullptr && status == MR_OK && options.variables == nullptr && options.keys != nullptr)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "mr_swapping_saver: keys are given without variables");
    if (a != nullptr && status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    /* Without the lists, it is a saver with the error of the graph. */
    if (a == nullptr || status != MR_OK || !settle_lists(graph, &options)) return mr_saver_new_(graph, given);
    mr_output *refs = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)options.variable_count + 1);
    if (refs == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a saver");
        return mr_saver_new_(graph, given);
    }
    for (int32_t i = 0; i < options.variable_count; i++) refs[i] = swapped(a, options.variables[i]);
    options.variables = refs;
    return mr_saver_new_(graph, &options);
}
