/* The TIFF decoder, by libtiff: gray and RGB of 8 and 16 bits as stored, everything else (palettes, CMYK, YCbCr,
 * CCITT, planes) as 8 bits by libtiff's own conversion. Only common compressions are enabled: libtiff's code for the
 * others is old and seldom tested. */
#include "tfrecord-make/foreign.h"

#include <tiffio.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A file in memory ---- */

/* Limit of libtiff's allocations in addition to the pixels: directories, strips and decompressor state. */
static constexpr tmsize_t ALLOCATION_MAX = (tmsize_t)1 << 30;

typedef struct source {
    const char *bytes;
    size_t size_bytes, at;
    char reason[160]; /* the first message from libtiff */
} source;

static tmsize_t read_bytes(thandle_t handle, void *to, tmsize_t count)
{
    source *source = handle;
    size_t left = source->at < source->size_bytes ? source->size_bytes - source->at : 0;
    size_t size = count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
    memcpy(to, source->bytes + source->at, size);
    source->at += size;
    return (tmsize_t)size;
}

static tmsize_t write_bytes(thandle_t handle, void *from, tmsize_t count)
{
    return 0;
}

static toff_t seek_to(thandle_t handle, toff_t offset, int whence)
{
    source *source = handle;
    source->at = (size_t)(whence == SEEK_CUR   ? source->at + offset
                          : whence == SEEK_END ? source->size_bytes + offset
                                               : offset);
    return source->at;
}

static int close_file(thandle_t handle)
{
    return 0;
}

static toff_t size_of(thandle_t handle)
{
    const source *source = handle;
    return source->size_bytes;
}

static int take_error(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    source *source = user;
    if (!source->reason[0]) (void)vsnprintf(source->reason, sizeof(source->reason), format, args);
    return 1;
}

static int ignore_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    return 1;
}

static TIFF *open_tiff(source *source)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return nullptr;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, ALLOCATION_MAX);
    TIFFOpenOptionsSetErrorHandlerExtR(options, take_error, source);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_warning, nullptr);
    TIFF *tiff = TIFFClientOpenExt("image", "rm", source, read_bytes, write_bytes, seek_to, close_file, size_of,
                                   nullptr, nullptr, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

/* ---- Pixels ---- */

/* How the samples of a pixel are stored. */
typedef struct layout {
    uint32_t width, height;
    uint16_t bits, samples, photometric, planar, format, compression;
    bool has_alpha, is_premultiplied;
} layout;

static mr_status read_layout(TIFF *tiff, layout *layout, mr_error *error)
{
    uint16_t count = 0, *kinds = nullptr;
    *layout = (struct layout){.photometric = UINT16_MAX};
    (void)TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &layout->width);
    (void)TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &layout->height);
    (void)TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &layout->bits);
    (void)TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &layout->samples);
    (void)TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &layout->photometric);
    (void)TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &layout->planar);
    (void)TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &layout->format);
    (void)TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &layout->compression);
    if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) && count > 0) {
        layout->has_alpha = kinds[0] == EXTRASAMPLE_ASSOCALPHA || kinds[0] == EXTRASAMPLE_UNASSALPHA;
        layout->is_premultiplied = kinds[0] == EXTRASAMPLE_ASSOCALPHA;
    }
    static const uint16_t known[] = {COMPRESSION_NONE,          COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3,
                                     COMPRESSION_CCITTFAX4,     COMPRESSION_LZW,      COMPRESSION_JPEG,
                                     COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_DEFLATE,
                                     COMPRESSION_LZMA,          COMPRESSION_ZSTD,     COMPRESSION_WEBP};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i] == layout->compression) return MR_OK;
    return mr_fail(error, MR_UNIMPLEMENTED, "unsupported compression of the TIFF image (%d)", layout->compression);
}

/* Whether PNG can store the samples unchanged. */
static bool is_direct(const layout *layout)
{
    int colors = layout->photometric == PHOTOMETRIC_RGB ? 3 : layout->photometric == PHOTOMETRIC_MINISBLACK ? 1 : 0;
    return colors > 0 && (layout->samples == colors || layout->samples == colors + 1) &&
           (layout->bits == 8 || layout->bits == 16) && layout->planar == PLANARCONFIG_CONTIG &&
           layout->format == SAMPLEFORMAT_UINT && (layout->compression != COMPRESSION_JPEG || colors == 1);
}

/* Copies pixels without the samples after the channels, whose meaning is unknown. */
static void copy_pixels(const layout *layout, const uint8_t *from, uint8_t *to, size_t count, size_t channels)
{
    size_t sample = layout->bits / 8u, stride = layout->samples * sample, kept = channels * sample;
    if (stride == kept) {
        memcpy(to, from, count * kept);
        return;
    }
    for (size_t i = 0; i < count; i++) memcpy(to + i * kept, from + i * stride, kept);
}

static bool read_scanlines(TIFF *tiff, const layout *layout, uint8_t *line, mr_tensor *pixels)
{
    size_t channels = (size_t)pixels->shape.dims[2], stride = layout->width * channels * (layout->bits / 8u);
    for (uint32_t y = 0; y < layout->height; y++) {
        if (TIFFReadScanline(tiff, line, y, 0) != 1) return false;
        copy_pixels(layout, line, (uint8_t *)pixels->data + y * stride, layout->width, channels);
    }
    return true;
}

static bool read_tiles(TIFF *tiff, const layout *layout, uint8_t *tile, mr_tensor *pixels)
{
    uint32_t width = 0, height = 0;
    size_t channels = (size_t)pixels->shape.dims[2], sample = layout->bits / 8u;
    (void)TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
    (void)TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
    for (uint32_t top = 0; top < layout->height; top += height)
        for (uint32_t left = 0; left < layout->width; left += width) {
            uint32_t rows = layout->height - top < height ? layout->height - top : height;
            uint32_t columns = layout->width - left < width ? layout->width - left : width;
            if (TIFFReadTile(tiff, tile, left, top, 0, 0) < 0) return false;
            for (uint32_t y = 0; y < rows; y++)
                copy_pixels(layout, tile + (size_t)y * width * layout->samples * sample,
                            (uint8_t *)pixels->data + ((size_t)(top + y) * layout->width + left) * channels * sample,
                            columns, channels);
        }
    return true;
}

/* Whether libtiff's buffer size matches the samples: rows of tiles times width, or one row. */
static bool is_buffer_right(TIFF *tiff, const layout *layout, uint64_t *size)
{
    uint64_t pixel = (uint64_t)layout->samples * (layout->bits / 8u);
    uint32_t width = layout->width, height = 1;
    if (TIFFIsTiled(tiff) &&
        (!TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width) || !TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height) ||
         width == 0 || height == 0 || width > FOREIGN_PIXELS_MAX / height))
        return false;
    *size = TIFFIsTiled(tiff) ? TIFFTileSize64(tiff) : TIFFScanlineSize64(tiff);
    return *size == pixel * width * height;
}

static mr_status read_direct(TIFF *tiff, const layout *layout, source *source, mr_image_info *info, mr_tensor *pixels,
                             mr_error *error)
{
    uint64_t size;
    if (!is_buffer_right(tiff, layout, &size))
        return mr_fail(error, MR_DATA_LOSS, "the TIFF image has a damaged header");
    int colors = layout->photometric == PHOTOMETRIC_RGB ? 3 : 1;
    info->bits = layout->bits;
    MR_TRY(foreign_pixels(info, colors + layout->has_alpha, pixels, error));
    uint8_t *buffer = calloc(1, size);
    if (!buffer) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory (%llu bytes)", (unsigned long long)size);
    bool good =
        TIFFIsTiled(tiff) ? read_tiles(tiff, layout, buffer, pixels) : read_scanlines(tiff, layout, buffer, pixels);
    free(buffer);
    if (good) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "the TIFF image is damaged: %s", source->reason);
}

/* Reads the pixels with libtiff's conversion to RGBA; gray stays gray. */
static mr_status read_converted(TIFF *tiff, const layout *layout, source *source, const mr_image_info *info,
                                mr_tensor *pixels, mr_error *error)
{
    char reason[1024] = "";
    if (!TIFFRGBAImageOK(tiff, reason))
        return mr_fail(error, MR_UNIMPLEMENTED, "unsupported kind of TIFF image: %s", reason);
    uint32_t *raster = malloc((size_t)layout->width * layout->height * sizeof(uint32_t));
    if (!raster)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory (%u x %u pixels)", layout->width, layout->height);
    bool is_gray = layout->photometric == PHOTOMETRIC_MINISBLACK || layout->photometric == PHOTOMETRIC_MINISWHITE;
    int32_t channels = (is_gray ? 1 : 3) + layout->has_alpha;
    mr_status status = MR_OK;
    if (!TIFFReadRGBAImageOriented(tiff, layout->width, layout->height, raster, ORIENTATION_TOPLEFT, 1))
        status = mr_fail(error, MR_DATA_LOSS, "the TIFF image is damaged: %s", source->reason);
    if (status == MR_OK) status = foreign_pixels(info, channels, pixels, error);
    uint8_t *to = status == MR_OK ? pixels->data : nullptr;
    for (size_t i = 0; status == MR_OK && i < (size_t)layout->width * layout->height; i++) {
        uint32_t pixel = raster[i];
        *to++ = (uint8_t)TIFFGetR(pixel);
        if (!is_gray) *to++ = (uint8_t)TIFFGetG(pixel);
        if (!is_gray) *to++ = (uint8_t)TIFFGetB(pixel);
        if (layout->has_alpha) *to++ = (uint8_t)TIFFGetA(pixel);
    }
    free(raster);
    return status;
}

/* Converts premultiplied colors to unassociated alpha. */
static void divide_by_alpha(mr_tensor *pixels)
{
    int64_t channels = pixels->shape.dims[2], count = mr_tensor_count(pixels);
    bool narrow = pixels->dtype == MR_UINT8;
    uint8_t *bytes = pixels->data;
    uint16_t *words = pixels->data;
    uint32_t most = narrow ? 255 : 65535;
    for (int64_t i = 0; i < count; i += channels) {
        uint32_t alpha = narrow ? bytes[i + channels - 1] : words[i + channels - 1];
        for (int64_t c = i; alpha > 0 && c < i + channels - 1; c++) {
            uint64_t value = ((uint64_t)(narrow ? bytes[c] : words[c]) * most + alpha / 2) / alpha;
            if (value > most) value = most;
            if (narrow)
                bytes[c] = (uint8_t)value;
            else
                words[c] = (uint16_t)value;
        }
    }
}

static mr_status read_image(TIFF *tiff, source *source, mr_image_info *info, mr_tensor *pixels, mr_error *error)
{
    layout layout;
    uint32_t size;
    void *profile;
    MR_TRY(read_layout(tiff, &layout, error));
    if (layout.width != (uint32_t)info->width || layout.height != (uint32_t)info->height)
        return mr_fail(error, MR_DATA_LOSS, "the TIFF image has a damaged header");
    info->has_icc_profile = TIFFGetField(tiff, TIFFTAG_ICCPROFILE, &size, &profile) == 1;
    info->color = layout.photometric == PHOTOMETRIC_SEPARATED ? MR_COLOR_CMYK : MR_COLOR_RGB;
    info->is_animated = false;
    /* The stored orientation is kept: the caller rotates the image if necessary. */
    (void)TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    bool direct = is_direct(&layout);
    MR_TRY(direct ? read_direct(tiff, &layout, source, info, pixels, error)
                  : read_converted(tiff, &layout, source, info, pixels, error));
    if (layout.has_alpha && (layout.is_premultiplied || !direct)) divide_by_alpha(pixels);
    info->is_animated = !TIFFLastDirectory(tiff);
    return MR_OK;
}

mr_status foreign_decode_tiff(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error)
{
    source source = {.bytes = bytes.data, .size_bytes = bytes.size_bytes};
    TIFF *tiff = open_tiff(&source);
    if (!tiff) return mr_fail(error, MR_DATA_LOSS, "the TIFF image is damaged: %s", source.reason);
    mr_status status = read_image(tiff, &source, info, pixels, error);
    TIFFClose(tiff);
    return status;
}
