/* PNG decoding with libpng. The result is identical to that of TensorFlow 2.15 for the same file: the same
 * transformations, 16 bits truncated to their high byte for uint8, 8 bits multiplied by 257 for uint16, gray from color
 * with libpng's default weights.
 *
 * libpng reports errors through a function that must not return. Here that function jumps back to guarded(), the only
 * function with setjmp. libpng's memory is allocated from the arena and released with it, so its structures are never
 * destroyed individually. */
#include "kernels/image/png.h"

#include "kernels/image/jpeg.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

constexpr int64_t pixels_max_default = 100'000'000;
/* In addition to rows libpng stores inflate's window, tables, a palette and a color profile, a few hundred KiB in
 * all. */
constexpr size_t memory_max_bytes = 96 << 20;

[[noreturn]] static void on_error(png_structp png, png_const_charp message)
{
    mr_png_reader *reader = png_get_error_ptr(png);
    snprintf(reader->message, sizeof(reader->message), "%s", message);
    longjmp(reader->jump, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static png_voidp allocate(png_structp png, png_alloc_size_t size_bytes)
{
    mr_png_reader *reader = png_get_mem_ptr(png);
    void *memory = mr_arena_alloc(&reader->arena, size_bytes);
    if (memory == nullptr) reader->exhausted = true;
    return memory;
}

static void release(png_structp png, png_voidp memory)
{
    (void)png;
    (void)memory;
}

static void read_bytes(png_structp png, png_bytep target, size_t size_bytes)
{
    mr_png_reader *reader = png_get_io_ptr(png);
    if (size_bytes > reader->size_bytes - reader->used_bytes) {
        reader->truncated = true;
        png_error(png, "the bytes end too early");
    }
    memcpy(target, reader->bytes + reader->used_bytes, size_bytes);
    reader->used_bytes += size_bytes;
}

static mr_status fail_as_libpng(mr_png_reader *reader, mr_error *error)
{
    if (reader->exhausted)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the PNG image needs more memory than the limit");
    if (reader->truncated)
        return mr_fail(error, MR_DATA_LOSS, "the PNG image is truncated: its %zu bytes end too early",
                       reader->size_bytes);
    return mr_fail(error, MR_DATA_LOSS, "the PNG image is damaged: %s", reader->message);
}

/* Runs step and converts a jump out of libpng to a status. */
static mr_status guarded(mr_png_reader *reader, void (*step)(mr_png_reader *reader), mr_error *error)
{
    if (setjmp(reader->jump) != 0) return fail_as_libpng(reader, error);
    step(reader);
    return MR_OK;
}

/* Text, times and suggested palettes do not affect pixels; skipping them limits the memory that libpng uses for a
 * file. */
static const unsigned char chunks_without_pixels[] = "tEXt\0zTXt\0iTXt\0tIME\0sPLT\0hIST\0eXIf\0pHYs\0oFFs\0pCAL\0sCAL";

static void read_info(mr_png_reader *reader)
{
    reader->png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning, reader, allocate, release);
    if (reader->png == nullptr) {
        snprintf(reader->message, sizeof(reader->message), "libpng cannot be initialized");
        longjmp(reader->jump, 1);
    }
    reader->info = png_create_info_struct(reader->png);
    if (reader->info == nullptr) png_error(reader->png, "out of memory");
    png_set_read_fn(reader->png, reader, read_bytes);
    png_set_keep_unknown_chunks(reader->png, PNG_HANDLE_CHUNK_NEVER, chunks_without_pixels,
                                (int)(sizeof(chunks_without_pixels) / 5));
    png_read_info(reader->png, reader->info);
}

static int32_t stored_channels(mr_png_reader *reader)
{
    if (png_get_color_type(reader->png, reader->info) != PNG_COLOR_TYPE_PALETTE)
        return png_get_channels(reader->png, reader->info);
    return png_get_valid(reader->png, reader->info, PNG_INFO_tRNS) != 0 ? 4 : 3;
}

/* TensorFlow's transformations, in its order, which determines the result of an alpha channel with a palette. */
static void set_transformations(mr_png_reader *reader)
{
    png_structp png = reader->png;
    int color_type = png_get_color_type(png, reader->info), bits = png_get_bit_depth(png, reader->info);
    bool transparent = png_get_valid(png, reader->info, PNG_INFO_tRNS) != 0;
    bool alpha = (color_type & PNG_COLOR_MASK_ALPHA) != 0, gray = (color_type & PNG_COLOR_MASK_COLOR) == 0;
    bool want_alpha = reader->channels % 2 == 0, want_gray = reader->channels < 3;
    bool want_wide = reader->options.dtype == MR_UINT16;

    if (want_alpha && !alpha && transparent) png_set_tRNS_to_alpha(png);
    if (want_alpha && !alpha && !transparent) png_set_add_alpha(png, (1u << bits) - 1, PNG_FILLER_AFTER);
    if (!want_alpha && (alpha || transparent)) png_set_strip_alpha(png);
    if (bits > 8 && !want_wide) png_set_strip_16(png);
    reader->widen = bits <= 8 && want_wide;
    png_set_packing(png);
    (void)png_set_interlace_handling(png);
    if (want_wide) png_set_swap(png);
    if (color_type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (gray && bits < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (want_gray && !gray) png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    if (!want_gray && gray) png_set_gray_to_rgb(png);
    png_read_update_info(png, reader->info);
    reader->row_bytes = png_get_rowbytes(png, reader->info);
}

mr_status mr_png_reader_open(mr_png_reader *reader, const void *bytes, size_t size_bytes,
                             const mr_image_decode_options *options, mr_error *error)
{
    mr_image_arena_reset(&reader->arena, &reader->arena_block_bytes);
    *reader = (mr_png_reader){.arena = reader->arena, .bytes = bytes, .size_bytes = size_bytes, .options = *options};
    reader->arena.limit_bytes = memory_max_bytes;
    if (options->channels < 0 || options->channels > 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "PNG images can be decoded to 1, 2, 3 or 4 channels, not %d",
                       options->channels);
    /* Read the header first, so that a size above the limit is reported as such. */
    mr_image_info info = {0};
    MR_TRY(mr_png_probe(bytes, size_bytes, &info, error));
    int64_t pixels_max = options->pixels_max > 0 ? options->pixels_max : pixels_max_default;
    if ((int64_t)info.width * info.height > pixels_max)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "the PNG image of %d x %d pixels is larger than the limit of %" PRId64 " pixels", info.width,
                       info.height, pixels_max);
    MR_TRY(guarded(reader, read_info, error));
    reader->width = (int32_t)png_get_image_width(reader->png, reader->info);
    reader->height = (int32_t)png_get_image_height(reader->png, reader->info);
    reader->interlaced = png_get_interlace_type(reader->png, reader->info) != PNG_INTERLACE_NONE;
    reader->channels = options->channels != 0 ? options->channels : stored_channels(reader);
    MR_TRY(guarded(reader, set_transformations, error));
    size_t sample_bytes = options->dtype == MR_UINT16 && !reader->widen ? 2 : 1;
    size_t row_bytes = (size_t)reader->width * (size_t)reader->channels * sample_bytes;
    if (reader->row_bytes != row_bytes)
        return mr_fail(error, MR_UNIMPLEMENTED, "the PNG image cannot be decoded to %d channels", reader->channels);
    return MR_OK;
}

/* Multiplies each sample by 257, in place, from the end. */
static void widen(void *row, size_t count)
{
    const unsigned char *narrow = row;
    uint16_t *wide = row;
    for (size_t i = count; i-- > 0;) wide[i] = (uint16_t)(narrow[i] * 257);
}

static void read_row(mr_png_reader *reader)
{
    png_read_row(reader->png, reader->target, nullptr);
}

mr_status mr_png_reader_row(mr_png_reader *reader, void *row, mr_error *error)
{
    assert(!reader->interlaced);
    reader->target = row;
    MR_TRY(guarded(reader, read_row, error));
    if (reader->widen) widen(row, reader->row_bytes);
    return MR_OK;
}

static void read_image(mr_png_reader *reader)
{
    /* Seven passes over all rows; libpng merges each into the result of the previous ones. */
    size_t stride = reader->row_bytes * (reader->widen ? 2 : 1);
    for (int pass = 0; pass < (reader->interlaced ? PNG_INTERLACE_ADAM7_PASSES : 1); pass++)
        for (int32_t y = 0; y < reader->height; y++)
            png_read_row(reader->png, reader->target + (size_t)y * stride, nullptr);
}

mr_status mr_png_reader_image(mr_png_reader *reader, void *pixels, mr_error *error)
{
    reader->target = pixels;
    MR_TRY(guarded(reader, read_image, error));
    if (reader->widen)
        for (int32_t y = 0; y < reader->height; y++)
            widen((unsigned char *)pixels + (size_t)y * reader->row_bytes * 2, reader->row_bytes);
    return MR_OK;
}

static void read_end(mr_png_reader *reader)
{
    png_read_end(reader->png, reader->info);
}

mr_status mr_png_reader_finish(mr_png_reader *reader, mr_error *error)
{
    return guarded(reader, read_end, error);
}

void mr_png_reader_deinit(mr_png_reader *reader)
{
    mr_arena_deinit(&reader->arena);
    *reader = (mr_png_reader){0};
}

static mr_status decode(mr_png_reader *reader, const void *bytes, size_t size_bytes,
                        const mr_image_decode_options *options, mr_tensor *image, mr_error *error)
{
    MR_TRY(mr_png_reader_open(reader, bytes, size_bytes, options, error));
    mr_shape shape = MR_SHAPE(reader->height, reader->width, reader->channels);
    MR_TRY(mr_tensor_init(image, options->dtype == MR_UINT16 ? MR_UINT16 : MR_UINT8, shape, error));
    mr_status status = mr_png_reader_image(reader, image->data, error);
    if (status == MR_OK) status = mr_png_reader_finish(reader, error);
    if (status != MR_OK) mr_tensor_deinit(image);
    return status;
}

mr_status mr_png_decode(const void *bytes, size_t size_bytes, const mr_image_decode_options *options, mr_tensor *image,
                        mr_error *error)
{
    mr_png_reader *reader = calloc(1, sizeof(*reader));
    if (reader == nullptr) return mr_fail_memory(error, sizeof(*reader));
    mr_status status = decode(reader, bytes, size_bytes, options, image, error);
    mr_png_reader_deinit(reader);
    free(reader);
    return status;
}
