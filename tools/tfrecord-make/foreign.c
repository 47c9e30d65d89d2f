/* See foreign.h: selects the decoder, and contains their common code. */
#include "tfrecord-make/foreign.h"

#include <string.h>

static mr_status (*const decoders[])(mr_string, mr_image_info *, mr_tensor *, mr_error *) = {
    [MR_IMAGE_GIF] = foreign_decode_gif,
    [MR_IMAGE_BMP] = foreign_decode_bmp,
    [MR_IMAGE_WEBP] = foreign_decode_webp,
    [MR_IMAGE_TIFF] = foreign_decode_tiff,
};

bool foreign_is(mr_image_format format)
{
    return (size_t)format < sizeof(decoders) / sizeof(decoders[0]) && decoders[format];
}

mr_status foreign_pixels(const mr_image_info *info, int32_t channels, mr_tensor *pixels, mr_error *error)
{
    return mr_tensor_init(pixels, info->bits > 8 ? MR_UINT16 : MR_UINT8, MR_SHAPE(info->height, info->width, channels),
                          error);
}

/* Drops an alpha channel that is opaque everywhere. */
static mr_status drop_opaque_alpha(mr_tensor *pixels, mr_error *error)
{
    int64_t channels = pixels->shape.dims[2], count = mr_tensor_count(pixels), kept = channels - 1;
    if (channels != 2 && channels != 4) return MR_OK;
    const uint8_t *bytes = pixels->data;
    const uint16_t *words = pixels->data;
    bool narrow = pixels->dtype == MR_UINT8;
    for (int64_t i = kept; i < count; i += channels)
        if (narrow ? bytes[i] != 255 : words[i] != 65535) return MR_OK;
    mr_tensor opaque = {0};
    MR_TRY(mr_tensor_init(&opaque, pixels->dtype, MR_SHAPE(pixels->shape.dims[0], pixels->shape.dims[1], kept), error));
    size_t size = (size_t)kept * (narrow ? 1 : 2), stride = (size_t)channels * (narrow ? 1 : 2);
    for (int64_t i = 0; i < count / channels; i++)
        memcpy((uint8_t *)opaque.data + (size_t)i * size, bytes + (size_t)i * stride, size);
    mr_tensor_deinit(pixels);
    *pixels = opaque;
    return MR_OK;
}

mr_status foreign_decode(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error)
{
    const char *name = mr_image_format_name(info->format);
    if (info->width <= 0 || info->height <= 0)
        return mr_fail(error, MR_DATA_LOSS, "the %s header does not contain the size of the image", name);
    if ((int64_t)info->width * info->height > FOREIGN_PIXELS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the %s image has %d x %d pixels (at most %lld are supported)", name,
                       info->width, info->height, (long long)FOREIGN_PIXELS_MAX);
    *pixels = (mr_tensor){0};
    mr_status status = decoders[info->format](bytes, info, pixels, error);
    if (status == MR_OK) status = drop_opaque_alpha(pixels, error);
    if (status != MR_OK) {
        mr_tensor_deinit(pixels);
        *pixels = (mr_tensor){0};
        return status;
    }
    info->channels = (int32_t)pixels->shape.dims[2];
    return MR_OK;
}
