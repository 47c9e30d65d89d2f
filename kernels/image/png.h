/* The PNG reader: decodes one PNG after another, row by row, with libpng, and returns errors as statuses.
 *
 *     mr_png_reader reader = {0};
 *     mr_png_reader_open(&reader, bytes, size_bytes, &options, &error);     width, height, … are known
 *     for each row: mr_png_reader_row(&reader, row, &error);                or all at once, required if interlaced:
 *     mr_png_reader_image(&reader, pixels, &error);
 *     mr_png_reader_finish(&reader, &error);                                after every row was read
 *     ... the next image ...
 *     mr_png_reader_deinit(&reader);
 *
 * After a failure the reader can be opened again. All memory is allocated from the reader's arena, so a sequence of
 * similar images allocates nothing. A reader is used by one thread at a time. */
#ifndef MR_KERNELS_PNG_H
#define MR_KERNELS_PNG_H

#include "base/arena.h"

#include <millrace/image.h>
#include <setjmp.h>

#include <png.h>

typedef struct mr_png_reader {
    png_structp png;
    png_infop info;
    jmp_buf jump; /* libpng's errors jump here while a function of this file runs */
    mr_arena arena;
    size_t arena_block_bytes;
    const unsigned char *bytes;
    size_t size_bytes, used_bytes;
    mr_image_decode_options options;
    bool truncated, exhausted;
    bool widen; /* the image has 8 bits and the caller requests 16 */
    char message[128];
    unsigned char *target;

    int32_t width, height, channels; /* as decoded; known after open */
    size_t row_bytes;                /* of a row as decoded */
    bool interlaced;
} mr_png_reader;

/* options  channels 0…4, dtype MR_UINT8 or MR_UINT16, pixels_max */
mr_status mr_png_reader_open(mr_png_reader *reader, const void *bytes, size_t size_bytes,
                             const mr_image_decode_options *options, mr_error *error);
/* The next row, row_bytes; not for interlaced images. */
mr_status mr_png_reader_row(mr_png_reader *reader, void *row, mr_error *error);
/* All rows, height x row_bytes. */
mr_status mr_png_reader_image(mr_png_reader *reader, void *pixels, mr_error *error);
/* Reads and checks the data after the pixels. */
mr_status mr_png_reader_finish(mr_png_reader *reader, mr_error *error);
void mr_png_reader_deinit(mr_png_reader *reader);

/* Reads the chunks before the pixels, without libpng. */
mr_status mr_png_probe(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error);

mr_status mr_png_decode(const void *bytes, size_t size_bytes, const mr_image_decode_options *options, mr_tensor *image,
                        mr_error *error);

#endif
