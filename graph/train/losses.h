/* Weighing and reducing losses, for the files that compute them. */
#ifndef MR_GRAPH_TRAIN_LOSSES_H
#define MR_GRAPH_TRAIN_LOSSES_H

#include "graph/train/train.h"

/* The options that a loss has; the others are errors. */
typedef enum mr_loss_choices {
    MR_LOSS_HAS_SMOOTHING = 1,
    MR_LOSS_HAS_DELTA = 2,
    MR_LOSS_HAS_EPSILON = 4,
    MR_LOSS_HAS_AXIS = 8,
    MR_LOSS_HAS_NO_REDUCTION = 16,
} mr_loss_choices;

/* Opens the loss's scope and reads the options, with the defaults filled in. False after an error of the graph; the
 * scope is open in any case. */
bool mr_loss_begin(mr_graph *graph, const char *name, const mr_loss_options *given, int choices,
                   mr_loss_options *options);
/* Checks that the weights fit values, while the graph is built or when it runs, and returns them as float. */
mr_output mr_loss_check_weights(mr_graph *graph, mr_output weights, mr_output values);
/* Weighs, reduces, adds to the collection, and closes the scope. */
mr_output mr_loss_end(mr_graph *graph, mr_output losses, const mr_loss_options *options);
/* The number of elements of values whose weight is not 0, a float; with rows, that of each row, [batch, 1, …]. */
mr_output mr_loss_num_present(mr_graph *graph, mr_output values, mr_output weights, bool by_row);
/* All axes of values from the first one on, as an int32 vector. */
mr_output mr_loss_axes(mr_graph *graph, mr_output values, int32_t first);
/* The sigmoid cross entropy of each element. All have one floating dtype. */
mr_output mr_loss_sigmoid(mr_graph *graph, mr_output labels, mr_output logits, const char *scope);
/* value as a matrix, [rows, last size]. Its rank is at least 1. */
mr_output mr_loss_matrix(mr_graph *graph, mr_output value);

#endif
