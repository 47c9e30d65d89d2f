/* PowerSign and AddSign: the gradient counts more where its sign is that of its average. */
#include "graph/train/optimizer_kinds.h"
#include <millrace/ops.h>

mr_output mr_optimizer_power_sign(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    if (mr_output_dtype(u->variable) != MR_RESOURCE)
        return mr_apply_power_sign(u->graph, u->variable, u->slots[0], u->rate, n[MR_NUMBER_BASE], u->sign_decay,
                                   n[MR_NUMBER_BETA], u->gradient, MR_LOCKING(u));
    mr_node *node = mr_resource_apply_power_sign(u->graph, u->variable, u->slots[0], u->rate, n[MR_NUMBER_BASE],
                                                 u->sign_decay, n[MR_NUMBER_BETA], u->gradient, MR_LOCKING(u));
    return (mr_output){node, 0};
}

mr_output mr_optimizer_add_sign(const mr_optimizer_update *u)
{
    const mr_output *n = u->numbers;
    if (mr_output_dtype(u->variable) != MR_RESOURCE)
        return mr_apply_add_sign(u->graph, u->variable, u->slots[0], u->rate, n[MR_NUMBER_ALPHA], u->sign_decay,
                                 n[MR_NUMBER_BETA], u->gradient, MR_LOCKING(u));
    mr_node *node = mr_resource_apply_add_sign(u->graph, u->variable, u->slots[0], u->rate, n[MR_NUMBER_ALPHA],
                                               u->sign_decay, n[MR_NUMBER_BETA], u->gradient, MR_LOCKING(u));
    return (mr_output){node, 0};
}

/* Of the rows: sign_decay * sign(gradient) * sign(average). The average decays everywhere. */
static mr_output agreement(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    mr_output beta = u->numbers[MR_NUMBER_BETA];
    mr_output share = mr_mul(graph, u->values, mr_sub(graph, mr_optimizer_one(u), beta));
    mr_output signs = mr_sign(graph, mr_optimizer_move(u, u->slots[0], beta, share));
    mr_output both = mr_mul(graph, mr_gather(graph, signs, u->indices), mr_sign(graph, u->values));
    return mr_mul(graph, u->sign_decay, both);
}

static mr_output subtract(const mr_optimizer_update *u, mr_output factor)
{
    mr_output change = mr_mul(u->graph, mr_mul(u->graph, u->rate, factor), u->values);
    return (mr_output){mr_optimizer_subtract_rows(u, change), 0};
}

mr_output mr_optimizer_power_sign_rows(const mr_optimizer_update *u)
{
    return subtract(u, mr_exp(u->graph, mr_mul(u->graph, u->numbers[MR_NUMBER_BASE], agreement(u))));
}

mr_output mr_optimizer_add_sign_rows(const mr_optimizer_update *u)
{
    return subtract(u, mr_add_v2(u->graph, u->numbers[MR_NUMBER_ALPHA], agreement(u)));
}
