/* The inner loops of image processing, over one row each: plain C, AVX2 and AVX-512, selected by mr_cpu(), with
 * identical results.
 *
 * Source rows are bytes, intermediate rows are floats in 0…255. Vector code reads past the elements it uses: every
 * source row must be followed by mr_rows_slack readable elements. Nothing is written past the end of a target. */
#ifndef MR_KERNELS_IMAGE_ROWS_H
#define MR_KERNELS_IMAGE_ROWS_H

#include "base/cpu.h"

#include <millrace/image.h>

#include <stddef.h>
#include <stdint.h>

constexpr size_t mr_rows_slack = 64;

typedef struct mr_rows_table {
    /* target[i] = above[i] + weight * (below[i] - above[i]) */
    void (*blend)(float *target, const unsigned char *above, const unsigned char *below, float weight, size_t count);
    /* target[i] = weight * source[i], or += with accumulate */
    void (*weigh)(float *target, const unsigned char *source, float weight, bool accumulate, size_t count);
    /* Three channels: target[3 i + c] = (a + weights[i] (b - a)) * scale[c] + shift[c], where a = source[3 first[i] +
     * c] and b is the same channel of the next pixel. */
    void (*lerp3)(float *target, const float *source, const int32_t *first, const float *weights, const float scale[3],
                  const float shift[3], size_t count);
    /* The same for one channel. */
    void (*lerp1)(float *target, const float *source, const int32_t *first, const float *weights, float scale,
                  float shift, size_t count);
    /* Rounds to nearest even; saturates; NaN becomes 0. */
    void (*to_uint8)(uint8_t *target, const float *source, size_t count);
} mr_rows_table;

/* The table of a level, which tests may choose; static. */
const mr_rows_table *mr_rows(mr_cpu_level level);

/* Sets a flag that cancels decoding with this scratch: once *stop is true, decoding fails with MR_CANCELLED at its next
 * row.
 * stop  borrowed; null: decoding is never cancelled */
void mr_image_scratch_stop(mr_image_scratch *scratch, const _Atomic bool *stop);

#endif
