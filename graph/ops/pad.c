/* Padding. */
#include "graph/ir/op.h"

static mr_status pad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], paddings = call->inputs[1], result = MR_SHAPE_UNKNOWN;
    const mr_tensor *values = call->constants[1];
    int64_t rank = input.rank;
    MR_TRY(mr_shape_expect_rank(call, 1, 2, error));
    if (paddings.rank == 2) {
        int64_t two = 0;
        MR_TRY(mr_size_merge(paddings.dims[1], 2, &two, error));
        MR_TRY(mr_size_merge(rank, paddings.dims[0], &rank, error));
    }
    if (rank < 0) return MR_OK;
    if (rank > MR_RANK_MAX) return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
    MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, (int32_t)rank, &result, error));
    for (int32_t i = 0; values != nullptr && i < result.rank; i++) {
        bool is_wide = values->dtype == MR_INT64;
        int64_t before = is_wide ? mr_tensor_int64s(values)[2 * i] : mr_tensor_int32s(values)[2 * i];
        int64_t after = is_wide ? mr_tensor_int64s(values)[2 * i + 1] : mr_tensor_int32s(values)[2 * i + 1];
        if (before < 0 || after < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "padding %d is (%lld, %lld)", i, (long long)before,
                           (long long)after);
        if (input.rank < 0 || input.dims[i] < 0) continue;
        if (__builtin_add_overflow(input.dims[i], before, &result.dims[i]) ||
            __builtin_add_overflow(result.dims[i], after, &result.dims[i]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %d becomes too large", i);
    }
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status mirror_pad_shape(mr_shape_call *call, mr_error *error)
{
    return pad_shape(call, error);
}

static const mr_op pad_ops[] = {
    {.name = "Pad",
     .signature = "input: T, paddings: Tpaddings -> output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32",
     .shape = pad_shape,
     .doc = "Pads input with paddings[i] = (before, after) zeros along dimension i."},
    {.name = "PadV2",
     .signature = "input: T, paddings: Tpaddings, constant_values: T -> output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32",
     .shape = pad_shape,
     .doc = "Pads input with paddings[i] = (before, after) elements of constant_values along dimension i."},
    {.name = "MirrorPad",
     .signature = "input: T, paddings: Tpaddings -> output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32; mode: {'REFLECT', 'SYMMETRIC'}",
     .shape = mirror_pad_shape,
     .doc = "Pads input with its own elements, mirrored."},
};

const mr_op_table mr_ops_pad = {pad_ops, sizeof pad_ops / sizeof pad_ops[0]};
