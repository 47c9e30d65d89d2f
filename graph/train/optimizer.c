/* Optimizers: one ApplyX node for each trainable variable, with TensorFlow's names for slots and scopes.
 *
 * The updates wait for all gradients and for the update ops. So all gradients are computed from the same weights, and a
 * weight is changed after all its readers are done, which allows an update in place. */
#include "base/options.h"
#include "graph/ir/sparse_rows.h"
#include "graph/train/open_scopes.h"
#include "graph/train/optimizer_kinds.h"
#include "graph/train/optimizer_wrapper.h"
#include <millrace/ops.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct parts {
    mr_graph *graph;
    const mr_optimizer *optimizer;
    const mr_optimizer_form *form;
    mr_gradients_and_variables list;
    mr_variable (*slots)[MR_OPTIMIZER_SLOTS_MAX];
    mr_node **updates;
    mr_variable powers[2];
    bool run_update_ops;
    mr_output rate, step, sign_decay, numbers[MR_NUMBER_COUNT];
} parts;

static mr_variable slot_new(parts *p, mr_variable variable, int32_t index)
{
    mr_graph *graph = p->graph;
    /* The graph makes it unique: "w/Adam", "w/Adam_1", of a second optimizer "w/Adam_2", as in TensorFlow. */
    const char *name = mr_arena_printf(&graph->arena, "%s/%s", mr_node_name(variable.ref.node),
                                       mr_optimizer_slot_name(p->optimizer, p->form, index));
    mr_initializer initializer = {.kind = MR_INIT_ZEROS};
    if (p->form->slots[index] == '1') initializer.kind = MR_INIT_ONES;
    if (p->form->slots[index] == 'a')
        initializer = (mr_initializer){.kind = MR_INIT_CONSTANT, .scale = p->optimizer->initial_accumulator_value};
    mr_graph_push_device(graph, mr_node_device(variable.ref.node));
    mr_variable slot = mr_train_slot(graph, name != nullptr ? name : "slot", variable, initializer);
    mr_graph_pop_device(graph);
    return slot;
}

static mr_variable power_new(parts *p, const char *name, float beta)
{
    mr_graph *graph = p->graph;
    const char *inner = mr_arena_printf(&graph->arena, "%s/initial_value", name);
    return mr_variable_new(graph, name, mr_train_float(graph, inner, beta), .trainable = false);
}

/* Creates powers in the current scope, and slots outside of all scopes, as TensorFlow does. Both are outside of the
 * conditional in which a loss scale applies gradients. */
static void make_slots(parts *p)
{
    struct mr_flow_context *before = mr_optimizer_lift(p->graph);
    if (p->form->has_powers) {
        p->powers[0] = power_new(p, "beta1_power", p->optimizer->beta1);
        p->powers[1] = power_new(p, "beta2_power", p->optimizer->beta2);
    }
    mr_graph_push_scope(p->graph, "");
    for (int32_t i = 0; i < p->list.count; i++)
        for (int32_t j = 0; p->form->slots[j] != '\0' && p->list.items[i].gradient.node != nullptr; j++)
            p->slots[i][j] = slot_new(p, p->list.items[i].variable, j);
    mr_graph_pop_scope(p->graph);
    mr_optimizer_lift_end(p->graph, before);
}

static void make_constants(parts *p, mr_output global_step)
{
    const mr_optimizer *o = p->optimizer;
    mr_graph *graph = p->graph;
    p->rate = o->learning_rate_output.node != nullptr ? o->learning_rate_output
                                                      : mr_train_float(graph, "learning_rate", o->learning_rate);
    for (int32_t i = 0; i < MR_NUMBER_COUNT; i++) {
        if (isnan(p->form->numbers[i]) || i == MR_NUMBER_INITIAL_ACCUMULATOR) continue;
        const char *name;
        float value = mr_optimizer_value(o, (mr_optimizer_number)i, &name);
        if (i == MR_NUMBER_L2_SHRINKAGE && value == 0) continue;
        p->numbers[i] = mr_train_float(graph, name, value);
    }
    if (p->form->has_sign_decay)
        p->sign_decay = o->sign_decay.node != nullptr ? o->sign_decay : mr_train_float(graph, "sign_decay", 1);
    if (!p->form->has_step) return;
    if (global_step.node == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "global_step is required");
        return;
    }
    mr_output step = mr_identity(graph, global_step);
    if (mr_graph_status(graph, nullptr) == MR_OK && mr_output_dtype(step) != MR_INT64)
        step = mr_cast(graph, step, MR_INT64);
    p->step = mr_add_v2(graph, step, mr_constant_int64(graph, 1));
}

/* A node that runs after all gradients and the update ops. */
static mr_node *make_barrier(parts *p)
{
    mr_graph *graph = p->graph;
    mr_node_builder builder = mr_node_begin(graph, "NoOp", "gradients_done");
    for (int32_t i = 0; i < p->list.count; i++) {
        const mr_output gradient = p->list.items[i].gradient;
        const mr_sparse_rows *rows = mr_graph_find_rows(graph, gradient);
        if (rows != nullptr) {
            mr_node_add_control_input(&builder, rows->values.node);
            mr_node_add_control_input(&builder, rows->indices.node);
        } else if (gradient.node != nullptr) {
            mr_node_add_control_input(&builder, gradient.node);
        }
    }
    int32_t updates = p->run_update_ops ? mr_graph_collection_count(graph, MR_UPDATE_OPS) : 0;
    for (int32_t i = 0; i < updates; i++)
        mr_node_add_control_input(&builder, mr_graph_collection_item(graph, MR_UPDATE_OPS, i).node);
    if (p->step.node != nullptr && p->step.node->id >= 0) mr_node_add_control_input(&builder, p->step.node);
    return mr_node_finish(&builder).node;
}

/* The rows of a sparse gradient; if the optimizer needs it, each once: the sum of those with its index. */
static void set_rows(const parts *p, const mr_sparse_rows *rows, mr_optimizer_update *update)
{
    mr_graph *graph = p->graph;
    update->values = rows->values;
    update->indices = rows->indices;
    if (p->form->repeats) return;
    mr_unique_outputs unique = mr_unique(graph, update->indices);
    mr_output count = mr_size(graph, unique.y);
    update->values = mr_unsorted_segment_sum(graph, update->values, unique.idx, count);
    update->indices = unique.y;
}

/* Numbers are float; an update takes them in the dtype of its variable, as in TensorFlow. */
static mr_output in_dtype(mr_graph *graph, mr_output number, mr_dtype dtype)
{
    if (number.node == nullptr || mr_output_dtype(number) == dtype) return number;
    return mr_cast(graph, number, dtype);
}

static mr_output apply(parts *p, int32_t index)
{
    const mr_dtype dtype = mr_output_dtype(p->list.items[index].gradient);
    mr_optimizer_update update = {.graph = p->graph,
                                  .optimizer = p->optimizer,
                                  .variable = p->list.items[index].variable.ref,
                                  .gradient = p->list.items[index].gradient,
                                  .rate = in_dtype(p->graph, p->rate, dtype),
                                  .step = p->step,
                                  .sign_decay = in_dtype(p->graph, p->sign_decay, dtype),
                                  .name = mr_node_name(p->list.items[index].variable.ref.node)};
    for (int32_t i = 0; i < MR_OPTIMIZER_SLOTS_MAX; i++) update.slots[i] = p->slots[index][i].ref;
    for (int32_t i = 0; i < 2; i++) update.powers[i] = in_dtype(p->graph, p->powers[i].value, dtype);
    for (int32_t i = 0; i < MR_NUMBER_COUNT; i++) update.numbers[i] = in_dtype(p->graph, p->numbers[i], dtype);
    const mr_sparse_rows *rows = mr_graph_find_rows(p->graph, update.gradient);
    if (rows == nullptr) return p->form->apply(&update);
    set_rows(p, rows, &update);
    return p->form->apply_rows(&update);
}

/* The update, and then the projection of the variable, if it has a constraint. */
static mr_node *apply_and_constrain(parts *p, int32_t index)
{
    mr_graph *graph = p->graph;
    const mr_variable variable = p->list.items[index].variable;
    const mr_constraint constraint = mr_variable_constraint(graph, variable.ref.node);
    if (constraint != nullptr && mr_graph_find_rows(graph, p->list.items[index].gradient) != nullptr)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "variable %s has a constraint, but its gradient is sparse: a constraint needs the dense "
                             "gradient of all rows",
                             mr_node_name(variable.ref.node))
            .node;
    mr_node *update = apply(p, index).node;
    if (constraint == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return update;
    mr_graph_push_control_dependencies(graph, &update, 1);
    const mr_output value = mr_variable_read_value(graph, variable);
    const mr_callback callback = mr_callback_begin(graph);
    const mr_output projected = constraint(graph, value);
    if (mr_callback_end(graph, &callback, mr_node_name(variable.ref.node), "constraint"))
        update = mr_variable_assign(graph, variable, projected).node;
    mr_graph_pop_control_dependencies(graph);
    return update;
}

/* The updates, then Adam's powers, then "update", which runs after all of them. */
static mr_node *make_updates(parts *p)
{
    mr_graph *graph = p->graph;
    mr_node *barrier = make_barrier(p);
    int32_t count = 0;
    mr_graph_push_control_dependencies(graph, &barrier, 1);
    for (int32_t i = 0; i < p->list.count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        if (p->list.items[i].gradient.node == nullptr) continue;
        mr_node *variable = p->list.items[i].variable.ref.node;
        const char *scope = mr_arena_printf(&graph->arena, "update_%s", mr_node_name(variable));
        mr_graph_push_scope(graph, scope != nullptr ? scope : "update");
        mr_graph_push_device(graph, mr_node_device(variable));
        p->updates[count++] = apply_and_constrain(p, i);
        mr_graph_pop_device(graph);
        mr_graph_pop_scope(graph);
    }
    mr_graph_pop_control_dependencies(graph);
    if (p->form->has_powers) {
        mr_graph_push_control_dependencies(graph, p->updates, count);
        mr_output next1 = mr_mul(graph, p->powers[0].value, p->numbers[MR_NUMBER_BETA1]);
        mr_output next2 = mr_mul(graph, p->powers[1].value, p->numbers[MR_NUMBER_BETA2]);
        mr_graph_pop_control_dependencies(graph);
        p->updates[count++] = mr_assign(graph, p->powers[0].ref, next1, MR_LOCKING(p)).node;
        p->updates[count++] = mr_assign(graph, p->powers[1].ref, next2, MR_LOCKING(p)).node;
    }
    return mr_group(graph, p->updates, count, "update");
}

static mr_node *build(parts *p, mr_output global_step)
{
    mr_graph *graph = p->graph;
    make_slots(p);
    mr_graph_push_scope(graph, mr_optimizer_name(p->optimizer, p->form));
    make_constants(p, global_step);
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

static bool check_step(mr_graph *graph, mr_output step)
{
    if (step.node == nullptr || (step.node->id >= 0 && mr_output_is_ref(step))) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "global_step is %s, not a reference variable: pass mr_global_step(graph).ref",
                        mr_node_name(step.node));
    return false;
}

/* Records an error unless there is a gradient, and variables to apply them to. */
static bool check_list(mr_graph *graph, const char *name, mr_gradients_and_variables list)
{
    bool any = false;
    if (list.count < 0 || (list.count > 0 && list.items == nullptr)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: the list of gradients is not valid", name);
        return false;
    }
    for (int32_t i = 0; i < list.count; i++) {
        if (list.items[i].variable.ref.node == nullptr || list.items[i].variable.ref.node->id < 0) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: variable %d is not a variable of the graph", name, i);
            return false;
        }
        any |= list.items[i].gradient.node != nullptr;
    }
    if (!any)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: none of the %d variables has a gradient", name,
                            list.count);
    return any;
}

static mr_node *apply_wrapped(mr_graph *graph, const mr_optimizer *optimizer, mr_gradients_and_variables list,
                              mr_output global_step, bool run_update_ops)
{
    mr_optimizer_wrapper *wrapper = optimizer->wrapper;
    if (wrapper->graph != graph)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: the optimizer belongs to another graph",
                             wrapper->kind->name)
            .node;
    if (!check_step(graph, global_step) || !check_list(graph, wrapper->kind->name, list))
        return mr_graph_failed_output(graph).node;
    return wrapper->kind->apply(wrapper, list, global_step, run_update_ops);
}

mr_node *mr_optimizer_apply(mr_graph *graph, const mr_optimizer *given, mr_gradients_and_variables list,
                            mr_output global_step, bool run_update_ops)
{
    mr_node *failed = mr_graph_failed_output(graph).node;
    if (mr_graph_status(graph, nullptr) != MR_OK) return failed;
    mr_optimizer optimizer;
    mr_error error = {0};
    mr_status status = given != nullptr ? MR_OPTIONS_READ(mr_optimizer, &optimizer, given, &error)
                                        : mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer is null");
    if (status != MR_OK) return mr_graph_fail(graph, status, "%s", error.message).node;
    if (optimizer.wrapper != nullptr) return apply_wrapped(graph, &optimizer, list, global_step, run_update_ops);
    if (!mr_optimizer_settle(graph, &optimizer)) return failed;
    const mr_optimizer_form *form = mr_optimizer_form_of(&optimizer);
    if (!check_step(graph, global_step) || !check_list(graph, form->name, list)) return failed;
    parts p = {.graph = graph, .optimizer = &optimizer, .form = form, .list = list, .run_update_ops = run_update_ops};
    size_t size = (size_t)list.count + 1;
    p.slots = mr_arena_alloc(&graph->arena, size * sizeof *p.slots);
    p.updates = MR_ARENA_NEW(&graph->arena, mr_node *, size + 2);
    if (p.slots == nullptr || p.updates == nullptr)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer").node;
    memset(p.slots, 0, size * sizeof *p.slots);
    return build(&p, global_step);
}

mr_node *mr_apply_gradients(mr_graph *graph, const mr_optimizer *optimizer, mr_gradients_and_variables list,
                            mr_output global_step)
{
    return mr_optimizer_apply(graph, optimizer, list, global_step, true);
}

mr_node *mr_minimize_(mr_graph *graph, const mr_optimizer *optimizer, mr_output loss, mr_output global_step,
                      const mr_compute_gradients_options *options)
{
    if (graph == nullptr) return nullptr;
    mr_gradients_and_variables list = mr_optimizer_compute_gradients_(graph, optimizer, loss, options);
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph).node;
    bool any = false;
    for (int32_t i = 0; i < list.count; i++) any |= list.items[i].gradient.node != nullptr;
    if (!any)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "the loss %s does not depend on any of the %d %s variables, or only through integers",
                             mr_node_name(loss.node), list.count, options->variables.count > 0 ? "given" : "trainable")
            .node;
    return mr_apply_gradients(graph, optimizer, list, global_step);
}
