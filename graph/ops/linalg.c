/* Linear algebra on the matrices in the last two dimensions: factors, inverses, systems of equations, functions of
 * matrices. */
#include "graph/ir/op.h"

/* The leading dimensions, without the last two. */
static mr_shape batch_of(mr_shape shape)
{
    if (shape.rank >= 0) shape.rank -= 2;
    return shape;
}

static mr_status with_matrix(mr_shape batch, int64_t rows, int64_t columns, mr_shape *result, mr_error *error)
{
    *result = batch;
    if (batch.rank < 0) return MR_OK;
    if (batch.rank + 2 > MR_RANK_MAX) return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
    result->dims[result->rank++] = rows;
    result->dims[result->rank++] = columns;
    return MR_OK;
}

/* The sizes of the last dimensions of an input of rank 2 or more; -1 if unknown. */
static mr_status matrix_sizes(mr_shape shape, int64_t *rows, int64_t *columns, mr_error *error)
{
    *rows = *columns = -1;
    MR_TRY(mr_shape_at_least(shape, 2, error));
    if (shape.rank < 0) return MR_OK;
    *rows = shape.dims[shape.rank - 2];
    *columns = shape.dims[shape.rank - 1];
    return MR_OK;
}

static mr_status square_size(mr_shape shape, int64_t *size, mr_error *error)
{
    int64_t rows, columns;
    MR_TRY(matrix_sizes(shape, &rows, &columns, error));
    return mr_size_merge(rows, columns, size, error);
}

static mr_status square_shape(mr_shape_call *call, mr_error *error)
{
    int64_t size;
    MR_TRY(square_size(call->inputs[0], &size, error));
    return with_matrix(batch_of(call->inputs[0]), size, size, &call->outputs[0], error);
}

static mr_status determinant_shape(mr_shape_call *call, mr_error *error)
{
    int64_t size;
    MR_TRY(square_size(call->inputs[0], &size, error));
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = batch_of(call->inputs[0]);
    return MR_OK;
}

static mr_status lu_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(square_shape(call, error));
    call->outputs[1] = call->outputs[0];
    if (call->outputs[1].rank > 0) call->outputs[1].rank--;
    return MR_OK;
}

/* The result of a solver for matrix [.., m, n] and rhs [.., m, k] is [.., n, k]. */
static mr_status solution(mr_shape_call *call, bool square, bool broadcasts, mr_error *error)
{
    int64_t m, n, rhs_m, k;
    mr_shape batch;
    MR_TRY(matrix_sizes(call->inputs[0], &m, &n, error));
    MR_TRY(matrix_sizes(call->inputs[1], &rhs_m, &k, error));
    if (square) MR_TRY(mr_size_merge(m, n, &m, error));
    MR_TRY(mr_size_merge(m, rhs_m, &m, error));
    mr_shape a = batch_of(call->inputs[0]), b = batch_of(call->inputs[1]);
    if (broadcasts)
        MR_TRY(mr_shape_broadcast(a, b, &batch, error));
    else
        MR_TRY(mr_shape_merge(a, b, &batch, error));
    return with_matrix(batch, square ? m : n, k, &call->outputs[0], error);
}

static mr_status solve_shape(mr_shape_call *call, mr_error *error)
{
    return solution(call, true, false, error);
}

static mr_status triangular_solve_shape(mr_shape_call *call, mr_error *error)
{
    return solution(call, true, true, error);
}

static mr_status solve_ls_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    return solution(call, false, false, error);
}

/* Diagonals [.., 3, m] and right sides [.., m, k]. */
static mr_status tridiagonal_solve_shape(mr_shape_call *call, mr_error *error)
{
    int64_t three, size, rows, columns;
    mr_shape batch;
    MR_TRY(matrix_sizes(call->inputs[0], &three, &size, error));
    MR_TRY(matrix_sizes(call->inputs[1], &rows, &columns, error));
    MR_TRY(mr_shape_merge(batch_of(call->inputs[0]), batch_of(call->inputs[1]), &batch, error));
    MR_TRY(mr_size_merge(size, rows, &size, error));
    MR_TRY(mr_size_merge(three, 3, &three, error));
    call->outputs[0] = call->inputs[1];
    return MR_OK;
}

/* Three diagonals [.., 1, m] and a matrix [.., m, k]. */
static mr_status tridiagonal_mat_mul_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape diagonal = call->inputs[1], batch = batch_of(call->inputs[3]);
    int64_t one, size, rows, columns;
    MR_TRY(mr_shape_at_least(call->inputs[3], 2, error));
    for (int32_t i = 0; i < 3; i++) {
        MR_TRY(mr_shape_at_least(call->inputs[i], 2, error));
        MR_TRY(mr_shape_merge(batch_of(call->inputs[i]), batch, &batch, error));
        MR_TRY(mr_shape_merge(call->inputs[i], diagonal, &diagonal, error));
    }
    MR_TRY(matrix_sizes(diagonal, &one, &size, error));
    MR_TRY(matrix_sizes(call->inputs[3], &rows, &columns, error));
    MR_TRY(mr_size_merge(size, rows, &size, error));
    MR_TRY(mr_size_merge(one, 1, &one, error));
    call->outputs[0] = call->inputs[3];
    return MR_OK;
}

static const mr_op linalg_ops[] = {
    {.name = "Cholesky",
     .signature = "input: T -> output: T",
     .attrs = "T: {double, float, half, complex64, complex128}",
     .shape = square_shape,
     .doc = "Computes the lower triangular factors of positive definite matrices."},
    {.name = "BatchCholesky",
     .signature = "input: T -> output: T",
     .attrs = "T: {double, float}",
     .shape = square_shape,
     .doc = "Computes the lower triangular factors of positive definite matrices; used by old graphs."},
    {.name = "CholeskyGrad",
     .signature = "l: T, grad: T -> output: T",
     .attrs = "T: {half, float, double}",
     .shape = square_shape,
     .doc = "Computes the gradient of Cholesky from its result and the gradient with respect to that."},
    {.name = "BatchCholeskyGrad",
     .signature = "l: T, grad: T -> output: T",
     .attrs = "T: {float, double}",
     .shape = square_shape,
     .doc = "Computes the gradient of Cholesky from its result and the gradient with respect to that; used by old "
            "graphs."},
    {.name = "MatrixExponential",
     .signature = "input: T -> output: T",
     .attrs = "T: {double, float, half, complex64, complex128}",
     .shape = square_shape,
     .doc = "Computes the exponentials of matrices."},
    {.name = "MatrixLogarithm",
     .signature = "input: T -> output: T",
     .attrs = "T: {complex64, complex128}",
     .shape = square_shape,
     .doc = "Computes the principal logarithms of matrices."},
    {.name = "MatrixSquareRoot",
     .signature = "input: T -> output: T",
     .attrs = "T: {double, float, half, complex64, complex128}",
     .shape = square_shape,
     .doc = "Computes the principal square roots of matrices."},
    {.name = "TridiagonalSolve",
     .signature = "diagonals: T, rhs: T -> output: T",
     .attrs = "partial_pivoting: bool = true; perturb_singular: bool = false; T: {double, float, complex64, "
              "complex128}",
     .shape = tridiagonal_solve_shape,
     .doc = "Solves systems of linear equations with tridiagonal matrices, given as rows: superdiagonal, diagonal, "
            "subdiagonal."},
    {.name = "TridiagonalMatMul",
     .signature = "superdiag: T, maindiag: T, subdiag: T, rhs: T -> output: T",
     .attrs = "T: {double, float, complex64, complex128}",
     .shape = tridiagonal_mat_mul_shape,
     .doc = "Multiplies tridiagonal matrices, given as diagonals, with matrices."},
    {.name = "MatrixInverse",
     .signature = "input: T -> output: T",
     .attrs = "adjoint: bool = false; T: {double, float, half, complex64, complex128}",
     .shape = square_shape,
     .doc = "Computes the inverses of matrices, or of their adjoints."},
    {.name = "BatchMatrixInverse",
     .signature = "input: T -> output: T",
     .attrs = "adjoint: bool = false; T: {double, float}",
     .shape = square_shape,
     .doc = "Computes the inverses of matrices, or of their adjoints; used by old graphs."},
    {.name = "MatrixDeterminant",
     .signature = "input: T -> output: T",
     .attrs = "T: {half, float, double, complex64, complex128}",
     .shape = determinant_shape,
     .doc = "Computes the determinants of matrices."},
    {.name = "BatchMatrixDeterminant",
     .signature = "input: T -> output: T",
     .attrs = "T: {float, double, complex64, complex128}",
     .shape = determinant_shape,
     .doc = "Computes the determinants of matrices; used by old graphs."},
    {.name = "LogMatrixDeterminant",
     .signature = "input: T -> sign: T, log_abs_determinant: T",
     .attrs = "T: {half, float, double, complex64, complex128}",
     .shape = determinant_shape,
     .doc = "Computes the sign and the logarithm of the absolute value of the determinants of matrices."},
    {.name = "Lu",
     .signature = "input: T -> lu: T, p: output_idx_type",
     .attrs = "T: {double, float, half, complex64, complex128}; output_idx_type: {int32, int64} = int32",
     .shape = lu_shape,
     .doc = "Computes the LU factors of matrices, in one matrix, and the permutation of their rows."},
    {.name = "MatrixSolve",
     .signature = "matrix: T, rhs: T -> output: T",
     .attrs = "adjoint: bool = false; T: {double, float, half, complex64, complex128}",
     .shape = solve_shape,
     .doc = "Solves systems of linear equations."},
    {.name = "BatchMatrixSolve",
     .signature = "matrix: T, rhs: T -> output: T",
     .attrs = "adjoint: bool = false; T: {double, float}",
     .shape = solve_shape,
     .doc = "Solves systems of linear equations; used by old graphs."},
    {.name = "MatrixTriangularSolve",
     .signature = "matrix: T, rhs: T -> output: T",
     .attrs = "lower: bool = true; adjoint: bool = false; T: {bfloat16, double, float, half, complex64, complex128}",
     .shape = triangular_solve_shape,
     .doc = "Solves systems of linear equations with triangular matrices."},
    {.name = "BatchMatrixTriangularSolve",
     .signature = "matrix: T, rhs: T -> output: T",
     .attrs = "lower: bool = true; adjoint: bool = false; T: {double, float}",
     .shape = triangular_solve_shape,
     .doc = "Solves systems of linear equations with triangular matrices; used by old graphs."},
    {.name = "MatrixSolveLs",
     .signature = "matrix: T, rhs: T, l2_regularizer: double -> output: T",
     .attrs = "T: {double, float, half, complex64, complex128}; fast: bool = true",
     .shape = solve_ls_shape,
     .doc = "Solves linear least-squares problems, with an L2 regularizer."},
    {.name = "BatchMatrixSolveLs",
     .signature = "matrix: T, rhs: T, l2_regularizer: double -> output: T",
     .attrs = "T: {double, float}; fast: bool = true",
     .shape = solve_ls_shape,
     .doc = "Solves linear least-squares problems, with an L2 regularizer; used by old graphs."},
};

const mr_op_table mr_ops_linalg = {linalg_ops, sizeof linalg_ops / sizeof linalg_ops[0]};
