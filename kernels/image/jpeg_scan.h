/* The decoder of a baseline JPEG's entropy-coded scan, which replaces libjpeg's.
 *
 *     jpeg_start_decompress, jpeg_crop_scanline
 *     mr_jpeg_scan_start(reader);
 *     jpeg_skip_scanlines, jpeg_read_scanlines, jpeg_finish_decompress as usual
 *
 * The coefficients are the same as those of libjpeg's own decoder. MCUs whose coefficients libjpeg will not use are
 * parsed only to find their end, and are not read at all where restart markers allow it. At the first irregularity
 * the decoder sets reader->irregular and jumps to reader->jump: libjpeg's own decoder then restarts the image, so that
 * damage is handled and reported as by libjpeg. */
#ifndef MR_KERNELS_JPEG_SCAN_H
#define MR_KERNELS_JPEG_SCAN_H

#include "kernels/image/jpeg.h"

/* Replaces the entropy decoder of the reader's image if the image has one sequential Huffman-coded scan. Otherwise, or
 * if memory is exhausted, libjpeg's decoder is used. reader->scan is allocated on first use and kept between images. */
void mr_jpeg_scan_start(mr_jpeg_reader *reader);
void mr_jpeg_scan_free(mr_jpeg_scan *scan);
size_t mr_jpeg_scan_bytes(void); /* memory that one scan decoder uses */

#endif
