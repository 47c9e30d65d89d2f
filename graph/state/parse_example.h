/* The features that a node describes in its attrs, for operators that parse Examples elsewhere. */
#ifndef MR_GRAPH_STATE_PARSE_EXAMPLE_H
#define MR_GRAPH_STATE_PARSE_EXAMPLE_H

#include "graph/state/state.h"
#include "records/example/example_fault.h"
#include <millrace/example.h>

/* The features of the attrs sparse_keys, dense_keys, sparse_types, Tdense and dense_shapes: sparse ones, then dense
 * ones. Names are allocated from the arena; default values are the inputs from first_default on, and borrowed. */
mr_status mr_parse_features(const mr_kernel_call *call, int first_default, mr_arena *arena, mr_feature **features,
                            int32_t *count, mr_error *error);

/* The error of a parser in TensorFlow's words, or the parser's own if the fault is MR_FAULT_NONE.
 * names   the names of the records, or null
 * single  one Example: messages name no record */
mr_status mr_parse_fail(const mr_kernel_call *call, const mr_example_fault *fault, const mr_tensor *names, bool single,
                        mr_status status, const mr_error *reason, mr_error *error);

#endif
