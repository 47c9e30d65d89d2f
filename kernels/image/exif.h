/* EXIF data, as far as the orientation goes. It is a TIFF structure: "II*\0" or "MM\0*" says the byte order, then comes
 * the place of the first directory: a count, entries of 12 bytes (tag, type, count, value or its place), the place of the
 * next directory. Only the first directory is looked at, and nothing is followed, so time is bounded by the bytes. */
#ifndef MR_KERNELS_EXIF_H
#define MR_KERNELS_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* The orientation that TIFF-structured data states, 1…8; 0 when none. */
int32_t mr_exif_orientation(const unsigned char *bytes, size_t size_bytes);
/* Takes every orientation out of the first directory, in place: later entries move up, what they point to stays. */
void mr_exif_remove_orientation(unsigned char *bytes, size_t size_bytes);
/* Width and height of a TIFF image; false when its first directory does not say. */
bool mr_tiff_size(const unsigned char *bytes, size_t size_bytes, int32_t *width, int32_t *height);

#endif
