/* Losses and metrics, with the values of tf.compat.v1.losses: the mean over the batch, 0 for an empty one. */
#include "graph/train/train.h"
#include <millrace/ops.h>

#include <stdlib.h>

/* The mean of all elements, named SCOPE/value, added to the collection "losses". */
static mr_output mean_loss(mr_graph *graph, mr_output losses)
{
    int32_t axes[MR_RANK_MAX], rank = mr_output_shape(losses).rank;
    for (int32_t i = 0; i < rank; i++) axes[i] = i;
    mr_output all =
        rank >= 0 ? mr_constant_int32s(graph, MR_SHAPE(rank), axes, nullptr)
                  : mr_range(graph, mr_constant_int32(graph, 0), mr_rank(graph, losses), mr_constant_int32(graph, 1));
    mr_output sum = mr_sum(graph, losses, all);
    mr_output count = mr_cast(graph, mr_size(graph, losses), MR_FLOAT, .name = "num_present");
    mr_output value = mr_div_no_nan(graph, sum, count, .name = "value");
    mr_graph_add_to_collection(graph, MR_LOSSES, value);
    return value;
}

mr_output mr_loss_sparse_softmax_cross_entropy(mr_graph *graph, mr_output labels, mr_output logits)
{
    mr_graph_push_scope(graph, "sparse_softmax_cross_entropy_loss");
    mr_output loss =
        mr_sparse_softmax_cross_entropy_with_logits(graph, logits, labels, .name = "xentropy/xentropy").loss;
    mr_output value = mean_loss(graph, loss);
    mr_graph_pop_scope(graph);
    return value;
}

mr_output mr_loss_mean_squared_error(mr_graph *graph, mr_output labels, mr_output predictions)
{
    mr_graph_push_scope(graph, "mean_squared_error");
    mr_output value = mean_loss(graph, mr_squared_difference(graph, predictions, labels));
    mr_graph_pop_scope(graph);
    return value;
}

mr_output mr_loss_total(mr_graph *graph)
{
    int32_t losses = mr_graph_collection_count(graph, MR_LOSSES);
    int32_t count = losses + mr_graph_collection_count(graph, MR_REGULARIZATION_LOSSES);
    if (count == 0) return mr_graph_fail(graph, MR_FAILED_PRECONDITION, "the graph has no losses");
    mr_output *terms = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)count);
    if (terms == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for %d losses", count);
    for (int32_t i = 0; i < count; i++)
        terms[i] = i < losses ? mr_graph_collection_item(graph, MR_LOSSES, i)
                              : mr_graph_collection_item(graph, MR_REGULARIZATION_LOSSES, i - losses);
    if (count == 1) return mr_identity(graph, terms[0], .name = "total_loss");
    return mr_add_n(graph, MR_OUTPUTS_OF(terms, count), .name = "total_loss");
}

mr_output mr_accuracy(mr_graph *graph, mr_output labels, mr_output logits)
{
    mr_graph_push_scope(graph, "accuracy");
    mr_output best = mr_arg_max(graph, logits, mr_constant_int32(graph, 1), .output_type = MR_INT64);
    if (mr_output_dtype(labels) != MR_INT64) labels = mr_cast(graph, labels, MR_INT64);
    mr_output hits = mr_cast(graph, mr_equal(graph, best, labels), MR_FLOAT);
    mr_output value = mr_mean(graph, hits, mr_constant_ints(graph, MR_INTS(0)), .name = "value");
    mr_graph_pop_scope(graph);
    return value;
}
