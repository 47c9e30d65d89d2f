/* Two-dimensional convolution: the geometry, computed once from attributes and shapes, and the functions behind Conv2D
 * and its gradients. Filters have the shape [filter_height, filter_width, in, out]. */
#ifndef MR_KERNELS_CONV_H
#define MR_KERNELS_CONV_H

#include "kernels/common.h"

typedef struct mr_conv {
    int64_t batch;
    int64_t in_height, in_width, in_channels;
    int64_t filter_height, filter_width;
    int64_t out_height, out_width, out_channels;
    int64_t stride_y, stride_x, dilation_y, dilation_x;
    int64_t pad_top, pad_left, pad_bottom, pad_right;
    bool nchw;
} mr_conv;

/* The attributes of convolution and pooling, read in prepare. Strides and windows are 1 if they are inputs. */
typedef struct mr_window_attrs {
    int64_t stride_y, stride_x, dilation_y, dilation_x;
    int64_t window_y, window_x; /* pooling: ksize */
    int64_t pads[4];            /* top, bottom, left, right; for explicit padding */
    enum { MR_PADDING_VALID, MR_PADDING_SAME, MR_PADDING_EXPLICIT } padding;
    bool nchw;
} mr_window_attrs;
mr_status mr_window_attrs_read(const mr_kernel_node *node, mr_window_attrs *attrs, mr_error *error);
/* Computes the output size along one dimension and the padding before and after it; a window that does not fit is an
 * error. */
mr_status mr_window_geometry(const mr_kernel_node *node, const mr_window_attrs *attrs, int dimension, int64_t input,
                             int64_t window, int64_t *output, int64_t *before, int64_t *after, mr_error *error);

/* Computes the geometry for an input and a filter. */
mr_status mr_conv_geometry(const mr_kernel_node *node, const mr_window_attrs *attrs, mr_shape input, mr_shape filter,
                           mr_conv *conv, mr_error *error);
/* Checks input `input`, the sizes of a gradient's input (0) or filter (1). */
mr_status mr_conv_check_sizes(const mr_kernel_call *call, int input, mr_error *error);
/* The shape of the result of Conv2DBackpropInput: input_sizes, which may have the height and the width alone. */
mr_status mr_conv_input_shape(const mr_kernel_call *call, const mr_window_attrs *attrs, mr_shape *shape,
                              mr_error *error);
/* Compares the shapes of a gradient's input, filter and out_backprop with TensorFlow's checks and messages; sizes along
 * height and width are not compared. */
mr_status mr_conv_check_backprop(const mr_kernel_node *node, const mr_window_attrs *attrs, mr_shape input,
                                 mr_shape filter, mr_shape gradient, mr_error *error);
/* Fails unless the gradient has the shape of the convolution's output. */
mr_status mr_conv_check_gradient(const mr_kernel_node *node, const mr_conv *conv, mr_shape gradient, mr_error *error);

/* The functions without suffix take floats in NHWC with dilation 1. Their scratch memory has the number of floats that
 * mr_conv_…_scratch returns for `threads` threads. */
typedef struct mr_conv_scratch {
    float *floats;
    int threads; /* maximum number of threads that work concurrently */
} mr_conv_scratch;
int64_t mr_conv_forward_scratch(const mr_conv *conv, int threads);
void mr_conv_forward(const mr_conv *conv, const float *input, const float *filter, float *output,
                     mr_conv_scratch scratch, mr_pool *pool);
int64_t mr_conv_backward_input_scratch(const mr_conv *conv, int threads);
void mr_conv_backward_input(const mr_conv *conv, const float *filter, const float *gradient, float *input_gradient,
                            mr_conv_scratch scratch, mr_pool *pool);
int64_t mr_conv_backward_filter_scratch(const mr_conv *conv, int threads);
void mr_conv_backward_filter(const mr_conv *conv, const float *input, const float *gradient, float *filter_gradient,
                             mr_conv_scratch scratch, mr_pool *pool);
/* A large filter of 1 x 1 without padding, which the functions above leave to these. */
bool mr_conv_is_pointwise(const mr_conv *conv);
bool mr_conv_pointwise_has_filter(const mr_conv *conv);
int64_t mr_conv_pointwise_forward_scratch(const mr_conv *conv, int threads);
void mr_conv_pointwise_forward(const mr_conv *conv, const float *input, const float *filter, float *output,
                               mr_conv_scratch scratch, mr_pool *pool);
int64_t mr_conv_pointwise_input_scratch(const mr_conv *conv, int threads);
void mr_conv_pointwise_input(const mr_conv *conv, const float *filter, const float *gradient, float *input_gradient,
                             mr_conv_scratch scratch, mr_pool *pool);
int64_t mr_conv_pointwise_filter_scratch(const mr_conv *conv, int threads);
void mr_conv_pointwise_filter(const mr_conv *conv, const float *input, const float *gradient, float *filter_gradient,
                              mr_conv_scratch scratch, mr_pool *pool);
/* A large filter over small images, which the functions above leave to these. `result` is what is computed; the operand
 * that is not needed, the input, filter or gradient, is null. */
typedef enum mr_conv_result { MR_CONV_OUTPUT, MR_CONV_INPUT, MR_CONV_FILTER } mr_conv_result;
bool mr_conv_has_patches(const mr_conv *conv, mr_conv_result result);
int64_t mr_conv_patches_scratch(const mr_conv *conv, mr_conv_result result, int threads);
void mr_conv_patches(const mr_conv *conv, mr_conv_result result, const float *input, const float *filter,
                     const float *gradient, float *to, mr_conv_scratch scratch, mr_pool *pool);

/* The reference implementations: float, double and int32, any layout, dilation and number of groups. */
void mr_conv_forward_plain(const mr_conv *conv, mr_dtype dtype, const void *input, const void *filter, void *output,
                           mr_pool *pool);
void mr_conv_backward_input_plain(const mr_conv *conv, mr_dtype dtype, const void *filter, const void *gradient,
                                  void *input_gradient, mr_pool *pool);
void mr_conv_backward_filter_plain(const mr_conv *conv, mr_dtype dtype, const void *input, const void *gradient,
                                   void *filter_gradient, mr_pool *pool);

#endif
