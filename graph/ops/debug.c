/* Operators that check or print their inputs, or mark them for rewriting. */
#include "graph/ir/fold.h"

static mr_status ensure_shape_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape wanted;
    MR_TRY(mr_attr_get_shape(call->attrs, "shape", &wanted, error));
    return mr_shape_merge(wanted, call->inputs[0], &call->outputs[0], error);
}

static mr_status print_v2_shape(mr_shape_call *call, mr_error *error)
{
    if (call->inputs[0].rank > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input must be a scalar, but has rank: %d", call->inputs[0].rank);
    return MR_OK;
}

static const mr_op debug_ops[] = {
    {.name = "CheckNumericsV2",
     .signature = "tensor: T -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; message: string",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_VIEW | MR_OP_STATEFUL,
     .doc = "Returns tensor unchanged; fails with an error that starts with message and names what was found if an "
            "element is infinite or NaN."},
    {.name = "EnsureShape",
     .signature = "input: T -> output: T",
     .attrs = "shape: shape; T: type",
     .shape = ensure_shape_shape,
     .fold = mr_fold_pass,
     .flags = MR_OP_VIEW,
     .doc = "Returns input unchanged; fails if its shape is not compatible with the given one."},
    {.name = "GuaranteeConst",
     .signature = "input: T -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_VIEW | MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns input unchanged, and states that it never changes."},
    {.name = "DebugGradientIdentity",
     .signature = "input: T -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .fold = mr_fold_pass,
     .flags = MR_OP_VIEW | MR_OP_ALLOWS_UNINITIALIZED,
     .doc = "Returns input unchanged; a debugger finds gradients by it."},
    {.name = "Timestamp",
     .signature = "-> ts: double",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the time in seconds since 1970-01-01 UTC."},
    {.name = "PrintV2",
     .signature = "input: string ->",
     .attrs = "output_stream: string = 'stderr'; end: string = '\n'",
     .shape = print_v2_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Prints a string and end to a standard stream, the log or a file."},
};

const mr_op_table mr_ops_debug = {debug_ops, sizeof debug_ops / sizeof debug_ops[0]};
