/* The JPEG reader: decodes one JPEG after another, row by row, with libjpeg-turbo, and returns errors as statuses.
 *
 *     mr_jpeg_reader reader = {0};
 *     mr_jpeg_reader_open(&reader, bytes, size_bytes, &options, &error);     width, height, channels are known
 *     mr_jpeg_reader_start(&reader, nullptr, &error);                        or a window of the image
 *     for each row of the window: mr_jpeg_reader_row(&reader, row, &error);
 *     mr_jpeg_reader_finish(&reader, &error);
 *     ... the next image ...
 *     mr_jpeg_reader_deinit(&reader);
 *
 * After a failure the reader can be opened again. Memory for images is allocated from the reader's arena, so a sequence
 * of similar images allocates nothing, except for the coefficients of progressive images. A reader is used by one
 * thread at a time. */
#ifndef MR_KERNELS_JPEG_H
#define MR_KERNELS_JPEG_H

#include "base/arena.h"

#include <millrace/image.h>
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

typedef struct mr_jpeg_scan mr_jpeg_scan;

typedef struct mr_jpeg_reader {
    struct jpeg_decompress_struct decompress;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;   /* target of libjpeg's errors and jpeg_scan.c's irregularities while a reader function runs */
    mr_arena arena; /* libjpeg's per-image memory */
    size_t arena_block_bytes;
    struct jpeg_memory_mgr memory; /* libjpeg's own memory functions, which jpeg_memory.c replaces */
    const unsigned char *bytes;
    size_t size_bytes;
    mr_image_decode_options options;
    bool created, damaged;
    bool save_markers; /* for mr_jpeg_reader_coefficients: the decompressor saves APPn and COM segments */
    int scans_max;
    int rewinds;                   /* how often a truncated source was restarted */
    char message[JMSG_LENGTH_MAX]; /* libjpeg's message for an error or for the first damage */
    int message_code;
    unsigned char *cmyk; /* one row, in the arena */
    unsigned char *row;  /* the row being read */
    jvirt_barray_ptr *coefficients;
    mr_jpeg_scan *scan; /* decodes baseline images instead of libjpeg; null until the first one */
    bool always_plain;  /* decode everything with libjpeg; set by the caller, for tests */
    bool is_plain;      /* libjpeg decodes this image */
    bool irregular;     /* set before the jump if scan found data that libjpeg's own decoder must handle */
    int32_t rows_read;

    int32_t width, height, channels; /* of the complete image, as decoded; known after open */
    int32_t row_width;               /* pixels that mr_jpeg_reader_row writes; known after start */
    int32_t row_left;                /* index of the window's first pixel in the row */
    mr_image_region window;
    bool is_cropped; /* set if columns are cropped */
} mr_jpeg_reader;

mr_status mr_jpeg_reader_open(mr_jpeg_reader *reader, const void *bytes, size_t size_bytes,
                              const mr_image_decode_options *options, mr_error *error);
/* Changes the ratio that was given in the options. Call it after open. */
mr_status mr_jpeg_reader_set_ratio(mr_jpeg_reader *reader, int32_t ratio, mr_error *error);
/* window  null: the complete image; its flip is ignored */
mr_status mr_jpeg_reader_start(mr_jpeg_reader *reader, const mr_image_region *window, mr_error *error);
/* row  row_width x channels bytes */
mr_status mr_jpeg_reader_row(mr_jpeg_reader *reader, unsigned char *row, mr_error *error);
/* Reads every coefficient of the image, instead of start, rows and finish. They are stored in the decompressor's memory
 * until the next open. */
mr_status mr_jpeg_reader_coefficients(mr_jpeg_reader *reader, jvirt_barray_ptr **coefficients, mr_error *error);
/* Call it after the last row of the window. Returns MR_DATA_LOSS if the data that was read is damaged, unless the
 * options accept damage. */
mr_status mr_jpeg_reader_finish(mr_jpeg_reader *reader, mr_error *error);
void mr_jpeg_reader_deinit(mr_jpeg_reader *reader);

/* Call it after the scans are read. Returns true for a progressive image whose coefficients are not known to the last
 * bit, so that decoders estimate them, and for an image without data for a component. */
bool mr_jpeg_lacks_scans(const struct jpeg_decompress_struct *decompress);

/* Makes libjpeg's memory manager allocate memory with the lifetime of an image from the reader's arena. */
void mr_jpeg_memory_install(mr_jpeg_reader *reader);

/* Empties an arena that is used for one image after another, and keeps its memory as one block.
 * block_bytes  state of the arena, stored by the caller; initially 0 */
void mr_image_arena_reset(mr_arena *arena, size_t *block_bytes);

/* Reads only the header. */
mr_status mr_jpeg_probe(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error);

mr_status mr_jpeg_decode(const void *bytes, size_t size_bytes, const mr_image_decode_options *options, mr_tensor *image,
                         mr_error *error);

#endif
