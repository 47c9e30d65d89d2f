/* Counting: histograms of integers and of real numbers, and positions in sorted rows. */
#include "graph/ir/op.h"

/* The value of the scalar input `index`; -1 if it is unknown. */
static mr_status size_input(const mr_shape_call *call, int32_t index, int64_t *size, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, index, 0, error));
    *size = -1;
    if (mr_shape_input_integer(call, index, size) && *size < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "size (%lld) must be non-negative", (long long)*size);
    return MR_OK;
}

static mr_status bincount_shape(mr_shape_call *call, mr_error *error)
{
    int64_t size;
    MR_TRY(size_input(call, 1, &size, error));
    call->outputs[0] = MR_SHAPE(size);
    return MR_OK;
}

/* Of a matrix with an unknown number of bins, TensorFlow forgets the number of rows. */
static mr_status dense_bincount_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0];
    int64_t size;
    if (input.rank > 2)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at most rank 2 but is rank %d", input.rank);
    MR_TRY(size_input(call, 1, &size, error));
    if (input.rank == 0) call->outputs[0] = MR_SCALAR;
    if (input.rank == 1) call->outputs[0] = MR_SHAPE(size);
    if (input.rank == 2) call->outputs[0] = MR_SHAPE(size < 0 ? -1 : input.dims[0], size);
    return MR_OK;
}

static mr_status sparse_bincount_shape(mr_shape_call *call, mr_error *error)
{
    const mr_tensor *shape = call->constants[2];
    int64_t size;
    MR_TRY(size_input(call, 3, &size, error));
    if (size < 0 || shape == nullptr) return MR_OK;
    const int64_t *sizes = shape->data;
    int64_t rank = mr_tensor_count(shape);
    if (rank == 1) call->outputs[0] = MR_SHAPE(size);
    if (rank == 2) call->outputs[0] = MR_SHAPE(sizes[0] < 0 ? -1 : sizes[0], size);
    return MR_OK;
}

static mr_status histogram_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape range = call->inputs[1];
    int64_t bins = -1;
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    if (range.rank == 1 && range.dims[0] >= 0 && range.dims[0] != 2)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Dimension must be 2 but is %lld", (long long)range.dims[0]);
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    if (mr_shape_input_integer(call, 2, &bins) && bins <= 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Requires nbins > 0: %lld", (long long)bins);
    call->outputs[0] = MR_SHAPE(bins);
    return MR_OK;
}

static mr_status bound_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < 2; i++) MR_TRY(mr_shape_expect_rank(call, i, 2, error));
    call->outputs[0] = call->inputs[1];
    return MR_OK;
}

static const mr_op counting_ops[] = {
    {.name = "Bincount",
     .signature = "arr: int32, size: int32, weights: T -> bins: T",
     .attrs = "T: {int32, int64, float, double}",
     .shape = bincount_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Counts the values in arr, or adds their weights, in size bins."},
    {.name = "DenseBincount",
     .signature = "input: Tidx, size: Tidx, weights: T -> output: T",
     .attrs = "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false",
     .shape = dense_bincount_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Counts the values in a vector or in each row of a matrix, or adds their weights, in size bins."},
    {.name = "RaggedBincount",
     .signature = "splits: int64, values: Tidx, size: Tidx, weights: T -> output: T",
     .attrs = "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false",
     .shape = mr_shape_unknown,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Counts the values in each row of a ragged matrix, or adds their weights, in size bins."},
    {.name = "SparseBincount",
     .signature = "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T -> output: T",
     .attrs = "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false",
     .shape = sparse_bincount_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Counts the values of a sparse vector, or in each row of a sparse matrix, or adds their weights, in size "
            "bins."},
    {.name = "HistogramFixedWidth",
     .signature = "values: T, value_range: T, nbins: int32 -> out: dtype",
     .attrs = "T: {int32, int64, float, double}; dtype: {int32, int64} = int32",
     .shape = histogram_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Counts the values in nbins bins of equal width; values outside of value_range are counted in the first "
            "and last bin."},
    {.name = "Bucketize",
     .signature = "input: T -> output: int32",
     .attrs = "T: {int32, int64, float, double}; boundaries: list(float)",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of boundaries that are not greater than each element."},
    {.name = "LowerBound",
     .signature = "sorted_inputs: T, values: T -> output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = int32",
     .shape = bound_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the first position in the sorted row of sorted_inputs at which each value could be inserted."},
    {.name = "UpperBound",
     .signature = "sorted_inputs: T, values: T -> output: out_type",
     .attrs = "T: type; out_type: {int32, int64} = int32",
     .shape = bound_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the last position in the sorted row of sorted_inputs at which each value could be inserted."},
};

const mr_op_table mr_ops_counting = {counting_ops, sizeof counting_ops / sizeof counting_ops[0]};
