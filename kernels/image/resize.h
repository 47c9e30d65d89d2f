/* Resizing in two passes of weighted sums: first rows, then columns.
 *
 * Every method is expressed as a table for each axis: output i is the sum of weights[i * taps + k] x source[first[i] +
 * k] over k < taps. Taps beyond the edge are moved to the edge pixel, so that first[i] + taps is never past the
 * source. */
#ifndef MR_KERNELS_RESIZE_H
#define MR_KERNELS_RESIZE_H

#include <millrace/image.h>

typedef struct mr_resize_axis {
    int32_t source_count, target_count;
    int32_t taps;   /* at most source_count; first[] never decreases */
    int32_t *first; /* target_count */
    float *weights; /* target_count x taps */
} mr_resize_axis;

/* The number of taps that a method needs on an axis. */
int32_t mr_resize_taps(const mr_resize_options *options, int32_t source_count, int32_t target_count);
/* Fills first and weights, which the caller allocates, from the counts. */
void mr_resize_axis_fill(mr_resize_axis *axis, const mr_resize_options *options);
/* The same for a source that is part of an image: a target pixel corresponds to `scale` source pixels, at most
 * source_count / target_count, and the first target pixel starts at `offset`. Not for align_corners. */
void mr_resize_axis_fill_part(mr_resize_axis *axis, const mr_resize_options *options, float scale, float offset);

/* The coordinate rule that options select: the number of source pixels for each target pixel, and the source coordinate
 * of target pixel i. */
float mr_resize_scale(const mr_resize_options *options, int64_t source_count, int64_t target_count);
float mr_resize_coordinate(const mr_resize_options *options, float scale, int64_t i);

/* Elements [begin, begin + count) of a tensor of real numbers as floats: the tensor's own if they are floats, otherwise
 * a copy in `floats`. */
const float *mr_pixels_as_floats(const mr_tensor *tensor, int64_t begin, int64_t count, float *floats);

#endif
