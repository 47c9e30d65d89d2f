/* Encodes and saves images: JPEG as cameras and programs write it, PNG with fast compression. A file gets its final
 * name only when it is complete. */
#include "common/file.h"
#include "scene.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jpeglib.h>
#include <png.h>

typedef struct output {
    FILE *file;
    jmp_buf jump;
    const scene *scene;
    const unsigned char *pixels;
} output;

[[noreturn]] static void jpeg_failed(j_common_ptr common)
{
    longjmp(((output *)common->client_data)->jump, 1);
}

static void jpeg_silent(j_common_ptr common)
{
    (void)common;
}

static bool write_jpeg(output *output)
{
    const scene *scene = output->scene;
    struct jpeg_compress_struct compress = {0};
    struct jpeg_error_mgr errors = {0};
    compress.err = jpeg_std_error(&errors);
    errors.error_exit = jpeg_failed;
    errors.output_message = jpeg_silent;
    compress.client_data = output;
    unsigned char *row = malloc(3 * (size_t)scene->width);
    if (row == nullptr) return false;
    bool written = false;
    if (setjmp(output->jump) == 0) {
        jpeg_create_compress(&compress);
        jpeg_stdio_dest(&compress, output->file);
        compress.image_width = (JDIMENSION)scene->width;
        compress.image_height = (JDIMENSION)scene->height;
        compress.input_components = scene->gray ? 1 : 3;
        compress.in_color_space = scene->gray ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_set_defaults(&compress);
        jpeg_set_quality(&compress, scene->quality, TRUE);
        if (!scene->gray) {
            compress.comp_info[0].h_samp_factor = scene->horizontal;
            compress.comp_info[0].v_samp_factor = scene->vertical;
        }
        if (scene->format == JPEG_PROGRESSIVE) jpeg_simple_progression(&compress);
        jpeg_start_compress(&compress, TRUE);
        while (compress.next_scanline < compress.image_height) {
            const unsigned char *source = output->pixels + (size_t)compress.next_scanline * 3 * (size_t)scene->width;
            size_t step = scene->gray ? 3 : 1, count = (scene->gray ? 1 : 3) * (size_t)scene->width;
            for (size_t i = 0; i < count; i++) row[i] = source[i * step];
            JSAMPROW rows = row;
            (void)jpeg_write_scanlines(&compress, &rows, 1);
        }
        jpeg_finish_compress(&compress);
        written = true;
    }
    jpeg_destroy_compress(&compress);
    free(row);
    return written;
}

[[noreturn]] static void png_failed(png_structp png, png_const_charp message)
{
    (void)message;
    longjmp(((output *)png_get_error_ptr(png))->jump, 1);
}

static void png_silent(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void write_png_rows(const output *output, png_structp png, png_infop info)
{
    const scene *scene = output->scene;
    png_init_io(png, output->file);
    png_set_compression_level(png, 1);
    png_set_filter(png, 0, PNG_FILTER_SUB);
    int type = scene->gray                ? PNG_COLOR_TYPE_GRAY
               : scene->png_channels == 4 ? PNG_COLOR_TYPE_RGB_ALPHA
                                          : PNG_COLOR_TYPE_RGB;
    png_set_IHDR(png, info, (png_uint_32)scene->width, (png_uint_32)scene->height, 8, type, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    unsigned char row[4 * 640];
    size_t width = (size_t)scene->width;
    for (int y = 0; y < scene->height; y++) {
        const unsigned char *source = output->pixels + (size_t)y * 3 * width;
        size_t channels = scene->gray ? 1 : (size_t)scene->png_channels;
        for (size_t x = 0; x < width; x++)
            for (size_t c = 0; c < channels; c++) row[x * channels + c] = c < 3 ? source[3 * x + c] : 255;
        png_write_row(png, row);
    }
    png_write_end(png, nullptr);
}

static bool write_png(output *output)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, output, png_failed, png_silent);
    png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
    volatile bool written = false;
    if (info != nullptr && setjmp(output->jump) == 0) {
        write_png_rows(output, png, info);
        written = true;
    }
    if (png != nullptr) png_destroy_write_struct(&png, &info);
    return written;
}

mr_status image_save(const scene *scene, const unsigned char *pixels, const char *path, mr_error *error)
{
    char temporary[4200];
    /* The same name in every run, so that the file left by a killed run is replaced. */
    snprintf(temporary, sizeof(temporary), "%s" FILE_PARTIAL, path);
    output output = {.scene = scene, .pixels = pixels, .file = fopen(temporary, "wb")};
    if (output.file == nullptr) return file_fail(error, errno, "create", path);
    errno = 0;
    bool written = scene->format == PNG ? write_png(&output) : write_jpeg(&output);
    int code = errno;
    if (fclose(output.file) != 0) {
        written = false;
        code = errno;
    }
    if (written && rename(temporary, path) == 0) return MR_OK;
    if (written) code = errno;
    (void)unlink(temporary);
    return file_fail(error, code != 0 ? code : ENOMEM, "write", path);
}
