/* Concatenating, splitting, stacking and unstacking tensors. */
#include "graph/ir/fold.h"
#include "graph/ir/graph.h"

/* The sizes of the parts along the axis are added; all other sizes must be equal. */
static mr_status join(const mr_shape *parts, int32_t count, bool knows_axis, int64_t given, mr_shape *result,
                      mr_error *error)
{
    int32_t rank = -1, axis = 0;
    for (int32_t i = 0; i < count; i++) {
        MR_TRY(mr_shape_at_least(parts[i], 1, error));
        if (parts[i].rank < 0) continue;
        if (rank >= 0 && parts[i].rank != rank)
            return mr_fail(error, MR_INVALID_ARGUMENT, "ranks must be equal, but are %d and %d", rank, parts[i].rank);
        rank = parts[i].rank;
    }
    *result = MR_SHAPE_UNKNOWN;
    if (rank < 0) return MR_OK;
    MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, rank, result, error));
    if (!knows_axis) return MR_OK;
    MR_TRY(mr_shape_axis(given, rank, &axis, error));
    int64_t total = 0;
    for (int32_t i = 0; i < count; i++) {
        mr_shape part = parts[i];
        int64_t size = part.rank < 0 ? -1 : part.dims[axis];
        if (size < 0 || total < 0)
            total = -1;
        else if (__builtin_add_overflow(total, size, &total))
            return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %d becomes too large", axis);
        if (part.rank < 0) continue;
        part.dims[axis] = -1;
        MR_TRY(mr_shape_merge(*result, part, result, error));
    }
    result->dims[axis] = total;
    return MR_OK;
}

static mr_status concat_shape(mr_shape_call *call, mr_error *error)
{
    int64_t axis = 0;
    int32_t last = call->input_count - 1;
    MR_TRY(mr_shape_expect_rank(call, last, 0, error));
    bool knows_axis = mr_shape_input_integer(call, last, &axis);
    return join(call->inputs, last, knows_axis, axis, &call->outputs[0], error);
}

static mr_status concat_v1_shape(mr_shape_call *call, mr_error *error)
{
    int64_t axis = 0;
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    bool knows_axis = mr_shape_input_integer(call, 0, &axis);
    return join(call->inputs + 1, call->input_count - 1, knows_axis, axis, &call->outputs[0], error);
}

static mr_status concat_offset_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->output_count; i++) {
        MR_TRY(mr_shape_expect_rank(call, i + 1, 1, error));
        call->outputs[i] = call->inputs[i + 1];
    }
    return MR_OK;
}

static mr_status pack_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape part = MR_SHAPE_UNKNOWN;
    int32_t axis = 0;
    for (int32_t i = 0; i < call->input_count; i++) MR_TRY(mr_shape_merge(part, call->inputs[i], &part, error));
    if (part.rank < 0) return MR_OK;
    MR_TRY(mr_shape_axis(mr_attr_int_or(call->attrs, "axis", 0), part.rank + 1, &axis, error));
    if (part.rank == MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    mr_shape result = {.rank = part.rank + 1};
    for (int32_t i = 0; i < result.rank; i++)
        result.dims[i] = i < axis ? part.dims[i] : i == axis ? call->input_count : part.dims[i - 1];
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status unpack_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], part = MR_SCALAR;
    int32_t axis = 0;
    int64_t size = 0;
    MR_TRY(mr_shape_at_least(input, 1, error));
    if (input.rank < 0) return MR_OK;
    MR_TRY(mr_shape_axis(mr_attr_int_or(call->attrs, "axis", 0), input.rank, &axis, error));
    MR_TRY(mr_size_merge(input.dims[axis], call->output_count, &size, error));
    for (int32_t i = 0; i < input.rank; i++)
        if (i != axis) part.dims[part.rank++] = input.dims[i];
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = part;
    return MR_OK;
}

static mr_status split_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape part = call->inputs[1];
    int64_t given = 0;
    int32_t axis = 0;
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(mr_shape_at_least(part, 1, error));
    if (part.rank < 0) return MR_OK;
    if (mr_shape_input_integer(call, 0, &given)) {
        MR_TRY(mr_shape_axis(given, part.rank, &axis, error));
        if (part.dims[axis] >= 0 && part.dims[axis] % call->output_count != 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %d of size %lld cannot be split into %d equal parts",
                           axis, (long long)part.dims[axis], call->output_count);
        if (part.dims[axis] >= 0) part.dims[axis] /= call->output_count;
    } else {
        MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, part.rank, &part, error));
    }
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = part;
    return MR_OK;
}

/* The sizes of the pieces. One of them may be -1: the rest of total. */
static mr_status piece_sizes(const mr_partial *sizes, int32_t count, int64_t total, int64_t *pieces, mr_error *error)
{
    int64_t sum = 0;
    int32_t open = -1;
    for (int32_t i = 0; i < count; i++) {
        pieces[i] = sizes->known >> i & 1 ? sizes->values[i] : -1;
        if (pieces[i] < -1) return mr_fail(error, MR_INVALID_ARGUMENT, "part %d has a negative size", i);
        if (pieces[i] < 0 && open >= 0) return MR_OK;
        if (pieces[i] < 0)
            open = i;
        else if (__builtin_add_overflow(sum, pieces[i], &sum))
            return mr_fail(error, MR_INVALID_ARGUMENT, "the parts are too large");
    }
    if (total < 0) return MR_OK;
    if (open >= 0 ? sum > total : sum != total)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the parts add up to %lld, but the dimension has size %lld",
                       (long long)sum, (long long)total);
    if (open >= 0) pieces[open] = total - sum;
    return MR_OK;
}

static mr_status split_v_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape part = call->inputs[0];
    int64_t given = 0, pieces[MR_PARTIAL_MAX] = {0};
    int32_t axis = 0;
    const mr_partial *sizes = call->partials[1];
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    if (part.rank < 0) return MR_OK;
    if (!mr_shape_input_integer(call, 2, &given)) {
        MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, part.rank, &part, error));
        for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = part;
        return MR_OK;
    }
    MR_TRY(mr_shape_axis(given, part.rank, &axis, error));
    bool knows_sizes = sizes != nullptr && sizes->count == call->output_count;
    if (knows_sizes) MR_TRY(piece_sizes(sizes, sizes->count, part.dims[axis], pieces, error));
    for (int32_t i = 0; i < call->output_count; i++) {
        part.dims[axis] = knows_sizes ? pieces[i] : -1;
        call->outputs[i] = part;
    }
    return MR_OK;
}

/* ---- Values known while the graph is built ---- */

static bool fold_concat(mr_folding *f)
{
    for (int32_t i = 0; i + 1 < f->node->input_count; i++) {
        const mr_partial *piece = mr_fold_input(f, i);
        mr_shape shape = mr_output_shape(f->node->inputs[i]);
        if (shape.rank != 1 || shape.dims[0] < 0) return false;
        if (piece != nullptr) {
            if (!mr_fold_copy(f, piece)) return false;
        } else {
            for (int64_t j = 0; j < shape.dims[0]; j++)
                if (!mr_fold_push(f, false, 0)) return false;
        }
    }
    return true;
}

static bool fold_pack(mr_folding *f)
{
    for (int32_t i = 0; i < f->node->input_count; i++) {
        const mr_partial *element = mr_fold_input(f, i);
        mr_shape shape = mr_output_shape(f->node->inputs[i]);
        if (shape.rank != 0) return false;
        if (!(element != nullptr ? mr_fold_push_element(f, element, 0) : mr_fold_push(f, false, 0))) return false;
    }
    return true;
}

static bool fold_unpack(mr_folding *f)
{
    const mr_partial *vector = mr_fold_input(f, 0);
    return vector != nullptr && vector->rank == 1 && f->output < vector->count &&
           mr_fold_push_element(f, vector, f->output);
}

static const mr_op concat_ops[] = {
    {.name = "ConcatV2",
     .signature = "values: N * T, axis: Tidx -> output: T",
     .attrs = "N: int >= 2; T: type; Tidx: {int32, int64} = int32",
     .shape = concat_shape,
     .fold = fold_concat,
     .doc = "Concatenates values along dimension axis."},
    {.name = "Concat",
     .signature = "concat_dim: int32, values: N * T -> output: T",
     .attrs = "N: int >= 2; T: type",
     .shape = concat_v1_shape,
     .doc = "Concatenates values along dimension concat_dim."},
    {.name = "ConcatOffset",
     .signature = "concat_dim: int32, shape: N * shape_type -> offset: N * shape_type",
     .attrs = "N: int >= 2; shape_type: {int32, int64} = int32",
     .shape = concat_offset_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Computes the offset of each input within the output of a concatenation, from the inputs' shapes."},
    {.name = "Pack",
     .signature = "values: N * T -> output: T",
     .attrs = "N: int >= 1; T: type; axis: int = 0",
     .shape = pack_shape,
     .fold = fold_pack,
     .doc = "Stacks tensors of the same shape along a new dimension axis."},
    {.name = "Unpack",
     .signature = "value: T -> output: num * T",
     .attrs = "num: int >= 0; T: type; axis: int = 0",
     .shape = unpack_shape,
     .fold = fold_unpack,
     .doc = "Unstacks value along dimension axis into num tensors."},
    {.name = "Split",
     .signature = "split_dim: int32, value: T -> output: num_split * T",
     .attrs = "num_split: int >= 1; T: type",
     .shape = split_shape,
     .doc = "Splits value into num_split equal parts along dimension split_dim."},
    {.name = "SplitV",
     .signature = "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T",
     .attrs = "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = int64",
     .shape = split_v_shape,
     .doc = "Splits value into parts of size_splits along dimension split_dim."},
};

const mr_op_table mr_ops_concat = {concat_ops, sizeof concat_ops / sizeof concat_ops[0]};
