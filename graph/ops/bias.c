/* Addition of a bias vector to the channels. */
#include "graph/ir/op.h"

#include <string.h>

/* The axis of the channels: the last, or 1 for NCHW. */
static int32_t channel_axis(const mr_shape_call *call, mr_shape shape)
{
    mr_string format = mr_attr_string_or(call->attrs, "data_format", "NHWC");
    return mr_string_equal(format, MR_STR("NCHW")) ? 1 : shape.rank - 1;
}

static mr_status bias_add_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape value = call->inputs[0], bias;
    MR_TRY(mr_shape_at_least(value, 2, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &bias, error));
    if (value.rank < 0) return MR_OK;
    int64_t *channels = &value.dims[channel_axis(call, value)];
    if (*channels >= 0 && bias.dims[0] >= 0 && *channels != bias.dims[0])
        return mr_fail(error, MR_INVALID_ARGUMENT, "value has %lld channels, bias %lld", (long long)*channels,
                       (long long)bias.dims[0]);
    MR_TRY(mr_size_merge(*channels, bias.dims[0], channels, error));
    call->outputs[0] = value;
    return MR_OK;
}

static mr_status bias_add_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape gradient = call->inputs[0];
    MR_TRY(mr_shape_at_least(gradient, 2, error));
    call->outputs[0] = MR_SHAPE(gradient.rank < 0 ? -1 : gradient.dims[channel_axis(call, gradient)]);
    return MR_OK;
}

static const mr_op bias_ops[] = {
    {.name = "BiasAdd",
     .signature = "value: T, bias: T -> output: T",
     .attrs = "T: numbertype; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     .shape = bias_add_shape,
     .role = MR_FUSION_BIAS_ADD,
     .doc = "Adds the vector bias to the channels of value."},
    {.name = "BiasAddV1",
     .signature = "value: T, bias: T -> output: T",
     .attrs = "T: numbertype",
     .shape = bias_add_shape,
     .role = MR_FUSION_BIAS_ADD,
     .doc = "Adds bias to the last dimension of value; used by old graphs."},
    {.name = "BiasAddGrad",
     .signature = "out_backprop: T -> output: T",
     .attrs = "T: numbertype; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     .shape = bias_add_grad_shape,
     .doc = "Computes the gradient of BiasAdd: the sum of out_backprop over all dimensions except the channels."},
};

const mr_op_table mr_ops_bias = {bias_ops, sizeof bias_ops / sizeof bias_ops[0]};
