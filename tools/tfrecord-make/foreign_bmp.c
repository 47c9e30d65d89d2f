/* The BMP decoder: headers of 12 to 124 bytes, palettes of 1, 2, 4 and 8 bits, 16 and 32 bits with masks, 24 bits,
 * run lengths of 4 and 8 bits. Rows are stored from the bottom up unless the height is negative, and each is padded
 * to 4 bytes. The alpha channel of 32 bits is used only if a mask declares it and some alpha is not zero. */
#include "tfrecord-make/foreign.h"

#include <stdlib.h>
#include <string.h>

enum { BMP_RGB = 0, BMP_RLE8 = 1, BMP_RLE4 = 2, BMP_BITFIELDS = 3, BMP_ALPHABITFIELDS = 6 };
static constexpr size_t FILE_HEADER = 14;

typedef struct bmp {
    const uint8_t *bytes;
    size_t size_bytes;
    size_t pixels_at; /* offset of the first row */
    int32_t width, height;
    bool top_first;
    int bits;
    uint32_t compression;
    uint32_t masks[4]; /* red, green, blue, alpha; of 16 and 32 bits */
    uint8_t palette[256][3];
    uint32_t colors; /* of the palette */
} bmp;

static uint32_t little(const uint8_t *bytes, int count)
{
    uint32_t value = 0;
    for (int i = count; i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

static mr_status fail_cut(mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "the BMP image is truncated");
}

/* A valid mask is one contiguous run of ones. */
static bool is_mask(uint32_t mask)
{
    uint64_t low = mask & -mask;
    return mask == 0 || ((mask + low) & mask) == 0;
}

static mr_status read_masks(bmp *bmp, size_t header, mr_error *error)
{
    if (bmp->bits == 16)
        memcpy(bmp->masks, (uint32_t[]){0x7c00, 0x3e0, 0x1f, 0}, sizeof(bmp->masks));
    else
        memcpy(bmp->masks, (uint32_t[]){0xff0000, 0xff00, 0xff, 0}, sizeof(bmp->masks));
    if (bmp->compression == BMP_RGB) return MR_OK;
    /* The masks follow a header of 40 bytes, or are at the same offset of a longer header. */
    int count = header >= 56 || bmp->compression == BMP_ALPHABITFIELDS ? 4 : 3;
    if (bmp->size_bytes < FILE_HEADER + 40 + 4 * (size_t)count) return fail_cut(error);
    for (int i = 0; i < count; i++) {
        bmp->masks[i] = little(bmp->bytes + FILE_HEADER + 40 + 4 * i, 4);
        if (!is_mask(bmp->masks[i]) || (bmp->bits == 16 && bmp->masks[i] > 0xffff))
            return mr_fail(error, MR_DATA_LOSS, "the BMP image has invalid color masks");
    }
    return MR_OK;
}

static mr_status read_palette(bmp *bmp, size_t header, uint32_t colors, mr_error *error)
{
    size_t entry = header == 12 ? 3 : 4, at = FILE_HEADER + header;
    uint32_t most = UINT32_C(1) << bmp->bits;
    if (colors == 0 || colors > most) colors = most;
    /* A table that is shorter than declared ends where the pixels start. */
    size_t end = bmp->pixels_at < bmp->size_bytes ? bmp->pixels_at : bmp->size_bytes;
    size_t room = end > at ? (end - at) / entry : 0;
    bmp->colors = room < colors ? (uint32_t)room : colors;
    if (bmp->colors == 0) return mr_fail(error, MR_DATA_LOSS, "the BMP image has no color table");
    for (uint32_t i = 0; i < bmp->colors; i++)
        for (int c = 0; c < 3; c++) bmp->palette[i][c] = bmp->bytes[at + i * entry + 2 - (size_t)c];
    return MR_OK;
}

static bool is_kind(const bmp *bmp)
{
    switch (bmp->compression) {
    case BMP_RGB:
        return bmp->bits == 1 || bmp->bits == 2 || bmp->bits == 4 || bmp->bits == 8 || bmp->bits == 16 ||
               bmp->bits == 24 || bmp->bits == 32;
    case BMP_RLE8:
        return bmp->bits == 8;
    case BMP_RLE4:
        return bmp->bits == 4;
    case BMP_BITFIELDS:
    case BMP_ALPHABITFIELDS:
        return bmp->bits == 16 || bmp->bits == 32;
    default:
        return false;
    }
}

static mr_status read_headers(mr_string bytes, bmp *bmp, mr_error *error)
{
    *bmp = (struct bmp){.bytes = (const uint8_t *)bytes.data, .size_bytes = bytes.size_bytes};
    if (bytes.size_bytes < FILE_HEADER + 12) return fail_cut(error);
    const uint8_t *info = bmp->bytes + FILE_HEADER;
    size_t header = little(info, 4);
    uint32_t colors = 0;
    bmp->pixels_at = little(bmp->bytes + 10, 4);
    if (header == 12) {
        bmp->width = (int32_t)little(info + 4, 2);
        bmp->height = (int32_t)little(info + 6, 2);
        bmp->bits = (int)little(info + 10, 2);
    } else {
        if (header < 40 || header > 1024)
            return mr_fail(error, MR_DATA_LOSS, "the BMP image has an invalid header size of %zu bytes", header);
        if (bytes.size_bytes < FILE_HEADER + header) return fail_cut(error);
        bmp->width = (int32_t)little(info + 4, 4);
        bmp->height = (int32_t)little(info + 8, 4);
        bmp->bits = (int)little(info + 14, 2);
        bmp->compression = little(info + 16, 4);
        colors = little(info + 32, 4);
        bmp->top_first = bmp->height < 0;
        if (bmp->height == INT32_MIN) return mr_fail(error, MR_DATA_LOSS, "the BMP image has an invalid height");
        if (bmp->top_first) bmp->height = -bmp->height;
    }
    if (!is_kind(bmp))
        return mr_fail(error, MR_UNIMPLEMENTED, "unsupported kind of BMP image (%d bits, compression %u)", bmp->bits,
                       bmp->compression);
    if (bmp->bits == 16 || bmp->bits == 32) return read_masks(bmp, header, error);
    return bmp->bits <= 8 ? read_palette(bmp, header, colors, error) : MR_OK;
}

static uint8_t *row_of(const bmp *bmp, mr_tensor *pixels, int32_t line)
{
    int64_t y = bmp->top_first ? line : bmp->height - 1 - line;
    return (uint8_t *)pixels->data + y * bmp->width * pixels->shape.dims[2];
}

/* ---- Uncompressed rows ---- */

/* Extracts a color of a masked pixel as 8 bits. */
static uint8_t masked(uint32_t value, uint32_t mask)
{
    if (mask == 0) return 0;
    uint32_t most = mask >> __builtin_ctz(mask), part = (value & mask) >> __builtin_ctz(mask);
    return (uint8_t)(((uint64_t)part * 255 + most / 2) / most);
}

static mr_status read_line(const bmp *bmp, const uint8_t *from, uint8_t *to, int64_t channels, mr_error *error)
{
    for (int32_t x = 0; x < bmp->width; x++, to += channels) {
        if (bmp->bits == 24) {
            to[0] = from[3 * x + 2], to[1] = from[3 * x + 1], to[2] = from[3 * x];
        } else if (bmp->bits > 8) {
            int size = bmp->bits / 8;
            uint32_t value = little(from + (size_t)x * (size_t)size, size);
            for (int64_t c = 0; c < channels; c++) to[c] = masked(value, bmp->masks[c]);
        } else {
            int per_byte = 8 / bmp->bits, shift = bmp->bits * (per_byte - 1 - x % per_byte);
            uint32_t index = from[x / per_byte] >> shift & ((UINT32_C(1) << bmp->bits) - 1);
            if (index >= bmp->colors)
                return mr_fail(error, MR_DATA_LOSS, "the BMP image has a pixel with color %u, but only %u colors",
                               index, bmp->colors);
            memcpy(to, bmp->palette[index], 3);
        }
    }
    return MR_OK;
}

static mr_status read_lines(const bmp *bmp, mr_tensor *pixels, mr_error *error)
{
    size_t stride = ((size_t)bmp->width * (size_t)bmp->bits + 31) / 32 * 4;
    if (bmp->pixels_at > bmp->size_bytes || (bmp->size_bytes - bmp->pixels_at) / stride < (size_t)bmp->height) {
        /* The padding of the last row is not needed. */
        size_t need = stride * (size_t)(bmp->height - 1) + ((size_t)bmp->width * (size_t)bmp->bits + 7) / 8;
        if (bmp->pixels_at > bmp->size_bytes || bmp->size_bytes - bmp->pixels_at < need) return fail_cut(error);
    }
    for (int32_t line = 0; line < bmp->height; line++)
        MR_TRY(read_line(bmp, bmp->bytes + bmp->pixels_at + stride * (size_t)line, row_of(bmp, pixels, line),
                         pixels->shape.dims[2], error));
    return MR_OK;
}

/* ---- Run lengths ---- */

typedef struct runs {
    const bmp *bmp;
    mr_tensor *pixels;
    size_t at;
    int32_t x, line;
} runs;

static mr_status put_color(runs *runs, uint32_t index, mr_error *error)
{
    const bmp *bmp = runs->bmp;
    if (index >= bmp->colors || runs->x >= bmp->width || runs->line >= bmp->height)
        return mr_fail(error, MR_DATA_LOSS, "the BMP image has damaged run lengths");
    memcpy(row_of(bmp, runs->pixels, runs->line) + (int64_t)runs->x++ * 3, bmp->palette[index], 3);
    return MR_OK;
}

/* Stores count literal pixels, which are padded to two bytes. */
static mr_status put_literal(runs *runs, uint32_t count, mr_error *error)
{
    const bmp *bmp = runs->bmp;
    size_t size = bmp->bits == 8 ? count : (count + 1) / 2;
    if (bmp->size_bytes - runs->at < size) return fail_cut(error);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t byte = bmp->bytes[runs->at + (bmp->bits == 8 ? i : i / 2)];
        MR_TRY(put_color(runs, bmp->bits == 8 ? byte : i % 2 ? byte & 15 : byte >> 4, error));
    }
    runs->at += size + size % 2;
    if (runs->at > bmp->size_bytes) runs->at = bmp->size_bytes;
    return MR_OK;
}

static mr_status read_runs(const bmp *bmp, mr_tensor *pixels, mr_error *error)
{
    runs runs = {.bmp = bmp, .pixels = pixels, .at = bmp->pixels_at};
    /* Pixels that no run covers have the first color. */
    for (int64_t i = 0; i < (int64_t)bmp->width * bmp->height; i++)
        memcpy((uint8_t *)pixels->data + 3 * i, bmp->palette[0], 3);
    if (runs.at > bmp->size_bytes) return fail_cut(error);
    for (;;) {
        if (bmp->size_bytes - runs.at < 2) return fail_cut(error);
        uint32_t count = bmp->bytes[runs.at], value = bmp->bytes[runs.at + 1];
        runs.at += 2;
        if (count > 0) {
            for (uint32_t i = 0; i < count; i++)
                MR_TRY(put_color(&runs, bmp->bits == 8 ? value : i % 2 ? value & 15 : value >> 4, error));
        } else if (value == 0) {
            runs.x = 0;
            if (++runs.line > bmp->height) return mr_fail(error, MR_DATA_LOSS, "the BMP image has too many rows");
        } else if (value == 1) {
            return MR_OK;
        } else if (value == 2) {
            if (bmp->size_bytes - runs.at < 2) return fail_cut(error);
            runs.x += bmp->bytes[runs.at];
            runs.line += bmp->bytes[runs.at + 1];
            runs.at += 2;
            if (runs.x > bmp->width || runs.line > bmp->height)
                return mr_fail(error, MR_DATA_LOSS, "the BMP image has damaged run lengths");
        } else {
            MR_TRY(put_literal(&runs, value, error));
        }
    }
}

/* Some programs declare an alpha mask but write only zeros. Such an image becomes opaque. */
static void show_if_hidden(mr_tensor *pixels)
{
    uint8_t *bytes = pixels->data;
    int64_t count = mr_tensor_count(pixels);
    if (pixels->shape.dims[2] != 4) return;
    for (int64_t i = 3; i < count; i += 4)
        if (bytes[i] != 0) return;
    for (int64_t i = 3; i < count; i += 4) bytes[i] = 255;
}

mr_status foreign_decode_bmp(mr_string bytes, mr_image_info *info, mr_tensor *pixels, mr_error *error)
{
    bmp bmp;
    MR_TRY(read_headers(bytes, &bmp, error));
    if (bmp.width != info->width || bmp.height != info->height)
        return mr_fail(error, MR_DATA_LOSS, "the BMP image has a damaged header");
    bool has_runs = bmp.compression == BMP_RLE8 || bmp.compression == BMP_RLE4;
    /* Missing rows are detected before anything is allocated. Run lengths may be shorter than the image. */
    if (!has_runs && (size_t)bmp.width * (size_t)bmp.height / 8 * (size_t)bmp.bits > bytes.size_bytes)
        return fail_cut(error);
    MR_TRY(foreign_pixels(info, bmp.bits > 8 && bmp.masks[3] ? 4 : 3, pixels, error));
    MR_TRY(has_runs ? read_runs(&bmp, pixels, error) : read_lines(&bmp, pixels, error));
    show_if_hidden(pixels);
    return MR_OK;
}
