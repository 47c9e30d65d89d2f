/* BMP decoding as in TensorFlow: the header's offset, size and bits are all that is read of it. */
#include "base/bytes.h"
#include "kernels/image/frames.h"

#include <inttypes.h>

/* Converts one row; blue comes first in the file. */
static void read_row(const uint8_t *from, int stored, uint8_t *to, int channels, int64_t width)
{
    for (int64_t x = 0; x < width; x++, from += stored, to += channels) {
        to[0] = stored == 1 ? from[0] : from[2];
        if (channels >= 3) {
            to[1] = stored == 1 ? from[0] : from[1];
            to[2] = from[0];
        }
        if (channels == 4) to[3] = stored == 4 ? from[3] : UINT8_MAX;
    }
}

mr_status mr_bmp_decode(const void *data, size_t size_bytes, int channels, mr_tensor *image, mr_error *error)
{
    const uint8_t *bytes = data;
    if (channels == 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "`channels` must be 0, 3 or 4 for BMP, but got %d", channels);
    if (size_bytes < 32)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, and "
                       "bpp, got %zu bytes",
                       size_bytes);
    int64_t start = (int32_t)mr_load_le32(bytes + 10), width = (int32_t)mr_load_le32(bytes + 18);
    int64_t signed_height = (int32_t)mr_load_le32(bytes + 22),
            height = signed_height < 0 ? -signed_height : signed_height;
    int stored = (int16_t)mr_load_le16(bytes + 28) / 8;
    if (stored != 1 && stored != 3 && stored != 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Number of channels inherent in the image must be 1, 3 or 4, was %d",
                       stored);
    if (width <= 0) return mr_fail(error, MR_INVALID_ARGUMENT, "Width must be positive");
    if (height == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "Height must be nonzero");
    if (start < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "header size must be nonnegative");
    if (width * height >= INT32_MAX / 8)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Total possible pixel bytes must be less than 2^30");
    int64_t row_bytes = (stored * width + 3) / 4 * 4, missing = (int64_t)size_bytes - start - row_bytes * height;
    if (missing != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Input size should match (header_size + row_size * abs_height) but they differ by %" PRId64,
                       missing);
    if (channels == 0) channels = stored;
    MR_TRY(mr_tensor_init(image, MR_UINT8, MR_SHAPE(height, width, channels), error));
    for (int64_t y = 0; y < height; y++) {
        int64_t line = signed_height < 0 ? y : height - 1 - y;
        read_row(bytes + start + line * row_bytes, stored, (uint8_t *)image->data + y * width * channels, channels,
                 width);
    }
    return MR_OK;
}
