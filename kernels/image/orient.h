/* The effect of an EXIF orientation on an image. */
#ifndef MR_KERNELS_ORIENT_H
#define MR_KERNELS_ORIENT_H

#include <stdint.h>

/* The upright image is the stored image mirrored left to right (x), then top to bottom (y), then with rows and columns
 * swapped. */
typedef struct mr_orientation {
    bool mirror_x, mirror_y, swap;
} mr_orientation;
/* orientation  1…8 */
mr_orientation mr_orientation_of(int32_t orientation);

#endif
