/* Images for the tests: smooth colors with noise and edges, and encoders with all options of the formats. */
#ifndef MR_TESTS_KERNELS_IMAGES_H
#define MR_TESTS_KERNELS_IMAGES_H

#include "base/random.h"

#include <millrace/image.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

typedef struct test_bytes {
    unsigned char *bytes; /* owned; allocated with malloc */
    unsigned long size_bytes;
} test_bytes;

typedef struct test_jpeg_options {
    int channels;             /* 1, 3, 4 (CMYK) */
    int horizontal, vertical; /* sampling of luma over chroma; 0: 1 */
    int quality;              /* 0: 90 */
    bool progressive, rgb, ycck, no_adobe;
    int restart_rows;
} test_jpeg_options;

/* Returns width x height x channels bytes; the caller frees them. */
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

typedef struct test_png_options {
    int color_type, bits; /* as in the PNG header */
    bool interlaced, transparent, gamma;
} test_png_options;

static inline void test_png_append(png_structp png, png_bytep bytes, size_t size_bytes)
{
    test_bytes *result = png_get_io_ptr(png);
    result->bytes = realloc(result->bytes, result->size_bytes + size_bytes);
    memcpy(result->bytes + result->size_bytes, bytes, size_bytes);
    result->size_bytes += size_bytes;
}

static inline void test_png_flush(png_structp png)
{
    (void)png;
}

/* Rows are packed bits of noise and waves; palettes have a color for every value. */
static inline test_bytes test_png(int width, int height, test_png_options options)
{
    test_bytes result = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &result, test_png_append, test_png_flush);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, options.bits, options.color_type,
                 options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_color palette[256];
    unsigned char alphas[256];
    for (int i = 0; i < 256; i++) {
        palette[i] = (png_color){(png_byte)(i * 7), (png_byte)(255 - i * 3), (png_byte)(i * 29)};
        alphas[i] = (unsigned char)(i * 37);
    }
    if (options.color_type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 1 << options.bits);
    png_color_16 clear = {.red = 5, .green = 6, .blue = 7, .gray = 1};
    if (options.transparent && options.color_type == PNG_COLOR_TYPE_PALETTE)
        png_set_tRNS(png, info, alphas, (1 << options.bits) / 2, nullptr);
    else if (options.transparent)
        png_set_tRNS(png, info, nullptr, 0, &clear);
    if (options.gamma) png_set_gAMA(png, info, 1.0);
    png_write_info(png, info);
    size_t row_bytes = png_get_rowbytes(png, info);
    unsigned char *pixels = test_pixels((int)row_bytes, height, 1, 7);
    for (int pass = 0; pass < (options.interlaced ? png_set_interlace_handling(png) : 1); pass++)
        for (int y = 0; y < height; y++) png_write_row(png, pixels + (size_t)y * row_bytes);
    png_write_end(png, nullptr);
    png_destroy_write_struct(&png, &info);
    free(pixels);
    return result;
}

/* Color types with their allowed bit depths. */
static const test_png_options test_png_kinds[] = {
    {PNG_COLOR_TYPE_GRAY, 1, false, false, false},        {PNG_COLOR_TYPE_GRAY, 2, false, false, false},
    {PNG_COLOR_TYPE_GRAY, 4, false, false, false},        {PNG_COLOR_TYPE_GRAY, 8, false, false, false},
    {PNG_COLOR_TYPE_GRAY, 16, false, false, false},       {PNG_COLOR_TYPE_PALETTE, 1, false, false, false},
    {PNG_COLOR_TYPE_PALETTE, 2, false, false, false},     {PNG_COLOR_TYPE_PALETTE, 4, false, false, false},
    {PNG_COLOR_TYPE_PALETTE, 8, false, false, false},     {PNG_COLOR_TYPE_RGB, 8, false, false, false},
    {PNG_COLOR_TYPE_RGB, 16, false, false, false},        {PNG_COLOR_TYPE_GRAY_ALPHA, 8, false, false, false},
    {PNG_COLOR_TYPE_GRAY_ALPHA, 16, false, false, false}, {PNG_COLOR_TYPE_RGB_ALPHA, 8, false, false, false},
    {PNG_COLOR_TYPE_RGB_ALPHA, 16, false, false, false},  {PNG_COLOR_TYPE_GRAY, 1, false, true, false},
    {PNG_COLOR_TYPE_GRAY, 8, false, true, false},         {PNG_COLOR_TYPE_GRAY, 16, false, true, false},
    {PNG_COLOR_TYPE_RGB, 8, false, true, false},          {PNG_COLOR_TYPE_RGB, 16, false, true, false},
    {PNG_COLOR_TYPE_PALETTE, 1, false, true, false},      {PNG_COLOR_TYPE_PALETTE, 8, false, true, false},
    {PNG_COLOR_TYPE_RGB, 8, false, false, true},          {PNG_COLOR_TYPE_RGB, 16, false, false, true},
};
constexpr int test_png_kind_count = sizeof(test_png_kinds) / sizeof(test_png_kinds[0]);

/* Combinations of JPEG components and scans. */
static const test_jpeg_options test_jpeg_kinds[] = {
    {.horizontal = 1, .vertical = 1},
    {.horizontal = 2, .vertical = 1},
    {.horizontal = 2, .vertical = 2},
    {.horizontal = 1, .vertical = 2},
    {.horizontal = 4, .vertical = 1},
    {.horizontal = 1, .vertical = 4},
    {.horizontal = 4, .vertical = 2},
    {.horizontal = 2, .vertical = 4},
    {.channels = 1},
    {.horizontal = 2, .vertical = 2, .progressive = true},
    {.horizontal = 2, .vertical = 1, .progressive = true},
    {.horizontal = 1, .vertical = 2, .progressive = true},
    {.channels = 1, .progressive = true},
    {.horizontal = 2, .vertical = 2, .restart_rows = 1},
    {.rgb = true},
    {.channels = 4},
    {.channels = 4, .no_adobe = true},
    {.channels = 4, .ycck = true, .horizontal = 2, .vertical = 2},
    {.horizontal = 2, .vertical = 2, .quality = 20},
};
constexpr int test_jpeg_kind_count = sizeof(test_jpeg_kinds) / sizeof(test_jpeg_kinds[0]);

#endif
