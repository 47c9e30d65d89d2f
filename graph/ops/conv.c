/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status conv2d_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status conv2d_backprop_input_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status conv2d_backprop_filter_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status depthwise_conv2d_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op conv_ops[] = {
    {.name = "Conv2D",
     .signature = "input: T, filter: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; "
              "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_shape,
     .gradient = MR_GRADIENT(mr_conv2d_gradient),
     .doc = "Convolves input [batch, height, width, channels] with filter [height, width, in, out]."},
    {.name = "Conv2DBackpropInput",
     .signature = "input_sizes: int32, filter: T, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; "
              "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_backprop_input_shape,
     .gradient = MR_GRADIENT(mr_conv2d_backprop_input_gradient),
     .doc = "The gradient of Conv2D by its input, whose shape is input_sizes."},
    {.name = "Conv2DBackpropFilter",
     .signature = "input: T, filter_sizes: int32, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int); use_cudnn_on_gpu: bool = true; "
              "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_backprop_filter_shape,
     .gradient = MR_GRADIENT(mr_conv2d_backprop_filter_gradient),
     .doc = "The gradient of Conv2D by its filter, whose shape is filter_sizes."},
    {.name = "DepthwiseConv2dNative",
     .signature = "input: T, filter: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
              "dilations: list(int) = [1, 1, 1, 1]",
     .shape = depthwise_conv2d_shape,
     .gradient = MR_GRADIENT(mr_depthwise_conv2d_gradient),
     .doc = "Convolves each channel of input with its own filters [height, width, channels, multiplier]."},
    {.name = "DepthwiseConv2dNativeBackpropInput",
     .signature = "input_sizes: int32, filter: T, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
              "dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_backprop_input_shape,
     .doc = "The gradient of DepthwiseConv2dNative by its input, whose shape is input_sizes."},
    {.name = "DepthwiseConv2dNativeBackpropFilter",
     .signature = "input: T, filter_sizes: int32, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
              "dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_backprop_filter_shape,
     .doc = "The gradient of DepthwiseConv2dNative by its filter, whose shape is filter_sizes."},
};

const mr_op_table mr_op_table_conv = {conv_ops, sizeof conv_ops / sizeof conv_ops[0]};
