/* The common part of the fuzz targets for WebP, GIF, BMP and TIFF. The decoder returns a message if it fails, and
 * otherwise pixels of the size in the header. */
#ifndef MR_TESTS_FUZZ_FOREIGN_FUZZ_H
#define MR_TESTS_FUZZ_FOREIGN_FUZZ_H

#include "tools/tfrecord-make/foreign.h"

#include <millrace/image.h>

#include <stdlib.h>

/* Smaller than FOREIGN_PIXELS_MAX: otherwise a fuzzer would spend nearly all of its time clearing pixels. */
static constexpr int64_t FUZZ_PIXELS_MAX = 1 << 18;

typedef mr_status foreign_decoder(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);

/* Replaces the function in foreign.c. */
mr_status foreign_pixels(const mr_image_info *info, int32_t channels, mr_tensor *pixels, mr_error *error)
{
    return mr_tensor_init(pixels, info->bits > 8 ? MR_UINT16 : MR_UINT8, MR_SHAPE(info->height, info->width, channels),
                          error);
}

static inline void fuzz_foreign(const uint8_t *bytes, size_t size_bytes, mr_image_format format,
                                foreign_decoder *decode)
{
    mr_error error = {0};
    mr_image_info info = {0};
    mr_tensor pixels = {0};
    (void)mr_image_probe(bytes, size_bytes, &info, &error);
    if (info.format != format || info.width <= 0 || info.height <= 0 ||
        (int64_t)info.width * info.height > FUZZ_PIXELS_MAX)
        return;
    error = (mr_error){0};
    mr_status status = decode((mr_string){(const char *)bytes, size_bytes}, &info, &pixels, &error);
    if (status != MR_OK && (error.message[0] == '\0' || error.status != status)) abort();
    if (status == MR_OK && (pixels.shape.dims[0] != info.height || pixels.shape.dims[1] != info.width ||
                            pixels.shape.dims[2] < 1 || pixels.shape.dims[2] > 4))
        abort();
    mr_tensor_deinit(&pixels);
}

#endif
