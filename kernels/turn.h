/* What an EXIF orientation does to a picture. */
#ifndef MR_KERNELS_TURN_H
#define MR_KERNELS_TURN_H

#include <stdint.h>

/* The upright picture is the stored one mirrored left to right (x), top to bottom (y), then with rows and columns swapped. */
typedef struct mr_turn {
    bool mirror_x, mirror_y, swap;
} mr_turn;
/* orientation  1…8 */
mr_turn mr_turn_of(int32_t orientation);

#endif
