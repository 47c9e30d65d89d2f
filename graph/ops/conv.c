/* Convolutions. */
#include "graph/ir/op.h"
#include "graph/ops/window.h"

static mr_status read_filter(const mr_shape_call *call, mr_window *w, mr_shape *filter, mr_error *error)
{
    MR_TRY(mr_shape_with_rank(call->inputs[1], 4, filter, error));
    w->height = filter->dims[0];
    w->width = filter->dims[1];
    return MR_OK;
}

static mr_status conv2d_shape(mr_shape_call *call, mr_error *error)
{
    mr_window w;
    mr_shape filter, input;
    MR_TRY(mr_window_read(call->attrs, &w, error));
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &input, error));
    MR_TRY(read_filter(call, &w, &filter, error));
    int64_t channels = input.dims[w.channel_axis], expected = filter.dims[2];
    if (channels >= 0 && expected > 0 && channels % expected != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input has %lld channels, filter takes %lld", (long long)channels,
                       (long long)expected);
    return mr_window_slide(&w, input, filter.dims[3], &call->outputs[0], error);
}

static mr_status depthwise_conv2d_shape(mr_shape_call *call, mr_error *error)
{
    mr_window w;
    mr_shape filter, input;
    int64_t channels = 0;
    MR_TRY(mr_window_read(call->attrs, &w, error));
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &input, error));
    MR_TRY(read_filter(call, &w, &filter, error));
    MR_TRY(mr_size_merge(input.dims[w.channel_axis], filter.dims[2], &channels, error));
    bool known = channels >= 0 && filter.dims[3] >= 0;
    if (known && __builtin_mul_overflow(channels, filter.dims[3], &channels))
        return mr_fail(error, MR_INVALID_ARGUMENT, "there are too many output channels");
    return mr_window_slide(&w, input, known ? channels : -1, &call->outputs[0], error);
}

/* input_sizes may have the height and the width alone. */
static mr_status conv2d_backprop_input_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape, filter, gradient;
    mr_window w;
    MR_TRY(mr_shape_from_input(call, 0, &shape, error));
    if (shape.rank == 2) {
        MR_TRY(mr_shape_with_rank(call->inputs[1], 4, &filter, error));
        MR_TRY(mr_shape_with_rank(call->inputs[2], 4, &gradient, error));
        MR_TRY(mr_window_read(call->attrs, &w, error));
        mr_shape whole = {.rank = 4};
        whole.dims[0] = gradient.dims[0];
        whole.dims[w.height_axis] = shape.dims[0];
        whole.dims[w.height_axis + 1] = shape.dims[1];
        whole.dims[w.channel_axis] = filter.dims[2];
        shape = whole;
    }
    return mr_shape_with_rank(shape, 4, &call->outputs[0], error);
}

static mr_status conv2d_backprop_filter_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_shape_from_input(call, 1, &shape, error));
    return mr_shape_with_rank(shape, 4, &call->outputs[0], error);
}

/* The paddings, input `index`, are added to the image. */
static mr_status padded_conv(mr_shape_call *call, mr_shape image, int32_t index, mr_error *error)
{
    mr_window w;
    mr_shape filter, paddings;
    int64_t depth = 0;
    MR_TRY(mr_shape_with_rank(image, 4, &image, error));
    MR_TRY(mr_shape_with_rank(call->inputs[index], 2, &paddings, error));
    MR_TRY(mr_size_merge(paddings.dims[0], 4, &paddings.dims[0], error));
    MR_TRY(mr_size_merge(paddings.dims[1], 2, &paddings.dims[1], error));
    MR_TRY(mr_shape_with_rank(call->inputs[index + 1], 4, &filter, error));
    MR_TRY(mr_size_merge(image.dims[3], filter.dims[2], &depth, error));
    MR_TRY(mr_window_read(call->attrs, &w, error));
    const mr_tensor *constant = call->constants[index];
    bool is_known = constant != nullptr && constant->dtype == MR_INT32 && mr_tensor_count(constant) == 8;
    for (int32_t i = 0; i < 4; i++) {
        int64_t added =
            is_known ? (int64_t)mr_tensor_int32s(constant)[2 * i] + mr_tensor_int32s(constant)[2 * i + 1] : -1;
        if (is_known && added < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "paddings must not be negative");
        if (image.dims[i] >= 0 && (!is_known || __builtin_add_overflow(image.dims[i], added, &image.dims[i])))
            image.dims[i] = -1;
    }
    w.height = filter.dims[0];
    w.width = filter.dims[1];
    return mr_window_slide(&w, image, filter.dims[3], &call->outputs[0], error);
}

static mr_status fused_pad_shape(mr_shape_call *call, mr_error *error)
{
    return padded_conv(call, call->inputs[0], 1, error);
}

static mr_status fused_resize_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape image, size;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &image, error));
    MR_TRY(mr_shape_from_input(call, 1, &size, error));
    MR_TRY(mr_shape_with_rank(size, 2, &size, error));
    image.dims[1] = size.dims[0];
    image.dims[2] = size.dims[1];
    return padded_conv(call, image, 2, error);
}

static const mr_op conv_ops[] = {
    {.name = "FusedPadConv2D",
     .signature = "input: T, paddings: int32, filter: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; mode: {'REFLECT', 'SYMMETRIC'}; strides: list(int); padding: "
              "{'SAME', 'VALID'}",
     .shape = fused_pad_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Pads input with its mirror image, and computes a 2-D convolution."},
    {.name = "FusedResizeAndPadConv2D",
     .signature = "input: T, size: int32, paddings: int32, filter: T -> output: T",
     .attrs = "T: {half, float, double}; resize_align_corners: bool = false; mode: {'REFLECT', 'SYMMETRIC'}; strides: "
              "list(int); padding: {'SAME', 'VALID'}",
     .shape = fused_resize_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Resizes input to size, pads it with its mirror image, and computes a 2-D convolution."},
    {.name = "Conv2D",
     .signature = "input: T, filter: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; "
              "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_shape,
     .doc =
         "Computes a 2-D convolution of input [batch, height, width, channels] with filter [height, width, in, out]."},
    {.name = "Conv2DBackpropInput",
     .signature = "input_sizes: int32, filter: T, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; "
              "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_backprop_input_shape,
     .doc = "Computes the gradient of Conv2D with respect to its input, whose shape is input_sizes."},
    {.name = "Conv2DBackpropFilter",
     .signature = "input: T, filter_sizes: int32, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int); use_cudnn_on_gpu: bool = true; "
              "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_backprop_filter_shape,
     .doc = "Computes the gradient of Conv2D with respect to its filter, whose shape is filter_sizes."},
    {.name = "DepthwiseConv2dNative",
     .signature = "input: T, filter: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
              "dilations: list(int) = [1, 1, 1, 1]",
     .shape = depthwise_conv2d_shape,
     .doc = "Convolves each channel of input with its own filters [height, width, channels, multiplier]."},
    {.name = "DepthwiseConv2dNativeBackpropInput",
     .signature = "input_sizes: int32, filter: T, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
              "dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_backprop_input_shape,
     .doc = "Computes the gradient of DepthwiseConv2dNative with respect to its input, whose shape is input_sizes."},
    {.name = "DepthwiseConv2dNativeBackpropFilter",
     .signature = "input: T, filter_sizes: int32, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
              "dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_backprop_filter_shape,
     .doc = "Computes the gradient of DepthwiseConv2dNative with respect to its filter, whose shape is filter_sizes."},
};

const mr_op_table mr_ops_conv = {conv_ops, sizeof conv_ops / sizeof conv_ops[0]};
