/* Encoders with all options of TensorFlow's EncodeJpeg and EncodePng. */
#ifndef MR_KERNELS_IMAGE_ENCODE_H
#define MR_KERNELS_IMAGE_ENCODE_H

#include <millrace/image.h>

typedef struct mr_jpeg_encoding {
    int32_t quality; /* 0: 95 */
    bool is_progressive;
    bool optimizes_size;          /* Huffman tables for this image */
    bool keeps_chroma;            /* 4:4:4 instead of 4:2:0 */
    bool is_per_cm;               /* densities count dots per centimetre, otherwise per inch */
    int32_t x_density, y_density; /* 0: 300 */
    mr_string xmp_metadata;       /* empty: none */
} mr_jpeg_encoding;

/* As mr_image_encode_jpeg.
 * errors  MR_INVALID_ARGUMENT: the image, the quality, or metadata of more than 65,504 bytes */
mr_status mr_jpeg_encode(const mr_tensor *image, const mr_jpeg_encoding *encoding, mr_tensor *bytes, mr_error *error);

/* As mr_image_encode_png.
 * compression  0 … 9; -1: zlib's default */
mr_status mr_png_encode(const mr_tensor *image, int compression, mr_tensor *bytes, mr_error *error);

#endif
