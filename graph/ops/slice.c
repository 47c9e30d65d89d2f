/* Slices of tensors: Slice, and StridedSlice, whose masks represent the omitted parts of Python's slice expressions. */
#include "graph/ir/fold.h"
#include "graph/ir/graph.h"

static int64_t element(const mr_partial *vector, int32_t index)
{
    return vector != nullptr && index < vector->count && (vector->known >> index & 1) ? vector->values[index]
                                                                                      : INT64_MIN;
}

static mr_status slice_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], result = MR_SHAPE_UNKNOWN;
    int64_t length = -1;
    for (int32_t i = 1; i < 3; i++) {
        MR_TRY(mr_shape_expect_rank(call, i, 1, error));
        if (call->inputs[i].rank == 1) MR_TRY(mr_size_merge(length, call->inputs[i].dims[0], &length, error));
    }
    if (input.rank >= 0) MR_TRY(mr_size_merge(length, input.rank, &length, error));
    if (length < 0) return MR_OK;
    if (length > MR_RANK_MAX) return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
    MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, (int32_t)length, &result, error));
    for (int32_t i = 0; i < result.rank; i++) {
        int64_t begin = element(call->partials[1], i), size = element(call->partials[2], i);
        int64_t total = input.rank < 0 ? -1 : input.dims[i];
        if (size == INT64_MIN) continue;
        if (size >= 0) result.dims[i] = size;
        if (size < 0 && begin >= 0 && total >= 0) result.dims[i] = total - begin;
        bool is_outside = begin != INT64_MIN && total >= 0 && (begin < 0 || begin > total || size > total - begin);
        if (size < -1 || is_outside)
            return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %d of size %lld has no slice at %lld of size %lld", i,
                           (long long)total, (long long)begin, (long long)size);
    }
    call->outputs[0] = result;
    return MR_OK;
}

/* ---- StridedSlice ---- */

typedef struct masks {
    uint64_t begin, end, ellipsis, new_axis, shrink;
} masks;

static masks read_masks(const mr_attrs *attrs)
{
    return (masks){.begin = (uint64_t)mr_attr_int_or(attrs, "begin_mask", 0),
                   .end = (uint64_t)mr_attr_int_or(attrs, "end_mask", 0),
                   .ellipsis = (uint64_t)mr_attr_int_or(attrs, "ellipsis_mask", 0),
                   .new_axis = (uint64_t)mr_attr_int_or(attrs, "new_axis_mask", 0),
                   .shrink = (uint64_t)mr_attr_int_or(attrs, "shrink_axis_mask", 0)};
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Number of elements that begin:end:stride selects from size; -1 if it is not known. */
static int64_t strided_size(int64_t size, int64_t begin, int64_t end, int64_t stride, bool no_begin, bool no_end)
{
    bool is_forward = stride > 0;
    if (size < 0) {
        /* Even if both bounds are relative to the same end of an unknown size, only an empty interval has a known
         * size. */
        bool is_plain = is_forward && no_begin && no_end && stride == 1;
        return is_plain ? size : -1;
    }
    if ((!no_begin && begin == INT64_MIN) || (!no_end && end == INT64_MIN)) return -1;
    if (begin < 0) begin += size;
    if (end < 0) end += size;
    int64_t low = is_forward ? 0 : -1, high = is_forward ? size : size - 1;
    begin = no_begin ? (is_forward ? low : high) : clamp(begin, low, high);
    end = no_end ? (is_forward ? high : low) : clamp(end, low, high);
    int64_t span = is_forward ? end - begin : begin - end;
    if (span <= 0) return 0;
    stride = is_forward ? stride : stride == INT64_MIN ? INT64_MAX : -stride;
    return (span - 1) / stride + 1;
}

static mr_status push(mr_shape *shape, int64_t size, mr_error *error)
{
    if (shape->rank == MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    shape->dims[shape->rank++] = size;
    return MR_OK;
}

static mr_status strided_dimension(const mr_shape_call *call, masks m, int32_t i, int32_t axis, mr_shape *result,
                                   mr_error *error)
{
    int64_t size = call->inputs[0].dims[axis];
    int64_t begin = element(call->partials[1], i), end = element(call->partials[2], i);
    int64_t stride = element(call->partials[3], i);
    if (stride == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "stride %d is 0", i);
    if (m.shrink >> i & 1) {
        if (size >= 0 && begin != INT64_MIN && (begin < -size || begin >= size))
            return mr_fail(error, MR_INVALID_ARGUMENT, "index %lld is out of range for dimension %d of size %lld",
                           (long long)begin, axis, (long long)size);
        return MR_OK;
    }
    if (stride == INT64_MIN) return push(result, -1, error);
    return push(result, strided_size(size, begin, end, stride, m.begin >> i & 1, m.end >> i & 1), error);
}

static mr_status strided_slice_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], result = MR_SCALAR;
    int64_t count = -1;
    for (int32_t i = 1; i < 4; i++) {
        MR_TRY(mr_shape_expect_rank(call, i, 1, error));
        if (call->inputs[i].rank == 1) MR_TRY(mr_size_merge(count, call->inputs[i].dims[0], &count, error));
    }
    if (input.rank < 0 || count < 0) return MR_OK;
    if (count > 32) return mr_fail(error, MR_INVALID_ARGUMENT, "too many indices (%lld)", (long long)count);
    masks m = read_masks(call->attrs);
    int32_t axis = 0, consumed = 0;
    for (int32_t i = 0; i < count; i++) consumed += !(m.ellipsis >> i & 1) && !(m.new_axis >> i & 1);
    if (consumed > input.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%d indices for %d dimensions", consumed, input.rank);
    bool had_ellipsis = false;
    for (int32_t i = 0; i < count; i++) {
        if (m.ellipsis >> i & 1) {
            if (had_ellipsis) return mr_fail(error, MR_INVALID_ARGUMENT, "there is more than one ellipsis");
            had_ellipsis = true;
            for (int32_t rest = input.rank - consumed; rest > 0; rest--)
                MR_TRY(push(&result, input.dims[axis++], error));
        } else if (m.new_axis >> i & 1) {
            MR_TRY(push(&result, 1, error));
        } else {
            MR_TRY(strided_dimension(call, m, i, axis, &result, error));
            axis++;
        }
    }
    while (axis < input.rank) MR_TRY(push(&result, input.dims[axis++], error));
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status strided_slice_grad_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_from_input(call, 0, &call->outputs[0], error);
}

/* ---- Values known while the graph is built ---- */

static bool fold_slice(mr_folding *f)
{
    const mr_partial *vector = mr_fold_input(f, 0);
    int64_t begin = 0, size = 0;
    if (vector == nullptr || vector->rank != 1 || !mr_fold_scalar(f, 1, &begin) || !mr_fold_scalar(f, 2, &size))
        return false;
    if (begin < 0 || begin > vector->count) return false;
    if (size < 0) size = vector->count - begin;
    if (size > vector->count - begin) return false;
    for (int64_t i = 0; i < size; i++)
        if (!mr_fold_push_element(f, vector, begin + i)) return false;
    return true;
}

static bool fold_strided_slice(mr_folding *f)
{
    const mr_attrs *attrs = &f->node->attrs;
    const mr_partial *vector = mr_fold_input(f, 0);
    int64_t begin = 0, end = 0, stride = 0;
    if (vector == nullptr || vector->rank != 1 || !mr_fold_scalar(f, 3, &stride) || stride == 0) return false;
    if (mr_attr_int_or(attrs, "ellipsis_mask", 0) != 0 || mr_attr_int_or(attrs, "new_axis_mask", 0) != 0) return false;
    bool no_begin = mr_attr_int_or(attrs, "begin_mask", 0) & 1, no_end = mr_attr_int_or(attrs, "end_mask", 0) & 1;
    bool is_single = mr_attr_int_or(attrs, "shrink_axis_mask", 0) & 1;
    if (!no_begin && !mr_fold_scalar(f, 1, &begin)) return false;
    if (!no_end && !is_single && !mr_fold_scalar(f, 2, &end)) return false;
    int64_t count = vector->count;
    if (begin < 0) begin += count;
    if (is_single) return begin >= 0 && begin < count && mr_fold_push_element(f, vector, begin);
    if (end < 0) end += count;
    stride = clamp(stride, -count - 1, count + 1); /* a larger step also takes at most one element */
    begin = no_begin ? (stride > 0 ? 0 : count - 1) : stride > 0 ? clamp(begin, 0, count) : clamp(begin, -1, count - 1);
    end = no_end ? (stride > 0 ? count : -1) : stride > 0 ? clamp(end, 0, count) : clamp(end, -1, count - 1);
    for (; stride > 0 ? begin < end : begin > end; begin += stride)
        if (!mr_fold_push_element(f, vector, begin)) return false;
    return true;
}

static const mr_op slice_ops[] = {
    {.name = "Slice",
     .signature = "input: T, begin: Index, size: Index -> output: T",
     .attrs = "T: type; Index: {int32, int64}",
     .shape = slice_shape,
     .fold = fold_slice,
     .doc = "Returns the block of input that starts at begin and has the given size; size -1 takes the rest."},
    {.name = "StridedSlice",
     .signature = "input: T, begin: Index, end: Index, strides: Index -> output: T",
     .attrs = "T: type; Index: {int16, int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
              "new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = strided_slice_shape,
     .fold = fold_strided_slice,
     .doc =
         "Returns input[begin:end:strides] as in Python; the masks represent omitted bounds, ellipses and new axes."},
    {.name = "StridedSliceGrad",
     .signature = "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T",
     .attrs = "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
              "new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = strided_slice_grad_shape,
     .fusion = {.sum = "_SumOfStridedSliceGrads"},
     .doc = "Computes the gradient of StridedSlice: dy at the selected positions of a tensor of that shape, zeros "
            "elsewhere."},
};

const mr_op_table mr_ops_slice = {slice_ops, sizeof slice_ops / sizeof slice_ops[0]};
