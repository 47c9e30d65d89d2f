/* Softmax, its losses, and operators on the largest logits. */
#include "graph/ir/op.h"

static mr_status softmax_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_at_least(call->inputs[0], 1, error));
    return mr_shape_unchanged(call, error);
}

static mr_status softmax_cross_entropy_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape both;
    MR_TRY(mr_shape_broadcast(call->inputs[0], call->inputs[1], &both, error));
    MR_TRY(mr_shape_with_rank(both, 2, &both, error));
    call->outputs[0] = MR_SHAPE(both.dims[0]);
    call->outputs[1] = both;
    return MR_OK;
}

static mr_status sparse_softmax_cross_entropy_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape features, labels;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &features, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &labels, error));
    MR_TRY(mr_size_merge(features.dims[0], labels.dims[0], &features.dims[0], error));
    call->outputs[0] = MR_SHAPE(features.dims[0]);
    call->outputs[1] = features;
    return MR_OK;
}

static mr_status in_top_k_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape predictions, targets;
    int64_t batch = 0;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &predictions, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &targets, error));
    MR_TRY(mr_size_merge(predictions.dims[0], targets.dims[0], &batch, error));
    call->outputs[0] = MR_SHAPE(batch);
    return MR_OK;
}

static mr_status top_k_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0];
    int64_t k = -1;
    MR_TRY(mr_shape_at_least(input, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    if (input.rank < 0) return MR_OK;
    int64_t *last = &input.dims[input.rank - 1];
    if (mr_shape_input_integer(call, 1, &k) && (k < 0 || (*last >= 0 && k > *last)))
        return mr_fail(error, MR_INVALID_ARGUMENT, "k is %lld of %lld", (long long)k, (long long)*last);
    *last = k;
    call->outputs[0] = call->outputs[1] = input;
    return MR_OK;
}

static const mr_op softmax_ops[] = {
    {.name = "Softmax",
     .signature = "logits: T -> softmax: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .shape = softmax_shape,
     .doc = "Computes softmax along the last dimension: exp(logits) divided by its sum."},
    {.name = "LogSoftmax",
     .signature = "logits: T -> logsoftmax: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .shape = softmax_shape,
     .doc = "Computes log softmax along the last dimension: logits - log(sum(exp(logits)))."},
    {.name = "SoftmaxCrossEntropyWithLogits",
     .signature = "features: T, labels: T -> loss: T, backprop: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .shape = softmax_cross_entropy_shape,
     .doc = "Computes the cross entropy of softmax(features) and labels for each row, and its gradient."},
    {.name = "SparseSoftmaxCrossEntropyWithLogits",
     .signature = "features: T, labels: Tlabels -> loss: T, backprop: T",
     .attrs = "T: {half, bfloat16, float, double}; Tlabels: {int32, int64} = int64",
     .shape = sparse_softmax_cross_entropy_shape,
     .fusion = {.scaled = "_ScaledSparseSoftmaxCrossEntropyWithLogits"},
     .doc = "Computes the cross entropy of softmax(features) and the class in labels for each row, and its gradient."},
    {.name = "L2Loss",
     .signature = "t: T -> output: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .shape = mr_shape_scalar,
     .doc = "Computes half the sum of the squares of t."},
    {.name = "InTopK",
     .signature = "predictions: float, targets: T -> precision: bool",
     .attrs = "k: int; T: {int32, int64} = int32",
     .shape = in_top_k_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns for each row whether the target is among the k largest predictions."},
    {.name = "InTopKV2",
     .signature = "predictions: float, targets: T, k: T -> precision: bool",
     .attrs = "T: {int32, int64} = int32",
     .shape = in_top_k_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns for each row whether the target is among the k largest predictions."},
    {.name = "TopKV2",
     .signature = "input: T, k: Tk -> values: T, indices: index_type",
     .attrs = "sorted: bool = true; T: realnumbertype; Tk: {int16, int32, int64} = int32; "
              "index_type: {int16, int32, int64} = int32",
     .shape = top_k_shape,
     .doc = "Returns the k largest elements of each row and their indices."},
};

const mr_op_table mr_ops_softmax = {softmax_ops, sizeof softmax_ops / sizeof softmax_ops[0]};
