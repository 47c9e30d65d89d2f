/* What metrics have in common: options, variables, weights and quotients. */
#ifndef MR_GRAPH_TRAIN_METRICS_H
#define MR_GRAPH_TRAIN_METRICS_H

#include "graph/train/losses.h"
#include <millrace/metrics.h>

/* The options that a metric has; the others are errors. */
typedef enum mr_metric_choices {
    MR_METRIC_HAS_THRESHOLDS = 1,
    MR_METRIC_HAS_CURVE = 2,
} mr_metric_choices;

/* Opens the metric's scope and reads the options, with the defaults filled in. False after an error of the graph; the
 * scope is open in any case. */
bool mr_metric_begin(mr_graph *graph, const char *name, const mr_metric_options *given, int choices,
                     mr_metric_options *options);
/* Adds the metric to the collections and closes the scope. */
mr_metric mr_metric_end(mr_graph *graph, mr_metric metric, const mr_metric_options *options);
/* A local variable of zeros, also in the collection of metric variables. Its name is relative to the open scope; null:
 * the name of that scope itself. */
mr_variable mr_metric_variable(mr_graph *graph, const char *name, mr_shape shape, mr_dtype dtype);
/* The weights in the shape of values, as float; {0} if there are none. */
mr_output mr_metric_weights(mr_graph *graph, const mr_metric_options *options, mr_output values);
mr_output mr_metric_cast(mr_graph *graph, mr_output value, mr_dtype dtype);
/* The sum of all elements. */
mr_output mr_metric_sum(mr_graph *graph, mr_output values);
/* The mean of values inside of the scope that is open: variables "total" and "count". */
mr_metric mr_metric_mean_of(mr_graph *graph, mr_output values, const mr_metric_options *options);
/* Records an error unless both can have the same shape; a last dimension of 1 that only one has is removed. */
void mr_metric_match(mr_graph *graph, mr_output *labels, mr_output *predictions);

#endif
