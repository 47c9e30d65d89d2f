/* What a JPEG's markers say, without libjpeg: a walk over the segments up to the frame header.
 *
 * A segment is 0xff, its marker, two bytes of length (themselves included) and the rest. Fill bytes 0xff may stand before
 * a marker. The EXIF orientation comes in an APP1 segment before the frame, as a TIFF structure. */
#include "kernels/jpeg.h"

#include <string.h>

static uint32_t number(const unsigned char *bytes, size_t size_bytes, bool little)
{
    uint32_t value = 0;
    for (size_t i = 0; i < size_bytes; i++) value = value << 8 | bytes[little ? size_bytes - 1 - i : i];
    return value;
}

int32_t mr_exif_orientation(const unsigned char *bytes, size_t size_bytes)
{
    if (size_bytes < 14) return 0;
    bool little = bytes[0] == 'I';
    if (memcmp(bytes, little ? "II*\0" : "MM\0*", 4) != 0) return 0;
    size_t offset = number(bytes + 4, 4, little);
    if (offset > size_bytes - 2) return 0;
    uint32_t entry_count = number(bytes + offset, 2, little);
    offset += 2;
    for (uint32_t i = 0; i < entry_count && size_bytes - offset >= 12; i++, offset += 12) {
        const unsigned char *entry = bytes + offset;
        if (number(entry, 2, little) != 0x112 || number(entry + 2, 2, little) != 3) continue;
        uint32_t value = number(entry + 8, 2, little);
        return value >= 1 && value <= 8 ? (int32_t)value : 0;
    }
    return 0;
}

static bool is_frame(unsigned marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static mr_status read_frame(const unsigned char *segment, size_t size_bytes, unsigned marker, mr_image_info *info,
                            mr_error *error)
{
    if (size_bytes < 6)
        return mr_fail(error, MR_DATA_LOSS, "the JPEG picture has a frame header of %zu bytes", size_bytes);
    info->bits = segment[0] > 8 ? 16 : 8;
    info->height = (int32_t)number(segment + 1, 2, false);
    info->width = (int32_t)number(segment + 3, 2, false);
    info->channels = segment[5];
    info->color = info->channels == 1   ? MR_COLOR_GRAY
                  : info->channels == 3 ? MR_COLOR_RGB
                  : info->channels == 4 ? MR_COLOR_CMYK
                                        : MR_COLOR_UNKNOWN;
    info->progressive = marker == 0xc2 || marker == 0xc6 || marker == 0xca || marker == 0xce;
    if (info->width == 0 || info->height == 0 || info->channels == 0)
        return mr_fail(error, MR_DATA_LOSS, "the JPEG picture says that it has %d x %d pixels of %d channels",
                       info->width, info->height, info->channels);
    return MR_OK;
}

mr_status mr_jpeg_probe(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    size_t at = 2;
    while (size_bytes - at >= 4) {
        if (bytes[at] != 0xff) {
            at++; /* libjpeg, too, searches for the next marker */
            continue;
        }
        unsigned marker = bytes[at + 1];
        if (marker == 0xff || marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8)) {
            at += marker == 0xff ? 1 : 2;
            continue;
        }
        if (marker == 0xd9 || marker == 0xda)
            return mr_fail(error, MR_DATA_LOSS, "the JPEG picture has no frame header before byte %zu", at);
        size_t length = number(bytes + at + 2, 2, false);
        if (length < 2)
            return mr_fail(error, MR_DATA_LOSS, "the JPEG picture has a segment of length %zu at byte %zu", length, at);
        if (length > size_bytes - at - 2) break;
        const unsigned char *segment = bytes + at + 4;
        if (is_frame(marker)) return read_frame(segment, length - 2, marker, info, error);
        if (marker == 0xe1 && length >= 8 && memcmp(segment, "Exif\0\0", 6) == 0 && info->orientation == 0)
            info->orientation = mr_exif_orientation(segment + 6, length - 8);
        at += 2 + length;
    }
    return mr_fail(error, MR_DATA_LOSS, "the JPEG picture is truncated: its %zu bytes end in the header", size_bytes);
}
