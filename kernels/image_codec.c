/* EncodeJpeg, EncodePng, DecodeAndCropJpeg, ExtractJpegShape: the functions of <millrace/image.h> as operators. The
 * operators that decode complete images are in image_ops.c. */
#include "kernels/common.h"
#include "kernels/image/image_encode.h"
#include <inttypes.h>
#include <millrace/image.h>
#include <stdlib.h>
#include <string.h>

/* Bad contents are an invalid argument in TensorFlow. */
static mr_status named(const mr_kernel_call *call, mr_status status, mr_error *error)
{
    if (status == MR_DATA_LOSS) status = MR_INVALID_ARGUMENT;
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s (%s)", call->node->name, call->node->op);
}

static mr_status read_contents(const mr_kernel_call *call, mr_string *contents, mr_error *error)
{
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "contents must be a scalar, but has rank %d",
                              call->inputs[0].shape.rank);
    *contents = mr_tensor_strings(&call->inputs[0])[0];
    return MR_OK;
}

/* ---- Encoding ---- */

static mr_status run_encode_jpeg(mr_kernel_call *call, int64_t quality, mr_error *error)
{
    const mr_tensor *image = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    mr_string format = mr_attr_string_or(call->node->attrs, "format", "");
    if (image->shape.rank != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image must be 3-dimensional%s",
                              mr_shape_text(image->shape, text, sizeof text));
    int64_t channels = image->shape.dims[2];
    if (format.size_bytes == 0 && channels != 1 && channels != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image must have 1 or 3 channels, got %s",
                              mr_shape_text(image->shape, text, sizeof text));
    if (mr_string_equal(format, MR_STR("grayscale")) && channels != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "format 'grayscale' expects 1 channels, got %s",
                              mr_shape_text(image->shape, text, sizeof text));
    if (mr_string_equal(format, MR_STR("rgb")) && channels != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "format 'rgb' expects 3 channels, got %s",
                              mr_shape_text(image->shape, text, sizeof text));
    const mr_attrs *attrs = call->node->attrs;
    const mr_jpeg_encoding encoding = {
        .quality = (int32_t)MR_MAX(quality, 1), /* libjpeg treats quality 0 as 1; here 0 is the default */
        .is_progressive = mr_attr_bool_or(attrs, "progressive", false),
        .optimizes_size = mr_attr_bool_or(attrs, "optimize_size", false),
        .keeps_chroma = !mr_attr_bool_or(attrs, "chroma_downsampling", true),
        .is_per_cm = mr_string_equal(mr_attr_string_or(attrs, "density_unit", "in"), MR_STR("cm")),
        .x_density = (int32_t)mr_attr_int_or(attrs, "x_density", 300),
        .y_density = (int32_t)mr_attr_int_or(attrs, "y_density", 300),
        .xmp_metadata = mr_attr_string_or(attrs, "xmp_metadata", ""),
    };
    return named(call, mr_jpeg_encode(image, &encoding, &call->outputs[0], error), error);
}

static mr_status encode_jpeg(mr_kernel_call *call, mr_error *error)
{
    return run_encode_jpeg(call, mr_attr_int_or(call->node->attrs, "quality", 95), error);
}

static mr_status prepare_encode_jpeg(const mr_kernel_node *node, void *, mr_error *error)
{
    int64_t quality = mr_attr_int_or(node->attrs, "quality", 95);
    if (quality < 0 || quality > 100)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "quality must be in [0,100], got %" PRId64, quality);
    return MR_OK;
}

static mr_status encode_jpeg_variable_quality(mr_kernel_call *call, mr_error *error)
{
    int64_t quality;
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "quality must be scalar: %s",
                              mr_shape_text(call->inputs[1].shape, (char[MR_SHAPE_TEXT_SIZE]){0}, MR_SHAPE_TEXT_SIZE));
    MR_TRY(mr_kernel_int(call, 1, "quality", &quality, error));
    if (quality < 0 || quality > 100)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "quality must be in [0,100], got %" PRId64,
                              quality);
    return run_encode_jpeg(call, quality, error);
}

/* Encodes image `index` of the tensor, whose last three dimensions are an image. */
static mr_status encode_one(const mr_kernel_call *call, int64_t index, mr_tensor *bytes, mr_error *error)
{
    const mr_tensor *images = &call->inputs[0];
    const int64_t *dims = images->shape.dims + images->shape.rank - 3;
    mr_tensor image = {.dtype = images->dtype, .shape = MR_SHAPE(dims[0], dims[1], dims[2])};
    image.data = (char *)images->data + (size_t)index * mr_tensor_size_bytes(&image);
    return named(call, mr_png_encode(&image, (int)mr_attr_int_or(call->node->attrs, "compression", -1), bytes, error),
                 error);
}

static mr_status encode_png(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *images = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    if (images->shape.rank < 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "images must be at least rank 3%s",
                              mr_shape_text(images->shape, text, sizeof text));
    int64_t channels = images->shape.dims[images->shape.rank - 1];
    if (channels < 1 || channels > 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image must have 1, 2, 3, or 4 channels, got %s",
                              mr_shape_text(images->shape, text, sizeof text));
    mr_shape batch = images->shape;
    batch.rank -= 3;
    int64_t count = mr_tensor_count(images) == 0 ? 0 : mr_shape_count(batch);
    if (count == 0 && mr_shape_count(batch) != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "image must not be empty, got %s",
                              mr_shape_text(images->shape, text, sizeof text));
    mr_tensor *encoded = calloc((size_t)count + 1, sizeof *encoded);
    mr_string *strings = calloc((size_t)count + 1, sizeof *strings);
    mr_status status =
        encoded && strings ? MR_OK : mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory");
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        status = encode_one(call, i, &encoded[i], error);
        if (status == MR_OK) strings[i] = mr_tensor_strings(&encoded[i])[0];
    }
    if (status == MR_OK) status = mr_tensor_init_strings(&call->outputs[0], batch, strings, error);
    for (int64_t i = 0; encoded && i < count; i++) mr_tensor_deinit(&encoded[i]);
    free(encoded);
    free(strings);
    return status;
}

static mr_status prepare_encode_png(const mr_kernel_node *node, void *, mr_error *error)
{
    int64_t compression = mr_attr_int_or(node->attrs, "compression", -1);
    if (compression < -1 || compression > 9)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "compression should be in [-1,9], got %" PRId64,
                              compression);
    return MR_OK;
}

/* ---- Decoding ---- */

static mr_status prepare_decode(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_image_decode_options *options = prepared;
    mr_string dct = mr_attr_string_or(node->attrs, "dct_method", "");
    bool is_accurate = mr_string_equal(dct, MR_STR("INTEGER_ACCURATE"));
    if (!is_accurate && dct.size_bytes != 0 && !mr_string_equal(dct, MR_STR("INTEGER_FAST")))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
    int64_t channels = mr_attr_int_or(node->attrs, "channels", 0), ratio = mr_attr_int_or(node->attrs, "ratio", 1);
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "channels must be 0, 1, 3 or 4, got %" PRId64,
                              channels);
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "ratio must be 1, 2, 4, or 8, got %" PRId64, ratio);
    *options = (mr_image_decode_options){
        .size = sizeof *options,
        .channels = (int32_t)channels,
        .dtype = MR_UINT8,
        .accurate_dct = is_accurate,
        .no_fancy_upsampling = !mr_attr_bool_or(node->attrs, "fancy_upscaling", true),
        .ratio = (int32_t)ratio,
        .try_recover_truncated = mr_attr_bool_or(node->attrs, "try_recover_truncated", false),
        .acceptable_fraction = mr_attr_float_or(node->attrs, "acceptable_fraction", 1),
        .accept_damaged = true,
    };
    return MR_OK;
}

/* In TensorFlow's words. */
static mr_status crop_status(const mr_kernel_call *call, mr_status status, mr_error *error)
{
    if (status == MR_DATA_LOSS)
        status =
            mr_fail_prefix(error, MR_INVALID_ARGUMENT, "jpeg::Uncompress failed. Invalid JPEG data or crop window.");
    return named(call, status, error);
}

/* Decodes the image and copies the window. */
static mr_status decode_and_crop_jpeg(mr_kernel_call *call, mr_error *error)
{
    const mr_image_decode_options *options = call->prepared;
    const mr_tensor *window = &call->inputs[1];
    mr_string contents;
    mr_image_info info = {0};
    MR_TRY(read_contents(call, &contents, error));
    if (window->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "crop_window must be 1-D");
    if (window->shape.dims[0] != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "crop_size must have four elements");
    const int32_t *w = mr_tensor_int32s(window);
    if (contents.size_bytes == 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input is empty.");
    mr_status status = mr_image_probe(contents.data, contents.size_bytes, &info, error);
    if (status == MR_INVALID_ARGUMENT)
        return mr_kernel_fail(call->node, error, status,
                              "Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
    MR_TRY(crop_status(call, status, error));
    if (info.format != MR_IMAGE_JPEG)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "DecodeAndCropJpeg operation can run on JPEG only, but detected %s.",
                              mr_image_format_name(info.format));
    mr_tensor image = {0};
    mr_image_decode_options decode = *options; /* what follows the window may be missing */
    const float needed = (float)w[0] + options->acceptable_fraction * (float)w[2] - 0.5f;
    if (info.height > 0 && needed > 0) decode.acceptable_fraction = needed / (float)info.height;
    status = mr_image_decode(contents.data, contents.size_bytes, &decode, &image, error);
    MR_TRY(crop_status(call, status, error));
    int64_t height = image.shape.dims[0], width = image.shape.dims[1], channels = image.shape.dims[2];
    if (w[0] < 0 || w[1] < 0 || w[2] <= 0 || w[3] <= 0 || (int64_t)w[0] + w[2] > height || (int64_t)w[1] + w[3] > width)
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                "Invalid JPEG data or crop window, data size %zu", contents.size_bytes);
    if (status == MR_OK) status = mr_kernel_output(call, 0, MR_SHAPE(w[2], w[3], channels), error);
    for (int64_t y = 0; status == MR_OK && y < w[2]; y++)
        memcpy((char *)call->outputs[0].data + y * w[3] * channels,
               (const char *)image.data + ((w[0] + y) * width + w[1]) * channels, (size_t)(w[3] * channels));
    mr_tensor_deinit(&image);
    return status;
}

static mr_status extract_jpeg_shape(mr_kernel_call *call, mr_error *error)
{
    mr_string contents;
    mr_image_info info = {0};
    MR_TRY(read_contents(call, &contents, error));
    if (mr_image_probe(contents.data, contents.size_bytes, &info, nullptr) != MR_OK || info.format != MR_IMAGE_JPEG)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid JPEG data, data size %zu",
                              contents.size_bytes);
    return mr_kernel_put_ints(call, 0, MR_SHAPE(3), (int64_t[]){info.height, info.width, info.channels}, error);
}

static const mr_kernel kernels[] = {
    {.op = "EncodeJpeg", .run = encode_jpeg, .prepared_size_bytes = 1, .prepare = prepare_encode_jpeg},
    {.op = "EncodeJpegVariableQuality", .run = encode_jpeg_variable_quality},
    {.op = "EncodePng", .run = encode_png, .prepared_size_bytes = 1, .prepare = prepare_encode_png},
    {.op = "DecodeAndCropJpeg",
     .run = decode_and_crop_jpeg,
     .prepared_size_bytes = sizeof(mr_image_decode_options),
     .prepare = prepare_decode},
    {.op = "ExtractJpegShape", .run = extract_jpeg_shape},
};
MR_KERNEL_FAMILY(image_codec);
