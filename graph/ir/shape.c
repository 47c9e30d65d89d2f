/* Shapes while a graph is built: merging, broadcasting, and shapes that are the values of tensors.
 *
 * Unknown is -1, for sizes and ranks. Merging keeps what either side knows and fails if they contradict each other. The
 * errors are worded as TensorFlow's, which programs match. */
#include "graph/ir/op.h"

#include <inttypes.h>
#include <string.h>

mr_status mr_size_merge(int64_t a, int64_t b, int64_t *merged, mr_error *error)
{
    if (a >= 0 && b >= 0 && a != b)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Dimensions must be equal, but are %" PRId64 " and %" PRId64, a, b);
    *merged = a >= 0 ? a : b;
    return MR_OK;
}

mr_status mr_shape_merge(mr_shape a, mr_shape b, mr_shape *merged, mr_error *error)
{
    char left[MR_SHAPE_TEXT_SIZE], right[MR_SHAPE_TEXT_SIZE];
    if (a.rank >= 0 && b.rank >= 0 && a.rank != b.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Shapes must be equal rank, but are %d and %d", a.rank, b.rank);
    mr_shape result = a.rank >= 0 ? a : b;
    for (int32_t i = 0; i < a.rank && b.rank >= 0; i++) {
        if (mr_size_merge(a.dims[i], b.dims[i], &result.dims[i], nullptr) != MR_OK)
            return mr_fail(
                error, MR_INVALID_ARGUMENT,
                "Dimension %d in both shapes must be equal, but are %" PRId64 " and %" PRId64 ". Shapes are %s and %s.",
                i, a.dims[i], b.dims[i], mr_shape_text(a, left, sizeof left), mr_shape_text(b, right, sizeof right));
    }
    *merged = result;
    return MR_OK;
}

mr_status mr_shape_with_rank(mr_shape shape, int32_t rank, mr_shape *result, mr_error *error)
{
    if (shape.rank < 0) {
        if (rank > MR_RANK_MAX) return mr_fail(error, MR_UNIMPLEMENTED, "rank %d exceeds %d", rank, MR_RANK_MAX);
        *result = (mr_shape){.rank = rank};
        for (int32_t i = 0; i < rank; i++) result->dims[i] = -1;
        return MR_OK;
    }
    if (shape.rank != rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be rank %d but is rank %d", rank, shape.rank);
    *result = shape;
    return MR_OK;
}

mr_status mr_shape_at_least(mr_shape shape, int32_t rank, mr_error *error)
{
    if (shape.rank >= 0 && shape.rank < rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at least rank %d but is rank %d", rank, shape.rank);
    return MR_OK;
}

/* One dimension of a broadcast. If one size is unknown and the other greater than 1, the result is the latter. If the
 * other is 1 or unknown too, the result is unknown. */
static bool broadcast_size(int64_t a, int64_t b, int64_t *result)
{
    if (a == 1 || b == 1) {
        *result = a == 1 ? b : a;
        return true;
    }
    if (a < 0 || b < 0) {
        *result = a < 0 && b < 0 ? -1 : (a > b ? a : b);
        return true;
    }
    *result = a;
    return a == b;
}

mr_status mr_shape_broadcast(mr_shape a, mr_shape b, mr_shape *result, mr_error *error)
{
    if (a.rank < 0 || b.rank < 0) {
        *result = MR_SHAPE_UNKNOWN;
        return MR_OK;
    }
    mr_shape merged = {.rank = a.rank > b.rank ? a.rank : b.rank};
    for (int32_t i = 1; i <= merged.rank; i++) {
        int64_t from_a = i <= a.rank ? a.dims[a.rank - i] : 1;
        int64_t from_b = i <= b.rank ? b.dims[b.rank - i] : 1;
        if (!broadcast_size(from_a, from_b, &merged.dims[merged.rank - i]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "Dimensions must be equal, but are %" PRId64 " and %" PRId64,
                           from_a, from_b);
    }
    *result = merged;
    return MR_OK;
}

mr_status mr_shape_axis(int64_t axis, int32_t rank, int32_t *result, mr_error *error)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %" PRId64 " is not in [%d, %d)", axis, -rank, rank);
    *result = (int32_t)(axis < 0 ? axis + rank : axis);
    return MR_OK;
}

/* ---- Shapes in tensors ---- */

static mr_status append_size(mr_shape *shape, int64_t size, mr_error *error)
{
    if (size < -1) return mr_fail(error, MR_INVALID_ARGUMENT, "Invalid value in tensor used for shape: %" PRId64, size);
    if (shape->rank == MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "a shape has more than %d dimensions", MR_RANK_MAX);
    shape->dims[shape->rank++] = size;
    return MR_OK;
}

mr_status mr_shape_from_constant(const mr_tensor *constant, mr_shape *shape, mr_error *error)
{
    *shape = MR_SHAPE_UNKNOWN;
    if (constant == nullptr || (constant->dtype != MR_INT32 && constant->dtype != MR_INT64)) return MR_OK;
    if (constant->shape.rank > 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Input tensor must be rank 1, but was rank %d",
                       constant->shape.rank);
    /* As in TensorFlow, a scalar -1 means that the rank is unknown. */
    bool is_wide = constant->dtype == MR_INT64;
    if (constant->shape.rank == 0) {
        int64_t value = is_wide ? mr_tensor_int64s(constant)[0] : mr_tensor_int32s(constant)[0];
        if (value == -1) return MR_OK;
        return mr_fail(
            error, MR_INVALID_ARGUMENT,
            "Input tensor must be rank 1, or if its rank 0 it must have value -1 (representing an unknown shape).  "
            "Saw value: %" PRId64,
            value);
    }
    mr_shape result = MR_SCALAR;
    for (int64_t i = 0; i < constant->shape.dims[0]; i++)
        MR_TRY(append_size(&result, is_wide ? mr_tensor_int64s(constant)[i] : mr_tensor_int32s(constant)[i], error));
    *shape = result;
    return MR_OK;
}

mr_status mr_shape_from_input(const mr_shape_call *call, int32_t index, mr_shape *shape, mr_error *error)
{
    *shape = MR_SHAPE_UNKNOWN;
    if (call->constants[index] != nullptr) return mr_shape_from_constant(call->constants[index], shape, error);
    const mr_partial *partial = call->partials[index];
    if (partial != nullptr && partial->rank == 1) {
        mr_shape result = MR_SCALAR;
        for (int32_t i = 0; i < partial->count; i++)
            MR_TRY(append_size(&result, partial->known >> i & 1 ? partial->values[i] : -1, error));
        *shape = result;
        return MR_OK;
    }
    /* The length of the vector determines the rank. */
    mr_shape vector = call->inputs[index];
    if (vector.rank > 1) return mr_shape_expect_rank(call, index, 1, error);
    if (vector.rank == 1 && vector.dims[0] >= 0) {
        if (vector.dims[0] > MR_RANK_MAX)
            return mr_fail(error, MR_UNIMPLEMENTED, "a shape has %" PRId64 " dimensions (at most %d)", vector.dims[0],
                           MR_RANK_MAX);
        return mr_shape_with_rank(MR_SHAPE_UNKNOWN, (int32_t)vector.dims[0], shape, error);
    }
    return MR_OK;
}

bool mr_shape_input_integer(const mr_shape_call *call, int32_t index, int64_t *value)
{
    const mr_partial *partial = call->partials[index];
    if (partial == nullptr || partial->count != 1 || (partial->known & 1) == 0) return false;
    *value = partial->values[0];
    return true;
}

/* ---- Complete shape functions ---- */

mr_status mr_shape_expect_rank(const mr_shape_call *call, int32_t index, int32_t rank, mr_error *error)
{
    mr_shape shape = call->inputs[index];
    if (shape.rank < 0 || shape.rank == rank) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be rank %d but is rank %d (input %d)", rank, shape.rank,
                   index);
}

mr_status mr_shape_unchanged(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = call->inputs[0];
    call->output_handles[0] = call->input_handles[0];
    return MR_OK;
}

mr_status mr_shape_each(mr_shape_call *call, mr_error *)
{
    for (int32_t i = 0; i < call->output_count && i < call->input_count; i++) {
        call->outputs[i] = call->inputs[i];
        call->output_handles[i] = call->input_handles[i];
    }
    return MR_OK;
}

mr_status mr_shape_scalar(mr_shape_call *call, mr_error *)
{
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = MR_SCALAR;
    return MR_OK;
}

mr_status mr_shape_unknown(mr_shape_call *call, mr_error *)
{
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = MR_SHAPE_UNKNOWN;
    return MR_OK;
}

mr_status mr_shape_binary(mr_shape_call *call, mr_error *error)
{
    return mr_shape_broadcast(call->inputs[0], call->inputs[1], &call->outputs[0], error);
}

mr_status mr_shape_merge_all(mr_shape_call *call, mr_error *error)
{
    mr_shape merged = MR_SHAPE_UNKNOWN;
    for (int32_t i = 0; i < call->input_count; i++) MR_TRY(mr_shape_merge(merged, call->inputs[i], &merged, error));
    call->outputs[0] = merged;
    return MR_OK;
}
