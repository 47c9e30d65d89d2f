/* Sets in the last dimension of dense and sparse tensors, and ragged tensors. */
#include "graph/ir/op.h"

static int64_t size_at(mr_shape shape, int32_t i)
{
    return shape.rank <= i ? -1 : shape.dims[i];
}

/* The outputs are a sparse tensor of that rank. */
static mr_status set_outputs(mr_shape_call *call, int64_t rank)
{
    call->outputs[0] = MR_SHAPE(-1, rank);
    call->outputs[1] = MR_SHAPE(-1);
    call->outputs[2] = MR_SHAPE(rank);
    return MR_OK;
}

static mr_status expect_sparse(const mr_shape_call *call, int32_t first, int64_t *rank, mr_error *error)
{
    int64_t count;
    MR_TRY(mr_shape_expect_rank(call, first, 2, error));
    MR_TRY(mr_shape_expect_rank(call, first + 1, 1, error));
    MR_TRY(mr_shape_expect_rank(call, first + 2, 1, error));
    MR_TRY(mr_size_merge(size_at(call->inputs[first], 0), size_at(call->inputs[first + 1], 0), &count, error));
    return mr_size_merge(size_at(call->inputs[first], 1), size_at(call->inputs[first + 2], 0), rank, error);
}

static mr_status dense_dense_set_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape a = call->inputs[0], b = call->inputs[1];
    MR_TRY(mr_shape_at_least(a, 2, error));
    MR_TRY(mr_shape_at_least(b, 2, error));
    if (a.rank >= 0 && b.rank >= 0) {
        int64_t merged;
        MR_TRY(mr_shape_with_rank(b, a.rank, &b, error));
        for (int32_t i = 0; i < a.rank - 1; i++) MR_TRY(mr_size_merge(a.dims[i], b.dims[i], &merged, error));
    }
    return set_outputs(call, a.rank >= 0 ? a.rank : b.rank);
}

static mr_status dense_sparse_set_shape(mr_shape_call *call, mr_error *error)
{
    int64_t rank;
    MR_TRY(expect_sparse(call, 1, &rank, error));
    MR_TRY(mr_shape_at_least(call->inputs[0], 2, error));
    if (call->inputs[0].rank >= 0) MR_TRY(mr_size_merge(call->inputs[0].rank, rank, &rank, error));
    return set_outputs(call, rank);
}

static mr_status sparse_sparse_set_shape(mr_shape_call *call, mr_error *error)
{
    int64_t a, b;
    MR_TRY(expect_sparse(call, 0, &a, error));
    MR_TRY(expect_sparse(call, 3, &b, error));
    for (int32_t i = 0; i < 2; i++) {
        int64_t rank = i == 0 ? a : b;
        if (rank >= 0 && rank < 2)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Input %d, expected rank >= 2, got %lld.", i, (long long)rank);
    }
    MR_TRY(mr_size_merge(a, b, &a, error));
    return set_outputs(call, a);
}

/* Scalars are used for all sequences. */
static mr_status ragged_range_shape(mr_shape_call *call, mr_error *error)
{
    int64_t count = -1;
    bool is_unknown = false, has_vector = false;
    for (int32_t i = 0; i < 3; i++) {
        if (call->inputs[i].rank > 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "input %d must be a scalar or vector", i);
        is_unknown |= call->inputs[i].rank < 0;
        if (call->inputs[i].rank != 1) continue;
        has_vector = true;
        MR_TRY(mr_size_merge(count, call->inputs[i].dims[0], &count, error));
    }
    if (!has_vector && !is_unknown) count = 1;
    call->outputs[0] = MR_SHAPE(count < 0 ? -1 : count + 1);
    call->outputs[1] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status ragged_to_sparse_shape(mr_shape_call *call, mr_error *error)
{
    int32_t splits = call->input_count - 1;
    mr_shape values = call->inputs[splits];
    for (int32_t i = 0; i < splits; i++) MR_TRY(mr_shape_expect_rank(call, i, 1, error));
    MR_TRY(mr_shape_at_least(values, 1, error));
    int64_t rank = values.rank < 0 ? -1 : splits + values.rank, count = mr_shape_count(values);
    call->outputs[0] = MR_SHAPE(count, rank);
    call->outputs[1] = MR_SHAPE(count);
    call->outputs[2] = MR_SHAPE(rank);
    return MR_OK;
}

/* What `shape` and the shape of the values say about the dense tensor. */
static mr_status ragged_to_tensor_shape(mr_shape_call *call, mr_error *error)
{
    const mr_attr *types = mr_attrs_find(call->attrs, "row_partition_types");
    mr_shape shape = MR_SHAPE_UNKNOWN, values = call->inputs[1], dense = MR_SHAPE_UNKNOWN;
    if (types == nullptr || types->count == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Partition info types should not be empty");
    int32_t ragged = types->count - mr_string_equal(types->values[0].string, MR_STR("FIRST_DIM_SIZE"));
    const mr_tensor *constant = call->constants[0];
    if (constant != nullptr && constant->shape.rank == 1) MR_TRY(mr_shape_from_input(call, 0, &shape, error));
    MR_TRY(mr_shape_at_least(values, 1, error));
    if (values.rank >= 1) {
        if (ragged + values.rank > MR_RANK_MAX)
            return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
        dense.rank = ragged + values.rank;
        for (int32_t i = 0; i < dense.rank; i++) dense.dims[i] = i <= ragged ? -1 : values.dims[i - ragged];
    }
    return mr_shape_merge(shape, dense, &call->outputs[0], error);
}

/* Row splits and values of unknown length. */
static mr_status ragged_gather_shape(mr_shape_call *call, mr_error *)
{
    for (int32_t i = 0; i < call->output_count - 1; i++) call->outputs[i] = MR_SHAPE(-1);
    mr_shape values = call->inputs[call->input_count - 2];
    if (values.rank > 0) values.dims[0] = -1;
    call->outputs[call->output_count - 1] = values;
    return MR_OK;
}

static const mr_op sparse_sets_ops[] = {
    {.name = "DenseToDenseSetOperation",
     .signature = "set1: T, set2: T -> result_indices: int64, result_values: T, result_shape: int64",
     .attrs = "set_operation: string; validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, "
              "string}",
     .shape = dense_dense_set_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Applies a set operation to the rows of the last dimension of two dense tensors."},
    {.name = "DenseToSparseSetOperation",
     .signature = "set1: T, set2_indices: int64, set2_values: T, set2_shape: int64 -> result_indices: int64, "
                  "result_values: T, result_shape: int64",
     .attrs = "set_operation: string; validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, "
              "string}",
     .shape = dense_sparse_set_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Applies a set operation to the rows of the last dimension of a dense and a sparse tensor."},
    {.name = "SparseToSparseSetOperation",
     .signature = "set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, set2_values: T, "
                  "set2_shape: int64 -> result_indices: int64, result_values: T, result_shape: int64",
     .attrs = "set_operation: string; validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, "
              "string}",
     .shape = sparse_sparse_set_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Applies a set operation to the rows of the last dimension of two sparse tensors."},
    {.name = "SetSize",
     .signature = "set_indices: int64, set_values: T, set_shape: int64 -> size: int32",
     .attrs = "validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, string}",
     .shape = mr_shape_unknown,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Counts the distinct values in each row of the last dimension of a sparse tensor."},
    {.name = "RaggedRange",
     .signature = "starts: T, limits: T, deltas: T -> rt_nested_splits: Tsplits, rt_dense_values: T",
     .attrs = "T: {bfloat16, float, double, int32, int64} = int32; Tsplits: {int32, int64} = int64",
     .shape = ragged_range_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns a ragged tensor of sequences from starts to limits with a step of deltas."},
    {.name = "RaggedTensorToSparse",
     .signature = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T -> sparse_indices: int64, "
                  "sparse_values: T, sparse_dense_shape: int64",
     .attrs = "RAGGED_RANK: int >= 1; T: type; Tsplits: {int32, int64} = int64",
     .shape = ragged_to_sparse_shape,
     .doc = "Converts a ragged tensor to a sparse one."},
    {.name = "RaggedTensorToTensor",
     .signature = "shape: Tshape, values: T, default_value: T, row_partition_tensors: num_row_partition_tensors * "
                  "Tindex -> result: T",
     .attrs = "T: type; Tindex: {int64, int32}; Tshape: {int64, int32}; num_row_partition_tensors: int >= 1; "
              "row_partition_types: list(string)",
     .shape = ragged_to_tensor_shape,
     .doc = "Converts a ragged tensor to a dense one, padded with default_value or cut off at shape."},
    {.name = "RaggedGather",
     .signature = "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, params_dense_values: Tvalues, indices: "
                  "Tindices -> output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues",
     .attrs = "Tvalues: type; Tindices: {int32, int64}; Tsplits: {int32, int64} = int64; "
              "PARAMS_RAGGED_RANK: int >= 1; OUTPUT_RAGGED_RANK: int >= 0",
     .shape = ragged_gather_shape,
     .doc = "Returns the rows of a ragged tensor at indices."},
};

const mr_op_table mr_ops_sparse_sets = {sparse_sets_ops, sizeof sparse_sets_ops / sizeof sparse_sets_ops[0]};
