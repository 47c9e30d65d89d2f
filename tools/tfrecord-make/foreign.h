/* Images that training does not read: WebP, GIF, BMP and TIFF as pixels, to be encoded again.
 *
 * ```c
 * mr_tensor pixels = {0};
 * if (foreign_is(info.format)) MR_TRY(foreign_decode(bytes, &info, &pixels, error));
 * ```
 *
 * Bytes may be hostile: what a header says is compared with the limit before anything is allocated, and an error is one
 * sentence. Pixels are [height, width, channels]: gray, gray with alpha, RGB or RGBA; 8 bits, of TIFF also 16. Of several
 * frames or pages the first is taken, on its canvas. Colour profiles are ignored, CMYK becomes RGB, EXIF's orientation is left
 * to the caller. */
#ifndef MR_TOOLS_TFRECORD_MAKE_FOREIGN_H
#define MR_TOOLS_TFRECORD_MAKE_FOREIGN_H

#include <millrace/image.h>

/* As of JPEG and PNG. */
static constexpr int64_t FOREIGN_PIXELS_MAX = 100'000'000;

bool foreign_is(mr_image_format format);

/* info    of mr_image_probe; channels, bits, color, profile and animated are set to what was found
 * pixels  empty before
 * errors  MR_DATA_LOSS damaged or cut short; MR_UNIMPLEMENTED of a kind that is not decoded; MR_INVALID_ARGUMENT too large */
mr_status foreign_decode(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);

/* ---- The decoders, for foreign.c ---- */

/* Allocates pixels of the size that info says; uint8, or uint16 for 16 bits. */
mr_status foreign_pixels(const mr_image_info *info, int32_t channels, mr_tensor *pixels, mr_error *error);
mr_status foreign_decode_bmp(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);
mr_status foreign_decode_gif(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);
mr_status foreign_decode_tiff(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);
mr_status foreign_decode_webp(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error);

#endif
