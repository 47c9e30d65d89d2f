/* What Adam and its relatives do beside ApplyAdam: sparse gradients, and the decay of weights. */
#include "graph/train/optimizer_kinds.h"
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

#include <assert.h>

static bool is_resource(mr_output ref)
{
    return mr_output_dtype(ref) == MR_RESOURCE;
}

mr_output mr_optimizer_value_after(mr_graph *graph, mr_output ref, mr_dtype dtype, mr_node *after)
{
    if (!is_resource(ref)) return ref;
    mr_graph_push_control_dependencies(graph, &after, after != nullptr);
    mr_output value = mr_read_variable_op(graph, ref, dtype);
    mr_graph_pop_control_dependencies(graph);
    return value;
}

mr_output mr_optimizer_move(const mr_optimizer_update *u, mr_output moment, mr_output decay, mr_output values)
{
    mr_graph *graph = u->graph;
    const mr_dtype dtype = mr_output_dtype(values);
    mr_output decayed = mr_mul(graph, mr_optimizer_value_after(graph, moment, dtype, nullptr), decay);
    mr_output result = {0};
    if (is_resource(moment)) {
        mr_node *assigned = mr_assign_variable_op(graph, moment, decayed);
        mr_graph_push_control_dependencies(graph, &assigned, 1);
        mr_node *added = mr_resource_scatter_add(graph, moment, u->indices, values);
        mr_graph_pop_control_dependencies(graph);
        result = mr_optimizer_value_after(graph, moment, dtype, added);
    } else {
        mr_node *assigned = mr_assign(graph, moment, decayed, MR_LOCKING(u)).node;
        mr_graph_push_control_dependencies(graph, &assigned, 1);
        result = mr_scatter_add(graph, moment, u->indices, values, MR_LOCKING(u));
        mr_graph_pop_control_dependencies(graph);
    }
    return result;
}

mr_output mr_optimizer_one(const mr_optimizer_update *u)
{
    return mr_train_scalar(u->graph, nullptr, mr_output_dtype(u->gradient), 1);
}

mr_output mr_optimizer_corrected_rate(const mr_optimizer_update *u, mr_output one)
{
    mr_graph *graph = u->graph;
    mr_output root = mr_sqrt(graph, mr_sub(graph, one, u->powers[1]));
    return mr_real_div(graph, mr_mul(graph, u->rate, root), mr_sub(graph, one, u->powers[0]));
}

mr_output mr_optimizer_adam_rows(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    mr_output one = mr_optimizer_one(u), beta1 = u->numbers[MR_NUMBER_BETA1];
    mr_output beta2 = u->numbers[MR_NUMBER_BETA2], epsilon = u->numbers[MR_NUMBER_EPSILON];
    mr_output rate = mr_optimizer_corrected_rate(u, one);
    mr_output m = mr_optimizer_move(u, u->slots[0], beta1, mr_mul(graph, u->values, mr_sub(graph, one, beta1)));
    mr_output squares = mr_mul(graph, u->values, u->values);
    mr_output v = mr_optimizer_move(u, u->slots[1], beta2, mr_mul(graph, squares, mr_sub(graph, one, beta2)));
    mr_output change = mr_real_div(graph, mr_mul(graph, rate, m), mr_add_v2(graph, mr_sqrt(graph, v), epsilon));
    return is_resource(u->variable) ? (mr_output){mr_assign_sub_variable_op(graph, u->variable, change), 0}
                                    : mr_assign_sub(graph, u->variable, change, MR_LOCKING(u));
}

/* ---- LazyAdam: only the rows of the gradient change, those of the moments too ---- */

mr_output mr_optimizer_rows_of(const mr_optimizer_update *u, mr_output ref)
{
    const mr_dtype dtype = mr_output_dtype(u->values);
    return is_resource(ref) ? mr_resource_gather(u->graph, ref, u->indices, dtype)
                            : mr_gather(u->graph, ref, u->indices);
}

mr_node *mr_optimizer_subtract_rows(const mr_optimizer_update *u, mr_output change)
{
    return is_resource(u->variable) ? mr_resource_scatter_sub(u->graph, u->variable, u->indices, change)
                                    : mr_scatter_sub(u->graph, u->variable, u->indices, change, MR_LOCKING(u)).node;
}

mr_output mr_optimizer_move_rows(const mr_optimizer_update *u, mr_output moment, mr_output decay, mr_output values,
                                 mr_node **node)
{
    mr_graph *graph = u->graph;
    mr_output rest = mr_sub(graph, mr_optimizer_one(u), decay);
    mr_output moved =
        mr_add_v2(graph, mr_mul(graph, mr_optimizer_rows_of(u, moment), decay), mr_mul(graph, values, rest));
    *node = is_resource(moment) ? mr_resource_scatter_update(graph, moment, u->indices, moved)
                                : mr_scatter_update(graph, moment, u->indices, moved, MR_LOCKING(u)).node;
    return moved;
}

mr_output mr_optimizer_lazy_adam_rows(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    assert(u->values.node != nullptr && u->indices.node != nullptr); /* each index once */
    mr_node *moved[2];
    mr_output rate = mr_optimizer_corrected_rate(u, mr_optimizer_one(u));
    mr_output m = mr_optimizer_move_rows(u, u->slots[0], u->numbers[MR_NUMBER_BETA1], u->values, &moved[0]);
    mr_output squares = mr_mul(graph, u->values, u->values);
    mr_output v = mr_optimizer_move_rows(u, u->slots[1], u->numbers[MR_NUMBER_BETA2], squares, &moved[1]);
    mr_output root = mr_add_v2(graph, mr_sqrt(graph, v), u->numbers[MR_NUMBER_EPSILON]);
    mr_output change = mr_real_div(graph, mr_mul(graph, rate, m), root);
    mr_graph_push_control_dependencies(graph, moved, 2);
    mr_node *update = mr_optimizer_subtract_rows(u, change);
    mr_graph_pop_control_dependencies(graph);
    return (mr_output){update, 0};
}

/* ---- AdamW: before Adam's step, the weights decay ---- */

/* The gradient has been computed with the weights as they were. */
mr_node *mr_optimizer_decay(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    mr_output decay = u->numbers[MR_NUMBER_WEIGHT_DECAY];
    mr_graph_push_control_dependencies(graph, &u->gradient.node, 1);
    mr_output weights = mr_optimizer_value_after(graph, u->variable, mr_output_dtype(u->gradient), nullptr);
    mr_output change = mr_mul(graph, weights, decay);
    mr_node *node = is_resource(u->variable) ? mr_assign_sub_variable_op(graph, u->variable, change)
                                             : mr_assign_sub(graph, u->variable, change, MR_LOCKING(u)).node;
    mr_graph_pop_control_dependencies(graph);
    return node;
}

mr_node *mr_optimizer_decay_rows(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    mr_node *values = u->values.node;
    mr_graph_push_control_dependencies(graph, &values, 1);
    mr_output change = mr_mul(graph, mr_optimizer_rows_of(u, u->variable), u->numbers[MR_NUMBER_WEIGHT_DECAY]);
    mr_node *node = mr_optimizer_subtract_rows(u, change);
    mr_graph_pop_control_dependencies(graph);
    return node;
}

mr_output mr_optimizer_adam_w_rows(const mr_optimizer_update *u)
{
    mr_node *decayed = mr_optimizer_decay_rows(u);
    mr_graph_push_control_dependencies(u->graph, &decayed, 1);
    mr_output update = mr_optimizer_adam_rows(u);
    mr_graph_pop_control_dependencies(u->graph);
    return update;
}
