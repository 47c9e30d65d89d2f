/* The orientation in EXIF data. EXIF is a TIFF structure: "II*\0" or "MM\0*" gives the byte order, followed by the
 * offset of the first directory. A directory is a count, entries of 12 bytes (tag, type, count, value or its offset),
 * and the offset of the next directory. Only the first directory is read and no offsets in entries are followed, so
 * that the time is bounded by the size. */
#ifndef MR_KERNELS_EXIF_H
#define MR_KERNELS_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* The orientation of TIFF-structured data, 1…8; 0 if there is none. */
int32_t mr_exif_orientation(const unsigned char *bytes, size_t size_bytes);
/* Removes every orientation from the first directory, in place. Later entries move up; the data they point to is not
 * moved. */
void mr_exif_remove_orientation(unsigned char *bytes, size_t size_bytes);
/* Width and height of a TIFF image; false if its first directory does not contain them. */
bool mr_tiff_size(const unsigned char *bytes, size_t size_bytes, int32_t *width, int32_t *height);

#endif
