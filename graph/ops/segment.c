/* Reductions of the rows of a tensor that have the same segment id. */
#include "graph/ops/shapes.h"

/* The rows of data, `count` of them, or an unknown number if count is -1. */
static mr_status rows_of(mr_shape_call *call, int64_t count, mr_error *error)
{
    mr_shape data = call->inputs[0];
    MR_TRY(mr_shape_at_least(data, 1, error));
    if (data.rank < 0) return MR_OK;
    data.dims[0] = count;
    call->outputs[0] = data;
    return MR_OK;
}

static mr_status segment_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_at_least(call->inputs[0], 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    return rows_of(call, -1, error);
}

/* The shape of the ids is a prefix of the shape of data. */
mr_status mr_unsorted_segment_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape data = call->inputs[0], ids = call->inputs[1], result = {.rank = 1, .dims = {-1}};
    int64_t count = 0;
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    if (data.rank < 0 || ids.rank < 0) return MR_OK;
    MR_TRY(mr_shape_at_least(data, ids.rank, error));
    if (1 + data.rank - ids.rank > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    for (int32_t i = 0; i < ids.rank; i++) {
        int64_t size = 0;
        MR_TRY(mr_size_merge(data.dims[i], ids.dims[i], &size, error));
    }
    if (mr_shape_input_integer(call, 2, &count)) {
        if (count < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "Dimension size, given by scalar input 2, must be non-negative but is %lld",
                           (long long)count);
        result.dims[0] = count;
    }
    for (int32_t i = ids.rank; i < data.rank; i++) result.dims[result.rank++] = data.dims[i];
    call->outputs[0] = result;
    return MR_OK;
}

/* Checks data, indices and segment_ids; the last two are vectors of the same length. */
static mr_status check_indices(mr_shape_call *call, mr_error *error)
{
    mr_shape merged;
    MR_TRY(mr_shape_at_least(call->inputs[0], 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 1, error));
    return mr_shape_merge(call->inputs[1], call->inputs[2], &merged, error);
}

/* The number of rows in the scalar input 3. */
static mr_status sparse_rows(mr_shape_call *call, const char *name, mr_error *error)
{
    int64_t count = -1;
    MR_TRY(check_indices(call, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    if (mr_shape_input_integer(call, 3, &count) && count < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Cannot specify a negative value for %s", name);
    return rows_of(call, count, error);
}

static mr_status sparse_segment_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(check_indices(call, error));
    return rows_of(call, -1, error);
}

static mr_status sparse_segment_count_shape(mr_shape_call *call, mr_error *error)
{
    return sparse_rows(call, "num_segments", error);
}

static mr_status sparse_segment_grad_shape(mr_shape_call *call, mr_error *error)
{
    return sparse_rows(call, "output_dim0", error);
}

static mr_status sparse_segment_grad_v2_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(check_indices(call, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    call->outputs[1] = MR_SHAPE(-1);
    return rows_of(call, -1, error);
}

static const mr_op segment_ops[] = {
    {.name = "SegmentSum",
     .signature = "data: T, segment_ids: Tindices -> output: T",
     .attrs = "T: numbertype; Tindices: {int32, int64}",
     .shape = segment_shape,
     .doc = "Computes the sum of the rows of data that have the same id; ids must be sorted."},
    {.name = "SegmentMean",
     .signature = "data: T, segment_ids: Tindices -> output: T",
     .attrs = "T: numbertype; Tindices: {int32, int64}",
     .shape = segment_shape,
     .doc = "Computes the mean of the rows of data that have the same id; ids must be sorted."},
    {.name = "SegmentProd",
     .signature = "data: T, segment_ids: Tindices -> output: T",
     .attrs = "T: numbertype; Tindices: {int32, int64}",
     .shape = segment_shape,
     .doc = "Computes the product of the rows of data that have the same id; ids must be sorted."},
    {.name = "SegmentMin",
     .signature = "data: T, segment_ids: Tindices -> output: T",
     .attrs = "T: realnumbertype; Tindices: {int32, int64}",
     .shape = segment_shape,
     .doc = "Computes the minimum of the rows of data that have the same id; ids must be sorted."},
    {.name = "SegmentMax",
     .signature = "data: T, segment_ids: Tindices -> output: T",
     .attrs = "T: realnumbertype; Tindices: {int32, int64}",
     .shape = segment_shape,
     .doc = "Computes the maximum of the rows of data that have the same id; ids must be sorted."},
    {.name = "UnsortedSegmentSum",
     .signature = "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     .attrs = "T: numbertype; Tindices: {int16, int32, int64}; Tnumsegments: {int32, int64} = int32",
     .shape = mr_unsorted_segment_shape,
     .doc = "Computes the sum of the rows of data that have the same id, in num_segments rows."},
    {.name = "UnsortedSegmentProd",
     .signature = "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     .attrs = "T: numbertype; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
     .shape = mr_unsorted_segment_shape,
     .doc = "Computes the product of the rows of data that have the same id, in num_segments rows."},
    {.name = "UnsortedSegmentMin",
     .signature = "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     .attrs = "T: realnumbertype; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
     .shape = mr_unsorted_segment_shape,
     .doc = "Computes the minimum of the rows of data that have the same id, in num_segments rows."},
    {.name = "UnsortedSegmentMax",
     .signature = "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     .attrs = "T: realnumbertype; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
     .shape = mr_unsorted_segment_shape,
     .doc = "Computes the maximum of the rows of data that have the same id, in num_segments rows."},
    {.name = "SparseSegmentSum",
     .signature = "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
     .attrs = "T: realnumbertype; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; sparse_gradient: "
              "bool = false",
     .shape = sparse_segment_shape,
     .doc = "Computes the sum of the rows of data at indices that have the same id; ids must be sorted."},
    {.name = "SparseSegmentSumWithNumSegments",
     .signature = "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments -> output: T",
     .attrs = "T: realnumbertype; Tidx: {int32, int64} = int32; Tnumsegments: {int32, int64} = int32; Tsegmentids: "
              "{int32, int64} = int32; sparse_gradient: bool = false",
     .shape = sparse_segment_count_shape,
     .doc = "Computes the sum of the rows of data at indices that have the same id, in num_segments rows."},
    {.name = "SparseSegmentSumGrad",
     .signature = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32 -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
     .shape = sparse_segment_grad_shape,
     .doc = "Computes the gradient of SparseSegmentSum with respect to data."},
    {.name = "SparseSegmentSumGradV2",
     .signature = "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32 -> output: T, "
                  "sorted_unique_indices: Tidx",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
     .shape = sparse_segment_grad_v2_shape,
     .doc = "Computes the gradient of SparseSegmentSum as rows and their indices."},
    {.name = "SparseSegmentMean",
     .signature = "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; "
              "sparse_gradient: bool = false",
     .shape = sparse_segment_shape,
     .doc = "Computes the mean of the rows of data at indices that have the same id; ids must be sorted."},
    {.name = "SparseSegmentMeanWithNumSegments",
     .signature = "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tnumsegments: {int32, int64} = int32; "
              "Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
     .shape = sparse_segment_count_shape,
     .doc = "Computes the mean of the rows of data at indices that have the same id, in num_segments rows."},
    {.name = "SparseSegmentMeanGrad",
     .signature = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32 -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
     .shape = sparse_segment_grad_shape,
     .doc = "Computes the gradient of SparseSegmentMean with respect to data."},
    {.name = "SparseSegmentMeanGradV2",
     .signature = "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32 -> output: T, "
                  "sorted_unique_indices: Tidx",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
     .shape = sparse_segment_grad_v2_shape,
     .doc = "Computes the gradient of SparseSegmentMean as rows and their indices."},
    {.name = "SparseSegmentSqrtN",
     .signature = "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; "
              "sparse_gradient: bool = false",
     .shape = sparse_segment_shape,
     .doc = "Computes the sum, divided by the square root of their number, of the rows of data at indices that have "
            "the same id; ids must be sorted."},
    {.name = "SparseSegmentSqrtNWithNumSegments",
     .signature = "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tnumsegments: {int32, int64} = int32; "
              "Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
     .shape = sparse_segment_count_shape,
     .doc = "Computes the sum, divided by the square root of their number, of the rows of data at indices that have "
            "the same id, in num_segments rows."},
    {.name = "SparseSegmentSqrtNGrad",
     .signature = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32 -> output: T",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
     .shape = sparse_segment_grad_shape,
     .doc = "Computes the gradient of SparseSegmentSqrtN with respect to data."},
    {.name = "SparseSegmentSqrtNGradV2",
     .signature = "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32 -> output: T, "
                  "sorted_unique_indices: Tidx",
     .attrs = "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
     .shape = sparse_segment_grad_v2_shape,
     .doc = "Computes the gradient of SparseSegmentSqrtN as rows and their indices."},
};

const mr_op_table mr_ops_segment = {segment_ops, sizeof segment_ops / sizeof segment_ops[0]};
