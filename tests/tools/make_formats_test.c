/* WebP, GIF, BMP and TIFF through tfrecord-make: pixels, report and errors. */
#include "tests/records/record_data.h"
#include "tests/tools/foreign_images.h"
#include "tests/tools/program.h"

#include <millrace/example.h>
#include <millrace/image.h>

#include <sys/stat.h>

static void begin(void)
{
    mkdir(test_path("photos"), 0777);
    mkdir(test_path("photos/a"), 0777);
}

static const char *image_path(const char *name)
{
    return test_path("photos/a/%s", name);
}

/* Converts the images in photos to one record file. */
static const program_result *convert(const char *options)
{
    const program_result *result = program_run(
        "cd %s; rm -rf out; tfrecord-make --out out --name x --split all=1 %s photos", test_directory(), options);
    return result;
}

/* The record of an image; the caller frees it. */
static mr_string load_record(const char *name)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record, filename;
    char wanted[256];
    snprintf(wanted, sizeof wanted, "a/%s", name);
    CHECK_OK(mr_record_reader_open(test_path("out/x-all-00000-of-00001.tfrecord"), nullptr, &reader, &error));
    for (;;) {
        CHECK_OK(mr_record_reader_next(reader, &record, &error));
        CHECK_OK(mr_example_get_bytes(record, "image/filename", &filename, &error));
        if (filename.size_bytes == strlen(wanted) && memcmp(filename.data, wanted, strlen(wanted)) == 0) break;
    }
    char *copy = malloc(record.size_bytes);
    memcpy(copy, record.data, record.size_bytes);
    mr_record_reader_close(reader);
    return (mr_string){copy, record.size_bytes};
}

/* Checks that the image in a record has these pixels, within `tolerance`. */
static void check_pixels(const char *name, const void *pixels, int width, int height, int channels, int bits,
                         int tolerance)
{
    mr_error error = {0};
    mr_tensor decoded = {0};
    mr_string record = load_record(name), encoded;
    CHECK_OK(mr_example_get_bytes(record, "image/encoded", &encoded, &error));
    mr_image_decode_options options = {.size = sizeof options, .dtype = bits == 16 ? MR_UINT16 : MR_UINT8};
    CHECK_OK(mr_image_decode(encoded.data, encoded.size_bytes, &options, &decoded, &error));
    CHECK_EQ(decoded.shape.dims[0], height);
    CHECK_EQ(decoded.shape.dims[1], width);
    if (decoded.shape.dims[2] != channels)
        test_fail(__FILE__, __LINE__, "%s has %d channels, not %d", name, (int)decoded.shape.dims[2], channels);
    for (int i = 0; i < width * height * channels; i++) {
        int a = bits == 16 ? ((const uint16_t *)decoded.data)[i] : mr_tensor_uint8s(&decoded)[i];
        int b = bits == 16 ? ((const uint16_t *)pixels)[i] : ((const uint8_t *)pixels)[i];
        if (abs(a - b) > tolerance) test_fail(__FILE__, __LINE__, "%s: value %d is %d, not %d", name, i, a, b);
    }
    mr_tensor_deinit(&decoded);
    free((char *)record.data);
}

TEST(make_converts_webp)
{
    static uint8_t pixels[37 * 23 * 4], file[1 << 14], expected[50 * 40 * 4];
    uint8_t *bytes;
    begin();
    foreign_fill(pixels, 37, 23, 3, 8);
    size_t size = foreign_webp(pixels, 37, 23, 3, &bytes);
    file_save(image_path("plain.webp"), bytes, size);
    file_save(image_path("named.jpg"), bytes, size);
    /* Extended WebP with a profile and EXIF, with and without the prefix that EXIF has in JPEG. */
    static const uint8_t exif[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    for (int i = 0; i < 2; i++) {
        size_t used = foreign_extended_webp(file, 8 | 0x20, 37, 23);
        foreign_chunk(file, &used, "ICCP", "icc", 3);
        memcpy(file + used, bytes + 12, size - 12);
        used += size - 12;
        foreign_chunk(file, &used, "EXIF", exif + 6 * i, sizeof exif - 1 - 6 * (size_t)i);
        foreign_end_webp(file, used);
        file_save(image_path(i ? "bare.webp" : "turn.webp"), file, used);
    }
    /* Lossy WebP, compared with a tolerance. */
    static uint8_t smooth[64 * 48 * 3];
    for (int i = 0; i < 64 * 48; i++) memset(smooth + 3 * i, 40 + i / 64 * 3, 3);
    uint8_t *lossy;
    size_t lossy_size = WebPEncodeRGB(smooth, 64, 48, 64 * 3, 95, &lossy);
    file_save(image_path("lossy.webp"), lossy, lossy_size);
    const program_result *result = convert("--encode png");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "5 images were re-encoded");
    CHECK_CONTAINS(result->output, "1 image has another format than its name indicates");
    CHECK_CONTAINS(result->output, "2 images have an EXIF orientation");
    CHECK_CONTAINS(result->output, "2 images lost their color profile");
    check_pixels("plain.webp", pixels, 37, 23, 3, 8, 0);
    check_pixels("named.jpg", pixels, 37, 23, 3, 8, 0);
    check_pixels("turn.webp", pixels, 37, 23, 3, 8, 0);
    check_pixels("lossy.webp", smooth, 64, 48, 3, 8, 6);
    mr_error error = {0};
    mr_image_info info;
    mr_string record = load_record("turn.webp"), encoded;
    CHECK_OK(mr_example_get_bytes(record, "image/encoded", &encoded, &error));
    CHECK_OK(mr_image_probe(encoded.data, encoded.size_bytes, &info, &error));
    CHECK_EQ(info.orientation, 6); /* kept, as for PNG and JPEG */
    free((char *)record.data);
    CHECK_EQ(convert("--encode png --upright")->exit_code, 0);
    for (int y = 0; y < 37; y++)
        for (int x = 0; x < 23; x++) memcpy(expected + (y * 23 + x) * 3, pixels + ((22 - x) * 37 + y) * 3, 3);
    check_pixels("turn.webp", expected, 23, 37, 3, 8, 0);
    check_pixels("bare.webp", expected, 23, 37, 3, 8, 0);
    WebPFree(lossy);
    WebPFree(bytes);
}

TEST(make_converts_transparent_and_animated_webp)
{
    static uint8_t pixels[37 * 23 * 4], file[1 << 14], canvas[50 * 40 * 4];
    uint8_t *bytes, frame[1 << 14] = {0};
    begin();
    foreign_fill(pixels, 37, 23, 4, 8);
    for (int i = 0; i < 37 * 23; i++)
        if (pixels[4 * i + 3] == 0) pixels[4 * i + 3] = 9; /* colors of transparent pixels are not kept */
    size_t size = foreign_webp(pixels, 37, 23, 4, &bytes);
    file_save(image_path("clear.webp"), bytes, size);
    /* A frame at (6, 4) of a canvas, and a second frame, which is ignored. */
    size_t used = foreign_extended_webp(file, 2 | 0x10, 50, 40);
    foreign_chunk(file, &used, "ANIM", "\0\0\0\0\0\0", 6);
    for (int i = 0; i < 2; i++) {
        memset(frame, 0, 16);
        frame[0] = i ? 0 : 3, frame[3] = i ? 0 : 2, frame[6] = 36, frame[9] = 22;
        memcpy(frame + 16, bytes + 12, size - 12);
        foreign_chunk(file, &used, "ANMF", frame, 16 + size - 12);
    }
    foreign_end_webp(file, used);
    file_save(image_path("moves.webp"), file, used);
    const program_result *result = convert("--encode jpeg");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "2 images are transparent and were kept as PNG");
    CHECK_CONTAINS(result->output, "1 animated image was reduced to its first frame (a/moves.webp)");
    check_pixels("clear.webp", pixels, 37, 23, 4, 8, 0);
    for (int y = 0; y < 23; y++) memcpy(canvas + ((y + 4) * 50 + 6) * 4, pixels + y * 37 * 4, 37 * 4);
    check_pixels("moves.webp", canvas, 50, 40, 4, 8, 0);
    WebPFree(bytes);
}

TEST(make_converts_gif)
{
    static uint8_t indexes[31 * 19], pixels[31 * 19 * 3], canvas[40 * 30 * 4], clear[31 * 19 * 4];
    GifColorType colors[16];
    begin();
    for (int i = 0; i < 16; i++)
        colors[i] = (GifColorType){(uint8_t)(i * 16), (uint8_t)(255 - i * 9), (uint8_t)(i * 5)};
    for (int i = 0; i < 31 * 19; i++) {
        const GifColorType *color = &colors[indexes[i] = (uint8_t)(i * 7 % 31 % 16)];
        memcpy(pixels + 3 * i, (uint8_t[]){color->Red, color->Green, color->Blue}, 3);
        if (indexes[i] != 3) memcpy(clear + 4 * i, (uint8_t[]){color->Red, color->Green, color->Blue, 255}, 4);
        int at = ((i / 31 + 6) * 40 + i % 31 + 5) * 4;
        memcpy(canvas + at, (uint8_t[]){color->Red, color->Green, color->Blue, 255}, 4);
    }
    foreign_gif_options o = {31, 19, 0, 0, 31, 19, 1, false, false};
    foreign_gif(image_path("plain.gif"), &o, indexes, colors);
    o.interlaced = true;
    foreign_gif(image_path("woven.gif"), &o, indexes, colors);
    o.transparent = true;
    foreign_gif(image_path("clear.gif"), &o, indexes, colors);
    o = (foreign_gif_options){31, 19, 5, 6, 40, 30, 3, false, false};
    foreign_gif(image_path("moves.gif"), &o, indexes, colors);
    const program_result *result = convert("--encode png");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "1 animated image was reduced to its first frame (a/moves.gif)");
    check_pixels("plain.gif", pixels, 31, 19, 3, 8, 0);
    check_pixels("woven.gif", pixels, 31, 19, 3, 8, 0);
    check_pixels("clear.gif", clear, 31, 19, 4, 8, 0);
    check_pixels("moves.gif", canvas, 40, 30, 4, 8, 0);
}

TEST(make_converts_bmp)
{
    static uint8_t file[1 << 14], rows[1 << 13], pixels[13 * 7 * 3], alpha[13 * 7 * 4], palette[256 * 4];
    begin();
    foreign_fill(pixels, 13, 7, 3, 8);
    /* 24 bits, bottom row first, rows of 39 bytes padded to 40; then the same with the top row first and with the
     * oldest header. */
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 13; x++)
            for (int c = 0; c < 3; c++) rows[y * 40 + x * 3 + c] = pixels[((6 - y) * 13 + x) * 3 + 2 - c];
    foreign_bmp_options o = {13, 7, 24, 0, 40, 0};
    file_save(image_path("plain.bmp"), file, foreign_bmp(file, &o, nullptr, 0, rows, 280));
    file_save(image_path("last-padding.bmp"), file, foreign_bmp(file, &o, nullptr, 0, rows, 279));
    o.header = 12;
    file_save(image_path("old.bmp"), file, foreign_bmp(file, &o, nullptr, 0, rows, 280));
    o = (foreign_bmp_options){13, 7, 24, 0, 124, 0};
    file_save(image_path("long.bmp"), file, foreign_bmp(file, &o, nullptr, 0, rows, 280));
    static uint8_t upper[280];
    for (int y = 0; y < 7; y++) memcpy(upper + y * 40, rows + (6 - y) * 40, 40);
    o = (foreign_bmp_options){13, -7, 24, 0, 40, 0};
    file_save(image_path("down.bmp"), file, foreign_bmp(file, &o, nullptr, 0, upper, 280));
    /* 32 bits with alpha and masks in an unusual order. */
    foreign_fill(alpha, 13, 7, 4, 8);
    for (int i = 0; i < 13 * 7; i++)
        memcpy(rows + 4 * i, (uint8_t[]){alpha[4 * i + 3], alpha[4 * i], alpha[4 * i + 1], alpha[4 * i + 2]}, 4);
    static uint8_t masks[68] = {0, 255, 0, 0, 0, 0, 255, 0, 0, 0, 0, 255, 255, 0, 0, 0};
    o = (foreign_bmp_options){13, -7, 32, 3, 56, 0};
    size_t size = foreign_bmp(file, &o, nullptr, 0, rows, 13 * 7 * 4);
    memcpy(file + 54, masks, 16);
    file_save(image_path("masks.bmp"), file, size);
    /* 16 bits, 5 for each color. */
    static uint8_t five[13 * 7 * 3];
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 13; x++) {
            int i = y * 13 + x, value = i * 331 & 0x7fff;
            foreign_put(rows + y * 28 + x * 2, (uint32_t)value, 2);
            for (int c = 0; c < 3; c++) five[3 * i + c] = (uint8_t)(((value >> (10 - 5 * c) & 31) * 255 + 15) / 31);
        }
    o = (foreign_bmp_options){13, -7, 16, 0, 40, 0};
    file_save(image_path("five.bmp"), file, foreign_bmp(file, &o, nullptr, 0, rows, 28 * 7));
    /* Palettes of 1, 2, 4 and 8 bits: the color of a pixel is its index. */
    for (int i = 0; i < 256; i++)
        palette[4 * i] = (uint8_t)i, palette[4 * i + 1] = 7, palette[4 * i + 2] = (uint8_t)(255 - i);
    for (int bits = 1; bits <= 8; bits *= 2) {
        memset(rows, 0, sizeof rows);
        for (int i = 0; i < 13 * 7; i++)
            rows[i / 13 * 16 + i % 13 * bits / 8] |=
                (uint8_t)((i * 5 & ((1 << bits) - 1)) << (8 - bits - i % 13 * bits % 8));
        static uint8_t packed[112];
        int stride = (13 * bits + 31) / 32 * 4;
        for (int y = 0; y < 7; y++) memcpy(packed + y * stride, rows + y * 16, (size_t)stride);
        o = (foreign_bmp_options){13, -7, bits, 0, 40, 0};
        char name[16];
        snprintf(name, sizeof name, "p%d.bmp", bits);
        size = foreign_bmp(file, &o, palette, (size_t)4 << bits, packed, (size_t)(stride * 7));
        file_save(image_path(name), file, size);
    }
    CHECK_EQ(convert("--encode png")->exit_code, 0);
    check_pixels("plain.bmp", pixels, 13, 7, 3, 8, 0);
    check_pixels("last-padding.bmp", pixels, 13, 7, 3, 8, 0);
    check_pixels("old.bmp", pixels, 13, 7, 3, 8, 0);
    check_pixels("long.bmp", pixels, 13, 7, 3, 8, 0);
    check_pixels("down.bmp", pixels, 13, 7, 3, 8, 0);
    check_pixels("masks.bmp", alpha, 13, 7, 4, 8, 0);
    check_pixels("five.bmp", five, 13, 7, 3, 8, 0);
    for (int bits = 1; bits <= 8; bits *= 2) {
        static uint8_t expected[13 * 7 * 3];
        char name[16];
        snprintf(name, sizeof name, "p%d.bmp", bits);
        for (int i = 0; i < 13 * 7; i++) {
            int index = i * 5 & ((1 << bits) - 1);
            memcpy(expected + 3 * i, (uint8_t[]){(uint8_t)(255 - index), 7, (uint8_t)index}, 3);
        }
        check_pixels(name, expected, 13, 7, 3, 8, 0);
    }
}

TEST(make_converts_bmp_with_run_lengths)
{
    static uint8_t file[1 << 12], palette[16 * 4], expected[6 * 3 * 3];
    /* Bottom row: 4 of color 1, then the literals 2 3 (padded). Middle row: skip 2, then 4 of color 5. Top
     * row: empty. */
    static const uint8_t eight[] = {4, 1, 0, 3, 2, 3, 0, 0, 0, 0, 0, 2, 2, 0, 4, 5, 0, 0, 0, 1};
    static const uint8_t four[] = {4, 0x11, 0, 3, 0x23, 0x00, 0, 0, 0, 2, 2, 0, 4, 0x55, 0, 1};
    uint8_t eight_literal[] = {4, 1, 1, 2, 1, 3, 0, 0, 0, 2, 2, 0, 4, 5, 0, 1};
    begin();
    for (int i = 0; i < 16; i++) palette[4 * i] = palette[4 * i + 1] = palette[4 * i + 2] = (uint8_t)(i * 17);
    (void)eight;
    foreign_bmp_options o = {6, 3, 8, 1, 40, 16};
    file_save(image_path("eight.bmp"), file, foreign_bmp(file, &o, palette, 64, eight_literal, sizeof eight_literal));
    o.bits = 4, o.compression = 2;
    o.width = 7;
    file_save(image_path("four.bmp"), file, foreign_bmp(file, &o, palette, 64, four, sizeof four));
    CHECK_EQ(convert("--encode png")->exit_code, 0);
    static const uint8_t indexes[] = {0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 1, 1, 1, 1, 2, 3};
    for (int i = 0; i < 18; i++) memset(expected + 3 * i, indexes[i] * 17, 3);
    check_pixels("eight.bmp", expected, 6, 3, 3, 8, 0);
    static const uint8_t wide[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 0, 1, 1, 1, 1, 2, 3, 0};
    static uint8_t more[7 * 3 * 3];
    for (int i = 0; i < 21; i++) memset(more + 3 * i, wide[i] * 17, 3);
    check_pixels("four.bmp", more, 7, 3, 3, 8, 0);
}

TEST(make_converts_tiff)
{
    static uint16_t pixels[37 * 23 * 4];
    static const int compressions[] = {COMPRESSION_NONE,     COMPRESSION_LZW,  COMPRESSION_ADOBE_DEFLATE,
                                       COMPRESSION_PACKBITS, COMPRESSION_ZSTD, COMPRESSION_LZMA};
    struct {
        char name[32];
        int channels, bits;
    } made[64];
    int count = 0;
    begin();
    for (size_t i = 0; i < sizeof compressions / sizeof compressions[0]; i++)
        for (int channels = 1; channels <= 4; channels++)
            for (int bits = 8; bits <= 16; bits += 8) {
                if ((int)i % 3 != channels % 3 && i > 0) continue;
                foreign_fill(pixels, 37, 23, channels, bits);
                foreign_tiff_options o = {37,
                                          23,
                                          channels,
                                          bits,
                                          compressions[i],
                                          channels < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB,
                                          .tile = i % 2 ? 16 : 0,
                                          .big_endian = i % 3 == 1,
                                          .extra = channels % 2 == 0 ? EXTRASAMPLE_UNASSALPHA : 0};
                made[count].channels = channels;
                made[count].bits = bits;
                snprintf(made[count].name, sizeof made[count].name, "%d-%d-%d.tif", (int)i, channels, bits);
                foreign_tiff(image_path(made[count++].name), &o, pixels, 1);
            }
    CHECK_EQ(convert("--encode png")->exit_code, 0);
    for (int i = 0; i < count; i++) {
        foreign_fill(pixels, 37, 23, made[i].channels, made[i].bits);
        check_pixels(made[i].name, pixels, 37, 23, made[i].channels, made[i].bits, 0);
    }
    /* JPEG has 8 bits and no alpha channel. */
    const program_result *result = convert("--encode jpeg");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "were reduced from 16 to 8 bits per channel");
    CHECK_CONTAINS(result->output, "are transparent and were kept as PNG");
}

TEST(make_converts_unusual_tiff)
{
    static uint8_t pixels[40 * 24 * 4], expected[40 * 24 * 4];
    begin();
    foreign_fill(pixels, 40, 24, 3, 8);
    foreign_tiff_options o = {40, 24, 3, 8, COMPRESSION_LZW, PHOTOMETRIC_RGB, .planar = PLANARCONFIG_SEPARATE};
    foreign_tiff(image_path("planes.tif"), &o, pixels, 1);
    o.planar = 0, o.orientation = 6, o.profile = "icc";
    foreign_tiff(image_path("turn.tif"), &o, pixels, 1);
    o.orientation = 0, o.profile = nullptr;
    foreign_tiff(image_path("pages.tiff"), &o, pixels, 3);
    o = (foreign_tiff_options){40, 24, 1, 1, COMPRESSION_CCITTFAX4, PHOTOMETRIC_MINISWHITE};
    for (int i = 0; i < 40 * 24; i++) expected[i] = pixels[i / 8] >> (7 - i % 8) & 1 ? 0 : 255;
    foreign_tiff(image_path("fax.tif"), &o, pixels, 1);
    o = (foreign_tiff_options){40, 24, 4, 8, COMPRESSION_NONE, PHOTOMETRIC_SEPARATED};
    foreign_tiff(image_path("ink.tif"), &o, pixels, 1);
    const program_result *result = convert("--encode png");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "1 image with several pages was reduced to its first page (a/pages.tiff)");
    CHECK_CONTAINS(result->output, "1 image has an EXIF orientation");
    CHECK_CONTAINS(result->output, "1 image lost its color profile");
    CHECK_CONTAINS(result->output, "1 CMYK image was converted to RGB");
    check_pixels("planes.tif", pixels, 40, 24, 3, 8, 0);
    check_pixels("turn.tif", pixels, 40, 24, 3, 8, 0);
    check_pixels("pages.tiff", pixels, 40, 24, 3, 8, 0);
    check_pixels("fax.tif", expected, 40, 24, 1, 8, 0);
    CHECK_EQ(convert("--encode png --upright")->exit_code, 0);
    for (int y = 0; y < 40; y++)
        for (int x = 0; x < 24; x++) memcpy(expected + (y * 24 + x) * 3, pixels + ((23 - x) * 40 + y) * 3, 3);
    check_pixels("turn.tif", expected, 24, 40, 3, 8, 0);
    CHECK_EQ(convert("--encode png --shorter-side 12")->exit_code, 0);
}

TEST(make_reports_that_other_formats_need_encode)
{
    static uint8_t pixels[40 * 7], file[4096]; /* rows are padded to multiples of 4 bytes */
    begin();
    foreign_bmp_options o = {13, 7, 24, 0, 40, 0};
    size_t size = foreign_bmp(file, &o, nullptr, 0, pixels, 280);
    file_save(image_path("a.bmp"), file, size);
    const program_result *result = convert("");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "photos/a/a.bmp: is BMP; --encode jpeg or --encode png converts it");
    result = program_run("cd %s; tfrecord-make --survey photos", test_directory());
    CHECK_CONTAINS(result->output, "1 image is WebP, GIF, BMP or TIFF; --encode jpeg or png converts it (a/a.bmp)");
    result = program_run("cd %s; tfrecord-make --survey --encode png photos", test_directory());
    CHECK_CONTAINS(result->output, "no faults: every image was decoded");
    /* A file truncated anywhere, or with any size in its header, is an error and never a crash. */
    for (size_t i = 0; i < size; i += 7) {
        char name[32];
        snprintf(name, sizeof name, "cut%03d.bmp", (int)i);
        file_save(image_path(name), file, i);
    }
    foreign_put(file + 18, 60'000, 4);
    foreign_put(file + 22, 60'000, 4);
    file_save(image_path("huge.bmp"), file, size);
    file_save(image_path("huge.gif"), "GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\xff\xff\xff\xff\0\2\0",
              32);
    result = convert("--encode png --on-error skip");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output,
                   "huge.bmp: the BMP image has 60000 x 60000 pixels (at most 100000000 are supported)");
    CHECK_CONTAINS(result->output, "huge.gif: the GIF image has 65535 x 65535 pixels");
    CHECK_CONTAINS(result->output, "1 image written");
}
