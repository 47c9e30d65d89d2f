/* Pictures for the tests: smooth colours with noise and edges, and a JPEG encoder with every knob that a file may have. */
#ifndef MR_TESTS_KERNELS_PICTURES_H
#define MR_TESTS_KERNELS_PICTURES_H

#include "base/random.h"

#include <millrace/image.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

typedef struct test_bytes {
    unsigned char *bytes; /* malloc */
    unsigned long size_bytes;
} test_bytes;

typedef struct test_jpeg_options {
    int channels;             /* 1, 3, 4 (CMYK) */
    int horizontal, vertical; /* sampling of luma over chroma; 0: 1 */
    int quality;              /* 0: 90 */
    bool progressive, rgb, ycck, no_adobe;
    int restart_rows;
} test_jpeg_options;

/* width x height x channels bytes, from malloc. */
static inline unsigned char *test_pixels(int width, int height, int channels, uint64_t seed)
{
    mr_random random = mr_random_at(seed, 0, (uint64_t)width, (uint64_t)height);
    unsigned char *pixels = malloc((size_t)width * (size_t)height * (size_t)channels + 1), *at = pixels;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) {
                int wave = (x * (3 + c) + y * (5 - c)) % 256, block = ((x / 5 + y / 7 + c) & 1) * 90;
                *at++ = (unsigned char)((wave + block + (int)mr_random_below(&random, 40)) & 255);
            }
    return pixels;
}

static inline test_bytes test_encode_jpeg(const unsigned char *pixels, int width, int height,
                                          const test_jpeg_options *options)
{
    struct jpeg_compress_struct compress = {0};
    struct jpeg_error_mgr errors = {0};
    test_bytes result = {0};
    compress.err = jpeg_std_error(&errors);
    jpeg_create_compress(&compress);
    jpeg_mem_dest(&compress, &result.bytes, &result.size_bytes);
    compress.image_width = (JDIMENSION)width;
    compress.image_height = (JDIMENSION)height;
    compress.input_components = options->channels;
    compress.in_color_space = options->channels == 1 ? JCS_GRAYSCALE : options->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&compress);
    if (options->rgb) jpeg_set_colorspace(&compress, JCS_RGB);
    if (options->ycck) jpeg_set_colorspace(&compress, JCS_YCCK);
    if (options->no_adobe) compress.write_Adobe_marker = FALSE;
    jpeg_set_quality(&compress, options->quality == 0 ? 90 : options->quality, TRUE);
    if (options->channels >= 3) {
        compress.comp_info[0].h_samp_factor = options->horizontal == 0 ? 1 : options->horizontal;
        compress.comp_info[0].v_samp_factor = options->vertical == 0 ? 1 : options->vertical;
        for (int c = 1; c < options->channels; c++)
            compress.comp_info[c].h_samp_factor = compress.comp_info[c].v_samp_factor = 1;
    }
    compress.restart_in_rows = options->restart_rows;
    if (options->progressive) jpeg_simple_progression(&compress);
    jpeg_start_compress(&compress, TRUE);
    while (compress.next_scanline < compress.image_height) {
        JSAMPROW row = (JSAMPROW)pixels + (size_t)compress.next_scanline * (size_t)(width * options->channels);
        (void)jpeg_write_scanlines(&compress, &row, 1);
    }
    jpeg_finish_compress(&compress);
    jpeg_destroy_compress(&compress);
    return result;
}

static inline test_bytes test_jpeg(int width, int height, test_jpeg_options options)
{
    if (options.channels == 0) options.channels = 3;
    unsigned char *pixels = test_pixels(width, height, options.channels, 1);
    test_bytes result = test_encode_jpeg(pixels, width, height, &options);
    free(pixels);
    return result;
}

#endif
