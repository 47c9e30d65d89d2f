/* AdaMax, which divides by the largest gradient of late, and AMSGrad, which divides by the largest second moment. */
#include "graph/train/optimizer_kinds.h"
#include <millrace/ops.h>

#include <assert.h>

static bool is_resource(mr_output ref)
{
    return mr_output_dtype(ref) == MR_RESOURCE;
}

/* ---- AdaMax ---- */

mr_output mr_optimizer_ada_max(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    if (!is_resource(u->variable))
        return mr_apply_ada_max(u->graph, u->variable, u->slots[0], u->slots[1], u->powers[0], u->rate,
                                n[MR_NUMBER_BETA1], n[MR_NUMBER_BETA2], n[MR_NUMBER_EPSILON], u->gradient,
                                MR_LOCKING(u));
    mr_node *node = mr_resource_apply_ada_max(u->graph, u->variable, u->slots[0], u->slots[1], u->powers[0], u->rate,
                                              n[MR_NUMBER_BETA1], n[MR_NUMBER_BETA2], n[MR_NUMBER_EPSILON], u->gradient,
                                              MR_LOCKING(u));
    return (mr_output){node, 0};
}

mr_output mr_optimizer_ada_max_rows(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    assert(u->values.node != nullptr && u->indices.node != nullptr); /* each index once */
    mr_node *moved[2];
    mr_output largest = u->slots[1];
    mr_output m = mr_optimizer_move_rows(u, u->slots[0], u->numbers[MR_NUMBER_BETA1], u->values, &moved[0]);
    mr_output decayed = mr_mul(graph, mr_optimizer_rows_of(u, largest), u->numbers[MR_NUMBER_BETA2]);
    mr_output v = mr_maximum(graph, decayed, mr_abs(graph, u->values));
    moved[1] = is_resource(largest) ? mr_resource_scatter_update(graph, largest, u->indices, v)
                                    : mr_scatter_update(graph, largest, u->indices, v, MR_LOCKING(u)).node;
    mr_output rate = mr_real_div(graph, u->rate, mr_sub(graph, mr_optimizer_one(u), u->powers[0]));
    mr_output ratio = mr_real_div(graph, m, mr_add_v2(graph, v, u->numbers[MR_NUMBER_EPSILON]));
    mr_graph_push_control_dependencies(graph, moved, 2);
    mr_node *update = mr_optimizer_subtract_rows(u, mr_mul(graph, rate, ratio));
    mr_graph_pop_control_dependencies(graph);
    return (mr_output){update, 0};
}

/* ---- AMSGrad ---- */

/* Assigns the value to a slot, and returns it. */
static mr_output put(const mr_optimizer_update *u, mr_output slot, mr_output value)
{
    if (!is_resource(slot)) return mr_assign(u->graph, slot, value, MR_LOCKING(u));
    mr_node *node = mr_assign_variable_op(u->graph, slot, value);
    return mr_optimizer_value_after(u->graph, slot, mr_output_dtype(value), node);
}

static mr_output move(const mr_optimizer_update *u, mr_output moment, mr_output decay, mr_output gradient)
{
    mr_graph *graph = u->graph;
    mr_output old = mr_optimizer_value_after(graph, moment, mr_output_dtype(gradient), nullptr);
    mr_output share = mr_mul(graph, gradient, mr_sub(graph, mr_optimizer_one(u), decay));
    return put(u, moment, mr_add_v2(graph, mr_mul(graph, old, decay), share));
}

/* The step after both moments have their new values. */
static mr_output step(const mr_optimizer_update *u, mr_output m, mr_output v)
{
    mr_graph *graph = u->graph;
    mr_output rate = mr_optimizer_corrected_rate(u, mr_optimizer_one(u));
    mr_output old = mr_optimizer_value_after(graph, u->slots[2], mr_output_dtype(u->gradient), nullptr);
    mr_output largest = put(u, u->slots[2], mr_maximum(graph, old, v));
    mr_output below = mr_add_v2(graph, mr_sqrt(graph, largest), u->numbers[MR_NUMBER_EPSILON]);
    mr_output change = mr_real_div(graph, mr_mul(graph, rate, m), below);
    return is_resource(u->variable) ? (mr_output){mr_assign_sub_variable_op(graph, u->variable, change), 0}
                                    : mr_assign_sub(graph, u->variable, change, MR_LOCKING(u));
}

mr_output mr_optimizer_amsgrad(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    if (is_resource(u->variable)) {
        mr_node *node = mr_resource_apply_adam_with_amsgrad(
            u->graph, u->variable, u->slots[0], u->slots[1], u->slots[2], u->powers[0], u->powers[1], u->rate,
            n[MR_NUMBER_BETA1], n[MR_NUMBER_BETA2], n[MR_NUMBER_EPSILON], u->gradient, MR_LOCKING(u));
        return (mr_output){node, 0};
    }
    mr_output m = move(u, u->slots[0], n[MR_NUMBER_BETA1], u->gradient);
    mr_output v = move(u, u->slots[1], n[MR_NUMBER_BETA2], mr_square(u->graph, u->gradient));
    return step(u, m, v);
}

mr_output mr_optimizer_amsgrad_rows(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    mr_output one = mr_optimizer_one(u), beta1 = u->numbers[MR_NUMBER_BETA1], beta2 = u->numbers[MR_NUMBER_BETA2];
    mr_output share = mr_mul(graph, u->values, mr_sub(graph, one, beta1));
    mr_output squares = mr_mul(graph, mr_square(graph, u->values), mr_sub(graph, one, beta2));
    mr_output m = mr_optimizer_move(u, u->slots[0], beta1, share);
    return step(u, m, mr_optimizer_move(u, u->slots[1], beta2, squares));
}
