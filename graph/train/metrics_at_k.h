/* What the metrics of the k best classes have in common: options, labels and sets of class ids. */
#ifndef MR_GRAPH_TRAIN_METRICS_AT_K_H
#define MR_GRAPH_TRAIN_METRICS_AT_K_H

#include "graph/train/metrics.h"

/* Sets of class ids, one for each row, which is the last dimension. */
typedef struct mr_class_ids {
    mr_output values;         /* int64 [..., n]; of a sparse tensor [count] */
    mr_output indices, shape; /* of a sparse tensor: int64 [count, rank] and [rank]; {0}: dense */
} mr_class_ids;

typedef struct mr_at_k {
    mr_metric_options common; /* for mr_metric_end */
    const char *suffix;       /* of names: "3_class2", "k" */
    int64_t class_id;         /* MR_COUNT_UNSET: all classes */
    mr_class_ids labels;      /* of the rank of top */
    mr_output top;            /* int64 [..., k] */
} mr_at_k;

/* How the class ids are specified: scores of all classes, or the ids of the best ones. */
typedef enum mr_at_k_choices {
    MR_AT_K_HAS_CLASS_ID = 1,
    MR_AT_K_HAS_INDICES = 2,
} mr_at_k_choices;

/* Opens the metric's scope, reads the options, finds the k best classes and prepares the labels. False after an error
 * of the graph; the scope is open in any case.
 * name  of the metric, without "_at_3"
 * k     ignored with MR_AT_K_HAS_INDICES: predictions are the ids of the best classes */
bool mr_at_k_begin(mr_graph *graph, const char *name, mr_output labels, mr_output predictions, int32_t k, int choices,
                   const mr_metric_at_k_options *given, mr_at_k *metric);
/* The number of ids in each row of the result of a set operation, "intersection", "a-b" or "b-a": double [...]. The
 * rows of both have to have the same leading shape; predicted may be sparse only if labels are. */
mr_output mr_class_ids_count(mr_graph *graph, const char *operation, mr_class_ids predicted, mr_class_ids labels);
/* The number of distinct ids in each row of a sparse tensor: int32. */
mr_output mr_class_ids_size(mr_graph *graph, mr_class_ids ids);
/* All elements of a vector but the last one. */
mr_output mr_at_k_leading(mr_graph *graph, mr_output vector);
/* The weights of the rows as double, checked against counts [...]; {0} if there are none. */
mr_output mr_at_k_weights(mr_graph *graph, const mr_at_k *metric, mr_output counts);

#endif
