/* Rolling, reversing sequences, reinterpreting bits, changing rows, and the gradients of tiling and mirroring. */
#include "graph/ir/op.h"

static mr_status bitcast_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = call->inputs[0];
    size_t from = mr_dtype_size(call->input_dtypes[0]);
    size_t to = mr_dtype_size(mr_attr_type_or(call->attrs, "type", MR_DTYPE_INVALID));
    if (from == 0 || to == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "Cannot bitcast types of unknown size");
    if (from < to) {
        MR_TRY(mr_shape_at_least(result, 1, error));
        if (result.rank < 0) return MR_OK;
        int64_t last = result.dims[--result.rank], count = (int64_t)(to / from);
        result.dims[result.rank] = 0;
        if (last >= 0 && last != count)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "Cannot bitcast from %d to %d due to shape. %lld does not match %lld", call->input_dtypes[0],
                           mr_attr_type_or(call->attrs, "type", MR_DTYPE_INVALID), (long long)last, (long long)count);
    } else if (from > to && result.rank >= 0) {
        if (result.rank == MR_RANK_MAX)
            return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
        result.dims[result.rank++] = (int64_t)(from / to);
    }
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status reverse_sequence_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = call->inputs[0], lengths;
    int64_t batch = mr_attr_int_or(call->attrs, "batch_dim", 0), sequence = mr_attr_int_or(call->attrs, "seq_dim", 0);
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &lengths, error));
    if (result.rank < 0) return MR_OK;
    if (batch >= result.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "batch_dim must be < input rank: %lld vs. %d", (long long)batch,
                       result.rank);
    if (sequence >= result.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "seq_dim must be < input rank: %lld vs. %d", (long long)sequence,
                       result.rank);
    int32_t axis = 0;
    MR_TRY(mr_shape_axis(batch, result.rank, &axis, error));
    MR_TRY(mr_size_merge(result.dims[axis], lengths.dims[0], &result.dims[axis], error));
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status roll_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_at_least(call->inputs[0], 1, error));
    for (int32_t i = 1; i < 3; i++)
        if (call->inputs[i].rank > 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                           call->inputs[i].rank);
    return mr_shape_unchanged(call, error);
}

static mr_status unravel_index_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape dims, indices = call->inputs[0];
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &dims, error));
    if (indices.rank < 0) return MR_OK;
    call->outputs[0] = indices.rank == 0 ? MR_SHAPE(dims.dims[0]) : MR_SHAPE(dims.dims[0], mr_shape_count(indices));
    return MR_OK;
}

static mr_status mirror_pad_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], paddings;
    const mr_tensor *values = call->constants[1];
    MR_TRY(mr_shape_with_rank(call->inputs[1], 2, &paddings, error));
    MR_TRY(mr_size_merge(paddings.dims[1], 2, &paddings.dims[1], error));
    MR_TRY(mr_size_merge(paddings.dims[0], input.rank, &paddings.dims[0], error));
    if (paddings.dims[0] < 0) return MR_OK;
    if (paddings.dims[0] > MR_RANK_MAX) return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
    MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, (int32_t)paddings.dims[0], &call->outputs[0], error));
    if (values == nullptr || input.rank < 0) return MR_OK;
    for (int32_t i = 0; i < input.rank; i++) {
        int64_t sides[2];
        for (int32_t s = 0; s < 2; s++) {
            int32_t at = 2 * i + s;
            sides[s] = values->dtype == MR_INT64 ? mr_tensor_int64s(values)[at] : mr_tensor_int32s(values)[at];
            if (sides[s] < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "Paddings must be non-negative");
        }
        int64_t size = input.dims[i];
        if (size < 0) continue;
        if (sides[0] > size || sides[1] > size - sides[0])
            return mr_fail(error, MR_INVALID_ARGUMENT, "Negative dimension size caused by subtracting %lld from %lld",
                           (long long)(int64_t)((uint64_t)sides[0] + (uint64_t)sides[1]), (long long)size);
        call->outputs[0].dims[i] = size - sides[0] - sides[1];
    }
    return MR_OK;
}

static mr_status parallel_concat_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape, part;
    MR_TRY(mr_attr_get_shape(call->attrs, "shape", &shape, error));
    if (shape.rank < 1 || mr_shape_count(shape) < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "shape attr must be fully defined.");
    part = shape;
    part.dims[0] = 1;
    for (int32_t i = 0; i < call->input_count; i++) {
        if (mr_shape_count(call->inputs[i]) < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "All input shapes must be fully defined.");
        if (call->inputs[i].rank < 1 || call->inputs[i].dims[0] != 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Size of first dimension must be 1.");
        MR_TRY(mr_shape_merge(call->inputs[i], part, &part, error));
    }
    call->outputs[0] = shape;
    return MR_OK;
}

static mr_status empty_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_from_input(call, 0, &call->outputs[0], error);
}

/* The last dimension becomes k. */
static mr_status top_k_v1_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0];
    int64_t k = mr_attr_int_or(call->attrs, "k", 0);
    MR_TRY(mr_shape_at_least(input, 1, error));
    if (input.rank < 0) return MR_OK;
    int64_t *last = &input.dims[input.rank - 1];
    if (*last >= 0 && *last < k)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input must have last dimension >= k = %lld but is %lld",
                       (long long)k, (long long)*last);
    *last = k;
    call->outputs[0] = call->outputs[1] = input;
    return MR_OK;
}

static mr_status nth_element_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0];
    int64_t n = 0;
    MR_TRY(mr_shape_at_least(input, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    if (input.rank < 0) return MR_OK;
    int64_t last = input.dims[--input.rank];
    input.dims[input.rank] = 0;
    if (mr_shape_input_integer(call, 1, &n) && last >= 0 && last <= n)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Input must have last dimension > n = %lld but is %lld",
                       (long long)n, (long long)last);
    call->outputs[0] = input;
    return MR_OK;
}

static const mr_op rearrange_ops[] = {
    {.name = "Bitcast",
     .signature = "input: T -> output: type",
     .attrs = "T: numbertype; type: numbertype",
     .shape = bitcast_shape,
     .flags = MR_OP_VIEW | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the bytes of input as another dtype; a size ratio becomes or replaces the last dimension."},
    {.name = "ReverseSequence",
     .signature = "input: T, seq_lengths: Tlen -> output: T",
     .attrs = "seq_dim: int; batch_dim: int = 0; T: type; Tlen: {int32, int64} = int64",
     .shape = reverse_sequence_shape,
     .doc = "Reverses the first seq_lengths[i] elements along seq_dim of each slice i along batch_dim."},
    {.name = "Roll",
     .signature = "input: T, shift: Tshift, axis: Taxis -> output: T",
     .attrs = "T: type; Tshift: {int32, int64}; Taxis: {int32, int64}",
     .shape = roll_shape,
     .doc = "Shifts the elements of input along each axis by shift; those shifted over an end return at the other."},
    {.name = "UnravelIndex",
     .signature = "indices: Tidx, dims: Tidx -> output: Tidx",
     .attrs = "Tidx: {int32, int64} = int32",
     .shape = unravel_index_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Converts flat indices into coordinates in a tensor of shape dims."},
    {.name = "MirrorPadGrad",
     .signature = "input: T, paddings: Tpaddings -> output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32; mode: {'REFLECT', 'SYMMETRIC'}",
     .shape = mirror_pad_grad_shape,
     .doc = "Computes the gradient of MirrorPad: adds the mirrored elements to those that they were copied from."},
    {.name = "TileGrad",
     .signature = "input: T, multiples: int32 -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Computes the gradient of Tile: the sum of the repetitions; used by old graphs."},
    {.name = "ParallelConcat",
     .signature = "values: N * T -> output: T",
     .attrs = "N: int >= 1; T: type; shape: shape",
     .shape = parallel_concat_shape,
     .doc = "Concatenates tensors whose first dimension is 1 along that dimension."},
    {.name = "InplaceUpdate",
     .signature = "x: T, i: int32, v: T -> y: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x with the rows i replaced by the rows of v."},
    {.name = "InplaceAdd",
     .signature = "x: T, i: int32, v: T -> y: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x with the rows of v added to the rows i."},
    {.name = "InplaceSub",
     .signature = "x: T, i: int32, v: T -> y: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x with the rows of v subtracted from the rows i."},
    {.name = "DeepCopy",
     .signature = "x: T -> y: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns a copy of x in memory of its own."},
    {.name = "Empty",
     .signature = "shape: int32 -> output: dtype",
     .attrs = "dtype: type; init: bool = false",
     .shape = empty_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns a tensor of the given shape whose elements are zero if init is true, otherwise unspecified."},
    {.name = "TopK",
     .signature = "input: T -> values: T, indices: int32",
     .attrs = "k: int >= 0; sorted: bool = true; T: realnumbertype",
     .shape = top_k_v1_shape,
     .doc = "Returns the k largest elements of each row and their indices; used by old graphs."},
    {.name = "NthElement",
     .signature = "input: T, n: int32 -> values: T",
     .attrs = "reverse: bool = false; T: realnumbertype",
     .shape = nth_element_shape,
     .doc = "Returns the n-th smallest element of each row, or the n-th largest if reverse is true."},
};

const mr_op_table mr_ops_rearrange = {rearrange_ops, sizeof rearrange_ops / sizeof rearrange_ops[0]};
