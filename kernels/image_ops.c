/* The image operators of graphs: wrappers of the functions of <millrace/image.h>, with TensorFlow's leniency: data that
 * only causes warnings in libjpeg is decoded. */
#include "base/kernel.h"
#include "kernels/image/resize.h"
#include <math.h>
#include <millrace/image.h>
#include <string.h>

static mr_status prepare_jpeg(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_image_decode_options *options = prepared;
    mr_string dct = mr_attr_string_or(node->attrs, "dct_method", "");
    bool accurate = mr_string_equal(dct, MR_STR("INTEGER_ACCURATE"));
    if (!accurate && dct.size_bytes != 0 && !mr_string_equal(dct, MR_STR("INTEGER_FAST")))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "dct_method must be empty, INTEGER_FAST or INTEGER_ACCURATE");
    int64_t channels = mr_attr_int_or(node->attrs, "channels", 0), ratio = mr_attr_int_or(node->attrs, "ratio", 1);
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "channels is %lld, not 0, 1, 3 or 4",
                              (long long)channels);
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "ratio is %lld, not 1, 2, 4 or 8", (long long)ratio);
    *options = (mr_image_decode_options){
        .size = sizeof *options,
        .channels = (int32_t)channels,
        .accurate_dct = accurate,
        .no_fancy_upsampling = !mr_attr_bool_or(node->attrs, "fancy_upscaling", true),
        .ratio = (int32_t)ratio,
        .try_recover_truncated = mr_attr_bool_or(node->attrs, "try_recover_truncated", false),
        .accept_damaged = true,
    };
    return MR_OK;
}

static mr_status prepare_png(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_image_decode_options *options = prepared;
    int64_t channels = mr_attr_int_or(node->attrs, "channels", 0);
    if (channels < 0 || channels > 4)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "channels is %lld, not 0 to 4", (long long)channels);
    *options = (mr_image_decode_options){
        .size = sizeof *options,
        .channels = (int32_t)channels,
        .dtype = mr_attr_type_or(node->attrs, "dtype", MR_UINT8),
        .accept_damaged = true,
    };
    return MR_OK;
}

static mr_status decode_cpu(mr_kernel_call *call, mr_error *error)
{
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "contents must be a scalar, but has rank %d",
                              call->inputs[0].shape.rank);
    mr_string contents = mr_tensor_strings(&call->inputs[0])[0];
    mr_status status = mr_image_decode(contents.data, contents.size_bytes, call->prepared, &call->outputs[0], error);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s (%s)", call->node->name, call->node->op);
}

static mr_status prepare_resize(const mr_kernel_node *node, void *prepared, mr_error *)
{
    mr_resize_options *options = prepared;
    *options = (mr_resize_options){
        .size = sizeof *options,
        .method = strcmp(node->op, "ResizeNearestNeighbor") == 0 ? MR_RESIZE_NEAREST : MR_RESIZE_BILINEAR,
        .align_corners = mr_attr_bool_or(node->attrs, "align_corners", false),
        .half_pixel_centers = mr_attr_bool_or(node->attrs, "half_pixel_centers", false),
    };
    return MR_OK;
}

static mr_status resize_cpu(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *images = &call->inputs[0], *size = &call->inputs[1];
    if (images->shape.rank != 4 || mr_tensor_count(size) != 2 || size->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "images must be [batch, height, width, channels], and size must have two numbers");
    const int32_t *sizes = mr_tensor_int32s(size);
    mr_status status = mr_image_resize(images, sizes[0], sizes[1], call->prepared, &call->outputs[0], error);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s (%s)", call->node->name, call->node->op);
}

/* One axis of the gradient: the two source lines that a target line was interpolated from, and the weight of the
 * second. */
typedef struct axis {
    int64_t low, high;
    float share;
} axis;

static axis axis_at(const mr_resize_options *options, int64_t index, float scale, int64_t size)
{
    float at = mr_resize_coordinate(options, scale, index);
    float low = floorf(at), high = ceilf(at);
    return (axis){.low = low > 0 ? (int64_t)low : 0,
                  .high = high < (float)(size - 1) ? (int64_t)high : size - 1,
                  .share = at - low};
}

/* Distributes each gradient to the four pixels that its pixel was interpolated from, by their weights, in TensorFlow's
 * order. */
static void spread_gradient(const mr_resize_options *options, const mr_tensor *gradients, mr_tensor *result)
{
    int64_t height = gradients->shape.dims[1], width = gradients->shape.dims[2], channels = gradients->shape.dims[3];
    int64_t rows = result->shape.dims[1], columns = result->shape.dims[2];
    const float *from = mr_tensor_floats(gradients);
    float *to = mr_tensor_floats(result);
    float y_scale = mr_resize_scale(options, rows, height), x_scale = mr_resize_scale(options, columns, width);
    for (int64_t n = 0; n < gradients->shape.dims[0]; n++, to += rows * columns * channels)
        for (int64_t y = 0; y < height; y++) {
            axis v = axis_at(options, y, y_scale, rows);
            for (int64_t x = 0; x < width; x++, from += channels) {
                axis h = axis_at(options, x, x_scale, columns);
                float *low = to + v.low * columns * channels, *high = to + v.high * columns * channels;
                for (int64_t c = 0; c < channels; c++) {
                    low[h.low * channels + c] += from[c] * (1 - v.share) * (1 - h.share);
                    low[h.high * channels + c] += from[c] * (1 - v.share) * h.share;
                    high[h.low * channels + c] += from[c] * v.share * (1 - h.share);
                    high[h.high * channels + c] += from[c] * v.share * h.share;
                }
            }
        }
}

static mr_status resize_bilinear_grad_cpu(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *gradients = &call->inputs[0], *original = &call->inputs[1];
    if (gradients->shape.rank != 4 || original->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "gradients and images must be [batch, height, width, channels]");
    for (int i = 1; i <= 2; i++)
        if (gradients->shape.dims[i] == 0 || original->shape.dims[i] == 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "the height and width of gradients and images must be positive");
    mr_shape shape = original->shape;
    shape.dims[0] = gradients->shape.dims[0];
    shape.dims[3] = gradients->shape.dims[3];
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t count = mr_tensor_count(&call->outputs[0]);
    if (count == 0) return MR_OK;
    memset(call->outputs[0].data, 0, (size_t)count * sizeof(float));
    if (mr_tensor_count(gradients) == 0) return MR_OK;
    spread_gradient(call->prepared, gradients, &call->outputs[0]);
    return MR_OK;
}

#define DECODE(op_name, prepare_function)                                                                              \
    {.op = op_name,                                                                                                    \
     .device = MR_DEVICE_CPU,                                                                                          \
     .run = decode_cpu,                                                                                                \
     .prepared_size_bytes = sizeof(mr_image_decode_options),                                                           \
     .prepare = prepare_function}
#define RESIZE(op_name)                                                                                                \
    {.op = op_name,                                                                                                    \
     .device = MR_DEVICE_CPU,                                                                                          \
     .types = "T: uint8, float",                                                                                       \
     .run = resize_cpu,                                                                                                \
     .prepared_size_bytes = sizeof(mr_resize_options),                                                                 \
     .prepare = prepare_resize}

static const mr_kernel kernels[] = {
    DECODE("DecodeJpeg", prepare_jpeg),
    DECODE("DecodePng", prepare_png),
    RESIZE("ResizeBilinear"),
    RESIZE("ResizeNearestNeighbor"),
    {.op = "ResizeBilinearGrad",
     .device = MR_DEVICE_CPU,
     .types = "T: float",
     .run = resize_bilinear_grad_cpu,
     .prepared_size_bytes = sizeof(mr_resize_options),
     .prepare = prepare_resize},
};
const mr_kernel_table mr_kernels_image_ops = {kernels, sizeof kernels / sizeof kernels[0]};
