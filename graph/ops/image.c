/* Decoding and resizing of images. */
#include "graph/ir/op.h"

static mr_status decode_image_shape(mr_shape_call *call, mr_error *error)
{
    int64_t channels = mr_attr_int_or(call->attrs, "channels", 0);
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    if (channels < 0 || channels > 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr channels is %lld", (long long)channels);
    call->outputs[0] = MR_SHAPE(-1, -1, channels == 0 ? -1 : channels);
    return MR_OK;
}

static mr_status resize_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape images, size;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &images, error));
    MR_TRY(mr_shape_from_input(call, 1, &size, error));
    MR_TRY(mr_shape_with_rank(size, 2, &size, error));
    call->outputs[0] = MR_SHAPE(images.dims[0], size.dims[0], size.dims[1], images.dims[3]);
    return MR_OK;
}

static mr_status resize_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape gradients, original;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &gradients, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 4, &original, error));
    call->outputs[0] = MR_SHAPE(gradients.dims[0], original.dims[1], original.dims[2], gradients.dims[3]);
    return MR_OK;
}

static const mr_op image_ops[] = {
    {.name = "DecodeJpeg",
     .signature = "contents: string -> image: uint8",
     .attrs = "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; try_recover_truncated: bool = false; "
              "acceptable_fraction: float = 1.0; dct_method: string = ''",
     .shape = decode_image_shape,
     .doc = "Decodes a JPEG image to [height, width, channels]; channels 0 keeps those of the file."},
    {.name = "DecodePng",
     .signature = "contents: string -> image: dtype",
     .attrs = "channels: int = 0; dtype: {uint8, uint16} = uint8",
     .shape = decode_image_shape,
     .doc = "Decodes a PNG image to [height, width, channels]; channels 0 keeps those of the file."},
    {.name = "ResizeBilinear",
     .signature = "images: T, size: int32 -> resized_images: float",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}; "
              "align_corners: bool = false; half_pixel_centers: bool = false",
     .shape = resize_shape,
     .doc = "Resizes images [batch, height, width, channels] with bilinear interpolation."},
    {.name = "ResizeNearestNeighbor",
     .signature = "images: T, size: int32 -> resized_images: T",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; "
              "align_corners: bool = false; half_pixel_centers: bool = false",
     .shape = resize_shape,
     .doc = "Resizes images [batch, height, width, channels] with nearest neighbor interpolation."},
    {.name = "ResizeBilinearGrad",
     .signature = "grads: float, original_image: T -> output: T",
     .attrs = "T: {float, bfloat16, half, double}; align_corners: bool = false; half_pixel_centers: bool = false",
     .shape = resize_grad_shape,
     .doc = "Computes the gradient of ResizeBilinear with respect to its images."},
};

const mr_op_table mr_ops_image = {image_ops, sizeof image_ops / sizeof image_ops[0]};
