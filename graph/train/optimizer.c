/* Optimizers: one ApplyX node for each trainable variable, with TensorFlow's names for slots and scopes.
 *
 * The updates wait for all gradients and for the update ops. So all gradients are computed from the same weights, and a
 * weight is changed after all its readers are done, which allows an update in place. */
#include "base/options.h"
#include "graph/train/train.h"
#include <millrace/ops.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct parts {
    mr_graph *graph;
    const mr_optimizer *optimizer;
    const char *name; /* "Adam": name of slots and scope */
    int32_t count;
    mr_variable *variables;
    mr_output *gradients; /* {0}: the loss does not depend on the variable, which is not updated */
    mr_variable *slots;   /* all first slots, then all second slots */
    mr_node **updates;
    mr_variable powers[2];
    mr_output rate, momentum, beta1, beta2, epsilon;
} parts;

static float or_default(float value, float default_value)
{
    return isnan(value) ? default_value : value;
}

/* Records an error for an option that only other optimizers have. */
static bool check_unset(mr_graph *graph, const char *optimizer, const char *option, bool is_set)
{
    if (is_set)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s has no effect for this optimizer", optimizer, option);
    return !is_set;
}

static bool settle_rate(mr_graph *graph, const char *name, mr_optimizer *o)
{
    bool has_output = o->learning_rate_output.node != nullptr, has_rate = !isnan(o->learning_rate);
    if (has_output && !has_rate) return true;
    if (o->kind == MR_ADAM) o->learning_rate = or_default(o->learning_rate, 0.001f);
    const char *wrong = nullptr;
    if (has_output)
        wrong = "learning_rate and learning_rate_output are both given, but only one may be";
    else if (isnan(o->learning_rate))
        wrong = "a learning rate is required: learning_rate or learning_rate_output";
    else if (!isfinite(o->learning_rate) || o->learning_rate < 0)
        wrong = "learning_rate must be finite and at least 0";
    if (wrong != nullptr) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s", name, wrong);
    return wrong == nullptr;
}

/* Fills in the defaults. Records an error for an option that is missing, out of range, or without effect. */
static bool settle(mr_graph *graph, const char *name, mr_optimizer *o)
{
    if (!settle_rate(graph, name, o)) return false;
    if (o->kind != MR_MOMENTUM && (!check_unset(graph, name, "momentum", !isnan(o->momentum)) ||
                                   !check_unset(graph, name, "nesterov", o->nesterov)))
        return false;
    if (o->kind != MR_ADAM)
        return check_unset(graph, name, "beta1", !isnan(o->beta1)) &&
               check_unset(graph, name, "beta2", !isnan(o->beta2)) &&
               check_unset(graph, name, "epsilon", !isnan(o->epsilon)) &&
               (o->kind != MR_MOMENTUM || mr_train_check_number(graph, "Momentum: momentum", o->momentum, 0));
    o->beta1 = or_default(o->beta1, 0.9f);
    o->beta2 = or_default(o->beta2, 0.999f);
    o->epsilon = or_default(o->epsilon, 1e-8f);
    return mr_train_check_range(graph, "Adam: beta1", o->beta1, 0, 1, false) &&
           mr_train_check_range(graph, "Adam: beta2", o->beta2, 0, 1, false) &&
           mr_train_check_number(graph, "Adam: epsilon", o->epsilon, 0);
}

static mr_variable slot_new(parts *p, mr_variable variable, const char *suffix)
{
    mr_graph *graph = p->graph;
    const char *owner = mr_node_name(variable.ref.node);
    const char *name = mr_arena_printf(&graph->arena, "%s/%s%s", owner, p->name, suffix);
    mr_graph_push_device(graph, mr_node_device(variable.ref.node));
    mr_variable slot = mr_train_variable(graph, name != nullptr ? name : "slot", mr_output_shape(variable.ref),
                                         (mr_initializer){.kind = MR_INIT_ZEROS}, false);
    mr_graph_pop_device(graph);
    return slot;
}

static mr_variable power_new(parts *p, const char *name, float beta)
{
    mr_graph *graph = p->graph;
    const char *inner = mr_arena_printf(&graph->arena, "%s/initial_value", name);
    return mr_variable_new(graph, name, mr_train_float(graph, inner, beta), .trainable = false);
}

/* Creates slots and powers, outside of all scopes. */
static void make_slots(parts *p)
{
    const mr_optimizer *o = p->optimizer;
    mr_graph_push_scope(p->graph, "");
    if (o->kind == MR_ADAM) {
        p->powers[0] = power_new(p, "beta1_power", o->beta1);
        p->powers[1] = power_new(p, "beta2_power", o->beta2);
    }
    for (int32_t i = 0; i < p->count; i++) {
        if (p->gradients[i].node == nullptr || o->kind == MR_GRADIENT_DESCENT) continue;
        p->slots[i] = slot_new(p, p->variables[i], "");
        if (o->kind == MR_ADAM) p->slots[p->count + i] = slot_new(p, p->variables[i], "_1");
    }
    mr_graph_pop_scope(p->graph);
}

static void make_constants(parts *p)
{
    const mr_optimizer *o = p->optimizer;
    mr_graph *graph = p->graph;
    p->rate = o->learning_rate_output.node != nullptr ? o->learning_rate_output
                                                      : mr_train_float(graph, "learning_rate", o->learning_rate);
    if (o->kind == MR_MOMENTUM) p->momentum = mr_train_float(graph, "momentum", o->momentum);
    if (o->kind != MR_ADAM) return;
    p->beta1 = mr_train_float(graph, "beta1", o->beta1);
    p->beta2 = mr_train_float(graph, "beta2", o->beta2);
    p->epsilon = mr_train_float(graph, "epsilon", o->epsilon);
}

/* A node that runs after all gradients and the update ops. */
static mr_node *make_barrier(parts *p)
{
    mr_graph *graph = p->graph;
    mr_node_builder builder = mr_node_begin(graph, "NoOp", "gradients_done");
    for (int32_t i = 0; i < p->count; i++)
        if (p->gradients[i].node != nullptr) mr_node_add_control_input(&builder, p->gradients[i].node);
    int32_t updates = mr_graph_collection_count(graph, MR_UPDATE_OPS);
    for (int32_t i = 0; i < updates; i++)
        mr_node_add_control_input(&builder, mr_graph_collection_item(graph, MR_UPDATE_OPS, i).node);
    return mr_node_finish(&builder).node;
}

static mr_output apply(parts *p, int32_t index)
{
    mr_graph *graph = p->graph;
    mr_output variable = p->variables[index].ref, gradient = p->gradients[index];
    mr_output first = p->slots[index].ref, second = p->slots[p->count + index].ref;
    switch (p->optimizer->kind) {
    case MR_MOMENTUM:
        return mr_apply_momentum(graph, variable, first, p->rate, gradient, p->momentum,
                                 .use_nesterov = p->optimizer->nesterov);
    case MR_ADAM:
        return mr_apply_adam(graph, variable, first, second, p->powers[0].value, p->powers[1].value, p->rate, p->beta1,
                             p->beta2, p->epsilon, gradient);
    case MR_GRADIENT_DESCENT:
        break;
    }
    return mr_apply_gradient_descent(graph, variable, p->rate, gradient);
}

/* The updates, then Adam's powers, then "update", which runs after all of them. */
static mr_node *make_updates(parts *p)
{
    mr_graph *graph = p->graph;
    mr_node *barrier = make_barrier(p);
    int32_t count = 0;
    mr_graph_push_control_dependencies(graph, &barrier, 1);
    for (int32_t i = 0; i < p->count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        if (p->gradients[i].node == nullptr) continue;
        mr_node *variable = p->variables[i].ref.node;
        const char *scope = mr_arena_printf(&graph->arena, "update_%s", mr_node_name(variable));
        mr_graph_push_scope(graph, scope != nullptr ? scope : "update");
        mr_graph_push_device(graph, mr_node_device(variable));
        p->updates[count++] = apply(p, i).node;
        mr_graph_pop_device(graph);
        mr_graph_pop_scope(graph);
    }
    mr_graph_pop_control_dependencies(graph);
    if (p->optimizer->kind == MR_ADAM) {
        mr_graph_push_control_dependencies(graph, p->updates, count);
        mr_output next1 = mr_mul(graph, p->powers[0].value, p->beta1);
        mr_output next2 = mr_mul(graph, p->powers[1].value, p->beta2);
        mr_graph_pop_control_dependencies(graph);
        p->updates[count++] = mr_assign(graph, p->powers[0].ref, next1).node;
        p->updates[count++] = mr_assign(graph, p->powers[1].ref, next2).node;
    }
    return mr_group(graph, p->updates, count, "update");
}

static mr_node *build(parts *p, mr_output global_step)
{
    mr_graph *graph = p->graph;
    make_slots(p);
    mr_graph_push_scope(graph, p->name);
    make_constants(p);
    const char *own = mr_train_own_name(graph);
    mr_node *updates = make_updates(p);
    if (global_step.node != nullptr) {
        int64_t one = 1;
        mr_tensor value = {0};
        mr_error error = {0};
        mr_status status = mr_tensor_init_copy(&value, MR_INT64, MR_SCALAR, &one, &error);
        if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
        mr_graph_push_control_dependencies(graph, &updates, 1);
        mr_output step = mr_constant(graph, &value, "value");
        if (mr_output_dtype(global_step) != MR_INT64) step = mr_cast(graph, step, mr_output_dtype(global_step));
        updates = mr_assign_add(graph, global_step, step, .name = own).node;
        mr_graph_pop_control_dependencies(graph);
        mr_tensor_deinit(&value);
    } else {
        updates = mr_group(graph, &updates, 1, own);
    }
    mr_graph_pop_scope(graph);
    if (mr_graph_status(graph, nullptr) == MR_OK)
        mr_graph_add_to_collection(graph, "train_op", (mr_output){updates, 0});
    return updates;
}

mr_node *mr_minimize(mr_graph *graph, const mr_optimizer *given, mr_output loss, mr_output global_step)
{
    static const char *const names[] = {"GradientDescent", "Momentum", "Adam"};
    mr_node *failed = mr_graph_failed_output(graph).node;
    if (mr_graph_status(graph, nullptr) != MR_OK) return failed;
    mr_optimizer optimizer;
    mr_error error = {0};
    mr_status status = given != nullptr ? MR_OPTIONS_READ(mr_optimizer, &optimizer, given, &error)
                                        : mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer is null");
    if (status != MR_OK) return mr_graph_fail(graph, status, "%s", error.message).node;
    if ((unsigned)optimizer.kind > MR_ADAM)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "unknown optimizer kind %d", (int)optimizer.kind).node;
    if (!settle(graph, names[optimizer.kind], &optimizer)) return failed;
    int32_t count = mr_graph_variable_count(graph, MR_TRAINABLE_VARIABLES);
    size_t size = (size_t)count + 1;
    parts p = {.graph = graph, .optimizer = &optimizer, .name = names[optimizer.kind], .count = count};
    p.variables = MR_ARENA_NEW(&graph->arena, mr_variable, size);
    p.gradients = MR_ARENA_NEW(&graph->arena, mr_output, size);
    p.slots = MR_ARENA_NEW(&graph->arena, mr_variable, 2 * size);
    p.updates = MR_ARENA_NEW(&graph->arena, mr_node *, size + 2);
    mr_output *refs = MR_ARENA_NEW(&graph->arena, mr_output, size);
    if (!p.variables || !p.gradients || !p.slots || !p.updates || !refs)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer").node;
    bool any = false;
    for (int32_t i = 0; i < count; i++) {
        p.variables[i] = mr_graph_variable(graph, MR_TRAINABLE_VARIABLES, i);
        refs[i] = p.variables[i].ref;
    }
    mr_gradients(graph, MR_OUTPUTS(loss), (mr_outputs){refs, count}, nullptr, p.gradients);
    for (int32_t i = 0; i < count; i++) any |= p.gradients[i].node != nullptr;
    if (!any)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "the loss %s does not depend on any of the %d trainable "
                             "variables",
                             mr_node_name(loss.node), count)
            .node;
    if (mr_graph_status(graph, nullptr) != MR_OK) return failed;
    return build(&p, global_step);
}
