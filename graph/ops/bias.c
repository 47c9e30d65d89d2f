/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status bias_add_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status bias_add_grad_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op bias_ops[] = {
    {.name = "BiasAdd",
     .signature = "value: T, bias: T -> output: T",
     .attrs = "T: numbertype; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     .shape = bias_add_shape,
     .gradient = MR_GRADIENT(mr_bias_add_gradient),
     .doc = "Adds a vector to the channels of value."},
    {.name = "BiasAddGrad",
     .signature = "out_backprop: T -> output: T",
     .attrs = "T: numbertype; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     .shape = bias_add_grad_shape,
     .gradient = MR_GRADIENT(mr_bias_add_grad_gradient),
     .doc = "The sum of out_backprop over all dimensions but the channels."},
};

const mr_op_table mr_op_table_bias = {bias_ops, sizeof bias_ops / sizeof bias_ops[0]};
