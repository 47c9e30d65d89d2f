/* The inner loops of images, over one row each: plain C, AVX2 and AVX-512 by what mr_cpu() says, with the same bits.
 *
 * Source rows are bytes, intermediate rows floats in 0…255. Vector code loads a little past what it uses: a row that is
 * read here has mr_rows_slack more readable elements behind it. What is written ends exactly where it should. */
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
    /* Three channels: target[3 i + c] = (a + weights[i] (b - a)) * scale[c] + shift[c], a = source[3 first[i] + c], b the
     * same of the next pixel. */
    void (*lerp3)(float *target, const float *source, const int32_t *first, const float *weights, const float scale[3],
                  const float shift[3], size_t count);
    /* The same for one channel. */
    void (*lerp1)(float *target, const float *source, const int32_t *first, const float *weights, float scale,
                  float shift, size_t count);
    /* To nearest even. Bytes saturate and a NaN is 0; half and bfloat16 overflow to infinity, and a NaN stays one. */
    void (*to_uint8)(uint8_t *target, const float *source, size_t count);
    void (*to_half)(uint16_t *target, const float *source, size_t count);
    void (*to_bfloat16)(uint16_t *target, const float *source, size_t count);
} mr_rows_table;

/* The table of a level, which the caller may choose in tests; static. */
const mr_rows_table *mr_rows(mr_cpu_level level);

/* Decoding with this scratch fails with MR_CANCELLED at its next row once *stop is true. stop: borrowed; null: never */
void mr_image_scratch_stop(mr_image_scratch *scratch, const _Atomic bool *stop);

#endif
