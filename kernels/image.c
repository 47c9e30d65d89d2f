/* Pictures by content: the first bytes say the format, whatever the file is called. */
#include "kernels/jpeg.h"
#include "kernels/png.h"

#include <string.h>

const char *mr_image_format_name(mr_image_format format)
{
    switch (format) {
    case MR_IMAGE_JPEG:
        return "JPEG";
    case MR_IMAGE_PNG:
        return "PNG";
    case MR_IMAGE_GIF:
        return "GIF";
    case MR_IMAGE_BMP:
        return "BMP";
    case MR_IMAGE_UNKNOWN:
        break;
    }
    return "unknown";
}

static mr_image_format sniff(const unsigned char *bytes, size_t size_bytes)
{
    static const struct {
        const char *magic;
        size_t size_bytes;
        mr_image_format format;
    } formats[] = {{"\xff\xd8\xff", 3, MR_IMAGE_JPEG},
                   {"\x89PNG\r\n\x1a\n", 8, MR_IMAGE_PNG},
                   {"GIF8", 4, MR_IMAGE_GIF},
                   {"BM", 2, MR_IMAGE_BMP}};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (size_bytes >= formats[i].size_bytes && memcmp(bytes, formats[i].magic, formats[i].size_bytes) == 0)
            return formats[i].format;
    return MR_IMAGE_UNKNOWN;
}

static mr_status fail_unknown(size_t size_bytes, mr_error *error)
{
    if (size_bytes == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "not a picture: it is empty");
    return mr_fail(error, MR_INVALID_ARGUMENT, "not a picture: its %zu bytes begin as neither JPEG nor PNG do",
                   size_bytes);
}

static uint32_t little(const unsigned char *bytes, int count)
{
    uint32_t value = 0;
    for (int i = count; i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

static mr_status probe_gif(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    if (size_bytes < 10)
        return mr_fail(error, MR_DATA_LOSS, "the GIF picture is truncated: it has %zu bytes", size_bytes);
    info->width = (int32_t)little(bytes + 6, 2);
    info->height = (int32_t)little(bytes + 8, 2);
    info->channels = 3;
    info->color = MR_COLOR_RGB;
    return MR_OK;
}

static mr_status probe_bmp(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    if (size_bytes < 30)
        return mr_fail(error, MR_DATA_LOSS, "the BMP picture is truncated: it has %zu bytes", size_bytes);
    int32_t width = (int32_t)little(bytes + 18, 4), height = (int32_t)little(bytes + 22, 4);
    if (width <= 0 || height == 0 || height == INT32_MIN)
        return mr_fail(error, MR_DATA_LOSS, "the BMP picture says that it has %d x %d pixels", width, height);
    info->width = width;
    info->height = height < 0 ? -height : height; /* negative: the rows are top first */
    info->channels = little(bytes + 28, 2) == 32 ? 4 : 3;
    info->color = MR_COLOR_RGB;
    return MR_OK;
}

mr_status mr_image_probe(const void *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    *info = (mr_image_info){.format = sniff(bytes, size_bytes), .bits = 8};
    switch (info->format) {
    case MR_IMAGE_JPEG:
        return mr_jpeg_probe(bytes, size_bytes, info, error);
    case MR_IMAGE_PNG:
        return mr_png_probe(bytes, size_bytes, info, error);
    case MR_IMAGE_GIF:
        return probe_gif(bytes, size_bytes, info, error);
    case MR_IMAGE_BMP:
        return probe_bmp(bytes, size_bytes, info, error);
    case MR_IMAGE_UNKNOWN:
        break;
    }
    return fail_unknown(size_bytes, error);
}

/* TensorFlow's way from 8 bits of a JPEG to 16: times 256. */
static mr_status widen(mr_tensor *image, mr_error *error)
{
    mr_tensor wide = {0};
    mr_status status = mr_tensor_init(&wide, MR_UINT16, image->shape, error);
    if (status == MR_OK) {
        const unsigned char *source = image->data;
        uint16_t *target = wide.data;
        int64_t count = mr_tensor_count(image);
        for (int64_t i = 0; i < count; i++) target[i] = (uint16_t)(source[i] << 8);
    }
    mr_tensor_deinit(image);
    *image = wide;
    return status;
}

mr_status mr_image_decode(const void *bytes, size_t size_bytes, const mr_image_decode_options *options,
                          mr_tensor *image, mr_error *error)
{
    mr_image_decode_options chosen = {0};
    if (options != nullptr) chosen = *options;
    if (chosen.dtype == MR_DTYPE_INVALID) chosen.dtype = MR_UINT8;
    if (chosen.dtype != MR_UINT8 && chosen.dtype != MR_UINT16)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a picture is decoded to uint8 or uint16, not %s",
                       mr_dtype_name(chosen.dtype));
    *image = (mr_tensor){0};
    mr_image_format format = sniff(bytes, size_bytes);
    switch (format) {
    case MR_IMAGE_JPEG:
        MR_TRY(mr_jpeg_decode(bytes, size_bytes, &chosen, image, error));
        return chosen.dtype == MR_UINT16 ? widen(image, error) : MR_OK;
    case MR_IMAGE_PNG:
        return mr_png_decode(bytes, size_bytes, &chosen, image, error);
    case MR_IMAGE_GIF:
    case MR_IMAGE_BMP:
        return mr_fail(error, MR_UNIMPLEMENTED, "%s pictures are not decoded; convert it to JPEG or PNG",
                       mr_image_format_name(format));
    case MR_IMAGE_UNKNOWN:
        break;
    }
    return fail_unknown(size_bytes, error);
}
