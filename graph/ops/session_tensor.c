/* Tensors that a session keeps between runs: programs feed their handles, which are strings, to later runs. */
#include "graph/ops/shapes.h"

static const mr_op session_tensor_ops[] = {
    {.name = "GetSessionHandle",
     .signature = "value: T -> handle: string",
     .attrs = "T: type",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Keeps value in the session and returns its handle."},
    {.name = "GetSessionTensor",
     .signature = "handle: string -> value: dtype",
     .attrs = "dtype: type",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the tensor with this handle."},
    {.name = "DeleteSessionTensor",
     .signature = "handle: string ->",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Releases the tensor with this handle."},
};

const mr_op_table mr_ops_session_tensor = {session_tensor_ops,
                                           sizeof session_tensor_ops / sizeof session_tensor_ops[0]};
