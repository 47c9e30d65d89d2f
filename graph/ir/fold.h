/* Folding: what is known of small integer tensors while a graph is built, so that a shape that operators compute (for
 * example a reshape to a batch size packed with constants) is inferred as far as possible.
 *
 * A row's fold function gets a node, pushes the elements of one output, and returns false if nothing is known. */
#ifndef MR_GRAPH_IR_FOLD_H
#define MR_GRAPH_IR_FOLD_H

#include "graph/ir/op.h"

struct mr_folding {
    const mr_node *node;
    int32_t output; /* index of the output whose elements are pushed */
    int32_t rank;   /* of the result: 0 or 1 */
    int32_t count;
    uint64_t known;
    int64_t values[MR_PARTIAL_MAX];
};

/* What is known of an input; null: nothing. */
const mr_partial *mr_fold_input(const mr_folding *f, int32_t index);
/* The value of an input with one element; false if it is not known. */
bool mr_fold_scalar(const mr_folding *f, int32_t index, int64_t *value);
/* True if element `index` is known. */
bool mr_fold_knows(const mr_partial *partial, int32_t index);
/* True if all elements are known; null is allowed. */
bool mr_fold_is_whole(const mr_partial *partial);

/* Append elements to the result; false if it has too many. */
bool mr_fold_push(mr_folding *f, bool known, int64_t value);
bool mr_fold_push_element(mr_folding *f, const mr_partial *partial, int64_t index);
bool mr_fold_copy(mr_folding *f, const mr_partial *partial); /* all elements; null is allowed */
/* False if the value is outside the range of the output's dtype, int32 or int64: it is then unknown. */
bool mr_fold_fits(const mr_folding *f, int64_t value);

/* The fold function of operators that return the elements of input i as output i. */
bool mr_fold_pass(mr_folding *f);

#endif
