/* IDEA */
#include "graph/ir/op.h"

static const mr_op identity_ops[] = {
    {.name = "Identity",
     .signature = "input: T -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .doc = "Passes input on."},
    {.name = "IdentityN",
     .signature = "input: T -> output: T",
     .attrs = "T: list(type) >= 1",
     .shape = mr_shape_each,
     .doc = "Passes every tensor of input on."},
    {.name = "StopGradient",
     .signature = "input: T -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Passes input on; gradients do not pass back."},
    {.name = "PreventGradient",
     .signature = "input: T -> output: T",
     .attrs = "T: type; message: string = ''",
     .shape = mr_shape_unchanged,
     .doc = "Passes input on; asking for its gradient is an error that says message."},
    {.name = "Snapshot",
     .signature = "input: T -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .doc = "A copy of input."},
    {.name = "CheckNumerics",
     .signature = "tensor: T -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; message: string",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_STATEFUL,
     .doc = "Passes tensor on; an element that is infinite or not a number is an error that begins with message."},
};

const mr_op_table mr_op_table_identity = {identity_ops, sizeof identity_ops / sizeof identity_ops[0]};
