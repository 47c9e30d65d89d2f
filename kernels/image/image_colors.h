/* Brightness, contrast, saturation and hue of rows of floats in 0…255, as TensorFlow's tf.image.adjust_… change floats.
 *
 * Brightness, contrast and normalising are a multiplication and an addition for each channel, so that neighbours among them
 * are one; saturation and hue look at the three channels of a pixel. A chain is what comes of it: a first multiply-add,
 * which the resize does by the way, then up to twice a change of saturation or hue and a multiply-add. Contrast needs the
 * mean of what it changes, over the whole image: the chain is cut in two there. */
#ifndef MR_KERNELS_IMAGE_COLORS_H
#define MR_KERNELS_IMAGE_COLORS_H

#include "base/cpu.h"

#include <millrace/image.h>

typedef struct mr_color_affine {
    float scale[3], shift[3]; /* value * scale + shift */
} mr_color_affine;

typedef struct mr_color_link {
    bool is_hue;
    float amount; /* the factor of saturation; sixths of a turn of hue, -6…6 */
    mr_color_affine then;
} mr_color_link;

typedef struct mr_color_chain {
    mr_color_affine first;
    mr_color_link links[2];
    int32_t count;
} mr_color_chain;

/* The changes that region asks for, in the options' order, and normalising at the end. With a contrast and no mean, only
 * those before the multiply-add that has it: then the result is true, the caller finds the mean of every channel, and a
 * second call with it fills the rest. */
bool mr_color_chain_fill(mr_color_chain *chain, const mr_image_options *options, const mr_image_region *region,
                         const double *mean);
/* errors  MR_INVALID_ARGUMENT: numbers that are not finite or out of their range, an order that is none; saturation or
 *         hue of one channel */
mr_status mr_color_check_options(const mr_image_options *options, mr_error *error);
mr_status mr_color_check_region(const mr_image_options *options, const mr_image_region *region, mr_error *error);

/* Loops over rows, by cpu level, with the same bits at each. */
typedef struct mr_color_table {
    /* row[i] = row[i] * scale[i % channels] + shift[i % channels] */
    void (*affine)(float *row, const mr_color_affine *affine, int32_t channels, int64_t count);
    /* Adds the row's elements to the sums of their channels. */
    void (*sum)(double sums[3], const float *row, int32_t channels, int64_t count);
    /* One link of the chain, over count pixels of three channels. */
    void (*link)(float *row, const mr_color_link *link, int64_t count);
    /* planes[c][i] = row[3 i + c], count of each. */
    void (*split)(float *const planes[3], const float *row, int64_t count);
} mr_color_table;
mr_color_table mr_color_loops(mr_cpu_level level);

#endif
