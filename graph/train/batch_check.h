/* Batch sizes that must be equal: checked when the graph is built if both are known, otherwise when it runs. */
#ifndef MR_GRAPH_TRAIN_BATCH_CHECK_H
#define MR_GRAPH_TRAIN_BATCH_CHECK_H

#include "graph/train/train.h"

/* The size of a dimension, or a given size. */
typedef struct mr_batch_size {
    const char *what; /* for messages: "the memory" */
    int64_t known;    /* -1: known when the graph runs */
    mr_output size;   /* then an int32 scalar, or null: the size of the dimension `axis` of `value` */
    mr_output value;
    int32_t axis;
} mr_batch_size;

mr_batch_size mr_batch_size_of(const char *what, mr_output value, int32_t axis);
/* size  an int32 scalar */
mr_batch_size mr_batch_size_from(const char *what, mr_output size);
/* The size of the dimension, an int32 scalar. */
mr_output mr_batch_size_scalar(mr_graph *graph, mr_output value, int32_t axis);
/* Returns `guarded`, or an identity of it that runs after an Assert. Records an error if the sizes are known and
 * differ.
 * function  what the caller of the library has called, for messages
 * hint      the end of the message; "": none */
mr_output mr_batch_check(mr_graph *graph, mr_output guarded, const char *function, mr_batch_size first,
                         mr_batch_size second, const char *hint);

#endif
