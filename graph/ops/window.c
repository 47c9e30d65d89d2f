/* Output sizes of sliding windows, with TensorFlow's rules: SAME gives ceil(size / stride); VALID and EXPLICIT count
 * only complete windows. */
#include "graph/ops/window.h"

#include <string.h>

static bool is_text(mr_string string, const char *text)
{
    return mr_string_equal(string, mr_string_from(text));
}

/* The two values for height and width in a list of four. */
static mr_status read_pair(const mr_attrs *attrs, const char *name, int32_t height_axis, int64_t pair[2],
                           mr_error *error)
{
    int64_t values[4];
    int32_t count = 0;
    MR_TRY(mr_attr_get_ints(attrs, name, values, 4, &count, error));
    if (count != 4) return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s must have 4 values, but has %d", name, count);
    for (int32_t i = 0; i < 4; i++)
        if (values[i] < 1 || values[i] > INT32_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s has %lld", name, (long long)values[i]);
    pair[0] = values[height_axis];
    pair[1] = values[height_axis + 1];
    return MR_OK;
}

static mr_status read_explicit(const mr_attrs *attrs, mr_window *window, mr_error *error)
{
    int64_t values[8];
    int32_t count = 0;
    MR_TRY(mr_attr_get_ints(attrs, "explicit_paddings", values, 8, &count, error));
    if (count != 8)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr explicit_paddings must have 8 values, but has %d", count);
    for (int32_t i = 0; i < 8; i++)
        if (values[i] < 0 || values[i] > INT32_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr explicit_paddings has %lld", (long long)values[i]);
    for (int32_t i = 0; i < 2; i++) {
        window->before[i] = values[2 * (window->height_axis + i)];
        window->after[i] = values[2 * (window->height_axis + i) + 1];
    }
    return MR_OK;
}

mr_status mr_window_read(const mr_attrs *attrs, mr_window *window, mr_error *error)
{
    mr_string padding = {0}, format = mr_attr_string_or(attrs, "data_format", "NHWC");
    *window = (mr_window){.height_axis = 1, .channel_axis = 3, .height = -1, .width = -1, .dilations = {1, 1}};
    if (is_text(format, "NCHW")) {
        window->height_axis = 2;
        window->channel_axis = 1;
    } else if (!is_text(format, "NHWC")) {
        return mr_fail(error, MR_UNIMPLEMENTED, "data_format is neither NHWC nor NCHW");
    }
    MR_TRY(read_pair(attrs, "strides", window->height_axis, window->strides, error));
    if (mr_attrs_find(attrs, "dilations") != nullptr)
        MR_TRY(read_pair(attrs, "dilations", window->height_axis, window->dilations, error));
    MR_TRY(mr_attr_get_string(attrs, "padding", &padding, error));
    window->padding = is_text(padding, "SAME")    ? MR_WINDOW_SAME
                      : is_text(padding, "VALID") ? MR_WINDOW_VALID
                                                  : MR_WINDOW_EXPLICIT;
    return window->padding == MR_WINDOW_EXPLICIT ? read_explicit(attrs, window, error) : MR_OK;
}

mr_status mr_window_places(mr_window_padding padding, int64_t size, int64_t extent, int64_t stride, int64_t dilation,
                           int64_t padded, int64_t *places, mr_error *error)
{
    *places = -1;
    if (size < 0) return MR_OK;
    if (padding == MR_WINDOW_SAME) {
        *places = size / stride + (size % stride != 0);
        return MR_OK;
    }
    if (extent < 0) return MR_OK;
    if (extent > INT32_MAX || size > INT64_MAX / 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a window of %lld over %lld is too large", (long long)extent,
                       (long long)size);
    int64_t reach = extent == 0 ? 0 : (extent - 1) * dilation + 1;
    int64_t whole = size + padded;
    *places = (whole - reach + stride) / stride;
    if (*places < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Computed output size would be negative: %lld [input_size: %lld, effective_filter_size: %lld, "
                       "stride: %lld]",
                       (long long)*places, (long long)size, (long long)reach, (long long)stride);
    return MR_OK;
}

static mr_status slide(const mr_window *window, int32_t axis, int64_t size, int64_t extent, int64_t *places,
                       mr_error *error)
{
    return mr_window_places(window->padding, size, extent, window->strides[axis], window->dilations[axis],
                            window->before[axis] + window->after[axis], places, error);
}

mr_status mr_window_slide(const mr_window *window, mr_shape input, int64_t channels, mr_shape *result, mr_error *error)
{
    *result = input;
    int64_t *height = &result->dims[window->height_axis];
    MR_TRY(slide(window, 0, height[0], window->height, &height[0], error));
    MR_TRY(slide(window, 1, height[1], window->width, &height[1], error));
    result->dims[window->channel_axis] = channels;
    return MR_OK;
}
