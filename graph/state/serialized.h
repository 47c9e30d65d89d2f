/* Serialized sparse tensors as variants: what SerializeSparse gives with out_type = variant, and what elements of
 * datasets contain in place of sparse tensors.
 *
 * Such a variant is a handle of a tensor of strings and has its shape: [3] for one sparse tensor, [n, 3] for a batch. A
 * pipeline knows no variants: its elements have the strings, which it can batch, cache and save. */
#ifndef MR_GRAPH_STATE_SERIALIZED_H
#define MR_GRAPH_STATE_SERIALIZED_H

#include "graph/state/state.h"

/* The strings of a variant, borrowed from it; null if it is of another kind. */
const mr_tensor *mr_serialized_strings(const mr_tensor *variant);
/* Replaces the strings by a variant. On an error they are unchanged. */
mr_status mr_serialized_wrap(mr_tensor *tensor, mr_error *error);
/* From a pipeline to a node: as mr_serialized_wrap if strings are to be a variant. */
mr_status mr_serialized_to_graph(mr_tensor *tensor, mr_dtype dtype, mr_error *error);
/* From a node to a pipeline: replaces a variant by its strings. Other tensors stay as they are. */
void mr_serialized_to_pipeline(mr_tensor *tensor);
/* Writes a sparse tensor as three strings.
 * strings  empty on entry, owned by the caller */
mr_status mr_serialized_sparse(const mr_tensor *indices, const mr_tensor *values, const mr_tensor *shape,
                               mr_tensor *strings, mr_error *error);
/* The sparse tensor in inputs 0 to 2 as a vector of three strings; with `parts`, as a matrix with such a row for each
 * of its parts along dimension 0.
 * strings  empty on entry, owned by the caller */
mr_status mr_serialized_inputs(mr_kernel_call *call, bool parts, mr_tensor *strings, mr_error *error);
/* Fills the outputs indices, values and shape with the sparse tensors of [.., 3] strings, joined. */
mr_status mr_serialized_outputs(mr_kernel_call *call, const mr_tensor *strings, mr_error *error);

#endif
