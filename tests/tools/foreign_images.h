/* Images in the formats that tfrecord-make converts. They are written by each format's own library, or byte by byte. */
#ifndef MR_TESTS_TOOLS_FOREIGN_IMAGES_H
#define MR_TESTS_TOOLS_FOREIGN_IMAGES_H

#include "tests/records/record_data.h"

#include <gif_lib.h>
#include <tiffio.h>
#include <webp/encode.h>

/* Fills pixels with values that differ everywhere: [height, width, channels], uint8, or uint16 in native byte order if
 * bits is 16. */
static inline void foreign_fill(void *pixels, int width, int height, int channels, int bits)
{
    for (int y = 0, i = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++, i++) {
                unsigned value = (unsigned)(x * 2741 + y * 7919 + c * 12345 + x * y * 17);
                if (bits == 16)
                    ((uint16_t *)pixels)[i] = (uint16_t)value;
                else
                    ((uint8_t *)pixels)[i] = (uint8_t)(value >> 3);
            }
}

/* Lossless WebP of 3 or 4 channels. The caller frees *bytes with WebPFree. */
static inline size_t foreign_webp(const uint8_t *pixels, int width, int height, int channels, uint8_t **bytes)
{
    size_t size = channels == 4 ? WebPEncodeLosslessRGBA(pixels, width, height, width * 4, bytes)
                                : WebPEncodeLosslessRGB(pixels, width, height, width * 3, bytes);
    CHECK(size > 0);
    return size;
}

/* Appends a RIFF chunk. The buffer must be large enough. */
static inline void foreign_chunk(uint8_t *to, size_t *used, const char *name, const void *data, size_t size)
{
    memcpy(to + *used, name, 4);
    for (int i = 0; i < 4; i++) to[*used + 4 + (size_t)i] = (uint8_t)(size >> 8 * i);
    if (size > 0) memcpy(to + *used + 8, data, size);
    *used += 8 + size;
    if (size % 2) to[(*used)++] = 0;
}

/* Begins an extended WebP at `to` and returns the bytes used; chunks and foreign_end_webp follow. features: the flags
 * of VP8X (2 animation, 8 EXIF, 0x10 alpha, 0x20 profile). */
static inline size_t foreign_extended_webp(uint8_t *to, int features, int width, int height)
{
    uint8_t header[10] = {(uint8_t)features};
    size_t used = 12;
    for (int i = 0; i < 3; i++) {
        header[4 + i] = (uint8_t)((width - 1) >> 8 * i);
        header[7 + i] = (uint8_t)((height - 1) >> 8 * i);
    }
    memcpy(to, "RIFF\0\0\0\0WEBP", 12);
    foreign_chunk(to, &used, "VP8X", header, sizeof header);
    return used;
}

static inline void foreign_end_webp(uint8_t *to, size_t used)
{
    for (int i = 0; i < 4; i++) to[4 + i] = (uint8_t)((used - 8) >> 8 * i);
}

typedef struct foreign_tiff_options {
    int width, height, channels, bits, compression, photometric, tile, planar, orientation, extra;
    bool big_endian;
    const void *profile;
} foreign_tiff_options;

static inline void foreign_tiff_page(TIFF *tiff, const foreign_tiff_options *o, const uint8_t *pixels)
{
    size_t stride = (size_t)o->width * (size_t)o->channels * (size_t)o->bits / 8;
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, o->width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, o->height);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, o->bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, o->channels);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, o->compression);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, o->photometric);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, o->planar ? o->planar : PLANARCONFIG_CONTIG);
    if (o->orientation) TIFFSetField(tiff, TIFFTAG_ORIENTATION, o->orientation);
    if (o->extra) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, (uint16_t[]){(uint16_t)o->extra});
    if (o->profile) TIFFSetField(tiff, TIFFTAG_ICCPROFILE, 4, o->profile);
    if (o->tile) {
        TIFFSetField(tiff, TIFFTAG_TILEWIDTH, o->tile);
        TIFFSetField(tiff, TIFFTAG_TILELENGTH, o->tile);
        size_t pixel = (size_t)o->channels * (size_t)o->bits / 8, row = (size_t)o->tile * pixel;
        uint8_t *tile = calloc((size_t)o->tile, row);
        for (int top = 0; top < o->height; top += o->tile)
            for (int left = 0; left < o->width; left += o->tile) {
                for (int y = 0; y < o->tile && top + y < o->height; y++) {
                    int columns = o->width - left < o->tile ? o->width - left : o->tile;
                    memcpy(tile + (size_t)y * row, pixels + (size_t)(top + y) * stride + (size_t)left * pixel,
                           (size_t)columns * pixel);
                }
                CHECK(TIFFWriteTile(tiff, tile, (uint32_t)left, (uint32_t)top, 0, 0) > 0);
            }
        free(tile);
        return;
    }
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 5);
    uint8_t *line = malloc(stride);
    for (int c = 0; c < (o->planar == PLANARCONFIG_SEPARATE ? o->channels : 1); c++)
        for (int y = 0; y < o->height; y++) {
            memcpy(line, pixels + (size_t)y * stride, stride);
            for (int x = 0; o->planar == PLANARCONFIG_SEPARATE && x < o->width; x++)
                line[x] = pixels[(size_t)y * stride + (size_t)(x * o->channels + c)];
            CHECK(TIFFWriteScanline(tiff, line, (uint32_t)y, (uint16_t)c) == 1);
        }
    free(line);
}

static inline void foreign_tiff(const char *path, const foreign_tiff_options *o, const void *pixels, int pages)
{
    TIFF *tiff = TIFFOpen(path, o->big_endian ? "wb" : "wl");
    CHECK(tiff != nullptr);
    for (int i = 0; i < pages; i++) {
        foreign_tiff_page(tiff, o, pixels);
        if (pages > 1) CHECK(TIFFWriteDirectory(tiff) == 1);
    }
    TIFFClose(tiff);
}

/* A GIF of 16 colors with frames on a canvas. The first frame is at (left, top). It may be interlaced, and color 3 may
 * be transparent. */
typedef struct foreign_gif_options {
    int width, height, left, top, canvas_width, canvas_height, frames;
    bool interlaced, transparent;
} foreign_gif_options;

static inline void foreign_gif(const char *path, const foreign_gif_options *o, const uint8_t *indexes,
                               const GifColorType *colors)
{
    static const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    int code;
    GifFileType *file = EGifOpenFileName(path, false, &code);
    CHECK(file != nullptr);
    EGifSetGifVersion(file, true);
    ColorMapObject *map = GifMakeMapObject(16, colors);
    CHECK_EQ(EGifPutScreenDesc(file, o->canvas_width, o->canvas_height, 4, 0, map), GIF_OK);
    for (int i = 0; i < o->frames; i++) {
        GifByteType control[4];
        (void)EGifGCBToExtension(&(GraphicsControlBlock){.TransparentColor = o->transparent ? 3 : NO_TRANSPARENT_COLOR},
                                 control);
        CHECK_EQ(EGifPutExtension(file, GRAPHICS_EXT_FUNC_CODE, 4, control), GIF_OK);
        CHECK_EQ(EGifPutImageDesc(file, o->left, o->top, o->width, o->height, o->interlaced, nullptr), GIF_OK);
        for (int pass = 0; pass < (o->interlaced ? 4 : 1); pass++)
            for (int y = o->interlaced ? starts[pass] : 0; y < o->height; y += o->interlaced ? steps[pass] : 1) {
                GifByteType line[256];
                memcpy(line, indexes + y * o->width, (size_t)o->width);
                CHECK_EQ(EGifPutLine(file, line, o->width), GIF_OK);
            }
    }
    GifFreeMapObject(map);
    CHECK_EQ(EGifCloseFile(file, &code), GIF_OK);
}

/* Writes a BMP: file header, a header of `header` bytes, the masks or palette, and the rows. Returns its size
 * in bytes. */
typedef struct foreign_bmp_options {
    int width, height, bits, compression, header, colors;
} foreign_bmp_options;

static inline void foreign_put(uint8_t *to, uint32_t value, int count)
{
    for (int i = 0; i < count; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static inline size_t foreign_bmp(uint8_t *to, const foreign_bmp_options *o, const void *table, size_t table_size,
                                 const void *rows, size_t rows_size)
{
    size_t begin = 14 + (size_t)o->header + table_size;
    memset(to, 0, begin);
    memcpy(to, "BM", 2);
    foreign_put(to + 2, (uint32_t)(begin + rows_size), 4);
    foreign_put(to + 10, (uint32_t)begin, 4);
    foreign_put(to + 14, (uint32_t)o->header, 4);
    if (o->header == 12) {
        foreign_put(to + 18, (uint32_t)o->width, 2);
        foreign_put(to + 20, (uint32_t)o->height, 2);
        foreign_put(to + 22, 1, 2);
        foreign_put(to + 24, (uint32_t)o->bits, 2);
    } else {
        foreign_put(to + 18, (uint32_t)o->width, 4);
        foreign_put(to + 22, (uint32_t)o->height, 4);
        foreign_put(to + 26, 1, 2);
        foreign_put(to + 28, (uint32_t)o->bits, 2);
        foreign_put(to + 30, (uint32_t)o->compression, 4);
        foreign_put(to + 46, (uint32_t)o->colors, 4);
    }
    if (table_size > 0) memcpy(to + 14 + o->header, table, table_size);
    memcpy(to + begin, rows, rows_size);
    return begin + rows_size;
}

#endif
