/* Losses of tf.compat.v1.losses, with its names and values.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1));
 * mr_output logits = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 10));
 * mr_output loss = mr_loss_sparse_softmax_cross_entropy(g, labels, logits);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(loss.node));
 * mr_graph_free(g);
 * ```
 *
 * Options follow the rules of variables.h. */
#ifndef MILLRACE_LOSSES_H
#define MILLRACE_LOSSES_H

#include <millrace/variables.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Mean over the batch; added to the collection "losses" (tf.losses.sparse_softmax_cross_entropy). */
MR_API mr_output mr_loss_sparse_softmax_cross_entropy(mr_graph *graph, mr_output labels, mr_output logits);
MR_API mr_output mr_loss_mean_squared_error(mr_graph *graph, mr_output labels, mr_output predictions);
/* Sum of the graph's losses and regularization losses (tf.losses.get_total_loss). */
MR_API mr_output mr_loss_total(mr_graph *graph);
/* Fraction of rows whose largest logit is the label: a float scalar. */
MR_API mr_output mr_accuracy(mr_graph *graph, mr_output labels, mr_output logits);

#ifdef __cplusplus
}
#endif
#endif
