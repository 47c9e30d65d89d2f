/* Convolution and pooling in three dimensions. */
#include "graph/ir/op.h"
#include "graph/ops/window.h"

/* The attributes of a window of rank 3. The arrays are in the order depth, height, width. */
typedef struct volume {
    int32_t spatial_axis; /* of the depth; height and width follow */
    int32_t channel_axis;
    mr_window_padding padding;
    int64_t extents[3]; /* -1: unknown */
    int64_t strides[3], dilations[3];
} volume;

static mr_status read_three(const mr_shape_call *call, const char *name, const volume *v, int64_t three[3],
                            mr_error *error)
{
    int64_t values[5];
    int32_t count = 0;
    MR_TRY(mr_attr_get_ints(call->attrs, name, values, 5, &count, error));
    if (count != 5) return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s must have 5 values, but has %d", name, count);
    for (int32_t i = 0; i < 5; i++)
        if (values[i] < 1 || values[i] > INT32_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s has %lld", name, (long long)values[i]);
    for (int32_t i = 0; i < 3; i++) three[i] = values[v->spatial_axis + i];
    return MR_OK;
}

static mr_status read_volume(const mr_shape_call *call, volume *v, mr_error *error)
{
    mr_string format = mr_attr_string_or(call->attrs, "data_format", "NDHWC");
    bool channels_first = mr_string_equal(format, MR_STR("NCDHW"));
    *v = (volume){.spatial_axis = channels_first ? 2 : 1,
                  .channel_axis = channels_first ? 1 : 4,
                  .dilations = {1, 1, 1},
                  .padding = mr_string_equal(mr_attr_string_or(call->attrs, "padding", "SAME"), MR_STR("SAME"))
                                 ? MR_WINDOW_SAME
                                 : MR_WINDOW_VALID};
    MR_TRY(read_three(call, "strides", v, v->strides, error));
    if (mr_attrs_find(call->attrs, "dilations") == nullptr) return MR_OK;
    return read_three(call, "dilations", v, v->dilations, error);
}

static mr_status slide_volume(const volume *v, mr_shape input, int64_t channels, mr_shape *result, mr_error *error)
{
    *result = input;
    for (int32_t i = 0; i < 3; i++) {
        int64_t *size = &result->dims[v->spatial_axis + i];
        MR_TRY(mr_window_places(v->padding, *size, v->extents[i], v->strides[i], v->dilations[i], 0, size, error));
    }
    result->dims[v->channel_axis] = channels;
    return MR_OK;
}

static mr_status conv3d_shape(mr_shape_call *call, mr_error *error)
{
    volume v;
    mr_shape input, filter;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 5, &input, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 5, &filter, error));
    MR_TRY(read_volume(call, &v, error));
    for (int32_t i = 0; i < 3; i++) v.extents[i] = filter.dims[i];
    int64_t channels = input.dims[v.channel_axis], expected = filter.dims[3];
    if (channels >= 0 && expected > 0 && channels % expected != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input has %lld channels, filter takes %lld", (long long)channels,
                       (long long)expected);
    return slide_volume(&v, input, filter.dims[4], &call->outputs[0], error);
}

static mr_status pool3d_of(mr_shape_call *call, mr_shape *result, mr_error *error)
{
    volume v;
    mr_shape input;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 5, &input, error));
    MR_TRY(read_volume(call, &v, error));
    MR_TRY(read_three(call, "ksize", &v, v.extents, error));
    return slide_volume(&v, input, input.dims[v.channel_axis], result, error);
}

static mr_status pool3d_shape(mr_shape_call *call, mr_error *error)
{
    return pool3d_of(call, &call->outputs[0], error);
}

static mr_status max_pool3d_grad_grad_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(pool3d_of(call, &call->outputs[0], error));
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[2], &(mr_shape){0}, error));
    return mr_shape_merge(call->inputs[1], call->outputs[0], &(mr_shape){0}, error);
}

static mr_status unchanged_rank_5(mr_shape_call *call, mr_error *error)
{
    return mr_shape_with_rank(call->inputs[0], 5, &call->outputs[0], error);
}

static mr_status filter_like_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_with_rank(call->inputs[1], 5, &call->outputs[0], error);
}

static mr_status sizes_0_rank_5(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_shape_from_input(call, 0, &shape, error));
    return mr_shape_with_rank(shape, 5, &call->outputs[0], error);
}

static mr_status sizes_1_rank_5(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_shape_from_input(call, 1, &shape, error));
    return mr_shape_with_rank(shape, 5, &call->outputs[0], error);
}

static const mr_op volume_ops[] = {
    {.name = "Conv3D",
     .signature = "input: T, filter: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: "
              "{'NDHWC', 'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]",
     .shape = conv3d_shape,
     .doc = "Computes a 3-D convolution of input [batch, depth, height, width, channels] with filter [depth, height, "
            "width, in, out]."},
    {.name = "Conv3DBackpropInput",
     .signature = "input: T, filter: T, out_backprop: T -> output: T",
     .attrs = "T: {half, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; dilations: list(int) = "
              "[1, 1, 1, 1, 1]",
     .shape = unchanged_rank_5,
     .doc = "Computes the gradient of Conv3D with respect to input, whose values are not read; used by old graphs."},
    {.name = "Conv3DBackpropInputV2",
     .signature = "input_sizes: Tshape, filter: T, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: "
              "{'NDHWC', 'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]; Tshape: {int32, int64} = int32",
     .shape = sizes_0_rank_5,
     .doc = "Computes the gradient of Conv3D with respect to its input, whose shape is input_sizes."},
    {.name = "Conv3DBackpropFilter",
     .signature = "input: T, filter: T, out_backprop: T -> output: T",
     .attrs = "T: {half, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; dilations: list(int) = "
              "[1, 1, 1, 1, 1]",
     .shape = filter_like_shape,
     .doc =
         "Computes the gradient of Conv3D with respect to filter, whose shape is that of filter; used by old graphs."},
    {.name = "Conv3DBackpropFilterV2",
     .signature = "input: T, filter_sizes: int32, out_backprop: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: "
              "{'NDHWC', 'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]",
     .shape = sizes_1_rank_5,
     .doc = "Computes the gradient of Conv3D with respect to its filter, whose shape is filter_sizes."},
    {.name = "AvgPool3D",
     .signature = "input: T -> output: T",
     .attrs = "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC'; T: {half, bfloat16, float, double}",
     .shape = pool3d_shape,
     .doc = "Computes the mean of each 3-D window of size ksize, at intervals of strides."},
    {.name = "AvgPool3DGrad",
     .signature = "orig_input_shape: int32, grad: T -> output: T",
     .attrs = "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC'; T: {half, bfloat16, float, double}",
     .shape = sizes_0_rank_5,
     .doc = "Computes the gradient of AvgPool3D with respect to its input, whose shape is orig_input_shape."},
    {.name = "MaxPool3D",
     .signature = "input: T -> output: T",
     .attrs = "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC'; T: {half, bfloat16, float}",
     .shape = pool3d_shape,
     .doc = "Computes the maximum of each 3-D window of size ksize, at intervals of strides."},
    {.name = "MaxPool3DGrad",
     .signature = "orig_input: TInput, orig_output: TInput, grad: T -> output: T",
     .attrs = "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC'; T: {half, bfloat16, float} = float; TInput: {half, bfloat16, float} = float",
     .shape = unchanged_rank_5,
     .doc = "Computes the gradient of MaxPool3D: adds grad at the position of each maximum."},
    {.name = "MaxPool3DGradGrad",
     .signature = "orig_input: T, orig_output: T, grad: T -> output: T",
     .attrs = "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC'; T: realnumbertype",
     .shape = max_pool3d_grad_grad_shape,
     .doc = "Computes the gradient of MaxPool3DGrad: picks grad at the position of each maximum."},
};

const mr_op_table mr_ops_volume = {volume_ops, sizeof volume_ops / sizeof volume_ops[0]};
