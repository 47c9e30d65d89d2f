/* Decoders of GIF and BMP for TensorFlow's operators DecodeGif, DecodeBmp and DecodeImage, with their results and
 * errors. The pipeline and the tools do not use them.
 *
 * Input may be hostile: memory is allocated only for pixels that the data contains. */
#ifndef MR_KERNELS_FRAMES_H
#define MR_KERNELS_FRAMES_H

#include <millrace/tensor.h>

/* Returns the frames, uint8 [frames, height, width, 3], as they appear after each other: pixels that a frame does not
 * cover, or that are transparent, are those of the frame before; black in the first one. The canvas is as large as the
 * largest frame. A frame that is damaged or truncated ends the animation.
 * first_only  only the first frame; the others are still checked
 * errors  MR_INVALID_ARGUMENT: no complete frame, a color that is not in the table, or 2^29 pixels or more;
 *         MR_RESOURCE_EXHAUSTED */
mr_status mr_gif_decode(const void *bytes, size_t size_bytes, bool first_only, mr_tensor *frames, mr_error *error);

/* Returns an uncompressed image of 8, 24 or 32 bits, uint8 [height, width, channels], without reading a color table.
 * channels  3 or 4; 0: as stored, 1, 3 or 4
 * errors  MR_INVALID_ARGUMENT, MR_RESOURCE_EXHAUSTED */
mr_status mr_bmp_decode(const void *bytes, size_t size_bytes, int channels, mr_tensor *image, mr_error *error);

#endif
