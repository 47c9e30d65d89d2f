/* Shapes as values, and reshaping. */
#include "graph/ir/fold.h"
#include "graph/ir/graph.h"

/* Computes the single unknown size from the number of elements. */
static mr_status close_shape(mr_shape input, mr_shape *shape, mr_error *error)
{
    char from[MR_SHAPE_TEXT_SIZE], to[MR_SHAPE_TEXT_SIZE];
    int64_t count = mr_shape_count(input), product = 1;
    int32_t open = -1;
    if (shape->rank < 0 || count < 0) return MR_OK;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) {
            if (open >= 0) return MR_OK;
            open = i;
        } else if (__builtin_mul_overflow(product, shape->dims[i], &product)) {
            return mr_fail(error, MR_INVALID_ARGUMENT, "shape %s has too many elements",
                           mr_shape_text(*shape, to, sizeof to));
        }
    }
    if (open >= 0 && product == 0) return MR_OK;
    if (open >= 0 ? count % product != 0 : count != product)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s has %lld elements, which do not fit %s",
                       mr_shape_text(input, from, sizeof from), (long long)count, mr_shape_text(*shape, to, sizeof to));
    if (open >= 0) shape->dims[open] = count / product;
    return MR_OK;
}

static mr_status reshape_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_shape_from_input(call, 1, &shape, error));
    MR_TRY(close_shape(call->inputs[0], &shape, error));
    call->outputs[0] = shape;
    return MR_OK;
}

static mr_status quantized_reshape_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[1] = call->outputs[2] = MR_SCALAR;
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    return reshape_shape(call, error);
}

static mr_status shape_n_shape(mr_shape_call *call, mr_error *)
{
    for (int32_t i = 0; i < call->output_count && i < call->input_count; i++)
        call->outputs[i] = MR_SHAPE(call->inputs[i].rank);
    return MR_OK;
}

static mr_status shape_of_shape(mr_shape_call *call, mr_error *error)
{
    return shape_n_shape(call, error);
}

static mr_status expand_dims_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0];
    int64_t given = 0;
    int32_t axis = 0;
    if (input.rank < 0 || !mr_shape_input_integer(call, 1, &given)) return MR_OK;
    MR_TRY(mr_shape_axis(given, input.rank + 1, &axis, error));
    if (input.rank == MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    mr_shape result = {.rank = input.rank + 1};
    for (int32_t i = 0; i < result.rank; i++)
        result.dims[i] = i < axis ? input.dims[i] : i == axis ? 1 : input.dims[i - 1];
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status squeeze_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0];
    int64_t given[MR_RANK_MAX];
    int32_t count = 0;
    bool chosen[MR_RANK_MAX] = {0};
    MR_TRY(mr_attr_get_ints(call->attrs, "squeeze_dims", given, MR_RANK_MAX, &count, error));
    if (input.rank < 0) return MR_OK;
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = 0;
        MR_TRY(mr_shape_axis(given[i], input.rank, &axis, error));
        if (input.dims[axis] > 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %d has size %lld, not 1", axis,
                           (long long)input.dims[axis]);
        chosen[axis] = true;
    }
    mr_shape result = MR_SCALAR;
    for (int32_t i = 0; i < input.rank; i++) {
        if (count == 0 && input.dims[i] < 0) return MR_OK; /* it may be 1 */
        if (count == 0 ? input.dims[i] != 1 : !chosen[i]) result.dims[result.rank++] = input.dims[i];
    }
    call->outputs[0] = result;
    return MR_OK;
}

/* ---- Values known while the graph is built ---- */

static bool fold_shape(mr_folding *f)
{
    mr_shape shape = mr_output_shape(f->node->inputs[f->output]);
    for (int32_t i = 0; i < shape.rank; i++)
        if (!mr_fold_push(f, shape.dims[i] >= 0, shape.dims[i])) return false;
    return shape.rank >= 0;
}

static bool fold_rank(mr_folding *f)
{
    mr_shape shape = mr_output_shape(f->node->inputs[0]);
    return shape.rank >= 0 && mr_fold_push(f, true, shape.rank);
}

static bool fold_size(mr_folding *f)
{
    int64_t count = mr_shape_count(mr_output_shape(f->node->inputs[0]));
    return count >= 0 && mr_fold_push(f, true, count);
}

static const mr_op reshape_ops[] = {
    {.name = "QuantizedReshape",
     .signature = "tensor: T, shape: Tshape, input_min: float, input_max: float -> output: T, output_min: float, "
                  "output_max: float",
     .attrs = "T: type; Tshape: {int32, int64} = int32",
     .shape = quantized_reshape_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns a quantized tensor with another shape, and its range."},
    {.name = "Reshape",
     .signature = "tensor: T, shape: Tshape -> output: T",
     .attrs = "T: type; Tshape: {int32, int64} = int32",
     .shape = reshape_shape,
     .fold = mr_fold_pass,
     .flags = MR_OP_VIEW,
     .doc = "Reshapes tensor to the given shape, in which one size may be -1."},
    {.name = "Shape",
     .signature = "input: T -> output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = int32",
     .shape = shape_of_shape,
     .fold = fold_shape,
     .builder = "mr_shape_of",
     .role = MR_FUSION_SHAPE,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the shape of input as a vector."},
    {.name = "ShapeN",
     .signature = "input: N * T -> output: N * out_type",
     .attrs = "N: int >= 1; T: type; out_type: {int32, int64} = int32",
     .shape = shape_n_shape,
     .fold = fold_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the shape of each input as a vector."},
    {.name = "Rank",
     .signature = "input: T -> output: int32",
     .attrs = "T: type",
     .shape = mr_shape_scalar,
     .fold = fold_rank,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of dimensions of input."},
    {.name = "Size",
     .signature = "input: T -> output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = int32",
     .shape = mr_shape_scalar,
     .fold = fold_size,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of elements of input."},
    {.name = "ExpandDims",
     .signature = "input: T, dim: Tdim -> output: T",
     .attrs = "T: type; Tdim: {int32, int64} = int32",
     .shape = expand_dims_shape,
     .fold = mr_fold_pass,
     .flags = MR_OP_VIEW,
     .doc = "Inserts a dimension of size 1 at dim."},
    {.name = "Squeeze",
     .signature = "input: T -> output: T",
     .attrs = "T: type; squeeze_dims: list(int) >= 0 = []",
     .shape = squeeze_shape,
     .fold = mr_fold_pass,
     .flags = MR_OP_VIEW,
     .doc = "Removes the dimensions of size 1 from input, or only those in squeeze_dims."},
};

const mr_op_table mr_ops_reshape = {reshape_ops, sizeof reshape_ops / sizeof reshape_ops[0]};
