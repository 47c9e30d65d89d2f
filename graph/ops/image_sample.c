/* Sampling images at computed points: glimpses, projective transforms, scaling with filters, resampling. */
#include "graph/ir/op.h"

/* [batch, size[0], size[1], channels], with the size in input `index`. */
static mr_status sized_image(const mr_shape_call *call, int64_t batch, int32_t index, int64_t channels,
                             mr_shape *result, mr_error *error)
{
    mr_shape size;
    MR_TRY(mr_shape_expect_rank(call, index, 1, error));
    MR_TRY(mr_shape_from_input(call, index, &size, error));
    MR_TRY(mr_shape_with_rank(size, 2, &size, error));
    *result = MR_SHAPE(batch, size.dims[0], size.dims[1], channels);
    return MR_OK;
}

static mr_status glimpse_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape images, offsets;
    int64_t batch, two;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &images, error));
    MR_TRY(mr_shape_with_rank(call->inputs[2], 2, &offsets, error));
    MR_TRY(mr_size_merge(images.dims[0], offsets.dims[0], &batch, error));
    MR_TRY(mr_size_merge(offsets.dims[1], 2, &two, error));
    mr_string noise = mr_attr_string_or(call->attrs, "noise", "");
    if (mr_attr_bool_or(call->attrs, "uniform_noise", false) && noise.size_bytes != 0 &&
        !mr_string_equal(noise, MR_STR("uniform")))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "The uniform_noise and noise should not be specified at the same time");
    return sized_image(call, batch, 1, images.dims[3], &call->outputs[0], error);
}

static mr_status transform_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape images;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &images, error));
    return sized_image(call, images.dims[0], 2, images.dims[3], &call->outputs[0], error);
}

static mr_status scale_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape images;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &images, error));
    return sized_image(call, images.dims[0], 1, images.dims[3], &call->outputs[0], error);
}

static mr_status scale_grad_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = call->inputs[1];
    return MR_OK;
}

/* The shape of the points, with the channels of the data in place of their coordinates. */
static mr_status resampler_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape data = call->inputs[0], points = call->inputs[1];
    MR_TRY(mr_shape_at_least(data, 1, error));
    MR_TRY(mr_shape_at_least(points, 1, error));
    if (points.rank > 0) points.dims[points.rank - 1] = data.rank > 0 ? data.dims[data.rank - 1] : -1;
    call->outputs[0] = points;
    return MR_OK;
}

#define GLIMPSE_ATTRS                                                                                                  \
    "centered: bool = true; normalized: bool = true; uniform_noise: bool = true; noise: string = 'uniform'"

static const mr_op image_sample_ops[] = {
    {.name = "ExtractGlimpse",
     .signature = "input: float, size: int32, offsets: float -> glimpse: float",
     .attrs = GLIMPSE_ATTRS,
     .shape = glimpse_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Extracts a window of the given size around a point of each image. Parts of the window outside the "
            "image are filled with noise."},
    {.name = "ExtractGlimpseV2",
     .signature = "input: float, size: int32, offsets: float -> glimpse: float",
     .attrs = GLIMPSE_ATTRS,
     .shape = glimpse_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Extracts a window of the given size around a point of each image; unless the offsets are centered and "
            "normalized, they are those of the window's corner."},
    {.name = "ImageProjectiveTransform",
     .signature = "images: dtype, transforms: float -> transformed_images: dtype",
     .attrs = "dtype: {uint8, int32, int64, half, float, double}; interpolation: string",
     .shape = mr_shape_unchanged,
     .doc = "Applies a projective transform to each image; tf.contrib.image's operator."},
    {.name = "ImageProjectiveTransformV2",
     .signature = "images: dtype, transforms: float, output_shape: int32 -> transformed_images: dtype",
     .attrs = "dtype: {uint8, int32, int64, half, float, double}; interpolation: string; fill_mode: string = "
              "'CONSTANT'",
     .shape = transform_shape,
     .doc = "Applies a projective transform to each image: a row of transforms maps points of the result to points of "
            "the image."},
    {.name = "ImageProjectiveTransformV3",
     .signature = "images: dtype, transforms: float, output_shape: int32, fill_value: float -> transformed_images: "
                  "dtype",
     .attrs = "dtype: {uint8, int32, int64, half, float, double}; interpolation: string; fill_mode: string = "
              "'CONSTANT'",
     .shape = transform_shape,
     .doc = "Applies a projective transform to each image; pixels from outside of it are fill_value."},
    {.name = "ScaleAndTranslate",
     .signature = "images: T, size: int32, scale: float, translation: float -> resized_images: float",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}; kernel_type: string = "
              "'lanczos3'; antialias: bool = true",
     .shape = scale_shape,
     .doc = "Scales and moves images, with a filter that is selected by name."},
    {.name = "ScaleAndTranslateGrad",
     .signature = "grads: T, original_image: T, scale: float, translation: float -> output: T",
     .attrs = "T: {float}; kernel_type: string = 'lanczos3'; antialias: bool = true",
     .shape = scale_grad_shape,
     .doc = "Computes the gradient of ScaleAndTranslate with respect to its images."},
    {.name = "Resampler",
     .signature = "data: T, warp: T -> output: T",
     .attrs = "T: {half, float, double}",
     .shape = resampler_shape,
     .doc = "Samples images at points [x, y] with bilinear interpolation, as if they were surrounded by zeros; "
            "tf.contrib.resampler's operator."},
    {.name = "ResamplerGrad",
     .signature = "data: T, warp: T, grad_output: T -> grad_data: T, grad_warp: T",
     .attrs = "T: {half, float, double}",
     .shape = mr_shape_each,
     .doc = "Computes the gradients of Resampler with respect to its images and points."},
};

const mr_op_table mr_ops_image_sample = {image_sample_ops, sizeof image_sample_ops / sizeof image_sample_ops[0]};
