/* The window of convolution and pooling, which slides over height and width. */
#ifndef MR_GRAPH_OPS_WINDOW_H
#define MR_GRAPH_OPS_WINDOW_H

#include "graph/ir/op.h"

typedef enum mr_window_padding { MR_WINDOW_SAME, MR_WINDOW_VALID, MR_WINDOW_EXPLICIT } mr_window_padding;

typedef struct mr_window {
    int32_t height_axis; /* width is the next axis */
    int32_t channel_axis;
    int64_t height, width; /* of the window; -1: unknown */
    int64_t strides[2];
    int64_t dilations[2];
    mr_window_padding padding;
    int64_t before[2], after[2]; /* for MR_WINDOW_EXPLICIT */
} mr_window;

/* Reads strides, padding, explicit_paddings, data_format and dilations; the caller sets the window's size. */
mr_status mr_window_read(const mr_attrs *attrs, mr_window *window, mr_error *error);
/* The output shape for an input of rank 4, with `channels` channels. */
mr_status mr_window_slide(const mr_window *window, mr_shape input, int64_t channels, mr_shape *result, mr_error *error);

/* The output size along one dimension. size and extent, the window's size, are -1 if unknown; padded is the explicit
 * padding on both sides together. */
mr_status mr_window_places(mr_window_padding padding, int64_t size, int64_t extent, int64_t stride, int64_t dilation,
                           int64_t padded, int64_t *places, mr_error *error);

#endif
