/* The entropy-coded scan of a baseline JPEG, decoded in libjpeg's place.
 *
 *     jpeg_start_decompress, jpeg_crop_scanline
 *     mr_jpeg_scan_start(reader);
 *     jpeg_skip_scanlines, jpeg_read_scanlines, jpeg_finish_decompress as ever
 *
 * Coefficients come out as libjpeg's own decoder would leave them. MCUs that libjpeg will not look at are decoded no
 * further than to find their end, and where restart markers allow it they are not read at all. On the first thing that is
 * not as it should be mr_jpeg_reader_irregular is called: libjpeg's own decoder then begins anew, so that damage is
 * treated and told as libjpeg does. */
#ifndef MR_KERNELS_JPEG_SCAN_H
#define MR_KERNELS_JPEG_SCAN_H

#include "kernels/image/jpeg.h"

/* Stands before the entropy decoder of reader's image, if it has one sequential Huffman-coded scan; else, or without
 * memory, libjpeg's stays. reader->scan is made when it is needed first, and kept between images. */
void mr_jpeg_scan_start(mr_jpeg_reader *reader);
void mr_jpeg_scan_free(mr_jpeg_scan *scan);
size_t mr_jpeg_scan_bytes(void); /* what one takes */

#endif
