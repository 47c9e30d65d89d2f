/* Sparse tensors: a matrix of indices, a vector of values and the dense shape. */
#include "graph/ir/op.h"

static int64_t size_at(mr_shape shape, int32_t i)
{
    return shape.rank <= i ? -1 : shape.dims[i];
}

/* Inputs first to first + 2 are a sparse tensor. */
static mr_status expect_sparse(const mr_shape_call *call, int32_t first, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, first, 2, error));
    MR_TRY(mr_shape_expect_rank(call, first + 1, 1, error));
    return mr_shape_expect_rank(call, first + 2, 1, error);
}

static mr_status sparse_add_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_with_rank(call->inputs[2], 1, &call->outputs[2], error));
    call->outputs[0] = MR_SHAPE(-1, size_at(call->inputs[2], 0));
    call->outputs[1] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status sparse_add_grad_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < 2; i++) {
        MR_TRY(mr_shape_expect_rank(call, i + 1, 2, error));
        call->outputs[i] = MR_SHAPE(size_at(call->inputs[i + 1], 0));
    }
    return MR_OK;
}

static mr_status sparse_concat_shape(mr_shape_call *call, mr_error *error)
{
    int32_t count = call->input_count / 3;
    int64_t total = 0, columns = -1;
    mr_shape shape = MR_SHAPE(-1);
    for (int32_t i = 0; i < count; i++) {
        int64_t values;
        MR_TRY(mr_shape_expect_rank(call, i, 2, error));
        MR_TRY(mr_shape_expect_rank(call, count + i, 1, error));
        MR_TRY(mr_size_merge(size_at(call->inputs[i], 0), size_at(call->inputs[count + i], 0), &values, error));
        MR_TRY(mr_size_merge(size_at(call->inputs[i], 1), columns, &columns, error));
        MR_TRY(mr_shape_merge(shape, call->inputs[2 * count + i], &shape, error));
        if (values < 0 || total < 0 || __builtin_add_overflow(total, values, &total)) total = -1;
    }
    call->outputs[0] = MR_SHAPE(total, columns);
    call->outputs[1] = MR_SHAPE(total);
    call->outputs[2] = shape;
    return MR_OK;
}

static mr_status cwise_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 2, error));
    call->outputs[0] = MR_SHAPE(size_at(call->inputs[0], 0));
    return MR_OK;
}

static mr_status fill_empty_rows_shape(mr_shape_call *call, mr_error *error)
{
    int64_t count, rank;
    MR_TRY(expect_sparse(call, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    MR_TRY(mr_size_merge(size_at(call->inputs[0], 0), size_at(call->inputs[1], 0), &count, error));
    MR_TRY(mr_size_merge(size_at(call->inputs[0], 1), size_at(call->inputs[2], 0), &rank, error));
    const mr_partial *shape = call->partials[2];
    bool is_known = shape != nullptr && shape->count > 0 && (shape->known & 1) != 0 && shape->values[0] >= 0;
    call->outputs[0] = MR_SHAPE(-1, rank);
    call->outputs[1] = MR_SHAPE(-1);
    call->outputs[2] = MR_SHAPE(is_known ? shape->values[0] : -1);
    call->outputs[3] = MR_SHAPE(count);
    return MR_OK;
}

static mr_status fill_empty_rows_grad_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_with_rank(call->inputs[0], 1, &call->outputs[0], error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    call->outputs[1] = MR_SCALAR;
    return MR_OK;
}

/* Known only if the dense shape and the axes are. */
static mr_status sparse_reduce_shape(mr_shape_call *call, mr_error *error)
{
    const mr_partial *shape = call->partials[2], *axes = call->partials[3];
    uint32_t reduced = 0;
    mr_shape result = MR_SCALAR;
    if (shape == nullptr || axes == nullptr || shape->count > MR_RANK_MAX) return MR_OK;
    for (int32_t i = 0; i < axes->count; i++) {
        int32_t axis;
        if ((axes->known >> i & 1) == 0) return MR_OK;
        MR_TRY(mr_shape_axis(axes->values[i], shape->count, &axis, error));
        reduced |= 1u << axis;
    }
    bool keeps = mr_attr_bool_or(call->attrs, "keep_dims", false);
    if (axes->count == 0) reduced = 0;
    for (int32_t i = 0; i < shape->count; i++) {
        bool is_known = (shape->known >> i & 1) != 0 && shape->values[i] >= 0;
        if (reduced >> i & 1 && !keeps) continue;
        result.dims[result.rank++] = reduced >> i & 1 ? 1 : is_known ? shape->values[i] : -1;
    }
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status sparse_reorder_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(expect_sparse(call, 0, error));
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &call->outputs[0], error));
    return mr_shape_with_rank(call->inputs[1], 1, &call->outputs[1], error);
}

static mr_status sparse_reshape_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 2, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    MR_TRY(mr_shape_with_rank(call->inputs[2], 1, &call->outputs[1], error));
    call->outputs[0] = MR_SHAPE(size_at(call->inputs[0], 0), size_at(call->inputs[2], 0));
    return MR_OK;
}

static mr_status sparse_slice_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(expect_sparse(call, 0, error));
    MR_TRY(mr_shape_with_rank(call->inputs[2], 1, &call->outputs[2], error));
    call->outputs[0] = MR_SHAPE(-1, size_at(call->inputs[2], 0));
    call->outputs[1] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status sparse_slice_grad_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 2, error));
    call->outputs[0] = MR_SHAPE(size_at(call->inputs[1], 0));
    return MR_OK;
}

static mr_status sparse_softmax_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(expect_sparse(call, 0, error));
    return mr_shape_with_rank(call->inputs[1], 1, &call->outputs[0], error);
}

static mr_status sparse_sparse_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(expect_sparse(call, 0, error));
    MR_TRY(expect_sparse(call, 3, error));
    call->outputs[0] = MR_SHAPE(-1, -1);
    call->outputs[1] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status sparse_split_shape(mr_shape_call *call, mr_error *error)
{
    int32_t parts = call->output_count / 3;
    MR_TRY(mr_shape_expect_rank(call, 1, 2, error));
    for (int32_t i = 0; i < parts; i++) {
        call->outputs[i] = MR_SHAPE(-1, size_at(call->inputs[3], 0));
        call->outputs[parts + i] = MR_SHAPE(-1);
        call->outputs[2 * parts + i] = call->inputs[3];
    }
    return MR_OK;
}

static mr_status sparse_matmul_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape a, b;
    int64_t inner;
    bool adjoint_a = mr_attr_bool_or(call->attrs, "adjoint_a", false);
    bool adjoint_b = mr_attr_bool_or(call->attrs, "adjoint_b", false);
    MR_TRY(mr_shape_expect_rank(call, 0, 2, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    MR_TRY(mr_shape_from_input(call, 2, &a, error));
    MR_TRY(mr_shape_with_rank(a, 2, &a, error));
    MR_TRY(mr_shape_with_rank(call->inputs[3], 2, &b, error));
    MR_TRY(mr_size_merge(a.dims[adjoint_a ? 0 : 1], b.dims[adjoint_b ? 1 : 0], &inner, error));
    call->outputs[0] = MR_SHAPE(a.dims[adjoint_a ? 1 : 0], b.dims[adjoint_b ? 0 : 1]);
    return MR_OK;
}

static mr_status sparse_dense_add_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = call->inputs[3];
    return MR_OK;
}

static mr_status sparse_to_dense_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_from_input(call, 1, &call->outputs[0], error);
}

static mr_status serialize_sparse_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(expect_sparse(call, 0, error));
    call->outputs[0] = MR_SHAPE(3);
    return MR_OK;
}

static mr_status serialize_many_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(expect_sparse(call, 0, error));
    call->outputs[0] = MR_SHAPE(-1, 3);
    return MR_OK;
}

static mr_status deserialize_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0];
    int64_t merged;
    if (call->op->name[11] == 'M') MR_TRY(mr_shape_expect_rank(call, 0, 2, error)); /* DeserializeManySparse */
    MR_TRY(mr_shape_at_least(input, 1, error));
    if (input.rank > 0) MR_TRY(mr_size_merge(input.dims[input.rank - 1], 3, &merged, error));
    call->outputs[0] = MR_SHAPE(-1, -1);
    call->outputs[1] = MR_SHAPE(-1);
    call->outputs[2] = MR_SHAPE(-1);
    return MR_OK;
}

static const mr_op sparse_ops[] = {
    {.name = "SerializeSparse",
     .signature = "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> serialized_sparse: out_type",
     .attrs = "T: type; out_type: {string, variant} = string",
     .shape = serialize_sparse_shape,
     .doc = "Serializes a sparse tensor into three strings."},
    {.name = "SerializeManySparse",
     .signature = "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> serialized_sparse: out_type",
     .attrs = "T: type; out_type: {string, variant} = string",
     .shape = serialize_many_shape,
     .doc = "Serializes the parts of a sparse tensor along its first dimension into rows of three strings."},
    {.name = "DeserializeSparse",
     .signature = "serialized_sparse: Tserialized -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type; Tserialized: {string, variant} = string",
     .shape = deserialize_shape,
     .doc = "Joins serialized sparse tensors into one with additional dimensions."},
    {.name = "DeserializeManySparse",
     .signature = "serialized_sparse: string -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type",
     .shape = deserialize_shape,
     .doc = "Joins serialized sparse tensors along a new first dimension."},
    {.name = "SparseAdd",
     .signature = "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64, "
                  "thresh: Treal -> sum_indices: int64, sum_values: T, sum_shape: int64",
     .attrs = "T: numbertype; Treal: realnumbertype",
     .shape = sparse_add_shape,
     .doc = "Adds two sparse tensors; sums with a magnitude below thresh are left out."},
    {.name = "SparseAddGrad",
     .signature = "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64 -> a_val_grad: T, "
                  "b_val_grad: T",
     .attrs = "T: numbertype",
     .shape = sparse_add_grad_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Computes the gradients of SparseAdd with respect to the values of both tensors."},
    {.name = "SparseConcat",
     .signature = "indices: N * int64, values: N * T, shapes: N * int64 -> output_indices: int64, output_values: T, "
                  "output_shape: int64",
     .attrs = "concat_dim: int; N: int >= 2; T: type",
     .shape = sparse_concat_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Concatenates sparse tensors along dimension concat_dim."},
    {.name = "SparseDenseCwiseMul",
     .signature = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T",
     .attrs = "T: numbertype",
     .shape = cwise_shape,
     .doc = "Multiplies the values of a sparse tensor by the elements of dense, which is broadcast, at their indices."},
    {.name = "SparseDenseCwiseDiv",
     .signature = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T",
     .attrs = "T: numbertype",
     .shape = cwise_shape,
     .doc = "Divides the values of a sparse tensor by the elements of dense, which is broadcast, at their indices."},
    {.name = "SparseDenseCwiseAdd",
     .signature = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T",
     .attrs = "T: numbertype",
     .shape = cwise_shape,
     .doc = "Adds to the values of a sparse tensor the elements of dense, which is broadcast, at their indices."},
    {.name = "SparseFillEmptyRows",
     .signature = "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: int64, "
                  "output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
     .attrs = "T: type",
     .shape = fill_empty_rows_shape,
     .doc = "Adds default_value at column 0 of each row without values."},
    {.name = "SparseFillEmptyRowsGrad",
     .signature = "reverse_index_map: int64, grad_values: T -> d_values: T, d_default_value: T",
     .attrs = "T: type",
     .shape = fill_empty_rows_grad_shape,
     .doc = "Computes the gradient of SparseFillEmptyRows."},
    {.name = "SparseReduceSum",
     .signature = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output: T",
     .attrs = "keep_dims: bool = false; T: numbertype",
     .shape = sparse_reduce_shape,
     .doc = "Sums a sparse tensor over dimensions; the result is dense."},
    {.name = "SparseReduceSumSparse",
     .signature = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output_indices: "
                  "int64, output_values: T, output_shape: int64",
     .attrs = "keep_dims: bool = false; T: numbertype",
     .shape = mr_shape_unknown,
     .doc = "Sums a sparse tensor over dimensions; the result is sparse."},
    {.name = "SparseReduceMax",
     .signature = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output: T",
     .attrs = "keep_dims: bool = false; T: realnumbertype",
     .shape = sparse_reduce_shape,
     .doc = "Computes the maximum of the values of a sparse tensor over dimensions; the result is dense."},
    {.name = "SparseReduceMaxSparse",
     .signature = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output_indices: "
                  "int64, output_values: T, output_shape: int64",
     .attrs = "keep_dims: bool = false; T: realnumbertype",
     .shape = mr_shape_unknown,
     .doc = "Computes the maximum of the values of a sparse tensor over dimensions; the result is sparse."},
    {.name = "SparseReorder",
     .signature = "input_indices: int64, input_values: T, input_shape: int64 -> output_indices: int64, output_values: "
                  "T",
     .attrs = "T: type",
     .shape = sparse_reorder_shape,
     .doc = "Sorts the values of a sparse tensor by their indices."},
    {.name = "SparseReshape",
     .signature = "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, output_shape: "
                  "int64",
     .shape = sparse_reshape_shape,
     .doc = "Reshapes a sparse tensor."},
    {.name = "SparseSlice",
     .signature = "indices: int64, values: T, shape: int64, start: int64, size: int64 -> output_indices: int64, "
                  "output_values: T, output_shape: int64",
     .attrs = "T: type",
     .shape = sparse_slice_shape,
     .doc = "Returns the part of a sparse tensor that starts at start and has up to size elements in each dimension."},
    {.name = "SparseSliceGrad",
     .signature = "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64 -> val_grad: "
                  "T",
     .attrs = "T: numbertype",
     .shape = sparse_slice_grad_shape,
     .doc = "Computes the gradient of SparseSlice."},
    {.name = "SparseSoftmax",
     .signature = "sp_indices: int64, sp_values: T, sp_shape: int64 -> output: T",
     .attrs = "T: {half, float, double}",
     .shape = sparse_softmax_shape,
     .doc = "Computes the softmax of the values in each row of a sparse tensor."},
    {.name = "SparseSparseMaximum",
     .signature = "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64 -> "
                  "output_indices: int64, output_values: T",
     .attrs = "T: realnumbertype",
     .shape = sparse_sparse_shape,
     .doc = "Computes the maximum of two sparse tensors; an absent value counts as 0."},
    {.name = "SparseSparseMinimum",
     .signature = "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64 -> "
                  "output_indices: int64, output_values: T",
     .attrs = "T: numbertype",
     .shape = sparse_sparse_shape,
     .doc = "Computes the minimum of two sparse tensors; an absent value counts as 0."},
    {.name = "SparseSplit",
     .signature = "split_dim: int64, indices: int64, values: T, shape: int64 -> output_indices: num_split * int64, "
                  "output_values: num_split * T, output_shape: num_split * int64",
     .attrs = "num_split: int >= 1; T: type",
     .shape = sparse_split_shape,
     .doc = "Splits a sparse tensor along dimension split_dim into num_split parts."},
    {.name = "SparseTensorDenseMatMul",
     .signature = "a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T",
     .attrs = "T: type; Tindices: {int32, int64} = int64; adjoint_a: bool = false; adjoint_b: bool = false",
     .shape = sparse_matmul_shape,
     .doc = "Multiplies a sparse matrix by a dense one."},
    {.name = "SparseTensorDenseAdd",
     .signature = "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T -> output: T",
     .attrs = "T: numbertype; Tindices: {int32, int64}",
     .shape = sparse_dense_add_shape,
     .doc = "Adds a sparse tensor to a dense one."},
    {.name = "SparseToDense",
     .signature = "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> dense: T",
     .attrs = "validate_indices: bool = true; T: type; Tindices: {int32, int64}",
     .shape = sparse_to_dense_shape,
     .doc = "Returns a tensor with sparse_values at sparse_indices and default_value elsewhere."},
};

const mr_op_table mr_ops_sparse = {sparse_ops, sizeof sparse_ops / sizeof sparse_ops[0]};
