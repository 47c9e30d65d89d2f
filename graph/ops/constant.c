/* Constants, placeholders, and tensors that depend only on a shape or a range. */
#include "graph/ir/fold.h"
#include "graph/ir/graph.h"

#include <math.h>

static mr_status const_shape(mr_shape_call *call, mr_error *error)
{
    const mr_tensor *value = nullptr;
    mr_dtype dtype = MR_DTYPE_INVALID;
    MR_TRY(mr_attr_get_tensor(call->attrs, "value", &value, error));
    MR_TRY(mr_attr_get_type(call->attrs, "dtype", &dtype, error));
    if (value->dtype != dtype)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr value is %s, attr dtype %s", mr_dtype_name(value->dtype),
                       mr_dtype_name(dtype));
    call->outputs[0] = value->shape;
    return MR_OK;
}

static mr_status placeholder_shape(mr_shape_call *call, mr_error *error)
{
    return mr_attr_get_shape(call->attrs, "shape", &call->outputs[0], error);
}

static mr_status placeholder_with_default_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape merged;
    MR_TRY(mr_attr_get_shape(call->attrs, "shape", &call->outputs[0], error));
    return mr_shape_merge(call->outputs[0], call->inputs[0], &merged, error);
}

static mr_status fill_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    return mr_shape_from_input(call, 0, &call->outputs[0], error);
}

static mr_status lin_space_shape(mr_shape_call *call, mr_error *error)
{
    int64_t count = -1;
    for (int32_t i = 0; i < 3; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    if (mr_shape_input_integer(call, 2, &count) && count < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "num is %lld, expected at least 1", (long long)count);
    call->outputs[0] = MR_SHAPE(count);
    return MR_OK;
}

static bool scalar_number(const mr_tensor *tensor, double *value)
{
    if (tensor == nullptr) return false;
    switch (tensor->dtype) {
    case MR_FLOAT:
        *value = (double)mr_tensor_floats(tensor)[0];
        return true;
    case MR_DOUBLE:
        *value = mr_tensor_doubles(tensor)[0];
        return true;
    default:
        return false;
    }
}

/* Counts as the kernel does, in integers: double cannot represent every int64. */
static mr_status integer_range_shape(mr_shape_call *call, int64_t start, int64_t limit, int64_t delta, mr_error *error)
{
    if (delta == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "delta is 0");
    if (delta > 0 ? start > limit : start < limit)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a delta of %lld does not lead from %lld to %lld", (long long)delta,
                       (long long)start, (long long)limit);
    uint64_t distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta, count = distance / step + (distance % step != 0);
    if (count <= INT64_MAX) call->outputs[0] = MR_SHAPE((int64_t)count);
    return MR_OK;
}

static mr_status range_shape(mr_shape_call *call, mr_error *error)
{
    double numbers[3];
    int64_t integers[3];
    for (int32_t i = 0; i < 3; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    call->outputs[0] = MR_SHAPE(-1);
    if (mr_shape_input_integer(call, 0, &integers[0]) && mr_shape_input_integer(call, 1, &integers[1]) &&
        mr_shape_input_integer(call, 2, &integers[2]))
        return integer_range_shape(call, integers[0], integers[1], integers[2], error);
    for (int32_t i = 0; i < 3; i++)
        if (!scalar_number(call->constants[i], &numbers[i])) return MR_OK;
    double start = numbers[0], limit = numbers[1], delta = numbers[2];
    if (delta == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "delta is 0");
    if (delta > 0 ? start > limit : start < limit)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a delta of %g does not lead from %g to %g", delta, start, limit);
    double count = ceil(fabs((limit - start) / delta));
    if (count < 1e15) call->outputs[0] = MR_SHAPE((int64_t)count);
    return MR_OK;
}

/* ---- Values known while the graph is built ---- */

static bool fold_const(mr_folding *f)
{
    const mr_tensor *value = nullptr;
    if (mr_attr_get_tensor(&f->node->attrs, "value", &value, nullptr) != MR_OK) return false;
    if (value->dtype != MR_INT32 && value->dtype != MR_INT64) return false;
    int64_t count = mr_tensor_count(value);
    for (int64_t i = 0; i < count; i++)
        if (!mr_fold_push(f, true, value->dtype == MR_INT64 ? mr_tensor_int64s(value)[i] : mr_tensor_int32s(value)[i]))
            return false;
    return true;
}

static bool fold_fill(mr_folding *f)
{
    int64_t value = 0, count = mr_shape_count(f->node->outputs[0].shape);
    if (count < 0 || count > MR_PARTIAL_MAX || !mr_fold_scalar(f, 1, &value)) return false;
    for (int64_t i = 0; i < count; i++) (void)mr_fold_push(f, true, value);
    return true;
}

static bool fold_range(mr_folding *f)
{
    int64_t start = 0, limit = 0, delta = 0;
    if (!mr_fold_scalar(f, 0, &start) || !mr_fold_scalar(f, 1, &limit) || !mr_fold_scalar(f, 2, &delta) || delta == 0)
        return false;
    for (int64_t value = start; delta > 0 ? value < limit : value > limit;) {
        if (!mr_fold_push(f, true, value)) return false;
        if (__builtin_add_overflow(value, delta, &value)) break; /* past the limit */
    }
    return true;
}

static const mr_op constant_ops[] = {
    {.name = "Const",
     .signature = "-> output: dtype",
     .attrs = "value: tensor; dtype: type",
     .shape = const_shape,
     .fold = fold_const,
     .flags = MR_OP_NOT_DIFFERENTIABLE | MR_OP_CONSTANT,
     .doc = "Returns a constant tensor."},
    {.name = "Placeholder",
     .signature = "-> output: dtype",
     .attrs = "dtype: type; shape: shape = unknown",
     .shape = placeholder_shape,
     .flags = MR_OP_PLACEHOLDER,
     .doc = "Represents a value that must be fed."},
    {.name = "PlaceholderV2",
     .signature = "-> output: dtype",
     .attrs = "dtype: type; shape: shape",
     .shape = placeholder_shape,
     .flags = MR_OP_PLACEHOLDER,
     .doc = "Represents a value that must be fed; used by old graphs."},
    {.name = "PlaceholderWithDefault",
     .signature = "input: dtype -> output: dtype",
     .attrs = "dtype: type; shape: shape",
     .shape = placeholder_with_default_shape,
     .flags = MR_OP_PLACEHOLDER,
     .doc = "Returns input unless another value is fed instead."},
    {.name = "Fill",
     .signature = "dims: index_type, value: T -> output: T",
     .attrs = "T: type; index_type: {int32, int64} = int32",
     .shape = fill_shape,
     .fold = fold_fill,
     .flags = MR_OP_REPEATS,
     .doc = "Returns a tensor of shape dims filled with value."},
    {.name = "ZerosLike",
     .signature = "x: T -> y: T",
     .attrs = "T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE | MR_OP_REPEATS,
     .doc = "Returns zeros with the shape and dtype of x."},
    {.name = "OnesLike",
     .signature = "x: T -> y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, "
              "complex64, complex128, bool}",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE | MR_OP_REPEATS,
     .doc = "Returns ones with the shape and dtype of x."},
    {.name = "Range",
     .signature = "start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx",
     .attrs = "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32} = int32",
     .shape = range_shape,
     .fold = fold_range,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the sequence start, start + delta, … up to but not including limit."},
    {.name = "LinSpace",
     .signature = "start: T, stop: T, num: Tidx -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32",
     .shape = lin_space_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns num evenly spaced values from start to stop, both included."},
};

const mr_op_table mr_ops_constant = {constant_ops, sizeof constant_ops / sizeof constant_ops[0]};
