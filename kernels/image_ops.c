/* The operators that decode images: DecodeJpeg, DecodePng, DecodeGif, DecodeBmp, DecodeImage. As in TensorFlow, data
 * that only causes warnings in libjpeg is decoded, and all but DecodeBmp detect the format from the data. */
#include "kernels/common.h"
#include "kernels/image/frames.h"
#include <inttypes.h>
#include <millrace/image.h>
#include <string.h>

typedef enum decoder { DECODE_JPEG, DECODE_PNG, DECODE_GIF, DECODE_BMP, DECODE_ANY } decoder;

typedef struct decode_options {
    mr_image_decode_options image; /* dtype: of the result, or MR_FLOAT */
    decoder decoder;
    bool first_frame_only;
} decode_options;

static mr_status prepare(const mr_kernel_node *node, decoder decoder, void *prepared, mr_error *error)
{
    decode_options *options = prepared;
    mr_string dct = mr_attr_string_or(node->attrs, "dct_method", "");
    bool accurate = mr_string_equal(dct, MR_STR("INTEGER_ACCURATE"));
    if (!accurate && dct.size_bytes != 0 && !mr_string_equal(dct, MR_STR("INTEGER_FAST")))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
    int64_t channels = mr_attr_int_or(node->attrs, "channels", decoder == DECODE_GIF ? 3 : 0);
    int64_t ratio = mr_attr_int_or(node->attrs, "ratio", 1);
    bool two = decoder == DECODE_PNG && channels == 2; /* TensorFlow refuses it, libpng does not */
    if (channels != 0 && channels != 1 && !two && channels != 3 && channels != 4)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "`channels` must be 0, 1, 3 or 4 but got %" PRId64,
                              channels);
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "ratio must be 1, 2, 4, or 8, got %" PRId64, ratio);
    *options = (decode_options){
        .image =
            {
                .size = sizeof options->image,
                .channels = (int32_t)channels,
                .dtype = mr_attr_type_or(node->attrs, "dtype", MR_UINT8),
                .accurate_dct = accurate,
                .no_fancy_upsampling = !mr_attr_bool_or(node->attrs, "fancy_upscaling", true),
                .ratio = (int32_t)ratio,
                .try_recover_truncated = mr_attr_bool_or(node->attrs, "try_recover_truncated", false),
                .acceptable_fraction = mr_attr_float_or(node->attrs, "acceptable_fraction", 1),
                .accept_damaged = true,
            },
        .decoder = decoder,
        .first_frame_only = !mr_attr_bool_or(node->attrs, "expand_animations", true),
    };
    return MR_OK;
}

#define PREPARE(name, decoder)                                                                                         \
    static mr_status prepare_##name(const mr_kernel_node *node, void *prepared, mr_error *error)                       \
    {                                                                                                                  \
        return prepare(node, decoder, prepared, error);                                                                \
    }
PREPARE(jpeg, DECODE_JPEG)
PREPARE(png, DECODE_PNG)
PREPARE(gif, DECODE_GIF)
PREPARE(bmp, DECODE_BMP)
PREPARE(any, DECODE_ANY)

static mr_image_format format_of(mr_string contents)
{
    static const struct {
        const char *magic;
        size_t size_bytes;
        mr_image_format format;
    } formats[] = {{"\xff\xd8\xff", 3, MR_IMAGE_JPEG},
                   {"\x89PNG\r\n\x1a\n", 8, MR_IMAGE_PNG},
                   {"GIF8", 4, MR_IMAGE_GIF},
                   {"BM", 2, MR_IMAGE_BMP}};
    for (int i = 0; i < 4; i++)
        if (contents.size_bytes >= formats[i].size_bytes &&
            memcmp(contents.data, formats[i].magic, formats[i].size_bytes) == 0)
            return formats[i].format;
    return MR_IMAGE_UNKNOWN;
}

static mr_status decode_gif(const decode_options *options, mr_string contents, mr_tensor *image, mr_error *error)
{
    if (options->image.channels != 0 && options->image.channels != 3)
        return mr_fail(error, MR_INVALID_ARGUMENT, "channels must be 0 or 3 for GIF, got %d", options->image.channels);
    mr_error reason = {0};
    mr_status status = mr_gif_decode(contents.data, contents.size_bytes, options->first_frame_only, image, &reason);
    if (status != MR_OK)
        return mr_fail(error, status, "Invalid GIF data (size %zu), %s", contents.size_bytes, reason.message);
    const int64_t *dims = image->shape.dims;
    if (options->decoder == DECODE_GIF || (options->decoder == DECODE_ANY && !options->first_frame_only)) return MR_OK;
    if (dims[0] != 1) {
        status = mr_fail(error, MR_INVALID_ARGUMENT,
                         "Got %" PRId64 " frames, but animated gifs can only be decoded by tf.io.decode_gif or "
                         "tf.io.decode_image",
                         dims[0]);
        mr_tensor_deinit(image);
        return status;
    }
    image->shape = MR_SHAPE(dims[1], dims[2], dims[3]);
    return MR_OK;
}

/* Decodes to uint8, or to the requested dtype if the format has it; a float image is decoded to all bits of the
 * format. */
static mr_status decode_format(const mr_kernel_call *call, mr_string contents, mr_tensor *image, mr_error *error)
{
    const decode_options *options = call->prepared;
    mr_image_decode_options decode = options->image;
    mr_image_format format = format_of(contents);
    bool is_bmp = format == MR_IMAGE_BMP;
    if (contents.size_bytes == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "Input is empty.");
    if (format == MR_IMAGE_UNKNOWN)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
    if (options->decoder == DECODE_BMP && !is_bmp) {
        const char *name = format == MR_IMAGE_JPEG ? "jpeg" : format == MR_IMAGE_PNG ? "png" : "gif";
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Trying to decode %s format using DecodeBmp op. Use `decode_%s` or `decode_image` instead.",
                       mr_image_format_name(format), name);
    }
    if (is_bmp && options->decoder != DECODE_BMP && options->decoder != DECODE_ANY)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. Op "
                       "used: %s",
                       call->node->op);
    if (is_bmp) return mr_bmp_decode(contents.data, contents.size_bytes, decode.channels, image, error);
    if (format == MR_IMAGE_GIF) return decode_gif(options, contents, image, error);
    if (decode.dtype == MR_FLOAT) decode.dtype = format == MR_IMAGE_JPEG ? MR_UINT8 : MR_UINT16;
    mr_error reason = {0};
    mr_status status = mr_image_decode(contents.data, contents.size_bytes, &decode, image, &reason);
    if (status == MR_DATA_LOSS) { /* in TensorFlow's words */
        if (format == MR_IMAGE_JPEG)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "jpeg::Uncompress failed. Invalid JPEG data or crop window. (%s)", reason.message);
        return mr_fail(error, MR_INVALID_ARGUMENT, "Invalid PNG data, size %zu (%s)", contents.size_bytes,
                       reason.message);
    }
    if (status != MR_OK) {
        if (error != nullptr) *error = reason;
        return status;
    }
    if (options->decoder == DECODE_GIF)
        image->shape = MR_SHAPE(1, image->shape.dims[0], image->shape.dims[1], image->shape.dims[2]);
    return MR_OK;
}

/* Floats are in [0, 1]; 8 bits become 16 by a factor of 256. */
static mr_status convert(mr_kernel_call *call, const mr_tensor *image, mr_error *error)
{
    MR_TRY(mr_kernel_output(call, 0, image->shape, error));
    const uint8_t *narrow = image->data;
    const uint16_t *wide = image->data;
    for (int64_t i = 0, count = mr_tensor_count(image); i < count; i++)
        if (call->outputs[0].dtype == MR_UINT16)
            ((uint16_t *)call->outputs[0].data)[i] = (uint16_t)(narrow[i] << 8);
        else
            mr_tensor_floats(&call->outputs[0])[i] =
                image->dtype == MR_UINT8 ? (float)narrow[i] * (1.0f / 255) : (float)wide[i] * (1.0f / 65535);
    return MR_OK;
}

static mr_status decode_image(mr_kernel_call *call, mr_error *error)
{
    const decode_options *options = call->prepared;
    char text[MR_SHAPE_TEXT_SIZE];
    mr_tensor image = {0};
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "`contents` must be scalar but got shape%s",
                              mr_shape_text(call->inputs[0].shape, text, sizeof text));
    mr_status status = decode_format(call, mr_tensor_strings(&call->inputs[0])[0], &image, error);
    if (status == MR_DATA_LOSS) status = MR_INVALID_ARGUMENT; /* as in TensorFlow */
    if (status != MR_OK) return mr_fail_prefix(error, status, "%s (%s)", call->node->name, call->node->op);
    if (image.dtype == options->image.dtype) {
        call->outputs[0] = image;
        return MR_OK;
    }
    status = convert(call, &image, error);
    mr_tensor_deinit(&image);
    return status;
}

#define DECODE(op_name, prepare_function)                                                                              \
    {.op = op_name, .run = decode_image, .prepared_size_bytes = sizeof(decode_options), .prepare = prepare_function}
static const mr_kernel kernels[] = {
    DECODE("DecodeJpeg", prepare_jpeg), DECODE("DecodePng", prepare_png),   DECODE("DecodeGif", prepare_gif),
    DECODE("DecodeBmp", prepare_bmp),   DECODE("DecodeImage", prepare_any),
};
MR_KERNEL_FAMILY(image_ops);
