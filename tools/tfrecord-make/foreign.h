/* Decoders for image formats that training does not read: WebP, GIF, BMP and TIFF. Their pixels are re-encoded.
 *
 * ```c
 * mr_tensor pixels = {0};
 * if (foreign_is(info.format)) MR_TRY(foreign_decode(bytes, &info, &pixels, error));
 * ```
 *
 * Input may be hostile: sizes in headers are checked against the limit before anything is allocated, and an error is
 * one sentence. Pixels are [height, width, channels]: gray, gray with alpha, RGB or RGBA; 8 bits, for TIFF also 16. Of
 * several frames or pages the first is decoded, on its canvas. Color profiles are ignored, CMYK is converted to RGB,
 * and the caller applies the EXIF orientation. */
#ifndef MR_TOOLS_TFRECORD_MAKE_FOREIGN_H
#define MR_TOOLS_TFRECORD_MAKE_FOREIGN_H

#include <millrace/image.h>

/* The same limit as for JPEG and PNG. */
static constexpr int64_t FOREIGN_PIXELS_MAX = 100'000'000;

bool foreign_is(mr_image_format format);

/* info    from mr_image_probe; channels, bits, color, profile and animated are updated from the decoder
 * pixels  empty before
 * errors  MR_DATA_LOSS: damaged or truncated; MR_UNIMPLEMENTED: an unsupported kind; MR_INVALID_ARGUMENT: too large */
mr_status foreign_decode(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);

/* ---- The decoders, for foreign.c ---- */

/* Allocates pixels of the size in info; uint8, or uint16 for 16 bits. */
mr_status foreign_pixels(const mr_image_info *info, int32_t channels, mr_tensor *pixels, mr_error *error);
mr_status foreign_decode_bmp(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);
mr_status foreign_decode_gif(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);
mr_status foreign_decode_tiff(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);
mr_status foreign_decode_webp(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);

#endif
