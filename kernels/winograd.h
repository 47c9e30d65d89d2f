/* Convolution by Winograd's method: with tiles of 6 x 6 inputs, of which 3 x 3 taps make 4 x 4 outputs, or 5 x 5 taps
 * 2 x 2 outputs. Filters, inputs and results are polynomials, which are evaluated at the points 0, ±a, ±b and infinity
 * of each dimension; the product of their values at each of the 36 points is a product of matrices over the channels.
 * This takes 36 multiplications for 16 outputs instead of 144, and for 4 outputs instead of 100.
 *
 * The choice of a and b limits the rounding errors: with 1 and 2 they are about twice as large. */
#ifndef MR_KERNELS_WINOGRAD_H
#define MR_KERNELS_WINOGRAD_H

#include "kernels/conv.h"

constexpr int MR_WINOGRAD_SIDE = 6, MR_WINOGRAD_POINTS = 36;

/* ---- Transforms: winograd_transform.c. Values at a point are point_stride apart. ---- */

/* A tile of inputs. pixels: those of the tile, row by row; channels of each are read. to: 16 values are written for
 * every 16 channels or a part of them; missing channels are 0. */
void mr_winograd_input(const float *const pixels[MR_WINOGRAD_POINTS], int64_t channels, float *to,
                       int64_t point_stride);
/* Like it, for a square of size x size (2 or 4) pixels, the gradient of a tile of outputs. */
void mr_winograd_gradient(int size, const float *const *pixels, int64_t channels, float *to, int64_t point_stride);
/* A filter: from [taps][taps][depth][16] to [point][depth][16]. taps: 3 or 5. */
void mr_winograd_filter(int taps, const float *from, int64_t depth, float *to);

/* A square of size x size results (2 to 5) from the values at the points, of 16 channels. Rows, columns and channels
 * beyond those given are not stored. */
typedef struct mr_winograd_square {
    int size;
    const float *from;
    int64_t point_stride;
    float *to;
    int64_t row_stride, column_stride;
    int64_t rows, columns, channels;
    bool accumulate;
} mr_winograd_square;
/* zeros: 16 numbers, which become NaN if a result that is stored is not finite. */
void mr_winograd_output(const mr_winograd_square *square, float zeros[16]);

/* The tiles of the images of a batch. Pixel (y, x) of phase (p, q) is the image's pixel (y * step + p + top,
 * x * step + q + left); there are step * step phases. */
typedef struct mr_winograd_tiles {
    const float *images;
    const float *zeros; /* a pixel outside the image */
    int64_t height, width, channels;
    int64_t step, top, left;
    int64_t size;          /* distance of tiles, in pixels of a phase */
    int64_t rows, columns; /* of tiles, in an image */
} mr_winograd_tiles;
/* Transforms the inputs of a tile: to[point][phase][channels, rounded up to 16]. */
void mr_winograd_tile(const mr_winograd_tiles *tiles, int64_t tile, float *to, int64_t point_stride);

/* ---- Convolutions: winograd.c, winograd_filter.c ---- */

/* Whether the size and stride of the filter are supported. */
bool mr_winograd_is_possible(const mr_conv *conv);
/* Whether the method is faster than conv_fast.c, which depends on the sizes alone. */
bool mr_winograd_has_forward(const mr_conv *conv);
bool mr_winograd_has_input(const mr_conv *conv);
bool mr_winograd_has_filter(const mr_conv *conv);
/* As mr_conv_forward and the other two. False: a number is not finite, so the result is not valid. In a direct
 * convolution such a number changes only those outputs that depend on it. */
int64_t mr_winograd_forward_scratch(const mr_conv *conv, int threads);
bool mr_winograd_forward(const mr_conv *conv, const float *input, const float *filter, float *output,
                         mr_conv_scratch scratch, mr_pool *pool);
int64_t mr_winograd_input_scratch(const mr_conv *conv, int threads);
bool mr_winograd_backward_input(const mr_conv *conv, const float *filter, const float *gradient, float *input_gradient,
                                mr_conv_scratch scratch, mr_pool *pool);
int64_t mr_winograd_filter_scratch(const mr_conv *conv, int threads);
bool mr_winograd_backward_filter(const mr_conv *conv, const float *input, const float *gradient, float *filter_gradient,
                                 mr_conv_scratch scratch, mr_pool *pool);

#endif
