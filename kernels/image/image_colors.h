/* Brightness, contrast, saturation and hue of rows of floats in 0…255, with the results of TensorFlow's
 * tf.image.adjust_… for floats.
 *
 * Brightness, contrast and normalization are a multiply-add for each channel, so that adjacent ones are combined into
 * one; saturation and hue depend on the three channels of a pixel. The combined steps form a chain: a first
 * multiply-add, which the resize performs, then up to two links, each a change of saturation or hue and a multiply-add.
 * Contrast needs the mean of its input over the complete image, so it divides the chain in two. */
#ifndef MR_KERNELS_IMAGE_COLORS_H
#define MR_KERNELS_IMAGE_COLORS_H

#include "base/cpu.h"

#include <millrace/image.h>

typedef struct mr_color_affine {
    float scale[3], shift[3]; /* value * scale + shift */
} mr_color_affine;

typedef struct mr_color_link {
    bool is_hue;
    float amount; /* the saturation factor, or the hue rotation in sixths of a full rotation, -6…6 */
    mr_color_affine then;
} mr_color_link;

typedef struct mr_color_chain {
    mr_color_affine first;
    mr_color_link links[2];
    int32_t count;
} mr_color_chain;

/* Fills the chain with the changes that region requests, in the options' order, and the normalization at the end. If
 * there is a contrast and mean is null, only the steps before the multiply-add that contains the contrast are filled
 * and the result is true: the caller computes the mean of every channel and calls again with it, which fills the other
 * steps. */
bool mr_color_chain_fill(mr_color_chain *chain, const mr_image_options *options, const mr_image_region *region,
                         const double *mean);
/* errors  MR_INVALID_ARGUMENT: a number that is not finite or out of range; an invalid order; saturation or hue of one
 *         channel */
mr_status mr_color_check_options(const mr_image_options *options, mr_error *error);
mr_status mr_color_check_region(const mr_image_options *options, const mr_image_region *region, mr_error *error);

/* Loops over rows for a CPU level; the results are identical at all levels. */
typedef struct mr_color_table {
    /* row[i] = row[i] * scale[i % channels] + shift[i % channels] */
    void (*affine)(float *row, const mr_color_affine *affine, int32_t channels, int64_t count);
    /* Adds each element of the row to the sum of its channel. */
    void (*sum)(double sums[3], const float *row, int32_t channels, int64_t count);
    /* One link of the chain, over count pixels of three channels. */
    void (*link)(float *row, const mr_color_link *link, int64_t count);
    /* planes[c][i] = row[3 i + c] for i < count. */
    void (*split)(float *const planes[3], const float *row, int64_t count);
} mr_color_table;
mr_color_table mr_color_loops(mr_cpu_level level);

#endif
