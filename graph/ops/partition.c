/* Splitting tensors by content: partitions, unique elements, differences of lists, edit distances. */
#include "graph/ir/op.h"

/* The dimensions of a after those of its prefix b, behind a first dimension of the given size. */
static mr_status rows_after(mr_shape a, mr_shape prefix, int64_t size, mr_shape *result, mr_error *error)
{
    MR_TRY(mr_shape_at_least(a, prefix.rank, error));
    for (int32_t i = 0; i < prefix.rank; i++) {
        int64_t merged;
        MR_TRY(mr_size_merge(a.dims[i], prefix.dims[i], &merged, error));
    }
    if (a.rank - prefix.rank + 1 > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    *result = (mr_shape){.rank = 1, .dims = {size}};
    for (int32_t i = prefix.rank; i < a.rank; i++) result->dims[result->rank++] = a.dims[i];
    return MR_OK;
}

static mr_status dynamic_partition_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape data = call->inputs[0], partitions = call->inputs[1], result;
    if (partitions.rank < 0 || data.rank < 0) return MR_OK;
    MR_TRY(rows_after(data, partitions, -1, &result, error));
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = result;
    return MR_OK;
}

static mr_status dynamic_stitch_shape(mr_shape_call *call, mr_error *error)
{
    int32_t count = call->input_count / 2;
    bool all_known = true;
    int64_t largest = -1;
    mr_shape merged = MR_SHAPE_UNKNOWN;
    for (int32_t i = 0; i < count; i++) {
        const mr_tensor *indices = call->constants[i];
        mr_shape shape = call->inputs[i], data = call->inputs[count + i], row;
        for (int64_t j = 0; indices != nullptr && j < mr_tensor_count(indices); j++)
            if (mr_tensor_int32s(indices)[j] > largest) largest = mr_tensor_int32s(indices)[j];
        all_known = all_known && indices != nullptr;
        if (shape.rank < 0 || data.rank < 0) continue;
        MR_TRY(rows_after(data, shape, -1, &row, error));
        MR_TRY(mr_shape_merge(merged, row, &merged, error));
    }
    if (merged.rank >= 0 && all_known) merged.dims[0] = largest + 1;
    call->outputs[0] = merged;
    return MR_OK;
}

static mr_status edit_distance_shape(mr_shape_call *call, mr_error *error)
{
    static const int32_t ranks[] = {2, 1, 1, 2, 1, 1};
    const mr_tensor *hypothesis = call->constants[2], *truth = call->constants[5];
    for (int32_t i = 0; i < 6; i++) MR_TRY(mr_shape_expect_rank(call, i, ranks[i], error));
    if (hypothesis == nullptr || truth == nullptr) return MR_OK;
    int64_t count = mr_tensor_count(hypothesis);
    if (count != mr_tensor_count(truth))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Num elements of hypothesis_shape does not match truth_shape: %lld vs. %lld", (long long)count,
                       (long long)mr_tensor_count(truth));
    if (count < 1 || count - 1 > MR_RANK_MAX) return MR_OK;
    mr_shape result = {.rank = (int32_t)count - 1};
    for (int32_t i = 0; i < result.rank; i++) {
        int64_t a = mr_tensor_int64s(hypothesis)[i], b = mr_tensor_int64s(truth)[i];
        result.dims[i] = a > b ? a : b;
        if (result.dims[i] < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "shape %d is negative", i);
    }
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status list_diff_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    call->outputs[0] = call->outputs[1] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status unique_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    call->outputs[0] = MR_SHAPE(-1);
    call->outputs[1] = call->inputs[0];
    if (call->output_count > 2) call->outputs[2] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status unique_v2_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0];
    const mr_tensor *axes = call->constants[1];
    int64_t size = -1;
    if (axes != nullptr && input.rank >= 0) {
        int64_t count = mr_tensor_count(axes);
        if (count > 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "axis does not support input tensors larger than 1 elements.");
        if (count == 0 && input.rank != 1) return mr_fail(error, MR_INVALID_ARGUMENT, "x expects a 1D vector.");
        int64_t axis = count == 0 ? 0 : axes->dtype == MR_INT64 ? mr_tensor_int64s(axes)[0] : mr_tensor_int32s(axes)[0];
        if (axis < -input.rank || axis >= input.rank)
            return mr_fail(error, MR_INVALID_ARGUMENT, "axis expects to be in the range [%d, %d)", -input.rank,
                           input.rank);
        size = input.dims[axis < 0 ? axis + input.rank : axis];
    }
    if (input.rank >= 0) MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, input.rank, &call->outputs[0], error));
    call->outputs[1] = MR_SHAPE(size);
    if (call->output_count > 2) call->outputs[2] = MR_SHAPE(-1);
    return MR_OK;
}

static const mr_op partition_ops[] = {
    {.name = "DynamicPartition",
     .signature = "data: T, partitions: int32 -> outputs: num_partitions * T",
     .attrs = "num_partitions: int >= 1; T: type",
     .shape = dynamic_partition_shape,
     .doc = "Distributes the rows of data to num_partitions tensors, by the numbers in partitions."},
    {.name = "DynamicStitch",
     .signature = "indices: N * int32, data: N * T -> merged: T",
     .attrs = "N: int >= 1; T: type",
     .shape = dynamic_stitch_shape,
     .doc = "Returns a tensor with the rows of each data at its indices; of equal indices the last wins."},
    {.name = "ParallelDynamicStitch",
     .signature = "indices: N * int32, data: N * T -> merged: T",
     .attrs = "N: int >= 1; T: type",
     .shape = dynamic_stitch_shape,
     .doc = "Does what DynamicStitch does, for indices without duplicates."},
    {.name = "EditDistance",
     .signature = "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, "
                  "truth_values: T, truth_shape: int64 -> output: float",
     .attrs = "normalize: bool = true; T: type",
     .shape = edit_distance_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Computes the Levenshtein distance between the sequences of two sparse tensors."},
    {.name = "ListDiff",
     .signature = "x: T, y: T -> out: T, idx: out_idx",
     .attrs = "T: type; out_idx: {int32, int64} = int32",
     .shape = list_diff_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the elements of x that are not in y, and their indices in x."},
    {.name = "Unique",
     .signature = "x: T -> y: T, idx: out_idx",
     .attrs = "T: type; out_idx: {int32, int64} = int32",
     .shape = unique_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the distinct elements of the vector x in order of appearance, and the index of each element of x "
            "among them."},
    {.name = "UniqueV2",
     .signature = "x: T, axis: Taxis -> y: T, idx: out_idx",
     .attrs = "T: type; Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32",
     .shape = unique_v2_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the distinct slices of x along axis in order of appearance, and the index of each slice of x "
            "among them."},
    {.name = "UniqueWithCounts",
     .signature = "x: T -> y: T, idx: out_idx, count: out_idx",
     .attrs = "T: type; out_idx: {int32, int64} = int32",
     .shape = unique_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns what Unique returns, and how often each distinct element occurs."},
    {.name = "UniqueWithCountsV2",
     .signature = "x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx",
     .attrs = "T: type; Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32",
     .shape = unique_v2_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns what UniqueV2 returns, and how often each distinct slice occurs."},
};

const mr_op_table mr_ops_partition = {partition_ops, sizeof partition_ops / sizeof partition_ops[0]};
