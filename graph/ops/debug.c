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

static mr_status nan_count_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SHAPE(1);
    return MR_OK;
}

static mr_status summary_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = call->inputs[0].rank < 0 ? MR_SHAPE(-1) : MR_SHAPE(14 + call->inputs[0].rank);
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
    {.name = "DebugGradientRefIdentity",
     .signature = "input: Ref(T) -> output: Ref(T)",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_ALLOWS_UNINITIALIZED,
     .doc = "Returns the reference input unchanged; a debugger finds gradients by it."},
    {.name = "Copy",
     .signature = "input: T -> output: T",
     .attrs = "T: type; tensor_name: string = ''; debug_ops_spec: list(string) = []",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_VIEW | MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_copy_op",
     .doc = "Returns input, for a debugger."},
    {.name = "CopyHost",
     .signature = "input: T -> output: T",
     .attrs = "T: type; tensor_name: string = ''; debug_ops_spec: list(string) = []",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_VIEW | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns input in host memory, for a debugger."},
    {.name = "DebugIdentity",
     .signature = "input: T -> output: T",
     .attrs = "T: type; device_name: string = ''; tensor_name: string = ''; debug_urls: list(string) = []; gated_grpc: "
              "bool = false",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_VIEW | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns input, for a debugger; debug_urls must be empty."},
    {.name = "DebugNanCount",
     .signature = "input: T -> output: int64",
     .attrs = "T: type; device_name: string = ''; tensor_name: string = ''; debug_urls: list(string) = []; gated_grpc: "
              "bool = false",
     .shape = nan_count_shape,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of NaNs in input; debug_urls must be empty."},
    {.name = "DebugNumericSummary",
     .signature = "input: T -> output: double",
     .attrs = "T: type; device_name: string = ''; tensor_name: string = ''; debug_urls: list(string) = []; "
              "lower_bound: float = -inf; upper_bound: float = inf; mute_if_healthy: bool = false; gated_grpc: bool = "
              "false",
     .shape = summary_shape,
     .flags = MR_OP_ALLOWS_UNINITIALIZED | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns counts, range, mean and variance of the elements of input, and its dtype and shape; debug_urls "
            "must be empty."},
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
