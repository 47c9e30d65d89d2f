/* One JPEG after another, row by row, with libjpeg-turbo behind a status.
 *
 *     mr_jpeg_reader reader = {0};
 *     mr_jpeg_reader_open(&reader, bytes, size_bytes, &options, &error);     width, height, channels are known
 *     mr_jpeg_reader_start(&reader, nullptr, &error);                        or a window of the image
 *     for each row of the window: mr_jpeg_reader_row(&reader, row, &error);
 *     mr_jpeg_reader_finish(&reader, &error);
 *     ... the next image ...
 *     mr_jpeg_reader_deinit(&reader);
 *
 * After any failure the reader is ready for mr_jpeg_reader_open again. Memory that images need comes from the reader's
 * arena, so a run of like images allocates nothing (progressive ones: their coefficients). One thread at a time. */
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
    jmp_buf jump;   /* where libjpeg's errors go while a function of this file runs */
    mr_arena arena; /* libjpeg's per-image memory */
    size_t arena_block_bytes;
    struct jpeg_memory_mgr memory; /* libjpeg's own memory functions, before jpeg_memory.c stands before them */
    const unsigned char *bytes;
    size_t size_bytes;
    mr_image_decode_options options;
    bool created, damaged;
    bool save_markers; /* for mr_jpeg_reader_coefficients: the decompressor keeps APPn and COM segments */
    int scans_max;
    int rewinds;                   /* of a truncated source */
    char message[JMSG_LENGTH_MAX]; /* libjpeg's words for an error or for the first damage */
    int message_code;
    unsigned char *cmyk; /* one row, in the arena */
    unsigned char *row;  /* the row being read */
    jvirt_barray_ptr *coefficients;
    mr_jpeg_scan *scan; /* decodes baseline images in libjpeg's place; null until the first */
    bool always_plain;  /* leaves everything to libjpeg; the caller's to set, for tests */
    bool is_plain;      /* this image is left to libjpeg */
    bool irregular;     /* scan has met with something that it leaves to libjpeg */
    int32_t rows_read;

    int32_t width, height, channels; /* of the whole image, decoded; known after open */
    int32_t row_width;               /* pixels that mr_jpeg_reader_row writes; known after start */
    int32_t row_left;                /* pixel of the row where the window begins */
    mr_image_region window;
    bool is_cropped; /* of columns */
} mr_jpeg_reader;

mr_status mr_jpeg_reader_open(mr_jpeg_reader *reader, const void *bytes, size_t size_bytes,
                              const mr_image_decode_options *options, mr_error *error);
/* After open: the image at another ratio than the options'. */
mr_status mr_jpeg_reader_set_ratio(mr_jpeg_reader *reader, int32_t ratio, mr_error *error);
/* window  null: the whole image; its flip is ignored */
mr_status mr_jpeg_reader_start(mr_jpeg_reader *reader, const mr_image_region *window, mr_error *error);
/* row  row_width x channels bytes */
mr_status mr_jpeg_reader_row(mr_jpeg_reader *reader, unsigned char *row, mr_error *error);
/* Instead of start, rows and finish: every coefficient of the image, in the decompressor's memory until the next open. */
mr_status mr_jpeg_reader_coefficients(mr_jpeg_reader *reader, jvirt_barray_ptr **coefficients, mr_error *error);
/* After the last row of the window; says whether the data was good as far as it was read. */
mr_status mr_jpeg_reader_finish(mr_jpeg_reader *reader, mr_error *error);
void mr_jpeg_reader_deinit(mr_jpeg_reader *reader);

/* After the scans are read: a progressive image whose coefficients are not known to the last bit, so that decoders make
 * them up, or one without any data for a component. */
bool mr_jpeg_lacks_scans(const struct jpeg_decompress_struct *decompress);

/* For jpeg_scan.c: gives the image to libjpeg's own decoder, which begins anew. */
[[noreturn]] void mr_jpeg_reader_irregular(mr_jpeg_reader *reader);

/* Puts the reader's arena behind libjpeg's memory manager, for what lives as long as an image. */
void mr_jpeg_memory_install(mr_jpeg_reader *reader);

/* Empties an arena that serves one image after another, and keeps its memory as one block. block_bytes is the caller's
 * to keep beside the arena, 0 at first. */
void mr_image_arena_reset(mr_arena *arena, size_t *block_bytes);

/* The header alone. */
mr_status mr_jpeg_probe(const unsigned char *bytes, size_t size_bytes, mr_image_info *info, mr_error *error);

mr_status mr_jpeg_decode(const void *bytes, size_t size_bytes, const mr_image_decode_options *options, mr_tensor *image,
                         mr_error *error);

#endif
