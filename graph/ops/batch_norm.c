/* Batch normalization and its statistics. */
#include "graph/ir/op.h"

/* NHWC and NDHWC have the channels last, NCHW and NCDHW as dimension 1; the length of the format determines the
 * rank. */
static void read_format(const mr_shape_call *call, int32_t *rank, int32_t *axis)
{
    mr_string format = mr_attr_string_or(call->attrs, "data_format", "NHWC");
    *rank = (int32_t)format.size_bytes;
    *axis = format.size_bytes > 1 && format.data[1] == 'C' ? 1 : *rank - 1;
}

static mr_status batch_norm_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape x, vector;
    int32_t rank = 4, axis = 3;
    read_format(call, &rank, &axis);
    MR_TRY(mr_shape_with_rank(call->inputs[0], rank, &x, error));
    int32_t vectors = mr_attr_bool_or(call->attrs, "is_training", true) ? 3 : 5;
    for (int32_t i = 1; i < vectors; i++) {
        MR_TRY(mr_shape_with_rank(call->inputs[i], 1, &vector, error));
        MR_TRY(mr_size_merge(x.dims[axis], vector.dims[0], &x.dims[axis], error));
    }
    call->outputs[0] = x;
    for (int32_t i = 1; i < call->output_count && i < 5; i++) call->outputs[i] = MR_SHAPE(x.dims[axis]);
    return MR_OK;
}

static mr_status batch_norm_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape x, vector;
    int32_t rank = 4, axis = 3;
    read_format(call, &rank, &axis);
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[1], &x, error));
    MR_TRY(mr_shape_with_rank(x, rank, &x, error));
    MR_TRY(mr_shape_with_rank(call->inputs[2], 1, &vector, error));
    MR_TRY(mr_size_merge(x.dims[axis], vector.dims[0], &x.dims[axis], error));
    call->outputs[0] = x;
    call->outputs[1] = call->outputs[2] = MR_SHAPE(x.dims[axis]);
    call->outputs[3] = call->outputs[4] = MR_SHAPE(0);
    return MR_OK;
}

/* Merges the channels of the vector inputs [first, last) into the last dimension of x. */
static mr_status merge_vectors(const mr_shape_call *call, int32_t first, int32_t last, mr_shape *x, mr_error *error)
{
    mr_shape vector;
    for (int32_t i = first; i < last; i++) {
        MR_TRY(mr_shape_with_rank(call->inputs[i], 1, &vector, error));
        MR_TRY(mr_size_merge(x->dims[3], vector.dims[0], &x->dims[3], error));
    }
    return MR_OK;
}

static mr_status global_norm_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape x;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &x, error));
    MR_TRY(merge_vectors(call, 1, 5, &x, error));
    call->outputs[0] = x;
    return MR_OK;
}

static mr_status global_norm_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape x;
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[4], &x, error));
    MR_TRY(mr_shape_with_rank(x, 4, &x, error));
    MR_TRY(merge_vectors(call, 1, 4, &x, error));
    call->outputs[0] = x;
    for (int32_t i = 1; i < 5; i++) call->outputs[i] = MR_SHAPE(x.dims[3]);
    return MR_OK;
}

static const mr_op batch_norm_ops[] = {
    {.name = "FusedBatchNorm",
     .signature = "x: T, scale: T, offset: T, mean: T, variance: T -> y: T, batch_mean: T, batch_variance: T, "
                  "reserve_space_1: T, reserve_space_2: T",
     .attrs = "T: {float}; epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_shape,
     .fusion = {.kernel = "_FusedBatchNormEx",
                .consumer = MR_FUSION_RELU,
                .activation = "Relu",
                .recompute = "_FusedBatchNormApply"},
     .doc = "Normalizes each channel with its mean and variance over the batch, or with the given ones."},
    {.name = "FusedBatchNormV2",
     .signature = "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, "
                  "reserve_space_1: U, reserve_space_2: U",
     .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_shape,
     .fusion = {.kernel = "_FusedBatchNormEx",
                .consumer = MR_FUSION_RELU,
                .activation = "Relu",
                .recompute = "_FusedBatchNormApply"},
     .doc = "Normalizes each channel with its mean and variance over the batch, or with the given ones."},
    {.name = "FusedBatchNormV3",
     .signature = "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, "
                  "reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
     .attrs = "T: {half, bfloat16, float}; U: {bfloat16, float}; epsilon: float = 0.0001; "
              "exponential_avg_factor: float = 1.0; data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'; "
              "is_training: bool = true",
     .shape = batch_norm_shape,
     .fusion = {.kernel = "_FusedBatchNormEx",
                .consumer = MR_FUSION_RELU,
                .activation = "Relu",
                .recompute = "_FusedBatchNormApply"},
     .doc = "Normalizes each channel with its mean and variance over the batch, or with the given ones."},
    {.name = "FusedBatchNormGrad",
     .signature = "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T -> x_backprop: T, "
                  "scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
     .attrs = "T: {float}; epsilon: float = 0.0001; data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_grad_shape,
     .fusion = {.kernel = "_FusedBatchNormGradEx", .producer = MR_FUSION_RELU_GRAD, .activation = "Relu"},
     .doc = "Computes the gradients of FusedBatchNorm."},
    {.name = "FusedBatchNormGradV2",
     .signature = "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U -> x_backprop: T, "
                  "scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U",
     .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_grad_shape,
     .fusion = {.kernel = "_FusedBatchNormGradEx", .producer = MR_FUSION_RELU_GRAD, .activation = "Relu"},
     .doc = "Computes the gradients of FusedBatchNormV2."},
    {.name = "FusedBatchNormGradV3",
     .signature = "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, "
                  "reserve_space_3: U -> x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, "
                  "reserve_space_5: U",
     .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; "
              "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_grad_shape,
     .fusion = {.kernel = "_FusedBatchNormGradEx", .producer = MR_FUSION_RELU_GRAD, .activation = "Relu"},
     .doc = "Computes the gradients of FusedBatchNormV3."},
    {.name = "BatchNormWithGlobalNormalization",
     .signature = "t: T, m: T, v: T, beta: T, gamma: T -> result: T",
     .attrs = "T: numbertype; variance_epsilon: float; scale_after_normalization: bool",
     .shape = global_norm_shape,
     .doc = "Normalizes t with the given mean m and variance v; used by old graphs."},
    {.name = "BatchNormWithGlobalNormalizationGrad",
     .signature = "t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T",
     .attrs = "T: numbertype; variance_epsilon: float; scale_after_normalization: bool",
     .shape = global_norm_grad_shape,
     .doc = "Computes the gradients of BatchNormWithGlobalNormalization."},
};

const mr_op_table mr_ops_batch_norm = {batch_norm_ops, sizeof batch_norm_ops / sizeof batch_norm_ops[0]};
