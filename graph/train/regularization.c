/* Regularization losses, with the nodes of tf.contrib.layers.l1_regularizer, l2_regularizer and l1_l2_regularizer. */
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

static mr_output scaled_l1(mr_graph *graph, mr_output value, float l1)
{
    mr_graph_push_scope(graph, "l1_regularizer");
    mr_output scale = mr_train_scalar(graph, "scale", mr_output_dtype(value), l1);
    mr_output magnitude = mr_abs(graph, value);
    int32_t axes[MR_RANK_MAX], rank = mr_output_shape(value).rank;
    for (int32_t i = 0; i < rank; i++) axes[i] = i;
    mr_output sum = mr_sum(graph, magnitude, mr_constant_int32s(graph, MR_SHAPE(rank < 0 ? 0 : rank), axes, nullptr));
    mr_output loss = mr_mul(graph, scale, sum, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return loss;
}

static mr_output scaled_l2(mr_graph *graph, mr_output value, float l2)
{
    mr_graph_push_scope(graph, "l2_regularizer");
    mr_output scale = mr_train_scalar(graph, "scale", mr_output_dtype(value), l2);
    mr_output loss = mr_mul(graph, scale, mr_l2_loss(graph, value), .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return loss;
}

mr_output mr_train_regularization(mr_graph *graph, mr_output value, mr_regularizer regularizer)
{
    if (regularizer.l1 == 0 && regularizer.l2 == 0) return (mr_output){0};
    if (regularizer.l1 == 0) return scaled_l2(graph, value, regularizer.l2);
    if (regularizer.l2 == 0) return scaled_l1(graph, value, regularizer.l1);
    mr_output l1 = scaled_l1(graph, value, regularizer.l1), l2 = scaled_l2(graph, value, regularizer.l2);
    return mr_add_n(graph, MR_OUTPUTS(l1, l2), .name = "l1_l2_regularizer");
}

void mr_train_regularize(mr_graph *graph, const char *name, mr_output value, mr_regularizer regularizer)
{
    if (mr_graph_status(graph, nullptr) != MR_OK || (regularizer.l1 == 0 && regularizer.l2 == 0)) return;
    const char *scope = mr_arena_printf(&graph->arena, "%s/Regularizer/", name);
    mr_graph_push_scope(graph, scope != nullptr ? scope : "Regularizer");
    mr_output loss = mr_train_regularization(graph, value, regularizer);
    mr_graph_pop_scope(graph);
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_graph_add_to_collection(graph, MR_REGULARIZATION_LOSSES, loss);
}
