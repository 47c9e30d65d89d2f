/* Sparse gradients, TensorFlow's IndexedSlices: an output of the graph that is a sum of rows, together with these rows.
 * Whoever can, uses the rows; the dense output then has no reader and does not run. */
#ifndef MR_GRAPH_IR_SPARSE_ROWS_H
#define MR_GRAPH_IR_SPARSE_ROWS_H

#include <millrace/graph.h>

typedef struct mr_sparse_rows {
    mr_output dense;   /* [count, …]: row indices[i] is the sum of these values[i] */
    mr_output values;  /* [n, …] */
    mr_output indices; /* [n], int32 or int64; in any order, any number of times */
    mr_output count;   /* of the dense rows: a scalar */
} mr_sparse_rows;

/* Records an error of the graph if memory is exhausted. Without effect after an error. */
void mr_graph_note_rows(mr_graph *graph, mr_sparse_rows rows);
/* Null: the output is dense. Valid until the next note. */
const mr_sparse_rows *mr_graph_find_rows(const mr_graph *graph, mr_output dense);

#endif
