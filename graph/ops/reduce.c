/* Reductions over dimensions: sums, means, maxima and others. */
#include "graph/ir/fold.h"
#include "graph/ops/shapes.h"

mr_status mr_reduction_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], result = MR_SCALAR;
    const mr_partial *axes = call->partials[1];
    const mr_tensor *constant = call->constants[1];
    bool keep = mr_attr_bool_or(call->attrs, "keep_dims", false), reduced[MR_RANK_MAX] = {0};
    bool is_empty = constant != nullptr && mr_tensor_count(constant) == 0;
    if (call->inputs[1].rank > 1) return mr_shape_expect_rank(call, 1, 1, error);
    if (input.rank < 0) return MR_OK;
    if (constant == nullptr || (axes == nullptr && !is_empty))
        return keep ? mr_shape_with_rank(MR_SHAPE_UNKNOWN, input.rank, &call->outputs[0], error) : MR_OK;
    for (int32_t i = 0; !is_empty && i < axes->count; i++) {
        int32_t axis = 0;
        MR_TRY(mr_shape_axis(axes->values[i], input.rank, &axis, error));
        reduced[axis] = true;
    }
    for (int32_t i = 0; i < input.rank; i++)
        if (!reduced[i] || keep) result.dims[result.rank++] = reduced[i] ? 1 : input.dims[i];
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status arg_extreme_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], result = MR_SCALAR;
    int64_t given = 0;
    int32_t axis = 0;
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    MR_TRY(mr_shape_at_least(input, 1, error));
    if (input.rank < 0) return MR_OK;
    if (!mr_shape_input_integer(call, 1, &given))
        return mr_shape_with_rank(MR_SHAPE_UNKNOWN, input.rank - 1, &call->outputs[0], error);
    MR_TRY(mr_shape_axis(given, input.rank, &axis, error));
    for (int32_t i = 0; i < input.rank; i++)
        if (i != axis) result.dims[result.rank++] = input.dims[i];
    call->outputs[0] = result;
    return MR_OK;
}

/* ---- Values known while the graph is built ---- */

typedef bool (*fold_element)(int64_t a, int64_t b, int64_t *result);

static bool add(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static bool multiply(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

/* Reduces all elements. The result is a scalar, or a vector of one element if dimensions are kept. */
static bool fold_all(mr_folding *f, fold_element function, int64_t start)
{
    const mr_partial *values = mr_fold_input(f, 0), *axes = mr_fold_input(f, 1);
    if (!mr_fold_is_whole(values) || axes == nullptr || (values->rank == 1 && axes->count != 1)) return false;
    int64_t result = start;
    for (int32_t i = 0; i < values->count; i++)
        if (!function(result, values->values[i], &result) || !mr_fold_fits(f, result)) return false;
    return mr_fold_push(f, true, result);
}

static bool fold_sum(mr_folding *f)
{
    return fold_all(f, add, 0);
}

static bool fold_prod(mr_folding *f)
{
    return fold_all(f, multiply, 1);
}

static const mr_op reduce_ops[] = {
    {.name = "Sum",
     .signature = "input: T, reduction_indices: Tidx -> output: T",
     .attrs = "keep_dims: bool = false; T: numbertype; Tidx: {int32, int64} = int32",
     .shape = mr_reduction_shape,
     .fold = fold_sum,
     .doc = "Computes the sum of elements over the dimensions in reduction_indices."},
    {.name = "Mean",
     .signature = "input: T, reduction_indices: Tidx -> output: T",
     .attrs = "keep_dims: bool = false; T: numbertype; Tidx: {int32, int64} = int32",
     .shape = mr_reduction_shape,
     .doc = "Computes the mean of elements over the dimensions in reduction_indices."},
    {.name = "Prod",
     .signature = "input: T, reduction_indices: Tidx -> output: T",
     .attrs = "keep_dims: bool = false; T: numbertype; Tidx: {int32, int64} = int32",
     .shape = mr_reduction_shape,
     .fold = fold_prod,
     .doc = "Computes the product of elements over the dimensions in reduction_indices."},
    {.name = "Max",
     .signature = "input: T, reduction_indices: Tidx -> output: T",
     .attrs = "keep_dims: bool = false; "
              "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, "
              "quint8, qint32, qint16, quint16}; "
              "Tidx: {int32, int64} = int32",
     .shape = mr_reduction_shape,
     .doc = "Computes the maximum of elements over the dimensions in reduction_indices."},
    {.name = "Min",
     .signature = "input: T, reduction_indices: Tidx -> output: T",
     .attrs = "keep_dims: bool = false; "
              "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, "
              "quint8, qint32, qint16, quint16}; "
              "Tidx: {int32, int64} = int32",
     .shape = mr_reduction_shape,
     .doc = "Computes the minimum of elements over the dimensions in reduction_indices."},
    {.name = "All",
     .signature = "input: bool, reduction_indices: Tidx -> output: bool",
     .attrs = "keep_dims: bool = false; Tidx: {int32, int64} = int32",
     .shape = mr_reduction_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Computes the logical AND of elements over the dimensions in reduction_indices."},
    {.name = "Any",
     .signature = "input: bool, reduction_indices: Tidx -> output: bool",
     .attrs = "keep_dims: bool = false; Tidx: {int32, int64} = int32",
     .shape = mr_reduction_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Computes the logical OR of elements over the dimensions in reduction_indices."},
    {.name = "EuclideanNorm",
     .signature = "input: T, reduction_indices: Tidx -> output: T",
     .attrs = "keep_dims: bool = false; T: numbertype; Tidx: {int32, int64} = int32",
     .shape = mr_reduction_shape,
     .doc = "Computes the Euclidean norm of elements over the dimensions in reduction_indices."},
    {.name = "ArgMax",
     .signature = "input: T, dimension: Tidx -> output: output_type",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, "
              "quint8, qint32, qint16, quint16, bool}; "
              "Tidx: {int16, int32, int64} = int32; output_type: {int16, uint16, int32, int64} = int64",
     .shape = arg_extreme_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the index of the largest element along dimension."},
    {.name = "ArgMin",
     .signature = "input: T, dimension: Tidx -> output: output_type",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, "
              "quint8, qint32, qint16, quint16, bool}; "
              "Tidx: {int32, int64} = int32; output_type: {int32, int64} = int64",
     .shape = arg_extreme_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the index of the smallest element along dimension."},
};

const mr_op_table mr_ops_reduce = {reduce_ops, sizeof reduce_ops / sizeof reduce_ops[0]};
