/* Pooling, and local response normalization. */
#include "graph/ir/op.h"
#include "graph/ops/window.h"

static mr_status pool_shape(mr_shape_call *call, mr_error *error)
{
    mr_window w;
    mr_shape input;
    int64_t size[4];
    int32_t count = 0;
    MR_TRY(mr_window_read(call->attrs, &w, error));
    MR_TRY(mr_attr_get_ints(call->attrs, "ksize", size, 4, &count, error));
    if (count != 4) return mr_fail(error, MR_INVALID_ARGUMENT, "attr ksize must have 4 values, but has %d", count);
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &input, error));
    w.height = size[w.height_axis];
    w.width = size[w.height_axis + 1];
    int64_t depth = size[w.channel_axis], channels = input.dims[w.channel_axis];
    if (depth < 1 || w.height < 1 || w.width < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr ksize must be greater than 0");
    return mr_window_slide(&w, input, channels < 0 ? -1 : channels / depth, &call->outputs[0], error);
}

static mr_status avg_pool_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_shape_from_input(call, 0, &shape, error));
    return mr_shape_with_rank(shape, 4, &call->outputs[0], error);
}

static mr_status lrn_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_with_rank(call->inputs[0], 4, &call->outputs[0], error);
}

static mr_status lrn_grad_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_merge_all(call, error));
    return mr_shape_with_rank(call->outputs[0], 4, &call->outputs[0], error);
}

static mr_status unchanged_rank_4(mr_shape_call *call, mr_error *error)
{
    return mr_shape_with_rank(call->inputs[0], 4, &call->outputs[0], error);
}

static mr_status max_pool_grad_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(pool_shape(call, error));
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[2], &shape, error));
    return mr_shape_merge(call->inputs[1], call->outputs[0], &shape, error);
}

static mr_status max_pool_with_argmax_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(pool_shape(call, error));
    call->outputs[1] = call->outputs[0];
    return MR_OK;
}

/* ksize and strides are the last two inputs. The output is unknown unless both are constants. */
static mr_status max_pool_v2_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input;
    const mr_partial *ksize = call->partials[call->input_count - 2], *strides = call->partials[call->input_count - 1];
    mr_string format = mr_attr_string_or(call->attrs, "data_format", "NHWC"), padding = {0};
    bool channels_first = mr_string_equal(format, MR_STR("NCHW"));
    int32_t height = channels_first ? 2 : 1, channel = channels_first ? 1 : 3;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &input, error));
    MR_TRY(mr_attr_get_string(call->attrs, "padding", &padding, error));
    if (ksize == nullptr || strides == nullptr) return MR_OK;
    if (ksize->count != 4 || strides->count != 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "ksize and strides must have 4 values");
    if (ksize->known != 15 || strides->known != 15) return MR_OK;
    for (int32_t i = 0; i < 4; i++)
        if (ksize->values[i] < 1 || strides->values[i] < 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "ksize and strides must be greater than 0");
    bool same = mr_string_equal(padding, MR_STR("SAME"));
    for (int32_t i = height; i < height + 2; i++)
        MR_TRY(mr_window_places(same ? MR_WINDOW_SAME : MR_WINDOW_VALID, input.dims[i], ksize->values[i],
                                strides->values[i], 1, 0, &input.dims[i], error));
    if (input.dims[channel] >= 0) input.dims[channel] /= ksize->values[channel];
    call->outputs[0] = input;
    return MR_OK;
}

static const mr_op pool_ops[] = {
    {.name = "MaxPool",
     .signature = "input: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; "
              "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .shape = pool_shape,
     .role = MR_FUSION_MAX_POOL,
     .fusion = {.positions = "_MaxPoolPositions"},
     .doc = "Computes the maximum of each window of size ksize, at intervals of strides."},
    {.name = "MaxPoolGrad",
     .signature = "orig_input: T, orig_output: T, grad: T -> output: T",
     .attrs = "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: realnumbertype = float",
     .shape = mr_shape_unchanged,
     .role = MR_FUSION_MAX_POOL_GRAD,
     .fusion = {.positions = "_MaxPoolPositionsGrad", .relu_positions = "_MaxPoolPositionsReluGrad"},
     .doc = "Computes the gradient of MaxPool: adds grad at the position of each window's maximum."},
    {.name = "MaxPoolV2",
     .signature = "input: T, ksize: int32, strides: int32 -> output: T",
     .attrs = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; padding: "
              "{'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .shape = max_pool_v2_shape,
     .doc = "Computes the maximum of each window; ksize and strides are inputs."},
    {.name = "MaxPoolGradV2",
     .signature = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
     .attrs = "padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: realnumbertype = float",
     .shape = unchanged_rank_4,
     .doc = "Computes the gradient of MaxPoolV2."},
    {.name = "MaxPoolGradGrad",
     .signature = "orig_input: T, orig_output: T, grad: T -> output: T",
     .attrs = "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; data_format: {'NHWC', "
              "'NCHW'} = 'NHWC'; T: realnumbertype",
     .shape = max_pool_grad_grad_shape,
     .doc = "Computes the gradient of MaxPoolGrad: picks grad at the position of each maximum."},
    {.name = "MaxPoolGradGradV2",
     .signature = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
     .attrs = "padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: realnumbertype",
     .shape = max_pool_v2_shape,
     .doc = "Computes the gradient of MaxPoolGradV2."},
    {.name = "MaxPoolWithArgmax",
     .signature = "input: T -> output: T, argmax: Targmax",
     .attrs = "ksize: list(int) >= 4; strides: list(int) >= 4; Targmax: {int32, int64} = int64; padding: {'SAME', "
              "'VALID'}; include_batch_in_index: bool = false; T: realnumbertype",
     .shape = max_pool_with_argmax_shape,
     .doc = "Computes the maximum of each window and its position in the flattened input."},
    {.name = "MaxPoolGradWithArgmax",
     .signature = "input: T, grad: T, argmax: Targmax -> output: T",
     .attrs = "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; include_batch_in_index: "
              "bool = false; Targmax: {int32, int64}; T: realnumbertype",
     .shape = unchanged_rank_4,
     .doc = "Computes the gradient of MaxPoolWithArgmax: adds grad at the positions in argmax."},
    {.name = "AvgPool",
     .signature = "value: T -> output: T",
     .attrs = "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: {half, bfloat16, float, double}",
     .shape = pool_shape,
     .doc = "Computes the mean of each window of size ksize, at intervals of strides."},
    {.name = "AvgPoolGrad",
     .signature = "orig_input_shape: int32, grad: T -> output: T",
     .attrs = "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: {half, bfloat16, float, double}",
     .shape = avg_pool_grad_shape,
     .doc = "Computes the gradient of AvgPool with respect to its input, whose shape is orig_input_shape."},
    {.name = "LRN",
     .signature = "input: T -> output: T",
     .attrs = "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; "
              "T: {half, bfloat16, float} = float",
     .shape = lrn_shape,
     .doc = "Performs local response normalization: divides by a power of the sum of squares of neighboring channels."},
    {.name = "LRNGrad",
     .signature = "input_grads: T, input_image: T, output_image: T -> output: T",
     .attrs = "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; "
              "T: {half, bfloat16, float} = float",
     .shape = lrn_grad_shape,
     .doc = "Computes the gradient of LRN."},
};

const mr_op_table mr_ops_pool = {pool_ops, sizeof pool_ops / sizeof pool_ops[0]};
