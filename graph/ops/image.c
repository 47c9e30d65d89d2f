/* Decoding and encoding of images. */
#include "graph/ir/op.h"

static mr_status decode_image_shape(mr_shape_call *call, mr_error *error)
{
    int64_t channels = mr_attr_int_or(call->attrs, "channels", 0);
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    if (channels < 0 || channels > 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr channels is %lld", (long long)channels);
    call->outputs[0] = MR_SHAPE(-1, -1, channels == 0 ? -1 : channels);
    return MR_OK;
}

static mr_status decode_gif_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    call->outputs[0] = MR_SHAPE(-1, -1, -1, 3);
    return MR_OK;
}

static mr_status decode_and_crop_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape window;
    MR_TRY(decode_image_shape(call, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &window, error));
    MR_TRY(mr_size_merge(window.dims[0], 4, &window.dims[0], error));
    const mr_partial *known = call->partials[1];
    for (int32_t i = 0; known != nullptr && known->count == 4 && i < 2; i++)
        if ((known->known >> (2 + i) & 1) != 0 && known->values[2 + i] >= 0)
            call->outputs[0].dims[i] = known->values[2 + i];
    return MR_OK;
}

static mr_status decode_any_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(decode_image_shape(call, error));
    if (mr_attr_bool_or(call->attrs, "expand_animations", true)) call->outputs[0] = MR_SHAPE_UNKNOWN;
    return MR_OK;
}

static mr_status jpeg_shape_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    call->outputs[0] = MR_SHAPE(3);
    return MR_OK;
}

static mr_status encode_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 3, error));
    call->outputs[0] = MR_SCALAR;
    return MR_OK;
}

static mr_status encode_quality_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    return encode_shape(call, error);
}

static mr_status encode_png_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape images = call->inputs[0];
    MR_TRY(mr_shape_at_least(images, 3, error));
    if (images.rank >= 0) images.rank -= 3;
    call->outputs[0] = images;
    return MR_OK;
}

static const mr_op image_ops[] = {
    {.name = "DecodeJpeg",
     .signature = "contents: string -> image: uint8",
     .attrs = "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; try_recover_truncated: bool = false; "
              "acceptable_fraction: float = 1.0; dct_method: string = ''",
     .shape = decode_image_shape,
     .doc = "Decodes a JPEG image to [height, width, channels]; channels 0 keeps those of the file."},
    {.name = "DecodePng",
     .signature = "contents: string -> image: dtype",
     .attrs = "channels: int = 0; dtype: {uint8, uint16} = uint8",
     .shape = decode_image_shape,
     .doc = "Decodes a PNG image to [height, width, channels]; channels 0 keeps those of the file."},
    {.name = "DecodeAndCropJpeg",
     .signature = "contents: string, crop_window: int32 -> image: uint8",
     .attrs = "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; try_recover_truncated: bool = false; "
              "acceptable_fraction: float = 1; dct_method: string = ''",
     .shape = decode_and_crop_shape,
     .doc = "Decodes the window [y, x, height, width] of a JPEG image."},
    {.name = "DecodeGif",
     .signature = "contents: string -> image: uint8",
     .shape = decode_gif_shape,
     .doc = "Decodes a GIF image to [frames, height, width, 3], each frame drawn over the one before."},
    {.name = "DecodeBmp",
     .signature = "contents: string -> image: uint8",
     .attrs = "channels: int = 0",
     .shape = decode_image_shape,
     .doc = "Decodes an uncompressed BMP image to [height, width, channels]; channels 0 keeps those of the file."},
    {.name = "DecodeImage",
     .signature = "contents: string -> image: dtype",
     .attrs = "channels: int = 0; dtype: {uint8, uint16, float} = uint8; expand_animations: bool = true",
     .shape = decode_any_shape,
     .doc = "Decodes a JPEG, PNG, GIF or BMP image; a GIF has the shape [frames, height, width, 3] if "
            "expand_animations is set."},
    {.name = "ExtractJpegShape",
     .signature = "contents: string -> image_shape: output_type",
     .attrs = "output_type: {int32, int64} = int32",
     .shape = jpeg_shape_shape,
     .doc = "Reads [height, width, channels] from the header of a JPEG image."},
    {.name = "EncodeJpeg",
     .signature = "image: uint8 -> contents: string",
     .attrs = "format: {'', 'grayscale', 'rgb'} = ''; quality: int = 95; progressive: bool = false; optimize_size: "
              "bool = false; chroma_downsampling: bool = true; density_unit: {'in', 'cm'} = 'in'; x_density: int = "
              "300; y_density: int = 300; xmp_metadata: string = ''",
     .shape = encode_shape,
     .doc = "Encodes an image [height, width, channels] as JPEG."},
    {.name = "EncodeJpegVariableQuality",
     .signature = "images: uint8, quality: int32 -> contents: string",
     .shape = encode_quality_shape,
     .doc = "Encodes an image [height, width, channels] as JPEG with the given quality."},
    {.name = "EncodePng",
     .signature = "image: T -> contents: string",
     .attrs = "compression: int = -1; T: {uint8, uint16} = uint8",
     .shape = encode_png_shape,
     .doc = "Encodes images [..., height, width, channels] as PNG."},
};

const mr_op_table mr_ops_image = {image_ops, sizeof image_ops / sizeof image_ops[0]};
