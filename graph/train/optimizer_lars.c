/* Momentum, and what is built on it: LARS, whose learning rate depends on the norms of a variable and of its gradient,
 * and MomentumW, which lets the weights decay first. */
#include "graph/train/optimizer_kinds.h"
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

#include <string.h>

mr_output mr_optimizer_momentum(const mr_optimizer_update *u, mr_output rate)
{
    const mr_output momentum = u->numbers[MR_NUMBER_MOMENTUM];
    const bool nesterov = u->optimizer->nesterov;
    if (mr_output_dtype(u->variable) != MR_RESOURCE)
        return mr_apply_momentum(u->graph, u->variable, u->slots[0], rate, u->gradient, momentum,
                                 .use_nesterov = nesterov, MR_LOCKING(u));
    mr_node *node = mr_resource_apply_momentum(u->graph, u->variable, u->slots[0], rate, u->gradient, momentum,
                                               .use_nesterov = nesterov, MR_LOCKING(u));
    return (mr_output){node, 0};
}

mr_output mr_optimizer_momentum_rows(const mr_optimizer_update *u)
{
    const mr_output momentum = u->numbers[MR_NUMBER_MOMENTUM];
    const bool nesterov = u->optimizer->nesterov;
    if (mr_output_dtype(u->variable) != MR_RESOURCE)
        return mr_sparse_apply_momentum(u->graph, u->variable, u->slots[0], u->rate, u->values, u->indices, momentum,
                                        .use_nesterov = nesterov, MR_LOCKING(u));
    mr_node *node = mr_resource_sparse_apply_momentum(u->graph, u->variable, u->slots[0], u->rate, u->values,
                                                      u->indices, momentum, .use_nesterov = nesterov, MR_LOCKING(u));
    return (mr_output){node, 0};
}

/* ---- LARS ---- */

/* The name that the list is compared with ends with the number of the output, as in TensorFlow: "dense/bias:0". */
static bool is_skipped(const mr_optimizer_update *u)
{
    const mr_names list = u->optimizer->skip_list;
    const char *name = mr_arena_printf(&u->graph->arena, "%s:0", u->name);
    for (int32_t i = 0; i < list.count && name != nullptr; i++)
        if (strstr(name, list.items[i]) != nullptr) return true;
    return false;
}

/* The root of the sum of the squares of all elements. */
static mr_output norm(mr_graph *graph, mr_output value)
{
    const int32_t all = -1;
    mr_output flat = mr_reshape(graph, mr_square(graph, value), mr_constant_int32s(graph, MR_SHAPE(1), &all, nullptr));
    return mr_sqrt(graph, mr_sum(graph, flat, mr_constant_ints(graph, MR_INTS(0))));
}

static mr_output scaled_rate(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    const mr_dtype dtype = mr_output_dtype(u->gradient);
    mr_output one = mr_optimizer_one(u), zero = mr_train_scalar(graph, nullptr, dtype, 0);
    mr_output weights = norm(graph, mr_optimizer_value_after(graph, u->variable, dtype, nullptr));
    mr_output gradients = norm(graph, u->gradient);
    mr_output decay = mr_mul(graph, weights, u->numbers[MR_NUMBER_WEIGHT_DECAY]);
    mr_output below = mr_add_v2(graph, mr_add_v2(graph, gradients, decay), u->numbers[MR_NUMBER_EPSILON]);
    mr_output ratio = mr_real_div(graph, mr_mul(graph, weights, u->numbers[MR_NUMBER_EETA]), below);
    mr_output both = mr_logical_and(graph, mr_greater(graph, weights, zero), mr_greater(graph, gradients, zero));
    return mr_mul(graph, u->rate, mr_select(graph, both, ratio, one));
}

mr_output mr_optimizer_lars(const mr_optimizer_update *u)
{
    return mr_optimizer_momentum(u, is_skipped(u) ? u->rate : scaled_rate(u));
}

/* ---- MomentumW ---- */

mr_output mr_optimizer_momentum_w(const mr_optimizer_update *u)
{
    mr_node *decayed = mr_optimizer_decay(u);
    mr_graph_push_control_dependencies(u->graph, &decayed, 1);
    mr_output update = mr_optimizer_momentum(u, u->rate);
    mr_graph_pop_control_dependencies(u->graph);
    return update;
}

mr_output mr_optimizer_momentum_w_rows(const mr_optimizer_update *u)
{
    mr_node *decayed = mr_optimizer_decay_rows(u);
    mr_graph_push_control_dependencies(u->graph, &decayed, 1);
    mr_output update = mr_optimizer_momentum_rows(u);
    mr_graph_pop_control_dependencies(u->graph);
    return update;
}
