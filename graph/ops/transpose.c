/* Transposing, repeating and reversing dimensions. */
#include "graph/ir/fold.h"

static mr_status tile_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], multiples = MR_SHAPE_UNKNOWN;
    MR_TRY(mr_shape_from_input(call, 1, &multiples, error));
    if (input.rank < 0 && multiples.rank < 0) return MR_OK;
    if (input.rank < 0) return mr_shape_with_rank(MR_SHAPE_UNKNOWN, multiples.rank, &call->outputs[0], error);
    MR_TRY(mr_shape_with_rank(multiples, input.rank, &multiples, error));
    for (int32_t i = 0; i < input.rank; i++) {
        bool known = input.dims[i] >= 0 && multiples.dims[i] >= 0;
        if (!known)
            input.dims[i] = -1;
        else if (__builtin_mul_overflow(input.dims[i], multiples.dims[i], &input.dims[i]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %d becomes too large", i);
    }
    call->outputs[0] = input;
    return MR_OK;
}

static mr_status transpose_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], result = MR_SHAPE_UNKNOWN;
    const mr_partial *perm = call->partials[1];
    int64_t length = call->inputs[1].rank == 1 ? call->inputs[1].dims[0] : -1;
    if (input.rank >= 0 && perm == nullptr && input.rank == 0 && length <= 0) length = 0;
    if (input.rank >= 0) MR_TRY(mr_size_merge(length, input.rank, &length, error));
    if (length < 0) return MR_OK;
    if (length > MR_RANK_MAX) return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
    MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, (int32_t)length, &result, error));
    uint32_t seen = 0;
    for (int32_t i = 0; perm != nullptr && i < perm->count && i < result.rank; i++) {
        if ((perm->known >> i & 1) == 0) continue;
        int32_t axis = 0;
        MR_TRY(mr_shape_axis(perm->values[i], result.rank, &axis, error));
        if (seen >> axis & 1) return mr_fail(error, MR_INVALID_ARGUMENT, "perm has dimension %d twice", axis);
        seen |= 1u << axis;
        result.dims[i] = input.rank < 0 ? -1 : input.dims[axis];
    }
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status invert_permutation_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_with_rank(call->inputs[0], 1, &call->outputs[0], error);
}

static mr_status reverse_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape dims;
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &dims, error));
    if (call->inputs[0].rank >= 0) MR_TRY(mr_size_merge(call->inputs[0].rank, dims.dims[0], &dims.dims[0], error));
    return mr_shape_unchanged(call, error);
}

/* The rank of the result is the larger one. */
static mr_status broadcast_args_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape a, b;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 1, &a, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &b, error));
    bool known = a.dims[0] >= 0 && b.dims[0] >= 0;
    call->outputs[0] = MR_SHAPE(!known ? -1 : a.dims[0] > b.dims[0] ? a.dims[0] : b.dims[0]);
    return MR_OK;
}

static mr_status broadcast_to_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape, broadcast;
    MR_TRY(mr_shape_from_input(call, 1, &shape, error));
    if (shape.rank >= 0 && call->inputs[0].rank >= 0) {
        if (call->inputs[0].rank > shape.rank)
            return mr_fail(error, MR_INVALID_ARGUMENT, "rank %d does not broadcast to rank %d", call->inputs[0].rank,
                           shape.rank);
        MR_TRY(mr_shape_broadcast(call->inputs[0], shape, &broadcast, error));
    }
    call->outputs[0] = shape;
    return MR_OK;
}

static mr_status two_vectors_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < 2; i++) {
        MR_TRY(mr_shape_expect_rank(call, i, 1, error));
        call->outputs[i] = MR_SHAPE(-1);
    }
    return MR_OK;
}

/* ---- Values known while the graph is built ---- */

static bool fold_invert_permutation(mr_folding *f)
{
    const mr_partial *permutation = mr_fold_input(f, 0);
    if (!mr_fold_is_whole(permutation)) return false;
    for (int32_t i = 0; i < permutation->count; i++) (void)mr_fold_push(f, false, 0);
    for (int32_t i = 0; i < permutation->count; i++) {
        int64_t target = permutation->values[i];
        if (target < 0 || target >= permutation->count || f->known >> target & 1) return false;
        f->values[target] = i;
        f->known |= 1ull << target;
    }
    return true;
}

static const mr_op transpose_ops[] = {
    {.name = "Tile",
     .signature = "input: T, multiples: Tmultiples -> output: T",
     .attrs = "T: type; Tmultiples: {int32, int64} = int32",
     .shape = tile_shape,
     .flags = MR_OP_REPEATS,
     .doc = "Repeats input multiples times along each dimension."},
    {.name = "Transpose",
     .signature = "x: T, perm: Tperm -> y: T",
     .attrs = "T: type; Tperm: {int32, int64} = int32",
     .shape = transpose_shape,
     .role = MR_FUSION_TRANSPOSE,
     .doc = "Permutes the dimensions of x: dimension i of the result is dimension perm[i] of x."},
    {.name = "ConjugateTranspose",
     .signature = "x: T, perm: Tperm -> y: T",
     .attrs = "T: type; Tperm: {int32, int64} = int32",
     .shape = transpose_shape,
     .doc = "Permutes the dimensions of x as Transpose does, and conjugates complex numbers."},
    {.name = "InvertPermutation",
     .signature = "x: T -> y: T",
     .attrs = "T: {int32, int64} = int32",
     .shape = invert_permutation_shape,
     .fold = fold_invert_permutation,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Computes the inverse of the permutation x."},
    {.name = "ReverseV2",
     .signature = "tensor: T, axis: Tidx -> output: T",
     .attrs = "Tidx: {int32, int64} = int32; "
              "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, "
              "complex64, complex128, string}",
     .shape = mr_shape_unchanged,
     .doc = "Reverses the elements of tensor along the dimensions in axis."},
    {.name = "Reverse",
     .signature = "tensor: T, dims: bool -> output: T",
     .attrs = "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, "
              "complex64, complex128, string}",
     .shape = reverse_shape,
     .doc = "Reverses the elements of tensor along dimension i if dims[i] is true; used by old graphs."},
    {.name = "BroadcastTo",
     .signature = "input: T, shape: Tidx -> output: T",
     .attrs = "T: type; Tidx: {int32, int64} = int32",
     .shape = broadcast_to_shape,
     .flags = MR_OP_REPEATS,
     .doc = "Broadcasts input to shape by repeating it along dimensions of size 1."},
    {.name = "BroadcastArgs",
     .signature = "s0: T, s1: T -> r0: T",
     .attrs = "T: {int32, int64} = int32",
     .shape = broadcast_args_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the shape to which operands of shapes s0 and s1 broadcast."},
    {.name = "BroadcastGradientArgs",
     .signature = "s0: T, s1: T -> r0: T, r1: T",
     .attrs = "T: {int32, int64} = int32",
     .shape = two_vectors_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the dimensions over which to sum the gradients of two broadcast operands of shapes s0 and s1."},
};

const mr_op_table mr_ops_transpose = {transpose_ops, sizeof transpose_ops / sizeof transpose_ops[0]};
