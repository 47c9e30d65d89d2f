/* Colors of images. */
#include "graph/ir/op.h"

static mr_status adjust_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_at_least(call->inputs[0], 3, error));
    return mr_shape_unchanged(call, error);
}

static mr_status adjust_contrast_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 1; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    return adjust_shape(call, error);
}

/* The last dimension has three channels. */
static mr_status color_space_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape images = call->inputs[0];
    MR_TRY(mr_shape_at_least(images, 1, error));
    if (images.rank > 0) MR_TRY(mr_size_merge(images.dims[images.rank - 1], 3, &images.dims[images.rank - 1], error));
    call->outputs[0] = images;
    return MR_OK;
}

static const mr_op image_color_ops[] = {
    {.name = "AdjustContrast",
     .signature = "images: T, contrast_factor: float, min_value: float, max_value: float -> output: float",
     .attrs = "T: {uint8, int8, int16, int32, int64, float, double}",
     .shape = adjust_contrast_shape,
     .doc = "Scales the distance of each value from the mean of its channel, and clips it; used by old graphs."},
    {.name = "AdjustContrastv2",
     .signature = "images: T, contrast_factor: float -> output: T",
     .attrs = "T: {half, float} = float",
     .shape = adjust_contrast_shape,
     .doc = "Scales the distance of each value from the mean of its channel."},
    {.name = "AdjustHue",
     .signature = "images: T, delta: float -> output: T",
     .attrs = "T: {half, float} = float",
     .shape = adjust_shape,
     .doc = "Rotates the hue of RGB images by delta, where 1 is a full rotation."},
    {.name = "AdjustSaturation",
     .signature = "images: T, scale: float -> output: T",
     .attrs = "T: {half, float} = float",
     .shape = adjust_shape,
     .doc = "Multiplies the saturation of RGB images by scale."},
    {.name = "HSVToRGB",
     .signature = "images: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double} = float",
     .shape = color_space_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Converts images from HSV to RGB."},
    {.name = "RGBToHSV",
     .signature = "images: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double} = float",
     .shape = color_space_shape,
     .doc = "Converts images from RGB to HSV."},
};

const mr_op_table mr_ops_image_color = {image_color_ops, sizeof image_color_ops / sizeof image_color_ops[0]};
