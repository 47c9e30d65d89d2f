/* Arithmetic on quantized tensors, as in networks that TensorFlow 1's graph transforms have quantized: every tensor is
 * followed by the floats that its lowest and its highest number stand for. */
#include "graph/ir/op.h"
#include "graph/ops/window.h"

/* The inputs from `first` on are ranges, and so are all outputs but the first. */
static mr_status check_ranges(mr_shape_call *call, int32_t first, mr_error *error)
{
    for (int32_t i = first; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    for (int32_t i = 1; i < call->output_count; i++) call->outputs[i] = MR_SCALAR;
    return MR_OK;
}

static mr_status unchanged_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = call->inputs[0];
    return check_ranges(call, 1, error);
}

static mr_status range_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = MR_SCALAR;
    return check_ranges(call, 1, error);
}

static mr_status bias_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape bias;
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &bias, error));
    MR_TRY(mr_shape_at_least(call->inputs[0], 2, error));
    call->outputs[0] = call->inputs[0];
    int32_t last = call->outputs[0].rank - 1;
    if (last >= 0)
        MR_TRY(mr_size_merge(call->outputs[0].dims[last], bias.dims[0], &call->outputs[0].dims[last], error));
    return check_ranges(call, 2, error);
}

static mr_status binary_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_broadcast(call->inputs[0], call->inputs[1], &call->outputs[0], error));
    return check_ranges(call, 2, error);
}

static mr_status mat_mul_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape a, b;
    int64_t inner = 0;
    int32_t transpose_a = mr_attr_bool_or(call->attrs, "transpose_a", false) ? 1 : 0;
    int32_t transpose_b = mr_attr_bool_or(call->attrs, "transpose_b", false) ? 1 : 0;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &a, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 2, &b, error));
    MR_TRY(mr_size_merge(a.dims[1 - transpose_a], b.dims[transpose_b], &inner, error));
    call->outputs[0] = MR_SHAPE(a.dims[transpose_a], b.dims[1 - transpose_b]);
    return check_ranges(call, 2, error);
}

static mr_status conv2d_shape(mr_shape_call *call, mr_error *error)
{
    mr_window w;
    mr_shape filter, input;
    int64_t depth = 0;
    MR_TRY(mr_window_read(call->attrs, &w, error));
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &input, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 4, &filter, error));
    MR_TRY(mr_size_merge(input.dims[3], filter.dims[2], &depth, error));
    w.height = filter.dims[0];
    w.width = filter.dims[1];
    MR_TRY(mr_window_slide(&w, input, filter.dims[3], &call->outputs[0], error));
    return check_ranges(call, 2, error);
}

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
    w.height = size[1];
    w.width = size[2];
    if (w.height < 1 || w.width < 1) return mr_fail(error, MR_INVALID_ARGUMENT, "attr ksize must be greater than 0");
    MR_TRY(mr_window_slide(&w, input, input.dims[3], &call->outputs[0], error));
    return check_ranges(call, 1, error);
}

/* concat_dim, N values, N mins, N maxes. */
static mr_status concat_shape(mr_shape_call *call, mr_error *error)
{
    int32_t count = (call->input_count - 1) / 3, axis = 0;
    int64_t given = 0;
    mr_shape joined = call->inputs[1];
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(check_ranges(call, 1 + count, error));
    for (int32_t i = 2; i <= count && joined.rank < 0; i++) joined = call->inputs[i];
    if (joined.rank < 0) return MR_OK;
    bool is_known = mr_shape_input_integer(call, 0, &given);
    if (is_known) MR_TRY(mr_shape_axis(given, joined.rank, &axis, error));
    for (int32_t i = 0; i < joined.rank && !is_known; i++) joined.dims[i] = -1;
    int64_t total = 0;
    for (int32_t i = 1; i <= count && is_known; i++) {
        mr_shape part;
        MR_TRY(mr_shape_with_rank(call->inputs[i], joined.rank, &part, error));
        int64_t size = part.dims[axis];
        joined.dims[axis] = part.dims[axis] = -1;
        MR_TRY(mr_shape_merge(joined, part, &joined, error));
        if (size < 0 || total < 0 || __builtin_add_overflow(total, size, &total)) total = -1;
    }
    if (is_known) joined.dims[axis] = total;
    call->outputs[0] = joined;
    return MR_OK;
}

static mr_status batch_norm_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape vector;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &call->outputs[0], error));
    for (int32_t i = 3; i < 15; i += 3) {
        MR_TRY(mr_shape_with_rank(call->inputs[i], 1, &vector, error));
        MR_TRY(mr_size_merge(call->outputs[0].dims[3], vector.dims[0], &call->outputs[0].dims[3], error));
    }
    for (int32_t i = 1; i < 15; i++)
        if (i % 3 != 0) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    call->outputs[1] = call->outputs[2] = MR_SCALAR;
    return MR_OK;
}

static mr_status instance_norm_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &call->outputs[0], error));
    return check_ranges(call, 1, error);
}

static mr_status resize_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape images, size;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &images, error));
    MR_TRY(mr_shape_from_input(call, 1, &size, error));
    MR_TRY(mr_shape_with_rank(size, 2, &size, error));
    call->outputs[0] = MR_SHAPE(images.dims[0], size.dims[0], size.dims[1], images.dims[3]);
    return check_ranges(call, 2, error);
}

#define ANY "{qint8, quint8, qint32, qint16, quint16}"
static const mr_op quantized_ops[] = {
    {.name = "QuantizedAdd",
     .signature = "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float -> z: Toutput, min_z: float, "
                  "max_z: float",
     .attrs = "T1: " ANY "; T2: " ANY "; Toutput: " ANY " = qint32",
     .shape = binary_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x + y in the range of the larger input, widened."},
    {.name = "QuantizedMul",
     .signature = "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float -> z: Toutput, min_z: float, "
                  "max_z: float",
     .attrs = "T1: " ANY "; T2: " ANY "; Toutput: " ANY " = qint32",
     .shape = binary_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x * y without rounding."},
    {.name = "QuantizedBiasAdd",
     .signature = "input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, max_bias: float -> "
                  "output: out_type, min_out: float, max_out: float",
     .attrs = "T1: " ANY "; T2: " ANY "; out_type: " ANY,
     .shape = bias_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Adds bias to the last dimension of input."},
    {.name = "QuantizedMatMul",
     .signature = "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float -> out: Toutput, min_out: "
                  "float, max_out: float",
     .attrs = "T1: " ANY "; T2: " ANY "; Toutput: " ANY " = qint32; transpose_a: bool = false; transpose_b: bool = "
              "false; Tactivation: " ANY " = quint8",
     .shape = mat_mul_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the matrix product a * b without rounding."},
    {.name = "QuantizedConv2D",
     .signature = "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, max_filter: "
                  "float -> output: out_type, min_output: float, max_output: float",
     .attrs = "Tinput: " ANY "; Tfilter: " ANY "; out_type: " ANY " = qint32; strides: list(int); padding: {'SAME', "
              "'VALID'}; dilations: list(int) = [1, 1, 1, 1]",
     .shape = conv2d_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Computes a 2-D convolution without rounding."},
    {.name = "QuantizedMaxPool",
     .signature = "input: T, min_input: float, max_input: float -> output: T, min_output: float, max_output: float",
     .attrs = "T: " ANY "; ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}",
     .shape = pool_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the maximum of each window of input."},
    {.name = "QuantizedAvgPool",
     .signature = "input: T, min_input: float, max_input: float -> output: T, min_output: float, max_output: float",
     .attrs = "T: " ANY "; ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}",
     .shape = pool_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the average of each window of input."},
    {.name = "QuantizedRelu",
     .signature = "features: Tinput, min_features: float, max_features: float -> activations: out_type, "
                  "min_activations: float, max_activations: float",
     .attrs = "Tinput: " ANY "; out_type: " ANY " = quint8",
     .shape = unchanged_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns max(features, 0)."},
    {.name = "QuantizedRelu6",
     .signature = "features: Tinput, min_features: float, max_features: float -> activations: out_type, "
                  "min_activations: float, max_activations: float",
     .attrs = "Tinput: " ANY "; out_type: " ANY " = quint8",
     .shape = unchanged_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns min(max(features, 0), 6)."},
    {.name = "QuantizedReluX",
     .signature = "features: Tinput, max_value: float, min_features: float, max_features: float -> activations: "
                  "out_type, min_activations: float, max_activations: float",
     .attrs = "Tinput: " ANY "; out_type: " ANY " = quint8",
     .shape = unchanged_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns min(max(features, 0), max_value)."},
    {.name = "QuantizedConcat",
     .signature = "concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float -> output: T, "
                  "output_min: float, output_max: float",
     .attrs = "N: int >= 2; T: type",
     .shape = concat_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Concatenates values along concat_dim, in a range that contains those of all values."},
    {.name = "QuantizedBatchNormWithGlobalNormalization",
     .signature = "t: Tinput, t_min: float, t_max: float, m: Tinput, m_min: float, m_max: float, v: Tinput, v_min: "
                  "float, v_max: float, beta: Tinput, beta_min: float, beta_max: float, gamma: Tinput, gamma_min: "
                  "float, gamma_max: float -> result: out_type, result_min: float, result_max: float",
     .attrs = "Tinput: " ANY "; out_type: " ANY "; variance_epsilon: float; scale_after_normalization: bool",
     .shape = batch_norm_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Normalizes the channels of t by means m and variances v."},
    {.name = "QuantizedInstanceNorm",
     .signature = "x: T, x_min: float, x_max: float -> y: T, y_min: float, y_max: float",
     .attrs = "T: " ANY "; output_range_given: bool = false; given_y_min: float = 0; given_y_max: float = 0; "
              "variance_epsilon: float = 1e-05; min_separation: float = 0.001",
     .shape = instance_norm_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Normalizes each channel of each image of x by its own mean and variance."},
    {.name = "QuantizedResizeBilinear",
     .signature = "images: T, size: int32, min: float, max: float -> resized_images: T, out_min: float, out_max: float",
     .attrs = "T: {quint8, qint32, float}; align_corners: bool = false; half_pixel_centers: bool = false",
     .shape = resize_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Resizes images to size by bilinear interpolation."},
    {.name = "QuantizeDownAndShrinkRange",
     .signature = "input: Tinput, input_min: float, input_max: float -> output: out_type, output_min: float, "
                  "output_max: float",
     .attrs = "Tinput: " ANY "; out_type: " ANY,
     .shape = unchanged_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Converts input to a narrower type, whose range is that of the numbers that occur."},
    {.name = "RequantizationRange",
     .signature = "input: Tinput, input_min: float, input_max: float -> output_min: float, output_max: float",
     .attrs = "Tinput: " ANY,
     .shape = range_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the range of the numbers that occur in input."},
    {.name = "Requantize",
     .signature = "input: Tinput, input_min: float, input_max: float, requested_output_min: float, "
                  "requested_output_max: float -> output: out_type, output_min: float, output_max: float",
     .attrs = "Tinput: " ANY "; out_type: " ANY,
     .shape = unchanged_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Converts input to a narrower type with the requested range."},
};

const mr_op_table mr_ops_quantized = {quantized_ops, sizeof quantized_ops / sizeof quantized_ops[0]};
