/* Reads a PNG's chunks up to IDAT, without libpng.
 *
 * A PNG is a signature of eight bytes followed by chunks: length (4 bytes, big-endian), type (4), data, CRC (4). The
 * first chunk is IHDR: width, height, bits, color type, compression, filter, interlace. */
#include "kernels/image/exif.h"
#include "kernels/image/png.h"

#include <string.h>

constexpr uint32_t length_max = 0x7fffffff;

static uint32_t number(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool is_legal(unsigned color, unsigned bits)
{
    switch (color) {
    case PNG_COLOR_TYPE_GRAY:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
    case PNG_COLOR_TYPE_PALETTE:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8;
    case PNG_COLOR_TYPE_RGB:
    case PNG_COLOR_TYPE_GRAY_ALPHA:
    case PNG_COLOR_TYPE_RGB_ALPHA:
        return bits == 8 || bits == 16;
    default:
        return false;
    }
}

static mr_status read_header(const unsigned char *header, mr_image_info *info, mr_error *error)
{
    uint32_t width = number(header), height = number(header + 4);
    if (width == 0 || height == 0 || width > length_max || height > length_max)
        return mr_fail(error, MR_DATA_LOSS, "the PNG image has an invalid size of %u x %u pixels", width, height);
    unsigned bits = header[8], color = header[9];
    if (!is_legal(color, bits))
        return mr_fail(error, MR_DATA_LOSS, "the PNG image has an invalid combination of color type %u and %u bits",
                       color, bits);
    info->width = (int32_t)width;
    info->height = (int32_t)height;
    info->bits = bits == 16 ? 16 : 8;
    info->channels = (color & 3) == 0 ? 1 : 3;
    if ((color & PNG_COLOR_MASK_ALPHA) != 0) info->channels++;
    info->color = (color & PNG_COLOR_MASK_COLOR) != 0 ? MR_COLOR_RGB : MR_COLOR_GRAY;
    info->is_progressive = header[12] != 0;
    return MR_OK;
}

mr_status mr_png_probe(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    if (size_bytes < 8 + 8 + 13 || memcmp(bytes + 12, "IHDR", 4) != 0 || number(bytes + 8) != 13)
        return mr_fail(error, MR_DATA_LOSS, "the PNG image is truncated or damaged: its %zu bytes contain no header",
                       size_bytes);
    MR_TRY(read_header(bytes + 16, info, error));
    bool palette = bytes[25] == PNG_COLOR_TYPE_PALETTE;
    for (size_t at = 8 + 8 + 13 + 4; at < size_bytes && size_bytes - at >= 12;) {
        uint32_t length = number(bytes + at);
        const unsigned char *type = bytes + at + 4;
        if (length > size_bytes - at - 12 || memcmp(type, "IDAT", 4) == 0) break;
        if (memcmp(type, "tRNS", 4) == 0 && palette) info->channels = 4;
        if (memcmp(type, "iCCP", 4) == 0) info->has_icc_profile = true;
        if (memcmp(type, "acTL", 4) == 0 && length == 8) info->is_animated = number(type + 4) > 1;
        if (memcmp(type, "eXIf", 4) == 0) info->orientation = mr_exif_orientation(type + 4, length);
        at += 12 + (size_t)length;
    }
    return MR_OK;
}
