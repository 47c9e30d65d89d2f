/* Resizing as two passes of weighted sums: rows first, then columns.
 *
 * Every method comes to a table for each axis: output i is the sum of weights[i * taps + k] x source[first[i] + k] over
 * k < taps. Neighbours beyond the edge are folded onto the edge, so that first[i] + taps is never past the source. */
#ifndef MR_KERNELS_RESIZE_H
#define MR_KERNELS_RESIZE_H

#include <millrace/image.h>

typedef struct mr_resize_axis {
    int32_t source_count, target_count;
    int32_t taps;   /* at most source_count; first[] never decreases */
    int32_t *first; /* target_count */
    float *weights; /* target_count x taps */
} mr_resize_axis;

/* Taps that a method needs on an axis. */
int32_t mr_resize_taps(const mr_resize_options *options, int32_t source_count, int32_t target_count);
/* Fills first and weights, which the caller provides, from the counts. */
void mr_resize_axis_fill(mr_resize_axis *axis, const mr_resize_options *options);
/* The same where the source is not the pixels [0, source_count) but a part of them: a target pixel stands for `scale`
 * source pixels, not more than source_count / target_count, and the first begins at `offset`. Not for align_corners. */
void mr_resize_axis_fill_part(mr_resize_axis *axis, const mr_resize_options *options, float scale, float offset);

/* The rule that options name: how many source pixels a target pixel stands for, and target pixel i's place among them. */
float mr_resize_scale(const mr_resize_options *options, int64_t source_count, int64_t target_count);
float mr_resize_coordinate(const mr_resize_options *options, float scale, int64_t i);

#endif
