/* Image encoding: the bytes of TensorFlow's EncodeJpeg and EncodePng.
 *
 * Both libraries report errors through functions that must not return. Each encoder here has one setjmp, and everything
 * that must survive the jump is stored in its struct. */
#include "kernels/image/image_encode.h"

#include "base/arguments.h"
#include "base/status.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

static mr_status check_image(const mr_tensor *image, int64_t channels_max, const char *format, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (image->shape.rank != 3)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s images must be [height, width, channels], not shape %s", format,
                       mr_shape_text(image->shape, text, sizeof(text)));
    for (int i = 0; i < 2; i++)
        if (image->shape.dims[i] < 1 || image->shape.dims[i] > JPEG_MAX_DIMENSION)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "%s images must have 1 to %ld pixels in each direction, not shape %s", format,
                           (long)JPEG_MAX_DIMENSION, mr_shape_text(image->shape, text, sizeof(text)));
    if (image->shape.dims[2] < 1 || image->shape.dims[2] > channels_max)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s images cannot have %lld channels", format,
                       (long long)image->shape.dims[2]);
    return MR_OK;
}

typedef struct jpeg_writer {
    struct jpeg_compress_struct compress;
    struct jpeg_error_mgr errors;
    jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
    unsigned char *bytes; /* allocated by libjpeg with malloc */
    unsigned long size_bytes;
} jpeg_writer;

[[noreturn]] static void jpeg_error_exit(j_common_ptr common)
{
    jpeg_writer *writer = common->client_data;
    common->err->format_message(common, writer->message);
    longjmp(writer->jump, 1);
}

static void jpeg_output_message(j_common_ptr common)
{
    (void)common;
}

/* An APP1 segment in front of the image. */
static void write_xmp(struct jpeg_compress_struct *compress, mr_string xmp)
{
    static const char name[] = "http://ns.adobe.com/xap/1.0/";
    jpeg_write_m_header(compress, JPEG_APP0 + 1, (unsigned)(sizeof name + xmp.size_bytes));
    for (size_t i = 0; i < sizeof name; i++) jpeg_write_m_byte(compress, name[i]);
    for (size_t i = 0; i < xmp.size_bytes; i++) jpeg_write_m_byte(compress, (unsigned char)xmp.data[i]);
}

static void write_jpeg(jpeg_writer *writer, const mr_tensor *image, const mr_jpeg_encoding *encoding)
{
    struct jpeg_compress_struct *compress = &writer->compress;
    jpeg_create_compress(compress);
    jpeg_mem_dest(compress, &writer->bytes, &writer->size_bytes);
    compress->image_height = (JDIMENSION)image->shape.dims[0];
    compress->image_width = (JDIMENSION)image->shape.dims[1];
    compress->input_components = (int)image->shape.dims[2];
    compress->in_color_space = compress->input_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(compress);
    jpeg_set_quality(compress, encoding->quality ? encoding->quality : 95, TRUE);
    compress->density_unit = encoding->is_per_cm ? 2 : 1;
    compress->X_density = (UINT16)(encoding->x_density ? encoding->x_density : 300);
    compress->Y_density = (UINT16)(encoding->y_density ? encoding->y_density : 300);
    if (encoding->is_progressive) jpeg_simple_progression(compress);
    if (encoding->optimizes_size) compress->optimize_coding = TRUE;
    for (int i = 0; encoding->keeps_chroma && i < compress->num_components; i++)
        compress->comp_info[i].h_samp_factor = compress->comp_info[i].v_samp_factor = 1;
    jpeg_start_compress(compress, TRUE);
    if (encoding->xmp_metadata.size_bytes > 0) write_xmp(compress, encoding->xmp_metadata);
    size_t row_bytes = (size_t)image->shape.dims[1] * (size_t)image->shape.dims[2];
    while (compress->next_scanline < compress->image_height) {
        JSAMPROW row = (JSAMPROW)image->data + compress->next_scanline * row_bytes;
        (void)jpeg_write_scanlines(compress, &row, 1);
    }
    jpeg_finish_compress(compress);
}

mr_status mr_image_encode_jpeg(const mr_tensor *image, int32_t quality, mr_tensor *bytes, mr_error *error)
{
    MR_REFUSE_NULL(image, error);
    return mr_jpeg_encode(image, &(mr_jpeg_encoding){.quality = quality}, bytes, error);
}

mr_status mr_jpeg_encode(const mr_tensor *image, const mr_jpeg_encoding *encoding, mr_tensor *bytes, mr_error *error)
{
    constexpr size_t XMP_MAX = 65535 - 2 - 29; /* of one segment */
    MR_TRY(check_image(image, 3, "JPEG", error));
    if (image->dtype != MR_UINT8 || image->shape.dims[2] == 2)
        return mr_fail(error, MR_INVALID_ARGUMENT, "JPEG images must have 1 or 3 channels of uint8, not %lld of %s",
                       (long long)image->shape.dims[2], mr_dtype_name(image->dtype));
    if (encoding->quality < 0 || encoding->quality > 100)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the JPEG quality must be 1 to 100, not %d", encoding->quality);
    if (encoding->xmp_metadata.size_bytes > XMP_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the XMP metadata has %zu bytes, more than %zu",
                       encoding->xmp_metadata.size_bytes, XMP_MAX);
    jpeg_writer *writer = calloc(1, sizeof(*writer));
    if (writer == nullptr) return mr_fail_memory(error, sizeof(*writer));
    writer->compress.err = jpeg_std_error(&writer->errors);
    writer->compress.client_data = writer;
    writer->errors.error_exit = jpeg_error_exit;
    writer->errors.output_message = jpeg_output_message;
    mr_status status = MR_OK;
    if (setjmp(writer->jump) == 0) {
        write_jpeg(writer, image, encoding);
        mr_string written = {(const char *)writer->bytes, writer->size_bytes};
        status = mr_tensor_init_string(bytes, written, error);
    } else {
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "cannot encode the JPEG image: %s", writer->message);
    }
    jpeg_destroy_compress(&writer->compress);
    free(writer->bytes);
    free(writer);
    return status;
}

typedef struct png_writer {
    png_structp png;
    png_infop info;
    jmp_buf jump;
    char message[128];
    unsigned char *bytes;
    size_t size_bytes, capacity_bytes;
} png_writer;

[[noreturn]] static void png_on_error(png_structp png, png_const_charp message)
{
    png_writer *writer = png_get_error_ptr(png);
    snprintf(writer->message, sizeof(writer->message), "%s", message);
    longjmp(writer->jump, 1);
}

static void png_on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void png_append(png_structp png, png_bytep bytes, size_t size_bytes)
{
    png_writer *writer = png_get_io_ptr(png);
    if (size_bytes > writer->capacity_bytes - writer->size_bytes) {
        size_t capacity_bytes = 2 * writer->capacity_bytes + size_bytes + 4096;
        unsigned char *grown = realloc(writer->bytes, capacity_bytes);
        if (grown == nullptr) png_error(png, "out of memory");
        writer->bytes = grown;
        writer->capacity_bytes = capacity_bytes;
    }
    memcpy(writer->bytes + writer->size_bytes, bytes, size_bytes);
    writer->size_bytes += size_bytes;
}

static void png_flush_nothing(png_structp png)
{
    (void)png;
}

static void write_png(png_writer *writer, const mr_tensor *image, int compression)
{
    static const int color_types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                      PNG_COLOR_TYPE_RGB_ALPHA};
    writer->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, writer, png_on_error, png_on_warning);
    if (writer->png != nullptr) writer->info = png_create_info_struct(writer->png);
    if (writer->info == nullptr) {
        snprintf(writer->message, sizeof(writer->message), "out of memory");
        longjmp(writer->jump, 1);
    }
    const int64_t *dims = image->shape.dims;
    bool wide = image->dtype == MR_UINT16;
    png_set_write_fn(writer->png, writer, png_append, png_flush_nothing);
    png_set_compression_level(writer->png, compression);
    png_set_compression_mem_level(writer->png, MAX_MEM_LEVEL);
    png_set_IHDR(writer->png, writer->info, (png_uint_32)dims[1], (png_uint_32)dims[0], wide ? 16 : 8,
                 color_types[dims[2]], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(writer->png, writer->info);
    if (wide) png_set_swap(writer->png);
    size_t row_bytes = (size_t)dims[1] * (size_t)dims[2] * (wide ? 2 : 1);
    for (int64_t y = 0; y < dims[0]; y++)
        png_write_row(writer->png, (png_const_bytep)image->data + (size_t)y * row_bytes);
    png_write_end(writer->png, nullptr);
}

mr_status mr_image_encode_png(const mr_tensor *image, mr_tensor *bytes, mr_error *error)
{
    MR_REFUSE_NULL(image, error);
    return mr_png_encode(image, Z_DEFAULT_COMPRESSION, bytes, error);
}

mr_status mr_png_encode(const mr_tensor *image, int compression, mr_tensor *bytes, mr_error *error)
{
    MR_TRY(check_image(image, 4, "PNG", error));
    if (image->dtype != MR_UINT8 && image->dtype != MR_UINT16)
        return mr_fail(error, MR_INVALID_ARGUMENT, "PNG images must be uint8 or uint16, not %s",
                       mr_dtype_name(image->dtype));
    png_writer *writer = calloc(1, sizeof(*writer));
    if (writer == nullptr) return mr_fail_memory(error, sizeof(*writer));
    mr_status status = MR_OK;
    if (setjmp(writer->jump) == 0) {
        write_png(writer, image, compression);
        mr_string written = {(const char *)writer->bytes, writer->size_bytes};
        status = mr_tensor_init_string(bytes, written, error);
    } else {
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "cannot encode the PNG image: %s", writer->message);
    }
    if (writer->png != nullptr) png_destroy_write_struct(&writer->png, &writer->info);
    free(writer->bytes);
    free(writer);
    return status;
}
