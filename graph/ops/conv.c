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

static mr_status conv2d_backprop_input_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_shape_from_input(call, 0, &shape, error));
    return mr_shape_with_rank(shape, 4, &call->outputs[0], error);
}

static mr_status conv2d_backprop_filter_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_shape_from_input(call, 1, &shape, error));
    return mr_shape_with_rank(shape, 4, &call->outputs[0], error);
}

static const mr_op conv_ops[] = {
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
