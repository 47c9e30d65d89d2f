/* Resizing and cropping images. */
#include "graph/ir/op.h"

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

static mr_status crop_and_resize_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape images, boxes, indices, size;
    int64_t count;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &images, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 2, &boxes, error));
    MR_TRY(mr_shape_with_rank(call->inputs[2], 1, &indices, error));
    MR_TRY(mr_size_merge(boxes.dims[0], indices.dims[0], &count, error));
    MR_TRY(mr_size_merge(boxes.dims[1], 4, &boxes.dims[1], error));
    MR_TRY(mr_shape_from_input(call, 3, &size, error));
    MR_TRY(mr_shape_with_rank(size, 2, &size, error));
    call->outputs[0] = MR_SHAPE(count, size.dims[0], size.dims[1], images.dims[3]);
    return MR_OK;
}

static mr_status crop_grad_image_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_from_input(call, 3, &call->outputs[0], error));
    return mr_shape_with_rank(call->outputs[0], 4, &call->outputs[0], error);
}

static mr_status crop_grad_boxes_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = call->inputs[2];
    return MR_OK;
}

static const mr_op image_resize_ops[] = {
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
    {.name = "ResizeArea",
     .signature = "images: T, size: int32 -> resized_images: float",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; align_corners: bool = "
              "false",
     .shape = resize_shape,
     .doc = "Resizes images [batch, height, width, channels]: each result is the mean of the area that it covers."},
    {.name = "ResizeBicubic",
     .signature = "images: T, size: int32 -> resized_images: float",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; align_corners: bool = "
              "false; half_pixel_centers: bool = false",
     .shape = resize_shape,
     .doc = "Resizes images [batch, height, width, channels] with bicubic interpolation."},
    {.name = "ResizeBicubicGrad",
     .signature = "grads: float, original_image: T -> output: T",
     .attrs = "T: {float, double}; align_corners: bool = false; half_pixel_centers: bool = false",
     .shape = resize_grad_shape,
     .doc = "Computes the gradient of ResizeBicubic with respect to its images."},
    {.name = "ResizeNearestNeighborGrad",
     .signature = "grads: T, size: int32 -> output: T",
     .attrs = "T: {uint8, int8, int32, half, float, double, bfloat16}; align_corners: bool = false; "
              "half_pixel_centers: bool = false",
     .shape = resize_shape,
     .doc = "Computes the gradient of ResizeNearestNeighbor with respect to its images."},
    {.name = "CropAndResize",
     .signature = "image: T, boxes: float, box_ind: int32, crop_size: int32 -> crops: float",
     .attrs = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; method: {'bilinear', 'nearest'} = "
              "'bilinear'; extrapolation_value: float = 0",
     .shape = crop_and_resize_shape,
     .doc = "Cuts boxes from images and resizes each to crop_size."},
    {.name = "CropAndResizeGradImage",
     .signature = "grads: float, boxes: float, box_ind: int32, image_size: int32 -> output: T",
     .attrs = "T: {float, half, double}; method: {'bilinear', 'nearest'} = 'bilinear'",
     .shape = crop_grad_image_shape,
     .doc = "Computes the gradient of CropAndResize with respect to the images."},
    {.name = "CropAndResizeGradBoxes",
     .signature = "grads: float, image: T, boxes: float, box_ind: int32 -> output: float",
     .attrs = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; method: {'bilinear'} = 'bilinear'",
     .shape = crop_grad_boxes_shape,
     .doc = "Computes the gradient of CropAndResize with respect to the boxes."},
};

const mr_op_table mr_ops_image_resize = {image_resize_ops, sizeof image_resize_ops / sizeof image_resize_ops[0]};
