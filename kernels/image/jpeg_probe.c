/* Reads a JPEG's markers up to the frame header, without libjpeg.
 *
 * A segment is 0xff, its marker, two bytes of length (including themselves) and the data. Fill bytes 0xff may precede a
 * marker. The EXIF orientation is in an APP1 segment before the frame. */
#include "kernels/image/exif.h"
#include "kernels/image/jpeg.h"

#include <string.h>

static uint32_t number(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

static bool is_frame(unsigned marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static mr_status read_frame(const unsigned char *segment, size_t size_bytes, unsigned marker, mr_image_info *info,
                            mr_error *error)
{
    if (size_bytes < 6)
        return mr_fail(error, MR_DATA_LOSS, "the JPEG image has an invalid frame header of %zu bytes", size_bytes);
    info->bits = segment[0] > 8 ? 16 : 8;
    info->height = (int32_t)number(segment + 1);
    info->width = (int32_t)number(segment + 3);
    info->channels = segment[5];
    info->color = info->channels == 1   ? MR_COLOR_GRAY
                  : info->channels == 3 ? MR_COLOR_RGB
                  : info->channels == 4 ? MR_COLOR_CMYK
                                        : MR_COLOR_UNKNOWN;
    info->is_progressive = marker == 0xc2 || marker == 0xc6 || marker == 0xca || marker == 0xce;
    if (info->width == 0 || info->height == 0 || info->channels == 0)
        return mr_fail(error, MR_DATA_LOSS, "the JPEG image has an invalid size of %d x %d pixels of %d channels",
                       info->width, info->height, info->channels);
    return MR_OK;
}

mr_status mr_jpeg_probe(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error)
{
    size_t at = 2;
    while (size_bytes - at >= 4) {
        if (bytes[at] != 0xff) {
            at++; /* like libjpeg, search for the next marker */
            continue;
        }
        unsigned marker = bytes[at + 1];
        if (marker == 0xff || marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8)) {
            at += marker == 0xff ? 1 : 2;
            continue;
        }
        if (marker == 0xd9 || marker == 0xda)
            return mr_fail(error, MR_DATA_LOSS, "the JPEG image has no frame header before byte %zu", at);
        size_t length = number(bytes + at + 2);
        if (length < 2)
            return mr_fail(error, MR_DATA_LOSS, "the JPEG image has a segment of invalid length %zu at byte %zu",
                           length, at);
        if (length > size_bytes - at - 2) break;
        const unsigned char *segment = bytes + at + 4;
        if (is_frame(marker)) return read_frame(segment, length - 2, marker, info, error);
        if (marker == 0xe1 && length >= 8 && memcmp(segment, "Exif\0\0", 6) == 0 && info->orientation == 0)
            info->orientation = mr_exif_orientation(segment + 6, length - 8);
        if (marker == 0xe2 && length >= 14 && memcmp(segment, "ICC_PROFILE", 12) == 0) info->has_icc_profile = true;
        at += 2 + length;
    }
    return mr_fail(error, MR_DATA_LOSS, "the JPEG image is truncated: its %zu bytes end in the header", size_bytes);
}
