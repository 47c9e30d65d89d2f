/* Quantization: conversion to and from narrow integers, and its simulation in training. */
#include "graph/ir/op.h"

/* The inputs from `first` on are limits: scalars, or vectors with an element for each slice along axis. */
static mr_status check_limits(mr_shape_call *call, int64_t axis, int32_t input, int32_t first, int64_t *depth,
                              mr_error *error)
{
    mr_shape shape = call->inputs[input];
    *depth = -1;
    if (axis < -1) return mr_fail(error, MR_INVALID_ARGUMENT, "axis should be at least -1, got %lld", (long long)axis);
    if (axis >= 0 && shape.rank >= 0) {
        if (axis >= shape.rank)
            return mr_shape_at_least(shape, axis < MR_RANK_MAX ? (int32_t)axis + 1 : MR_RANK_MAX, error);
        *depth = shape.dims[axis];
    }
    for (int32_t i = first; i < first + 2; i++) {
        mr_shape limit;
        MR_TRY(mr_shape_with_rank(call->inputs[i], axis < 0 ? 0 : 1, &limit, error));
        if (axis >= 0) MR_TRY(mr_size_merge(*depth, limit.dims[0], depth, error));
    }
    return MR_OK;
}

static mr_status simulated_shape(mr_shape_call *call, mr_error *error)
{
    int64_t depth;
    MR_TRY(check_limits(call, mr_attr_int_or(call->attrs, "axis", -1), 0, 1, &depth, error));
    if (call->input_count > 3) MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    return mr_shape_unchanged(call, error);
}

static mr_status simulated_gradient_shape(mr_shape_call *call, mr_error *error)
{
    int64_t axis = mr_attr_int_or(call->attrs, "axis", -1), depth;
    MR_TRY(check_limits(call, axis, 1, 2, &depth, error));
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[1], &call->outputs[0], error));
    call->outputs[1] = call->outputs[2] = axis < 0 ? MR_SCALAR : MR_SHAPE(depth);
    return MR_OK;
}

static mr_status quantize_shape(mr_shape_call *call, mr_error *error)
{
    int64_t axis = mr_attr_int_or(call->attrs, "axis", -1), depth;
    MR_TRY(check_limits(call, axis, 0, 1, &depth, error));
    call->outputs[0] = call->inputs[0];
    if (call->output_count > 2) call->outputs[1] = call->outputs[2] = axis < 0 ? MR_SCALAR : MR_SHAPE(depth);
    return MR_OK;
}

/* Limits for each channel, which is the last dimension. */
static mr_status channels_of(mr_shape_call *call, int32_t input, mr_shape *channels, mr_error *error)
{
    mr_shape shape = call->inputs[input];
    MR_TRY(mr_shape_at_least(shape, 1, error));
    *channels = MR_SHAPE(shape.rank < 0 ? -1 : shape.dims[shape.rank - 1]);
    for (int32_t i = input + 1; i < input + 3; i++) {
        mr_shape limit;
        MR_TRY(mr_shape_with_rank(call->inputs[i], 1, &limit, error));
        MR_TRY(mr_shape_merge(*channels, limit, channels, error));
    }
    return MR_OK;
}

static mr_status fake_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 1; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    return mr_shape_unchanged(call, error);
}

static mr_status fake_channels_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape channels;
    MR_TRY(channels_of(call, 0, &channels, error));
    call->outputs[0] = call->inputs[0];
    if (call->outputs[0].rank > 0) call->outputs[0].dims[call->outputs[0].rank - 1] = channels.dims[0];
    return MR_OK;
}

static mr_status fake_gradient_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[1], &call->outputs[0], error));
    for (int32_t i = 2; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    for (int32_t i = 1; i < call->output_count; i++) call->outputs[i] = MR_SCALAR;
    return MR_OK;
}

static mr_status fake_channels_gradient_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape channels;
    MR_TRY(channels_of(call, 1, &channels, error));
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[1], &call->outputs[0], error));
    call->outputs[1] = call->outputs[2] = channels;
    return MR_OK;
}

#define FLOATS "T: {bfloat16, half, float, double}"
#define QUANTIZED "T: {qint8, quint8, qint32, qint16, quint16}"
#define MODE "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'"
#define ARGUMENTS "min: float = -6; max: float = 6; num_bits: int = 8; narrow_range: bool = false"
#define BITS "num_bits: int = 8; narrow_range: bool = false"
#define SIMULATED                                                                                                      \
    "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; " FLOATS                                 \
    "; round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'; narrow_range: bool = false; axis: int = -1"

static const mr_op quantize_ops[] = {
    {.name = "QuantizeV2",
     .signature = "input: float, min_range: float, max_range: float -> output: T, output_min: float, "
                  "output_max: float",
     .attrs = QUANTIZED "; " MODE "; round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'; "
                        "narrow_range: bool = false; axis: int = -1; ensure_minimum_range: float = 0.01",
     .shape = quantize_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Quantizes input from [min_range, max_range] to the range of T, and returns the range that was used."},
    {.name = "Dequantize",
     .signature = "input: T, min_range: float, max_range: float -> output: dtype",
     .attrs = QUANTIZED "; " MODE "; narrow_range: bool = false; axis: int = -1; dtype: {bfloat16, float} = float",
     .shape = quantize_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Converts quantized numbers to [min_range, max_range]."},
    {.name = "QuantizeAndDequantize",
     .signature = "input: T -> output: T",
     .attrs = "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; input_min: float = 0; "
              "input_max: float = 0; " FLOATS,
     .shape = mr_shape_unchanged,
     .doc = "Rounds input to the numbers that num_bits bits represent; used by old graphs."},
    {.name = "QuantizeAndDequantizeV2",
     .signature = "input: T, input_min: T, input_max: T -> output: T",
     .attrs = SIMULATED,
     .shape = simulated_shape,
     .doc = "Rounds input to the numbers that num_bits bits represent in a range."},
    {.name = "QuantizeAndDequantizeV3",
     .signature = "input: T, input_min: T, input_max: T, num_bits: int32 -> output: T",
     .attrs = "signed_input: bool = true; range_given: bool = true; " FLOATS "; narrow_range: bool = false; "
              "axis: int = -1",
     .shape = simulated_shape,
     .doc = "Rounds input to the numbers that a computed number of bits represents in a range."},
    {.name = "QuantizeAndDequantizeV4",
     .signature = "input: T, input_min: T, input_max: T -> output: T",
     .attrs = SIMULATED,
     .shape = simulated_shape,
     .doc = "Rounds input to the numbers that num_bits bits represent in a range; its gradient is 0 outside of it."},
    {.name = "QuantizeAndDequantizeV4Grad",
     .signature = "gradients: T, input: T, input_min: T, input_max: T -> input_backprop: T, input_min_backprop: T, "
                  "input_max_backprop: T",
     .attrs = FLOATS "; axis: int = -1",
     .shape = simulated_gradient_shape,
     .doc = "Computes the gradient of QuantizeAndDequantizeV4: gradients where input is in the range."},
    {.name = "FakeQuantWithMinMaxArgs",
     .signature = "inputs: float -> outputs: float",
     .attrs = ARGUMENTS,
     .shape = fake_shape,
     .doc = "Rounds inputs to the numbers that num_bits bits represent in the range from min to max."},
    {.name = "FakeQuantWithMinMaxArgsGradient",
     .signature = "gradients: float, inputs: float -> backprops: float",
     .attrs = ARGUMENTS,
     .shape = fake_gradient_shape,
     .doc = "Computes the gradient of FakeQuantWithMinMaxArgs: gradients where inputs are in the range."},
    {.name = "FakeQuantWithMinMaxVars",
     .signature = "inputs: float, min: float, max: float -> outputs: float",
     .attrs = BITS,
     .shape = fake_shape,
     .doc = "Rounds inputs to the numbers that num_bits bits represent in the range from min to max, which are "
            "scalars."},
    {.name = "FakeQuantWithMinMaxVarsGradient",
     .signature = "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, "
                  "backprop_wrt_min: float, backprop_wrt_max: float",
     .attrs = BITS,
     .shape = fake_gradient_shape,
     .doc = "Computes the gradients of FakeQuantWithMinMaxVars; those of numbers outside the range go to its ends."},
    {.name = "FakeQuantWithMinMaxVarsPerChannel",
     .signature = "inputs: float, min: float, max: float -> outputs: float",
     .attrs = BITS,
     .shape = fake_channels_shape,
     .doc = "Rounds inputs to the numbers that num_bits bits represent in the range of their channel, the last "
            "dimension."},
    {.name = "FakeQuantWithMinMaxVarsPerChannelGradient",
     .signature = "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, "
                  "backprop_wrt_min: float, backprop_wrt_max: float",
     .attrs = BITS,
     .shape = fake_channels_gradient_shape,
     .doc = "Computes the gradients of FakeQuantWithMinMaxVarsPerChannel."},
};

const mr_op_table mr_ops_quantize = {quantize_ops, sizeof quantize_ops / sizeof quantize_ops[0]};
