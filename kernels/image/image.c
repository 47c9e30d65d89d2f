/* Dispatch by image format. The format is determined by the first bytes, not by the file name. */
#include "base/arguments.h"
#include "base/bytes.h"
#include "base/options.h"
#include "kernels/image/exif.h"
#include "kernels/image/jpeg.h"
#include "kernels/image/png.h"

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
    case MR_IMAGE_WEBP:
        return "WebP";
    case MR_IMAGE_TIFF:
        return "TIFF";
    case MR_IMAGE_HEIC:
        return "HEIC";
    case MR_IMAGE_AVIF:
        return "AVIF";
    case MR_IMAGE_JPEG_XL:
        return "JPEG XL";
    case MR_IMAGE_JPEG_2000:
        return "JPEG 2000";
    case MR_IMAGE_UNKNOWN:
        break;
    }
    return "unknown";
}

/* HEIC and AVIF files consist of boxes: size (4), "ftyp", the main brand (4), a version (4), other brands. */
static mr_image_format sniff_boxes(const unsigned char *bytes, size_t size_bytes)
{
    static const char high[][5] = {"heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1"};
    if (size_bytes < 16 || memcmp(bytes + 4, "ftyp", 4) != 0) return MR_IMAGE_UNKNOWN;
    size_t end = (size_t)bytes[2] << 8 | bytes[3];
    bool known = false;
    for (size_t at = 8; at + 4 <= end && at + 4 <= size_bytes; at += at == 8 ? 8 : 4) {
        if (memcmp(bytes + at, "avif", 4) == 0 || memcmp(bytes + at, "avis", 4) == 0) return MR_IMAGE_AVIF;
        for (size_t i = 0; i < sizeof(high) / sizeof(high[0]); i++)
            known = known || memcmp(bytes + at, high[i], 4) == 0;
    }
    return known ? MR_IMAGE_HEIC : MR_IMAGE_UNKNOWN;
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
                   {"BM", 2, MR_IMAGE_BMP},
                   {"II*\0", 4, MR_IMAGE_TIFF},
                   {"MM\0*", 4, MR_IMAGE_TIFF},
                   {"\0\0\0\x0cJXL \r\n\x87\n", 12, MR_IMAGE_JPEG_XL},
                   {"\xff\x0a", 2, MR_IMAGE_JPEG_XL},
                   {"\0\0\0\x0cjP  \r\n\x87\n", 12, MR_IMAGE_JPEG_2000},
                   {"\xff\x4f\xff\x51", 4, MR_IMAGE_JPEG_2000}};
    if (size_bytes >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0) return MR_IMAGE_WEBP;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (size_bytes >= formats[i].size_bytes && memcmp(bytes, formats[i].magic, formats[i].size_bytes) == 0)
            return formats[i].format;
    return sniff_boxes(bytes, size_bytes);
}

static mr_status fail_unknown(size_t size_bytes, mr_error *error)
{
    if (size_bytes == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "not an image: it is empty");
    return mr_fail(error, MR_INVALID_ARGUMENT, "not an image: its %zu bytes start like neither JPEG nor PNG",
                   size_bytes);
}

static mr_status fail_not_read(mr_image_format format, mr_error *error)
{
    return mr_fail(error, MR_UNIMPLEMENTED, "%s images are not supported; convert it to JPEG or PNG",
                   mr_image_format_name(format));
}

static uint32_t load_le24(const unsigned char *bytes)
{
    return mr_load_le16(bytes) | (uint32_t)bytes[2] << 16;
}

/* The end of a chain of GIF data blocks (each begins with its length; 0 is the last); 0 if it is truncated. */
static size_t skip_blocks(const unsigned char *bytes, size_t size_bytes, size_t at)
{
    while (at < size_bytes && bytes[at] != 0) at += 1 + (size_t)bytes[at];
    return at < size_bytes ? at + 1 : 0;
}

/* The size of a GIF's color table. */
static size_t palette_bytes(unsigned flags)
{
    return (flags & 0x80) != 0 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

/* Whether a second image follows the first. */
static bool is_gif_animated(const unsigned char *bytes, size_t size_bytes)
{
    int images = 0;
    if (size_bytes < 13) return false;
    for (size_t at = 13 + palette_bytes(bytes[10]); at > 0 && size_bytes > 11 && at < size_bytes - 11;) {
        if (bytes[at] == 0x2c) {
            if (++images > 1) return true;
            at = skip_blocks(bytes, size_bytes, at + 11 + palette_bytes(bytes[at + 9]));
        } else if (bytes[at] == 0x21) {
            at = skip_blocks(bytes, size_bytes, at + 2);
        } else {
            break;
        }
    }
    return false;
}

static mr_status probe_gif(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    if (size_bytes < 10)
        return mr_fail(error, MR_DATA_LOSS, "the GIF image is truncated: it has %zu bytes", size_bytes);
    info->width = (int32_t)mr_load_le16(bytes + 6);
    info->height = (int32_t)mr_load_le16(bytes + 8);
    info->channels = 3;
    info->color = MR_COLOR_RGB;
    info->is_animated = is_gif_animated(bytes, size_bytes);
    return MR_OK;
}

/* The orientation of an extended WebP, in its chunk "EXIF", with or without the prefix that JPEG uses. */
static int32_t webp_orientation(const unsigned char *bytes, size_t size_bytes)
{
    for (size_t at = 12; size_bytes - at >= 8;) {
        size_t size = mr_load_le32(bytes + at + 4), room = size_bytes - at - 8;
        const unsigned char *data = bytes + at + 8;
        if (size > room) return 0;
        if (memcmp(bytes + at, "EXIF", 4) == 0) {
            size_t head = size >= 6 && memcmp(data, "Exif\0", 6) == 0 ? 6 : 0;
            return mr_exif_orientation(data + head, size - head);
        }
        if (size + size % 2 > room) return 0;
        at += 8 + size + size % 2;
    }
    return 0;
}

/* The first chunk determines which of three kinds a WebP is: lossy, lossless or extended. */
static mr_status probe_webp(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    if (size_bytes < 30)
        return mr_fail(error, MR_DATA_LOSS, "the WebP image is truncated: it has %zu bytes", size_bytes);
    info->channels = 3;
    info->color = MR_COLOR_RGB;
    if (memcmp(bytes + 12, "VP8 ", 4) == 0) {
        info->width = (int32_t)(mr_load_le16(bytes + 26) & 0x3fff);
        info->height = (int32_t)(mr_load_le16(bytes + 28) & 0x3fff);
    } else if (memcmp(bytes + 12, "VP8L", 4) == 0) {
        uint32_t bits = mr_load_le32(bytes + 21);
        info->width = (int32_t)(bits & 0x3fff) + 1;
        info->height = (int32_t)(bits >> 14 & 0x3fff) + 1;
        info->channels = (bits >> 28 & 1) != 0 ? 4 : 3;
    } else if (memcmp(bytes + 12, "VP8X", 4) == 0) {
        info->width = (int32_t)load_le24(bytes + 24) + 1;
        info->height = (int32_t)load_le24(bytes + 27) + 1;
        info->channels = (bytes[20] & 0x10) != 0 ? 4 : 3;
        info->is_animated = (bytes[20] & 0x02) != 0;
        info->has_icc_profile = (bytes[20] & 0x20) != 0;
        if ((bytes[20] & 0x08) != 0) info->orientation = webp_orientation(bytes, size_bytes);
    } else {
        return mr_fail(error, MR_DATA_LOSS, "the WebP image starts with a chunk of unknown type");
    }
    return MR_OK;
}

static mr_status probe_bmp(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    if (size_bytes < 30)
        return mr_fail(error, MR_DATA_LOSS, "the BMP image is truncated: it has %zu bytes", size_bytes);
    bool is_short = mr_load_le32(bytes + 14) == 12; /* the oldest header stores width and height in 16 bits */
    int32_t width = (int32_t)(is_short ? mr_load_le16(bytes + 18) : mr_load_le32(bytes + 18));
    int32_t height = (int32_t)(is_short ? mr_load_le16(bytes + 20) : mr_load_le32(bytes + 22));
    if (width <= 0 || height == 0 || height == INT32_MIN)
        return mr_fail(error, MR_DATA_LOSS, "the BMP image has an invalid size of %d x %d pixels", width, height);
    info->width = width;
    info->height = height < 0 ? -height : height; /* negative: the rows are stored top to bottom */
    info->channels = !is_short && mr_load_le16(bytes + 28) == 32 ? 4 : 3;
    info->color = MR_COLOR_RGB;
    return MR_OK;
}

mr_status mr_image_probe(const void *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    MR_REFUSE_NULL(info, error);
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
    case MR_IMAGE_WEBP:
        return probe_webp(bytes, size_bytes, info, error);
    case MR_IMAGE_TIFF:
        (void)mr_tiff_size(bytes, size_bytes, &info->width, &info->height);
        info->orientation = mr_exif_orientation(bytes, size_bytes);
        return fail_not_read(info->format, error);
    case MR_IMAGE_HEIC:
    case MR_IMAGE_AVIF:
    case MR_IMAGE_JPEG_XL:
    case MR_IMAGE_JPEG_2000:
        return fail_not_read(info->format, error);
    case MR_IMAGE_UNKNOWN:
        break;
    }
    return fail_unknown(size_bytes, error);
}

/* Converts 8 bits of a JPEG to 16 bits as TensorFlow does: times 256. */
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
    MR_REFUSE_NULL(image, error);
    mr_image_decode_options chosen;
    MR_TRY(MR_OPTIONS_READ(mr_image_decode_options, &chosen, options, error));
    if (chosen.dtype == MR_DTYPE_INVALID) chosen.dtype = MR_UINT8;
    if (chosen.dtype != MR_UINT8 && chosen.dtype != MR_UINT16)
        return mr_fail(error, MR_INVALID_ARGUMENT, "images can be decoded to uint8 or uint16, not %s",
                       mr_dtype_name(chosen.dtype));
    *image = (mr_tensor){0};
    mr_image_format format = sniff(bytes, size_bytes);
    switch (format) {
    case MR_IMAGE_JPEG:
        MR_TRY(mr_jpeg_decode(bytes, size_bytes, &chosen, image, error));
        return chosen.dtype == MR_UINT16 ? widen(image, error) : MR_OK;
    case MR_IMAGE_PNG:
        return mr_png_decode(bytes, size_bytes, &chosen, image, error);
    case MR_IMAGE_UNKNOWN:
        return fail_unknown(size_bytes, error);
    default:
        return fail_not_read(format, error);
    }
}
