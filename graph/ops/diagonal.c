/* Matrices built from diagonals, diagonals of matrices, and bands. */
#include "graph/ir/op.h"

static mr_status diag_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], result = {.rank = 2 * input.rank};
    MR_TRY(mr_shape_at_least(input, 1, error));
    if (input.rank < 0) return MR_OK;
    if (result.rank > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    for (int32_t i = 0; i < result.rank; i++) result.dims[i] = input.dims[i % input.rank];
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status diag_part_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], result = {.rank = input.rank / 2};
    if (input.rank < 0) return MR_OK;
    if (input.rank % 2 != 0 || input.rank == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Input must have even and non-zero rank, input rank is %d",
                       input.rank);
    for (int32_t i = 0; i < result.rank; i++)
        MR_TRY(mr_size_merge(input.dims[i], input.dims[i + result.rank], &result.dims[i], error));
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status matrix_diag_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = call->inputs[0];
    MR_TRY(mr_shape_at_least(result, 1, error));
    if (result.rank < 0) return MR_OK;
    if (result.rank == MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    result.dims[result.rank] = result.dims[result.rank - 1];
    result.rank++;
    call->outputs[0] = result;
    return MR_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    if (a == 0 || b == 0) return 0;
    return a < 0 || b < 0 ? -1 : a < b ? a : b;
}

static mr_status matrix_diag_part_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = call->inputs[0];
    MR_TRY(mr_shape_at_least(result, 2, error));
    if (result.rank < 0) return MR_OK;
    result.rank--;
    result.dims[result.rank - 1] = smaller(result.dims[result.rank - 1], result.dims[result.rank]);
    result.dims[result.rank] = 0;
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status matrix_set_diag_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = call->inputs[0], diagonal = call->inputs[1];
    MR_TRY(mr_shape_at_least(result, 2, error));
    MR_TRY(mr_shape_at_least(diagonal, 1, error));
    if (result.rank >= 0) MR_TRY(mr_shape_with_rank(diagonal, result.rank - 1, &diagonal, error));
    if (diagonal.rank >= 0) {
        if (diagonal.rank == MR_RANK_MAX)
            return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
        MR_TRY(mr_shape_with_rank(result, diagonal.rank + 1, &result, error));
        int64_t length = smaller(result.dims[result.rank - 2], result.dims[result.rank - 1]);
        MR_TRY(mr_size_merge(length, diagonal.dims[diagonal.rank - 1], &length, error));
        for (int32_t i = 0; i < diagonal.rank - 1; i++)
            MR_TRY(mr_size_merge(result.dims[i], diagonal.dims[i], &result.dims[i], error));
    }
    call->outputs[0] = result;
    return MR_OK;
}

/* Reads the range of diagonals of input `index`; false: unknown. */
static mr_status read_diagonals(const mr_shape_call *call, int32_t index, bool *known, int64_t *lower, int64_t *upper,
                                mr_error *error)
{
    const mr_tensor *k = call->constants[index];
    *known = false;
    if (call->inputs[index].rank > 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                       call->inputs[index].rank);
    if (k == nullptr) return MR_OK;
    int64_t count = mr_tensor_count(k);
    if (count < 1 || count > 2)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "diag_index must be a vector with one or two elements. It has %lld elements.", (long long)count);
    *lower = mr_tensor_int32s(k)[0];
    *upper = mr_tensor_int32s(k)[count - 1];
    if (*lower > *upper)
        return mr_fail(error, MR_INVALID_ARGUMENT, "lower_diag_index is greater than upper_diag_index");
    *known = true;
    return MR_OK;
}

static mr_status matrix_diag_v2_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = call->inputs[0];
    bool known;
    int64_t lower = 0, upper = 0, rows = -1, columns = -1;
    MR_TRY(mr_shape_at_least(result, 1, error));
    MR_TRY(read_diagonals(call, 1, &known, &lower, &upper, error));
    for (int32_t i = 2; i < 5; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    if (!known || result.rank < 0) return MR_OK;
    if (lower < upper) {
        MR_TRY(mr_shape_at_least(result, 2, error));
        int64_t count = result.dims[result.rank - 2];
        if (count >= 0 && count != upper - lower + 1)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "The number of rows of `diagonal` doesn't match the number of diagonals implied from "
                           "`d_lower` and `d_upper`.\nnum_diags = %lld, d_lower = %lld, d_upper = %lld",
                           (long long)count, (long long)lower, (long long)upper);
    } else if (result.rank++ == MR_RANK_MAX) {
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    }
    int64_t length = call->inputs[0].dims[call->inputs[0].rank - 1];
    bool knows_sizes =
        mr_shape_input_integer(call, 2, &rows) && mr_shape_input_integer(call, 3, &columns) && length >= 0;
    int64_t *sizes = &result.dims[result.rank - 2];
    sizes[0] = sizes[1] = -1;
    if (knows_sizes) {
        int64_t least_rows = length - (upper < 0 ? upper : 0), least_columns = length + (lower > 0 ? lower : 0);
        if (rows == -1 && columns == -1) rows = columns = least_rows > least_columns ? least_rows : least_columns;
        if (rows == -1) rows = least_rows;
        if (columns == -1) columns = least_columns;
        if (rows < least_rows) return mr_fail(error, MR_INVALID_ARGUMENT, "num_rows is too small");
        if (columns < least_columns) return mr_fail(error, MR_INVALID_ARGUMENT, "num_cols is too small");
        if (rows != least_rows && columns != least_columns)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "num_rows and num_cols are not consistent with lower_diag_index, upper_diag_index, and the "
                           "length of the given diagonals.\nnum_rows = %lld != min_num_rows = %lld, num_cols = %lld != "
                           "min_num_cols = %lld",
                           (long long)rows, (long long)least_rows, (long long)columns, (long long)least_columns);
        sizes[0] = rows;
        sizes[1] = columns;
    }
    call->outputs[0] = result;
    return MR_OK;
}

/* Whether the diagonals are inside a matrix, as far as its sizes are known. */
static mr_status check_bounds(int64_t lower, int64_t upper, int64_t rows, int64_t columns, mr_error *error)
{
    if (rows < 0 || columns < 0) return MR_OK;
    if (lower != 0 && (-rows >= lower || lower >= columns))
        return mr_fail(error, MR_INVALID_ARGUMENT, "lower_diag_index is out of bound.");
    if (upper != 0 && (-rows >= upper || upper >= columns))
        return mr_fail(error, MR_INVALID_ARGUMENT, "upper_diag_index is out of bound.");
    return MR_OK;
}

static mr_status matrix_diag_part_v2_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input = call->inputs[0], result = input;
    bool known;
    int64_t lower = 0, upper = 0, length = -1;
    MR_TRY(mr_shape_at_least(input, 2, error));
    MR_TRY(read_diagonals(call, 1, &known, &lower, &upper, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    if (!known || input.rank < 0) return MR_OK;
    int64_t rows = input.dims[input.rank - 2], columns = input.dims[input.rank - 1];
    MR_TRY(check_bounds(lower, upper, rows, columns, error));
    if (rows >= 0 && columns >= 0) {
        int64_t a = rows + (upper < 0 ? upper : 0), b = columns - (lower > 0 ? lower : 0);
        length = a < b ? a : b;
    }
    result.rank -= 2;
    result.dims[result.rank] = result.dims[result.rank + 1] = 0;
    if (lower < upper) result.dims[result.rank++] = upper - lower + 1;
    result.dims[result.rank++] = length;
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status matrix_set_diag_v2_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape result = call->inputs[0], diagonal = call->inputs[1];
    bool known;
    int64_t lower = 0, upper = 0;
    MR_TRY(mr_shape_at_least(result, 2, error));
    MR_TRY(mr_shape_at_least(diagonal, 1, error));
    MR_TRY(read_diagonals(call, 2, &known, &lower, &upper, error));
    if (!known) {
        call->outputs[0] = result;
        return MR_OK;
    }
    int32_t matrix_dims = lower == upper ? 1 : 2; /* dimensions of diagonal after those of the batch */
    if (result.rank >= 0) {
        MR_TRY(mr_shape_with_rank(diagonal, result.rank - 2 + matrix_dims, &diagonal, error));
        MR_TRY(check_bounds(lower, upper, result.dims[result.rank - 2], result.dims[result.rank - 1], error));
    }
    if (diagonal.rank >= 0) {
        int32_t batch = diagonal.rank - matrix_dims;
        if (batch < 0) return mr_shape_at_least(diagonal, matrix_dims, error);
        if (batch + 2 > MR_RANK_MAX)
            return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
        MR_TRY(mr_shape_with_rank(result, batch + 2, &result, error));
        for (int32_t i = 0; i < batch; i++)
            MR_TRY(mr_size_merge(result.dims[i], diagonal.dims[i], &result.dims[i], error));
    }
    call->outputs[0] = result;
    return MR_OK;
}

#define ALIGN "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"

static const mr_op diagonal_ops[] = {
    {.name = "Diag",
     .signature = "diagonal: T -> output: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     .shape = diag_shape,
     .doc = "Returns a tensor of twice the rank with diagonal on its diagonal and zeros elsewhere."},
    {.name = "DiagPart",
     .signature = "input: T -> diagonal: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     .shape = diag_part_shape,
     .doc = "Returns the diagonal of a tensor of even rank: the elements whose two halves of indices are equal."},
    {.name = "MatrixDiag",
     .signature = "diagonal: T -> output: T",
     .attrs = "T: type",
     .shape = matrix_diag_shape,
     .doc = "Returns matrices with the vectors in diagonal as their main diagonals, and zeros elsewhere."},
    {.name = "MatrixDiagV2",
     .signature = "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T",
     .attrs = "T: type",
     .shape = matrix_diag_v2_shape,
     .doc = "Returns matrices with the given diagonals k and padding_value elsewhere."},
    {.name = "MatrixDiagV3",
     .signature = "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T",
     .attrs = "T: type; " ALIGN,
     .shape = matrix_diag_v2_shape,
     .doc = "Returns matrices with the given diagonals k, stored with the given alignment, and padding_value "
            "elsewhere."},
    {.name = "MatrixDiagPart",
     .signature = "input: T -> diagonal: T",
     .attrs = "T: type",
     .shape = matrix_diag_part_shape,
     .doc = "Returns the main diagonals of the matrices in input."},
    {.name = "MatrixDiagPartV2",
     .signature = "input: T, k: int32, padding_value: T -> diagonal: T",
     .attrs = "T: type",
     .shape = matrix_diag_part_v2_shape,
     .doc = "Returns the diagonals k of the matrices in input, padded to the longest one with padding_value."},
    {.name = "MatrixDiagPartV3",
     .signature = "input: T, k: int32, padding_value: T -> diagonal: T",
     .attrs = "T: type; " ALIGN,
     .shape = matrix_diag_part_v2_shape,
     .doc = "Returns the diagonals k of the matrices in input, aligned and padded to the longest one with "
            "padding_value."},
    {.name = "MatrixSetDiag",
     .signature = "input: T, diagonal: T -> output: T",
     .attrs = "T: type",
     .shape = matrix_set_diag_shape,
     .doc = "Returns the matrices in input with their main diagonals replaced."},
    {.name = "MatrixSetDiagV2",
     .signature = "input: T, diagonal: T, k: int32 -> output: T",
     .attrs = "T: type",
     .shape = matrix_set_diag_v2_shape,
     .doc = "Returns the matrices in input with their diagonals k replaced."},
    {.name = "MatrixSetDiagV3",
     .signature = "input: T, diagonal: T, k: int32 -> output: T",
     .attrs = "T: type; " ALIGN,
     .shape = matrix_set_diag_v2_shape,
     .doc = "Returns the matrices in input with their diagonals k replaced by diagonals stored with the given "
            "alignment."},
    {.name = "MatrixBandPart",
     .signature = "input: T, num_lower: Tindex, num_upper: Tindex -> band: T",
     .attrs = "T: type; Tindex: {int32, int64} = int64",
     .shape = mr_shape_unchanged,
     .doc = "Returns the matrices in input with zeros outside a band around the main diagonal; a negative width "
            "keeps everything on its side."},
    {.name = "BatchMatrixDiag",
     .signature = "diagonal: T -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Does what MatrixDiag does; used by old graphs."},
    {.name = "BatchMatrixDiagPart",
     .signature = "input: T -> diagonal: T",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Does what MatrixDiagPart does; used by old graphs."},
    {.name = "BatchMatrixSetDiag",
     .signature = "input: T, diagonal: T -> output: T",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Does what MatrixSetDiag does; used by old graphs."},
    {.name = "BatchMatrixBandPart",
     .signature = "input: T, num_lower: int64, num_upper: int64 -> band: T",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Does what MatrixBandPart does; used by old graphs."},
};

const mr_op_table mr_ops_diagonal = {diagonal_ops, sizeof diagonal_ops / sizeof diagonal_ops[0]};
