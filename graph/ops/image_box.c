/* Boxes in images: drawing, choosing and suppressing them. */
#include "graph/ir/op.h"

static mr_status images_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_at_least(call->inputs[0], 3, error));
    return mr_shape_unchanged(call, error);
}

static mr_status suppression_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape boxes, scores;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &boxes, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &scores, error));
    for (int32_t i = 2; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    MR_TRY(mr_size_merge(boxes.dims[0], scores.dims[0], &boxes.dims[0], error));
    MR_TRY(mr_size_merge(boxes.dims[1], 4, &boxes.dims[1], error));
    call->outputs[0] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status suppression_padded_shape(mr_shape_call *call, mr_error *error)
{
    int64_t count = -1;
    MR_TRY(suppression_shape(call, error));
    if (mr_attr_bool_or(call->attrs, "pad_to_max_output_size", false) && mr_shape_input_integer(call, 2, &count)) {
        if (count < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "max_output_size is %lld", (long long)count);
        call->outputs[0] = MR_SHAPE(count);
    }
    if (call->output_count == 3) call->outputs[1] = call->outputs[0];
    call->outputs[call->output_count - 1] = MR_SCALAR;
    return MR_OK;
}

static mr_status suppression_overlaps_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape overlaps, scores;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &overlaps, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &scores, error));
    for (int32_t i = 2; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    MR_TRY(mr_size_merge(overlaps.dims[0], scores.dims[0], &scores.dims[0], error));
    MR_TRY(mr_size_merge(overlaps.dims[0], overlaps.dims[1], &overlaps.dims[0], error));
    call->outputs[0] = MR_SHAPE(-1);
    return MR_OK;
}

/* The number of boxes of an image in the result, or -1. */
static int64_t combined_count(const mr_shape_call *call, int64_t classes)
{
    int64_t each, total, most;
    if (!mr_shape_input_integer(call, 3, &total)) return -1;
    if (!mr_attr_bool_or(call->attrs, "pad_per_class", false)) return total < 0 ? -1 : total;
    if (!mr_shape_input_integer(call, 2, &each) || each < 0 || classes < 0) return -1;
    if (__builtin_mul_overflow(each, classes, &most) || most > total) most = total;
    return most < 0 ? -1 : most;
}

static mr_status suppression_combined_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape boxes, scores;
    int64_t batch;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &boxes, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 3, &scores, error));
    for (int32_t i = 2; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    MR_TRY(mr_size_merge(boxes.dims[0], scores.dims[0], &batch, error));
    MR_TRY(mr_size_merge(boxes.dims[1], scores.dims[1], &boxes.dims[1], error));
    MR_TRY(mr_size_merge(boxes.dims[3], 4, &boxes.dims[3], error));
    if (boxes.dims[2] >= 0 && boxes.dims[2] != 1)
        MR_TRY(mr_size_merge(boxes.dims[2], scores.dims[2], &scores.dims[2], error));
    int64_t count = combined_count(call, scores.dims[2]);
    call->outputs[0] = MR_SHAPE(batch, count, 4);
    call->outputs[1] = call->outputs[2] = MR_SHAPE(batch, count);
    call->outputs[3] = MR_SHAPE(batch);
    return MR_OK;
}

static mr_status distorted_box_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape size, boxes;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 1, &size, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 3, &boxes, error));
    if (call->input_count > 2) MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    MR_TRY(mr_size_merge(size.dims[0], 3, &size.dims[0], error));
    MR_TRY(mr_size_merge(boxes.dims[2], 4, &boxes.dims[2], error));
    call->outputs[0] = call->outputs[1] = MR_SHAPE(3);
    call->outputs[2] = MR_SHAPE(1, 1, 4);
    return MR_OK;
}

static const mr_op image_box_ops[] = {
    {.name = "DrawBoundingBoxes",
     .signature = "images: T, boxes: float -> output: T",
     .attrs = "T: {float, half} = float",
     .shape = images_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Draws boxes [y_min, x_min, y_max, x_max] on a batch of images."},
    {.name = "DrawBoundingBoxesV2",
     .signature = "images: T, boxes: float, colors: float -> output: T",
     .attrs = "T: {float, half} = float",
     .shape = images_shape,
     .doc = "Draws boxes [y_min, x_min, y_max, x_max] on a batch of images, in the given colors."},
    {.name = "NonMaxSuppression",
     .signature = "boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32",
     .attrs = "iou_threshold: float = 0.5",
     .shape = suppression_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Selects boxes in the order of their scores, without those that overlap a selected one too much."},
    {.name = "NonMaxSuppressionV2",
     .signature = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> selected_indices: int32",
     .attrs = "T: {half, float} = float; T_threshold: {half, float} = float",
     .shape = suppression_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Selects boxes in the order of their scores, without those that overlap a selected one too much."},
    {.name = "NonMaxSuppressionV3",
     .signature = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: "
                  "T_threshold -> selected_indices: int32",
     .attrs = "T: {half, float} = float; T_threshold: {half, float} = float",
     .shape = suppression_shape,
     .doc = "Selects boxes whose score is above a threshold, without those that overlap a selected one too much."},
    {.name = "NonMaxSuppressionV4",
     .signature = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: "
                  "T_threshold -> selected_indices: int32, valid_outputs: int32",
     .attrs = "T: {half, float} = float; T_threshold: {half, float} = float; pad_to_max_output_size: bool = false",
     .shape = suppression_padded_shape,
     .doc = "Selects boxes like NonMaxSuppressionV3, and optionally pads the result."},
    {.name = "NonMaxSuppressionV5",
     .signature = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: "
                  "T -> selected_indices: int32, selected_scores: T, valid_outputs: int32",
     .attrs = "T: {half, float} = float; pad_to_max_output_size: bool = false",
     .shape = suppression_padded_shape,
     .doc = "Selects boxes like NonMaxSuppressionV4; instead of dropping a box it can reduce its score."},
    {.name = "NonMaxSuppressionWithOverlaps",
     .signature = "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, score_threshold: "
                  "float -> selected_indices: int32",
     .shape = suppression_overlaps_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Selects boxes in the order of their scores, given how much each pair overlaps."},
    {.name = "CombinedNonMaxSuppression",
     .signature = "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, "
                  "iou_threshold: float, score_threshold: float -> nmsed_boxes: float, nmsed_scores: float, "
                  "nmsed_classes: float, valid_detections: int32",
     .attrs = "pad_per_class: bool = false; clip_boxes: bool = true",
     .shape = suppression_combined_shape,
     .doc = "Selects boxes of each class, and then the best of all classes, for each image."},
    {.name = "SampleDistortedBoundingBox",
     .signature = "image_size: T, bounding_boxes: float -> begin: T, size: T, bboxes: float",
     .attrs = "T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0; min_object_covered: float = 0.1; "
              "aspect_ratio_range: list(float) = [0.75, 1.33]; area_range: list(float) = [0.05, 1]; max_attempts: int "
              "= 100; use_image_if_no_bounding_boxes: bool = false",
     .shape = distorted_box_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Chooses a random box that covers part of an object in an image."},
    {.name = "SampleDistortedBoundingBoxV2",
     .signature = "image_size: T, bounding_boxes: float, min_object_covered: float -> begin: T, size: T, bboxes: float",
     .attrs = "T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0; aspect_ratio_range: list(float) = "
              "[0.75, 1.33]; area_range: list(float) = [0.05, 1]; max_attempts: int = 100; "
              "use_image_if_no_bounding_boxes: bool = false",
     .shape = distorted_box_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Chooses a random box that covers at least min_object_covered of an object in an image."},
};

const mr_op_table mr_ops_image_box = {image_box_ops, sizeof image_box_ops / sizeof image_box_ops[0]};
